"""The rows of a relation as an ordinary source, so that every path reads them as it reads a stored table.

A unit's rows in it are a pure function of that unit's own rows, in whatever order threads see them
(docs/proofs/relations.md): whole numbers are added up in 128 bits, floats as whole steps within a public range. No row
can make it fail. Two protected sides are always joined on their units (docs/proofs/joins.md). A public side is held in
memory; that a row has no more matches in it than was said is checked before anything is charged.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import Any, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from tacit import typed_sql as sql
from tacit.engine.conversion import Cell, type_name
from tacit.engine.expression import to_sql
from tacit.engine.patience.patient_units import Added, rows_on_disk
from tacit.engine.relation import leaving, plain_unit, rows_of_units, unit_value
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
    PerUnit,
    PublicRows,
    Relation,
    RowWise,
    SomeUnits,
    TableRows,
    UnitWindow,
    Windowed,
    declaration_of,
    is_public,
    kind_of,
    kind_of_column,
    narrowed,
    public_declaration,
    publics_of,
    show,
    tables_of,
    unit_aggregate_kind,
)
from tacit.tables import ColumnFacts, Declaration, PublicTable, RowUnit, Source, make_public, open_together, run_public

# A float is added up in whole steps of 2^-STEP_BITS, held within 2^FLOAT_BITS: 2^46 of them fit 127 bits.
STEP_BITS, FLOAT_BITS = 30, 50
# Decimals of more digits are held within this many: 10^14 of them fit 38 digits.
DECIMAL_DIGITS = 24
WIDE = "decimal(38, 0)"


@dataclass(frozen=True)
class StoredRows:
    """What relations are computed from: protected tables' sources and declarations by name, public tables by digest."""

    sources: Mapping[str, Source]
    declarations: Mapping[str, Declaration]
    publics: Mapping[str, PublicTable] = field(default_factory=dict)

    def declaration(self, relation: Relation) -> Declaration:
        public = {digest: public_declaration(table) for digest, table in self.publics.items()}
        return declaration_of(relation, {**self.declarations, **public})

    def together(self, names: Sequence[str], *, streams: bool) -> "StoredRows":
        """Return the same with the sources of these tables in one connection."""
        if len(names) > 1:
            opened = open_together([self.sources[name] for name in names], streams=streams)
        else:
            opened = tuple(self.sources[name].streaming() if streams else self.sources[name] for name in names)
        return replace(self, sources=dict(zip(names, opened, strict=True)))


def derived_source(relation: Relation, stored: StoredRows, *, streams: bool = False) -> Source:
    """Return the source of a relation's rows, with the ledger's names of the stored tables; it reads no row."""
    if isinstance(relation, TableRows):
        return stored.sources[relation.name]
    opened = stored.together(tuple(dict.fromkeys(tables_of(relation))), streams=streams)
    source = _rows_of_relation(relation, opened)
    parts = list(opened.sources.values())
    if isinstance(relation, PerUnit):
        again = partial(_on_disk, relation, stored, source.columns)
    else:
        again = partial(derived_source, relation, stored, streams=True)
    return replace(
        source,
        files=tuple(files for part in parts for files in part.files),
        opened=tuple(files for part in parts for files in part.opened),
        written=tuple(path for part in parts for path in part.written),
        stores=tuple(store for part in parts for store in part.stores),
        others={},
        rounded=frozenset(),
        again=again,
        own=None,
        made_of=(relation, stored),
    )


def narrowed_source(source: Source, needed: Collection[str]) -> Source:
    """Return the source of the same rows with these columns and the unit alone; a stored table stays as it is."""
    if source.made_of is None:
        return source
    relation, stored = source.made_of
    unit = stored.declaration(relation).unit
    smaller = narrowed(relation, needed, unit if isinstance(unit, str) else None)
    return source if smaller == relation else derived_source(smaller, stored)


def _rows_of_relation(relation: Relation, stored: StoredRows) -> Source:
    """Return a relation's rows as a source with the columns that it has."""
    if isinstance(relation, TableRows):
        return stored.sources[relation.name]
    if isinstance(relation, PublicRows):
        return public_source(stored.publics[relation.digest], next(iter(stored.sources.values())).backend)
    columns = dict(stored.declaration(relation).columns)
    if isinstance(relation, Join):
        return _joined_sides(relation, stored, columns)
    inner, declaration = _rows_of_relation(relation.source, stored), stored.declaration(relation.source)
    unit = declaration.unit if isinstance(declaration.unit, str) else None
    if unit is not None:
        columns[unit] = inner.columns[unit]
    if isinstance(relation, PerUnit):
        rows = _UnitRows(relation, inner, declaration)
        return replace(inner, table=rows.summed(), columns={**columns, rows.unit: _unit_facts(rows.table[rows.unit])})
    if isinstance(relation, SomeUnits):
        return replace(some_units(relation, inner, unit), columns=columns)
    if isinstance(relation, Windowed):
        return replace(with_windows(relation, inner, unit), columns=columns)
    if isinstance(relation, RowWise):
        return replace(row_wise(relation, inner, unit), columns=columns)
    if isinstance(relation, Marked):
        sides = Sides(inner, _rows_of_relation(relation.others, stored), None if is_public(relation.others) else unit)
        return replace(inner, table=marked_rows(relation, sides), columns=columns)
    assert_never(relation)


