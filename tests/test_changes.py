"""What has changed, and which tests are near it."""

import subprocess

import pytest

from tests import changes
from tests.near import paths_near


@pytest.fixture
def project(tmp_path):
    """A project with a commit on main, and a way to run git in it."""

    def git(*words):
        who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-b", "main")
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
        git("add", "-A")
        git("commit", "-m", name)
    return tmp_path, git


def test_on_main_the_last_commit_has_changed(project):
    path, _ = project
    assert changes._look(path) == {"two"}
    (path / "three").write_text("not committed")
    assert changes._look(path) == {"two", "three"}


def test_on_a_branch_all_that_differs_from_where_it_left_main(project):
    path, git = project
    git("checkout", "-b", "other")
    (path / "three").write_text("")
    git("add", "-A")
    git("commit", "-m", "three")
    (path / "one").unlink()
    git("checkout", "main")
    (path / "four").write_text("")
    git("add", "four")
    git("commit", "-m", "four")
    git("checkout", "other")
    assert changes._look(path) == {"one", "three"}


def test_without_git_nothing_has_changed(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert changes._look(tmp_path) == set()
    monkeypatch.setenv("PATH", "")
    assert changes._look(tmp_path) == set()


def test_near_a_room_are_its_tests_and_its_own_examples():
    found = paths_near(frozenset({"src/tacit/noise/laplace.py", "src/tacit/exact.py", "tests/plan/test_split.py"}))
    assert {"tests/noise", "tests/test_exact.py", "src/tacit/noise/laplace.py", "tests/plan/test_split.py"} <= set(
        found
    )
    assert "tests/test_tidy.py" in found
    assert not {"tests/plan", "tests/engine", "tests/exact"} & set(found)


def test_a_file_whose_folder_is_run_is_not_run_twice():
    assert "tests/noise/test_bits.py" not in paths_near(
        frozenset({"src/tacit/noise/laplace.py", "tests/noise/test_bits.py"})
    )


def test_what_tests_of_a_folder_share_brings_the_folder_and_what_is_gone_brings_nothing():
    assert "tests/server" in paths_near(frozenset({"tests/server/conftest.py"}))
    assert paths_near(frozenset({"tests/gone/test_gone.py", "src/tacit/gone/gone.py"})) == paths_near(frozenset())


def test_every_room_has_tests():
    rooms = [path.name for path in (changes.PROJECT / "src" / "tacit").iterdir() if (path / "__init__.py").exists()]
    without = [room for room in rooms if len(paths_near(frozenset({f"src/tacit/{room}/__init__.py"}))) < 4]
    assert not without, f"name the tests of {', '.join(without)} in TESTS_OF"
