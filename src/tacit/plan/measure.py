"""Put each numeric expression on its public grid: choose the step, and give the range in whole steps.

Integers and decimals keep their own step; a float gets a power of two near (high - low)/2^20. The step is coarsened, by
public facts, if the noise would span more than the sampler draws or a float could not distinguish two steps.
"""

from fractions import Fraction

from tacit.errors import QueryRefused
from tacit.plan.plan import Measured
from tacit.privacy import SCALE_MAX, show
from tacit.query import INT_LEAST, INT_MOST, Aggregate, Column, Expression, name_of, type_of
from tacit.tables import ColumnFacts, Declaration

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
