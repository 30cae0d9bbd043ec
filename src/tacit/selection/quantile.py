"""Private quantiles of whole numbers, for many groups at once: the exponential mechanism on exact integer scores.

Several quantiles are drawn by splitting: the middle one from all rows, then those below and above it from the rows
there. A row is in one part at each level, so a level costs what one quantile costs (docs/proofs/quantiles.md). A
group's grid falls into stretches of one score: a stretch is drawn, then a point in it. An interval is the width of a
public ladder around the drawn point that holds the quantile. Rungs grow by half, and so do their weights before any row
is read: so for any rows a narrow one is drawn with at most the stated probability.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import ceil, log

import numpy as np

from tacit.noise import Bits, Keystream, draw_below_each
from tacit.numbers import Integers, whole
from tacit.selection.weights import index_in_each, settle

# All points beyond the rows that are read together have less than this fraction of the weight.
LEFT_OUT = 2.0**-41
# The rows processed together: their arrays then stay in the processor's caches.
ROWS_AT_ONCE = 1 << 18


@dataclass(frozen=True)
class GroupRows:
    """For each group the rows rows[start:end], rising, and the points low … high that may be drawn.

    A point stands for 2^shift neighbouring values. before[i] is the total weight of rows[:i] if rows have weights.
    """

    rows: Integers
    starts: Integers
    ends: Integers
    low: Integers
    high: Integers
    shift: int = 0
    before: Integers | None = None

    def only(self, indices: slice | Integers) -> "GroupRows":
        """Return some of the groups."""
        return replace(
            self, starts=self.starts[indices], ends=self.ends[indices], low=self.low[indices], high=self.high[indices]
        )

    @property
    def sizes(self) -> Integers:
        return self.weight_of(self.ends - self.starts)

    def weight_of(self, counts: Integers, group: Integers | None = None) -> Integers:
        """Return the total weight of the first rows of each group, or of the groups in `group`, given their counts."""
        if self.before is None:
            return counts
        starts = self.starts if group is None else self.starts[group]
        starts = starts.reshape(starts.shape + (1,) * (counts.ndim - starts.ndim))
        weights: Integers = self.before[starts + counts] - self.before[starts]
        return weights

    def count_before(self, weights: Integers) -> Integers:
        """Return how many rows of each group begin below a weight: have less than it before them in their group."""
        if self.before is None:
            return np.clip(weights, 0, self.ends - self.starts)
        return rows_below(self.before, self.starts, self.ends, self.before[self.starts] + weights)

    def at(self, indices: Integers) -> Integers:
        found: Integers = self.rows[indices].astype(np.int64) >> self.shift
        return found


@dataclass(frozen=True)
class Aim:
    """A score of points: up·(rows below) - down·(rows above) - at, by weight, is `lead`; 0 is best. A positive lead
    counts `over` times, a negative one `under` times, and chances fall by exp(-slope) for each."""

    up: int
    down: int
    at: int
    over: int
    under: int
    slope: Fraction

    def reach(self, points: int) -> int:
        """Return how many rows from its rank all points beyond have less than LEFT_OUT of the weight together."""
        per_row = float(self.slope) * (self.up + self.down) * min(self.over, self.under)
        return ceil((log(points) - log(LEFT_OUT)) / per_row) + 1


def rows_below(rows: Integers, starts: Integers, ends: Integers, values: Integers) -> Integers:
    """Return how many of rows[start:end], rising, are below a value, for each start, end and value."""
    low, high = starts + np.zeros_like(values), ends + np.zeros_like(values)
    last = max(len(rows) - 1, 0)
    while (unsure := low < high).any():
        middle = (low + high) >> 1
        less = rows[np.minimum(middle, last)] < values
        low = np.where(unsure & less, middle + 1, low)
        high = np.where(unsure & ~less, middle, high)
    return low - starts


def draw_points(parts: GroupRows, aim: Aim, bits: Bits) -> Integers:
    """Return a point of low … high for each group, with chance proportional to exp(-slope·score).

    Privacy: exactly that law, given uniform bits; `slope` is for the caller to choose.
    """
    points = int((parts.high - parts.low).max(initial=0)) + 1
    reach = aim.reach(points)
    drawn = np.empty(len(parts.starts), dtype=np.int64)
    for indices in _turns(np.minimum(parts.ends - parts.starts, 2 * reach + 1)):
        drawn[indices] = _draw_points(parts.only(indices), aim, reach, bits)
    return drawn


def _turns(sizes: Integers) -> Iterator[slice]:
    """Yield slices of the groups, about ROWS_AT_ONCE rows each."""
    turn = np.cumsum(sizes + 1) // ROWS_AT_ONCE
    edges = np.flatnonzero(np.diff(turn, prepend=-1))
    for start, end in zip(edges, np.append(edges[1:], len(sizes)), strict=True):
        yield slice(int(start), int(end))


def _draw_points(parts: GroupRows, aim: Aim, reach: int, bits: Bits) -> Integers:
    found = Stretches.of(parts, aim, reach)
    words = bits.words(len(parts.starts))
    # where fewer rows are than are aimed inside, no score is 0; only differences of scores matter
    least = np.repeat(np.minimum.reduceat(found.scores, found.edges[:-1]), np.diff(found.edges))
    weights = np.exp((found.scores - least) * -float(aim.slope)) * found.lengths
    indices, certain = index_in_each(weights, found.edges, words, left_out=LEFT_OUT)
    indices = np.minimum(indices + found.edges[:-1], found.edges[1:] - 1)
    begin, length = found.begins[indices], found.lengths[indices]
    for group in np.flatnonzero(~certain):
        alone = parts.only(np.array([group]))
        every = Stretches.of(alone, aim, int(alone.sizes[0]) + 1)
        some = np.flatnonzero(every.lengths)
        index = some[settle(every.scores[some], aim.slope, int(words[group]), bits, times=every.lengths[some])]
        begin[group], length[group] = every.begins[index], every.lengths[index]
    drawn: Integers = begin + draw_below_each(length, bits)
    return drawn


@dataclass(frozen=True)
class Stretches:
    """Points of equal score, group by group from `edges` on: in turn the gap before a value and the value, then the
    last gap."""

    begins: Integers
    lengths: Integers
    scores: Integers
    edges: Integers

    @classmethod
    def of(cls, parts: GroupRows, aim: Aim, reach: int) -> "Stretches":
        """Return the stretches around the rows at most `reach` from the rank aimed at."""
        starts, sizes = parts.starts, parts.sizes
        middle = np.clip((aim.down * sizes + aim.at) // (aim.up + aim.down), 0, sizes)
        first, last = parts.count_before(middle - reach), parts.count_before(middle + reach + 1)
        if parts.before is not None:  # the row that begins before this rank may end beyond it
            first = np.maximum(first - 1, 0)
        counts = last - first
        begins_at = np.cumsum(counts) - counts
        group = np.repeat(np.arange(len(sizes)), counts)
        within = np.arange(len(group)) + (first - begins_at)[group]
        values = parts.at(within + starts[group])
        fresh = np.ones(len(values), dtype=bool)
        fresh[1:] = (values[1:] != values[:-1]) | (group[1:] != group[:-1])
        values, group, below = values[fresh], group[fresh], within[fresh]
        return cls._between(parts, aim, values, group, below)

    @classmethod
    def _between(cls, parts: GroupRows, aim: Aim, values: Integers, group: Integers, below: Integers) -> "Stretches":
        """Return the stretches of different values, each with the rows below it; ties at either edge are completed."""
        rows, starts, ends = parts.rows, parts.starts, parts.ends
        entries = np.bincount(group, minlength=len(starts))
        edges = np.append(0, np.cumsum(2 * entries + 1))
        some = np.flatnonzero(entries)  # groups that have rows
        leading = (np.cumsum(entries) - entries)[some]
        trailing = np.cumsum(entries)[some] - 1
        below[leading] = rows_below(rows, starts[some], ends[some], values[leading] << parts.shift)
        upto = np.append(below[1:], 0)
        upto[trailing] = rows_below(rows, starts[some], ends[some], (values[trailing] + 1) << parts.shift)
        before = np.append(0, values[:-1])
        earlier = below[leading] > 0
        before[leading] = np.where(
            earlier, parts.at(starts[some] + np.maximum(below[leading] - 1, 0)), parts.low[some] - 1
        )
        begins, lengths, least, most = (np.empty(edges[-1], dtype=np.int64) for _ in range(4))
        at = edges[group] + 2 * (np.arange(len(values)) - (np.cumsum(entries) - entries)[group]) + 1
        begins[at], lengths[at], least[at], most[at] = values, 1, below, upto
        gap = at - 1
        begins[gap], lengths[gap], least[gap], most[gap] = before + 1, values - before - 1, below, below
        end = edges[1:] - 1  # the gap after the last value; all points, in an empty group
        begins[end], lengths[end], least[end], most[end] = parts.low, parts.high + 1 - parts.low, 0, 0
        rank = upto[trailing]
        later = rank < (ends - starts)[some]
        following = np.where(later, parts.at(np.minimum(starts[some] + rank, ends[some] - 1)), parts.high[some] + 1)
        begins[end[some]], lengths[end[some]] = values[trailing] + 1, following - values[trailing] - 1
        least[end[some]] = most[end[some]] = rank
        total = np.repeat(aim.down * parts.sizes + aim.at, np.diff(edges))
        of = np.repeat(np.arange(len(starts)), np.diff(edges))
        leads = ((aim.up + aim.down) * parts.weight_of(each, of) - total for each in (least, most))
        ahead, behind = next(leads), next(leads)
        return cls(begins, lengths, aim.over * np.maximum(ahead, 0) + aim.under * np.maximum(-behind, 0), edges)


# More rows than any table has: an end that is the range's holds whatever lies beyond.
ENDLESS = 1 << 60


@dataclass(frozen=True)
class Reach:
    """How widths are scored: `rows` are to lie between the quantile and an end, one of which is the range's at 0 and 1.

    A row too few counts `short`, one too many `long`, of which a rank has `fraction.denominator`.
    """

    fraction: Fraction
    rows: int
    short: int
    long: int
    slope: Fraction
    heaviest: int = 1


def rows_for(miss: Fraction, *, per_row: Fraction) -> int:
    """Return how many rows to reach for, so that an interval misses with at most this chance: log-chances fall by
    `per_row`, and rungs that miss weigh at most 2·exp(-rows·per_row) of the first wide enough."""
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
    """Return the weights of the rungs: each at least 1.5 times the one before.

    >>> prior_weights(7).tolist()
    [1, 2, 3, 5, 8, 12, 18]
    """
    weights = [1]
    while len(weights) < count:
        weights.append((3 * weights[-1] + 1) // 2)
    return np.array(weights, dtype=np.int64)


def draw_intervals(
    parts: GroupRows, middles: Integers, reach: Reach, height: int, bits: Bits
) -> tuple[Integers, Integers]:
    """Return the low and the high ends of an interval around each group's point, in 0 … height.

    Privacy: an exponential mechanism over the rungs, with scores that one unit moves within the range the slope is for.
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
        indices, certain = index_in_each(weights.ravel(), edges[: len(scores) + 1], words)
        for group in np.flatnonzero(~certain):
            indices[group] = settle(scores[group], reach.slope, int(words[group]), bits, times=times)
        widths[turn] = rungs[indices]
    low, high = np.maximum(middles - widths, 0), np.minimum(middles + widths, height)
    if reach.fraction == 0:
        low[:] = 0
    if reach.fraction == 1:
        high[:] = height
    return low, high


