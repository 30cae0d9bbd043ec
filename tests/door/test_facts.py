"""What a question learns is paid for once, out of its own epsilon, and is free for whoever asks next."""

from dataclasses import replace
from fractions import Fraction

import pandas as pd
import pytest

import tacit
from tacit.asking.request import Request
from tacit.asking.session import Session
from tacit.engine.engine import FAILED, EmbeddedEngine
from tacit.errors import BudgetExceeded, DeadRequest, EngineError, InvalidParameter, QueryRefused
from tacit.ledger import open_ledger
from tacit.plan import BINS
from tests.door.orders import BUDGET, ITEMS, ROWS, by_item, charges, orders, spent

# The part of a call's epsilon that a count by three groups learns with.
LEARNS = Fraction(20, 100)


@pytest.fixture
def book():
    with open_ledger(":memory:") as opened:
        yield opened


# ---- what is charged -------------------------------------------------------------------------------------------------


def test_the_first_question_learns_for_a_part_of_its_epsilon_and_the_rest_answers_it(book):
    table = orders(book)
    answer = by_item(table)
    (learned, words), (rest, none) = charges(table)
    assert learned == LEARNS
    assert "rows a who has" in words
    assert (rest, none) == (1 - LEARNS, None)
    assert spent(table) == 1
    assert "Spent ε 1;" in str(answer)


def test_a_second_try_at_learning_is_a_part_of_the_same_epsilon(book, monkeypatch):
    """What the first try tells is nobody at all, as if noise had hidden them."""
    table = orders(book)
    release = Session.release

    def nobody(self, plan):
        noisy = release(self, plan)
        return replace(noisy, parts=(((0,) * BINS,),) * len(noisy.parts)) if plan.profiles else noisy

    monkeypatch.setattr(Session, "release", nobody)
    many = table.group_by("item", keys=[f"{n}" for n in range(100)]).count()  # of few groups the first try has enough
    many.answer(epsilon=1)
    assert sum(epsilon for epsilon, _ in charges(table)) == 1
    assert len([words for _, words in charges(table) if words]) > 1
    many.answer(epsilon=1)
    assert spent(table) == 1


def test_the_same_question_again_is_free_with_the_same_numbers(book):
    table = orders(book)
    first, second = by_item(table), by_item(orders(book))
    assert second.to_dicts() == first.to_dicts()
    assert spent(table) == 1


def test_the_next_question_has_all_of_its_epsilon(book):
    table = orders(book)
    by_item(table)
    by_item(table, epsilon="0.5")
    assert charges(table)[-1] == (Fraction(1, 2), None)


def test_a_question_that_found_some_facts_and_learned_others_is_free_again_too(book):
    """What it learned in its own call is no part of what it is found by."""
    table = orders(book)
    by_item(table, epsilon="0.5")
    filtered = table.where("x < 3000").group_by("item", keys=ITEMS).count()
    first = filtered.answer(epsilon=1)
    before = spent(table)
    assert filtered.answer(epsilon=1).to_dicts() == first.to_dicts()
    assert spent(table) == before


def test_the_same_question_is_free_after_its_facts_were_learned_again(book):
    table = orders(book)
    first = by_item(table)
    table.learn(epsilon="0.3", by=["item"], keys=ITEMS, again=True)
    before = spent(table)
    assert by_item(table).to_dicts() == first.to_dicts()
    assert spent(table) == before


def test_sql_and_python_are_one_question(book):
    table = orders(book, columns={"item": {"keys": ITEMS}})
    table.sql("SELECT item, COUNT(*) AS n FROM orders GROUP BY item").answer(epsilon=1)
    table.group_by("item").count().answer(epsilon=1)
    table.sql("SELECT COUNT(1) AS m, item FROM orders GROUP BY item ORDER BY m LIMIT 1").answer(epsilon=1)
    assert spent(table) == 1


