"""`tacit learn` and `tacit facts`: what is learned is charged once, shown, and free for questions."""

import pytest

from tacit.ledger.home import default_ledger

CATALOG = """\
[tables.visits]
source = "visits.parquet"
unit = "patient"
budget = { epsilon = 3, delta = 1e-6 }

[tables.visits.columns.ward]
keys = ["A", "B, west"]
"""
BY_WARD = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


@pytest.fixture(autouse=True)
def folder(visits, monkeypatch):
    (visits.parent / "tacit.toml").write_text(CATALOG)
    monkeypatch.chdir(visits.parent)


def test_a_table_needs_a_unit_and_a_budget_alone(tacit_command):
    ran = tacit_command("ask", "visits", BY_WARD, "--epsilon", 1)
    assert ran.code == 0
    assert "Spent ε 1" in ran.out
    shown = tacit_command("facts", "visits")
    assert "how many rows a patient has, in all and by ward" in shown.out
    assert " 0.2 " in shown.out


def test_what_is_learned_ahead_is_printed_kept_and_free(tacit_command):
    learned = tacit_command("learn", "visits", "--epsilon", "0.2", "--by", "ward")
    assert learned.code == 0
    assert "how many rows a patient has, in all and by ward" in learned.out
    assert tacit_command("facts", "visits").out == learned.out
    again = tacit_command("learn", "visits", "--epsilon", "0.2", "--by", "ward")
    assert "No charge was made" in again.out
    assert tacit_command("ask", "visits", BY_WARD, "--epsilon", 1, "--learn", "no").code == 0
    assert "ε = 1.2" in tacit_command("budget").out


def test_a_file_can_be_learned_of_too(tacit_command, visits):
    words = ("learn", visits, "--unit", "patient", "--budget", 3, "--epsilon", "0.2", "--column", "days")
    assert "how large days is" in tacit_command(*words).out


def test_the_ledger_shows_what_was_learned(tacit_command):
    tacit_command("ask", "visits", BY_WARD, "--epsilon", 1)
    shown = tacit_command("ledger", "show").out.splitlines()
    (learned,) = [line for line in shown if " learned " in line]
    assert learned.endswith("visits in answer 5: how many rows a patient has, in all and by ward")
    (charge,) = [line for line in shown if " to learn " in line]
    assert "visits ε = 0.2 to learn how many rows" in charge
    assert tacit_command("ledger", "verify").code == 0


def test_facts_of_no_table_are_refused(tacit_command):
    tacit_command("ask", "visits", BY_WARD, "--epsilon", 1)
    ran = tacit_command("facts", "visit", "--ledger", default_ledger())
    assert ran.code == 2
    assert "did you mean 'visits'" in ran.err


def test_a_catalog_without_bounds_is_listed_as_learning_them(tacit_command):
    assert "bounds:    learned" in tacit_command("tables").out


@pytest.mark.parametrize("bad", ["nope", "0", "1.5"])
def test_a_wrong_share_is_refused_before_the_charge(tacit_command, bad):
    ran = tacit_command("ask", "visits", BY_WARD, "--epsilon", 1, "--learn", bad)
    assert ran.code == 2
    assert "learn must be a share of epsilon" in ran.err
