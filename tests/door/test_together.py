"""Several questions charged as one: one entry, all or nothing, and a repeat is free."""

from fractions import Fraction

import pyarrow as pa
import pytest

import tacit
from tacit.asking.request import Request
from tacit.asking.request_parts import QUESTIONS_MOST, RequestParts
from tacit.asking.session import Session
from tacit.engine.engine import FAILED, EmbeddedEngine
from tacit.errors import BudgetExceeded, DeadRequest, EngineError, InvalidParameter, QueryRefused
from tacit.ledger import open_ledger
from tacit.plan import make_spend
from tests.door.orders import ITEMS, charges, orders, spent

ROWS = pa.table({"id": range(60), "g": ["ab"[n % 2] for n in range(60)], "x": [n % 7 for n in range(60)]})


@pytest.fixture
def book():
    with open_ledger(":memory:") as opened:
        yield opened


def bounded(book, budget=None, **declared):
    """A table of single rows, so that nothing is learned."""
    usual = {"unit": tacit.ROW, "name": "t", "budget": budget or tacit.epsilon(2)}
    usual["columns"] = {"g": {"keys": ["a", "b"]}, "x": {"between": (0, 6)}}
    return tacit.table(ROWS, version=1, ledger=book, **(usual | declared))


def together(*questions):
    return RequestParts(tuple((question.session, question.query) for question in questions))


def request(parts, epsilon=1, *, noise=None, analyst=None, request_id=None):
    spend = make_spend(epsilon, None, noise, parts.payer.registered.budget)
    return Request(parts, spend, parts.payer.asker(analyst), request_id)


def answered(parts, epsilon=1, **words):
    return request(parts, epsilon, **words).answer()


def planned(parts, epsilon=1, noise=None):
    return request(parts, epsilon, noise=noise).foresee()


def kinds(book):
    return [entry.kind for entry in book.entries() if entry.kind in ("charge", "answer", "refusal")]


def two(table):
    return together(table.group_by("g").count(), table.sum("x"))


# ---- one charge -----------------------------------------------------------------------------------------------------


def test_two_questions_are_one_charge_and_one_answer_of_the_whole_epsilon(book):
    table = bounded(book)
    found = answered(two(table))
    assert kinds(book) == ["charge", "answer"]
    assert charges(table) == [(1, None)]
    assert [len(noisy.keys) for noisy in found.noisy] == [2, 1]
    assert not found.free


def test_shares_of_epsilon_add_up_to_a_budget_that_has_just_that_left(book):
    """A third of 1 is no whole number of grains: rounding each up must not be more than the whole."""
    table = bounded(book, tacit.epsilon(1))
    answered(together(table.count(), table.sum("x"), table.group_by("g").count()))
    assert spent(table) == 1


def test_the_charge_covers_the_events_of_every_question(book):
    table = bounded(book)
    asked = two(table)
    plan = planned(asked).planned
    assert plan.events == tuple(event for each in plan.plans for event in each.events)
    assert len(plan.events) == 2
    answered(asked)
    (record,) = [entry.record for entry in book.entries() if entry.kind == "charge"]
    assert len(record["events"]) == 2


def test_the_whole_again_is_free_with_the_same_numbers(book):
    first, second = answered(two(bounded(book))), answered(two(bounded(book, budget=None)))
    assert second.free
    assert second.noisy == first.noisy
    assert spent(bounded(book)) == 1


def test_another_order_or_another_epsilon_is_another_question(book):
    table = bounded(book)
    answered(two(table))
    assert not answered(two(table), Fraction(1, 2)).free


def test_one_that_was_answered_alone_is_not_free_here_nor_the_other_way_round(book):
    table = bounded(book)
    table.sum("x").answer(epsilon=Fraction(1, 2))
    assert not answered(two(table)).free
    assert not table.group_by("g").count().answer(epsilon=Fraction(1, 2)).facts.free


def test_equal_questions_are_released_once_and_one_gets_all_of_epsilon(book):
    table = bounded(book)
    found = answered(together(table.count(), table.count()))
    assert found.noisy[0] == found.noisy[1]
    assert len(found.planned.plans) == 1
    assert found.plans[0].spend.epsilon == 1


# ---- all or nothing -------------------------------------------------------------------------------------------------


