"""Subset selection: a report is a set of w codes, the sender's among them with chance w·e^ε/(w·e^ε + k - w).

The other members are evenly drawn from all other codes. They are made by equal coins, which leave every set of one size
equally likely: in a small domain until one of the right size comes up, in a large one by adding or removing evenly
chosen members until it is right (docs/proofs/local.md).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.local.coins import draw_heads, draw_packed_heads, kept_chance
from tacit.local.columns import count_columns
from tacit.local.protocol import Flags, Law, Payloads, spread_of
from tacit.local.unary import as_bytes, as_words, bit_of, bits_at, last_mask, no_bit_beyond, set_bits, width_of
from tacit.noise import uniform
from tacit.noise.bits import Bits, Words
from tacit.noise.threshold import Integers
from tacit.privacy.rounding import ball, nearest_float

# Up to here sets are tossed until one has the wanted number; beyond, they are evened out.
POOLED_MOST = 256
# Words drawn at a time: enough rows for the last few to cost little.
PIECE_WORDS = 1 << 17


@dataclass(frozen=True)
class Subset:
    """A report is a set of `members` codes, as packed bits; of all protocols it errs least.

    Privacy: epsilon-DP for each code: a set with the sender's code is at most e^epsilon times as likely as one without.
    """

    size: int
    epsilon: Fraction

    name = "subset"

    @cached_property
    def members(self) -> int:
        """How many codes a report holds: the number near k/(e^ε + 1) that errs least."""
        ideal = nearest_float(lambda: self.size / (ball(self.epsilon).exp() + 1)) if self.epsilon < 100 else 0.0
        wanted = {min(max(1, int(ideal) + step), self.size - 1) for step in (0, 1)}
        return min(wanted, key=self._spread)

    @cached_property
    def keep(self) -> Fraction:
        """The chance that a report holds the sender's code."""
        return kept_chance(self.epsilon, inside=self.members, outside=self.size - self.members)

    @cached_property
    def stray(self) -> Fraction:
        """The chance that a report holds any one other code."""
        return self._stray(self.keep, self.members)

    @property
    def payload_bytes(self) -> int:
        """One bit a code, in whole words."""
        return 8 * width_of(self.size)

    def draw(self, codes: Integers, bits: Bits) -> Payloads:
        """Return a payload for each code.

        Privacy: epsilon-DP for each code, exactly.
        """
        rows = max(1, PIECE_WORDS // width_of(self.size))
        pieces = [self._draw_piece(codes[start : start + rows], bits) for start in range(0, len(codes), rows)]
        return np.concatenate(pieces) if pieces else np.empty((0, self.payload_bytes), dtype=np.uint8)

    def _draw_piece(self, codes: Integers, bits: Bits) -> Payloads:
        own = draw_heads(self.keep, len(codes), bits)
        words = draw_sets(self.size - 1, self.members - own.astype(np.int64), bits)
        if width_of(self.size) > words.shape[1]:
            words = np.hstack([words, np.zeros((len(words), 1), dtype=np.uint64)])
        # the others are all codes but the sender's: the last code stands in its place
        last = np.full(len(codes), self.size - 1)
        set_bits(words, last, bit_of(words, codes))
        set_bits(words, codes, own)
        return as_bytes(words)

    def valid(self, payloads: Payloads) -> Flags:
        """Return which payloads are sets of the right size within the domain."""
        words = as_words(payloads)
        found: Flags = no_bit_beyond(words, self.size) & (_sizes(words) == self.members)
        return found

    def tally(self, payloads: Payloads) -> Integers:
        """Return how many reports hold each code."""
        return count_columns(as_words(payloads))[: self.size]

    def merge(self, one: Integers, other: Integers) -> Integers:
        """Return the counters of two batches together."""
        return one + other

    def supports(self, tally: NDArray[Any]) -> Integers:
        """Return how many reports support each code: those that hold it."""
        return tally

    def supporting(self, payloads: Payloads, codes: Integers) -> Flags:
        """Return whether each report holds each of these codes."""
        return bits_at(as_words(payloads), codes)

    def law(self, code: int) -> Law:
        """Return the chance of every payload."""
        law = {}
        within = self.keep / comb(self.size - 1, self.members - 1)
        without = (1 - self.keep) / comb(self.size - 1, self.members)
        for members in combinations(range(self.size), self.members):
            value = sum(1 << member for member in members)
            law[value.to_bytes(self.payload_bytes, "little")] = within if code in members else without
        return law

    def parameters(self) -> dict[str, str | int]:
        """Return what the header says of it."""
        return {"members": self.members, "keep": str(self.keep)}

    def _stray(self, keep: Fraction, members: int) -> Fraction:
        return (keep * (members - 1) + (1 - keep) * members) / (self.size - 1)

    def _spread(self, members: int) -> float:
        keep = kept_chance(self.epsilon, inside=members, outside=self.size - members)
        return spread_of(keep, self._stray(keep, members)).mean_over(self.size)


def draw_sets(size: int, members: Integers, bits: Bits) -> Words:
    """Return an even choice of as many of `size` places as each row wants, as packed bits.

    Privacy: every set of the wanted number is equally likely, exactly.
    """
    if size <= POOLED_MOST:
        return _from_pool(size, members, bits)
    words = _tossed(size, float(members.mean()), len(members), bits)
    _even_out(words, size, members, bits)
    return words


def _from_pool(size: int, members: Integers, bits: Bits) -> Words:
    """Toss sets until there are enough of each wanted number, and hand them out."""
    words = np.empty((len(members), width_of(size)), dtype=np.uint64)
    wanted = {int(number): np.flatnonzero(members == number) for number in np.unique(members)}
    while any(rows.size for rows in wanted.values()):
        left = sum(rows.size for rows in wanted.values())
        pool = _tossed(size, float(np.mean(list(wanted))), 4 * left + 64, bits)
        sizes = _sizes(pool)
        for number, rows in wanted.items():
            found = np.flatnonzero(sizes == number)[: rows.size]
            words[rows[: found.size]] = pool[found]
            wanted[number] = rows[found.size :]
    return words


def _tossed(size: int, mean: float, rows: int, bits: Bits) -> Words:
    """Return sets made by equal coins, with about this many members: all sets of one number are equally likely."""
    width = width_of(size)
    words = draw_packed_heads(_coarse_chance(size, mean), rows * width, bits).reshape(rows, width)
    words[:, -1] &= last_mask(size)
    return words


def _coarse_chance(size: int, mean: float) -> Fraction:
    """Return a chance of few binary digits, which is quick to toss, near the one asked for."""
    share = min(max(mean / size, 2.0**-8), 0.5)
    near = 0.5 * (share * (1 - share) / size) ** 0.5
    for digits in range(1, 9):
        chance = Fraction(max(1, round(share * 2**digits)), 2**digits)
        if abs(float(chance) - share) <= near:
            return chance
    return Fraction(max(1, round(share * 2**8)), 2**8)


def _even_out(words: Words, size: int, members: Integers, bits: Bits) -> None:
    """Flip evenly chosen bits until every row has as many as wanted."""
    surplus = _sizes(words) - members
    rows = np.flatnonzero(surplus)
    while rows.size:
        places = uniform.draw_below(size, len(rows), bits)
        bit = np.uint64(1) << (places & 63).astype(np.uint64)
        over = surplus[rows] > 0
        fits = (words[rows, places >> 6] & bit != 0) == over
        flipped = rows[fits]
        words[flipped, places[fits] >> 6] ^= bit[fits]
        surplus[flipped] -= np.where(over[fits], 1, -1)
        rows = rows[surplus[rows] != 0]


def _sizes(words: Words) -> Integers:
    counts = np.bitwise_count(words)
    sizes: Integers = np.zeros(len(words), dtype=np.int64)
    if words.shape[1] > 8:
        np.sum(counts, axis=1, dtype=np.int64, out=sizes)
    else:  # a sum along a short axis is slower than a few sums of columns
        for column in counts.T:
            sizes += column
    return sizes
