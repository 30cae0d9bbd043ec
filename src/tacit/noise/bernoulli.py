"""Yes or no with an exact chance: a rational p, or exp(-x) for a rational x.

A word U stands for a real u in [U, U+1)/2^w; the answer is yes if u < p. Where U cannot tell, the same u gets more
bits (docs/proofs/thresholds.md).
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from flint import arb
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.noise.bits import Bits, Keystream
from tacit.noise.threshold import WIDTH
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
