"""A picture shows every number of an answer with its interval, in its own row, and nothing else."""

import json
from collections.abc import Iterator, Sequence
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tacit.answer.answer import Answer, AnswerInfo
from tacit.answer.panel import LABELS_MOST, sheet
from tacit.pictures.sheet import COLOURS

KINDS = {"n": "count", "stay": "mean", "total": "sum"}


def around(value: float | None, reach: float = 1.0) -> tuple[Any, Any, Any]:
    """A value with an even interval; without a value, the range of what it could be."""
    return (None, 0.0, 30.0) if value is None else (value, value - reach, value + reach)


def answer(keys: Sequence[str], aggregates: Sequence[str], rows: Sequence[Sequence[Any]], **kinds: str) -> Answer:
    """An answer as a question would give it: each row its keys, then a (value, low, high) for each aggregate."""
    made = []
    for row in rows:
        cells = dict(zip(keys, row, strict=False))
        for name, ends in zip(aggregates, row[len(keys) :], strict=True):
            cells |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
        made.append(cells)
    facts = AnswerInfo(
        {"epsilon": 1.0, "delta": 1e-7},
        {},
        "all rows of one patient",
        "add or remove one",
        Fraction(19, 20),
        True,
        False,
    )
    types = dict.fromkeys(aggregates, "float")
    return Answer(made, (*keys, *aggregates), types, tuple(aggregates), facts, {**KINDS, **kinds})


def parts(spec: Any) -> Iterator[dict[str, Any]]:
    """Every dict inside a chart."""
    if isinstance(spec, dict):
        yield spec
        for value in spec.values():
            yield from parts(value)
    elif isinstance(spec, list):
        for value in spec:
            yield from parts(value)


def chart_of(shown: Answer) -> dict[str, Any]:
    spec: dict[str, Any] = shown.plot().to_dict()
    return spec


def marks(spec: dict[str, Any]) -> list[str]:
    found = [part["mark"] for part in parts(spec) if "mark" in part]
    return [mark["type"] if isinstance(mark, dict) else mark for mark in found]


WARDS = answer(["ward"], ["n", "stay"], [["A", around(7), around(2.5)], ["B", around(-3), around(None)]])


def test_the_title_says_what_and_the_subtitle_how_sure_and_at_what_cost() -> None:
    title = chart_of(WARDS)["title"]
    assert title["text"] == ["n, stay by ward"]
    assert title["subtitle"] == ["± at 95 %; ε 1, δ 1e-7; protects all rows of one patient"]


def test_counts_are_bars_from_zero_and_means_are_points() -> None:
    drawn = sheet(WARDS)
    assert [panel.kind for panel in drawn.panels] == ["bar", "point"]


def test_every_number_has_its_interval() -> None:
    drawn = sheet(WARDS)
    assert [(cell.value, cell.low, cell.high) for cell in drawn.panels[0].cells] == [(7, 6, 8), (-3, -4, -2)]
    assert "rule" in marks(chart_of(WARDS))


def test_rows_stay_in_their_place_where_a_number_is_missing() -> None:
    """A layer that leaves out the first row's number must not give its row to the second."""
    shown = answer(["ward"], ["stay"], [["A", around(None)], ["B", around(2.5)]])
    axes = [part["y"] for part in parts(chart_of(shown)) if "y" in part and part["y"].get("field") == "label"]
    assert axes
    assert all(axis["scale"]["domain"] == ["A", "B"] for axis in axes)


def test_a_number_without_enough_people_is_said_in_words() -> None:
    cell = sheet(WARDS).panels[1].cells[1]
    assert (cell.value, cell.text) == (None, "not enough people")


