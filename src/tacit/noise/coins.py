"""Yes or no with an exact chance: a rational p, or exp(-x) for a rational x.

A word U stands for a real u in [U, U+1)/2^w; the answer is yes if u < p. Where U cannot tell, the same u gets more
bits (docs/proofs/thresholds.md).

Many yes-or-no answers at once, each with its own exact chance exp(-rate·distance).

A float decides where its proved margin allows, more of the same bits and ball arithmetic otherwise
(docs/proofs/selection.md).

A whole number below m with every value equally likely: no remainder of a word is ever folded back.

2^w mod m words of the 2^w are left over; a word among those is thrown away and a new one drawn. Whether one is thrown
away says nothing about what is kept (docs/proofs/selection.md).

Exact coins for randomizers: a chance is a whole number of 2^-64, so that a coin is decided by 64 bits and no more.

The chance of keeping an answer is rounded down to that grid with certainty: the law that is drawn is a rational one,
and it is at most as revealing as the real number asked for (docs/proofs/local.md). Many coins at once look at 16 bits
each and at the other 48 only where those tie, or are tossed 64 at a time, bit by bit, straight into packed words.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.noise.bits import Bits, Keystream
from tacit.noise.threshold import PIECE, WIDTH
from tacit.privacy.arrays import Integers, Words
from tacit.privacy.number import Number, binary_meaning, show, whole
from tacit.privacy.rounding import ball, certain_floor

# length -> (floor(p·2^length), whether p·2^length is that integer exactly)
Digits = Callable[[int], tuple[int, bool]]


class Bernoulli:
    """True with chance p, exactly, for a rational p in [0, 1].

    >>> Bernoulli("1/3").sample(4).dtype
    dtype('bool')
    """

    def __init__(self, p: Number) -> None:
        self.p = binary_meaning(p, name="p")
        if not 0 <= self.p <= 1:
            raise InvalidParameter(f"p must lie between 0 and 1, not {show(self.p)}")

    def sample(self, n: int) -> NDArray[np.bool_]:
        """Return `n` independent answers.

        Privacy: each is True with chance p exactly, from a key used for this call alone.
        """
        return self._draw(whole(n, name="n", least=0), Keystream())

    def _draw(self, n: int, bits: Bits, width: int = WIDTH) -> NDArray[np.bool_]:
        return _draw_below(rational_digits(self.p), n, bits, width)


class BernoulliExp:
    """True with chance exp(-x), exactly, for a rational x of at least 0.

    >>> BernoulliExp(0).sample(3).tolist()
    [True, True, True]
    """

    def __init__(self, x: Number) -> None:
        self.x = binary_meaning(x, name="x")
        if self.x < 0:
            raise InvalidParameter(f"x must be at least 0, not {show(self.x)}: exp(-x) is a chance")

    def sample(self, n: int) -> NDArray[np.bool_]:
        """Return `n` independent answers.

        Privacy: each is True with chance exp(-x) exactly, from a key used for this call alone.
        """
        return self._draw(whole(n, name="n", least=0), Keystream())

    def _draw(self, n: int, bits: Bits, width: int = WIDTH) -> NDArray[np.bool_]:
        return _draw_below(exp_digits(self.x), n, bits, width)


def rational_digits(p: Fraction) -> Digits:
    """Return the binary digits of a rational."""

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


def _draw_below(digits: Digits, n: int, bits: Bits, width: int) -> NDArray[np.bool_]:
    floor, exact = digits(width)
    if floor >> width:  # p is 1
        return np.ones(n, dtype=np.bool_)
    words = bits.words(n, width)
    answers = words < np.uint64(floor)
    if not exact:
        for place in np.flatnonzero(words == np.uint64(floor)):
            answers[place] = settle_below(int(words[place]), digits, bits, width)
    return answers


# The float's error is below 2^-46 (docs/proofs/selection.md); what lies within 2^-40, and a word's own interval, is
# decided in balls.
FILTER_MARGIN = 2.0**-40


def draw_flips(distances: Integers, rate: Fraction, bits: Bits, width: int = WIDTH) -> NDArray[np.bool_]:
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
        for place in np.flatnonzero(near) if near.any() else ():
            digits = exp_digits(rate * int(piece[place]))
            heads[place] = settle_below(int(words[place]), digits, bits, width)
    return answers


def draw_chance(digits: Digits, n: int, bits: Bits, width: int = WIDTH) -> NDArray[np.bool_]:
    """Return `n` independent answers, each True with the one chance below 1 whose binary digits are given.

    Privacy: the chance is exact, given uniform bits.
    """
    floor, exact = digits(width)
    words = bits.words(n, width)
    answers = words < np.uint64(floor)
    if not exact:
        for place in np.flatnonzero(words == np.uint64(floor)):
            answers[place] = settle_below(int(words[place]), digits, bits, width)
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
