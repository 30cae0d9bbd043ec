"""One fact, one charge, and a call is paid for as a whole or not at all: threads, processes, and kills in between.

Every outcome here is the same for each order in which the processes come: nothing hangs on time.
"""

import json
import subprocess
import sys
import threading
from fractions import Fraction

import pytest

import tacit
from tacit.asking.request import Request
from tacit.errors import BudgetExceeded
from tacit.ledger import open_ledger
from tacit_gauntlet.stage.postgres_server import fresh_schema
from tacit_gauntlet.stage.racing import run_together
from tests.door.orders import by_item, charges, orders, spent

EPSILON, BUDGET = Fraction(4, 10), Fraction(1)
BEFORE_CHARGE = "before the answer's charge"


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    return fresh_schema(request.getfixturevalue("postgres"))


def race(where, count, *, same=False, stop=None, kill=False, wait=False, budget=BUDGET):
    """Return how each of `count` processes ended, the ledger's charges, and what is spent."""
    with open_ledger(where) as made:
        orders(made, budget=tacit.epsilon(budget))
    spec = {"where": where, "count": count, "same": same, "stop": stop, "kill": kill, "wait": wait}
    spec |= {"budget": str(budget), "epsilon": str(EPSILON)}
    words = [sys.executable, "-m", "tests.door.racers", json.dumps(spec)]
    ends = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    with open_ledger(where) as ledger:
        table = orders(ledger, budget=None)
        ledger.verify()
        return ends, charges(table), spent(table)


def answered(ends):
    return [each["answer"] for each in ends if "answer" in each]


def learned(made):
    """How often each fact was charged, by its words: the sizes that all questions need, and facts of their own."""
    words = [about for _, about in made if about is not None]
    return words.count("how many rows a who has, in all and by item"), len(words)


def assert_refused_for_nothing(ends):
    assert all("no charge was made and no row was read" in each["refused"] for each in ends if "refused" in each)


def test_eight_questions_that_share_a_fact_pay_for_it_once_and_two_fit(where):
    """Budget 1, eight times 0.4: whoever is refused has paid for nothing, and 0.8 is spent exactly."""
    ends, made, total = race(where, 8)
    assert (len(answered(ends)), total) == (2, 2 * EPSILON)
    assert learned(made) == (1, 3)
    assert_refused_for_nothing(ends)


def test_eight_who_ask_the_same_pay_once_and_are_given_the_same_numbers(where):
    """The budget is that of one question."""
    ends, made, total = race(where, 8, same=True, budget=EPSILON)
    assert len(answered(ends)) == 8
    assert all(each == answered(ends)[0] for each in answered(ends))
    assert (total, learned(made), len(made)) == (EPSILON, (1, 2), 3)


def test_all_wait_for_a_fact_that_one_is_learning(where):
    ends, made, total = race(where, 4, stop=1, wait=True)
    assert "answer" in ends[0]
    assert (len(answered(ends)), total) == (2, 2 * EPSILON)
    assert learned(made) == (1, 3)
    assert_refused_for_nothing(ends)


def test_a_fact_whose_asker_is_killed_is_learned_by_another_for_the_same_charge(where):
    ends, made, total = race(where, 4, stop=1, wait=True, kill=True)
    sizes = next(cost for cost, _ in made)
    assert (len(answered(ends)), total) == (2, sizes + 2 * EPSILON)
    assert learned(made) == (1, 3)
    with open_ledger(where) as ledger:
        assert [entry.record["charge"] for entry in ledger.entries() if entry.kind == "attempt"] == [4]


@pytest.mark.parametrize("stop", [pytest.param(2, marks=pytest.mark.slow), BEFORE_CHARGE])
def test_room_of_a_call_is_kept_while_it_lives(where, stop):
    """The first has learned a part; of the others one fits beside it, and the first is answered in the end."""
    ends, made, total = race(where, 4, stop=stop)
    assert "answer" in ends[0]
    assert (len(answered(ends)), total) == (2, 2 * EPSILON)
    assert learned(made) == (1, 3)
    assert_refused_for_nothing(ends)


