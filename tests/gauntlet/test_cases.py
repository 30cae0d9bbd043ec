"""The gauntlet: every case passes on our code, and every published bug, planted, is killed by its case."""

import pytest

import tacit_gauntlet as gauntlet
from tacit_gauntlet.frame.case import all_cases, run
from tacit_gauntlet.frame.mutant import all_mutants, run_mutant
from tacit_gauntlet.frame.waiting import waiting
from tests.changes import changed_files, today
from tests.gauntlet.turns import planted_on

gauntlet.load()

CASES = [case.id for case in all_cases()]
NOW = planted_on(today(), all_mutants(), changed_files())
MUTANTS = [pytest.param(mutant.name, marks=() if mutant.name in NOW else pytest.mark.slow) for mutant in all_mutants()]


@pytest.mark.parametrize("id", CASES)
def test_case_passes(id: str):
    report = run(id, "quick")
    assert report.passed, str(report)


@pytest.mark.slow
@pytest.mark.parametrize("id", CASES)
def test_case_passes_at_full_size(id: str):
    report = run(id, "full")
    assert report.passed, str(report)


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_killed(name: str):
    verdict = run_mutant(name, "quick")
    assert verdict.killed, str(verdict)


def test_every_case_can_fail_since_some_mutant_names_it():
    killers = {mutant.killed_by for mutant in all_mutants()}
    without = [id for id in CASES if id[:3] not in killers]  # parts share a mutant: L03b has L03's
    assert not without, f"plant a bug for each of {', '.join(without)}"


def test_a_case_runs_or_waits_for_something_that_is_named():
    waits = waiting(CASES)
    assert not {each.id for each in waits} & set(CASES)
    assert all(each.needs for each in waits)
