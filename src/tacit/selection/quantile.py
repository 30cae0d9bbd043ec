"""Private quantiles of whole numbers: the exponential mechanism over a public grid, on exact integer scores.

Several quantiles are drawn by splitting: the middle one first, from all rows, then those below it from the rows below
and those above from the rows above. A row is in one part at each level, so a level costs what one quantile costs, and
the results never cross. The ends of their intervals are drawn last, each from the rows between two neighbouring
results (docs/proofs/quantiles.md).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tacit.noise.bits import Bits, Keystream
from tacit.noise.threshold import Integers
from tacit.privacy.number import whole
from tacit.selection.weights import draw_weighted

# Ties are spread over so many sub-steps, so that splitting at a value shares its rows out by rank.
TIE_BITS = 20
# Beside the points of the grid: below every row, and above every row.
OUTSIDE_POINTS = 2
# A quantile among some of the rows is a fraction no finer than this; ranks are whole, so nothing is lost.
SHARE_MAX = 1 << 32
# An interval's end that is a row too far inside misses; one too far outside is only wide.
WRONG_SIDE = 3


@dataclass(frozen=True)
class Target:
    """Where in the ranks to aim: at fraction·n + shift rows from below; `reach`: how far its interval's ends aim off.

    A fraction of 0 has no lower end but the range's, and 1 no upper one: what lies beyond the last row shows nothing.
    """

    fraction: Fraction
    shift: Fraction = Fraction(0)
    reach: int = 0


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

    def for_end(self) -> Fraction:
        """Return the rate of an interval's end, whose score counts a row on the wrong side three times.

        A row added moves scores by at most 3 down on the one side and 1 up on the other, or the other way round.
        """
        return self.epsilon / ((WRONG_SIDE + 1) * self.rows_per_unit * (2 if self.replace else 1))


def levels_of(count: int) -> int:
    """Return how many levels of splitting `count` quantiles take.

    >>> [levels_of(count) for count in (1, 3, 4, 30)]
    [1, 2, 3, 5]
    """
    return whole(count, name="count").bit_length()


def end_draws_of(fractions: tuple[Fraction, ...]) -> int:
    """Return from how many ends of intervals one row is drawn: none, one, or two between neighbouring quantiles.

    >>> [end_draws_of(tuple(map(Fraction, each))) for each in (("0",), ("1/2",), ("0", "1/2", "1"), ("1/2", "3/4"))]
    [0, 1, 1, 2]
    """
    inner = sum(0 < fraction < 1 for fraction in fractions)
    return min(inner, 2)


def rank_errors(fractions: tuple[Fraction, ...], error_of: Callable[[Fraction], int]) -> list[int]:
    """Return for each quantile how many rows off it is at most, where `error_of` bounds one draw at a share of a part.

    A part's ends are off by at most the larger of their errors; a draw adds its own.
    """
    return _errors(fractions, error_of, 0, 0)


def draw_quantiles(
    exact_steps: Integers,
    targets: tuple[Target, ...],
    *,
    height: int,
    rate: Rate,
    ends_rate: Rate,
) -> list[tuple[int, int, int]]:
    """Return (low end, quantile, high end) for each target, whole numbers in 0 … height; fractions must rise.

    `exact_steps` are the rows' values in 0 … height, rising.

    Privacy: each level is an exponential mechanism with log-chances that one unit moves within a range of
    `rate.epsilon`, and so is each end with `ends_rate.epsilon`; with k = `levels_of(len(targets))` levels and
    e = `end_draws_of(fractions)`, (k·epsilon + e·ends_epsilon)-DP, and (k·epsilon² + e·ends_epsilon²)/8-zCDP.
    """
    bits = Keystream()
    rows = exact_steps.astype(np.int64) << TIE_BITS
    rows |= (bits.words(len(rows)) >> np.uint64(64 - TIE_BITS)).astype(np.int64)
    rows.sort(kind="stable")  # in runs already, but for ties
    top = ((height + 1) << TIE_BITS) - 1
    drawn = _split(rows, targets, 0, top, rate, bits)
    lows, highs = _ends(rows, targets, drawn, top, ends_rate, bits)
    shown = zip(lows, drawn, highs, strict=True)
    return [(low, middle.value >> TIE_BITS, high) for low, middle, high in shown]


@dataclass(frozen=True)
class Drawn:
    """A point, and whether the rank aimed at lies below (-1) or above (1) every row that was looked at.

    Privacy: both are drawn by the exponential mechanism, and charged for.
    """

    value: int
    outside: int = 0


def _split(rows: Integers, targets: tuple[Target, ...], low: int, high: int, rate: Rate, bits: Bits) -> list[Drawn]:
    if not targets:
        return []
    at = _middle([target.fraction for target in targets])
    middle = targets[at]
    drawn = _draw_one(rows, _aim(middle, rate), low, high, bits)
    cut = int(np.searchsorted(rows, drawn.value, side="left"))
    below = tuple(Target(_share_below(each.fraction, middle.fraction), each.shift, each.reach) for each in targets[:at])
    above = tuple(
        Target(_share_above(each.fraction, middle.fraction), each.shift, each.reach) for each in targets[at + 1 :]
    )
    return [
        *_split(rows[:cut], below, low, drawn.value, rate, bits),
        drawn,
        *_split(rows[cut:], above, drawn.value, high, rate, bits),
    ]


def _errors(
    fractions: Sequence[Fraction], error_of: Callable[[Fraction], int], below_error: int, above_error: int
) -> list[int]:
    if not fractions:
        return []
    at = _middle(fractions)
    middle = fractions[at]
    own = max(below_error, above_error) + error_of(middle)
    below = [_share_below(each, middle) for each in fractions[:at]]
    above = [_share_above(each, middle) for each in fractions[at + 1 :]]
    return [*_errors(below, error_of, below_error, own), own, *_errors(above, error_of, own, above_error)]


def _middle(fractions: Sequence[Fraction]) -> int:
    """Return which quantile to draw first; 0 and 1, which aim a few rows inside, split nothing but each other."""
    at = len(fractions) // 2
    return 0 if len(fractions) == 2 and fractions[1] == 1 and fractions[0] > 0 else at


def _share_below(fraction: Fraction, middle: Fraction) -> Fraction:
    """Return a lower quantile as one of the rows below the middle one."""
    return min(fraction / middle, Fraction(1)).limit_denominator(SHARE_MAX)


def _share_above(fraction: Fraction, middle: Fraction) -> Fraction:
    """Return a higher quantile as one of the rows above the middle one."""
    return max((fraction - middle) / (1 - middle), Fraction(0)).limit_denominator(SHARE_MAX)


def _ends(
    rows: Integers, targets: tuple[Target, ...], drawn: list[Drawn], top: int, rate: Rate, bits: Bits
) -> tuple[list[int], list[int]]:
    """Return the low and the high ends, each from the rows up to the neighbouring quantile.

    An end that would lie beyond the neighbour is the neighbour's own end, or the range's. The least value is at most
    its quantile and the greatest at least that; their other ends are the range's.
    """
    steps = rows >> TIE_BITS  # an end is a whole step, and its score knows ties: no rank inside them is needed
    edges = [0, *(each.value >> TIE_BITS for each in drawn), top >> TIE_BITS]
    cuts = [0, *(int(np.searchsorted(rows, each.value, side="left")) for each in drawn), len(rows)]
    cells = [steps[cuts[at] : cuts[at + 1]] for at in range(len(targets) + 1)]
    lows, highs = [0] * (len(targets) + 1), [edges[-1]] * (len(targets) + 1)
    for at, target in enumerate(targets):
        end = Drawn(edges[at + 1], drawn[at].outside) if target.fraction == 1 else Drawn(0, -1)
        if 0 < target.fraction < 1:
            aim = Aim(0, 1, -target.reach, WRONG_SIDE, 1, rate.for_end())
            end = _draw_one(cells[at], aim, edges[at], edges[at + 1], bits)
        lows[at + 1] = lows[at] if end.outside < 0 else end.value
    for at, target in reversed(list(enumerate(targets))):
        end = Drawn(edges[at + 1], drawn[at].outside) if target.fraction == 0 else Drawn(edges[-1], 1)
        if 0 < target.fraction < 1:
            aim = Aim(1, 0, target.reach, 1, WRONG_SIDE, rate.for_end())
            end = _draw_one(cells[at + 1], aim, edges[at + 1], edges[at + 2], bits)
        highs[at] = highs[at + 1] if end.outside > 0 else end.value
    return lows[1:], highs[:-1]


@dataclass(frozen=True)
class Aim:
    """A score of points: up·(rows below) - down·(rows above) - at, over a point's own rows, is `lead`; 0 is best.

    A positive lead counts `over` times, a negative one `under` times, and chances fall by exp(-slope) for each.
    """

    up: int
    down: int
    at: int
    over: int
    under: int
    slope: Fraction


def _aim(target: Target, rate: Rate) -> Aim:
    up, down, slope = rate.for_fraction(target.fraction)
    return Aim(up, down, int(target.shift * (up + down)), 1, 1, slope)


def _draw_one(rows: Integers, aim: Aim, low: int, high: int, bits: Bits) -> Drawn:
    """Draw a point of low … high: first the stretch between two rows, by its score and its length, then the point.

    Two more points stand for ranks that no row has: one below all of them, one above. So some score is always 0.
    """
    starts, lengths, before, after = _stretches(rows, low, high)
    least, most = (aim.up * below - aim.down * (len(rows) - below) - aim.at for below in (before, after))
    scores = aim.over * np.maximum(least, 0) + aim.under * np.maximum(-most, 0)
    none_below, all_below = -aim.down * len(rows) - aim.at, aim.up * len(rows) - aim.at
    outside = (aim.under * max(-none_below, 0), aim.over * max(all_below, 0))
    distances = np.append(scores, outside)
    lengths = np.append(lengths, (1, 1))
    open_ = np.flatnonzero(lengths > 0)
    place = int(open_[draw_weighted(distances[open_], aim.slope, bits, times=lengths[open_])])
    if place >= len(starts):
        return Drawn(low, -1) if place == len(starts) else Drawn(high, 1)
    return Drawn(int(starts[place]) + _uniform_below(int(lengths[place]), bits))


def _stretches(rows: Integers, low: int, high: int) -> tuple[Integers, Integers, Integers, Integers]:
    """Return where stretches of equal scores start, how long they are, and the rows below and up to their points.

    They are the gap before each value and the value itself, in turn, then the gap after the last.
    """
    inside = np.clip(rows, low, high)
    first = np.flatnonzero(np.diff(inside, prepend=low - 1))
    values = inside[first]
    starts = np.empty(2 * len(values) + 1, dtype=np.int64)
    lengths = np.empty_like(starts)
    starts[0] = low
    starts[1::2] = values
    starts[2::2] = values + 1
    lengths[:-1] = np.diff(starts)
    lengths[-1] = high + 1 - starts[-1]
    ranks = np.append(first, len(rows)).astype(np.int64)
    twice = np.repeat(ranks, 2)
    return starts, lengths, twice[:-1], twice[1:]


def _uniform_below(count: int, bits: Bits) -> int:
    """Return a whole number below `count`, each as likely: words that would favour some are drawn again."""
    size = count.bit_length()
    while True:
        word = int(bits.words(1)[0]) >> (64 - size)
        if word < count:
            return word
