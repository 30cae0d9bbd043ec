"""With a tacit.toml a question needs the table's name alone; what contradicts the file is refused before a charge."""

import json
import os
from pathlib import Path

import pytest

from tacit.ledger.home import default_ledger

CATALOG = """\
[tables.visits]
source = "visits.parquet"
unit = "patient"
rows_per_unit = 1
groups_per_unit = 1
most_rows_per_unit = 1
budget = { epsilon = 3, delta = 1e-6 }

[tables.visits.columns.days]
between = [0, 10]

[tables.visits.columns.ward]
keys = ["A", "B, west"]
"""
BY_WARD = "SELECT ward, COUNT(*) AS n, AVG(days) AS stay FROM visits GROUP BY ward"


@pytest.fixture(autouse=True)
def folder(visits: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the table and its catalog, to stand in."""
    (visits.parent / "tacit.toml").write_text(CATALOG)
    monkeypatch.chdir(visits.parent)
    return visits.parent


def test_a_question_needs_only_the_tables_name(tacit_command):
    ran = tacit_command("ask", "visits", BY_WARD, "--epsilon", 1, "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    assert [row["ward"] for row in json.loads(ran.out)["rows"]] == ["A", "B, west"]


def test_a_catalog_elsewhere_is_named(tacit_command, folder, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    words = ("ask", "visits", BY_WARD, "--epsilon", 1)
    assert tacit_command(*words).code == 2
    assert tacit_command(*words, "--catalog", folder / "tacit.toml").code == 0


def test_a_file_is_still_a_file(tacit_command):
    ran = tacit_command("plan", "visits.parquet", "SELECT COUNT(*) FROM visits", "--epsilon", 1)
    assert ran.code == 2
    assert "--unit is missing" in ran.err
    assert "tacit init" in ran.err


def test_a_table_with_its_unit_in_another_is_listed_and_asked(tacit_command, folder):
    (folder / "beds.csv").write_text("ward,beds\nA,5\n")
    beds = '[tables.beds]\nsource = "beds.csv"\nunit = "visits.patient"\nvia = "ward"\n'
    (folder / "tacit.toml").write_text(CATALOG + beds)
    ran = tacit_command("tables")
    assert "belongs:   to the patient of visits with its ward" in ran.out
    assert "budget:    that of visits, with the same people: not asked yet" in ran.out
    assert tacit_command("plan", "beds", "SELECT COUNT(*) FROM beds", "--epsilon", 1).code == 0


@pytest.mark.parametrize("command", ["ask", "plan"])
def test_a_missing_file_is_reported_before_a_missing_option(tacit_command, command):
    ran = tacit_command(command, "gone.parquet", "SELECT COUNT(*) FROM gone", "--epsilon", 1)
    assert (ran.code, "no file exists" in ran.err, "--unit" in ran.err) == (2, True, False)


@pytest.mark.parametrize("is_declared", [True, False])
def test_every_command_uses_the_ledger_that_the_catalog_names(tacit_command, folder, is_declared):
    (folder / "tacit.toml").write_text('ledger = "own.db"\n' + CATALOG)
    assert tacit_command("ask", "visits", BY_WARD, "--epsilon", 1).code == 0
    if not is_declared:  # a table that `tacit init` has left to fill in
        (folder / "tacit.toml").write_text('ledger = "own.db"\n[tables.visits]\nsource = "visits.parquet"\n')
    for words in (
        "budget",
        "budget list",
        "budget grant visits --epsilon 4 --delta 1e-6 --reason more",
        "budget revoke visits --reason over",
        "people add ben --reason study",
        "people list",
        "people token ben",
        "people end ben --reason over",
        "facts visits",
        "ledger show",
        "ledger show 3",
        "ledger verify",
        "ledger export",
        "ledger backup copy.db",
        "certificate 5",
    ):
        ran = tacit_command(*words.split())
        assert ran.code == 0, (words, ran.err)
    words = ("SELECT COUNT(*) FROM visits", "--unit", "patient", "--budget", 3, "--delta", "1e-6", "--epsilon", 1)
    assert tacit_command("ask", "visits.parquet", *words, "--name", "other").code == 2  # ben is the only person
    assert not default_ledger().exists()


def test_a_ledger_on_the_command_line_is_the_one_that_is_used(tacit_command, folder):
    (folder / "tacit.toml").write_text('ledger = "own.db"\n' + CATALOG)
    assert tacit_command("ask", "visits", BY_WARD, "--epsilon", 1).code == 0
    ran = tacit_command("ledger", "verify", "--ledger", "other.db")
    assert (ran.code, "other.db" in ran.err) == (2, True)


def test_a_tables_name_may_have_a_point(tacit_command, folder):
    (folder / "tacit.toml").write_text(CATALOG.replace("tables.visits", 'tables."visits.2026"'))
    ran = tacit_command("ask", "visits.2026", BY_WARD.replace("visits", '"visits.2026"'), "--epsilon", 1)
    assert (ran.code, ran.err) == (0, "")


def test_a_plan_writes_no_ledger(tacit_command):
    assert tacit_command("plan", "visits", BY_WARD, "--epsilon", 1).code == 0
    assert not default_ledger().exists()


def test_a_refused_question_declares_no_budget(tacit_command):
    assert tacit_command("ask", "visits", "SELECT AVG(floor) FROM visits", "--epsilon", 1, "--learn", "no").code == 2
    assert not default_ledger().exists()


@pytest.mark.parametrize(
    "same",
    [
        ("--unit", "patient"),
        ("--rows-per-unit", 1),
        ("--budget", 3, "--delta", "1e-6"),
        ("--between", "days=0:10"),
        ("--keys", 'ward=A,"B, west"'),
        ("--type", "days=float"),
        ("--neighbours", "add-remove"),
    ],
)
def test_what_the_catalog_says_too_is_accepted(tacit_command, same):
    assert tacit_command("ask", "visits", BY_WARD, "--epsilon", 1, *same).code == 0


@pytest.mark.parametrize(
    ("other", "option"),
    [
        (("--unit", "floor"), "--unit"),
        (("--unit", "ROW"), "--unit"),
        (("--rows-per-unit", 2), "--rows-per-unit"),
        (("--groups-per-unit", 2), "--groups-per-unit"),
        (("--budget", 4), "--budget"),
        (("--budget", 3), "--budget"),
        (("--between", "days=0:20"), "--between days"),
        (("--keys", "ward=A"), "--keys ward"),
        (("--keys", "floor=1,2"), "--keys floor"),
        (("--type", "days=int"), "--type days"),
        (("--neighbours", "replace"), "--neighbours"),
        (("--name", "stays"), "--name"),
        (("--ledger", "other.db"), "--ledger"),
    ],
)
def test_what_contradicts_the_catalog_is_refused_before_anything_is_charged(tacit_command, folder, other, option):
    ran = tacit_command("ask", "visits", BY_WARD, "--epsilon", 1, *other)
    assert (ran.code, ran.out) == (2, "")
    assert f"{option} contradicts" in ran.err
    assert not default_ledger().exists()
    assert not (folder / "other.db").exists()


def test_what_a_select_adds_up_can_still_be_given_a_range(tacit_command):
    words = ("ask", "visits", "SELECT SUM(days * floor) AS total FROM visits", "--epsilon", 1)
    assert tacit_command(*words, "--learn", "no").code == 2
    assert tacit_command(*words, "--between", "total=0:30").code == 0


def test_a_mistyped_table_gets_its_name(tacit_command):
    ran = tacit_command("ask", "visit", BY_WARD, "--epsilon", 1)
    assert ran.code == 2
    assert "did you mean 'visits'" in ran.err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('unit = "patient"', 'unit = "patent"'), "did you mean 'patient'"),
        (("rows_per_unit", "rows_per_person"), "tacit.toml, line 4: 'rows_per_person' is not an option here"),
        (("between = [0, 10]", "between = [10, 0]"), "tacit.toml, line 9: "),
        (('"visits.parquet"', '"gone.parquet"'), "tacit.toml, [tables.visits]: no file exists"),
    ],
)
def test_a_bad_catalog_says_where_and_what_to_write(tacit_command, folder, change, said):
    (folder / "tacit.toml").write_text(CATALOG.replace(*change))
    ran = tacit_command("ask", "visits", BY_WARD, "--epsilon", 1)
    assert ran.code == 2
    assert said in ran.err
    assert "hint: " in ran.err


def test_tables_lists_what_is_declared_and_what_is_left(tacit_command):
    before = tacit_command("tables").out
    assert "all rows of one patient" in before
    assert "at most 1 rows of a unit in a group, in at most 1 groups" in before
    assert "days from 0 to 10; ward 2 keys" in before
    assert "ε = 3, δ = 1e-6, not asked yet" in before
    assert not default_ledger().exists()
    assert tacit_command("ask", "visits", BY_WARD, "--epsilon", 2).code == 0
    assert "left: ε = 1, δ = 1e-6" in tacit_command("tables").out


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('"patient"', '"patiant"'), "the table has no column 'patiant' for the unit"),
        (("columns.days", "columns.dais"), "columns= names 'dais', but the table has no such column"),
        (("visits.parquet", "gone.parquet"), "no file exists"),
        (('["A", "B, west"]', "[1, 2]"), "a public key of 'ward'"),
        (("rows_per_unit = 1", "rows_per_unit = 0"), "rows_per_unit must be"),
    ],
)
def test_tables_lists_what_could_not_be_asked_with_the_reason(tacit_command, folder, change, said):
    (folder / "tacit.toml").write_text(CATALOG.replace(*change))
    ran = tacit_command("tables")
    assert ran.code == 2
    assert f"  mistake:   {said}" in ran.out or said in ran.out.split("mistake:")[1]
    assert "budget:" in ran.out
    assert not default_ledger().exists()


def test_a_command_line_without_a_version_leaves_the_versions_of_a_ledger_alone(tacit_command, folder):
    (folder / "tacit.toml").write_text(CATALOG.replace('unit = "patient"', 'unit = "patient"\nversion = 3'))
    assert tacit_command("ask", "visits", "SELECT COUNT(*) FROM visits", "--epsilon", 1).code == 0
    plain = ("visits.parquet", "SELECT COUNT(*) FROM visits", "--unit", "patient", "--rows-per-unit", 1)
    assert tacit_command("ask", *plain, "--epsilon", "0.5").code == 0
    assert "visits (version 3)" in tacit_command("budget").out
    lower = tacit_command("ask", *plain, "--epsilon", "0.5", "--version", 2)
    assert (lower.code, "versions only go up" in lower.err) == (2, True)
    assert "--version contradicts" in tacit_command("plan", "visits", BY_WARD, "--epsilon", 1, "--version", 4).err


def test_trying_out_at_the_command_line_keeps_nothing(tacit_command):
    for _ in range(2):
        ran = tacit_command("ask", "visits", "SELECT COUNT(*) FROM visits", "--epsilon", 3, "--try")
        assert (ran.code, "TRYOUT: nothing is kept" in ran.out) == (0, True)
    assert not default_ledger().exists()
    both = tacit_command(
        "ask", "visits.parquet", "SELECT COUNT(*) FROM visits", "--epsilon", 3, "--try", "--ledger", "x"
    )
    assert (both.code, "give one of the two" in both.err) == (2, True)


def test_an_interrupt_says_whether_the_charge_stands(tacit_command, monkeypatch):
    from tacit.asking import Question
    from tacit.engine.engine import EmbeddedEngine

    def stop(*_, **__):
        raise KeyboardInterrupt

    asked = ("ask", "visits", "SELECT COUNT(*) FROM visits", "--epsilon", 1)
    with monkeypatch.context() as early:
        early.setattr(Question, "answer", stop)
        ran = tacit_command(*asked)
        assert (ran.code, "no charge was made" in ran.err) == (130, True)
    monkeypatch.setattr(EmbeddedEngine, "parts", stop)
    ran = tacit_command(*asked)
    assert (ran.code, "ε = 1 is spent" in ran.err) == (4, True)


def test_a_table_of_a_duckdb_file_is_asked_by_the_file_and_its_name(tacit_command):
    import duckdb

    with duckdb.connect("air.duckdb") as connection:
        connection.execute("CREATE TABLE flights AS SELECT * FROM 'visits.parquet'")
    words = ("SELECT COUNT(*) AS n FROM flights", "--unit", "patient", "--rows-per-unit", 1, "--budget", 3)
    unnamed = tacit_command("ask", "air.duckdb", *words, "--epsilon", 1)
    assert (unnamed.code, "'air.duckdb?table=flights'; its tables: flights" in unnamed.err) == (2, True)
    assert tacit_command("ask", "air.duckdb?table=flights", *words, "--epsilon", 1).code == 0
    with duckdb.connect("air.duckdb", read_only=True) as connection:  # the Python door knows it as the same
        import tacit

        table = tacit.table((connection, "main.flights"), unit="patient", rows_per_unit=1, budget=tacit.epsilon(3))
        assert table.sql("SELECT COUNT(*) AS n FROM flights").answer(epsilon=1).facts.free


def test_tables_without_a_catalog_says_how_to_make_one(tacit_command, folder):
    os.remove(folder / "tacit.toml")
    ran = tacit_command("tables")
    assert ran.code == 2
    assert "tacit init" in ran.err


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_an_answer_can_be_drawn_too(tacit_command, folder, ending):
    ran = tacit_command("ask", "visits", BY_WARD, "--epsilon", 1, "--plot", f"answer.{ending}")
    assert ran.code == 0
    assert "± 95 %" in ran.out
    assert (folder / f"answer.{ending}").stat().st_size > 1000


@pytest.mark.parametrize("file", ["answer.gif", "/no/such/folder/answer.png"])
def test_a_picture_that_cannot_be_written_is_refused_before_the_charge(tacit_command, file):
    assert tacit_command("ask", "visits", BY_WARD, "--epsilon", 1, "--plot", file).code == 2
    assert not default_ledger().exists()


def test_a_plan_has_no_picture(tacit_command):
    ran = tacit_command("plan", "visits", BY_WARD, "--epsilon", 1, "--plot", "plan.png")
    assert ran.code == 2
    assert "tacit ask" in ran.err
