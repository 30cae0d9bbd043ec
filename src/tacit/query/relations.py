"""Relations: the public facts about the rows that FROM yields. A row of a relation belongs to one unit, or to none.

A relation is the declared table, or rows that are computed from a relation's rows, each unit's only from its own
(docs/proofs/relations.md). It is planned like a table, with the declaration that `declaration_of` gives. A new kind
needs a record in `nodes.py`, a line in `declaration_of`, and its rows in `engine/derived.py`.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal as OneOf
from typing import assert_never

from tacit.errors import QueryRefused
from tacit.query.joins import facts_of_kind, is_public, join_declaration, marked_declaration, row_wise_declaration
from tacit.query.nodes import (
    BOOL,
    DIGITS_MAX,
    FLOAT,
    INT,
    PLACES,
    Column,
    Expression,
    Join,
    Key,
    Kind,
    Marked,
    Ordering,
    PerUnit,
    PublicRows,
    Relation,
    RowWise,
    SomeUnits,
    TableRows,
    UnitAggregate,
    UnitOutput,
    Value,
    Windowed,
    columns_of,
    decimal,
    free_name,
)
from tacit.query.ranges import ends_of, range_of
from tacit.query.sql.expressions import name_of, show
from tacit.query.typecheck import column_kinds, kind_of
from tacit.tables import ColumnFacts, Declaration, RowUnit

# A sum of decimals has this many digits more than its addends, up to 38; a larger one is NULL.
SUM_DIGITS_MORE = 9
# The names of aggregates of one unit's rows; an engine's names are short.
SQL_NAMES: Mapping[str, str] = {
    "count": "COUNT({})",
    "count_distinct": "COUNT(DISTINCT {})",
    "sum": "SUM({})",
    "mean": "AVG({})",
    "min": "MIN({})",
    "max": "MAX({})",
    "all": "BOOL_AND({})",
    "any": "BOOL_OR({})",
}
NAME_MOST = 48
Range = tuple[Fraction, Fraction]


UnitWindowKind = OneOf["row_number", "rank", "dense_rank", "lag", "lead", "first_value"]


@dataclass(frozen=True)
class UnitWindow:
    """A column of each row, from the rows of its unit with equal keys, in an order that ties do not leave open."""

    name: str
    kind: UnitWindowKind
    order: tuple[Ordering, ...]
    keys: tuple[Expression, ...] = ()
    expression: Expression | None = None
    offset: int = 1  # of lag and lead: how many rows away

    @property
    def parts(self) -> tuple[Expression, ...]:
        own = () if self.expression is None else (self.expression,)
        return (*own, *self.keys, *(each.expression for each in self.order))


def relation_mark(relation: Relation) -> str:
    """Return a text that is equal for two relations if and only if they are equal; empty for a table itself."""
    if isinstance(relation, TableRows):
        return ""
    return hashlib.sha256(repr(relation).encode("utf-8", "surrogatepass")).hexdigest()


def narrowed(relation: Relation, needed: Collection[str], unit: str | None) -> Relation:
    """Return a relation with only the needed columns, and so of fewer columns of the tables. The unit stays in every
    relation, and so do keys of rows by unit, which decide the rows."""
    wanted = {*needed, *(() if unit is None else (unit,))}

    def inner(source: Relation, read: Iterable[Expression | None]) -> Relation:
        return narrowed(source, frozenset().union(*map(columns_of, read)), unit)

    if isinstance(relation, TableRows | PublicRows):
        return relation
    if isinstance(relation, RowWise):
        kept = tuple(key for key in relation.columns if key.name in wanted) or relation.columns[:1]
        return replace(
            relation, source=inner(relation.source, [relation.where, *(key.expression for key in kept)]), columns=kept
        )
    if isinstance(relation, SomeUnits):
        going_on = tuple(sorted(wanted - ({relation.hand} if relation.hands else set()))) or relation.columns[:1]
        read = [Column(name) for name in {*going_on, *relation.columns}]
        return replace(relation, source=inner(relation.source, read), needed=going_on)
    if isinstance(relation, PerUnit):
        outputs = tuple(output for output in relation.outputs if output.name in wanted)
        smaller = replace(relation, outputs=outputs)
        return replace(smaller, source=inner(relation.source, expressions_of(smaller)))
    if isinstance(relation, Windowed):
        windows = tuple(each for each in relation.windows if each.name in wanted)
        going = tuple(sorted(wanted - {each.name for each in relation.windows}))
        parts = [relation.where, *(part for each in windows for part in each.parts), *map(Column, going)]
        return replace(relation, source=inner(relation.source, parts), windows=windows, columns=going)
    if isinstance(relation, Marked):
        passed = [Column(name) for name in wanted if name != relation.name]
        source = inner(relation.source, [*passed, *(here for here, _ in relation.on)])
        others = inner(relation.others, [there for _, there in relation.on])
        return replace(relation, source=source, others=others, columns=tuple(sorted(wanted - {relation.name})))
    columns = tuple(each for each in relation.columns if each.name in wanted) or relation.columns[:1]
    of_left, of_right = ([Column(each.column) for each in columns if each.side == side] for side in ("left", "right"))
    return replace(
        relation,
        left=inner(relation.left, [*of_left, *(here for here, _ in relation.on)]),
        right=inner(relation.right, [*of_right, *(there for _, there in relation.on)]),
        columns=columns,
    )


def expressions_of(relation: PerUnit) -> list[Expression]:
    """Return all expressions of rows by unit."""
    aggregated = [output.aggregate.expression for output in relation.outputs]
    found = [relation.where, *(key.expression for key in relation.keys), *aggregated]
    return [expression for expression in found if expression is not None]


def declaration_of(relation: Relation, declarations: Mapping[str, Declaration]) -> Declaration:
    """Return the public facts about a relation, given those of its tables by name, of public ones by digest."""
    if isinstance(relation, TableRows):
        return declarations[relation.name]
    if isinstance(relation, PublicRows):
        return declarations[relation.digest]
    if isinstance(relation, Join):
        sides = (declaration_of(each, declarations) for each in (relation.left, relation.right))
        return join_declaration(relation, *sides)
    inner = declaration_of(relation.source, declarations)
    if isinstance(relation, PerUnit):
        return unit_declaration(relation, inner)
    if isinstance(relation, RowWise):
        return row_wise_declaration(relation, inner)
    if isinstance(relation, SomeUnits):
        people = None if inner.population is None else inner.population * (relation.end - relation.first) // PLACES
        dealt = {relation.hand: ColumnFacts("int", between=(Fraction(0), Fraction(relation.hands)))}
        needed = inner.columns if relation.needed is None else relation.needed
        columns = {name: facts for name, facts in inner.columns.items() if name in needed}
        columns |= dealt if relation.hands else {}
        return replace(inner, columns=columns, rows=None, population=people)
    if isinstance(relation, Marked):
        return marked_declaration(relation, inner)
    if isinstance(relation, Windowed):
        return windowed_declaration(relation, inner)
    assert_never(relation)


def no_more_rows_than(relation: Relation) -> str | None:
    """Return the table of which everyone has at least as many rows as of a relation; None if rows may multiply."""
    if isinstance(relation, TableRows):
        return relation.name
    if isinstance(relation, PublicRows):
        return None
    if isinstance(relation, Join):
        right = relation.right
        is_one = relation.most == 1 if is_public(right) else isinstance(right, PerUnit) and not right.keys
        return no_more_rows_than(relation.left) if is_one else None
    return no_more_rows_than(relation.source)


def unit_aggregate_kind(aggregate: UnitAggregate, kinds: Mapping[str, Kind]) -> Kind:
    """Return what an aggregate over a unit's rows yields; refuse an expression of the wrong type."""
    if aggregate.expression is None:
        if aggregate.kind != "count":
            raise QueryRefused(f"{aggregate.kind} needs a column\nhint: name what to aggregate")
        return INT
    kind = kind_of(aggregate.expression, kinds)
    written = show(aggregate.expression)
    if aggregate.kind in ("count", "count_distinct"):
        return INT
    if aggregate.kind in ("all", "any"):
        if kind.type != "bool":
            raise QueryRefused(f"{written} is {kind.phrase}, not a condition\nhint: compare it, e.g. x > 0")
        return BOOL
    if aggregate.kind in ("sum", "mean"):
        if not kind.is_number:
            raise QueryRefused(f"cannot take the {aggregate.kind} of {kind.phrase}: {written}\nhint: name a number")
        if aggregate.kind == "mean" or kind.type == "float":
            return FLOAT
        return INT if kind.type == "int" else decimal(min(kind.digits + SUM_DIGITS_MORE, DIGITS_MAX), kind.scale)
    if not (kind.is_number or kind.is_time):
        raise QueryRefused(
            f"{aggregate.kind.upper()} over one unit's rows takes numbers and times, and {written} is {kind.phrase}"
            "\nhint: put it in the inner GROUP BY, or compare it: BOOL_OR(x = 'a')"
        )
    return kind


