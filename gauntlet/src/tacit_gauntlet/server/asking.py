"""What a server does with a question: bodies, times, rows unseen, turns, digits (W02, W04, W05, W16, W18, W19)."""

import json
import re
from itertools import product
from typing import Any

from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.server import (
    ROWS,
    Reply,
    Server,
    T,
    clocks_of_library,
    engine_takes,
    logs_kept,
    order_of_turns,
    servers,
    token_of,
    travelled,
    writings_noted,
)

COUNT = {"sql": "SELECT g, COUNT(*) AS n FROM t GROUP BY g", "epsilon": "1"}
# of a row, in the counts that are kept under a cap of one row
FINE_STEPS = 2**20
SQL = '{"sql": "SELECT COUNT(*) AS n FROM t"'


def question(number: int) -> dict[str, Any]:
    """Return one of many different questions."""
    return {"sql": f"SELECT COUNT(*) AS n FROM t WHERE x <> {number + 100}", "epsilon": "0.01"}


TOKEN_ID = re.compile("[0-9a-f]{16}")  # random, and no fact about rows
N = {"name": "n", "aggregate": "count"}
TREES: list[Any] = [
    {"format": 2, "table": "t", "outputs": [N], "where": "="},
    {"format": 2, "table": "t", "outputs": [N], "where": "id = 1"},
    {"format": 2, "table": "t", "outputs": [{**N, "aggregate": "exec"}]},
    {"format": 9, "table": "t", "outputs": [N]},
    {"format": 2, "table": "t", "outputs": [N], "keys": [["id", "id"]]},
    {"format": 2, "table": "t", "outputs": [{**N, "expression": {"value": {"$decimal": "1e99999999"}}}]},
    {"format": 2, "table": "t", "outputs": [N], "columns": ["n", "id"]},
]

NAMES = ("between", "per_unit", "dialect", "most", "error", "for_groups_of", "weights", "noise", "learn", "consistent")
AMOUNTS = ("epsilon", "delta", "confidence")
ODD = ("NaN", "1e400", "1.5", "[[]]", '{"": []}', '"nan"', '{"a": "nan"}', '"\\ud800"', '"' + "9" * 5000 + '"')
TREE = json.dumps({"format": 2, "table": "t", "outputs": [N]})

BODIES: list[bytes] = [
    *(f'{SQL}, "epsilon": "1", "{name}": {odd}}}'.encode() for name in NAMES for odd in ODD),
    *(f'{SQL}, "{name}": {odd}}}'.encode() for name in AMOUNTS for odd in ODD),
    *(f'{{"question": {TREE}, "epsilon": "1", "{name}": {odd}}}'.encode() for name in NAMES[4:] for odd in ODD),
    b"",
    b"null",
    b"[1]",
    b"{",
    b"\xff\xfe\x00",
    *(
        f'{SQL}, "epsilon": {amount}}}'.encode()
        for amount in (
            "NaN",
            "Infinity",
            "-Infinity",
            "1e400",
            "0.5",
            "1.0",
            "1e0",
            "-1",
            "0",
            "true",
            "[]",
            "{}",
            "9" * 400,
        )
    ),
    *(
        f'{SQL}, "epsilon": "{amount}"}}'.encode()
        for amount in ("nan", "inf", "1e400000000", "1e-30", "1e-17", "1/0", "0x1", "", "1,5", "one", "-1", "0")
    ),
    f'{SQL}, "epsilon": "100", "epsilon": "0.001"}}'.encode(),
    f'{SQL}, "sql": "SELECT SUM(x) AS s FROM t", "epsilon": "1"}}'.encode(),
    f'{SQL}, "epsilon": "1", "analyst": "ada"}}'.encode(),
    f'{SQL}, "epsilon": "1", "x": {"[" * 100000}}}'.encode(),
    b"[" * 900_000,
    b'{"a":' * 100_000,
    b'{"sql": "' + b"x" * 3_000_000 + b'", "epsilon": "1"}',
    b'{"sql": "\\ud800", "epsilon": "1"}',
    *(json.dumps({"question": tree, "epsilon": "1"}).encode() for tree in TREES),
]


