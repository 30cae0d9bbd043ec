"""What those who run a server see: counts and a log that depend on no row, and whether it is ready."""

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tacit.asking.session import Session
from tacit.errors import InvalidParameter, LedgerError
from tacit.server import Watching, make_app, warming
from tacit.server.watching import JsonLines, log_failures_to
from tests.server.conftest import House

COUNT = {"sql": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", "epsilon": "1"}


@pytest.fixture
def one_app(house: House, monkeypatch: pytest.MonkeyPatch) -> House:
    """A house whose requests all go to one application, which counts them."""
    app = make_app(house.desk)
    monkeypatch.setattr("tests.server.conftest.make_app", lambda _desk: app)
    return house


@pytest.fixture
def logged() -> Iterator[list[str]]:
    lines: list[str] = []

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(JsonLines().format(record))

    top, kept = logging.getLogger("tacit.server"), Keeping()
    level = top.level
    top.addHandler(kept)
    top.setLevel(logging.INFO)
    yield lines
    top.removeHandler(kept)
    top.setLevel(level)


def test_requests_are_counted_by_route_and_status(one_app: House) -> None:
    one_app.send("GET", "/health", token=None)
    one_app.ask(COUNT)
    one_app.ask({**COUNT, "epsilon": "1000"})
    one_app.send("GET", "/api/v1/tables", "tacit_nobody")
    one_app.send("GET", "/nowhere/x")
    text = one_app.send("GET", "/metrics").text
    for line in (
        'tacit_requests_total{method="GET",route="/health",status="200"} 1',
        'tacit_requests_total{method="POST",route="/api/v1/tables/{table}/questions",status="200"} 1',
        'tacit_requests_total{method="POST",route="/api/v1/tables/{table}/questions",status="402"} 1',
        'tacit_requests_total{method="any",route="none",status="404"} 1',
        'tacit_problems_total{kind="no-room"} 1',
        'tacit_problems_total{kind="unauthorised"} 1',
    ):
        assert line in text.splitlines()


def test_counts_are_for_curators_and_auditors(one_app: House) -> None:
    statuses = {
        token: one_app.send("GET", "/metrics", token).status_code
        for token in (None, "tacit_ben", "tacit_audit", "tacit_ada")
    }
    assert statuses == {None: 401, "tacit_ben": 403, "tacit_audit": 200, "tacit_ada": 200}


def test_a_line_says_who_asked_which_route_and_nothing_of_the_question(one_app: House, logged: list[str]) -> None:
    one_app.ask(COUNT, "tacit_ben")
    one_app.send("GET", "/api/v1/tables", "tacit_0123456789abcdef_" + "s" * 43)
    asked, denied = (json.loads(line) for line in logged)
    assert {name: asked[name] for name in ("event", "method", "status", "table", "person")} == {
        "event": "request",
        "method": "POST",
        "status": 200,
        "table": "visits",
        "person": "ben",
    }
    assert (denied["status"], denied["problem"]) == (401, "unauthorised")
    assert "from" in denied
    for line in logged:
        assert "SELECT" not in line
        assert "sss" not in line


def test_a_server_whose_ledger_cannot_be_read_is_alive_and_not_ready(
    one_app: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ready() -> tuple[int, str]:
        reply = one_app.send("GET", "/ready", token=None)
        return reply.status_code, reply.text[:5]

    assert ready() == (200, "ready")

    def gone() -> int:
        raise LedgerError("the disk is gone")

    monkeypatch.setattr(one_app.desk.ledger, "length", gone)
    assert ready() == (200, "ready")  # known for a second
    one_app.clock.time += 1
    assert ready()[0] == 503
    assert one_app.send("GET", "/health", token=None).status_code == 200


def test_an_error_that_is_not_ours_is_its_class_alone(
    open_house: Callable[..., House], monkeypatch: pytest.MonkeyPatch, logged: list[str]
) -> None:
    house = open_house()

    def broken(*_: object) -> None:
        raise RuntimeError("row 17: Ann, 42")

    monkeypatch.setattr(house.desk, "listed", broken)
    assert house.send("GET", "/api/v1/tables").status_code == 500
    assert any("RuntimeError" in line for line in logged)
    assert "Ann" not in "".join(logged)


def test_kinds_of_failures_go_to_a_file_that_its_owner_alone_reads(tmp_path: Path) -> None:
    place, log = tmp_path / "failures.log", logging.getLogger("tacit.curator")
    before = list(log.handlers)
    try:
        log_failures_to(str(place))
        log.error("engine failed: %s", "IOException")
    finally:
        for handler in set(log.handlers) - set(before):
            log.removeHandler(handler)
            handler.stream.close()  # type: ignore[attr-defined]
    assert json.loads(place.read_text())["event"] == "engine failed: IOException"
    assert place.stat().st_mode & 0o777 == 0o600
    place.chmod(0o644)
    with pytest.raises(InvalidParameter, match="may be read by others"):
        log_failures_to(str(place))
    with pytest.raises(InvalidParameter, match="cannot be written"):
        log_failures_to(str(tmp_path / "none" / "x"))


def test_why_a_table_cannot_be_opened_is_told_to_the_machines_own_people(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    (house.folder / "visits.parquet").unlink()
    for method, path in (("GET", ""), ("POST", "/plan"), ("POST", "/questions")):
        asked = {"json": {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": "1"}} if method == "POST" else {}
        reply = house.send(method, f"/api/v1/tables/visits{path}", **asked)
        assert reply.status_code == 503
        assert "parquet" not in reply.text
    assert "visits.parquet" in caplog.text


def test_a_server_is_ready_when_all_workers_are_warm_and_no_protected_row_is_read_for_it(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, usual = [], Session.release
    compiled, done = threading.Event(), threading.Event()

    def release(self: Session, plan: Any) -> Any:
        read.append(self.declaration.name)
        return usual(self, plan)

    monkeypatch.setattr(Session, "release", release)
    monkeypatch.setattr(warming, "load_loops", lambda _stop: compiled.wait())
    watching, house.desk.workers = Watching(tmp_path), 2
    app = make_app(house.desk, None, watching)

    def ready() -> int:
        transport = httpx.ASGITransport(app=app)

        async def asked() -> int:
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return (await client.get("/ready")).status_code

        return asyncio.run(asked())

    house.desk.warm(lambda: (watching.note_warm(), done.set()))
    assert ready() == 503
    compiled.set()
    assert done.wait(600)
    assert ready() == 503  # the other worker is not
    (tmp_path / "warm-1").touch()
    assert ready() == 200
    assert read == [warming.MADE_UP] * 2
    assert {entry.kind for entry in house.desk.ledger.entries()} == {"ledger", "budget", "table"}
