"""The picture of a trade-off: a line for every mechanism that has one, with the words to read it by."""

from dataclasses import replace
from pathlib import Path

import pytest

from tacit.local import tradeoffs
from tacit.local.tradeoffs import CENTRAL_LAPLACE, LOCAL, LOOKS, SHUFFLED, points, tradeoff


@pytest.fixture(autouse=True)
def three_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three points a line are as good as thirteen for what is tested here."""
    monkeypatch.setattr(tradeoffs, "POINTS", 3)


def test_a_picture_says_in_words_what_it_shows(tmp_path: Path) -> None:
    drawn = tradeoff("counts", people=10_000, epsilon=1, k=10).plot(tmp_path / "a.svg").read_text()
    for words in ("The value of people at ε = 1", "10 counts; 95 % of the time within", "people", "error", *LOOKS):
        assert words in drawn
    asked = tradeoff("mean", people=100, error=0.1).plot(tmp_path / "b.svg").read_text()
    assert "The ε that an error of 10 % takes" in asked


def test_more_people_err_less_by_every_mechanism() -> None:
    drawn = points(tradeoff("fraction", error=0.05, epsilon=1))
    for mechanism in (CENTRAL_LAPLACE, LOCAL, SHUFFLED):
        heights = [height for name, _, height in drawn if name == mechanism]
        assert heights == sorted(heights, reverse=True)
        assert heights[-1] < heights[0]


def test_where_no_mechanism_has_a_point_there_is_still_a_picture(tmp_path: Path) -> None:
    found = tradeoff("fraction", people=100, error=0.01)
    nobody = replace(found, rows=tuple(replace(row, error=None, epsilon=None) for row in found.rows))
    assert points(nobody) == []
    assert nobody.plot(tmp_path / "none.svg").read_text().startswith("<svg")
