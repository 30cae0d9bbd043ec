"""`tacit attack`: each attack runs, ends in its sentence, and touches no ledger; one's own table is for curators."""

import json
import sqlite3
from contextlib import closing
from importlib import import_module

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

SMALL = ["--rows", "100", "--questions", "4", "--solver", "squares"]
COMMANDS = {
    "reconstruct": SMALL,
    "average": ["--repeats", "10"],
    "difference": ["--streets", "20"],
    "membership": ["--members", "10", "--facts", "10", "--trials", "20"],
    "name-and-shame": ["--rows", "100"],
}


@pytest.fixture(autouse=True)
def one_release(monkeypatch):
    """Ask for the averages of many facts once at each epsilon: what is measured is not at stake here."""
    monkeypatch.setattr(import_module("tacit_classroom.attacks.members"), "RELEASES", 1)


@pytest.fixture
def own(tmp_path):
    """A small table of the curator's, with a secret column."""
    number = list(range(60))
    path = tmp_path / "people.parquet"
    pq.write_table(
        pa.table({"street": [n // 6 for n in number], "house": number, "ill": [n % 2 for n in number]}), path
    )
    return path


def entries(ledger):
    """Everything a ledger holds."""
    with closing(sqlite3.connect(ledger)) as connection:
        return list(connection.iterdump())


@pytest.mark.parametrize(("name", "words"), COMMANDS.items(), ids=COMMANDS)
def test_an_attack_ends_in_one_sentence_and_its_data_say_the_same(tacit_command, tacit_home, name, words):
    ran = tacit_command("attack", name, *words, "--json")
    assert (ran.code, ran.err) == (0, "")  # and no warning of an epsilon that the attack chose
    record = json.loads(ran.out)
    assert record["attack"] == name
    assert record["sentence"].endswith(".")
    assert not tacit_home.exists()  # no ledger and no key was made


@pytest.mark.parametrize("name", COMMANDS)
def test_help_teaches_by_an_example(tacit_command, name):
    ran = tacit_command("attack", name, "--help")
    assert ran.code == 0
    assert f"tacit attack {name}" in " ".join(ran.out.split()).replace("│ ", "")


def test_a_picture_is_drawn_and_the_sentence_stays_last(tacit_command, tmp_path):
    picture = tmp_path / "difference.svg"
    ran = tacit_command("attack", "difference", "--streets", "20", "--plot", picture)
    assert picture.read_text().startswith("<svg")
    assert ran.out.rstrip().splitlines()[-1].startswith("Two exact counts reveal")


def test_a_picture_that_cannot_be_written_is_refused_before_the_work(tacit_command, tmp_path):
    ran = tacit_command("attack", "average", "--plot", tmp_path / "no" / "folder.png")
    assert ran.code == 2
    assert ran.out == ""


def test_ones_own_table_is_refused_without_saying_that_one_is_its_curator(tacit_command, own):
    ran = tacit_command("attack", "reconstruct", own, "--secret", "ill", "--by", "street,house", *SMALL)
    assert ran.code == 2
    assert ran.out == ""
    assert "--i-am-the-curator" in ran.err
    assert "not a private answer" in ran.err


def test_a_curators_own_table_is_attacked_without_a_charge(tacit_command, tacit_home, own):
    """A ledger that has this table's budget stays as it is, row for row."""
    asked = tacit_command(
        *("ask", own, "SELECT COUNT(*) FROM people", "--unit", "house", "--rows-per-unit", 1, "--budget", 2),
        *("--epsilon", 1),
    )
    assert asked.code == 0, asked.err
    before = entries(tacit_home / "ledger.db")
    words = ("--secret", "ill", "--by", "street, house", "--i-am-the-curator", *SMALL)
    ran = tacit_command("attack", "reconstruct", own, *words, "--questions", "24")
    assert ran.code == 0, ran.err
    assert "60 people (people.parquet)" in ran.out
    assert "Exact counts gave away the secrets of 100 % of the people" in ran.out
    assert entries(tacit_home / "ledger.db") == before
    assert len(before) > 10


@pytest.mark.parametrize(
    "words", [["--secret", "ill"], ["people.parquet", "--i-am-the-curator"], ["people.parquet", "--by", "house"]]
)
def test_half_of_what_a_table_needs_is_refused_with_the_rest(tacit_command, words):
    ran = tacit_command("attack", "reconstruct", *words)
    assert ran.code == 2
    assert "hint: tacit attack reconstruct" in ran.err


def test_the_seed_is_printed(tacit_command):
    assert "(seed 12)" in tacit_command("attack", "difference", "--streets", "20", "--seed", "12").out
