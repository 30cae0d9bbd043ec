"""Aggregates that are short for others are read as those."""

import pandas as pd
import pytest

from tacit.errors import QueryRefused
from tacit.query.sql.questions import parse_query
from tacit_gauntlet.stage.table import exact_table, protected
from tests.query.test_sql import VISITS


def asked(text):
    return [(output.name, output.aggregate) for output in parse_query(text, VISITS).outputs]


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("COUNT(*) FILTER (WHERE age > 3) AS n", "COUNT(CASE WHEN age > 3 THEN 1 END) AS n"),
        ("COUNT(ward) FILTER (WHERE age > 3) AS n", "COUNT(CASE WHEN age > 3 THEN ward END) AS n"),
        ("SUM(age) FILTER (WHERE age > 3)", "SUM(CASE WHEN age > 3 THEN age END) AS sum_age"),
        ("AVG(age) FILTER (WHERE ward = 'A') AS a", "AVG(CASE WHEN ward = 'A' THEN age END) AS a"),
        ("MEDIAN(age) FILTER (WHERE ward = 'A') AS a", "MEDIAN(CASE WHEN ward = 'A' THEN age END) AS a"),
        ("COUNT(DISTINCT ward) FILTER (WHERE age > 3) AS n", "COUNT(DISTINCT CASE WHEN age > 3 THEN ward END) AS n"),
        ("COUNT_IF(age > 3)", "COUNT(CASE WHEN age > 3 THEN 1 END) AS count_if"),
        ("COUNTIF(age > 3) AS n", "COUNT(CASE WHEN age > 3 THEN 1 END) AS n"),
        ("QUANTILE_CONT(age, 0.9)", "QUANTILE(age, 0.9) AS quantile_cont_age"),
        ("QUANTILE_DISC(age, 0.9) AS q", "QUANTILE(age, 0.9) AS q"),
        ("PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY age)", "QUANTILE(age, 0.9) AS quantile_age"),
        ("PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY age DESC) AS q", "QUANTILE(age, 0.1) AS q"),
        ("APPROX_QUANTILE(age, 0.9) AS q", "QUANTILE(age, 0.9) AS q"),
        ("APPROX_MEDIAN(age) AS q", "MEDIAN(age) AS q"),
        ("APPROX_COUNT_DISTINCT(ward)", "COUNT(DISTINCT ward) AS approx_count_distinct_ward"),
        ("MEAN(age)", "AVG(age) AS mean_age"),
        (
            "REGR_COUNT(cost, age)",
            "COUNT(CASE WHEN cost IS NOT NULL AND age IS NOT NULL THEN 1 END) AS regr_count_cost_age",
        ),
        ("REGR_AVGX(cost, age) AS m", "AVG(CASE WHEN cost IS NOT NULL THEN age END) AS m"),
        ("REGR_AVGY(cost, age) AS m", "AVG(CASE WHEN age IS NOT NULL THEN cost END) AS m"),
        (
            "REGR_SXX(cost, age)",
            "(COUNT(CASE WHEN cost IS NOT NULL AND age IS NOT NULL THEN 1 END)"
            " * VAR_POP(CASE WHEN cost IS NOT NULL THEN age END)) AS regr_sxx_cost_age",
        ),
        (
            "REGR_SYY(cost, age) AS s",
            "(COUNT(CASE WHEN cost IS NOT NULL AND age IS NOT NULL THEN 1 END)"
            " * VAR_POP(CASE WHEN age IS NOT NULL THEN cost END)) AS s",
        ),
        (
            "REGR_SXY(cost, age) AS s",
            "(COUNT(CASE WHEN cost IS NOT NULL AND age IS NOT NULL THEN 1 END) * COVAR_POP(cost, age)) AS s",
        ),
    ],
)
def test_the_short_form_is_the_long_one(short, long):
    assert asked(f"SELECT {short} FROM visits") == asked(f"SELECT {long} FROM visits")


def test_units_with_a_condition_are_counted_by_their_own_value():
    filtered = asked("SELECT COUNT(DISTINCT patient_id) FILTER (WHERE age > 3) AS n FROM visits")
    assert filtered == asked("SELECT COUNT(DISTINCT CASE WHEN age > 3 THEN patient_id END) AS n FROM visits")
    ((_, aggregate),) = filtered
    assert (aggregate.kind, aggregate.per_unit) == ("count_distinct", 1)