def unit_declaration(relation: PerUnit, inner: Declaration) -> Declaration:
    """Return the public facts about rows by unit, from those about the rows that they are computed from."""
    if isinstance(inner.unit, RowUnit):
        raise QueryRefused("every row is a unit here, so aggregating by unit is pointless")
    kinds = column_kinds(inner)
    columns = {inner.unit: inner.columns[inner.unit]}
    for key in relation.keys:
        own = inner.columns[key.expression.name] if isinstance(key.expression, Column) else None
        columns[key.name] = own or facts_of_kind(kind_of(key.expression, kinds))
    for output in relation.outputs:
        between = _range_of_aggregate(output.aggregate, inner, kinds)
        facts = facts_of_kind(unit_aggregate_kind(output.aggregate, kinds), between)
        columns[output.name] = replace(facts, least=_least(output.aggregate, inner, kinds))
    alone = not relation.keys
    return replace(
        inner,
        columns=columns,
        rows_per_unit=1 if alone else None,
        groups_per_unit=1 if alone else None,
        rows=None,
        most_rows_per_unit=1 if alone else inner.most_rows_per_unit,
    )


def windowed_declaration(relation: Windowed, inner: Declaration) -> Declaration:
    """Return the public facts about rows with windows over their unit's own rows."""
    kinds = column_kinds(inner)
    kept = {
        name: facts for name, facts in inner.columns.items() if relation.columns is None or name in relation.columns
    }
    made = {each.name: _window_facts(each, inner, kinds) for each in relation.windows}
    return replace(inner, columns={**kept, **made}, rows=None)


