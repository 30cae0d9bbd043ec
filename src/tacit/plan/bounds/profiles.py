"""Reading a profile: what a noisy histogram of people's sizes tells, as public numbers to plan with.

Everything here is post-processing of what was released and paid for. Floats are allowed: a cap that is read off a
profile is a public number like one that a person writes, and a wrong one makes an answer worse, nobody less protected.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, log, log2, sqrt

import numpy as np
from numpy.typing import NDArray

from tacit.plan.bounds.scaling import LARGEST_BINS, LARGEST_LEAST

Floats = NDArray[np.float64]

# The chance that noise alone makes the bin above the top believed. A false bin d octaves up has this chance times
# 2^(-FALSE_SLOPE d) and multiplies a cap by 2^d, so false bins add about 3 % to a cap on average.
FALSE_BIN = 0.03
FALSE_SLOPE = 2.0
# The fullest bin is where a profile begins if it has this many noise scales: noise alone has such a bin in a profile
# once in 10,000 profiles.
CLEAR = 13.0
# The same for the octaves of values, of which there are more. The side of 0 with fewer people must be clearer still, or
# be near the other: a side without anyone would otherwise stretch the grid by tens of octaves once in 6,000 profiles.
CLEAR_VALUES = 13.0
CLEAR_LESSER = 22.0
# Few people are in no one bin, but together in neighbouring ones: so many bins are believed from so many noise scales
# on, as noise alone has them in 3 of 1,000 profiles, and from more for each octave that they are higher.
SPREAD_BINS = 8
SPREAD_CLEAR, SPREAD_SLOPE = 12.0, 2.0
# Of them, the highest from which on there are clearly people: so many standard deviations of noise, and noise scales.
SPREAD_TAIL, SPREAD_TAIL_LEAST = 1.9, 1.0
# Who is seen so dimly may well have some octaves more.
SPREAD_MORE = 4.0
# Inside a bin people are spread evenly by the logarithm of their size, over this many points.
POINTS = 16
# A tail that falls by less than 10 an octave, and does not rise before, goes on beyond its top: its cap is this many
# times the top's upper edge. It is more if the two octaves above have so many noise scales of people, though neither is
# believed, and less if they have hardly any.
SLOW_LEAST = 0.1
RISING_MOST = 1.2
GOES_ON, GOES_FAR, GOES_SHORT = 2.0, 3.0, 1.5
FAR_FROM, SHORT_BELOW = 3.0, 1.0
# But where the octave above has so many noise scales of people fewer than the tail would bring there, it has ended.
ENDED_FROM = 8.0
# How a tail goes on beyond what was seen, for one octave: by its last ratio, within these.
RATIO_LEAST, RATIO_MOST = 0.05, 0.5
# A range that is learned reaches at most this many octaves beyond the last one that is believed.
STRETCH_MOST = 4
# Instead of nobody, so that every profile has a mass.
NOBODY = 1e-9
# At most about this many noise scales of people are in a bin and not seen.
UNSEEN = 3.0


@dataclass(frozen=True)
class Reading:
    """What a profile tells: about how many people have which size, up to the highest bin that is believed."""

    people: tuple[float, ...]  # in each bin up to the top; one more, not seen, where the tail is expected to go on
    top: int | None  # the highest bin believed; None: no bin is
    scale: float  # of the noise, in people
    shift: int  # a step is 2^shift fine steps, in which bins are counted
    whole: bool  # of counts: nobody has less than one step
    safe: float = 1.0  # the cap where nothing is believed, in steps
    is_total: bool = False  # the L1 norm: of counts, it is a whole number of steps
    dim: float | None = None  # where no bin by itself is clear of noise: how many people may be above the top at most
    goes_on: float = 1.0  # how many times the upper edge of the top the tail is taken to reach
    ceiling: float | None = None  # the size, in steps, that nobody exceeds by what is known of more rows

    @property
    def unseen(self) -> float:
        """How many people may be above the top and not be seen, at most."""
        return UNSEEN * self.scale if self.dim is None else self.dim

    @property
    def tail_cap(self) -> float:
        """The size, in steps, that nobody is believed to exceed; a safe one where nothing is believed."""
        if self.top is None:
            return self.safe
        end = 2.0 ** (self.top + 1 - self.shift) * self.goes_on
        end = max(end - 1, 1.0) if self.whole and self.is_total else end  # the last whole number below it
        return end if self.ceiling is None else min(end, self.ceiling)

    @property
    def count(self) -> float:
        """About how many people there are."""
        return sum(self.people)

    def points(self) -> tuple[Floats, Floats]:
        """Return sizes in steps, rising, and about how many people have each."""
        if self.top is None:
            return np.full(1, self.safe), np.full(1, NOBODY)
        within = (np.arange(POINTS) + 0.5) / POINTS
        sizes = np.exp2(np.arange(len(self.people))[:, None] + within[None, :] - self.shift)
        if self.whole:  # between 1 and 2 there is only 1
            sizes[: self.shift + 1] = 1.0
            sizes = np.floor(sizes) if self.is_total else sizes
        weights = np.repeat(np.array(self.people) / POINTS, POINTS)
        return sizes.ravel(), np.maximum(weights, NOBODY)


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
    start = shift if whole else min(max(shift + floor(log2(max(safe, 1.0))), 0), len(counts) - 1)
    top, dim = believed_top(counts, scale, start=start), None
    spread = spread_top(counts, scale, start) if max(counts) <= CLEAR * scale else None
    if top is None or (spread is not None and spread > top):
        top = spread
        above = range(start if top is None else top + 1, len(counts))[: 2 * SPREAD_BINS]
        dim = max(people_most(rounds, above), UNSEEN * scale)
    if top is None:
        return Reading((), None, scale, shift, whole, safe, is_total, dim)
    least = shift if whole else 0  # nobody has less than one step, whatever the noise says
    people = [max(count, 0.0) if place >= least else 0.0 for place, count in enumerate(counts[: top + 1])]
    found = [*counts[top + 1 : top + 3], 0.0, 0.0]
    beyond = _foreseen(people, top, scale, found[0])
    goes_on = _goes_on(people, top, scale, found[0], found[1]) if dim is None else SPREAD_MORE
    people = [*people, *([beyond] if beyond else [])]
    read = Reading(tuple(people), top, scale, shift, whole, safe, is_total, dim, goes_on)
    return read if whole else _from_one_value(read)


def _from_one_value(reading: Reading) -> Reading:
    """Return a reading of sums whose tail cap is at least one large value, where that may be most of what people have.

    Of a column that is nearly always its centre, everyone is seen near 0 and those who have a value are too few for any
    bin: with one each they may have more together than all who are seen.
    """
    sizes, people = reading.points()
    if reading.unseen * reading.safe <= float(np.sum(sizes * people)):
        return reading
    return replace(reading, goes_on=reading.goes_on * max(1.0, reading.safe / reading.tail_cap))


def below(reading: Reading, wider: Reading) -> Reading:
    """Return a reading without the sizes that nobody has by a profile of the same people with more rows.

    To leave rows out, or to group them, makes no one's count larger: a bin above all of those is noise.
    """
    if reading.top is None or wider.top is None or wider.tail_cap >= reading.tail_cap:
        return reading
    top = min(reading.top, floor(log2(wider.tail_cap)) + reading.shift)
    people = reading.people[: top + 1]
    return replace(reading, people=people, top=top, ceiling=wider.tail_cap, dim=min(reading.unseen, wider.unseen))


def people_above(
    rounds: Sequence[tuple[Sequence[int], float]], size: float, reading: Reading
) -> tuple[float, float] | None:
    """Return how many people are above a size, in steps, at least and at most, but for one time in 20.

    A bin tells of its edges only. Where nothing is believed there is nothing to tell.
    """
    if reading.top is None or size <= 0:
        return None
    counts, scale = combined_rounds(rounds)
    from_here = floor(size + 1) if reading.whole and reading.is_total else size  # the next whole number, or any above
    edge = log2(from_here) + reading.shift
    bins = [range(max(0, place), reading.top + 1) for place in (ceil(edge), floor(edge))]
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


def believed_top(counts: Sequence[float], scale: float, *, start: int = 0, clear: float = CLEAR) -> int | None:
    """Return the highest bin in which people are believed to be, or None.

    The search begins at the fullest bin if it is clear of noise, else at `start`, and goes up. The farther above the
    last believed bin, the more people a bin must have.
    """
    fullest = max(range(len(counts)), key=lambda place: counts[place])
    top = fullest if counts[fullest] > clear * scale else None
    for place in range(start if top is None else top + 1, len(counts)):
        distance = place - (start if top is None else top)
        if counts[place] > scale * (log(1 / (2 * FALSE_BIN)) + FALSE_SLOPE * log(2) * distance):
            top = place
    return top


def spread_top(counts: Sequence[float], scale: float, start: int) -> int | None:
    """Return the highest bin in which people are, where they are believed together, of neighbouring bins; or None."""
    for first in range(start, len(counts) - SPREAD_BINS + 1):
        end = first + SPREAD_BINS
        if sum(counts[first:end]) > scale * (SPREAD_CLEAR + SPREAD_SLOPE * (first - start)):
            clear = [
                place
                for place in range(first, end)
                if sum(counts[place:end]) > scale * (SPREAD_TAIL_LEAST + SPREAD_TAIL * sqrt(2 * (end - place)))
            ]
            return max(clear, default=first)
    return None


def people_most(rounds: Sequence[tuple[Sequence[int], float]], bins: range) -> float:
    """Return how many people there are in these bins at most, but for one time in 40."""
    counts, scale = combined_rounds(rounds)
    return sum(counts[place] for place in bins) + 2 * scale * sqrt(2 * len(bins))


@dataclass(frozen=True)
class Span:
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
def span_of(rounds: tuple[tuple[tuple[int, ...], float], ...], *, whole: bool = False, from_one: bool = False) -> Span:
    """Return how far values go on either side, from rounds of a profile of the largest values.

    Where one side has no bin that is clear of noise, its bins are believed by their distance from the other side's. Or,
    where no side has any, upwards `from_one`: of whole numbers few may be another number than 0, and the next is 1. The
    last bin of each side, which has the infinite values, is not believed: a grid for them would be of no use to others.
    """
    counts, scale = combined_rounds(rounds)
    half = LARGEST_BINS // 2 - 1
    sides = [counts[:half], counts[half + 1 : 2 * half + 1]]
    tops = [believed_top(side, scale, start=half, clear=CLEAR_VALUES) for side in sides]
    fullest = [max(range(half), key=lambda place: side[place]) for side in sides]
    most = [side[place] for side, place in zip(sides, fullest, strict=True)]
    greater = 0 if most[0] >= most[1] else 1
    clear = [most[side] > (CLEAR_VALUES if side == greater else CLEAR_LESSER) * scale for side in (0, 1)]
    if not any(clear):
        if not from_one:
            return Span(None, None, whole)
        up, down = (believed_top(side, scale, start=-LARGEST_LEAST, clear=CLEAR_VALUES) for side in sides)
        return Span(_octave(up), _octave(down), whole)
    for side in (0, 1):
        if not clear[side]:
            tops[side] = _near(sides[side], scale, fullest[1 - side])
    return Span(_octave(tops[0]), _octave(tops[1]), whole)


def people_beyond(rounds: Sequence[tuple[Sequence[int], float]]) -> float | None:
    """Return about how many people are in the last bin of either side, of which no range is made; None if hardly any.

    Noise alone makes it tell of somebody once in 10^5 profiles.
    """
    counts, scale = combined_rounds(rounds)
    half = LARGEST_BINS // 2 - 1
    people = counts[half] + counts[2 * half + 1]
    return people if people > CLEAR_VALUES * scale else None


def _octave(place: int | None) -> int | None:
    return None if place is None else place + LARGEST_LEAST


def stretched(rounds: Sequence[tuple[Sequence[int], float]], span: Span, *, width: float, cells: float) -> Span:
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
    return Span(ends[0], ends[1], span.whole)


def _stretched_end(counts: Sequence[float], top: int, scale: float, width: float, cells: float) -> int:
    """Return the octave that a side's range should end with: from the last one believed on, that of least error."""
    if top < 1 or counts[top] > counts[top - 1]:
        return top
    ratio = min(max(counts[top] / counts[top - 1], RATIO_LEAST), RATIO_MOST)
    sizes = np.exp2(np.arange(1, STRETCH_MOST + 1) + top + LARGEST_LEAST)
    found = np.array([*counts[top + 1 : top + 1 + STRETCH_MOST], *([0.0] * STRETCH_MOST)])[:STRETCH_MOST]
    falling = np.cumsum(np.arange(1, STRETCH_MOST + 1))  # from octave to octave it falls more
    if counts[top] * ratio > found[0] + ENDED_FROM * scale:  # they would have been seen
        return top
    people = np.minimum(counts[top] * ratio**falling, np.maximum(found, 0) + scale)
    have = sizes / log(2)  # on average, spread evenly by the logarithm over an octave
    ends = (sizes[0], *(2 * sizes))
    errors = [end * width + float(np.sum(people * np.maximum(have - end, 0))) / cells for end in ends]
    return min(top + int(np.argmin(errors)), len(counts) - 1)


