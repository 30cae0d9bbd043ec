"""Two who learn or ask the same at once pay at most what each agreed to, and go on from the same fact."""

import subprocess
import sys
from fractions import Fraction

import pytest

from tacit.ledger import open_ledger
from tacit.session import Session
from tests.door.orders import by_item, charges, orders, spent


@pytest.fixture
def book():
    with open_ledger(":memory:") as opened:
        yield opened


def test_two_who_learn_the_same_at_once_get_one_answer_and_pay_no_more_than_they_agreed_to(book, monkeypatch):
    """Between the first one's charge for a fact and its answer, the second asks and is answered."""
    first, second = orders(book), orders(book)
    release, seen = Session.release, []

    def interleaved(self, plan):
        if not seen:
            seen.append("the second")
            seen.append(by_item(second))
        return release(self, plan)

    monkeypatch.setattr(Session, "release", interleaved)
    answer = by_item(first)
    assert answer.to_dicts() == seen[1].to_dicts()
    assert [epsilon for epsilon, _ in charges(first)] == [Fraction(1, 10), Fraction(1, 10), Fraction(9, 10)]
    assert len(first.facts) == 1


def test_one_who_asks_another_thing_meanwhile_goes_on_from_the_fact_that_was_stored_first(book, monkeypatch):
    first, second = orders(book), orders(book)
    release, seen = Session.release, []

    def interleaved(self, plan):
        if not seen:
            seen.append("the second")
            by_item(second, epsilon="0.5")
        return release(self, plan)

    monkeypatch.setattr(Session, "release", interleaved)
    by_item(first)
    (known,) = first.facts
    assert known.epsilon == Fraction(1, 20)
    before = spent(first)
    by_item(first)
    by_item(second, epsilon="0.5")
    assert spent(first) == before == Fraction(1, 10) + Fraction(9, 10) + Fraction(1, 2)


ASKED = """
import sys
import pandas as pd
import tacit
items = ["a", "b", "c"]
rows = pd.DataFrame({"who": [n % 1500 for n in range(6000)], "item": [items[n % 7 % 3] for n in range(6000)]})
rows["x"] = range(6000)
budget = tacit.epsilon(10, delta=1e-6)
table = tacit.table(rows, unit="who", name="orders", version=1, ledger=sys.argv[1], budget=budget)
print("ready", flush=True)
sys.stdin.readline()
print(table.group_by("item", keys=items).count().answer(epsilon=1).to_dicts(), flush=True)
"""


def test_two_processes_that_ask_the_same_at_once_pay_at_most_what_each_agreed_to(tmp_path):
    """Whatever their order: one fact is kept, and the answer that was stored first is free from then on."""
    path = tmp_path / "ledger.db"
    with open_ledger(path) as made:
        orders(made)
    words = [sys.executable, "-c", ASKED, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    running = [subprocess.Popen(words, **pipes) for _ in range(2)]
    for each in running:
        assert each.stdout.readline() == "ready\n"
    for each in running:
        each.stdin.write("go\n")
        each.stdin.flush()
    said = [each.communicate()[0] for each in running]
    with open_ledger(path) as after:
        table = orders(after)
        before = spent(table)
        assert 1 <= before <= 2
        assert len(table.facts) == 1
        assert f"{by_item(table).to_dicts()}\n" in said
        assert spent(table) == before
        after.verify()
