"""The choice of one candidate by its score: the exponential mechanism, report noisy max, and permute-and-flip.

How far the chosen score falls short of the best is bounded by the exact worst case: the probability of falling short by
more than a steps is largest when one candidate is best and all others are a + 1 steps below it
(docs/proofs/selection.md). Permute-and-flip visits the candidates in random order and takes the first with a yes from
its coin, biased by its score: flipping every coin at once and choosing uniformly among the yeses has the same
distribution.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from typing import Any, Literal, TypeVar, overload

import numpy as np
from flint import arb

from tacit.errors import InvalidParameter
from tacit.noise import WIDTH, Bits, Keystream, add_steps, draw_below, draw_flips, laplace_tables, warning
from tacit.numbers import Integers, Number, ball, confidence_meaning, whole, working_precision
from tacit.privacy import ExponentialChoice, LaplaceLaw, PureChoice, PureLoss, least_integer
from tacit.selection.scores import SelectionTerms, read_scores, read_terms
from tacit.selection.weights import draw_weighted

# Chances that agree to this many bits are taken as equal, and then as too large.
PRECISION_MOST = 4096
# A noisy maximum's chance is a sum of about `a` terms; beyond this many they are taken together, on the safe side.
BLOCKS_MOST = 4096

# steps a -> the chance that the best of `candidates`, all others a + 1 steps lower, is not chosen
Lost = Callable[[int], arb]
# the name of a candidate
Key = TypeVar("Key", bound=Hashable)


def least_shortfall(lost: Lost, rate: Fraction, candidates: int, chance: Fraction) -> int:
    """Return the least number of steps by which the choice falls short, exceeded with probability `chance`."""
    if candidates == 1:
        return 0

    def holds(steps: int) -> bool:
        bits = 128
        while bits <= PRECISION_MOST:
            with working_precision(bits):
                loss, allowed = lost(steps), ball(chance)
                if loss < allowed:
                    return True
                if loss > allowed:
                    return False
            bits *= 2
        return False

    with working_precision(64):
        guess = (candidates / ball(chance)).log() / ball(rate)
        begin = guess.mid().floor().unique_fmpz()
    return least_integer(holds, max(0, int(begin) if begin is not None else 0))


def exponential_lost(rate: Fraction, candidates: int) -> Lost:
    """Return the chance of the exponential mechanism: (k-1)p / (1 + (k-1)p), p = exp(-rate·(a+1))."""

    def lost(steps: int) -> arb:
        others = (candidates - 1) * ball(-rate * (steps + 1)).exp()
        return others / (1 + others)

    return lost


def permute_and_flip_lost(rate: Fraction, candidates: int) -> Lost:
    """Return the chance of permute-and-flip: 1 - (1 - (1-p)^k)/(kp), p = exp(-rate·(a+1))."""

    def lost(steps: int) -> arb:
        p = ball(-rate * (steps + 1)).exp()
        return 1 + (candidates * (-p).log1p()).expm1() / (candidates * p)

    return lost


def noisy_max_lost(rate: Fraction, candidates: int) -> Lost:
    """Return the chance of a noisy maximum with discrete Laplace noise, ties broken evenly (or a bound just above it).

    The best wins with chance Σ_z P(z)/P(z+a+1) · (F(z+a+1)^k - F(z+a)^k)/k. The first factor is q^-(a+1) from z = 0
    on, q^(a+1) up to z = -(a+1), and falls from the one to the other between: so both ends add up at once.
    """
    law = LaplaceLaw(1 / rate)

    def lost(steps: int) -> arb:
        reach = steps + 1
        power = law.cdf(0) ** candidates
        won = ball(-rate * reach).exp() * power
        block = -(-steps // BLOCKS_MOST) or 1
        for start in range(-steps, 0, block):
            end = min(start + block, 0)  # z = start, …, end - 1; the factor is least at z = start
            above = law.cdf(end - 1 + reach) ** candidates
            won += ball(rate * (reach + 2 * start)).exp() * (above - power)
            power = above
        return 1 - (won + ball(rate * reach).exp() * (1 - power)) / candidates

    return lost


# ---- the mechanisms --------------------------------------------------------------------------------------------------


class Selection(ABC):
    """A mechanism that releases only the index of a candidate with about the highest score."""

    title: str

    def __init__(
        self, *, epsilon: Number, sensitivity: Number = 1, monotone: bool = False, step: Number | None = None
    ) -> None:
        self.terms: SelectionTerms = read_terms(epsilon=epsilon, sensitivity=sensitivity, monotone=monotone, step=step)

    @property
    def loss(self) -> PureLoss:
        """The loss of one release."""
        return PureLoss(self.terms.epsilon)

    @property
    @abstractmethod
    def event(self) -> PureChoice | ExponentialChoice:
        """The event of one release."""

    @overload
    def release(self, scores: Mapping[Key, Any]) -> Key: ...

    @overload
    def release(self, scores: Any) -> int: ...

    def release(self, scores: Any) -> Any:
        """Return the index of the chosen candidate, counted from 0; of a dict of scores, its key.

        Privacy: epsilon-DP on the terms given, for any number of candidates. Their number, order and keys are public.
        """
        if isinstance(scores, Mapping):
            return list(scores)[self.release(list(scores.values()))]
        return self._pick(read_scores(scores, self.terms.step, least=2), Keystream())

    def error(self, confidence: Number = 0.95, *, candidates: int) -> int | float:
        """Return the least a such that, with this confidence, the chosen score is within a of the best: reached for
        some scores."""
        chance = 1 - confidence_meaning(confidence)
        count = whole(candidates, name="candidates", least=2)
        return self.terms.in_units(shortfall(self, count, chance))

    def explain(self) -> str:
        """Return what it does, in words and numbers."""
        within = ", ".join(f"{self.error(candidates=10**p):.10g} of {10**p:,}" for p in (1, 3, 6))
        lines = [
            f"{self.title}: {self.loss} for the index of one candidate, for any number of candidates.",
            self.terms.words(),
            f"With 95 % confidence the chosen score falls short of the best by at most {within} candidates.",
            *warning(self.terms.epsilon),
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.terms.arguments()})"

    @abstractmethod
    def _pick(self, steps: Integers, bits: Bits) -> int:
        """Return the index chosen from scores in grid steps."""

    @abstractmethod
    def _lost(self, candidates: int) -> Lost:
        """Return the chance of falling short, for the error."""


def pick(mechanism: Selection, steps: Integers, bits: Bits) -> int:
    """Return the index that a mechanism chooses from scores in grid steps: a release, from the bits given.

    Privacy: that of a release, given uniform bits that are used only for it.
    """
    return mechanism._pick(steps, bits)


def shortfall(mechanism: Selection, candidates: int, chance: Fraction) -> int:
    """Return the least number of steps that a mechanism's choice falls short by, exceeded with probability `chance`."""
    return least_shortfall(mechanism._lost(candidates), mechanism.terms.rate, candidates, chance)


