"""The rows of a relation as an ordinary source, so that every path reads them as it reads a stored table.

`derived_source` gives a source whose table is an SQL relation over the stored one. A unit's rows in it are a pure
function of that unit's own rows, whatever other rows there are and in whatever order threads see them
(docs/proofs/relations.md): whole numbers are added up in 128 bits, floats as whole steps that are held within a public
range, and nothing else depends on an order. No row can make it fail: what does not fit its type is NULL.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import assert_never

from tacit import typed_sql as sql
from tacit.engine.conversion import type_name
from tacit.engine.expression import to_sql
from tacit.engine.joining import (
    Sides,
    joined_rows,
    kinds_of,
    marked_rows,
    plain_unit,
    public_source,
    refuse_more_matches,
    row_wise,
    some_units,
)
from tacit.engine.patience.patient_units import Added, rows_on_disk
from tacit.engine.relation import belongs_to_someone, leaving, unit_value
from tacit.query import (
    FLOAT,
    Join,
    Kind,
    Marked,
    PerUnit,
    PublicRows,
    Relation,
    RowWise,
    SomeUnits,
    TableRows,
    UnitAggregate,
    declaration_of,
    is_public,
    kind_of,
    narrowed,
    public_declaration,
    tables_of,
    unit_aggregate_kind,
)
from tacit.tables import ColumnFacts, Declaration, PublicTable, RowUnit, Source, open_together

# A float is added up in whole steps of 2^-STEP_BITS, held within 2^FLOAT_BITS: 2^46 of them fit 127 bits.
STEP_BITS, FLOAT_BITS = 30, 50
# Decimals of more digits are held within this many: 10^14 of them fit 38 digits.
DECIMAL_DIGITS = 24
WIDE = "decimal(38, 0)"


@dataclass(frozen=True)
class Stored:
    """What relations are computed from: protected tables' sources and declarations by name, public tables by digest."""

    sources: Mapping[str, Source]
    declarations: Mapping[str, Declaration]
    publics: Mapping[str, PublicTable] = field(default_factory=dict)

    def declaration(self, relation: Relation) -> Declaration:
        """Return what is public about a relation."""
        public = {digest: public_declaration(table) for digest, table in self.publics.items()}
        return declaration_of(relation, {**self.declarations, **public})

    def together(self, names: Sequence[str], *, streams: bool) -> "Stored":
        """Return the same with the sources of these tables in one connection."""
        if len(names) > 1:
            opened = open_together([self.sources[name] for name in names], streams=streams)
        else:
            opened = tuple(self.sources[name].streaming() if streams else self.sources[name] for name in names)
        return replace(self, sources=dict(zip(names, opened, strict=True)))


def derived_source(relation: Relation, stored: Stored, *, streams: bool = False) -> Source:
    """Return the source of a relation's rows; it reads no protected row.

    It keeps what the ledger and the files need to know of the stored tables.
    """
    if isinstance(relation, TableRows):
        return stored.sources[relation.name]
    opened = stored.together(tuple(dict.fromkeys(tables_of(relation))), streams=streams)
    source = _rows(relation, opened)
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


def _rows(relation: Relation, stored: Stored) -> Source:
    """Return a relation's rows as a source with the columns that it has."""
    if isinstance(relation, TableRows):
        return stored.sources[relation.name]
    if isinstance(relation, PublicRows):
        return public_source(stored.publics[relation.digest], next(iter(stored.sources.values())).backend)
    columns = dict(stored.declaration(relation).columns)
    if isinstance(relation, Join):
        return _joined(relation, stored, columns)
    inner, declaration = _rows(relation.source, stored), stored.declaration(relation.source)
    unit = declaration.unit if isinstance(declaration.unit, str) else None
    if unit is not None:
        columns[unit] = inner.columns[unit]
    if isinstance(relation, PerUnit):
        rows = _UnitRows(relation, inner, declaration)
        return replace(inner, table=rows.summed(), columns={**columns, rows.unit: _unit_facts(rows.table[rows.unit])})
    if isinstance(relation, SomeUnits):
        return replace(some_units(relation, inner, unit), columns=columns)
    if isinstance(relation, RowWise):
        return replace(row_wise(relation, inner, unit), columns=columns)
    if isinstance(relation, Marked):
        sides = Sides(inner, _rows(relation.others, stored), None if is_public(relation.others) else unit)
        return replace(inner, table=marked_rows(relation, sides), columns=columns)
    assert_never(relation)


