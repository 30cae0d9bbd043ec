"""The Python door to rows by unit: `table.per_unit(n=tacit.count())` is the relation of a subquery in SQL."""

from collections.abc import Mapping

from tacit.errors import QueryRefused
from tacit.query.check import check_units
from tacit.query.frame import AggregateSpec, Frame, named_or_expression
from tacit.query.limits import steps
from tacit.query.literal import refuse_broken_text
from tacit.query.nodes import Column, Expression, PerUnit, Relation, UnitAggregate, UnitAggregateKind
from tacit.query.relations import expressions_of, is_constant, unit_declaration, unit_keys, unit_outputs
from tacit.query.typecheck import canonical, column_kinds

_KINDS: dict[str, UnitAggregateKind] = {
    "count": "count",
    "count_distinct": "count_distinct",
    "sum": "sum",
    "mean": "mean",
}


def per_unit(frame: Frame, relation: Relation, asked: Mapping[str, AggregateSpec]) -> tuple[PerUnit, Frame]:
    """Return the relation with one row for each unit and group of a frame, and the frame to ask it in.

    `relation` is the source of the frame. The names of the aggregates, and of the groups, are columns of the result.
    """
    if not isinstance(frame.declaration.unit, str):
        raise QueryRefused("every row is its own unit here\nhint: ask for the aggregates themselves, with agg")
    if frame.public_keys is not None:
        raise QueryRefused("keys= is for groups of an answer\nhint: leave it out here, and list keys in the question")
    kinds = column_kinds(frame.declaration)
    aggregates = {name: _aggregate(frame, name, each) for name, each in asked.items()}
    keys = unit_keys([canonical(key.expression, kinds) for key in frame.keys], frame.declaration.unit)
    outputs = unit_outputs(aggregates.values(), [frame.declaration.unit, *(key.name for key in keys)])
    made = check_units(PerUnit(relation, frame.where, keys, outputs), frame.declaration)
    by_expression = {key.expression: key.name for key in keys}
    columns = {key.name: by_expression[canonical(key.expression, kinds)] for key in frame.keys}
    columns |= {
        name: next(output.name for output in outputs if output.aggregate == aggregate)
        for name, aggregate in aggregates.items()
    }
    _refuse_names(frame, list(aggregates))
    derived: dict[str, Expression] = {name: Column(column) for name, column in columns.items() if name != column}
    work = frame.within + steps(expressions_of(made), kinds)
    return made, Frame(unit_declaration(made, frame.declaration), derived=derived, within=work)


def _aggregate(frame: Frame, name: str, asked: AggregateSpec) -> UnitAggregate:
    refuse_broken_text(name)
    if not isinstance(asked, AggregateSpec):
        raise QueryRefused(f"'{name}' must be an aggregate\nhint: per_unit(n=tacit.count(), most=tacit.max('days'))")
    kind = _KINDS.get(asked.kind)
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


def _refuse_names(frame: Frame, names: list[str]) -> None:
    taken = {str(frame.declaration.unit).lower(), *(key.name.lower() for key in frame.keys)}
    for name in names:
        if name.lower() in taken:
            raise QueryRefused(f"'{name}' is the unit or a group already\nhint: give the aggregate another name")
