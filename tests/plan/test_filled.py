"""Ranges and bounds that are missing are filled in from facts; no question is refused for want of one."""

from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest

import tacit
from tacit.accounting import charge_of
from tacit.errors import QueryRefused
from tacit.plan import LARGEST_LEAST, Fact, make_plan, make_spend, missing_facts
from tacit_gauntlet.stage.table import protected
from tests.plan.learned import learned, planted, rows

DATA = pa.table(
    {
        "id": [1, 2, 3],
        "g": ["a", "a", "b"],
        "x": [1, None, 3],
        "y": [1.0, 2.0, 3.0],
        "p": pa.array([Decimal("1.25"), None, Decimal("2.50")], pa.decimal128(12, 2)),
    }
)
PEOPLE = rows({1: 20_000, 2: 10_000, 5: 5_000, 40: 500, 300: 200})
ABSURD = {"nobody": ({}, 0), "all negative": ({}, -(10**9)), "all huge": ({}, 10**15), "last": ({63: 10**9}, 0)}
ASKED = {
    "variance": lambda table: table.variance("y"),
    "several": lambda table: table.agg(s=tacit.std("x"), q=tacit.median("p"), n=tacit.count()),
    "pair": lambda table: table.agg(c=tacit.covariance("x", "y"), r=tacit.correlation("x", "p")),
    "distinct": lambda table: table.agg(d=tacit.count_distinct("g")),
    "quantiles by": lambda table: table.group_by("g", keys=["a", "b"]).agg(q=tacit.quantile("y", 0.9)),
    "found": lambda table: table.group_by("g").agg(v=tacit.variance("x"), d=tacit.count_distinct("x")),
    "ranged by hand": lambda table: table.group_by("g").agg(v=tacit.variance("x", between=(0, 9))),
}
SUMS = {
    "mean": lambda table: table.mean("y"),
    "sum by": lambda table: table.group_by("g", keys=["a", "b"]).agg(s=tacit.sum("x"), m=tacit.mean("p")),
    "expression": lambda table: table.mean("x * y"),
}
# Made of scaled vectors, but for rows that are units.
SCALED = {*SUMS, "variance", "pair", "ranged by hand"}


def table(**declared):
    return protected(DATA, **({"rows_per_unit": None, "groups_per_unit": None, "most_rows_per_unit": None} | declared))


def asked_of(question, epsilon=1):
    spend = make_spend(epsilon, None, None, question.session.registered.budget)
    return question.query, question.session.declaration, spend


@pytest.mark.parametrize("name", [*ASKED, *SUMS])
def test_every_question_is_planned_whatever_was_learned(name):
    hand = {"rows_per_unit": 2, "groups_per_unit": 2}
    for declared in ({"unit": tacit.ROW}, hand, {}):
        if "unit" not in declared and name in SCALED:
            continue
        question = (ASKED | SUMS)[name](table(**declared))
        for epsilon, (people, off) in (
            (1, (PEOPLE, 0)),
            *((Fraction(1, 100), absurd) for absurd in ABSURD.values()),
        ):
            asked = asked_of(question, epsilon)
            plan = make_plan(*asked, learned(*asked, people, noise=off))
            assert plan.scaling is None or plan.is_mixed
            charge = charge_of(plan.events, asked=plan.asked)
            assert charge.epsilon <= epsilon
            assert all(release.scale > 0 for release in plan.releases)


def octaves(wanted, up=None, down=None):
    """Return the fact that 10,000 people have their largest value in each of these octaves above and below 0."""
    people = {octave - LARGEST_LEAST: 10_000 for octave in up or ()}
    people |= {octave - 3 * LARGEST_LEAST: 10_000 for octave in down or ()}
    return planted(wanted, people)


def range_of(question, sizes, distances, middle=0.5):
    """Return the range that is filled in, from octaves of values and of distances, the centre within its range."""
    asked, facts = asked_of(question), {}
    while wanted := missing_facts(*asked, facts):
        for each in wanted:
            if each.plan.quantiles:
                height = each.plan.measured[0].height
                facts[each.key] = Fact(each.key, each.words, ((int(height * middle),),) * 3, (), Fraction(1))
            else:
                facts[each.key] = octaves(each, *(distances if "middle" in each.words else sizes))
    return make_plan(*asked, facts).measured[0].between


