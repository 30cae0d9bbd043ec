"""A panel of lines: every line in its own look, levels with their words, one legend for all properties."""

from typing import Any

from tacit.pictures.lines import Axis, LevelLine, Look, decades, line_panel, mark_at, side_by_side
from tacit.pictures.writer import BLUE, RED

LOOKS = {"a": Look("the first", BLUE), "b": Look("the second", RED, "square", (6, 3), joined=False)}
POINTS = [("a", 1.0, 0.5), ("a", 10.0, 0.25), ("b", 1.0, 0.75)]


def panel(**more: Any) -> dict[str, Any]:
    return line_panel(POINTS, LOOKS, x=Axis("people", log=True), y=Axis("error"), **more)


def test_a_line_goes_through_the_joined_marks_alone() -> None:
    through, marks = panel()["layer"]
    assert {value["line"] for value in through["data"]["values"]} == {"the first"}
    assert [(value["line"], value["x"], value["y"]) for value in marks["data"]["values"]] == [
        ("the first", 1.0, 0.5),
        ("the first", 10.0, 0.25),
        ("the second", 1.0, 0.75),
    ]
    ranges = {name: marks["encoding"][name]["scale"]["range"] for name in ("color", "shape")}
    assert ranges == {"color": [BLUE, RED], "shape": ["circle", "square"]}


def test_a_level_has_its_words_at_the_end_of_the_panel() -> None:
    rule, words, *_ = panel(levels=[LevelLine(0.5, "a coin")], width=560)["layer"]
    assert rule["data"]["values"] == [{"y": 0.5, "words": "a coin"}]
    assert words["encoding"]["x"] == {"value": 558}


def test_a_mark_stands_at_its_place_with_its_words() -> None:
    rule, words = mark_at(3.0, "here", axis=Axis("people"), side="right")
    assert rule["data"]["values"] == words["data"]["values"] == [{"x": 3.0, "words": "here"}]
    assert words["mark"]["align"] == "right"


def test_panels_side_by_side_have_legends_of_their_own() -> None:
    assert "hconcat" not in side_by_side([panel()], title="t", notes=[])
    both = side_by_side([panel(), panel()], title="t", notes=[])
    assert len(both["hconcat"]) == 2
    assert set(both["resolve"]["scale"].values()) == {"independent"}


def test_decades_span_what_they_are_given() -> None:
    assert decades(3, 200) == (1.0, 10.0, 100.0, 1000.0)
    assert decades(1, 10) == (1.0, 10.0)
