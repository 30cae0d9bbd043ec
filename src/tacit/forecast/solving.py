"""The least epsilon for a wanted error, solved from plans and public facts; refused if a fact is missing.

A percent is of the largest possible aggregate: of the declared population for counts, that at the end of the range for
sums, the range for means, the largest value for variances, and of ranks for quantiles; with learned bounds a sum's is
of all that facts tell of. A computed column errs by its inputs' errors, times its change with each of them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from tacit.answer import ScaledOutput, is_scaled
from tacit.errors import InvalidParameter, QueryRefused
from tacit.forecast.target import depends_on, expected_error, farther_end, nothing_is_believed
from tacit.numbers import Number, decimal_meaning, positive, show, whole
from tacit.plan import (
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
)
from tacit.query import Moves

Wanted = Number | Mapping[str, Number]
ERROR_MOST = Fraction(10**300)  # no answer is further off
# Epsilons are tried with three digits, from 0.00001 to 99.9.
DIGITS = range(100, 1000)
EXPONENTS = range(-7, 0)


@dataclass(frozen=True)
class ErrorSizes:
    """The public sizes that errors are held against."""

    population: int | None
    rows: Fraction | None  # of one group
    why_no_rows: str = ""


@dataclass(frozen=True)
class Solved:
    """The epsilon found, and in words what it was found for."""

    epsilon: Fraction
    words: str


def group_rows(plan: Plan, population: int | None, for_groups_of: int | None) -> ErrorSizes:
    """Return the sizes to plan for: as given, or all rows divided evenly between the groups, as learned or public."""
    if for_groups_of is not None:
        return ErrorSizes(population, Fraction(whole(for_groups_of, name="for_groups_of")))
    if (learned := _learned_rows(plan)) is not None:
        return ErrorSizes(population, learned)
    if population is None:
        return ErrorSizes(None, None, "no population is declared")
    if plan.public_keys is None:
        return ErrorSizes(population, None, "how many groups there are is not public")
    if plan.where is not None:
        return ErrorSizes(population, None, "how many rows the filter keeps is not public")
    return ErrorSizes(population, Fraction(population, len(plan.public_keys)))


def _learned_rows(plan: Plan) -> Fraction | None:
    """Return about how many rows a group that is found has, where both numbers were learned of the rows asked about."""
    vectors = plan.scaling.vectors if plan.scaling is not None and plan.found_by else ()
    told = [each.outlook for each in vectors if each.kind in ("rows", "counted") and each.outlook is not None]
    if not plan.public_keys or not told or told[0].of_all_rows or told[0].mass <= 0:
        return None
    return Fraction(max(1, round(told[0].mass / len(plan.public_keys))))


@dataclass(frozen=True)
class Goal:
    """The allowed error for a column of one plan: an output, or a column computed from several."""

    name: str
    plan: int  # which of the plans
    moves: Moves
    allowed: float
    rows: Fraction | None  # of one group
    level: tuple[int, ...] | None = None  # the places of its keys, if it is of the totals of one level

    def is_met(self, plans: Sequence[Plan], confidence: Fraction) -> bool:
        """Whether it is expected to hold: of several numbers at once, each at a confidence that holds for all."""
        plan = plans[self.plan] if self.level is None else plans[self.plan].at_level(self.level)
        level = 1 - (1 - confidence) / len(self.moves.slopes)
        size = None if self.rows is None else float(self.rows)
        error = float(self.moves.slack)
        for name, slope in self.moves.slopes.items():
            own = expected_error(_output(plan, name), plan, level, rows=size)
            if own is None:
                return False
            error += float(slope) * own
        return error <= self.allowed

    def is_sized(self, plans: Sequence[Plan]) -> bool:
        """Whether it depends on how many rows a group has."""
        plan = plans[self.plan]
        return any(depends_on(_output(plan, name), plan) == "rows" for name in self.moves.slopes)


def least_epsilon(
    goals: Sequence[Goal], plans_at: Callable[[Fraction], Sequence[Plan]], confidence: Fraction
) -> Solved:
    """Return the least epsilon, to three digits, at which all goals are expected to be met."""

    def missed(epsilon: Fraction) -> list[Goal]:
        plans = plans_at(epsilon)
        return [goal for goal in goals if not goal.is_met(plans, confidence)]

    steps = len(DIGITS) * len(EXPONENTS)
    low, high = -1, steps
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if missed(_epsilon(middle)) else (low, middle)
    if high == steps:
        names = " and ".join(dict.fromkeys(goal.name for goal in missed(_epsilon(steps - 1))))
        raise QueryRefused(
            f"the wanted error of {names} is too small: no epsilon up to {show(_epsilon(steps - 1))} reaches it"
            "\nhint: allow a larger error, or ask about larger groups"
        )
    return Solved(_epsilon(high), _goal_words(goals, plans_at(Fraction(1)), confidence))


def _epsilon(index: int) -> Fraction:
    digits, power = DIGITS[index % len(DIGITS)], EXPONENTS[index // len(DIGITS)]
    return Fraction(digits) * Fraction(10) ** power


def _output(plan: Plan, name: str) -> PlannedOutput:
    return next(output for output in plan.outputs if output.name == name)


def goals_of(
    wanted: Wanted,
    plans: Sequence[Plan],
    sizes: Callable[[Plan], ErrorSizes],
    computed: Mapping[str, Moves],
    *,
    start: int = 0,
    label: str = "",
) -> list[Goal]:
    """Return the error allowed for each column with a goal, in each plan; of a workload, `label` is the question's name
    and `start` its first plan."""
    alone = {output.name: Moves({output.name: Fraction(1)}) for plan in plans for output in plan.outputs}
    named = alone | dict(computed)
    if isinstance(wanted, Mapping):
        unknown = [name for name in wanted if name not in named]
        if unknown or not wanted:
            raise InvalidParameter(
                f"error names {unknown or 'nothing'}, but the aggregates of this question are {', '.join(named)}"
                "\nhint: error={'n': 100, 'mean_age': '1%'}"
            )
        goals = dict(wanted)
    else:
        inside = {name for moves in computed.values() for name in moves.slopes}
        foreseen = [
            output.name
            for plan in plans
            for output in plan.outputs
            if output.name not in inside and depends_on(output, plan) != "data"
        ]
        goals = dict.fromkeys([*foreseen, *computed], wanted)
        if not goals:
            _refuse_unforeseen(plans[0].outputs[0])
    return [
        Goal(
            label + name,
            start + at,
            named[name],
            _allowed(goals[name], name, named[name], plan, sizes(plan)),
            sizes(plan).rows,
        )
        for name in goals
        for at, plan in enumerate(plans)
        if {output.name for output in plan.outputs}.issuperset(named[name].slopes)
    ]


def goals_of_level(
    wanted: Number, level: tuple[int, ...], name: str, plans: Sequence[Plan], sizes: Callable[[Plan], ErrorSizes]
) -> list[Goal]:
    """Return the error that is allowed for the totals of one level, of every number of the question."""
    found = []
    for at, plan in enumerate(plans):
        own = plan.at_level(level)
        for output in own.outputs:
            moves = Moves({output.name: Fraction(1)})
            allowed = _allowed(wanted, output.name, moves, own, sizes(own))
            found.append(Goal(f"{output.name} by {name}", at, moves, allowed, sizes(own).rows, level))
    return found


def _allowed(wanted: Number, name: str, moves: Moves, plan: Plan, sizes: ErrorSizes) -> float:
    """Return the absolute error allowed; a percent is of the largest value of the inputs, times the change with it."""
    outputs = {each: _output(plan, each) for each in moves.slopes}
    if name not in outputs and any(isinstance(output, Quantile) for output in outputs.values()):
        raise QueryRefused(
            f"the error of '{name}' depends on the data: it is computed from a quantile, which has an error known "
            "only in ranks\nhint: give epsilon, or a percent of the ranks by the quantile's own name"
        )
    if _read_percent(wanted) is not None:
        return sum(float(slope) * _goal(wanted, outputs[each], plan, sizes) for each, slope in moves.slopes.items())
    allowed = min(_goal(wanted, output, plan, sizes) for output in outputs.values())
    if allowed <= float(moves.slack):
        raise QueryRefused(
            f"the error of '{name}' cannot be {allowed:g}: it is rounded, to within {float(moves.slack):g}"
            "\nhint: allow a larger error, or round to more places"
        )
    return allowed


def _goal(wanted: Number, output: PlannedOutput, plan: Plan, sizes: ErrorSizes) -> float:
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
    share = _read_percent(wanted)
    if share is None:
        if isinstance(output, Quantile):
            raise QueryRefused(
                f"the error of the quantile '{output.name}' in values depends on the data; only its error in ranks can"
                " be planned\nhint: give a percent of the ranks, e.g. error='1%'"
            )
        exact = wanted if isinstance(wanted, int | float | Fraction) else str(wanted)
        return float(min(positive(decimal_meaning(exact, name="error"), name="error"), ERROR_MOST))
    return float(share) * _largest(output, plan, sizes)


def _read_percent(wanted: Number) -> Fraction | None:
    if not isinstance(wanted, str) or not wanted.strip().endswith("%"):
        return None
    share = positive(decimal_meaning(wanted.strip()[:-1].strip(), name="error"), name="error") / 100
    return min(share, ERROR_MOST)


def _largest(output: PlannedOutput, plan: Plan, sizes: ErrorSizes) -> float:
    """Return the value that a percent is relative to."""

    def height(column: int) -> float:
        return float(plan.measured[column].height * plan.measured[column].step)

    if is_scaled(output, plan):
        return _whole_of_facts(output, plan, sizes)
    match output:
        case CountRows() | CountUnits() | CountValues() | CountDistinct():
            return _population(output, sizes)
        case Sum():
            return _population(output, sizes) * farther_end(output, plan)
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


def _whole_of_facts(output: ScaledOutput, plan: Plan, sizes: ErrorSizes) -> float:
    """Return what a percent is relative to where facts are known: all rows, or all that a column adds up to."""
    column = plan.measured[output.column] if isinstance(output, Sum | Mean | CountValues) else None
    if isinstance(output, Mean):
        if column is None or column.between is None:
            raise QueryRefused(
                f"a percent of the mean '{output.name}' is relative to the range of its column, which is not declared"
                f"\nhint: give the error as a number, e.g. error={{'{output.name}': 2}}"
            )
        return float(column.between[1] - column.between[0])
    if sizes.population is not None and not isinstance(output, Sum):
        return float(sizes.population)
    vector = plan.scaling.vectors[output.release] if plan.scaling else None
    if vector is None or vector.outlook is None:  # a cap is given by hand, or one unit
        return _population(output, sizes) * (farther_end(output, plan) if isinstance(output, Sum) else 1.0)
    step = float(column.step) if isinstance(output, Sum) and column is not None else 1.0
    return vector.outlook.mass * step


def _population(output: PlannedOutput, sizes: ErrorSizes) -> float:
    if sizes.population is None:
        raise QueryRefused(
            f"a percent of '{output.name}' is relative to the population, but no population is declared"
            "\nhint: declare population=10_000, or give the error as a number, e.g. error=100"
        )
    return float(sizes.population)


def _refuse_unforeseen(output: PlannedOutput) -> None:
    if isinstance(output, Ranking):
        raise QueryRefused("epsilon cannot be solved from the error of a ranking\nhint: give epsilon")
    instead = "the variance" if isinstance(output, StandardDeviation | Variance) else "the covariance"
    raise QueryRefused(
        f"the error of '{output.name}' depends on the spread of the data, which is not public"
        f"\nhint: give epsilon, or ask for {instead} with an error under bounds by hand: rows_per_unit, groups_per_unit"
        " and between"
    )


def _goal_words(goals: Sequence[Goal], plans: Sequence[Plan], confidence: Fraction) -> str:
    named = ", ".join(dict.fromkeys(f"{goal.name} ± {goal.allowed:.4g}" for goal in goals))
    rows = {goal.rows for goal in goals if goal.rows is not None and goal.is_sized(plans)}
    size = f" in groups of {float(min(rows)):,.0f} rows" if len(rows) == 1 else ""
    return f"the least that is expected to give {named}{size}, {float(confidence) * 100:g} % of the time"
