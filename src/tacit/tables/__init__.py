"""Tables: what is protected, what is public about it, and where its rows come from."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.tables.catalog import BYTES_MAX, FILE_NAME, CatalogEntry, CatalogFile, read_catalog
    from tacit.tables.cells import FIRST_SECOND, LAST_SECOND, TEXT_BYTES_MAX
    from tacit.tables.frames import keys_to_arrow, to_scalar
    from tacit.tables.schema import (
        ROW,
        ColumnFacts,
        Declaration,
        Neighbours,
        RowUnit,
        WrittenFacts,
        is_auto,
        read_between,
        read_bound,
        read_columns,
        read_facts,
    )
    from tacit.tables.source import Source, open_source

__all__ = [
    "BYTES_MAX",
    "FILE_NAME",
    "FIRST_SECOND",
    "LAST_SECOND",
    "ROW",
    "TEXT_BYTES_MAX",
    "CatalogEntry",
    "CatalogFile",
    "ColumnFacts",
    "Declaration",
    "Neighbours",
    "RowUnit",
    "Source",
    "WrittenFacts",
    "is_auto",
    "keys_to_arrow",
    "open_source",
    "read_between",
    "read_bound",
    "read_catalog",
    "read_columns",
    "read_facts",
    "to_scalar",
]

# name -> the module that has it, loaded when the name is first used
_HOMES = {
    "BYTES_MAX": "tacit.tables.catalog",
    "CatalogEntry": "tacit.tables.catalog",
    "CatalogFile": "tacit.tables.catalog",
    "ColumnFacts": "tacit.tables.schema",
    "Declaration": "tacit.tables.schema",
    "FILE_NAME": "tacit.tables.catalog",
    "FIRST_SECOND": "tacit.tables.cells",
    "LAST_SECOND": "tacit.tables.cells",
    "Neighbours": "tacit.tables.schema",
    "ROW": "tacit.tables.schema",
    "RowUnit": "tacit.tables.schema",
    "Source": "tacit.tables.source",
    "TEXT_BYTES_MAX": "tacit.tables.cells",
    "WrittenFacts": "tacit.tables.schema",
    "is_auto": "tacit.tables.schema",
    "keys_to_arrow": "tacit.tables.frames",
    "open_source": "tacit.tables.source",
    "read_between": "tacit.tables.schema",
    "read_bound": "tacit.tables.schema",
    "read_catalog": "tacit.tables.catalog",
    "read_columns": "tacit.tables.schema",
    "read_facts": "tacit.tables.schema",
    "to_scalar": "tacit.tables.frames",
}


def __getattr__(name: str) -> object:
    """Load a name from its module, once (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'tacit.tables' has no attribute '{name}'")
    value: object = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
