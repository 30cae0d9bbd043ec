"""Levels of totals as an office declares them: public totals held exactly, an error for a level, times as a tree."""

import json
from collections import Counter
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction

import pyarrow as pa
import pytest

import tacit
from tacit.errors import InvalidParameter, QueryRefused
from tacit.query import question_from, question_record

DAYS = [date(2024, 1, 1) + timedelta(days=n % 120) for n in range(600)]
ROWS = pa.table(
    {"id": range(600), "a": [("u", "v", "w")[n % 3] for n in range(600)], "b": [n % 4 for n in range(600)], "day": DAYS}
)
TOTALS = dict(Counter(ROWS["a"].to_pylist()))


def opened(unit=tacit.ROW, **declared):
    columns = {"a": {"keys": ["u", "v", "w"]}, "b": {"keys": [0, 1, 2, 3]}}
    usual = {"name": "t", "version": 1, "ledger": tacit.TRYOUT, "population": 600, "columns": columns}
    return tacit.table(ROWS, unit=unit, budget=tacit.epsilon(20, delta=1e-6), **(usual | declared))


def levels_of(answer):
    """The rows of each level, by how many keys are totals."""
    found = {}
    for at, row in enumerate(answer.to_dicts()):
        found.setdefault(sum(marks[at] for marks in answer.rolled.values()), []).append(row)
    return found


@pytest.mark.parametrize("unit", [tacit.ROW, "id"])
@pytest.mark.parametrize("totals", [True, "all"])
def test_public_totals_are_held_exactly_and_cells_add_up_to_them(unit, totals):
    table = opened(unit, **({} if unit is tacit.ROW else {"rows_per_unit": 1, "groups_per_unit": 1}))
    answer = table.group_by("a", "b", totals=totals, public_totals={"a": TOTALS}).count().answer(epsilon=0.3)
    rows = [
        dict(row) | {"rolled": [answer.rolled[key][at] for key in ("a", "b")]}
        for at, row in enumerate(answer.to_dicts())
    ]
    for row in rows:
        if row["rolled"] == [False, True]:
            assert (row["count_low"], row["count"], row["count_high"]) == (200, 200, 200)
            assert (
                sum(each["count"] for each in rows if each["rolled"] == [False, False] and each["a"] == row["a"]) == 200
            )
        if row["rolled"] == [True, True]:
            assert (row["count_low"], row["count_high"]) == (600, 600)
        assert row["count_low"] <= row["count"] <= row["count_high"]


def test_a_level_that_is_public_gets_no_noise_and_no_share():
    question = opened().group_by("a", "b", totals=True, public_totals={"a": TOTALS}).count()
    assert question.plan(epsilon=1, weights={"a": 100, "total": 90}).plan.levels == ()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"a": TOTALS, "total": 601}, "contradict"),
        ({"a": {"u": 200}}, "each of its 3 groups"),
        ({"a": TOTALS | {"u": 200.5}}, "whole steps"),
        ({"a": TOTALS | {"u": -1}}, "not negative"),
        ({"b": {}}, "they are a, total"),
        ({"a": {("u", 1): 3}}, "1 key"),
        (3, "public_totals gives"),
        ({"total": 10**30}, "at most 2"),
    ],
)
def test_public_totals_that_cannot_be_held_are_refused_for_free(given, said):
    table = opened()
    with pytest.raises((QueryRefused, InvalidParameter), match=said):
        table.group_by("a", "b", totals=True, public_totals=given).count().answer(epsilon=1)
    assert not [each for each in table.session.ledger.entries() if each.kind == "charge"]


def test_public_totals_of_two_numbers_of_crossed_levels_or_of_found_groups_are_refused():
    table = opened()
    with pytest.raises(QueryRefused, match="one count or one sum"):
        table.group_by("a", "b", totals=True, public_totals={"a": TOTALS}).agg(
            tacit.count(), tacit.sum("b", between=(0, 3))
        ).answer(epsilon=1)
    crossed = {"a": TOTALS, "b": dict.fromkeys(range(4), 150)}
    with pytest.raises(QueryRefused, match="none is inside the other"):
        table.group_by("a", "b", totals="all", public_totals=crossed).count().answer(epsilon=1)
    found = opened(columns={}).group_by("a", "b", totals=True, public_totals={"total": 600})
    with pytest.raises(QueryRefused, match="only those that are found"):
        found.count().answer(epsilon=1)


def test_public_totals_travel():
    table = opened()
    query = table.group_by("a", "b", totals=True, public_totals={"a": TOTALS, "total": 600}).count().several.queries[-1]
    query = replace(query, columns=("a", "b", "count"))
    assert query.public_totals
    record = json.loads(json.dumps(question_record(query)))
    assert question_from(record, table.frame.declaration).public_totals == query.public_totals
    record["public_totals"]["b"] = record["public_totals"].pop("a")
    with pytest.raises(InvalidParameter, match="public_totals"):
        question_from(record, table.frame.declaration)


def test_an_error_for_a_level_is_met_by_a_share_of_its_own():
    question = opened().group_by("a", "b", totals=True).count()
    report = question.plan(error={"total": "0.5%"})
    assert "count by total ± 3" in str(report)
    assert [level.kept for level in report.plan.levels] == [()]
    cells = question.plan(error={"b": 3})
    assert report.loss.epsilon < cells.loss.epsilon * Fraction(4, 3)
    both = question.plan(error={"total": "0.5%", "b": 3})
    assert both.loss.epsilon > report.loss.epsilon
    answer = question.answer(error={"total": "0.5%"}, accept_noise=True)
    assert answer.to_dicts()[0]["count_high"] - answer.to_dicts()[0]["count"] <= 4


def test_an_error_that_no_level_or_number_has_is_refused():
    with pytest.raises(InvalidParameter, match="error names \\['town'\\]"):
        opened().group_by("a", "b", totals=True).count().plan(error={"town": 3})


def times(*units):
    table = opened()
    derived = {f"{unit}_": f"DATE_TRUNC('{unit}', day)" for unit in units if unit != "date"}
    return table.derive(**derived), [f"{unit}_" if unit != "date" else "day" for unit in units]


@pytest.mark.parametrize(
    "units", [("year", "quarter", "month", "day"), ("week", "day"), ("year", "month", "date"), ("quarter", "day")]
)
def test_times_that_are_inside_each_other_are_levels(units):
    table, names = times(*units)
    answer = table.group_by(*names, totals=True).count().answer(epsilon=10, accept_noise=True)
    assert answer.rolled


@pytest.mark.parametrize(
    "units", [("month", "week"), ("year", "week", "day"), ("week", "month"), ("day", "month"), ("month", "month")]
)
def test_times_that_are_not_are_refused_with_levels_that_fit(units):
    table, names = times(*dict.fromkeys(units))
    if len(set(units)) == 1:
        names, table = ["month_", "again"], table.derive(again="DATE_TRUNC('month', day)")
    with pytest.raises(QueryRefused, match="levels that fit are year, quarter, month, day; or week, day"):
        table.group_by(*names, totals=True).count()
    sql = ", ".join(f"DATE_TRUNC('{unit}', day)" for unit in units)
    if len(set(units)) > 1:
        with pytest.raises(QueryRefused, match="do not add up"):
            opened().sql(f"SELECT COUNT(*) AS n FROM t GROUP BY ROLLUP ({sql})")
        opened().sql(f"SELECT COUNT(*) AS n FROM t GROUP BY CUBE ({sql})")
