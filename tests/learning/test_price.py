"""What noise a batch of rounds gets: within the loss that was asked for, in either arm of a budget, and hardly more."""

from fractions import Fraction

import pytest

import tacit
from tacit.accounting import NoiseLoss, charge_of, noise_delta, rule_of
from tacit.accounting.cost import gaussian_sigma
from tacit.errors import InvalidParameter, QueryRefused
from tacit.learning import LinearRegression, noise_for
from tacit.plan import UNIT
from tacit.privacy import ApproximateLoss, GaussianNoise, KeyThreshold, PureChoice
from tests.learning.coded_people import people

distribution = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")

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


# The noise of one model that takes a whole budget, as a multiple of the least that (epsilon, delta) allows: with an
# eighth of the delta, and with the half of it that a model may ask for.
FACTORS = {
    ("0.1", "1e-5"): (1.164, 1.057),
    ("0.5", "1e-5"): (1.135, 1.046),
    ("1", "1e-5"): (1.125, 1.041),
    ("3", "1e-5"): (1.107, 1.034),
    ("8", "1e-5"): (1.089, 1.027),
    ("0.1", "1e-6"): (1.129, 1.043),
    ("0.5", "1e-6"): (1.112, 1.036),
    ("1", "1e-6"): (1.105, 1.033),
    ("3", "1e-6"): (1.092, 1.028),
    ("8", "1e-6"): (1.078, 1.023),
}


@pytest.mark.parametrize(("epsilon", "delta"), FACTORS)
def test_a_model_that_asks_for_half_of_a_budgets_delta_has_the_noise_that_it_allows(epsilon, delta):
    budget = tacit.epsilon(Fraction(epsilon), delta=delta)
    session = people(budget=budget, accept_large_delta=True).session
    one = [(UNIT**2, Fraction(1))]
    (least,), (half,) = (
        noise_for(session, epsilon, Fraction(delta) / 8, one)[0],
        noise_for(session, epsilon, Fraction(delta) / 2, one)[0],
    )
    allowed = gaussian_sigma(Fraction(UNIT), Fraction(epsilon), Fraction(delta))
    assert float(least.sigma / allowed) == pytest.approx(FACTORS[epsilon, delta][0], abs=6e-4)
    assert float(half.sigma / allowed) == pytest.approx(FACTORS[epsilon, delta][1], abs=6e-4)
    theirs = distribution.from_gaussian_mechanism(float(half.sigma / UNIT), value_discretization_interval=1e-4)
    assert theirs.get_delta_for_epsilon(float(epsilon)) == pytest.approx(float(delta) / 2, rel=1e-2)


def test_a_delta_above_the_eighth_is_charged_as_thresholds_are_and_fits_beside_fair_shares():
    budget = tacit.epsilon(1, delta="1e-6")
    session = people(budget=budget).session
    events, asked = noise_for(session, "0.5", "25e-8", WANTED)
    assert asked == NoiseLoss(Fraction(1, 2), Fraction(25, 10**8), of_keys=Fraction(3, 16 * 10**6))
    charge = charge_of(events, asked=asked)
    assert noise_delta(events, asked.epsilon) <= charge.delta + charge.delta_noise == asked.delta
    # the other half of the budget, with thresholds or with another such model
    half = charge_of([PureChoice(Fraction(1, 2)), KeyThreshold(Fraction(3, 16 * 10**6))])
    assert rule_of(budget).admits(charge + half)
    assert rule_of(budget).admits(charge + charge)
    assert not rule_of(budget).admits(charge + charge + charge_of([KeyThreshold(Fraction(1, 10**12))]))
    # the mutant: a delta that is charged for noise only has no room
    assert not rule_of(budget).admits_by_addition(charge_of(events, asked=ApproximateLoss(asked.epsilon, asked.delta)))


def test_a_model_that_is_charged_as_thresholds_are_is_verified_free_when_asked_again_and_saved(tmp_path):
    table = people(budget=tacit.epsilon(1, delta="1e-6"))
    model = LinearRegression(epsilon=1, delta=5e-7).fit(table, target="pay", features=["age"])
    ledger, registered = table.session.ledger, table.session.registered
    spent = ledger.spent(registered)
    assert (spent.epsilon, spent.delta, spent.delta_noise) == (1, Fraction(3, 8 * 10**6), Fraction(1, 8 * 10**6))
    again = LinearRegression(epsilon=1, delta=5e-7).fit(table, target="pay", features=["age"])
    assert again.receipt_ == model.receipt_
    assert ledger.spent(registered) == spent
    assert ledger.verify().kinds["charge"] == 1
    model.save(tmp_path / "model.tacit")
    assert tacit.learning.load(tmp_path / "model.tacit").loss_ == ApproximateLoss(Fraction(1), Fraction(5, 10**7))


def test_a_model_without_a_delta_leaves_thresholds_theirs():
    events, asked = noise_for(people(budget=tacit.epsilon(1, delta="1e-6")).session, "0.5", None, WANTED)
    assert (asked.of_keys, charge_of(events, asked=asked).delta) == (0, 0)


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
