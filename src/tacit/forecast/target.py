"""The least epsilon for a wanted error, solved from the plan and public facts; refused where a fact is missing.

A percent is relative to the largest possible aggregate: of the declared population for counts, of the population at the
end of the range for sums, of the range for means, of the largest possible value for variances and covariances, and for
quantiles of the ranks, since how far off in values they are depends on the data. Where bounds were learned, the error
is all of it, noise, total and scaling (`foreseen.py`), and a percent of a sum is of all that facts tell of.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Literal, assert_never

from tacit.answer import ScaledOutput, is_scaled, law_bound, mean_bounds, nearest_bound, sum_levels, weighted_bound
from tacit.errors import InvalidParameter, QueryRefused
from tacit.forecast.foreseen import error_by_hand, foreseen_error, nothing_is_believed
from tacit.plan import (
    UNIT_WEIGHT,
    Correlation,
    CountDistinct,
    CountRows,
    CountUnits,
    CountValues,
    Covariance,
    Mean,
    Plan,
    PlannedOutput,
    Quantile,
    Ranking,
    StandardDeviation,
    Sum,
    Variance,
    whole_of,
)
from tacit.privacy import Number, decimal_meaning, positive, show, whole

# What an output's error depends on, beside the noise: nothing, how many rows a group has, or the data.
Dependence = Literal["noise", "rows", "data"]


def depends_on(output: PlannedOutput, plan: Plan) -> Dependence:
    """Return what the error of an output depends on; of a plan that scales, facts tell how many rows groups have."""
    if is_scaled(output, plan):
        return "noise" if plan.public_keys is not None else "rows"
    match output:
        case CountRows() | CountUnits() | CountValues() | CountDistinct() | Sum():
            return "noise"
        case Mean() | Variance() | Covariance() | Quantile():
            return "rows"
        case StandardDeviation() | Correlation() | Ranking():
            return "data"
        case _:
            assert_never(output)


def expected_error(
    output: PlannedOutput, plan: Plan, confidence: Fraction, *, rows: float | None = None
) -> float | None:
    """Return the error that answers stay within at this confidence, in the output's own unit; a quantile's in ranks.

    `rows` is the size of a group, which counts and sums do not need. None where it depends on the data.
    """
    if depends_on(output, plan) == "rows" and rows is None:
        return None
    if is_scaled(output, plan):
        return foreseen_error(output, plan, confidence, rows=rows).whole
    noise = noise_error(output, plan, confidence, rows=rows)
    by_hand = None if noise is None else error_by_hand(output, plan, noise, confidence, rows)
    return noise if by_hand is None or isinstance(output, Sum) else by_hand.whole


def noise_error(output: PlannedOutput, plan: Plan, confidence: Fraction, *, rows: float | None = None) -> float | None:
    """Return the error of the noise alone, on what bounds by hand keep of a group of this size."""
    size = rows or 1.0
    match output:
        case StandardDeviation() | Correlation() | Ranking():
            return None
        case Quantile():
            return quantile_reach(output, plan) / size
        case CountUnits() | CountDistinct():
            return float(law_bound(plan.releases[output.release].law, confidence))
        case CountRows() | CountValues():
            return _count_error(output, plan, confidence)
        case Sum() | Mean() if plan.releases[output.release].parts[-1].kind != "moment":
            return _error_of_two_parts(output, plan, confidence, rows)
        case Sum() | Mean() | Variance() | Covariance():
            return _from_moments(output, plan, confidence, size)
        case _:
            assert_never(output)


def quantile_reach(output: Quantile, plan: Plan) -> int:
    """Return about how many rows, or people, on either side of its rank a quantile's interval reaches."""
    draw = plan.quantiles[output.draw]
    fraction, inside, reach = draw.targets[output.fraction]
    if draw.of == "people":
        inside, reach = (-(-each // UNIT_WEIGHT) for each in (inside, reach))
    return inside + reach if fraction in (0, 1) else 2 * reach  # rungs are half as wide again, and the result is off


def _count_error(output: CountRows | CountValues, plan: Plan, confidence: Fraction) -> float:
    release = plan.releases[output.release]
    if len(release.parts) == 1:
        return float(law_bound(release.law, confidence))
    kept = [part for part in release.parts if part.kind != "missing" or isinstance(output, CountRows)]
    height = whole_of(release.parts[-1], plan.measured)
    return float(nearest_bound(release.summed, release.scale, (1,) * len(kept), height, confidence))


def _error_of_two_parts(output: Sum | Mean, plan: Plan, confidence: Fraction, rows: float | None) -> float:
    """A sum or a mean from below and above its range, or a sum that is released as itself."""
    release, column = plan.releases[output.release], plan.measured[output.column]
    if len(release.parts) == 1:
        return float(law_bound(release.law, confidence) * column.step)
    if isinstance(output, Mean):
        return mean_bounds(release.summed, release.scale, confidence).usual[0] * float(column.step) / (rows or 1.0)
    weights, level = (column.low, column.high), sum_levels(column, confidence)[0]
    bound = nearest_bound(release.summed, release.scale, weights, column.height, level)
    return bound * float(column.step) + (rows or 0.0) * float(column.off)


def _from_moments(output: Sum | Mean | Variance | Covariance, plan: Plan, confidence: Fraction, size: float) -> float:
    """A sum, mean, variance or covariance from Bernstein parts: at most, wherever in its range the mean lies."""
    release = plan.releases[output.release]
    last = release.parts[-1]
    columns = [plan.measured[column] for column in last.columns]
    whole = whole_of(last, plan.measured)
    kept = [part for part in release.parts if part.kind == "moment"]
    off = weighted_bound(release.summed, release.scale, [1 / whole] * len(kept), confidence)  # in rows
    ranges = [float(column.height * column.step) for column in columns]
    match output:
        case Sum():
            return off * max(abs(float(end * columns[0].step)) for end in (columns[0].low, columns[0].high))
        case Mean():
            return off * ranges[0] / size
        case Variance():
            return ranges[0] ** 2 * (off / size + (off / size) ** 2)
        case Covariance():
            return prod(ranges) * (off / size + (off / size) ** 2)
        case _:
            assert_never(output)


Wanted = Number | Mapping[str, Number]
ERROR_MOST = Fraction(10**300)  # no answer is further off
# Epsilons are tried with three digits, from 0.00001 to 99.9.
DIGITS = range(100, 1000)
EXPONENTS = range(-7, 0)


@dataclass(frozen=True)
class Sizes:
    """The public sizes that errors are held against."""

    population: int | None
    rows: Fraction | None  # of one group
    why_no_rows: str = ""


@dataclass(frozen=True)
class Solved:
    """The epsilon found, and in words what it was found for."""

    epsilon: Fraction
    words: str


def group_rows(plan: Plan, population: int | None, for_groups_of: int | None) -> Sizes:
    """Return the sizes to plan for: as given, or the population divided evenly between public groups."""
    if for_groups_of is not None:
        return Sizes(population, Fraction(whole(for_groups_of, name="for_groups_of")))
    if population is None:
        return Sizes(None, None, "no population is declared")
    if plan.public_keys is None:
        return Sizes(population, None, "how many groups there are is not public")
    if plan.where is not None:
        return Sizes(population, None, "how many rows the filter keeps is not public")
    return Sizes(population, Fraction(population, len(plan.public_keys)))


def solve_epsilon(
    wanted: Wanted, plan_at: Callable[[Fraction], Plan], confidence: Fraction, sizes: Callable[[Plan], Sizes]
) -> Solved:
    """Return the least epsilon, to three digits, at which every wanted error is expected to hold."""
    first = plan_at(Fraction(1))
    goals = _goals(wanted, first, sizes(first))
    rows = sizes(first).rows

    def holds(epsilon: Fraction) -> bool:
        plan = plan_at(epsilon)
        outputs = {output.name: output for output in plan.outputs}
        size = None if rows is None else float(rows)
        errors = {name: expected_error(outputs[name], plan, confidence, rows=size) for name in goals}
        return all(error is not None and error <= goals[name] for name, error in errors.items())

    steps = len(DIGITS) * len(EXPONENTS)
    low, high = -1, steps
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(_epsilon(middle)) else (middle, high)
    if high == steps:
        raise QueryRefused(
            f"the wanted error is too small: no epsilon up to {show(_epsilon(steps - 1))} reaches it"
            "\nhint: allow a larger error, or ask about larger groups"
        )
    sized = any(depends_on(output, first) == "rows" and output.name in goals for output in first.outputs)
    return Solved(_epsilon(high), _words(goals, rows if sized else None, confidence))


def _epsilon(index: int) -> Fraction:
    digits, power = DIGITS[index % len(DIGITS)], EXPONENTS[index // len(DIGITS)]
    return Fraction(digits) * Fraction(10) ** power


def _goals(wanted: Wanted, plan: Plan, sizes: Sizes) -> dict[str, float]:
    """Return the absolute error allowed for each output that has a goal."""
    names = [output.name for output in plan.outputs]
    if isinstance(wanted, Mapping):
        unknown = [name for name in wanted if name not in names]
        if unknown or not wanted:
            raise InvalidParameter(
                f"error names {unknown or 'nothing'}, but the aggregates of this question are {', '.join(names)}"
                "\nhint: error={'n': 100, 'mean_age': '1%'}"
            )
        return {
            output.name: _goal(wanted[output.name], output, plan, sizes)
            for output in plan.outputs
            if output.name in wanted
        }
    foreseen = [output for output in plan.outputs if depends_on(output, plan) != "data"]
    if not foreseen:
        _refuse_unforeseen(plan.outputs[0])
    return {output.name: _goal(wanted, output, plan, sizes) for output in foreseen}


def _goal(wanted: Number, output: PlannedOutput, plan: Plan, sizes: Sizes) -> float:
    if depends_on(output, plan) == "data":
        _refuse_unforeseen(output)
    if nothing_is_believed(plan):
        raise QueryRefused(
            f"the error of '{output.name}' is not known: too few people were seen when its bounds were learned"
            "\nhint: learn again with a larger epsilon (table.learn), give rows_per_unit, or give epsilon"
        )
    if depends_on(output, plan) == "rows" and sizes.rows is None:
        raise QueryRefused(
            f"the error of '{output.name}' depends on how many rows a group has, and {sizes.why_no_rows}"
            "\nhint: give the size of a group, e.g. for_groups_of=1000, or give epsilon"
        )
    share = _percent(wanted)
    if share is None:
        if isinstance(output, Quantile):
            raise QueryRefused(
                f"the error of the quantile '{output.name}' in values depends on the data; only its error in ranks can"
                " be planned\nhint: give a percent of the ranks, e.g. error='1%'"
            )
        exact = wanted if isinstance(wanted, int | float | Fraction) else str(wanted)
        return float(min(positive(decimal_meaning(exact, name="error"), name="error"), ERROR_MOST))
    return float(share) * _largest(output, plan, sizes)


def _percent(wanted: Number) -> Fraction | None:
    if not isinstance(wanted, str) or not wanted.strip().endswith("%"):
        return None
    share = positive(decimal_meaning(wanted.strip()[:-1].strip(), name="error"), name="error") / 100
    return min(share, ERROR_MOST)


def _largest(output: PlannedOutput, plan: Plan, sizes: Sizes) -> float:
    """Return the value that a percent is relative to."""

    def height(column: int) -> float:
        return float(plan.measured[column].height * plan.measured[column].step)

    if is_scaled(output, plan):
        return _whole_of_facts(output, plan, sizes)
    match output:
        case CountRows() | CountUnits() | CountValues() | CountDistinct():
            return _population(output, sizes)
        case Sum():
            column = plan.measured[output.column]
            return _population(output, sizes) * max(abs(float(end * column.step)) for end in (column.low, column.high))
        case Mean():
            return height(output.column)
        case Variance() | StandardDeviation():
            return height(output.column) * height(output.column) / 4
        case Covariance() | Correlation():
            return height(output.column) * height(output.other) / 4
        case Quantile() | Ranking():
            return 1.0
        case _:
            assert_never(output)


def _whole_of_facts(output: ScaledOutput, plan: Plan, sizes: Sizes) -> float:
    """Return what a percent is relative to where facts are known: all rows, or all that a column adds up to."""
    column = plan.measured[output.column] if isinstance(output, Sum | Mean | CountValues) else None
    if isinstance(output, Mean):
        if column is None or column.between is None:
            raise QueryRefused(
                f"a percent of the mean '{output.name}' is relative to the range of its column, but none is declared"
                "\nhint: give the error as a number, e.g. error={'" + output.name + "': 2}"
            )
        return float(column.between[1] - column.between[0])
    if sizes.population is not None and not isinstance(output, Sum):
        return float(sizes.population)
    vector = plan.scaling.vectors[output.release] if plan.scaling else None
    if vector is None or vector.outlook is None:
        return _population(output, sizes)
    step = float(column.step) if isinstance(output, Sum) and column is not None else 1.0
    return vector.outlook.mass * step


def _population(output: PlannedOutput, sizes: Sizes) -> float:
    if sizes.population is None:
        raise QueryRefused(
            f"a percent of '{output.name}' is relative to the population, but no population is declared"
            "\nhint: declare population=10_000, or give the error as a number, e.g. error=100"
        )
    return float(sizes.population)


def _refuse_unforeseen(output: PlannedOutput) -> None:
    if isinstance(output, Ranking):
        raise QueryRefused("a ranking has no error that an epsilon could be solved for\nhint: give epsilon")
    instead = "the variance" if isinstance(output, StandardDeviation) else "the covariance"
    raise QueryRefused(
        f"the error of '{output.name}' depends on the spread of the data, which is not public"
        f"\nhint: ask for {instead} with an error, or give epsilon"
    )


def _words(goals: Mapping[str, float], rows: Fraction | None, confidence: Fraction) -> str:
    named = ", ".join(f"{name} ± {goal:.4g}" for name, goal in goals.items())
    size = "" if rows is None else f" in groups of {float(rows):,.0f} rows"
    return f"the least that is expected to give {named}{size}, {float(confidence) * 100:g} % of the time"
