"""`Teachers`: many small models on disjoint people vote on public rows, and only noisy counts of votes leave (PATE).

A salted hash deals each unit to one teacher, so one unit changes one teacher, and with it one vote on each public row
(docs/proofs/votes.md). Teachers are trained after the charge, vote and are gone: no model of protected rows is ever
kept, shown or pickled. The estimator's own code runs on rows, so the curator, who owns the rows, must trust it; over a
server teachers are not offered.

The cost does not depend on the data. A smaller cost, for rows on which teachers agree, is known; but it reveals how
far they agree, which is a secret by itself, so it cannot be a charge and is not shown.
"""

import contextlib
import copy
import io
import logging
import random
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from tacit.asking import Table, noise_for
from tacit.errors import InvalidParameter, QueryRefused
from tacit.learning.declared_rows import rows_to_predict
from tacit.learning.features import Feature, class_target, features_of, target_of
from tacit.learning.rounds import train
from tacit.learning.scorable import units_between
from tacit.ledger import Receipt
from tacit.numbers import Floats, Integers, Number, whole
from tacit.plan import STEPS_MOST, CodedColumn, CodedPlan, measured_column
from tacit.privacy import ApproximateLoss, GaussianNoise
from tacit.query import PLACES, Aggregate, Column, Frame

TEACHERS_MOST, ROWS_MOST = 10_000, 100_000
TRIED_ROWS = 60


@dataclass(frozen=True, eq=False)
class TeachingTask:
    """The public task of teachers: the estimator, the cells, and the public rows."""

    estimator: Any
    count: int
    features: tuple[Feature, ...]
    classes: tuple[int, ...]  # the class of each cell of the target; -1 counts nowhere
    asked: Floats  # the public rows as the estimator reads them

    @property
    def kinds(self) -> int:
        return max(self.classes) + 1

    @property
    def size(self) -> int:
        """How many counts leave: of two classes one for each row, else one for each class."""
        return len(self.asked) * (1 if self.kinds == 2 else self.kinds)

    @property
    def moves_squared(self) -> int:
        """The square of how far one unit moves the counts: one teacher's votes, each from one class to another."""
        return len(self.asked) * (1 if self.kinds == 2 else 2)

    def counted(self, cells: Sequence[Integers]) -> Integers:
        """Return the votes for each public row: `cells` are the features', the target's and the teacher's.

        A teacher's votes follow from the teacher's rows. These are sorted, so other rows cannot change their order.
        """
        target = np.array(self.classes, dtype=np.int64)[cells[-2]]
        known = target >= 0
        votes = np.zeros((len(self.asked), self.kinds), dtype=np.int64)
        for teacher in range(self.count):
            mine = np.flatnonzero(known & (cells[-1] == teacher))
            rows = np.column_stack([*(each[mine].astype(np.int64) for each in cells[:-2]), target[mine]])
            rows = rows[np.lexsort(rows.T[::-1])]
            votes[np.arange(len(self.asked)), self._vote(rows)] += 1
        return votes[:, 1] if self.kinds == 2 else votes.ravel()

    def _vote(self, rows: Integers) -> Integers:
        """Return one teacher's class for each public row; the first class wherever its code fails."""
        silent = np.zeros(len(self.asked), dtype=np.int64)
        try:
            with _fenced():
                known = taught(self.estimator, matrix_of(self.features, list(rows[:, :-1].T)), rows[:, -1])
                said = np.asarray(known.predict(np.array(self.asked))).astype(np.int64)
        except (Exception, SystemExit):  # noqa: BLE001 - what fails, and why, depends on rows
            return silent
        fits = said.shape == silent.shape and bool(((said >= 0) & (said < self.kinds)).all())
        return said if fits else silent


def taught(estimator: Any, rows: Floats, target: Integers) -> Any:
    """Return a fitted copy of an estimator; an unset seed becomes 0, so that fits do not mix."""
    made = copy.deepcopy(estimator)
    if hasattr(made, "get_params"):
        free = [name for name, value in made.get_params().items() if name.endswith("random_state") and value is None]
        made.set_params(**dict.fromkeys(free, 0))
    return made.fit(np.ascontiguousarray(rows), np.ascontiguousarray(target))


def matrix_of(features: Sequence[Feature], cells: Sequence[Integers]) -> Floats:
    """Return rows as numbers: an ordered feature as a part of its cells and if it is missing, a list as 0 and 1."""
    columns: list[Any] = []
    for feature, own in zip(features, cells, strict=True):
        last = feature.cells - 1
        if feature.ordered:
            columns += [np.where(own == last, 0.5, own / max(last - 1, 1)), own == last]
        else:
            columns += [own == cell for cell in range(last)]
    return np.column_stack(columns).astype(np.float64)