@pytest.mark.parametrize("stop", [2, pytest.param(BEFORE_CHARGE, marks=pytest.mark.slow), 3])
def test_room_of_a_call_that_is_killed_is_free_again(where, stop):
    """It has spent what it had charged by then, and the rest is for the next one."""
    ends, made, total = race(where, 3, stop=stop, kill=True)
    assert len(answered(ends)) == 1
    mine = EPSILON if stop == 3 else sum(cost for cost, about in made if about is not None) - made_by_the_other(made)
    assert total == mine + EPSILON
    with open_ledger(where) as ledger:
        table, looks = orders(ledger, budget=None), threading.Event()
        while table.left.laplace != BUDGET - total:  # PostgreSQL's server sees a moment later that its client is gone
            looks.wait(0.01)


def made_by_the_other(made):
    """What the one who was answered had paid for its own fact: its answer has the rest of its epsilon."""
    (answer,) = [cost for cost, about in made if about is None]
    return EPSILON - answer


@pytest.mark.parametrize("stop", [1, *(pytest.param(each, marks=pytest.mark.slow) for each in (2, BEFORE_CHARGE))])
def test_all_who_ask_the_same_go_on_when_the_first_is_killed(where, stop):
    ends, made, total = race(where, 4, same=True, stop=stop, kill=True, wait=True)
    assert len(answered(ends)) == 3
    assert all(each == answered(ends)[0] for each in answered(ends))
    assert learned(made) == (1, 2)
    assert EPSILON < total < 2 * EPSILON


@pytest.mark.slow
@pytest.mark.parametrize("stop", [None, 1, 2, BEFORE_CHARGE, 3])
def test_thirty_two_processes_and_a_kill_at_each_point(where, stop):
    """Whatever the first had charged when it died, two more fit if that is less than 0.2, and one if it is 0.4."""
    ends, made, total = race(where, 32, stop=stop, kill=stop is not None, wait=stop == 1)
    assert len(answered(ends)) == (2 if stop in (None, 1) else 1)
    assert learned(made)[0] == 1
    assert total <= BUDGET
    assert_refused_for_nothing(ends)


@pytest.mark.slow
@pytest.mark.parametrize("stop", [None, 1, 2, BEFORE_CHARGE, 3])
def test_thirty_two_processes_that_ask_the_same_and_a_kill_at_each_point(where, stop):
    ends, made, total = race(where, 32, same=True, stop=stop, kill=stop is not None, wait=stop is not None)
    assert len(answered(ends)) == (32 if stop is None else 31)
    assert all(each == answered(ends)[0] for each in answered(ends))
    assert learned(made) == (1, 2)
    assert total == (EPSILON if stop is None else 2 * EPSILON if stop == 3 else total)


# ---- threads of one process ------------------------------------------------------------------------------------------


def test_eight_threads_pay_for_a_fact_once_and_two_fit():
    """Each by an epsilon of its own: two fit in any order, and the total is what they asked for."""
    with open_ledger(":memory:") as ledger:
        tables = [orders(ledger, budget=tacit.epsilon(BUDGET)) for _ in range(8)]
        gate, won, refusals = threading.Barrier(8), [], []

        def one(number):
            epsilon = EPSILON + Fraction(number, 1000)
            gate.wait()
            try:
                by_item(tables[number], epsilon=epsilon)
                won.append(epsilon)
            except BudgetExceeded as refused:
                refusals.append(str(refused))

        run_together([lambda number=number: one(number) for number in range(8)])
        assert (len(won), spent(tables[0])) == (2, sum(won))
        assert len(tables[0].facts) == 1
        assert all("no charge was made and no row was read" in each for each in refusals)
        ledger.verify()


def test_a_refusal_after_learning_says_what_was_spent(monkeypatch):
    """As when the lock of a call is lost with its connection, and somebody else takes the room."""
    with open_ledger(":memory:") as ledger:
        first, second = orders(ledger, budget=tacit.epsilon(BUDGET)), orders(ledger, budget=None)
        charged = Request.charged

        def meanwhile(self, *given):
            monkeypatch.setattr(Request, "charged", charged)
            monkeypatch.setattr(type(ledger._store.locks), "is_free", lambda *_: True)
            other = threading.Thread(target=lambda: by_item(second, epsilon="0.85"))
            other.start()
            other.join()
            return charged(self, *given)

        monkeypatch.setattr(Request, "charged", meanwhile)
        with pytest.raises(BudgetExceeded) as refused:
            by_item(first, epsilon="0.5")
        problem, _, hint = str(refused.value).partition("\n")
        assert problem.endswith(
            "; this request spent ε = 0.1 on facts that it learned first; later questions use them free"
        )
        assert "no charge was made" not in problem
        assert hint.startswith("hint: ")
        assert spent(first) == Fraction(95, 100)
