"""Unary encoding: one bit for each code of the domain, all perturbed; symmetric (RAPPOR's) and optimised.

Two answers differ in two bits. A bit of 1 is sent with chance `keep` if it is the sender's and `stray` if not, so the
loss is ln(keep·(1 - stray)/(stray·(1 - keep))).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.local.coins import HALF, PIECE_WORDS, draw_heads, draw_packed_heads, kept_chance
from tacit.local.columns import count_columns
from tacit.local.protocol import Flags, Law, Payloads
from tacit.noise.bits import Bits, Words
from tacit.noise.threshold import Integers


@dataclass(frozen=True)
class Unary:
    """A report is as many bits as the domain has codes, in whole words of 64.

    Privacy: epsilon-DP for each code. Symmetric: the loss is shared by the two bits, keep = e^(ε/2)/(e^(ε/2) + 1) =
    1 - stray. Optimised: keep = 1/2, stray = 1/(e^ε + 1), which errs less.
    """

    size: int
    epsilon: Fraction
    kind: Literal["symmetric", "optimised"]

    @property
    def name(self) -> str:
        """Its public name."""
        return f"{self.kind}-unary"

    @cached_property
    def keep(self) -> Fraction:
        """The chance that the sender's own bit is sent as 1."""
        return kept_chance(self.epsilon / 2, outside=1) if self.kind == "symmetric" else HALF

    @cached_property
    def stray(self) -> Fraction:
        """The chance that any other bit is sent as 1, rounded up."""
        return 1 - kept_chance(self.epsilon / 2 if self.kind == "symmetric" else self.epsilon, outside=1)

    @property
    def payload_bytes(self) -> int:
        """One bit a code, in whole words."""
        return 8 * width_of(self.size)

    def draw(self, codes: Integers, bits: Bits) -> Payloads:
        """Return a payload for each code.

        Privacy: epsilon-DP for each code, exactly: every bit has its own coin.
        """
        return as_bytes(toss_bits(codes, self.size, self.keep, self.stray, bits))

    def valid(self, payloads: Payloads) -> Flags:
        """Return which payloads set no bit beyond the domain."""
        return no_bit_beyond(as_words(payloads), self.size)

    def tally(self, payloads: Payloads) -> Integers:
        """Return how many reports set each bit."""
        return count_columns(as_words(payloads))[: self.size]

    def merge(self, one: Integers, other: Integers) -> Integers:
        """Return the counters of two batches together."""
        return one + other

    def supports(self, tally: NDArray[Any]) -> Integers:
        """Return how many reports support each code: those that set its bit."""
        return tally

    def supporting(self, payloads: Payloads, codes: Integers) -> Flags:
        """Return whether each report sets the bit of each of these codes."""
        return bits_at(as_words(payloads), codes)

    def law(self, code: int) -> Law:
        """Return the chance of every payload."""
        chances = [self.keep if place == code else self.stray for place in range(self.size)]
        return bit_law(chances)

    def parameters(self) -> dict[str, str | int]:
        """Return what the header says of it."""
        return {"keep": str(self.keep), "stray": str(self.stray)}


def toss_bits(codes: Integers, size: int, keep: Fraction, stray: Fraction, bits: Bits) -> Words:
    """Return rows of packed bits, 1 with chance `keep` at each row's own code and `stray` elsewhere."""
    width = width_of(size)
    words = np.empty((len(codes), width), dtype=np.uint64)
    rows = max(1, PIECE_WORDS // width)
    for start in range(0, len(codes), rows):
        piece = words[start : start + rows]
        piece[:] = draw_packed_heads(stray, piece.size, bits).reshape(piece.shape)
        set_bits(piece, codes[start : start + rows], draw_heads(keep, len(piece), bits))
    words[:, -1] &= last_mask(size)
    return words


def set_bits(words: Words, codes: Integers, values: Flags) -> None:
    """Set the bit at each row's own code to its value."""
    places = np.arange(len(words)), codes >> 6
    bit = np.uint64(1) << (codes & 63).astype(np.uint64)
    words[places] = (words[places] & ~bit) | (bit * values)


def bit_of(words: Words, codes: Integers) -> Flags:
    """Return the bit at each row's own code."""
    found: Flags = words[np.arange(len(words)), codes >> 6] >> (codes & 63).astype(np.uint64) & np.uint64(1) != 0
    return found


def bits_at(words: Words, codes: Integers) -> Flags:
    """Return the bits of every row at these codes: (rows, codes)."""
    found: Flags = (words[:, codes >> 6] >> (codes & 63).astype(np.uint64)) & np.uint64(1) != 0
    return found


def bit_law(chances: list[Fraction]) -> Law:
    """Return the chance of every payload whose bits are independent with these chances of 1."""
    law = {}
    for bits in product((0, 1), repeat=len(chances)):
        chance = Fraction(1)
        for bit, each in zip(bits, chances, strict=True):
            chance *= each if bit else 1 - each
        value = sum(bit << place for place, bit in enumerate(bits))
        law[value.to_bytes(8 * width_of(len(chances)), "little")] = chance
    return law


def width_of(size: int) -> int:
    """Return how many words of 64 bits hold `size` bits."""
    return -(-size // 64)


def last_mask(size: int) -> np.uint64:
    """Return the bits of the last word that belong to the domain."""
    return np.uint64((1 << ((size - 1) % 64 + 1)) - 1)


def no_bit_beyond(words: Words, size: int) -> Flags:
    """Return which rows set no bit beyond the domain."""
    found: Flags = words[:, -1] & ~last_mask(size) == 0
    return found


def as_words(payloads: Payloads) -> Words:
    """Return rows of bytes as rows of words."""
    return np.ascontiguousarray(payloads).view("<u8").astype(np.uint64, copy=False)


def as_bytes(words: Words) -> Payloads:
    """Return rows of words as rows of bytes."""
    return words.astype("<u8", copy=False).view(np.uint8)
