"""Scaled plans: groups are multiplied by what the totals measured; intervals have noise, factor and what is missing."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tacit.answer.anchors import Anchor, _ratio_ends, anchors, most_missing, most_of_groups, shares_of
from tacit.answer.columns import noisy_columns, uncut_columns
from tacit.answer.noise_sums import law_bound, weighted_bound
from tacit.answer.scaled_columns import corrected_ends
from tacit.forecast import plan_in_words
from tacit.plan import PART_OF_MEAN, UNEVENLY, CountRows, CountUnits, CountValues, Mean, Measured, Sum, Vector
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
    """The column as the noise left it, before it is cut at what is possible."""
    (column,) = uncut_columns(plan, noisy, CONFIDENCE)
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


@pytest.mark.parametrize("kept", [-7_000, 0, 2_995])
def test_what_was_kept_counts_for_at_least_three_scales_of_its_noise(kept):
    plan, noisy = counted([100 * FINE], (kept, 2_000))
    assert anchors(plan, noisy, CONFIDENCE)[0].factor == 1 + Fraction(2000, 2996)


def test_the_ends_of_the_factor_are_where_its_own_noise_would_be_too_rare():
    plan, noisy = counted([100 * FINE], (900_000, 300_000))
    found = anchors(plan, noisy, CONFIDENCE)[0]
    for end, sign in ((found.low, 1), (found.high, -1)):
        ratio = end - 1
        bound = weighted_bound("laplace", Fraction(1000), (1.0, ratio), CONFIDENCE)
        assert sign * (300_000 - ratio * 900_000) == pytest.approx(bound, rel=1e-6)
    assert found.low < Fraction(4, 3) < found.high


def reach_of(plan):
    return law_bound(plan.releases[0].law, CONFIDENCE) / FINE


def test_a_factor_made_of_noise_has_no_upper_end_and_all_that_was_cut_may_be_in_one_group():
    plan, noisy = counted([2 * FINE], (100, 2_000))
    found = anchors(plan, noisy, CONFIDENCE)[0]
    assert math.isinf(found.high)
    column = column_of(plan, noisy)
    factor = float(found.factor)
    most = (2_000 + law_bound(plan.totals[0].law, CONFIDENCE)) * 4 / FINE
    assert column.low[0] == math.ceil(2 - reach_of(plan) - 0.5)
    assert column.high[0] == pytest.approx(2 * factor + math.hypot(factor * reach_of(plan), most), rel=0.15)


def test_the_lower_end_of_a_count_is_a_theorem_a_group_lost_nothing():
    """So it is what was kept less the noise, whatever was measured, foreseen or scaled up."""
    foreseen = Outlook(people=50, mass=100, kept=0.8, scaled=5, beyond_most=1, excess=0, lost=20, lost_most=900)
    for vector in (ROWS, replace(ROWS, totals=None), replace(ROWS, outlook=foreseen), replace(ROWS, tail_shift=9)):
        for totals in ((900_000, 300_000), (100, 2_000), (900_000, -5_000)):
            for groups in (1, 2, 7):
                plan = scaled_plan(
                    [N],
                    [vector],
                    scales=[5 * FINE],
                    totals_scales=[1000] if vector.totals else [],
                    groups=groups,
                )
                column = column_of(plan, noisy_of([[1000 * FINE] * groups], [totals] if vector.totals else []))
                assert set(column.low) == {math.ceil(1000 - reach_of(plan) - 0.5)}


def test_the_upper_end_has_noise_and_factor_and_what_a_group_may_lack_beyond_its_share_as_squares():
    cells = [600 * FINE, 300 * FINE, 100 * FINE]
    plan, noisy = counted(cells, (900_000, 300_000))
    found, column = anchors(plan, noisy, CONFIDENCE)[0], column_of(plan, noisy)
    missing = (300_000 + law_bound(plan.totals[0].law, CONFIDENCE)) * 4 / FINE
    assert most_missing(ROWS, found) == pytest.approx(missing, rel=1e-6)
    for kept, value, high in zip((600, 300, 100), column.values, column.high, strict=True):
        part = min(1.0, kept / 1000 + UNEVENLY / math.sqrt(3))
        lacks = max(part * missing - kept / 3, 0.0)
        far = math.hypot(4 / 3 * reach_of(plan), kept * (found.high - 4 / 3), lacks)
        assert value == round(kept * 4 / 3)
        assert high == pytest.approx(kept * 4 / 3 + far, abs=3 + 0.02 * far)


def test_people_beyond_the_tail_of_totals_are_in_what_is_missing():
    seen = Outlook(people=50, mass=100, kept=0.8, scaled=5, beyond_most=1, excess=0, excess_most=5000.0)
    plan, noisy = counted([1000 * FINE], (900_000, 300_000), vector=replace(ROWS, outlook=seen))
    found = anchors(plan, noisy, CONFIDENCE)[0]
    more = most_missing(plan.scaling.vectors[0], found) - found.totals.cut
    assert more == pytest.approx(math.hypot(found.totals.error, 5000.0))


@pytest.mark.parametrize("sign", [1, -1])
def test_the_interval_of_a_sum_that_may_be_negative_is_the_same_on_both_sides_of_0(sign):
    vector = Vector("centred", 0, centre=1 << 30, shift=10, totals="absolute", tail=1 << 20, tail_shift=2)
    plan = scaled_plan([Sum("s", 0, 0)], [vector], scales=[5 * FINE], totals_scales=[1000], groups=1)
    kept = 1000 * FINE // 4
    column = column_of(plan, noisy_of([[sign * 1000 * FINE]], [(kept, kept // 3)]))
    towards, away = sorted((column.low[0], column.high[0]), key=lambda end: sign * end)
    assert column.values[0] * sign == 1333
    assert towards * sign == math.ceil(1000 - reach_of(plan) - 0.5), "a group may have lost none"
    assert away * sign >= 1333 + reach_of(plan)


def ends_of(kept, *, noise=10.0, missing=0.0, is_signed=False, factor=Fraction(1), high=1.0):
    kept = np.array(kept, dtype=float)
    shares = shares_of(kept, 1.0)
    anchor = Anchor(factor, float(factor), max(high, float(factor)))
    lacks = most_of_groups(shares) * missing
    low, top = corrected_ends(kept, np.full(len(kept), noise), anchor, lacks, is_signed=is_signed)
    return low.tolist(), top.tolist()


def test_of_one_group_all_that_is_foreseen_may_be_missing_from_it():
    low, high = ends_of([1000.0], missing=400.0)
    assert low == [990]
    assert high == [pytest.approx(1000 + math.hypot(10, 400))]


def test_of_two_groups_each_may_lack_all_of_it_where_heavy_people_are_in_one_of_them():
    """Even an empty one may hold what is missing: 1.06 more than its share is the whole."""
    _, high = ends_of([600.0, 400.0], missing=400.0)
    assert high == [pytest.approx(600 + math.hypot(10, 400)), pytest.approx(400 + math.hypot(10, 400))]
    _, uneven = ends_of([1000.0, 0.0], missing=400.0)
    assert uneven[1] == pytest.approx(math.hypot(10, 400))


def test_of_no_rows_the_interval_is_the_noise_and_what_noise_hides():
    low, high = ends_of([0.0, 0.0, 0.0])
    assert (low, high) == ([-10.0] * 3, [10.0] * 3)
    _, high = ends_of([0.0, 0.0, 0.0], missing=30.0)
    assert high == [pytest.approx(math.hypot(10, min(1 / 3 + UNEVENLY / math.sqrt(3), 1.0) * 30))] * 3


def test_a_signed_number_may_lack_as_much_on_either_side():
    low, high = ends_of([500.0, -500.0], missing=300.0, is_signed=True)
    assert low == [pytest.approx(value - math.hypot(10, 300)) for value in (500, -500)]
    assert high == [pytest.approx(value + math.hypot(10, 300)) for value in (500, -500)]


@pytest.mark.parametrize("groups", [1, 2, 3, 5, 16, 17, 100, 10_000])
def test_what_a_group_may_lack_is_all_of_it_at_most_and_its_share_at_least(groups):
    shares = np.full(groups, 1 / groups)
    parts = most_of_groups(shares)
    assert (parts <= 1).all()
    assert (parts >= shares).all()
    expected = 1 / groups + UNEVENLY * min(1.0, 16 / groups) / math.sqrt(groups)
    assert parts[0] == pytest.approx(min(1.0, expected))
    assert most_of_groups(np.zeros(0)).tolist() == []


@pytest.mark.parametrize("groups", [1, 2, 5, 100])
def test_of_a_part_of_what_is_missing_a_single_number_may_lack_twice_its_share(groups):
    """A single number has all that is missing as its share, and the same slack as any group."""
    (part, *_) = most_of_groups(np.full(groups, 1 / groups), 1 / 6)
    assert part == pytest.approx((1 / groups + UNEVENLY * min(1.0, 16 / groups) / math.sqrt(groups)) / 6)
    assert most_of_groups(np.ones(1), 0.9).tolist() == [1.0]


def test_what_is_missing_at_most_is_what_the_profile_tells_where_totals_do_not():
    outlook = Outlook(people=50, mass=100, kept=0.8, scaled=5, beyond_most=1, excess=0, lost=150, lost_most=450)
    assert most_missing(replace(ROWS, totals=None, outlook=outlook), Anchor()) == 450
    assert most_missing(replace(ROWS, totals=None, outlook=None), Anchor()) == 0


def test_shares_are_by_noisy_numbers_and_groups_have_at_least_the_noise():
    assert shares_of(np.array([100.0, -100.0, 0.0]), 0.0).tolist() == pytest.approx([0.5, 0.5, 0.0])
    assert shares_of(np.array([0.0, 0.0]), 0.0).tolist() == [0.5, 0.5]
    assert shares_of(np.array([98.0, 0.0]), 1.0).tolist() == pytest.approx([0.99, 0.01])
    assert len(shares_of(np.zeros(0), 1.0)) == 0


def test_where_nothing_was_cut_the_bar_is_the_noise_alone():
    exact = Vector("rows", shift=10, cap=1 << 14)
    plan = scaled_plan([N], [exact], scales=[5 * FINE], groups=0)
    column = column_of(plan, noisy_of([[100 * FINE]]))
    reach = law_bound(plan.releases[0].law, CONFIDENCE) / FINE
    assert (column.values, column.low, column.high) == ((100,), (100 - round(reach),), (100 + round(reach),))


def test_without_totals_the_number_is_what_was_kept_and_the_interval_has_what_is_foreseen_at_most():
    foreseen = Outlook(people=50, mass=100, kept=0.8, scaled=5, beyond_most=1, excess=0, lost=150, lost_most=250)
    plan = scaled_plan([N], [Vector("rows", shift=10, outlook=foreseen)], scales=[5 * FINE], groups=1)
    column = column_of(plan, noisy_of([[1000 * FINE]]))
    assert column.values == (1000,)
    assert column.high[0] == pytest.approx(1000 + math.hypot(reach_of(plan), 250), abs=1)
    assert column.low[0] == math.ceil(1000 - reach_of(plan) - 0.5)


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


def test_a_mean_is_the_centre_and_the_mean_of_what_was_kept():
    plan = mean_plan([Mean("m", 1, 0)], groups=2)
    rows, sums = [1000 * 16, 3 * 16], [2000 * 8, 8]
    column = column_of(plan, noisy_of([rows, sums], [(160_000, 40_000), (160_000, 140_000)]))
    assert column.values[0] == pytest.approx(50 + 2), "nothing is shifted"
    assert column.values[1] is None, "three rows are too few for their noise"
    assert (column.low[1], column.high[1]) == (None, None), "no range was declared"


def test_a_sum_beside_a_mean_is_count_times_mean():
    plan = mean_plan([CountRows("n", 0), Mean("m", 1, 0), Sum("s", 1, 0)], groups=1)
    noisy = noisy_of([[1000 * 16], [2000 * 8]], [(160_000, 40_000), (160_000, 140_000)])
    n, m, s = noisy_columns(plan, noisy, CONFIDENCE)
    assert n.values == (1250,)
    assert s.values[0] == pytest.approx(1250 * m.values[0], abs=1)
    assert s.low[0] < s.values[0] < s.high[0]


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


def foretold(lost_most):
    return Outlook(people=1000, mass=4000, kept=0.9, scaled=100, beyond_most=9, excess=0, lost_most=lost_most)


def mean_by_facts(*, of_rows=0.0, of_sums=0.0, rows=1000, above=4, groups=2, between=None):
    """The means of groups, so far above the centre, of which so much may be missing in all."""
    column = Measured(Column("x"), "int", Fraction(1), 50 - (1 << 30), 50 + (1 << 30))
    column = column if between is None else replace(column, between=between)
    counting = Vector("counted", 0, shift=4, outlook=foretold(of_rows))
    sums = Vector("centred", 0, centre=1 << 30, shift=4, rows=0, outlook=foretold(of_sums))
    plan = scaled_plan([Mean("m", 1, 0)], [counting, sums], scales=(16, 16), measured=(column,), groups=groups)
    return column_of(plan, noisy_of([[rows * 16] * groups, [above * rows * 16] * groups]))


def half_of(column):
    return (column.high[0] - column.low[0]) / 2


def test_the_interval_of_a_mean_is_noise_where_nothing_is_missing():
    """At the true mean, the noisy sum less the mean times the noisy rows is noise: a theorem (Fieller)."""
    column = mean_by_facts()
    assert column.values[0] == pytest.approx(54)
    least = weighted_bound("laplace", Fraction(16), (1.0, 4.0), CONFIDENCE) / 16 / 1000
    assert least * 0.99 <= half_of(column) <= 1.2 * least


@pytest.mark.parametrize("groups", [1, 2, 5])
def test_a_mean_may_be_off_by_a_sixth_of_what_a_group_may_lack_of_sums_and_of_rows(groups):
    part = float(most_of_groups(np.full(groups, 1 / groups), PART_OF_MEAN)[0])
    noise = half_of(mean_by_facts(groups=groups))
    for of_sums, of_rows in ((3000.0, 0.0), (0.0, 500.0), (3000.0, 500.0)):
        missing = part * (of_sums + 4 * of_rows) / 1000
        found = half_of(mean_by_facts(of_rows=of_rows, of_sums=of_sums, groups=groups))
        assert found == pytest.approx(math.hypot(noise, missing), rel=1e-3)


def test_a_mean_lacks_less_the_more_rows_there_are_and_nothing_of_rows_at_the_centre():
    assert half_of(mean_by_facts(of_sums=3000.0, rows=100_000)) < half_of(mean_by_facts(of_sums=3000.0)) / 50
    assert half_of(mean_by_facts(of_rows=500.0, above=0)) == pytest.approx(half_of(mean_by_facts(above=0)))


def test_no_mean_leaves_its_declared_range():
    column = mean_by_facts(of_sums=1e9, between=(Fraction(0), Fraction(100)))
    assert (column.low[0], column.high[0]) == (0, 100)
    assert column.values[0] == pytest.approx(54)


@pytest.mark.parametrize("lost", [0.0, 500.0])
@pytest.mark.parametrize(("kept", "cut"), [(72_000, 0), (72_000, 28_000), (900, 40_000), (10**8, 3), (5_000, -90)])
def test_the_ends_of_a_ratio_are_where_it_stops_to_hold(kept, cut, lost):
    def off(ratio):
        return 100 * (1 + ratio * ratio) ** 0.5 + lost * (1 + ratio)

    def holds(ratio):
        return abs(cut - ratio * kept) <= off(ratio)

    low, high = _ratio_ends(kept, cut, off)
    assert holds(high * (1 - 1e-9))
    assert not holds(high * (1 + 1e-9))
    assert low == 0 if holds(0.0) else holds(low * (1 + 1e-9)) and not holds(low * (1 - 1e-9))


def test_no_ratio_is_above_0_where_the_cut_is_far_below_0_and_any_is_possible_where_little_was_kept():
    assert _ratio_ends(73, -259_889, lambda ratio: 100 * (1 + ratio)) == (0.0, 0.0)
    assert _ratio_ends(50, 10, lambda ratio: 100 * (1 + ratio)) == (0.0, float("inf"))