def test_a_fact_of_one_analyst_serves_every_other_but_one_with_a_budget_of_their_own(book):
    table = orders(book)
    by_item(table, analyst="ada")
    by_item(table, analyst="ben", epsilon="0.5")
    assert [words for _, words in charges(table)].count(None) == 2
    book.grant("orders", tacit.epsilon(2, delta=1e-6), analyst="cy")
    by_item(table, analyst="cy", epsilon="0.5")
    assert [epsilon for epsilon, words in charges(table) if words] == [LEARNS, LEARNS / 2]


@pytest.mark.parametrize(
    ("epsilon", "learn", "learns"),
    [("0.2", None, False), (1, None, True), (1, "reuse", False), ("0.2", "fresh", True), ("0.2", "0.2", True)],
)
def test_a_filtered_question_of_small_epsilon_takes_the_facts_of_the_whole_table(book, epsilon, learn, learns):
    table = orders(book)
    by_item(table)
    filtered = table.where("x < 3000").group_by("item", keys=ITEMS).count()
    filtered.answer(epsilon=epsilon, learn=learn)
    after = charges(table)[2:]
    assert len([words for _, words in after if words]) == learns
    assert sum(each for each, _ in after) == Fraction(epsilon)
    filtered.answer(epsilon=epsilon)
    assert charges(table)[2:] == after


@pytest.mark.parametrize("share", ["0.3", 0.3, Fraction(3, 10)])
def test_the_share_that_learns_can_be_said(book, share):
    table = orders(book)
    by_item(table, learn=share)
    assert [epsilon for epsilon, _ in charges(table)] == [Fraction(3, 10), Fraction(7, 10)]


@pytest.mark.parametrize("bad", [0, 1, -0.1, 2, "much", float("nan"), [], "no"])
def test_another_share_is_refused_before_the_charge(book, bad):
    table = orders(book)
    with pytest.raises(InvalidParameter, match="learn must be a share of epsilon"):
        by_item(table, learn=bad)
    assert charges(table) == []


def test_a_question_that_may_not_learn_is_refused_with_the_bound_to_give(book):
    table = orders(book)
    with pytest.raises(QueryRefused, match="rows_per_unit=5") as refused:
        by_item(table, learn=False)
    assert "leave out learn=False" in str(refused.value)
    assert charges(table) == []
    by_item(table)
    by_item(table, epsilon="0.5", learn=False)  # what is known may be used


def test_bounds_by_hand_do_without_learning_where_they_must(book):
    by_hand = orders(book, rows_per_unit=5, groups_per_unit=3)
    by_item(by_hand, learn=False)
    assert charges(by_hand) == [(1, None)]


# ---- room -----------------------------------------------------------------------------------------------------------


def test_nothing_is_learned_that_cannot_be_used(book):
    table = orders(book, budget=tacit.epsilon("0.95", delta=1e-6))
    with pytest.raises(BudgetExceeded):
        by_item(table, noise="laplace")
    assert charges(table) == []
    by_item(table, epsilon="0.9")
    assert len(charges(table)) == 2


def test_the_whole_budget_may_be_asked_for_at_once(book):
    table = orders(book, budget=tacit.epsilon(1))
    by_item(table)
    assert spent(table) == 1


# ---- plans -----------------------------------------------------------------------------------------------------------


def test_a_plan_says_what_would_be_learned_charges_nothing_and_reads_no_row(book, monkeypatch):
    table = orders(book)
    monkeypatch.setattr(EmbeddedEngine, "parts", lambda *_: pytest.fail("a row was read"))
    question = table.group_by("item", keys=ITEMS).count()
    report = question.plan(epsilon=1)
    assert [each.plan.spend.epsilon for each in report.wanted] == [LEARNS]
    assert str(report.loss) == "ε = 1"
    assert "learned" in str(report)
    assert charges(table) == []


