"""A question is charged before it is answered, once, exactly, and for ever."""

from fractions import Fraction
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.accounting.filter import ZERO_CHARGE, NoiseLoss, charge_of
from tacit.errors import BudgetExceeded, DeadRequest, InvalidParameter, LedgerError
from tacit.ledger import Ledger, RegisteredTable, Reservation, StoredAnswer, open_ledger
from tacit.ledger.certificate import verify_certificate
from tacit.privacy.loss import (
    ApproximateLoss,
    FailureChance,
    GaussianNoise,
    KeyThreshold,
    LaplaceNoise,
    PureChoice,
    SubsampledGaussian,
    epsilon,
    event_from_dict,
)
from tacit_gauntlet.stage.ledger import DECLARATION, TENTH, ask, charge


def kinds(ledger: Ledger) -> list[str]:
    return [entry.kind for entry in ledger.entries()]


def test_a_charge_is_in_the_ledger_before_the_question_is_answered(ledger, table):
    charge(ledger, table, "q")
    assert kinds(ledger) == ["ledger", "budget", "table", "charge"]
    assert ledger.spent(table).epsilon == TENTH


def test_an_answer_is_stored_with_the_charge_that_paid_for_it(ledger, table):
    reservation = charge(ledger, table, "q")
    receipt = reservation.commit('{"count": 12}')
    entries = list(ledger.entries())
    assert receipt.number == len(entries)
    assert entries[-1].record["answer"] == '{"count": 12}'
    assert receipt.charge == entries[-1].record["charge"] == reservation.number


def test_ten_tenths_fit_one_and_an_eleventh_leaves_a_refusal_and_no_charge(ledger, table):
    assert all(ask(ledger, table, str(turn)) for turn in range(10))
    with pytest.raises(BudgetExceeded, match="no charge was made and no row was read"):
        charge(ledger, table, "one more")
    assert kinds(ledger)[-1] == "refusal"
    assert ledger.spent(table).epsilon == 1
    assert ledger.verify().kinds["refusal"] == 1


def test_a_refusal_names_the_budget_and_the_command_that_grants_more(ledger, table):
    with pytest.raises(
        BudgetExceeded, match=r"budget of 'pay', ε = 1, has no room for ε = 2(.|\n)*tacit budget grant pay"
    ):
        charge(ledger, table, "q", epsilon=Fraction(2))


def test_everything_is_charged_or_nothing(ledger, table):
    with pytest.raises(BudgetExceeded):
        ledger.reserve(table, [PureChoice(TENTH), PureChoice(Fraction(1))], question_key="q")
    assert ledger.spent(table).epsilon == 0


def test_a_pure_budget_admits_pure_events_alone(ledger, table):
    for events in ([GaussianNoise(Fraction(1000), Fraction(1))], [PureChoice(TENTH), KeyThreshold(Fraction(1, 10**9))]):
        with pytest.raises(BudgetExceeded):
            ledger.reserve(table, events, question_key="q")


def test_a_question_without_events_is_refused_since_it_would_be_free(ledger, table):
    with pytest.raises(InvalidParameter, match="without a charge"):
        ledger.reserve(table, [], question_key="q")


def test_a_charge_pays_for_one_answer(ledger, table):
    reservation = charge(ledger, table, "q")
    reservation.commit("1")
    with pytest.raises(LedgerError, match="already paid"):
        reservation.commit("2")
    assert ledger.recall(table, question_key="q").answer == "1"


def test_an_identical_question_is_answered_from_the_record_for_free(ledger, table):
    first = charge(ledger, table, "q").commit('"the answer"')
    again = ledger.reserve(table, [PureChoice(TENTH)], question_key="q", analyst="someone else")
    assert isinstance(again, StoredAnswer)
    assert (again.answer, again.receipt) == ('"the answer"', first)
    assert ledger.spent(table).epsilon == TENTH


