"""A catalog is a database: its tables are joined in one SELECT, from Python and from the command line."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit

CATALOG = """\
[tables.visits]
source = "visits.parquet"
unit = "patient"
rows_per_unit = 4
groups_per_unit = 4
most_rows_per_unit = 4
budget = { epsilon = 9, delta = 1e-6 }

[tables.patients]
source = "patients.parquet"
unit = "patient"
most_rows_per_unit = 1
same_people_as = "visits"

[public.wards]
source = "wards.parquet"
"""
JOIN = (
    "SELECT kind, COUNT(*) AS n FROM visits JOIN wards USING (ward) JOIN patients USING (patient)"
    " WHERE patients.age > 40 GROUP BY kind"
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with two protected tables, a public one and their catalog, to stand in."""
    ids = list(range(1000))
    visits = pa.table({"patient": ids * 2, "ward": ["a", "b"] * 1000})
    pq.write_table(visits, tmp_path / "visits.parquet")
    pq.write_table(pa.table({"patient": ids, "age": [50, 30, 60, 45] * 250}), tmp_path / "patients.parquet")
    pq.write_table(pa.table({"ward": ["a", "b"], "kind": ["x", "y"]}), tmp_path / "wards.parquet")
    (tmp_path / "tacit.toml").write_text(CATALOG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_catalogs_tables_are_joined_and_charged_once(tacit_command):
    planned = tacit_command("plan", "visits", JOIN, "--epsilon", 4)
    assert planned.code == 0
    assert "Join with wards (public) on ward" in planned.out
    assert "Join with patients on the unit" in planned.out
    ran = tacit_command("ask", "visits", JOIN, "--epsilon", 4, "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    rows = json.loads(ran.out)["rows"]
    assert [row["kind"] for row in rows] == ["x", "y"]
    # the noise has a scale of 4 at most: beyond 200 with a chance of e^-50
    assert all(abs(row["n"] - truth) < 200 for row, truth in zip(rows, (1000, 500), strict=True))
    shown = tacit_command("tables")
    assert "budget:    that of visits, with the same people" in shown.out
    assert "wards.parquet\n  public:" in shown.out
    assert "same people as visits" in tacit_command("budget").out
    catalog = tacit.catalog("tacit.toml")
    assert catalog["visits"].left.laplace == catalog["patients"].left.laplace == 5
    again = catalog.sql(JOIN).answer(epsilon=4)  # the same question from Python: free, with the same numbers
    assert [row["n"] for row in again.to_dicts()] == [row["n"] for row in rows]


def test_public_facts_of_a_catalog_are_free_and_declare_nothing(tacit_command, folder):
    listed = tacit_command("ask", "visits", "SHOW TABLES")
    assert (listed.code, listed.err) == (0, "")
    assert [line.split()[0] for line in listed.out.splitlines()[3:]] == ["visits", "patients", "wards"]
    assert "kind" in tacit_command("ask", "visits", "DESCRIBE wards", "--format", "csv").out
    assert json.loads(tacit_command("plan", "visits", "DESCRIBE patients", "--format", "json").out)["loss"] == "ε = 0"
    assert tacit.catalog("tacit.toml").sql("describe WARDS").to_dicts()[0]["column"] == "ward"
    assert "wards" not in tacit.catalog("tacit.toml")
    assert "visits" not in tacit_command("budget").out


def test_public_keys_are_listed_without_an_epsilon(tacit_command):
    text = "SELECT DISTINCT kind FROM visits JOIN wards USING (ward) ORDER BY kind"
    asked = tacit_command("ask", "visits", text, "--format", "csv")
    assert (asked.code, asked.err, asked.out.split()) == (0, "", ["kind", "x", "y"])
    planned = tacit_command("plan", "visits", text)
    assert (planned.code, "Costs nothing, reads nothing" in planned.out) == (0, True)
    assert tacit_command("ask", "visits", text, "--epsilon", 1, "--format", "csv").out == asked.out
    refused = tacit_command("ask", "visits", "SELECT DISTINCT ward FROM visits")  # whose keys are not listed
    assert (refused.code, "give --epsilon" in refused.err) == (2, True)


def test_more_matches_are_allowed_by_name(tacit_command, folder):
    pq.write_table(pa.table({"ward": ["a", "b", "b"], "kind": ["x", "y", "z"]}), folder / "wards.parquet")
    text = "SELECT COUNT(*) AS n FROM visits JOIN wards USING (ward)"
    refused = tacit_command("ask", "visits", text, "--epsilon", 1)
    assert (refused.code, "is not a key of the public table" in refused.err) == (2, True)
    assert tacit_command("ask", "visits", text, "--epsilon", 1, "--most", "wards=2").code == 0
    assert "at most 2 matches" in str(tacit.catalog("tacit.toml").sql(text, most={"wards": 2}).plan(epsilon=1))
    for wrong in ("wards=0", "wards", "wards=x", "nobody=2"):
        assert tacit_command("ask", "visits", text, "--epsilon", 1, "--most", wrong).code == 2


def test_a_table_of_the_same_people_may_be_asked_first(tacit_command):
    sql = "SELECT COUNT(*) AS n FROM patients WHERE patient IN (SELECT patient FROM visits WHERE ward = 'a')"
    assert tacit_command("plan", "patients", sql, "--epsilon", 1).code == 0
    assert tacit_command("ask", "patients", sql, "--epsilon", 1).code == 0
    assert tacit.catalog("tacit.toml")["visits"].left.laplace == 8


def test_a_select_of_no_protected_table_is_refused(folder):
    catalog = tacit.catalog("tacit.toml")
    with pytest.raises(tacit.QueryRefused, match="names no protected table"):
        catalog.sql("SELECT COUNT(*) FROM wards")
    assert repr(catalog).endswith("visits, patients; public: wards>")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[public.visits]\nsource = 'wards.parquet'", "'visits' is a protected table too"),
        ("[public.others]\nmost = 2", r"\[public.others\] has no source"),
        ("[public.others]\nunit = 'x'", "'unit' is not an option here"),
        ("[public.others]\nsource = 'x.csv'\nbudget = 3", "'budget' is not an option here"),
        ("[public.others]\nsource = 'x.csv'\nmost = 0", "most must be a whole number"),
        (
            "[tables.c]\nsource = 'c.csv'\nunit = 'p'\nsame_people_as = 'patients'",
            "shares the budget of 'visits' itself",
        ),
        ("[tables.c]\nsource = 'c.csv'\nunit = 'p'\nsame_people_as = 'c'", "the name of another table"),
    ],
)
def test_a_catalog_that_contradicts_itself_is_refused_at_its_line(line, said, folder):
    (folder / "tacit.toml").write_text(f"{CATALOG}\n{line}\n")
    with pytest.raises(tacit.InvalidParameter, match=said):
        tacit.catalog("tacit.toml")
