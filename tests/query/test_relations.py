"""Subqueries and CTEs: row-wise ones are put in place, those by unit become relations, mixing people is refused."""

from dataclasses import replace
from fractions import Fraction

import pytest

from tacit.errors import QueryRefused
from tacit.query.nodes import Column, Key, PerUnit, TableRows, UnitAggregate, UnitOutput
from tacit.query.relations import declaration_of
from tacit.query.sql.questions import parse_query
from tacit.tables.schema import ROW, ColumnFacts, Declaration

VISITS = Declaration(
    name="visits",
    unit="patient_id",
    columns={
        "patient_id": ColumnFacts("int"),
        "ward": ColumnFacts("text", keys=("A", "B")),
        "age": ColumnFacts("int", between=(Fraction(0), Fraction(120))),
        "days": ColumnFacts("float"),
        "cost": ColumnFacts("decimal", scale=2, digits=10),
        "insured": ColumnFacts("bool"),
        "day": ColumnFacts("date"),
    },
    rows=1000,
    rows_per_unit=7,
)
COUNT = UnitOutput("COUNT(*)", UnitAggregate("count"))


def query(text, declaration=VISITS):
    return parse_query(text, declaration)


def refused(text, declaration=VISITS):
    with pytest.raises(QueryRefused) as caught:
        query(text, declaration)
    return str(caught.value)


def same(text, plain):
    assert query(text) == query(plain)


def relation(text):
    return query(text).relation


def test_a_subquery_by_the_unit_is_a_relation_with_one_row_a_unit():
    asked = query("SELECT AVG(n) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id)")
    assert asked.relation == PerUnit(TableRows("visits"), outputs=(COUNT,))
    assert asked.outputs[0].aggregate.expression == Column("COUNT(*)")
    declared = declaration_of(asked.relation, {"visits": VISITS})
    assert (declared.rows_per_unit, declared.groups_per_unit, declared.most_rows_per_unit) == (1, 1, 1)
    assert (declared.name, declared.unit, declared.rows) == ("visits", "patient_id", None)


def test_with_more_keys_a_unit_has_several_rows_and_bounds_are_learned():
    text = "SELECT ward, AVG(n) FROM (SELECT patient_id, ward, COUNT(*) AS n FROM visits GROUP BY 1, 2) GROUP BY ward"
    asked = query(text)
    assert asked.relation == PerUnit(TableRows("visits"), keys=(Key("ward", Column("ward")),), outputs=(COUNT,))
    declared = declaration_of(asked.relation, {"visits": VISITS})
    assert (declared.rows_per_unit, declared.groups_per_unit, declared.most_rows_per_unit) == (None, None, None)
    assert declared.columns["ward"].keys == ("A", "B")


def test_what_columns_are_called_is_not_part_of_the_relation():
    one = "SELECT AVG(n) AS a FROM (SELECT patient_id, COUNT(*) AS n, SUM(days) AS s FROM visits GROUP BY patient_id)"
    two = "SELECT AVG(m) AS a FROM (SELECT SUM(days) AS s, COUNT(1) AS m FROM visits GROUP BY patient_id)"
    same(one, two)


def test_row_wise_subqueries_are_put_in_place():
    same(
        "SELECT w, AVG(d) AS a FROM (SELECT LOWER(ward) AS w, days * 2 AS d FROM visits WHERE age > 17) GROUP BY w",
        "SELECT LOWER(ward) AS w, AVG(days * 2) AS a FROM visits WHERE age > 17 GROUP BY w",
    )
    same(
        "WITH adults AS (SELECT * FROM visits WHERE age > 17), long AS (SELECT t.* FROM adults t WHERE t.days > 3)"
        " SELECT ward, COUNT(*) AS n FROM long WHERE insured GROUP BY ward",
        "SELECT ward, COUNT(*) AS n FROM visits WHERE age > 17 AND days > 3 AND insured GROUP BY ward",
    )
    same(
        "SELECT COUNT(DISTINCT p) AS n FROM (SELECT patient_id AS p FROM visits)",
        "SELECT COUNT(DISTINCT patient_id) AS n FROM visits",
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT AVG(n) FROM (SELECT ward, COUNT(*) AS n\nFROM visits\nGROUP BY ward)", "GROUP BY without the unit"),
        ("SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM visits)", "an aggregate without the unit"),
        ("SELECT COUNT(*) FROM (SELECT DISTINCT ward FROM visits)", "DISTINCT without the unit"),
        ("SELECT COUNT(*) FROM (SELECT * FROM visits LIMIT 5)", "LIMIT inside a subquery"),
        ("SELECT COUNT(*) FROM (SELECT * FROM visits ORDER BY age)", "ORDER BY inside a subquery"),
        ("SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY ward) AS r FROM visits)", "ROW_NUMBER OVER"),
        (
            "SELECT AVG(m) FROM (SELECT patient_id, MEDIAN(days) AS m FROM visits GROUP BY 1)",
            "MEDIAN over one unit's rows",
        ),
        (
            "SELECT m, COUNT(*) FROM (SELECT patient_id, MODE(ward) AS m FROM visits GROUP BY 1) GROUP BY m",
            "MODE over one",
        ),
        ("SELECT COUNT(*) FROM (SELECT * FROM visits UNION ALL SELECT * FROM visits)", "UNION inside FROM"),
    ],
)
def test_what_would_mix_people_is_refused_at_its_line(text, words):
    assert words in refused(text)
    assert "(line " in refused(text)


