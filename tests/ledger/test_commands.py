"""The commands show budgets, verify and export the ledger, and write certificates; each takes --ledger."""

import json
import re
import shutil
from contextlib import closing
from fractions import Fraction

import pyarrow as pa
import pytest

from tacit import table as door_table
from tacit.cli import app as door
from tacit.ledger import open_ledger
from tacit.ledger.chain import BEGINNING, link
from tacit.privacy.loss import GaussianNoise, epsilon, rho
from tacit_gauntlet.stage.ledger import again, ask, charge, register


@pytest.fixture
def place(where):
    with open_ledger(where) as ledger:
        table = register(ledger, epsilon(3))
        ask(ledger, table, "one", epsilon=Fraction(1), analyst="ann")
        ask(ledger, table, "two", epsilon=Fraction(1, 2), analyst="bob")
        ask(ledger, table, "three", epsilon=Fraction(9))
        ledger.grant("pay", epsilon(2), analyst="ann", reason="a trial")
        other = register(ledger, rho(0.1), name="school")
        ledger.reserve(other, [GaussianNoise(Fraction(10), Fraction(1))], question_key="g")
        register(ledger, epsilon(1, delta=1e-6), name="unasked")
    return where


@pytest.fixture
def tacit(capsys):
    def run(*words, code=0):
        with pytest.raises(SystemExit) as stopped:
            door.main(words)
        written = capsys.readouterr()
        assert (stopped.value.code or 0) == code, written.err
        return written.err if code else written.out

    return run


def test_budget_shows_spent_left_and_how_many_more_for_each_table_and_analyst(tacit, place):
    shown = tacit("budget", "--ledger", place)
    lines = [" ".join(line.replace("█", "").replace("░", "").split()) for line in shown.splitlines() if line]
    assert lines == [
        "pay (version 1)",
        "everyone of ε = 3: spent ε = 1.5, left ε = 1.5, about 3 more like the last",
        "ann of ε = 2: spent ε = 1, left ε = 1, about 1 more like the last",
        "bob of everyone's: spent ε = 0.5",
        "school (version 1)",
        "everyone of ρ = 0.1: spent ρ = 0.005, left ρ = 0.095, about 19 more like the last",
        "unasked (version 1)",
        "everyone of ε = 1, δ = 1e-6: spent nothing, left ε = 1, δ = 1e-6, not asked yet",
    ]
    assert "██████████░░░░░░░░░░  of ε = 3" in shown


def test_grant_changes_a_budget_and_leaves_an_entry(tacit, place):
    said = tacit("budget", "grant", "pay", "--epsilon", "5", "--reason", "the board agreed", "--ledger", place)
    assert said == "pay: ε = 5 from now on; left: ε = 3.5\n"
    assert "left ε = 3.5" in tacit("budget", "--ledger", place)
    assert "budget    pay ε = 5 the board agreed" in tacit("ledger", "show", "--last", "1", "--ledger", place)


def test_a_budget_that_is_spent_admits_no_more(tacit, where):
    with open_ledger(where) as ledger:
        ask(ledger, register(ledger, epsilon(1)), "one", epsilon=Fraction(1))
    assert tacit("budget", "--ledger", where).endswith("spent ε = 1, left nothing\n")
    said = tacit("budget", "grant", "pay", "--epsilon", "0.5", "--ledger", where)
    assert said == "pay: ε = 0.5 from now on; left: nothing\n"


def test_a_charge_is_shown_with_the_exact_amounts_of_its_answer(tacit, where):
    rows = pa.table({"id": list(range(600)), "g": [n % 2 for n in range(600)]})
    table = door_table(
        rows,
        name="pay",
        unit="id",
        rows_per_unit=1,
        groups_per_unit=1,
        most_rows_per_unit=1,
        budget=epsilon(1, delta=1e-6),
        ledger=where,
    )
    with closing(table.session.ledger):
        spent = table.group_by("g").count().answer(epsilon=1).facts.loss
    shown = re.search(r"pay ε = 1, δ = (\S+): SELECT g", tacit("ledger", "show", "--ledger", where))
    assert 0 < spent["delta"] <= float(shown[1]) < 1.00001 * spent["delta"]


def test_grant_by_period_and_in_rho(tacit, place):
    words = ("--rho", "0.01", "--period", "day", "--analyst", "*")
    assert tacit("budget", "grant", "school", *words, "--ledger", place) == (
        "school: ρ = 0.01 for each analyst per day from now on\n"
    )


