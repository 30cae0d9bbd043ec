"""What the budget leaves, in words and numbers: an answer's last line, `left`, `plan` and the refusal agree."""

import json
import warnings
from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.engine.engine import EmbeddedEngine
from tacit.errors import BudgetExceeded, DeadRequest
from tacit.ledger.home import open_ledger
from tacit.privacy.loss import epsilon

DELTA = "1e-6"


def protected(budget, ledger=":memory:", name="t"):
    rows = pa.table({"id": list(range(60)), "g": [n % 4 for n in range(60)], "x": [n % 10 for n in range(60)]})
    return tacit.table(
        rows,
        name=name,
        unit="id",
        rows_per_unit=1,
        groups_per_unit=1,
        most_rows_per_unit=1,
        columns={"g": {"keys": [0, 1, 2, 3]}, "x": {"between": (0, 9)}},
        budget=budget,
        ledger=ledger,
    )


@pytest.fixture
def spent_by_addition():
    """A table whose epsilon is used up by Gaussian answers, which leave room in rho."""
    table = protected(epsilon(1, delta=DELTA))
    for turn in range(5):
        table.where(f"x <> {turn}").group_by("g").count().answer(epsilon="0.2", noise="gaussian")
    return table


def test_spent_and_left_are_said_as_they_were_asked():
    table = protected(epsilon(3, delta=DELTA))
    table.count().answer(epsilon=0.5)
    answer = table.group_by("g").count().answer(epsilon=0.6, noise="gaussian")
    assert "Spent ε 0.6, δ 2e-7; ε 1.9 is left, about" in str(answer)
    assert "Spent: ε = 0.6, δ = 2e-7." in answer.details()
    assert "Left: ε = 1.9, δ = 8e-7; or about" in answer.details()
    assert str(table.left).startswith("ε = 1.9, δ = 8e-7")
    assert (table.left.epsilon, table.left.delta_gaussian) == (Fraction(19, 10), Fraction(8, 10**7))


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("before", [[], ["laplace"], ["gaussian"], ["gaussian", "laplace"]])
def test_the_numbers_of_what_is_left_may_be_asked_for_as_they_are(noise, before):
    table = protected(epsilon(3, delta=DELTA))
    for turn, each in enumerate(before):
        table.where(f"x <> {turn}").count().answer(epsilon="0.7", noise=each)
    left = json.loads(table.count_units().answer(epsilon="0.1").to_json())["left"][noise]
    found = table.group_by("x").count()  # keys that are found need a delta of their own
    if noise == "laplace" or "laplace" in before:  # rho is used up: addition alone decides, to the last digit
        with pytest.raises(BudgetExceeded):
            found.answer(epsilon=left["epsilon"] * 1.0001, delta=left["delta"], noise=noise)
    assert found.answer(epsilon=left["epsilon"], delta=left["delta"], noise=noise).facts.free is False


def test_a_plan_says_whether_it_fits_and_the_answer_does_what_it_says():
    table = protected(epsilon(1, delta=DELTA))
    assert "Budget: fits, and leaves ε = 0.4, δ = " in str(table.count().plan(epsilon="0.6"))
    table.count().answer(epsilon="0.6")
    report = table.where("x > 1").count().plan(epsilon="0.5", noise="laplace")
    assert not report.fit
    assert "Budget: does not fit: the budget, ε = 1, δ = 1e-6, has no room for ε = 0.5; left: ε = 0.4" in str(report)
    with pytest.raises(BudgetExceeded, match=r"no room for ε = 0.5; left: ε = 0.4, δ = 1e-6"):
        table.where("x > 1").count().answer(epsilon="0.5", noise="laplace")
    assert "in full up to 1 rows;" in str(report)
    assert "Budget: does not fit" in str(table.count().plan(epsilon="0.6"))  # it does not tell that it was asked
    assert table.count().answer(epsilon="0.6").facts.free


def test_where_nothing_is_left_no_one_is_told_to_ask_for_less():
    table = protected(epsilon(1))
    table.count().answer(epsilon="0.6")
    with pytest.raises(BudgetExceeded, match="hint: ask for at most what is left"):
        table.sum("x").answer(epsilon="0.5")
    table.sum("x").answer(epsilon="0.4")
    with pytest.raises(BudgetExceeded, match="hint: have the curator grant more: tacit budget grant t "):
        table.mean("x").answer(epsilon="0.1")


def test_a_plan_counts_an_analysts_own_budget():
    table = protected(epsilon(1, delta=DELTA))
    table.session.ledger.grant("t", epsilon("0.1", delta="1e-7"), analyst="ann")
    assert not table.count().plan(epsilon="0.2", analyst="ann").fit
    assert table.count().plan(epsilon="0.2").fit


