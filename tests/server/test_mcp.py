"""The agent's door: the verbs, spoken by the protocol's own client, with the same token, budget and refusals."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from tacit.cli.serve import forwarded
from tacit.errors import LedgerError
from tacit.server import make_app
from tacit.server.mcp import DATA, TOOLS
from tests.server.conftest import House

FIRST = ("list_tables", "describe", "plan", "ask")
COUNT = {"table": "visits", "sql": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", "epsilon": "1"}


@asynccontextmanager
async def session(house: House, token: str) -> Any:
    transport = httpx2.ASGITransport(app=make_app(house.desk))
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(transport=transport, base_url="http://test", headers=headers) as client,
        streamable_http_client("http://test/mcp", http_client=client) as streams,
        ClientSession(*streams[:2]) as opened,
    ):
        await opened.initialize()
        yield opened


def spoken(house: House, story: Callable[[Any], Awaitable[Any]], token: str = "tacit_ben") -> Any:
    async def told() -> Any:
        async with session(house, token) as opened:
            return await story(opened)

    return asyncio.run(told())


def said(result: Any) -> Any:
    frame, data = result.content[0].text.split("\n")
    assert frame == DATA
    return json.loads(data)


def raw(house: House, message: Any, token: str | None = "tacit_ben") -> Any:
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return house.send("POST", "/mcp", token, content=body)


def call(name: str, given: Any, id: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": given}}


def test_an_agent_lists_describes_plans_and_asks(house: House) -> None:
    async def story(agent: Any) -> list[Any]:
        names = [tool.name for tool in (await agent.list_tools()).tools]
        results = [
            await agent.call_tool(name, given)
            for name, given in [
                ("list_tables", {}),
                ("describe", {"table": "visits"}),
                ("plan", COUNT),
                ("ask", COUNT),
                ("budget", {"table": "visits"}),
            ]
        ]
        return [names, *results]

    names, listed, described, plan, answer, budget = spoken(house, story)
    assert names == [*FIRST, "plan_made_rows", "make_rows", "report_rows", "dummy_rows", "running", "budget"]
    assert said(listed) == {"tables": [{"name": "visits", "hold": "2s"}]}
    assert said(described)["declaration"]["name"] == "visits"
    assert said(plan)["fits"] is True
    assert said(answer)["answer"]["columns"] == ["ward", "n"]
    assert said(budget)["text"].startswith("ε = 19")
    table = house.desk.ledger.table("visits")
    assert table is not None
    assert house.desk.ledger.analysts(table) == ("ben",)


def test_an_agent_is_refused_in_the_words_of_every_other_door(house: House) -> None:
    for asked in ({**COUNT, "epsilon": "1000"}, {**COUNT, "sql": "SELECT patient FROM visits"}, {**COUNT, "to": "me"}):
        result = raw(house, call("ask", asked)).json()["result"]
        body = {name: value for name, value in asked.items() if name != "table"}
        other = house.ask(body, "tacit_ben").json()
        assert result["isError"] is True
        told = json.loads(result["content"][0]["text"].split("\n")[1])
        assert told == {name: other[name] for name in ("detail", "hint", "error")}


def test_a_table_that_the_token_may_not_see_does_not_exist_for_its_agent(house: House) -> None:
    for name in ("describe", "budget", "plan", "ask"):
        replies = [raw(house, call(name, {**COUNT, "table": table})).content for table in ("pay", "nowhere")]
        assert replies[0] == replies[1]


def test_the_same_request_id_is_charged_once(house: House) -> None:
    for _ in range(2):
        raw(house, call("ask", {**COUNT, "request_id": "report-7"}))
    assert sum(entry.kind == "charge" for entry in house.desk.ledger.entries()) == 1


def test_without_a_token_there_is_no_door(house: House) -> None:
    assert raw(house, call("list_tables", {}), None).status_code == 401
    assert house.send("GET", "/mcp").status_code == 405


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b"\xff",
        b"[" * 100_000,
        {"jsonrpc": "1.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": {}, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []},
        {"jsonrpc": "2.0", "id": 1, "method": "resources/list"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "grant", "arguments": {}}},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ask", "arguments": []}},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {}},
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "x": 0.5}',
    ],
    ids=lambda message: repr(message)[:40],
)
def test_what_is_no_message_of_ours_is_a_fault_in_words(house: House, message: Any) -> None:
    reply = raw(house, message)
    assert reply.status_code == 200
    assert reply.json()["error"]["message"]


def test_an_amount_with_a_point_is_refused_so_that_the_agent_can_mend_it(house: House) -> None:
    reply = raw(house, json.dumps(call("plan", {**COUNT, "epsilon": 0.5})).encode()).json()
    assert reply["result"]["isError"] is True
    assert "write amounts as text" in reply["result"]["content"][0]["text"]


def test_a_notification_gets_no_reply(house: House) -> None:
    reply = raw(house, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (reply.status_code, reply.content) == (202, b"")


def test_an_older_agent_is_spoken_to_in_its_version_and_a_newer_one_in_ours(house: House) -> None:
    for wanted, got in {"2024-11-05": "2024-11-05", "2099-01-01": "2025-11-25", "": "2025-11-25"}.items():
        asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": wanted}}
        assert raw(house, asked).json()["result"]["protocolVersion"] == got


def test_what_a_tool_says_of_itself_holds_nothing_of_any_table() -> None:
    words = json.dumps(TOOLS)
    assert "visits" not in words
    assert "patient" not in words


class Elsewhere:
    """A server that is reached, or not."""

    def __init__(self, house: House | None) -> None:
        self.house = house

    def agent(self, message: bytes) -> bytes:
        if self.house is None:
            raise LedgerError("the server cannot be reached")
        return bytes(raw(self.house, message).content)


def test_lines_of_standard_input_are_forwarded_and_a_server_that_is_gone_is_said(house: House) -> None:
    here: Any = Elsewhere(house)
    gone: Any = Elsewhere(None)
    line = json.dumps(call("list_tables", {}, id=7))
    assert json.loads(forwarded(here, line) or "")["id"] == 7
    assert forwarded(here, "\n") is None
    assert forwarded(here, '{"jsonrpc": "2.0", "method": "notifications/initialized"}') is None
    assert json.loads(forwarded(here, "{") or "")["error"]["code"] == -32700
    assert json.loads(forwarded(gone, line) or "") == {
        "jsonrpc": "2.0",
        "id": 7,
        "error": {"code": -32603, "message": "the server cannot be reached"},
    }
