"""What every choice of one candidate shares: its terms, its loss, its release, its error and its words.

A mechanism adds how one candidate is picked and what that costs.
"""

from abc import ABC, abstractmethod
from typing import Any

from tacit.noise.bits import Bits, Keystream
from tacit.noise.mechanism import confidence_meaning, warning
from tacit.noise.threshold import Integers
from tacit.privacy.event import ExponentialChoice, PureChoice
from tacit.privacy.loss import PureLoss
from tacit.privacy.number import Number, whole
from tacit.selection.scores import read_scores
from tacit.selection.shortfall import Lost, least_shortfall
from tacit.selection.terms import Terms


class Selection(ABC):
    """A mechanism that releases which of several candidates has about the highest score, and nothing else."""

    title: str
    terms: Terms

    @property
    def loss(self) -> PureLoss:
        """What one release costs."""
        return PureLoss(self.terms.epsilon)

    @property
    @abstractmethod
    def event(self) -> PureChoice | ExponentialChoice:
        """What one release is recorded as."""

    def release(self, scores: Any) -> int:
        """Return the place of the chosen candidate, counted from 0.

        Privacy: epsilon-DP, however many candidates there are, on the terms given. How many there are, and which place
        is whose, is public.
        """
        return self._pick(read_scores(scores, self.terms.step, least=2), Keystream())

    def error(self, confidence: Number = 0.95, *, candidates: int) -> int | float:
        """Return the least a such that, with this confidence, the chosen score is within a of the best one.

        It holds for any scores of that many candidates, and some scores need all of it.
        """
        chance = 1 - confidence_meaning(confidence)
        count = whole(candidates, name="candidates", least=2)
        steps = least_shortfall(self._lost(count), self.terms.rate, count, chance)
        return self.terms.in_units(steps)

    def explain(self) -> str:
        """Return what it does, in words and numbers."""
        within = ", ".join(f"{self.error(candidates=10**p):.10g} of {10**p:,}" for p in (1, 3, 6))
        lines = [
            f"{self.title}: {self.loss} for the place of one candidate, however many there are.",
            self.terms.words(),
            f"With 95 % confidence the chosen score falls short of the best by at most {within} candidates.",
            *warning(self.terms.epsilon),
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.terms.arguments()})"

    @abstractmethod
    def _pick(self, steps: Integers, bits: Bits) -> int:
        """Return the place chosen from scores in grid steps."""

    @abstractmethod
    def _lost(self, candidates: int) -> Lost:
        """Return the chance of falling short, for the error."""
