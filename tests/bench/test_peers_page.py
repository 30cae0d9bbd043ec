"""The page beside the peers is made from the results alone, and says what they say; no peer is needed here."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from bench.learned import tables
from bench.peers import environments, page, sections
from bench.peers.asking import ask, our_python, reason
from bench.peers.charts import Bar, Panel, chart
from bench.peers.figures import Figures
from bench.peers.quoted import BEGIN, END, quote, quoted
from bench.peers.subjects import SUBJECTS, code_lines
from bench.peers.targets import targets

PROJECT = Path(__file__).resolve().parent.parent.parent
TEN_MILLION = "10,000,000 rows, 1,000 public keys"


def record(subject: str, case: str, library: str, quantity: str, value: float | None, **more: Any) -> dict[str, Any]:
    plain = {"failed": "", "note": "", "facts": {}}
    words = {"subject": subject, "case": case, "library": library, "quantity": quantity, "value": value}
    return {**plain, **words, **more}


def results(*records: dict[str, Any]) -> dict[str, Any]:
    return {
        "subjects": {"noise": {"date": "2026-01-01 00:00 UTC"}},
        "machine": {"cores": 2, "processor": "a processor", "memory": "4 GiB", "python": "3.11"},
        "versions": {"opendp": "1.2.3"},
        "records": list(records),
    }


def verdict(name: str, *records: dict[str, Any]) -> bool | None:
    (found,) = [each.met for each in targets(Figures(records)) if each.name == name]
    return found


def test_a_target_without_figures_is_unknown_and_not_met():
    assert {each.met for each in targets(Figures(()))} == {None}


@pytest.mark.parametrize(("theirs", "met"), [(30.0, True), (29.0, False)])
def test_a_target_is_met_at_its_ratio_and_missed_below(theirs, met):
    times = {"tacit": 1.0, "opendp": theirs}
    records = [record("groupby7", TEN_MILLION, library, "seconds", value) for library, value in times.items()]
    assert verdict(f"group-by, {TEN_MILLION}, against OpenDP", *records) is met


def test_a_peer_that_was_cut_short_counts_as_that_long():
    ours = record("groupby7", TEN_MILLION, "tacit", "seconds", 1.0)
    theirs = record("groupby7", TEN_MILLION, "tmlt.analytics", "seconds", None, failed="more than 300 s")
    assert verdict(f"group-by, {TEN_MILLION}, against Tumult", ours, theirs) is True


def test_a_peer_with_another_promise_is_not_compared():
    facts = {"off": 0.01, "answers": 100.0, "seconds": 0.1}
    errors = {"tacit": 1.0, "diffprivlib": 0.1, "opendp": 1.0}
    records = [record("one", "sum", library, "error", value, facts=facts) for library, value in errors.items()]
    assert verdict("error of one sum", *records) is True


def test_an_error_that_is_clearly_larger_misses():
    facts = {"off": 0.01, "answers": 100.0, "seconds": 0.1}
    errors = {"tacit": 1.2, "opendp": 1.0}
    records = [record("one", "sum", library, "error", value, facts=facts) for library, value in errors.items()]
    assert verdict("error of one sum", *records) is False


def test_the_best_setting_of_a_peer_is_what_counts_for_keys():
    shown = [("tacit", 500.0, ""), ("opendp", 200.0, "told laplace"), ("opendp", 600.0, "told gaussian")]
    records = [record("keys", "1000 private keys", who, "shown", value, note=note) for who, value, note in shown]
    assert verdict("1000 private keys: shown", *records) is False


def test_the_page_shows_values_failures_versions_and_the_machine():
    text = page.page(
        results(
            record("groupby7", TEN_MILLION, "tacit", "seconds", 0.5, facts={"mebibytes": 1024.0}),
            record("groupby7", TEN_MILLION, "opendp", "seconds", None, failed="more than 300 s"),
            record("groupby7", TEN_MILLION, "smartnoise-sql", "seconds", None, failed="MemoryError"),
        )
    )
    for said in ("| Tacit | 500 ms |", "| OpenDP | > 300 s | 600 |", "MemoryError", "opendp 1.2.3", "a processor"):
        assert said in text


def test_a_subject_with_a_machine_of_its_own_says_so():
    kept = results(record("noise", "Laplace, 10", "tacit", "seconds a draw", 1.0))
    kept["subjects"]["learning"] = {"date": "2026-01-02 00:00 UTC", "machine": {**kept["machine"], "cores": 64}}
    assert "on 2 cores (a processor), 4 GiB, Python 3.11; learning on 64 cores" in page.page(kept)


def test_the_page_that_is_kept_is_the_one_the_kept_results_make():
    kept = json.loads((PROJECT / "docs" / "benchmarks" / "results.json").read_text())
    assert (PROJECT / "docs" / "benchmarks.md").read_text() == page.page(kept)


def test_what_the_readme_quotes_is_what_the_kept_results_say():
    kept = json.loads((PROJECT / "docs" / "benchmarks" / "results.json").read_text())
    words, readme = quoted(Figures(tuple(kept["records"]))), (PROJECT / "README.md").read_text()
    assert not words or BEGIN + words + END in readme


def test_a_quote_replaces_the_one_before_and_nothing_else(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{BEGIN}old\n{END}after\n")
    times = {"tacit": 1.0, "tacit, in SQL": 5.0, "duckdb, by person": 2.0, "opendp": 60.0}
    records = [
        record(subject, case, library, "seconds", value)
        for subject, case in (("groupby6", "1,000,000 rows, 1,000 public keys"), ("groupby7", TEN_MILLION))
        for library, value in times.items()
    ]
    draws = [
        ("discrete Laplace, 10", "tacit", 1.0),
        ("discrete Laplace, 10", "opendp", 300.0),
        ("Laplace, 10", "numpy", 2.0),
    ]
    records += [record("noise", case, library, "seconds a draw", value) for case, library, value in draws]
    quote(Figures(tuple(records)), readme)
    text = readme.read_text()
    assert text.startswith(f"before\n{BEGIN}A grouped count")
    assert text.endswith(f"{END}after\n")
    for said in ("takes 0.5 times", "OpenDP takes 60 times", "2 times DuckDB's", "take 300 times"):
        assert said in " ".join(text.split())


def test_a_subject_that_is_half_measured_has_its_half_on_the_page():
    half = Figures((record("local", "response, 100 values", "tacit", "make", 1e-8),))
    assert "100,000,000" in "".join(sections.local(half))


def test_every_kept_record_is_of_a_subject_that_can_be_measured_again():
    kept = json.loads((PROJECT / "docs" / "benchmarks" / "results.json").read_text())
    assert {each["subject"] for each in kept["records"]} <= set(SUBJECTS)


def test_a_chart_has_a_bar_and_its_words_for_each_value():
    made = chart(
        "t", [Panel("p", (Bar("a", 1.0, "one", "red"), Bar("b", 10.0, "ten", "grey")))], logarithmic=True, columns=1
    )
    (panel,) = made["concat"]
    assert [row["text"] for row in panel["data"]["values"]] == ["one", "ten"]
    assert panel["layer"][0]["encoding"]["y"]["scale"]["domain"] == ["a", "b"]


def test_every_peer_has_its_version_pinned():
    for name in environments.NAMES:
        text = (PROJECT / "bench" / "peers" / "requirements" / f"{name}.txt").read_text()
        assert environments.version(name, text)
        assert all("==" in line or line.startswith("#") for line in text.split("\n") if line)


def test_two_libraries_on_spark_have_one_version_of_it():
    pinned = environments.requirements(environments.TUMULT_ON_SPARK)
    assert f"pyspark=={environments.version('pyspark', pinned)}" in environments.requirements(
        environments.OURS_ON_SPARK
    )
    libraries = {"tacit, on Spark": 1.0, "tmlt.analytics": 9.0}
    label = f"on one Spark, {TEN_MILLION}, processor time against Tumult"
    for notes, wanted in ((("Spark 4", "Spark 4"), True), (("Spark 4", "Spark 3"), None)):
        records = [
            record("spark7", TEN_MILLION, library, "processor seconds", value, note=note)
            for (library, value), note in zip(libraries.items(), notes, strict=True)
        ]
        assert verdict(label, *records) is wanted


def test_a_python_is_found_or_it_is_said_which_is_missing(monkeypatch, tmp_path):
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert environments.python_named(version) == sys.executable
    with pytest.raises(environments.NotInstalled, match=r"needs Python 3\.99 with venv"):
        environments.python_named("3.99")
    kept = tmp_path / "versions" / "3.99.1" / "bin" / "python"
    kept.parent.mkdir(parents=True)
    kept.write_text("#!/bin/sh\necho 3.99\n")
    kept.chmod(0o755)
    assert environments.python_named("3.99") == str(kept)


def test_lines_of_code_are_neither_empty_nor_comments():
    assert code_lines("import a\n\n# a comment\nx = (\n    1\n)\n") == 4
    assert code_lines('"""What it is for."""\n\nimport a\n') == 1


def test_a_process_that_fails_is_named_by_its_error(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("raise KeyError('x')")
    assert ask(our_python(), str(script), timeout=600).failed == "KeyError"
    assert reason("", -9) == "killed"


def test_a_process_that_takes_too_long_is_ended(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import time; time.sleep(60)")
    assert ask(our_python(), str(script), timeout=0.5).failed.startswith("more than")


def test_what_a_process_prints_last_is_what_it_says(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("print('noise'); print('{\"x\": 1.5}')")
    assert ask(our_python(), str(script), timeout=600).facts == {"x": 1.5}


def test_what_an_installer_says_of_its_hosts_stays_off_the_page(capsys):
    said = "import sys; sys.exit('cannot reach https://packages.example/simple')"
    with pytest.raises(environments.NotInstalled) as told:
        environments.run([our_python(), "-c", said])
    assert "example" not in str(told.value)
    assert "packages.example" in capsys.readouterr().err


def test_a_peer_that_is_not_installed_is_named_in_each_table_that_it_would_be_in(monkeypatch):
    def missing(name):
        raise environments.NotInstalled("its installer ended with exit code 1")

    monkeypatch.setattr(environments, "environment", missing)
    monkeypatch.setattr("bench.peers.subjects.write_undeclared", lambda _: None)
    found = [asdict(each) for each in SUBJECTS["bounds"](["pipeline-dp", "opendp"])]
    assert [(each["case"], each["library"]) for each in found] == [
        ("count by item", "pipeline-dp"),
        ("sum of all", "opendp"),
    ]
    text = "".join(sections.bounds(Figures(found)))
    assert "| PipelineDP | not installed: its installer ended with exit code 1 |  |  |" in text


def test_a_table_that_is_not_here_says_where_it_is_published(monkeypatch, tmp_path):
    monkeypatch.delenv(tables.DATA, raising=False)
    for name in ("retail", "adult"):
        with pytest.raises(tables.NoTable, match=r"TACIT_BENCH_DATA names no folder that has .* Repository"):
            tables.write(name, tmp_path)
