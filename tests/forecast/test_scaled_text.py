"""A plan that scales, in words: what is learned, caps, and an error with its three parts; `error=` solves for all."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.answer.anchors import most_of_groups
from tacit.errors import QueryRefused
from tacit.forecast import goals_of, group_rows, learning_in_words, least_epsilon, plan_in_words
from tacit.forecast.target import foreseen_error
from tacit.plan import (
    PART_OF_MEAN,
    CountRows,
    Mean,
    Measured,
    Sum,
    Vector,
    make_plan,
    make_spend,
    missing_facts,
)
from tacit.plan.bounds.scaling import Outlook
from tacit.privacy import PureLoss
from tacit.query import Column
from tacit.query.frame import count, mean
from tacit_gauntlet.stage.table import protected
from tests.answer.scaled_plans import scaled_plan
from tests.plan.learned import learned, rows

LEVEL = Fraction(95, 100)
FINE = 1 << 10
SEEN = Outlook(
    people=10_000, mass=1e6, kept=0.75, scaled=500, beyond_most=40, excess=0, lost=250_000, lost_most=260_000
)
NO_MORE = replace(SEEN, lost=0, lost_most=0, kept=1.0)
ROWS = Vector("rows", shift=10, cap=32 << 10, totals="absolute", tail=2048 << 8, tail_shift=2, outlook=SEEN)
TABLE = protected(
    pa.table({"id": [1], "g": [0], "x": [1]}),
    rows_per_unit=None,
    groups_per_unit=None,
    most_rows_per_unit=None,
    budget=tacit.epsilon(9, delta=1e-6),
)
DECLARED, BUDGET = TABLE.session.declaration, TABLE.session.registered.budget
PEOPLE = rows({1: 50_000, 4: 20_000, 16: 3_000, 64: 500})


def solve_epsilon(wanted, plans_at, confidence, sizes):
    return least_epsilon(goals_of(wanted, plans_at(Fraction(1)), sizes, {}), plans_at, confidence)


def counted(*, groups=1000, vector=ROWS, **changed):
    totals = [2000 * FINE // 4] if vector.totals else []
    outputs = [CountRows("n", 0)]
    return scaled_plan(outputs, [vector], scales=[30 * FINE], totals_scales=totals, groups=groups, **changed)


def planned(asked, epsilon=1, people=PEOPLE):
    spend = make_spend(epsilon, None, None, BUDGET)
    facts = learned(asked.query, DECLARED, spend, people)
    return make_plan(asked.query, DECLARED, spend, facts), facts


def part_of(groups):
    """Which part of all that is missing a group of mean size may lack."""
    return float(most_of_groups(np.full(groups, 1 / groups))[0])


def test_noise_total_and_what_a_group_lacks_beyond_its_share_are_joined_as_squares():
    found = foreseen_error(CountRows("n", 0), counted(), LEVEL)
    assert found.noise == pytest.approx(30 * math.log(20) / 0.75, rel=0.01)
    assert found.scaling == pytest.approx(part_of(1000) * 260_000 - 250)
    assert found.total == pytest.approx(2000 * math.log(20) / 1e6 * 1000, rel=0.2)
    assert found.whole == pytest.approx(math.hypot(found.noise, found.total, found.scaling))


def test_the_line_of_an_output_has_the_three_parts_and_the_groups():
    text = plan_in_words(counted())
    parts = "(noise 120, total 6.23, scaling 207)"
    assert f"  n: about ± 240 a group on average {parts}, for 1,000 groups of about 1,000 rows" in text
    assert "Unit: id; all its rows count, with one weight, in full up to 32 rows; no row is picked at random." in text
    assert "Rows with a NULL unit never count." in text
    assert "Totals: of all rows, the kept and the cut part" in text
    assert "a unit adds at most 2,048 rows" in text


def test_one_number_has_its_noise_and_all_that_is_foreseen_to_be_missing():
    one = replace(ROWS, totals=None, tail=0, tail_shift=0, outlook=replace(SEEN, lost=10, lost_most=200))
    found = foreseen_error(CountRows("n", 0), counted(groups=0, vector=one), LEVEL)
    assert (found.noise, found.scaling) == (pytest.approx(89.9, abs=0.1), 200)
    assert f"  n: ± {math.hypot(89.9, 200):.0f}" in plan_in_words(counted(groups=0, vector=one))
    sure = replace(one, outlook=replace(SEEN, lost=0, lost_most=0))
    assert "  n: ± 89.9" in plan_in_words(counted(groups=0, vector=sure))


def test_without_totals_nothing_is_put_back_of_what_a_group_may_lack():
    cut = foreseen_error(CountRows("n", 0), counted(vector=replace(ROWS, totals=None)), LEVEL)
    assert (cut.total, cut.scaling) == (0.0, pytest.approx(part_of(1000) * 260_000))
    assert cut.noise == pytest.approx(30 * math.log(20), rel=0.01)


def test_facts_from_too_few_people_are_called_that():
    none = replace(ROWS, outlook=replace(SEEN, mass=0.0, people=0.0))
    text = plan_in_words(counted(vector=none))
    assert "Too few people to learn bounds from" in text
    assert "the rest is not known" in text


def test_means_and_their_sums_have_three_parts_too():
    column = Measured(Column("x"), "int", Fraction(1), 50 - (1 << 30), 50 + (1 << 30))
    sums = Vector(
        "centred", 0, centre=1 << 30, shift=3, totals="signed", tail=1 << 20, rows=0, outlook=replace(SEEN, mass=5e6)
    )
    plan = scaled_plan(
        [CountRows("n", 0), Mean("m", 1, 0), Sum("s", 1, 0)],
        [ROWS, sums],
        scales=[30 * FINE, 8 * 60],
        totals_scales=[2000 * FINE // 4, 8 * 9000],
        groups=1000,
        measured=(column,),
    )
    m = foreseen_error(Mean("m", 1, 0), plan, LEVEL)
    # 5 is how far rows are from the centre, and a mean is taken to be half of that from it; 750 rows are kept
    lacks = PART_OF_MEAN * part_of(1000) * (260_000 + 5 / 2 * 260_000) / 750
    assert m.scaling == pytest.approx(lacks)
    # the noise of 750 rows moves the mean as well
    assert 60 * math.log(20) / 750 < m.noise < (60 + 5 * 30) * math.log(20) / 750
    s = foreseen_error(Sum("s", 1, 0), plan, LEVEL)
    assert s.size == pytest.approx(1000 * 55)
    rows = foreseen_error(CountRows("n", 0), plan, LEVEL)
    assert s.scaling == pytest.approx(math.hypot(50 * rows.scaling, 1000 * m.scaling))


def test_before_anything_is_learned_a_plan_says_what_is_and_for_how_much():
    asked = TABLE.group_by("g", keys=list(range(50))).agg(n=count())
    wanted = missing_facts(asked.query, DECLARED, make_spend(1, None, None, BUDGET), {})
    plan = replace(wanted[0].plan, spend=make_spend(Fraction(884_601, 1_000_000), None, None, BUDGET))
    ends = [(rows, counted(vector=replace(ROWS, cap=rows << 10, outlook=NO_MORE))) for rows in (1, 10)]
    text = learning_in_words(plan, wanted, PureLoss(Fraction(1)), {"": ends}, LEVEL)
    assert "Bounds: learned in this call and kept. ε = 0.12 of 1 goes to them; they are free" in text
    assert "  how many rows an id has, in all and by g: ε = 0.1" in text
    assert "for a group of 1,000 people with 1 to 10 rows each:\n  n: about ± 90" in text
    assert "Loss: ε = 1 for one unit." in text


@pytest.mark.parametrize("grouped", [True, False])
def test_an_error_is_solved_for_as_a_whole(grouped):
    asked = (TABLE.group_by("g", keys=list(range(50))) if grouped else TABLE).agg(n=count())
    _, facts = planned(asked)

    def plan_at(epsilon):
        return make_plan(asked.query, DECLARED, make_spend(epsilon, None, None, BUDGET), facts)

    wanted = 300 if grouped else 900  # one number may lack all that the profile leaves in doubt
    solved = solve_epsilon(wanted, lambda tried: [plan_at(tried)], LEVEL, lambda plan: group_rows(plan, None, None))
    output = CountRows("n", 0)
    assert foreseen_error(output, plan_at(solved.epsilon), LEVEL).whole <= wanted
    assert foreseen_error(output, plan_at(solved.epsilon * Fraction(9, 10)), LEVEL).whole > wanted


def test_a_percent_of_a_count_is_of_all_rows_that_facts_tell_of():
    asked = TABLE.group_by("g", keys=list(range(50))).agg(n=count())
    plan, facts = planned(asked)
    mass = plan.scaling.vectors[0].outlook.mass

    def plan_at(epsilon):
        return make_plan(asked.query, DECLARED, make_spend(epsilon, None, None, BUDGET), facts)

    sizes = lambda plan: group_rows(plan, None, None)  # noqa: E731
    as_percent, as_number = (
        solve_epsilon(wanted, lambda tried: [plan_at(tried)], LEVEL, sizes) for wanted in ("0.1%", mass / 1000)
    )
    assert as_percent.epsilon == as_number.epsilon


def test_an_error_is_refused_where_facts_tell_nothing():
    asked = TABLE.group_by("g", keys=[1, 2]).agg(n=count())
    plan, _ = planned(asked, people={})
    with pytest.raises(QueryRefused, match="too few people were seen when its bounds were learned"):
        solve_epsilon(300, lambda _: [plan], LEVEL, lambda plan: group_rows(plan, None, None))


def test_a_percent_of_a_mean_needs_a_range():
    asked = TABLE.group_by("g", keys=[1, 2]).agg(m=mean("x"))
    plan, _ = planned(asked)
    with pytest.raises(QueryRefused, match="relative to the range of its column, which is not declared"):
        solve_epsilon("1%", lambda _: [plan], LEVEL, lambda plan: group_rows(plan, None, None))


def test_a_first_plan_says_how_small_a_group_is_hidden():
    def hidden(asked):
        return [line for line in str(asked.plan(epsilon=1)).splitlines() if line.startswith("Hidden:")]

    (found,) = hidden(TABLE.group_by("g").count())
    few, many = (int(word) for word in found.split() if word.isdigit())
    assert few < many  # by the last round that may follow, and by the first alone
    (asked,) = hidden(TABLE.group_by("g", smallest=30).count())
    assert " to " not in asked  # a size that is asked for has one round
    assert not hidden(TABLE.group_by("g", keys=[0, 1]).count())
    assert not hidden(TABLE.count())
