"""Coins and uniform choices with exactly the stated probability: every yes or no that bits decide is decided here.

A word U stands for a real u in [U, U+1)/2^w; a coin of probability p says yes if u < p. If U does not decide it, the
same u gets more bits (docs/proofs/bernoulli.md). A single coin may have any rational probability, or exp(-x) for a
rational x. Coins tossed in bulk have a probability that is a multiple of 2^-64. Such coins compare 16 bits first, and
the other 48 only if those tie; or they are tossed 64 at a time, bit by bit, straight into packed words
(docs/proofs/local.md). A uniform choice among m values discards the 2^w mod m words that would make it uneven
(docs/proofs/selection.md).
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from flint import arb

from tacit.errors import InvalidParameter
from tacit.noise.bits import Bits, Keystream
from tacit.noise.threshold import PIECE, WIDTH
from tacit.numbers import Flags, Integers, Number, Words, ball, binary_meaning, certain_floor, show, whole

# length -> (floor(p·2^length), whether p·2^length is that integer exactly)
Digits = Callable[[int], tuple[int, bool]]

# The float's error is below 2^-46 (docs/proofs/selection.md). Comparisons closer than 2^-40 plus a word's own interval
# are decided in ball arithmetic.
FILTER_MARGIN = 2.0**-40

CHANCE_BITS = 64
ONE = 1 << CHANCE_BITS
_FIRST = 16
_REST = CHANCE_BITS - _FIRST
# Words tossed at a time: a few arrays of this size stay in the second-level cache.
PIECE_WORDS = 1 << 14
_LEVELS = 8


class Bernoulli:
    """True with chance p, exactly, for a rational p in [0, 1].

    >>> Bernoulli("1/3").sample(4).dtype
    dtype('bool')
    """

    def __init__(self, p: Number) -> None:
        self.p: Fraction = binary_meaning(p, name="p")
        if not 0 <= self.p <= 1:
            raise InvalidParameter(f"p must lie between 0 and 1, not {show(self.p)}")

    def sample(self, n: int) -> Flags:
        """Return `n` independent answers.

        Privacy: each is True with chance p exactly, from a key used for this call only.
        """
        return self._draw(whole(n, name="n", least=0), Keystream())

    def _draw(self, n: int, bits: Bits, width: int = WIDTH) -> Flags:
        return _draw_chance(rational_digits(self.p), n, bits, width)


def rational_digits(p: Fraction) -> Digits:
    def digits(length: int) -> tuple[int, bool]:
        floor, rest = divmod(p.numerator << length, p.denominator)
        return floor, rest == 0

    return digits


def exp_digits(x: Fraction) -> Digits:
    """Return the binary digits of exp(-x), which is irrational for every rational x but 0."""

    def digits(length: int) -> tuple[int, bool]:
        if x == 0:
            return 1 << length, True
        return certain_floor(lambda: ball(-x).exp() * arb(2) ** length), False

    return digits


def settle_below(word: int, digits: Digits, bits: Bits, width: int = WIDTH) -> bool:
    """Decide whether the real number that begins with `word` is below p, drawing more of its bits if need be."""
    length = width
    while True:
        floor, exact = digits(length)
        if word < floor:
            return True
        if word > floor or exact:
            return False
        word = (word << width) | int(bits.words(1, width)[0])
        length += width


def draw_flips(distances: Integers, rate: Fraction, bits: Bits, width: int = WIDTH) -> Flags:
    """Return an independent answer for each distance of at least 0: True with chance exp(-rate·distance).

    Privacy: each chance is exact, given uniform bits.
    """
    answers = np.empty(len(distances), dtype=np.bool_)
    for start in range(0, len(distances), PIECE):
        piece = distances[start : start + PIECE]
        words = bits.words(len(piece), width)
        excess = np.exp(piece * -float(rate))
        excess -= words * 2.0**-width
        heads = answers[start : start + PIECE]
        np.greater(excess, 0, out=heads)
        near = np.abs(excess) <= FILTER_MARGIN + 2.0**-width
        for index in np.flatnonzero(near) if near.any() else ():
            digits = exp_digits(rate * int(piece[index]))
            heads[index] = settle_below(int(words[index]), digits, bits, width)
    return answers


def draw_below(most: int, n: int, bits: Bits, width: int = WIDTH) -> Integers:
    """Return `n` independent whole numbers, each uniform on 0, …, most - 1.

    Privacy: exactly uniform, given uniform bits.
    """
    if not 1 <= most <= 1 << min(width, 63):
        raise InvalidParameter(f"most must lie between 1 and 2^{min(width, 63)}, not {most}")
    if most == 1:
        return np.zeros(n, dtype=np.int64)
    words = bits.words(n, width)
    last = np.uint64((1 << width) - (1 << width) % most - 1)
    while (left_over := np.flatnonzero(words > last)).size:
        words[left_over] = bits.words(left_over.size, width)
    return (words % np.uint64(most)).astype(np.int64)


def draw_below_each(counts: Integers, bits: Bits) -> Integers:
    """Return a whole number below each count, every one as likely: words that would favour some are drawn again.

    Privacy: exactly uniform, given uniform bits.
    """
    drawn = np.zeros(len(counts), dtype=np.int64)
    shifts = (64 - np.frexp(counts.astype(np.float64))[1]).astype(np.uint64)
    left = np.flatnonzero(counts > 1)
    while len(left):
        drawn[left] = (bits.words(len(left)) >> shifts[left]).astype(np.int64)
        left = left[drawn[left] >= counts[left]]
    return drawn


def draw_heads(chance: Fraction, n: int, bits: Bits) -> Flags:
    """Return `n` coins that are True with this chance, a multiple of 2^-64 below 1.

    Privacy: the chance is exact, given uniform bits.
    """
    threshold = _threshold(chance)
    top, rest = threshold >> _REST, threshold & ((1 << _REST) - 1)
    words = bits.words(-(-n // 4)).view(np.uint16)[:n]
    heads = words < np.uint16(top)
    tied = np.flatnonzero(words == np.uint16(top))
    if tied.size:
        heads[tied] = (bits.words(tied.size) >> np.uint64(_FIRST)) < np.uint64(rest)
    return heads


def draw_heads_each(shares: Words, bits: Bits, width: int = WIDTH) -> Flags:
    """Return a coin for each share s, True with chance s/2^width.

    Privacy: each chance is exact, given uniform bits.
    """
    return bits.words(len(shares), width) < shares


def draw_packed_heads(chance: Fraction, n: int, bits: Bits) -> Words:
    """Return `n` words of 64 coins each, every bit 1 with this chance.

    Privacy: the chance is exact, given uniform bits.
    """
    packed = np.empty(n, dtype=np.uint64)
    for start in range(0, n, PIECE_WORDS):
        piece = packed[start : start + PIECE_WORDS]
        piece[:] = _toss(_threshold(chance), len(piece), bits)
    return packed


def _draw_chance(digits: Digits, n: int, bits: Bits, width: int) -> Flags:
    floor, exact = digits(width)
    if floor >> width:  # p is 1
        return np.ones(n, dtype=np.bool_)
    words = bits.words(n, width)
    answers = words < np.uint64(floor)
    if not exact:
        for index in np.flatnonzero(words == np.uint64(floor)):
            answers[index] = settle_below(int(words[index]), digits, bits, width)
    return answers


def _toss(threshold: int, n: int, bits: Bits) -> Words:
    """Compare 64 random numbers a word with the threshold, highest bit first, until every one is decided.

    A random bit of 1 decides: for heads if the threshold's bit is 1, for tails if it is 0. The result equals a number
    drawn bit by bit and compared with the threshold, with its bits inverted at the threshold's 1 bits.
    """
    levels = min(_LEVELS, max(1, _chance_digits(threshold)))
    everyone = np.full(n, ~np.uint64(0))
    heads, undecided = _toss_levels(threshold >> (CHANCE_BITS - levels), everyone, bits, levels)
    if _chance_digits(threshold) <= levels:
        return heads  # all of the threshold's digits were compared: the rest are equal, so not below
    where = np.flatnonzero(undecided)
    more, undecided = _toss_levels(threshold >> (CHANCE_BITS - 2 * _LEVELS), undecided[where], bits)
    heads[where] |= more
    # about one bit in 2^16 is left: each is a separate coin, on the threshold's other bits
    left = np.flatnonzero(undecided)
    indices = np.flatnonzero(np.unpackbits(undecided[left].view(np.uint8), bitorder="little"))
    coins = bits.words(indices.size) >> np.uint64(2 * _LEVELS)
    won = indices[coins < np.uint64(threshold & ((1 << (CHANCE_BITS - 2 * _LEVELS)) - 1))]
    np.bitwise_or.at(heads, where[left[won >> 6]], np.uint64(1) << (won & 63).astype(np.uint64))
    return heads


def _chance_digits(threshold: int) -> int:
    return CHANCE_BITS - (threshold & -threshold).bit_length() + 1 if threshold else 0


def _toss_levels(digits: int, undecided: Words, bits: Bits, levels: int = _LEVELS) -> tuple[Words, Words]:
    """Compare the next few bits of every undecided number with the threshold's; return heads, and the undecided."""
    heads = np.zeros(len(undecided), dtype=np.uint64)
    fresh = bits.words(levels * len(undecided)).reshape(levels, len(undecided))
    for level in range(levels):
        decided = np.bitwise_and(undecided, fresh[level], out=fresh[level])
        undecided = undecided ^ decided
        if digits >> (levels - 1 - level) & 1:
            heads |= decided
    return heads, undecided


def _threshold(chance: Fraction) -> int:
    scaled = chance * ONE
    if scaled.denominator != 1 or not 0 <= scaled < ONE:
        raise InvalidParameter("a coin's probability must be a multiple of 2^-64, at least 0 and below 1")
    return int(scaled)
