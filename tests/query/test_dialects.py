"""A question in another engine's SQL is the question that it would be in ours."""

import pytest

from tacit.errors import QueryRefused
from tacit.query.sql.questions import parse_query
from tests.query.test_sql import VISITS


@pytest.mark.parametrize(
    ("dialect", "theirs", "ours"),
    [
        ("bigquery", "SELECT COUNTIF(age > 3) AS n FROM `visits`", "SELECT COUNT_IF(age > 3) AS n FROM visits"),
        (
            "bigquery",
            "SELECT COUNT(*) AS n FROM visits WHERE DATE_DIFF(day, DATE '2011-01-31', DAY) > 3",
            "SELECT COUNT(*) AS n FROM visits WHERE DATE_DIFF('day', DATE '2011-01-31', day) > 3",
        ),
        (
            "bigquery",
            "SELECT GREATEST(AVG(age), 3) AS n FROM visits",
            "SELECT GREATEST(AVG(age), 3) AS n FROM visits",
        ),
        (
            "postgres",
            "SELECT to_char(day, 'YYYY-MM') AS m, count(*) AS n FROM visits WHERE ward ~~ 'A%' GROUP BY 1",
            "SELECT STRFTIME(day, '%Y-%m') AS m, COUNT(*) AS n FROM visits WHERE ward LIKE 'A%' GROUP BY m",
        ),
        (
            "snowflake",
            "SELECT IFF(age > 3, 1, 0) AS old, COUNT(*) AS n FROM visits GROUP BY 1",
            "SELECT CASE WHEN age > 3 THEN 1 ELSE 0 END AS old, COUNT(*) AS n FROM visits GROUP BY old",
        ),
        ("spark", "SELECT percentile_approx(age, 0.5) AS q FROM visits", "SELECT MEDIAN(age) AS q FROM visits"),
        (
            "tsql",
            "SELECT TOP 5 ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC",
            "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC LIMIT 5",
        ),
        (
            "mysql",
            "SELECT IF(age > 3, 'a', 'b') AS g, COUNT(*) AS n FROM visits GROUP BY g",
            "SELECT CASE WHEN age > 3 THEN 'a' ELSE 'b' END AS g, COUNT(*) AS n FROM visits GROUP BY g",
        ),
        (
            "postgres",
            "SELECT EXTRACT(DOW FROM day) AS k, COUNT(*) AS n FROM visits WHERE DATE_PART('doy', day) > 9 GROUP BY 1",
            "SELECT EXTRACT(DOW FROM day) AS k, COUNT(*) AS n FROM visits WHERE EXTRACT(DOY FROM day) > 9 GROUP BY 1",
        ),
        (
            "duckdb",
            "SELECT EXTRACT(DAYOFWEEK FROM day) AS k, COUNT(*) AS n FROM visits GROUP BY 1",
            "SELECT EXTRACT(DOW FROM day) AS k, COUNT(*) AS n FROM visits GROUP BY 1",
        ),
        (
            "postgres",
            "SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY age) AS q, ROUND(SUM(age)::numeric, 1) m FROM visits",
            "SELECT QUANTILE(age, 0.9) AS q, ROUND(SUM(age), 1) AS m FROM visits",
        ),
        (
            "snowflake",
            "SELECT LENGTH(ward) AS k, COUNT_IF(age > 3) AS n FROM visits WHERE SUBSTR(ward, 2) <> 'a' GROUP BY 1",
            "SELECT LENGTH(ward) AS k, COUNT_IF(age > 3) AS n FROM visits WHERE SUBSTRING(ward, 2) <> 'a' GROUP BY 1",
        ),
        (
            "bigquery",
            "SELECT COUNT(*) AS n FROM visits WHERE LENGTH(ward) > 3",
            "SELECT COUNT(*) AS n FROM visits WHERE LENGTH(ward) > 3",
        ),
        (
            "snowflake",
            "SELECT CORR(age, days) AS r FROM visits",
            "SELECT CORR(age, days) AS r FROM visits",
        ),
        ("Postgres", "SELECT COUNT(*) AS n FROM visits;", "SELECT COUNT(*) AS n FROM visits"),
    ],
)
def test_the_question_is_the_same(dialect, theirs, ours):
    assert parse_query(theirs, VISITS, dialect) == parse_query(ours, VISITS)


def test_a_refusal_shows_what_was_read():
    with pytest.raises(QueryRefused, match=r"not in the language(.|\n)*read from spark as: SELECT"):
        parse_query("SELECT collect_list(age) AS q FROM visits", VISITS, "spark")


def test_what_a_translation_would_leave_out_is_refused():
    with pytest.raises(QueryRefused, match=r"cannot be translated from snowflake: .*format"):
        parse_query("SELECT TO_CHAR(day, 'YYYY-MM') AS k, COUNT(*) AS n FROM visits GROUP BY 1", VISITS, "snowflake")


def test_an_unknown_dialect_is_refused_with_those_there_are():
    with pytest.raises(QueryRefused, match=r"there is no dialect 'klingon'(.|\n)*postgres, presto"):
        parse_query("SELECT COUNT(*) FROM visits", VISITS, "klingon")


@pytest.mark.parametrize("text", ["SELECT COUNT(*) FROM visits; DROP TABLE visits", "DELETE FROM visits", "PRAGMA x"])
def test_other_statements_stay_refused(text):
    with pytest.raises(QueryRefused):
        parse_query(text, VISITS, "sqlite")
