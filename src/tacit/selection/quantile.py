"""Private quantiles of whole numbers, of many groups at once: the exponential mechanism on exact integer scores.

Several quantiles are drawn by splitting: the middle one first, from all rows, then those below it from the rows below
and those above from the rows above. A row is in one part at each level, so a level costs what one quantile costs, and
the results never cross. Each then gets an interval around it, whose width is drawn last (docs/proofs/quantiles.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tacit.noise.bits import Bits, Keystream
from tacit.noise.threshold import Integers
from tacit.privacy.number import whole
from tacit.selection.points import Aim, Parts, draw_points, rows_below
from tacit.selection.widths import Reach, draw_intervals

# Where rows are split, ties are spread over so many sub-steps: splitting at a value then shares its rows out by rank.
TIE_BITS = 20
# A quantile among some of the rows is a fraction no finer than this; ranks are whole, so nothing is lost.
SHARE_MAX = 1 << 32
# Of the least and the greatest: a row too far out counts so much, since beyond the last row the range may be empty,
# and a row too far in so much.
BEYOND, INSIDE = 7, 3
# They are drawn among 2^14 points at most: on a finer grid an empty stretch has more points, and draws them in.
EXTREME_BITS = 14


@dataclass(frozen=True)
class Target:
    """Where in the ranks to aim: at a fraction of the rows; of the least and the greatest, `inside` rows further in.

    `reach`: so many rows are to lie between the quantile and either end of its interval.
    """

    fraction: Fraction
    inside: int = 0
    reach: int = 1

    @property
    def is_extreme(self) -> bool:
        """Whether it is the least or the greatest value."""
        return self.fraction in (0, 1)


@dataclass(frozen=True)
class Rate:
    """How quickly chances fall with the distance in ranks: from epsilon of a draw and the bound on one unit's rows."""

    epsilon: Fraction
    rows_per_unit: int
    replace: bool = False

    def for_fraction(self, fraction: Fraction) -> tuple[int, int, Fraction]:
        """Return (up, down, rate): a row below counts `up`, one above `down`, and chances are exp(-rate·|score|).

        A row added moves the score by at most max(up, down); one replaced leaves one place and enters another.
        """
        up, down = fraction.denominator - fraction.numerator, fraction.numerator
        return up, down, self.epsilon / (2 * max(up, down) * self._rows)

    def for_extreme(self) -> Fraction:
        """Return the rate of the least or the greatest: a row added moves scores from -BEYOND to INSIDE at most."""
        return self.epsilon / ((BEYOND + INSIDE) * self._rows)

    @property
    def _rows(self) -> int:
        return self.rows_per_unit * (2 if self.replace else 1)


def levels_of(count: int) -> int:
    """Return how many levels of splitting `count` quantiles take.

    >>> [levels_of(count) for count in (1, 3, 4, 30)]
    [1, 2, 3, 5]
    """
    return whole(count, name="count").bit_length()


def draw_quantiles(
    exact_steps: Integers,
    targets: tuple[Target, ...],
    *,
    starts: Integers,
    ends: Integers,
    height: int,
    rate: Rate,
    ends_rate: Rate,
) -> Integers:
    """Return (target, end, group) whole numbers in 0 … height: low end, quantile and high end; fractions must rise.

    Group g's rows are exact_steps[starts[g] : ends[g]], rising, in 0 … height.

    Privacy: each level is an exponential mechanism with log-chances that one unit moves within a range of
    `rate.epsilon` in each group, and so is each interval with `ends_rate.epsilon`; with k = `levels_of(m)` levels of
    m targets, (k·epsilon + m·ends_epsilon)-DP, and (k·epsilon² + m·ends_epsilon²)/8-zCDP.
    """
    bits = Keystream()
    groups = len(starts)
    found = np.zeros((len(targets), 3, groups), dtype=np.int64)
    if not groups:
        return found
    if len(targets) == 1:
        parts = Parts(exact_steps, starts, ends, np.zeros(groups, np.int64), np.full(groups, height))
        middles = [_draw(parts, targets[0], rate, height, bits)]
    else:
        rows, sizes = _spread(exact_steps, starts, ends, bits), ends - starts
        edges = np.append(0, np.cumsum(sizes))
        top = ((height + 1) << TIE_BITS) - 1
        parts = Parts(rows, edges[:-1], edges[1:], np.zeros(groups, np.int64), np.full(groups, top))
        middles = [drawn >> TIE_BITS for drawn in _split(parts, targets, rate, top, bits)]
    own = Parts(exact_steps, starts, ends, np.zeros(groups, np.int64), np.full(groups, height))
    for at, (target, middle) in enumerate(zip(targets, middles, strict=True)):
        low, high = draw_intervals(own, middle, _reach(target, ends_rate), height, bits)
        found[at] = low, middle, high
    return found