def _scores(parts: GroupRows, middles: Integers, reach: Reach, rungs: Integers, height: int) -> Integers:
    """Return (group, rung): how far the rows between the quantile and an end are from those wanted; 0 for the first
    wide enough."""
    low, high = np.maximum(middles[:, None] - rungs, 0), np.minimum(middles[:, None] + rungs, height)
    starts, ends = parts.starts[:, None], parts.ends[:, None]
    sizes, unit = parts.sizes[:, None], reach.fraction.denominator
    held = np.full(low.shape, ENDLESS)
    if reach.fraction > 0:
        below = parts.weight_of(rows_below(parts.rows, starts, ends, low))
        beside = sizes - below if reach.fraction == 1 else reach.fraction.numerator * sizes - unit * below
        held = np.where(low > 0, beside, ENDLESS)
    if reach.fraction < 1:
        upto = parts.weight_of(rows_below(parts.rows, starts, ends, high + 1))
        beside = unit * upto - reach.fraction.numerator * sizes
        held = np.minimum(held, np.where(high < height, beside, ENDLESS))
    # a quantile may lie between two rows, so it takes one row more to be beyond it
    beyond = held - (reach.rows if reach.fraction in (0, 1) else unit * (reach.heaviest + reach.rows))
    scores: Integers = reach.short * np.maximum(-beyond, 0)
    scores[:, 1:] += reach.long * np.maximum(beyond[:, :-1], 0)
    return scores


