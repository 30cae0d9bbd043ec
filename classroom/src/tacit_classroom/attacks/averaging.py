"""Averaging: ask the same question again and again, until the noise averages out. The attack works if no budget is
kept.

Without a budget every repetition draws fresh noise. With Tacit a repeated question, however it is worded, is answered
from the record; a different question is charged, until the budget ends. All three get the same counts, of many
groups at once, so that the error shown is typical.
"""

from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tacit.asking import Table, table
from tacit.errors import BudgetExceeded
from tacit.noise import Laplace
from tacit.numbers import Number
from tacit.privacy import epsilon as pure_loss
from tacit_classroom.attacks.people import Choices, Progress, loss_to_try, percent, silent, size, without_warnings

UNBUDGETED, SAME, OTHER = "no budget", "Tacit, same question", "Tacit, other questions"
REPEATS, REPEATS_MOST = 10_000, 100_000
GROUPS, PEOPLE = 200, 25  # groups asked at once, and people in each
SHARES_OF_BUDGET = 10  # a question costs a tenth of the budget
ASKED = 30  # how often the same question is really asked: the answer is on record from the second time on
# one question in several wordings
WORDINGS = (
    "SELECT club, COUNT(*) AS n FROM members WHERE ill GROUP BY club",
    "select club, count(*) as patients from members where (ill and ill) group by club -- again",
    "SELECT m.club, COUNT(1) AS n FROM members AS m WHERE NOT (NOT m.ill) GROUP BY m.club HAVING n > -1000000",
    "SELECT club, COUNT(*) AS n FROM members WHERE ill GROUP BY club ORDER BY n DESC",
)


@dataclass(frozen=True)
class AveragingPoint:
    """How far off the average of this many repeats is (root mean square), and how often it rounds to the truth."""

    answers: str
    repeats: int
    error: float
    exact: float


