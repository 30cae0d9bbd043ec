"""Asking the product with nothing declared but the unit: a new table each time, so that each time pays for learning."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from bench.learned.tasks import Task
from tacit.asking import Question, Table

EPSILON = 1
DELTA = 1e-6


@dataclass(frozen=True)
class Asked:
    """One answer: each aggregate by group, with both ends of its interval and, where it has one, its lower end alone.

    What is not known, such as the mean of a group that may be empty, is NaN.
    """

    values: Mapping[str, np.ndarray]
    question: Question

    def tail_cap(self) -> float:
        """Return what nobody counts for more than, in rows or in the value: the plan that facts lead to says so."""
        plan = self._plan()
        return _tail_cap(plan, plan.outputs[0].release)

    def tail_caps_of_mean(self) -> tuple[float, float, float]:
        """Return what nobody counts for more than in a mean: in rows, in sums about its centre, and this centre."""
        plan = self._plan()
        index = plan.outputs[0].release
        vector = plan.scaling.vectors[index]
        column = plan.measured[vector.column]
        return _tail_cap(plan, vector.rows), _tail_cap(plan, index), float((column.low + vector.centre) * column.step)

    def _plan(self) -> Any:
        plan = self.question.plan(epsilon=EPSILON).plan
        if plan.scaling is None:
            raise ValueError("this question was not answered by scaling")
        return plan


def open_table(path: Path, unit: Any, *, epsilon: float = EPSILON, **declared: Any) -> Table:
    """Return a table of which nothing is known but what is given here, with a budget for three such questions."""
    budget = tacit.epsilon(round(3 * epsilon, 6), delta=DELTA)
    return tacit.table(path, name="rows", unit=unit, budget=budget, ledger=tacit.TRYOUT, **declared)


def ask(path: Path, task: Task, keys: Sequence[Any], **aggregates: Any) -> Asked:
    """Ask once, of a table that nobody has asked before."""
    return ask_of(open_table(path, task.unit), task.by, keys, **aggregates)


def ask_of(table: Table, by: str, keys: Sequence[Any], **aggregates: Any) -> Asked:
    """Ask by group."""
    question = table.group_by(by, keys=list(keys)).agg(**aggregates)
    answer = question.answer(epsilon=EPSILON)
    places = {key: place for place, key in enumerate(keys)}
    order = np.argsort([places[row[by]] for row in answer.rows])
    columns = {}
    for name in aggregates:
        columns |= {each: [row[each] for row in answer.rows] for each in (name, f"{name}_low", f"{name}_high")}
        if name in answer.lower_ends:
            columns[f"{name}_at_least"] = answer.at_least(name)
    return Asked({name: _floats(column)[order] for name, column in columns.items()}, question)


def ask_one(table: Table, **aggregate: Any) -> float:
    """Ask for one number of the whole table."""
    answer = table.agg(**aggregate).answer(epsilon=EPSILON)
    (name,) = aggregate
    return float(answer.rows[0][name])


def _tail_cap(plan: Any, index: int) -> float:
    vector = plan.scaling.vectors[index]
    fine = float(vector.tail << vector.tail_shift if vector.tail else vector.cap)
    if vector.totals == "signed":  # their tail may be below the tail cap
        fine = max(fine, vector.outlook.tail_cap * 2.0**vector.shift)
    step = float(plan.measured[vector.column].step) if vector.kind == "centred" else 1.0
    return fine * 2.0**-vector.shift * step


def _floats(column: Sequence[Any]) -> np.ndarray:
    return np.array([np.nan if value is None else float(value) for value in column])
