"""The gauntlet: every case passes on our code, and every published bug, planted, is killed by its case."""

import pytest

import tacit_gauntlet as gauntlet
from tacit_gauntlet.frame.case import all_cases, run
from tacit_gauntlet.frame.mutant import all_mutants, run_mutant
from tacit_gauntlet.frame.waiting import waiting

gauntlet.load()

CASES = [case.id for case in all_cases()]
# One planted bug for each case shows at once that the case can fail; `make slow` plants all of them.
FIRST = {mutant.killed_by: mutant.name for mutant in reversed(list(all_mutants()))}
MUTANTS = [
    pytest.param(mutant.name, marks=() if FIRST[mutant.killed_by] == mutant.name else pytest.mark.slow)
    for mutant in all_mutants()
]


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


@pytest.mark.parametrize("id", CASES)
def test_case_can_fail_since_some_mutant_names_it(id: str):
    parts_share_a_mutant = id[:3]  # L03b has L03's
    assert any(mutant.killed_by == parts_share_a_mutant for mutant in all_mutants()), f"{id} has no mutant; plant one"


def test_a_case_runs_or_waits_for_something_that_is_named():
    waits = waiting(CASES)
    assert not {each.id for each in waits} & set(CASES)
    assert all(each.needs for each in waits)
