"""Counts and sums under bounds by hand are scaled back to what was measured of the whole table."""

from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest

import tacit
from tacit.answer.columns import noisy_columns
from tacit.plan import Plan, make_plan, make_spend
from tacit.plan.by_hand import cut_by_hand, facts_by_hand
from tacit.plan.facts import NO_FACTS, Fact
from tacit.release import NoisyTable
from tacit_gauntlet.stage.table import protected

ROWS = pa.table({"id": [1, 2, 3], "g": ["a", "a", "b"], "x": [1, 2, 3]})
TABLE = protected(
    ROWS, columns={"x": {"between": (0, 10)}}, rows_per_unit=2, groups_per_unit=1, most_rows_per_unit=None
)
ASKED = TABLE.group_by("g", keys=["a", "b"]).agg(n=tacit.count(), s=tacit.sum("x"), m=tacit.mean("x"))
LEVEL = Fraction(95, 100)
ROW_BINS = 8  # a row is 2^8 fine steps in a profile


def planned(people: dict[int, int], **changes: object) -> Plan:
    """Return the plan where a profile told that so many people have 2^octave rows."""
    query, declaration = ASKED.query, replace(ASKED.session.declaration, **changes)
    spend = make_spend(1, None, None, ASKED.session.registered.budget)
    (wanted,) = facts_by_hand(query, declaration, spend, NO_FACTS, None)
    bins = tuple(people.get(place - ROW_BINS, 0) for place in range(64))
    fact = Fact(wanted.key, wanted.words, (bins,), (Fraction(20),), Fraction(1, 20))
    return make_plan(query, declaration, spend, {wanted.key: fact})


def released(plan: Plan, counts: tuple[int, int], sums: tuple[int, int], totals: tuple[int, int] | None) -> NoisyTable:
    """Return a release in which the noise was 0."""
    parts = {
        "missing": (0, 0),
        "below": tuple(10 * n - s for n, s in zip(counts, sums, strict=True)),
        "above": sums,
    }
    made = tuple(tuple(parts[part.kind] for part in release.parts) for release in plan.releases)
    return NoisyTable((("a",), ("b",)), made, () if totals is None else (totals,))


def test_groups_are_scaled_to_the_measured_total_and_means_are_not() -> None:
    plan = planned({0: 10_000, 1: 5_000, 4: 3_000})
    noisy = released(plan, (60_000, 40_000), (300_000, 80_000), (100_000, 50_000))
    n, s, m = noisy_columns(plan, noisy, LEVEL)
    assert n.values == (90_000, 60_000)
    assert s.values == (450_000, 120_000)
    assert m.values == (5.0, 2.0)
    for column, kept in ((n, (60_000, 40_000)), (s, (300_000, 80_000))):
        for low, value, high, before in zip(column.low, column.values, column.high, kept, strict=True):
            assert low < before < value < high  # a group may have lost none
            assert high - value >= (value - before) / 2  # or half as many again


def test_one_unit_moves_the_totals_by_the_tail_cap_and_the_call_costs_what_it_says() -> None:
    plan = planned({0: 10_000, 4: 3_000})
    (vector,), (totals,) = plan.measured_totals, plan.totals
    assert vector.tail << vector.tail_shift >= 32  # the top octave that is believed ends there
    assert totals.sensitivity.l1 == vector.tail
    assert sum((each.share for each in (*plan.releases, *plan.totals)), Fraction(0)) == 1
    replaced = planned({0: 10_000, 4: 3_000}, neighbours="replace")
    assert replaced.totals[0].sensitivity.l1 == 2 * replaced.measured_totals[0].tail


@pytest.mark.parametrize("people", [{}, {0: 10_000}, {0: 10_000, 1: 3}])
def test_nothing_is_measured_where_nobody_is_known_to_be_beyond_the_bounds(people: dict[int, int]) -> None:
    plan = planned(people)
    assert plan.totals == plan.measured_totals == ()
    n, _, _ = noisy_columns(plan, released(plan, (6, 4), (30, 8), None), LEVEL)
    assert n.values == (6, 4)


def test_a_public_number_of_rows_is_a_free_anchor() -> None:
    query, declaration = ASKED.query, replace(ASKED.session.declaration, rows=150_000)
    spend = make_spend(1, None, None, ASKED.session.registered.budget)
    assert facts_by_hand(query, declaration, spend, NO_FACTS, None) == ()
    assert cut_by_hand(query, declaration, spend, NO_FACTS) is None
    plan = make_plan(query, declaration, spend)
    noisy = released(plan, (60_000, 40_000), (300_000, 80_000), None)
    n, s, m = noisy_columns(plan, noisy, LEVEL)
    assert (n.values, s.values, m.values) == ((90_000, 60_000), (450_000, 120_000), (5.0, 2.0))
