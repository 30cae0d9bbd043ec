"""Randomized response: each person's own answer, kept or changed by an exact coin before anyone sees it.

How many people, what error, which epsilon for randomized response: any one from the other two.

The rule is the normal one with the estimate's exact standard deviation: with n people the error at a confidence is
z·sd/√n, z the normal quantile. For two answers sd is 1/(2·sinh(epsilon/2)), whatever the true answers are; for more it
depends on how many hold a category, and the largest is taken. docs/proofs/randomized-response.md derives both.

Read answers and reports as codes 0, …, k-1 of a public domain; what lies outside it is refused and never quoted.
"""

import math
from collections.abc import Hashable, Iterable
from fractions import Fraction
from functools import cache
from numbers import Integral
from statistics import NormalDist
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.local.interval import CountEstimate, FractionEstimate, ReportLaw, intervals
from tacit.noise.bits import Bits, Keystream
from tacit.noise.coins import Digits, draw_below, draw_chance, rational_digits
from tacit.noise.mechanism import warning
from tacit.noise.threshold import WIDTH
from tacit.privacy.arrays import Integers
from tacit.privacy.event import PureChoice
from tacit.privacy.loss import PureLoss
from tacit.privacy.number import Number, confidence_meaning, decimal_meaning, positive, show, whole
from tacit.privacy.rounding import ball, certain_floor, certainly_less, nearest_float, rounded_up

# Beyond these an answer's chance to change, or to tell, is below what a double can hold.
EPSILON_MOST = 36.7


def error_for(*, people: int, epsilon: Number, confidence: Number = 0.95, categories: int = 2) -> float:
    """Return the error of the estimated fraction that is exceeded with chance 1 - confidence.

    >>> round(error_for(people=10_000, epsilon=1), 4)
    0.0188
    """
    count = whole(people, name="people")
    return _quantile(confidence) * spread(_epsilon(epsilon), _kinds(categories)) / math.sqrt(count)


def people_for(*, error: Number, epsilon: Number, confidence: Number = 0.95, categories: int = 2) -> int:
    """Return the least number of people whose estimated fraction has at most this error.

    >>> people_for(error=0.02, epsilon=1)
    8842
    """
    goal = _error(error)
    needed = (_quantile(confidence) * spread(_epsilon(epsilon), _kinds(categories)) / goal) ** 2
    if needed > 2.0**62:
        raise InvalidParameter(
            "error and epsilon ask for more people than there can be\nhint: give a larger error or epsilon"
        )
    return max(1, math.ceil(needed))


def epsilon_for(*, people: int, error: Number, confidence: Number = 0.95, categories: int = 2) -> float:
    """Return the least epsilon at which this many people give at most this error.

    >>> round(epsilon_for(people=10_000, error=0.02), 4)
    0.9445
    """
    goal = _error(error) * math.sqrt(whole(people, name="people")) / _quantile(confidence)
    kinds = _kinds(categories)
    if kinds == 2:
        found = 2 * math.asinh(1 / (2 * goal))
    else:
        low, high = 0.0, EPSILON_MOST
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (low, middle) if middle and spread(middle, kinds) <= goal else (middle, high)
        found = high
    if not found < EPSILON_MOST:
        raise InvalidParameter(
            f"no epsilon gives {people} people so small an error: the answers would go out as they are"
            "\nhint: ask more people, or allow a larger error"
        )
    return found


def spread(epsilon: float, categories: int = 2) -> float:
    """Return the standard deviation of one report's estimate of a fraction, the largest over all true fractions."""
    if categories == 2:
        return 1 / (2 * math.sinh(epsilon / 2))
    others = (categories - 1) * math.exp(-epsilon)
    keep = 1 / (1 + others)
    change = others / (1 + others)
    stray = change / (categories - 1)
    gain = -math.expm1(-epsilon) / (1 + others)
    return math.sqrt(max(keep * change, stray * (1 - stray))) / gain


def _quantile(confidence: Number) -> float:
    return -NormalDist().inv_cdf(float(1 - confidence_meaning(confidence)) / 2)


def _epsilon(epsilon: Number) -> float:
    found = float(positive(decimal_meaning(epsilon, name="epsilon"), name="epsilon"))
    if not 0 < found < EPSILON_MOST:
        raise InvalidParameter(
            f"epsilon must be above 0 and below {EPSILON_MOST}, beyond which answers go out as they are"
        )
    return found