def test_the_noise_that_the_budget_has_room_for_is_taken_and_said(spent_by_addition):
    table = spent_by_addition
    assert table.left.laplace < Fraction(3, 10) <= table.left.gaussian
    question = table.count()
    report = question.plan(epsilon="0.3")
    assert report.plan.noise == "gaussian"
    assert "Gaussian noise: Laplace noise would err less, but the budget has no room for it" in str(report)
    assert "Laplace noise would err less" in question.answer(epsilon="0.3").details()
    assert question.answer(epsilon="0.3").facts.free
    with pytest.raises(BudgetExceeded, match="with Gaussian noise"):
        question.answer(epsilon="0.3", noise="laplace")


def test_without_a_shortage_the_noise_that_errs_less_is_taken():
    table = protected(epsilon(1, delta=DELTA))
    report = table.count().plan(epsilon="0.3")
    assert (report.plan.noise, report.plan.instead_of) == ("laplace", None)


def test_a_request_sent_again_after_a_grant_keeps_the_noise_it_was_answered_with(spent_by_addition):
    table = spent_by_addition
    first = table.count().answer(epsilon="0.3", request_id="r")
    table.session.ledger.grant("t", epsilon(5, delta=DELTA))
    again = table.count().answer(epsilon="0.3", request_id="r")
    assert again.facts.free
    assert again.to_dicts() == first.to_dicts()


def test_a_dead_request_stays_dead_whichever_noise_has_room(spent_by_addition, monkeypatch):
    table = spent_by_addition

    def stopped(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(EmbeddedEngine, "parts", stopped)
        with pytest.raises(KeyboardInterrupt):
            table.count().answer(epsilon="0.3", request_id="r")
    with pytest.raises(DeadRequest):
        table.count().answer(epsilon="0.3", request_id="r")


def test_a_delta_of_ones_own_is_counted_as_asked():
    table = protected(epsilon(1, delta=DELTA))
    table.count().answer(epsilon="0.5", noise="laplace")
    table.count().answer(epsilon="0.1", delta="6e-7", noise="gaussian")
    assert (table.left.laplace, table.left.delta_gaussian) == (Fraction(4, 10), Fraction(4, 10**7))
    question = table.where("x > 1").count()
    assert "no room for ε = 0.3, δ = 5e-7" in str(question.plan(epsilon="0.3", delta="5e-7", noise="gaussian").fit)
    assert question.plan(epsilon="0.4", delta="4e-7", noise="gaussian").fit
    assert question.plan(epsilon="0.4", delta="4e-7", noise="laplace").fit


def test_a_grant_leaves_more_of_what_was_granted():
    with open_ledger(":memory:") as ledger:
        table = protected(epsilon(1, delta=DELTA), ledger)
        table.group_by("g").count().answer(epsilon=1, noise="gaussian")
        ledger.grant("t", epsilon(2, delta="1e-6"))
        left = table.left
        assert left.laplace == 1
        assert table.where("x > 2").count().answer(epsilon=1, noise="laplace")
        ledger.verify()


@pytest.mark.parametrize("budget", [epsilon(1), tacit.rho("0.05")])
def test_pure_and_rho_budgets_say_what_is_left_too(budget):
    table = protected(budget)
    table.count().answer(epsilon="0.1")
    left = table.left
    assert left.epsilon > 0
    noise = "gaussian" if left.gaussian > left.laplace else "laplace"
    assert table.count_units().answer(epsilon=left.epsilon, noise=noise)
    assert table.left.epsilon < left.epsilon


def test_an_epsilon_above_10_warns_whoever_asks_for_it_or_declares_it():
    with pytest.warns(tacit.LargeEpsilonWarning, match="ε = 50 is above 10: the promise to one person is close to"):
        table = protected(epsilon(50))
    with pytest.warns(tacit.LargeEpsilonWarning, match=r"ε = 10\.5 is above 10"):
        table.count().answer(epsilon="10.5")
    assert "Warning: ε = 11 is above 10" in str(table.count().plan(epsilon=11))


def test_the_warning_names_the_askers_own_line_from_every_door(tmp_path):
    source = tmp_path / "people.parquet"
    pq.write_table(pa.table({"who": [1, 2, 3]}), source)
    (tmp_path / "tacit.toml").write_text(
        f'ledger = "own.db"\n[tables.people]\nsource = "{source}"\nunit = "who"\nbudget = {{ epsilon = 90 }}\n'
    )
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        table = tacit.table(source, unit="who", budget=epsilon(90), name="p", ledger=":memory:")
        table.count().answer(epsilon=11)
        table.sql("SELECT COUNT(*) FROM p").answer(epsilon=12)
        catalog = tacit.catalog(tmp_path / "tacit.toml")
        catalog.get("people")
        catalog.sql("SELECT COUNT(*) FROM people").answer(epsilon=13)
        table.sql("SELECT COUNT(*) FROM p UNION ALL SELECT COUNT(*) + 1 FROM p").answer(epsilon=14)
    assert len(warned) >= 6
    assert {each.filename for each in warned} == {__file__}


def test_an_epsilon_of_10_does_not_warn(recwarn):
    protected(epsilon(10)).count().answer(epsilon=10)
    assert not [warned for warned in recwarn if issubclass(warned.category, tacit.LargeEpsilonWarning)]
