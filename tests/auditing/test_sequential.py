"""Bets against a claim: right at any time, one state to save, as strong as their counts."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.auditing.lower_bound import BETS, Bets, bet_on
from tacit.errors import InvalidParameter

ALPHA = Fraction(1, 10**6)


def test_the_start_is_at_most_one_and_every_claim_has_bets():
    assert len(set(BETS)) == len(BETS)
    assert all(0 < Bets().evidence(epsilon, 0) <= 1 for epsilon in (0, 1, 4, 8))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.7, 0.0), (0, 0.3), (1.5, 0.1)])
def test_money_is_not_expected_to_grow_while_the_claim_holds(epsilon: float, delta: float):
    """At equality of the claim, the expectation of one step over the four outcomes is what there was before."""
    q = 0.15
    p = math.exp(epsilon) * q + delta
    grown = 0.0
    for x, y in ((1, 1), (1, 0), (0, 1), (0, 0)):
        chance = (p if x else 1 - p) * (q if y else 1 - q)
        grown += chance * Bets().seen([bool(x)], [bool(y)]).evidence(epsilon, delta)
    assert grown == pytest.approx(Bets().evidence(epsilon, delta), abs=1e-9)


@settings(max_examples=50, deadline=None)
@given(st.tuples(*[st.integers(0, 500)] * 4), st.floats(0, 3), st.floats(0, 3), st.floats(0, 0.5))
def test_the_money_against_a_weaker_claim_is_never_more(counts, one: float, other: float, delta: float):
    """So a refuted epsilon refutes every smaller one, and the largest is a bound at all times."""
    low, high = sorted((one, other))
    bets = Bets(*counts)
    assert bets.evidence(high, delta) <= bets.evidence(low, delta) * (1 + 1e-9) + 1e-300


def test_a_false_claim_is_refuted_and_a_true_one_is_not():
    rng = np.random.default_rng(1)
    bets = Bets().seen(rng.random(4_000) < 0.6, rng.random(4_000) < 0.15)
    assert bets.refutes(1, 0, ALPHA)
    assert not bets.refutes("1.4", 0, ALPHA)
    assert 1 < bets.epsilon(0, ALPHA) < math.log(4)
    assert bets.epsilon("0.1", ALPHA) < bets.epsilon(0, ALPHA)


def test_looking_after_every_pair_does_not_raise_the_false_alarms():
    """400 bets on a true claim at alpha = 1/20, looked at 200 times each: at most 1 in 20 may ever fall (1e-6)."""
    rng = np.random.default_rng(2)
    fallen = 0
    for _ in range(400):
        one, other = rng.random(400) < 0.5, rng.random(400) < 0.5 / math.e
        bets = Bets()
        for start in range(0, 400, 20):
            bets = bets.seen(one[start : start + 20], other[start : start + 20])
            if bets.evidence(1, 0) >= 20:
                fallen += 1
                break
    assert fallen <= 45  # binomial(400, 1/20) is above 45 with chance below 1e-6


def test_a_state_is_saved_and_taken_up_again():
    first = Bets().seen([True, False], [False, False])
    later = Bets.from_json(first.to_json()).seen([True], [True])
    assert later == Bets().seen([True, False, True], [False, False, True])
    assert later.pairs == 3


@pytest.mark.parametrize("text", ["", "{}", '{"both": -1, "likelier": 0, "rarer": 0, "neither": 0}', "[1]"])
def test_what_is_no_state_is_refused(text):
    with pytest.raises(InvalidParameter, match="state of a bet"):
        Bets.from_json(text)


def test_betting_goes_on_from_a_state_until_the_claim_falls():
    rng = np.random.default_rng(3)

    def mechanism(bit: int) -> int:
        return bit if rng.random() < 0.95 else 1 - bit

    words = {"epsilon": 1, "pairs": 100}
    bets = bet_on(mechanism, 1, 0, bool, **words)
    while not bets.refutes(1, 0, ALPHA):
        assert bets.pairs < 1_000
        bets = bet_on(mechanism, 1, 0, bool, **words, bets=Bets.from_json(bets.to_json()))
    assert bets.epsilon(0, ALPHA) > 1