def _joined(relation: Join, stored: Stored, columns: dict[str, ColumnFacts]) -> Source:
    left, right = _rows(relation.left, stored), _rows(relation.right, stored)
    unit = stored.declaration(relation.left).unit
    one_each = isinstance(relation.right, PerUnit) and not relation.right.keys
    sides = Sides(left, right, None if is_public(relation.right) else str(unit), one_each)
    refuse_more_matches(relation, sides)
    if isinstance(unit, str):
        columns[unit] = left.columns[unit]
    return replace(left, table=joined_rows(relation, sides), columns=columns)


def _on_disk(relation: PerUnit, stored: Stored, columns: Mapping[str, ColumnFacts]) -> Source:
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
        conditions = [belongs_to_someone(unit_value(table, self.unit, kinds))]
        if relation.where is not None:
            conditions.append(to_sql(relation.where, table, kinds))
        kept = table.filter(conditions)
        who = {self.unit: plain_unit(unit_value(kept, self.unit, kinds))}
        who |= {key.name: to_sql(key.expression, kept, kinds) for key in relation.keys}
        self.who = list(who)
        self.added = [_added(output.name, output.aggregate, kinds) for output in relation.outputs]
        values = {each.name: _row_value(each, kept, kinds) for each in self.added if each.kind is not None}
        self.table = kept.select(**(who | values))

    def summed(self) -> sql.Table:
        """Return one row for each unit and key, with the aggregates."""
        if not self.added:
            return self.table.distinct()
        outputs = {each.name: _aggregated(each, self.table) for each in self.added}
        return self.table.group_by(self.who).agg(**outputs)


def _added(name: str, aggregate: UnitAggregate, kinds: Mapping[str, Kind]) -> Added:
    kind = None if aggregate.expression is None else kind_of(aggregate.expression, kinds)
    return Added(name, aggregate, kind, unit_aggregate_kind(aggregate, kinds), STEP_BITS)


def _unit_facts(unit: sql.Value) -> ColumnFacts:
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


def _row_value(each: Added, table: sql.Table, kinds: Mapping[str, Kind]) -> sql.Value:
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


def _whole_steps(value: sql.Value) -> sql.Value:
    """Return a float as a whole number of steps, rounded by floor(x + 1/2); NULL is NULL, infinities are held."""
    most = float(2**FLOAT_BITS)
    steps = _held(value, sql.literal(most), sql.literal(-most)) * float(2**STEP_BITS) + 0.5
    return steps.floor().cast(WIDE)


def _held(value: sql.Value, most: sql.Value, least: sql.Value) -> sql.Value:
    return sql.cases((value > most, most), (value < least, least), else_=value)


def _aggregated(each: Added, rows: sql.Table) -> sql.Value:
    kind = each.aggregate.kind
    if each.kind is None:
        return rows.count()
    value = rows[each.name]
    if kind == "count":
        return value.sum().cast("int64")
    if kind == "count_distinct":
        return value.nunique()
    if kind == "sum":
        return _sum(value, each.kind, each.result)
    if kind == "mean":
        return _sum(value, each.kind, FLOAT) / value.count().cast("float64")
    if kind == "min" or kind == "all":
        return value.min()
    if kind == "max" or kind == "any":
        return value.max()
    assert_never(kind)


def _sum(value: sql.Value, kind: Kind, result: Kind) -> sql.Value:
    """Return an exact sum of what rows bring, NULL where its type cannot hold it; as a float, rounded once."""
    total = value.sum()
    if result.type != "float":
        return total.cast(type_name(result))
    rounded = total.cast("string").cast("float64")
    return rounded / float(2**STEP_BITS) if kind.type == "float" else rounded
