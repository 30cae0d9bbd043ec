"""Private quantiles of whole numbers: the exponential mechanism over a public grid, on exact integer scores.

Several quantiles are drawn by splitting: the middle one first, from all rows, then those below it from the rows below
and those above from the rows above. A row is in one part at each level, so a level costs what one quantile costs, and
the results never cross (docs/proofs/quantiles.md).
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tacit.noise.bits import Bits, Keystream
from tacit.noise.threshold import Integers
from tacit.privacy.number import whole
from tacit.selection.weights import draw_weighted

# Ties are spread over so many sub-steps, so that splitting at a value shares its rows out by rank.
TIE_BITS = 20


@dataclass(frozen=True)
class Target:
    """Where in the ranks to aim: at fraction·n + shift rows from below."""

    fraction: Fraction
    shift: Fraction = Fraction(0)


def levels_of(count: int) -> int:
    """Return how many levels of splitting `count` quantiles take.

    >>> [levels_of(count) for count in (1, 3, 4, 30)]
    [1, 2, 3, 5]
    """
    return whole(count, name="count").bit_length()


def draw_quantiles(
    exact_steps: Integers, exact_counts: Integers, targets: tuple[Target, ...], *, height: int, rate_of: "Rate"
) -> list[int]:
    """Return a whole number in 0 … height for each target, in their order, which must rise.

    `exact_steps` are the distinct values in 0 … height, rising, and `exact_counts` how many rows have each.

    Privacy: each level is an exponential mechanism with log-chances that one unit moves within a range of
    `rate_of.epsilon`; with k = `levels_of(len(targets))` levels, k·epsilon-DP and k·epsilon²/8-zCDP.
    """
    bits = Keystream()
    rows = np.repeat(exact_steps.astype(np.int64) << TIE_BITS, exact_counts)
    rows |= (bits.words(len(rows)) >> np.uint64(64 - TIE_BITS)).astype(np.int64)
    rows.sort()
    top = ((height + 1) << TIE_BITS) - 1
    return [value >> TIE_BITS for value in _split(rows, targets, 0, top, rate_of, bits)]


@dataclass(frozen=True)
class Rate:
    """How quickly chances fall with the distance in ranks: from epsilon of a level and the bound on one unit's rows."""

    epsilon: Fraction
    rows_per_unit: int
    replace: bool = False

    def for_fraction(self, fraction: Fraction) -> tuple[int, int, Fraction]:
        """Return (up, down, rate): a row below counts `up`, one above `down`, and chances are exp(-rate·|score|).

        A row added moves the score by at most max(up, down); one replaced leaves one place and enters another.
        """
        up, down = fraction.denominator - fraction.numerator, fraction.numerator
        moves = max(up, down) * self.rows_per_unit * (2 if self.replace else 1)
        return up, down, self.epsilon / (2 * moves)


def _split(rows: Integers, targets: tuple[Target, ...], low: int, high: int, rate: Rate, bits: Bits) -> list[int]:
    if not targets:
        return []
    middle = len(targets) // 2
    target = targets[middle]
    value = _draw_one(rows, target, low, high, rate, bits)
    cut = int(np.searchsorted(rows, value, side="left"))
    below = tuple(_seen_from_below(each, target) for each in targets[:middle])
    above = tuple(_seen_from_above(each, target) for each in targets[middle + 1 :])
    return [
        *_split(rows[:cut], below, low, value, rate, bits),
        value,
        *_split(rows[cut:], above, value, high, rate, bits),
    ]


def _seen_from_below(target: Target, middle: Target) -> Target:
    """Return a lower target among the rows below the middle one: there are about middle.fraction·n + shift of them."""
    share = _inside(target.fraction / middle.fraction) if middle.fraction else Fraction(1, 2)
    return Target(share, target.shift - middle.shift * share)


def _seen_from_above(target: Target, middle: Target) -> Target:
    """Return a higher target among the rows above the middle one."""
    rest = 1 - middle.fraction
    share = _inside((target.fraction - middle.fraction) / rest) if rest else Fraction(1, 2)
    return Target(share, target.shift - middle.shift + middle.shift * share)


def _inside(share: Fraction) -> Fraction:
    return min(max(share, Fraction(0)), Fraction(1)).limit_denominator(1 << 20)


def _draw_one(rows: Integers, target: Target, low: int, high: int, rate: Rate, bits: Bits) -> int:
    """Draw a point of low … high: first the stretch between two rows, by its score and its length, then the point."""
    up, down, slope = rate.for_fraction(target.fraction)
    values, first = np.unique(np.clip(rows, low, high), return_index=True)
    before = np.append(first, len(rows)).astype(np.int64)  # rows below each value, and all
    # stretches: the gap before each value and the value itself, in turn, then the gap after the last
    starts = np.empty(2 * len(values) + 1, dtype=np.int64)
    lengths = np.empty_like(starts)
    starts[0] = low
    starts[1::2] = values
    starts[2::2] = values + 1
    lengths[:-1] = np.diff(starts)
    lengths[-1] = high + 1 - starts[-1]
    rows_below = np.repeat(before, 2)[:-1] if len(values) else np.zeros(1, dtype=np.int64)
    rows_above = len(rows) - rows_below
    rows_above[1::2] -= np.diff(before)  # a row at the point is neither below nor above it
    aim = int(target.shift * (up + down))
    scores = np.abs(up * rows_below - down * rows_above - aim)
    open_ = np.flatnonzero(lengths > 0)
    distances = scores[open_] - scores[open_].min()
    place = int(open_[draw_weighted(distances, slope, bits, times=lengths[open_])])
    return int(starts[place]) + _uniform_below(int(lengths[place]), bits)


def _uniform_below(count: int, bits: Bits) -> int:
    """Return a whole number below `count`, each as likely: words that would favour some are drawn again."""
    size = count.bit_length()
    while True:
        word = int(bits.words(1)[0]) >> (64 - size)
        if word < count:
            return word
