"""A question on a server: on the clock, charged once under its key, the same bytes ever after, whoever waits for it."""

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tacit.asking.session import Session
from tacit.errors import EngineError, LedgerError
from tacit.ledger import Ledger, Person
from tacit.options import read_wording
from tacit.server import make_app
from tacit.server.problems import Problem
from tacit.server.turns import Turns
from tests.server.conftest import Book, House

COUNT = {"sql": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", "epsilon": "1"}
MEAN = {"sql": "SELECT AVG(days) AS d FROM visits", "epsilon": "1"}
LEFT = "/api/v1/tables/visits/budget"


def held(house: House) -> list[float]:
    """How long each outcome was held back, those that were not left out."""
    return [each for each in house.clock.slept if each]


def charges(house: House) -> int:
    return sum(entry.kind == "charge" for entry in house.desk.ledger.entries())


def kinds(house: House) -> list[str]:
    return [entry.kind for entry in house.desk.ledger.entries()]


# --- the clock ---


def test_a_fresh_answer_and_a_stored_one_leave_at_the_same_tick(house: House) -> None:
    fresh, stored = house.ask(COUNT), house.ask(COUNT)
    assert (fresh.status_code, stored.status_code) == (200, 200)
    assert stored.json()["facts"]["free"]
    assert house.clock.waited == [1.0]
    assert held(house) == [1.0, 2.0]


def test_a_failure_after_the_charge_leaves_at_the_tick_of_an_answer(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Session, "release", lambda self, plan: 1 / 0)
    reply = house.ask(COUNT)
    assert (reply.status_code, reply.json()["type"]) == (500, "urn:tacit:failed-after-charge")
    assert reply.json()["error"] == EngineError.__name__
    assert house.clock.waited + held(house) == [1.0, 1.0]


def test_a_slow_answer_waits_for_the_next_tick(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = Session.release

    def slow(self: Session, plan: Any) -> Any:
        house.clock.time += 5
        return quick(self, plan)

    monkeypatch.setattr(Session, "release", slow)
    house.ask(COUNT)
    assert house.clock.waited + held(house) == [1.0, 2.0]  # written at 6, given at 8


@pytest.mark.parametrize("asked", [{**COUNT, "epsilon": "21"}, {"sql": "SELECT 1", "epsilon": "1"}, {"sql": "x"}])
def test_what_is_refused_before_the_charge_is_told_at_once(house: House, asked: dict[str, Any]) -> None:
    assert house.ask(asked).status_code in (402, 422)
    assert held(house) == []
    assert charges(house) == 0


def test_no_header_tells_how_long_an_answer_took(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    first = house.ask(COUNT, key="a")
    quick = Session.release

    def slow(self: Session, plan: Any) -> Any:
        house.clock.time += 1
        return quick(self, plan)

    monkeypatch.setattr(Session, "release", slow)
    second = house.ask(MEAN, key="b")
    assert set(first.headers) == set(second.headers)


# --- keys ---


def test_one_key_is_charged_once_and_gives_the_same_bytes_on_every_replica(
    open_house: Callable[..., House],
) -> None:
    first, second = open_house(), open_house()
    replies = [house.ask(COUNT, key="report") for house in (first, first, second)]
    assert [reply.status_code for reply in replies] == [200] * 3
    assert len({reply.content for reply in replies}) == 1
    assert not replies[-1].json()["facts"]["free"]
    assert charges(first) == 1


def test_a_key_belongs_to_one_question_and_to_one_person(open_house: Callable[..., House]) -> None:
    house, other = open_house(), open_house()
    house.ask(COUNT, key="report")
    for each in (house, other):
        refused = each.ask(MEAN, key="report")
        assert refused.status_code == 422
    assert charges(house) == 1
    assert house.send("GET", "/api/v1/questions/report", "tacit_ben").status_code == 404
    assert house.send("GET", "/api/v1/questions/report").json()["columns"] == ["ward", "n"]


def test_a_dead_key_says_that_it_was_charged(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(Session, "release", lambda self, plan: 1 / 0)
        house.ask(COUNT, key="report")
    reply = house.ask(COUNT, key="report")
    assert (reply.status_code, reply.json()["error"]) == (409, "DeadRequest")
    assert charges(house) == 1


def test_a_key_that_another_replica_is_answering_gets_its_answer(open_house: Callable[..., House]) -> None:
    first, second = open_house(), open_house()
    release = Session.release
    sleep = second.clock.sleep
    goes_on = threading.Event()

    def slow(self: Session, plan: Any) -> Any:
        assert goes_on.wait(60)
        return release(self, plan)

    async def answered_meanwhile(seconds: float) -> None:
        goes_on.set()
        await asyncio.gather(*(each.task for each in first.desk._asked.values()))
        await sleep(seconds)

    second.desk.sleep = answered_meanwhile

    async def story() -> list[httpx.Response]:
        def client(house: House) -> httpx.AsyncClient:
            transport = httpx.ASGITransport(app=make_app(house.desk))
            headers = {"Authorization": "Bearer tacit_ada", "Idempotency-Key": "report"}
            return httpx.AsyncClient(transport=transport, base_url="http://test", headers=headers)

        async with client(first) as here, client(second) as there:
            path = "/api/v1/tables/visits/questions"
            sent = asyncio.create_task(here.post(path, json=COUNT))
            while not charges(first):  # noqa: ASYNC110 - it is the ledger that is watched
                await asyncio.sleep(0.01)
            return [await there.post(path, json=COUNT), await sent]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Session, "release", slow)
        replies = asyncio.run(story())
    assert [reply.status_code for reply in replies] == [200, 200]
    assert replies[0].content == replies[1].content
    assert charges(first) == 1


@pytest.mark.parametrize("key", ["", "x" * 201, "a\tb"])
def test_a_key_that_is_none_is_refused(house: House, key: str) -> None:
    assert house.ask(COUNT, key=key).status_code == 422


def test_who_goes_away_is_charged_and_finds_the_answer(house: House) -> None:
    async def story() -> tuple[Any, Any]:
        transport = httpx.ASGITransport(app=make_app(house.desk))
        headers = {"Authorization": "Bearer tacit_ada"}
        async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=headers) as client:
            asked = {"Idempotency-Key": "report"}
            sent = asyncio.create_task(client.post("/api/v1/tables/visits/questions", json=COUNT, headers=asked))
            while not house.desk._asked:  # noqa: ASYNC110 - it is the desk that is watched
                await asyncio.sleep(0)
            early = await client.get("/api/v1/questions/report")
            sent.cancel()
            await asyncio.gather(sent, return_exceptions=True)
            await asyncio.gather(*(each.task for each in house.desk._asked.values()))
            return early, await client.get("/api/v1/questions/report")

    early, late = asyncio.run(story())
    assert (early.status_code, early.json()) == (202, {"answer": "not yet"})
    assert (late.status_code, late.json()["columns"]) == (200, ["ward", "n"])
    assert charges(house) == 1


# --- turns ---


def order_of(turns: Turns, asked: list[str]) -> list[str]:
    """The order in which questions of these analysts get their turns, each ending before the next is given."""

    async def story() -> list[str]:
        served: list[str] = []

        async def one(analyst: str) -> None:
            async with turns.turn(analyst):
                served.append(analyst)
                for _ in range(5):
                    await asyncio.sleep(0)

        await asyncio.gather(*(one(analyst) for analyst in asked))
        return served

    return asyncio.run(story())


def test_who_asks_much_delays_another_by_one() -> None:
    served = order_of(Turns(1), ["greedy"] * 50 + ["modest"])
    assert served.index("modest") <= 2
    assert len(served) == 51


def test_nobody_has_more_than_half_of_the_turns() -> None:
    async def story() -> tuple[int, int]:
        turns = Turns(8)
        waiting = [asyncio.create_task(turns._take("greedy")) for _ in range(20)]
        await asyncio.sleep(0)
        taken = sum(each.done() for each in waiting)
        other = [asyncio.create_task(turns._take("modest")) for _ in range(4)]
        await asyncio.sleep(0)
        found = taken, sum(each.done() for each in other)
        for each in (*waiting, *other):
            each.cancel()
        await asyncio.gather(*waiting, *other, return_exceptions=True)
        return found

    assert asyncio.run(story()) == (4, 4)


def test_a_queue_that_is_full_refuses_before_anything_is_charged() -> None:
    async def story() -> Problem:
        turns = Turns(1, waiting_max=3)
        waiting = [asyncio.create_task(turns._take("greedy")) for _ in range(4)]
        await asyncio.sleep(0)
        with pytest.raises(Problem) as refused:
            await turns._take("greedy")
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return refused.value

    problem = asyncio.run(story())
    assert (problem.status, problem.headers) == (429, {"Retry-After": "1"})


def test_one_slow_question_stops_nobody(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slow one waits for the quick one to be answered: with one turn for both, neither would end."""
    quick_is_done = threading.Event()
    release = Session.release

    def slow(self: Session, plan: Any) -> Any:
        if plan.keys:
            assert quick_is_done.wait(60)
        return release(self, plan)

    monkeypatch.setattr(Session, "release", slow)

    async def story() -> list[int]:
        transport = httpx.ASGITransport(app=make_app(house.desk))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:

            async def ask(asked: dict[str, Any], token: str) -> int:
                headers = {"Authorization": f"Bearer {token}"}
                reply = await client.post("/api/v1/tables/visits/questions", json=asked, headers=headers)
                return reply.status_code

            first = asyncio.create_task(ask(COUNT, "tacit_ada"))
            second = await ask(MEAN, "tacit_ben")
            quick_is_done.set()
            return [await first, second]

    assert asyncio.run(story()) == [200, 200]


def test_an_answer_is_found_by_its_key_after_a_restart(open_house: Callable[..., House]) -> None:
    first = open_house()
    given = first.ask(COUNT, key="report")
    after = open_house()  # nothing in its memory
    found = after.send("GET", "/api/v1/questions/report")
    assert (found.status_code, found.content) == (200, given.content)
    assert after.send("GET", "/api/v1/questions/report", "tacit_cleo").status_code == 404
    assert after.send("GET", "/api/v1/questions/never").status_code == 404
    assert charges(first) == 1


def lost(*_: object) -> None:
    """Store no answer, as a process that ends just before it would."""
    raise LedgerError("the process has ended")


@pytest.mark.parametrize("how", ["POST", "GET"])
def test_a_charge_whose_process_died_is_carried_out_by_the_next_who_is_asked_for_its_key(
    open_house: Callable[..., House], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    first, after = open_house(), open_house()
    with monkeypatch.context() as killed:
        killed.setattr(Ledger, "commit", lost)
        assert first.ask(COUNT, key="report").status_code == 503
    began = after.clock.time
    found = after.ask(COUNT, key="report") if how == "POST" else after.send("GET", "/api/v1/questions/report")
    assert found.status_code == 200
    assert after.clock.time - began == 2  # at its own tick
    assert not found.json()["facts"]["free"]
    assert first.ask(COUNT, key="report").content == found.content
    assert [kind for kind in kinds(first) if kind in ("charge", "attempt", "answer")] == ["charge", "attempt", "answer"]
    read = first.send("GET", "/api/v1/ledger", "tacit_ada").json()["entries"]
    assert "attempt 2 at charge" in next(each["text"] for each in read if each["kind"] == "attempt")


def test_a_question_of_which_three_workers_have_died_is_dead_and_says_so_at_a_tick(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as killed:
        killed.setattr(Ledger, "commit", lost)
        for _ in range(3):
            assert house.ask(COUNT, key="report").status_code == 503
    began = house.clock.time
    reply = house.ask(COUNT, key="report")
    assert (reply.status_code, reply.json()["error"], house.clock.time - began) == (409, "DeadRequest", 2)
    assert charges(house) == 1


def test_a_key_that_failed_stays_dead_and_is_charged_once(
    open_house: Callable[..., House], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = open_house()
    with monkeypatch.context() as killed:
        killed.setattr(Session, "release", lambda self, plan: 1 / 0)
        first.ask(COUNT, key="report")
    after = open_house()
    assert after.send("GET", "/api/v1/questions/report").json()["error"] == "DeadRequest"
    assert after.ask(COUNT, key="report").status_code == 409
    assert charges(first) == 1


def test_a_person_who_may_no_longer_see_a_table_finds_no_answer_about_it(open_house: Callable[..., House]) -> None:
    open_house().ask(COUNT, "tacit_cleo", key="report")
    barred = open_house(tokens=Book({"tacit_cleo": Person("cleo", "analyst", ("pay",))}))
    assert barred.send("GET", "/api/v1/questions/report", "tacit_cleo").status_code == 404


def test_an_answer_is_not_found_again_by_who_may_not_see_its_table_any_more(house: House) -> None:
    assert (
        house.ask({"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": "1"}, "tacit_ben", key="k1").status_code == 200
    )
    assert house.send("GET", "/api/v1/questions/k1", "tacit_ben").status_code == 200
    house.desk.tokens.people["tacit_ben"] = Person("ben", "analyst", ("pay",))  # type: ignore[attr-defined]
    assert house.send("GET", "/api/v1/questions/k1", "tacit_ben").status_code == 404


def test_many_plans_of_one_keep_nobody_else_waiting(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str | None] = []
    wording = read_wording(json.dumps(COUNT).encode(), may_answer=False)
    read = house.desk._question

    def noted(person: Person, *asked: Any) -> Any:
        begun.append(person.name)
        return read(person, *asked)

    async def flood() -> None:
        people = [Person(name, "analyst") for name in ["greedy"] * 40 + ["modest"]]
        await asyncio.gather(*(house.desk.plan(person, "visits", wording) for person in people))

    monkeypatch.setattr(house.desk, "_question", noted)
    asyncio.run(flood())
    assert begun.index("modest") < 4, "turns go round"
    begun.clear()
    turn = Turns.turn
    monkeypatch.setattr(Turns, "turn", lambda self, _name: turn(self, "everybody"))  # the planted bug: one queue
    asyncio.run(flood())
    assert begun.index("modest") > 30
