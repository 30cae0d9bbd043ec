"""Rows by unit, asked in SQL and in Python: what is answered, learned, charged and refused."""

from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.errors import LargeEpsilonWarning, QueryRefused
from tacit.plan.planner import hand_set_plan, make_spend

pytestmark = pytest.mark.filterwarnings("ignore", category=LargeEpsilonWarning)
COUNTED = "SELECT AVG(n) AS n FROM (SELECT id, COUNT(*) AS n FROM t WHERE x > 10 GROUP BY id)"


@pytest.fixture
def rows():
    rng = np.random.default_rng(17)
    count = 1500
    return pd.DataFrame(
        {
            "id": rng.integers(0, 200, count),
            "g": rng.choice(["a", "b", "c"], count),
            "x": rng.integers(0, 100, count),
            "y": rng.integers(-800, 800, count) / 16,
            "b": rng.integers(0, 2, count) == 1,
        }
    )


def protected(rows, **declared):
    columns = {"g": {"keys": ["a", "b", "c"]}}
    usual = {"unit": "id", "name": "t", "budget": tacit.epsilon(1000, delta=1e-6), "ledger": tacit.TRYOUT}
    return tacit.table(rows, columns=columns, **usual, **declared)


def test_sql_and_python_ask_the_same_question(rows):
    table = protected(rows)
    first = table.sql(COUNTED).answer(epsilon=1)
    again = table.where("x > 10").per_unit(visits=tacit.count()).agg(n=tacit.mean("visits")).answer(epsilon=1)
    assert not first.facts.free
    assert again.facts.free
    assert again.to_dicts() == first.to_dicts()


def test_one_row_a_unit_learns_a_range_and_no_bound(rows):
    question = protected(rows).per_unit(n=tacit.count()).agg(n=tacit.mean("n"))
    words = [wanted.words for wanted in question.plan(epsilon=1).wanted]
    assert words == ["how large COUNT(*) is", "about the middle of COUNT(*)", "how far COUNT(*) is from its middle"]
    assert question.plan(epsilon=1).plan.rows_per_unit == 1
    assert "Rows by unit: one for each unit, made of the unit's own rows." in str(question.plan(epsilon=1))
    assert "at most 1 rows" not in str(question.answer(epsilon=1))
    counted = protected(rows).per_unit(n=tacit.count()).where("n > 3").count()
    assert counted.plan(epsilon=1).wanted == ()


def test_facts_and_answers_of_a_relation_are_not_those_of_the_table(rows):
    table = protected(rows)
    table.sum("x").answer(epsilon=1)
    known = len(table.facts)
    assert table.sum("x").plan(epsilon=2).wanted == ()
    relation = table.sql("SELECT SUM(x) AS x FROM (SELECT id, x FROM t GROUP BY id, x)")  # the same words, other rows
    assert relation.plan(epsilon=1).wanted != ()
    assert not relation.answer(epsilon=1).facts.free
    assert relation.plan(epsilon=2).wanted == ()
    of_relation = [each.words for each in table.facts][known:]
    assert of_relation, "they are shown beside the table's own"
    assert all(words.endswith(" (of rows by id, x)") for words in of_relation)


def test_a_range_is_given_by_the_name_that_a_subquery_gives(rows):
    question = protected(rows).sql(COUNTED, between={"n": (0, 50)})
    named = COUNTED.replace("AVG(n) AS n", "AVG(n) AS a")
    by_column = protected(rows).sql(named, between={"n": (0, 50)})
    assert question.plan(epsilon=1).wanted == by_column.plan(epsilon=1).wanted == ()


def test_the_budget_is_the_tables_own(rows):
    table = tacit.table(rows, unit="id", name="t", budget=tacit.epsilon(1, delta=1e-6), ledger=tacit.TRYOUT)
    table.sql(COUNTED).answer(epsilon=1)
    with pytest.raises(tacit.BudgetExceeded):
        table.count().answer(epsilon="0.1")