HALF = Fraction(1, 2)
# Where rows are split, ties are spread over this many sub-steps: splitting at a value then shares its rows out by rank.
TIE_BITS = 20
# A quantile among some of the rows is a fraction no finer than this; ranks are whole, so the fraction is exact.
# Weights are
# larger numbers: with fractions of at most this denominator scores stay below 2^62 up to 2^32 units in a group.
SHARE_MAX = 1 << 32
SHARE_MAX_OF_WEIGHTS = 10**4
# For the least and the greatest: the cost of a row too far out, since beyond the last row the range may be empty, and
# of a row too far in.
BEYOND, INSIDE = 7, 3
# Both are drawn among 2^14 points at most: on a finer grid an empty stretch has more points, and attracts them.
EXTREME_BITS = 14


@dataclass(frozen=True)
class Target:
    """Where in the ranks to aim, extremes `inside` rows further in; `reach` rows are to lie between it and each end of
    its interval."""

    fraction: Fraction
    inside: int = 0
    reach: int = 1

    @property
    def is_extreme(self) -> bool:
        return self.fraction in (0, 1)


@dataclass(frozen=True)
class Rate:
    """How quickly chances fall with the distance in ranks: from epsilon and the bound on one unit's rows, or their
    weight."""

    epsilon: Fraction
    rows_per_unit: int
    replace: bool = False

    def for_fraction(self, fraction: Fraction) -> tuple[int, int, Fraction]:
        """Return (up, down, rate): a row below counts `up`, one above `down`, and a row moves the score by the larger
        of them."""
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
    exact_weights: Integers | None = None,
) -> Integers:
    """Return (target, end, group) whole numbers in 0 … height: low end, quantile and high end; fractions must rise.

    Group g's rows are exact_steps[starts[g] : ends[g]], rising, in 0 … height. With weights, ranks are counted by them.

    Privacy: each level is an exponential mechanism with log-chances that one unit moves within a range of
    `rate.epsilon` in each group, and so is each interval with `ends_rate.epsilon`; with k = `levels_of(m)` levels of
    m targets, (k·epsilon + m·ends_epsilon)-DP, and (k·epsilon² + m·ends_epsilon²)/8-zCDP. With weights, of which one
    unit has `rate.rows_per_unit` in all groups together, this holds for all groups together.
    """
    bits = Keystream()
    groups = len(starts)
    found = np.zeros((len(targets), 3, groups), dtype=np.int64)
    if not groups:
        return found
    zeros = np.zeros(groups, np.int64)
    own = GroupRows(exact_steps, starts, ends, zeros, np.full(groups, height), before=_running(exact_weights))
    if len(targets) == 1:
        middles = [_draw_target(own, targets[0], rate, height, bits)]
    else:
        parts = _spread(own, exact_weights, height, bits)
        middles = [drawn >> TIE_BITS for drawn in _split_rows(parts, targets, rate, int(parts.high[0]), bits)]
    heaviest = 1 if exact_weights is None else rate.rows_per_unit
    for at, (target, middle) in enumerate(zip(targets, middles, strict=True)):
        low, high = draw_intervals(own, middle, _scored_interval(target, ends_rate, heaviest), height, bits)
        found[at] = low, middle, high
    return found