def test_a_plan_with_bounds_by_hand_is_told_whole_and_learns_nothing(book):
    table = orders(book, rows_per_unit=2, groups_per_unit=3)
    report = table.group_by("item", keys=ITEMS).count().plan(epsilon=1)
    assert "Expected error" in str(report)
    assert report.wanted == ()
    by_item(table)
    assert [epsilon for epsilon, _ in charges(table)] == [1]


def test_who_declares_that_nobody_is_beyond_the_bounds_learns_nothing(book):
    table = orders(book, rows_per_unit=4, groups_per_unit=4, most_rows_per_unit=4)
    by_item(table)
    assert charges(table) == [(1, None)]


def test_once_it_is_known_a_plan_is_the_whole_plan(book):
    table = orders(book)
    by_item(table)
    report = table.group_by("item", keys=ITEMS).count().plan(epsilon=1)
    assert report.wanted == ()
    assert report.plan.spend.epsilon == 1


def test_an_error_is_not_solved_for_before_it_can_be_known(book):
    table = orders(book)
    question = table.group_by("item", keys=ITEMS).count()
    with pytest.raises(QueryRefused, match="not known before it is learned"):
        question.answer(error=50)
    assert charges(table) == []


# ---- learning ahead of time ----------------------------------------------------------------------------------------


def test_facts_can_be_learned_ahead_and_questions_then_pay_for_themselves_alone(book):
    table = orders(book)
    learned = table.learn(epsilon="0.2", by=["item"], keys=ITEMS)
    assert spent(table) == Fraction(1, 5)
    assert "how many rows a who has" in str(learned)
    by_item(table)
    assert charges(table)[-1] == (1, None)
    assert len(table.learn(epsilon="0.2", by=["item"], keys=ITEMS)) == 0
    assert spent(table) == Fraction(6, 5)


def test_what_is_known_prints_with_its_price_and_date(book):
    table = orders(book)
    assert "Nothing is known yet" in str(table.facts)
    by_item(table)
    (known,) = table.facts
    assert known.epsilon == LEARNS
    assert known.version == 1
    assert "0.2" in str(table.facts)
    assert known.since[:10] in str(table.facts)
    assert spent(table) == 1


def test_learning_ahead_is_refused_before_the_charge_where_there_is_no_room(book):
    table = orders(book, budget=tacit.epsilon("0.1"))
    with pytest.raises(BudgetExceeded):
        table.learn(epsilon="0.2", by=["item"], keys=ITEMS)
    assert charges(table) == []


# ---- whose facts ----------------------------------------------------------------------------------------------------


def test_a_new_version_and_a_new_declaration_start_from_the_old_facts(book):
    by_item(orders(book))
    newer = orders(book, version=2, columns={"x": {"between": (0, 1000)}}, population=1000)
    assert [known.version for known in newer.facts] == [1]
    by_item(newer)
    assert charges(newer)[-1] == (1, None)


def test_a_unit_of_another_type_has_other_facts(book):
    by_item(orders(book))
    text = orders(book, rows=ROWS.assign(who=ROWS.who.astype(str)), version=2)
    by_item(text)
    assert [epsilon for epsilon, words in charges(text) if words] == [LEARNS] * 2


def test_another_table_has_other_facts(book):
    by_item(orders(book))
    other = orders(book, name="returns", same_people_as="orders")
    by_item(other)
    assert len([words for _, words in charges(other) if words]) == 2


def test_a_frame_without_a_version_knows_only_what_was_learned_of_itself(book):
    first = tacit.table(ROWS, unit="who", name="orders", budget=BUDGET, ledger=book)
    by_item(first)
    second = tacit.table(ROWS, unit="who", name="orders", budget=BUDGET, ledger=book)
    assert len(first.facts) == 1
    assert len(second.facts) == 0
    by_item(second)
    assert len([words for _, words in charges(first) if words]) == 2


# ---- failures -------------------------------------------------------------------------------------------------------


