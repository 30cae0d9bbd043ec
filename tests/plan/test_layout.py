"""No number is released twice: what two words ask for in common comes from one release."""

from typing import Any

import pyarrow as pa
import pytest

import tacit
from tacit_gauntlet.stage.table import bounded_plan, protected

ROWS = pa.table({"id": [1, 2, 3], "g": ["a", "a", "b"], "x": [1, None, 3], "y": [1.0, 2.0, 3.0]})
RANGES = {"x": {"between": (0, 10)}, "y": {"between": (0, 10)}}


def parts(rows_per_unit: int, *, found: bool, **asked: Any) -> list[list[str]]:
    table = protected(ROWS, columns=RANGES, rows_per_unit=rows_per_unit, groups_per_unit=1)
    grouped = table.group_by("g") if found else table.group_by("g", keys=["a", "b"])
    return [[part.kind for part in each.parts] for each in bounded_plan(grouped.agg(**asked)).releases]


@pytest.mark.parametrize("found", [True, False])
def test_rows_and_units_are_one_number_where_a_unit_has_one_row(found):
    both = {"n": tacit.count(), "u": tacit.count_units()}
    assert parts(1, found=found, **both) == [["units"]]
    assert parts(2, found=found, **both) == [["rows"], ["units"]]


def test_a_count_over_found_keys_is_the_count_that_shows_them():
    assert parts(1, found=True, n=tacit.count()) == [["units"]]
    assert parts(1, found=True, x=tacit.mean("x")) == [["below", "above"], ["units"]]


def test_beside_a_mean_a_count_over_found_keys_costs_nothing_more():
    assert parts(1, found=True, n=tacit.count(), x=tacit.mean("x")) == [["missing", "below", "above"], ["units"]]


def test_beside_a_mean_a_count_of_units_costs_nothing_more():
    assert parts(1, found=False, u=tacit.count_units(), x=tacit.mean("x")) == [["missing", "below", "above"]]
    assert parts(2, found=False, u=tacit.count_units(), x=tacit.mean("x")) == [["below", "above"], ["units"]]


def test_a_covariance_and_a_correlation_of_two_columns_are_one_release():
    pair = {"c": tacit.covariance("x", "y"), "r": tacit.correlation("x", "y")}
    assert parts(2, found=False, **pair) == [["moment"] * 9]


def test_a_count_of_a_constant_counts_rows():
    table = protected(ROWS, columns=RANGES, rows_per_unit=2)
    plan = bounded_plan(table.sql("SELECT COUNT(1) AS a, COUNT(*) AS b FROM t"))
    assert [[part.kind for part in each.parts] for each in plan.releases] == [["rows"]]


@pytest.mark.parametrize("found", [True, False])
@pytest.mark.parametrize("mean", [True, False])
def test_the_number_is_the_same_by_either_word(found, mean):
    rows = pa.table({"id": range(300), "g": ["a", "b", "b"] * 100, "x": [1, None, 3] * 100})
    table = protected(rows, columns={"x": RANGES["x"]}, rows_per_unit=1, groups_per_unit=1)
    grouped = table.group_by("g") if found else table.group_by("g", keys=["a", "b"])
    asked: dict[str, Any] = {"n": tacit.count(), "u": tacit.count_units(), "c": tacit.count("x")}
    answer = grouped.agg(**asked, **({"m": tacit.mean("x")} if mean else {})).answer(epsilon=1000).to_dicts()
    assert [(row["n"], row["u"], row["c"]) for row in answer] == [(100, 100, 100), (200, 200, 100)]


def test_a_count_over_found_keys_errs_as_a_count_of_units_does():
    table = protected(ROWS, columns=RANGES, rows_per_unit=1, groups_per_unit=1).group_by("g")
    scales = [bounded_plan(asked).releases[0].scale for asked in (table.count(), table.count_units())]
    assert scales[0] == scales[1]
