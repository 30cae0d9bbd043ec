"""Planted bugs by turns: each case's first bug within four days, and whatever has to do with a changed file at once."""

from datetime import date, timedelta

import tacit_gauntlet
from tacit_gauntlet.frame.case import all_cases
from tacit_gauntlet.frame.mutant import all_mutants
from tests.changes import PROJECT
from tests.gauntlet.turns import TURNS, concerns, files_of, first_bugs, planted_on, seams_of

tacit_gauntlet.load()
BUGS = all_mutants()
DAY = date(2026, 12, 30)


def test_the_first_bug_of_every_case_is_planted_once_in_eight_days():
    planted = [planted_on(DAY + timedelta(days=at), BUGS, ()) for at in range(TURNS)]
    assert sum(map(len, planted)) == len(set().union(*planted))
    assert set().union(*planted) == set(first_bugs(BUGS).values())
    assert {bug.killed_by for bug in BUGS if bug.name in set().union(*planted)} == {bug.killed_by for bug in BUGS}


def test_all_bugs_of_a_place_that_changed_are_planted_on_every_day():
    concerned = {bug.name for bug in BUGS if "DiscreteLaplace.draw" in seams_of(bug)}
    assert len(concerned) > 1
    for at in range(TURNS):
        day = DAY + timedelta(days=at)
        assert concerned <= planted_on(day, BUGS, {"src/tacit/noise/laplace.py"})
        assert not concerned <= planted_on(day, BUGS, ())


def test_a_bug_is_planted_when_its_own_code_or_its_case_changes():
    bug = next(each for each in BUGS if each.name == "clip dropped")
    assert concerns(bug, {"gauntlet/src/tacit_gauntlet/tables/mutants.py"})
    case = next(each for each in all_cases() if each.id == bug.killed_by)
    assert concerns(bug, {f"gauntlet/src/{case.attack.__module__.replace('.', '/')}.py"})
    assert not concerns(bug, {"src/tacit/pictures/chart.py", "README.md"})


def test_every_bug_has_files_that_exist():
    wrong = {bug.name: missing for bug in BUGS if (missing := [f for f in files_of(bug) if not (PROJECT / f).exists()])}
    assert wrong == {}
    assert [bug.name for bug in BUGS if not any(path.startswith("src/") for path in files_of(bug))] == []
