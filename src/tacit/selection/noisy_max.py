"""Report noisy max: discrete Laplace noise on every score, then only the place of the largest."""

import numpy as np

from tacit.noise import grid
from tacit.noise.bits import Bits
from tacit.noise.laplace import laplace_tables
from tacit.noise.threshold import WIDTH, Integers
from tacit.noise.uniform import draw_below
from tacit.privacy.event import PureChoice
from tacit.privacy.number import Number
from tacit.selection.selection import Selection
from tacit.selection.shortfall import Lost, noisy_max_lost
from tacit.selection.terms import read_terms


class NoisyMax(Selection):
    """The place of the largest score after Laplace noise; ties between noisy scores are broken evenly.

    Privacy: epsilon-DP for scores that one unit moves by at most `sensitivity` each. With `monotone` they must all move
    in the same direction, as counts do when a unit is added or removed, and the noise's scale is sensitivity / epsilon;
    for scores that may move both ways (or units that are replaced) say monotone=False, and it is twice that
    (docs/proofs/selection.md).

    >>> import tacit
    >>> tacit.NoisyMax(epsilon=1).release([3, 980, 12])
    1
    >>> tacit.NoisyMax(epsilon=1).error(candidates=10_000)
    12
    """

    title = "Report noisy max"

    def __init__(
        self, *, epsilon: Number, sensitivity: Number = 1, monotone: bool = True, step: Number | None = None
    ) -> None:
        self.terms = read_terms(epsilon=epsilon, sensitivity=sensitivity, monotone=monotone, step=step)

    @property
    def event(self) -> PureChoice:
        """What one release is recorded as: pure epsilon and nothing tighter, since the noise is Laplace's."""
        return PureChoice(self.terms.epsilon)

    def _pick(self, steps: Integers, bits: Bits) -> int:
        noise = laplace_tables(1 / self.terms.rate, WIDTH).draw(len(steps), bits)
        noisy = grid.add_steps(steps, noise)
        best = np.flatnonzero(noisy == noisy.max())
        return int(best[draw_below(len(best), 1, bits)[0]])

    def _lost(self, candidates: int) -> Lost:
        return noisy_max_lost(self.terms.rate, candidates)