@pytest.mark.parametrize(
    ("keys", "order"),
    [
        ([0, 10, 20, 30], "number"),
        ([0.5, 1.0, 1.5], "number"),
        ([date(2026, 1, 1), date(2026, 2, 1)], "time"),
        (["a", "b"], "none"),
        ([True, False], "none"),
        ([None, 1, 2], "none"),
        ([1, 2, 90_000], "none"),
        ([5], "none"),
        ([float("inf"), 1.0], "none"),
    ],
)
def test_numbers_and_times_are_a_scale_unless_a_gap_is_too_wide(keys: list[Any], order: str) -> None:
    shown = answer(["key"], ["n"], [[key, around(7)] for key in keys])
    assert sheet(shown).order == order
    assert chart_of(shown)


def test_null_is_not_the_text_null() -> None:
    shown = answer(["ward"], ["n"], [[None, around(1)], ["NULL", around(2)], ["", around(3)]])
    assert sheet(shown).labels == ("NULL", "NULL (2)", "(empty)")


def test_of_two_keys_the_one_with_fewer_values_is_told_apart_by_colour() -> None:
    rows = [[ward, sex, around(1)] for ward in "ABCDE" for sex in ("f", "m")]
    drawn = sheet(answer(["ward", "sex"], ["n"], rows))
    assert (drawn.axis, drawn.group, drawn.groups) == ("ward", "sex", ("f", "m"))
    assert COLOURS[:2] in [part.get("range") for part in parts(chart_of(answer(["ward", "sex"], ["n"], rows)))]


def test_many_groups_are_small_pictures() -> None:
    rows = [[f"w{i}", f"g{j}", around(1)] for i in range(12) for j in range(10)]
    assert "facet" in chart_of(answer(["ward", "group"], ["n"], rows))


def test_quantiles_of_a_column_are_one_fan() -> None:
    names = ["days_p10", "days_p50", "days_p99_9"]
    shown = answer(["ward"], names, [["A", around(1), around(3), around(9)]], **dict.fromkeys(names, "quantile"))
    (panel,) = sheet(shown).panels
    assert (panel.name, panel.kind) == ("days", "fan")
    assert [cell.percent for cell in panel.cells] == [10, 50, 99.9]


def test_a_long_answer_says_that_it_is_cut() -> None:
    rows = [[f"item {i}", around(i)] for i in range(LABELS_MOST + 1)]
    shown = answer(["item"], ["n"], rows)
    (subtitle,) = chart_of(shown)["title"]["subtitle"]
    assert subtitle.endswith(f"; drawn: the first {LABELS_MOST} of {LABELS_MOST + 1} item")


def test_no_group_is_a_picture_that_says_so(tmp_path: Path) -> None:
    path = answer(["ward"], ["n"], []).plot(tmp_path / "none.svg")
    assert "no group was shown" in path.read_text()


def test_a_name_that_means_something_to_the_drawing_library_is_only_a_name() -> None:
    odd = answer(["a.b[0]:N"], ["count()"], [["x", around(1)], ["y", around(2)]])
    fields = {part["field"] for part in parts(chart_of(odd)) if "field" in part}
    assert fields <= {"label", "value", "low", "high", "text", "group", "place", "percent"}


def test_a_picture_holds_nothing_but_the_answer() -> None:
    """What a chart carries as data is the shown numbers and their labels, and can be written as JSON."""
    values = [value for part in parts(chart_of(WARDS)) for value in part.get("values", []) if isinstance(value, dict)]
    assert {value["label"] for value in values} == {"A", "B"}
    assert json.dumps(values)


def test_a_mean_that_is_not_given_and_has_no_range_is_drawn_as_one_that_is_not_given(tmp_path):
    shown = answer(["ward"], ["stay"], [["A", around(2.5)], ["B", (None, None, None)]])
    (panel,) = sheet(shown).panels
    assert [(cell.value, cell.low, cell.high) for cell in panel.cells] == [(2.5, 1.5, 3.5), (None, None, None)]
    assert panel.cells[1].text == "not enough people"
    assert json.dumps(chart_of(shown), allow_nan=False)
