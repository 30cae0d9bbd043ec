"""Two replicas on one PostgreSQL ledger, and many analysts: what is admitted fits, and nothing is lost."""

import asyncio
import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx
import pytest

from tacit.ledger import Person
from tacit.server import make_app
from tacit_gauntlet.stage.postgres_server import fresh_schema
from tacit_gauntlet.stage.served import in_threads, served
from tests.server.conftest import Book, House


@pytest.mark.parametrize("analysts", [6, pytest.param(32, marks=pytest.mark.slow)])
def test_many_analysts_on_two_replicas_spend_the_budget_and_no_more(
    postgres: str, open_house: Callable[..., House], folder: Any, analysts: int
) -> None:
    """Each asks a question of its own for a quarter of the budget of 20: four fit, on whichever replica."""
    catalog = (folder / "tacit.toml").read_text()
    (folder / "tacit.toml").write_text(catalog.replace('ledger = "ledger.db"', f'ledger = "{fresh_schema(postgres)}"'))
    people = Book({f"tacit_{number}": Person(f"analyst {number}", "analyst", None, None) for number in range(analysts)})
    houses = [open_house(tokens=people), open_house(tokens=people)]

    async def story() -> list[tuple[int, bytes]]:
        clients = [
            httpx.AsyncClient(transport=httpx.ASGITransport(app=make_app(house.desk)), base_url="http://test")
            for house in houses
        ]

        async def ask(number: int, client: httpx.AsyncClient) -> tuple[int, bytes]:
            headers = {"Authorization": f"Bearer tacit_{number}", "Idempotency-Key": f"of {number}"}
            asked = {"sql": f"SELECT COUNT(*) AS n FROM visits WHERE days <> {number + 50}", "epsilon": "5"}
            reply = await client.post("/api/v1/tables/visits/questions", json=asked, headers=headers)
            return reply.status_code, reply.content

        turns = itertools.cycle(clients)
        first = await asyncio.gather(*(ask(number, next(turns)) for number in range(analysts)))
        # each sends its key again, to the other replica
        next(turns)
        again = await asyncio.gather(*(ask(number, next(turns)) for number in range(analysts)))
        answered = [pair for pair in zip(first, again, strict=True) if pair[0][0] == 200]
        assert all(one == other for one, other in answered)
        for client in clients:
            await client.aclose()
        return first

    statuses = sorted(status for status, _ in asyncio.run(story()))
    assert statuses == [200] * 4 + [402] * (analysts - 4)
    ledger = houses[0].desk.ledger
    assert sum(entry.kind == "charge" for entry in ledger.entries()) == 4
    ledger.verify()


@pytest.mark.parametrize(("analysts", "kills"), [(6, 1), pytest.param(32, 5, marks=pytest.mark.slow)])
def test_replicas_whose_workers_are_killed_lose_nothing_and_overspend_nothing(
    postgres: str, analysts: int, kills: int
) -> None:
    """Two replicas of two workers each on one ledger: more is asked than fits, and workers are killed meanwhile.

    Each question is sent until it is told, then its key to the other replica: the same bytes. What a killed worker had
    in hand is carried out by another, so that all that fits is answered.
    """
    with served(count=2, workers=2, budget=10, postgres=postgres) as house:
        tokens = [house.token(f"analyst {number}") for number in range(analysts)]
        told: dict[int, tuple[int, bytes]] = {}
        again: dict[int, tuple[int, bytes]] = {}
        killed: list[bool] = []

        def send(number: int, replica: int) -> tuple[int, bytes]:
            asked = {"sql": f"SELECT COUNT(*) AS n FROM t WHERE x <> {number + 50}", "epsilon": "2"}
            headers = {"Idempotency-Key": f"key {number}"}
            server = house.replicas[replica % 2]
            reply = server.until_told("POST", "/api/v1/tables/t/questions", tokens[number % analysts], asked, headers)
            return reply.status, reply.body

        def ask(number: int) -> None:
            told[number] = send(number, number)
            if len(killed) < kills and len(told) > len(killed):
                killed.append(house.replicas[len(killed) % 2].kill_a_worker())

        def ask_again(number: int) -> None:
            again[number] = send(number, number + 1)

        for work in (ask, ask_again):
            in_threads([partial(work, number) for number in range(2 * analysts)], min(2 * analysts, 16))
        charges = house.charges()
        assert house.faults() == []
    assert killed == [True] * kills
    answered = [number for number, (status, _) in told.items() if status == 200]
    assert {status for status, _ in told.values()} == {200, 402}
    assert len(charges) == len(answered) == 5  # 10 at 2 each
    assert all(again[number] == told[number] for number in answered)
