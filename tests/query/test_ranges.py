"""Ranges that public facts give: every value of an expression lies in its range, and a range is given where one is."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import QueryRefused
from tacit.query.nodes import Call, Column, Expression, Value
from tacit.query.ranges import range_of, with_bounds, with_ranges
from tacit.query.sql.questions import parse_query
from tacit.query.sql.rows import parse_expression
from tacit.query.typecheck import column_kinds
from tacit.query.windows import evaluate
from tacit.tables import ColumnFacts, Declaration

ENDS = {"x": (-3, 7), "y": (0, 4), "z": (2, 9)}
FACTS = {name: ColumnFacts("int", (Fraction(low), Fraction(high))) for name, (low, high) in ENDS.items()}
TABLE = Declaration(
    "t",
    "who",
    {
        **FACTS,
        "wild": ColumnFacts("int"),
        "yes": ColumnFacts("bool"),
        "day": ColumnFacts("date"),
        "who": ColumnFacts("text"),
    },
)
KINDS = column_kinds(TABLE)


def known(text: str) -> tuple[Fraction, Fraction] | None:
    return range_of(parse_expression(text, TABLE), TABLE.columns, KINDS)


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("x", (-3, 7)),
        ("x + y", (-3, 11)),
        ("x - y", (-7, 7)),
        ("x * y", (-12, 28)),
        ("x * x", (0, 49)),
        ("x / z", (Fraction(-3, 2), Fraction(7, 2))),
        ("-x", (-7, 3)),
        ("ABS(x)", (0, 7)),
        ("y % 3", (0, 3)),
        ("x % z", (-9, 9)),
        ("CASE WHEN wild > 3 THEN 1 ELSE 0 END", (0, 1)),
        ("CASE WHEN wild > 3 THEN x END", (-3, 7)),
        ("yes", (0, 1)),
        ("wild > 3", (0, 1)),
        ("CAST(wild IS NULL AS INT)", (0, 1)),
        ("COALESCE(x, 0)", (-3, 7)),
        ("COALESCE(y, 9)", (0, 9)),
        ("LEAST(GREATEST(wild, 0), 100)", (0, 100)),
        ("GREATEST(LEAST(wild, 100), 0)", (0, 100)),
        ("ROUND(x / 2, 1)", (Fraction(-3, 2), Fraction(7, 2))),
        ("FLOOR(x / 2)", (-2, 4)),
        ("EXTRACT(MONTH FROM day)", (1, 12)),
        ("2 * (x + 3) - 1", (-1, 19)),
    ],
)
def test_a_range_follows_from_declared_ones_and_constants(text, ends):
    assert known(text) == ends


@pytest.mark.parametrize(
    "text", ["wild", "wild + 1", "x / y", "LEAST(wild, 3)", "wild * 0 + wild", "x * 9000000000000000000"]
)
def test_what_public_facts_do_not_bound_has_no_range(text):
    assert known(text) is None


def numbers() -> st.SearchStrategy[Expression]:
    leaves: st.SearchStrategy[Expression] = st.one_of(
        st.sampled_from([Column(name) for name in ENDS]), st.integers(-5, 5).map(lambda number: Value(number, "int"))
    )

    def larger(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        two = st.tuples(st.sampled_from(["+", "-", "*", "/", "least", "greatest", "coalesce"]), parts, parts)
        one = st.tuples(st.sampled_from(["negate", "abs"]), parts)
        case = st.tuples(st.just("case"), st.tuples(parts, parts).map(lambda pair: Call("<", pair)), parts, parts)
        return st.one_of(two, one, case).map(lambda made: Call(made[0], made[1:]))

    return st.recursive(leaves, larger, max_leaves=8)


@given(numbers(), st.data())
def test_every_value_lies_in_the_range(expression, data):
    ends = range_of(expression, TABLE.columns, KINDS | dict.fromkeys(ENDS, KINDS["x"])) if _typed(expression) else None
    row: dict[str, Any] = {
        name: data.draw(st.one_of(st.none(), st.integers(low, high)), label=name) for name, (low, high) in ENDS.items()
    }
    if ends is not None:
        value = evaluate(expression, row)
        assert value is None or ends[0] - Fraction(1, 10**6) <= value <= ends[1] + Fraction(1, 10**6)


def _typed(expression: Expression) -> bool:
    """Whether the checker knows the expression's type: % of a float has none."""
    try:
        from tacit.query.typecheck import canonical

        canonical(expression, KINDS)
    except QueryRefused:
        return False
    return True


def test_a_range_is_given_by_a_column_or_by_a_name():
    query = parse_query("SELECT AVG(wild) AS a, SUM(wild * y) AS b FROM t", TABLE)
    by_column = with_ranges(query, {"wild": (0, 10)}, TABLE)
    assert [output.aggregate.between for output in by_column.outputs] == [(0, 10), (0, 40)]
    by_name = with_ranges(query, {"b": (0, 5)}, TABLE)
    assert [output.aggregate.between for output in by_name.outputs] == [None, (0, 5)]
    narrower = with_ranges(parse_query("SELECT SUM(x + y) AS s FROM t", TABLE), {"x": (0, 1)}, TABLE)
    assert narrower.outputs[0].aggregate.between == (0, 5)


@pytest.mark.parametrize("name", ["nobody", "who", "n"])
def test_a_range_of_something_else_is_refused(name):
    query = parse_query("SELECT COUNT(*) AS n, AVG(x) AS a FROM t", TABLE)
    with pytest.raises(QueryRefused, match="between names"):
        with_ranges(query, {name: (0, 1)}, TABLE)


def test_a_second_name_of_one_aggregate_has_its_bound_and_its_range():
    asked = parse_query("SELECT COUNT(DISTINCT day) AS a, COUNT(DISTINCT day) AS b FROM t", TABLE)
    assert {output.aggregate.per_unit for output in with_bounds(asked, {"b": 3}).outputs} == {3}
    asked = parse_query("SELECT SUM(wild) AS a, SUM(wild) AS b FROM t", TABLE)
    assert [output.aggregate.between for output in with_ranges(asked, {"b": (0, 7)}, TABLE).outputs] == [(0, 7)]
    with pytest.raises(QueryRefused, match="which counts units"):
        with_bounds(parse_query("SELECT COUNT(DISTINCT who) AS n FROM t", TABLE), {"n": 3})
