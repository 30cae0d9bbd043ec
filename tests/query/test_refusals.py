"""A refusal names what was written, as people write it, and the nearest thing that works."""

import pytest

from tacit.errors import QueryRefused
from tacit.query.sql.questions import parse_query
from tests.query.test_sql import VISITS


@pytest.mark.parametrize(
    ("asked", "named", "way"),
    [
        ("SELECT COUNT(*) FROM visits WHERE MODE(ward) = 'A'", "MODE", "MODE(x) goes in SELECT, HAVING and ORDER BY"),
        ("SELECT ARG_MAX(ward, age) AS m FROM visits", "ARG_MAX", "GROUP BY x has a row for each value"),
        ("SELECT STRING_AGG(ward, ',') AS m FROM visits", "STRING_AGG", "GROUP BY x has a row for each value"),
        ("SELECT ANY_VALUE(ward) AS m FROM visits", "ANY_VALUE", "single rows are never shown"),
        ("SELECT BOOL_OR(age > 3) AS m FROM visits", "BOOL_OR", "COUNT_IF(a)"),
        ("SELECT GEOMEAN(age) AS m FROM visits", "GEOMEAN", "EXP(AVG(LN(x)))"),
        ("SELECT PERCENTILE_CONT(0.5) AS m FROM visits", "PERCENTILE_CONT", "WITHIN GROUP (ORDER BY x)"),
        ("SELECT COUNT(*) FROM visits WHERE age > (SELECT AVG(age) FROM visits)", "a SELECT inside", "as a number"),
        ("SELECT COUNT(*) FROM visits WHERE NOW() > day", "NOW", "write the time itself"),
        ("SELECT COUNT(*) FROM visits WHERE RANDOM() < 0.5", "RANDOM", "sampling is not supported"),
        ("SELECT COUNT(*) FROM visits TABLESAMPLE 10%", "TABLESAMPLE", "sampling is not supported"),
        ("SELECT COUNT(*) FROM visits WHERE ward SIMILAR TO 'A'", "SIMILAR TO", "LIKE with % and _"),
        ("SELECT COUNT(*) FROM visits WHERE REGEXP_MATCHES(ward, 'A')", "REGEXP_MATCHES", "LIKE with % and _"),
        ("SELECT COUNT(*) FROM visits WHERE (age, ward) IN ((1, 'A'))", "a list of columns", "a = 1 AND b = 2"),
        ("SELECT COUNT(*) FROM visits WHERE age = ANY (SELECT 1)", "ANY", "x IN (1, 2)"),
        (f"SELECT COUNT(*) FROM visits WHERE age IN (0.5, {'9' * 38})", "39 digits", "CAST(x AS FLOAT)"),
        (f"SELECT COUNT(*) FROM visits WHERE age NOT IN ({'9' * 38}, 2, 0.5)", "39 digits", "CAST(x AS FLOAT)"),
    ],
)
def test_a_refusal_names_what_was_written_and_what_to_write(asked, named, way):
    with pytest.raises(QueryRefused) as caught:
        parse_query(asked, VISITS)
    message, _, hint = str(caught.value).partition("\nhint: ")
    assert named in message
    assert "part (" not in message
    assert way in hint


@pytest.mark.parametrize("text", ["CAST(COUNT(*) AS DATE)", "CASE WHEN COUNT(*) > 3 THEN 'x' ELSE 1 END"])
def test_a_refusal_of_a_computed_column_names_its_aggregate(text):
    with pytest.raises(QueryRefused) as refused:
        parse_query(f"SELECT {text} AS n FROM visits", VISITS)
    assert "COUNT(*)" in str(refused.value)
    assert "x00" not in str(refused.value)


def test_numbers_of_any_length_are_compared_as_floats_beside_a_float():
    assert parse_query(f"SELECT COUNT(*) FROM visits WHERE age IN (0.5, {'9' * 38}, 1e0)", VISITS).where is not None
