"""UNION ALL, ROLLUP, CUBE and GROUPING SETS: rows as DuckDB has them, one charge, totals that agree."""

import json
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.errors import BudgetExceeded, QueryRefused
from tacit.forecast.target import expected_error
from tacit.ledger import open_ledger
from tests.door.orders import charges, spent

DRAWN = np.random.default_rng(5)  # so many rows that every combination has some
ROWS = pa.table(
    {
        "id": range(600),
        "a": ["uvw"[n] for n in DRAWN.integers(0, 3, 600)],
        "b": DRAWN.integers(0, 4, 600),
        "c": DRAWN.integers(0, 2, 600) > 0,
        "x": DRAWN.integers(0, 10, 600),
    }
)
COLUMNS = {"a": {"keys": ["u", "v", "w"]}, "b": {"keys": [0, 1, 2, 3]}, "c": {"keys": [False, True]}}
COLUMNS["x"] = {"between": (0, 9)}
HUGE = 10**7


@pytest.fixture(scope="module")
def table():
    budget = tacit.epsilon(10**10)
    return tacit.table(ROWS, unit=tacit.ROW, name="t", budget=budget, columns=COLUMNS, ledger=tacit.TRYOUT)


def small(book, budget=None, **declared):
    usual = {"unit": tacit.ROW, "name": "t", "budget": budget or tacit.epsilon(2), "columns": COLUMNS}
    return tacit.table(ROWS, version=1, ledger=book, **(usual | declared))


@pytest.fixture
def book():
    with open_ledger(":memory:") as opened:
        yield opened


def ours(table, text, epsilon=HUGE):
    answer = table.sql(text).answer(epsilon=epsilon)
    return [tuple(row[name] for name in answer.columns) for row in answer.to_dicts()]


def theirs(text):
    t = ROWS  # noqa: F841 - DuckDB finds it by its name
    return duckdb.sql(text).fetchall()


def in_order(rows):
    return sorted((tuple(round(v, 6) if isinstance(v, float) else v for v in row) for row in rows), key=repr)


SAME = [
    "SELECT a, b, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY ROLLUP (a, b)",
    "SELECT a, b, COUNT(*) AS n FROM t GROUP BY CUBE (a, b)",
    "SELECT a, b, c, COUNT(*) AS n FROM t WHERE x > 2 GROUP BY CUBE (a, b, c)",
    "SELECT a, b, SUM(x) AS s FROM t GROUP BY GROUPING SETS ((a, b), (b), ())",
    "SELECT a, b, COUNT(*) AS n FROM t GROUP BY GROUPING SETS (a, b)",
    "SELECT a, b, c, COUNT(*) AS n FROM t GROUP BY a, ROLLUP (b, c)",
    "SELECT a, b, COUNT(*) AS n FROM t GROUP BY ROLLUP (a), CUBE (b)",
    "SELECT a, b, c, COUNT(*) AS n FROM t GROUP BY ROLLUP ((a, b), c)",
    "SELECT a, GROUPING(a) AS g, COUNT(*) AS n FROM t GROUP BY ROLLUP (a)",
    "SELECT b, a, GROUPING(a, b) AS g, COUNT(*) AS n FROM t GROUP BY CUBE (a, b) HAVING COUNT(*) > 60",
    "SELECT a, AVG(x) AS m, SUM(x) + COUNT(*) AS y FROM t GROUP BY ROLLUP (a)",
    "SELECT COALESCE(a, 'all') AS a2, COUNT(*) AS n FROM t GROUP BY ROLLUP (a)",
    "SELECT a, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC, a) AS r FROM t GROUP BY ROLLUP (a)",
    "SELECT a, b, COUNT(*) AS n, SUM(COUNT(*)) OVER (PARTITION BY GROUPING(a, b)) AS s FROM t GROUP BY ROLLUP (a, b)",
    "SELECT a, COUNT(*) AS n FROM t GROUP BY GROUPING SETS ((a), (a), ())",
    "SELECT a, COUNT(*) AS n FROM t GROUP BY a UNION ALL SELECT 'all', COUNT(*) FROM t",
    "SELECT 'small' AS size, COUNT(*) AS n FROM t WHERE x < 5 UNION ALL SELECT 'large', COUNT(*) FROM t WHERE x >= 5",
    "SELECT a, SUM(x) AS s FROM t GROUP BY a HAVING SUM(x) > 0 UNION ALL SELECT NULL, AVG(x) FROM t",
    "SELECT a, COUNT(*) AS n FROM t GROUP BY ROLLUP (a) UNION ALL SELECT CAST(b AS TEXT), COUNT(*) FROM t GROUP BY b",
    "WITH v AS (SELECT * FROM t WHERE x > 3) SELECT COUNT(*) AS n FROM v UNION ALL SELECT SUM(x) FROM v",
    "SELECT COUNT(*) AS n FROM t UNION ALL SELECT 2 * COUNT(*) FROM t UNION ALL SELECT SUM(x) FROM t WHERE x < 5",
    "SELECT COUNT(*) AS n FROM t UNION ALL SELECT COUNT(*) FROM t",
]


