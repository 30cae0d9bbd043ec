"""The routes: what each gives, to whom, and in which words."""

import asyncio
import json
from urllib.parse import quote

import httpx
import pytest

from tacit.answer import loss_record
from tacit.errors import LedgerError
from tacit.options import QUESTION, SPENDING
from tacit.server.app import make_app
from tests.server.conftest import House

COUNT = {"sql": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", "epsilon": "1"}


def test_health_is_static_and_needs_no_token(house: House) -> None:
    reply = house.send("GET", "/health", token=None)
    assert (reply.status_code, reply.text) == (200, "ok")


@pytest.mark.parametrize("token", [None, "", "tacit_nobody", "tacit_ada ", "x" * 10_000, "ü"])
@pytest.mark.parametrize("path", ["tables", "tables/visits", "tables/visits/budget", "questions/x"])
def test_without_a_valid_token_there_is_one_reply(house: House, token: str | None, path: str) -> None:
    headers = {} if token is None else {"Authorization": b"Bearer " + token.encode()}
    reply = house.send("GET", f"/api/v1/{path}", token=None, headers=headers)
    assert reply.status_code == 401
    assert reply.json()["detail"] == "no valid token was given"
    assert reply.headers["www-authenticate"] == "Bearer"


def test_who_guesses_tokens_waits_for_the_next_minute(house: House) -> None:
    statuses = [house.send("GET", "/api/v1/tables", f"tacit_{number}").status_code for number in range(12)]
    assert statuses == [401] * 10 + [429] * 2
    house.clock.time += 60
    assert house.send("GET", "/api/v1/tables", "tacit_12").status_code == 401


def test_a_valid_token_passes_whatever_others_at_its_address_have_sent(house: House) -> None:
    for number in range(30):
        house.send("GET", "/api/v1/tables", f"tacit_{number}")
        assert house.send("GET", "/api/v1/tables").status_code == 200


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Basic YTpi", "tacit_x"])
def test_requests_without_a_token_are_not_counted_as_guesses(house: House, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header}
    sent = [house.send("GET", "/api/v1/tables", token=None, headers=headers).status_code for _ in range(30)]
    assert sent == [401] * 30
    assert house.send("GET", "/api/v1/tables", "tacit_wrong").status_code == 401


def test_a_person_sees_their_tables_alone(house: House) -> None:
    listed = {
        token: house.send("GET", "/api/v1/tables", token).json()["tables"] for token in ("tacit_ada", "tacit_ben")
    }
    assert [each["name"] for each in listed["tacit_ada"]] == ["visits", "pay"]
    assert listed["tacit_ben"] == [{"name": "visits", "hold": "2s"}]


def test_a_table_one_may_not_see_is_as_one_that_does_not_exist(house: House) -> None:
    for method, path, body in [
        ("GET", "tables/{}", None),
        ("GET", "tables/{}/budget", None),
        ("POST", "tables/{}/plan", COUNT),
        ("POST", "tables/{}/questions", COUNT),
    ]:
        replies = [
            house.send(method, f"/api/v1/{path.format(name)}", "tacit_ben", json=body) for name in ("pay", "nowhere")
        ]
        assert {reply.status_code for reply in replies} == {404}
        assert replies[0].content == replies[1].content


def test_a_select_cannot_name_a_table_that_the_person_may_not_see(house: House) -> None:
    asked = {"sql": "SELECT COUNT(*) FROM visits JOIN {} USING (patient)", "epsilon": "1"}
    replies = [
        house.ask({**asked, "sql": asked["sql"].format(name)}, "tacit_ben").json() for name in ("pay", "nowhere")
    ]
    assert replies[0] == json.loads(json.dumps(replies[1]).replace("nowhere", "pay"))
    assert replies[0]["type"] == "urn:tacit:refused"


def test_a_certificate_one_may_not_see_is_as_one_that_does_not_exist(house: House) -> None:
    receipt = house.send("POST", "/api/v1/tables/visits/questions", "tacit_ben", json=COUNT).json()["facts"]["receipt"]
    path = f"/api/v1/answers/{receipt['entry']}/certificate"
    for token, status in {"tacit_ben": 200, "tacit_ada": 200, "tacit_audit": 200}.items():
        assert house.send("GET", path, token).status_code == status
    absent = house.send("GET", "/api/v1/answers/999/certificate", "tacit_ben")
    assert absent.status_code == 404
    for token in ("tacit_cleo", "tacit_audit_pay"):
        assert house.send("GET", path, token).content == absent.content


def test_an_auditor_asks_nothing(house: House) -> None:
    for path in ("plan", "questions"):
        reply = house.send("POST", f"/api/v1/tables/visits/{path}", "tacit_audit", json=COUNT)
        assert reply.status_code == 403
        assert reply.json()["detail"] == "'dora' is an auditor, who may not " + (
            "plan" if path == "plan" else "ask"
        ) + (" questions")


def test_the_analyst_comes_from_the_token_and_from_nothing_else(house: House) -> None:
    headers = {"X-Analyst": "ada", "X-Forwarded-User": "ada", "From": "ada"}
    reply = house.send("POST", "/api/v1/tables/visits/questions", "tacit_ben", json=COUNT, headers=headers)
    assert reply.status_code == 200
    table = house.desk.ledger.table("visits")
    assert table is not None
    assert house.desk.ledger.analysts(table) == ("ben",)
    refused = house.ask({**COUNT, "analyst": "ada"}, "tacit_ben")
    assert refused.status_code == 422
    assert "the body may not have 'analyst'" in refused.json()["detail"]


def test_no_room_is_told_in_the_products_own_words_and_charges_nothing(house: House) -> None:
    before = house.send("GET", "/api/v1/tables/visits/budget").json()
    reply = house.ask({**COUNT, "epsilon": "21"})
    assert (reply.status_code, reply.headers["content-type"]) == (402, "application/problem+json")
    problem = reply.json()
    assert (problem["type"], problem["error"]) == ("urn:tacit:no-room", "BudgetExceeded")
    assert problem["hint"]
    assert house.send("GET", "/api/v1/tables/visits/budget").json() == before


def test_every_reply_has_the_same_safe_headers_and_none_names_the_software(house: House) -> None:
    replies = [
        house.send("GET", "/health", token=None),
        house.send("GET", "/nowhere"),
        house.send("GET", "/api/v1/tables", token=None),
        house.ask(COUNT),
        house.send("PATCH", "/api/v1/tables"),
    ]
    for reply in replies:
        assert reply.headers["cache-control"] == "no-store"
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in reply.headers["content-security-policy"]
        assert "server" not in reply.headers


def test_a_plan_is_free_and_says_what_the_library_says(house: House) -> None:
    import tacit

    reply = house.send("POST", "/api/v1/tables/visits/plan", "tacit_ben", json=COUNT)
    own = tacit.catalog(str(house.folder / "tacit.toml"))["visits"].sql(COUNT["sql"]).plan(epsilon=1, analyst="ben")
    assert reply.json() == {"text": str(own), "loss": loss_record(own.loss), "fits": True}


def test_the_openapi_document_names_every_route(house: House) -> None:
    paths = house.send("GET", "/api/v1/openapi.json", token=None).json()["paths"]
    asked = paths["/api/v1/tables/{table}/questions"]["post"]
    schema = asked["requestBody"]["content"]["application/json"]["schema"]
    assert set(schema["properties"]) == {*QUESTION, *SPENDING, "consistent", "accept_noise"}
    assert "Idempotency-Key" in [each["name"] for each in asked["parameters"]]
    assert "application/problem+json" in asked["responses"]["default"]["content"]
    assert {"/health", "/api/v1/tables", "/api/v1/tables/{table}/questions"} <= set(paths)


def test_an_address_asked_another_way_says_so(house: House) -> None:
    reply = house.send("PUT", "/api/v1/tables/visits/questions")
    assert reply.status_code == 405
    assert reply.headers["allow"] == "POST"
    assert reply.json()["type"] == "urn:tacit:not-this-way"


def test_the_machines_own_people_alone_are_told_what_is_wrong_with_the_ledger(
    house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def gone(*_: object, **__: object) -> None:
        raise LedgerError("the key at /srv/secret/signing.key is another\nhint: copy it from db.example.org")

    monkeypatch.setattr(house.desk.ledger, "reserve", gone)
    reply = house.ask({"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": "1"})
    assert reply.status_code == 503
    assert "/srv" not in reply.text
    assert "example.org" not in reply.text
    assert "/srv/secret/signing.key is another" in caplog.text


def test_each_row_has_a_cell_for_each_name_and_lower_ends_stand_apart(house: House) -> None:
    reply = house.ask({"sql": "SELECT COUNT(*) AS n FROM visits WHERE days > 1", "epsilon": "1"}).json()
    assert {len(row) for row in reply["cells"]["rows"]} == {len(reply["cells"]["names"])}
    assert [len(ends) for ends in reply["at_least"].values()] in ([], [1])


@pytest.mark.parametrize("key", ["a/b c", "a?b#c", "%2F", "/"])
def test_every_key_finds_its_answer(house: House, key: str) -> None:
    first = house.ask({"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": "1"}, key=key)
    found = house.send("GET", f"/api/v1/questions/{quote(key, safe='')}")
    assert (found.status_code, found.content) == (200, first.content)


def test_a_browser_that_came_encrypted_does_not_come_back_without(house: House) -> None:
    async def headers(scheme: str) -> httpx.Headers:
        transport = httpx.ASGITransport(make_app(house.desk))
        async with httpx.AsyncClient(transport=transport, base_url=f"{scheme}://test") as client:
            return (await client.get("/health")).headers

    assert asyncio.run(headers("https"))["strict-transport-security"] == "max-age=31536000"
    assert "strict-transport-security" not in asyncio.run(headers("http"))