def failing(error, *, after):
    """Return `Session.release` that fails once it has been called so many times."""
    calls, release = [], Session.release

    def run(self, plan):
        calls.append(plan)
        if len(calls) > after:
            raise error
        return release(self, plan)

    return run


@pytest.mark.parametrize(("after", "entries"), [(0, 1), (1, 2)])
def test_a_failure_after_a_charge_says_the_fixed_words(book, monkeypatch, after, entries):
    table = orders(book)
    with monkeypatch.context() as patch:
        patch.setattr(Session, "release", failing(ValueError("row 17"), after=after))
        with pytest.raises(EngineError) as failed:
            by_item(table)
    assert str(failed.value) == FAILED
    assert len(charges(table)) == entries


def test_an_interrupt_after_a_charge_says_what_is_spent(book, monkeypatch):
    table = orders(book)
    monkeypatch.setattr(Session, "release", failing(KeyboardInterrupt(), after=0))
    with pytest.raises(KeyboardInterrupt, match=r"ε = 0\.2 is spent \(entry \d+\)"):
        by_item(table)


def test_an_interrupt_between_learning_and_the_answer_says_that_it_is_kept(book, monkeypatch):
    table = orders(book)

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Request, "charged", stop)
        with pytest.raises(KeyboardInterrupt, match=r"spent ε = 0\.2 on facts that it learned first"):
            by_item(table)
    by_item(table)
    assert [epsilon for epsilon, _ in charges(table)] == [LEARNS, 1]


def test_a_request_that_failed_after_learning_pays_the_rest_of_its_epsilon_alone(book, monkeypatch):
    table = orders(book)

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Request, "charged", stop)
        with pytest.raises(KeyboardInterrupt):
            by_item(table, request_id="r1")
    by_item(table, request_id="r1")
    assert [epsilon for epsilon, _ in charges(table)] == [LEARNS, 1 - LEARNS]
    by_item(table, request_id="r1")
    assert spent(table) == 1


def test_a_request_whose_fact_was_charged_and_not_stored_is_dead(book, monkeypatch):
    table = orders(book)
    with monkeypatch.context() as patch:
        patch.setattr(Session, "release", failing(ValueError("x"), after=0))
        with pytest.raises(EngineError):
            by_item(table, request_id="r1")
    with pytest.raises(DeadRequest):
        by_item(table, request_id="r1")
    by_item(table, request_id="r2")


def test_a_request_id_of_another_question_is_refused_before_anything_is_learned(book):
    table = orders(book)
    by_item(table, request_id="r1")
    with pytest.raises(InvalidParameter, match="another question"):
        table.where("x < 3000").group_by("item", keys=ITEMS).count().answer(epsilon=1, request_id="r1")
    assert len(charges(table)) == 2


# ---- privacy --------------------------------------------------------------------------------------------------------

ABSURD = {
    "nobody": {},
    "everybody is a giant": {BINS - 1: 10**9},
    "everybody is nothing": {0: 10**9},
    "below nobody": dict.fromkeys(range(BINS), -(10**12)),
    "everywhere": dict.fromkeys(range(BINS), 10**15),
}


@pytest.mark.parametrize("absurd", ABSURD)
def test_absurd_facts_change_no_loss(book, absurd, monkeypatch):
    """A cap is whatever the facts say; the noise is made for it, and the charge is the same to the last digit."""
    table = orders(book)
    question = table.group_by("item", keys=ITEMS).count()
    recall = Session.recall_fact

    def lie(self, key, analyst):
        found = recall(self, key, analyst)
        if found is None:
            return None
        bins = tuple(ABSURD[absurd].get(place, 0) for place in range(BINS))
        return replace(found, parts=(bins,) * len(found.parts))

    by_item(table)
    honest = question.plan(epsilon=1, noise="laplace")
    monkeypatch.setattr(Session, "recall_fact", lie)
    lied = question.plan(epsilon=1, noise="laplace")
    assert epsilon_of(honest) == epsilon_of(lied) == 1
    before = spent(table)
    by_item(table, epsilon="0.5", noise="laplace", accept_noise=True)
    assert spent(table) - before == Fraction(1, 2)


