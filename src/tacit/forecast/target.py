"""The expected error of each output, from the plan and public facts; what would be mostly noise, and what closer.

With learned bounds an error is complete. Other plans at the same epsilon are made, not run. A number is too noisy if in
a group of average size noise alone makes its interval wider than itself, or noise and missing rows twice as wide; a
variance, covariance or correlation, if its interval would hold 0. Groups of an unknown size are not judged.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isnan, prod
from typing import Literal, assert_never

import numpy as np

from tacit.answer import (
    ScaledOutput,
    foreseen_moment,
    is_scaled,
    is_scaled_moment,
    law_bound,
    mean_bounds,
    most_of_groups,
    nearest_bound,
    noise_bounds,
    sum_levels,
    weighted_bound,
)
from tacit.errors import QueryRefused
from tacit.plan import (
    CLEARLY_LESS,
    FORESEEN_TO,
    NAMED_FOR,
    PART_OF_MEAN,
    UNIT_WEIGHT,
    UNSEEN_PART,
    Correlation,
    CountDistinct,
    CountRows,
    CountUnits,
    CountValues,
    Covariance,
    Fact,
    Mean,
    NoisyRelease,
    Plan,
    PlannedOutput,
    Quantile,
    Ranking,
    StandardDeviation,
    Sum,
    Variance,
    Vector,
    whole_of,
)

Moment = Variance | StandardDeviation | Covariance | Correlation


@dataclass(frozen=True)
class ForeseenError:
    """How far off an output may be in a group of this size, at the confidence it was asked for."""

    noise: float
    total: float = 0.0  # the error of the measured totals: the same in all groups, in proportion
    scaling: float = 0.0  # the possible difference between a group's loss and the others'
    size: float | None = None  # of a group, in the output's unit or, for means, in rows; None: not known
    number: float | None = None  # about how large the output is; None: equal to the group's size

    @property
    def whole(self) -> float:
        return math.hypot(self.noise, self.total, self.scaling)

    @property
    def about(self) -> float | None:
        """About how large the number is that it is the error of; None: not known."""
        return self.size if self.number is None else self.number

    @property
    def half_width(self) -> float:
        """Half of the interval's width: missing rows are on one side of a count or a sum, on both of a mean."""
        return self.whole if self.number is not None else (self.noise + self.whole) / 2

    @property
    def uselessness(self) -> float:
        """The noise as a part of the number, or half of the interval's; 0 if the number is not known. Missing rows are
        a doubtful allowance."""
        return max(self.noise, self.half_width / 2) / self.about if self.about is not None and self.about > 0 else 0.0


def foreseen_error(
    output: ScaledOutput, plan: Plan, confidence: Fraction, *, rows: float | None = None
) -> ForeseenError:
    """Return the error of an output in a group of `rows` rows, or of the average size."""
    outlook = _Outlooks(plan, confidence, rows)
    if isinstance(output, Mean):
        return outlook.mean(output)
    if isinstance(output, Sum) and outlook.vector(output.release).rows is not None:
        return outlook.sum_beside_mean(output)
    step = float(plan.measured[output.column].step) if isinstance(output, Sum) else 1.0
    return outlook.count(output.release, step)


def is_of_no_use(output: Moment, plan: Plan, confidence: Fraction) -> bool:
    """Whether a moment's interval is foreseen to hold 0 in a group of average size, even if both columns lay on one
    line: by the arithmetic of answers, on the sums that facts foretell."""
    look, vectors = _Outlooks(plan, confidence, None), plan.scaling.vectors if plan.scaling else ()
    rows, factors = look.vector(output.release).rows, look.vector(output.release).factors or ()
    if rows is None or plan.public_keys is None or any(each.outlook is None for each in vectors):
        return False
    sums = {index: look.least_mass(index, rows) for index in (rows, output.release)}
    if isinstance(output, Correlation):
        squares = [next(at for at, each in enumerate(vectors) if each.factors == (side, side)) for side in factors]
        sums |= {at: look.least_mass(at, rows) for at in squares}
        steps = {at: float(plan.measured[vectors[at].column or 0].step) for at in (*squares, output.release)}
        whole = math.sqrt(math.prod(sums[at] * steps[at] for at in squares)) / steps[output.release]
        sums[output.release] = whole
    elif isinstance(output, Covariance):  # of two normal columns, products are 2 / pi of the roots of squares
        sums[output.release] *= math.pi / 2
    low = foreseen_moment(output, plan, sums, confidence)
    return low is None or low <= 0


