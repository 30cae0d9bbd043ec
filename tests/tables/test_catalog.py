"""A tacit.toml gives an analyst tables by name, and says of a mistake its line and the fix."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.catalog_file import CatalogEntry, without_password
from tacit_gauntlet.stage.table import bounded_table

GOOD = """\
ledger = "ledger.db"

[tables.visits]
source = "visits.parquet"
unit = "patient"
rows_per_unit = 2
groups_per_unit = 1
budget = { epsilon = 3, delta = 1e-6 }

[tables.visits.columns.days]
between = [0, 30.5]

[tables.visits.columns.ward]
keys = ["A", "B"]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TACIT_HOME", str(tmp_path / "home"))
    table = pa.table({"patient": [1, 2, 3], "ward": ["A", "A", "B"], "days": [1.0, 2.0, 3.0]})
    pq.write_table(table, tmp_path / "visits.parquet")
    return tmp_path


def test_a_question_needs_only_the_tables_name(folder: Path) -> None:
    (folder / "tacit.toml").write_text(GOOD)
    visits = tacit.catalog(str(folder / "tacit.toml"))["visits"]
    answer = visits.group_by("ward").mean("days").answer(epsilon=1)
    assert [row["ward"] for row in answer.to_dicts()] == ["A", "B"]
    assert (folder / "ledger.db").exists()


OWNED = """
[tables.tests]
source = "tests.parquet"
unit = "visits.patient"
via = "visit"
rows_per_unit = 9
groups_per_unit = 9

[tables.notes]
source = "notes.parquet"
unit = "tests.patient"
via = { test = "nr" }
rows_per_unit = 9
groups_per_unit = 9
"""


def test_a_table_may_have_its_unit_in_another_at_the_end_of_a_chain(folder: Path) -> None:
    visits = pa.table(
        {"patient": ["a", "a", "b"], "visit": [1, 2, 3], "ward": ["A", "A", "B"], "days": [1.0, 2.0, 3.0]}
    )
    pq.write_table(visits, folder / "visits.parquet")
    pq.write_table(pa.table({"visit": [1, 1, 3, 7], "nr": ["p", "q", "r", "s"]}), folder / "tests.parquet")
    pq.write_table(pa.table({"test": ["p", "r", "r", "s"]}), folder / "notes.parquet")
    (folder / "tacit.toml").write_text(GOOD + OWNED)
    catalog = tacit.catalog(str(folder / "tacit.toml"))
    assert bounded_table(catalog["tests"].count()).sums["rows"] == [3]
    assert bounded_table(catalog["notes"].count()).sums["rows"] == [3]
    assert bounded_table(catalog["notes"].count()).sums["units"] == [2]
    assert str(catalog["notes"].left) == str(catalog["visits"].left)
    joined = catalog.sql(
        "SELECT COUNT(*) AS n FROM notes JOIN tests ON test = nr JOIN visits USING (patient, visit) WHERE ward = 'B'"
    )
    assert "n" in joined.answer(epsilon=1, accept_noise=True).to_dicts()[0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('"visits.patient"', '"visits.days"'), "line 18: with via, unit must be another table's name and its unit"),
        (('"visits.patient"', '"notes.patient"'), "with via, unit must be another table's name"),
        (('via = "visit"', 'via = "visit"\nbudget = { epsilon = 1 }'), "'tests' shares the budget of 'visits'"),
        (('unit = "patient"', 'unit = "ROW"'), "with via, unit must be another table's name"),
    ],
)
def test_a_unit_in_another_table_that_has_none_is_refused_at_its_line(
    folder: Path, change: tuple[str, str], said: str
) -> None:
    (folder / "tacit.toml").write_text((GOOD + OWNED).replace(*change))
    with pytest.raises(tacit.InvalidParameter, match=said):
        tacit.catalog(str(folder / "tacit.toml"))


def test_a_decimal_in_the_file_is_exact(folder: Path) -> None:
    (folder / "tacit.toml").write_text(GOOD.replace("epsilon = 3", "epsilon = 0.1"))
    visits = tacit.catalog(str(folder / "tacit.toml"))["visits"]
    assert visits.session.registered.budget == tacit.epsilon("0.1", delta="0.000001")


@pytest.mark.parametrize(
    ("change", "line", "word"),
    [
        (('unit = "patient"', ""), 3, "unit"),
        (("rows_per_unit = 2", "rows_per_person = 2"), 6, "rows_per_person"),
        (("epsilon = 3", "epsilon = -3"), 8, "epsilon"),
        (("{ epsilon = 3, delta = 1e-6 }", "3"), 8, "budget"),
        (("[0, 30.5]", "[31, 30.5]"), 10, "days"),
        (("between", "betwixt"), 10, "betwixt"),
        (('["A", "B"]', '["A", "A"]'), 13, "ward"),
        (("budget = {", "budget = {{"), 8, "line 8"),
    ],
)
def test_a_bad_file_names_the_line_and_the_fix(folder: Path, change: tuple[str, str], line: int, word: str) -> None:
    (folder / "tacit.toml").write_text(GOOD.replace(*change))
    with pytest.raises(tacit.InvalidParameter) as refused:
        tacit.catalog(str(folder / "tacit.toml"))
    assert f"line {line}" in str(refused.value)
    assert word in str(refused.value)
    assert "hint:" in str(refused.value)


def test_a_missing_file_and_a_missing_table_say_what_to_do(folder: Path) -> None:
    with pytest.raises(tacit.InvalidParameter, match="tacit init"):
        tacit.catalog(str(folder / "none.toml"))
    (folder / "tacit.toml").write_text(GOOD)
    with pytest.raises(tacit.QueryRefused, match="visits"):
        tacit.catalog(str(folder / "tacit.toml"))["visit"]


@pytest.mark.parametrize("number", ["1e9999999999999999999", "9" * 5000, "1e99999999"])
def test_a_number_too_long_to_read_is_refused(folder, number):
    (folder / "tacit.toml").write_text(GOOD.replace("epsilon = 3", f"epsilon = {number}"))
    with pytest.raises(tacit.TacitError, match=r"too long|digits"):
        tacit.catalog(folder / "tacit.toml")


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("visits.parquet", "visits.parquet"),
        ("air.duckdb?table=flights", "air.duckdb?table=flights"),
        ("postgresql://me:p/w@rd@host:5432/db?table=t", "postgresql://me@host:5432/db?table=t"),
        ("postgresql://me@host/db?password=x&table=t&sslpassword=y", "postgresql://me@host/db?table=t"),
        ("postgresql://host:5432/db?table=t", "postgresql://host:5432/db?table=t"),
        ("sc://host:443/;token=x;use_ssl=true;x-key=y?table=t", "sc://host:443/;use_ssl=true?table=t"),
    ],
)
def test_a_password_in_an_address_is_not_shown(source, shown):
    assert without_password(source) == shown
    entry = CatalogEntry("t", source, {})
    assert entry.shown == shown
    assert "p/w@rd" not in repr(entry)
