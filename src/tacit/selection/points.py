"""Draws one point of a public grid in each of many groups, weighted by how far its rank is from the target rank.

A group's grid falls into stretches of one score: a stretch is drawn, then a point in it. Rows that together have less
than 2^-41 of the weight are read only if they could matter (docs/proofs/quantiles.md).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, log

import numpy as np

from tacit.noise import Bits, draw_below_each
from tacit.privacy import Integers
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
