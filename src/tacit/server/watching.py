"""A server's reports to its operators: whether it is ready, counts of requests, and a log of JSON lines.

The reports do not depend on any row. A request is counted and logged when its reply leaves, which after a charge is at
a public tick. Durations, sizes, memory, queue lengths, bodies and error texts are left out. A wrong token, a refusal
and a token's use each make a line, so that the log and the ledger's entries together document a day.
"""

import asyncio
import json
import logging
import os
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import PlainTextResponse

from tacit import __version__
from tacit.errors import InvalidParameter, TacitError
from tacit.server.access import require
from tacit.server.desk import Desk
from tacit.server.problems import Problem, Who

READY_SECONDS = 1.0  # seconds for which a readiness check is kept: requests without a token cost little
SERIES_MAX = 2_000
WRITTEN_SECONDS = 1.0
METHODS = frozenset({"GET", "HEAD", "POST", "DELETE"})
WARM = "warm-"  # with a process's number, the name of a file in the folder of the counts
FACTS = "tacit_facts"  # the attribute of a log record that has its fields
TOKEN = re.compile(r"[Bb]earer tacit_([0-9a-f]{16})_")

log: logging.Logger = logging.getLogger("tacit.server.requests")


class Watching:
    """Counts of replies, by route and status, with a log line for each; processes sharing a `folder` add up."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self._is_to_write = False
        self._left: Counter[tuple[str, str, int]] = Counter()
        self._problems: Counter[str] = Counter()

    def note(self, scope: Any, status: int, problem: str | None) -> None:
        """Count a reply that leaves, and log it: the person, the route, and the class of the problem."""
        route = getattr(scope.get("route"), "path_format", "none")
        method = scope["method"] if route != "none" and scope["method"] in METHODS else "any"
        key = (method, route, status)
        if key in self._left or len(self._left) < SERIES_MAX:
            self._left[key] += 1
        if problem is not None:
            self._problems[problem] += 1
        facts: dict[str, Any] = {"event": "request", "method": method, "route": route, "status": status}
        facts |= {name: value for name, value in scope.get("path_params", {}).items() if name in ("table", "number")}
        facts |= {} if problem is None else {"problem": problem}
        facts |= scope.get("state", {}).get("asker", {})
        if status in (401, 429):
            facts["from"] = None if scope.get("client") is None else scope["client"][0]
        log.info(json.dumps(facts), extra={FACTS: facts})
        if self.folder is not None and not self._is_to_write:
            self._is_to_write = True
            asyncio.get_running_loop().call_later(WRITTEN_SECONDS, self._write)

    def _write(self) -> None:
        self._is_to_write = False
        if self.folder is not None:
            record = [[[*series, count] for series, count in self._left.items()], [*self._problems.items()]]
            draft = self.folder / f".{os.getpid()}"
            draft.write_text(json.dumps(record), encoding="utf-8")
            draft.replace(self.folder / str(os.getpid()))

    def note_warm(self) -> None:
        """Write for the other processes that this one is warm."""
        if self.folder is not None:
            (self.folder / f"{WARM}{os.getpid()}").touch()

    def are_warm(self, workers: int) -> bool:
        """Return whether this number of processes is warm; by itself a process asks its own desk."""
        return self.folder is None or len(list(self.folder.glob(f"{WARM}*"))) >= workers

    def _all(self) -> tuple[Counter[tuple[str, str, int]], Counter[str]]:
        left, problems = self._left.copy(), self._problems.copy()
        for path in () if self.folder is None else self.folder.iterdir():
            if path.name.isdecimal() and int(path.name) != os.getpid():
                theirs = json.loads(path.read_text(encoding="utf-8"))
                left.update({(method, route, status): count for method, route, status, count in theirs[0]})
                problems.update(dict(theirs[1]))
        return left, problems

    def text(self) -> str:
        """Return the counts as Prometheus reads them."""
        left, problems = self._all()
        lines = [
            "# HELP tacit_info The version that runs.",
            "# TYPE tacit_info gauge",
            f'tacit_info{{version="{__version__}"}} 1',
            "# HELP tacit_requests_total Replies that left, by route and status.",
            "# TYPE tacit_requests_total counter",
            *(
                f'tacit_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}'
                for (method, route, status), count in sorted(left.items())
            ),
            "# HELP tacit_problems_total Replies that were no success, by kind; 'unauthorised' has denied logins.",
            "# TYPE tacit_problems_total counter",
            *(f'tacit_problems_total{{kind="{kind}"}} {count}' for kind, count in sorted(problems.items())),
        ]
        return "\n".join(lines) + "\n"


def asker(authorization: str | None, name: str | None) -> dict[str, Any]:
    """Return the log's name for a person: the name, and the id of the token, which is not secret."""
    found = TOKEN.match(authorization or "")
    return {"person": name, "token": None if found is None else found[1]}


def add_watching_routes(app: FastAPI, desk: Desk, who: Who, watching: Watching) -> None:
    checked: list[tuple[float, bool]] = []

    @app.get(
        "/ready",
        response_class=PlainTextResponse,
        summary="Whether all workers are warm and the ledger can be read, so that it may answer",
    )
    async def ready() -> str:
        if not desk.warming.is_done or not watching.are_warm(desk.workers):
            detail, hint = "the server is still loading what answers need", "ask again in a few seconds"
            raise Problem("unavailable", 503, detail, hint, headers={"Retry-After": "2"})
        if not checked or desk.now() - checked[-1][0] >= READY_SECONDS:
            checked[:] = [(desk.now(), await desk.aside(lambda: _is_readable(desk)))]
        if not checked[-1][1]:
            raise Problem("unavailable", 503, "the ledger cannot be read now", "ask the curator")
        return "ready"

    @app.get("/metrics", response_class=PlainTextResponse, summary="Counts of requests, for curators and auditors")
    async def metrics(request: Request) -> Response:
        require(await who(request), "audit")
        return PlainTextResponse(watching.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _is_readable(desk: Desk) -> bool:
    try:
        desk.ledger.length()
    except TacitError:
        return False
    return True


class JsonLines(logging.Formatter):
    """A log of JSON lines: the time, the level, and the event; only the class of an exception is written."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        facts = getattr(record, FACTS, None) or {"event": record.getMessage()}
        kind = {} if record.exc_info is None or record.exc_info[0] is None else {"class": record.exc_info[0].__name__}
        return json.dumps({"time": time, "level": record.levelname.lower(), **facts, **kind})


def log_failures_to(path: str) -> None:
    """Write the classes of errors of engines to a file that only its owner may read: they may depend on rows."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError as problem:
        raise InvalidParameter(
            f"--failures {path!r} cannot be written: {problem.strerror}\nhint: name a file"
        ) from None
    if os.fstat(descriptor).st_mode & 0o077:
        os.close(descriptor)
        raise InvalidParameter(f"--failures {path!r} may be read by others\nhint: chmod 600 {path}")
    handler = logging.StreamHandler(os.fdopen(descriptor, "a", encoding="utf-8"))
    handler.setFormatter(JsonLines())
    handler.setLevel(logging.ERROR)
    logging.getLogger("tacit.curator").addHandler(handler)


def log_to_stderr() -> None:
    """Write the server's log to standard error, as JSON lines; other packages' logs are left out."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    top = logging.getLogger("tacit.server")
    top.addHandler(handler)
    top.setLevel(logging.INFO)
    top.propagate = False
