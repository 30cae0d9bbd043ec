"""Draw an interval around a point that was drawn: which width of a public ladder holds the quantile, in each group.

Each rung is half as wide again as the one before, and has half as much weight again before any row is looked at. So
all rungs that are too narrow weigh at most twice what the first does that is wide enough, and one of them is drawn with
at most a stated chance, whatever the rows are (docs/proofs/quantiles.md).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, log

import numpy as np

from tacit.noise.bits import Bits
from tacit.noise.threshold import Integers
from tacit.selection.points import ROWS_AT_ONCE, Parts, rows_below
from tacit.selection.weights import places_in_each, settle

# More rows than any table has: an end that is the range's holds whatever lies beyond.
ENDLESS = 1 << 60


@dataclass(frozen=True)
class Reach:
    """How widths are scored: `rows` are to lie between the quantile and an end, one of which is the range's at 0 and 1.

    A row too few counts `short`, a row too many `long`, in units of which a rank has `fraction.denominator`.
    """

    fraction: Fraction
    rows: int
    short: int
    long: int
    slope: Fraction


def rows_for(miss: Fraction, *, per_row: Fraction) -> int:
    """Return how many rows to reach for, so that an interval misses with at most this chance.

    `per_row` is how quickly log-chances fall for each row that is lacking. The rungs that miss weigh at most
    2·exp(-rows·per_row) of the first wide enough.
    """
    return max(1, ceil(log(2 * (1 / miss - 1)) * (1 + 1e-12) / float(per_row)))


@lru_cache(maxsize=256)
def ladder(height: int) -> tuple[int, ...]:
    """Return the widths on either side, up to the whole range.

    >>> ladder(20)
    (0, 1, 2, 3, 5, 8, 12, 18, 20)
    """
    rungs = [0, 1]
    while rungs[-1] < height:
        rungs.append(min((3 * rungs[-1] + 1) // 2, height))
    return tuple(rungs) if height else (0,)


def prior_weights(count: int) -> Integers:
    """Return the weights of so many rungs: each at least half as much again as the one before.

    >>> prior_weights(7).tolist()
    [1, 2, 3, 5, 8, 12, 18]
    """
    weights = [1]
    while len(weights) < count:
        weights.append((3 * weights[-1] + 1) // 2)
    return np.array(weights, dtype=np.int64)


def draw_intervals(parts: Parts, middles: Integers, reach: Reach, height: int, bits: Bits) -> tuple[Integers, Integers]:
    """Return the low and the high ends of an interval around each group's point, in 0 … height.

    Privacy: an exponential mechanism over the rungs, whose scores one unit moves within the range the slope is for.
    """
    rungs = np.array(ladder(height), dtype=np.int64)
    times = prior_weights(len(rungs))
    edges = np.arange(ROWS_AT_ONCE // len(rungs) + 2) * len(rungs)
    widths = np.empty(len(middles), dtype=np.int64)
    for start in range(0, len(middles), len(edges) - 1):
        turn = slice(start, start + len(edges) - 1)
        scores = _scores(parts.only(turn), middles[turn], reach, rungs, height)
        words = bits.words(len(scores))
        weights = np.exp(scores * -float(reach.slope)) * times
        places, certain = places_in_each(weights.ravel(), edges[: len(scores) + 1], words)
        for group in np.flatnonzero(~certain):
            places[group] = settle(scores[group], reach.slope, int(words[group]), bits, times=times)
        widths[turn] = rungs[places]
    low, high = np.maximum(middles - widths, 0), np.minimum(middles + widths, height)
    if reach.fraction == 0:
        low[:] = 0
    if reach.fraction == 1:
        high[:] = height
    return low, high


def _scores(parts: Parts, middles: Integers, reach: Reach, rungs: Integers, height: int) -> Integers:
    """Return (group, rung): how far the rows between the quantile and an end are from those wanted.

    A rung is too wide only if the one before it has too many rows: so the first that is wide enough has score 0.
    """
    low, high = np.maximum(middles[:, None] - rungs, 0), np.minimum(middles[:, None] + rungs, height)
    starts, ends = parts.starts[:, None], parts.ends[:, None]
    sizes, unit = ends - starts, reach.fraction.denominator
    held = np.full(low.shape, ENDLESS)
    if reach.fraction > 0:
        below = rows_below(parts.rows, starts, ends, low)
        beside = sizes - below if reach.fraction == 1 else reach.fraction.numerator * sizes - unit * below
        held = np.where(low > 0, beside, ENDLESS)
    if reach.fraction < 1:
        upto = rows_below(parts.rows, starts, ends, high + 1)
        beside = unit * upto - reach.fraction.numerator * sizes
        held = np.minimum(held, np.where(high < height, beside, ENDLESS))
    # a quantile may lie between two rows, so it takes one row more to be beyond it
    beyond = held - (reach.rows if reach.fraction in (0, 1) else unit * (1 + reach.rows))
    scores: Integers = reach.short * np.maximum(-beyond, 0)
    scores[:, 1:] += reach.long * np.maximum(beyond[:, :-1], 0)
    return scores
