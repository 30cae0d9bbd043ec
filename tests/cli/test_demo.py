"""`tacit demo`: the whole story, on the same made-up table everywhere, leaving nothing behind."""

import os
import sys
from pathlib import Path

import duckdb
import pytest

from tacit.cli.demo import GUESSED_VISITS, PEOPLE, RARE_PEOPLE, RARE_WARD, true_visits, write_visits


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "visits.parquet"
    write_visits(path)
    return path


def test_the_demo_plans_answers_and_is_refused(tacit_command):
    ran = tacit_command("demo")
    assert ran.code == 0
    assert ran.out.index("1. A survey of 30,000 made-up people") < ran.out.index("2. People with many rows")
    assert "Bounds: learned in this call and kept" in ran.out
    assert "Not counted, but allowed for: rows beyond" in ran.out
    assert "The effect of a guessed bound" in ran.out
    assert "± 95 %" in ran.out
    assert "Free: answered 20" in ran.out
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


@pytest.mark.parametrize("missing", ["fastapi", "uvicorn", "jinja2", "python_multipart"])
def test_without_the_server_extra_a_demo_says_what_to_install(tacit_command, monkeypatch, tmp_path, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    for words in (("demo", "--serve"), ("serve", "--catalog", str(tmp_path / "tacit.toml"))):
        ran = tacit_command(*words)
        assert (ran.code, ran.out) == (2, "")
        assert "pip install 'tacit[server]'" in ran.err


def test_a_demo_recommends_only_what_works_where_it_runs(tacit_command, monkeypatch):
    assert "tacit demo --serve      " in tacit_command("demo").out
    monkeypatch.setitem(sys.modules, "fastapi", None)
    shown = tacit_command("demo").out
    assert "tacit demo --serve      " not in shown
    assert "pip install 'tacit[server]'" in shown


def test_a_served_demo_names_who_is_the_curator_and_who_an_analyst(tacit_command, monkeypatch):
    shown: dict[str, str] = {}
    monkeypatch.setattr("tacit.cli.serve.listen_at", lambda _desk, _port, _folder, tokens: shown.update(tokens))
    assert tacit_command("demo", "--serve").code == 0
    assert list(shown) == ["ada, curator", "ben, analyst"]


def test_the_table_is_the_same_everywhere(table):
    people, rows, days, ages = duckdb.sql(
        f"SELECT count(DISTINCT patient_id), count(*), sum(days * (patient_id % 97)), sum(age) FROM '{table}'"
    ).fetchall()[0]
    assert people == PEOPLE
    assert (rows, days, ages) == (301_798, 41_204_229, 16_153_201)


def test_the_bounds_that_somebody_guessed_cut_a_third_of_the_table(table):
    """So that the demo shows what a guessed bound does."""
    kept, rows = duckdb.sql(
        f"SELECT sum(least(n, {GUESSED_VISITS})), sum(n) FROM (SELECT count(*) AS n FROM '{table}'"
        " GROUP BY patient_id, ward)"
    ).fetchall()[0]
    assert kept < 0.75 * rows


def test_one_ward_is_too_small_to_show(table):
    assert true_visits(table)[RARE_WARD][0] == RARE_PEOPLE


def test_the_story_of_overfitting_is_drawn_where_it_is_asked_for(tacit_command, tmp_path):
    ran = tacit_command("demo", "overfitting", "--plot", tmp_path / "story.png")
    assert ran.code == 0
    assert "plain holdout says" in ran.out
    assert (tmp_path / "story.png").read_bytes().startswith(b"\x89PNG")
    assert tacit_command("demo", "--plot", tmp_path / "other.png").code == 2
    assert not (tmp_path / "other.png").exists()
