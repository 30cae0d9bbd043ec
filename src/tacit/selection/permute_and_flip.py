"""Permute-and-flip: visit the candidates in random order and take the first whose coin, biased by its score, says yes.

Flipping every coin at once and choosing evenly among the yeses is the same law: the first yes of a random order is an
even choice among them. It needs no permutation, and its time depends on the number of candidates alone.
"""

import numpy as np

from tacit.noise.bits import Bits
from tacit.noise.flips import draw_flips
from tacit.noise.threshold import Integers
from tacit.noise.uniform import draw_below
from tacit.privacy.event import PureChoice
from tacit.privacy.number import Number
from tacit.selection.selection import Selection
from tacit.selection.shortfall import Lost, permute_and_flip_lost
from tacit.selection.terms import read_terms


class PermuteAndFlip(Selection):
    """The place of the first candidate, in random order, whose coin of chance exp(-rate·(best - score)) says yes.

    Privacy: epsilon-DP for scores that one unit moves by at most `sensitivity` each; the rate is epsilon over twice
    that, or over that alone with `monotone`. Never farther from the best than the exponential mechanism at the same
    epsilon, but under zCDP only what every epsilon-DP release costs, not epsilon²/8 (docs/proofs/selection.md).

    >>> import tacit
    >>> tacit.PermuteAndFlip(epsilon=1).error(candidates=1000), tacit.Exponential(epsilon=1).error(candidates=1000)
    (18, 19)
    """

    title = "Permute-and-flip"

    def __init__(
        self, *, epsilon: Number, sensitivity: Number = 1, monotone: bool = False, step: Number | None = None
    ) -> None:
        self.terms = read_terms(epsilon=epsilon, sensitivity=sensitivity, monotone=monotone, step=step)

    @property
    def event(self) -> PureChoice:
        """What one release is recorded as: pure epsilon and nothing tighter."""
        return PureChoice(self.terms.epsilon)

    def _pick(self, steps: Integers, bits: Bits) -> int:
        heads = np.flatnonzero(draw_flips(steps.max() - steps, self.terms.rate, bits))
        return int(heads[draw_below(len(heads), 1, bits)[0]])

    def _lost(self, candidates: int) -> Lost:
        return permute_and_flip_lost(self.terms.rate, candidates)