def test_a_learned_range_is_what_distances_tell_on_the_sides_of_0_that_have_values():
    question = table(unit=tacit.ROW).mean("y")
    # all values in 0 … 1024; half of the search range is 512; distances up to 256 on either side of it
    assert range_of(question, ([3, 9],), ([3, 7], [3, 7])) == (256, 768)
    assert range_of(question, ([3, 9],), ([3, 9], [3, 9])) == (0, 1536)
    assert range_of(question, ([3, 9], [2]), ([3, 8], [3, 8])) == (-4, 1020)
    assert range_of(question, ([], [5]), ([3], [3])) == (-48, -16)


def test_a_range_ends_at_0_only_if_it_is_clearly_smaller_then():
    """Sizes have less of epsilon than distances: some hundred values below 0 may not be seen."""
    question = table(unit=tacit.ROW).mean("y")
    assert range_of(question, ([3, 9],), ([3, 8], [3, 8]), middle=3 / 8) == (-128, 896)
    assert range_of(question, ([3, 9],), ([3, 8], [3, 8]), middle=1 / 8) == (0, 640)


def test_who_has_several_rows_may_be_as_far_on_the_side_that_is_not_seen():
    """Everybody rates 1 and 5: of two distances that are equal, the one above the middle is in the profile."""
    several = range_of(table(rows_per_unit=4).median("x", of="rows"), ([2],), ([1],), middle=3 / 7)
    alone = range_of(table(rows_per_unit=1).median("x"), ([2],), ([1],), middle=3 / 7)
    assert several == (0, 6)
    assert alone == (3, 6)


def test_a_size_that_misses_the_tail_does_not_cut_it_off():
    question = table(unit=tacit.ROW).mean("y")
    # sizes are believed up to 16 only; distances from the centre, 4, up to 1024: with them all of 0 … 1028
    assert range_of(question, ([3],), ([3, 9], [1]), middle=0.25) == (0, 1028)


def test_a_range_by_hand_wins_and_nothing_is_learned_of_it():
    question = table(unit=tacit.ROW).agg(m=tacit.mean("y", between=(0, 5)), v=tacit.variance("x", between=(0, 9)))
    assert missing_facts(*asked_of(question), {}) == ()
    with pytest.raises(QueryRefused, match="no public range"):
        make_plan(*asked_of(table(unit=tacit.ROW).mean("y")))


def test_bounds_that_are_filled_in_leave_most_people_whole():
    question = (
        table().group_by("g", keys=["a", "b"]).agg(v=tacit.variance("x", between=(0, 9)), d=tacit.count_distinct("x"))
    )
    asked, facts = asked_of(question), {}
    while wanted := missing_facts(*asked, facts):
        for each in wanted:
            people = {1: 900, 7: 90, 40: 10} if "groups" in each.words else {1: 900, 20: 90, 500: 10}
            facts[each.key] = planted(each, rows({size: 100 * count for size, count in people.items()}))
    plan = make_plan(*asked, facts)
    assert plan.groups_per_unit == 2  # all of the listed groups
    assert plan.rows_per_unit == 256, "what a cap of 512 rows leaves in each of two groups"


def test_infinite_values_do_not_stretch_a_range_and_nothing_collapses_it():
    question = table(unit=tacit.ROW).variance("y")
    assert range_of(question, ([3, 63], [63]), ([3], [3]), middle=0.5) == (0, 24)
    low, high = range_of(question, ([62], [62]), ([], [3]), middle=1.0)
    assert high - low >= 2**63 / 2**20  # all values are next to each other, and far from 0


def test_a_column_of_zeros_has_no_size_and_is_summed_about_0():
    asked = asked_of(table().group_by("g", keys=["a", "b"]).agg(n=tacit.count(), m=tacit.mean("y")))
    facts = {}
    while wanted := missing_facts(*asked, facts):
        assert not any(each.plan.quantiles for each in wanted)  # no centre is paid for
        facts |= {each.key: planted(each, {} if "y" in each.words.split() else PEOPLE) for each in wanted}
    sums = make_plan(*asked, facts).scaling.vectors[-1]
    column = make_plan(*asked, facts).measured[sums.column]
    assert column.low + sums.centre == 0
    assert sums.cap / 2**sums.shift * column.step <= 2**12
