"""Reports with one bit for each code of the domain: how bits are counted, and reports over time.

Over time a code is a row of bits, of which only its own is 1, so two answers differ in two bits. All bits are perturbed
once (the permanent answer, which the client stores) and again in every report. All reports together reveal no more than
the permanent answer does: epsilon. A single report reveals less: epsilon_first.

Set bits are counted 64 columns to a word. Rows are added as binary numbers held bit-sliced, one word per digit: two of
k digits make one of k + 1 by a full adder on whole words. Eight rounds turn 256 rows into nine words of digits.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from tacit.errors import InvalidParameter
from tacit.local.protocols.protocol import Payloads, SupportCounts, kept_chance
from tacit.noise import ONE, PIECE_WORDS, Bits, draw_heads, draw_packed_heads
from tacit.numbers import Flags, Integers, Words, show

# ---- counting bits ---------------------------------------------------------------------------------------------------


_ROUNDS = 8
_ROWS = 1 << _ROUNDS
# Words that are added side by side: a block of 256 rows of them stays in the second-level cache.
_LANES = 512


def count_columns(words: Words) -> Integers:
    """Return, for rows of words, how many rows have each bit set: 64 counts a word, lowest bit first.

    >>> count_columns(np.array([[5], [4]], dtype=np.uint64))[:4].tolist()
    [1, 0, 2, 0]
    """
    width = words.shape[1]
    totals = np.zeros(64 * width, dtype=np.int64)
    for first in range(0, width, _LANES):
        columns = slice(first, min(first + _LANES, width))
        totals[64 * columns.start : 64 * columns.stop] = _count_narrow(words[:, columns])
    return totals


def _count_narrow(words: Words) -> Integers:
    rows, width = words.shape
    lanes = max(1, _LANES // width)
    totals = np.zeros(64 * width, dtype=np.int64)
    for start in range(0, rows, _ROWS * lanes):
        piece = words[start : start + _ROWS * lanes]
        if len(piece) < _ROWS * lanes:
            lanes = -(-len(piece) // _ROWS)
            padded = np.zeros((_ROWS * lanes, width), dtype=np.uint64)
            padded[: len(piece)] = piece
            piece = padded
        totals += _count_block(piece.reshape(_ROWS, lanes * width)).reshape(lanes, 64 * width).sum(axis=0)
    return totals


def _count_block(rows: Words) -> Integers:
    digits = [rows]  # digits[i]: the digit of weight 2^i of each group's count, one row a group
    for _ in range(_ROUNDS):
        half = len(digits[0]) // 2
        digits = _add([digit[:half] for digit in digits], [digit[half:] for digit in digits])
    counts = np.zeros(64 * rows.shape[1], dtype=np.int64)
    for weight, digit in enumerate(digits):
        ones = np.unpackbits(digit[0].astype("<u8").view(np.uint8), bitorder="little")
        counts += ones.astype(np.int64) << weight
    return counts


def _add(one: list[Words], other: list[Words]) -> list[Words]:
    """Return the digits of the sums: a ripple of full adders."""
    total = [one[0] ^ other[0]]
    carry = one[0] & other[0]
    for left, right in zip(one[1:], other[1:], strict=True):
        either = left ^ right
        total.append(either ^ carry)
        either &= carry
        carry = left & right
        carry |= either
    return [*total, carry]


# ---- packed bits -----------------------------------------------------------------------------------------------------


class BitReports:
    """A report is one bit for each code of the domain, in whole words of 64; a set bit supports its code."""

    size: int

    @property
    def payload_bytes(self) -> int:
        """A bit per code, in whole words."""
        return 8 * width_of(self.size)

    def valid(self, payloads: Payloads) -> Flags:
        """Return which payloads set no bit beyond the domain."""
        return no_bit_beyond(as_words(payloads), self.size)

    def tally(self, payloads: Payloads) -> Integers:
        return count_columns(as_words(payloads))[: self.size]

    def supporting(self, payloads: Payloads, codes: Integers) -> Flags:
        return bits_at(as_words(payloads), codes)


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
    at = np.arange(len(words)), codes >> 6
    bit = np.uint64(1) << (codes & 63).astype(np.uint64)
    words[at] = (words[at] & ~bit) | (bit * values)


def bit_of(words: Words, codes: Integers) -> Flags:
    """Return the bit at each row's own code."""
    found: Flags = words[np.arange(len(words)), codes >> 6] >> (codes & 63).astype(np.uint64) & np.uint64(1) != 0
    return found


