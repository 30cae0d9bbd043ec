"""What scaling left of a vector in the whole table and what it took, as measured: by which factor groups are corrected.

Everything here is post-processing of noisy totals by public facts (docs/proofs/corrected.md). The factor is an exact
fraction, so that corrected counts are the same numbers everywhere; its interval and all that is for error bars is in
floats, rounded outwards.

What a cap leaves out of a group at most: the part of an interval that is foreseen, beside the noise.

People count with at most the cap. What all of them have beyond it is foreseen from the profile, with doubt
(`Outlook.lost_most`), or measured by totals. How it is spread over groups is not known: people with many rows may be in
one group. A group may lack its share of rows of it, and more if groups are few. This is a convention that held on many
tables, not a theorem (docs/proofs/corrected.md).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tacit.answer.noise_sums import law_bound, weighted_bound
from tacit.numbers import Floats
from tacit.plan import FEW_CELLS, UNEVENLY, NoisyRelease, Plan, Vector
from tacit.release import NoisyTable

# What was kept is taken to be at least this number of scales of its noise, which it exceeds except one time in 20.
FLOOR_SCALES = math.log(20)
# A factor that may be larger than this is as good as unknown.
FACTOR_MOST = 1e9
# Ends of a factor are found to this part of them.
ROUNDS, NARROW = 120, 1e-12


@dataclass(frozen=True)
class Totals:
    """The noisy totals of a vector, kept and cut, in its own steps, each within `error` at the stated confidence."""

    kept: float
    cut: float
    error: float
    total_error: float  # of the two added up


@dataclass(frozen=True)
class Anchor:
    """By which factor what was kept of a vector is scaled up, and what the factor may be instead."""

    factor: Fraction = Fraction(1)
    low: float = 1.0
    high: float = 1.0  # math.inf where the totals are too small to tell
    totals: Totals | None = None
    public_total: int | None = None

    @property
    def cut_most(self) -> float:
        """The most that can have been cut from any one group, in steps: all that was cut from all of them."""
        return math.inf if self.totals is None else max(self.totals.cut, 0.0) + self.totals.error


def vectors_of(plan: Plan) -> tuple[Vector, ...]:
    return () if plan.scaling is None else plan.scaling.vectors


def fine_per_step(vector: Vector) -> Fraction:
    """Return how many fine steps a step of the vector is."""
    return Fraction(2) ** vector.shift


def anchors(plan: Plan, noisy: NoisyTable, confidence: Fraction) -> tuple[Anchor, ...]:
    """Return the anchor of each of the vectors of a plan that scales."""
    found = []
    for index, vector in enumerate(vectors_of(plan)):
        measured = totals_index(plan, index)
        if measured is not None:
            kept, cut = noisy.totals[measured]
            found.append(measured_anchor(vector, plan.totals[measured], kept, cut, confidence))
        else:
            found.append(_unmeasured(vector, index, plan, noisy, confidence))
    return tuple(found)


def totals_index(plan: Plan, index: int) -> int | None:
    """Return which release of totals belongs to a vector; None without totals."""
    for place, release in enumerate(plan.totals):
        if release.parts[0].index == (index,):
            return place
    return None


def measured_anchor(vector: Vector, release: NoisyRelease, kept: int, cut: int, confidence: Fraction) -> Anchor:
    """Return the anchor from noisy totals, which are in units of 2^tail_shift fine steps."""
    floor = math.ceil(FLOOR_SCALES * float(release.scale))
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
    return Anchor(factor, min(1 + low, float(factor)), max(high, float(factor)), totals)


def _within_facts(vector: Vector, factor: float, high: float) -> float:
    """Return the upper end of a factor: where the totals tell little, no more is cut than facts foretell at most."""
    outlook = vector.outlook
    if high <= 2 * factor or outlook is None or outlook.mass <= 0 or outlook.kept <= 0:
        return high
    return min(high, max(2 * factor, 1 + 2 * (1 / min(outlook.kept, 1.0) - 1)))


def _ratio_ends(kept: int, cut: int, off: Callable[[float], float]) -> tuple[float, float]:
    """Return all ratios r >= 0 of cut to kept for which |cut - r * kept| is within its own bound (Fieller).

    The bound is convex and grows with r, so each end is where one falling function changes its sign.
    """
    if kept <= 0:
        return 0.0, math.inf
    middle = max(cut, 0) / kept
    low, high = 0.0, middle + 1.0
    if cut > off(0.0):
        low, _ = _narrowed(lambda ratio: cut - ratio * kept - off(ratio), 0.0, middle)
    while off(high) >= high * kept - cut:
        if high > FACTOR_MOST:
            return low, math.inf
        high *= 2
    return low, _narrowed(lambda ratio: off(ratio) - (ratio * kept - cut), middle, high)[1]


def _narrowed(excess: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """Return two ratios close to each other, `excess` not negative at the first and not positive at the second.

    It falls from `low` to `high`, nearly on a straight line: by false position, with a bisection every third step.
    """
    at_low, at_high = excess(low), excess(high)
    if at_low <= 0:
        return low, low
    for step in range(ROUNDS):
        if high - low <= NARROW * high or at_low <= at_high:
            break
        ratio = (low * at_high - high * at_low) / (at_high - at_low)
        # a little to either side in turn, so that both ends close in
        ratio += (NARROW if step % 2 else -NARROW) * high / 4
        if step % 3 == 2 or not low < ratio < high:
            ratio = (low + high) / 2
        found = excess(ratio)
        low, at_low, high, at_high = (ratio, found, high, at_high) if found > 0 else (low, at_low, ratio, found)
    return low, high


def _unmeasured(vector: Vector, index: int, plan: Plan, noisy: NoisyTable, confidence: Fraction) -> Anchor:
    """Return the anchor of a vector without totals: the public number of rows, or what is foreseen, or nothing."""
    if not plan.keys:  # one cell, whose cap is the tail cap: nothing up to it is cut
        return Anchor()
    share = min(max(vector.outlook.kept if vector.outlook is not None else 1.0, 1 / FACTOR_MOST), 1.0)
    if vector.kind == "rows" and plan.public_rows is not None and plan.where is None:
        kept = sum(noisy.parts[index][0])
        # a list of groups need not hold all rows; where facts tell that it does not, the number of rows tells nothing
        if plan.public_rows * fine_per_step(vector) * Fraction(share) <= 2 * kept:
            return _of_public_rows(plan.public_rows, vector, plan.releases[index], kept, len(noisy.keys), confidence)
    return Anchor()


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
    return Anchor(factor, min(low, float(factor)), max(high, float(factor)), None, rows)


def sum_of_many(release: NoisyRelease, groups: int, confidence: Fraction) -> float:
    """Return a bound on the sum of one noise for each group, in fine steps, by Chernoff's bound."""
    if groups <= 1:
        return float(law_bound(release.law, confidence))
    if groups <= 3 or release.summed == "gaussian":
        return weighted_bound(release.summed, release.scale, (1.0,) * groups, confidence)
    needed = math.log(2 / float(1 - confidence))
    slope = min(0.5, math.sqrt(needed / groups))
    return float(release.scale) * (needed - groups * math.log1p(-slope * slope)) / slope + groups


