"""`tacit demo`: the whole story, on the same made-up table everywhere, leaving nothing behind."""

import os
from pathlib import Path

import duckdb
import pytest

from tacit.cli.demo import PEOPLE, RARE_PEOPLE, RARE_WARD, VISITS_MOST, WARDS_MOST, true_visits, write_visits


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "visits.parquet"
    write_visits(path)
    return path


def test_the_demo_plans_answers_and_is_refused(tacit_command):
    ran = tacit_command("demo")
    assert ran.code == 0
    assert "Expected error" in ran.out
    assert "± 95 %" in ran.out
    assert "free: answered 20" in ran.out
    assert "BudgetExceeded: the budget of 'visits'" in ran.out
    assert "has no room" in ran.out


def test_the_demo_leaves_only_the_table_it_was_asked_to_keep(tacit_command, tacit_home, tmp_path):
    kept = tmp_path / "kept.parquet"
    assert tacit_command("demo", "--keep", kept).code == 0
    assert RARE_WARD in true_visits(kept)
    assert os.environ["TACIT_HOME"] == str(tacit_home)
    assert not tacit_home.exists()


def test_a_table_that_cannot_be_kept_is_refused(tacit_command, tmp_path):
    assert tacit_command("demo", "--keep", tmp_path / "no" / "folder").code == 2


def test_the_table_is_the_same_everywhere(table):
    people, rows, days, ages = duckdb.sql(
        f"SELECT count(DISTINCT patient_id), count(*), sum(days * (patient_id % 97)), sum(age) FROM '{table}'"
    ).fetchall()[0]
    assert people == PEOPLE
    assert (rows, days, ages) == (200_007, 26_337_014, 10_700_227)


def test_no_unit_of_the_table_is_over_its_bounds(table):
    """So that the truth the demo shows is the truth its error bars are about."""
    groups, rows = duckdb.sql(
        f"SELECT max(wards), max(most) FROM (SELECT count(*) AS wards, max(n) AS most FROM (SELECT patient_id, ward,"
        f" count(*) AS n FROM '{table}' GROUP BY ALL) GROUP BY patient_id)"
    ).fetchall()[0]
    assert groups <= WARDS_MOST
    assert rows <= VISITS_MOST


def test_one_ward_is_too_small_to_show(table):
    assert true_visits(table)[RARE_WARD][0] == RARE_PEOPLE
