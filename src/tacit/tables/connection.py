"""Makes and locks our own DuckDB connections, and opens tables of DuckDB files by name.

An answer must depend on the cells alone. A Parquet file also states the least and greatest cell of a column. Writers
leave NaN out of these statistics, shorten texts, or make errors. An optimizer that trusts them drops rows and
conditions: it takes `x BETWEEN 0 AND 9` for true where x is NaN. So only those optimizers of DuckDB run here that look
at the query and not at the data. No cast raises: a cell that does not fit its type is NULL.

A table is named 'flights', 'main.flights', or 'air.duckdb?table=flights' for a file, which is opened to read. Which
stored table a name means, and how the ledger identifies it, is left to `identity.py`.
"""

import os
import re
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import ibis
import ibis.expr.types as ir
from ibis.backends.sql.compilers.duckdb import DuckDBCompiler
from ibis.common import patterns

from tacit.errors import QueryRefused
from tacit.memory import memory_limit, spill_folder

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


_compiling = threading.RLock()


@contextmanager
def _one_select_for_each_step() -> Iterator[None]:
    """Turn off Ibis's merging of SELECTs; the option belongs to the whole process, so this takes a lock."""
    with _compiling:
        before = ibis.options.sql.fuse_selects
        ibis.options.sql.fuse_selects = False
        try:
            yield
        finally:
            ibis.options.sql.fuse_selects = before


def _operations_of(pattern: Any) -> frozenset[type] | None:
    """Return the operations that a pattern of Ibis matches at its root; None where that cannot be told."""
    if isinstance(pattern, patterns.Replace):
        return _operations_of(pattern.matcher)
    if isinstance(pattern, patterns.InstanceOf):
        return frozenset(pattern.type if isinstance(pattern.type, tuple) else (pattern.type,))
    if isinstance(pattern, patterns.Object):
        return _operations_of(pattern.type)
    if isinstance(pattern, patterns.AnyOf):
        found = [_operations_of(each) for each in pattern.patterns]
        return None if None in found else frozenset().union(*(each for each in found if each is not None))
    return None


# The operations that Ibis rewrites before it compiles, in two passes over the whole expression.
_REWRITTEN = _operations_of(patterns.AnyOf(*DuckDBCompiler.rewrites, *DuckDBCompiler.lowered_ops.values()))


class TotalCompiler(DuckDBCompiler):  # type: ignore[misc]  # Ibis has no types
    """Ibis's compiler for DuckDB, with TRY_CAST wherever it would write CAST, in half of the time.

    Ibis would look for SELECTs inside SELECTs that could be one, which takes a third of its time; DuckDB runs both
    alike. And it would rewrite operations that most relations do not have.
    """

    __slots__ = ()

    def to_sqlglot(self, expr: Any, **given: Any) -> Any:
        """Return the query of an expression, with a SELECT for each of its steps."""
        is_plain = _REWRITTEN is not None and not expr.op().find(tuple(_REWRITTEN))
        with _one_select_for_each_step():
            return super(TotalCompiler, _PLAIN if is_plain else self).to_sqlglot(expr, **given)

    def cast(self, arg: Any, to: Any) -> Any:
        """Return a cast that gives NULL where a cell does not fit."""
        return self.visit_TryCast(None, arg=super().cast(arg, to).this, to=to)


class _PlainCompiler(TotalCompiler):
    """The same for an expression in which nothing is rewritten."""

    __slots__ = ()
    rewrites = ()
    LOWERED_OPS: ClassVar[dict[Any, None]] = dict.fromkeys(DuckDBCompiler.lowered_ops)


_PLAIN = _PlainCompiler()


def total_casts(backend: Any) -> Any:
    """Return an Ibis backend for DuckDB, from now on writing no cast that raises."""
    backend.compiler = TotalCompiler()
    return backend


def our_connection() -> Any:
    """Return an Ibis backend for a DuckDB of our own, in memory, which believes no statistics; it is not locked yet."""
    backend = ibis.duckdb.connect()
    names = (name for (name,) in backend.con.execute("SELECT name FROM duckdb_optimizers()").fetchall())
    backend.con.execute(f"SET disabled_optimizers = {literal(','.join(optimizers_off(names)))}")
    return total_casts(backend)


def optimizers_off(known: Iterable[str]) -> list[str]:
    """Return the optimizers of DuckDB that are turned off: all but those that look only at the query."""
    return sorted(set(known) - OPTIMIZERS_KEPT)


