"""What a call may spend: all of epsilon for the whole call, and its fair share of delta."""

from fractions import Fraction

import pytest

from tacit.accounting.filter import rule_of
from tacit.errors import InvalidParameter
from tacit.plan.planner import make_spend
from tacit.privacy.loss import epsilon, rho

BUDGET = epsilon(4, delta="1e-6")


def test_delta_is_by_default_the_share_that_epsilon_is_of_the_budgets():
    spend = make_spend(1, None, None, BUDGET)
    assert spend.epsilon == 1
    assert spend.delta == spend.delta_keys + spend.delta_noise + spend.delta_rho == Fraction(1, 4 * 10**6)


def test_more_than_the_budget_gets_no_more_delta_than_it_has():
    spend = make_spend(100, None, None, BUDGET)
    assert spend.delta == Fraction(1, 10**6)


def test_a_delta_is_accepted_where_it_is_not_needed():
    spend = make_spend(1, "1e-7", None, epsilon(4))
    assert (spend.delta_keys, spend.delta_noise, spend.delta_rho) == (0, 0, 0)


def test_a_call_divides_its_delta_as_the_budget_divides_its_own():
    rule, spend = rule_of(BUDGET), make_spend(4, None, None, BUDGET)
    assert (spend.delta_keys, spend.delta_noise, spend.delta_rho) == (rule.delta, rule.delta_noise, rule.delta_convert)
    said = make_spend(1, "1e-7", None, BUDGET)
    assert said.delta_keys / spend.delta_keys == said.delta_noise / spend.delta_noise == Fraction(1, 10)


def test_a_rho_budget_gives_an_epsilon_to_read():
    assert make_spend(1, None, None, rho("0.5")).delta_rho > 0


@pytest.mark.parametrize("noise", ["none", "Gauss", 5])
def test_noise_is_one_of_two_words(noise):
    with pytest.raises(InvalidParameter, match="'laplace' or 'gaussian'"):
        make_spend(1, None, noise, BUDGET)