def test_a_budget_with_room_for_a_part_alone_refuses_the_whole(book):
    table = bounded(book, tacit.epsilon(1))
    table.count().answer(epsilon=Fraction(1, 2))
    with pytest.raises(BudgetExceeded):
        answered(two(table))
    assert spent(table) == Fraction(1, 2)
    assert kinds(book)[-1] == "refusal"
    assert not request(two(table)).fit(planned(two(table)))


def test_nothing_is_read_before_the_charge_and_after_a_failure_nothing_is_stored(book, monkeypatch):
    table, calls, release = bounded(book), [], Session.release

    def failing(self, plan):
        calls.append(spent(table))
        if len(calls) == 2:
            raise ValueError("row 17")
        return release(self, plan)

    with monkeypatch.context() as patch:
        patch.setattr(Session, "release", failing)
        with pytest.raises(EngineError) as problem:
            answered(two(table), request_id="r")
    assert calls == [1, 1]
    assert str(problem.value) == FAILED
    assert kinds(book) == ["charge"]
    with pytest.raises(DeadRequest):
        answered(two(table), request_id="r")
    assert not answered(two(table)).free
    assert spent(table) == 2


def test_an_interrupt_between_two_questions_leaves_the_charge_and_no_answer(book, monkeypatch):
    table, parts, calls = bounded(book), EmbeddedEngine.parts, []

    def interrupted(self, plan, salt):
        calls.append(plan)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return parts(self, plan, salt)

    monkeypatch.setattr(EmbeddedEngine, "parts", interrupted)
    with pytest.raises(KeyboardInterrupt, match="is spent"):
        answered(two(table))
    assert kinds(book) == ["charge"]


def test_a_request_is_charged_once_and_is_of_one_question(book):
    table = bounded(book)
    first = answered(two(table), request_id="r")
    assert answered(two(table), request_id="r").noisy == first.noisy
    with pytest.raises(InvalidParameter, match="another question"):
        answered(together(table.count(), table.sum("x")), request_id="r")
    assert spent(table) == 1


def test_an_analyst_with_a_budget_pays_for_the_whole(book):
    table = bounded(book)
    book.grant("t", tacit.epsilon(Fraction(1, 2)), analyst="ada")
    with pytest.raises(BudgetExceeded):
        answered(two(table), analyst="ada")
    assert not answered(two(table), Fraction(1, 2), analyst="ada").free
    assert book.spent(table.session.registered, "ada").epsilon == Fraction(1, 2)


# ---- learning, and noise --------------------------------------------------------------------------------------------


def test_what_is_lacking_is_learned_once_out_of_the_same_epsilon(book):
    table = orders(book)
    asked = together(table.group_by("item", keys=ITEMS).count(), table.count())
    foreseen = planned(asked)
    found = answered(asked)
    learned = [epsilon for epsilon, words in charges(table) if words]
    assert len(learned) == len(foreseen.wanted) > 0
    assert sum(epsilon for epsilon, _ in charges(table)) == 1
    assert charges(table)[-1] == (1 - sum(learned), None)
    again = answered(asked)
    assert again.free
    assert (again.noisy, again.planned, again.learned) == (found.noisy, found.planned, found.learned)


def test_gaussian_noise_is_divided_by_rho_and_stays_within_the_epsilon_of_the_call(book):
    table = bounded(book, tacit.epsilon(2, delta=1e-6))
    asked = together(*(table.where(f"x <> {n}").group_by("g").count() for n in range(4)))
    plan = planned(asked, noise="gaussian").planned
    alone = table.group_by("g").count().plan(epsilon=1, noise="gaussian").plan.releases[0].scale
    for each in plan.plans:
        assert 2 * 0.999 < each.releases[0].scale / alone < 2 * 1.05  # not four times
    answered(asked, noise="gaussian")
    (record,) = [entry.record for entry in book.entries() if entry.kind == "charge"]
    assert Fraction(record["epsilon"]) == 1
    assert book.spent(table.session.registered).delta_noise <= Fraction(1, 2 * 10**6)


def test_too_many_questions_and_other_tables_are_refused(book):
    table = bounded(book)
    many = [table.where(f"x <> {n}").count() for n in range(QUESTIONS_MOST + 1)]
    with pytest.raises(QueryRefused, match="at most 256"):
        together(*many)
    other = tacit.table(ROWS, name="u", unit="id", budget=tacit.epsilon(1), ledger=book, version=1)
    with pytest.raises(QueryRefused, match="budgets of their own"):
        together(table.count(), other.count())
