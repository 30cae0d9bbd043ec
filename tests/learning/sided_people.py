"""A made-up table of people with two rows each, in any order, for the tests of holdouts, and models of it."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

import tacit
from tacit.asking import Table
from tacit.learning import RowsUsed, Scoring, SqlModel
from tacit_gauntlet.stage.table import protected

COLUMNS = {
    "age": {"between": (0, 99)},
    "hours": {"between": (0, 100)},
    "buys": {"keys": ["no", "yes"]},
    "sex": {"keys": ["f", "m"]},
}
MODEL = SqlModel("1 / (1 + EXP(4 - 0.08 * age))", target="buys", positive="yes")
NUMBERS = SqlModel("10 + 0.5 * age", target="hours")


def rows_of(people: int = 400, *, seed: int = 0, shuffled: bool = False) -> pa.Table:
    """Return two rows for each of so many people; shuffled rows are the same rows in another order."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(people), 2)
    age = rng.integers(0, 100, 2 * people)
    buys = np.where(rng.random(2 * people) < 1 / (1 + np.exp(4 - 0.08 * age)), "yes", "no")
    hours = np.clip(10 + 0.5 * age + rng.normal(0, 6, 2 * people), 0, 100)
    sex = rng.choice(["f", "m"], 2 * people)
    table = pa.table({"person": person, "age": age, "buys": buys, "hours": hours, "sex": sex})
    return table.take(np.random.default_rng(1).permutation(2 * people)) if shuffled else table


def people_table(rows: pa.Table | None = None, **declared: Any) -> Table:
    """Return the table with its public facts."""
    given = {"unit": "person", "columns": COLUMNS, "budget": tacit.epsilon(8, delta=1e-6), "name": "people"}
    return protected(rows_of() if rows is None else rows, **(given | declared))


def units_in(table: Table, column: str = "person") -> list[Any]:
    """Return the units of a table's rows, sorted: what only a test may read."""
    source = table.session.engine.source
    values: list[Any] = source.fetch(source.table).column(column).to_pylist()
    return sorted(values)


@dataclass(frozen=True)
class Fitted:
    """A model that says which rows it was fitted on."""

    model: SqlModel
    fitted_on: RowsUsed | None

    def scoring(self, table: Table) -> Scoring:
        """Return the model as tables, with where it was fitted."""
        return replace(self.model.scoring(table), fitted_on=self.fitted_on)