def sum_by_people(output: Sum, plan: Plan, people: int) -> float | None:
    """Return about how much some people's values add up to; None beside a mean, where rows decide it."""
    vector = None if plan.scaling is None else plan.scaling.vectors[output.release]
    if vector is None or vector.rows is not None or vector.outlook is None or vector.outlook.people <= 0:
        return None
    return people * vector.outlook.mass / vector.outlook.people * float(plan.measured[output.column].step)


def foreseen_range(output: Mean, plan: Plan) -> float:
    """Return about how wide the range of a mean's values is, if they spread evenly over it."""
    outlook = _Outlooks(plan, Fraction(1, 2), None)
    counting = outlook.vector(output.release).rows
    distance = 0.0 if counting is None else outlook.distance(output.release, counting)
    return 4 * distance * float(plan.measured[output.column].step)


def nothing_is_believed(plan: Plan) -> bool:
    """Whether facts were learned, but from too few people to tell anything."""
    known = [each.outlook for each in (plan.scaling.vectors if plan.scaling else ()) if each.outlook is not None]
    return bool(known) and all(each.mass <= 0 for each in known)


@dataclass(frozen=True)
class _Outlooks:
    """The predicted vectors of a plan, in groups of one size."""

    plan: Plan
    confidence: Fraction
    rows: float | None

    def vector(self, index: int) -> Vector:
        """The vector of a release."""
        if self.plan.scaling is None:
            raise ValueError("this plan does not down-weight and lacks vectors")
        return self.plan.scaling.vectors[index]

    def count(self, index: int, step: float) -> ForeseenError:
        """A count, or a sum about 0."""
        size, outlook, noise = self.mass(index), self.vector(index).outlook, self.noise(index)
        kept = self._kept(index) if self._is_put_back(index) else 1.0
        put_back = 0.0 if outlook is None or kept == 1.0 else outlook.lost / self._groups
        scaling = max(self._lacked(index) - put_back, 0.0)
        total = self._off(index, kept) * (size or 0.0)
        whole = None if size is None else size * step
        return ForeseenError(noise / kept * step, total * step, scaling * step, whole)

    def mean(self, output: Mean) -> ForeseenError:
        """A mean: from the noise of its sums and rows, and the part beyond people's caps."""
        index, counting, step = output.release, self._counting(output.release), float(self._step(output))
        size, distance = self.mass(counting), self.distance(index, counting)
        if size is None or size <= 0:
            return ForeseenError(math.inf)
        rows = size * self._kept(counting)
        noise = self._pair(index, counting, distance) / rows * step
        missing = self._lacked(index, PART_OF_MEAN) + distance / 2 * self._lacked(counting, PART_OF_MEAN)
        column = self.plan.measured[output.column]
        number = (abs(column.low + self.vector(index).centre) + distance) * step
        return ForeseenError(noise, 0.0, missing / rows * step, size, number)

    def noise(self, index: int) -> float:
        """A bound on the noise of one vector in a group, in steps."""
        return law_bound(self.plan.releases[index].law, self.confidence) * self._fine(index)

    def part_of_noise(self, index: int) -> float:
        """The noise of a vector as a part of a group's content; 0 if that is not known."""
        mass = self.mass(index) or 0.0
        return self.noise(index) / mass if mass > 0 else 0.0

    def least_mass(self, index: int, rows: int) -> float:
        """What is kept of a vector in a group, or little, as a part of the caps of all people, if none is believed."""
        seen, people = (self.mass(index) or 0.0) * self._kept(index), self.vector(rows).outlook
        little = UNSEEN_PART * self.vector(index).cap / 2.0 ** self.vector(index).shift
        return seen if seen > 0 or people is None else little * people.people / self._groups

    def sum_beside_mean(self, output: Sum) -> ForeseenError:
        """A count times a mean."""
        index, counting, step = output.release, self._counting(output.release), float(self._step(output))
        column = self.plan.measured[output.column]
        about = abs(column.low + self.vector(index).centre)
        rows, of_mean = self.count(counting, 1.0), self.mean(Mean(output.name, index, output.column))
        times = rows.noise / (law_bound(self.plan.releases[counting].law, self.confidence) * self._fine(counting))
        size = rows.size or 0.0
        return ForeseenError(
            times * self._pair(index, counting, about) * step,
            math.hypot(rows.total * about * step, size * of_mean.total),
            math.hypot(rows.scaling * about * step, size * of_mean.scaling),
            None if rows.size is None else size * (about + self.distance(index, counting)) * step,
        )

    def _step(self, output: Mean | Sum) -> Fraction:
        return self.plan.measured[output.column].step

    def _counting(self, index: int) -> int:
        counting = self.vector(index).rows
        if counting is None:
            raise ValueError("a mean needs a vector that counts its rows")
        return counting

    def _fine(self, index: int) -> float:
        return float(Fraction(2) ** -self.vector(index).shift)

    def _kept(self, index: int) -> float:
        outlook = self.vector(index).outlook
        return 1.0 if outlook is None else min(max(outlook.kept, 1e-9), 1.0)

    @property
    def _groups(self) -> int:
        return max(len(self.plan.public_keys or ()), 1)

    def _lacked(self, index: int, part: float = 1.0) -> float:
        """How much of a vector a group of mean size may lack."""
        outlook, shares = self.vector(index).outlook, np.full(self._groups, 1 / self._groups)
        return 0.0 if outlook is None else outlook.lost_most * float(most_of_groups(shares, part)[0])

    def _is_put_back(self, index: int) -> bool:
        """Whether groups are scaled up to a measured or public total."""
        return self.vector(index).totals is not None or (self.plan.public_rows is not None and bool(self.plan.keys))

    def mass(self, index: int) -> float | None:
        """How much a group has, in steps; None if neither a size is given nor the number of groups is public."""
        outlook, listed = self.vector(index).outlook, self.plan.public_keys
        if self.rows is not None:
            first = next((v.outlook for v in self._vectors if v.kind in ("rows", "counted") and v.outlook), None)
            if self.vector(index).kind in ("rows", "counted"):
                return self.rows
            # the same number of rows, with the same values
            if outlook is not None and first is not None and first.mass > 0:
                return self.rows * outlook.mass / first.mass
        if outlook is None or listed is None:
            return None
        return outlook.mass / max(len(listed), 1)

    @property
    def _vectors(self) -> tuple[Vector, ...]:
        return () if self.plan.scaling is None else self.plan.scaling.vectors

    def distance(self, index: int, counting: int) -> float:
        """How far from the centre rows are on average, in steps."""
        sums, rows = self.vector(index).outlook, self.vector(counting).outlook
        return 0.0 if sums is None or rows is None or rows.mass <= 0 else sums.mass / rows.mass

    def _off(self, index: int, kept: float) -> float:
        """How far off the measured total is, as a share of it."""
        found = self._totals(index)
        outlook = self.vector(index).outlook
        if found is None or outlook is None or outlook.mass <= 0:
            return 0.0
        release, unit = found
        ratio = (1 - kept) / kept
        return weighted_bound(release.summed, release.scale, (1.0, ratio), self.confidence) * unit / outlook.mass

    def _totals(self, index: int) -> tuple[NoisyRelease, float] | None:
        """The release of a vector's totals, and the size of their unit in steps."""
        vector = self.vector(index)
        for release in self.plan.totals:
            if release.parts[0].index == (index,):
                return release, float(Fraction(2) ** vector.tail_shift) * self._fine(index)
        return None

    def _pair(self, one: int, two: int, weight: float) -> float:
        """A bound on the noise of one vector plus a weight times that of another, in steps."""
        noises = [(self.plan.releases[index], Fraction(2) ** self.vector(index).shift) for index in (one, two)]
        return float(noise_bounds(noises, np.array([[1.0, weight]]), self.confidence)[0])


