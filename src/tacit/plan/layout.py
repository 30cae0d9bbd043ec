"""Which parts are released for which outputs: everything asked of one column comes from one joint release.

A column's count, sum and mean come from two parts, its variance and standard deviation as well from three; two
columns' covariance from four, their correlation from nine. A sum alone is released as itself, which errs less. COUNT(*)
joins the first column's parts: rows where it is NULL are one more part, and the sensitivity is the same. No number is
released twice: where a unit has one row in a group, its rows and its units are the same number.
"""

from dataclasses import dataclass, field, replace
from fractions import Fraction

from tacit.errors import QueryRefused
from tacit.plan.bernstein import indices
from tacit.plan.measure import measured_column, steps_within
from tacit.plan.plan import Distinct, Measured, Part, PlannedOutput, Product
from tacit.query import Aggregate, AggregateKind, Expression, Output, Query, Value
from tacit.tables import Declaration, RowUnit

UNITS = (Part("units"),)
ROWS = (Part("rows"),)
# Quantiles look at values more finely than sums need to.
QUANTILE_STEPS = 2**30 - 1
SPREADS = ("variance", "std")
PAIR_DEGREES = {"covariance": (1, 1), "correlation": (2, 2)}


@dataclass(frozen=True)
class Bounds:
    """What limits how fine a grid can be: the bounds per unit and the call's epsilon."""

    rows: int
    groups: int
    epsilon: Fraction


@dataclass(frozen=True)
class WantedQuantiles:
    """The fractions asked of one measured column, each once, rising."""

    column: int
    fractions: tuple[Fraction, ...]


@dataclass
class Layout:
    """What will be measured, multiplied and released, and where each output comes from."""

    bounds: Bounds
    declaration: Declaration
    releases_most: int
    private: bool = False  # whether keys are found by a noisy count of units
    columns: list[Measured] = field(default_factory=list)
    products_of: list[Product] = field(default_factory=list)
    released: list[tuple[Part, ...]] = field(default_factory=list)
    quantiles: list[WantedQuantiles] = field(default_factory=list)
    distincts: list[Distinct] = field(default_factory=list)
    made: dict[str, PlannedOutput] = field(default_factory=dict)
    outputs: tuple[PlannedOutput, ...] = ()

    @property
    def measured(self) -> tuple[Measured, ...]:
        """Every measured column."""
        return tuple(self.columns)

    @property
    def products(self) -> tuple[Product, ...]:
        """Every product that the engine adds up beside them."""
        return tuple(self.products_of)

    def measure(self, aggregate: Aggregate, *, degree: int, float_steps: int | None = None) -> int:
        """Return the place of the aggregate's column on a grid fit for moments of this degree."""
        if float_steps is None:
            most = steps_within(
                rows=self.bounds.rows,
                groups=self.bounds.groups,
                epsilon=self.bounds.epsilon,
                releases=self.releases_most,
                degree=degree,
            )
            column = measured_column(aggregate, self.declaration, steps_most=most)
        else:
            column = measured_column(aggregate, self.declaration, steps_most=float_steps, float_steps=float_steps)
        self.columns.append(column)
        return len(self.columns) - 1


def lay_out(query: Query, declaration: Declaration, bounds: Bounds, *, private: bool) -> Layout:
    """Return the layout of a checked question."""
    layout = Layout(bounds, declaration, len(query.outputs) + 1, private=private)
    asked = tuple(replace(each, aggregate=_plainest(each.aggregate)) for each in query.outputs)
    subjects: dict[object, list[Output]] = {}
    for output in asked:
        subjects.setdefault(_subject(output.aggregate), []).append(output)
    rows_asked, units_asked = _counts_asked(layout, subjects)
    for subject, outputs in list(subjects.items()):
        if isinstance(subject, str):
            continue
        _lay_out_column(layout, outputs, _counts_of(outputs[0].aggregate.expression, subjects), rows_asked=rows_asked)
    for output in asked:
        if output.aggregate.kind == "count_distinct":
            _lay_out_distinct(layout, output)
        if output.aggregate.kind == "top":
            layout.made[output.name] = PlannedOutput(output.name, "top", 0)
        if output.aggregate.kind == "count" and output.aggregate.expression and output.name not in layout.made:
            _lay_out_count(layout, output, rows_asked=rows_asked)
    if rows_asked and not any(part.kind == "missing" for parts in layout.released for part in parts):
        layout.released.append(ROWS)
    if units_asked:
        layout.released.append(UNITS)
    layout.outputs = tuple(layout.made.get(output.name) or _counted(layout, output) for output in asked)
    return layout


