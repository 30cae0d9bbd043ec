"""Others: rows of groups that are not shown are one more group, in every parent of a tree, with noise of its own."""

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.answer import answer_from, answer_record
from tacit.errors import InvalidParameter, QueryRefused
from tacit.query import question_from, question_record, with_listed_others

TOWNS = [
    name for name, size in (("a1", 900), ("a2", 700), ("b1", 800), ("a3", 4), ("b2", 3), ("c1", 2)) for _ in range(size)
]
ROWS = pa.table(
    {"id": range(len(TOWNS)), "state": [each[0] for each in TOWNS], "town": TOWNS, "k": [len(each) for each in TOWNS]}
)
FINE = 30  # an epsilon at which noise is 0 but for a probability of 1e-9 in all


def opened(unit=tacit.ROW, rows=ROWS, **declared):
    usual = {"name": "t", "version": 1, "ledger": tacit.TRYOUT, "budget": tacit.epsilon(200, delta=1e-6)}
    return tacit.table(rows, unit=unit, **(usual | declared))


@pytest.mark.parametrize("unit", [tacit.ROW, "id"])
def test_others_of_found_groups_are_all_other_rows(unit):
    answer = opened(unit).group_by("town", other=True).count().answer(epsilon=1)
    found = {row["town"]: row["count"] for row in answer.to_dicts()}
    assert set(found) == {"a1", "a2", "b1", None}
    assert abs(found[None] - 9) <= 60  # noise of a scale of at most 2.6: far beyond any draw
    assert answer.others == ("town",)
    assert " Other " in str(answer)
    assert "counted in Other" in str(answer)


def test_others_are_in_every_parent_of_a_tree_and_totals_add_up():
    answer = opened().group_by("state", "town", other=True, totals=True).count().answer(epsilon=4)
    rows = answer.to_dicts()
    rolled = answer.rolled
    cells = [row for at, row in enumerate(rows) if not rolled["town"][at]]
    keys = [(row["state"], row["town"]) for row in cells]
    assert keys == [("a", "a1"), ("a", "a2"), ("a", None), ("b", "b1"), ("b", None), (None, None)]
    assert rows[0]["count"] == sum(row["count"] for row in cells)
    for at, row in enumerate(rows):
        if rolled["town"][at] and not rolled["state"][at]:
            assert row["count"] == sum(cell["count"] for cell in cells if cell["state"] == row["state"])


def test_others_of_listed_groups_hold_null_keys_too():
    rows = pa.table({"town": ["a"] * 50 + ["b"] * 40 + [None] * 7})
    table = opened(rows=rows, columns={"town": {"keys": ["a"]}}, budget=tacit.epsilon(200))
    answer = table.group_by("town", other=True).count().answer(epsilon=FINE)
    assert [(row["town"], row["count"]) for row in answer.to_dicts()] == [("a", 50), (None, 47)]


def test_an_infinite_key_is_among_the_others():
    """It has no constant to be compared with: once such a question was refused after its groups had been found."""
    rows = pa.table({"x": [float("inf")] * 400 + [0.5] * 300 + [None] * 7})
    answer = opened(rows=rows).group_by("x", other=True).count().answer(epsilon=100)
    assert [(row["x"], row["count"]) for row in answer.to_dicts()] == [(0.5, 300), (None, 407)]


def test_others_are_a_cell_with_noise_of_its_own_and_never_a_difference():
    """Draws of the others differ from the total minus what is shown, in any of 200 calls but for 1e-9."""
    table = opened(columns={"town": {"keys": ["a1", "a2"]}})
    question = table.group_by("town", other=True).count()
    plan = question.plan(epsilon=1).plan
    assert len(plan.public_keys) == 3
    assert len(plan.releases) == 1
    assert plan.has_others
    assert [event.scale for event in plan.events] == [1]


def test_their_error_is_that_of_one_group_and_not_of_all_that_is_shown():
    """The figure is measured by the bench; here an error ten times that of one group would be seen."""
    rng = np.random.default_rng(5)
    towns = rng.zipf(1.6, 60_000) % 3000
    rows = pa.table({"town": [f"t{each}" for each in towns]})
    answer = opened(rows=rows).group_by("town", other=True).count().answer(epsilon=1)
    shown = {row["town"] for row in answer.to_dicts()}
    true = sum(count for town, count in Counter(rows["town"].to_pylist()).items() if town not in shown)
    assert abs(answer.to_dicts()[-1]["count"] - true) < 40  # 40 scales of noise: e^-37


def test_sql_says_it_in_the_group_by_and_it_travels():
    table = opened()
    sql = "SELECT town, COUNT(*) AS n FROM t GROUP BY town, OTHER() ORDER BY n DESC"
    answer = table.sql(sql).answer(epsilon=1)
    assert answer.others == ("town",)
    assert "OTHER()" in table.session.words(table.group_by("town", other=True).count().query)
    with pytest.raises(QueryRefused, match="beside keys"):
        table.sql("SELECT COUNT(*) FROM t GROUP BY OTHER()")
    question = table.group_by("town", other=True).count().query
    assert question_from(json.loads(json.dumps(question_record(question))), table.frame.declaration) == question
    sent = answer_from(json.loads(json.dumps(answer_record(answer))), {})
    assert sent.others == answer.others
    assert sent.to_csv() == answer.to_csv()
    assert "\nOther," in sent.to_csv()


def test_what_has_no_others_is_refused_before_a_charge():
    table = opened()
    with pytest.raises(InvalidParameter, match="other must be True"):
        table.group_by("town", other="yes")
    pure = opened(budget=tacit.epsilon(5))
    with pytest.raises(QueryRefused, match="list them"):
        pure.group_by("town", other=True).count().answer(epsilon=1)
    with pytest.raises(QueryRefused, match="not known yet"):
        table.group_by("town", other=True).count().answer(epsilon=1, learn=False)
    assert not [each for each in table.session.ledger.entries() if each.kind == "charge"]


def test_a_key_of_the_tree_is_shown_only_beside_the_keys_before_it():
    query = opened().group_by("state", "town", other=True).count().query
    made = with_listed_others(query, (("a", "x"), ("b", "y"), ("b", None)))
    assert made.public_keys == (("a", "x"), ("a", None), ("b", "y"), ("b", None), (None, None))
    assert not made.other


def test_others_of_no_rows_and_of_a_table_without_any_group_are_noise():
    rows = ROWS.slice(0, 0)
    answer = (
        opened(rows=rows, columns={"town": {"keys": ["a1"]}}).group_by("town", other=True).count().answer(epsilon=FINE)
    )
    assert [row["count"] for row in answer.to_dicts()] == [0, 0]


@pytest.mark.parametrize("unit", [tacit.ROW, "id"])
def test_where_no_group_is_large_enough_all_rows_are_others(unit):
    rows = pa.table({"id": range(30), "town": [f"t{n}" for n in range(30)]})
    answer = opened(unit, rows=rows).group_by("town", other=True).count().answer(epsilon=20, accept_noise=True)
    assert [row["town"] for row in answer.to_dicts()] == [None]
    assert answer.to_dicts()[0]["count"] == pytest.approx(30, abs=25)


def test_other_aggregates_have_others_too():
    table = opened(columns={"town": {"keys": ["a1"]}, "k": {"between": (0, 4)}})
    answer = (
        table.group_by("town", other=True)
        .agg(m=tacit.mean("k"), q=tacit.median("k"), n=tacit.count())
        .answer(epsilon=FINE)
    )
    assert [row["town"] for row in answer.to_dicts()] == ["a1", None]
    assert abs(answer.to_dicts()[1]["m"] - 2) < 0.1
