"""`error=`: the least epsilon that is expected to keep within it, from public facts, or a refusal in words."""

import re
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import tacit
from tacit.asking import Question, Table
from tacit.forecast.target import expected_error

LEVEL = Fraction(95, 100)


def people(**declared: Any) -> Table:
    rows = pa.table({"id": range(1000), "g": ["a", "b"] * 500, "x": [i % 90 for i in range(1000)]})
    usual: dict[str, Any] = {"unit": "id", "budget": tacit.epsilon(50, delta="1e-6"), "ledger": ":memory:", "name": "t"}
    usual |= {"rows_per_unit": 1, "groups_per_unit": 1, "most_rows_per_unit": 1, "population": 1000}
    usual |= {"columns": {"x": {"between": (0, 100)}}}
    return tacit.table(rows, accept_large_delta=True, **(usual | declared))


def errors_at(question: Question, epsilon: Fraction, rows: float) -> dict[str, float]:
    plan = question.plan(epsilon=epsilon).plan
    return {output.name: expected_error(output, plan, LEVEL, rows=rows) or 0.0 for output in plan.outputs}


@pytest.mark.parametrize(
    ("asked", "goals"),
    [
        ({"n": tacit.count()}, {"n": 20.0}),  # 2 % of the population
        ({"m": tacit.mean("x")}, {"m": 2.0}),  # of the range
        ({"s": tacit.sum("x")}, {"s": 2000.0}),  # of the population at the end of the range
        ({"v": tacit.variance("x")}, {"v": 50.0}),  # of the largest variance, 50²
        ({"q": tacit.median("x")}, {"q": 0.02}),  # of the ranks
        ({"n": tacit.count(), "m": tacit.mean("x"), "q": tacit.median("x")}, {"n": 20.0, "m": 2.0, "q": 0.02}),
    ],
)
def test_the_epsilon_found_is_enough_and_a_smaller_one_is_not(asked: dict[str, Any], goals: dict[str, float]) -> None:
    question = people().agg(**asked)
    report = question.plan(error="2%")
    assert report.solved is not None
    epsilon = report.solved.epsilon
    enough, less = (errors_at(question, tried, 1000) for tried in (epsilon, epsilon * Fraction(99, 100)))
    assert all(enough[name] <= goal for name, goal in goals.items())
    assert any(less[name] > goal for name, goal in goals.items())
    assert len(str(float(epsilon)).replace("0.", "").replace(".", "").strip("0")) <= 3
    assert report.plan.spend.epsilon == epsilon


def test_the_answer_spends_what_the_plan_says_and_keeps_within_it() -> None:
    question = people().count()
    planned = question.plan(error=30)
    answer = question.answer(error=30)
    assert answer.facts.loss["epsilon"] == float(planned.loss.epsilon)  # type: ignore[union-attr]
    (row,) = answer.to_dicts()
    assert row["count_high"] - row["count_low"] <= 60
    assert "the least that is expected to give count ± 30" in answer.details()
    assert "the least that is expected to give count ± 30" in str(planned)


def test_an_error_can_be_a_number_for_each_aggregate() -> None:
    question = people().agg(n=tacit.count(), m=tacit.mean("x"))
    epsilon = question.plan(error={"n": 10}).solved.epsilon  # type: ignore[union-attr]
    both = question.plan(error={"n": 10, "m": "0.1%"}).solved.epsilon  # type: ignore[union-attr]
    assert both > epsilon


def test_groups_share_the_population_unless_their_size_is_said() -> None:
    grouped = people().group_by("g", keys=["a", "b"]).mean("x")
    assert "groups of 500 rows" in str(grouped.plan(error="5%"))
    smaller = grouped.plan(error="5%", for_groups_of=100).solved.epsilon  # type: ignore[union-attr]
    assert smaller > grouped.plan(error="5%").solved.epsilon  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: people(population=None).count().plan(error="2%"), "population=10_000"),
        (lambda: people(population=None).mean("x").plan(error="2%"), "for_groups_of=1000"),
        (lambda: people().where("x > 5").mean("x").plan(error="2%"), "filter"),
        (lambda: people().group_by("g").mean("x").plan(error="2%"), "how many groups"),
        (lambda: people().std("x").plan(error="2%"), "ask for the variance"),
        (lambda: people().median("x").plan(error=2), "give a percent of the ranks"),
        (lambda: people().mean("x").plan(error="0.000001%"), "no epsilon up to 99.9"),
    ],
)
def test_what_public_facts_cannot_settle_is_refused_in_words(ask: Any, words: str) -> None:
    with pytest.raises(tacit.QueryRefused, match=words):
        ask()


