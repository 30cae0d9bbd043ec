"""Published bugs of randomized response, planted in our reports: each must be killed by the case that names it."""

from contextlib import AbstractContextManager
from fractions import Fraction

import numpy as np

from tacit.local import randomized_response
from tacit.local.randomized_response import RandomizedResponse
from tacit.noise.bits import Bits
from tacit.noise.coins import draw_below, draw_chance
from tacit.noise.threshold import WIDTH
from tacit.privacy.arrays import Integers
from tacit_gauntlet.frame.mutant import mutant, planted

Planted = AbstractContextManager[None]


@mutant("modulo bias in a response", killed_by="T01", published="a random word reduced modulo the number of answers")
def modulo_bias() -> Planted:
    """Fold the left-over words back onto the first answers."""

    def below(most: int, n: int, bits: Bits, width: int = WIDTH) -> Integers:
        return (bits.words(n, width) % np.uint64(most)).astype(np.int64)

    return planted(randomized_response, "draw_below", below)


@mutant("two answers' chance for k", killed_by="T01", published="e^ε/(1 + e^ε) used for any number of answers")
def two_answers_chance() -> Planted:
    """Keep as often as with two answers, however many there are."""
    digits = randomized_response._keep_digits

    def for_two(epsilon: Fraction, k: int) -> object:
        return digits(epsilon, min(k, 2))

    return planted(randomized_response, "_keep_digits", for_two)


@mutant("the answer among the others", killed_by="T01", published="else any answer, the true one included")
def answer_among_the_others() -> Planted:
    """Draw the other answer from all of them."""

    def draw(self: RandomizedResponse, codes: Integers, bits: Bits, width: int = WIDTH) -> Integers:
        keep = draw_chance(self._digits, len(codes), bits, width)
        return np.where(keep, codes, draw_below(self.k, len(codes), bits, width))

    return planted(RandomizedResponse, "_draw", draw)
