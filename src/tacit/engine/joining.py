"""The rows of a join, as an SQL relation over the rows of both sides.

Two protected sides are always joined on their units, whatever else must be equal: a row of the result belongs to one
unit, and all of it comes from that unit's own rows (docs/proofs/joins.md). A public side is held in memory; that a row
has no more matches in it than was said is checked here, before anything is charged, since its rows are no secret.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tacit import typed_sql as sql
from tacit.engine.conversion import Cell
from tacit.engine.expression import to_sql
from tacit.engine.relation import leaving, unit_value
from tacit.errors import QueryRefused
from tacit.query import (
    FLOAT,
    PAIRS_MOST,
    PLACES,
    Column,
    Expression,
    Join,
    Kind,
    Marked,
    RowWise,
    SomeUnits,
    is_public,
    kind_of_column,
    publics_of,
    show,
)
from tacit.tables import PublicTable, Source, make_public, run_public

UNIT_KEY, HIT, KEY = "unit_key", "hit", "on_"
PLACE, COUNT = "place of a match", "rows to match"
PLACE_DIGITS = 8  # hexadecimal, of PLACES

PUBLIC_BATCH_ROWS = 1 << 16


def key_name(index: int) -> str:
    """Return the name of the value that must be equal on both sides, number `index`."""
    return f"{KEY}{index}"


def kinds_of(source: Source) -> dict[str, Kind]:
    """Return what each readable column of a source yields."""
    return {each: kind_of_column(each, facts) for each, facts in source.columns.items() if facts.type != "other"}


def public_source(table: PublicTable, backend: Any) -> Source:
    """Return a public table as a source of an engine: its rows are held in memory and lent to it."""
    return Source(sql.Lent(table.rows), backend, table.columns, table.name, None)


def row_wise(relation: RowWise, source: Source, unit: str | None) -> Source:
    """Return the rows of `source` where a condition holds, as the unit and the relation's columns."""
    kinds, table = kinds_of(source), source.table
    kept = table if relation.where is None else table.filter(to_sql(relation.where, table, kinds))
    columns = {key.name: to_sql(key.expression, kept, kinds) for key in relation.columns}
    own = {} if unit is None else {unit: kept[unit]}
    return replace(source, table=kept.select(**(own | columns)))


