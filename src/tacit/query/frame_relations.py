"""The Python door to relations: joins of two tables under construction, and rows by unit."""

from collections.abc import Mapping, Sequence
from typing import Any

from tacit.errors import QueryRefused, did_you_mean
from tacit.query.check import check_units
from tacit.query.frame import AggregateSpec, Frame, named_or_expression
from tacit.query.joins import Side, join, marked, row_wise
from tacit.query.literal import refuse_broken_text
from tacit.query.nodes import (
    Call,
    Column,
    Expression,
    Key,
    PerUnit,
    Relation,
    UnitAggregate,
    UnitAggregateKind,
    free_name,
)
from tacit.query.relations import expressions_of, is_constant, unit_declaration, unit_keys, unit_outputs
from tacit.query.sql.expressions import show
from tacit.query.typecheck import canonical, column_kinds, kind_of, steps

HOWS = ("inner", "left", "semi", "anti")


def frame_side(frame: Frame, relation: Relation) -> Side:
    """Return a table under construction as a side of a join: its filter and derived columns are part of it."""
    declaration = frame.declaration
    if frame.keys:
        raise QueryRefused("a table that is grouped cannot be joined\nhint: join first, and group the result")
    if frame.where is None and not frame.derived:
        return Side(relation, declaration, frame.within)
    if frame.where is not None and (kind := kind_of(frame.where, column_kinds(declaration))).type != "bool":
        raise QueryRefused(
            f"{show(frame.where)} is {kind.phrase}; a filter must be true or false\nhint: compare it, e.g. x > 0"
        )
    readable = [name for name, facts in declaration.columns.items() if facts.type != "other"]
    columns = [Key(name, Column(name)) for name in readable if name != declaration.unit]
    columns += [Key(name, expression) for name, expression in frame.derived.items()]
    return row_wise(Side(relation, declaration, frame.within), tuple(columns), frame.where)


def joined_frame(
    left: Side, right: Side, tables: Mapping[str, Mapping[str, str]], on: object, how: object, most: object
) -> tuple[Relation, Frame]:
    """Return the relation of a join and its frame; `tables` has the left side's columns, if it is a join itself."""
    if how not in HOWS:
        raise QueryRefused(f"how must be one of {', '.join(HOWS)}\nhint: how='left' keeps rows without a match")
    pairs = _pairs_to_match(on, left, right)
    known = tables or {left.name: {name: name for name in left.declaration.columns}}
    if how in ("semi", "anti"):
        side, name = marked(left, right, pairs, is_in=False)
        kept: Expression = Column(name) if how == "semi" else Call("not", (Column(name),))
        shown = {table: dict(columns) for table, columns in known.items()}
        return side.relation, Frame(side.declaration, where=kept, within=side.steps, tables=shown)
    found = join(left, right, pairs, how="left" if how == "left" else "inner", most=most, once=True)
    made = {
        table: {own: found.left[name] for own, name in names.items() if name in found.left}
        for table, names in known.items()
    }
    made[free_name(right.name, made)] = dict(found.right)
    return found.side.relation, Frame(found.side.declaration, within=found.side.steps, tables=made)


def _pairs_to_match(on: object, left: Side, right: Side) -> list[tuple[Expression, Expression]]:
    """Return what must be equal: a column's name, a list of them, or a dict from the left side's to the right's."""
    if isinstance(on, str):
        names: list[tuple[Any, Any]] = [(on, on)]
    elif isinstance(on, Mapping):
        names = list(on.items())
    elif isinstance(on, Sequence):
        names = [(name, name) for name in on]
    else:
        names = []
    if not names:
        raise QueryRefused(
            "on must name the columns that are equal in both tables\nhint: on='ward', on=['ward', 'day'], or a dict"
            " where their names differ: on={'ward': 'code'}"
        )
    for pair in names:
        for name, side in zip(pair, (left, right), strict=True):
            columns = side.declaration.columns
            if name not in columns:
                raise QueryRefused(
                    f"on names '{name}', which is not a column of '{side.name}'{did_you_mean(str(name), columns)}"
                )
    return [(Column(here), Column(there)) for here, there in names]


# --- rows by unit ---

_UNIT_KINDS: dict[str, UnitAggregateKind] = {
    "count": "count",
    "count_distinct": "count_distinct",
    "sum": "sum",
    "mean": "mean",
}


def per_unit(frame: Frame, relation: Relation, asked: Mapping[str, AggregateSpec]) -> tuple[PerUnit, Frame]:
    """Return the relation with one row for each unit and group of a frame, and the frame to ask it in."""
    if not isinstance(frame.declaration.unit, str):
        raise QueryRefused("every row is its own unit here\nhint: ask for the aggregates themselves, with agg")
    if frame.public_keys is not None:
        raise QueryRefused("keys= is for groups of an answer\nhint: leave it out here, and list keys in the question")
    kinds = column_kinds(frame.declaration)
    aggregates = {name: _unit_aggregate(frame, name, each) for name, each in asked.items()}
    keys = unit_keys([canonical(key.expression, kinds) for key in frame.keys], frame.declaration.unit)
    outputs = unit_outputs(aggregates.values(), [frame.declaration.unit, *(key.name for key in keys)])
    made = check_units(PerUnit(relation, frame.where, keys, outputs), frame.declaration)
    by_expression = {key.expression: key.name for key in keys}
    columns = {key.name: by_expression[canonical(key.expression, kinds)] for key in frame.keys}
    columns |= {
        name: next(output.name for output in outputs if output.aggregate == aggregate)
        for name, aggregate in aggregates.items()
    }
    _refuse_taken(frame, list(aggregates))
    derived: dict[str, Expression] = {name: Column(column) for name, column in columns.items() if name != column}
    work = frame.within + steps(expressions_of(made), kinds)
    return made, Frame(unit_declaration(made, frame.declaration), derived=derived, within=work)


def _unit_aggregate(frame: Frame, name: str, asked: AggregateSpec) -> UnitAggregate:
    refuse_broken_text(name)
    if not isinstance(asked, AggregateSpec):
        raise QueryRefused(f"'{name}' must be an aggregate\nhint: per_unit(n=tacit.count(), most=tacit.max('days'))")
    kind = _UNIT_KINDS.get(asked.kind)
    if asked.kind == "quantile" and asked.fraction in (0, 1):
        kind = "max" if asked.fraction else "min"
    if kind is None:
        raise QueryRefused(
            f"'{name}' cannot be computed of one unit's rows"
            "\nhint: per_unit takes count, count_distinct, sum, mean, min and max"
        )
    expression = None if asked.of is None else named_or_expression(frame, asked.of)
    expression = None if expression is None else canonical(expression, column_kinds(frame.declaration))
    return UnitAggregate(kind, None if kind == "count" and is_constant(expression) else expression)


def _refuse_taken(frame: Frame, names: list[str]) -> None:
    taken = {str(frame.declaration.unit).lower(), *(key.name.lower() for key in frame.keys)}
    for name in names:
        if name.lower() in taken:
            raise QueryRefused(f"'{name}' is the unit or a group already\nhint: give the aggregate another name")
