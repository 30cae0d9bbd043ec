"""Reading a profile: what a noisy histogram of people's sizes tells, as public numbers to plan with.

Everything here is post-processing of what was released and paid for. Floats are allowed: a cap that is read off a
profile is a public number like one that a person writes, and a wrong one makes an answer worse, nobody less protected.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from math import comb, exp, factorial, hypot, log, sqrt

import numpy as np

from tacit.numbers import Floats
from tacit.plan.bounds.chosen import FALSE_BIN, FALSE_OCTAVE, FALSE_SLOPE, HIDDEN_SCALES, LOST_MORE
from tacit.plan.bounds.scaling import BINS, LARGEST_BINS, LARGEST_LEAST
from tacit.plan.bounds.tails import UNSEEN, foreseen

# So many neighbouring bins above the top are believed together. The noise on their sum is then above their threshold
# with the probability FALSE_BIN; each octave between the top and the first of them makes it smaller, by FALSE_SLOPE.
WINDOWS = (1, 2, 4, 8)
# Bins are read together for this number of octaves on either side of the highest one that is believed.
TAIL_OCTAVES = 8
# A range of values goes on for at most this number of octaves beyond the last one that is believed.
STRETCH_MOST = 4
# Inside a bin people are spread evenly by the logarithm of their size, over this many points.
POINTS = 8
# Instead of nobody, so that every profile has a mass.
NOBODY = 1e-9
# A size that was computed is the whole number that it is so near to: the square of a root of 3 is 3.
ROUNDING = 1e-9

# The upper ends of the bins of lengths, in fine steps.
ENDS: Floats = np.array([float(int(2.0 ** (place // 2) * (2.0 if place % 2 else 1.5))) for place in range(BINS)])


@dataclass(frozen=True)
class Reading:
    """About how many people have which size: as counted up to the highest bin that is believed, foreseen beyond it."""

    people: tuple[float, ...]  # in each bin
    top: int | None  # the highest bin believed; None: no bin is
    scale: float  # of the noise, in people
    shift: int  # a step is 2^shift fine steps, in which bins are counted
    whole: bool  # of counts: nobody has less than one step
    safe: float = 1.0  # the cap where nothing is believed, in steps
    is_total: bool = False  # the L1 norm: of counts, it is a whole number of steps
    ceiling: float | None = None  # the size, in steps, that nobody exceeds by what is known of more rows
    floor: float = 0.0  # the tail cap is at least this size, in steps

    @property
    def unseen(self) -> float:
        """How many people may be above the top and not be seen, at most."""
        return 0.0 if self.ceiling is not None else UNSEEN * self.scale

    @property
    def count(self) -> float:
        """About how many people there are."""
        return sum(self.people)

    def ends(self) -> Floats:
        """Return the largest size of each bin, in steps: the caps that are worth trying."""
        ends = ENDS[: len(self.people)] * 2.0**-self.shift
        if self.whole:
            ends = np.maximum(np.floor(ends) if self.is_total else np.sqrt(np.floor(ends**2 * (1 + ROUNDING))), 1.0)
        return ends if self.ceiling is None else np.minimum(ends, self.ceiling)

    def hidden(self, size: float) -> float:
        """Return how many people above a size noise may hide."""
        is_limit = self.ceiling is not None and size * (1 + ROUNDING) >= self.ceiling
        return 0.0 if is_limit else HIDDEN_SCALES * self.scale

    @cached_property
    def tail_cap(self) -> float:
        """The size, in steps, beyond which people have little; a safe one where nothing is believed."""
        if self.top is None:
            return self.safe
        sizes, people = self.points()
        each = min(self.scale, 1.0)  # about one person of this size; without noise none
        costs = [each * end + float(people @ np.maximum(sizes - end, 0)) for end in self.ends().tolist()]
        end = max(float(self.ends()[int(np.argmin(costs))]), self.floor)
        return end if self.ceiling is None else min(end, self.ceiling)

    def points(self) -> tuple[Floats, Floats]:
        """Return sizes in steps, rising, and about how many people have each: POINTS for each bin."""
        if self.top is None:
            return np.full(1, self.safe), np.full(1, NOBODY)
        ends = ENDS[: len(self.people)] * 2.0**-self.shift
        lows = np.concatenate([ends[:1] / 2, ends[:-1]])
        within = (np.arange(POINTS) + 0.5) / POINTS
        sizes = lows[:, None] * (ends / lows)[:, None] ** within[None, :]
        if self.whole:  # totals are whole numbers, from 1 on, and lengths are roots of such
            rounded = np.ceil(sizes) if self.is_total else np.sqrt(np.ceil(sizes**2 * (1 - ROUNDING)))
            sizes = np.maximum(np.minimum(rounded, self.ends()[:, None]), 1.0)
        sizes = sizes if self.ceiling is None else np.minimum(sizes, self.ceiling)
        return sizes.ravel(), np.maximum(np.repeat(np.array(self.people) / POINTS, POINTS), NOBODY)


def read_profile(
    rounds: Sequence[tuple[Sequence[int], float]],
    *,
    shift: int,
    whole: bool,
    safe: float = 1.0,
    is_total: bool = False,
) -> Reading:
    """Return what rounds of one profile tell, each given as its noisy bins and the scale of their noise."""
    counts, scale = combined_rounds(rounds)
    # of sums, people are looked for from the size of one large value on: far below it any bin that is full is noise
    least = bin_of(2.0**shift)
    start = least if whole else min(bin_of(max(safe, 1.0) * 2.0**shift), len(counts) - 1)
    top = believed_bin(counts, scale, start)
    if top is None:
        return Reading((), None, scale, shift, whole, safe, is_total)
    first = max(least if whole else 0, top - 2 * TAIL_OCTAVES)
    bins = min(top + 1 + 2 * TAIL_OCTAVES, len(counts))
    means = foreseen(tuple(counts[:bins]), scale, first=first, start=max(start, top))
    people = [max(count, 0.0) if place >= least or not whole else 0.0 for place, count in enumerate(counts[:first])]
    people += means.tolist()[first:]
    while len(people) > top + 1 and people[-1] < 0.01:
        people.pop()
    read = Reading(tuple(people), top, scale, shift, whole, safe, is_total)
    return read if whole else _from_one_value(read)


def bin_of(size: float) -> int:
    """Return the bin of a length in fine steps."""
    return min(int(np.searchsorted(ENDS, size * (1 - ROUNDING))), BINS - 1)


@cache
def above_noise(bins: int, probability: float) -> float:
    """Return the sum, in noise scales, above which the Laplace noise on this number of bins is with this probability.

    The sum is the difference of two gamma variables of this shape, whose tail is a polynomial times an exponential.

    >>> round(above_noise(1, 0.5), 6), round(above_noise(1, 0.05 / 2), 3)
    (0.0, 2.996)
    """

    def tail(size: float) -> float:
        terms = (
            comb(power, at) * size ** (power - at) * factorial(bins + at - 1) / 2 ** (bins + at) / factorial(power)
            for power in range(bins)
            for at in range(power + 1)
        )
        return float(exp(-size) * sum(terms) / factorial(bins - 1))

    low, high = 0.0, 2.0 * bins - 2 * log(probability)
    while high - low > ROUNDING:
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle) > probability else (low, middle)
    return high


def believed_bin(counts: Sequence[float], scale: float, start: int) -> int | None:
    """Return the highest bin in which people are believed to be, or None.

    The search begins at the fullest bin if it is clear of noise, else at `start`, and goes up: neighbouring bins are
    believed together if they have enough people, and the fullest of them is the new top.
    """
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    fullest = int(np.argmax(counts))
    top = fullest if counts[fullest] > above_noise(1, FALSE_BIN / BINS) * scale else None
    while (higher := _higher(counts, sums, scale, start - 1 if top is None else top)) is not None:
        top = higher
    return top


def _higher(counts: Sequence[float], sums: Floats, scale: float, top: int) -> int | None:
    for width in WINDOWS:
        firsts = np.arange(top + 1, len(counts) - width + 1)
        least = above_noise(width, FALSE_BIN) + FALSE_SLOPE * log(2) * (firsts - top) / 2
        found = np.flatnonzero(sums[firsts + width] - sums[firsts] > scale * least)
        if len(found):
            first = int(firsts[found[0]])
            return first + int(np.argmax(counts[first : first + width]))
    return None


def _from_one_value(reading: Reading) -> Reading:
    """Return a reading of sums whose tail cap is at least one large value, where that may be most of what people have.

    Of a column that is nearly always its centre, everyone is seen near 0 and those who have a value are too few for any
    bin: with one each they may have more together than all who are seen.
    """
    sizes, people = reading.points()
    is_most = reading.unseen * reading.safe > float(people @ sizes)
    return replace(reading, floor=reading.safe) if is_most else reading


def below(reading: Reading, wider: Reading) -> Reading:
    """Return a reading without the sizes that nobody has by a profile of the same people with more rows.

    To leave rows out, or to group them, makes no one's count larger: a bin above all of those is noise.
    """
    if wider.top is None:
        return reading
    return at_most(reading, float(wider.ends()[-1]))


def at_most(reading: Reading, size: float) -> Reading:
    """Return a reading without the sizes, in steps, above one that no person exceeds: nobody is beyond it."""
    if reading.top is None or size > float(reading.ends()[-1]):
        return reading
    last = bin_of(size * 2.0**reading.shift)
    return replace(reading, people=reading.people[: last + 1], top=min(reading.top, last), ceiling=size)


def clipped(reading: Reading, size: float) -> Reading:
    """Return a reading in which every larger size, in steps, counts as this one: the rest is public, and left out."""
    lower = at_most(reading, size)
    if lower.top is None or len(lower.people) == len(reading.people):
        return lower
    *people, last = lower.people
    return replace(lower, people=(*people, last + sum(reading.people[len(lower.people) :])))


def people_above(
    rounds: Sequence[tuple[Sequence[int], float]], size: float, reading: Reading
) -> tuple[float, float] | None:
    """Return how many people are above a size, in steps, at least and at most, except for one time in 20.

    Who has exactly this size is not above it. A bin tells of its ends only. Where nothing is believed there is nothing
    to tell.
    """
    if reading.top is None or size <= 0:
        return None
    if reading.ceiling is not None and size * (1 + ROUNDING) >= reading.ceiling:
        return 0.0, 0.0
    counts, scale = combined_rounds(rounds)
    fine = size * 2.0**reading.shift
    at = bin_of(fine)
    in_part = at if fine < ENDS[at] * (1 - ROUNDING) else at + 1
    bins = [range(first, max(reading.top + 1, first)) for first in (at + 1, in_part)]
    least, most = (sum(counts[place] for place in each) for each in bins)
    off = [2 * scale * sqrt(2 * max(len(each), 1)) for each in bins]
    return max(least - off[0], 0.0), max(most + off[1], 0.0) + reading.unseen


def combined_rounds(rounds: Sequence[tuple[Sequence[int], float]]) -> tuple[list[float], float]:
    """Return the mean of several noisy histograms of the same people, each counted by its precision, and its scale."""
    if len(rounds) == 1:
        return list(map(float, rounds[0][0])), rounds[0][1]
    precisions = [1 / max(scale, 1e-9) ** 2 for _, scale in rounds]
    total = sum(precisions)
    counts = np.array([bins for bins, _ in rounds], dtype=float)
    weighted = np.array(precisions) @ counts
    return list(map(float, weighted / total)), 1 / sqrt(total)


def believed_octave(counts: Sequence[float], scale: float, *, start: int, top: int | None = None) -> int | None:
    """Return the highest octave of values in which people are believed to be, from the top or else from `start` up.

    The farther above the last believed one, the more people an octave must have.
    """
    for place in range(start if top is None else top + 1, len(counts)):
        if counts[place] > scale * _octave_least(place - (start if top is None else top)):
            top = place
    return top


def _octave_least(distance: int) -> float:
    """Return from how many noise scales of people on an octave is believed, so far from one that is."""
    return above_noise(1, FALSE_OCTAVE) + FALSE_SLOPE * log(2) * distance


@dataclass(frozen=True)
class BelievedSpan:
    """How far values are believed to go: the highest octave of those above 0 and of those below; None: none are."""

    up: int | None
    down: int | None
    whole: bool = False  # of whole numbers: the last one of an octave is its end less 1

    @property
    def top(self) -> int | None:
        """The highest octave of either."""
        return max((end for end in (self.up, self.down) if end is not None), default=None)

    @property
    def range(self) -> tuple[Fraction, Fraction]:
        """The range that holds all believed values, 0 included."""
        less = 1 if self.whole else 0
        low, high = (Fraction(0) if end is None else Fraction(2) ** (end + 1) - less for end in (self.down, self.up))
        return -low, high


@lru_cache(maxsize=256)
def span_of(
    rounds: tuple[tuple[tuple[int, ...], float], ...], *, whole: bool = False, from_one: bool = False
) -> BelievedSpan:
    """Return how far values go on either side, from rounds of a profile of the largest values.

    The side with the fullest bin is believed from there up if that is clear of noise; the other one by the distance
    from it. Or, where no side has any, upwards `from_one`: of whole numbers few may be another number than 0, and the
    next is 1. The last bin of each side, which has the infinite values, is not believed: a grid for them would be of no
    use to others.
    """
    counts, scale = combined_rounds(rounds)
    half = LARGEST_BINS // 2 - 1
    sides = [counts[:half], counts[half + 1 : 2 * half + 1]]
    fullest = [max(range(half), key=lambda place: side[place]) for side in sides]
    greater = max((0, 1), key=lambda side: sides[side][fullest[side]])
    start = fullest[greater]
    if sides[greater][start] <= _clear(scale):
        if not from_one:
            return BelievedSpan(None, None, whole)
        up, down = (believed_octave(side, scale, start=-LARGEST_LEAST) for side in sides)
        return BelievedSpan(_octave(up), _octave(down), whole)
    tops = [
        believed_octave(side, scale, start=half, top=start if place == greater else _near(side, scale, start))
        for place, side in enumerate(sides)
    ]
    return BelievedSpan(_octave(tops[0]), _octave(tops[1]), whole)


def _clear(scale: float) -> float:
    """Return how many people a bin of values has at least if it is believed wherever it is."""
    return above_noise(1, FALSE_BIN / LARGEST_BINS) * scale


def people_beyond(rounds: Sequence[tuple[Sequence[int], float]]) -> float | None:
    """Return about how many people are in the last bin of either side, of which no range is made; None if hardly any.

    Noise alone makes it tell of somebody once in 10^6 profiles.
    """
    counts, scale = combined_rounds(rounds)
    half = LARGEST_BINS // 2 - 1
    people = counts[half] + counts[2 * half + 1]
    return people if people > _clear(scale) else None


def _octave(place: int | None) -> int | None:
    return None if place is None else place + LARGEST_LEAST


def stretched(
    rounds: Sequence[tuple[Sequence[int], float]], span: BelievedSpan, *, width: float, cells: float
) -> BelievedSpan:
    """Return a span that goes on as far as its tail is expected to, where that costs less than it mends.

    A number held at the end of its range is lost beyond it. A range twice as wide has twice the noise. `width` is the
    mean noise on a group's number for a range of 1, `cells` how many groups share what is lost.
    """
    counts, scale = combined_rounds(rounds)
    half = LARGEST_BINS // 2 - 1
    sides = (counts[:half], counts[half + 1 : 2 * half + 1])
    ends = [
        end if end is None else _stretched_end(side, end - LARGEST_LEAST, scale, width, cells) + LARGEST_LEAST
        for side, end in zip(sides, (span.up, span.down), strict=True)
    ]
    return BelievedSpan(ends[0], ends[1], span.whole)


def _stretched_end(counts: Sequence[float], top: int, scale: float, width: float, cells: float) -> int:
    """Return the octave that a side's range should end with: from the last one believed on, that of least error."""
    people, sizes = _people_above(counts, top, scale)
    ends = np.exp2(top + 1 + LARGEST_LEAST + np.arange(len(people) + 1)).tolist()
    errors = [end * width + float(np.sum(people * np.maximum(sizes - end, 0))) / cells for end in ends]
    return min(top + int(np.argmin(errors)), len(counts) - 1)