def some_units(relation: SomeUnits, source: Source, unit: str | None) -> Source:
    """Return the rows of those units whose place is among the relation's.

    The place is the number that the first 32 bits of a SHA-256 write: the same on every engine, version and day, which
    what was fitted on one side and is judged on the other rests on. Eight hexadecimal digits sort as their numbers do.
    """
    table, kinds = source.table, kinds_of(source)
    if unit is not None:
        who = plain_unit(unit_value(table, unit, kinds)).cast("string")
    else:
        who = sql.literal("")
        for name in relation.columns:
            text = _row_text(to_sql(Column(name), table, kinds))
            who = who + text
    place = (sql.literal(relation.salt + "\n") + who).sha256().substr(0, PLACE_DIGITS)
    conditions = [place >= f"{relation.first:0{PLACE_DIGITS}x}"]
    if relation.end < PLACES:
        conditions.append(place < f"{relation.end:0{PLACE_DIGITS}x}")
    chosen = table.filter(conditions)
    if relation.hands:
        number = (sql.literal("0x") + place).cast("int64")
        chosen = chosen.mutate(**{relation.hand: number * relation.hands // PLACES})
    going_on = [name for name in table.columns if relation.needed is None or name in relation.needed]
    return replace(source, table=chosen.select(*going_on, *([relation.hand] if relation.hands else [])))


def _row_text(value: sql.Value) -> sql.Value:
    """Return a cell as text that no other cell, and no two cells together, can spell: its length comes first."""
    text = Cell(value, FLOAT, raw=True).settled().value if value.type().is_floating() else value
    text = text.cast("string")
    return sql.cases((text.isnull(), sql.literal("-")), else_=text.byte_length().cast("string") + ":" + text)


@dataclass(frozen=True)
class Sides:
    """The two sides of a join, and the unit that they share: None where the right side is public."""

    left: Source
    right: Source
    unit: str | None
    one_each: bool = False  # the right side has one row of each unit, by how it is made; what is declared may be false

    def rows(self, side: Source, on: tuple[Expression, ...], columns: Mapping[str, str]) -> sql.Table:
        """Return one side's rows as what must be equal, and its columns under new names."""
        kinds = kinds_of(side)
        keys = {key_name(index): to_sql(each, side.table, kinds) for index, each in enumerate(on)}
        if self.unit is not None:
            keys[UNIT_KEY] = plain_unit(unit_value(side.table, self.unit, kinds))
        return side.table.select(**(keys | {new: side.table[old] for old, new in columns.items()}))


def joined_rows(relation: Join, sides: Sides) -> sql.Table:
    """Return the rows of a join under the names of its columns."""
    places = {each: f"column_{place}" for place, each in enumerate(relation.columns)}
    of_left = {each.column: place for each, place in places.items() if each.side == "left"}
    of_right = {each.column: place for each, place in places.items() if each.side == "right"}
    left = sides.rows(sides.left, tuple(here for here, _ in relation.on), of_left)
    right = sides.rows(sides.right, tuple(there for _, there in relation.on), of_right)
    if sides.unit is not None and not sides.one_each:
        right = _fewer_pairs(left, right)
    join = left.inner_join if relation.how == "inner" else left.left_join
    both = join(right, equal_keys(left, right, sides))
    return both.select(**{each.name: both[place] for each, place in places.items()})


def _fewer_pairs(left: sql.Table, right: sql.Table) -> sql.Table:
    """Return as many rows of the right side as make PAIRS_MOST pairs with those of the left that they match, or one.

    Rows match that are one unit's and equal where it matters, so which are kept depends on that unit's rows alone: they
    are taken in the order of a hash of their values, then of the values, and rows that still tie are identical.
    """
    equal = [name for name in right.columns if name == UNIT_KEY or name.startswith(KEY)]
    found = left.filter([left[name].notnull() for name in equal])
    counts = found.group_by(equal).agg(**{COUNT: found.count()})
    both = right.inner_join(counts, [right[name] == counts[name] for name in equal])
    known = both.select(*(right[name] for name in right.columns), counts[COUNT])
    values = [known[name] for name in right.columns]
    mixed = sql.struct({name: known[name] for name in right.columns}).hash().hash()
    place = sql.row_number().over(sql.window(group_by=equal, order_by=[mixed, *values]))
    placed = known.mutate(**{PLACE: place})
    return placed.filter(placed[PLACE] * placed[COUNT] < PAIRS_MOST).drop(PLACE, COUNT)


def marked_rows(relation: Marked, sides: Sides) -> sql.Table:
    """Return the rows of the left side with the mark: whether any row of the right side is equal to it."""
    kept = [name for name in sides.left.table.columns if relation.columns is None or name in relation.columns]
    names = {name: f"column_{place}" for place, name in enumerate(kept)}
    left = sides.rows(sides.left, tuple(here for here, _ in relation.on), names)
    found = sides.rows(sides.right, tuple(there for _, there in relation.on), {})
    others = found.filter([found[name].notnull() for name in found.columns]).distinct()
    others = others.mutate(**{HIT: sql.literal(True)})
    both = left.left_join(others, equal_keys(left, others, sides))
    mark = both[HIT].notnull()
    if relation.is_in:
        mark = _as_in(mark, both[key_name(0)], run_public(found))
    return both.select(**({name: both[place] for name, place in names.items()} | {relation.name: mark}))


def _as_in(hit: sql.Value, value: sql.Value, public: pa.Table) -> sql.Value:
    """Return SQL's IN: of no values false; NULL for NULL, and without a match where a value is NULL."""
    values = public.column(key_name(0))
    if not len(values):
        return sql.literal(False)
    unknown = sql.null("boolean") if values.null_count else sql.literal(False)
    return sql.cases((value.isnull(), sql.null("boolean")), (hit, sql.literal(True)), else_=unknown)


def equal_keys(left: sql.Table, right: sql.Table, sides: Sides) -> list[sql.Value]:
    """Return the conditions of a match; two units of different types are never compared."""
    names = [name for name in right.columns if name == UNIT_KEY or name.startswith(KEY)]
    if sides.unit is not None:
        mine, theirs = (side[UNIT_KEY].type() for side in (left, right))
        if mine != theirs:
            raise QueryRefused(
                f"the unit {sides.unit} is stored as {mine} in one table and as {theirs} in the other: two people could"
                " be taken for one\nhint: store it with one type in both tables, or declare it as text in both"
            )
    return [left[name] == right[name] for name in names]


def plain_unit(unit: sql.Value) -> sql.Value:
    """Return the unit in a type that can be stored and read again as it is: −0.0 is 0.0, and ids of bytes are text."""
    if unit.type().is_uuid():
        return leaving(unit.cast("string"))
    return Cell(unit, FLOAT, raw=True).settled().value if unit.type().is_floating() else unit


def refuse_more_matches(relation: Join, sides: Sides) -> None:
    """Refuse a public table in which more rows match one row than was said."""
    if relation.most is None or not is_public(relation.right):
        return
    keys = run_public(sides.rows(sides.right, tuple(there for _, there in relation.on), {})).drop_null()
    counts = keys.append_column("rows", pa.nulls(len(keys), pa.int8())).group_by(keys.column_names)
    counted = counts.aggregate([("rows", "count", pc.CountOptions(mode="all"))]).column("rows_count")
    most = int(pc.max(counted).as_py() or 0)
    if most > relation.most:
        on = ", ".join(show(there) for _, there in relation.on)
        raise QueryRefused(
            f"{on} is not a key of the public table '{publics_of(relation.right)[0]}': {most:,} of its rows have one"
            f" value, and a row may have {relation.most:,} matches"
            f"\nhint: join on a key that occurs once, or say how many matches a row may have: most={most}"
        )


def read_public(source: Source, name: str) -> PublicTable:
    """Return a source's rows as a public table; columns that cannot be read are left out."""
    kinds = {each: kind_of_column(each, facts) for each, facts in source.columns.items() if facts.type != "other"}
    if not kinds:
        raise QueryRefused(f"no column of the public table '{name}' can be read\nhint: convert them to text or numbers")
    relation = source.table.select(**{each: to_sql(Column(each), source.table, kinds) for each in kinds})
    try:
        with source.moment(), source.stream(relation, PUBLIC_BATCH_ROWS) as reader:
            return make_public(name, reader, source.columns)
    except QueryRefused:
        raise
    except Exception:  # noqa: BLE001 - an engine's own words help nobody
        raise QueryRefused(
            f"the public table '{name}' cannot be read\nhint: check that its files are complete"
        ) from None