@pytest.mark.parametrize("spend", [{}, {"epsilon": 1, "error": "2%"}, {"error": {"nobody": 1}}, {"error": "-1%"}])
def test_epsilon_and_error_exclude_each_other_and_one_is_needed(spend: dict[str, Any]) -> None:
    with pytest.raises(tacit.InvalidParameter):
        people().count().plan(**spend)


def test_the_bar_of_a_sum_beside_a_count_is_no_longer_than_asked_for() -> None:
    """A float's rounding takes a share of the chance to miss and a part of the bar; both are foreseen."""
    rows = pa.table({"id": range(1000), "x": [i / 10 for i in range(1000)]})
    asked = tacit.table(
        rows,
        unit="id",
        budget=tacit.epsilon(50),
        ledger=":memory:",
        name="t",
        population=1000,
        rows_per_unit=1,
        most_rows_per_unit=1,
    ).agg(n=tacit.count(), s=tacit.sum("x", between=(0, 100)))
    for error in (150, 300, 700):
        (row,) = asked.answer(error={"s": error}).to_dicts()
        assert row["s_high"] - row["s_low"] <= 2 * error


def test_learning_by_a_key_is_enough_to_plan_counts_by_it_for_an_error() -> None:
    """Groups that were found are known, and so is about how many rows they have."""
    rows = pa.table({"id": [n // 3 for n in range(9000)], "g": ["abc"[n % 3] for n in range(9000)]})
    given = {"unit": "id", "budget": tacit.epsilon(50, delta=1e-6), "ledger": ":memory:"}
    table = tacit.table(rows, **given)
    table.learn(epsilon=20, by=["g"])
    absolute, relative = (table.group_by("g").count().plan(error=error) for error in (50, "2%"))
    assert absolute.solved is not None
    assert relative.solved is not None
    # 3,000 rows a group, and 2 % of all rows: at epsilon = 20 the noise moves neither by a tenth
    assert 2.5 < absolute.solved.epsilon / relative.solved.epsilon < 4.5


def correlated(count: int, **public: Any) -> Table:
    cells = {"id": range(count), "x": [float(n % 100) for n in range(count)], "y": [float(n) for n in range(count)]}
    ranges = {"x": {"between": (0, 100)}, "y": {"between": (0, 100)}}
    given = {"unit": "id", "rows_per_unit": 1, "groups_per_unit": 1, "budget": tacit.epsilon(50), "ledger": ":memory:"}
    return tacit.table(pa.table(cells), columns=ranges, **given, **public)


def test_a_correlation_that_public_facts_foresee_to_be_anything_is_refused_before_the_charge() -> None:
    for public in ({"rows": 20}, {"population": 20}):
        table = correlated(20, **public)
        with pytest.raises(tacit.QueryRefused, match=r"is foreseen to be from -1 to 1.*\n?.*hint: give an epsilon of"):
            table.correlation("x", "y").answer(epsilon=1)
        assert not [entry for entry in table.session.ledger.entries() if entry.kind == "charge"]
        assert table.correlation("x", "y").answer(epsilon=10).facts.receipt
    # how many rows there are is not public, or there are enough if values lie at both ends
    assert correlated(20).correlation("x", "y").answer(epsilon=1).facts.receipt
    assert correlated(60, rows=60).correlation("x", "y").answer(epsilon=1).facts.receipt


def test_the_plan_of_a_correlation_says_how_many_rows_it_takes() -> None:
    text = str(correlated(20).correlation("x", "y").plan(epsilon=1))
    found = re.search(r"about ± 0.1 takes ([0-9,]+) rows in a group, and ([0-9,]+) or fewer give -1 to 1", text)
    assert found is not None
    close, vague = (int(each.replace(",", "")) for each in found.groups())
    assert 9 * vague < close < 11 * vague
    more = str(correlated(20).correlation("x", "y").plan(epsilon=2))
    assert int(re.search(r"takes ([0-9,]+) rows", more)[1].replace(",", "")) < 0.6 * close  # type: ignore[index]
