"""From a question, a declaration and what may be spent to a plan: a few passes, each adding one kind of decision.

1 bounds per unit   2 columns on their grids   3 parts of each release   4 sensitivity   5 noise   6 keys and threshold
"""

from fractions import Fraction

from tacit.errors import QueryRefused
from tacit.plan.groups import public_keys, refuse_private_keys, threshold_for
from tacit.plan.measure import measured_column, steps_within
from tacit.plan.plan import KeyColumn, Measured, Part, Plan, PlannedOutput, Spend
from tacit.plan.sensitivity import sensitivity_of
from tacit.plan.split import with_noise
from tacit.query.check import type_of
from tacit.query.nodes import Aggregate, Output, Query
from tacit.tables.schema import Declaration, RowUnit

UNITS = (Part("units"),)
ROWS = (Part("rows"),)


def make_plan(query: Query, declaration: Declaration, spend: Spend) -> Plan:
    """Return the plan of a checked question: from public facts only, so it costs nothing."""
    listed = public_keys(query, declaration)
    if listed is None and spend.delta_keys == 0:
        refuse_private_keys(query)
    rows, groups = _bounds(query, declaration, listed)
    steps_most = steps_within(rows=rows, groups=groups, epsilon=spend.epsilon, releases=len(query.outputs) + 1)
    measured, column_of = _measure(query, declaration, steps_most)
    released, outputs = _releases(query, measured, column_of, private=listed is None)
    wanted = [
        (
            parts,
            sensitivity_of(
                parts, measured, rows_per_unit=rows, groups_per_unit=groups, neighbours=declaration.neighbours
            ),
        )
        for parts in released
    ]
    releases = with_noise(wanted, spend)
    threshold = None
    if listed is None:
        place = released.index(UNITS)
        chosen = releases[place]
        threshold = threshold_for(
            chosen.noise, chosen.scale, groups_per_unit=groups, delta=spend.delta_keys, release=place
        )
    return Plan(
        table=declaration.name,
        version=declaration.version,
        unit=None if isinstance(declaration.unit, RowUnit) else declaration.unit,
        neighbours=declaration.neighbours,
        where=query.where,
        keys=tuple(KeyColumn(key.name, key.expression, type_of(key.expression, declaration)) for key in query.keys),
        public_keys=listed,
        rows_per_unit=rows,
        groups_per_unit=groups,
        measured=measured,
        releases=releases,
        threshold=threshold,
        outputs=outputs,
        columns=query.columns or (*(key.name for key in query.keys), *(output.name for output in query.outputs)),
        after=query.after,
        spend=spend,
    )


def _bounds(query: Query, declaration: Declaration, listed: object) -> tuple[int, int]:
    """Return how many rows in a group and how many groups one unit may have; missing ones are asked for."""
    if isinstance(declaration.unit, RowUnit):
        return 1, 1
    rows, groups = declaration.rows_per_unit, declaration.groups_per_unit
    needs_rows = any(output.aggregate.kind != "count_units" for output in query.outputs)
    if rows is None and needs_rows:
        raise QueryRefused(
            f"a unit ('{declaration.unit}') can have any number of rows, and no bound is declared."
            "\nhint: add rows_per_unit=1 if each has at most one row in a group, or the most that should count, e.g."
            " rows_per_unit=5 (--rows-per-unit 5); rows beyond it are left out"
        )
    if not query.keys:
        return rows or 1, 1
    if groups is None:
        raise QueryRefused(
            f"a unit ('{declaration.unit}') can be in any number of groups, and no bound is declared."
            "\nhint: add groups_per_unit=1 if each is in one group, or the most that should count, e.g."
            " groups_per_unit=3 (--groups-per-unit 3); groups beyond it are left out"
        )
    if isinstance(listed, tuple):
        groups = min(groups, len(listed))
    return rows or 1, groups


def _measure(query: Query, declaration: Declaration, steps_most: int) -> tuple[tuple[Measured, ...], dict[str, int]]:
    """Return each distinct measured column once, and for each output that needs one its place."""
    measured: list[Measured] = []
    column_of: dict[str, int] = {}
    for output in query.outputs:
        if output.aggregate.kind in ("sum", "mean"):
            column = measured_column(output.aggregate, declaration, steps_most=steps_most)
            if column not in measured:
                measured.append(column)
            column_of[output.name] = measured.index(column)
    for output in query.outputs:
        if output.aggregate.kind == "count" and output.aggregate.expression is not None:
            column_of[output.name] = _counted(output.aggregate, measured)
    return tuple(measured), column_of


def _counted(aggregate: Aggregate, measured: list[Measured]) -> int:
    """COUNT(x) comes free with a sum or mean of x; alone, it is a column of height 1 whose parts count rows."""
    expression = aggregate.expression
    for place, column in enumerate(measured):
        if column.expression == expression:
            return place
    if expression is None:
        raise QueryRefused("COUNT needs a column or *")
    measured.append(Measured(expression=expression, type="null", step=Fraction(1), low=0, high=1, counts_only=True))
    return len(measured) - 1


def _releases(
    query: Query, measured: tuple[Measured, ...], column_of: dict[str, int], *, private: bool
) -> tuple[list[tuple[Part, ...]], tuple[PlannedOutput, ...]]:
    """Return the parts released together, and where each output comes from.

    COUNT(*) joins the first column's parts: rows where it is NULL are one more part, and the sensitivity is the same.
    """
    counts_rows = any(_counts_rows(output) for output in query.outputs)
    counts_units = private or any(output.aggregate.kind == "count_units" for output in query.outputs)
    released: list[tuple[Part, ...]] = []
    for place, column in enumerate(measured):
        users = [output for output in query.outputs if column_of.get(output.name) == place]
        with_rows = counts_rows and place == 0
        released.append(_column_parts(place, column, users, with_rows=with_rows))
    rows_at = 0
    if counts_rows and not measured:
        released.append(ROWS)
        rows_at = len(released) - 1
    if counts_units:
        released.append(UNITS)
    outputs = []
    for output in query.outputs:
        kind = output.aggregate.kind
        if kind == "count_units":
            outputs.append(PlannedOutput(output.name, kind, released.index(UNITS)))
        elif _counts_rows(output):
            outputs.append(PlannedOutput(output.name, kind, rows_at))
        else:
            at = column_of[output.name]
            outputs.append(PlannedOutput(output.name, kind, at, at))
    return released, tuple(outputs)


def _column_parts(place: int, column: Measured, users: list[Output], *, with_rows: bool) -> tuple[Part, ...]:
    """Return one column's parts: its sum alone where only that is asked, which errs less; otherwise the joint parts."""
    if not with_rows and all(output.aggregate.kind == "sum" for output in users):
        return (Part("total", place),)
    values = (Part("counted", place),) if column.counts_only else (Part("below", place), Part("above", place))
    return (Part("missing", place), *values) if with_rows else values


def _counts_rows(output: Output) -> bool:
    return output.aggregate.kind == "count" and output.aggregate.expression is None
