"""An attacker's questions, and four ways to answer them: exactly, k-anonymously, with a little noise, by a budget.

A question of a reconstruction is: how many people with a secret yes live in these places of every block? A question is
one GROUP BY over a random half of the places, counted block by block. Any reader of the public list can ask it. A
count depends on one block only, so the whole system of equations is sparse.

All four ways get the same questions about the same people. An answer is a number for each block and question; NaN means
that it was withheld. The budget is a real one: a table behind `tacit.table`, with a ledger in memory.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.asking import Table, table
from tacit.noise import Keystream, draw_below
from tacit.numbers import Integers
from tacit.privacy import epsilon as pure_loss
from tacit.query import count
from tacit_classroom.attacks.people import PLACES, Choices, People, Progress, silent, size

QUESTIONS_MOST = 1_000


@dataclass(frozen=True)
class Questions:
    """Which places each question counts."""

    inside: NDArray[np.bool_]  # (questions, places)

    def __len__(self) -> int:
        return len(self.inside)

    def first(self, count: int) -> "Questions":
        """Return the first `count` questions."""
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


# ---- The four ways to answer.

Answers = NDArray[np.float64]  # (blocks, questions)

BATCH = 20  # counts in one call: quick to plan, and the same loss as any other batch


def exact_answers(people: People, questions: Questions) -> Answers:
    """Return every count as it is."""
    return questions.exact_answers(people).astype(np.float64)


def k_anonymous_answers(people: People, questions: Questions, *, k: int) -> Answers:
    """Return exact counts of groups of at least `k` people; smaller groups are withheld.

    Every question's table is k-anonymous: none of its rows is about fewer than k people. There are many such tables.
    """
    exact = exact_answers(people, questions)
    return np.where(questions.asked_of(people) >= k, exact, np.nan)


def small_noise_answers(people: People, questions: Questions, *, spread: int) -> Answers:
    """Return every count plus a whole number between -spread and spread, drawn once for each."""
    exact = exact_answers(people, questions)
    noise = draw_below(2 * spread + 1, exact.size, Keystream()) - spread
    noisy: Answers = exact + noise.reshape(exact.shape)
    return noisy


def budgeted_answers(
    people: People, questions: Questions, *, epsilon: Fraction, progress: Progress = silent
) -> Answers:
    """Return what a protected table answers when all the questions together may cost `epsilon`.

    Only rows with a yes are counted, so a person's no is as if they were not there: for each secret the promise is
    epsilon, under add or remove one.
    """
    asked = _protected(people, epsilon).where("secret").group_by("block")
    noisy = np.empty((people.blocks, len(questions)))
    for start in range(0, len(questions), BATCH):
        batch = questions.inside[start : start + BATCH]
        counts = {f"q{at}": count(_inside(places)) for at, places in enumerate(batch)}
        answer = asked.agg(**counts).answer(epsilon=epsilon * len(batch) / len(questions), accept_noise=True)
        for row in answer.to_dicts():
            noisy[row["block"], start : start + len(batch)] = [row[name] for name in counts]
        progress("asking through the budget", (start + len(batch)) / len(questions))
    return noisy


def direct_answers(people: People, *, epsilon: Fraction) -> Answers:
    """Return the answers of a protected table about every place by itself, for `epsilon` in all.

    All people are in exactly one place, so the whole budget is spent on each: the most that any attacker can do with
    it.
    """
    keys = [(block, place) for block in range(people.blocks) for place in range(PLACES)]
    asked = _protected(people, epsilon).where("secret").group_by("block", "place", keys=keys)
    noisy = np.zeros((people.blocks, PLACES))
    for row in asked.count().answer(epsilon=epsilon, accept_noise=True).to_dicts():
        noisy[row["block"], row["place"]] = row["count"]
    return noisy


def _protected(people: People, epsilon: Fraction) -> Table:
    columns = {
        "person": np.arange(len(people)),
        "block": people.block,
        "place": people.place,
        "secret": people.exact_secret,
    }
    return table(
        pa.table(columns),
        name="people",
        unit="person",
        rows_per_unit=1,
        groups_per_unit=1,
        columns={"block": {"keys": list(range(people.blocks))}},
        budget=pure_loss(epsilon),
        ledger=":memory:",
    )


def _inside(places: NDArray[np.bool_]) -> str:
    """Return the count's condition; the list is never empty, so it has an unused place."""
    listed = ", ".join(str(place) for place in [*np.flatnonzero(places), PLACES])
    return f"CASE WHEN place IN ({listed}) THEN 1 END"