def depends_on(output: PlannedOutput, plan: Plan) -> Literal["noise", "rows", "data"]:
    """Return what the error of an output depends on; of a plan that scales, facts tell how many rows groups have."""
    if is_scaled(output, plan):
        return "noise" if plan.public_keys is not None else "rows"
    if is_scaled_moment(output, plan):
        return "data"
    return output.depends_on


def expected_error(
    output: PlannedOutput, plan: Plan, confidence: Fraction, *, rows: float | None = None
) -> float | None:
    """Return the error that answers stay within at this confidence, a quantile's in ranks; `rows` is a group's size.
    None if it depends on the data."""
    if depends_on(output, plan) == "rows" and rows is None:
        return None
    if is_scaled(output, plan):
        return foreseen_error(output, plan, confidence, rows=rows).whole
    return noise_error(output, plan, confidence, rows=rows)


def rows_for_correlation(output: Correlation, plan: Plan, confidence: Fraction, *, spread: float) -> float | None:
    """Return the number of rows that give a correlation an interval of about ± 1; ± 0.1 takes ten times that.

    `spread` is both columns' variance as a part of their squared ranges, 1/12 if even. None if units are down-weighted.
    """
    if plan.scaling is not None:
        return None
    release = plan.releases[output.release]
    kept = [part for part in release.parts if part.kind == "moment"]
    whole = whole_of(release.parts[-1], plan.measured)
    if not whole:  # a range of one value
        return None
    return float(weighted_bound(release.summed, release.scale, [1 / whole] * len(kept), confidence) / spread)


