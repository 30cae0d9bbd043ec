"""Bad cases through the public doors: hardly any people, very heavy ones, tiny and huge epsilon, planted facts.

Each question ends in an answer or a refusal in words, spends no more than was asked, and says nothing of the rows that
its noisy numbers do not say. No test here rests on luck: outcomes are compared under the same noisy numbers.
"""

import random
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.asking.session import Session
from tacit.errors import BudgetExceeded, QueryRefused
from tacit.ledger import open_ledger
from tacit.plan import make_spend
from tacit.plan.groups import UNIT_SHIFT
from tacit.release import NoisyTable
from tacit_gauntlet.stage.facts import noise_faults, noisy_numbers_kept

BUDGETS = {
    "approximate": tacit.epsilon(1000, delta=1e-6),
    "pure": tacit.epsilon(1000),
    "rho": tacit.rho(50, delta=1e-6),
}


def table_of(people):
    """Return rows of people, each given by the groups of their rows; values are 0 to 6."""
    cells = [(person, group) for person, groups in enumerate(people) for group in groups]
    ids, groups = ([cell[place] for cell in cells] for place in (0, 1))
    values = [float(n % 7) for n in range(len(cells))]
    return pa.table({"id": pa.array(ids, pa.int64()), "g": pa.array(groups, pa.string()), "x": values or NO_VALUES})


NO_VALUES = pa.array([], pa.float64())
GROUPS = [f"g{n}" for n in range(20)]
TABLES = {
    "no rows": table_of([]),
    "one person": table_of([["g0"]]),
    "all rows one person's": table_of([GROUPS * 100]),
    "30 people": table_of([[GROUPS[n % 3]] * 3 for n in range(30)]),
    "heavy people in one group": table_of([["dialysis"] * 400] * 60 + [[GROUPS[n % 3]] for n in range(2000)]),
    "everyone in every group": table_of([GROUPS] * 400),
    "nobody's rows": pa.table({"id": pa.array([None] * 50, pa.int64()), "g": ["g0"] * 50, "x": [1.0] * 50}),
    "no group is known": pa.table({"id": range(300), "g": pa.array([None] * 300, pa.string()), "x": [1.0] * 300}),
    "odd values": pa.table(
        {"id": range(500), "g": ["g0"] * 500, "x": [None, float("nan"), float("inf"), -1e300, 2] * 100}
    ),
}
QUESTIONS = {
    "found": lambda table: table.group_by("g").count(),
    "small ones": lambda table: table.group_by("g", smallest=20).agg(n=tacit.count(), m=tacit.mean("x")),
    "listed": lambda table: table.group_by("g", keys=["g0", "nowhere"]).agg(n=tacit.count(), s=tacit.sum("x")),
    "spread": lambda table: table.group_by("g", keys=["g0"]).variance("x"),
    "median": lambda table: table.group_by("g").median("x"),
    "whole": lambda table: table.where("x > 2").agg(n=tacit.count(), people=tacit.count_units()),
}


def opened(rows, book, budget="approximate", **declared):
    return tacit.table(rows, name="t", unit="id", budget=BUDGETS[budget], ledger=book, version=1, **declared)


def said(question, epsilon):
    """Return all that an answer or a refusal says."""
    try:
        answer = question.answer(epsilon=epsilon, accept_noise=True)
    except QueryRefused as refusal:
        return str(refusal)
    data = re.sub(r'"receipt": \{[^}]*\}', "", answer.to_json())
    text = "\n".join([str(answer), str(answer.details()), data, str(question.plan(epsilon=epsilon))])
    return re.sub(r"\d{4}-\d\d-\d\d[T0-9:.Z ]*|[0-9a-f]{16,}|Engine: [^.<]*", "@", text)


def pairs():
    """Return each question with each table, at one epsilon, budget and notion of neighbours after the other."""
    terms = [(e, b, n) for b in BUDGETS for n in ("add-remove", "replace") for e in ("0.01", "1", "30")]
    places = ((name, ask) for name in TABLES for ask in QUESTIONS)
    return [(name, ask, *terms[(7 * at) % len(terms)]) for at, (name, ask) in enumerate(places)]


