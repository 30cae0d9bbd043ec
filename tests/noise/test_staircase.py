"""Staircase noise: its law beside plain sums, its loss for every move, its draws one by one, and when it is used."""

from fractions import Fraction
from math import exp

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.accounting.cost import delta_at, epsilon_at, pure_epsilon, renyi, zcdp
from tacit.answer.columns import noisy_columns
from tacit.exact import ExactTable
from tacit.noise.laplace import DiscreteStaircase, level_table
from tacit.numbers import ball
from tacit.privacy.law import LaplaceLaw, StaircaseLaw, staircase_for
from tacit.privacy.loss import PureChoice, StaircaseNoise, event_from_dict, event_to_dict
from tacit.release.noisy import release
from tacit_gauntlet.stage.enumeration import edges_of, wrong_paths
from tacit_gauntlet.stage.statistic import clopper_pearson_upper
from tacit_gauntlet.stage.table import bounded_plan, plan_of, protected

SHAPES = [(1, 1, "1"), (7, 2, "5/2"), (7, 7, "1/2"), (40, 11, "3")]


def law_of(shape) -> StaircaseLaw:
    return StaircaseLaw(Fraction(shape[2]), shape[0], shape[1])


def masses(law: StaircaseLaw) -> dict[int, float]:
    """By the definition, in floats, as far as anything is left."""
    reach = int(50 / law.epsilon + 2) * law.sensitivity
    weights = {
        x: exp(-float(law.epsilon) * ((abs(x) + law.sensitivity - law.width) // law.sensitivity))
        for x in range(-reach, reach + 1)
    }
    total = sum(weights.values())
    return {x: weight / total for x, weight in weights.items()}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_law_is_its_definition(shape):
    law = law_of(shape)
    by_hand = masses(law)
    for x in (0, 1, -1, shape[1] - 1, shape[1], -shape[1], 3 * shape[0]):
        assert float(law.pmf(x).mid()) == pytest.approx(by_hand[x])
        assert float(law.upper_tail(x).mid()) == pytest.approx(sum(p for y, p in by_hand.items() if y >= x))
    assert float(law.mean_size().mid()) == pytest.approx(sum(abs(x) * p for x, p in by_hand.items()))
    assert float(law.variance().mid()) == pytest.approx(sum(x * x * p for x, p in by_hand.items()))
    for chance in (Fraction(1, 2), Fraction(1, 20), Fraction(1, 1000)):
        bound = law.smallest_bound(chance)
        left = [sum(p for y, p in by_hand.items() if abs(y) > a) for a in (bound, bound - 1)]
        assert left[0] <= float(chance) < left[1] + 1e-12


def test_of_sensitivity_one_it_is_the_laplace_law():
    law, laplace = StaircaseLaw(Fraction(3, 2), 1, 1), LaplaceLaw(Fraction(2, 3))
    for x in range(-4, 5):
        assert float(law.pmf(x).mid()) == pytest.approx(float(laplace.pmf(x).mid()))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_no_move_up_to_the_sensitivity_tells_more_than_epsilon(shape):
    law = law_of(shape)
    by_hand = masses(law)
    for move in range(1, law.sensitivity + 1):
        ratios = [by_hand[x] / by_hand[x - move] for x in range(-3 * law.sensitivity, 3 * law.sensitivity)]
        assert max(*ratios, *(1 / each for each in ratios)) <= exp(law.epsilon) * (1 + 1e-9)
    farther = law.sensitivity + 1  # the mutant: a move by one more does
    ratios = [by_hand[x] / by_hand[x - farther] for x in range(-3 * law.sensitivity, 3 * law.sensitivity)]
    assert max(ratios) > exp(law.epsilon) * (1 + 1e-9)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("width", "depth"), [(4, 16), (5, 15)])
def test_every_bit_string_finds_the_level_its_law_says(shape, width, depth):
    law = law_of(shape)

    def mass(level):
        return (2 * law.width - 1 if level == 0 else 2 * law.sensitivity) * (-ball(law.epsilon * level)).exp()

    table = level_table(law, width)
    edges = edges_of(mass, range(600), depth=depth, endless=True)
    wrong, judged = wrong_paths(lambda bits: int(table.draw(1, bits)[0]), edges, width=width, depth=depth)
    assert judged == 1 << depth
    assert not wrong


def test_draws_are_even_on_each_level_and_on_both_sides():
    """Each of 13 cells is within 7 standard deviations of its chance: a false alarm in 10^10."""
    law, count = StaircaseLaw(Fraction(1), 4, 2), 200_000
    drawn = DiscreteStaircase(law).sample(count)
    for x in range(-6, 7):
        chance = float(law.pmf(x).mid())
        assert abs(np.count_nonzero(drawn == x) - count * chance) < 7 * (count * chance * (1 - chance)) ** 0.5


def test_wide_steps_and_rare_levels_are_drawn_whole():
    law = StaircaseLaw(Fraction(1, 100), 2**56, 2**50)
    assert max(abs(int(x)) for x in DiscreteStaircase(law).sample(2_000)) > 2**58
    with pytest.raises(tacit.InvalidParameter, match="cannot be drawn"):
        DiscreteStaircase(StaircaseLaw(Fraction(1, 10**6), 5, 2))


def test_it_is_charged_as_anything_of_its_epsilon():
    event, plain = StaircaseNoise(Fraction(3), Fraction(100), Fraction(20)), PureChoice(Fraction(3))
    assert pure_epsilon(event) == 3
    assert zcdp(event) == zcdp(plain)
    assert renyi(event, [Fraction(2), Fraction(9)]) == renyi(plain, [Fraction(2), Fraction(9)])
    assert delta_at(event, Fraction(1)) == delta_at(plain, Fraction(1))
    assert epsilon_at(event, Fraction(1, 10**3)) == epsilon_at(plain, Fraction(1, 10**3))
    assert str(tacit.compose([event, event], delta="1e-6")) == str(tacit.compose([plain, plain], delta="1e-6"))
    assert event_from_dict(event_to_dict(event)) == event


def people(**declared) -> tacit.asking.Table:
    rows = pa.table({"id": [1], "g": ["a"], "x": [1.0]})
    usual = {"columns": {"x": {"between": (0, 1000)}, "g": {"keys": ["a", "b"]}}, "rows_per_unit": 1}
    return protected(rows, **(usual | {"groups_per_unit": 1} | declared))


@pytest.mark.parametrize(("epsilon", "most"), [(2, 1.2), (3, 1.2), (4, 1.2), (5, 1.2), (8, 1.2)])
def test_a_sum_errs_within_a_fifth_of_the_best_mechanism_of_one_number(epsilon, most):
    (each,) = plan_of(people().sum("x"), epsilon=epsilon).releases
    assert each.noise == "staircase"
    best = each.sensitivity.linf * exp(epsilon / 2) / (exp(epsilon) - 1)
    assert float(each.law.mean_size().mid()) <= most * best
    laplace = LaplaceLaw(each.scale).smallest_bound(Fraction(1, 20))
    assert each.law.smallest_bound(Fraction(1, 20)) <= laplace


def test_it_is_used_for_one_number_alone_and_only_where_it_gains():
    def noise(question, plan=plan_of, **spend):
        return [each.noise for each in plan(question, **({"epsilon": 5} | spend)).releases]

    for plan in (plan_of, bounded_plan):
        assert noise(people().sum("x"), plan) == ["staircase"]
        assert noise(people(rows_per_unit=4).count(), plan) == ["staircase"]
        assert noise(people().sum("x"), plan, epsilon=1) == ["laplace"]
        assert noise(people().sum("x"), plan, noise="laplace") == ["laplace"]
        assert noise(people(groups_per_unit=2).group_by("g").sum("x"), plan) == ["laplace"]
        assert noise(people(neighbours="replace").group_by("g").sum("x"), plan) == ["laplace"]
        assert noise(people().mean("x"), plan) == ["laplace"]
    assert noise(people(neighbours="replace").sum("x")) == ["staircase"]  # of twice the cap


def test_of_groups_it_is_used_only_where_a_unit_keeps_to_one_of_them():
    """Under a cap a unit may be in several groups, with a part in each."""
    question = people().group_by("g").sum("x")
    assert [each.noise for each in plan_of(question, epsilon=5).releases] == ["laplace"]
    assert [each.noise for each in bounded_plan(question, epsilon=5).releases] == ["staircase"]


def test_a_count_of_one_row_a_unit_has_fine_steps_under_a_cap_alone():
    assert [each.noise for each in plan_of(people().count(), epsilon=5).releases] == ["staircase"]
    assert [each.noise for each in bounded_plan(people().count(), epsilon=5).releases] == ["laplace"]  # the same law


@pytest.mark.parametrize("rows", [2, 3, 5, 10])
@pytest.mark.parametrize("epsilon", [3, 4, Fraction(47, 10), 5, 6])
def test_a_count_of_a_few_rows_a_unit_has_no_longer_an_interval_than_laplace_noise(rows, epsilon):
    (each,) = bounded_plan(people(rows_per_unit=rows).count(), epsilon=epsilon).releases
    laplace = LaplaceLaw(each.scale).smallest_bound(Fraction(1, 20))
    assert each.law.smallest_bound(Fraction(1, 20)) <= laplace


@pytest.mark.parametrize("epsilon", [2, 5])
def test_its_intervals_cover(epsilon):
    """Fails falsely once in 10^9 runs."""
    plan = plan_of(people().sum("x"), epsilon=epsilon)
    (vector,) = plan.scaling.vectors
    sums = {"units": 50, "scaled_0": 123_456}
    exact = ExactTable([(place,) for place in range(20_000)], {name: [each] * 20_000 for name, each in sums.items()})
    (column,) = noisy_columns(plan, release(plan, exact), Fraction(95, 100))
    truth = float(123_456 / Fraction(2) ** vector.shift * plan.measured[0].step)
    covered = sum(low <= truth <= high for low, high in zip(column.low, column.high, strict=True))
    assert clopper_pearson_upper(covered, 20_000) >= 0.95
    assert covered <= 0.96 * 20_000


def test_the_plan_says_so():
    assert "discrete staircase noise of scale 200 " in str(people().sum("x").plan(epsilon=5))
    rows = tacit.table(pa.table({"x": [1.0]}), unit=tacit.ROW, budget=tacit.epsilon(9), ledger=":memory:")
    assert "staircase noise, level over" in str(rows.sum("x", between=(0, 1000)).plan(epsilon=5))


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**17), Fraction(1, 10**30)])
def test_a_width_is_chosen_for_a_loss_that_a_float_cannot_tell_from_none(epsilon: Fraction):
    assert 1 <= staircase_for(50, epsilon).width <= 50


def test_a_width_outside_the_sensitivity_is_refused():
    with pytest.raises(tacit.InvalidParameter, match="width"):
        StaircaseLaw(Fraction(1), 3, 4)
    assert staircase_for(1, Fraction(4)).width == 1
