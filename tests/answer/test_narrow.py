"""A picture for a page: narrow enough for a phone at the full size of its letters, and dark where the page is."""

import re
from datetime import date, timedelta
from typing import Any

import pytest

from tacit.answer import Answer, svg_for_page
from tacit.pictures.writer import BLUE, INK, PALE
from tests.answer.test_panel import answer, around

ROOM = 312  # pixels of a window of 360 that are left for a picture
LONG = "a_name_that_somebody_has_made_far_too_long_for_any_screen"
DAYS = [date(2026, 1, 1) + timedelta(days=31 * place) for place in range(14)]


def shaped(keys: list[str], aggregates: list[str], rows: list[list[Any]]) -> Answer:
    """An answer whose numbers have intervals."""
    made = [[*row[: len(keys)], *map(around, row[len(keys) :])] for row in rows]
    return answer(keys, aggregates, made, **{name: "quantile" for name in aggregates if "_p" in name} | OTHERS)


OTHERS = dict.fromkeys(("cost", LONG, LONG + "_mean"), "mean")
SHAPES: dict[str, Answer] = {
    "labels": shaped(["ward"], ["n"], [[LONG, 10_000_000.0], ["B", 2.0]]),
    "long names": shaped([LONG], [LONG + "_mean"], [["A", 1.0]]),
    "several": shaped(["ward"], ["n", "stay", "cost", LONG], [["A", 1.0, 2.0, 3.0, 4.0], ["B", 5.0, 6.0, 7.0, 8.0]]),
    "colours": shaped(["ward", "sex"], ["n"], [[ward, sex, 3.0] for ward in "ABC" for sex in (LONG, "f", "x", "y")]),
    "small pictures": shaped(["ward", "g"], ["n"], [[f"w{w}", f"g{g}", 3.0] for w in range(12) for g in range(9)]),
    "numbers": shaped(["age"], ["n"], [[place, 10.0 * place] for place in range(40)]),
    "times": shaped(["day"], ["n"], [[day, 1e9] for day in DAYS]),
    "times and groups": shaped(["day", "g"], ["n"], [[day, f"g{g}", 1.0] for day in DAYS for g in range(9)]),
    "fan": shaped(["ward"], ["x_p10", "x_p50", "x_p90"], [["A", 1.0, 2.0, 3.0], ["B", 2.0, 3.0, 4.0]]),
    "one number": shaped([], ["n"], [[123_456_789.0]]),
    "one curve": shaped([], ["x_p10", "x_p50", "x_p90"], [[1.0, 2.0, 3.0]]),
    "nothing": shaped(["ward"], ["n"], []),
}


def size(svg: str) -> tuple[float, float]:
    found = re.search(r'<svg[^>]*? width="([0-9.]+)"[^>]*? height="([0-9.]+)"', svg)
    assert found is not None
    return float(found[1]), float(found[2])


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_answer_fits_a_phone_with_letters_that_can_be_read(shape: str) -> None:
    svg = svg_for_page(SHAPES[shape], narrow=True)
    letters = [float(each) for each in re.findall(r'font-size="([0-9.]+)px"', svg)]
    assert size(svg)[0] <= ROOM
    assert min(letters, default=12.0) >= 11
    assert "±" in svg


def test_a_wide_picture_is_the_one_that_is_written_to_files() -> None:
    wide, narrow = (size(svg_for_page(SHAPES["several"], narrow=each))[0] for each in (False, True))
    assert wide > 2 * narrow


def colours_of(svg: str) -> set[str]:
    """Return the colours of a picture's paper, words and lines, without those of its style."""
    drawn: list[Any] = re.findall(r'(?:fill|stroke)="([^"]+)"', svg.partition("</style>")[2])
    return {each.lower() for each in drawn} - {"none", "transparent"}


@pytest.mark.parametrize("shape", SHAPES)
def test_paper_words_and_lines_have_a_dark_colour_each(shape: str) -> None:
    svg = svg_for_page(SHAPES[shape], narrow=False)
    style = svg.partition("</style>")[0].partition("prefers-color-scheme:dark")[2].lower()
    plain = {
        each for each in colours_of(svg) if len({each[1:3], each[3:5], each[5:7]}) == 1 or each in ("white", "#000")
    }
    assert plain
    assert all(f'="{each}" i]' in style for each in {*plain, BLUE.lower(), INK, PALE})


def test_a_bar_without_a_value_is_drawn_on_a_phone_too() -> None:
    lacking = shaped(["ward"], ["n"], [["A", None], ["B", 1.0]])
    assert size(svg_for_page(lacking, narrow=True))[0] <= ROOM