def test_the_unit_is_never_shown_outermost():
    inner = "(SELECT patient_id AS p, COUNT(*) AS n FROM visits GROUP BY patient_id)"
    assert "is the unit" in refused(f"SELECT p, COUNT(*) FROM {inner} GROUP BY p")
    assert "is the unit" in refused(f"SELECT COUNT(*) FROM {inner} WHERE p = 7")
    assert "is the unit" in refused("SELECT k, COUNT(*) FROM (SELECT patient_id % 9 AS k FROM visits) GROUP BY k")


def test_rows_that_are_their_own_units_have_nothing_to_group_by():
    rows = Declaration("visits", ROW, VISITS.columns)
    assert "mix people" in refused("SELECT AVG(n) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward)", rows)
    assert query("SELECT COUNT(*) FROM (SELECT ward FROM visits)", rows).relation is None


def test_ranges_follow_from_what_is_declared():
    text = (
        "SELECT COUNT(*) FROM (SELECT patient_id, MIN(age) AS l, AVG(age * 2) AS m, SUM(age) AS s, COUNT(*) AS n,"
        " MAX(days) AS d FROM visits GROUP BY patient_id)"
    )
    facts = declaration_of(relation(text), {"visits": VISITS}).columns
    assert facts["MIN(age)"].between == (0, 120)
    assert facts["AVG(age * 2)"].between == (0, 240)
    assert (facts["SUM(age)"].between, facts["COUNT(*)"].between, facts["MAX(days)"].between) == (None, None, None)
    assert (facts["SUM(age)"].least, facts["COUNT(*)"].least, facts["MAX(days)"].least) == (0, 0, None)
    few = replace(VISITS, most_rows_per_unit=10)
    facts = declaration_of(relation(text), {"visits": few}).columns
    assert (facts["SUM(age)"].between, facts["COUNT(*)"].between) == ((0, 1200), (0, 10))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("WITH RECURSIVE v AS (SELECT 1) SELECT COUNT(*) FROM v", "WITH RECURSIVE"),
        ("WITH v AS (SELECT age FROM visits), V AS (SELECT age FROM visits) SELECT COUNT(*) FROM v", "twice"),
        ("SELECT COUNT(*) FROM (SELECT age + 1 FROM visits)", "needs a name"),
        ("SELECT COUNT(*) FROM (SELECT age, days AS age FROM visits)", "two columns 'age'"),
        ("SELECT COUNT(*) FROM (SELECT age FROM visits) AS v(a, b)", "1 columns to name, not 2"),
        ("SELECT AVG(age) FROM (SELECT ward FROM visits) AS v", "there is no column 'age' in 'v'"),
        ("SELECT AVG(age) FROM (SELECT patient_id, age FROM visits GROUP BY patient_id)", "not in the GROUP BY"),
        (
            "SELECT AVG(m) FROM (SELECT MEDIAN(age) AS m FROM visits GROUP BY patient_id)",
            "or MAX(age) there, or MEDIAN(age) outside",
        ),
        ("SELECT AVG(m) FROM (SELECT MAX(ward) AS m FROM visits GROUP BY patient_id)", "takes numbers and times"),
        ("SELECT AVG(m) FROM (SELECT SUM(ward) AS m FROM visits GROUP BY patient_id)", "cannot take the sum of a text"),
        ("SELECT COUNT(*) FROM (SELECT age FROM visits WHERE age)", "must be true or false"),
        ("SELECT COUNT(*) FROM (SELECT v.age FROM visits)", "there is no table 'v'"),
    ],
)
def test_refusals_name_what_is_wrong(text, words):
    assert words in refused(text)


def test_subqueries_that_aggregate_are_not_nested_without_end():
    text = "SELECT patient_id, ward, COUNT(*) AS n FROM visits GROUP BY patient_id, ward"
    for _ in range(3):
        text = f"SELECT patient_id, ward, SUM(n) AS n FROM ({text}) GROUP BY patient_id, ward"
    assert query(f"SELECT AVG(n) FROM ({text})").relation is not None
    deeper = f"SELECT patient_id, ward, SUM(n) AS n FROM ({text}) GROUP BY patient_id, ward"
    assert "more than 4 deep" in refused(f"SELECT AVG(n) FROM ({deeper})")


def test_work_inside_a_subquery_counts_in_each_reading_of_the_question():
    searches = " OR ".join(f"ward LIKE '%a{at}%'" for at in range(12))
    inner = f"SELECT patient_id, COUNT(*) AS n FROM visits WHERE {searches} GROUP BY patient_id"
    assert query(f"SELECT COUNT(DISTINCT n) AS a FROM ({inner})").relation is not None
    many = ", ".join(f"COUNT(DISTINCT n + {at}) AS a{at}" for at in range(20))
    assert query(f"SELECT {many} FROM (SELECT COUNT(*) AS n FROM visits GROUP BY patient_id)").relation is not None
    assert "too many times" in refused(f"SELECT {many} FROM ({inner})")


def test_expressions_that_grow_by_nesting_are_limited():
    text = "SELECT age > 1 AS a FROM visits"
    for _ in range(14):
        text = f"SELECT a = (NOT a) AS a FROM ({text})"
    assert "nests too many" in refused(f"SELECT COUNT(*) AS n FROM ({text}) WHERE a")