@case(
    "W02",
    title="malformed bodies: refused before a plan, nothing charged, and amounts are exact text",
    feature="server",
)
def bodies(_: Size) -> Evidence:
    """Send what no client sends; then an amount whose text and float differ."""
    with servers() as (server,):
        token = token_of(server, "ada")
        replies = [
            (body, server.send("POST", f"/api/v1/tables/t/{verb}", token, body))
            for body in BODIES
            for verb in ("plan", "questions")
        ]
        wrong = [(body[:60], reply.status) for body, reply in replies if not 400 <= reply.status < 500]
        charged = server.charges()
        server.ask(token, {**COUNT, "epsilon": "0.1"})
        table = server.ledger.table("t")
        spent = None if table is None else str(server.ledger.spent(table).epsilon)
    passed = not wrong and charged == 0 and spent == "1/10"
    return Evidence(passed, {"bodies": len(BODIES), "not refused": wrong[:5], "charges": charged, "0.1 costs": spent})


@case("W04", title="the time of an outcome after the charge is a public tick, whatever the rows", feature="server")
def clock(_: Size) -> Evidence:
    """Quick, slow, failing and stored outcomes leave at the same tick; a next question starts at one too."""
    found: dict[str, list[float]] = {}
    with servers(turns=2) as (server,):
        token = token_of(server, "ada")
        for number, (seconds, fails) in enumerate([(0.0, False), (0.9, False), (0.1, True), (0.9, True)]):
            began = server.watch.time
            with engine_takes(server, seconds, fails=fails), writings_noted(server) as noted:
                found.setdefault("ready in time", []).append(server.ask(token, question(number)).seconds)
            found.setdefault("written", []).extend(each - began for each in noted)
        found["ready in time"].append(server.ask(token, question(0)).seconds)  # stored
        for number, (seconds, fails) in enumerate([(1.1, False), (1.9, True)], 50):
            with engine_takes(server, seconds, fails=fails):
                found.setdefault("late", []).append(server.ask(token, question(number)).seconds)
        for seconds in (0.1, 0.9):  # two questions of one analyst, who has one turn at a time
            with engine_takes(server, seconds):
                found.setdefault("the second of two", []).append(queued(server, token, int(seconds * 100) + 200))
        refused = server.ask(token, {**COUNT, "epsilon": "1000"}).seconds
    found = {name: [round(each, 6) for each in times] for name, times in found.items()}
    wanted = {"ready in time": [T] * 5, "written": [T / 2] * 2, "late": [2 * T] * 2, "the second of two": [2 * T] * 2}
    return Evidence(found == wanted and refused == 0, {**found, "refused": refused})


SEVERAL = (  # each reads u, and is sent to t
    "SELECT COUNT(*) AS n FROM t JOIN u USING (id)",
    "SELECT COUNT(*) AS n FROM t LEFT JOIN u USING (id) WHERE u.x > 2",
    "SELECT COUNT(*) AS n FROM t WHERE id IN (SELECT id FROM u WHERE x > 2)",
    "SELECT COUNT(*) AS n FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.id = t.id AND u.x > 2)",
    "SELECT COUNT(*) - (SELECT COUNT(*) FROM u) AS n FROM t",
    "SELECT g, COUNT(*) AS n FROM t WHERE id IN (SELECT id FROM u) GROUP BY ROLLUP (g)",
    "SELECT 'a' AS w, COUNT(*) AS n FROM t UNION ALL SELECT 'b', COUNT(*) FROM u",
    "SELECT 'a' AS w, COUNT(*) AS n FROM t UNION ALL SELECT 'b', COUNT(*) FROM t JOIN u USING (id)",
)


