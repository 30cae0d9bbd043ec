"""The k best candidates in order: k choices of one, each among the candidates not chosen yet."""

from typing import Any, Literal

import numpy as np

from tacit.errors import InvalidParameter
from tacit.noise import Bits, Keystream, warning
from tacit.privacy import ExponentialChoice, Integers, Number, PureChoice, PureLoss, confidence_meaning, whole
from tacit.selection.scores import read_scores, read_terms
from tacit.selection.selection import Exponential, PermuteAndFlip, pick, shortfall

By = Literal["permute-and-flip", "exponential"]
ROUNDS: dict[str, type[PermuteAndFlip] | type[Exponential]] = {
    "permute-and-flip": PermuteAndFlip,
    "exponential": Exponential,
}


class TopK:
    """The indices of k candidates of about the highest scores, best first.

    Privacy: epsilon-DP, as k choices at epsilon/k, each among the candidates not yet chosen. By permute-and-flip, the
    closest under pure epsilon; by="exponential" costs less where losses are added up in zCDP: k·(epsilon/k)²/8.

    >>> import tacit
    >>> tacit.TopK(k=2, epsilon=10).release([3, 980, 12, 512])
    [1, 3]
    """

    def __init__(
        self,
        *,
        k: int,
        epsilon: Number,
        sensitivity: Number = 1,
        monotone: bool = False,
        step: Number | None = None,
        by: By = "permute-and-flip",
    ) -> None:
        self.k = whole(k, name="k")
        if not isinstance(by, str) or by not in ROUNDS:
            raise InvalidParameter(f"by must be one of {', '.join(ROUNDS)}\nhint: by='exponential' where zCDP is used")
        self.by = by
        self.terms = read_terms(epsilon=epsilon, sensitivity=sensitivity, monotone=monotone, step=step)
        each = self.terms.epsilon / self.k
        self.round = ROUNDS[by](epsilon=each, sensitivity=sensitivity, monotone=monotone, step=step)

    @property
    def loss(self) -> PureLoss:
        """The loss of one release."""
        return PureLoss(self.terms.epsilon)

    @property
    def events(self) -> tuple[PureChoice | ExponentialChoice, ...]:
        """The events of one release: its k choices, with losses that add up."""
        return (self.round.event,) * self.k

    @property
    def event(self) -> PureChoice:
        """A record of the whole release, for sums of epsilons; `events` can cost less in other notions."""
        return PureChoice(self.terms.epsilon)

    def release(self, scores: Any) -> list[int]:
        """Return the indices of the k chosen candidates, counted from 0, in the order they were chosen.

        Privacy: epsilon-DP in all, on the terms given. How many candidates there are is public.
        """
        steps = read_scores(scores, self.terms.step, least=2)
        if self.k > len(steps):
            raise InvalidParameter(
                f"k must be at most the number of candidates, {len(steps)}, not {self.k}"
                "\nhint: releasing all of them needs no choice"
            )
        return pick_all(self, steps, Keystream())

    def error(self, confidence: Number = 0.95, *, candidates: int) -> int | float:
        """Return an a such that, with this confidence, each chosen score is within a of the best not chosen before
        it."""
        chance = (1 - confidence_meaning(confidence)) / self.k
        count = whole(candidates, name="candidates", least=2)
        return self.terms.in_units(shortfall(self.round, count, chance))

    def explain(self) -> str:
        """Return what it does, in words and numbers."""
        within = ", ".join(f"{self.error(candidates=10**p):.10g} of {10**p:,}" for p in (1, 3, 6))
        lines = [
            f"Top {self.k} by {self.by}: {self.loss} for {self.k} choices, {PureLoss(self.round.terms.epsilon)} each.",
            self.terms.words(),
            f"With 95 % confidence each falls short of the best then left by at most {within} candidates.",
            *warning(self.terms.epsilon),
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"TopK(k={self.k}, {self.terms.arguments()}, by={self.by!r})"


def pick_all(mechanism: TopK, steps: Integers, bits: Bits) -> list[int]:
    """Return the indices that a mechanism chooses from scores in grid steps: a release, from the bits given.

    Privacy: that of a release, given uniform bits that are used only for it.
    """
    left = np.arange(len(steps))
    chosen = []
    for _ in range(mechanism.k):
        index = pick(mechanism.round, steps, bits)
        chosen.append(int(left[index]))
        steps, left = np.delete(steps, index), np.delete(left, index)
    return chosen