def _running(weights: Integers | None) -> Integers | None:
    """Return what all rows before each row weigh, and at last what all weigh."""
    return None if weights is None else np.append(0, np.cumsum(weights, dtype=np.int64))


def _spread(parts: GroupRows, weights: Integers | None, height: int, bits: Bits) -> GroupRows:
    """Return the groups' rows in sub-steps, group after group and rising, each row moved by its own random fraction."""
    starts, sizes = parts.starts, parts.ends - parts.starts
    edges = np.append(0, np.cumsum(sizes))
    indices = np.arange(int(sizes.sum())) + np.repeat(starts - edges[:-1], sizes)
    rows = parts.rows[indices].astype(np.int64)
    first = np.ones(len(rows), dtype=bool)
    first[1:] = rows[1:] != rows[:-1]
    first[edges[:-1][sizes > 0]] = True
    fractions = bits.words(len(rows), TIE_BITS).astype(np.int64)
    fractions |= np.cumsum(first) << TIE_BITS  # sorting moves rows inside their ties only
    if weights is None:
        fractions.sort(kind="stable")
    else:
        order = np.argsort(fractions, kind="stable")
        fractions, weights = fractions[order], weights[indices[order]]
    rows = (rows << TIE_BITS) | (fractions & ((1 << TIE_BITS) - 1))
    top = np.full(len(starts), ((height + 1) << TIE_BITS) - 1)
    return GroupRows(rows, edges[:-1], edges[1:], np.zeros(len(starts), np.int64), top, before=_running(weights))


