"""Randomized response: each person's own answer, kept or changed by an exact coin before anyone sees it."""

from collections.abc import Hashable, Iterable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from flint import arb

from tacit.errors import InvalidParameter
from tacit.local.domain import as_array, read_bits, read_categories, read_members
from tacit.local.estimate import CountEstimate, FractionEstimate, ReportLaw, intervals
from tacit.local.planning import error_for, people_for
from tacit.noise.bernoulli import Digits, rational_digits
from tacit.noise.bits import Bits, Keystream
from tacit.noise.flips import draw_chance
from tacit.noise.mechanism import confidence_meaning, warning
from tacit.noise.threshold import WIDTH, Integers
from tacit.noise.uniform import draw_below
from tacit.privacy.event import PureChoice
from tacit.privacy.loss import PureLoss
from tacit.privacy.number import Number, decimal_meaning, positive, show
from tacit.privacy.rounding import ball, certain_floor, certainly_less, nearest_float, rounded_up

# Below this chance of being changed a report is the answer; below this gain over guessing it is no answer.
LEAST = Fraction(1, 2**53)


class RandomizedResponse:
    """Answers of 0 or 1, or of `categories`, each kept with chance e^ε/(e^ε + k - 1) and else any other, evenly.

    Privacy: each report is epsilon-DP for the answer behind it, against everyone, whoever collects them. Exact: the
    chance is decided to as many digits as it takes, and no other answer is likelier than another
    (docs/proofs/randomized-response.md). Two reports on the same answer cost twice.

    >>> import tacit
    >>> asking = tacit.RandomizedResponse(epsilon=1)
    >>> asking.release(1) in (0, 1), round(asking.keep, 4), round(asking.gamma, 4)
    (True, 0.7311, 0.2311)
    >>> print(asking.estimate([1] * 600 + [0] * 400))
    0.7164 (0.95 interval 0.657 to 0.777, 1,000 people)
    """

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        gamma: Number | None = None,
        categories: Iterable[Hashable] | None = None,
    ) -> None:
        self.categories = read_categories(categories)
        self.k = 2 if self.categories is None else len(self.categories)
        if (epsilon is None) == (gamma is None):
            raise InvalidParameter("give one of epsilon and gamma\nhint: e.g. RandomizedResponse(epsilon=1)")
        if epsilon is not None:
            self.epsilon = positive(decimal_meaning(epsilon, name="epsilon"), name="epsilon")
            self._digits = _keep_digits(self.epsilon, self.k)
        else:
            self._digits, self.epsilon = self._from_gamma(gamma)
        self._refuse_extremes()

    @property
    def loss(self) -> PureLoss:
        """What one report costs the person who sends it."""
        return PureLoss(self.epsilon)

    @property
    def event(self) -> PureChoice:
        """What one report is recorded as."""
        return PureChoice(self.epsilon)

    @property
    def keep(self) -> float:
        """The chance that an answer is sent as it is, to the nearest float."""
        return nearest_float(lambda: _keep(self.epsilon, self.k))

    @property
    def gamma(self) -> float:
        """How far the chance of keeping a yes or no is above one half, to the nearest float: ½·tanh(epsilon/2)."""
        if self.k != 2:
            raise InvalidParameter("gamma is for two answers\nhint: see keep, the chance that an answer is kept")
        return nearest_float(lambda: (ball(self.epsilon) / 2).tanh() / 2)

    def release(self, answer: Any) -> Any:
        """Return a report for each answer: a 0 or 1, or a category, or an array of them of the same shape.

        Privacy: epsilon-DP for each answer. The domain is public: an answer outside it is refused on the person's own
        side, before anything is sent. How long it takes depends neither on the answer nor on what becomes of it.
        """
        codes, shape = self._read(answer, name="answer")
        reports = self._draw(codes, Keystream())
        if self.categories is None:
            return int(reports[0]) if shape is None else reports.reshape(shape)
        if shape is None:
            return self.categories[reports[0]]
        return as_array(self.categories)[reports].reshape(shape)

    def estimate(
        self, reports: Any, confidence: Number = 0.95, *, simultaneous: bool = False
    ) -> FractionEstimate | CountEstimate:
        """Return the debiased fraction of ones, or each count, with intervals that cover as often as stated.

        With `simultaneous`, all categories' intervals cover at once.
        """
        level = confidence_meaning(confidence)
        codes, _ = self._read(reports, name="report")
        if not len(codes):
            raise InvalidParameter(
                "estimate needs at least one report\nhint: pass what release returned, for each person"
            )
        counts = np.bincount(codes, minlength=self.k)
        law = self.report_law(len(codes))
        share = 1 - (1 - level) / self.k if simultaneous and self.categories is not None else level
        if self.categories is None:
            low, high = law.interval(int(counts[1]), float(level))
            people = len(codes)
            return FractionEstimate(
                law.unbiased(int(counts[1])) / people, low / people, high / people, float(level), people
            )
        lows, highs = intervals(law, counts, float(share))
        values = tuple(law.unbiased(count) for count in counts.tolist())
        return CountEstimate(self.categories, values, lows, highs, float(level), len(codes))

    def error(self, *, people: int, confidence: Number = 0.95) -> float:
        """Return the error of an estimated fraction that is exceeded with chance 1 - confidence (normal rule)."""
        return error_for(people=people, epsilon=self.epsilon, confidence=confidence, categories=self.k)

    def people(self, *, error: Number, confidence: Number = 0.95) -> int:
        """Return how many people it takes for an estimated fraction of at most this error (normal rule)."""
        return people_for(error=error, epsilon=self.epsilon, confidence=confidence, categories=self.k)

    def explain(self) -> str:
        """Return what it does, in words and numbers."""
        return "\n".join(
            [
                f"Randomized response, {self.k} answers: {self.loss} for each report, against everyone.",
                f"An answer is sent as it is with chance {self.keep:.6g}, and is any other evenly otherwise.",
                f"The estimated fraction is within {self.error(people=1000):.3g} of the truth for 1,000 people and "
                f"{self.error(people=10**6):.3g} for 1,000,000 (95 %).",
                *warning(self.epsilon),
            ]
        )

    def report_law(self, people: int) -> ReportLaw:
        """Return the law of how many of so many reports name one answer."""
        stray = nearest_float(lambda: (1 - _keep(self.epsilon, self.k)) / (self.k - 1))
        return ReportLaw(people, self.keep, stray)

    def __repr__(self) -> str:
        domain = "" if self.categories is None else f", categories={list(self.categories)!r}"
        return f"RandomizedResponse(epsilon={show(self.epsilon)}{domain})"

    def _draw(self, codes: Integers, bits: Bits, width: int = WIDTH) -> Integers:
        keep = draw_chance(self._digits, len(codes), bits, width)
        other = draw_below(self.k - 1, len(codes), bits, width)
        other += other >= codes  # any code but the answer's
        return np.where(keep, codes, other)

    def _from_gamma(self, gamma: Number | None) -> tuple[Digits, Fraction]:
        exact = decimal_meaning(gamma if gamma is not None else 0, name="gamma")
        if self.categories is not None:
            raise InvalidParameter("gamma is for answers of 0 or 1\nhint: with categories give epsilon")
        half = Fraction(1, 2)
        if not 0 < exact < half:
            raise InvalidParameter(
                f"gamma must be above 0 and below 1/2, not {show(exact)}: at 0 a report says nothing, "
                "at 1/2 it is the answer itself, which is no privacy"
                "\nhint: e.g. gamma=0.25, where one answer in four is changed"
            )
        return rational_digits(half + exact), rounded_up(lambda: ball((half + exact) / (half - exact)).log())

    def _refuse_extremes(self) -> None:
        if certainly_less(lambda: 1 - _keep(self.epsilon, self.k), lambda: ball(LEAST)):
            raise InvalidParameter(
                f"epsilon = {show(self.epsilon)} changes fewer than one answer in 2^53: a report is the answer itself, "
                "which is no privacy\nhint: 0.5 to 5 is usual"
            )
        if certainly_less(lambda: _keep(self.epsilon, self.k) - ball(Fraction(1, self.k)), lambda: ball(LEAST)):
            raise InvalidParameter(
                f"epsilon = {show(self.epsilon)} keeps an answer no oftener than guessing would, to 2^-53: "
                "a report says nothing\nhint: 0.5 to 5 is usual"
            )

    def _read(self, given: Any, *, name: str) -> tuple[Integers, tuple[int, ...] | None]:
        if self.categories is None:
            return read_bits(given, name)
        return read_members(given, self.categories, name)


def _keep(epsilon: Fraction, k: int) -> arb:
    return 1 / (1 + (k - 1) * ball(-epsilon).exp())


def _keep_digits(epsilon: Fraction, k: int) -> Digits:
    """Return the binary digits of e^ε/(e^ε + k - 1), which is irrational for every rational epsilon but 0."""

    @cache
    def digits(length: int) -> tuple[int, bool]:
        return certain_floor(lambda: _keep(epsilon, k) * arb(2) ** length), False

    return digits