@pytest.mark.parametrize(
    "text",
    [
        "COUNT(DISTINCT CASE WHEN age > 3 THEN patient_id ELSE 'x' END)",
        "COUNT(DISTINCT CASE WHEN age > 3 THEN patient_id WHEN age > 9 THEN ward END)",
        "COUNT(DISTINCT CASE WHEN patient_id = 3 THEN patient_id END)",
        "SUM(CASE WHEN age > 3 THEN patient_id END)",
        "COUNT(DISTINCT patient_id || 'x')",
    ],
)
def test_the_unit_is_in_no_other_expression(text):
    with pytest.raises(QueryRefused, match="is the unit"):
        asked(f"SELECT {text} AS n FROM visits")


def test_order_by_all_is_by_every_column_from_left_to_right():
    asked = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY "
    assert parse_query(asked + "ALL DESC NULLS FIRST", VISITS) == parse_query(
        asked + "1 DESC NULLS FIRST, 2 DESC NULLS FIRST", VISITS
    )
    with pytest.raises(QueryRefused, match="'ALL' is not a column"):
        parse_query(asked + '"ALL"', VISITS)


def test_group_by_all_groups_by_what_is_no_aggregate():
    short = parse_query("SELECT ward, COUNT(*) AS n, day FROM visits GROUP BY ALL", VISITS)
    assert short == parse_query("SELECT ward, COUNT(*) AS n, day FROM visits GROUP BY ward, day", VISITS)
    alone = parse_query("SELECT COUNT(*) AS n FROM visits GROUP BY ALL", VISITS)
    assert alone == parse_query("SELECT COUNT(*) AS n FROM visits", VISITS)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("QUANTILE_CONT(age)", "QUANTILE_CONT has 1 argument"),
        ("PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY age, cost)", "with one ORDER BY"),
        ("PERCENTILE_CONT(ward) WITHIN GROUP (ORDER BY age DESC)", "number from 0 to 1"),
        ("PERCENTILE_CONT(2) WITHIN GROUP (ORDER BY age)", "number from 0 to 1"),
        ("MEAN(age, cost)", "MEAN has 2 argument"),
        ("REGR_SLOPE(age)", "not in the language"),
        ("COUNT_IF()", "cannot be read"),
    ],
)
def test_what_is_not_complete_is_refused(text, words):
    with pytest.raises(QueryRefused, match=words):
        parse_query(f"SELECT {text} FROM visits", VISITS)


def test_fetch_first_is_limit():
    text = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC"
    short = parse_query(f"{text} FETCH FIRST 5 ROWS ONLY", VISITS)
    assert short == parse_query(f"{text} LIMIT 5", VISITS)
    with pytest.raises(QueryRefused, match="LIMIT 5"):
        parse_query(f"{text} FETCH FIRST 5 PERCENT ROWS ONLY", VISITS)


def test_one_unit_moves_the_count_of_units_with_a_condition_by_at_most_one_in_a_group():
    """Take each unit away in turn. Of another column's values a unit has many, and moves the count by more."""
    rows = [(who, "AB"[who % 2], day) for who in range(12) for day in range(who)]

    def counted(column, left_out=None):
        frame = pd.DataFrame([row for row in rows if row[0] != left_out], columns=["id", "ward", "day"])
        table = protected(frame, rows_per_unit=20, columns={"ward": {"keys": ["A", "B"]}})
        text = f"SELECT ward, COUNT(DISTINCT {column}) FILTER (WHERE day > 2) AS n FROM t GROUP BY ward"
        question = table.sql(text)
        (distinct,) = question.plan(epsilon=1).plan.distincts
        return distinct.per_unit, list(exact_table(question).sums["distinct_0"])

    def moved(column):
        _, everyone = counted(column)
        return max(
            sum(abs(one - other) for one, other in zip(everyone, counted(column, who)[1], strict=True))
            for who in range(12)
        )

    assert counted("id") == (1, [4, 4])
    assert moved("id") == 1
    assert moved("day") > 1  # a bound of 1 would be wrong there, and it is not given
    assert counted("day")[0] == 20
