"""A table of a DuckDB database, named by text: 'flights', 'main.flights', or 'air.duckdb?table=flights' for a file.

Names are looked up and files opened for reading alone. Which stored table it is, and what the ledger knows it by, is
`stored.py`'s.
"""

import os
import re
from typing import Any

import ibis.expr.types as ir

from tacit.errors import QueryRefused
from tacit.tables.connection import literal, our_connection

_FILE = re.compile(r"(?P<path>.+\.(?:duckdb|ddb|db))(?:\?table=(?P<name>.+))?", re.IGNORECASE | re.DOTALL)
_PART = re.compile(r'"((?:[^"]|"")+)"|([^."]+)')
_NAMES = """
SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal AND NOT temporary ORDER BY ALL
"""
LISTED = 20
ATTACHED = "attached"


def is_database(text: str) -> bool:
    """Return whether a text names a DuckDB file, with a table of it or without."""
    found = _FILE.fullmatch(text)
    return found is not None and (found["name"] is not None or os.path.isfile(text))


def open_database(text: str) -> tuple[Any, str]:
    """Return a connection of ours to the DuckDB file that a text names, to read, and the name of its table."""
    found = _FILE.fullmatch(text)
    path, name = (text, None) if found is None else (found["path"], found["name"])
    if not os.path.isfile(path):
        raise QueryRefused(f"there is no file at {path!r}\nhint: give the path of a DuckDB file, and its table")
    backend = our_connection()
    try:
        # attached to a database of our own: settings belong to a database, and its file may be opened more than once
        backend.con.execute(f"ATTACH {literal(os.path.realpath(path))} AS {ATTACHED} (TYPE duckdb, READ_ONLY)")
        backend.con.execute(f"USE {ATTACHED}")
    except Exception:  # noqa: BLE001 - whatever it is, no table of it can be asked
        raise QueryRefused(
            f"{path!r} cannot be opened as a DuckDB database, to read\nhint: another program may have it open to write,"
            " or it is of another kind; in Python, give the connection you have: (connection, 'flights')"
        ) from None
    if name is None:
        names = _names(backend)
        example = names[0] if names else "flights"
        raise QueryRefused(
            f"{path!r} is a database: say which table of it\nhint: '{path}?table={example}'; it has {_listed(names)}"
        )
    return backend, name


def named_table(backend: Any, name: str) -> tuple[ir.Table, str]:
    """Return the table that a name stands for in a DuckDB database, and its last part; a name may be qualified."""
    parts = [quoted.replace('""', '"') or plain for quoted, plain in _PART.findall(name)]
    tries: list[tuple[str, Any]] = [(name, None)]
    if 2 <= len(parts) <= 3:
        tries.append((parts[-1], parts[0] if len(parts) == 2 else (parts[0], parts[1])))
    for last, within in tries:
        try:
            return backend.table(last, database=within), last
        except Exception:  # noqa: BLE001, S112 - whatever it is, there is no such table to ask
            continue
    raise QueryRefused(f"this DuckDB database has no table {name!r}\nhint: it has {_listed(_names(backend))}")


def _names(backend: Any) -> list[str]:
    """Return the names of the stored tables, with their schema where it is not the usual one."""
    return [name if schema == "main" else f"{schema}.{name}" for schema, name in backend.con.execute(_NAMES).fetchall()]


def _listed(names: list[str]) -> str:
    return ", ".join(names[:LISTED]) + (", ..." if len(names) > LISTED else "") if names else "none"
