"""Subset selection: a report is a set of w codes, the sender's among them with chance w·e^ε/(w·e^ε + k - w).

The other members are an even choice among all other codes (sets.py).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.local.coins import draw_heads, kept_chance
from tacit.local.columns import count_columns
from tacit.local.protocol import Flags, Law, Payloads, spread_of
from tacit.local.sets import draw_sets, sizes_of
from tacit.local.unary import as_bytes, as_words, bit_of, bits_at, no_bit_beyond, set_bits, width_of
from tacit.noise.bits import Bits
from tacit.noise.threshold import Integers
from tacit.privacy.rounding import ball, nearest_float

# Words drawn at a time: enough rows for the last few to cost little.
PIECE_WORDS = 1 << 17
PIECE_ROWS = 1 << 12


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
        rows = max(PIECE_ROWS, PIECE_WORDS // width_of(self.size))
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
        found: Flags = no_bit_beyond(words, self.size) & (sizes_of(words) == self.members)
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
