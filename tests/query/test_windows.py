"""Windows over the rows of an answer are what DuckDB makes of the same rows."""

import random
from fractions import Fraction

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.answer.computed import PLACE, shown_columns
from tacit.answer.moments import NoisyColumn
from tacit.errors import QueryRefused
from tacit.query.nodes import Call, Column, Ordering, PostProcessing, Value, Window
from tacit.query.spans import AnswerSpan, rows_read, span_of, window_span_of
from tacit.query.windows import FRAME_MOST, WINDOWS, apply_postprocessing, window_kind
from tests.query.test_sql import query

ROWS = [
    {"k": key, "g": random.Random(key).choice(["a", "b", None]), "n": None if key == 7 else (key * 37) % 11}
    for key in range(20)
]
CASES = [
    "RANK() OVER (ORDER BY n)",
    "RANK() OVER (PARTITION BY g ORDER BY n DESC)",
    "DENSE_RANK() OVER (ORDER BY n DESC)",
    "ROW_NUMBER() OVER (PARTITION BY g ORDER BY k)",
    "PERCENT_RANK() OVER (ORDER BY n)",
    "CUME_DIST() OVER (PARTITION BY g ORDER BY n)",
    "NTILE(3) OVER (ORDER BY k)",
    "NTILE(50) OVER (ORDER BY k)",
    "LAG(n) OVER (ORDER BY k)",
    "LAG(n, 2, -1) OVER (PARTITION BY g ORDER BY k)",
    "LEAD(n, 0) OVER (ORDER BY k DESC)",
    "FIRST_VALUE(n) OVER (PARTITION BY g ORDER BY k)",
    "LAST_VALUE(n) OVER (ORDER BY k)",
    "LAST_VALUE(n) OVER (ORDER BY k ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)",
    "NTH_VALUE(n, 3) OVER (ORDER BY k)",
    "SUM(n) OVER ()",
    "SUM(n) OVER (PARTITION BY g)",
    "SUM(n) OVER (ORDER BY n)",
    "SUM(n) OVER (ORDER BY k ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
    "SUM(n) OVER (ORDER BY k ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING)",
    "AVG(n) OVER (ORDER BY k ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    "AVG(n) OVER (PARTITION BY g ORDER BY k ROWS UNBOUNDED PRECEDING)",
    "MIN(n) OVER (ORDER BY k DESC)",
    "MAX(n) OVER (PARTITION BY g ORDER BY k ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
    "COUNT(n) OVER (PARTITION BY g)",
    "COUNT(*) OVER (ORDER BY n)",
]


def window_of(text):
    """The window that a SELECT of these columns has."""
    written = text.replace("n", "\0").replace("\0", "n")
    for name, aggregate in (("(n", "(SUM(age)"), ("BY n", "BY SUM(age)")):
        written = written.replace(name, aggregate)
    asked = query(f"SELECT days AS k, ward AS g, SUM(age) AS n, {written} AS w FROM visits GROUP BY days, ward")
    return asked.after.windows[0]


@pytest.mark.parametrize("text", CASES)
def test_a_window_is_what_duckdb_makes_of_the_same_rows(text):
    window = window_of(text)
    found = apply_postprocessing(ROWS, PostProcessing(windows=(window,)))
    db = duckdb.connect()
    db.execute("CREATE TABLE rows (k INT, g TEXT, n INT)")
    db.executemany("INSERT INTO rows VALUES (?, ?, ?)", [[row["k"], row["g"], row["n"]] for row in ROWS])
    wanted = dict(db.execute(f"SELECT k, {text} FROM rows").fetchall())
    for row in found:
        value, other = row[window.name], wanted[row["k"]]
        assert value == other if other is None or value is None else value == pytest.approx(float(other)), row


def test_every_window_function_is_tried():
    assert {text.partition("(")[0].lower() for text in CASES} == set(WINDOWS)


def test_windows_are_over_the_rows_that_having_keeps():
    asked = query(
        "SELECT ward, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS s FROM visits GROUP BY ward HAVING n > 3 QUALIFY s > 0"
    )
    found = apply_postprocessing([{"ward": "A", "n": 2}, {"ward": "B", "n": 5}, {"ward": "C", "n": 4}], asked.after)
    assert [row[asked.after.windows[0].name] for row in found] == [9, 9]


