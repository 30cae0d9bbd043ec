"""The answer of a count that runs on: from released numbers to the total of each day, with its interval.

The released numbers are the days' counts, weighed by the root of the running sum, with a noise each. Weighed by that
root once more, they are running totals. The second weights undo the rounding of the first, so totals are unbiased
(docs/proofs/streams.md). A day's total is made of numbers up to that day, so it never changes afterwards.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import lru_cache
from math import floor
from typing import Any

import numpy as np

from tacit.answer.answer import Answer, AnswerInfo, AnswerRows
from tacit.answer.noise_sums import SAFETY, normal_bound
from tacit.numbers import Floats, Integers

# How far off a float's last digit may be, twice: of the weights, and of their sums.
ULPS = 2.0**-50


@lru_cache(maxsize=8)
def _second_weights(coefficients: tuple[int, ...]) -> Floats:
    """Return the numbers l with which the coefficients c give running sums: c * l = (1, 1, 1, ...), step by step."""
    first = np.array(coefficients, dtype=np.float64)
    found = np.empty(len(first))
    for place in range(len(first)):
        found[place] = (1.0 - first[1 : place + 1][::-1] @ found[:place]) / first[0]
    found.flags.writeable = False
    return found


@dataclass(frozen=True)
class RunningTotals:
    """How released numbers become totals: the weights of days, and the sigma of the noise, both in whole steps."""

    coefficients: Integers
    sigma: Fraction

    def of(self, noisy: Sequence[int]) -> Floats:
        """Return the running total of each released day."""
        left = self._second(len(noisy))
        found: Floats = np.convolve([*left, 0.0], [*noisy, 0.0])[: len(noisy)]  # of no day too
        return found

    def errors(self, days: int, confidence: Fraction) -> Floats:
        """Return how far each day's total is from the table's with this probability, by the law of the noise only.

        A sum of discrete noises goes at most one step for each farther than one of continuous noises, at one
        probability.
        """
        left, most = self._second(days), normal_bound(float(1 - confidence)) * float(self.sigma) * SAFETY
        found: Floats = most * np.sqrt(np.cumsum(left**2)) + np.cumsum(np.abs(left))
        return found

    def answer(
        self,
        names: tuple[str, str],
        days: Sequence[date],
        noisy: Sequence[int],
        info: AnswerInfo,
        certify: Callable[[], Mapping[str, Any]],
    ) -> Answer:
        """Return the running totals of days, as an answer: `names` are those of the day and of the total."""
        day, total = names
        sizes = np.cumsum(np.abs(np.array(noisy, dtype=np.float64)))
        strays = self.errors(len(noisy), info.confidence) + ULPS * len(noisy) / float(self.coefficients[0]) * sizes
        values = [round(each) for each in self.of(noisy).tolist()]
        ends = [floor(each + 0.5) for each in strays.tolist()]
        columns: dict[str, Sequence[Any]] = {
            day: list(days),
            total: values,
            f"{total}_low": [value - end for value, end in zip(values, ends, strict=True)],
            f"{total}_high": [value + end for value, end in zip(values, ends, strict=True)],
        }
        types = {name: "date" if name == day else "int" for name in columns}
        return Answer(AnswerRows(columns), (day, total), types, (total,), info, {total: "running"}, certify)

    def _second(self, days: int) -> Floats:
        return _second_weights(tuple(self.coefficients[:days].tolist()))