def _plainest(aggregate: Aggregate) -> Aggregate:
    """Return what asks for the same number in fewer words: the rows where a constant is not NULL are all rows."""
    constant = isinstance(aggregate.expression, Value) and aggregate.expression.value is not None
    return Aggregate("count") if aggregate.kind == "count" and constant else aggregate


def _counts_asked(layout: Layout, subjects: dict[object, list[Output]]) -> tuple[bool, bool]:
    """Return whether rows and whether units are counted; where they are one number, at most one of the two is."""
    rows, units = "count" in subjects, "count_units" in subjects or layout.private
    if layout.bounds.rows > 1 or not (rows or "count_units" in subjects):
        return rows, units
    if layout.private:
        return False, True
    # beside a column's parts a count of rows costs nothing more
    joins = any(not isinstance(subject, str) and _has_parts(subject) for subject in subjects) or "counts" in subjects
    return (True, False) if joins else (rows and not units, units)


def _has_parts(subject: object) -> bool:
    return isinstance(subject, tuple) and subject[0] != "quantile"


def _subject(aggregate: Aggregate) -> object:
    """Outputs of one subject come from one release."""
    if aggregate.kind in ("count_units", "count_distinct", "top") or (
        aggregate.kind == "count" and aggregate.expression is None
    ):
        return aggregate.kind
    if aggregate.kind == "count":
        return "counts"
    column = (aggregate.expression, aggregate.between, aggregate.step)
    if aggregate.kind == "quantile":
        return ("quantile", *column)
    if aggregate.kind in PAIR_DEGREES:
        return ("pair", *column, aggregate.other, aggregate.other_between)
    return ("moments", *column)


def _counts_of(expression: Expression | None, subjects: dict[object, list[Output]]) -> list[Output]:
    """COUNT(x) comes free with a sum or mean of x."""
    return [output for output in subjects.get("counts", []) if output.aggregate.expression == expression]


def _lay_out_column(layout: Layout, outputs: list[Output], counts: list[Output], *, rows_asked: bool) -> None:
    first = outputs[0].aggregate
    if first.kind == "quantile":
        _lay_out_quantiles(layout, outputs)
        return
    with_rows = rows_asked and not any(part.kind == "missing" for parts in layout.released for part in parts)
    if first.kind in PAIR_DEGREES:
        _lay_out_pair(layout, outputs, with_rows=with_rows)
        return
    free = [output for output in counts if output.name not in layout.made]
    spread = any(output.aggregate.kind in SPREADS for output in outputs)
    column = layout.measure(first, degree=2 if spread else 1)
    parts: tuple[Part, ...]
    if spread:
        layout.products_of.append(((column, 2),))
        parts = _moments((column,), (2,), with_rows=with_rows)
    elif not with_rows and not free and all(output.aggregate.kind == "sum" for output in outputs):
        parts = (Part("total", column),)
    else:
        parts = (Part("below", column), Part("above", column))
        parts = (Part("missing", column), *parts) if with_rows else parts
    layout.released.append(parts)
    for output in (*outputs, *free):
        place = len(layout.released) - 1
        layout.made[output.name] = PlannedOutput(output.name, output.aggregate.kind, place, column)


def _lay_out_pair(layout: Layout, outputs: list[Output], *, with_rows: bool) -> None:
    aggregate = outputs[0].aggregate
    degrees = max(PAIR_DEGREES[output.aggregate.kind] for output in outputs)
    column = layout.measure(aggregate, degree=sum(degrees))
    swapped = replace(aggregate, expression=aggregate.other, between=aggregate.other_between, step=None)
    other = layout.measure(swapped, degree=sum(degrees))
    layout.products_of.extend(
        tuple(zip((column, other), power, strict=True)) for power in indices(degrees) if any(power)
    )
    layout.released.append(_moments((column, other), degrees, with_rows=with_rows))
    for output in outputs:
        place = len(layout.released) - 1
        layout.made[output.name] = PlannedOutput(output.name, output.aggregate.kind, place, column, other)