@case("W04j", title="a question about several tables leaves on the slowest table's clock", feature="server")
def slowest_clock(_: Size) -> Evidence:
    """Ask about a table with a long hold through one with a short hold, in every way that reads both."""
    holds = {"t": "2s", "u": "30s"}
    with servers({"t": ROWS, "u": ROWS}, holds=holds) as (server,):
        token = token_of(server, "ada")
        replies = [server.ask(token, {"sql": sql, "epsilon": "0.1"}) for sql in SEVERAL]
        again = [server.ask(token, {"sql": sql, "epsilon": "0.1"}) for sql in SEVERAL]
        alone = server.ask(token, COUNT)
        library = clocks_of_library(server, SEVERAL, "ada")
    seconds = [round(each.seconds, 6) for each in (*replies, *again)]
    passed = {*seconds, *library} == {30.0} and alone.seconds == T
    return Evidence(passed, {"on the server": seconds, "in the library": library, "t by itself": alone.seconds})


def queued(server: Server, token: str, number: int) -> float:
    """Return when the later of two questions leaves that were sent at once."""
    path = "/api/v1/tables/t/questions"
    both: list[Reply] = server.send_all([("POST", path, token, question(number + each), None) for each in (0, 1)])
    return max(reply.seconds for reply in both)


@case("W05", title="health, headers, documents and logs depend on no row", feature="server")
def unseen(_: Size) -> Evidence:
    """Ask two servers whose tables differ by a heavy person, one of them slower and one of them empty."""
    tables = [ROWS, [*ROWS, *[(99, "a", 8)] * 500], []]
    seen = []
    for rows, seconds in zip(tables, (0.0, 1.5, 0.0), strict=True):
        with servers({"t": rows}) as (server,), logs_kept() as log, engine_takes(server, seconds):
            token = token_of(server, "ada")
            replies = [
                server.send("GET", "/health"),
                server.send("GET", "/api/v1/openapi.json"),
                server.send("GET", "/api/v1/tables", token),
                server.send("GET", "/api/v1/tables/t", token),
                server.send("POST", "/api/v1/tables/t/plan", token, COUNT),
                server.send("GET", "/ready"),
                server.send("GET", "/metrics"),
            ]
            answers = [server.ask(token, COUNT, key="k"), server.send("GET", "/api/v1/questions/k", token)]
            answers.append(server.send("GET", "/api/v1/tables/t/budget", token))
            otto = token_of(server, "otto", "auditor")
            replies += [server.send("GET", "/metrics", otto) for _ in range(50)]
            public = [(each.status, dict(each.headers), each.body) for each in replies]
            shapes = [(each.status, {**each.headers, "content-length": ""}) for each in answers]
            lines = TOKEN_ID.sub("a token", log.getvalue())
            seen.append(json.dumps([repr(public), repr(shapes), lines]))
    return Evidence(len(set(seen)) == 1, {"servers": len(seen), "different": len(set(seen))})


@case(
    "W16",
    title="a stored answer leaves as late as a fresh one, and reaches only who may ask its table",
    feature="server",
)
def stored(_: Size) -> Evidence:
    """Ask; then ask the same as others, with the same key, and without the right to."""
    with servers({"t": ROWS, "u": ROWS}) as (server,):
        ada, ben, eve = token_of(server, "ada"), token_of(server, "ben"), token_of(server, "eve", tables=["u"])
        fresh = server.ask(ada, COUNT, key="k")
        hit, same_key = server.ask(ben, COUNT), server.ask(ben, COUNT, key="k")
        barred = [
            server.ask(eve, COUNT),
            server.ask(eve, COUNT, key="k"),
            server.send("GET", "/api/v1/questions/k", eve),
        ]
        charged = server.charges()
    times = [each.seconds for each in (fresh, hit, same_key)]
    numbers = {json.dumps(each.record["cells"]) for each in (fresh, hit, same_key)}
    passed = times == [T] * 3 and len(numbers) == 1 and [each.status for each in barred] == [404] * 3 and charged == 1
    return Evidence(passed, {"seconds": times, "answers": len(numbers), "barred": [each.status for each in barred]})