@contextlib.contextmanager
def _fenced() -> Iterator[None]:
    """Keep the output and the log of a teacher's code from leaving, and its draws from reaching the next teacher's."""
    before = random.getstate(), np.random.get_state()  # noqa: NPY002 - theirs, not ours: no noise is drawn here
    level = logging.root.manager.disable
    logging.disable(sys.maxsize)  # of the whole process: a handler that has the terminal already cannot be redirected
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            with contextlib.redirect_stderr(io.StringIO()):
                yield
    finally:
        logging.disable(level)
        random.setstate(before[0])
        np.random.set_state(before[1])  # noqa: NPY002


@dataclass(frozen=True, repr=False)
class Votes:
    """Noisy votes on public rows: the released counts, from which students learn."""

    noisy: Floats  # (rows, classes), of `count` teachers
    classes: tuple[Any, ...]
    count: int
    sigma: float
    receipt: Receipt
    free: bool
    loss: ApproximateLoss
    features: tuple[Feature, ...]
    rows: Floats

    @property
    def shares(self) -> Floats:
        """The share of teachers for each class, held within 0 and 1 and adding up to 1: soft labels."""
        held = np.clip(self.noisy / self.count, 1e-3, 1)
        shares: Floats = held / held.sum(axis=1, keepdims=True)
        return shares

    @property
    def labels(self) -> Any:
        """The class with the most noisy votes."""
        return np.array(self.classes)[self.noisy.argmax(axis=1)]

    def student(self, estimator: Any) -> "Student":
        """Return a model learned only from public rows and noisy votes: post-processing, so it may be published."""
        kinds = len(self.classes)
        rows, target = np.repeat(self.rows, kinds, axis=0), np.tile(np.arange(kinds), len(self.rows))
        made = copy.deepcopy(estimator)
        try:
            made.fit(rows, target, sample_weight=self.shares.ravel())
        except TypeError:  # it does not take weights: the likeliest class of each row
            made = copy.deepcopy(estimator).fit(self.rows, self.noisy.argmax(axis=1))
        return Student(made, self.classes, self.features)

    def __repr__(self) -> str:
        paid = "free: asked before" if self.free else f"spent {self.loss}"
        return (
            f"noisy votes of {self.count} teachers on {len(self.rows):,} public rows, each count"
            f" ± {1.96 * self.sigma:.3g} (95 %)\n{paid}, for any votes of the teachers"
        )


@dataclass(frozen=True)
class Student:
    """A model of public rows that were labelled by noisy votes."""

    estimator: Any
    classes: tuple[Any, ...]
    features: tuple[Feature, ...]

    def predict(self, rows: Any) -> Any:
        """Return the class of each unprotected row."""
        return np.array(self.classes)[
            np.asarray(self.estimator.predict(read_rows(self.features, rows)), dtype=np.int64)
        ]

    def predict_proba(self, rows: Any) -> Any:
        """Return the probability of each class, if the estimator has them."""
        return self.estimator.predict_proba(read_rows(self.features, rows))


def read_rows(features: Sequence[Feature], rows: Any) -> Floats:
    columns = rows_to_predict(rows, [feature.name for feature in features], named=True, whose="Student")
    return matrix_of(features, [feature.cells_of(columns[feature.name]) for feature in features])


