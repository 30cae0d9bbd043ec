"""The questions of a reconstruction: how many people with a secret yes are there in these places of every block?

Each question is one GROUP BY: a random half of the places, counted block by block. Everybody who sees the public list
can ask it. A count depends on one block alone, so the whole system is sparse.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.auditing.attacks.choices import Choices
from tacit.auditing.attacks.people import PLACES, Integers, People
from tacit.auditing.attacks.sizes import size

QUESTIONS_MOST = 1_000


@dataclass(frozen=True)
class Questions:
    """Which places each question counts: inside[question, place]."""

    inside: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.inside)

    def first(self, count: int) -> "Questions":
        """Return the first so many questions."""
        return Questions(self.inside[:count])

    def asked_of(self, people: People) -> Integers:
        """Return how many people each question is about, in each block: public."""
        return people.sizes @ self.inside.T.astype(np.int64)

    def exact_answers(self, people: People) -> Integers:
        """Return the exact count of each question in each block."""
        return people.exact_yes @ self.inside.T.astype(np.int64)


def random_questions(count: int, *, seed: int) -> Questions:
    """Return `count` questions, each about a random half of the places."""
    asked = size(count, name="questions", least=1, most=QUESTIONS_MOST)
    return Questions(Choices(seed).coins("questions", asked * PLACES).reshape(asked, PLACES))
