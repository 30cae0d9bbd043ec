"""Tables whose rows another engine keeps: here stands an empty table of the same columns in their place.

That decides all that is decided before rows are read. Rows come as Arrow batches wherever the other engine schedules,
and `BatchReader` runs a `BatchRecipe`, the SQL with what it needs, on them in a locked engine of ours.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tacit import typed_sql as sql
from tacit.tables.cells import CellReading, reading_of, select, stored_column
from tacit.tables.connection import lock, our_connection
from tacit.tables.source import Source
from tacit.typed_sql import quoted

GIVEN = "given_rows"


@dataclass(frozen=True)
class Elsewhere:
    """Where rows are: the Arrow schema in which they will be handed over, and what their engine knows them by."""

    schema: pa.Schema
    rows: Any
    place: object = None  # two tables can be read together if they are in one place


@dataclass(frozen=True)
class BatchRecipe:
    """SQL to run on batches of rows: it names one view of them, and public tables that are lent to it."""

    readings: tuple[CellReading, ...]
    view: str
    sql: str
    lent: Mapping[str, pa.Table]


def recipe_of(source: Source, relation: sql.Relation) -> BatchRecipe:
    """Return how a relation over rows elsewhere is computed, batch by batch, from the columns that it names."""
    elsewhere = source.elsewhere
    if elsewhere is None:
        raise TypeError("a recipe is for rows that are elsewhere")
    (stored,) = relation.stored()
    readings = [reading_of(each.name, each.type) for each in elsewhere.schema]
    named = relation.columns_named()
    read = tuple(each for each in readings if each is not None and each.name in named)
    read = read or tuple(each for each in readings if each is not None)[:1]  # a row is there even if nothing is asked
    lent = {each.name: each.data for each in relation.lent()}
    return BatchRecipe(read, stored.name, sql.sql_of(relation), lent)


class BatchReader:
    """Runs a recipe on batches, one after another, in a locked engine with one thread."""

    def __init__(self, recipe: BatchRecipe) -> None:
        self._recipe = recipe
        self._backend = our_connection()
        for name, table in recipe.lent.items():
            self._backend.con.register(name, table)
        lock(self._backend, [], streams=True)

    def run(self, rows: pa.Table) -> pa.Table:
        """Return what the recipe computes of these rows, in their order."""
        recipe, con = self._recipe, self._backend.con
        with suppress(Exception):
            con.unregister(GIVEN)
        con.register(
            GIVEN, pa.table({each.name: stored_column(rows.column(each.name), each) for each in recipe.readings})
        )
        con.execute(f"CREATE OR REPLACE TEMP VIEW {quoted(recipe.view)} AS {select(recipe.readings, GIVEN)}")
        return con.sql(recipe.sql).to_arrow_table()

    def close(self) -> None:
        self._backend.close()
