"""A holdout: whole units by a salted hash, two tables of one budget, and no score told as fresh that is not."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import tacit
from tacit import typed_sql as sql
from tacit.asking import Table
from tacit.engine import derived
from tacit.learning import Holdout, rows_used
from tacit.learning.scorable import UnitRange, freshness
from tacit.query import PLACES, SomeUnits
from tacit.tables import Source
from tests.learning.sided_people import COLUMNS, MODEL, Fitted, people_table, rows_of, units_in

# --- who is where ---


def sides_are_of_whole_units_whatever_the_order() -> bool:
    """Return whether both sides have all rows of their units, and the same units when rows are shuffled."""
    holdout, shuffled = (Holdout(people_table(rows_of(shuffled=each)), share=0.25) for each in (False, True))
    rest, training = units_in(holdout.rest), units_in(holdout.training)
    whole = sorted(rest + training) == units_in(people_table())
    return whole and not set(rest) & set(training) and rest == units_in(shuffled.rest)


def test_sides_are_of_whole_units_whatever_the_order_of_rows():
    assert sides_are_of_whole_units_whatever_the_order()


def test_a_holdout_by_row_order_is_found(monkeypatch: pytest.MonkeyPatch):
    def by_row_order(relation: SomeUnits, source: Source, unit: str | None) -> Source:
        numbered = source.table.mutate(at=sql.row_number(), rows=source.table.count().over(sql.window()))
        share = numbered["at"] * PLACES // numbered["rows"]
        return replace(
            source, table=numbered.filter([share >= relation.first, share < relation.end]).drop("at", "rows")
        )

    monkeypatch.setattr(derived, "some_units", by_row_order)
    assert not sides_are_of_whole_units_whatever_the_order()


def test_about_the_share_is_set_aside_and_a_larger_share_only_adds_to_it():
    table = people_table()
    small, large = Holdout(table, share=0.1), Holdout(table, share=0.3)
    assert set(units_in(small.rest)) < set(units_in(large.rest))
    # 400 units at 0.3: 120 ± 9; outside 60 … 180 with a chance below 1e-10, and the hash does not change
    assert 60 < len(set(units_in(large.rest))) < 180


def test_a_second_holdout_is_the_same_and_another_seed_is_another():
    table = people_table()
    first, second, other = Holdout(table), Holdout(table), Holdout(table, seed=7)
    assert units_in(first.rest) == units_in(second.rest)
    assert units_in(first.rest) != units_in(other.rest)


def test_where_rows_are_units_a_row_decides_for_itself_alone():
    rows = rows_of(200)
    fewer = rows.slice(1)
    whole, less = (Holdout(people_table(each, unit=tacit.ROW, columns=COLUMNS), share=0.3) for each in (rows, fewer))
    first = rows.slice(0, 1).column("person").to_pylist()
    for mine, theirs in ((whole.rest, less.rest), (whole.training, less.training)):
        assert units_in(mine) in (units_in(theirs), sorted(units_in(theirs) + first))
    assert sorted(units_in(whole.rest) + units_in(whole.training)) == sorted(rows.column("person").to_pylist())


def test_units_that_are_nobody_are_on_no_side():
    rows = rows_of(50)
    nobody = pa.table({**{name: rows.column(name) for name in rows.column_names}, "person": pa.nulls(100, pa.int64())})
    holdout = Holdout(people_table(nobody))
    assert units_in(holdout.rest) == units_in(holdout.training) == []


# --- two tables ---


def test_both_sides_answer_questions_in_python_and_sql_from_one_budget():
    holdout = Holdout(people_table(), share=0.5)
    asked = [
        holdout.training.count_units().answer(epsilon=1),
        holdout.rest.sql("SELECT COUNT(DISTINCT person) FROM people").answer(epsilon=1),
    ]
    assert holdout.table.left.epsilon == 6
    # noise of scale 1 on each: off by 60 with a chance below 1e-20
    assert abs(sum(next(iter(each.rows[0].values())) for each in asked) - 400) < 60
    again = holdout.rest.sql("SELECT COUNT(DISTINCT person) FROM people").answer(epsilon=1)
    assert holdout.table.left.epsilon == 6
    assert list(again.rows) == list(asked[1].rows)


def test_a_holdout_of_a_side_divides_that_side():
    holdout = Holdout(people_table(), share=0.3)
    inner = Holdout(holdout.training, share=0.5)
    assert sorted(units_in(inner.rest) + units_in(inner.training)) == units_in(holdout.training)
    assert units_in(inner.rest)
    assert units_in(inner.training)


def test_only_a_whole_protected_table_is_divided():
    table = people_table()
    with pytest.raises(tacit.QueryRefused, match="whole table"):
        Holdout(table.where("age > 10"))
    with pytest.raises(tacit.InvalidParameter, match="protected table"):
        Holdout(rows_of())  # type: ignore[arg-type]
    for share in (0, 1, 2):
        with pytest.raises(tacit.InvalidParameter, match="share"):
            Holdout(table, share=share)


# --- what is fresh ---

SEEN: dict[str, Callable[[Table], Table]] = {
    "the whole table": lambda table: table,
    "the rest itself": lambda table: Holdout(table).rest,
    "the training side of a smaller share": lambda table: Holdout(table, share=0.1).training,
    "another seed's training side": lambda table: Holdout(table, seed=1).training,
    "a part of the rest": lambda table: Holdout(Holdout(table).rest).training,
}


def overlaps_are_never_fresh() -> bool:
    """Return whether no model that may have seen the rest is called fresh."""
    table = people_table()
    scored = rows_used(Holdout(table).rest)
    return all(freshness(rows_used(fitted(table)), scored) == "seen" for fitted in SEEN.values())


def test_no_model_that_may_have_seen_these_people_is_called_fresh():
    assert overlaps_are_never_fresh()


@pytest.mark.parametrize(
    "mutant",
    [
        lambda _mine, _other: True,
        lambda mine, other: mine.salt == other.salt,
        lambda mine, other: mine.end <= other.first or other.end <= mine.first,
    ],
)
def test_a_rule_that_tells_seen_rows_as_fresh_is_found(monkeypatch: pytest.MonkeyPatch, mutant: Any):
    monkeypatch.setattr(UnitRange, "is_apart_from", mutant)
    assert not overlaps_are_never_fresh()


def test_models_of_the_training_side_are_fresh_and_so_are_those_of_a_part_of_it():
    table = people_table()
    holdout = Holdout(table)
    scored = rows_used(holdout.rest)
    assert freshness(rows_used(holdout.training), scored) == "fresh"
    assert freshness(rows_used(Holdout(table, share=0.4).training), scored) == "fresh"
    assert freshness(rows_used(Holdout(holdout.training).rest), scored) == "fresh"
    assert freshness(None, scored) == "unknown"
    assert freshness(rows_used(people_table(name="others")), scored) == "other table"


@pytest.mark.parametrize("where", SEEN)
def test_a_model_is_refused_on_rows_it_was_fitted_on_or_says_so(where: str):
    table = people_table()
    holdout, model = Holdout(table), Fitted(MODEL, rows_used(SEEN[where](table)))
    with pytest.raises(tacit.QueryRefused, match="people it was fitted on"):
        holdout.score(model, epsilon=1)
    assert table.left.epsilon == 8
    score = holdout.score(model, epsilon=1, even_if_seen=True)
    assert not score.is_fresh
    assert "NOT FRESH: fitted on rows it is scored on" in str(score)


def test_a_score_of_a_model_of_the_training_side_says_that_it_is_fresh():
    holdout = Holdout(people_table())
    score = holdout.score(Fitted(MODEL, rows_used(holdout.training)), epsilon=4)
    assert score.is_fresh
    assert "fresh: the people scored on were not used" in str(score)
