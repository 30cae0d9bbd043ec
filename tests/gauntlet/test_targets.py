"""The table of seams: every place it names is there, and bugs planted in a seam's places are gone afterwards."""

import ast
from pathlib import Path

import pytest

import tacit_gauntlet
from tacit.errors import InvalidParameter
from tacit_gauntlet.targets import TARGETS, original, places_of, planted, replaced

PACKAGE = Path(tacit_gauntlet.__file__).parent


def test_every_place_of_a_seam_is_there():
    gone = []
    for seam in TARGETS:
        try:
            gone += [f"{seam}: {name}" for owner, name in places_of(seam) if name not in vars(owner)]
        except Exception as error:  # of a module that fails to load, too
            gone.append(f"{seam}: {error}")
    assert not gone, "\n".join(gone)


def test_every_seam_is_used():
    used = {
        node.value
        for path in PACKAGE.rglob("*.py")
        if not path.name.endswith("targets.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant)
    }
    assert set(TARGETS) <= used


def test_a_bug_is_planted_in_every_place_and_then_gone():
    places = places_of("link")
    before = [vars(owner)[name] for owner, name in places]
    assert len(places) > 1
    with planted("link", len):
        assert [vars(owner)[name] for owner, name in places] == [len] * len(places)
    assert [vars(owner)[name] for owner, name in places] == before


def test_the_original_is_what_stood_there_before_any_bug():
    real = original("Laplace.release")
    with planted("Laplace.release", len), planted("Laplace.release", max):
        assert original("Laplace.release") is real
    assert original("Laplace.release") is real


def test_what_is_planted_is_gone_after_an_error():
    real = original("Laplace.release")
    with pytest.raises(ZeroDivisionError), planted("Laplace.release", len):
        raise ZeroDivisionError
    assert original("Laplace.release") is real


@pytest.mark.parametrize("target", ["tacit.errors:moved_away", "tacit.noise.bits:Keystream.moved_away"])
def test_a_place_that_moved_is_an_error_that_says_where_to_look(monkeypatch, target):
    monkeypatch.setitem(TARGETS, "moved", target)
    with pytest.raises(InvalidParameter, match=r"defines no 'moved_away'(.|\n)*targets\.py"):
        places_of("moved")


def test_a_seam_that_is_not_in_the_table_is_refused():
    with pytest.raises(InvalidParameter, match=r"no seam 'nowhere'"), planted("nowhere", None):
        pass


def test_an_inherited_name_is_no_place_of_a_class():
    class Parent:
        name = 1

    class Child(Parent): ...

    with pytest.raises(InvalidParameter, match="defines no 'name'"), replaced(Child, "name", 2):
        pass
