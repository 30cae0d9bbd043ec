"""The notebooks of the course run from top to bottom as they are written, and what they claim is true."""

import contextlib
import io
import json
import re

import pytest

from tacit.errors import InvalidParameter
from tacit_classroom.course import check, claim, lessons, notebook, teaching, write

NAMES = list(lessons())
# What the course must show a number of (the notes' claims); R4, D1 and P1 are shown in words.
CLAIMS = re.findall(r"\w\d", "R1 R2 R3 L1 L2 L3 L4 D1 D2 D3 D4 G1 P2 P3 P5 S1 S2 A1 M1")


def run(name):
    """Run a lesson's cells as a kernel would; return what they print."""
    shown, space = io.StringIO(), {"__name__": "__main__"}
    for cell in notebook(lessons()[name])["cells"]:
        if cell["cell_type"] == "code":
            with contextlib.redirect_stdout(shown):
                exec(compile(cell["source"], name, "exec"), space)
    return shown.getvalue()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name.startswith(("01", "10")) else pytest.mark.far) for name in NAMES]
)
@pytest.mark.filterwarnings("ignore")
def test_a_notebook_runs_as_it_is_and_its_solutions_are_right(name):
    shown = run(name)
    exercises = lessons()[name].count("\ncheck(")
    solutions = lessons()[name].count("assert check(")
    assert exercises >= 1
    assert solutions >= exercises
    assert shown.count("not yet") + shown.count("not right") >= 1  # an exercise is not solved by itself
    assert len(re.findall(r"^right$", shown, re.MULTILINE)) >= solutions


def test_there_are_twelve_and_they_show_every_claim():
    assert [name[:2] for name in NAMES] == [f"{number:02}" for number in range(1, 13)]
    together = "".join(lessons().values())
    assert not [each for each in CLAIMS if not re.search(rf'claim\(\s*f?"{each}', together)]


def test_a_claim_that_is_not_true_stops_the_notebook():
    with pytest.raises(AssertionError, match="L1: the notes have 2"):
        claim("L1", 2, 2.1)


def test_an_exercise_is_right_only_if_it_is():
    assert check(3.01, 3.0)
    assert not check(4, 3.0)
    assert not check(None, 3.0)
    assert not check("three", 3.0)


def test_chalk_can_be_repeated_and_follows_its_laws():
    assert [teaching(seed=3).laplace(0, scale=2) for _ in range(2)] == [teaching(seed=3).laplace(0, scale=2)] * 2
    board = teaching(seed=1)
    draws = [board.laplace(0, scale=2) for _ in range(20_000)]
    assert sum(map(abs, draws)) / 20_000 == pytest.approx(2, rel=0.05)
    with pytest.raises(InvalidParameter, match="whole number"):
        teaching(seed=None)


def test_they_are_written_as_notebooks_and_never_over_a_file(tmp_path):
    paths = write(tmp_path / "course")
    assert [path.suffix for path in paths] == [".ipynb"] * 12 + [".md"]
    for path in paths[:-1]:
        assert json.loads(path.read_text())["nbformat"] == 4
    with pytest.raises(InvalidParameter, match="exists already"):
        write(tmp_path / "course")


@pytest.mark.far
def test_the_first_notebook_runs_in_a_kernel(tmp_path):
    import nbformat
    from nbclient import NotebookClient

    path = write(tmp_path)[0]
    NotebookClient(nbformat.read(path, as_version=4), timeout=300, kernel_name="python3").execute()
