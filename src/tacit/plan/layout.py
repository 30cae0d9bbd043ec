"""Decide which parts are released for which outputs: all aggregates of one column come from one joint release.

Count, sum and mean come from two parts, variance from three, a covariance from four, a correlation from nine; a sum
alone is released as itself. COUNT(*) joins the first column's parts: rows with a NULL are one more. No number is
released twice. Moments are released in the Bernstein basis: for y in 0 … H and a degree d, part i is
C(d,i)·(H-y)^(d-i)·y^i. No part is negative, and the parts add up to H^d for every y, so one row changes them by H^d in
total (docs/proofs/moments.md). Parts of two columns are the products of each one's.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from math import comb, prod
from typing import Any

from tacit.errors import QueryRefused
from tacit.numbers import show
from tacit.plan.plan import (
    DEGREES,
    FAMILIES,
    CountRows,
    CountUnits,
    Distinct,
    Family,
    Measured,
    Part,
    PlannedOutput,
    Product,
    planned,
)
from tacit.privacy import SCALE_MAX
from tacit.query import (
    INT_LEAST,
    INT_MOST,
    Aggregate,
    Column,
    Expression,
    Output,
    QuantileOf,
    Query,
    Value,
    name_of,
    type_of,
)
from tacit.tables import ColumnFacts, Declaration, RowUnit

FLOAT_STEPS = 2**20
# A grid of at most this many steps keeps a row, and a sum of 10^9 rows, inside what every engine adds exactly.
STEPS_MOST = 2**32
STEPS_LEAST = 2**6
# The product of one row's steps keeps well inside 64 bits.
ROW_MOST = 2**56
# A float tells whole numbers apart up to here, with room for the roundings of its scaling.
STEPS_FROM_ZERO_MOST = 2**50
# Beyond these a float's scaling, or the sum of many rows, would leave the floats.
RANGE_MOST = 2**900
STEP_LEAST = Fraction(1, 2**1000)


def steps_within(*, rows: int, groups: int, epsilon: Fraction, releases: int, degree: int = 1) -> int:
    """Return the most steps for which noise can be drawn; a row moves a moment of degree d by a product of d ranges."""
    drawable = min(int(SCALE_MAX / 8 * epsilon / (rows * groups * releases)), ROW_MOST)
    root = drawable if degree == 1 else int(drawable ** (1 / degree))
    return max(STEPS_LEAST if degree < 4 else STEPS_LEAST // 4, min(STEPS_MOST, root))


def measured_column(
    aggregate: Aggregate, declaration: Declaration, *, steps_most: int, float_steps: int = FLOAT_STEPS
) -> Measured:
    """Return the aggregate's expression on its public grid, or refuse and show the declaration that is missing."""
    expression = aggregate.expression
    if expression is None:
        raise QueryRefused(f"{aggregate.kind} needs a column\nhint: e.g. {aggregate.kind}('age', between=(0, 120))")
    facts = declaration.columns.get(expression.name) if isinstance(expression, Column) else None
    kind = type_of(expression, declaration)
    between = aggregate.between or (facts.between if facts else None)
    if between is None:
        raise QueryRefused(_missing_range(aggregate, expression))
    between = _holdable(between, kind, expression)
    step = aggregate.step or (facts.step if facts else None) or _own_step(kind, facts, between, float_steps)
    while _is_too_fine(step, between, kind, steps_most):
        step *= 2
    low, high = _declared_ends(between, step, exact=kind in ("int", "decimal"))
    if low >= high:
        raise QueryRefused(
            f"the range of {describe(expression)} must hold at least two multiples of its step, {show(step)}"
            "\nhint: give a wider range or a smaller step"
        )
    off = _rounding(kind, facts, between, step, (low, high))
    return Measured(expression=expression, type=kind, step=step, low=low, high=high, between=between, off=off)


def describe(expression: Expression) -> str:
    return f"'{name_of(expression)}'"


