"""Tables: what is protected, what is public about it, and where its rows come from."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.tables.catalog import (
        BYTES_MAX,
        FILE_NAME,
        CatalogEntry,
        CatalogFile,
        CatalogPerson,
        catalog_from,
        catalog_ledger,
        read_catalog,
        without_password,
    )
    from tacit.tables.cells import FIRST_SECOND, LAST_SECOND, TEXT_BYTES_MAX
    from tacit.tables.declaration_json import declaration_from, declaration_record
    from tacit.tables.elsewhere import BatchReader, BatchRecipe, Elsewhere, recipe_of
    from tacit.tables.formats import open_elsewhere, open_source, open_together, run_public
    from tacit.tables.frames import keys_to_arrow, to_scalar
    from tacit.tables.public import PublicTable, make_public
    from tacit.tables.schema import (
        ROW,
        ColumnFacts,
        Declaration,
        KeyValue,
        Neighbours,
        RowUnit,
        WrittenFacts,
        is_auto,
        read_between,
        read_bound,
        read_columns,
        read_facts,
    )
    from tacit.tables.source import Source, Wanted
    from tacit.tables.spark_tables import SparkTable

__all__ = [
    "BYTES_MAX",
    "FILE_NAME",
    "FIRST_SECOND",
    "LAST_SECOND",
    "ROW",
    "TEXT_BYTES_MAX",
    "BatchReader",
    "BatchRecipe",
    "CatalogEntry",
    "CatalogFile",
    "CatalogPerson",
    "ColumnFacts",
    "Declaration",
    "Elsewhere",
    "KeyValue",
    "Neighbours",
    "PublicTable",
    "RowUnit",
    "Source",
    "SparkTable",
    "Wanted",
    "WrittenFacts",
    "catalog_from",
    "catalog_ledger",
    "declaration_from",
    "declaration_record",
    "is_auto",
    "keys_to_arrow",
    "make_public",
    "open_elsewhere",
    "open_source",
    "open_together",
    "read_between",
    "read_bound",
    "read_catalog",
    "read_columns",
    "read_facts",
    "recipe_of",
    "run_public",
    "to_scalar",
    "without_password",
]

# name -> the module that has it, loaded when the name is first used
_HOMES = {
    "BYTES_MAX": "tacit.tables.catalog",
    "BatchReader": "tacit.tables.elsewhere",
    "BatchRecipe": "tacit.tables.elsewhere",
    "Elsewhere": "tacit.tables.elsewhere",
    "open_elsewhere": "tacit.tables.formats",
    "recipe_of": "tacit.tables.elsewhere",
    "CatalogEntry": "tacit.tables.catalog",
    "CatalogFile": "tacit.tables.catalog",
    "CatalogPerson": "tacit.tables.catalog",
    "ColumnFacts": "tacit.tables.schema",
    "catalog_from": "tacit.tables.catalog",
    "catalog_ledger": "tacit.tables.catalog",
    "Declaration": "tacit.tables.schema",
    "KeyValue": "tacit.tables.schema",
    "FILE_NAME": "tacit.tables.catalog",
    "FIRST_SECOND": "tacit.tables.cells",
    "LAST_SECOND": "tacit.tables.cells",
    "Neighbours": "tacit.tables.schema",
    "PublicTable": "tacit.tables.public",
    "make_public": "tacit.tables.public",
    "ROW": "tacit.tables.schema",
    "RowUnit": "tacit.tables.schema",
    "Source": "tacit.tables.source",
    "SparkTable": "tacit.tables.spark_tables",
    "Wanted": "tacit.tables.source",
    "TEXT_BYTES_MAX": "tacit.tables.cells",
    "WrittenFacts": "tacit.tables.schema",
    "declaration_from": "tacit.tables.declaration_json",
    "declaration_record": "tacit.tables.declaration_json",
    "is_auto": "tacit.tables.schema",
    "keys_to_arrow": "tacit.tables.frames",
    "open_source": "tacit.tables.formats",
    "open_together": "tacit.tables.formats",
    "run_public": "tacit.tables.formats",
    "read_between": "tacit.tables.schema",
    "read_bound": "tacit.tables.schema",
    "read_catalog": "tacit.tables.catalog",
    "read_columns": "tacit.tables.schema",
    "read_facts": "tacit.tables.schema",
    "to_scalar": "tacit.tables.frames",
    "without_password": "tacit.tables.catalog",
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
