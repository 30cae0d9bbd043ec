"""Makes and locks our own DuckDB connections, and opens tables of DuckDB files by name.

An answer must depend on the cells alone. A Parquet file also states the least and greatest cell of a column, and
writers leave NaN out, shorten texts, or make errors. An optimizer that trusts them drops rows and conditions: it takes
`x BETWEEN 0 AND 9` for true where x is NaN. So only those optimizers of DuckDB run that look at the query and not at
the data. A table is named 'flights', 'main.flights', or 'air.duckdb?table=flights'.
"""

import os
import re
import tempfile
from collections.abc import Iterable, Sequence

from tacit import typed_sql as sql
from tacit.errors import QueryRefused
from tacit.memory import memory_limit, spill_folder
from tacit.typed_sql import text_of

# Optimizers that rewrite a query by its text, or choose the side of a join that is held in memory. Others are turned
# off by name, including those of a later DuckDB.
OPTIMIZERS_KEPT = frozenset(
    {
        "build_side_probe_side",
        "column_lifetime",
        "common_aggregate",
        "common_subexpressions",
        "cte_inlining",
        "duplicate_groups",
        "expression_rewriter",
        "in_clause",
        "join_order",
        "unused_columns",
    }
)


def our_connection() -> sql.Connection:
    """Return a connection to a DuckDB of our own, in memory, which believes no statistics; it is not locked yet."""
    backend = sql.connected()
    names = (name for (name,) in backend.con.execute("SELECT name FROM duckdb_optimizers()").fetchall())
    backend.con.execute(f"SET disabled_optimizers = {text_of(','.join(optimizers_off(names)))}")
    return backend


def optimizers_off(known: Iterable[str]) -> list[str]:
    """Return the optimizers of DuckDB that are turned off: all but those that look only at the query."""
    return sorted(set(known) - OPTIMIZERS_KEPT)


def lock(backend: sql.Connection, paths: Sequence[str], *, streams: bool = False) -> None:
    """Lock down a connection of ours: these files and a private folder to spill to, and nothing else.

    One that only `streams` rows holds few of them: a memory limit would end questions and save nothing.
    """
    spill = tempfile.mkdtemp(dir=spill_folder())
    listed = ", ".join(text_of(path) for path in paths)
    for setting in (
        f"SET allowed_paths = [{listed}]" if paths else None,
        f"SET temp_directory = {text_of(spill)}",
        "SET threads = 1" if streams else f"SET memory_limit = '{memory_limit() // 2}B'",  # the kernel has a half
        "SET enable_progress_bar = false" if _shows_progress(backend) else None,
        "SET TimeZone = 'UTC'",
        "SET enable_external_access = false",
        "SET lock_configuration = true",
    ):
        if setting:
            backend.con.execute(setting)


def _shows_progress(backend: sql.Connection) -> bool:
    """Whether DuckDB would draw a progress bar; turning it off, if it is, fails in a notebook without ipywidgets."""
    return bool(backend.con.execute("SELECT current_setting('enable_progress_bar')").fetchall()[0][0])


# --- tables of a DuckDB database, by name ---

_FILE = re.compile(r"(?P<path>.+\.(?:duckdb|ddb|db))(?:\?table=(?P<name>.+))?", re.IGNORECASE | re.DOTALL)
_PART = re.compile(r'"((?:[^"]|"")+)"|([^."]+)')
_NAMES = """
SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal AND NOT temporary ORDER BY ALL
"""
LISTED = 20


def is_database(text: str) -> bool:
    found = _FILE.fullmatch(text)
    return found is not None and (found["name"] is not None or os.path.isfile(text))


def open_database(backend: sql.Connection, text: str, *, name: str) -> str:
    """Attach the DuckDB file that a text names to a connection of ours, to read; return the name of its table."""
    found = _FILE.fullmatch(text)
    path, table = (text, None) if found is None else (found["path"], found["name"])
    if not os.path.isfile(path):
        raise QueryRefused(f"no file exists at {path!r}\nhint: give the path of a DuckDB file, and its table")
    try:
        # attached to a database of our own: settings belong to a database, and its file may be opened more than once
        backend.con.execute(f"ATTACH {text_of(os.path.realpath(path))} AS {name} (TYPE duckdb, READ_ONLY)")
        backend.con.execute(f"USE {name}")
    except Exception:  # noqa: BLE001 - for any reason, its tables cannot be read
        raise QueryRefused(
            f"{path!r} cannot be opened as a DuckDB database for reading\nhint: it may be open for writing "
            "elsewhere, or not be a DuckDB file; in Python, give your connection: (connection, 'flights')"
        ) from None
    if table is None:
        names = _stored_names(backend)
        example = names[0] if names else "flights"
        raise QueryRefused(
            f"{path!r} is a database: name one of its tables"
            f"\nhint: '{path}?table={example}'; its tables: {listed_names(names)}"
        )
    return table


def named_table(backend: sql.Connection, name: str) -> tuple[sql.Stored, str]:
    """Return the table that a name stands for in a DuckDB database, and its last part; a name may be qualified."""
    parts = name_parts(name)
    tries: list[tuple[str, tuple[str, ...]]] = [(name, ())]
    if 2 <= len(parts) <= 3:
        tries.append((parts[-1], tuple(parts[:-1])))
    for last, within in tries:
        try:
            return backend.table(last, within), last
        except Exception:  # noqa: BLE001, S112 - for any reason, there is no such table
            continue
    raise QueryRefused(
        f"this DuckDB database has no table {name!r}\nhint: its tables: {listed_names(_stored_names(backend))}"
    )


def _stored_names(backend: sql.Connection) -> list[str]:
    """Return the names of the stored tables, with their schema where it is not the usual one."""
    return [name if schema == "main" else f"{schema}.{name}" for schema, name in backend.con.execute(_NAMES).fetchall()]


def name_parts(name: str) -> list[str]:
    """Return the parts of a qualified name, as SQL reads it.

    >>> name_parts('clinic."the ""big"" one"')
    ['clinic', 'the "big" one']
    """
    return [inner.replace('""', '"') or plain for inner, plain in _PART.findall(name)]


def listed_names(names: list[str]) -> str:
    """Return the first few names of tables, for a hint."""
    return ", ".join(names[:LISTED]) + (", ..." if len(names) > LISTED else "") if names else "none"
