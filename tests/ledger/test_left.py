"""What is left is left: whatever was asked before, exactly what is said to be left is admitted, and no more."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.accounting.convert import rho_within
from tacit.accounting.filter import (
    FOR_KEYS,
    ZERO_CHARGE,
    Charge,
    charge_at,
    charge_of,
    grains,
    grains_below,
    remaining,
    rule_of,
    shares_of,
)
from tacit.privacy.loss import ApproximateLoss, KeyThreshold, PureChoice, PureLoss, ZcdpLoss

SLIGHTLY = 1 + Fraction(1, 20_000)  # amounts by rho are shown with six digits

BUDGETS = [
    ApproximateLoss(Fraction(1), Fraction(1, 10**6)),
    ApproximateLoss(Fraction(3), Fraction(1, 10**9)),
    ApproximateLoss(Fraction(10), Fraction(1, 10**5)),
    PureLoss(Fraction(2)),
    ZcdpLoss(Fraction(1, 10), Fraction(1, 10**7)),
]


@st.composite
def questions(draw):
    """A budget, and questions about it: each with its part of epsilon, its noise, perhaps its own delta, and keys."""
    budget = draw(st.sampled_from(BUDGETS))
    part = st.fractions(Fraction(1, 50), Fraction(1, 2), max_denominator=60)
    delta = st.one_of(st.none(), st.fractions(Fraction(1, 100), Fraction(1, 3), max_denominator=100))
    return budget, draw(st.lists(st.tuples(part, st.booleans(), delta, st.booleans()), max_size=12))


def asked(budget, part, *, gaussian, delta, keys):
    """The charge of a question for a part of the budget's epsilon, with a part of its delta or its fair share."""
    size = budget.rho if isinstance(budget, ZcdpLoss) else budget.epsilon
    epsilon = grains(size * part)
    if not isinstance(budget, ApproximateLoss):
        return charge_at(epsilon, None)
    shares = shares_of(budget, epsilon, None if delta is None else budget.delta * delta)
    noise = charge_at(epsilon, None)
    if gaussian:
        noise = Charge(epsilon, rho_within(epsilon, shares.rho), delta_noise=grains(shares.noise))
    return noise + (Charge(delta=grains_below(shares.keys)) if keys else ZERO_CHARGE)


def spent_after(budget, history):
    rule, spent = rule_of(budget), ZERO_CHARGE
    for part, gaussian, delta, keys in history:
        charge = asked(budget, part, gaussian=gaussian, delta=delta, keys=keys)
        spent = spent + charge if rule.admits(spent + charge) else spent
    return rule, spent


@settings(max_examples=30, deadline=None)
@given(questions())
def test_exactly_what_is_left_is_admitted_with_either_noise_and_just_above_is_refused(drawn):
    budget, history = drawn
    rule, spent = spent_after(budget, history)
    left = remaining(rule, spent, budget)
    if left.laplace:
        assert rule.admits(spent + charge_of([PureChoice(left.laplace), KeyThreshold(left.delta * _keys(budget))]))
    if left.gaussian:
        assert rule.admits(spent + charge_at(left.gaussian, budget))
    assert not rule.admits(spent + charge_of([PureChoice(left.laplace * SLIGHTLY + Fraction(1, 10**9))]))
    assert not rule.admits(spent + Charge(delta=left.delta * _keys(budget) + Fraction(1, 10**20)))
    if isinstance(budget, ApproximateLoss):
        above = left.gaussian * SLIGHTLY + Fraction(1, 10**9)
        assert not rule.admits(spent + charge_at(above, budget))


@settings(max_examples=30, deadline=None)
@given(questions())
def test_what_is_left_of_epsilon_and_delta_may_be_asked_for_together(drawn):
    budget, history = drawn
    rule, spent = spent_after(budget, history)
    left = remaining(rule, spent, budget)
    if not isinstance(budget, ApproximateLoss) or not left.gaussian or not left.delta_gaussian:
        return
    epsilon, delta = left.gaussian, left.delta_gaussian
    shares = shares_of(budget, epsilon, delta)
    noise = Charge(epsilon, rho_within(epsilon, shares.rho), delta_noise=grains(shares.noise))
    assert rule.admits(spent + noise + Charge(delta=shares.keys))


@settings(max_examples=30, deadline=None)
@given(questions())
def test_a_day_of_fair_shares_ends_no_earlier_than_plain_addition_would(drawn):
    budget, history = drawn
    if not isinstance(budget, ApproximateLoss):
        return
    rule, spent, added = rule_of(budget), ZERO_CHARGE, Fraction(0)
    for part, gaussian, _, keys in history:
        charge = asked(budget, part, gaussian=gaussian, delta=None, keys=keys)
        added += charge.epsilon
        if added > budget.epsilon:
            break
        assert rule.admits(spent + charge)
        spent += charge


def test_nothing_is_left_beyond_a_budget():
    budget = BUDGETS[0]
    left = remaining(rule_of(budget), Charge(Fraction(5), Fraction(5)), budget)
    assert (left.epsilon, left.delta, left.rho) == (0, 0, 0)


@pytest.mark.parametrize("budget", BUDGETS)
def test_an_unspent_budget_leaves_all_of_itself(budget):
    left = remaining(rule_of(budget), ZERO_CHARGE, budget)
    if isinstance(budget, ZcdpLoss):
        assert left.rho == budget.rho
        return
    assert left.laplace == budget.epsilon
    if isinstance(budget, ApproximateLoss):
        assert (left.gaussian, left.delta, left.delta_gaussian) == (budget.epsilon, budget.delta, budget.delta)


def _keys(budget):
    return FOR_KEYS if isinstance(budget, ApproximateLoss) else 1
