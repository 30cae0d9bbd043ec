"""Tables of servers and databases on the command line: the same words as for files, and no password kept."""

import duckdb
import psycopg
import pytest

ROWS = "SELECT i % 500 AS id, i % 3 AS ward FROM generate_series(1, 3000) AS made(i)"
ASKED = "SELECT ward, COUNT(*) AS n FROM t GROUP BY ward"


@pytest.fixture(params=["postgresql", "duckdb"])
def source(request, tmp_path):
    """The same rows in each, as the command line names them."""
    if request.param == "duckdb":
        with duckdb.connect(str(tmp_path / "clinic.duckdb")) as link:
            link.execute(f"CREATE TABLE t AS {ROWS}")
        return f"{tmp_path / 'clinic.duckdb'}?table=t"
    address = request.getfixturevalue("postgres")
    with psycopg.connect(address, autocommit=True) as link:
        link.execute(f"DROP SCHEMA IF EXISTS asked CASCADE; CREATE SCHEMA asked; CREATE TABLE asked.t AS {ROWS}")
    return f"{address}&password=hidden&table=asked.t"


def test_a_table_is_planned_asked_and_kept_in_a_catalog(source, tacit_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ("--unit", "id", "--budget", "50", "--keys", "ward=0,1,2")
    assert tacit_command("plan", source, ASKED, *words, "--epsilon", "1").code == 0
    assert tacit_command("init", source, *words, "--no-ask").code == 0
    written = (tmp_path / "tacit.toml").read_text()
    assert "table=" in written
    assert "hidden" not in written
    found = tacit_command("ask", "t", ASKED, "--epsilon", "40", "--format", "csv")
    assert found.code == 0
    ward, counted = found.out.splitlines()[1].split(",")[:2]
    assert (ward, abs(int(counted) - 1000) < 100) == ("0", True)  # 6 rows a person at ε = 40: a noise of 100 is e^-600
    assert "hidden" not in tacit_command("tables").out