def farther_end(output: Sum, plan: Plan) -> float:
    """Return the end of a sum's range that is farther from 0, as a distance."""
    column = plan.measured[output.column]
    return max(abs(float(end * column.step)) for end in (column.low, column.high))


def noise_error(output: PlannedOutput, plan: Plan, confidence: Fraction, *, rows: float | None = None) -> float | None:
    """Return the error of only the noise, on the part of a group of this size that bounds by hand keep."""
    size = rows or 1.0
    if depends_on(output, plan) == "data":
        return None
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
            return off * farther_end(output, plan)
        case Mean():
            return off * ranges[0] / size
        case Variance():
            return ranges[0] ** 2 * (off / size + (off / size) ** 2)
        case Covariance():
            return prod(ranges) * (off / size + (off / size) ** 2)
        case _:
            assert_never(output)


# Planning takes longer with many groups, and a hint is worth little of it.
GROUPS_MOST = 10_000


def closer_words(
    plan: Plan,
    learned: Sequence[Fact],
    planned: Callable[[Fraction, str | None], Plan | None],
    widths: Mapping[str, float | None],
    confidence: Fraction,
    *,
    rows: float | None = None,
    most: int = 1,
) -> str:
    """Return what would give a narrower interval at the same epsilon, and about how narrow; empty if there is none.

    `planned` makes the plan at another epsilon, of one output if it is named. `widths` are the current half-widths, nan
    if not all is known.
    """
    if len(plan.public_keys or ()) > GROUPS_MOST:
        return ""
    outputs = [output for output in plan.outputs if widths.get(output.name)]
    found: list[tuple[float, str, str]] = []

    def tried(output: PlannedOutput, other: Plan | None, words: str) -> None:
        share = _error_beside(output, plan, other, confidence, rows)
        if share < CLEARLY_LESS:
            found.append((share, output.name, words))

    for output in outputs if len(plan.outputs) > 1 else ():
        tried(output, planned(plan.spend.epsilon, output.name), "ask {} by itself: about")
    finding = sum((fact.epsilon for fact in learned if fact.finds_groups), Fraction(0))
    if finding and outputs:
        tried(outputs[0], planned(plan.spend.epsilon + finding, None), "list the groups (keys=[...]): {} about")
    ranging = sum((fact.epsilon for fact in learned if fact.tells_range), Fraction(0))
    for output in outputs if ranging else ():
        tried(output, planned(plan.spend.epsilon + ranging, None), "declare the range (between=): {} about")
    if not found:
        return ""
    named = [
        f"{words.format(name)} {_narrower(share, widths[name] or 0)}" for share, name, words in sorted(found)[:most]
    ]
    return f"Closer at the same ε: {'; '.join(named)}."


def _narrower(share: float, width: float) -> str:
    if isnan(width):
        return f"{two_digits(share)} times as wide"
    return f"± {two_digits(share * width)} instead of ± {two_digits(width)}"


def _error_beside(
    output: PlannedOutput, plan: Plan, other: Plan | None, confidence: Fraction, rows: float | None
) -> float:
    """Return the error that an output is foreseen to have in another plan, as a part of that in its own."""
    same = None if other is None else next((each for each in other.outputs if each.name == output.name), None)
    if other is None or same is None:
        return 1.0
    before, after = (expected_error(one, by, confidence, rows=rows) for one, by in ((output, plan), (same, other)))
    return after / before if before and after is not None else 1.0


def two_digits(value: float) -> str:
    """Return a number with two significant digits, and commas."""
    short = float(f"{value:.2g}")
    return f"{short:,.0f}" if short >= 10 else f"{short:.2g}"


ANYWAY = "to answer anyway, accept_noise=True (--accept-noise)"


def refuse_useless(plans: Sequence[Plan], rows: int | None, confidence: Fraction) -> None:
    """Refuse a question, before its charge, with a number that would be mostly noise; `rows`: the most, if public."""
    found = useless_words(plans, rows, confidence)
    if found is not None:
        problem, mend = found
        raise QueryRefused(f"{problem}\nhint: {mend}; {ANYWAY}")


def useless_line(plans: Sequence[Plan], rows: int | None, confidence: Fraction) -> str:
    """Return that answering will be refused, and why; empty if it will not."""
    found = useless_words(plans, rows, confidence)
    return "" if found is None else f"Refused, and free: {found[0]}. Instead: {found[1]}; {ANYWAY}."