def test_another_version_of_the_table_is_another_question(ledger, table):
    charge(ledger, table, "q").commit("1")
    newer = ledger.register(name="pay", declaration={**DECLARATION, "version": 2}, source="pay.parquet")
    assert isinstance(ledger.reserve(newer, [PureChoice(TENTH)], question_key="q"), Reservation)
    assert ledger.spent(table).epsilon == 2 * TENTH


def test_a_committed_request_returns_its_answer_across_restarts_and_versions(where):
    with open_ledger(where) as ledger:
        table = ledger.register(name="pay", declaration=DECLARATION, budget=epsilon(1))
        charge(ledger, table, "q", request_id="r").commit("1")
    with open_ledger(where) as ledger:
        newer = ledger.register(name="pay", declaration={**DECLARATION, "version": 2})
        stored = ledger.reserve(newer, [PureChoice(TENTH)], question_key="q", request_id="r")
        assert isinstance(stored, StoredAnswer)
        assert stored.answer == "1"
        assert ledger.spent(newer).epsilon == TENTH


def test_a_request_that_was_charged_and_never_answered_is_dead_and_says_so(where):
    with open_ledger(where) as ledger:
        table = ledger.register(name="pay", declaration=DECLARATION, budget=epsilon(1))
        charge(ledger, table, "q", request_id="r")
    with open_ledger(where) as ledger:
        with pytest.raises(DeadRequest, match="new charge"):
            ledger.reserve(table, [PureChoice(TENTH)], question_key="q", request_id="r")
        with pytest.raises(DeadRequest):
            ledger.recall(table, question_key="q", request_id="r")
        assert ask(ledger, table, "q", request_id="another") is not None
        assert ledger.spent(table).epsilon == 2 * TENTH


def test_a_request_id_belongs_to_one_question_and_one_analyst(ledger, table):
    charge(ledger, table, "q", request_id="r").commit("1")
    with pytest.raises(InvalidParameter, match="another question"):
        ledger.reserve(table, [PureChoice(TENTH)], question_key="other", request_id="r")
    reserved = ledger.reserve(table, [PureChoice(TENTH)], question_key="other", request_id="r", analyst="bob")
    assert isinstance(reserved, Reservation)


def test_a_refused_request_may_be_asked_again_once_there_is_room(ledger, table):
    with pytest.raises(BudgetExceeded):
        charge(ledger, table, "q", epsilon=Fraction(2), request_id="r")
    ledger.grant("pay", epsilon(3), reason="the board agreed")
    assert charge(ledger, table, "q", epsilon=Fraction(2), request_id="r").commit("1")


@pytest.mark.parametrize("words", [{"question_key": ""}, {"question_key": 3}, {"request_id": ""}, {"analyst": 7}])
def test_names_must_be_text(ledger, table, words):
    with pytest.raises(InvalidParameter, match="must be a text"):
        ledger.reserve(table, [PureChoice(TENTH)], **{"question_key": "q", **words})


def test_texts_of_any_characters_come_back_as_they_went_in(ledger, table):
    strange = '\x00\ud800 "quoted" \\ ε \n \' ; DROP TABLE tacit_entry; -- %s ?'
    charge(ledger, table, strange, request_id=strange).commit(strange)
    assert ledger.recall(table, question_key=strange, request_id=strange).answer == strange
    ledger.verify()


def test_a_table_of_another_ledger_is_refused(ledger, table):
    with open_ledger(":memory:") as other, pytest.raises(LedgerError, match="does not know the table"):
        other.reserve(table, [PureChoice(TENTH)], question_key="q")


def test_a_ledger_in_memory_says_that_it_does_not_last():
    with open_ledger(":memory:") as ledger:
        table = ledger.register(name="pay", declaration=DECLARATION, budget=epsilon(1))
        assert not ledger.durable
        assert charge(ledger, table, "q").commit("1").durable is False


amounts = st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(1, 2), max_denominator=10**9)