def _split_rows(parts: GroupRows, targets: tuple[Target, ...], rate: Rate, top: int, bits: Bits) -> list[Integers]:
    if not targets:
        return []
    at = _middle([target.fraction for target in targets])
    middle = targets[at]
    drawn = _draw_target(parts, middle, rate, top, bits)
    below, above = targets[:at], targets[at + 1 :]
    cuts = _cuts(parts, drawn, own_below=not above or bool(below and middle.fraction < HALF))
    finest = SHARE_MAX if parts.before is None else SHARE_MAX_OF_WEIGHTS
    lower = tuple(_within(each, _share_below(each.fraction, middle.fraction), finest) for each in below)
    upper = tuple(_within(each, _share_above(each.fraction, middle.fraction), finest) for each in above)
    return [
        *_split_rows(replace(parts, ends=cuts, high=drawn), lower, rate, top, bits),
        drawn,
        *_split_rows(replace(parts, starts=cuts, low=drawn), upper, rate, top, bits),
    ]


def _cuts(parts: GroupRows, drawn: Integers, *, own_below: bool) -> Integers:
    """Return where each group's rows are cut at the point drawn; rows at the point fall to the side with fewer expected
    rows, which is public."""
    return parts.starts + rows_below(parts.rows, parts.starts, parts.ends, drawn + int(own_below))


def _draw_target(parts: GroupRows, target: Target, rate: Rate, top: int, bits: Bits) -> Integers:
    """Return a point for each group; the least and the greatest are the outer end of a point of a coarser grid."""
    shift = max(0, top.bit_length() - EXTREME_BITS) if target.is_extreme else 0
    if not shift:
        return draw_points(parts, _aim(target, rate), bits)
    coarse = replace(parts, low=parts.low >> shift, high=parts.high >> shift, shift=shift)
    drawn = draw_points(coarse, _aim(target, rate), bits) << shift
    outer: Integers = np.clip(drawn + ((1 << shift) - 1) * int(target.fraction), parts.low, parts.high)
    return outer


def _within(target: Target, share: Fraction, finest: int) -> Target:
    return target if target.is_extreme else Target(share.limit_denominator(finest), 0, target.reach)


def _middle(fractions: Sequence[Fraction]) -> int:
    """Return the quantile to draw first; 0 and 1, which aim a few rows inside, divide only each other."""
    at = len(fractions) // 2
    return 0 if len(fractions) == 2 and fractions[1] == 1 and fractions[0] > 0 else at


def _share_below(fraction: Fraction, middle: Fraction) -> Fraction:
    """Return a lower quantile as one of the rows below the middle one."""
    return min(fraction / middle, Fraction(1)) if middle else Fraction(0)


def _share_above(fraction: Fraction, middle: Fraction) -> Fraction:
    """Return a higher quantile as one of the rows above the middle one."""
    return max((fraction - middle) / (1 - middle), Fraction(0))


def _aim(target: Target, rate: Rate) -> Aim:
    if target.inside and target.is_extreme:
        greatest = int(target.fraction)
        at, over, under = (-target.inside, BEYOND, INSIDE) if greatest else (target.inside, INSIDE, BEYOND)
        return Aim(1 - greatest, greatest, at, over, under, rate.for_extreme())
    up, down, slope = rate.for_fraction(target.fraction)
    return Aim(up, down, 0, 1, 1, slope)


def _scored_interval(target: Target, rate: Rate, heaviest: int = 1) -> Reach:
    """Return how an interval is scored: a row too few between quantile and end, and a row too many."""
    if target.is_extreme:
        return Reach(target.fraction, target.reach, short=BEYOND, long=INSIDE, slope=rate.for_extreme())
    slope = rate.for_fraction(target.fraction)[2]
    return Reach(target.fraction, target.reach, short=1, long=1, slope=slope, heaviest=heaviest)
