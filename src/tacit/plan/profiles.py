"""Reading a profile: what a noisy histogram of people's sizes tells, as public numbers to plan with.

Everything here is post-processing of what was released and paid for. Floats are allowed: a cap that is read off a
profile is a public number like one that a person writes, and a wrong one makes an answer worse, nobody less protected.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from tacit.plan.scaling import LARGEST_BINS, LARGEST_LEAST

Floats = NDArray[np.float64]

# The chance that noise alone makes the bin above the top believed. A false bin d octaves up has this chance times
# 2^(-FALSE_SLOPE d) and multiplies a cap by 2^d, so false bins add less than a tenth to a cap on average.
FALSE_BIN = 0.03
FALSE_SLOPE = 1.5
# The fullest bin is where a profile begins if it has this many noise scales: noise alone has such a bin in a profile
# once in 10,000 profiles.
CLEAR = 13.0
# The same for the octaves of values, of which there are more. The side of 0 with fewer people must be clearer still, or
# be near the other: a side without anyone would otherwise stretch the grid by tens of octaves once in 6,000 profiles.
CLEAR_VALUES = 13.0
CLEAR_LESSER = 22.0
# Inside a bin people are spread evenly by the logarithm of their size, over this many points.
POINTS = 16
# A tail that falls by less than 10 an octave, and does not rise before, goes on: its cap is doubled.
SLOW_LEAST = 0.1
RISING_MOST = 1.2
# How a tail goes on beyond what was seen, for one octave: by its last ratio, within these.
RATIO_LEAST, RATIO_MOST = 0.05, 0.5
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
    whole: bool  # sizes are whole numbers of steps
    safe: float = 1.0  # the cap where nothing is believed, in steps

    @property
    def tail_cap(self) -> float:
        """The size, in steps, that nobody is believed to exceed; a safe one where nothing is believed."""
        if self.top is None:
            return self.safe
        return 2.0 ** (self.top + 1 - self.shift) * (2 if _is_slow(self.people, self.top) else 1)

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
        weights = np.repeat(np.array(self.people) / POINTS, POINTS)
        return sizes.ravel(), np.maximum(weights, NOBODY)


def read_profile(
    rounds: Sequence[tuple[Sequence[int], float]], *, shift: int, whole: bool, safe: float = 1.0
) -> Reading:
    """Return what rounds of one profile tell, each given as its noisy bins and the scale of their noise."""
    counts, scale = combined_rounds(rounds)
    top = believed_top(counts, scale, start=shift if whole else 0)
    if top is None:
        return Reading((), None, scale, shift, whole, safe)
    least = shift if whole else 0  # nobody has less than one step, whatever the noise says
    people = [max(count, 0.0) if place >= least else 0.0 for place, count in enumerate(counts[: top + 1])]
    beyond = _foreseen(people, top, scale)
    return Reading((*people, *([beyond] if beyond else [])), top, scale, shift, whole, safe)


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


def people_most(rounds: Sequence[tuple[Sequence[int], float]], bins: range) -> float:
    """Return how many people there are in these bins at most, but for one time in 40."""
    counts, scale = combined_rounds(rounds)
    return sum(counts[place] for place in bins) + 2 * scale * sqrt(2 * len(bins))


@dataclass(frozen=True)
class Span:
    """How far values are believed to go: the highest octave of those above 0 and of those below; None: none are."""

    up: int | None
    down: int | None

    @property
    def top(self) -> int | None:
        """The highest octave of either."""
        return max((end for end in (self.up, self.down) if end is not None), default=None)

    @property
    def range(self) -> tuple[Fraction, Fraction]:
        """The range that holds all believed values, 0 included."""
        low, high = (Fraction(0) if end is None else Fraction(2) ** (end + 1) for end in (self.down, self.up))
        return -low, high


@lru_cache(maxsize=256)
def span_of(rounds: tuple[tuple[tuple[int, ...], float], ...]) -> Span:
    """Return how far values go on either side, from rounds of a profile of the largest values.

    Where one side has no bin that is clear of noise, its bins are believed by their distance from the other side's. The
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
        return Span(None, None)
    for side in (0, 1):
        if not clear[side]:
            tops[side] = _near(sides[side], scale, fullest[1 - side])
    up, down = (None if top is None else top + LARGEST_LEAST for top in tops)
    return Span(up, down)


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


def _is_slow(people: Sequence[float], top: int) -> bool:
    if top < 2:
        return False
    before, last, at_top = people[top - 2 : top + 1]
    return 0 < SLOW_LEAST * last <= at_top <= last <= RISING_MOST * before


def _foreseen(people: Sequence[float], top: int, scale: float) -> float:
    """Return about how many people are in the octave above the top, where the tail is expected to go on; else 0."""
    if top < 1 or people[top] > people[top - 1]:
        return 0.0
    ratio = min(max(people[top] / max(people[top - 1], 1e-9), RATIO_LEAST), RATIO_MOST)
    expected = min(people[top] * ratio, scale * (log(1 / (2 * FALSE_BIN)) + log(2)))
    return expected if expected >= 0.3 else 0.0
