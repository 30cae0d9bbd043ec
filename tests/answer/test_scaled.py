"""Scaled plans: groups are multiplied by what the totals measured, and intervals hold noise, anchor and cut."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from tacit.answer.anchors import anchors
from tacit.answer.columns import noisy_columns
from tacit.answer.noise_sums import law_bound, weighted_bound
from tacit.forecast import plan_in_words
from tacit.plan import CountRows, CountUnits, CountValues, Mean, Measured, Sum, Vector
from tacit.plan.scaling import Outlook
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


def test_a_bar_reaches_from_a_group_that_lost_none_to_one_that_lost_half_as_much_again():
    plan, noisy = counted([1000 * FINE], (900_000, 300_000))
    found, column = anchors(plan, noisy, CONFIDENCE)[0], column_of(plan, noisy)
    reach = law_bound(plan.releases[0].law, CONFIDENCE) / FINE
    above = math.hypot(4 / 3 * reach, found.error * 1000, 1000 / 3 / 2)
    assert column.values == (1333,)
    assert column.low == (math.ceil(1000 - reach - 0.5),)
    assert column.high == (1333 + math.floor(4000 / 3 - 1333 + above + 0.5),)


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
    assert far > 1333 + 1000 / 3 / 2


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