def _window_facts(window: UnitWindow, inner: Declaration, kinds: Mapping[str, Kind]) -> ColumnFacts:
    if window.expression is None:
        most = inner.most_rows_per_unit
        between = None if most is None or most < 2 else (Fraction(1), Fraction(most))
        return replace(facts_of_kind(INT, between), least=Fraction(1))
    kind = kind_of(window.expression, kinds)
    declared = range_of(window.expression, inner.columns, kinds) if kind.is_number else None
    return facts_of_kind(kind, declared)


def _least(aggregate: UnitAggregate, inner: Declaration, kinds: Mapping[str, Kind]) -> Fraction | None:
    """Return a lower bound on the values, if known: a number of rows is at least 0."""
    if aggregate.kind in ("count", "count_distinct"):
        return Fraction(0)
    expression = aggregate.expression
    if expression is None or not kind_of(expression, kinds).is_number:
        return None
    low, _ = ends_of(expression, inner)
    if aggregate.kind == "sum":
        return Fraction(0) if low is not None and low >= 0 else None
    return low if aggregate.kind in ("mean", "min", "max") else None


def _range_of_aggregate(aggregate: UnitAggregate, inner: Declaration, kinds: Mapping[str, Kind]) -> Range | None:
    """Return the range that follows from the declaration, if any does."""
    most = inner.most_rows_per_unit
    expression = aggregate.expression
    is_number = expression is not None and kind_of(expression, kinds).is_number
    declared = range_of(expression, inner.columns, kinds) if expression is not None and is_number else None
    if aggregate.kind in ("count", "count_distinct"):
        return None if most is None else (Fraction(0), Fraction(most))
    if aggregate.kind in ("mean", "min", "max"):
        return declared
    if aggregate.kind == "sum" and declared is not None and most is not None:
        return min(Fraction(0), declared[0] * most), max(Fraction(0), declared[1] * most)
    return None


def unit_keys(expressions: Iterable[Expression], unit: str | None) -> tuple[Key, ...]:
    """Return what rows of a unit are grouped by as columns, each once and in one order; constants are left out."""
    keys: list[Key] = []
    for expression in sorted({each for each in expressions if columns_of(each)}, key=repr):
        written = name_of(expression)
        name = written if isinstance(expression, Column) or len(written) <= NAME_MOST else "key"
        keys.append(Key(free_name(name, [unit or "", *(key.name for key in keys)]), expression))
    return tuple(keys)


def unit_outputs(asked: Iterable[UnitAggregate], taken: Sequence[str]) -> tuple[UnitOutput, ...]:
    """Return aggregates as columns, each once and in one order, with generated names, so that two subqueries that
    differ only in their columns' names are one relation."""
    outputs: list[UnitOutput] = []
    for aggregate in sorted(set(asked), key=repr):
        name = _as_sql(aggregate)
        outputs.append(UnitOutput(free_name(name, [*taken, *(output.name for output in outputs)]), aggregate))
    return tuple(outputs)


def _as_sql(aggregate: UnitAggregate) -> str:
    """Return an aggregate as SQL, which names its column in notes and facts; a long one is called by its kind."""
    of = "*" if aggregate.expression is None else name_of(aggregate.expression)
    text = SQL_NAMES[aggregate.kind].format(of)
    return text if len(text) <= NAME_MOST else aggregate.kind


def is_constant(expression: Expression | None) -> bool:
    """Return whether an expression is a constant other than NULL: COUNT(1) counts rows."""
    return isinstance(expression, Value) and expression.value is not None
