"""`tacit gauntlet`: a line for each case, a page and JSON with the evidence, and an exit code that can be relied on."""

import json

import pytest

from tacit_gauntlet.frame.waiting import Awaited

pytestmark = pytest.mark.usefixtures("tiny_gauntlet")


def test_cases_that_pass_exit_with_zero_and_say_what_was_run(tacit_command):
    ran = tacit_command("gauntlet", "--case", "n91")
    assert ran.code == 0
    assert "engine duckdb, full size" in ran.out
    assert "N91  pass" in ran.out
    assert "one person more does not show" in ran.out
    assert "1 of 1 cases passed" in ran.out


def test_a_failure_exits_with_one_and_shows_its_evidence(tacit_command):
    ran = tacit_command("gauntlet", "--case", "N", "--quick")
    assert ran.code == 1
    assert "N91  pass" in ran.out
    assert "N92  FAIL" in ran.out
    assert "rows seen: {1}" in ran.out
    assert "1 of 2 cases passed" in ran.out


def test_a_bug_that_survives_exits_with_one(tacit_command):
    ran = tacit_command("gauntlet", "--mutants")
    assert ran.code == 1
    assert "killed by N91" in ran.out
    assert "SURVIVED N91" in ran.out
    assert "1 of 3 planted bugs killed" in ran.out


def test_the_page_and_the_json_hold_the_evidence_and_the_bugs_it_would_catch(tacit_command, tmp_path):
    page, data = tmp_path / "report.html", tmp_path / "report.json"
    tacit_command("gauntlet", "--case", "N", "--quick", "--html", page, "--json", data)
    found = json.loads(data.read_text())
    assert found["passed"] is False
    assert [each["id"] for each in found["cases"]] == ["N91", "N92"]
    assert found["cases"][0]["figures"] == {"tries": 5}
    assert {"bug": "exact", "published": "everywhere"} in found["cases"][0]["would catch"]
    text = page.read_text()
    assert "&lt;b&gt;fails&lt;/b&gt;" in text
    assert "<b>" not in text
    assert "exact (everywhere)" in text
    assert found["machine"] in text
    assert not any(word in text for word in ("<script", "http:", "https:", "<link"))


def test_a_case_whose_feature_is_absent_waits_and_is_no_failure(tacit_command, monkeypatch):
    absent = Awaited("W91", "who may ask", "tacit.not_built", "the server")
    monkeypatch.setattr("tacit_gauntlet.frame.waiting.AWAITED", (absent,))
    ran = tacit_command("gauntlet", "--case", "N91", "--case", "W91")
    assert ran.code == 0
    assert "W91  waits for: the server" in ran.out


def test_a_case_that_is_missing_though_its_feature_is_there_is_a_failure(tacit_command, monkeypatch):
    due = Awaited("W91", "who may ask", "tacit.errors", "the server")
    monkeypatch.setattr("tacit_gauntlet.frame.waiting.AWAITED", (due,))
    ran = tacit_command("gauntlet", "--case", "N91", "--case", "W")
    assert ran.code == 1
    assert "W91  FAIL  missing" in ran.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--case", "X99"), "the cases are: L91"),
        (("--engine", "abacus"), "the engines are: duckdb, kernel"),
        (("--html", "no/such/folder/report.html"), "no folder"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_runs(tacit_command, words, said):
    ran = tacit_command("gauntlet", *words)
    assert ran.code == 2
    assert said in ran.err
    assert ran.out == ""
