"""Scaled plans: groups are multiplied by what the totals measured, and intervals hold noise, anchor and cut."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tacit.answer.anchors import Anchor, anchors, lost_more
from tacit.answer.columns import noisy_columns
from tacit.answer.noise_sums import law_bound, weighted_bound
from tacit.answer.scaled_columns import corrected_ends, largest_products
from tacit.forecast import plan_in_words
from tacit.plan import CountRows, CountUnits, CountValues, Mean, Measured, Sum, Vector
from tacit.plan.bounds.scaling import Outlook
from tacit.privacy import StaircaseNoise
from tacit.query import Column
from tests.answer.scaled_plans import noisy_of, scaled_plan

CONFIDENCE = Fraction(95, 100)
FINE = 1 << 10
ROWS = Vector("rows", shift=10, cap=1 << 14, totals="absolute", tail=1 << 20, tail_shift=2)
N = CountRows("n", 0)


def counted(cells, totals, *, scale=5 * FINE, totals_scale=1000, vector=ROWS, **changed):
    plan = scaled_plan([N], [vector], scales=[scale], totals_scales=[totals_scale], groups=len(cells), **changed)
    return plan, noisy_of([cells], [totals])


def column_of(plan, noisy):
    (column,) = noisy_columns(plan, noisy, CONFIDENCE)
    return column


def test_a_count_is_the_noisy_cell_times_one_plus_cut_over_kept():
    plan, noisy = counted([100 * FINE, 37 * FINE + 1, -3 * FINE], (900_000, 300_000))
    assert anchors(plan, noisy, CONFIDENCE)[0].factor == Fraction(4, 3)
    cells = [100 * FINE, 37 * FINE + 1, -3 * FINE]
    assert column_of(plan, noisy).values == tuple(
        math.floor(Fraction(4, 3) * each / FINE + Fraction(1, 2)) for each in cells
    )
    assert column_of(plan, noisy).values == (133, 49, -4)


def test_a_fine_step_may_be_several_steps():
    vector = Vector("rows", shift=-3, cap=1 << 14, totals="absolute", tail=1 << 20)
    plan, noisy = counted([100], (3_000_000, 1_000_000), scale=2, vector=vector)
    assert column_of(plan, noisy).values == (round(100 * 8 * 4 / 3),)


def test_noise_below_zero_in_what_was_cut_makes_no_group_smaller():
    plan, noisy = counted([100 * FINE], (900_000, -5_000))
    assert anchors(plan, noisy, CONFIDENCE)[0].factor == 1
    assert column_of(plan, noisy).values == (100,)


@pytest.mark.parametrize("kept", [-7_000, 0, 3_999])
def test_what_was_kept_counts_for_at_least_four_scales_of_its_noise(kept):
    plan, noisy = counted([100 * FINE], (kept, 2_000))
    assert anchors(plan, noisy, CONFIDENCE)[0].factor == Fraction(3, 2)


def test_the_ends_of_the_factor_are_where_its_own_noise_would_be_too_rare():
    plan, noisy = counted([100 * FINE], (900_000, 300_000))
    found = anchors(plan, noisy, CONFIDENCE)[0]
    for end, sign in ((found.low, 1), (found.high, -1)):
        ratio = end - 1
        bound = weighted_bound("laplace", Fraction(1000), (1.0, ratio), CONFIDENCE)
        assert sign * (300_000 - ratio * 900_000) == pytest.approx(bound, rel=1e-6)
    assert found.low < Fraction(4, 3) < found.high


def test_a_factor_made_of_noise_has_no_upper_end_and_all_that_was_cut_may_be_in_one_group():
    plan, noisy = counted([2 * FINE], (100, 2_000))
    found = anchors(plan, noisy, CONFIDENCE)[0]
    assert math.isinf(found.high)
    column = column_of(plan, noisy)
    reach = law_bound(plan.releases[0].law, CONFIDENCE) / FINE
    most = (2_000 + law_bound(plan.totals[0].law, CONFIDENCE)) * 4 / FINE
    assert column.low[0] == math.ceil(2 - reach - 0.5)
    assert column.high[0] == pytest.approx(2 + reach + most, abs=1)


def test_a_bar_reaches_from_a_group_that_lost_none_to_one_that_lost_as_much_more_as_groups_may():
    plan, noisy = counted([1000 * FINE], (900_000, 300_000))
    found, column = anchors(plan, noisy, CONFIDENCE)[0], column_of(plan, noisy)
    reach = law_bound(plan.releases[0].law, CONFIDENCE) / FINE
    off = math.hypot(found.high - 4 / 3, lost_more(3 / 4, 0.0) / 3)
    above = max(
        (1000 + math.cos(angle / 1000) * reach) * (4 / 3 + math.sin(angle / 1000) * off) for angle in range(1571)
    )
    assert column.values == (1333,)
    assert column.low == (math.ceil(1000 - reach - 0.5),)
    assert column.high[0] == pytest.approx(above, abs=1)
    # of a group far above its noise, the errors add up as squares
    assert column.high[0] == pytest.approx(4000 / 3 + math.hypot(4 / 3 * reach, off * 1000), rel=0.01)


def test_a_group_may_have_lost_still_more_where_heavy_people_are_in_one_group_each():
    factor, lost = Fraction(4, 3), 1 / 3
    ends = {}
    for alone in (0.0, 0.5, 1.0):
        anchor = Anchor(factor, 4 / 3, 4 / 3, 4 / 3, alone=alone)
        _, high = corrected_ends(np.array([1000.0]), (np.zeros(1), np.zeros(1)), anchor)
        ends[alone] = high[0]
    assert ends == {alone: pytest.approx(1000 * (4 / 3 + lost_more(3 / 4, alone) * lost)) for alone in ends}


@pytest.mark.parametrize("sign", [1, -1])
def test_the_bar_of_a_sum_that_may_be_negative_is_the_same_on_both_sides_of_0(sign):
    vector = Vector("centred", 0, centre=1 << 30, shift=10, totals="absolute", tail=1 << 20, tail_shift=2)
    plan = scaled_plan([Sum("s", 0, 0)], [vector], scales=[5 * FINE], totals_scales=[1000], groups=1)
    kept = 1000 * FINE // 4
    column = column_of(plan, noisy_of([[sign * 1000 * FINE]], [(kept, kept // 3)]))
    reach = law_bound(plan.releases[0].law, CONFIDENCE) / FINE
    near, far = sorted((abs(column.low[0]), abs(column.high[0])))
    assert column.values[0] * sign == 1333
    assert near == pytest.approx(1000 - reach, abs=1), "a group may have lost none"
    assert far > 1333 + 1000 / 3


def test_a_group_as_large_as_its_noise_may_have_been_cut_by_more_than_the_factor_says():
    plan, noisy = counted([0], (90_000, 180_000))
    found, column = anchors(plan, noisy, CONFIDENCE)[0], column_of(plan, noisy)
    reach = law_bound(plan.releases[0].law, CONFIDENCE) / FINE
    most = 3 + 2 * lost_more(1 / 3, 0) + (found.high - 3)  # more than the average, and the average may be more
    assert 3 * reach * 1.05 < column.high[0] < most * reach, (
        "beyond the factor times the noise, and not by both in full"
    )
    assert column.low[0] == pytest.approx(-reach, abs=1)


def test_the_largest_product_of_two_errors_that_are_off_together():
    kept, reach = np.array([0.0, 100.0, 1e9, -50.0]), np.array([10.0, 10.0, 10.0, 10.0])
    found = largest_products(kept, reach, 2.0, 1.5)
    angles = np.linspace(0, math.pi / 2, 100_001)
    for each, of, by in zip(found.tolist(), kept.tolist(), reach.tolist(), strict=True):
        best = ((of + by * np.cos(angles)) * (2.0 + 1.5 * np.sin(angles))).max()
        assert best - 1e-3 * abs(best) <= each <= best
    assert largest_products(kept, reach, 2.0, 0.0).tolist() == (2 * (kept + reach)).tolist(), "noise alone, scaled up"


def test_what_cancels_inside_groups_widens_both_ends():
    vector = Vector("centred", 0, centre=1 << 30, shift=10, totals="absolute", tail=1 << 20, tail_shift=2)
    plan = scaled_plan([Sum("s", 0, 0)], [vector], scales=[5 * FINE], totals_scales=[1000], groups=1)
    kept = 9000 * FINE // 4  # nine times what is left of it in the sum
    column = column_of(plan, noisy_of([[1000 * FINE]], [(kept, kept // 3)]))
    assert column.low[0] < 1000 - 8000 / 3 + 100
    assert column.high[0] > 1333 + 8000 / 3 - 100


def test_where_nothing_was_cut_the_bar_is_the_noise_alone():
    exact = Vector("rows", shift=10, cap=1 << 14)
    plan = scaled_plan([N], [exact], scales=[5 * FINE], groups=0)
    column = column_of(plan, noisy_of([[100 * FINE]]))
    reach = law_bound(plan.releases[0].law, CONFIDENCE) / FINE
    assert (column.values, column.low, column.high) == ((100,), (100 - round(reach),), (100 + round(reach),))


def test_without_totals_the_bar_allows_for_the_cut_that_is_foreseen():
    foreseen = Outlook(people=50, mass=100, kept=0.8, scaled=5, beyond=0, beyond_most=1, excess=0)
    plan = scaled_plan([N], [Vector("rows", shift=10, outlook=foreseen)], scales=[5 * FINE], groups=1)
    column = column_of(plan, noisy_of([[1000 * FINE]]))
    assert column.values == (1000,)
    assert column.high[0] - 1000 >= 250


def test_a_group_may_have_lost_more_by_luck_where_few_people_make_up_what_was_cut():
    foreseen = Outlook(people=50, mass=100, kept=0.8, scaled=5, beyond=0, beyond_most=1, excess=0)
    found = []
    for cut in (0.0, 1000.0):
        vector = Vector("rows", shift=10, outlook=replace(foreseen, cut_in_cells=cut))
        plan = scaled_plan([N], [vector], scales=[5 * FINE], groups=1)
        found.append(column_of(plan, noisy_of([[1000 * FINE]])).high[0] - 1250)
    assert found[1] == pytest.approx(math.hypot(found[0], 2 * math.sqrt(1250 * 1000)), rel=0.01)


def test_the_less_is_cut_the_more_groups_may_differ_in_it():
    assert [lost_more(kept, 0.0) for kept in (1.0, 0.5, 0.0)] == pytest.approx([1.75, 1.125, 0.5])
    assert lost_more(1.0, 1.0) == pytest.approx(1 + lost_more(1.0, 0.0)), "where people are in one group each"


def test_a_public_number_of_rows_is_what_all_groups_add_up_to():
    plan = scaled_plan([N], [Vector("rows", shift=10)], scales=[FINE // 8], groups=3, public_rows=1000)
    column = column_of(plan, noisy_of([[100 * FINE, 200 * FINE, 500 * FINE]]))
    assert column.values == (125, 250, 625)
    filtered = scaled_plan(
        [N], [Vector("rows", shift=10)], scales=[FINE // 8], groups=3, public_rows=1000, where=Column("x")
    )
    assert column_of(filtered, noisy_of([[100 * FINE, 200 * FINE, 500 * FINE]])).values == (100, 200, 500)


def test_counts_of_values_and_of_units_have_factors_of_their_own():
    counted, units = (
        Vector(kind, column, shift=4, totals="absolute", tail=99) for kind, column in (("counted", 0), ("units", None))
    )
    plan = scaled_plan(
        [CountUnits("u", 1), CountValues("c", 0, 0)], [counted, units], scales=[9, 9], totals_scales=[5, 5]
    )
    u, c = noisy_columns(plan, noisy_of([[160], [320]], [(1000, 1000), (1000, 500)]), CONFIDENCE)
    assert (u.values, c.values) == ((30,), (20,))


def test_a_sum_is_on_its_columns_step():
    quarter = Measured(Column("x"), "float", Fraction(1, 4), -(1 << 30), 1 << 30)
    vector = Vector("centred", 0, centre=1 << 30, shift=2, totals="absolute", tail=1 << 20)
    plan = scaled_plan([Sum("s", 0, 0)], [vector], scales=[9], totals_scales=[9], groups=2, measured=(quarter,))
    column = column_of(plan, noisy_of([[1000, -1000]], [(8_000, 2_000)]))
    assert column.values == (313 / 4, -312 / 4)  # 250 steps times 5/4, halves upwards
    assert all(low < value < high for low, value, high in zip(column.low, column.values, column.high, strict=True))


def mean_plan(outputs, *, shift_n=4, shift_d=3, centre=50, scales=(16, 8), totals_scales=(20, 20), **changed):
    column = Measured(Column("x"), "int", Fraction(1), centre - (1 << 30), centre + (1 << 30))
    rows = Vector("rows", shift=shift_n, totals="absolute", tail=1 << 20)
    sums = Vector("centred", 0, centre=1 << 30, shift=shift_d, totals="signed", tail=1 << 20, rows=0)
    return scaled_plan(outputs, [rows, sums], scales=scales, totals_scales=totals_scales, measured=(column,), **changed)


def test_a_mean_is_the_centre_and_the_kept_mean_and_one_shift():
    plan = mean_plan([Mean("m", 1, 0)], groups=2)
    rows, sums = [1000 * 16, 3 * 16], [2000 * 8, 8]
    # in steps: rows kept 10,000 and cut 2,500; sums kept 20,000 and cut 17,500
    totals = [(160_000, 40_000), (160_000, 140_000)]
    column = column_of(plan, noisy_of([rows, sums], totals))
    shift = 37_500 / 12_500 - 20_000 / 10_000
    assert column.values[0] == pytest.approx(50 + 2 + shift)
    assert column.values[1] is None, "three rows are too few for their noise"
    assert (column.low[1], column.high[1]) == (None, None), "no range was declared"
    assert column.high[0] - column.values[0] >= shift


def test_a_sum_beside_a_mean_is_count_times_mean():
    plan = mean_plan([CountRows("n", 0), Mean("m", 1, 0), Sum("s", 1, 0)], groups=1)
    noisy = noisy_of([[1000 * 16], [2000 * 8]], [(160_000, 40_000), (160_000, 140_000)])
    n, m, s = noisy_columns(plan, noisy, CONFIDENCE)
    assert n.values == (1250,)
    assert s.values[0] == pytest.approx(1250 * m.values[0], abs=1)


def test_a_mean_of_the_whole_table_has_an_interval_under_staircase_noise_too():
    plan = mean_plan([Mean("m", 1, 0)], groups=0)
    plan = replace(plan, scaling=replace(plan.scaling, vectors=tuple(map(without_totals, plan.scaling.vectors))))
    law = StaircaseNoise(epsilon=Fraction(6), sensitivity=Fraction(96), width=Fraction(9))
    stairs = replace(plan.releases[1], noise="staircase", event=law)
    plan = replace(plan, releases=(plan.releases[0], stairs), totals=())
    column = column_of(plan, replace(noisy_of([[1000 * 16], [2000 * 8]]), keys=((),)))
    # each noise is bounded at half the probability to miss; at the mean of 2 the rows' noise counts twice
    reach = [law_bound(each.law, Fraction(975, 1000)) / fine for each, fine in zip(plan.releases, (16, 8), strict=True)]
    assert column.values == (52.0,)
    assert column.high[0] - 52 == pytest.approx((reach[1] + 2 * reach[0]) / 1000, rel=0.01)
    assert plan_in_words(plan)


def without_totals(vector):
    return replace(vector, totals=None)


def foretold(kept, mass, **more):
    return Outlook(people=1000, mass=mass, kept=kept, scaled=100, beyond=0, beyond_most=9, excess=0, **more)


def mean_by_facts(cut, *, rows=1000, of_rows=None, of_sums=None, **changed):
    """The mean of one of two groups, 4 above the centre, of which half the rows are foretold to be cut."""
    column = Measured(Column("x"), "int", Fraction(1), 50 - (1 << 30), 50 + (1 << 30))
    counting = Vector("rows", shift=4, outlook=of_rows or foretold(0.5, 4000))
    sums = Vector("centred", 0, centre=1 << 30, shift=4, rows=0, totals=None if cut is None else "signed", tail=1 << 20)
    sums = replace(sums, outlook=of_sums or foretold(0.5, 40_000))
    plan = scaled_plan(
        [Mean("m", 1, 0)],
        [counting, sums],
        scales=(16, 16),
        totals_scales=() if cut is None else (400,),
        measured=(column,),
        groups=2,
        **changed,
    )
    parts = [[rows * 16] * 2, [4 * rows * 16] * 2]
    if cut is None:
        return column_of(plan, noisy_of(parts))
    return column_of(plan, noisy_of(parts, [(4 * 2 * rows * 16, int(cut * 16))]))


def half_of(column):
    return (column.high[0] - column.low[0]) / 2


def test_a_mean_is_shifted_by_what_was_cut_of_its_sums_where_that_is_clearly_something():
    # 2,000 rows are kept and as many cut; those are 20 above the centre, not 4: all together are 12 above it
    assert mean_by_facts(20 * 2000).values[0] == pytest.approx(62)
    assert half_of(mean_by_facts(20 * 2000)) > 8, "a group may be like those that were kept"
    # 4.5 above it may as well be 4: nothing is shifted
    assert mean_by_facts(4.5 * 2000).values[0] == pytest.approx(54)


def test_totals_that_lack_something_shift_a_mean_towards_what_they_lack_and_never_away_from_it():
    lacks = foretold(0.5, 40_000, beyond_totals=1_200)
    assert mean_by_facts(20 * 2000, of_sums=lacks).values[0] == pytest.approx(62)
    # those that were cut are 1 above the centre, and those beyond the tail, who are not in it, may well be far above it
    assert mean_by_facts(1 * 2000).values[0] == pytest.approx(52.5)
    assert mean_by_facts(1 * 2000, of_sums=lacks).values[0] == pytest.approx(54)
    much = foretold(0.5, 40_000, beyond_totals=20_000)
    assert mean_by_facts(20 * 2000, of_sums=much).values[0] == pytest.approx(54), "less than twice what it may be off"


def test_totals_that_tell_nothing_of_a_difference_make_the_bar_of_a_mean_narrow():
    assert half_of(mean_by_facts(4 * 2000)) < 0.6 * half_of(mean_by_facts(None))
    # the less, the more people have beyond the tail of the totals, which is in none of them
    beyond = foretold(0.5, 40_000, beyond_totals=12_000)
    assert half_of(mean_by_facts(4 * 2000, of_sums=beyond)) > half_of(mean_by_facts(4 * 2000)) + 1


def test_what_is_cut_because_of_far_values_is_whole_in_the_bar_of_a_mean_and_one_persons_rows_are_by_two_deviations():
    many_rows = half_of(mean_by_facts(None))
    far_values = half_of(mean_by_facts(None, of_sums=foretold(0.5, 40_000, by_values=0.5)))
    assert 2.4 < many_rows < 3.2  # half of the half that is cut, at a mean distance of 10
    assert 4.9 < far_values < 5.3
    one_person = foretold(0.5, 4000, cut_in_cells=1e9)
    assert half_of(mean_by_facts(None, of_rows=one_person)) == pytest.approx(math.hypot(many_rows, 12.5), rel=1e-3)


def test_the_fewer_people_a_group_has_the_more_luck_is_in_the_bar_of_its_mean():
    lumps = foretold(0.5, 4000, cut_in_cells=10.0)
    assert half_of(mean_by_facts(None, of_rows=lumps)) > half_of(mean_by_facts(None)) + 0.1
    large = half_of(mean_by_facts(None, rows=100_000, of_rows=lumps))
    assert large == pytest.approx(half_of(mean_by_facts(None, rows=100_000)), rel=0.01)


def test_people_too_few_to_be_seen_are_in_the_bar_of_a_mean_as_far_as_the_cap_takes_more_from_them_than_from_others():
    def off(at_tail, unseen=20.0, rows=1000):
        some = foretold(0.5, 40_000, tail_cap=1000.0, unseen=unseen, at_tail=at_tail)
        return half_of(mean_by_facts(None, rows=rows, of_sums=some))

    alike = half_of(mean_by_facts(None))
    # 20 people of 4,000 rows who have 1,000 each: all means are lower by 5, and that of 2,000 rows by luck 2 √10 people
    assert off(0.0) == pytest.approx(math.hypot(alike + 5, 2 * math.sqrt(10) * 1000 / 2000), rel=0.03)
    assert off(0.2) < off(0.0), "two fifths of what others' rows count for are left"
    assert off(0.5) == off(0.3) == off(1.0) > alike + 2, "half of it may be beyond the tail cap"
    assert off(0.0, unseen=0.0) == alike
    assert off(0.0, rows=100_000) < off(0.0), "many people have their share of them"
    few = foretold(0.5, 40_000, tail_cap=1000.0, unseen=0.01, at_tail=0.0)
    assert half_of(mean_by_facts(None, of_sums=few)) == pytest.approx(alike, rel=0.01), "hardly one is anywhere"
