"""Subset selection: a report is a set of w codes, the sender's among them with chance w·e^ε/(w·e^ε + k - w).

The other members are evenly drawn from all other codes. They are made by coins of chance w/k, which leave every set of
one size equally likely, and then by adding or removing evenly chosen ones until w are there (docs/proofs/local.md).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.local.coins import ONE, draw_heads, draw_packed_heads, kept_chance
from tacit.local.columns import count_columns
from tacit.local.protocol import Flags, Law, Payloads, spread_of
from tacit.local.unary import as_bytes, as_words, bits_at, last_mask, no_bit_beyond, set_bits, width_of
from tacit.noise import uniform
from tacit.noise.bits import Bits, Words
from tacit.noise.threshold import Integers
from tacit.privacy.rounding import ball, nearest_float

_ROWS = 1 << 13


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
        pieces = [self._draw_piece(codes[start : start + _ROWS], bits) for start in range(0, len(codes), _ROWS)]
        return np.concatenate(pieces) if pieces else np.empty((0, self.payload_bytes), dtype=np.uint8)

    def _draw_piece(self, codes: Integers, bits: Bits) -> Payloads:
        width = width_of(self.size)
        chance = Fraction(ONE * self.members // self.size, ONE)
        words = draw_packed_heads(chance, len(codes) * width, bits).reshape(len(codes), width)
        words[:, -1] &= last_mask(self.size)
        set_bits(words, codes, draw_heads(self.keep, len(codes), bits))
        _even_out(words, codes, self.size, self.members, bits)
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


def _even_out(words: Words, codes: Integers, size: int, members: int, bits: Bits) -> None:
    """Flip evenly chosen bits, never a row's own code, until every row has as many as wanted."""
    surplus = _sizes(words) - members
    rows = np.flatnonzero(surplus)
    while rows.size:
        places = uniform.draw_below(size, len(rows), bits)
        bit = np.uint64(1) << (places & 63).astype(np.uint64)
        here = words[rows, places >> 6]
        over = surplus[rows] > 0
        fits = ((here & bit != 0) == over) & (places != codes[rows])
        flipped = rows[fits]
        words[flipped, places[fits] >> 6] ^= bit[fits]
        surplus[flipped] -= np.where(over[fits], 1, -1)
        rows = rows[surplus[rows] != 0]


def _sizes(words: Words) -> Integers:
    sizes: Integers = np.bitwise_count(words).sum(axis=1, dtype=np.int64)
    return sizes