@pytest.mark.parametrize("words", [(), ("--epsilon", "1", "--rho", "1"), ("--epsilon", "-1"), ("--epsilon", "nan")])
def test_grant_needs_one_budget_that_is_one(tacit, place, words):
    before = tacit("budget", "--ledger", place)
    assert "tacit: " in tacit("budget", "grant", "pay", *words, "--ledger", place, code=2)
    assert tacit("budget", "--ledger", place) == before


def test_grant_needs_a_table_that_is_known(tacit, place):
    assert "its tables are: pay, school, unasked" in tacit(
        "budget", "grant", "wages", "--epsilon", "1", "--ledger", place, code=2
    )


def test_show_lists_the_last_entries(tacit, place):
    shown = tacit("ledger", "show", "--ledger", place).splitlines()
    kinds = "ledger budget table charge answer charge answer refusal budget budget table charge budget table"
    assert [line.split()[2] for line in shown] == kinds.split()
    assert shown[3].endswith("pay by ann ε = 1")
    assert tacit("ledger", "show", "--last", "2", "--ledger", place).splitlines() == shown[-2:]


def test_verify_says_that_it_is_whole_and_by_whom_it_is_signed(tacit, place):
    assert tacit("ledger", "verify", "--ledger", place).startswith("whole: 14 entries (2 answer, 4 budget, 3 charge")


def test_verify_of_a_damaged_ledger_exits_with_two_and_names_the_fault(tacit, tmp_path):
    path = tmp_path / "ledger.db"
    with open_ledger(path) as ledger:
        ask(ledger, register(ledger), "q")
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"epsilon":"1/10"', b'"epsilon":"1/99"'))
    assert "the chain is broken at entry 4" in tacit("ledger", "verify", "--ledger", str(path), code=2)


def test_export_is_a_chain_that_anyone_can_check(tacit, place, tmp_path):
    tacit("ledger", "export", "--output", str(tmp_path / "out.jsonl"), "--ledger", place)
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert tacit("ledger", "export", "--ledger", place) == (tmp_path / "out.jsonl").read_text()
    previous = BEGINNING
    for number, row in enumerate(rows, start=1):
        assert (row["number"], row["previous"], row["hash"]) == (number, previous, link(previous, row["body"]))
        previous = row["hash"]
    assert len(rows) == 14


def test_a_certificate_is_written_and_verified_without_the_ledger(tacit, place, tmp_path, monkeypatch):
    file = tmp_path / "answer.json"
    tacit("certificate", "5", "--output", str(file), "--ledger", place)
    monkeypatch.setenv("TACIT_HOME", str(tmp_path / "elsewhere"))
    said = tacit("certificate", "verify", str(file))
    assert "unit person_id, neighbours add or remove" in said
    assert "loss ε = 1;" in said
    file.write_text(file.read_text().replace("answer to one", "answer to two"))
    assert "does not verify" in tacit("certificate", "verify", str(file), code=2)


def test_a_certificate_goes_to_the_screen_and_to_the_registry(tacit, place):
    assert json.loads(tacit("certificate", "7", "--ledger", place))["loss"]["epsilon"] == "1/2"
    assert "      epsilon: 0.5\n" in tacit("certificate", "7", "--registry", "--ledger", place)


@pytest.mark.parametrize(
    "words", [("x",), ("verify",), ("5", "file"), ("-1",), ("1",), ("verify", "/nonexistent.json")]
)
def test_what_names_no_certificate_is_refused(tacit, place, words):
    tacit("certificate", *words, "--ledger", place, code=2)


def test_no_command_makes_a_ledger_that_is_not_there(tacit, tmp_path):
    path = tmp_path / "none.db"
    for words in (("budget",), ("ledger", "show"), ("ledger", "verify"), ("ledger", "export"), ("certificate", "1")):
        assert "no ledger exists at" in tacit(*words, "--ledger", str(path), code=2)
    assert not path.exists()


def test_an_old_copy_is_accepted_by_command(tacit, tmp_path):
    path = tmp_path / "ledger.db"
    with open_ledger(path) as ledger:
        register(ledger)
    shutil.copy(path, tmp_path / "old.db")
    with open_ledger(path) as ledger:
        charge(ledger, again(ledger), "q").commit("1")
    shutil.copy(tmp_path / "old.db", path)
    assert "tacit ledger accept" in tacit("ledger", "verify", "--ledger", str(path), code=2)
    assert "accepted at entry" in tacit("ledger", "accept", "--reason", "disk lost", "--ledger", str(path))
    assert tacit("ledger", "verify", "--ledger", str(path)).startswith("whole")


def test_an_empty_ledger_says_so(tacit, tmp_path):
    open_ledger(tmp_path / "ledger.db").close()
    assert tacit("budget", "--ledger", str(tmp_path / "ledger.db")) == "no table is registered in this ledger yet\n"
