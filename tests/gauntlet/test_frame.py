"""The gauntlet's frame itself can fail: on a tiny case and tiny bugs that live only here."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from tacit.errors import InvalidParameter
from tacit_gauntlet.frame import case as cases
from tacit_gauntlet.frame import mutant as mutants
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.frame.mutant import mutant, run_mutant
from tacit_gauntlet.targets import replaced

# A product of one function: it rounds a count to tens, so that a single person is hidden (badly, but it is small).
product = SimpleNamespace(__name__="product", release=lambda count: count // 10 * 10)


@pytest.fixture(autouse=True)
def tiny_gauntlet(monkeypatch):
    """A registry of its own with one case; the real one is untouched."""
    monkeypatch.setattr(cases, "_cases", {})
    monkeypatch.setattr(mutants, "_mutants", {})

    @case("X01", title="one person more does not show", feature="product")
    def one_person_more(size: Size) -> Evidence:
        tries = 5 if size == "quick" else 9
        seen = [count for count in range(tries) if product.release(count) != product.release(count + 1)]
        return Evidence(passed=not seen, details={"counts that gave it away": seen})


def plant_release(replacement):
    @contextmanager
    def plant() -> Iterator[None]:
        with replaced(product, "release", replacement):
            yield

    return plant


def test_a_case_passes_on_sound_code_and_reports_its_figures():
    report = cases.run("X01")
    assert report.passed
    assert report.in_time
    assert str(report).splitlines()[1] == "    counts that gave it away: []"


def test_a_planted_bug_is_killed_and_then_gone():
    mutant("exact", killed_by="X01", published="everywhere")(plant_release(lambda count: count))
    verdict = run_mutant("exact")
    assert verdict.killed
    assert "[0, 1, 2, 3, 4]" in verdict.how
    assert cases.run("X01").passed


def divide(count: int) -> int:
    raise ZeroDivisionError(f"scale {count}")


def test_a_bug_that_is_noticed_by_its_error_is_killed_and_how_is_recorded():
    mutant("raises", killed_by="X01", published="here", raises="ZeroDivisionError: scale")(plant_release(divide))
    verdict = run_mutant("raises")
    assert verdict.killed
    assert verdict.how == "raised ZeroDivisionError: scale 0"
    assert product.release(17) == 10


@pytest.mark.parametrize("raises", ["", "ValueError", "ZeroDivisionError: the noise"])
def test_an_error_that_the_bug_does_not_name_is_no_kill(raises):
    mutant("raises", killed_by="X01", published="here", raises=raises)(plant_release(divide))
    verdict = run_mutant("raises")
    assert not verdict.killed
    assert verdict.how == "does not fit the code: raised ZeroDivisionError: scale 0"


def test_a_bug_whose_code_no_longer_fits_has_not_been_tried():
    mutant("two arguments", killed_by="X01", published="here")(plant_release(lambda count, scale: count))
    verdict = run_mutant("two arguments")
    assert not verdict.killed
    assert verdict.how.startswith("does not fit the code: raised TypeError")


def test_a_harmless_change_survives_so_the_runner_can_say_so():
    mutant("harmless", killed_by="X01", published="nowhere")(plant_release(lambda count: 0))
    verdict = run_mutant("harmless")
    assert not verdict.killed
    assert "SURVIVED X01" in str(verdict)


def test_a_mutant_that_no_longer_fits_the_code_is_an_error_not_a_kill():
    @mutant("stale", killed_by="X01", published="long ago")
    @contextmanager
    def stale() -> Iterator[None]:
        with replaced(product, "renamed_since", None):
            yield

    with pytest.raises(InvalidParameter, match="renamed_since"):
        run_mutant("stale")


def test_the_full_size_reaches_the_case():
    mutant("late", killed_by="X01", published="here")(plant_release(lambda count: count // 7))
    assert not run_mutant("late", "quick").killed
    assert run_mutant("late", "full").killed


@pytest.mark.parametrize("run", [cases.run, run_mutant])
def test_an_unknown_name_is_refused_with_the_list(run):
    with pytest.raises(InvalidParameter, match=r"hint: the (cases|mutants) are"):
        run("X99")


def test_an_id_is_given_once():
    with pytest.raises(InvalidParameter, match="X01"):
        case("X01", title="another", feature="product")(lambda size: Evidence(passed=True))
