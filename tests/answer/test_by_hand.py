"""Counts and sums under bounds by hand are scaled back to what was measured of the whole table."""

from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest

import tacit
from tacit.answer.columns import noisy_columns
from tacit.answer.disclosure import bounds_record
from tacit.answer.words.bounds_words import bounds_lines
from tacit.plan import BINS, Plan, make_plan, make_spend
from tacit.plan.bounds.by_hand import cut_by_hand, facts_by_hand
from tacit.plan.bounds.facts import NO_FACTS, Fact
from tacit.release import NoisyTable
from tacit_gauntlet.stage.table import protected
from tests.plan.learned import rows

ROWS = pa.table({"id": [1, 2, 3], "g": ["a", "a", "b"], "x": [1, 2, 3]})
TABLE = protected(
    ROWS, columns={"x": {"between": (0, 10)}}, rows_per_unit=2, groups_per_unit=1, most_rows_per_unit=None
)
ASKED = TABLE.group_by("g", keys=["a", "b"]).agg(n=tacit.count(), s=tacit.sum("x"), m=tacit.mean("x"))
LEVEL = Fraction(95, 100)


def planned(people: dict[int, int], *, epsilon: object = 1, **changes: object) -> Plan:
    """Return the plan where a profile told that so many people have so many rows, with the noise of this epsilon."""
    query, declaration = ASKED.query, replace(ASKED.session.declaration, **changes)
    spend = make_spend(epsilon, None, None, ASKED.session.registered.budget)  # type: ignore[arg-type]
    (wanted,) = facts_by_hand(query, declaration, spend, NO_FACTS, None)
    told = rows(people)
    bins = tuple(told.get(place, 0) for place in range(BINS))
    (scale,) = (release.scale for release in wanted.plan.releases)
    fact = Fact(wanted.key, wanted.words, (bins,), (scale,), wanted.plan.spend.epsilon)
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
    plan = planned({1: 10_000, 3: 5_000, 32: 3_000})
    noisy = released(plan, (60_000, 40_000), (300_000, 80_000), (100_000, 50_000))
    n, s, m = noisy_columns(plan, noisy, LEVEL)
    assert n.values == (90_000, 60_000)
    assert s.values == (450_000, 120_000)
    assert m.values == (5.0, 2.0)
    for column, kept in ((n, (60_000, 40_000)), (s, (300_000, 80_000))):
        for low, value, high, before in zip(column.low, column.values, column.high, kept, strict=True):
            assert low < before < value < high  # a group may have lost none
            assert high - value >= value - before  # or twice as many as the others


def test_one_unit_moves_the_totals_by_the_tail_cap_and_the_call_costs_what_it_says() -> None:
    plan = planned({1: 10_000, 32: 3_000})
    (vector,), (totals,) = plan.measured_totals, plan.totals
    assert vector.tail << vector.tail_shift >= 32  # the end of the last bin that is believed
    assert totals.sensitivity.l1 == vector.tail
    assert sum((each.share for each in (*plan.releases, *plan.totals)), Fraction(0)) == 1
    replaced = planned({1: 10_000, 32: 3_000}, neighbours="replace")
    assert replaced.totals[0].sensitivity.l1 == 2 * replaced.measured_totals[0].tail


@pytest.mark.parametrize("people", [{}, {1: 10_000}, {1: 10_000, 3: 3}])
def test_nothing_is_measured_where_nobody_is_known_to_be_beyond_the_bounds(people: dict[int, int]) -> None:
    plan = planned(people)
    assert plan.totals == plan.measured_totals == ()
    n, _, _ = noisy_columns(plan, released(plan, (6, 4), (30, 8), None), LEVEL)
    assert n.values == (6, 4)


def lines_of(plan: Plan, totals: tuple[int, int] | None) -> tuple[str, ...]:
    noisy = released(plan, (600, 400), (3_000, 800), totals)
    return bounds_lines(plan, bounds_record(plan, noisy, LEVEL))


def tail_of(plan: Plan) -> int:
    (vector,) = plan.measured_totals
    return vector.tail << vector.tail_shift


def test_a_small_epsilon_learns_with_more_of_itself() -> None:
    shares = []
    for epsilon in (Fraction(1, 20), Fraction(1, 2), Fraction(1), Fraction(3)):
        spend = make_spend(epsilon, None, None, ASKED.session.registered.budget)
        (wanted,) = facts_by_hand(ASKED.query, ASKED.session.declaration, spend, NO_FACTS, None)
        shares.append(wanted.plan.spend.epsilon / epsilon)
    assert shares == [Fraction(1, 5), Fraction(1, 10), Fraction(1, 20), Fraction(1, 20)]


def test_at_a_small_epsilon_a_tail_cap_allows_for_people_who_were_not_seen_and_the_answer_says_so() -> None:
    """2,500 people with 1 to 3 rows; 300 more, with 64 rows each, are below what the profile can see."""
    people = {1: 1_500, 3: 1_000, 64: 300}
    plan = planned(people, epsilon="0.05")
    assert tail_of(plan) == 4 * 6, "twice doubled, from the end of the tail that is foreseen"
    assert any("known only coarsely" in line for line in lines_of(plan, (900, 300)))
    sharp = planned(people, epsilon=3)
    assert tail_of(sharp) == 64
    assert not any("coarsely" in line for line in lines_of(sharp, (900_000, 300_000)))


def test_a_tail_cap_is_doubled_where_some_were_missed_and_the_totals_stay_sharp() -> None:
    """At ε = 0.5 a profile may miss 60 people in a bin: of 5,000, and of 100,000, of whom that is next to nobody."""
    assert tail_of(planned({1: 3_000, 3: 2_000}, epsilon="0.5")) == 8 * 3
    assert tail_of(planned({1: 300, 3: 200, 1024: 4_000}, epsilon="0.5")) == 8 * 1024
    assert tail_of(planned({1: 60_000, 3: 40_000}, epsilon="0.5")) == 3
    few_rows = planned({1: 3_000, 128: 300}, epsilon="0.5")  # doubled, the noise would be a good part of all rows
    assert tail_of(few_rows) == 128


def test_where_nobody_is_seen_the_answer_says_that_what_is_left_out_is_not_known() -> None:
    for plan in (planned({}, epsilon="0.05"), planned({1: 400}, epsilon="0.05")):
        assert plan.totals == ()
        assert any("too few people to measure what the bounds leave out" in line for line in lines_of(plan, None))
    seen = planned({1: 100_000})
    assert seen.totals == ()
    assert not any("too few people" in line for line in lines_of(seen, None))


def test_a_public_number_of_rows_is_a_free_anchor() -> None:
    query, declaration = ASKED.query, replace(ASKED.session.declaration, rows=150_000)
    spend = make_spend(1, None, None, ASKED.session.registered.budget)
    assert facts_by_hand(query, declaration, spend, NO_FACTS, None) == ()
    assert cut_by_hand(query, declaration, spend, NO_FACTS) is None
    plan = make_plan(query, declaration, spend)
    noisy = released(plan, (60_000, 40_000), (300_000, 80_000), None)
    n, s, m = noisy_columns(plan, noisy, LEVEL)
    assert (n.values, s.values, m.values) == ((90_000, 60_000), (450_000, 120_000), (5.0, 2.0))