def _near(counts: Sequence[float], scale: float, start: int) -> int | None:
    """Return the highest bin that is believed by its distance from `start`, on either side of it."""
    return max(
        (
            place
            for place, count in enumerate(counts)
            if count > scale * (log(1 / (2 * FALSE_BIN)) + FALSE_SLOPE * log(2) * abs(place - start))
        ),
        default=None,
    )


def _goes_on(people: Sequence[float], top: int, scale: float, above: float, after: float) -> float:
    """Return how far beyond the top's upper edge a tail is taken to reach, in times of it.

    `above` and `after` are how many people were found in the two octaves above the top, with noise.
    """
    if top < 2:
        return 1.0
    before, last, at_top = people[top - 2 : top + 1]
    if not 0 < SLOW_LEAST * last <= at_top <= last <= RISING_MOST * before:
        return 1.0
    fall = at_top / last
    steeper = min(1.0, fall / min(1.0, last / before))  # a tail that falls ever faster goes on to
    if at_top * fall * steeper > above + ENDED_FROM * scale:
        return 1.0
    seen = (above + after) / scale
    return GOES_FAR if seen > FAR_FROM else GOES_SHORT if seen < SHORT_BELOW else GOES_ON


def _foreseen(people: Sequence[float], top: int, scale: float, found: float) -> float:
    """Return about how many people are in the octave above the top, where the tail is expected to go on; else 0.

    That is not many more than were `found` there, with noise.
    """
    if top < 1 or people[top] > people[top - 1]:
        return 0.0
    ratio = min(max(people[top] / max(people[top - 1], 1e-9), RATIO_LEAST), RATIO_MOST)
    expected = min(people[top] * ratio, scale * (log(1 / (2 * FALSE_BIN)) + log(2)), max(found, 0.0) + scale)
    return expected if expected >= 0.3 else 0.0
