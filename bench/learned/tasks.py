"""What is asked in the bench of learned bounds: which table, by which column, of which value; and the truth."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import numpy as np


@dataclass(frozen=True)
class Task:
    """A question by group: the column that names people, the groups, and the value that is added up."""

    table: str
    unit: Any
    by: str
    value: str | None = None
    foreign: bool = False  # the first constants of the planner were chosen without this table

    @property
    def name(self) -> str:
        """What a line calls it."""
        return f"{self.table} by {self.by}"


UNTOUCHED = (
    Task("women", "idcode", "year", "hours", foreign=True),
    Task("women", "idcode", "occ_code", "hours", foreign=True),
    Task("insured", "zper", "plan", "mdvis", foreign=True),
    Task("insured", "zper", "site", "mdvis", foreign=True),
)
PEERS = Task("zipf", "user_id", "item", "amount")
COUNTS = (
    PEERS,
    Task("zipf", "user_id", "country"),
    Task("zipf", "user_id", "product"),
    Task("retail", "customer", "stock"),
    Task("retail", "customer", "country"),
    Task("retail", "customer", "month"),
    Task("orders", "user_id", "item"),
    Task("retail", "customer", "hour"),
    Task("retail", "customer", "weekday"),
    Task("retail", "customer", "prefix"),
    Task("retail", "customer", "country_month"),
    Task("flights", "tailnum", "dest", foreign=True),
    Task("flights", "tailnum", "carrier", foreign=True),
    Task("flights", "tailnum", "month", foreign=True),
    Task("flights", "tailnum", "dest_month", foreign=True),
    Task("patients", "id", "test", foreign=True),
    Task("patients", "id", "year", foreign=True),
    Task("ratings", "userId", "year", foreign=True),
    Task("ratings", "userId", "genres", foreign=True),
    Task("seasons", "id", "team", foreign=True),
    Task("seasons", "id", "year", foreign=True),
    *UNTOUCHED,
)
SUMS = (
    PEERS,
    Task("zipf", "user_id", "country", "amount"),
    Task("retail", "customer", "stock", "revenue"),
    Task("retail", "customer", "country", "revenue"),
    Task("retail", "customer", "month", "revenue"),
    Task("orders", "user_id", "item", "amount"),
    Task("retail", "customer", "hour", "quantity"),
    Task("retail", "customer", "weekday", "quantity"),
    Task("retail", "customer", "prefix", "quantity"),
    Task("retail", "customer", "country_month", "quantity"),
    Task("flights", "tailnum", "dest", "distance", foreign=True),
    Task("flights", "tailnum", "carrier", "distance", foreign=True),
    Task("flights", "tailnum", "month", "distance", foreign=True),
    Task("patients", "id", "test", "value", foreign=True),
    Task("patients", "id", "year", "value", foreign=True),
    Task("ratings", "userId", "year", "rating", foreign=True),
    Task("seasons", "id", "team", "g", foreign=True),
    Task("seasons", "id", "year", "hr", foreign=True),
    *UNTOUCHED,
)
MEANS = (
    PEERS,
    Task("zipf", "user_id", "country", "amount"),
    Task("retail", "customer", "country", "revenue"),
    Task("retail", "customer", "month", "revenue"),
    Task("flights", "tailnum", "dest", "distance", foreign=True),
    Task("patients", "id", "test", "value", foreign=True),
)


SPREADS = (
    Task("zipf", "user_id", "country", "amount"),
    Task("retail", "customer", "month", "revenue"),
    Task("flights", "tailnum", "month", "dep_delay", foreign=True),
    Task("patients", "id", "test", "value", foreign=True),
    Task("women", "idcode", "occ_code", "hours", foreign=True),
)
# Correlations of the value with another column of the same table.
PAIRS = (
    (Task("women", "idcode", "occ_code", "hours", foreign=True), "year"),
    (Task("flights", "tailnum", "month", "dep_delay", foreign=True), "distance"),
)


@dataclass(frozen=True)
class Number:
    """One number of a whole table: its rows, or the sum of a value, over people who have one or many."""

    name: str
    table: str
    unit: str
    value: str | None
    foreign: bool = False


NUMBERS = (
    Number("zipf, rows", "zipf", "user_id", None),
    Number("zipf, amount", "zipf", "user_id", "amount"),
    Number("retail, rows", "retail", "customer", None),
    Number("retail, revenue", "retail", "customer", "revenue"),
    Number("adult, gain", "adult", "person_id", "capital_gain"),
    Number("adult, hours", "adult", "person_id", "hours_per_week"),
    Number("adult, fnlwgt", "adult", "person_id", "fnlwgt"),
    Number("lognormal", "lognormal", "person", "x"),
    Number("Pareto 1.2, 10^4 people", "pareto_heavy", "person", "x"),
    Number("Pareto 2, 10^5 people", "pareto", "person", "x"),
    Number("all equal, 5000 people", "equal", "person", "x"),
    Number("uniform, 300 people", "uniform", "person", "x"),
    Number("flights, rows", "flights", "tailnum", None, foreign=True),
    Number("flights, distance", "flights", "tailnum", "distance", foreign=True),
    Number("patients, value", "patients", "id", "value", foreign=True),
    Number("seasons, home runs", "seasons", "id", "hr", foreign=True),
)


class Cells:
    """The rows of a task, all or those of a condition: of whom, in which group, with what value; and what people have
    in each group.
    """

    def __init__(self, task: Task, path: Path, where: str = "true") -> None:
        value = f"CAST({task.value} AS DOUBLE)" if task.value else "CAST(0 AS DOUBLE)"
        found = duckdb.sql(
            f"SELECT {task.unit} AS unit, {task.by} AS key, {value} AS value FROM '{path}'"
            f" WHERE {task.unit} IS NOT NULL AND {task.by} IS NOT NULL AND ({where})"
        ).to_arrow_table()
        self.keys, group = _numbered(found["key"])
        people, unit = _numbered(found["unit"])
        self.people, self.groups = len(people), len(self.keys)
        values = found["value"].to_numpy(zero_copy_only=False)
        self.counted = ~np.isnan(values)
        self.values = np.where(self.counted, values, 0.0)
        pairs, self.cell = np.unique(unit * self.groups + group, return_inverse=True)
        self.unit, self.group = pairs // self.groups, pairs % self.groups
        self.rows = np.bincount(self.cell).astype(float)

    @cached_property
    def cells_of_unit(self) -> np.ndarray:
        """How many groups the person of each cell is in."""
        return np.bincount(self.unit, minlength=self.people)[self.unit]

    def sums(self, low: float = -np.inf, high: float = np.inf) -> np.ndarray:
        """Return the sum of each cell's values within the range."""
        return np.bincount(self.cell, np.clip(self.values, low, high) * self.counted)

    def by_group(self, of_cells: np.ndarray) -> np.ndarray:
        """Return the total of each group."""
        return np.bincount(self.group, of_cells, minlength=self.groups)

    def means(self) -> np.ndarray:
        """Return the mean of each group's values."""
        return self.by_group(self.sums()) / self.by_group(np.bincount(self.cell, self.counted))

    def deviations(self) -> np.ndarray:
        """Return the standard deviation of each group's values."""
        away = (self.values - self.means()[self.group[self.cell]]) * self.counted
        squares = self.by_group(np.bincount(self.cell, away**2))
        return np.sqrt(squares / self.by_group(np.bincount(self.cell, self.counted)))

    def large(self) -> np.ndarray:
        """Return which groups have at least as many rows as the median one: where a mean means something."""
        rows = self.by_group(self.rows)
        return rows >= np.median(rows)

    def up_to(self, of_cells: np.ndarray, most: float) -> np.ndarray:
        """Return the total of each group where nobody counts for more than `most` in all."""
        sizes = np.bincount(self.unit, np.abs(of_cells), minlength=self.people)
        weights = np.minimum(1.0, most / np.maximum(sizes, 1e-300))
        return self.by_group(of_cells * weights[self.unit])

    def means_up_to(self, rows_most: float, sums_most: float, centre: float) -> np.ndarray:
        """Return the mean of each group where nobody counts for more, in rows and in sums about the centre."""
        rows = np.bincount(self.cell, self.counted)
        about = np.bincount(self.cell, (self.values - centre) * self.counted)
        weights = np.ones(self.people)
        for of_cells, most in (rows, rows_most), (about, sums_most):
            sizes = np.bincount(self.unit, np.abs(of_cells), minlength=self.people)
            weights = np.minimum(weights, most / np.maximum(sizes, 1e-300))
        counted = self.by_group(rows * weights[self.unit])
        return centre + self.by_group(about * weights[self.unit]) / np.maximum(counted, 1e-300)


def correlations(task: Task, other: str, path: Path, keys: list[Any]) -> np.ndarray:
    """Return the correlation of a task's value with another column, in each group."""
    found = duckdb.sql(
        f"SELECT {task.by} AS key, corr(CAST({task.value} AS DOUBLE), CAST({other} AS DOUBLE)) AS r FROM '{path}'"
        f" WHERE {task.unit} IS NOT NULL GROUP BY ALL"
    ).fetchall()
    truth = dict(found)
    return np.array([truth[key] for key in keys], dtype=float)


def totals(number: Number, path: Path) -> np.ndarray:
    """Return what each person has in all."""
    value = f"CAST({number.value} AS DOUBLE)" if number.value else "1"
    found = duckdb.sql(
        f"SELECT coalesce(sum({value}), 0) AS total FROM '{path}'"
        f" WHERE {number.unit} IS NOT NULL GROUP BY {number.unit}"
    ).to_arrow_table()
    return found["total"].to_numpy().astype(float)


def _numbered(column: Any) -> tuple[list[Any], np.ndarray]:
    """Return the different values, in order, and the place of each row's among them."""
    values, places = np.unique(column.to_numpy(zero_copy_only=False), return_inverse=True)
    return values.tolist(), places
