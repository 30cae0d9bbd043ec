"""Exact sampling by integer thresholds: one word, one lookup, and more bits of the same number if one word ties.

For a distribution on consecutive integers with distribution function F, the table keeps t_i = floor(2^w·F(i)), certain.
A word U of w bits stands for a real u in [U, U+1)/2^w. If U equals no t_i, the first i with U < t_i is the answer for
every such u. If it equals one, the same u is extended by more bits and compared with more digits of F until it is
decided: never redrawn, never truncated (docs/proofs/thresholds.md). Which distribution it is, is up to the caller.

`IntegerNoise` is the part that all integer noise shares: it draws samples and answers for its distribution.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from flint import arb
from numpy.typing import NDArray

from tacit.errors import TacitError
from tacit.memory import reuse_freed_memory
from tacit.noise.bits import Bits, Keystream
from tacit.numbers import (
    Integers,
    Number,
    Words,
    binary_meaning,
    certain_floor,
    nearest_float,
    whole,
    working_precision,
)
from tacit.privacy import Law

WIDTH = 64
GUIDE_BITS_MAX = 16
# Lookups run on pieces that stay in the second-level cache.
PIECE = 1 << 15
# Up to here a search of every word costs less than to make a guide, and its time does not show whether a word
# fell in a crowded cell.
SEARCH_MOST = 1 << 11
# A guide cell with more than one threshold sends its words to a search; no table's values come near this mark.
_CROWDED = 1 << 62
_HIGHEST = np.uint64(2**64 - 1)
GUARD_BITS_FIRST = 128

# Bounds of F(i)·2^(width + guard) for i = first, first + 1, …: below and above, as integers.
Bounds = Iterator[tuple[int, int]]


@dataclass(frozen=True)
class Guide:
    """For each value of a word's top bits: its one threshold and the value below it, or a mark for more."""

    shift: np.uint64
    thresholds: Words
    values: Integers


class ThresholdTable:
    """Draws from one law on the integers `first`, `first` + 1, … by certain thresholds.

    `cdf(i)` returns a ball around Pr[X <= i] at the working precision. A law that ends has `last`; for a law without
    an end the table runs until a threshold reaches 2^width - 1, and down to 0 if it has no beginning: values beyond
    are reached through the undecided branch.
    """

    def __init__(
        self,
        first: int,
        thresholds: list[int] | Words,
        cdf: Callable[[int], arb],
        *,
        last: int | None = None,
        width: int = WIDTH,
    ) -> None:
        self.first = first
        self._sorted = np.array(thresholds, dtype=np.uint64)
        self.thresholds: list[int] = self._sorted.tolist()
        self.last = last
        self.width = width
        self._cdf = cdf
        # A law without a beginning has a threshold of 0 first; below it only the undecided branch goes.
        self._lowest = None if self.thresholds and self.thresholds[0] == 0 else first
        self._followed = np.append(self._sorted, _HIGHEST)

    def draw(self, n: int, bits: Bits) -> Integers:
        """Return `n` draws.

        Privacy: each follows the law exactly, given uniform bits.
        """
        values = np.empty(n, dtype=np.int64)
        if n == 1:
            values[0] = self.place_of(bits.words(1, self.width), bits)
            values += self.first
            return values
        look_up = self._search if n <= SEARCH_MOST else self._look_up
        for start in range(0, n, PIECE):
            piece = values[start : start + PIECE]
            words = bits.words(len(piece), self.width)
            for place in look_up(words, piece):
                piece[place] = self.settle(int(words[place]), bits)
        return values

    def place_of(self, word: Words, bits: Bits) -> int:
        """Return the draw that begins with this one word, counted from `first`, in the same time whichever it is.

        Every threshold is compared: a search would be as quick, but quickest where draws often end.
        """
        place = int(np.count_nonzero(self._sorted < word))
        if self._followed.item(place) == word.item():
            return self.settle(word.item(), bits) - self.first
        return place

    def _search(self, words: Words, values: Integers) -> NDArray[np.intp]:
        """Like `_look_up`, with the same work for every word, so that the time of a short draw shows no tail."""
        found = np.searchsorted(self._sorted, words, side="left")
        np.add(found, self.first, out=values)
        return np.flatnonzero(self._followed[found] == words)

    def _look_up(self, words: Words, values: Integers) -> NDArray[np.intp]:
        """Fill `values` for the words that one comparison decides; return the indices of the others."""
        guide = self.guide
        cells = (words >> guide.shift).view(np.int64)
        nearest = np.take(guide.thresholds, cells, mode="clip")
        np.take(guide.values, cells, out=values, mode="clip")
        values += words >= nearest
        equal = words == nearest
        if values.max(initial=0) < _CROWDED and not equal.any():
            return np.empty(0, dtype=np.intp)
        crowded = np.flatnonzero((values >= _CROWDED) & ~equal)
        found = np.searchsorted(self._sorted, words[crowded], side="left")
        values[crowded] = self.first + found
        hits = np.take(self._sorted, found, mode="clip") == words[crowded]
        return np.concatenate([np.flatnonzero(equal), crowded[hits]])

    def settle(self, word: int, bits: Bits) -> int:
        """Return the value a word stands for; if it equals a threshold, by more of the same bits."""
        value = self.first + bisect_left(self.thresholds, word)
        place = value - self.first
        if place < len(self.thresholds) and self.thresholds[place] != word:
            return value
        if place == len(self.thresholds) and self.last is not None:
            return value
        length = self.width
        while True:
            word = (word << self.width) | int(bits.words(1, self.width)[0])
            length += self.width
            with working_precision(length + 64):
                below = arb(word) * arb(2) ** -length
                above = arb(word + 1) * arb(2) ** -length
                while value != self._lowest and above <= self._cdf(value - 1):
                    value -= 1
                while value != self.last and self._cdf(value) <= below:
                    value += 1
                starts = value == self._lowest or self._cdf(value - 1) <= below
                ends = value == self.last or above <= self._cdf(value)
            if starts and ends:
                return value

    @cached_property
    def guide(self) -> Guide:
        """The guide to this table, made when more are drawn at once than are searched for."""
        guide_bits = min(GUIDE_BITS_MAX, self.width, max(4, len(self.thresholds).bit_length() + 3))
        shift = np.uint64(self.width - guide_bits)
        cells = (self._sorted >> shift).view(np.int64)
        inside = np.bincount(cells, minlength=1 << guide_bits)
        thresholds = np.full(len(inside), _HIGHEST)
        thresholds[cells] = self._sorted
        values = np.cumsum(inside) - inside + self.first
        crowded = np.flatnonzero(inside > 1)
        thresholds[crowded] = _HIGHEST
        values[crowded] = _CROWDED
        return Guide(shift, thresholds, values)


