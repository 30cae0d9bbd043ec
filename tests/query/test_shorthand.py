"""SQL that is short for functions of the catalogue is read as those."""

import pytest

from tacit.errors import QueryRefused
from tacit.query.sql.rows import parse_expression
from tests.query.test_sql import VISITS


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("IF(age > 3, 1, 0) = 1", "CASE WHEN age > 3 THEN 1 ELSE 0 END = 1"),
        ("IF(age > 3, 1) = 1", "CASE WHEN age > 3 THEN 1 END = 1"),
        ("ward ILIKE 'AbÉ%'", "LOWER(ward) LIKE 'abÉ%'"),
        ("ward NOT ILIKE 'A%'", "NOT LOWER(ward) LIKE 'a%'"),
        ("ward ILIKE 'A!%' ESCAPE '!'", "LOWER(ward) LIKE 'a!%' ESCAPE '!'"),
        ("LOG(age) > 1", "LOG10(age) > 1"),
        ("CAST(age / 2 AS DECIMAL(5, 2)) > 1", "ROUND(age / 2, 2) > 1"),
        ("(age / 2)::NUMERIC(5) > 1", "ROUND(age / 2) > 1"),
        ("CAST(ward AS DECIMAL) > 1", "CAST(ward AS DECIMAL(18, 3)) > 1"),
        ("LOG(2, age) > 1", "LOG2(age) > 1"),
        ("LOG(3, age) > 1", "LN(age) / LN(3) > 1"),
        ("age ** 2 > 1", "POWER(age, 2) > 1"),
        ("POW(age, 2) > 1", "POWER(age, 2) > 1"),
        ("SIGN(age) = 1", "CASE WHEN age > 0 THEN 1 WHEN age < 0 THEN -1 WHEN age = 0 THEN 0 END = 1"),
        ("LEFT(ward, 2) = 'A'", "SUBSTRING(ward, 1, 2) = 'A'"),
        ("DAYOFWEEK(day) = 1", "EXTRACT(DOW FROM day) = 1"),
        ("DATE_PART('Year', day) = 1", "EXTRACT(YEAR FROM day) = 1"),
        ("DAYNAME(day) = 'Monday'", "STRFTIME(day, '%A') = 'Monday'"),
        ("MONTHNAME(day) = 'May'", "STRFTIME(day, '%B') = 'May'"),
        ("insured IS TRUE", "COALESCE(insured, FALSE)"),
        ("insured IS NOT FALSE", "NOT COALESCE(NOT insured, FALSE)"),
        ("age IS NOT DISTINCT FROM 3", "COALESCE(age = 3, age IS NULL AND 3 IS NULL)"),
        ("age IS DISTINCT FROM 3", "NOT COALESCE(age = 3, age IS NULL AND 3 IS NULL)"),
        ("STARTS_WITH(ward, 'A_')", "ward LIKE 'A!_%' ESCAPE '!'"),
        ("CONTAINS(ward, 'x')", "ward LIKE '%x%'"),
        ("CLAMP(age, 0, 9) = 3", "LEAST(GREATEST(age, 0), 9) = 3"),
        ("IFNULL(age, 0) = 3", "COALESCE(age, 0) = 3"),
        (
            "WIDTH_BUCKET(age, 0, 100, 10) = 3",
            "CASE WHEN age < 0 THEN 0 WHEN age >= 100 THEN 11"
            " ELSE LEAST(FLOOR((age - 0) / (100 - 0) * 10) + 1, 10) END = 3",
        ),
    ],
)
def test_the_short_form_is_the_long_one(short, long):
    assert parse_expression(short, VISITS) == parse_expression(long, VISITS)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("WIDTH_BUCKET(age, 0, 100, 0.5) = 1", "whole number of buckets"),
        ("CLAMP(age, 0) = 1", "CLAMP has 2 argument"),
        ("STARTS_WITH(ward, ward)", "must be a constant"),
        ("STRFTIME(day, '%Q') = '1'", "the format must be a constant"),
        ("STRFTIME(day, '%H') = '1'", "a date does not have a time of day"),
        ("STRFTIME(age, '%Y') = '1'", "needs a date or timestamp"),
        ("CURRENT_DATE > day", "write the day itself"),
    ],
)
def test_what_cannot_be_read_is_refused_with_words(text, words):
    with pytest.raises(QueryRefused, match=words):
        parse_expression(text, VISITS)