@case("W18", title="one analyst cannot starve others: turns go round, and nobody has more than half", feature="server")
def starved(_: Size) -> Evidence:
    """One asks ninety questions before five others ask one each: they wait at most twice as long as without."""
    modest = [f"modest {number}" for number in range(5)]
    places, longer = [], []
    for turns in (1, 2, 8):
        served, alone = order_of_turns(turns, ["greedy"] * 90 + modest), order_of_turns(turns, modest)
        last, last_alone = (max(order.index(each) for each in modest) for order in (served, alone))
        places.append(last)
        longer.append((last // turns + 1) / (last_alone // turns + 1))  # ticks, of which each has so many turns
    passed = max(places) <= 20 and max(longer) <= 2
    return Evidence(passed, {"last of the modest": places, "times as long as alone": longer})


@case("W19", title="numbers are written with all their digits, never through a float", feature="server")
def digits(size: Size) -> Evidence:
    """Send whole numbers beyond 2^53 and floats of every size; and compare an answer with what the ledger keeps."""
    wholes = [sign * (2**power + odd) for power in range(50, 90) for odd in (1, 3) for sign in (1, -1)]
    floats = [value * 10.0**power for power in range(-300, 300, 7) for value in (1 / 3, 0.1, 2 / 7)]
    sent: list[Any] = [*wholes, *floats, None, float("inf"), 0, -1]
    body, read = travelled(sent)
    lost = [number for number in wholes if str(number).encode() not in body]
    changed = [one for one, other in zip(sent, read, strict=True) if one != other or type(one) is not type(other)]
    answers, released, wrong = 3 if size == "quick" else 500, 0, 0
    with servers({"t": ROWS, "u": ROWS[1:]}) as (server,):  # with one person, and without
        token = token_of(server, "ada")
        for number, table in product(range(answers), ("t", "u")):
            sql = f"SELECT g, COUNT(*) AS n FROM {table} WHERE x <> {number + 50} GROUP BY g"
            record = server.ask(token, {"sql": sql, "epsilon": "0.001"}, table=table).record
            cells = [row[1] for row in record["cells"]["rows"]]
            stored = server.ledger.entry(record["facts"]["receipt"]["entry"])
            kept = [] if stored is None else json.loads(stored.record["answer"])["parts"][0][0]
            wrong += len(cells) != len(kept) or not all(map(_is_nearest, cells, kept))
            released += len(cells)
    passed = not lost and not changed and not wrong
    numbers = {"numbers": len(sent), "released": released}
    return Evidence(passed, {**numbers, "lost": lost[:3], "changed": changed[:3], "not as kept": wrong})


def _is_nearest(count: int, kept: int) -> bool:
    """Whether a count of rows is the whole number nearest to one in fine steps; below 0 it is written as 0."""
    return count == 0 if kept <= 0 else 2 * abs(count * FINE_STEPS - kept) <= FINE_STEPS


@case("L01h", title="requests race over HTTP for a budget that fits three", feature="server")
def races(size: Size) -> Evidence:
    """Send twelve different questions at once, of two analysts, on two replicas in turn: three fit."""
    rounds = 1 if size == "quick" else 10
    found = []
    for _ in range(rounds):
        with servers(count=2) as both:
            tokens = [token_of(both[0], name) for name in ("ada", "ben")]
            path = "/api/v1/tables/t/questions"
            replies = []
            for half, server in enumerate(both):
                asked = [{**question(10 * half + number), "epsilon": "3"} for number in range(6)]
                replies += server.send_all([("POST", path, tokens[n % 2], each, None) for n, each in enumerate(asked)])
            found.append((sorted(each.status for each in replies), both[0].charges()))
    passed = all(each == ([200] * 3 + [402] * 9, 3) for each in found)
    return Evidence(passed, {"statuses": found[0][0], "charges": [charges for _, charges in found]})
