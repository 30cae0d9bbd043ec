"""What noise a batch of rounds gets: within the loss that was asked for, in either arm of a budget, and hardly more."""

from fractions import Fraction

import pytest

import tacit
from tacit.accounting import charge_of, noise_delta, rule_of
from tacit.errors import InvalidParameter, QueryRefused
from tacit.learning import noise_for
from tacit.plan import UNIT
from tacit.privacy import GaussianNoise
from tests.learning.coded_people import people

WANTED = [(14 * UNIT**2, Fraction(1, 20)), (20 * 15 * (UNIT // 2) ** 2, Fraction(19, 20))]


@pytest.mark.parametrize("epsilon", ["0.1", "1", "8"])
def test_a_batch_fits_both_arms_of_a_budget_of_its_own_size_and_hardly_less(epsilon):
    budget = tacit.epsilon(Fraction(epsilon), delta=1e-6)
    session = people(budget=budget).session
    events, asked = noise_for(session, Fraction(epsilon), None, WANTED)
    rule, charge = rule_of(budget), charge_of(events, asked=asked)
    assert rule.admits_by_addition(charge)
    assert rule.admits_by_rho(charge)
    narrower = [GaussianNoise(each.sigma * Fraction(99, 100), each.sensitivity_squared) for each in events]
    assert not rule.admits_by_rho(charge_of(narrower))
    assert noise_delta(tuple(narrower), Fraction(epsilon)) > asked.delta * Fraction(98, 100)


@pytest.mark.parametrize("epsilon", ["0.1", "1", "8"])
def test_a_delta_that_is_given_is_the_models_own_and_all_of_it_for_noise(epsilon):
    budget = tacit.epsilon(Fraction(epsilon), delta="8e-8")
    session = people(budget=budget).session
    events, asked = noise_for(session, Fraction(epsilon), "1e-8", WANTED)
    assert asked.delta == Fraction(1, 10**8)
    assert noise_delta(events, Fraction(epsilon)) <= asked.delta  # what is promised of the model
    assert charge_of(events, asked=asked).delta_noise == asked.delta  # and what is charged
    assert rule_of(budget).admits(charge_of(events, asked=asked))
    by_share, _ = noise_for(session, Fraction(epsilon), None, WANTED)
    assert [each.sigma for each in events] == [each.sigma for each in by_share]  # the whole budget's share is as large
    # the mutant: noise for eight times the delta would be charged as if it were for this one
    wider, _ = noise_for(
        people(budget=tacit.epsilon(Fraction(epsilon), delta="64e-8")).session, Fraction(epsilon), "8e-8", WANTED
    )
    assert noise_delta(wider, Fraction(epsilon)) > asked.delta


def test_a_delta_beyond_what_the_budget_keeps_for_noise_is_refused_with_the_way_out():
    session = people(budget=tacit.epsilon(1, delta="1e-6")).session
    with pytest.raises(QueryRefused, match=r"less than the delta of[\s\S]*hint: leave delta out, or declare .* delta="):
        noise_for(session, 1, "1e-6", WANTED)
    with pytest.raises(InvalidParameter, match="must be below"):
        noise_for(session, 1, "0.2", WANTED)
    # far below the budget, the other arm of its rule has room
    assert noise_for(session, "0.01", "1e-6", WANTED)[1].delta == Fraction(1, 10**6)


def test_shares_are_of_what_is_lost():
    events, _ = noise_for(people(budget=tacit.epsilon(1, delta=1e-6)).session, 1, None, WANTED)
    lost = [each.sensitivity_squared / each.sigma**2 for each in events]
    assert lost[0] / sum(lost) == pytest.approx(1 / 20, rel=1e-9)


def test_where_a_unit_is_replaced_everything_moves_twice_as_far():
    budget = tacit.epsilon(1, delta=1e-6)
    added, _ = noise_for(people(budget=budget).session, 1, None, WANTED)
    replaced, _ = noise_for(people(budget=budget, neighbours="replace").session, 1, None, WANTED)
    for one, two in zip(added, replaced, strict=True):
        assert two.sensitivity_squared == 4 * one.sensitivity_squared
        assert float(two.sigma / one.sigma) == pytest.approx(2, rel=1e-6)


def test_a_pure_budget_is_told_that_it_needs_a_delta():
    with pytest.raises(QueryRefused, match=r"needs a delta[\s\S]*hint: declare the budget with a delta"):
        noise_for(people(budget=tacit.epsilon(1)).session, 1, None, WANTED)


def test_a_budget_in_rho_is_kept():
    budget = tacit.rho("0.05")
    events, asked = noise_for(people(budget=budget).session, 1, 1e-6, WANTED)
    assert noise_delta(events, Fraction(1)) <= asked.delta == Fraction(1, 10**6)


def test_shares_that_do_not_add_up_are_refused():
    with pytest.raises(InvalidParameter, match="add up to 1"):
        noise_for(people(budget=tacit.epsilon(1, delta=1e-6)).session, 1, None, [(UNIT**2, Fraction(1, 2))])
