"""A model's rounds: charged before rows are read, noisy, stored, and never more than was reserved."""

import json
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

import tacit
from tacit.asking import Table
from tacit.engine import FAILED
from tacit.errors import InvalidParameter
from tacit.exact import ExactIntegers
from tacit.learning import Rounds, noise_for, train
from tacit.learning.rounds import Paid
from tacit.plan import UNIT, CodedColumn, CodedPlan, count_moves_squared
from tacit.privacy import GaussianNoise
from tacit.query import Column
from tacit.release import release_integers
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


def rounds_over(events: list[GaussianNoise], *, moves: int = 1) -> Iterator[Rounds]:
    """Yield rounds over the rows of the table, within these events."""
    table = people()
    with table.session.engine.coded(plan_of(table)) as rows:
        yield Rounds(rows, events, moves=moves)


def wide(squared: int) -> GaussianNoise:
    """Return an event that hides a move of this square, and shows rows as they are: its noise is next to none."""
    return GaussianNoise(Fraction(1, 1000), Fraction(squared))


def test_each_round_takes_what_it_moves_from_its_event():
    scores = scores_of()
    for rounds in rounds_over([wide(2 * scores.moves_squared), wide(count_moves_squared(1))]):
        first, second = rounds.residuals(scores), rounds.residuals(scores)
        assert first.tolist() == second.tolist()
        with pytest.raises(InvalidParameter, match="no reserved event has room"):
            rounds.counts([0, 1])


def test_an_event_whose_rest_is_too_small_is_left_for_the_next():
    scores = scores_of()
    for rounds in rounds_over([wide(count_moves_squared(4) + 1), wide(scores.moves_squared)]):
        rounds.counts()
        rounds.residuals(scores)
        with pytest.raises(InvalidParameter, match="no reserved event has room"):
            rounds.counts([0])


def test_an_event_of_a_smaller_sensitivity_is_refused():
    scores = scores_of()
    for rounds in rounds_over([wide(scores.moves_squared - 1)]):
        with pytest.raises(InvalidParameter, match="no reserved event has room"):
            rounds.residuals(scores)


def test_where_a_unit_is_replaced_a_round_takes_four_times_as_much():
    scores = scores_of()
    for rounds in rounds_over([wide(4 * scores.moves_squared - 1)], moves=4):
        with pytest.raises(InvalidParameter, match="no reserved event has room"):
            rounds.residuals(scores)


def test_a_release_refuses_noise_that_hides_less_than_one_unit_moves():
    secret = ExactIntegers(np.array([5, 7]), 25)
    with pytest.raises(InvalidParameter, match="farther than its event hides"):
        release_integers(secret, GaussianNoise(Fraction(10), Fraction(24)))
    with pytest.raises(InvalidParameter, match="for one number"):
        release_integers(secret, GaussianNoise(Fraction(10), Fraction(25), scalar=True))
    assert len(release_integers(secret, GaussianNoise(Fraction(10), Fraction(25)))) == 2


def test_mutant_rounds_that_forget_what_was_taken_are_caught(monkeypatch):
    """Where every round may take the whole event, a third round is drawn though two were paid for."""
    monkeypatch.setattr(Rounds, "_taken", lambda self, moves_squared: self._events[0])
    scores = scores_of()
    for rounds in rounds_over([wide(2 * scores.moves_squared)]):
        for _ in range(3):
            rounds.residuals(scores)  # which test_each_round_takes_what_it_moves_from_its_event would see


def test_the_unit_of_a_model_is_that_of_its_table():
    table = people(budget=tacit.epsilon(1, delta=1e-6))
    with pytest.raises(InvalidParameter, match="unit of its table"):
        asked_as(table, plan_of(table, unit=None))


def asked_as(table: Table, plan: CodedPlan) -> Paid[Numbers]:
    """Ask for the counts of a plan."""
    events, asked = noise_for(table.session, 1, None, [(count_moves_squared(len(plan.columns)), Fraction(1))])
    return train(
        table,
        plan,
        events,
        asked=asked,
        key="counts",
        words="counts",
        steps=lambda rounds: [each.tolist() for each in rounds.counts()],
        encode=json.dumps,
        decode=json.loads,
    )


def test_a_joined_table_is_learned_from_like_any_other():
    table = people(budget=tacit.epsilon(1, delta=1e-6))
    each = table.per_unit(n=tacit.count(), oldest=tacit.max("age"))
    plan = CodedPlan("person", None, (CodedColumn("n", Column("COUNT(*)"), listed=(1, 2, 3)),))
    assert [len(block) for block in asked_as(each, plan).value] == [4]
    with each.session.engine.coded(plan) as rows:
        assert rows.counts().values.tolist() == [2 * UNIT, UNIT, UNIT, 0]


def test_failing_inside_a_round_says_the_fixed_words_and_the_charge_stands():
    table = people(budget=tacit.epsilon(1, delta=1e-6))
    plan = plan_of(table)
    events, asked = noise_for(table.session, 1, None, [(count_moves_squared(4), Fraction(1))])

    def steps(rounds: Rounds) -> Numbers:
        raise ValueError(str(rounds.counts()))

    with pytest.raises(tacit.EngineError) as caught:
        train(table, plan, events, asked=asked, key="x", words="x", steps=steps, encode=json.dumps, decode=json.loads)
    assert str(caught.value) == FAILED
    with pytest.raises(tacit.BudgetExceeded):
        asked_as(table, plan)


def test_progress_shows_the_reserved_share_and_nothing_of_rows():
    scores, parts = scores_of(), []
    table = people()
    events = [wide(2 * scores.moves_squared)]
    with table.session.engine.coded(plan_of(table)) as rows:
        rounds = Rounds(rows, events, tick=parts.append)
        rounds.residuals(scores)
        rounds.residuals(scores)
    whole = float(events[0].sensitivity_squared / events[0].sigma ** 2)
    assert parts == [whole / 2, whole / 2]
