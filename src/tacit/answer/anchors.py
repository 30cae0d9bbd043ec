"""What scaling left of a vector in the whole table and what it took, as measured: by which factor groups are corrected.

Everything here is post-processing of noisy totals by public facts (docs/proofs/corrected.md). The factor is an exact
fraction, so that corrected counts are the same numbers everywhere; its interval and all that is for error bars is in
floats, rounded outwards.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from tacit.answer.noise_sums import law_bound, weighted_bound
from tacit.plan import NoisyRelease, Plan, Vector
from tacit.release import NoisyTable

# What was kept is taken to be at least this many scales of its noise: a factor is never made of noise alone.
FLOOR_SCALES = 4
# A factor that may be larger than this is as good as unknown.
FACTOR_MOST = 1e9
# Where totals tell little, no more than so many times what facts foretell is taken to be cut.
FORETOLD_MOST = 3.0
ROUNDS = 60
# By how much more than the average a group may have lost, as a part of it: a convention (docs/proofs/corrected.md). At
# least so much; where little is cut, it is of few people, and groups differ by up to so much more; and by up to so much
# more again, the more of what was cut is of people who are in one group alone.
LOST_MORE, LOST_UNEVENLY, LOST_ALONE = 0.5, 1.25, 1.0
# Public rows are those of the listed groups unless there are more of them than foreseen by this factor.
LIST_MOST = Fraction(3, 2)


@dataclass(frozen=True)
class Totals:
    """The noisy totals of a vector, kept and cut, in its own steps, each within `error` at the stated confidence."""

    kept: float
    cut: float
    error: float
    total_error: float  # of the two added up


@dataclass(frozen=True)
class Anchor:
    """By which factor what was kept of a vector is scaled up, and what the factor may be instead.

    `foreseen` is the factor that error bars allow for where nothing was measured; else it is the factor itself.
    """

    factor: Fraction = Fraction(1)
    low: float = 1.0
    high: float = 1.0  # math.inf where the totals are too small to tell
    foreseen: float = 1.0
    totals: Totals | None = None
    public_total: int | None = None
    alone: float = 0.0  # how far what was cut is of people in one group (`Outlook.alone`)

    @property
    def cut_most(self) -> float:
        """The most that can have been cut from any one group, in steps: all that was cut from all of them."""
        return math.inf if self.totals is None else max(self.totals.cut, 0.0) + self.totals.error


def lost_more(kept: float, alone: float) -> float:
    """Return by how much more than the average a group may have lost, as a part of it, where this share was kept."""
    return LOST_MORE + LOST_UNEVENLY * min(max(kept, 0.0), 1.0) + LOST_ALONE * alone


def vectors_of(plan: Plan) -> tuple[Vector, ...]:
    """Return the vectors of a plan that scales, or those of which bounds by hand keep and cut some."""
    return plan.measured_totals if plan.scaling is None else plan.scaling.vectors


def fine_per_step(vector: Vector) -> Fraction:
    """Return how many fine steps a step of the vector is."""
    return Fraction(2) ** vector.shift


def anchors(plan: Plan, noisy: NoisyTable, confidence: Fraction) -> tuple[Anchor, ...]:
    """Return the anchor of each of the vectors of a plan that scales."""
    found = []
    for index, vector in enumerate(() if plan.scaling is None else plan.scaling.vectors):
        measured = totals_index(plan, index)
        if measured is not None:
            kept, cut = noisy.totals[measured]
            found.append(measured_anchor(vector, plan.totals[measured], kept, cut, confidence))
        else:
            found.append(_unmeasured(vector, index, plan, noisy, confidence))
        if vector.outlook is not None:
            found[-1] = replace(found[-1], alone=vector.outlook.alone)
    return tuple(found)


def totals_index(plan: Plan, index: int) -> int | None:
    """Return which release of totals belongs to a vector; None where it has no totals."""
    for place, release in enumerate(plan.totals):
        if release.parts[0].index == (index,):
            return place
    return None


def measured_anchor(vector: Vector, release: NoisyRelease, kept: int, cut: int, confidence: Fraction) -> Anchor:
    """Return the anchor from noisy totals, which are in units of 2^tail_shift fine steps."""
    floor = math.ceil(FLOOR_SCALES * release.scale)
    factor = 1 + Fraction(max(cut, 0), max(kept, floor, 1))
    unit = float(Fraction(2) ** vector.tail_shift / fine_per_step(vector))
    # rounding to units takes up to one from each person; a unit that is a fine step takes nothing
    lost = vector.outlook.people if vector.outlook is not None and vector.tail_shift else 0.0
    error = law_bound(release.law, confidence) + lost
    together = weighted_bound(release.summed, release.scale, (1.0, 1.0), confidence) + 2 * lost
    totals = Totals(kept * unit, cut * unit, error * unit, together * unit)
    if vector.totals == "signed":
        return Anchor(totals=totals)

    def off(ratio: float) -> float:  # of cut - ratio * kept
        return weighted_bound(release.summed, release.scale, (1.0, ratio), confidence) + lost * (1 + ratio)

    low, high = _ratio_ends(kept, cut, off)
    high = _within_facts(vector, float(factor), 1 + high)
    return Anchor(factor, min(1 + low, float(factor)), max(high, float(factor)), float(factor), totals)


def _within_facts(vector: Vector, factor: float, high: float) -> float:
    """Return the upper end of a factor: where the totals tell little, about what facts foretell and half of it more."""
    outlook = vector.outlook
    if high <= 2 * factor or outlook is None or outlook.mass <= 0 or outlook.kept <= 0:
        return high
    return min(high, max(2 * factor, 1 + FORETOLD_MOST * (1 / min(outlook.kept, 1.0) - 1)))


def _ratio_ends(kept: int, cut: int, off: Callable[[float], float]) -> tuple[float, float]:
    """Return all ratios r >= 0 of cut to kept for which |cut - r * kept| is within its own bound (Fieller).

    The bound is convex and grows with r, so each end is where one falling function changes its sign.
    """
    if kept <= 0:
        return 0.0, math.inf
    middle = max(cut, 0) / kept
    low, above = 0.0, middle
    if cut > off(0.0):
        for _ in range(ROUNDS):
            ratio = (low + above) / 2
            low, above = (ratio, above) if cut - ratio * kept > off(ratio) else (low, ratio)
    high = middle + 1.0
    while ratio_holds(kept, cut, high, off):
        if high > FACTOR_MOST:
            return low, math.inf
        high *= 2
    below = middle
    for _ in range(ROUNDS):
        ratio = (below + high) / 2
        below, high = (ratio, high) if ratio_holds(kept, cut, ratio, off) else (below, ratio)
    return low, high


def ratio_holds(kept: int, cut: int, ratio: float, off: Callable[[float], float]) -> bool:
    """Whether a ratio is not too high for these totals."""
    return ratio * kept - cut <= off(ratio)


def _unmeasured(vector: Vector, index: int, plan: Plan, noisy: NoisyTable, confidence: Fraction) -> Anchor:
    """Return the anchor of a vector without totals: the public number of rows, or what is foreseen, or nothing."""
    if not plan.keys:  # one cell, whose cap is the tail cap: nothing up to it is cut
        return Anchor()
    share = min(max(vector.outlook.kept if vector.outlook is not None else 1.0, 1 / FACTOR_MOST), 1.0)
    if vector.kind == "rows" and plan.public_rows is not None and plan.where is None and plan.threshold is None:
        kept = sum(noisy.parts[index][0])
        # a list of groups need not hold all rows; where facts tell that it does not, the number of rows tells nothing
        if plan.public_rows * fine_per_step(vector) * Fraction(share) <= LIST_MOST * kept:
            return _of_public_rows(plan.public_rows, vector, plan.releases[index], kept, len(noisy.keys), confidence)
    return Anchor(foreseen=1 / share)


def _of_public_rows(
    rows: int, vector: Vector, release: NoisyRelease, kept: int, groups: int, confidence: Fraction
) -> Anchor:
    """Return the anchor where the number of rows is public and all groups are shown: what they add up to is known."""
    fine = fine_per_step(vector)
    off = sum_of_many(release, groups, confidence)
    if kept <= 2 * off:
        return Anchor(high=math.inf, public_total=rows)
    factor = max(Fraction(1), rows * fine / kept)
    whole = float(rows * fine)
    low, high = max(1.0, whole / (kept + off)), max(1.0, whole / (kept - off))
    return Anchor(factor, min(low, float(factor)), max(high, float(factor)), float(factor), None, rows)


def sum_of_many(release: NoisyRelease, groups: int, confidence: Fraction) -> float:
    """Return a bound on the sum of one noise for each group, in fine steps, by Chernoff's bound."""
    if groups <= 1:
        return float(law_bound(release.law, confidence))
    if groups <= 3 or release.summed == "gaussian":
        return weighted_bound(release.summed, release.scale, (1.0,) * groups, confidence)
    needed = math.log(2 / float(1 - confidence))
    slope = min(0.5, math.sqrt(needed / groups))
    return float(release.scale) * (needed - groups * math.log1p(-slope * slope)) / slope + groups