def _joined_sides(relation: Join, stored: StoredRows, columns: dict[str, ColumnFacts]) -> Source:
    left, right = _rows_of_relation(relation.left, stored), _rows_of_relation(relation.right, stored)
    unit = stored.declaration(relation.left).unit
    one_each = isinstance(relation.right, PerUnit) and not relation.right.keys
    sides = Sides(left, right, None if is_public(relation.right) else str(unit), one_each)
    refuse_more_matches(relation, sides)
    if isinstance(unit, str):
        columns[unit] = left.columns[unit]
    return replace(left, table=joined_rows(relation, sides), columns=columns)


def _on_disk(relation: PerUnit, stored: StoredRows, columns: Mapping[str, ColumnFacts]) -> Source:
    """Return the same rows where memory must not grow with them."""
    source = derived_source(relation.source, stored).streaming()
    rows = _UnitRows(relation, source, stored.declaration(relation.source))
    return replace(rows_on_disk(rows.table, rows.who, rows.added, source), columns=columns)


class _UnitRows:
    """What each row brings to its unit: the unit, the keys, and a value for each aggregate of an expression."""

    def __init__(self, relation: PerUnit, source: Source, declaration: Declaration) -> None:
        if isinstance(declaration.unit, RowUnit):
            raise TypeError("a table whose rows are their own units has no rows by unit")
        self.unit, table = declaration.unit, source.table
        kinds = kinds_of(source)
        kept = rows_of_units(table, self.unit, relation.where, kinds)
        who = {self.unit: plain_unit(unit_value(kept, self.unit, kinds))}
        who |= {key.name: to_sql(key.expression, kept, kinds) for key in relation.keys}
        self.who = list(who)
        self.added = []
        for output in relation.outputs:
            of = output.aggregate.expression
            kind, result = None if of is None else kind_of(of, kinds), unit_aggregate_kind(output.aggregate, kinds)
            self.added.append(Added(output.name, output.aggregate, kind, result, STEP_BITS))
        values = {each.name: _row_value(each, kept, kinds) for each in self.added if each.kind is not None}
        self.table = kept.select(**(who | values))

    def summed(self) -> sql.Relation:
        """Return one row for each unit and key, with the aggregates."""
        if not self.added:
            return self.table.distinct()
        outputs = {each.name: _aggregated(each, self.table) for each in self.added}
        return self.table.group_by(self.who).agg(**outputs)


def _unit_facts(unit: sql.Typed) -> ColumnFacts:
    kind = unit.type()
    if kind.is_string():
        return ColumnFacts("text")
    if kind.is_decimal():
        return ColumnFacts("decimal", scale=kind.scale, digits=kind.digits)
    if kind.is_integer():
        return ColumnFacts("int")
    if kind.is_floating():
        return ColumnFacts("float")
    if kind.is_boolean():
        return ColumnFacts("bool")
    return ColumnFacts("date" if kind.is_date() else "timestamp")


def _row_value(each: Added, table: sql.Relation, kinds: Mapping[str, Kind]) -> sql.Typed:
    """Return what one row brings to an aggregate: never more than adding it up can hold."""
    aggregate, kind = each.aggregate, each.kind
    if aggregate.expression is None or kind is None:
        raise TypeError("only a count has no expression")
    value = to_sql(aggregate.expression, table, kinds)
    if aggregate.kind == "count":
        return value.notnull()
    if aggregate.kind == "count_distinct":
        return leaving(value)
    if aggregate.kind in ("sum", "mean") and kind.type == "float":
        return _whole_steps(value)
    if aggregate.kind in ("sum", "mean") and kind.type == "decimal" and kind.digits > DECIMAL_DIGITS:
        most = sql.literal(str(Decimal(f"{10**DECIMAL_DIGITS - 1}e-{kind.scale}"))).cast(type_name(kind))
        return _held(value, most, -most)
    return value


def _whole_steps(value: sql.Typed) -> sql.Typed:
    """Return a float as a whole number of steps, rounded by floor(x + 1/2); NULL is NULL, infinities are held."""
    most = float(2**FLOAT_BITS)
    steps = _held(value, sql.literal(most), sql.literal(-most)) * float(2**STEP_BITS) + 0.5
    return steps.floor().cast(WIDE)


def _held(value: sql.Typed, most: sql.Typed, least: sql.Typed) -> sql.Typed:
    return sql.cases((value > most, most), (value < least, least), else_=value)


def _aggregated(each: Added, rows: sql.Relation) -> sql.Typed:
    kind = each.aggregate.kind
    if each.kind is None:
        return rows.count()
    value = rows[each.name]
    if kind == "count":
        return value.sum().cast("int64")
    if kind == "count_distinct":
        return value.nunique()
    if kind == "sum":
        return _unit_sum(value, each.kind, each.result)
    if kind == "mean":
        return _unit_sum(value, each.kind, FLOAT) / value.count().cast("float64")
    if kind == "min" or kind == "all":
        return value.min()
    if kind == "max" or kind == "any":
        return value.max()
    assert_never(kind)


