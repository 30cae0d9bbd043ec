"""The attacks' pictures: each says in words what its axes and lines are, and is written in the form asked for."""

from importlib import import_module

import pytest

from tacit.errors import InvalidParameter
from tacit_classroom.attacks import average, difference, membership, name_and_shame
from tacit_classroom.attacks.reconstruction import (
    BUDGET,
    DIRECT,
    EXACT,
    K_ANONYMOUS,
    SMALL_NOISE,
    Reconstruction,
    ReconstructionPoint,
)


def rebuilt() -> Reconstruction:
    """A result with a line for everyone who answers."""
    by_questions = tuple(
        ReconstructionPoint(answers, at, share)
        for answers in (EXACT, K_ANONYMOUS, SMALL_NOISE, BUDGET)
        for at, share in ((2.0, 0.5), (20.0, 0.9))
    )
    by_epsilon = tuple(ReconstructionPoint(answers, at, 0.6) for answers in (BUDGET, DIRECT) for at in (0.1, 1.0, 10.0))
    return Reconstruction(
        people="made-up streets",
        rows=200,
        told_apart=1.0,
        questions=20,
        epsilon=1.0,
        k=5,
        spread=2,
        seed=1,
        baseline=0.5,
        bound=0.73,
        recovered=(),
        curve_rows=200,
        by_questions=by_questions,
        by_epsilon=by_epsilon,
    )


PICTURES = {
    "reconstruct": (
        rebuilt,
        ["secrets recovered", "questions asked", "ε of the whole budget", "guessing without answers"],
    ),
    "average": (lambda: average(repeats=10), ["times asked", "typical error", "the budget ends"]),
    "difference": (lambda: difference(streets=20), ["first count minus the second", "the person is in debt"]),
    "membership": (lambda: membership(members=10, facts=10, trials=20), ["advantage over a coin", "the most any"]),
    "name-and-shame": (lambda: name_and_shame(rows=100, runs=10), ["some row is published", "are refused from"]),
}


@pytest.fixture(autouse=True)
def one_release(monkeypatch):
    """Ask for the averages of many facts once at each epsilon: what is measured is not at stake here."""
    monkeypatch.setattr(import_module("tacit_classroom.attacks.members"), "RELEASES", 1)


@pytest.mark.parametrize(("made", "words"), PICTURES.values(), ids=PICTURES)
def test_a_picture_says_in_words_what_it_shows(made, words, tmp_path):
    drawn = made().plot(tmp_path / "attack.svg").read_text()
    assert drawn.startswith("<svg")
    missing = [word for word in words if word not in drawn]
    assert not missing


def test_a_picture_is_written_in_the_form_its_name_asks_for(tmp_path):
    found = rebuilt()
    assert found.plot(tmp_path / "attack.png").read_bytes().startswith(b"\x89PNG")
    page = found.plot(str(tmp_path / "attack.html")).read_text()
    assert "vega" in page
    assert 'src="http' not in page  # it needs no network
    with pytest.raises(InvalidParameter, match=r"\.png"):
        found.plot(tmp_path / "attack.doc")
