"""The exact table: it prints nothing, and the names of its sums are what every engine fills in."""

import pytest

import tacit
from tacit.exact import (
    ROWS,
    UNITS,
    ExactTable,
    counted_name,
    distinct_name,
    key_name,
    sum_names,
    total_name,
    value_name,
)
from tests.engine.exact import SALT, as_table, on_path, question

ROWS_OF_FOUR = [(1, "a", 1, 0.5), (1, "b", 2, None), (2, "a", None, -1.0), (3, None, 4, 5.0)]


@pytest.mark.parametrize("path", ["sql", "kernel"])
@pytest.mark.parametrize("keys", [None, ["a", "b", "z"]])
def test_every_engine_fills_in_the_named_sums_and_no_other(path, keys):
    aggregates = {"n": tacit.count(), "x": tacit.variance("x"), "y": tacit.sum("y"), "people": tacit.count_units()}
    asked = question(as_table(ROWS_OF_FOUR), aggregates, keys=keys)
    plan = asked.plan(epsilon=1).plan
    with on_path(path):
        exact = asked.session.engine.aggregate(plan, SALT)
    assert set(exact.sums) == set(sum_names(plan))
    assert all(len(sums) == len(exact.keys) for sums in exact.sums.values())


@pytest.mark.parametrize("path", ["sql", "patient"])
def test_counts_of_different_values_have_their_own_names(path):
    aggregates = {"x": tacit.count_distinct("x"), "y": tacit.count_distinct("y"), "n": tacit.count()}
    asked = question(as_table(ROWS_OF_FOUR), aggregates)
    plan, engine = asked.plan(epsilon=1).plan, asked.session.engine
    with on_path("sql"):
        parts = engine._patient(plan, SALT, "sql") if path == "patient" else [engine.aggregate(plan, SALT)]
        found = [set(exact.sums) for exact in parts]
    assert found
    assert all(names == {*sum_names(plan), distinct_name(0), distinct_name(1)} for names in found)


def test_no_two_sums_or_columns_have_one_name():
    functions = (counted_name, total_name, distinct_name, key_name, value_name)
    names = [ROWS, UNITS, *(function(index) for function in functions for index in range(12))]
    assert len(set(names)) == len(names)


def test_the_exact_table_prints_as_withheld():
    assert str(ExactTable([("a",)], {ROWS: [41], UNITS: [7]})) == "ExactTable(withheld)"