def _moments(columns: tuple[int, ...], degrees: tuple[int, ...], *, with_rows: bool) -> tuple[Part, ...]:
    other = columns[1] if len(columns) > 1 else None
    parts = tuple(Part("moment", columns[0], other, degrees, index) for index in indices(degrees))
    return (Part("missing", columns[0], other, degrees), *parts) if with_rows else parts


def _lay_out_quantiles(layout: Layout, outputs: list[Output]) -> None:
    column = layout.measure(outputs[0].aggregate, degree=1, float_steps=QUANTILE_STEPS)
    asked = {output.aggregate.fraction for output in outputs if output.aggregate.fraction is not None}
    fractions = tuple(sorted(asked))
    layout.quantiles.append(WantedQuantiles(column, fractions))
    count = len(fractions)
    for output in outputs:
        if output.aggregate.fraction is None:
            raise QueryRefused("a quantile needs its fraction\nhint: quantile('x', 0.9)")
        at = fractions.index(output.aggregate.fraction)
        targets = (3 * at, 3 * at + 1, 3 * at + 2)
        place = len(layout.quantiles) - 1
        layout.made[output.name] = PlannedOutput(output.name, "quantile", place, column, targets=targets)
    if count > QUANTILES_MOST:
        raise QueryRefused(f"at most {QUANTILES_MOST} quantiles of a column fit in a question\nhint: ask for fewer")


QUANTILES_MOST = 100


def _lay_out_count(layout: Layout, output: Output, *, rows_asked: bool) -> None:
    """COUNT(x) alone: a column of height 1 of which only whether it is NULL matters."""
    expression = output.aggregate.expression
    if expression is None:
        raise QueryRefused("COUNT needs a column or *")
    for place, column in enumerate(layout.columns):
        if column.counts_only and column.expression == expression:
            at = next(at for at, parts in enumerate(layout.released) if parts[-1] == Part("counted", place))
            layout.made[output.name] = PlannedOutput(output.name, "count", at, place)
            return
    layout.columns.append(Measured(expression, "null", Fraction(1), 0, 1, counts_only=True))
    place = len(layout.columns) - 1
    with_rows = rows_asked and not any(part.kind == "missing" for parts in layout.released for part in parts)
    counted = (Part("counted", place),)
    layout.released.append((Part("missing", place), *counted) if with_rows else counted)
    layout.made[output.name] = PlannedOutput(output.name, "count", len(layout.released) - 1, place)


def _lay_out_distinct(layout: Layout, output: Output) -> None:
    aggregate = output.aggregate
    bound = (
        1 if isinstance(layout.declaration.unit, RowUnit) else aggregate.per_unit or layout.declaration.rows_per_unit
    )
    if aggregate.expression is None or bound is None:
        raise QueryRefused(
            f"'{output.name}' counts different values, and one unit could bring any number of them."
            "\nhint: state the most that should count, count_distinct('x', per_unit=5), in SQL"
            f" sql(..., per_unit={{'{output.name}': 5}}), or declare rows_per_unit; values beyond it are left out"
        )
    wanted = Distinct(aggregate.expression, bound)
    if wanted not in layout.distincts:
        layout.distincts.append(wanted)
        layout.released.append((Part("distinct", index=(len(layout.distincts) - 1,)),))
    parts = (Part("distinct", index=(layout.distincts.index(wanted),)),)
    layout.made[output.name] = PlannedOutput(output.name, "count_distinct", layout.released.index(parts))


def _counted(layout: Layout, output: Output) -> PlannedOutput:
    """COUNT(*) or a count of units: from the release that has it, which is the other's where they are one number."""
    found: dict[AggregateKind, int] = {
        "count_units" if parts == UNITS else "count": at
        for at, parts in enumerate(layout.released)
        if parts == UNITS or parts[0].kind in ("missing", "rows")
    }
    wanted = output.aggregate.kind
    for kind in (wanted, *found):
        if kind in found and (kind == wanted or layout.bounds.rows == 1):
            return PlannedOutput(output.name, kind, found[kind])
    raise QueryRefused("COUNT(*) has no release")