def certain_thresholds(bounds: Callable[[int], Bounds], *, width: int) -> list[int]:
    """Return floor(2^width·F(i)) for each i in turn, from integer bounds that tighten with the guard bits.

    `bounds(guard)` yields (below, above) with below <= F(i)·2^(width + guard) <= above. If the two sides have different
    floors, the guard is doubled. The loop ends unless some F(i)·2^width is an integer, which docs/proofs/thresholds.md
    rules out for Laplace and which for any law would end in an error, never in a wrong floor.
    """
    guard = GUARD_BITS_FIRST
    while guard <= 1 << 20:
        found = []
        most = (1 << width + guard) - 1  # 0 < F(i) < 1 for every i listed
        for below, above in bounds(guard):
            floor = max(below, 0) >> guard
            if floor != min(above, most) >> guard:
                break
            found.append(floor)
        else:
            return found
        guard *= 2
    raise TacitError("a noise table could not be computed with certainty; nothing was released")


def floors_one_by_one(cdf: Callable[[int], arb], values: range, *, width: int) -> list[int]:
    """Return floor(2^width·F(i)) for each value, from balls around F(i), all of which are above 0 and below 1."""

    def scaled(value: int) -> arb:
        whole = arb(2) ** width
        return (cdf(value) * whole).max(arb(0)).min(whole - arb(0.5))  # the floor of all from there to 2^width is one

    return [certain_floor(partial(scaled, value)) for value in values]


class IntegerNoise(ABC):
    """Noise on the integers, with the exact law it is drawn from."""

    law: Law

    def sample(self, n: int) -> Integers:
        """Return `n` independent draws as int64, or Python integers if one does not fit (1 in 2^184 at scale 2^56).

        Privacy: exactly the law, from a key used for this call only.
        """
        count = whole(n, name="n", least=0)
        reuse_freed_memory()
        return self._draw(count, Keystream())

    @abstractmethod
    def _draw(self, n: int, bits: Bits) -> Integers: ...

    def pmf(self, x: int) -> float:
        """Return Pr[Z = x], to the nearest float."""
        return nearest_float(lambda: self.law.pmf(x))

    def tail(self, x: int) -> float:
        """Return Pr[|Z| > x], to the nearest float."""
        return nearest_float(lambda: self.law.tail(x))

    def quantile(self, p: Number) -> int:
        """Return the least integer x with Pr[Z <= x] >= p, exactly."""
        return self.law.quantile(binary_meaning(p, name="p"))

    @property
    def variance(self) -> float:
        """The law's variance, to the nearest float."""
        return nearest_float(self.law.variance)