def epsilon_of(report):
    """What the events of a plan and of all that it would learn cost, from their noise alone."""
    events = [*report.plan.events, *(event for each in report.wanted for event in each.plan.events)]
    return sum(event.sensitivity / event.scale for event in events)


def test_few_people_behind_a_filter_are_taken_to_be_as_large_as_all(book, monkeypatch):
    """Of the rows that are asked about nothing is seen: the cap is then that of the whole table, not one row."""
    table = orders(book)
    release = Session.release

    def nobody(self, plan):
        noisy = release(self, plan)
        hidden = plan.profiles and plan.where is not None
        return replace(noisy, parts=(((0,) * BINS,),) * len(noisy.parts)) if hidden else noisy

    monkeypatch.setattr(Session, "release", nobody)
    question = table.where("x >= 0").count()
    answer = question.answer(epsilon=1)
    assert sum(epsilon for epsilon, _ in charges(table)) == 1
    words = [words for _, words in charges(table) if words]
    assert any("asked about" in each for each in words)
    assert any("asked about" not in each for each in words)
    assert "too few people to learn bounds" not in str(answer)
    assert "free for later questions: how many rows a who has" in answer.details()
    said = "The bounds of all rows were used"
    assert said in str(answer)
    assert said in str(question.plan(epsilon=1))
    assert question.answer(epsilon=1).to_dicts() == answer.to_dicts(), "a stored answer finds its facts again"
    assert spent(table) == 1
    small = table.where("x >= 0").agg(m=tacit.mean("x"))
    small.answer(epsilon=1)
    told = [words for _, words in charges(table)[len(words) + 1 :] if words]
    assert all("asked about" in each or "how many" not in each for each in told), "a mean does with low caps"
    assert said not in str(table.count().answer(epsilon=1))


def test_what_is_learned_of_rows_by_unit_is_among_the_facts_of_the_table(book):
    table = orders(book)
    table.sql("SELECT AVG(n) AS n FROM (SELECT who, COUNT(*) AS n FROM orders GROUP BY who)").answer(epsilon=1)
    assert [each.words for each in table.facts][0] == "how large COUNT(*) is (of rows by who)"
    assert "how large COUNT(*) is (of rows by who)" in str(table.facts)


def test_another_frame_of_that_name_does_not_show_them(book):
    first, second = (tacit.table(ROWS, unit="who", name="orders", budget=BUDGET, ledger=book) for _ in range(2))
    first.per_unit(n=tacit.count()).mean("n").answer(epsilon=1)
    assert len(first.facts) > 0
    assert len(second.facts) == 0


def test_counts_of_one_unit_are_not_taken_to_be_negative(book):
    answer = (
        orders(book)
        .sql("SELECT AVG(n) AS n FROM (SELECT who, COUNT(DISTINCT x) AS n FROM orders GROUP BY who)")
        .answer(epsilon=1)
    )
    (line,) = (note for note in answer.facts.notes if "outside the learned range" in note)
    low = line.partition("outside the learned range ")[2].split(" to ")[0]
    assert float(low.replace(",", "")) >= 0


def test_a_join_with_a_public_table_knows_how_many_rows_people_have(book):
    """What the table's own question learned limits what is believed of the joined rows, which are no more."""
    table = orders(book, budget=tacit.epsilon(1000, delta=1e-6))
    table.count().answer(epsilon=200)  # the noise on each bin of this profile is 0, but with probability 1e-18
    kinds = tacit.public(pd.DataFrame({"item": ITEMS, "kind": ["k", "k", "l"]}), name="kinds")
    answer = table.join(kinds, on="item").where("x < 40").group_by("kind").count().answer(epsilon="0.5")
    (rows,) = answer.facts.bounds["scaled"]
    assert rows["most"] <= 4, "everybody has 4 rows"