def useless_words(plans: Sequence[Plan], rows: int | None, confidence: Fraction) -> tuple[str, str] | None:
    """Return the number that would be mostly noise, and a remedy; None if there is no such number."""
    for plan in plans:
        names = [output.name for output in plan.outputs]
        shown = plan.after.shown_outputs(names)
        if plan.after.picks_by_noise(names):
            continue
        for output in plan.outputs:
            if nothing_is_believed(plan) and not is_scaled_moment(output, plan):  # few people may still be counted
                continue
            if output.name not in shown:
                continue
            found = _useless(output, plan, rows, confidence)
            if found is not None:
                return found
    return None


def _useless(output: PlannedOutput, plan: Plan, rows: int | None, confidence: Fraction) -> tuple[str, str] | None:
    if is_scaled_moment(output, plan):
        return _any_moment(output, plan, confidence)
    if isinstance(output, Correlation):
        return _any_correlation(output, plan, rows, confidence)
    if plan.scaling is not None and isinstance(output, Mean):
        look = _Outlooks(plan, confidence, None)
        share = 0.0 if (counting := look.vector(output.release).rows) is None else look.part_of_noise(counting)
        if share >= 1:
            return _found(output, plan, share, "a group of average size has too few rows")
    found = _output_error(output, plan, rows, confidence)
    if found is None:
        return None
    words = f"about {two_digits(found.about or 0)} ± {two_digits(found.half_width)} in a group of average size"
    return _found(output, plan, found.uselessness, words, 1.0 if isinstance(output, Quantile) else 1 / NAMED_FOR)


def _found(output: PlannedOutput, plan: Plan, share: float, words: str, least: float = 1.0) -> tuple[str, str] | None:
    """Return the words for a number with an error of this part of it; None if it is a smaller part than the least."""
    if share < least:
        return None
    more = f"give an epsilon of about {two_digits(float(plan.spend.epsilon) * share * NAMED_FOR)}, or "
    others = f", or leave out '{output.name}'" if len(plan.outputs) > 1 else ""
    hint = f"{more if share <= FORESEEN_TO else ''}ask about fewer or larger groups{others}"
    return f"'{output.name}' is foreseen to be of no use: {words}", hint


def _output_error(output: PlannedOutput, plan: Plan, rows: int | None, confidence: Fraction) -> ForeseenError | None:
    """Return the noise of an output beside its number, in a group of average size; None if a size is not known."""
    most = None if rows is None or plan.public_keys is None else rows / max(len(plan.public_keys), 1)
    if is_scaled(output, plan):
        known = foreseen_error(output, plan, confidence)
        return known if known.about or most is None else foreseen_error(output, plan, confidence, rows=most)
    if most is None:
        return None
    if isinstance(output, Quantile):  # the interval of a median reaches both ends if its noise is half of the ranks
        return ForeseenError(quantile_reach(output, plan), size=most)
    noise = noise_error(output, plan, confidence, rows=most) or 0.0
    if isinstance(output, CountRows | CountValues | CountUnits):
        return ForeseenError(noise, size=most)
    if isinstance(output, Sum):
        return ForeseenError(noise, size=most * farther_end(output, plan))
    if isinstance(output, Mean):  # its interval has the whole range
        column = plan.measured[output.column]
        return ForeseenError(noise, size=most, number=float(column.height * column.step))
    return None


def _any_moment(output: Moment, plan: Plan, confidence: Fraction) -> tuple[str, str] | None:
    """Return the words for a variance, covariance or correlation that may be anything, by what was learned."""
    if not is_of_no_use(output, plan, confidence):
        return None
    words = "its interval would hold 0 in a group of average size"
    if isinstance(output, Correlation | Covariance):
        words += ", even if the columns lay on one line"
    others = f", or leave out '{output.name}'" if len(plan.outputs) > 1 else ""
    mend = f"give more epsilon, or ask about fewer or larger groups{others}"
    return f"'{output.name}' is foreseen to be of no use: {words}", mend


def _any_correlation(output: Correlation, plan: Plan, rows: int | None, confidence: Fraction) -> tuple[str, str] | None:
    """Return the words for a correlation from -1 to 1, by values at the two ends of their declared ranges."""
    least = rows_for_correlation(output, plan, confidence, spread=1 / 4) if rows else None
    if not rows or least is None or rows >= least:
        return None
    epsilon = float(plan.spend.epsilon) * 3 * least / rows
    problem = (
        f"'{output.name}' is foreseen to be from -1 to 1, with any values of the {rows:,} rows: "
        f"at this epsilon it takes at least {least:,.0f} rows, and "
        f"about {3 * least:,.0f} if values spread evenly over their ranges"
    )
    return problem, f"give an epsilon of about {epsilon:.2g}, or ask about more rows"