def _holdable(between: tuple[Fraction, Fraction], kind: str, expression: Expression) -> tuple[Fraction, Fraction]:
    """Return the range, cut to the values that the type can hold; refuse a range with sums that would overflow."""
    low, high = between
    if kind == "int":
        return max(low, Fraction(INT_LEAST)), min(high, Fraction(INT_MOST))
    if max(-low, high) > RANGE_MOST:
        raise QueryRefused(
            f"the range of {describe(expression)} goes beyond ±8e270, where sums overflow\nhint: give a narrower range"
        )
    return between


def _is_too_fine(step: Fraction, between: tuple[Fraction, Fraction], kind: str, steps_most: int) -> bool:
    low, high = between
    if (high - low) / step > steps_most:
        return True
    exact = kind == "int" and step.denominator == 1  # any other step is scaled as a float
    return not exact and (step < STEP_LEAST or max(-low, high) / step > STEPS_FROM_ZERO_MOST)


def _own_step(kind: str, facts: ColumnFacts | None, between: tuple[Fraction, Fraction], float_steps: int) -> Fraction:
    if kind == "int":
        return Fraction(1)
    if kind == "decimal" and facts is not None:
        return Fraction(1, 10**facts.scale)
    return power_of_two_at_most((between[1] - between[0]) / float_steps)


