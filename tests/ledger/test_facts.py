"""Facts in the ledger, on every store: charged like answers, found at every version, learned once."""

from fractions import Fraction

import pytest

from tacit.errors import BudgetExceeded, LedgerError
from tacit.ledger import Learning, Reservation, StoredAnswer, open_ledger
from tacit.privacy.loss import PureChoice, epsilon
from tacit_gauntlet.stage.ledger import DECLARATION

TENTH = Fraction(1, 10)
SIZES = Learning("how many rows a unit has")


def learn(ledger, table, text, *, key="sizes", analyst=None, learning=SIZES, request_id=None):
    reserved = ledger.reserve(
        table, [PureChoice(TENTH)], question_key=key, analyst=analyst, learning=learning, request_id=request_id
    )
    if isinstance(reserved, Reservation):
        reserved.commit(text)
    return reserved


def fact(ledger, table, *, key="sizes", analyst=None):
    found = ledger.recall(table, question_key=key, analyst=analyst, is_fact=True)
    return None if found is None else found.answer


def again(ledger, **changes):
    return ledger.register(name="pay", declaration=DECLARATION | changes, source=changes.pop("source", "pay.parquet"))


def test_a_fact_is_charged_once_and_then_free(ledger, table):
    assert isinstance(learn(ledger, table, "one"), Reservation)
    stored = learn(ledger, table, "two")
    assert isinstance(stored, StoredAnswer)
    assert stored.answer == "one"
    assert ledger.spent(table).epsilon == TENTH
    assert ledger.verify().kinds["fact"] == 1


def test_a_fact_is_found_at_a_new_version_a_new_place_and_under_a_new_declaration(ledger, table):
    learn(ledger, table, "one")
    newer = again(ledger, version=2)
    assert fact(ledger, newer) == "one"
    wider = ledger.register(
        name="pay", declaration=DECLARATION | {"version": 3, "rows_per_unit": 7}, source="elsewhere.parquet"
    )
    assert fact(ledger, wider) == "one"
    assert [each.version for each in ledger.facts(wider)] == [1]


def test_an_answer_is_not_found_at_a_new_version(ledger, table):
    """What a fact is allowed, an answer is not: it is about the rows of one version."""
    ledger.reserve(table, [PureChoice(TENTH)], question_key="q").commit("17")
    assert ledger.recall(table, question_key="q").answer == "17"
    assert ledger.recall(again(ledger, version=2), question_key="q") is None


def test_a_fact_is_no_answer_and_an_answer_no_fact(ledger, table):
    learn(ledger, table, "one", key="same")
    assert ledger.recall(table, question_key="same") is None
    ledger.reserve(table, [PureChoice(TENTH)], question_key="q").commit("17")
    assert fact(ledger, table, key="q") is None


def test_a_fact_of_one_table_is_not_found_for_another_of_the_same_people(ledger, table):
    learn(ledger, table, "one")
    other = ledger.register(name="visits", declaration=DECLARATION, source="visits.parquet", same_people_as="pay")
    assert fact(ledger, other) is None
    assert ledger.facts(other) == ()


def test_what_is_learned_again_takes_the_place_of_what_was_known(ledger, table):
    learn(ledger, table, "one")
    learn(ledger, table, "two", learning=Learning("sizes", again=True))
    assert fact(ledger, table) == "two"
    assert [each.stored.answer for each in ledger.facts(table)] == ["two"]
    assert ledger.spent(table).epsilon == 2 * TENTH
    ledger.verify()


def test_of_two_that_are_learned_at_once_the_first_to_be_stored_is_the_fact(ledger, table):
    """Both have paid, and both go on from the same numbers."""
    first = ledger.reserve(table, [PureChoice(TENTH)], question_key="sizes", learning=SIZES)
    second = ledger.reserve(table, [PureChoice(TENTH)], question_key="sizes", learning=SIZES)
    second.commit("second")
    assert fact(ledger, table) == "second"
    first.commit("first")
    assert fact(ledger, table) == "second"
    assert ledger.spent(table).epsilon == 2 * TENTH
    ledger.verify()


def test_all_analysts_share_a_fact_but_those_with_a_budget_of_their_own(ledger, table):
    """Their budget bounds what they are told: what others paid for is not theirs for nothing."""
    learn(ledger, table, "one", analyst="ada")
    assert fact(ledger, table) == fact(ledger, table, analyst="ben") == "one"
    ledger.grant("pay", epsilon("0.5"), analyst="cy")
    assert fact(ledger, table, analyst="cy") is None
    assert ledger.facts(table, "cy") == ()
    assert isinstance(learn(ledger, table, "cy's", analyst="cy"), Reservation)
    assert fact(ledger, table, analyst="cy") == "cy's"
    assert fact(ledger, table) == "one"
    assert [each.stored.answer for each in ledger.facts(table, "cy")] == ["cy's"]
    assert [each.stored.answer for each in ledger.facts(table)] == ["one"]
    ledger.verify()


def test_facts_say_what_they_are_and_cost(ledger, table):
    learn(ledger, table, "one")
    (known,) = ledger.facts(table)
    assert (known.words, known.charge.epsilon, known.stored.answer) == (SIZES.words, TENTH, "one")
    assert ledger.stored(known.stored.receipt.number).answer == "one"
    assert ledger.stored(known.stored.receipt.charge) is None


def test_a_fact_is_found_after_the_ledger_is_closed(where):
    with open_ledger(where) as first:
        table = first.register(name="pay", declaration=DECLARATION, source="pay.parquet", budget=epsilon(1))
        learn(first, table, "one")
    with open_ledger(where) as second:
        assert fact(second, again(second)) == "one"


def test_a_charge_of_a_request_is_found_by_its_id(ledger, table):
    assert ledger.charged_for(table, request_id="r") is None
    learn(ledger, table, "one", request_id="r")
    assert ledger.charged_for(table, request_id="r") == ledger.facts(table)[0].stored.receipt.charge


def test_room_is_asked_for_the_sum(ledger, table):
    """Budget 1: 0.9 beside 0.1 fits, 0.95 beside 0.1 does not, and leaves a refusal and no charge."""
    with ledger.call(table, [PureChoice(9 * TENTH)], beside=[PureChoice(TENTH)], question_key="q"):
        pass
    large = ledger.call(table, [PureChoice(Fraction(19, 20))], beside=[PureChoice(TENTH)], question_key="q")
    with pytest.raises(BudgetExceeded, match=r"ε = 1\.05"), large:
        pass
    assert ledger.spent(table).epsilon in (None, 0)
    kinds = ledger.verify().kinds
    assert (kinds["refusal"], kinds.get("charge", 0)) == (1, 0)


def test_a_fact_entry_that_names_another_answer_does_not_verify(ledger, table):
    """What the pointers lead to is part of what is verified."""
    learn(ledger, table, "one")
    ledger.reserve(table, [PureChoice(TENTH)], question_key="q").commit("17")
    (known,) = ledger.facts(table)
    wrong = {"kind": "fact", "table": table.id, "question": "0" * 64, "answer": known.stored.receipt.number}
    ledger._group_commit.submit(lambda draft: draft.append(wrong | {"words": "", "analyst": None, "version": 1}))
    with pytest.raises(LedgerError, match="names as learned what the answer before it is not"):
        ledger.verify()
