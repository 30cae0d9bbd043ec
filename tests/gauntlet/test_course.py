"""The course runs each case in a process of its own: what one does, fails or leaves behind is its own affair."""

import os
import time

import pytest

from tacit.errors import InvalidParameter
from tacit_gauntlet.frame.case import find
from tacit_gauntlet.frame.course import Job, job_of_case, job_of_mutant, run_course
from tacit_gauntlet.frame.mutant import all_mutants

pytestmark = pytest.mark.usefixtures("tiny_gauntlet")


def course_of(*ids, **words):
    """What became of each case, by id."""
    jobs = [job_of_case(find(id), "quick") for id in ids]
    return {finding.job.name: finding for finding in run_course(jobs, workers=2, **words)}


def test_a_crash_an_error_and_a_failure_are_each_the_failure_of_their_case_alone():
    found = course_of("N91", "N92", "S91", "L91")
    assert {id: finding.passed for id, finding in found.items()} == {
        "N91": True,
        "N92": False,
        "S91": False,
        "L91": False,
    }
    assert found["N91"].figures == {"tries": 5}
    assert found["N92"].figures == {"rows seen": "{1}", "where": "a"}
    assert found["S91"].how == "raised ZeroDivisionError: scale 0"
    assert found["L91"].how == "crashed (signal 9) last words"


def test_a_case_that_hangs_is_ended_and_has_failed(tmp_path, monkeypatch):
    monkeypatch.setenv("TINY_CHILD", str(tmp_path / "child"))
    found = course_of("L92", patience=1)
    assert not found["L92"].passed
    assert found["L92"].how == "hung: ended after 1 s"


def test_stopping_early_ends_what_is_running_and_all_it_started(tmp_path, monkeypatch):
    monkeypatch.setenv("TINY_CHILD", str(tmp_path / "child"))
    running = run_course([job_of_case(find(id), "quick") for id in ("L92", "N91")], workers=2)
    assert next(running).job.name == "N91"
    while not (tmp_path / "child").exists() or not (tmp_path / "child").read_text():
        time.sleep(0.05)
    running.close()
    assert is_gone(int((tmp_path / "child").read_text()))


def is_gone(process: int) -> bool:
    """Whether a process has ended, give or take the moment until it is reaped."""
    for _ in range(1200):
        try:
            with open(f"/proc/{process}/stat") as stat:
                if stat.read().rpartition(")")[2].split()[0] == "Z":
                    return True
            os.kill(process, 0)
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize(("engine", "kernel"), [("duckdb", "off"), ("kernel", "")])
def test_a_case_has_a_folder_of_its_own_and_the_path_that_was_chosen(engine, kernel):
    looked = course_of("L93", engine=engine)["L93"]
    assert looked.passed
    assert looked.figures["kernel"] == kernel
    assert not os.path.exists(looked.figures["home"])


def test_a_bug_is_killed_survives_or_does_not_fit():
    jobs = [job_of_mutant(bug, find(bug.killed_by)) for bug in all_mutants()]
    found = {finding.job.name: finding for finding in run_course(jobs, workers=2)}
    assert found["exact"].passed
    assert found["harmless"].how == "the case passed"
    assert not found["stale"].passed
    assert found["stale"].how.startswith("could not be planted: InvalidParameter")


@pytest.mark.parametrize(("words", "match"), [({"workers": 0}, "workers"), ({"engine": "abacus"}, "duckdb, kernel")])
def test_what_cannot_be_run_is_refused(words, match):
    with pytest.raises(InvalidParameter, match=match):
        list(run_course([Job("case", "N91", "quick", ())], **({"workers": 1} | words)))