def _spread(steps: Integers, starts: Integers, ends: Integers, bits: Bits) -> Integers:
    """Return the groups' rows in sub-steps, group after group and rising, each row moved by its own random fraction."""
    sizes = ends - starts
    edges = np.cumsum(sizes) - sizes
    places = np.arange(int(sizes.sum())) + np.repeat(starts - edges, sizes)
    rows = steps[places].astype(np.int64)
    first = np.ones(len(rows), dtype=bool)
    first[1:] = rows[1:] != rows[:-1]
    first[edges[sizes > 0]] = True
    fractions = (bits.words(len(rows)) >> np.uint64(64 - TIE_BITS)).astype(np.int64)
    fractions |= np.cumsum(first) << TIE_BITS  # sorting moves rows inside their ties only
    fractions.sort(kind="stable")
    rows <<= TIE_BITS
    spread: Integers = rows | (fractions & ((1 << TIE_BITS) - 1))
    return spread


def _split(parts: Parts, targets: tuple[Target, ...], rate: Rate, top: int, bits: Bits) -> list[Integers]:
    if not targets:
        return []
    at = _middle([target.fraction for target in targets])
    middle = targets[at]
    drawn = _draw(parts, middle, rate, top, bits)
    cuts = parts.starts + rows_below(parts.rows, parts.starts, parts.ends, drawn)
    below, above = targets[:at], targets[at + 1 :]
    lower = tuple(_within(each, _share_below(each.fraction, middle.fraction)) for each in below)
    upper = tuple(_within(each, _share_above(each.fraction, middle.fraction)) for each in above)
    return [
        *_split(Parts(parts.rows, parts.starts, cuts, parts.low, drawn), lower, rate, top, bits),
        drawn,
        *_split(Parts(parts.rows, cuts, parts.ends, drawn, parts.high), upper, rate, top, bits),
    ]


def _draw(parts: Parts, target: Target, rate: Rate, top: int, bits: Bits) -> Integers:
    """Return a point for each group; the least and the greatest are the outer end of a point of a coarser grid."""
    shift = max(0, top.bit_length() - EXTREME_BITS) if target.is_extreme else 0
    if not shift:
        return draw_points(parts, _aim(target, rate), bits)
    coarse = Parts(parts.rows, parts.starts, parts.ends, parts.low >> shift, parts.high >> shift, shift)
    drawn = draw_points(coarse, _aim(target, rate), bits) << shift
    outer: Integers = np.clip(drawn + ((1 << shift) - 1) * int(target.fraction), parts.low, parts.high)
    return outer


def _within(target: Target, share: Fraction) -> Target:
    return target if target.is_extreme else Target(share, 0, target.reach)


def _middle(fractions: Sequence[Fraction]) -> int:
    """Return which quantile to draw first; 0 and 1, which aim a few rows inside, split nothing but each other."""
    at = len(fractions) // 2
    return 0 if len(fractions) == 2 and fractions[1] == 1 and fractions[0] > 0 else at


def _share_below(fraction: Fraction, middle: Fraction) -> Fraction:
    """Return a lower quantile as one of the rows below the middle one."""
    return min(fraction / middle, Fraction(1)).limit_denominator(SHARE_MAX) if middle else Fraction(0)


def _share_above(fraction: Fraction, middle: Fraction) -> Fraction:
    """Return a higher quantile as one of the rows above the middle one."""
    return max((fraction - middle) / (1 - middle), Fraction(0)).limit_denominator(SHARE_MAX)


def _aim(target: Target, rate: Rate) -> Aim:
    if target.inside and target.is_extreme:
        greatest = int(target.fraction)
        at, over, under = (-target.inside, BEYOND, INSIDE) if greatest else (target.inside, INSIDE, BEYOND)
        return Aim(1 - greatest, greatest, at, over, under, rate.for_extreme())
    up, down, slope = rate.for_fraction(target.fraction)
    return Aim(up, down, 0, 1, 1, slope)


def _reach(target: Target, rate: Rate) -> Reach:
    """Return how an interval is scored: a row too few between quantile and end, and a row too many."""
    if target.is_extreme:
        return Reach(target.fraction, target.reach, short=BEYOND, long=INSIDE, slope=rate.for_extreme())
    return Reach(target.fraction, target.reach, short=1, long=1, slope=rate.for_fraction(target.fraction)[2])
