"""A small table of people for the tests of rounds, its plan, and a model of it."""

from typing import Any

import numpy as np
import pyarrow as pa

from tacit.asking import Table
from tacit.plan import (
    STEPS_MOST,
    UNIT,
    ClassTarget,
    CodedColumn,
    CodedPlan,
    Measured,
    Scores,
    ValueTarget,
    measured_column,
)
from tacit.query import Aggregate, Column
from tacit_gauntlet.stage.table import protected

COLUMNS = {"age": {"between": (0, 9)}, "pay": {"between": (-1, 1)}}
ROWS = pa.table(
    {
        "person": pa.array([1, 1, 2, 3, 3, 3, 4, None]),
        "age": pa.array([0, 9, 4, 12, -3, None, 5, 7]),
        "sex": pa.array(["f", "m", "f", "x", None, "m", "f", "f"]),
        "pay": pa.array([0.5, -1.0, float("nan"), 7.0, None, 0.25, -0.25, 1.0]),
        "buys": pa.array(["yes", "no", "yes", "yes", "no", None, "maybe", "yes"]),
    }
)


def people(rows: pa.Table = ROWS, **declared: Any) -> Table:
    """Return the table with its public facts."""
    return protected(rows, **({"unit": "person", "columns": COLUMNS} | declared))


def measured(table: Table, column: str) -> Measured:
    """Return a column on its public grid."""
    aggregate = Aggregate("mean", Column(column))
    return measured_column(aggregate, table.session.declaration, steps_most=STEPS_MOST)


def plan_of(table: Table, *, unit: str | None = "person") -> CodedPlan:
    """Return age in five cells, pay in two, sex and buys by their lists; pay is kept as a value too."""
    age, pay = measured(table, "age"), measured(table, "pay")
    columns = (
        CodedColumn("age", Column("age"), measured=age, edges=(0, 2, 4, 6, 8, 10)),
        CodedColumn("pay", Column("pay"), measured=pay, edges=(0, pay.height // 2, pay.height + 1)),
        CodedColumn("sex", Column("sex"), listed=("f", "m")),
        CodedColumn("buys", Column("buys"), listed=("no", "yes")),
    )
    return CodedPlan(unit, None, columns, (pay,))


def scores_of(link: Any = "logistic", *, clip: int = UNIT // 2, seed: int = 0, reach: int = 1 << 13) -> Scores:
    """Return a model of the plan's first three columns, with made-up tables."""
    rng = np.random.default_rng(seed)
    classes = 2 if link == "softmax" else 1
    sizes = (6, 3, 3)
    tables = tuple(rng.integers(-reach, reach, (classes, size)) for size in sizes)
    intercept = rng.integers(-reach, reach, classes)
    target = ClassTarget(3, (0, 1, -1)) if link in ("logistic", "softmax") else ValueTarget(0)
    return Scores((*tables, None), intercept, link, target, clip)