SELECTS = [
    "SELECT COUNT(*) AS v FROM (SELECT DISTINCT id, g FROM t)",
    "SELECT COUNT(*) AS v FROM (SELECT DISTINCT id FROM t WHERE b)",
    "SELECT SUM(n) AS v FROM (SELECT id, COUNT(*) AS n FROM t GROUP BY id HAVING COUNT(*) > 5 AND MAX(x) > 90)",
    "SELECT g, SUM(n) AS v FROM (SELECT id, g, COUNT(DISTINCT x) AS n FROM t GROUP BY ALL) GROUP BY g",
    "SELECT g, SUM(s) AS v FROM (SELECT id, g, SUM(y) AS s FROM t GROUP BY 1, 2) WHERE s > 0 GROUP BY g",
    "SELECT SUM(r) AS v FROM (SELECT SUM(x) / COUNT(*) AS r FROM t GROUP BY id)",
    "SELECT SUM(r) AS v FROM (SELECT id, AVG(y) AS m, MAX(y) - MIN(y) AS r FROM t GROUP BY id) WHERE m > 1",
    "WITH w AS (SELECT id AS p, x * 2 AS z FROM t WHERE b), s AS (SELECT p, SUM(z) AS z FROM w GROUP BY p)"
    " SELECT SUM(z) AS v FROM s WHERE z < 900",
    "WITH w AS (SELECT id, g, COUNT(*) AS n FROM t GROUP BY id, g),"
    " m AS (SELECT id, COUNT(*) AS gs, MAX(n) AS top FROM w WHERE n > 1 GROUP BY id) SELECT SUM(top) AS v FROM m",
    "SELECT big, COUNT(*) AS v FROM (SELECT CASE WHEN COUNT(*) > 7 THEN 1 ELSE 0 END AS big FROM t GROUP BY id)"
    " GROUP BY big",
    "SELECT COUNT(*) AS v FROM (SELECT id, BOOL_AND(b) AS every, BOOL_OR(x > 95) AS any95 FROM t GROUP BY id)"
    " WHERE every OR any95",
    "SELECT SUM(c) AS v FROM (SELECT id, COUNT(*) FILTER (WHERE x > 50) AS c, SUM(x) FILTER (WHERE b) AS q FROM t"
    " GROUP BY id) WHERE q IS NOT NULL",
    "SELECT LOWER(h) AS k, SUM(x) AS v FROM (SELECT u.h, u.x FROM (SELECT UPPER(g) AS h, t.* FROM t) AS u) GROUP BY k",
    "SELECT SUM(e) AS v FROM (SELECT * FROM (SELECT id, g AS f, x + 1 AS e FROM t) AS i(a, k, e) WHERE k <> 'c')",
    "SELECT SUM(DISTINCT_X) AS v FROM (SELECT id, MIN(x) AS distinct_x FROM t GROUP BY id)",
]


@pytest.mark.parametrize("text", SELECTS)
def test_exact_sums_are_those_of_duckdb(rows, text):
    counts = "COUNT(*) AS v" in text.split("FROM")[0]
    question = protected(rows).sql(text, between={} if counts else {"v": (-4096, 4096)})
    wide = replace(question.session.declaration, rows_per_unit=64, groups_per_unit=4, most_rows_per_unit=64)
    plan = hand_set_plan(question.query, wide, make_spend(1, None, None, question.session.registered.budget))
    exact = question.session.engine.aggregate(plan, "0123456789abcdef")
    found, step = dict(zip(exact.keys, exact.sums["rows"], strict=True)), 0.0
    if not counts:
        column, step = plan.measured[0], float(plan.measured[0].step)
        pairs = zip(exact.keys, exact.sums["counted_0"], exact.sums["total_0"], strict=True)
        found = {key: float((total + counted * column.low) * column.step) for key, counted, total in pairs}
    t = rows  # noqa: F841 - DuckDB finds it by its name
    wanted = {row[:-1]: row[-1] for row in duckdb.sql(text).fetchall()}
    assert found.keys() == wanted.keys()
    # a value of each unit is rounded to a whole step
    assert all(abs(found[key] - float(wanted[key])) <= step * len(set(rows["id"])) for key in wanted)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda t: t.per_unit(m=tacit.median("x")), "cannot be computed of one unit's rows"),
        (lambda t: t.per_unit(m=3), "must be an aggregate"),
        (lambda t: t.per_unit(id=tacit.count()), "is the unit or a group already"),
        (lambda t: t.per_unit(m=tacit.sum("id")), "is the unit"),
        (lambda t: t.group_by("g", keys=["a"]).per_unit(n=tacit.count()), "keys= is for groups of an answer"),
        (lambda t: t.per_unit(n=tacit.count()).group_by("id").count(), "is the unit"),
        (lambda t: t.per_unit(n=tacit.count()).mean("x"), "there is no column 'x'"),
        (lambda t: t.per_unit(m=tacit.max("g")), "takes numbers and times"),
    ],
)
def test_refusals_in_python(rows, ask, words):
    with pytest.raises(QueryRefused, match=words):
        ask(protected(rows))
