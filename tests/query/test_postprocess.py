"""HAVING, ORDER BY and LIMIT on noisy rows, with the same meanings as expressions on rows."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from math import isclose

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import QueryRefused
from tacit.query.check import _with_scales
from tacit.query.language.catalogue import FUNCTIONS
from tacit.query.literal import like, pattern_parts
from tacit.query.nodes import Call, Column, Ordering, PostProcessing, Value
from tacit.query.sql.expressions import show
from tacit.query.sql.questions import parse_query
from tacit.query.typecheck import kind_of
from tacit.query.windows import apply_postprocessing, evaluate
from tacit_gauntlet.stage import cells
from tacit_gauntlet.stage.cells import same_cell
from tacit_gauntlet.stage.reference import _as_kind, meaning
from tests.query.test_sql import VISITS
from tests.query.trees import FORMS, nested, rows

ROWS = [
    {"ward": "B", "n": 12, "stay": 2.5},
    {"ward": "A", "n": 7, "stay": None},
    {"ward": None, "n": 12, "stay": float("nan")},
    {"ward": "a", "n": -3, "stay": 0.5},
]


def kept(tail, noisy=ROWS):
    asked = parse_query(f"SELECT ward, COUNT(*) AS n, AVG(days) AS stay FROM visits GROUP BY ward {tail}", VISITS)
    return [row["ward"] for row in apply_postprocessing(noisy, asked.after)]


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
        ("ORDER BY n LIMIT 2 OFFSET 1", ["A", "B"]),
        ("ORDER BY stay DESC NULLS FIRST", ["A", None, "B", "a"]),
        ("ORDER BY -n, ward NULLS FIRST", [None, "B", "A", "a"]),
        ("HAVING n % 2 = 0", ["B", None]),
        ("QUALIFY RANK() OVER (ORDER BY n DESC) = 1", ["B", None]),
        ("QUALIFY ROW_NUMBER() OVER (ORDER BY n DESC, ward) <= 2 ORDER BY n", ["B", None]),
        ("HAVING n > 0 QUALIFY SUM(n) OVER (ORDER BY n ROWS UNBOUNDED PRECEDING) > 10 ORDER BY ward", ["B", None]),
    ],
)
def test_the_noisy_rows_are_filtered_sorted_and_cut(tail, wards):
    settled = [{**row, "stay": None if row["stay"] != row["stay"] else row["stay"]} for row in ROWS]
    assert kept(tail, settled) == wards


def test_a_nan_among_noisy_values_is_null():
    assert kept("HAVING stay IS NULL") == ["A", None]


def test_exact_numbers_are_compared_exactly():
    assert evaluate(Call("=", (Column("x"), Value(Fraction(1, 10), "decimal"))), {"x": Decimal("0.1")}) is True
    assert evaluate(Call("/", (Column("x"), Value(0, "int"))), {"x": 1}) is None
    assert evaluate(Call("*", (Column("x"), Value(1e300, "float"))), {"x": 10**400}) == float("inf")


def test_dates_and_timestamps_meet_at_midnight():
    row = {"day": dt.date(2011, 1, 31), "moment": dt.datetime.fromisoformat("2011-01-31")}
    assert evaluate(Call("=", (Column("day"), Column("moment"))), row) is True


@settings(max_examples=60)
@given(st.lists(nested(), min_size=1, max_size=5), rows)
def test_functions_mean_the_same_on_noisy_rows_as_on_rows(expressions, made_up):
    """But for whole numbers beyond 64 bits, which are NULL on rows: those are left to the reference alone."""
    for expression in expressions:
        for row in map(cells.plain, made_up):
            wanted = meaning(expression, row, cells.KINDS)
            found = evaluate(_with_scales(expression, cells.KINDS), row)
            found = _as_kind(found, kind_of(expression, cells.KINDS))  # COALESCE(1, 0.5e0) is a float
            if not overflows(expression, row):
                near = isinstance(found, float) and isinstance(wanted, float) and isclose(found, wanted, rel_tol=1e-12)
                assert near or same_cell(found, wanted), f"{show(expression)} on {row}: {found!r}, not {wanted!r}"


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
@settings(max_examples=5)
@given(data=st.data())
def test_each_function_has_a_value_on_noisy_rows(name, data):
    test_functions_mean_the_same_on_noisy_rows_as_on_rows.hypothesis.inner_test(
        data.draw(st.lists(st.sampled_from(FORMS[name]), min_size=1, max_size=10)), data.draw(rows)
    )


def overflows(expression, row):
    """Whether some whole number on the way needs more than 64 bits."""
    if not isinstance(expression, Call):
        return False
    value = evaluate(_with_scales(expression, cells.KINDS), row)
    beyond = isinstance(value, int) and not -(2**63) <= value < 2**63
    return beyond or any(overflows(argument, row) for argument in expression.arguments)


def test_the_given_rows_are_left_alone():
    given_rows = [{"n": 1}]
    apply_postprocessing(given_rows, PostProcessing(order=(Ordering(Column("n")),)))[0]["n"] = 2
    assert given_rows == [{"n": 1}]


@given(st.text("ab%_!", max_size=8), st.text("ab%_!", max_size=6))
def test_like_agrees_with_the_reference(text, pattern):
    from tacit_gauntlet.stage.reference import _like

    try:
        parts = pattern_parts(Value(pattern, "text"), Value("!", "text"))
    except QueryRefused:
        return
    assert like(text, parts) == _like(text, pattern, "!")
