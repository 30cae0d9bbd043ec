"""`tacit audit`: a mechanism, a question of one's own, or a callable; a verdict in words and in the exit code."""

import json

import pytest

from tests.doc_blocks import run_tacit

ASK = (
    "SELECT ward, COUNT(*) AS n FROM visits WHERE days > 3 GROUP BY ward",
    *("--unit", "patient_id", "--rows-per-unit", "2", "--groups-per-unit", "2"),
    *("--keys", "ward=A,B", "--budget", "2", "--epsilon", "1"),
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TACIT_HOME", str(tmp_path / "home"))
    (tmp_path / "visits.csv").write_text("patient_id,ward,days\n1,A,CANARY\n2,B,4\n")
    return tmp_path


def test_the_mechanisms_are_listed():
    code, shown = run_tacit(["audit", "--list"])
    assert code == 0
    assert "laplace " in shown
    assert "sparse-vector" in shown


def test_a_sound_mechanism_exits_0_and_a_planted_shortage_5():
    code, shown = run_tacit(["audit", "laplace", "--epsilon", "1", "--draws", "4000"])
    assert code == 0
    assert shown.startswith("NOT VIOLATED")
    assert "cannot prove" in shown
    code, shown = run_tacit(["audit", "laplace", "--epsilon", "1", "--draws", "4000", "--shortage", "0.5"])
    assert code == 5
    assert shown.startswith("VIOLATED")


def test_a_verdict_is_written_as_json_and_drawn(tmp_path):
    picture = tmp_path / "audit.svg"
    words = ["audit", "randomized-response", "--epsilon", "1", "--draws", "2000", "--json", "--plot", str(picture)]
    code, shown = run_tacit(words)
    assert code == 0
    assert json.loads(shown)["claimed"] == {"epsilon": 1.0, "delta": 0.0}
    assert "<svg" in picture.read_text()


def test_an_unknown_mechanism_is_refused_with_the_names():
    code, shown = run_tacit(["audit", "laplacian", "--epsilon", "1"])
    assert code == 2
    assert "laplace, " in shown


def test_a_question_is_audited_without_a_row_or_a_charge(folder):
    code, shown = run_tacit(["audit", "ask", "visits.csv", *ASK, "--type", "days=int", "--format", "json"])
    assert code == 0, shown
    found = json.loads(shown)
    assert found["violated"] is False
    assert found["replay"]["broken"] == []
    assert found["replay"]["pairs"] > 10
    assert "CANARY" not in shown
    assert not (folder / "home").exists()


def test_a_question_that_is_refused_is_refused_here_too(folder):
    code, shown = run_tacit(["audit", "ask", "visits.csv", "SELECT * FROM visits", *ASK[1:]])
    assert code == 2
    assert "tacit:" in shown


def test_a_callable_is_found_by_its_name_and_judged(folder):
    (folder / "noisy_module.py").write_text(
        "import random\n"
        "def answer(rows):\n"
        "    return len(rows) if random.random() < 0.5 else -1\n"
        "def many(rows, n):\n"
        "    return [answer(rows) for _ in range(n)]\n"
    )
    words = ["--d0", "[1, 2]", "--d1", "[1]", "--epsilon", "1", "--draws", "2000"]
    code, shown = run_tacit(["audit", "callable", "noisy_module:answer", *words])
    assert code == 5
    assert "VIOLATED" in shown
    assert run_tacit(["audit", "callable", "noisy_module:many", *words, "--batch"])[0] == 5


@pytest.mark.parametrize("target", ["nothing", "no_such_module:f", "json:no_such_name", ":f"])
def test_a_callable_that_is_not_there_is_refused(target: str):
    code, shown = run_tacit(["audit", "callable", target, "--d0", "1", "--d1", "2", "--epsilon", "1"])
    assert code == 2
    assert shown.startswith("tacit: ")