class Teachers:
    """Models of disjoint people that vote: for estimators that cannot be made private by themselves, and public rows.

    `fit` names the table, and reads no row. `vote` is charged, then trains and asks them.
    """

    def __init__(self, estimator: Any, count: int = 150) -> None:
        if not hasattr(estimator, "fit") or not hasattr(estimator, "predict"):
            raise InvalidParameter("a teacher must have fit and predict\nhint: Teachers(LogisticRegression())")
        self.estimator = estimator
        self.count: int = whole(count, name="count", least=2)
        if self.count > TEACHERS_MOST:
            raise InvalidParameter(
                f"there are at most {TEACHERS_MOST:,} teachers\nhint: Teachers(estimator, count=150)"
            )

    def __repr__(self) -> str:
        return f"Teachers({type(self.estimator).__name__}, count={self.count}; their models are withheld)"

    def __getstate__(self) -> Any:
        """Refuse to be pickled: models of protected rows stay in the process."""
        raise TypeError("teachers are not pickled\nhint: pickle the student, which was learned from public rows")

    def fit(self, table: Table, *, target: str, features: Iterable[str] | None = None) -> Self:
        """Say whom the teachers learn from. Nothing is read; the estimator is tried on made-up rows, so that a mistake
        in it shows now and not after a charge."""
        if not isinstance(table, Table) or table.frame != Frame(table.session.declaration):
            raise QueryRefused(
                "teachers learn from a whole protected table that is here: a server never runs an estimator's code"
                "\nhint: Teachers(estimator).fit(tacit.table(...), target='income')"
            )
        self._features = features_of(table, target, features)
        self._column, self._classes, _ = target_of(table, target, "classes")
        self._cells = class_target(self._column, self._classes, 0).classes
        self._table = table
        self._try()
        return self

    def _try(self) -> None:
        """Fit the estimator on made-up rows of the declared cells, so that its errors appear early."""
        at = np.arange(TRIED_ROWS, dtype=np.int64)
        cells = [(at * (place + 3)) % feature.cells for place, feature in enumerate(self._features)]
        rows = matrix_of(self._features, cells)
        with _fenced():
            said = np.asarray(taught(self.estimator, rows, at % len(self._classes)).predict(rows))
        if said.shape != at.shape:
            raise InvalidParameter("an estimator must predict one class for each row\nhint: give a classifier")

    def _asked(
        self, rows: Any, epsilon: Number, delta: Number | None
    ) -> tuple[TeachingTask, GaussianNoise, ApproximateLoss]:
        """Return what teachers are asked, its noise, and the loss that the noise is made for."""
        if not hasattr(self, "_table"):
            raise InvalidParameter("these teachers need a table\nhint: call fit(table, target='income') first")
        asked = read_rows(self._features, rows)
        if not 1 <= len(asked) <= ROWS_MOST:
            raise InvalidParameter(f"ask about 1 to {ROWS_MOST:,} public rows\nhint: each one adds noise to all")
        task = TeachingTask(self.estimator, self.count, self._features, self._cells, asked)
        (event,), loss = noise_for(self._table.session, epsilon, delta, [(task.moves_squared, Fraction(1))])
        return task, event, loss

    def plan(self, rows: Any, epsilon: Number, delta: Number | None = None) -> str:
        """Return in words what votes on public rows would cost and err by: free."""
        lesson, event, asked = self._asked(rows, epsilon, delta)
        off = 1.96 * float(event.sigma)
        return (
            f"Votes of {self.count} teachers on {len(lesson.asked):,} public rows: {asked}, for any votes.\n"
            f"Each count of votes is off by about ± {off:.3g} (95 %): "
            + ("fewer rows, or a larger epsilon, would tell more." if off > self.count / 4 else "enough to tell.")
        )

    def vote(
        self,
        rows: Any,
        epsilon: Number,
        delta: Number | None = None,
        *,
        analyst: str | None = None,
        request_id: str | None = None,
    ) -> Votes:
        """Return noisy votes on public rows: charged first; then teachers are trained, vote and are gone."""
        lesson, event, asked = self._asked(rows, epsilon, delta)
        dealt = self._dealt()
        hand = dealt.session.declaration
        grid = measured_column(Aggregate("mean", Column(_HAND)), hand, steps_most=STEPS_MOST)
        dealer = CodedColumn(_HAND, Column(_HAND), measured=grid, edges=tuple(range(grid.height + 2)))
        coded = CodedPlan(hand.unit_column, None, (*(each.column for each in self._features), self._column, dealer))
        paid = train(
            dealt,
            coded,
            (event,),
            asked=asked,
            key=repr(("votes 1", self._named(), self.count, lesson.asked.tolist())),
            words=f"votes of {self.count} teachers on {len(lesson.asked)} public rows",
            steps=lambda rounds: rounds.votes(lesson.counted, lesson.moves_squared).tolist(),
            analyst=analyst,
            request_id=request_id,
        )
        noisy = np.array(paid.value, dtype=np.float64).reshape(len(lesson.asked), -1)
        if lesson.kinds == 2:
            noisy = np.column_stack([self.count - noisy[:, 0], noisy[:, 0]])
        sigma = float(event.sigma)
        return Votes(
            noisy, self._classes, self.count, sigma, paid.receipt, paid.free, asked, self._features, lesson.asked
        )

    def _named(self) -> str:
        """Return the estimator as it is found again: by its class and its parameters."""
        params = self.estimator.get_params() if hasattr(self.estimator, "get_params") else vars(self.estimator)
        kind, found = type(self.estimator), sorted((str(name), repr(each)) for name, each in params.items())
        return repr((kind.__module__, kind.__qualname__, found))

    def _dealt(self) -> Table:
        """Return the table with each unit's teacher beside its rows."""
        if _HAND in self._table.session.declaration.columns:
            raise QueryRefused(f"the table has a column '{_HAND}', which teachers need\nhint: rename it")
        return units_between(self._table, "teachers", 0, PLACES, hands=self.count, hand=_HAND)


_HAND = "teacher of a unit"
