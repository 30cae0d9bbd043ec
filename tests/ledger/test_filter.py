"""The filter: one rule, fixed when a budget is declared, decides, and what it admits keeps the promise."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.accounting import convert, cost
from tacit.accounting.cost import gaussian_sigma
from tacit.accounting.filter import (
    GRAIN,
    ZERO_CHARGE,
    BudgetRule,
    Charge,
    NoiseLoss,
    charge_of,
    covers,
    grains,
    questions_left,
    rule_of,
)
from tacit.errors import InvalidParameter
from tacit.privacy.loss import (
    ApproximateLoss,
    ExponentialChoice,
    GaussianNoise,
    KeyThreshold,
    LaplaceNoise,
    PureChoice,
    PureLoss,
    RenyiLoss,
)
from tacit_gauntlet.stage.accounting import Move, solve_game, solve_mixed_game

BUDGET = ApproximateLoss(Fraction(2), Fraction(1, 10**6))
RULE = rule_of(BUDGET)

amounts = st.fractions(min_value=0, max_value=2, max_denominator=10**12)
chances = st.fractions(0, Fraction(1, 10**6))
charges = st.builds(Charge, st.one_of(st.none(), amounts), amounts, chances, chances)
GAUSSIAN = GaussianNoise(Fraction(30), Fraction(1), scalar=True)


def test_an_approximate_budget_is_split_once_and_its_rho_rounded_down():
    assert RULE.delta + RULE.delta_noise + RULE.delta_convert == BUDGET.delta
    assert min(RULE.delta, RULE.delta_noise, RULE.delta_convert) > 0
    assert convert.zcdp_to_epsilon(RULE.rho, RULE.delta_convert) <= BUDGET.epsilon


def test_a_threshold_counts_its_delta_and_leaves_the_rest_pure():
    total = charge_of([LaplaceNoise(Fraction(1), Fraction(1)), KeyThreshold(Fraction(1, 10**7))])
    assert (total.epsilon, total.delta) == (1, Fraction(1, 10**7))
    assert RULE.admits(total)


@pytest.mark.parametrize("event", [GaussianNoise(Fraction(5), Fraction(1)), ExponentialChoice(Fraction(1, 3))])
def test_a_charge_holds_the_events_own_costs(event):
    total = charge_of([event, event])
    pure = cost.pure_epsilon(event)
    assert total.epsilon == (None if pure is None else 2 * pure)
    assert total.rho >= 2 * cost.zcdp(event).rho
    assert total.rho - 2 * cost.zcdp(event).rho <= 2 * Fraction(1, 2**96)


def test_noise_that_does_not_say_what_it_was_made_for_closes_addition_for_good():
    total = charge_of([GaussianNoise(Fraction(100), Fraction(1))]) + charge_of([PureChoice(Fraction(1))])
    assert total.epsilon is None
    assert not RULE.admits_by_addition(total)


def test_gaussian_noise_is_added_as_it_was_asked_beside_pure_noise():
    asked = ApproximateLoss(Fraction(1, 2), Fraction(1, 10**8))
    total = charge_of([GAUSSIAN], asked=asked) + charge_of([PureChoice(Fraction(3, 2))])
    assert (total.epsilon, total.delta_noise) == (2, Fraction(1, 10**8))
    assert RULE.admits(total)
    assert not RULE.admits_by_rho(total)
    assert not RULE.admits(total + charge_of([PureChoice(Fraction(1, 10**9))]))


def test_pure_noise_within_what_was_asked_takes_no_delta():
    asked = ApproximateLoss(Fraction(1), Fraction(1, 10**7))
    assert charge_of([PureChoice(Fraction(1, 2))], asked=asked) == charge_of([PureChoice(Fraction(1, 2))])
    beyond = charge_of([ExponentialChoice(Fraction(1, 50))] * 60, asked=asked)
    assert (beyond.epsilon, beyond.delta_noise) == (1, Fraction(1, 10**7))


def test_noise_that_needs_more_delta_than_it_was_made_for_is_charged_what_it_needs():
    asked = ApproximateLoss(Fraction(1, 5), Fraction(1, 10**12))
    charged = charge_of([GAUSSIAN], asked=asked)
    assert charged.delta_noise >= cost.delta_at(GAUSSIAN, Fraction(1, 5)) > asked.delta


@pytest.mark.parametrize("less", ["epsilon", "rho", "delta", "delta_noise"])
def test_a_charge_covers_its_events_and_no_smaller_one_does(less):
    events = [GAUSSIAN, KeyThreshold(Fraction(1, 10**8))]
    charged = charge_of(events, asked=ApproximateLoss(Fraction(1, 5), Fraction(0)))
    assert covers(charged, events)
    assert covers(replace(charged, epsilon=None), events)
    assert not covers(replace(charged, **{less: getattr(charged, less) * Fraction(99, 100)}), events)


def test_noise_may_be_charged_as_thresholds_are_and_all_of_its_delta_is_charged_once():
    asked = NoiseLoss(Fraction(1, 5), Fraction(1, 10**7), of_keys=Fraction(3, 4 * 10**7))
    charged = charge_of([GAUSSIAN], asked=asked)
    needed = max(asked.delta, cost.noise_delta((GAUSSIAN,), asked.epsilon))
    assert (charged.delta, charged.delta + charged.delta_noise) == (asked.of_keys, needed)
    assert (charged.epsilon, charged.rho) == (asked.epsilon, charge_of([GAUSSIAN]).rho)
    all_of_keys = charge_of([GAUSSIAN], asked=replace(asked, of_keys=Fraction(1)))
    assert (all_of_keys.delta, all_of_keys.delta_noise) == (needed, 0)
    assert charge_of([PureChoice(Fraction(1, 5))], asked=asked).delta == 0  # pure noise needs none


@pytest.mark.parametrize("less", ["epsilon", "rho", "delta", "delta_noise"])
def test_a_charge_in_part_of_keys_covers_its_events_and_no_smaller_one_does(less):
    events = [GAUSSIAN, KeyThreshold(Fraction(1, 10**8))]
    needed = cost.noise_delta((GAUSSIAN,), Fraction(1, 5))
    charged = charge_of(events, asked=NoiseLoss(Fraction(1, 5), Fraction(0), of_keys=needed / 2))
    assert charged.delta == Fraction(1, 10**8) + grains(needed / 2)
    assert covers(charged, events)
    assert not covers(replace(charged, **{less: getattr(charged, less) * Fraction(99, 100)}), events)


def test_a_delta_that_a_threshold_needs_does_not_pay_for_noise_too():
    true = charge_of([GAUSSIAN], asked=ApproximateLoss(Fraction(1, 5), Fraction(0)))
    moved = replace(true, delta=true.delta_noise, delta_noise=Fraction(0))
    assert covers(moved, [GAUSSIAN])
    assert not covers(moved, [GAUSSIAN, KeyThreshold(true.delta_noise)])


@given(st.lists(st.sampled_from(["pure", "of keys", "keys", "noise"]), min_size=10, max_size=10))
def test_fair_shares_are_admitted_in_any_order_until_epsilon_is_asked_for(day):
    """Each asks for a tenth of a budget; noise of half its delta is charged as thresholds are."""
    part, delta = BUDGET.epsilon / 10, BUDGET.delta / 10
    wide = GaussianNoise(gaussian_sigma(Fraction(1), part, delta / 8), Fraction(1), scalar=True)
    narrow = GaussianNoise(gaussian_sigma(Fraction(1), part, delta / 2), Fraction(1), scalar=True)
    kinds = {
        "pure": charge_of([PureChoice(part)]),
        "of keys": charge_of([narrow], asked=NoiseLoss(part, delta / 2, of_keys=delta * 3 / 8)),
        "keys": charge_of([PureChoice(part), KeyThreshold(delta * 3 / 8)]),
        "noise": charge_of([wide], asked=ApproximateLoss(part, delta / 8)),
    }
    total = sum((kinds[kind] for kind in day), ZERO_CHARGE)
    assert RULE.admits_by_addition(total)
    assert RULE.admits(total)


def test_a_pure_budget_admits_no_noise_that_needs_a_delta():
    rule = rule_of(PureLoss(Fraction(5)))
    assert not rule.admits(charge_of([GAUSSIAN], asked=ApproximateLoss(Fraction(1, 5), Fraction(1, 10**9))))
    assert rule.admits(charge_of([PureChoice(Fraction(5))]))


def test_pure_events_may_sum_to_epsilon_although_their_rho_does_not_fit():
    total = charge_of([PureChoice(Fraction(2))])
    assert RULE.admits(total)
    assert not RULE.admits_by_rho(total)


def test_many_small_pure_events_may_go_beyond_epsilon_by_the_rho_arm():
    small = charge_of([PureChoice(Fraction(1, 100))])
    count = questions_left(RULE, ZERO_CHARGE, small)
    assert count > 200
    assert RULE.admits(small.times(count))
    assert not RULE.admits(small.times(count + 1))


@given(charges, charges)
def test_a_total_that_is_refused_stays_refused_whatever_is_added(one, other):
    if not RULE.admits(one):
        assert not RULE.admits(one + other)


@given(charges, charges)
def test_charges_add_in_any_order(one, other):
    assert one + other == other + one


@given(st.fractions(min_value=0, max_value=10**6))
def test_an_amount_is_rounded_up_to_the_grain_and_never_down(amount):
    rounded = grains(amount)
    assert amount <= rounded <= amount + Fraction(1, 2**96)
    assert GRAIN % rounded.denominator == 0


@given(st.integers(0, 10**30), st.integers(1, 40))
def test_decimals_and_small_fractions_are_kept_exactly(digits, below):
    assert grains(Fraction(digits, 10**30)) == Fraction(digits, 10**30)
    assert grains(Fraction(digits, below)) == Fraction(digits, below)


@given(charges, charges)
def test_as_many_more_questions_fit_as_are_shown_and_not_one_more(spent, like):
    count = questions_left(RULE, spent, like)
    if not RULE.admits(spent):
        assert count == 0
    elif count is not None:
        assert RULE.admits(spent + like.times(count))
        assert not RULE.admits(spent + like.times(count + 1))
    else:
        assert RULE.admits(spent + like.times(10**9))


def test_a_renyi_curve_is_no_budget():
    with pytest.raises(InvalidParameter, match="cannot be a budget"):
        rule_of(RenyiLoss(((Fraction(2), Fraction(1)),)))


@pytest.mark.parametrize("steps", [(1,), (2,), (1, 4), (2, 10)])
def test_no_adaptive_way_of_asking_breaks_the_promise(steps):
    budget = ApproximateLoss(Fraction(1), Fraction(1, 50))
    worst, states = solve_game(budget, steps=steps, grain=Fraction(1, 10))
    assert 0 <= worst <= float(rule_of(budget).delta_convert)
    assert states > 10


def test_the_game_finds_a_filter_that_lets_each_arm_be_spent_on_its_own(monkeypatch):
    """The mutant: two accounts, each with room of its own; the game proves the promise broken."""
    budget = ApproximateLoss(Fraction(1), Fraction(1, 50))
    pure = PureLoss(2 * budget.epsilon)
    monkeypatch.setattr(
        BudgetRule, "admits", lambda self, total: rule_of(pure).admits_by_addition(total) or self.admits_by_rho(total)
    )
    worst, _ = solve_game(budget, steps=(1, 5), grain=Fraction(1, 5))
    assert worst > float(budget.delta)


def _gaussian_day(share):
    """The largest break of a promise of (1, 1/50) if Gaussian noise alone may go as far as a share of delta allows."""
    budget, sigma = ApproximateLoss(Fraction(1), Fraction(1, 50)), 5
    rule = rule_of(budget)
    wide = gaussian_sigma(Fraction(2**20), budget.epsilon, budget.delta * share) / 2**20
    with_arm = replace(rule, rho=1 / (2 * wide**2))
    weights = {x: math.exp(-(x * x) / (2 * sigma**2)) for x in range(-8 * sigma, 8 * sigma + 1)}
    losses = tuple((1 - 2 * x, weight / sum(weights.values())) for x, weight in weights.items())
    noise = Move(charge_of([GaussianNoise(Fraction(sigma), Fraction(1), scalar=True)]), losses)
    failing = Move(Charge(delta=rule.delta), ((0, 1 - float(rule.delta)),), float(rule.delta))
    found = [
        solve_mixed_game(with_arm, moves, epsilon=1.0, step=1 / (2 * sigma**2))[0]
        for moves in ([noise], [noise, failing])
    ]
    return [value / float(budget.delta) for value in found]


def test_an_arm_for_gaussian_noise_takes_a_part_of_delta_that_no_other_arm_has():
    """The mutant: an arm with the whole delta. Alone it keeps the promise; with thresholds beside it it does not."""
    alone, beside = _gaussian_day(Fraction(1))
    assert alone <= 1 < beside
    alone, beside = _gaussian_day(Fraction(5, 8))
    assert alone <= 5 / 8
    assert beside <= 1