def test_equal_windows_are_one_and_named_ones_are_found():
    asked = query(
        "SELECT ward, COUNT(*) / SUM(COUNT(*)) OVER w AS a, 1 - COUNT(*) / SUM(COUNT(*)) OVER w AS b FROM visits "
        "GROUP BY ward, sex WINDOW w AS (PARTITION BY sex)"
    )
    assert [window.partition for window in asked.after.windows] == [(Column("sex"),)]


@pytest.mark.parametrize(
    ("window", "said"),
    [
        (Window("w", "median", (Column("n"),)), "MEDIAN is not a window function"),
        (Window("w", "rank", (), order=()), "RANK needs an order"),
        (Window("w", "sum"), "SUM has 0 argument"),
        (Window("w", "lag", (Column("n"), Value(-1, "int")), order=(Ordering(Column("n")),)), "whole constant from 0"),
        (Window("w", "sum", (Column("n"),), frame=(0, FRAME_MOST)), "a frame has 1 to 100 rows"),
        (Window("w", "sum", (Column("n"),), frame=(2, 1)), "a frame has 1 to 100 rows"),
        (Window("w", "sum", (Column("g"),)), "adds up numbers, but has a text"),
    ],
)
def test_a_window_that_means_nothing_is_refused(window, said):
    from tacit.query.nodes import INT, TEXT

    kinds = {"n": INT, "g": TEXT}
    with pytest.raises(QueryRefused, match=said):
        window_kind(window, tuple(kinds.get(getattr(each, "name", ""), INT) for each in window.arguments))


def test_a_rank_by_noise_is_noisy_and_one_by_keys_is_not():
    by_noise = Window("w", "rank", order=(Ordering(Column("n")),))
    by_key = Window("w", "rank", order=(Ordering(Column("k")),))
    assert PostProcessing(windows=(by_noise,)).noisy_columns(["n"]) == {"n", "w"}
    assert PostProcessing(windows=(by_key,)).noisy_columns(["n"]) == {"n"}
    kept = PostProcessing(windows=(by_key,), having=Call(">", (Column("n"), Value(1, "int"))))
    assert kept.noisy_columns(["n"]) == {"n", "w"}  # which rows there are to rank is noisy then
    qualified = PostProcessing(windows=(by_noise,), qualify=Call("=", (Column("w"), Value(1, "int"))))
    assert qualified.picks_by_noise(["n"])
    assert not PostProcessing(order=(Ordering(Column("k")),), offset=3).picks_by_noise(["n"])
    assert PostProcessing(order=(Ordering(Column("n")),), offset=3).picks_by_noise(["n"])


def test_where_a_window_may_be_is_what_its_ends_give():
    rows = [{"k": 1, "n": 5}, {"k": 2, "n": 7}]
    spans = [{"k": AnswerSpan(1, 1), "n": AnswerSpan(4, 6)}, {"k": AnswerSpan(2, 2), "n": AnswerSpan(6, 9)}]
    total = Window("w", "sum", (Column("n"),))
    assert window_span_of(total, rows, spans, {"n", "w"}) == [AnswerSpan(10, 15)] * 2
    assert rows_read(total, 2) == 2
    before = Window("w", "lag", (Column("n"),), order=(Ordering(Column("k")),))
    assert window_span_of(before, rows, spans, {"n", "w"}) == [None, AnswerSpan(4, 6)]
    assert rows_read(before, 2) == 1
    by_noise = Window("w", "lag", (Column("n"),), order=(Ordering(Column("n")),))
    assert window_span_of(by_noise, rows, spans, {"n", "w"}) == [None, None]
    place = Window("w", "row_number", order=(Ordering(Column("k")),))
    assert window_span_of(place, rows, spans, {"n"}) == [AnswerSpan(1, 1), AnswerSpan(2, 2)]
    assert window_span_of(place, rows, spans, {"n", "w"}) == [None, None]  # HAVING has picked the rows by noise
    spans[0]["n"] = None
    assert window_span_of(total, rows, spans, {"n", "w"}) == [None, None]