def most_missing(vector: Vector, anchor: Anchor) -> float:
    """Return how much the cap takes from all groups together at most, in steps: as measured, or as foreseen."""
    outlook = vector.outlook
    if anchor.totals is not None:
        beyond = 0.0 if outlook is None else outlook.excess_most
        return max(anchor.totals.cut, 0.0) + math.hypot(anchor.totals.error, beyond)
    if outlook is None:
        known = anchor.public_total is not None and math.isfinite(anchor.high)
        return anchor.public_total * (1 - 1 / anchor.high) if known and anchor.public_total is not None else 0.0
    return outlook.lost_most


def most_of_groups(shares: Floats, part: float = 1.0) -> Floats:
    """Return which part of all that is missing each group may lack: its share, and more, as it may be spread unevenly.

    Of a mean only a `part` of that counts. No group lacks more than all.
    """
    groups = max(len(shares), 1)  # over more than a few, people with many rows are spread more evenly
    return np.minimum(1.0, part * (shares + UNEVENLY * min(1.0, FEW_CELLS / groups) / math.sqrt(groups)))


def shares_of(amounts: Floats, noise: float) -> Floats:
    """Return the share of each group by its noisy amount; groups are taken to have at least the noise."""
    least = np.abs(amounts) + max(noise, 1e-300)
    return np.asarray(least / np.sum(least)) if len(least) else least
