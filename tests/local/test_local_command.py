"""`tacit local`: from a list of names and answers to reports, and from reports to counts."""

import io
import json

import pytest

from tacit.cli.app import main


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run `tacit local` with some words and text on stdin; return code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "names.txt").write_text("ann\nbob\ncat\n")

    def command(*words: object, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        with pytest.raises(SystemExit) as stopped:
            main(["local", *(str(word) for word in words)])
        shown = capsys.readouterr()
        return int(stopped.value.code or 0), shown.out, shown.err

    return command


ASKED = ("--epsilon", 2, "--domain", "names.txt")
ANSWERS = "ann\n" * 300 + "bob\n" * 200


def test_answers_become_reports_and_reports_become_counts(run, tmp_path):
    code, out, _ = run("report", "--protocol", "auto", *ASKED, stdin=ANSWERS)
    assert code == 0
    assert json.loads(out.splitlines()[0])["question"] == {"labels": ["ann", "bob", "cat"]}
    assert len(out.splitlines()) == 501
    (tmp_path / "reports.jsonl").write_text(out)
    code, out, _ = run("estimate", "reports.jsonl", "--format", "json")
    said = json.loads(out)
    assert (code, said["used"], said["rejected"]) == (0, 500, 0)
    assert {"value", "count", "count_low", "count_high"} <= set(said["rows"][0])
    code, out, _ = run("estimate", "reports.jsonl", "--plot", "out.png", "--fakes", "0.01")
    assert (tmp_path / "out.png").exists()
    assert "500 reports used" in out
    assert "fakes" in out


@pytest.mark.parametrize("file", ["r.parquet", "r.bin", "r.jsonl"])
def test_reports_go_to_a_file_of_any_form_and_count_once(run, tmp_path, file):
    (tmp_path / "values").write_text(ANSWERS)
    assert run("report", "values", *ASKED, "--output", file)[0] == 0
    said = json.loads(run("estimate", file, file, "--format", "json")[1])
    assert (said["used"], said["rejected_by_reason"]) == (500, {"duplicate": 500})
    assert json.loads(run("estimate", file, file, "--repeats", "--format", "json")[1])["used"] == 1000


def test_numbers_have_a_mean(run, tmp_path):
    (tmp_path / "values").write_text("\n".join(str(place % 10) for place in range(2000)))
    run("report", "values", "--epsilon", 5, "--between", "0:10", "--output", "r.bin")
    said = json.loads(run("estimate", "r.bin", "--format", "json")[1])
    assert said["rows"][0]["mean_low"] <= said["rows"][0]["mean"] <= said["rows"][0]["mean_high"]


def test_choose_shows_the_table_and_the_shuffled_loss(run):
    code, out, _ = run("choose", "--size", 100, "--epsilon", 1, "--people", 10_000, "--delta", "1e-6")
    assert code == 0
    assert "subset" in out
    assert "<- chosen" in out
    assert "Shuffled" in out


def test_refusals_exit_with_two_and_quote_no_answer(run):
    code, out, err = run("report", *ASKED, stdin="ann\nzed\n")
    assert (code, out) == (2, "")
    assert "zed" not in err
    for words in (
        ("report", "--epsilon", 1),
        ("report", "--epsilon", 1, "--between", "3"),
        ("estimate", "missing.jsonl"),
        ("estimate", "names.txt"),
        ("choose", "--size", 1, "--epsilon", 1),
    ):
        assert run(*words)[0] == 2
    assert run("report", "--epsilon", 1, "--size", 3, stdin="one\n")[0] == 2


def test_no_answers_are_no_reports_and_an_empty_estimate(run, tmp_path):
    _, out, _ = run("report", *ASKED, stdin="")
    (tmp_path / "none.jsonl").write_text(out)
    code, out, _ = run("estimate", "none.jsonl")
    assert code == 0
    assert "0 reports used" in out
