"""Every route, tried with what its own document says and with what it forbids: nothing is an error of the server's."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from unittest import SkipTest
from urllib.parse import quote, urlencode

import httpx
import jsonschema
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

from tacit.server import make_app
from tests.server.conftest import House
from tests.server.reply_check import check_reply

EXAMPLES = 4
# each route of the document; a route that is new is named here too
ROUTES = (
    "GET /health",
    "GET /ready",
    "GET /metrics",
    "GET /api/v1/sign-on",
    "GET /api/v1/tables",
    "POST /api/v1/tables",
    "GET /api/v1/tables/{table}",
    "GET /api/v1/tables/{table}/budget",
    "POST /api/v1/tables/{table}/plan",
    "POST /api/v1/tables/{table}/questions",
    "POST /api/v1/tables/{table}/made-rows/plan",
    "POST /api/v1/tables/{table}/made-rows",
    "POST /api/v1/tables/{table}/made-rows/report",
    "POST /api/v1/tables/{table}/running/plan",
    "POST /api/v1/tables/{table}/running/start",
    "POST /api/v1/tables/{table}/running/step",
    "POST /api/v1/tables/{table}/running/show",
    "GET /api/v1/questions/{key}",
    "GET /api/v1/public/{name}",
    "GET /api/v1/ledger",
    "GET /api/v1/answers/{number}/certificate",
    "GET /api/v1/answers/{number}.csv",
    "GET /api/v1/answers/{number}.svg",
    "GET /api/v1/people",
    "POST /api/v1/people",
    "POST /api/v1/tokens",
    "DELETE /api/v1/tokens/{id}",
    "POST /api/v1/grants",
    "POST /mcp",
)
QUIET = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def document_of(house: House) -> Any:
    return house.send("GET", "/api/v1/openapi.json", token=None).json()


def test_the_document_is_one_and_names_every_route(house: House) -> None:
    document = document_of(house)
    named = {f"{method.upper()} {path}" for path, verbs in document["paths"].items() for method in verbs}
    assert named == set(ROUTES)
    schemathesis.openapi.from_dict(document).validate()
    for path, verbs in document["paths"].items():
        for verb in verbs.values():
            assert verb["summary"]
            if path != "/health":
                assert "application/problem+json" in verb["responses"]["default"]["content"]


def test_every_reply_has_a_schema_and_every_route_but_two_needs_the_token(house: House) -> None:
    document = document_of(house)
    assert document["security"] == [{"token": []}]
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    for path, verbs in document["paths"].items():
        for verb in verbs.values():
            contents = [content for each in verb["responses"].values() for content in each.get("content", {}).values()]
            assert contents
            assert all(content["schema"].keys() & {"$ref", "type"} for content in contents), path
            assert verb.get("security") == ([] if path in ("/health", "/ready", "/api/v1/sign-on") else None)
    assert "HTTPValidationError" not in document["components"]["schemas"]


@pytest.mark.parametrize(
    ("record", "wrong"),
    [
        ({"tables": [{"name": "t", "hold": "2s"}]}, False),
        ({"tables": [{"name": "t", "hold": "2s", "rows": 600}]}, True),
        ({"tables": [{"name": "t"}]}, True),
        ({"tables": [{"name": "t", "hold": 2}]}, True),
        ({"tables": [], "more": 1}, True),
    ],
)
def test_a_reply_that_is_not_as_declared_is_noticed(record: Any, wrong: bool) -> None:
    reply = httpx.Response(200, json=record)
    if not wrong:
        check_reply("GET", "/api/v1/tables", reply)
        return
    with pytest.raises(jsonschema.ValidationError):
        check_reply("GET", "/api/v1/tables", reply)


def test_a_status_or_a_type_that_is_not_declared_is_noticed() -> None:
    with pytest.raises(AssertionError, match="does not declare"):
        check_reply("GET", "/health", httpx.Response(500, text="no"))
    with pytest.raises(AssertionError, match="text/html"):
        check_reply("GET", "/api/v1/answers/7.csv", httpx.Response(200, html="no"))


@pytest.mark.parametrize(("ending", "media_type"), [("csv", "text/csv"), ("svg", "image/svg+xml")])
def test_an_answer_as_a_file_is_declared_as_what_it_is(house: House, ending: str, media_type: str) -> None:
    declared = document_of(house)["paths"][f"/api/v1/answers/{{number}}.{ending}"]["get"]["responses"]["200"]
    assert list(declared["content"]) == [media_type]
    asked = {"sql": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", "epsilon": "1"}
    entry = house.ask(asked).json()["facts"]["receipt"]["entry"]
    found = house.send("GET", f"/api/v1/answers/{entry}.{ending}").headers["content-type"]
    assert found.partition(";")[0] == media_type


def test_no_request_is_an_error_of_the_server(
    open_house: Callable[..., House], folder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = open_house(sources=(folder,))
    app = make_app(house.desk)
    monkeypatch.setattr("tests.server.conftest.make_app", lambda _desk: app)
    reply = house.ask({"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": "1"}, key="k").json()
    known = {"table": "visits", "number": str(reply["facts"]["receipt"]["entry"]), "key": "k"}
    document = schemathesis.openapi.from_dict(document_of(house))
    found = {route: tried(house, document, route, known) for route in ROUTES}
    assert all(statuses.total() >= 2 for statuses in found.values()), found
    assert all(max(statuses) < 500 for statuses in found.values()), found
    assert {200, 404} <= set(found["GET /api/v1/tables/{table}"]), found
    assert 422 in found["POST /api/v1/tables/{table}/questions"], found


def tried(house: House, document: Any, route: str, known: dict[str, Any]) -> Counter[int]:
    """Return the statuses of made-up requests of a route, of things that do not exist and of things that do."""
    method, path = route.split(" ")
    statuses: Counter[int] = Counter()

    def send(case: Any) -> None:
        pictures = path.endswith(".svg") and 200 in statuses  # one takes as long as all else of this route
        for values in (dict(case.path_parameters or {}), *([] if pictures else [known])):
            statuses[sent(house, method, path, values, case)] += 1

    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
        with suppress(Unsatisfiable, SkipTest):  # nothing of some routes can be wrong
            QUIET(given(document[path][method].as_strategy(generation_mode=mode))(send))()
    return statuses


def sent(house: House, method: str, path: str, parameters: dict[str, Any], case: Any) -> int:
    """Return the status of a request that was made up; what HTTP itself cannot carry is left out of it."""
    place = path
    for name, value in parameters.items():
        place = place.replace(f"{{{name}}}", quote(str(value), safe="") or "%20")
    if case.query:
        place += "?" + urlencode({str(name): str(value) for name, value in case.query.items()}, errors="replace")
    raw = case.body if isinstance(case.body, bytes) else json.dumps(made_plain(case.body)).encode()
    headers = {
        str(name): str(value).encode("ascii", "replace").decode()
        for name, value in (case.headers or {}).items()
        if str(name).lower() == "idempotency-key" and str(value).isprintable()
    }
    reply = house.send(method, place, content=b"" if method in ("GET", "DELETE") else raw, headers=headers)
    asyncio.set_event_loop(None)
    return reply.status_code


def made_plain(body: Any) -> Any:
    """Return a body that JSON has words for; schemathesis says "not set" by an object of its own."""
    if isinstance(body, dict):
        return {str(name): made_plain(each) for name, each in body.items()}
    if isinstance(body, list):
        return [made_plain(each) for each in body]
    return body if isinstance(body, str | int | float | bool | None) else None
