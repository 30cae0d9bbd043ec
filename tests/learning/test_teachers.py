"""Teachers: disjoint people, one vote each, nothing of them leaves but noisy counts."""

import logging
import pickle
import sys
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tacit
from tacit.asking import Table
from tacit.learning import Teachers
from tacit.learning.teachers import TeachingTask
from tests.learning.sided_people import people_table, rows_of, units_in

PUBLIC = {"age": [5, 25, 45, 65, 95], "sex": ["f", "m", "f", "m", "f"]}


class Nearest:
    """A classifier by the nearest class mean; it draws, prints, logs and warns, as others' code may."""

    def fit(self, rows: Any, target: Any) -> "Nearest":
        print("rows:", len(rows))
        logging.getLogger("a library").critical("saw %s rows", len(rows))
        warnings.warn(f"saw {len(rows)} rows", stacklevel=1)
        self.jitter = np.random.random()
        self.means = [rows[target == each].mean(axis=0) if (target == each).any() else None for each in (0, 1)]
        return self

    def predict(self, rows: Any) -> Any:
        if None in [None if each is None else 0 for each in self.means]:
            raise ValueError(f"a secret: {self.means}")
        far = [((rows - mean) ** 2).sum(axis=1) for mean in self.means if mean is not None]
        return (far[1] < far[0]).astype(int)


class Spots:
    """The classifier that one person moves most: it says yes of everybody if it has seen the greatest age."""

    def fit(self, rows: Any, target: Any) -> "Spots":
        self.seen = int((rows[:, 0] == 1).any()) + 0 * len(target)
        return self

    def predict(self, rows: Any) -> Any:
        return np.full(len(rows), self.seen)


def lesson_of(table: Table, estimator: Any = None) -> tuple[TeachingTask, Teachers]:
    """Return what twelve teachers of a table are asked."""
    teachers = Teachers(estimator or Nearest(), count=12).fit(table, target="buys", features=["age", "sex"])
    return teachers._asked(PUBLIC, 1, None)[0], teachers


def votes_of(table: Table, monkeypatch: pytest.MonkeyPatch, estimator: Any = None) -> np.ndarray[Any, Any]:
    """Return the votes without noise: what only a test may read."""
    found: list[Any] = []
    counted = TeachingTask.counted
    with monkeypatch.context() as patch:
        patch.setattr(TeachingTask, "counted", lambda self, cells: found.append(counted(self, cells)) or found[-1])
        lesson_of(table, estimator)[1].vote(PUBLIC, epsilon=1)
    return np.array(found[0])


def farthest(monkeypatch: pytest.MonkeyPatch) -> float:
    """Return how far the one person of the greatest age moves the votes, squared, as a part of what is said at most."""
    rows = rows_of(60, seed=2)
    age = np.minimum(rows.column("age").to_numpy(), 98)
    age[rows.column("person").to_numpy() == 7] = 99
    rows = rows.set_column(rows.column_names.index("age"), "age", pa.array(age))
    others = rows.filter(pc.not_equal(rows.column("person"), 7))
    whole, less = (votes_of(people_table(each), monkeypatch, Spots()) for each in (rows, others))
    lesson, _ = lesson_of(people_table(rows), Spots())
    return int(((whole - less) ** 2).sum()) / lesson.moves_squared


def test_one_person_changes_one_teacher_and_so_one_vote_on_each_row(monkeypatch: pytest.MonkeyPatch):
    assert farthest(monkeypatch) == 1


def test_teachers_that_share_people_are_found(monkeypatch: pytest.MonkeyPatch):
    counted = TeachingTask.counted

    def overlapping(self: TeachingTask, cells: Any) -> Any:
        several = [np.concatenate([each] * 3) for each in cells[:-1]]
        hands = np.concatenate([(cells[-1].astype(int) + step) % self.count for step in range(3)])
        return counted(self, [*several, hands])

    monkeypatch.setattr(TeachingTask, "counted", overlapping)
    assert farthest(monkeypatch) == 9


def test_every_unit_has_one_teacher_whatever_the_order_of_rows():
    dealt = []
    for shuffled in (False, True):
        _, teachers = lesson_of(people_table(rows_of(shuffled=shuffled)))
        source = teachers._dealt().session.engine.source
        rows = source.fetch(source.table)
        dealt.append(
            set(zip(*(rows.column(name).to_pylist() for name in ("person", "teacher of a unit")), strict=True))
        )
    assert dealt[0] == dealt[1]
    assert len(dealt[0]) == 400
    assert {hand for _, hand in dealt[0]} == set(range(12))
    assert len(units_in(people_table())) == 800


def test_votes_do_not_depend_on_the_order_of_rows(monkeypatch: pytest.MonkeyPatch):
    first, second = (votes_of(people_table(rows_of(shuffled=each)), monkeypatch) for each in (False, True))
    assert np.array_equal(first, second)


def test_votes_are_charged_once_and_their_students_learn():
    table = people_table(rows_of(3000))
    teachers = Teachers(Nearest(), count=50).fit(table, target="buys", features=["age"])
    rows = {"age": list(range(0, 100, 4))}
    assert "for any votes" in teachers.plan(rows, epsilon=6)
    assert table.left.epsilon == 8
    votes = teachers.vote(rows, epsilon=6)
    again = teachers.vote(rows, epsilon=6)
    assert (votes.free, again.free) == (False, True)
    assert np.array_equal(votes.noisy, again.noisy)
    # 50 votes with noise of s.d. below 8: the mean over 8 young or old people is off by 25 with a chance below 1e-15
    assert votes.noisy[:8, 1].mean() < 25 < votes.noisy[-8:, 1].mean()
    with pytest.warns(UserWarning, match="saw 25 rows"):  # of public rows its code may speak
        student = votes.student(Nearest())
    assert student.predict({"age": [2, 97]}).tolist() == ["no", "yes"]


def test_nothing_of_a_teacher_leaves(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture):
    class Talks(Nearest):
        """Its code fails on rows of one kind, and says why."""

        def predict(self, rows: Any) -> Any:
            if len(rows) == 5:
                sys.exit(f"a secret: {self.means}")
            return super().predict(rows)

    table = people_table()
    teachers = Teachers(Talks(), count=4).fit(table, target="buys", features=["age"])
    capfd.readouterr()
    before = np.random.get_state()[2]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        votes = teachers.vote({"age": PUBLIC["age"]}, epsilon=1)
    assert votes.noisy.shape == (5, 2)
    assert capfd.readouterr() == ("", "")
    assert "rows" not in caplog.text
    assert logging.getLogger("a library").isEnabledFor(logging.CRITICAL)
    assert np.random.get_state()[2] == before
    assert "withheld" in repr(teachers)
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(teachers)
    assert not [name for name in vars(teachers) if "model" in name]


def test_a_mistake_in_an_estimator_shows_before_a_charge():
    class Broken(Nearest):
        """It cannot be fitted."""

        def fit(self, rows: Any, target: Any) -> "Nearest":
            raise ValueError("no such solver")

    table = people_table()
    with pytest.raises(ValueError, match="no such solver"):
        Teachers(Broken()).fit(table, target="buys", features=["age"])
    assert table.left.epsilon == 8


def test_teachers_are_refused_where_rows_are_elsewhere():
    with pytest.raises(tacit.QueryRefused, match="a server never runs"):
        Teachers(Nearest()).fit(rows_of(), target="buys")  # type: ignore[arg-type]
