"""Python as fluent as the best of its kind: expressions of columns, lists of keys, unnamed aggregates, descriptions."""

from fractions import Fraction

import pandas as pd
import pytest

import tacit
from tacit import col
from tacit.errors import QueryRefused

ROWS = 400


@pytest.fixture
def visits():
    frame = pd.DataFrame(
        {
            "patient": range(ROWS),
            "ward": ["AB"[place % 2] for place in range(ROWS)],
            "days": [place % 9 for place in range(ROWS)],
            "cost": [place / 2 for place in range(ROWS)],
            "insured": [place % 4 == 0 for place in range(ROWS)],
        }
    )
    return tacit.table(
        frame,
        name="visits",
        unit="patient",
        rows_per_unit=1,
        groups_per_unit=1,
        most_rows_per_unit=1,
        budget=tacit.epsilon(10**9),
        columns={"days": {"between": (0, 10)}, "cost": {"between": (0, 200)}, "ward": {"keys": ["A", "B"]}},
        ledger=tacit.TRYOUT,
    )


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (col("days") > 3, "days > 3"),
        ((col("days") >= 1) & (col("ward") == "A") & (col("cost") < 9.5), "days >= 1 AND ward = 'A' AND cost < 9.5e0"),
        (~(col("ward") != "A") | (col("days") <= 2), "NOT ward <> 'A' OR days <= 2"),
        (1 + col("days") * 2 - 3 > 4 / (col("cost") + 1), "(1 + (days * 2)) - 3 > 4 / (cost + 1)"),
        (col("days") // 2 % 3 == 1, "days // 2 % 3 = 1"),
        (-col("days") < abs(col("cost")) ** 2, "-days < POWER(ABS(cost), 2)"),
        (col("ward").isin(["A", "B"]), "ward IN ('A', 'B')"),
        (col("days").between(1, 3), "days BETWEEN 1 AND 3"),
        (col("days").is_null() | col("cost").not_null(), "days IS NULL OR cost IS NOT NULL"),
        ((col("days") == None) | (col("cost") != None), "days IS NULL OR cost IS NOT NULL"),  # noqa: E711
        (col("ward").lower().like("a%"), "LOWER(ward) LIKE 'a%'"),
        (col("cost").fill_null(0).round() > 3, "ROUND(COALESCE(cost, 0)) > 3"),
        (col("cost").clip(0, 9) > 3, "LEAST(GREATEST(cost, 0), 9) > 3"),
        (col("ward").cast("int") > 3, "CAST(ward AS INT) > 3"),
        (col("insured"), "insured"),
    ],
)
def test_an_expression_of_columns_is_the_text_it_stands_for(visits, expression, text):
    assert visits.where(expression).frame == visits.where(text).frame
    assert visits.filter(expression).frame == visits.where(text).frame


def test_text_in_an_expression_stays_text(visits):
    evil = "A' OR 'x' = 'x"
    assert visits.where(col("ward") == evil).frame == visits.where("ward = 'A'' OR ''x'' = ''x'").frame


def test_an_expression_is_not_true_or_false():
    with pytest.raises(QueryRefused, match="combine with"):
        bool(col("days") > 3)


def test_odd_names_are_quoted():
    frame = pd.DataFrame({"who": [1], "the days": [2]})
    table = tacit.table(frame, unit="who", budget=tacit.epsilon(1), ledger=tacit.TRYOUT)
    assert str(table.where(col("the days") > 3).frame.where) == str(table.where('"the days" > 3').frame.where)


def test_aggregates_take_expressions_and_need_no_name(visits):
    asked = visits.agg(tacit.mean(col("days")), tacit.sum(col("days") * 2), n=tacit.count()).query
    written = visits.agg(tacit.mean("days"), tacit.sum("days * 2"), n=tacit.count()).query
    assert asked == written
    assert asked.outputs[-1].name == "n"


def test_keys_may_be_a_list(visits):
    grouped = visits.group_by("ward", "insured").frame
    assert visits.group_by(["ward", "insured"]).frame == visits.group_by((col("ward"), "insured")).frame == grouped
    with pytest.raises(QueryRefused, match="needs a name"):
        visits.group_by(col("days") > 3)


def test_the_mean_of_a_condition_is_a_share(visits):
    (row,) = visits.mean("insured").answer(epsilon=10**6).to_dicts()
    (value,) = (value for name, value in row.items() if not name.endswith(("_low", "_high")))
    assert value == pytest.approx(0.25, abs=1e-3)