class Exponential(Selection):
    """The index of a candidate drawn with chance proportional to exp(epsilon·score / (2·sensitivity)).

    Privacy: epsilon-DP for scores that one unit moves by at most `sensitivity` each, and epsilon²/8 under zCDP. With
    `monotone`, if one unit moves all scores in the same direction, the 2 is left out. Exact: probabilities neither
    overflow nor vanish, for any number of tied candidates (docs/proofs/selection.md).

    >>> import tacit
    >>> tacit.Exponential(epsilon=10).release([3, 980, 12])
    1
    """

    title = "Exponential mechanism"

    @property
    def event(self) -> ExponentialChoice:
        """The event of one release: its log-probabilities move within a range of epsilon."""
        return ExponentialChoice(self.terms.epsilon)

    def _pick(self, steps: Integers, bits: Bits) -> int:
        return draw_weighted(steps.max() - steps, self.terms.rate, bits)

    def _lost(self, candidates: int) -> Lost:
        return exponential_lost(self.terms.rate, candidates)


class NoisyMax(Selection):
    """The index of the largest score after Laplace noise; ties between noisy scores are broken evenly.

    Privacy: epsilon-DP for scores that one unit moves by at most `sensitivity` each; the noise's scale is twice
    sensitivity / epsilon. With monotone=True it is half of that: then one unit must move all scores in the same
    direction, as it moves counts when it is added or removed, and not when it is replaced (docs/proofs/selection.md).

    >>> import tacit
    >>> tacit.NoisyMax(epsilon=1).release([3, 980, 12])
    1
    >>> tacit.NoisyMax(epsilon=1, monotone=True).error(candidates=10_000)
    12
    """

    title = "Report noisy max"

    @property
    def event(self) -> PureChoice:
        """The event of one release: only pure epsilon, since the noise is Laplace's."""
        return PureChoice(self.terms.epsilon)

    def _pick(self, steps: Integers, bits: Bits) -> int:
        noise = laplace_tables(1 / self.terms.rate, WIDTH).draw(len(steps), bits)
        noisy = add_steps(steps, noise)
        return _one_of(np.flatnonzero(noisy == noisy.max()), bits)

    def _lost(self, candidates: int) -> Lost:
        return noisy_max_lost(self.terms.rate, candidates)


class PermuteAndFlip(Selection):
    """The index of the first candidate, in random order, with a yes from its coin of chance exp(-rate·(best - score)).

    Privacy: epsilon-DP for scores that one unit moves by at most `sensitivity` each; the rate is epsilon over twice
    that, or with `monotone` over once that. Never farther from the best than the exponential mechanism at the same
    epsilon, but under zCDP only what every epsilon-DP release costs, not epsilon²/8 (docs/proofs/selection.md).

    >>> import tacit
    >>> tacit.PermuteAndFlip(epsilon=1).error(candidates=1000), tacit.Exponential(epsilon=1).error(candidates=1000)
    (18, 19)
    """

    title = "Permute-and-flip"

    @property
    def event(self) -> PureChoice:
        """The event of one release: only pure epsilon."""
        return PureChoice(self.terms.epsilon)

    def _pick(self, steps: Integers, bits: Bits) -> int:
        return _one_of(np.flatnonzero(draw_flips(steps.max() - steps, self.terms.rate, bits)), bits)

    def _lost(self, candidates: int) -> Lost:
        return permute_and_flip_lost(self.terms.rate, candidates)


def _one_of(indices: Integers, bits: Bits) -> int:
    """Return one of several indices, chosen uniformly."""
    return int(indices[draw_below(len(indices), 1, bits)[0]])


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
        self.k: int = whole(k, name="k")
        if not isinstance(by, str) or by not in ROUNDS:
            raise InvalidParameter(f"by must be one of {', '.join(ROUNDS)}\nhint: by='exponential' where zCDP is used")
        self.by = by
        self.terms: SelectionTerms = read_terms(epsilon=epsilon, sensitivity=sensitivity, monotone=monotone, step=step)
        each = self.terms.epsilon / self.k
        self.round: Exponential | PermuteAndFlip = ROUNDS[by](
            epsilon=each, sensitivity=sensitivity, monotone=monotone, step=step
        )

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
