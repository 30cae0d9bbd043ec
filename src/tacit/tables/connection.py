"""DuckDB connections of our own: what may be reached from them, and how they work out a query.

An answer must follow from the cells alone. A Parquet file also says what the least and greatest cell of a column are.
Writers leave NaN out of that, shorten texts, or err. An optimizer that believes it drops rows, and guards: it takes
`x BETWEEN 0 AND 9` for true where x is NaN. So of DuckDB's optimizers only those run here that look at the query and
not at the data. And no cast raises: a cell that does not fit its type is NULL.
"""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import ibis
from ibis.backends.sql.compilers.duckdb import DuckDBCompiler

from tacit.tables.memory import memory_limit
from tacit.tables.spill import spill_folder

# What rewrites a query by its own text, or picks which side of a join is held in memory. All others are turned off by
# name, those of a later DuckDB too.
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


class TotalCompiler(DuckDBCompiler):  # type: ignore[misc]  # Ibis has no types
    """Ibis's compiler for DuckDB, with TRY_CAST wherever it would write CAST."""

    __slots__ = ()

    def cast(self, arg: Any, to: Any) -> Any:
        """Return a cast that gives NULL where a cell does not fit."""
        return self.visit_TryCast(None, arg=super().cast(arg, to).this, to=to)


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
    """Return which of DuckDB's optimizers are turned off: all but those that look at nothing but the query."""
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
    """Whether the engine would draw a bar, which tells how much there is to read. Setting what is so already fails in a
    notebook without ipywidgets: DuckDB looks for it whatever the setting, and leaves the bar off where there is none.
    """
    return bool(backend.con.execute("SELECT current_setting('enable_progress_bar')").fetchall()[0][0])