@pytest.mark.parametrize(("name", "ask", "epsilon", "budget", "neighbours"), pairs())
def test_a_question_ends_in_an_answer_or_in_words_and_spends_no_more_than_was_asked(
    name, ask, epsilon, budget, neighbours
):
    with open_ledger(":memory:") as book:
        table = opened(TABLES[name], book, budget, neighbours=neighbours)
        words = said(QUESTIONS[ask](table), epsilon)
        assert "hint: " in words or "Spent ε" in words
        spent = book.spent(table.session.registered)
        if budget != "rho":
            spend = make_spend(epsilon, None, None, BUDGETS[budget])
            assert (spent.epsilon or 0) <= Fraction(epsilon)
            assert (spent.delta or 0) <= spend.delta_keys
        assert not (budget == "pure" and ask in ("found", "small ones", "median") and spent.epsilon)


@pytest.mark.parametrize("epsilon", ["0.01", "1", "30"])
@pytest.mark.parametrize("ask", QUESTIONS)
def test_the_same_noisy_numbers_have_the_same_words_whoever_is_there(ask, epsilon):
    """The noisy numbers are those of one table, told of every other; also where the question is refused."""
    kept, words = [], {}
    for again, name in enumerate(("30 people", "no rows", "one person", "all rows one person's")):
        with noisy_numbers_kept(kept, again=again > 0), open_ledger(":memory:") as book:
            words[name] = said(QUESTIONS[ask](opened(TABLES[name], book)), epsilon)
    assert len(set(words.values())) == 1


def test_a_ledger_on_disk_and_a_tryout_end_alike_and_a_second_process_starts_with_the_groups(tmp_path):
    """Of 3,000 people in three groups, at 100: a group is missed with probability below 1e-100."""
    rows = table_of([[GROUPS[n % 3]] for n in range(3000)])
    with open_ledger(tmp_path / "ledger.db") as book:
        first = opened(rows, book).group_by("g").count().answer(epsilon=100, accept_noise=True)
    with open_ledger(tmp_path / "ledger.db") as book:
        table = opened(rows, book)
        before = book.spent(table.session.registered)
        second = table.group_by("g").sum("x").answer(epsilon=10, accept_noise=True)
        after = book.spent(table.session.registered)
    tried = opened(rows, tacit.TRYOUT).group_by("g").count().answer(epsilon=100, accept_noise=True)
    assert [row["g"] for row in first.to_dicts()] == [row["g"] for row in second.to_dicts()] == GROUPS[:3]
    assert [row["g"] for row in tried.to_dicts()] == GROUPS[:3]
    assert (after.epsilon - before.epsilon, after.delta) == (10, before.delta)


def test_a_budget_that_has_room_for_one_question_is_not_exceeded_by_what_that_learns():
    for name in ("no rows", "30 people"):
        with open_ledger(":memory:") as book:
            table = tacit.table(TABLES[name], name="t", unit="id", budget=tacit.epsilon(1, delta=1e-6), ledger=book)
            for _ in range(3):
                try:
                    QUESTIONS["found"](table).answer(epsilon=1, accept_noise=True)
                except (QueryRefused, BudgetExceeded):
                    continue
            spent = book.spent(table.session.registered)
            assert spent.epsilon <= 1
            assert spent.delta <= Fraction(1, 10**6)


OUTPUTS = {
    "n": tacit.count(),
    "m": tacit.mean("x"),
    "s": tacit.sum("x"),
    "v": tacit.variance("x"),
    "u": tacit.count_units(),
}