@settings(max_examples=15)
@given(st.lists(amounts, min_size=1, max_size=12))
def test_what_is_spent_is_never_less_than_the_exact_sum_and_never_above_the_budget(sequence):
    with open_ledger(":memory:") as ledger:
        table = ledger.register(name="pay", declaration=DECLARATION, budget=epsilon(1))
        admitted = [amount for turn, amount in enumerate(sequence) if ask(ledger, table, str(turn), epsilon=amount)]
        spent = ledger.spent(table).epsilon
        assert sum(admitted) <= spent <= 1
        assert spent - sum(admitted) <= len(admitted) * Fraction(1, 2**96)
        ledger.verify()


def test_an_amount_with_a_long_denominator_keeps_the_totals_short(ledger: Ledger, table: RegisteredTable):
    for turn, prime in enumerate((1_000_003, 1_000_033, 1_000_037, 1_000_039)):
        event = LaplaceNoise(scale=Fraction(prime), sensitivity=Fraction(1))
        ledger.reserve(table, [event], question_key=str(turn))
    spent = ledger.spent(table).epsilon
    assert spent.denominator <= 2**96
    assert spent >= sum(Fraction(1, prime) for prime in (1_000_003, 1_000_033, 1_000_037, 1_000_039))


SAMPLED = SubsampledGaussian(Fraction(4), Fraction(1), Fraction(1, 100))


def test_noise_on_a_sample_is_stored_verified_and_certified(ledger):
    table = ledger.register(name="learn", declaration=DECLARATION, budget=epsilon(1, delta=1e-6))
    asked = ApproximateLoss(Fraction(1, 4), Fraction(1, 10**8))
    reserved = ledger.reserve(table, [SAMPLED] * 20, question_key="model", asked=asked)
    receipt = reserved.commit("[1, 2]")
    assert ledger.spent(table) == charge_of([SAMPLED] * 20, asked=asked)
    assert ledger.verify().kinds["charge"] == 1
    found = verify_certificate(ledger.certificate(receipt.number))
    assert [event_from_dict(event) for event in found["events"]] == [SAMPLED] * 20


def test_noise_that_is_charged_as_thresholds_are_is_stored_verified_and_certified(ledger):
    table = ledger.register(name="learn", declaration=DECLARATION, budget=epsilon(1, delta=1e-6))
    batch = [GaussianNoise(Fraction(62 * 2**20, 10), Fraction(2**40))] * 2
    asked = NoiseLoss(Fraction(1), Fraction(5, 10**7), of_keys=Fraction(3, 8 * 10**6))
    with pytest.raises(BudgetExceeded):
        ledger.reserve(table, batch, question_key="model", asked=ApproximateLoss(asked.epsilon, asked.delta))
    receipt = ledger.reserve(table, batch, question_key="model", asked=asked).commit("[1, 2]")
    assert ledger.spent(table) == charge_of(batch, asked=asked)
    assert (ledger.spent(table).delta, ledger.spent(table).delta_noise) == (asked.of_keys, Fraction(1, 8 * 10**6))
    assert ledger.verify().kinds["charge"] == 1
    verify_certificate(ledger.certificate(receipt.number))


def test_noise_on_a_sample_needs_neighbours_that_add_or_remove(ledger):
    declaration = {**DECLARATION, "neighbours": "replace"}
    table = ledger.register(name="learn", declaration=declaration, budget=epsilon(1, delta=1e-6))
    asked = ApproximateLoss(Fraction(1), Fraction(1, 10**8))
    for step in (partial(ledger.reserve, question_key="model"), ledger.fit):
        with pytest.raises(InvalidParameter, match="add or remove"):
            step(table, [SAMPLED], asked=asked)
    assert ledger.spent(table) == ZERO_CHARGE
    assert [entry.kind for entry in ledger.entries()][-1] == "table"


def test_a_promise_that_may_fail_is_stored_as_that(ledger):
    table = ledger.register(name="survey", declaration=DECLARATION, budget=epsilon(1, delta=1e-6))
    events = [PureChoice(TENTH), FailureChance(Fraction(1, 10**8))]
    ledger.reserve(table, events, question_key="q")
    assert ledger.spent(table).delta == Fraction(1, 10**8)
    *_, last = ledger.entries()
    assert last.record["events"][1] == {"kind": "FailureChance", "delta": "1/100000000"}
    ledger.verify()
