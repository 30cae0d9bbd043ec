"""`tacit plan`: the same words as `tacit ask`, for nothing."""

import inspect
import json

from tacit.cli.ask import ask, plan
from tacit.ledger.home import default_ledger

WORDS = (
    "--unit",
    "patient",
    "--rows-per-unit",
    1,
    "--groups-per-unit",
    1,
    "--most-rows-per-unit",
    1,
    "--between",
    "days=0:10",
)
BUDGET = ("--budget", 3, "--delta", "1e-6")
BY_WARD = "SELECT ward, AVG(days) AS stay FROM visits GROUP BY ward"


def test_plan_and_ask_take_the_same_words():
    assert inspect.signature(plan) == inspect.signature(ask)


def test_a_plan_says_what_it_costs_and_how_far_off_it_may_be(tacit_command, visits):
    ran = tacit_command("plan", visits, BY_WARD, *WORDS, *BUDGET, "--epsilon", 1)
    assert (ran.code, ran.err) == (0, "")
    assert "stay:" in ran.out
    assert "Loss: ε = 1" in ran.out


def test_trying_a_budget_writes_no_ledger(tacit_command, visits):
    assert tacit_command("plan", visits, BY_WARD, *WORDS, *BUDGET, "--epsilon", 1).code == 0
    assert not default_ledger().exists()


def test_a_plan_reads_no_row(tacit_command, visits, monkeypatch):
    from tacit.engine.engine import EmbeddedEngine

    def fail(*_):
        raise AssertionError("a row was read")

    monkeypatch.setattr(EmbeddedEngine, "aggregate", fail)
    assert tacit_command("plan", visits, BY_WARD, *WORDS, *BUDGET, "--epsilon", 1).code == 0


def test_a_known_table_is_planned_under_its_own_budget(tacit_command, visits):
    assert tacit_command("ask", visits, BY_WARD, *WORDS, *BUDGET, "--epsilon", 1).code == 0
    ran = tacit_command("plan", visits, BY_WARD, *WORDS, "--epsilon", 1, "--format", "json")
    assert json.loads(ran.out)["loss"].startswith("ε = 1, δ = ")


def test_a_plan_is_not_rows(tacit_command, visits):
    ran = tacit_command("plan", visits, BY_WARD, *WORDS, *BUDGET, "--epsilon", 1, "--format", "csv")
    assert ran.code == 2
    assert "--format json" in ran.err


def test_a_large_epsilon_is_warned_about(tacit_command, visits):
    ran = tacit_command("plan", visits, BY_WARD, *WORDS, "--budget", 30, "--delta", "1e-6", "--epsilon", 20)
    assert "Warning: ε = 20" in ran.out


def test_an_error_can_be_asked_for_instead_of_an_epsilon(tacit_command, visits):
    words = ("plan", visits, "SELECT AVG(days) AS stay, COUNT(*) AS n FROM visits", *WORDS, "--budget", 3)
    one = tacit_command(*words, "--error", "n=40")
    assert (one.code, one.err) == (0, "")
    assert "Loss: ε = " in one.out
    both = tacit_command(*words, "--error", "n=40", "--error", "stay=2%", "--for-groups-of", 1000)
    assert both.code == 0


def test_an_epsilon_and_an_error_are_one_too_many(tacit_command, visits):
    words = ("plan", visits, BY_WARD, *WORDS, *BUDGET)
    for spent in ((), ("--epsilon", 1, "--error", "2%")):
        ran = tacit_command(*words, *spent)
        assert ran.code == 2
        assert "--epsilon 1, or --error 2%" in ran.err