def lock(backend: Any, paths: Sequence[str], *, streams: bool = False) -> None:
    """Lock down a connection of ours: these files and a private folder to spill to, and nothing else.

    One that only `streams` rows has no more than a vector of them at a time, so that what it takes is bounded by public
    facts, and a limit would end questions and save nothing.
    """
    spill = tempfile.mkdtemp(dir=spill_folder())
    listed = ", ".join(literal(path) for path in paths)
    for setting in (
        f"SET allowed_paths = [{listed}]" if paths else None,
        f"SET temp_directory = {literal(spill)}",
        "SET threads = 1" if streams else f"SET memory_limit = '{memory_limit() // 2}B'",  # the kernel has a half
        "SET enable_progress_bar = false" if _shows_progress(backend) else None,
        "SET TimeZone = 'UTC'",
        "SET enable_external_access = false",
        "SET lock_configuration = true",
    ):
        if setting:
            backend.raw_sql(setting)


@contextmanager
def stopping() -> Iterator[None]:
    """Raise Ctrl-C as such: DuckDB reports it as an error like another, in these words and no others."""
    try:
        yield
    except RuntimeError as problem:
        if type(problem) is RuntimeError and str(problem) == "Query interrupted":
            raise KeyboardInterrupt from None
        raise


def literal(text: str) -> str:
    """Return text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def _shows_progress(backend: Any) -> bool:
    """Whether the engine would draw a progress bar, which shows how much there is to read.

    It is asked first, because turning the bar off fails in a notebook without ipywidgets even if it is already off. In
    such a notebook DuckDB draws no bar.
    """
    return bool(backend.con.execute("SELECT current_setting('enable_progress_bar')").fetchall()[0][0])


# --- tables of a DuckDB database, by name ---

_FILE = re.compile(r"(?P<path>.+\.(?:duckdb|ddb|db))(?:\?table=(?P<name>.+))?", re.IGNORECASE | re.DOTALL)
_PART = re.compile(r'"((?:[^"]|"")+)"|([^."]+)')
_NAMES = """
SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal AND NOT temporary ORDER BY ALL
"""
LISTED = 20


def is_database(text: str) -> bool:
    """Return whether a text names a DuckDB file, with a table of it or without."""
    found = _FILE.fullmatch(text)
    return found is not None and (found["name"] is not None or os.path.isfile(text))


def open_database(backend: Any, text: str, *, name: str) -> str:
    """Attach the DuckDB file that a text names to a connection of ours, to read; return the name of its table."""
    found = _FILE.fullmatch(text)
    path, table = (text, None) if found is None else (found["path"], found["name"])
    if not os.path.isfile(path):
        raise QueryRefused(f"there is no file at {path!r}\nhint: give the path of a DuckDB file, and its table")
    try:
        # attached to a database of our own: settings belong to a database, and its file may be opened more than once
        backend.con.execute(f"ATTACH {literal(os.path.realpath(path))} AS {name} (TYPE duckdb, READ_ONLY)")
        backend.con.execute(f"USE {name}")
    except Exception:  # noqa: BLE001 - for any reason, its tables cannot be read
        raise QueryRefused(
            f"{path!r} cannot be opened as a DuckDB database for reading\nhint: it may be open for writing elsewhere,"
            " or be no DuckDB file; in Python, give your connection: (connection, 'flights')"
        ) from None
    if table is None:
        names = _names(backend)
        example = names[0] if names else "flights"
        raise QueryRefused(
            f"{path!r} is a database: name one of its tables"
            f"\nhint: '{path}?table={example}'; its tables: {_listed(names)}"
        )
    return table


def named_table(backend: Any, name: str) -> tuple[ir.Table, str]:
    """Return the table that a name stands for in a DuckDB database, and its last part; a name may be qualified."""
    parts = [quoted.replace('""', '"') or plain for quoted, plain in _PART.findall(name)]
    tries: list[tuple[str, Any]] = [(name, None)]
    if 2 <= len(parts) <= 3:
        tries.append((parts[-1], parts[0] if len(parts) == 2 else (parts[0], parts[1])))
    for last, within in tries:
        try:
            return backend.table(last, database=within), last
        except Exception:  # noqa: BLE001, S112 - for any reason, there is no such table
            continue
    raise QueryRefused(f"this DuckDB database has no table {name!r}\nhint: its tables: {_listed(_names(backend))}")


def _names(backend: Any) -> list[str]:
    """Return the names of the stored tables, with their schema where it is not the usual one."""
    return [name if schema == "main" else f"{schema}.{name}" for schema, name in backend.con.execute(_NAMES).fetchall()]


def _listed(names: list[str]) -> str:
    return ", ".join(names[:LISTED]) + (", ..." if len(names) > LISTED else "") if names else "none"
