"""A model's rounds: charged before rows are read, noisy, stored, and never more than was reserved."""

import json
from fractions import Fraction

import pytest

import tacit
from tacit.door import Table
from tacit.learning import Rounds, noise_for, train
from tacit.paying import Paid
from tacit.plan import UNIT, count_moves_squared
from tests.learning.coded_people import people, plan_of, scores_of

Numbers = list[list[int]]


def ask(table: Table, *, rounds: int = 2, beyond: int = 0, key: str = "two rounds") -> Paid[Numbers]:
    """Learn the counts and some rounds of residuals."""
    plan, scores = plan_of(table), scores_of()
    wanted = [
        (count_moves_squared(len(plan.columns)), Fraction(1, 10)),
        (rounds * scores.moves_squared, Fraction(9, 10)),
    ]
    events, asked = noise_for(table.session, 1, None, wanted)

    def steps(asked_of: Rounds) -> Numbers:
        counts = [each.tolist() for each in asked_of.counts()]
        return counts + [asked_of.residuals(scores).tolist() for _ in range(rounds + beyond)]

    return train(
        table, plan, events, asked=asked, key=key, words="a test", steps=steps, encode=json.dumps, decode=json.loads
    )


def test_rounds_are_charged_once_and_asked_again_are_free_and_the_same():
    table = people(budget=tacit.epsilon(1, delta=1e-6))
    first = ask(table)
    again = ask(table)
    assert (first.free, again.free) == (False, True)
    assert again.value == first.value
    assert [len(each) for each in first.value] == [6, 3, 3, 3, 13, 13]
    with pytest.raises(tacit.BudgetExceeded):
        ask(table, key="another model")


def test_a_round_beyond_the_reserved_ones_is_never_drawn():
    table = people(budget=tacit.epsilon(1, delta=1e-6))
    with pytest.raises(tacit.EngineError, match="the charge stands"):
        ask(table, beyond=1)


def test_noise_is_added_to_every_number():
    table = people(budget=tacit.epsilon(1, delta=1e-6))
    whole = sum(number % UNIT == 0 for block in ask(table).value[:4] for number in block)
    # without noise 8 of these 15 numbers are whole; noise makes one whole with a chance of about 2^-24, so that three
    # are with a chance below 1e-18
    assert whole < 3
