"""HAVING, ORDER BY and LIMIT on noisy rows, with the same meanings as expressions on rows."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import QueryRefused
from tacit.query.literal import like, pattern_parts
from tacit.query.nodes import Call, Column, Ordering, PostProcessing, Value
from tacit.query.postprocess import apply_postprocessing, evaluate
from tacit.query.sql import parse_query
from tests.query.test_sql import VISITS

ROWS = [
    {"ward": "B", "n": 12, "stay": 2.5},
    {"ward": "A", "n": 7, "stay": None},
    {"ward": None, "n": 12, "stay": float("nan")},
    {"ward": "a", "n": -3, "stay": 0.5},
]


def kept(tail, rows=ROWS):
    asked = parse_query(f"SELECT ward, COUNT(*) AS n, AVG(days) AS stay FROM visits GROUP BY ward {tail}", VISITS)
    return [row["ward"] for row in apply_postprocessing(rows, asked.after)]


@pytest.mark.parametrize(
    ("tail", "wards"),
    [
        ("", ["B", "A", None, "a"]),
        ("HAVING n > 10", ["B", None]),
        ("HAVING COUNT(*) > 10 AND AVG(days) < 3", ["B"]),
        ("HAVING stay > 0 OR n = 7", ["B", "A", "a"]),
        ("HAVING NOT (stay > 0)", []),
        ("HAVING stay IS NULL", ["A", None]),
        ("HAVING ward IN ('A', 'B')", ["B", "A"]),
        ("HAVING LOWER(ward) LIKE 'a%'", ["A", "a"]),
        ("HAVING ward NOT LIKE 'A%'", ["B", "a"]),
        ("HAVING ABS(n) = 3", ["a"]),
        ("HAVING GREATEST(stay, n, NULL) > 11 AND LEAST(stay, n) < 12", ["B"]),
        ("HAVING LENGTH(ward) = 1 AND n > 0", ["B", "A"]),
        ("HAVING stay / n > 0.1", ["B"]),
        ("HAVING n + 1 > 12.5 AND -n < 0", ["B", None]),
        ("HAVING COALESCE(stay, 9) > 8", ["A", None]),
        ("HAVING CASE WHEN n > 10 THEN stay ELSE 1 END >= 1", ["B", "A", "a"]),
        ("ORDER BY ward", ["A", "B", "a", None]),
        ("ORDER BY ward DESC", ["a", "B", "A", None]),
        ("ORDER BY n DESC, ward", ["B", None, "A", "a"]),
        ("ORDER BY n LIMIT 2", ["a", "A"]),
        ("LIMIT 0", []),
    ],
)
def test_the_noisy_rows_are_filtered_sorted_and_cut(tail, wards):
    rows = [{**row, "stay": None if row["stay"] != row["stay"] else row["stay"]} for row in ROWS]
    assert kept(tail, rows) == wards


def test_a_nan_among_noisy_values_is_null():
    assert kept("HAVING stay IS NULL") == ["A", None]


def test_exact_numbers_are_compared_exactly():
    assert evaluate(Call("=", (Column("x"), Value(Fraction(1, 10), "decimal"))), {"x": Decimal("0.1")}) is True
    assert evaluate(Call("/", (Column("x"), Value(0, "int"))), {"x": 1}) is None
    assert evaluate(Call("*", (Column("x"), Value(1e300, "float"))), {"x": 10**400}) == float("inf")


def test_dates_and_timestamps_meet_at_midnight():
    row = {"day": dt.date(2011, 1, 31), "moment": dt.datetime.fromisoformat("2011-01-31")}
    assert evaluate(Call("=", (Column("day"), Column("moment"))), row) is True


def test_having_has_no_function_that_only_rows_have():
    with pytest.raises(QueryRefused, match="HAVING cannot use cast_int"):
        evaluate(Call("cast_int", (Column("n"),)), {"n": 1})


def test_the_given_rows_are_left_alone():
    rows = [{"n": 1}]
    apply_postprocessing(rows, PostProcessing(order=(Ordering("n"),)))[0]["n"] = 2
    assert rows == [{"n": 1}]


@given(st.text("ab%_!", max_size=8), st.text("ab%_!", max_size=6))
def test_like_agrees_with_the_reference(text, pattern):
    from tacit_gauntlet.stage.reference import _like

    try:
        parts = pattern_parts(Value(pattern, "text"), Value("!", "text"))
    except QueryRefused:
        return
    assert like(text, parts) == _like(text, pattern, "!")