def _unit_sum(value: sql.Typed, kind: Kind, result: Kind) -> sql.Typed:
    """Return an exact sum of what rows bring, NULL where its type cannot hold it; as a float, rounded once."""
    total = value.sum()
    if result.type != "float":
        return total.cast(type_name(result))
    rounded = total.cast("string").cast("float64")
    return rounded / float(2**STEP_BITS) if kind.type == "float" else rounded


# --- joins ---


UNIT_KEY, HIT, KEY = "unit_key", "hit", "on_"
PLACE, COUNT = "place of a match", "rows to match"
PLACE_DIGITS = 8  # hexadecimal, of PLACES

PUBLIC_BATCH_ROWS = 1 << 16


def key_name(index: int) -> str:
    """Return the name of the value that must be equal on both sides, number `index`."""
    return f"{KEY}{index}"


def kinds_of(source: Source) -> dict[str, Kind]:
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


def with_windows(relation: Windowed, source: Source, unit: str | None) -> Source:
    """Return rows that belong to someone, with windows over those of their unit; rows that tie in a window's order come
    by their other columns, and rows that are alike in all of them may stand for each other."""
    if unit is None:
        raise TypeError("a window over a unit's rows needs a column of units")
    kinds = kinds_of(source)
    kept = rows_of_units(source.table, unit, relation.where, kinds)
    who = plain_unit(unit_value(kept, unit, kinds))
    names = [name for name in kept.columns if relation.columns is None or name in {*relation.columns, unit}]
    columns = {name: kept[name] for name in names}
    return replace(
        source,
        table=kept.select(**columns, **{each.name: unit_window(each, kept, kinds, who) for each in relation.windows}),
    )


def unit_window(each: UnitWindow, rows: sql.Relation, kinds: Mapping[str, Kind], who: sql.Typed) -> sql.Typed:
    """Return a window's value in every row, from the rows of `who` alone."""
    order = [
        to_sql(by.expression, rows, kinds).ordered(descending=by.descending, nulls_first=by.nulls_first)
        for by in each.order
    ]
    order += [] if each.kind in ("rank", "dense_rank") else ties_by(rows, kinds)
    seen = sql.window(group_by=[who, *(to_sql(key, rows, kinds) for key in each.keys)], order_by=order)
    if each.expression is None:
        return sql.function(each.kind, "int64")().over(seen)
    value = to_sql(each.expression, rows, kinds)
    away = [each.offset] if each.kind in ("lag", "lead") else []
    return sql.function(each.kind, str(value.type()))(value, *away).over(seen)


def ties_by(rows: sql.Relation, kinds: Mapping[str, Kind]) -> list[sql.Typed]:
    """Return what decides between rows that tie in a window's order: all other columns of the question."""
    return [to_sql(Column(name), rows, kinds) for name in rows.columns if name in kinds]


def some_units(relation: SomeUnits, source: Source, unit: str | None) -> Source:
    """Return the rows of the units whose place is among the relation's: the number that the first 32 bits of a SHA-256
    write, the same on every engine, version and day. Eight hexadecimal digits sort as their numbers do."""
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


def _row_text(value: sql.Typed) -> sql.Typed:
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

    def rows(self, side: Source, on: tuple[Expression, ...], columns: Mapping[str, str]) -> sql.Relation:
        """Return one side's rows as what must be equal, and its columns under new names."""
        kinds = kinds_of(side)
        keys = {key_name(index): to_sql(each, side.table, kinds) for index, each in enumerate(on)}
        if self.unit is not None:
            keys[UNIT_KEY] = plain_unit(unit_value(side.table, self.unit, kinds))
        return side.table.select(**(keys | {new: side.table[old] for old, new in columns.items()}))


def joined_rows(relation: Join, sides: Sides) -> sql.Relation:
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


def _fewer_pairs(left: sql.Relation, right: sql.Relation) -> sql.Relation:
    """Return as many rows of the right side as make PAIRS_MOST pairs with those of the left that they match, or one.

    Only the unit's own rows decide: they are taken by a hash of their values, then by the values.
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


def marked_rows(relation: Marked, sides: Sides) -> sql.Relation:
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


def _as_in(hit: sql.Typed, value: sql.Typed, public: pa.Table) -> sql.Typed:
    """Return SQL's IN, which is false of an empty list; NULL for NULL, and without a match where a value is NULL."""
    values = public.column(key_name(0))
    if not len(values):
        return sql.literal(False)
    unknown = sql.null("boolean") if values.null_count else sql.literal(False)
    return sql.cases((value.isnull(), sql.null("boolean")), (hit, sql.literal(True)), else_=unknown)


def equal_keys(left: sql.Relation, right: sql.Relation, sides: Sides) -> list[sql.Typed]:
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
    kinds = kinds_of(source)
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