def _error(error: Number) -> float:
    exact = decimal_meaning(error, name="error")
    if not 0 < exact < 1:
        raise InvalidParameter(f"error must be a fraction between 0 and 1, not {show(exact)}\nhint: e.g. error=0.02")
    return float(exact)


def _kinds(categories: int) -> int:
    return whole(categories, name="categories", least=2)


CATEGORIES_MAX = 2**31

Codes = tuple[Integers, tuple[int, ...] | None]


def read_categories(categories: Iterable[Hashable] | None) -> tuple[Hashable, ...] | None:
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
        raise InvalidParameter("categories must differ from each other\nhint: True is 1, and 1.0 too")
    if not 2 <= different <= CATEGORIES_MAX:
        raise InvalidParameter(
            f"categories must be at least two, not {different}\nhint: with one category there is nothing to hide"
        )
    return listed


def read_bits(given: Any, name: str) -> Codes:
    """Return zeros and ones, bools included, and their shape (None for one alone)."""
    if isinstance(given, bool | np.bool_ | Integral):
        values, shape = np.array([int(given)], dtype=object), None
    else:
        array = _array(given, name)
        if array.dtype.kind == "O" and not all(isinstance(value, bool | np.bool_ | Integral) for value in array.flat):
            raise _outside_bits(name)
        if array.dtype.kind not in "biuO" and array.size:
            raise _outside_bits(name)
        values, shape = array.ravel(), array.shape
    if len(values) and not ((values == 0) | (values == 1)).all():
        raise _outside_bits(name)
    return values.astype(np.int64), shape


def read_members(given: Any, categories: tuple[Hashable, ...], name: str) -> Codes:
    """Return each value's place among the categories, and their shape (None for one alone)."""
    code = {category: place for place, category in enumerate(categories)}
    if _is_one(given, code):
        return np.array([code[given]], dtype=np.int64), None
    array = _array(given, name)
    if array.dtype.kind in "iu" and categories == tuple(range(len(categories))):
        if array.size and not 0 <= int(array.min()) <= int(array.max()) < len(categories):
            raise _outside(name)
        return array.ravel().astype(np.int64), array.shape
    if array.dtype.kind in "iuU":
        distinct, places = np.unique(array, return_inverse=True)
        codes = _look_up(distinct.tolist(), code, name)[places.ravel()]
    else:
        codes = _look_up(array.ravel().tolist(), code, name)
    return codes, array.shape


def as_array(categories: tuple[Hashable, ...]) -> NDArray[Any]:
    """Return the categories as an array to pick from: of integers or text where all are, of objects otherwise."""
    kinds = set(map(type, categories))
    if kinds == {str} or (kinds == {int} and max(map(abs, categories)) < 2**63):  # type: ignore[arg-type]
        return np.array(categories)
    array = np.empty(len(categories), dtype=object)
    array[:] = categories
    return array


def _look_up(values: list[Any], code: dict[Hashable, int], name: str) -> Integers:
    try:
        return np.array([code[value] for value in values], dtype=np.int64)
    except (KeyError, TypeError):
        raise _outside(name) from None


def _is_one(given: Any, code: dict[Hashable, int]) -> bool:
    try:
        return given in code
    except TypeError:
        return False


def _array(given: Any, name: str) -> NDArray[Any]:
    if isinstance(given, list | tuple):
        kinds = set(map(type, given))
        if kinds <= {int} or kinds <= {bool} or kinds <= {str}:
            return np.array(given, dtype=object if kinds == {int} and _is_wide(given) else None)
        array = np.empty(len(given), dtype=object)
        array[:] = given
        return array
    if isinstance(given, str | bytes | np.generic) or not hasattr(given, "__array__"):
        raise _outside(name)
    return np.asarray(given)


def _is_wide(given: Any) -> bool:
    return any(abs(value) >> 62 for value in given)


def _outside_bits(name: str) -> InvalidParameter:
    return InvalidParameter(
        f"each {name} must be 0 or 1 (or False or True)"
        "\nhint: name other answers, e.g. categories=['no', 'yes', 'unsure']"
    )


def _outside(name: str) -> InvalidParameter:
    return InvalidParameter(
        f"each {name} must be one of the categories\nhint: list every possible answer; a last one can be 'other'"
    )


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
