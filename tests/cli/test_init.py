"""`tacit init` writes what it was told, leaves the rest to fill in, and reads no row."""

import tomllib
from pathlib import Path

import pytest

from tacit.catalog_file import read_catalog
from tacit.cli import catalog as command
from tacit.tables.source import Source

SAID = ("--unit", "patient", "--rows-per-unit", 2, "--groups-per-unit", 1, "--budget", "0.1", "--delta", "1e-6")
FACTS = ("--between", "days=0:1e1", "--keys", 'ward=A,"B, west"', "--keys", "floor=1,2", "--keys", "urgent=true,false")


@pytest.fixture(autouse=True)
def folder(visits: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(visits.parent)
    return visits.parent


def answering(monkeypatch: pytest.MonkeyPatch, *answers: str) -> list[str]:
    """Sit at a terminal and give these answers, then nothing; return the questions as they come."""
    asked: list[str] = []
    left = list(answers)

    def prompt(question: str, **_: object) -> str:
        asked.append(question)
        return left.pop(0) if left else ""

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr(command.typer, "prompt", prompt)
    return asked


def test_what_is_said_by_flags_is_a_catalog_that_answers(tacit_command):
    assert tacit_command("init", "visits.parquet", *SAID, *FACTS).code == 0
    entry = read_catalog("tacit.toml").tables["visits"]
    assert entry.options["rows_per_unit"] == 2
    assert entry.options["columns"]["urgent"] == {"keys": [True, False]}
    sql = "SELECT ward, AVG(days) AS stay FROM visits GROUP BY ward"
    assert tacit_command("ask", "visits", sql, "--epsilon", "0.1").code == 0


def test_what_is_not_said_is_left_to_fill_in(tacit_command):
    ran = tacit_command("init", "visits.parquet")
    assert ran.code == 0
    assert "to fill in: unit, budget" in ran.out
    text = Path("tacit.toml").read_text()
    assert tomllib.loads(text) == {"tables": {"visits": {"source": "visits.parquet"}}}
    for word in ("# unit = ", "# rows_per_unit = ", "# groups_per_unit = ", "# budget = ", "# between = "):
        assert word in text
    refused = tacit_command("tables")
    assert (refused.code, "line 3: [tables.visits] has no unit" in refused.err) == (2, True)


def test_a_csv_file_leaves_the_types_to_say(tacit_command, folder):
    (folder / "stays.csv").write_text("patient,stay_id,paidAmount,born,left_at,is_private,ward\n1,2,3,4,5,6,7\n")
    said = tacit_command("init", "stays.csv", "--unit", "patient", "--type", "patient=int").out
    assert "a CSV file's columns are text" in said
    examples = [line.split('"')[1] for line in Path("tacit.toml").read_text().splitlines() if "# type = " in line]
    assert examples == ["int", "float", "date", "timestamp", "bool", "text"]
    assert "columns are text" not in tacit_command("init", "visits.parquet", *SAID).out
    several = ("--type", "patient=int,paidAmount=float", "--type", "born=date", "--name", "typed")
    assert tacit_command("init", "stays.csv", "--unit", "patient", *several).code == 0
    typed = tomllib.loads(Path("tacit.toml").read_text())["tables"]["typed"]["columns"]
    assert {name: facts["type"] for name, facts in typed.items()} == {"paidAmount": "float", "born": "date"}
    assert tacit_command("init", "stays.csv", "--type", "born=date,").err.startswith(
        "tacit: --type must be COLUMN=VALUE"
    )


def test_no_row_is_read(tacit_command, monkeypatch):
    def fail(*_: object) -> None:
        raise AssertionError("a row was read")

    monkeypatch.setattr(Source, "fetch", fail)
    assert tacit_command("init", "visits.parquet").code == 0
    assert "west" not in Path("tacit.toml").read_text()


def test_at_a_terminal_it_asks_for_the_rest(tacit_command, monkeypatch):
    asked = answering(monkeypatch, "patient", "3", "1e-6", "0:5")
    assert tacit_command("init", "visits.parquet", "--between", "days=0:10").code == 0
    assert len(asked) == 4  # unit, epsilon, delta, and the range of floor; bounds are learned
    (entry,) = read_catalog("tacit.toml").tables.values()
    assert entry.options["unit"] == "patient"
    assert "groups_per_unit" not in entry.options
    assert entry.options["columns"]["floor"]["between"] == [0, 5]


def test_a_wrong_answer_is_asked_again(tacit_command, monkeypatch):
    asked = answering(monkeypatch, "patent", "patient", "none", "2", "1e-6")
    ran = tacit_command("init", "visits.parquet")
    assert "did you mean 'patient'" in ran.out
    assert asked[:2] == [asked[0]] * 2
    assert str(read_catalog("tacit.toml").tables["visits"].options["budget"]) == "ε = 2, δ = 1e-6"


def test_without_asking_nothing_is_asked(tacit_command, monkeypatch):
    asked = answering(monkeypatch, "patient")
    assert tacit_command("init", "visits.parquet", "--no-ask").code == 0
    assert asked == []


def test_a_second_table_is_added_and_the_first_left_alone(tacit_command):
    assert tacit_command("init", "visits.parquet", *SAID).code == 0
    before = Path("tacit.toml").read_text()
    assert tacit_command("init", "visits.parquet", *SAID, "--name", "odd name.").code == 0
    after = Path("tacit.toml").read_text()
    assert after.startswith(before)
    assert set(tomllib.loads(after)["tables"]) == {"visits", "odd name."}
    again = tacit_command("init", "visits.parquet", *SAID)
    assert again.code == 2
    assert Path("tacit.toml").read_text() == after


def test_a_table_of_which_only_the_source_is_declared_is_declared_anew(tacit_command):
    assert tacit_command("init", "visits.parquet", *SAID, "--name", "first").code == 0
    assert tacit_command("init", "visits.parquet").code == 0
    assert tacit_command("init", "visits.parquet", *SAID, "--name", "last").code == 0
    assert tacit_command("init", "visits.parquet", *SAID).code == 0
    text = Path("tacit.toml").read_text()
    assert list(read_catalog("tacit.toml").tables) == ["first", "last", "visits"]
    assert (text.count("source = "), text.count("# unit = ")) == (3, 0)


@pytest.mark.parametrize(
    "written", ['[tables.visits]\nsource = "x"\nversion = 2\n', '[tables]\nvisits = { source = "x" }\n']
)
def test_what_somebody_has_written_of_a_table_is_never_removed(tacit_command, written):
    Path("tacit.toml").write_text(written)
    ran = tacit_command("init", "visits.parquet", *SAID)
    assert (ran.code, "already declares 'visits', without a unit" in ran.err) == (2, True)
    assert Path("tacit.toml").read_text() == written


def test_a_path_is_written_as_seen_from_the_catalog(tacit_command, folder):
    (folder / "declared").mkdir()
    assert tacit_command("init", "visits.parquet", *SAID, "--output", "declared/tacit.toml").code == 0
    source = read_catalog("declared/tacit.toml").tables["visits"].source
    assert Path(source).resolve() == (folder / "visits.parquet").resolve()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("gone.parquet",), "no file exists"),
        (("visits.parquet", "--unit", "patent"), "did you mean 'patient'"),
        (("visits.parquet", "--between", "days=9:1"), "must start with its lowest value"),
        (("visits.parquet", "--between", "dayz=0:1"), "no column 'dayz'"),
        (("visits.parquet", "--budget", "-1"), "epsilon"),
        (("visits.parquet", "--delta", "1e-6"), "--budget 3 --delta 1e-6"),
        (("visits.parquet", "--output", "no/folder/tacit.toml"), "cannot be written"),
    ],
)
def test_a_mistake_is_refused_and_writes_nothing(tacit_command, words, reason):
    ran = tacit_command("init", *words)
    assert ran.code == 2
    assert reason in ran.err
    assert not Path("tacit.toml").exists()