@pytest.mark.parametrize("text", SAME)
def test_rows_are_those_of_duckdb(table, text):
    assert in_order(ours(table, text)) == in_order(theirs(text))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a, b, COUNT(*) AS n FROM t GROUP BY ROLLUP (a, b) ORDER BY n DESC, a NULLS LAST, b NULLS LAST LIMIT 4",
        "SELECT a, COUNT(*) AS n FROM t GROUP BY a UNION ALL SELECT 'all', COUNT(*) FROM t ORDER BY 2 DESC, a LIMIT 3",
        "SELECT a, COUNT(*) AS n FROM t GROUP BY a UNION ALL SELECT 'all', COUNT(*) FROM t ORDER BY n LIMIT 2 OFFSET 1",
        "SELECT a, COUNT(*) AS n FROM t GROUP BY CUBE (a, b) QUALIFY RANK() OVER (ORDER BY COUNT(*)) < 4 ORDER BY n",
    ],
)
def test_order_and_limit_are_of_all_rows_together(table, text):
    assert ours(table, text) == theirs(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT a, COUNT(*) FROM t GROUP BY a UNION SELECT 'x', COUNT(*) FROM t", "UNION ALL only"),
        ("SELECT a, COUNT(*) FROM t GROUP BY a EXCEPT SELECT 'x', COUNT(*) FROM t", "UNION ALL only"),
        ("SELECT a, COUNT(*) FROM t GROUP BY a UNION ALL SELECT COUNT(*) FROM t", "has 2 columns, and SELECT 2 has 1"),
        ("SELECT a, COUNT(*) FROM t GROUP BY a UNION ALL SELECT b, COUNT(*) FROM t GROUP BY b", "is text in the first"),
        (
            "SELECT a, COUNT(*) AS n FROM t GROUP BY a UNION ALL SELECT 'x', COUNT(*) FROM t ORDER BY m",
            "its columns are a, n",
        ),
        (
            "SELECT a, COUNT(*) AS n FROM t GROUP BY a UNION ALL SELECT 'x', 3 FROM t",
            "lacks an aggregate and a GROUP BY",
        ),
        ("SELECT a, GROUPING(b) AS g, COUNT(*) FROM t GROUP BY ROLLUP (a)", "GROUPING is of a key"),
        ("SELECT a, GROUPING(a) AS g, COUNT(*) FROM t GROUP BY a", "GROUPING is of a key"),
        ("SELECT COUNT(*) FROM t GROUP BY CUBE (a, b, c, x, a || 'x', b + 1, x + 2)", "more than 64 levels"),
        ("SELECT b, COUNT(*) FROM t GROUP BY ROLLUP (a)", "'b' must be inside"),
    ],
)
def test_what_cannot_be_is_refused_with_words(table, text, said):
    with pytest.raises(QueryRefused, match=said):
        table.sql(text)


# ---- the ledger ------------------------------------------------------------------------------------------------------

ROLLUP = "SELECT a, b, COUNT(*) AS n FROM t GROUP BY ROLLUP (a, b)"


def test_a_rollup_is_one_charge_of_the_whole_epsilon_and_free_again(book):
    table = small(book)
    first = table.sql(ROLLUP).answer(epsilon=1)
    assert charges(table) == [(1, None)]
    again = table.sql(ROLLUP + " ORDER BY n LIMIT 5").answer(epsilon=1)
    assert again.facts.free
    assert [row["n"] for row in again.to_dicts()] == sorted(row["n"] for row in first.to_dicts())[:5]
    assert "Spent ε 1;" in str(first)
    assert spent(table) == 1