def released_as(draw):
    """Return a release whose facts say what `draw` makes of them: nobody, giants, people everywhere, any groups."""
    release = Session.release

    def releasing(self, plan):
        noisy = release(self, plan)
        if plan.threshold is not None and not plan.outputs:
            found = [f"g{n}" for n in range(draw.choice([0, 0, 1, 2, 5, 30]))]
            votes = tuple(draw.choice([5, 100, 1000, 10**6]) << UNIT_SHIFT for _ in found)
            return NoisyTable(tuple((group,) for group in found), ((votes,),))
        if plan.profiles:
            size = len(plan.public_keys)
            bins = draw.choice([(0,) * size, (0,) * (size - 1) + (10**6,), (10**4,) * size, (0, 0, 40) * size])
            return NoisyTable(noisy.keys, ((bins[:size],),) * len(plan.releases))
        return noisy

    return releasing


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 10))])
def test_whatever_facts_say_no_question_spends_beyond_its_loss_or_ends_for_want_of_room_that_it_took(monkeypatch, seed):
    draw = random.Random(seed)
    monkeypatch.setattr(Session, "release", released_as(draw))
    epsilon, asked = draw.choice(["0.3", "1", "2.4", "30"]), draw.sample(list(OUTPUTS), draw.randint(1, 3))
    budget = draw.choice([BUDGETS["approximate"], tacit.epsilon(epsilon, delta=1e-6)])
    with open_ledger(":memory:") as book:
        rows = TABLES[draw.choice(["no rows", "30 people", "everyone in every group"])]
        neighbours = draw.choice(["add-remove", "replace"])
        table = tacit.table(rows, name="t", unit="id", budget=budget, ledger=book, version=1, neighbours=neighbours)
        smallest, spend = draw.choice([None, 2, 20, 79]), make_spend(epsilon, None, None, budget)
        before = book.spent(table.session.registered)
        for rows_of in (table, table.where("x > 2")):
            question = rows_of.group_by("g", smallest=smallest).agg(**{name: OUTPUTS[name] for name in asked})
            refused = ""
            try:
                question.answer(epsilon=epsilon, accept_noise=True)
            except (QueryRefused, BudgetExceeded) as refusal:
                refused = type(refusal).__name__
            after = book.spent(table.session.registered)
            cost = (after.epsilon or 0) - (before.epsilon or 0)
            assert cost <= Fraction(epsilon)
            assert (after.delta or 0) - (before.delta or 0) <= spend.delta_keys
            assert cost == 0 or refused != "BudgetExceeded"
            before = after


# ---- Facts that somebody planted.

PLANTED = {
    "no group at all": (),
    "groups that are not there": tuple((f"no {n}",) for n in range(300)),
    "one group": (("g0",),),
    "people without a group": ((None,),),
    "odd texts": (("",), ("\x00",), ("=1+1",), ("a" * 5000,)),
}
VOTES = {"nobody": 0, "fewer than nobody": -(10**30), "everybody": 10**30}


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("groups", PLANTED)
def test_planted_groups_change_no_sensitivity_and_no_charge(monkeypatch, groups, neighbours):
    """The noise is for what one person moves, and the question costs exactly its epsilon, whatever was planted."""
    recall = Session.recall_fact
    with open_ledger(":memory:") as book:
        table = opened(table_of([[GROUPS[n % 3]] for n in range(600)]), book, neighbours=neighbours)
        question = table.group_by("g").agg(n=tacit.count(), m=tacit.mean("x"))
        question.answer(epsilon=100, accept_noise=True)
        for votes in VOTES.values():

            def lie(self, key, analyst, votes=votes):
                found = recall(self, key, analyst)
                if found is None or not found.finds_groups:
                    return found
                keys = PLANTED[groups]
                return replace(found, keys=keys, parts=((votes,) * len(keys), (votes,)), scales=(Fraction(1, 10**6),))

            monkeypatch.setattr(Session, "recall_fact", lie)
            before = book.spent(table.session.registered)
            if not PLANTED[groups]:
                with pytest.raises(QueryRefused, match="no group by 'g'"):
                    question.answer(epsilon=2, accept_noise=True)
                continue
            plan, answer = question.plan(epsilon=2).plan, question.answer(epsilon=2, accept_noise=True)
            assert not noise_faults(plan, make_spend(2, None, None, BUDGETS["approximate"]))
            assert {row["g"] for row in answer.to_dicts()} == {key for (key,) in PLANTED[groups]}
            after = book.spent(table.session.registered)
            assert after.epsilon - before.epsilon in (0, 2)  # 0: the same question with the same facts


@pytest.mark.parametrize("groups", [5000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_very_many_groups_are_found_once_and_free_afterwards(groups):
    """Of 9 people each, where groups of 5 are looked for: one is missed with probability below 1e-9."""
    people = np.arange(9 * groups)
    rows = pa.table({"id": people, "g": people // 9})
    with open_ledger(":memory:") as book:
        table = opened(rows, book, "approximate")
        first = table.group_by("g", smallest=5).count().answer(epsilon=30)
        known = len(first.to_dicts())
        assert known > 0.9 * groups
        rounds = [fact.entry for fact in table.facts if fact.fact.finds_groups]
        second = table.where("g >= 1000").group_by("g").count_units().answer(epsilon=10)
        assert len(second.to_dicts()) == known
        assert second.facts.loss == {**second.facts.loss, "epsilon": 10, "delta": 0}
        assert [fact.entry for fact in table.facts if fact.fact.finds_groups] == rounds
