"""Events are functions of single outputs, decided by the first half of the draws; all outputs can be told apart."""

import math
from datetime import date
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from tacit.auditing.distinguish import choose_events, gaussian_move, loss_at
from tacit.auditing.outcome import Raised, read_outcomes
from tacit.errors import InvalidParameter

WORDS = {"learned": 100, "chosen": 200, "worth": loss_at(0.0), "most": 3}


def mixed(rng, n: int, move: float) -> list:
    """Outputs of many kinds: numbers, text, lists, errors."""
    found = []
    for turn in rng.random(n) + 0.1 * move:
        kinds = (turn, "yes", [1.0, turn], Raised("KeyError"), None, {"a": turn})
        found.append(kinds[int(turn * 60) % 6])
    return found


ODD = [math.nan, "never seen", None, (1, 2, 3, 4, 5), -0.0, 10**400, Raised("OSError"), {"b": [1]}]


@pytest.mark.parametrize("seed", range(5))
def test_what_is_tested_later_does_not_change_what_was_chosen(seed: int):
    rng = np.random.default_rng(seed)
    one, other = mixed(rng, 400, 0.0), mixed(rng, 400, 1.0)
    usual = choose_events(read_outcomes(one, other), **WORDS)
    odd = [ODD[place % len(ODD)] for place in range(200)]
    later = choose_events(read_outcomes(one[:200] + odd, other[:200] + odd[::-1]), **WORDS)
    assert [event.words for event in usual] == [event.words for event in later]
    assert [event.promise for event in usual] == [event.promise for event in later]
    for before, after in zip(usual, later, strict=True):
        assert np.array_equal(before.inside[:200], after.inside[:200])
        assert np.array_equal(before.inside[400:600], after.inside[400:600])


@pytest.mark.parametrize("shape", [(), (3,)])
def test_what_is_tested_later_does_not_change_what_was_chosen_of_plain_numbers(shape):
    rng = np.random.default_rng(9)
    one, other = rng.normal(size=(400, *shape)), rng.normal(0.5, size=(400, *shape))
    usual = choose_events(read_outcomes(one, other), **WORDS)
    later_one, later_other = one.copy(), other.copy()
    later_one[200:], later_other[200:] = 1e9, -0.0
    later = choose_events(read_outcomes(later_one, later_other), **WORDS)
    assert [(event.words, event.promise) for event in usual] == [(event.words, event.promise) for event in later]
    assert all(np.array_equal(a.inside[:200], b.inside[:200]) for a, b in zip(usual, later, strict=True))


def test_an_event_is_counted_on_the_later_draws_alone():
    outcomes = read_outcomes([0] * 10 + [1] * 10, [0] * 20)
    event = choose_events(outcomes, learned=5, chosen=10, worth=loss_at(0.0), most=1)[0]
    tally = event.tally(outcomes, 10)
    assert (tally.likelier_draws, tally.rarer_draws) == (10, 10)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (0.0, -0.0),
        (True, 1),
        (math.nan, 1.0),
        (math.inf, -math.inf),
        ("1", 1),
        (b"1", "1"),
        (None, "None"),
        ((1, 2), [1, 2]),
        ([1], [1, 1]),
        ({"a": 1}, {"b": 1}),
        (Raised("KeyError"), Raised("ValueError")),
        (np.array([1, 2]), np.array([[1, 2]])),
        (date(2020, 1, 1), date(2020, 1, 2)),
        (10**400, 10**400 + 1),
        (Decimal("0.1"), Fraction(1, 10)),
    ],
)
def test_outputs_that_an_observer_tells_apart_are_told_apart(one, other):
    outcomes = read_outcomes([one] * 3, [other] * 3)
    told = {tuple(pair) for pair in zip(outcomes.kinds.tolist(), outcomes.values.tolist(), strict=True)}
    assert len(told) == 2


@pytest.mark.parametrize("output", [1, math.nan, "text", None, [1, [2, "a"]], {"a": {1, 2}}, Raised("KeyError")])
def test_equal_outputs_are_one_value(output):
    outcomes = read_outcomes([output] * 3, [output] * 3)
    assert outcomes.constant == (True, True)
    assert len(set(outcomes.values.tolist())) == 1


def test_numpy_numbers_are_numbers():
    outcomes = read_outcomes([np.float64(1), np.float64(2)], [np.float64(1), np.float64(3)])
    assert outcomes.plain
    assert outcomes.numbers[:, 0].tolist() == [1, 2, 1, 3]


def test_what_cannot_be_compared_is_refused_by_its_type_alone():
    class Secret:
        def __repr__(self) -> str:
            return "CANARY"

    with pytest.raises(InvalidParameter, match="Secret") as refused:
        read_outcomes([Secret()], [Secret()])
    assert "CANARY" not in str(refused.value)


def test_whoever_knows_that_noise_is_gaussian_looks_between_the_inputs():
    rng = np.random.default_rng(3)
    one, other = (np.round(rng.normal(mean, size=40_000) * 2**20) for mean in (0, 1))  # floats as such would tell more
    outcomes = read_outcomes(one, other)
    words = {"learned": 20_000, "chosen": 40_000, "most": 1}
    middle = choose_events(outcomes, worth=gaussian_move, **words)[0]
    share = middle.inside[:40_000].mean()
    assert 0.2 < share < 0.8
    assert 0.5 < middle.promise < 1.1