def test_its_certificate_and_its_plan_are_of_all_levels(book):
    table = small(book)
    question = table.sql(ROLLUP)
    plan = question.plan(epsilon=1)
    assert plan.loss.epsilon == 1
    assert "Plan for t" in str(plan)
    assert plan.fit
    answer = question.answer(epsilon=1)
    (charge,) = [entry for entry in book.entries() if entry.kind == "charge"]
    assert len(charge.record["events"]) == 1
    assert str(charge.record["events"][0]["scale"]) in json.dumps(dict(answer.certificate()))


def test_a_rollup_without_room_for_all_levels_is_refused_whole(book):
    table = small(book, tacit.epsilon(1))
    table.sql("SELECT COUNT(*) FROM t").answer(epsilon=Fraction(1, 3))
    question = table.sql(ROLLUP)
    assert not question.plan(epsilon=1).fit
    with pytest.raises(BudgetExceeded):
        question.answer(epsilon=1)
    assert spent(table) == Fraction(1, 3)


def test_totals_agree_and_a_note_says_so(book):
    table = small(book)
    answer = table.sql(ROLLUP).answer(epsilon=1)
    rows = answer.to_dicts()
    cells = [row["n"] for row in rows if row["b"] is not None]
    by_a = {row["a"]: row["n"] for row in rows if row["b"] is None and row["a"] is not None}
    (total,) = [row["n"] for row in rows if row["a"] is None and row["b"] is None]
    assert len(cells) == 12
    assert sum(cells) == sum(by_a.values()) == total
    assert all(row["n_low"] <= row["n"] <= row["n_high"] for row in rows)
    assert "Counts and sums add up" in answer.details()


def test_totals_of_keys_that_are_found_are_those_of_the_groups_that_are_shown(book):
    table = small(book, tacit.epsilon(60, delta=1e-6), columns={})
    answer = table.sql("SELECT a, COUNT(*) AS n FROM t GROUP BY ROLLUP (a)").answer(epsilon=3)
    total, *groups = answer.to_dicts()
    assert total["a"] is None
    assert total["n"] == sum(row["n"] for row in groups)
    assert len(groups) == 3


def test_a_number_that_does_not_add_up_has_noise_of_its_own_at_each_level(book):
    answer = small(book).sql("SELECT a, MEDIAN(x) AS m FROM t GROUP BY ROLLUP (a)").answer(epsilon=1)
    assert "Totals have separate noise" in answer.details()


@pytest.mark.parametrize(("totals", "rows"), [(True, 12 + 3 + 1), ("all", 12 + 3 + 4 + 1)])
def test_python_asks_for_totals_as_sql_does_and_they_are_labelled(book, totals, rows):
    table = small(book, tacit.epsilon(9))
    question = table.group_by("a", "b", totals=totals)
    answer = question.count().answer(epsilon=1)
    assert len(answer) == rows
    assert answer.to_dicts()[0] | {"count": 0, "count_low": 0, "count_high": 0} == {
        "a": None,
        "b": None,
        "count": 0,
        "count_low": 0,
        "count_high": 0,
    }
    assert [line.split()[:2] for line in str(answer).splitlines()[2:4]] == [["Total", "Total"], ["u", "Total"]] or (
        totals == "all"
    )
    sql = f"SELECT a, b, COUNT(*) AS n FROM t GROUP BY {'CUBE' if totals == 'all' else 'ROLLUP'} (a, b)"
    assert table.sql(sql).answer(epsilon=1).facts.free  # the same question in other words
    with pytest.raises(tacit.TacitError, match="totals must be True"):
        table.group_by("a", totals="some")