def bits_at(words: Words, codes: Integers) -> Flags:
    """Return the bits of every row at these codes: (rows, codes)."""
    found: Flags = (words[:, codes >> 6] >> (codes & 63).astype(np.uint64)) & np.uint64(1) != 0
    return found


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
    return np.ascontiguousarray(payloads).view("<u8").astype(np.uint64, copy=False)


def as_bytes(words: Words) -> Payloads:
    return words.astype("<u8", copy=False).view(np.uint8)


# ---- reports over time -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Permanent(SupportCounts, BitReports):
    """A report has one bit for each code of the domain: the permanent answer's bit, changed by a fresh coin.

    Privacy: epsilon-DP for the value behind one permanent answer, for all reports made from it together, and
    epsilon_first-DP for one of them. Every further value of a person costs epsilon again.
    """

    size: int
    epsilon: Fraction
    epsilon_first: Fraction

    name = "longitudinal"

    def __post_init__(self) -> None:
        if not 0 < self.epsilon_first < self.epsilon:
            raise InvalidParameter(
                f"epsilon_first must be above 0 and below epsilon, {show(self.epsilon)}, not {show(self.epsilon_first)}"
                "\nhint: half of epsilon is usual"
            )

    @cached_property
    def permanent_keep(self) -> Fraction:
        """The chance that a bit of the permanent answer is the true one."""
        return kept_chance(self.epsilon / 2, outside=1)

    @cached_property
    def instant_keep(self) -> Fraction:
        """The chance that a report's bit is the permanent answer's: floored so that one report keeps epsilon_first."""
        first = kept_chance(self.epsilon_first / 2, outside=1)
        scaled = (first + self.permanent_keep - 1) / (2 * self.permanent_keep - 1) * ONE
        return Fraction(min(int(scaled), ONE - 1), ONE)

    @cached_property
    def keep(self) -> Fraction:
        """The chance that the sender's own bit is 1 in a report."""
        first, second = self.permanent_keep, self.instant_keep
        return first * second + (1 - first) * (1 - second)

    @cached_property
    def stray(self) -> Fraction:
        """The chance that any other bit is 1 in a report."""
        return 1 - self.keep

    def draw_permanent(self, codes: Integers, bits: Bits) -> Words:
        """Return a permanent answer for each code, as packed bits.

        Privacy: epsilon-DP for each code, exactly.
        """
        return toss_bits(codes, self.size, self.permanent_keep, 1 - self.permanent_keep, bits)

    def draw_instant(self, permanent: Words, bits: Bits) -> Payloads:
        """Return a fresh report of each permanent answer.

        Privacy: all reports together reveal no more than the permanent answer, and a single one is epsilon_first-DP.
        """
        flips = draw_packed_heads(1 - self.instant_keep, permanent.size, bits).reshape(permanent.shape)
        flips ^= permanent
        flips[:, -1] &= last_mask(self.size)
        return as_bytes(flips)

    def draw(self, codes: Integers, bits: Bits) -> Payloads:
        """Return the first report of each code, its permanent answer forgotten.

        Privacy: epsilon_first-DP for each code.
        """
        return self.draw_instant(self.draw_permanent(codes, bits), bits)

    def parameters(self) -> dict[str, str | int]:
        return {
            "epsilon_first": str(self.epsilon_first),
            "permanent_keep": str(self.permanent_keep),
            "instant_keep": str(self.instant_keep),
        }
