"""The exponential mechanism: a candidate with chance proportional to e to its score."""

from tacit.noise.bits import Bits
from tacit.noise.threshold import Integers
from tacit.privacy.event import ExponentialChoice
from tacit.privacy.number import Number
from tacit.selection.selection import Selection
from tacit.selection.shortfall import Lost, exponential_lost
from tacit.selection.terms import read_terms
from tacit.selection.weights import draw_weighted


class Exponential(Selection):
    """The place of a candidate drawn with chance proportional to exp(epsilon·score / (2·sensitivity)).

    Privacy: epsilon-DP for scores that one unit moves by at most `sensitivity` each, and epsilon²/8 under zCDP. With
    `monotone`, where one unit moves all scores in the same direction, the 2 is left out. Exact: chances neither
    overflow nor vanish, however many candidates tie (docs/proofs/selection.md).

    >>> import tacit
    >>> tacit.Exponential(epsilon=10).release([3, 980, 12])
    1
    """

    title = "Exponential mechanism"

    def __init__(
        self, *, epsilon: Number, sensitivity: Number = 1, monotone: bool = False, step: Number | None = None
    ) -> None:
        self.terms = read_terms(epsilon=epsilon, sensitivity=sensitivity, monotone=monotone, step=step)

    @property
    def event(self) -> ExponentialChoice:
        """What one release is recorded as: its log-chances move within a range of epsilon."""
        return ExponentialChoice(self.terms.epsilon)

    def _pick(self, steps: Integers, bits: Bits) -> int:
        return draw_weighted(steps.max() - steps, self.terms.rate, bits)

    def _lost(self, candidates: int) -> Lost:
        return exponential_lost(self.terms.rate, candidates)