def test_what_is_public_is_free(visits):
    assert visits.columns == ("patient", "ward", "days", "cost", "insured")
    before = visits.left.epsilon
    shown = str(visits.describe())
    assert "the unit" in shown
    assert "between 0 and 10" in shown
    assert "keys A, B" in shown
    assert visits.sql("DESCRIBE visits").answer().to_dicts() == visits.describe().to_dicts()
    assert visits.sql("show tables;").to_dicts() == [{"table": "visits", "is": "protected by patient"}]
    assert visits.left.epsilon == before
    with pytest.raises(QueryRefused, match="there is no table 'nobody'"):
        visits.sql("DESCRIBE nobody")


def test_public_tables_are_described_too(visits):
    wards = tacit.public(pd.DataFrame({"ward": ["A", "B"], "beds": [1, 2]}), name="wards")
    described = visits.sql("DESCRIBE wards", tables=[wards])
    assert described.to_dicts()[1] == {"column": "beds", "type": "int", "public": "between 1 and 2; keys 1, 2"}
    listed = visits.sql("SHOW TABLES", tables=[wards]).to_dicts()
    assert listed[1] == {"table": "wards", "is": "public, about nobody"}
    assert described.to_csv().startswith("column,type,public")
    assert described.loss.epsilon == 0
    with pytest.raises(tacit.InvalidParameter, match="no numbers to draw"):
        described.plot()


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT DISTINCT ward FROM visits ORDER BY ward DESC", ["B", "A"]),
        ("SELECT ward FROM visits WHERE days > 3 GROUP BY ward LIMIT 1", ["A"]),
        ("SELECT LOWER(ward) AS ward2 FROM visits GROUP BY ward", ["a", "b"]),
        ("SELECT DISTINCT days > 3 AS long FROM visits", [False, True, None]),
        ("SELECT ward FROM visits GROUP BY ward QUALIFY ROW_NUMBER() OVER (ORDER BY ward) = 2", ["B"]),
    ],
)
def test_public_keys_alone_are_free_and_need_no_epsilon(visits, text, rows):
    before = visits.left.epsilon
    asked = visits.sql(text)
    assert [next(iter(row.values())) for row in asked.answer().to_dicts()] == rows
    assert asked.answer(epsilon=1).to_dicts() == asked.answer().to_dicts()
    assert asked.plan().loss.epsilon == 0
    assert "all of it is public" in str(asked.answer())
    assert visits.left.epsilon == before


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ward FROM visits GROUP BY ward HAVING COUNT(*) > 3",
        "SELECT ward FROM visits GROUP BY ward ORDER BY COUNT(*)",
        "SELECT ward FROM visits GROUP BY ward QUALIFY RANK() OVER (ORDER BY COUNT(*)) = 1",
    ],
)
def test_keys_that_rows_decide_on_are_charged(visits, text):
    assert visits.sql(text).plan(epsilon=1).loss.epsilon == 1


def test_keys_that_are_not_listed_are_found_and_charged(visits):
    with pytest.raises(QueryRefused, match="are not public"):  # its budget has no delta to find them with
        visits.sql("SELECT DISTINCT ward, days FROM visits").plan(epsilon=1)


def test_a_private_summary_has_a_row_for_each_column_of_numbers(visits):
    before = visits.left.epsilon
    summary = visits.describe(epsilon=10**6)
    assert visits.left.epsilon < before
    days, cost = summary.to_dicts()
    assert (days["column"], cost["column"]) == ("days", "cost")
    assert days["count"] == ROWS
    assert days["mean"] == pytest.approx(sum(place % 9 for place in range(ROWS)) / ROWS, abs=0.01)
    assert cost["p50"] == pytest.approx(100, abs=2)
    assert cost["mean_low"] <= cost["mean"] <= cost["mean_high"]
    assert "p75" in str(summary)
    assert list(summary.to_pandas()["column"]) == ["days", "cost"]


def test_a_summary_with_little_epsilon_for_each_column_leaves_out_the_spread_and_calls_vague_what_is(visits):
    summary = visits.describe(epsilon=Fraction(1, 10_000))
    assert "std" not in summary.to_dicts()[0]
    assert "too vague" in str(summary)
    assert len(str(summary).splitlines()) <= 14


def test_a_summary_of_something_else_is_refused(visits):
    with pytest.raises(QueryRefused, match="'ward' is not a column of numbers"):
        visits.describe(epsilon=1, columns=["ward"])


def test_a_question_says_what_it_asks(visits):
    asked = visits.where(col("days") > 3).group_by("ward").agg(tacit.mean("cost"), n=tacit.count())
    words = "SELECT ward, AVG(cost) AS mean_cost, COUNT(*) AS n FROM visits WHERE days > 3 GROUP BY ward"
    assert words in repr(asked)
    text = "SELECT ward, 100 * AVG(cost) AS pct FROM visits GROUP BY ward HAVING COUNT(*) > 3 LIMIT 2"
    assert "AS pct FROM visits GROUP BY ward HAVING" in repr(visits.sql(text))
    assert "COUNT(DISTINCT patient)" in repr(visits.count_units())
