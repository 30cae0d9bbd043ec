"""Randomized response within one program: answers go in, reports come out, and estimates follow from the reports.

The class wraps a survey of one question with the protocol `Response`, for answers that are not written to a file. The
number of people needed and the error they leave come from the exact distribution of the reports, as in `tradeoff`.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.local.domain import SIZE_MAX, Labels
from tacit.local.estimate import Counting, ReportLaw
from tacit.local.protocols.protocol import Response
from tacit.local.survey import Survey
from tacit.noise import Keystream, warning
from tacit.numbers import (
    Integers,
    Number,
    ball,
    confidence_meaning,
    decimal_meaning,
    nearest_float,
    positive,
    rounded_up,
    show,
    whole,
)
from tacit.privacy import PureChoice, PureLoss, least_integer

# More people than there are on Earth.
PEOPLE_MOST = 10**10


@lru_cache(maxsize=4096)
def share_error(response: Response, people: int, chance: float) -> float:
    """Return the largest error of the debiased share of one answer, exceeded with at most `chance`.

    Taken at the true answers where reports vary most. With two answers all are alike; with more, either all people
    hold the answer or none.

    >>> from fractions import Fraction
    >>> round(share_error(Response(2, Fraction(1)), 10_000, 0.05), 4)
    0.0188
    """
    law = Counting(response.keep, response.stray, people, people).law()
    if response.size == 2:
        holders = people // 2
    else:
        holders = people if law.keep * (1 - law.keep) >= law.stray * (1 - law.stray) else 0
    return law.within(holders, chance) / (gain_of(response) * people)


def gain_of(response: Response) -> float:
    """Return the probability that a holder reports the answer, minus the probability that another person does."""
    return float(response.keep - response.stray)


def least_people(error: Callable[[int], float], goal: float) -> int | None:
    """Return the least number of people with an error of at most `goal`, or None above `PEOPLE_MOST`."""
    begin = 1000
    for _ in range(60):  # the error falls about as 1/n or 1/sqrt(n): either step gets close, and the search ends it
        ratio = error(begin) / goal
        step = begin * ratio ** (1.0 if 0.5 < ratio < 2 else 1.5)
        if step > PEOPLE_MOST:
            return None
        if abs(step - begin) < 1:
            break
        begin = max(1, round(step))
    return max(1, least_integer(lambda n: n >= 1 and error(n) <= goal, begin))


@dataclass(frozen=True)
class FractionEstimate:
    """The estimated fraction of ones, unbiased (so it may lie outside 0 to 1), and an interval for the true one."""

    value: float
    low: float
    high: float
    confidence: float
    people: int

    def __str__(self) -> str:
        interval = f"{self.confidence:.4g} interval {self.low:.4g} to {self.high:.4g}"
        return f"{self.value:.4g} ({interval}, {self.people:,} people)"


@dataclass(frozen=True)
class CountEstimate:
    """The estimated count of each category, unbiased (so it may lie below 0), and an interval for each true one."""

    categories: tuple[object, ...]
    values: tuple[float, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    confidence: float
    people: int

    def __str__(self) -> str:
        rows = zip(self.categories, self.values, self.low, self.high, strict=True)
        return "\n".join(f"{name}: {value:.6g} ({low:,} to {high:,})" for name, value, low, high in rows)


@dataclass(frozen=True)
class Categories(Labels):
    """Any different plain values as answers, found as a dictionary finds them; without names, 0 and 1 or a bool."""

    names: tuple[Any, ...] | None = None

    def read_one(self, value: Any) -> int:
        if self.names is not None or isinstance(value, Integral | np.bool_):
            try:
                return self._codes[value]
            except (KeyError, TypeError):
                pass
        raise InvalidParameter("an answer lies outside the domain")

    def flat(self, given: Any) -> tuple[Any, tuple[int, ...] | None]:
        """Return the answers in one row, and their shape: None for a single one."""
        if self._is_one(given):
            return [given], None
        if isinstance(given, list | tuple):
            kinds = set(map(type, given))
            if kinds <= {bool} or kinds <= {str} or (kinds <= {int} and not any(abs(value) >> 62 for value in given)):
                array = np.array(given, dtype=None if kinds else np.int64)
            else:
                array = np.empty(len(given), dtype=object)
                array[:] = given
        elif hasattr(given, "__array__") and not isinstance(given, np.generic):
            array = np.asarray(given)
        else:
            raise InvalidParameter("answers must be one of the domain, a list or an array")
        if array.dtype.kind == "b":  # a bool is the whole number it equals
            array = array.astype(np.int8)
        return array.ravel(), array.shape

    def as_array(self) -> NDArray[Any]:
        """Return the answers as an array to pick from: of integers or text where all are, of objects otherwise."""
        kinds = set(map(type, self.values))
        if kinds == {str} or (kinds == {int} and max(map(abs, self.values)) < 2**63):  # type: ignore[arg-type]
            return np.array(self.values)
        array = np.empty(self.size, dtype=object)
        array[:] = self.values
        return array

    def _is_one(self, given: Any) -> bool:
        try:
            self.read_one(given)
        except InvalidParameter:
            return False
        return True


class RandomizedResponse:
    """Answers of 0 or 1, or of `categories`, each kept with chance e^ε/(e^ε + k - 1) and else any other, evenly.

    Privacy: each report is epsilon-DP for the answer behind it, against everyone, including the collector. Exact: the
    chance is decided with all digits that it needs, and the other answers are equally likely
    (docs/proofs/randomized-response.md). Two reports on the same answer cost twice. `truth` is how often a person tells
    the truth about a bit, and gamma is what it has above one half.

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
        truth: Number | None = None,
        categories: Iterable[Hashable] | None = None,
    ) -> None:
        self.categories: tuple[Hashable, ...] | None = _read_categories(categories)
        self.k: int = 2 if self.categories is None else len(self.categories)
        if [epsilon, gamma, truth].count(None) != 2:
            raise InvalidParameter(
                "give one of epsilon, gamma and truth\nhint: e.g. RandomizedResponse(epsilon=1), or truth=0.75"
            )
        if truth is not None:  # how often a person tells the truth
            gamma = decimal_meaning(truth, name="truth") - Fraction(1, 2)
        if epsilon is not None:
            self.epsilon: Fraction = positive(decimal_meaning(epsilon, name="epsilon"), name="epsilon")
        else:
            self.epsilon = self._from_gamma(gamma)
        self._question, self._response = Categories(self.k, self.categories), Response(self.k, self.epsilon)
        self.survey: Survey = Survey(self._question, self._response)
        self._counting(1)  # refuses an epsilon at which reports give no protection, or carry no information

    @property
    def loss(self) -> PureLoss:
        """The loss that one report costs its sender."""
        return self.survey.loss

    @property
    def event(self) -> PureChoice:
        """The event that records one report."""
        return self.survey.event

    @property
    def keep(self) -> float:
        """The chance that an answer is sent as it is, to the nearest float."""
        return float(self._response.keep)

    @property
    def gamma(self) -> float:
        """How far the chance of keeping a yes or no is above one half, to the nearest float: ½·tanh(epsilon/2)."""
        if self.k != 2:
            raise InvalidParameter(
                "gamma is defined for two answers\nhint: see keep, the probability that an answer is kept"
            )
        return nearest_float(lambda: (ball(self.epsilon) / 2).tanh() / 2)

    def release(self, answer: Any) -> Any:
        """Return a report for each answer: a 0 or 1, or a category, or an array of them of the same shape.

        Privacy: epsilon-DP for each answer. The domain is public: an answer outside it is refused on the person's own
        side, before anything is sent. The time does not depend on the answer or on its report.
        """
        codes, shape = self._read(answer, name="answer")
        reports = self._response.codes_of(self._response.draw(codes, Keystream()))
        if self.categories is None:
            return int(reports[0]) if shape is None else reports.reshape(shape)
        if shape is None:
            return self.categories[reports[0]]
        return self._question.as_array()[reports].reshape(shape)

    def estimate(
        self, reports: Any, confidence: Number = 0.95, *, simultaneous: bool = False
    ) -> FractionEstimate | CountEstimate:
        """Return the debiased fraction of ones, or each count, with intervals of the stated coverage.

        With `simultaneous`, all categories' intervals cover at once.
        """
        level = confidence_meaning(confidence)
        codes, _ = self._read(reports, name="report")
        if not len(codes):
            raise InvalidParameter("estimate needs at least one report\nhint: pass the reports that release returned")
        counts, people = np.bincount(codes, minlength=self.k), len(codes)
        share = 1 - (1 - level) / self.k if simultaneous and self.categories is not None else level
        counting = self._counting(people)
        values = counting.unbiased(counts).tolist()
        low, high = counting.certain_bounds(counts, float(share))
        if self.categories is None:
            return FractionEstimate(values[1] / people, low[1] / people, high[1] / people, float(level), people)
        return CountEstimate(self.categories, tuple(values), low, high, float(level), people)

    def error(self, *, people: int, confidence: Number = 0.95) -> float:
        """Return the error of an estimated fraction that is exceeded with chance 1 - confidence at most.

        Computed by the exact law of the reports, at the true answers with the largest variance.
        """
        return share_error(self._response, whole(people, name="people"), float(1 - confidence_meaning(confidence)))

    def people(self, *, error: Number, confidence: Number = 0.95) -> int:
        """Return how many people it takes for an estimated fraction of at most this error, as `tradeoff` does."""
        goal = decimal_meaning(error, name="error")
        if not 0 < goal < 1:
            raise InvalidParameter(f"error must be a fraction between 0 and 1, not {show(goal)}\nhint: e.g. error=0.02")
        chance = float(1 - confidence_meaning(confidence))
        found = least_people(lambda people: share_error(self._response, people, chance), float(goal))
        if found is None:
            raise InvalidParameter(
                f"this error needs more than {PEOPLE_MOST:,} people at this epsilon\nhint: allow more error or epsilon"
            )
        return found

    def explain(self) -> str:
        """Return what it does, in words and numbers."""
        return "\n".join(
            [
                f"Randomized response, {self.k} answers: {self.loss} for each report, against everyone.",
                f"An answer is sent unchanged with probability {self.keep:.6g}; otherwise as another, equally likely.",
                f"The estimated fraction is within {self.error(people=1000):.3g} of the truth for 1,000 people and "
                f"{self.error(people=10**6):.3g} for 1,000,000 (95 %).",
                *warning(self.epsilon),
            ]
        )

    def report_law(self, people: int) -> ReportLaw:
        """Return the distribution of how many of `people` reports name one answer."""
        return self._counting(people).law()

    def __repr__(self) -> str:
        domain = "" if self.categories is None else f", categories={list(self.categories)!r}"
        return f"RandomizedResponse(epsilon={show(self.epsilon)}{domain})"

    def _from_gamma(self, gamma: Number | None) -> Fraction:
        exact = decimal_meaning(gamma if gamma is not None else 0, name="gamma")
        if self.categories is not None:
            raise InvalidParameter("gamma is defined for answers of 0 or 1\nhint: with categories, give epsilon")
        half = Fraction(1, 2)
        if not 0 < exact < half:
            raise InvalidParameter(
                f"gamma must be above 0 and below 1/2, not {show(exact)}: at 0 a report carries no information, "
                "at 1/2 it is the answer itself and gives no protection\nhint: e.g. gamma=0.25, if one answer in "
                "four is changed"
            )
        return rounded_up(lambda: ball((half + exact) / (half - exact)).log())

    def _counting(self, people: int) -> Counting:
        return Counting(self._response.keep, self._response.stray, people, people)

    def _read(self, given: Any, *, name: str) -> tuple[Integers, tuple[int, ...] | None]:
        try:
            values, shape = self._question.flat(given)
            return self._question.read(values), shape
        except InvalidParameter:
            raise self._outside(name) from None

    def _outside(self, name: str) -> InvalidParameter:
        if self.categories is None:
            return InvalidParameter(
                f"every {name} must be 0 or 1 (or False or True)\nhint: name other answers, e.g. "
                "categories=['no', 'yes', 'unsure']"
            )
        return InvalidParameter(
            f"every {name} must be one of the categories\nhint: list every possible answer; a last one can be 'other'"
        )


def _read_categories(categories: Iterable[Hashable] | None) -> tuple[Hashable, ...] | None:
    """Return the categories in the order given, at least two and all different; None stands for 0 and 1."""
    if categories is None:
        return None
    if isinstance(categories, str | bytes) or not isinstance(categories, Iterable):
        raise InvalidParameter("categories must be a list\nhint: e.g. categories=['red', 'green', 'blue']")
    listed = tuple(categories)
    try:
        different = len(set(listed))
    except TypeError:
        raise InvalidParameter("categories must be plain values, such as text or numbers") from None
    if different < len(listed):
        raise InvalidParameter("categories must differ from each other\nhint: in Python True, 1 and 1.0 are equal")
    if not 2 <= different <= SIZE_MAX:
        raise InvalidParameter(
            f"categories must be at least two, not {different}\nhint: with one category the answer is known"
        )
    return listed