def _declared_ends(between: tuple[Fraction, Fraction], step: Fraction, *, exact: bool) -> tuple[int, int]:
    """Return the range in steps: exact numbers on their own step stay inside, a coarser grid starts below; a float's
    ends are rounded as its rows are."""
    low, high = between[0] / step, between[1] / step
    if not exact:
        return (low + Fraction(1, 2)) // 1, (high + Fraction(1, 2)) // 1
    return (-(-low // 1) if step <= 1 else low // 1), high // 1


def _rounding(
    kind: str, facts: ColumnFacts | None, between: tuple[Fraction, Fraction], step: Fraction, ends: tuple[int, int]
) -> Fraction:
    """Return how far rounding to the grid may move a value of the range: 0 if the grid holds all the type's values."""
    own = Fraction(1) if kind == "int" else Fraction(1, 10**facts.scale) if kind == "decimal" and facts else None
    if own is not None and (own / step).denominator == 1:
        return Fraction(0)
    # a coarse grid's last step may lie before the range's end
    return max(step / 2, ends[0] * step - between[0], between[1] - ends[1] * step)


def power_of_two_at_most(value: Fraction) -> Fraction:
    power = Fraction(2) ** (value.numerator.bit_length() - value.denominator.bit_length())
    return power if power <= value else power / 2


def _missing_range(aggregate: Aggregate, expression: Expression) -> str:
    name = expression.name if isinstance(expression, Column) else None
    written = describe(expression)
    kind = aggregate.kind
    if name and aggregate.other is not None:  # of two columns: either gives the same place in the declaration
        how = f"columns={{'{name}': {{'between': (0, 100)}}}} in the declaration, or --between {name}=0:100"
    elif name:
        call = (
            f"{kind}('{name}', 0.9, between=(0, 100))" if kind == "quantile" else f"{kind}('{name}', between=(0, 100))"
        )
        how = f"{call}, or columns={{'{name}': {{'between': (0, 100)}}}} in the declaration, or --between {name}=0:100"
    else:
        how = (
            "name it with AS, e.g. AS total, and add between={'total': (0, 100)} to sql(...), or --between total=0:100"
            f"; in Python {kind}('a * b', between=(0, 100))"
        )
    verb = {"mean": "average", "sum": "sum"}.get(kind, f"take the {kind} of")
    return (
        f"cannot {verb} {written}: it has no public range, so one unit could change the answer without limit."
        f"\nhint: give the range it is known to have, whatever the data: {how}"
    )


Index = tuple[int, ...]


def indices(degrees: Sequence[int]) -> tuple[Index, ...]:
    """Return the index of every part.

    >>> indices((1, 1))
    ((0, 0), (0, 1), (1, 0), (1, 1))
    """
    return tuple(product(*(range(degree + 1) for degree in degrees)))


def weights_of_part(index: Index, degrees: Sequence[int], heights: Sequence[int]) -> dict[Index, int]:
    """Return the weights that make a part from sums of powers; the index (1, 2) stands for Σ y₁·y₂².

    >>> weights_of_part((0,), (1,), (10,))
    {(0,): 10, (1,): -1}
    """
    weights = {}
    spans = [range(degree - i + 1) for i, degree in zip(index, degrees, strict=True)]
    for more in product(*spans):
        sign = -1 if sum(more) % 2 else 1
        factor = prod(
            comb(degree, i) * comb(degree - i, k) * height ** (degree - i - k)
            for i, k, degree, height in zip(index, more, degrees, heights, strict=True)
        )
        weights[tuple(i + k for i, k in zip(index, more, strict=True))] = sign * factor
    return weights


UNITS = (Part("units"),)
ROWS = (Part("rows"),)
# Quantiles look at values more finely than sums need to.
QUANTILE_STEPS = 2**30 - 1

# A family, and what tells its members apart.
Subject = tuple[Any, ...]
Subjects = dict[Subject, list[Output]]


@dataclass(frozen=True)
class Bounds:
    """The bounds per unit and the call's epsilon, which limit how fine a grid can be."""

    rows: int
    groups: int
    epsilon: Fraction


@dataclass(frozen=True)
class WantedQuantiles:
    """The fractions asked of one measured column, each once, rising."""

    column: int
    fractions: tuple[Fraction, ...]
    of: QuantileOf = "rows"


@dataclass
class Layout:
    """What will be measured, multiplied and released, and where each output comes from."""

    bounds: Bounds
    declaration: Declaration = field(repr=False)
    releases_most: int
    private: bool = False  # whether keys are found by a noisy count of units
    columns: list[Measured] = field(default_factory=list)
    products: list[Product] = field(default_factory=list)
    released: list[tuple[Part, ...]] = field(default_factory=list)
    quantiles: list[WantedQuantiles] = field(default_factory=list)
    distincts: list[Distinct] = field(default_factory=list)
    made: dict[str, PlannedOutput] = field(default_factory=dict)
    outputs: tuple[PlannedOutput, ...] = ()

    @property
    def counts_missing(self) -> bool:
        """Whether rows with a NULL are counted beside a column's parts, so that all rows are."""
        return any(part.kind == "missing" for parts in self.released for part in parts)

    def measure(self, aggregate: Aggregate, *, degree: int, float_steps: int | None = None) -> int:
        """Add the aggregate's column, on a grid fit for moments of this degree, and return its index."""
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
    subjects: dict[Subject, list[Output]] = {}
    for output in asked:
        subjects.setdefault(_subject(output.aggregate), []).append(output)
    rows_asked, units_asked = _counts_asked(layout, subjects)
    for (family, *_), outputs in list(subjects.items()):
        if family == "column":
            counts = _counts_of(outputs[0].aggregate.expression, subjects)
            _lay_out_column(layout, outputs, counts, with_rows=rows_asked and not layout.counts_missing)
        elif family == "pair":
            _lay_out_pair(layout, outputs, with_rows=rows_asked and not layout.counts_missing)
        elif family == "quantile":
            _lay_out_quantiles(layout, outputs)
    for output in asked:
        family = _family(output.aggregate)
        if family == "distinct":
            _lay_out_distinct(layout, output)
        elif family == "ranking":
            layout.made[output.name] = planned(output, 0)
        elif family == "values" and output.name not in layout.made:
            _lay_out_count(layout, output, with_rows=rows_asked and not layout.counts_missing)
    if rows_asked and not layout.counts_missing:
        layout.released.append(ROWS)
    if units_asked:
        layout.released.append(UNITS)
    layout.outputs = tuple(layout.made.get(output.name) or _counted_output(layout, output) for output in asked)
    return layout


def _plainest(aggregate: Aggregate) -> Aggregate:
    """Return what asks for the same number in fewer words: the rows where a constant is not NULL are all rows."""
    constant = isinstance(aggregate.expression, Value) and aggregate.expression.value is not None
    return Aggregate("count") if aggregate.kind == "count" and constant else aggregate


def _counts_asked(layout: Layout, subjects: Subjects) -> tuple[bool, bool]:
    """Return whether rows and whether units are counted; where they are one number, at most one of the two is."""
    families = {subject[0] for subject in subjects}
    rows, units = "rows" in families, "units" in families or layout.private
    if layout.bounds.rows > 1 or not (rows or "units" in families):
        return rows, units
    # beside a column's parts a count of rows costs nothing more
    joins = bool(families & {"column", "pair", "values"})
    if layout.private:
        return joins, True
    return (True, False) if joins else (rows and not units, units)


def _family(aggregate: Aggregate) -> Family:
    return "rows" if aggregate.kind == "count" and aggregate.expression is None else FAMILIES[aggregate.kind]


def _subject(aggregate: Aggregate) -> Subject:
    """Outputs of one subject are laid out together: those of one column, or of two, come from one release."""
    family = _family(aggregate)
    if family not in ("column", "quantile", "pair"):
        return (family,)
    column = (family, aggregate.expression, aggregate.between, aggregate.step)
    if family == "pair":
        return (*column, aggregate.other, aggregate.other_between)
    return (*column, aggregate.of) if family == "quantile" else column


def _counts_of(expression: Expression | None, subjects: Subjects) -> list[Output]:
    """COUNT(x) comes free with a sum or mean of x."""
    return [output for output in subjects.get(("values",), []) if output.aggregate.expression == expression]


def _lay_out_column(layout: Layout, outputs: list[Output], counts: list[Output], *, with_rows: bool) -> None:
    free = [output for output in counts if output.name not in layout.made]
    degrees = max(DEGREES[output.aggregate.kind] for output in outputs)
    column = layout.measure(outputs[0].aggregate, degree=sum(degrees))
    parts: tuple[Part, ...]
    if degrees == (2,):
        layout.products.append(((column, 2),))
        parts = _moments((column,), degrees, with_rows=with_rows)
    elif not with_rows and not free and all(output.aggregate.kind == "sum" for output in outputs):
        parts = (Part("total", column),)
    else:
        parts = (Part("below", column), Part("above", column))
        parts = (Part("missing", column), *parts) if with_rows else parts
    layout.released.append(parts)
    for output in (*outputs, *free):
        layout.made[output.name] = planned(output, len(layout.released) - 1, column)


def _lay_out_pair(layout: Layout, outputs: list[Output], *, with_rows: bool) -> None:
    aggregate = outputs[0].aggregate
    degrees = max(DEGREES[output.aggregate.kind] for output in outputs)
    column = layout.measure(aggregate, degree=sum(degrees))
    swapped = replace(aggregate, expression=aggregate.other, between=aggregate.other_between, step=None)
    other = layout.measure(swapped, degree=sum(degrees))
    layout.products.extend(tuple(zip((column, other), power, strict=True)) for power in indices(degrees) if any(power))
    layout.released.append(_moments((column, other), degrees, with_rows=with_rows))
    for output in outputs:
        layout.made[output.name] = planned(output, len(layout.released) - 1, column, other)


def _moments(columns: tuple[int, ...], degrees: tuple[int, ...], *, with_rows: bool) -> tuple[Part, ...]:
    other = columns[1] if len(columns) > 1 else None
    parts = tuple(Part("moment", columns[0], other, degrees, index) for index in indices(degrees))
    return (Part("missing", columns[0], other, degrees), *parts) if with_rows else parts


def _lay_out_quantiles(layout: Layout, outputs: list[Output]) -> None:
    column = layout.measure(outputs[0].aggregate, degree=1, float_steps=QUANTILE_STEPS)
    asked = {output.aggregate.fraction for output in outputs if output.aggregate.fraction is not None}
    fractions = tuple(sorted(asked))
    layout.quantiles.append(WantedQuantiles(column, fractions, outputs[0].aggregate.of or "rows"))
    count = len(fractions)
    for output in outputs:
        if output.aggregate.fraction is None:
            raise QueryRefused("a quantile needs its fraction\nhint: quantile('x', 0.9)")
        at = fractions.index(output.aggregate.fraction)
        layout.made[output.name] = planned(output, len(layout.quantiles) - 1, column, at)
    if count > QUANTILES_MOST:
        raise QueryRefused(f"a question can have at most {QUANTILES_MOST} quantiles of a column\nhint: ask for fewer")


QUANTILES_MOST = 100


def _lay_out_count(layout: Layout, output: Output, *, with_rows: bool) -> None:
    """COUNT(x) alone: a column of height 1 whose values do not matter, only whether each is NULL."""
    expression = output.aggregate.expression
    if expression is None:
        raise QueryRefused("COUNT needs a column or *\nhint: COUNT(*), or COUNT(age)")
    for place, column in enumerate(layout.columns):
        if column.counts_only and column.expression == expression:
            at = next(at for at, parts in enumerate(layout.released) if parts[-1] == Part("counted", place))
            layout.made[output.name] = planned(output, at, place)
            return
    layout.columns.append(Measured(expression, "null", Fraction(1), 0, 1, counts_only=True))
    place = len(layout.columns) - 1
    counted = (Part("counted", place),)
    layout.released.append((Part("missing", place), *counted) if with_rows else counted)
    layout.made[output.name] = planned(output, len(layout.released) - 1, place)


def _lay_out_distinct(layout: Layout, output: Output) -> None:
    aggregate = output.aggregate
    bound = (
        1 if isinstance(layout.declaration.unit, RowUnit) else aggregate.per_unit or layout.declaration.rows_per_unit
    )
    if aggregate.expression is None or bound is None:
        raise QueryRefused(
            f"'{output.name}' counts different values, and one unit could bring any number of them."
            "\nhint: state how many values of one unit may count: count_distinct('x', per_unit=5), in SQL"
            f" sql(..., per_unit={{'{output.name}': 5}}), or declare rows_per_unit; values beyond it are dropped"
        )
    wanted = Distinct(aggregate.expression, bound)
    if wanted not in layout.distincts:
        layout.distincts.append(wanted)
        layout.released.append((Part("distinct", index=(len(layout.distincts) - 1,)),))
    parts = (Part("distinct", index=(layout.distincts.index(wanted),)),)
    layout.made[output.name] = planned(output, layout.released.index(parts))


def _counted_output(layout: Layout, output: Output) -> PlannedOutput:
    """Return COUNT(*) or a count of units, from the release that holds it: any, if a unit has one row in a group."""
    found: dict[type[CountRows | CountUnits], int] = {
        CountUnits if parts == UNITS else CountRows: at
        for at, parts in enumerate(layout.released)
        if parts == UNITS or parts[0].kind in ("missing", "rows")
    }
    wanted = CountUnits if output.aggregate.kind == "count_units" else CountRows
    if layout.private and layout.bounds.rows == 1 and len(found) > 1:  # the units only show which groups there are
        return CountRows(output.name, found[CountRows])
    for record in (wanted, *found):
        if record in found and (record is wanted or layout.bounds.rows == 1):
            return record(output.name, found[record])
    raise QueryRefused("no release of this plan holds COUNT(*)\nhint: please report this question as a fault")
