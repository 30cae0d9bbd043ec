"""Exact coins for randomizers: a chance is a whole number of 2^-64, so that a coin is decided by 64 bits and no more.

The chance of keeping an answer is rounded down to that grid with certainty: the law that is drawn is a rational one,
and it is at most as revealing as the real number asked for (docs/proofs/local.md). Many coins at once look at 16 bits
each and at the other 48 only where those tie, or are tossed 64 at a time, bit by bit, straight into packed words.
"""

from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.noise.bits import Bits, Words
from tacit.privacy.number import show
from tacit.privacy.rounding import ball, certain_floor

CHANCE_BITS = 64
ONE = 1 << CHANCE_BITS
HALF = Fraction(1, 2)
# Below this chance of being changed a report is the answer; below this gain over guessing it says nothing.
LEAST = Fraction(1, 2**53)
EPSILON_MOST = 1000

_FIRST = 16
_REST = CHANCE_BITS - _FIRST
# Words tossed at a time: a few arrays of this size stay in the second-level cache.
PIECE_WORDS = 1 << 14
_LEVELS = 8


@lru_cache(maxsize=512)
def kept_chance(epsilon: Fraction, *, inside: int = 1, outside: int) -> Fraction:
    """Return the chance of an output among `inside` favoured ones, with `outside` others: a·e^ε/(a·e^ε + b), floored.

    Each favoured output is then at most e^epsilon times as likely as each other one, exactly. A chance that is one, or
    no better than even, to the precision of a float is refused.

    >>> float(kept_chance(Fraction(1), outside=1))
    0.7310585786300049
    """
    if epsilon > EPSILON_MOST:  # before a power of it fills the memory
        raise reveals(epsilon)
    power = certain_floor(
        lambda: arb(2) ** CHANCE_BITS * inside * ball(epsilon).exp() / (inside * ball(epsilon).exp() + outside)
    )
    chance = Fraction(power, ONE)
    if 1 - chance < LEAST:
        raise reveals(epsilon)
    if chance - Fraction(inside, inside + outside) < LEAST * Fraction(inside, inside + outside):
        raise InvalidParameter(
            f"epsilon = {show(epsilon)} keeps an answer no oftener than guessing would, to 2^-53: "
            "a report says nothing\nhint: 0.5 to 5 is usual"
        )
    return chance


def draw_heads(chance: Fraction, n: int, bits: Bits) -> NDArray[np.bool_]:
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


def draw_packed_heads(chance: Fraction, n: int, bits: Bits) -> Words:
    """Return `n` words of 64 coins each, every bit 1 with this chance.

    Privacy: the chance is exact, given uniform bits.
    """
    packed = np.empty(n, dtype=np.uint64)
    for start in range(0, n, PIECE_WORDS):
        piece = packed[start : start + PIECE_WORDS]
        piece[:] = _toss(_threshold(chance), len(piece), bits)
    return packed


def _toss(threshold: int, n: int, bits: Bits) -> Words:
    """Compare 64 random numbers a word with the threshold, highest bit first, until every one is decided.

    A random bit of 1 decides: for heads where the threshold's bit is 1, for tails where it is 0. That is a number drawn
    bit by bit and compared with the threshold, its bits turned over where the threshold's are 1.
    """
    levels = min(_LEVELS, max(1, _digits(threshold)))
    everyone = np.full(n, ~np.uint64(0))
    heads, undecided = _toss_levels(threshold >> (CHANCE_BITS - levels), everyone, bits, levels)
    if _digits(threshold) <= levels:
        return heads  # what is equal so far is not below
    where = np.flatnonzero(undecided)
    more, undecided = _toss_levels(threshold >> (CHANCE_BITS - 2 * _LEVELS), undecided[where], bits)
    heads[where] |= more
    # about one bit in 2^16 is left: each is a coin of its own, on the threshold's other bits
    left = np.flatnonzero(undecided)
    places = np.flatnonzero(np.unpackbits(undecided[left].view(np.uint8), bitorder="little"))
    coins = bits.words(places.size) >> np.uint64(2 * _LEVELS)
    won = places[coins < np.uint64(threshold & ((1 << (CHANCE_BITS - 2 * _LEVELS)) - 1))]
    np.bitwise_or.at(heads, where[left[won >> 6]], np.uint64(1) << (won & 63).astype(np.uint64))
    return heads


def _digits(threshold: int) -> int:
    """Return how many binary digits a chance has."""
    return CHANCE_BITS - (threshold & -threshold).bit_length() + 1 if threshold else 0


def _toss_levels(digits: int, undecided: Words, bits: Bits, levels: int = _LEVELS) -> tuple[Words, Words]:
    """Compare the next few bits of every undecided number with the threshold's; return heads, and what is undecided."""
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
        raise InvalidParameter("chance must be a multiple of 2^-64 from 0 to below 1")
    return int(scaled)


def reveals(epsilon: Fraction) -> InvalidParameter:
    """Return the refusal of an epsilon so large that a report hides nothing."""
    return InvalidParameter(
        f"epsilon = {show(epsilon)} changes fewer than one answer in 2^53: a report is the answer itself, "
        "which is no privacy\nhint: 0.5 to 5 is usual"
    )