_values = st.none() | st.integers(-(10**30), 10**30) | st.floats() | st.sampled_from([0, 1, -1, 0.0, 10**400])
TOTAL = [
    "ROUND(x / y, 2)",
    "x * y - x",
    "ABS(x) % 7",
    "x // y",
    "CAST(x AS DECIMAL(12, 2))",
    "CASE WHEN x > y THEN x ELSE y END",
    "LEAST(x, y, 3)",
    "SQRT(x) + LN(y) - EXP(x)",
    "FLOOR(x) + CEIL(y)",
    "POWER(x, 3)",
    "COALESCE(NULLIF(x, y), -x)",
]


@given(st.lists(st.tuples(_values, _values, _values), min_size=1, max_size=6), st.sampled_from(TOTAL))
def test_no_released_number_makes_a_computed_column_fail(cells, text):
    """Failing here would be failing after the charge."""
    asked = query(
        f"SELECT ward, {text.replace('x', 'SUM(age)').replace('y', 'COUNT(*)')} AS c, "
        "SUM(SUM(age)) OVER (ORDER BY COUNT(*) ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS w, "
        "AVG(COUNT(*)) OVER (PARTITION BY SUM(age)) AS v FROM visits GROUP BY ward ORDER BY c DESC, w"
    )
    names = [output.name for output in asked.outputs]
    columns = [
        NoisyColumn(name, [cell[at] for cell in cells], [cell[2] for cell in cells], [cell[at] for cell in cells])
        for at, name in enumerate(names)
    ]
    rows = [{"ward": str(at), names[0]: cell[0], names[1]: cell[1], PLACE: at} for at, cell in enumerate(cells)]
    kept = apply_postprocessing(rows, asked.after)
    for column in shown_columns(asked.after, rows, kept, names, lambda _: columns, Fraction(95, 100)):
        assert len(column.values) == len(cells)


SPANS = {
    "x": AnswerSpan(2, 4),
    "y": AnswerSpan(-1, 1),
    "z": AnswerSpan(3.0, 5.0),
    "k": AnswerSpan("A", "A"),
    "gone": None,
}


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("x + 1", AnswerSpan(3, 5)),
        ("1 - x", AnswerSpan(-3, -1)),
        ("x * y", AnswerSpan(-4, 4)),
        ("x / z", AnswerSpan(0.4, 4 / 3)),
        ("x / y", None),  # the divisor may be 0
        ("x + gone", None),
        ("-x", AnswerSpan(-4, -2)),
        ("ABS(y)", AnswerSpan(0, 1)),
        ("ROUND(z / 3, 1)", AnswerSpan(1.0, 1.7)),
        ("SQRT(x)", AnswerSpan(2**0.5, 2.0)),
        ("LN(y)", None),  # a part of it has no logarithm
        ("LEAST(x, z)", AnswerSpan(2, 4)),
        ("GREATEST(x, 3)", AnswerSpan(3, 4)),
        ("COALESCE(x, 9)", AnswerSpan(2, 9)),
        ("NULLIF(x, 3)", AnswerSpan(2, 4)),
        ("CASE WHEN x > 1 THEN 1 ELSE 2 END", AnswerSpan(1, 1)),
        ("CASE WHEN x > 3 THEN 1 ELSE 2 END", AnswerSpan(1, 2)),
        ("CASE WHEN x > 9 THEN y ELSE z END", AnswerSpan(3.0, 5.0)),
        ("CASE WHEN k = 'A' THEN x ELSE y END", AnswerSpan(2, 4)),
        ("x % 3", None),
        ("CASE WHEN x > 3 THEN 'a' ELSE 'b' END", None),
    ],
)
def test_where_an_expression_may_be(text, span):
    from tacit.query.nodes import FLOAT, INT, TEXT
    from tacit.query.sql.expressions import Reader
    from tacit.query.sql.parse import parsed
    from tacit.query.typecheck import canonical

    kinds = {"x": INT, "y": INT, "z": FLOAT, "k": TEXT, "gone": INT}
    tree = Reader(lambda node: Column(node.this.this)).read(parsed(text))
    found = span_of(canonical(tree, kinds), SPANS)
    assert found == span if span is None else (found.low, found.high) == pytest.approx((span.low, span.high))
