"""Tables of 0, 1 and 2 units behind a server: no reply, log line or entry has other words, or another shape.

Each is asked over HTTP and by PostgreSQL's protocol.
"""

import json
import re
from itertools import pairwise, zip_longest
from typing import Any

from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.empty_tables import in_words
from tacit_gauntlet.stage.postgres_lines import Line, at_the_door
from tacit_gauntlet.stage.server import Server, logs_kept, servers, token_of
from tacit_gauntlet.stage.table import all_frozen

TABLE = "/api/v1/tables/t"
SMALL = {"epsilon": "0.001"}
ASKED = (
    "SELECT g, COUNT(*) AS n, AVG(x) AS a FROM t GROUP BY g",
    "SELECT MEDIAN(x) AS m, VAR_POP(x) AS v FROM t",
    "SELECT COUNT(*) AS n FROM t WHERE x > 100",
    "SELECT x, COUNT(*) AS n FROM t GROUP BY x",
    "SELECT AVG(n) AS a FROM (SELECT id, COUNT(*) AS n FROM t GROUP BY id)",
)
REQUESTS: tuple[tuple[str, str, Any], ...] = (
    *(("POST", f"{TABLE}/questions", {"sql": sql, "accept_noise": True, **SMALL}) for sql in ASKED),
    ("POST", f"{TABLE}/questions", {"sql": ASKED[0], **SMALL}),
    ("POST", f"{TABLE}/plan", {"sql": ASKED[0], **SMALL}),
    ("POST", f"{TABLE}/made-rows", {"columns": ["g", "x"], **SMALL}),
    *(("GET", path, None) for path in (TABLE, f"{TABLE}/budget", "/api/v1/ledger", "/metrics", "/health")),
)
FORMS = ("/certificate", ".csv")
SPENDS = {"options": "-c tacit.epsilon=0.002 -c tacit.accept_noise=true"}
STATEMENTS = (*(sql.replace("FROM t", "FROM public.t") for sql in ASKED), f"EXPLAIN {ASKED[0]}", "SELECT x FROM t")
NAMED_ANEW = re.compile(r'"id":"[^"]*"')  # each request in the log


@case("W05f", title="with 0, 1 or 2 units every reply, line and entry has the same words and shape", feature="server")
def replies_about_few(_: Size) -> Evidence:
    seen = [_seen_of(people) for people in range(3)]
    statuses = [status for status, *_ in seen[0][: len(REQUESTS)]]
    apart = [
        f"from {people} to {people + 1} units: {one} became {other}"[:400]
        for people, pair in enumerate(pairwise(seen))
        for one, other in zip_longest(*pair)
        if one != other
    ]
    return Evidence(not apart and statuses.count(200) > len(ASKED), {"statuses": statuses, "told apart": apart[:3]})


def _seen_of(people: int) -> list[tuple[Any, ...]]:
    """Return what is seen of every request about so many people: digits and hashes are left out."""
    rows = [(who, "ab"[who % 2], who % 9) for who in range(people)]
    with all_frozen(), servers({"t": rows}, budget="9, delta = 1e-6") as (server,), logs_kept() as log:
        token = token_of(server, "ada", "curator")
        replies = [server.send(method, path, token, body) for method, path, body in REQUESTS]
        answers = [entry.number for entry in server.ledger.entries() if entry.kind == "answer"]
        replies += [server.send("GET", f"/api/v1/answers/{each}{form}", token) for each in answers for form in FORMS]
        lines = _lines_of(server, token)
        kept = [(entry.kind, sorted(entry.record)) for entry in server.ledger.entries()]
        logged = in_words(NAMED_ANEW.sub("", log.getvalue()))
    told = [(each.status, each.seconds, sorted(each.headers), in_words(each.body.decode())) for each in replies]
    return [*told, *lines, *kept, (json.dumps(logged),)]


def _lines_of(server: Server, token: str) -> list[tuple[Any, ...]]:
    """Return the kinds and words of all messages of PostgreSQL's door; of a row of an answer, that it is there."""

    async def script(door: Any) -> list[tuple[Any, ...]]:
        line = Line(door).open()
        await line.sign_in("ada", token, **SPENDS)
        replies = [reply for sql in STATEMENTS for ask in (line.ask, line.prepare) for reply in await ask(sql)]
        line.close()
        return [(kind, "" if kind == b"D" else in_words(body.decode("latin-1"))) for kind, body in replies]

    found: list[tuple[Any, ...]] = at_the_door(server, script)
    return found
