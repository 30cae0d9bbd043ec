"""Averaging, differencing, membership, name and shame: what works on exact answers and unbudgeted noise fails on ours.

Right guesses about fair coins are at most Binomial(trials, e^epsilon/(1 + e^epsilon)): false alarms 10⁻⁹.
"""

import json
import secrets
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.accounting.convert import explain
from tacit.asking.session import Session
from tacit.errors import BudgetExceeded, InvalidParameter
from tacit.noise.laplace import DiscreteLaplace
from tacit_classroom.attacks import average, difference, members, membership, name_and_shame
from tacit_classroom.attacks.averaging import ASKED, OTHER, SAME, UNBUDGETED
from tacit_classroom.attacks.exposure import DELTAS
from tacit_classroom.attacks.members import MANY_FACTS, ONE_MEAN
from tacit_classroom.attacks.people import Choices, at_most
from tacit_gauntlet.stage.statistic import binomial_at_least, binomial_at_most

FALSE_ALARM = 1e-9
NO_NOISE = (DiscreteLaplace, "sample", lambda self, n: np.zeros(n, dtype=np.int64))


def is_within(right, trials, epsilon):
    """Whether so many right guesses are possible under epsilon, but for a chance of 10⁻⁹."""
    return binomial_at_least(right, trials, explain(epsilon).one.accuracy) > FALSE_ALARM


@pytest.fixture(scope="module")
def averaged():
    return average()


def test_averaging_undoes_noise_that_nobody_counts(averaged):
    """After 10,000 repeats at epsilon 1/10 the error is 0.14: 0.04 % of the counts round wrongly."""
    assert averaged.last(UNBUDGETED).exact >= 0.98
    assert averaged.last(UNBUDGETED).repeats == 10_000


def test_averaging_ours_gains_nothing_since_the_same_question_has_one_answer_and_one_charge(averaged):
    assert averaged.numbers_seen == 1
    assert averaged.asked == ASKED
    assert averaged.spent_on_same == averaged.each == 0.1
    assert len({point.error for point in averaged.points if point.answers == SAME}) == 1


def test_other_questions_are_charged_until_the_budget_ends(averaged):
    assert averaged.others_answered == 10
    assert averaged.last(OTHER).error > 1


def test_a_record_that_is_not_kept_is_caught(monkeypatch):
    """The planted bug draws fresh noise for a question asked again, and charges it again."""
    keys = iter(range(10**6))
    monkeypatch.setattr(Session, "key_of", lambda self, plan: str(next(keys)))
    with pytest.raises(BudgetExceeded):
        average(repeats=10)


def test_exact_counts_that_differ_by_one_person_give_them_away_and_ours_stay_below_the_bound():
    found = difference(streets=1_000)
    assert found.right_exact == 1
    assert is_within(round(found.right_budget * found.streets), found.streets, 1)
    assert sum(found.differences["budget"]["yes"].values()) == pytest.approx(1)


def test_differencing_catches_a_budget_without_noise(monkeypatch):
    monkeypatch.setattr(*NO_NOISE)
    found = difference(streets=1_000)
    assert not is_within(round(found.right_budget * found.streets), found.streets, 1)


def test_exact_averages_tell_who_is_there_and_ours_do_not():
    found = membership(epsilons=(1,), members=100, facts=1_000, trials=100)
    assert found.exact_many_facts > 0.7
    assert found.exact_one_mean == 1
    assert found.at(MANY_FACTS).advantage < 0.4
    assert found.at(ONE_MEAN).bound == pytest.approx(np.tanh(0.5), abs=1e-6)


def mean_attack(epsilon):
    """Return how often the attacker who knows everyone else is right about fresh coins, and the trials."""
    present = Choices(secrets.randbelow(10**9)).coins("present", 1_000)
    means = members._noisy_means(present, Fraction(epsilon))
    said = np.array([mean is not None and mean > 0 for mean in means])
    return int((said == present).sum()), len(present)


def test_the_attacker_who_knows_everyone_else_reaches_the_bound_and_does_not_pass_it():
    right, trials = mean_attack(1)
    assert is_within(right, trials, 1)
    assert binomial_at_most(right, trials, explain(1).one.accuracy) > FALSE_ALARM


def test_a_bound_is_printed_rounded_up_beside_measured_shares():
    points = tuple(
        members.MembershipPoint(who, 10.0, 1.0, float(explain(10).one.advantage)) for who in (MANY_FACTS, ONE_MEAN)
    )
    found = members.Membership(10, 10, 10, 1, 1.0, 1.0, points, 10.0)
    assert "99.9 %" not in str(found)  # all guesses were right, and the bound is 99.991 %
    assert "no attacker can expect more than 100 %" in found.sentence
    for loss in ("0.1", "1", "3", "10"):
        bound = explain(Fraction(loss)).one.advantage
        assert Fraction(at_most(float(bound)).removesuffix(" %")) >= bound * 100


def test_membership_catches_a_budget_that_spends_twice_what_it_says():
    right, trials = mean_attack(2)
    assert not is_within(right, trials, 1)


def test_membership_catches_a_budget_without_noise(monkeypatch):
    monkeypatch.setattr(*NO_NOISE)
    right, trials = mean_attack(1)
    assert right == trials
    assert not is_within(right, trials, 1)


@pytest.fixture(scope="module")
def exposed():
    return name_and_shame(rows=1_000)


def test_the_chance_of_a_row_in_the_clear_is_the_formulas(exposed):
    for point, delta in zip(exposed.points, DELTAS, strict=True):
        chance = 1 - (1 - delta) ** exposed.rows
        assert point.chance == pytest.approx(float(chance), rel=1e-9)
        seen = round(point.simulated * exposed.runs)
        assert binomial_at_least(seen, exposed.runs, chance) > FALSE_ALARM
        assert binomial_at_most(seen, exposed.runs, chance) > FALSE_ALARM


def test_a_large_population_uses_the_same_formula():
    found = name_and_shame(rows=20_000, runs=1)
    assert found.points[0].chance == pytest.approx(20_000 * 1e-8, rel=1e-3)


def test_a_budget_refuses_a_delta_above_a_hundredth_of_one_over_n_unless_it_is_accepted(exposed):
    assert [point.accepted for point in exposed.points] == [delta <= Fraction(1, 100_000) for delta in DELTAS]
    assert "in the clear" in exposed.refusal
    declared = {"unit": "id", "population": 1_000, "ledger": ":memory:", "budget": tacit.epsilon(1, delta="1e-3")}
    with pytest.raises(InvalidParameter, match="accept_large_delta"):
        tacit.table(pa.table({"id": [1]}), name="t", **declared)
    assert tacit.table(pa.table({"id": [1]}), name="t", accept_large_delta=True, **declared)


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        (average, {"epsilon": -1}),
        (average, {"repeats": 1}),
        (difference, {"streets": 1}),
        (membership, {"members": 1}),
        (membership, {"facts": 10**6}),
        (name_and_shame, {"rows": 1}),
        (name_and_shame, {"runs": 0}),
    ],
)
def test_an_attack_that_makes_no_sense_is_refused(attack, words):
    with pytest.raises(InvalidParameter):
        attack(**words)


def test_every_result_is_data_words_and_one_sentence(averaged, exposed):
    for found in (averaged, exposed, difference(streets=10), membership(epsilons=(), members=10, facts=10, trials=20)):
        assert str(found).splitlines()[-1] == found.sentence
        assert found.sentence.endswith(".")
        assert json.loads(json.dumps(found.record()))["sentence"] == found.sentence
