"""Many yes-or-no answers at once, each with its own exact chance exp(-rate·distance).

A float decides where its proved margin allows, more of the same bits and ball arithmetic otherwise
(docs/proofs/selection.md).
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tacit.noise.bernoulli import Digits, exp_digits, settle_below
from tacit.noise.bits import Bits
from tacit.noise.threshold import PIECE, WIDTH, Integers

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
