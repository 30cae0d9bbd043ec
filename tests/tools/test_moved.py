"""tools/moved.py tells a move from a change: planted repositories of two commits, one for each thing that may be."""

import os
import subprocess

import pytest

from tools.moved import main

LAW = "def law(x):\n    '''Double.'''\n    return twice(x) + 1\n\n\ndef twice(x):\n    return x * 2\n"
USER = "from tacit.noise.law import law\n\n\ndef use(y):\n    return law(y)\n"
BEFORE = {"src/tacit/noise/law.py": LAW, "src/tacit/plan/use.py": USER}


def repository(folder, before, after):
    """Return a repository whose two commits, tagged before and after, hold these files."""
    told = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "HOME": str(folder)}
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")

    def git(*words):
        subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True, env=os.environ | told)

    git("init", "-q")
    for tag, files in (("before", before), ("after", after)):
        git("rm", "-rfq", "--ignore-unmatch", ".")
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        git("add", "-A")
        git("commit", "-qm", tag)
        git("tag", tag)
    return folder


@pytest.fixture
def compared(tmp_path, capsys):
    """Compare what was with what is, and return the exit code and what is printed."""

    def run(after, *words, before=BEFORE):
        folder = repository(tmp_path, before, after)
        code = main(["before", "after", "--list", "--repository", str(folder), *words])
        return code, capsys.readouterr().out

    return run


def test_what_moved_is_the_same(compared):
    moved = {"src/tacit/law.py": LAW, "src/tacit/plan/use.py": USER.replace("tacit.noise.law", "tacit.law")}
    code, shown = compared(moved)
    assert code == 0
    assert "1 the same, where they were" in shown
    assert "2 the same, moved" in shown
    assert "tacit.noise.law -> tacit.law (2)" in shown


def test_what_moved_to_the_gauntlet_s_own_source_is_found_there(compared):
    code, shown = compared(BEFORE | {"gauntlet/src/tacit_gauntlet/law.py": LAW} | {"src/tacit/noise/law.py": ""})
    assert "tacit.noise.law -> tacit_gauntlet.law" in shown
    assert code == 1  # `use` now imports what is not there


def test_a_renamed_function_and_its_callers_are_the_same(compared):
    renamed = {"src/tacit/noise/law.py": LAW.replace("twice", "doubled").replace("x", "value")}
    code, shown = compared(BEFORE | renamed)
    assert code == 0
    assert "2 the same but for names" in shown
    assert "twice -> doubled (2)" in shown
    assert "x -> value" in shown


def test_an_alias_of_a_module_and_the_name_itself_are_the_same(compared):
    alias = USER.replace("noise.law import law", "noise import law").replace("law(y)", "law.law(y)")
    code, shown = compared(BEFORE | {"src/tacit/plan/use.py": alias})
    assert (code, "3 the same, where they were" in shown) == (0, True)


def test_equal_definitions_may_become_one(compared):
    two = BEFORE | {"src/tacit/plan/use.py": USER.replace("from tacit.noise.law import law\n", LAW)}
    code, shown = compared(BEFORE, before=two)
    assert (code, "2 merged into an equal one" in shown) == (0, True)


CHANGES = {
    "another number": ("x * 2", "x * 3"),
    "another sign": ("+ 1", "- 1"),
    "another function of the same form": ("twice(x) +", "thrice(x) +"),
    "a default": ("def twice(x)", "def twice(x=0)"),
    "a line more": ("    return x * 2", "    x += 0\n    return x * 2"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_changed_is_named(compared, what):
    both = BEFORE | {"src/tacit/noise/law.py": LAW + "\n\ndef thrice(x):\n    return x * 5\n"}
    changed = both["src/tacit/noise/law.py"].replace(*CHANGES[what])
    code, shown = compared(both | {"src/tacit/noise/law.py": changed}, before=both)
    assert code == 1
    assert "1 changed, 0 gone, 0 new" in shown
    assert "tacit.noise.law:" in shown.partition("\nchanged\n")[2].partition("\ngone")[0]


def test_names_that_changed_places_are_a_change(compared):
    ends = "def width(range):\n    return range.high - range.low\n"
    code, shown = compared(
        {"src/tacit/a.py": ends.replace("high - range.low", "low - range.high")}, before={"src/tacit/a.py": ends}
    )
    assert (code, "1 changed" in shown) == (1, True)


def test_the_same_letters_that_mean_another_thing_are_a_change(compared):
    """Two files have a `_part` each; merged, one of them is lost and the other's caller calls it."""
    first = "def one():\n    return _part()\n\n\ndef _part():\n    return 1\n"
    second = first.replace("one", "two").replace("return 1", "return 2")
    merged = first + "\n\n" + second.partition("\n\n\n")[0] + "\n"
    code, shown = compared({"src/tacit/ab.py": merged}, before={"src/tacit/a.py": first, "src/tacit/b.py": second})
    assert code == 1
    assert "tacit.b:two -> tacit.ab:two: '_part' of tacit.b is now '_part' of tacit.ab" in shown


def test_a_value_and_a_field_are_compared_too(compared):
    before = {"src/tacit/a.py": "LIMIT, LEAST = 5, 1\n\n\nclass A:\n    size: int = 3\n"}
    after = {"src/tacit/a.py": before["src/tacit/a.py"].replace("5", "6").replace("3", "4")}
    code, shown = compared(after, before=before)
    assert (code, "2 changed" in shown) == (1, True)


def test_docstrings_count_when_that_is_asked(compared):
    after = BEFORE | {"src/tacit/noise/law.py": LAW.replace("Double.", "Twice.")}
    assert compared(after)[0] == 0


def test_docstrings_that_differ_are_a_change_when_that_is_asked(compared):
    after = BEFORE | {"src/tacit/noise/law.py": LAW.replace("Double.", "Twice.")}
    assert compared(after, "--docstrings")[0] == 1


def test_what_was_expected_to_change_is_no_fault(compared, tmp_path_factory):
    listed = tmp_path_factory.mktemp("lists") / "changed.txt"
    listed.write_text("tacit.noise.law:twice\n")
    after = BEFORE | {"src/tacit/noise/law.py": LAW.replace("x * 2", "x + x")}
    assert compared(after, "--expect-changed", str(listed))[0] == 0


def test_what_was_not_expected_is_listed(compared, tmp_path_factory):
    listed = tmp_path_factory.mktemp("lists") / "changed.txt"
    listed.write_text("tacit.noise.law:law\n")
    code, shown = compared({"src/tacit/noise/law.py": LAW.replace("x * 2", "x + x")}, "--expect-changed", str(listed))
    assert code == 1
    assert shown.endswith("not expected\n  tacit.noise.law:twice\n  tacit.plan.use:use\n")


def test_a_rename_to_a_name_that_was_there_needs_to_be_said(compared):
    before = {"src/tacit/a.py": "def f(a):\n    return a.insist\n\n\ndef g(a):\n    return a.large\n"}
    after = {"src/tacit/a.py": before["src/tacit/a.py"].replace("insist", "large")}
    assert compared(after, before=before)[0] == 1


def test_a_rename_that_is_said_is_believed(compared):
    before = {"src/tacit/a.py": "def f(a):\n    return a.insist\n\n\ndef g(a):\n    return a.large\n"}
    after = {"src/tacit/a.py": before["src/tacit/a.py"].replace("insist", "large")}
    assert compared(after, "--rename", "insist=large", before=before)[0] == 0