def _people_above(
    counts: Sequence[float], top: int, scale: float, octaves: int = STRETCH_MOST
) -> tuple[Floats, Floats]:
    """Return about how many people are in each octave above one, and the mean size of each."""
    bins = slice(0, min(top + 1 + TAIL_OCTAVES, len(counts)))
    first = max(0, top - TAIL_OCTAVES)
    means = foreseen(tuple(counts[bins]), scale, first=first, start=top, per_octave=1)
    have = np.exp2(np.arange(len(means)) + LARGEST_LEAST) / log(2)  # spread evenly by the logarithm over an octave
    above = slice(top + 1, top + 1 + octaves)
    return means[above], have[above]


@dataclass(frozen=True)
class Beyond:
    """How much all people have beyond the ends of a learned range at most, and how much as squares about the middle."""

    down: float = 0.0
    up: float = 0.0
    squares: float = 0.0


def beyond(rounds: Sequence[tuple[Sequence[int], float]], down: float, up: float) -> Beyond:
    """Return what is beyond so far below and above the middle at most, from a profile of distances from it.

    That is more than is foreseen, and what people have whom noise hides: of squares, 8 times those of the end each.
    """
    counts, scale = combined_rounds(rounds)
    half, span = LARGEST_BINS // 2 - 1, span_of(tuple((tuple(bins), each) for bins, each in rounds))
    found, squares = list[float](), 0.0
    for side, top, end in (counts[half + 1 : 2 * half + 1], span.down, down), (counts[:half], span.up, up):
        missing = [HIDDEN_SCALES * scale * end, HIDDEN_SCALES * scale * end**2 * 7]
        if top is not None:  # a range holds what is believed, so only people above the last believed octave are beyond
            people, sizes = _people_above(side, top - LARGEST_LEAST, scale, TAIL_OCTAVES)
            for power in 1, 2:
                lost = float(people @ np.maximum(sizes**power - end**power, 0))
                missing[power - 1] = hypot(LOST_MORE * lost, missing[power - 1])
        found.append(missing[0])
        squares += missing[1]
    return Beyond(found[0], found[1], squares)


def _near(counts: Sequence[float], scale: float, start: int) -> int | None:
    """Return the highest bin that is believed by its distance from `start`, on either side of it."""
    near = (place for place, count in enumerate(counts) if count > scale * _octave_least(abs(place - start)))
    return max(near, default=None)