def test_rows_of_keys_that_are_not_listed_are_in_no_group_and_in_no_total(book):
    table = small(book, tacit.epsilon(10**9), columns={"a": {"keys": ["u", "v"]}})
    answer = table.sql("SELECT a, COUNT(*) AS n FROM t GROUP BY ROLLUP (a)").answer(epsilon=HUGE)
    found = {row["a"]: row["n"] for row in answer.to_dicts()}
    assert found[None] == found["u"] + found["v"] == ROWS["a"].to_pylist().count("u") + ROWS["a"].to_pylist().count("v")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a, AVG(x) AS m FROM t GROUP BY ROLLUP (a)",
        "SELECT a, AVG(x) AS m FROM t GROUP BY a UNION ALL SELECT 'all', AVG(x) FROM t",
    ],
)
def test_a_mean_that_cannot_be_told_is_explained(book, text):
    table = small(book, tacit.epsilon(10**9), columns=COLUMNS | {"a": {"keys": ["u", "v", "w", "nobody's"]}})
    answer = table.sql(text).answer(epsilon=HUGE)
    assert {row["a"]: row["m"] for row in answer.to_dicts()}["nobody's"] is None
    assert "There are too few people for m in rows with a –." in str(answer)
    assert "too few people" not in str(table.sql(text.replace("AVG(x)", "COUNT(*)")).answer(epsilon=HUGE))


def test_a_table_of_people_learns_and_answers_a_rollup(book):
    people = pa.table({"who": [n % 300 for n in range(1500)], "a": ["uvw"[n % 3] for n in range(1500)]})
    table = tacit.table(
        people, unit="who", name="t", budget=tacit.epsilon(50, delta=1e-6), columns={"a": COLUMNS["a"]}, ledger=book
    )
    question = table.sql("SELECT a, COUNT(*) AS n FROM t GROUP BY ROLLUP (a)")
    assert "of 20 goes to them" in str(question.plan(epsilon=20))
    answer = question.answer(epsilon=20)
    found = {row["a"]: row["n"] for row in answer.to_dicts()}
    assert found[None] == found["u"] + found["v"] + found["w"]
    assert found[None] == pytest.approx(1500, abs=300)
    assert spent(table) == 20


def test_an_error_holds_for_every_part_of_a_compound_question(book):
    """Each part has its share of epsilon; the least is solved for that is enough for all."""
    table = small(book)
    for text in (ROLLUP, "SELECT 'x' AS a, COUNT(*) AS n FROM t UNION ALL SELECT 'y', COUNT(*) FROM t WHERE a = 'u'"):
        question = table.sql(text)
        report = question.plan(error={"n": 40})
        assert "n ± 40" in report.solved.words
        assert "is the least that is expected to give" in str(report)
        errors = [expected_error(plan.outputs[0], plan, Fraction(95, 100)) for plan in report.planned.plans]
        assert max(errors) <= 40
        less = question.plan(epsilon=report.solved.epsilon * Fraction(9, 10)).planned.plans
        assert max(expected_error(plan.outputs[0], plan, Fraction(95, 100)) for plan in less) > 40
        assert "n ± 40" in "".join(question.answer(error=40).facts.notes)


def test_what_a_compound_answer_shows_goes_everywhere(book):
    answer = (
        small(book)
        .sql("SELECT a, COUNT(*) AS n FROM t GROUP BY a UNION ALL SELECT 'all', COUNT(*) FROM t")
        .answer(epsilon=1)
    )
    assert list(answer.to_pandas().columns) == ["a", "n", "n_low", "n_high"]
    assert answer.to_csv().splitlines()[0] == "a,n,n_low,n_high"
    assert len(json.loads(answer.to_json())["rows"]) == 4
    assert "all" in str(answer)


# ---- MODE ------------------------------------------------------------------------------------------------------------


def test_mode_is_the_first_of_a_ranking(table):
    """Listed keys are ranked, others are found by their counts; NULL is no mode."""
    for text in (
        "SELECT MODE(a) FROM t WHERE x < 4",
        "SELECT MODE(b) AS m FROM t UNION ALL SELECT SUM(b) FROM t WHERE c",
    ):
        assert ours(table, text, 10**5) == theirs(text)
    (choice,) = table.sql("SELECT MODE(a) FROM t").plan(epsilon=1).plan.events
    assert type(choice).__name__ == "PureChoice"


def test_a_mode_of_keys_that_are_not_listed_is_found(book):
    rows = pa.table({"a": ["u"] * 300 + ["v"] * 200 + [None] * 900})
    table = tacit.table(rows, unit=tacit.ROW, name="t", budget=tacit.epsilon(60, delta=1e-6), ledger=book)
    assert table.sql("SELECT MODE(a) FROM t").answer(epsilon=20).to_dicts() == [{"mode_a": "u"}]


def test_an_audit_of_several_parts_is_refused(table):
    with pytest.raises(QueryRefused, match="one part"):
        tacit.audit_question(table.sql(ROLLUP), epsilon=1)