@dataclass(frozen=True)
class Averaging:
    """How repeats help an attacker: print it, `plot` it, or take `record()` as data."""

    epsilon: float
    each: float
    repeats: int
    groups: int
    seed: int
    asked: int  # how often the same question was really asked of us
    numbers_seen: int  # how many different answers it had
    spent_on_same: float
    others_answered: int
    points: tuple[AveragingPoint, ...]

    def last(self, answers: str) -> AveragingPoint:
        """Return where averaging ended up."""
        return [point for point in self.points if point.answers == answers][-1]

    @property
    def sentence(self) -> str:
        """The meaning, for decision makers."""
        free, ours = self.last(UNBUDGETED), self.last(OTHER)
        return (
            f"Noise without a budget is averaged away ({percent(free.exact)} of the counts are known exactly after "
            f"{free.repeats:,} repeats); here the same question always has the same answer, and {self.others_answered} "
            f"new ones use up the budget while their average is still off by about {ours.error:.0f}."
        )

    def record(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return asdict(self) | {"attack": "average", "sentence": self.sentence}

    def plot(self, path: str | Path) -> Path:
        """Draw the error of the average along the number of repeats: .png, .svg or .html."""
        from tacit_classroom.attacks.drawings import draw_averaging

        return draw_averaging(self, Path(path))

    def __str__(self) -> str:
        lines = [
            f"Averaging repeats of a count in {self.groups} made-up groups (seed {self.seed})",
            f"Every answer costs ε = {self.each:g}; the budget is ε = {self.epsilon:g}.",
            "",
            f"{'who answers':<26}{'repeats':>9}{'typical error':>16}{'exact when rounded':>21}",
        ]
        lines += [
            f"{point.answers:<26}{point.repeats:>9,}{point.error:>16.2f}{percent(point.exact):>21}"
            for point in self.points
            if point.repeats in {1, 10, 100, 1_000, 10_000, self.repeats}
        ]
        seen = "a single set of numbers" if self.numbers_seen == 1 else f"{self.numbers_seen} sets of numbers"
        lines += [
            "",
            f"The same question in {len(WORDINGS)} wordings, {self.asked} times: {seen}, ε = {self.spent_on_same:g} "
            f"in all. Others, each charged: {self.others_answered} answered, then refused.",
            "",
            self.sentence,
        ]
        return "\n".join(lines)

    __repr__ = __str__


@without_warnings()
def average(*, epsilon: Number = 1, repeats: int = REPEATS, seed: int = 1, progress: Progress = silent) -> Averaging:
    """Return the gain of averaging repeats: against noise without an account, and against a budget of `epsilon`.

    Every answer costs a tenth of the budget; the unbudgeted mechanism adds the same noise, in any number of repeats.
    """
    loss = loss_to_try(epsilon)
    most = size(repeats, name="repeats", least=SHARES_OF_BUDGET, most=REPEATS_MOST)
    each = loss / SHARES_OF_BUDGET
    ill = Choices(seed).coins("ill", GROUPS * PEOPLE)
    exact = ill.reshape(GROUPS, PEOPLE).sum(axis=1)
    marks = sorted({1, 2, 3, 5, SHARES_OF_BUDGET, most, *(_steps(most))})
    points = [*_unbudgeted(exact, each, marks, progress)]
    same, seen, spent = _same_question(_members(ill, loss), each, progress)
    points += [_point(SAME, count, same, exact) for count in sorted({*marks, ASKED}) if count <= ASKED]
    sums, answered = np.zeros(GROUPS), 0
    members = _members(ill, loss)
    try:
        while True:  # a condition that is true for all people: other questions with the same truth
            question = members.where(f"ill AND age > -{answered + 1}").group_by("club").count()
            sums += [row["count"] for row in question.answer(epsilon=each, accept_noise=True).to_dicts()]
            answered += 1
            if answered in marks:
                points.append(_point(OTHER, answered, sums / answered, exact))
    except BudgetExceeded:
        pass
    progress("asking other questions", 1.0)
    return Averaging(float(loss), float(each), most, GROUPS, seed, ASKED, seen, spent, answered, tuple(points))


def _unbudgeted(exact: Any, each: Fraction, marks: list[int], progress: Progress) -> list[AveragingPoint]:
    """Ask a mechanism without an account, any number of times."""
    mechanism = Laplace(sensitivity=1, epsilon=each)
    points, sums, asked = [], np.zeros(len(exact)), 0
    for mark in marks:
        fresh = np.asarray(mechanism.release(np.tile(exact, mark - asked)), dtype=np.float64)
        sums += fresh.reshape(mark - asked, len(exact)).sum(axis=0)
        asked = mark
        points.append(_point(UNBUDGETED, mark, sums / mark, exact))
        progress("averaging without a budget", mark / marks[-1])
    return points


def _same_question(members: Table, each: Fraction, progress: Progress) -> tuple[Any, int, float]:
    """Ask one question in several wordings; return the average, how many different answers there were, and the cost."""
    answers = []
    for turn in range(ASKED):
        answer = members.sql(WORDINGS[turn % len(WORDINGS)]).answer(epsilon=each, accept_noise=True)
        counts = {row["club"]: row[answer.aggregates[0]] for row in answer.to_dicts()}
        answers.append(tuple(counts[club] for club in range(GROUPS)))
        progress("asking the same question", (turn + 1) / ASKED)
    spent = members.session.ledger.spent(members.session.registered).epsilon
    return np.mean(answers, axis=0), len(set(answers)), float(spent or 0)


def _members(ill: Any, loss: Fraction) -> Table:
    people = np.arange(len(ill))
    columns = {"person": people, "club": people // PEOPLE, "age": 18 + people % 60, "ill": ill}
    return table(
        pa.table(columns),
        name="members",
        unit="person",
        rows_per_unit=1,
        groups_per_unit=1,
        columns={"club": {"keys": list(range(len(ill) // PEOPLE))}},
        budget=pure_loss(loss),
        ledger=":memory:",
    )


def _point(answers: str, repeats: int, averages: Any, exact: Any) -> AveragingPoint:
    off = averages - exact
    return AveragingPoint(answers, repeats, float(np.sqrt((off**2).mean())), float((np.abs(off) < 0.5).mean()))


def _steps(most: int) -> list[int]:
    """Return three marks for every power of ten up to `most`."""
    return [step for power in range(1, 6) for step in (10**power, 3 * 10**power) if step <= most]
