"""One look: colours that differ, and titles whose lines are as long as asked."""

from tacit.pictures.sheet import COLOURS, COLOURS_MOST, SHAPES
from tacit.pictures.writer import CONFIG, page


def test_groups_have_colours_and_marks_enough_and_no_two_alike() -> None:
    assert len(set(COLOURS)) == len(COLOURS) == COLOURS_MOST == len(set(SHAPES))


def test_a_page_wraps_its_words_and_leaves_its_body_alone() -> None:
    body = {"mark": "point"}
    shown = page(body, title="one two three", notes=["four five", "six"], letters=(7, 5), legend={"columns": 1})
    assert body == {"mark": "point"}
    assert shown["title"]["text"] == ["one two", "three"]
    assert shown["title"]["subtitle"] == ["four", "five", "six"]
    assert shown["config"]["legend"]["columns"] == 1
    assert "columns" not in CONFIG["legend"]


def test_a_page_without_words_has_a_title_still() -> None:
    assert page({}, title="", notes=[], letters=(7, 5))["title"]["text"] == [""]
