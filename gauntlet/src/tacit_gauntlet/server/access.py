"""Who may ask what on a server, with which token, and where it listens (W01, W10, W12)."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.server import ROWS, Server, listens, servers, token_of

COUNT = {"sql": "SELECT COUNT(*) AS n FROM t", "epsilon": "1"}
TABLES = dict.fromkeys(("t", "u", "v", "w"), ROWS)
FORGED: list[dict[str, str]] = [
    {},
    {"x-analyst": "ada"},
    {"x-forwarded-user": "ada", "x-remote-user": "ada"},
    {"cookie": "token=ada; analyst=ada"},
    {"from": "ada", "x-role": "curator"},
]


def verbs(table: str, role: str) -> Iterator[tuple[str, str, str, Any]]:
    """Yield every verb as (what it is, method, path, body)."""
    asked = {**COUNT, "sql": f"SELECT COUNT(*) AS n FROM {table} WHERE x <> {100 + len(role)}"}  # a question each
    yield "see", "GET", f"/api/v1/tables/{table}", None
    yield "see", "GET", f"/api/v1/tables/{table}/budget", None
    yield "plan", "POST", f"/api/v1/tables/{table}/plan", asked
    yield "ask", "POST", f"/api/v1/tables/{table}/questions", asked


MAY = {"curator": {"see", "plan", "ask"}, "an analyst": {"see", "plan", "ask"}, "auditor": {"see"}}
REASON = {"reason": "the matrix"}
# (method, path, body, what each role is told: curator, analyst, auditor)
OF_NO_TABLE: list[tuple[str, str, Any, tuple[int, int, int]]] = [
    ("GET", "/api/v1/people", None, (200, 403, 200)),
    ("POST", "/api/v1/people", {"name": "gil", **REASON}, (200, 403, 403)),
    ("POST", "/api/v1/tokens", {"name": "gil", **REASON}, (200, 403, 403)),
    ("DELETE", f"/api/v1/tokens/{'0' * 16}?reason=x", None, (404, 403, 403)),
    ("POST", "/api/v1/grants", {"table": "t", "epsilon": "1", "analyst": "gil", **REASON}, (200, 403, 403)),
    ("POST", "/api/v1/tables", {"name": "x", "source": "t.parquet", "unit": "id"}, (422, 403, 403)),
    ("GET", "/metrics", None, (200, 403, 200)),
    ("GET", "/api/v1/ledger", None, (200, 200, 200)),
]


@case("W01", title="a token asks its own tables, in its own name, whatever headers and bodies say", feature="server")
def matrix(_: Size) -> Evidence:
    """Every role, table and verb, with forged headers and bodies, and other people's keys."""
    wrong: list[str] = []
    tries = 0
    with servers(TABLES) as (server,):
        tokens = {
            "curator": token_of(server, "ada", "curator"),
            "an analyst": token_of(server, "ben", tables=["t"]),
            "auditor": token_of(server, "dora", "auditor"),
        }
        for (role, token), table in product(tokens.items(), (*TABLES, "nowhere")):
            for (verb, method, path, body), forged in product(verbs(table, role), FORGED):
                tries += 1
                reply = server.send(method, path, token, body, forged)
                sees = table == "t" or (table in TABLES and role != "an analyst")
                wanted = 404 if not sees else 200 if verb in MAY[role] else 403
                if reply.status != wanted:
                    wrong.append(f"{role} {method} {path}: {reply.status}, not {wanted}")
        for (place, (role, token)), (act, forged) in product(enumerate(tokens.items()), product(OF_NO_TABLE, FORGED)):
            tries += 1
            method, path, body, told = act
            if (status := server.send(method, path, token, body, forged).status) != told[place]:
                wrong.append(f"{role} {method} {path}: {status}, not {told[place]}")
        wrong += forgeries(server, tokens)
        # what was charged, or granted, by name: curators and analysts asked; nobody was charged for another
        known = {name: server.ledger.table(name) for name in TABLES}
        charged = {name: server.ledger.analysts(table) for name, table in known.items() if table is not None}
    others = dict.fromkeys(("v", "w"), ("ada",))
    wanted_charges = {"t": ("ada", "ben", "eve", "gil"), "u": ("ada", "eve"), **others}
    wrong += [] if charged == wanted_charges else [f"charged: {charged}"]
    return Evidence(not wrong, {"requests": tries, "wrong": wrong[:5]})


def withdrawn(server: Server) -> list[str]:
    """Return which answers somebody still gets by their keys who may not see their tables any more."""
    token = token_of(server, "eve", tables=["t", "u"])
    asked = {"alone": ("u", "SELECT COUNT(*) AS n FROM u"), "kept": ("t", "SELECT COUNT(*) AS n FROM t WHERE x <> 55")}
    for key, (table, sql) in asked.items():
        server.ask(token, {**COUNT, "sql": sql}, table=table, key=key)
    server.ledger.add_person("eve", tables=["t"])
    got = {key: server.send("GET", f"/api/v1/questions/{key}", token).status for key in asked}
    server.ledger.end_person("eve")
    return [] if got == {"alone": 404, "kept": 200} else [f"after tables were taken away: {got}"]


def forgeries(server: Server, tokens: dict[str, str]) -> list[str]:
    """Return what a body or another's key gained."""
    wrong = []
    for name in ("analyst", "person", "role", "token", "request_id"):
        asked = {**COUNT, "sql": "SELECT SUM(x) AS s FROM t", name: "ada"}
        if server.ask(tokens["an analyst"], asked).status == 200:
            wrong.append(f"a body with {name} is answered")
    server.ask(tokens["curator"], COUNT, key="mine")
    if server.send("GET", "/api/v1/questions/mine", tokens["an analyst"]).status != 404:
        wrong.append("another's answer is given by its key")
    if server.send("GET", "/api/v1/questions/mine", tokens["curator"]).status != 200:
        wrong.append("one's own answer is not given by its key")
    wrong += withdrawn(server)
    unseen = [
        server.ask(tokens["an analyst"], {**COUNT, "sql": f"SELECT COUNT(*) FROM t JOIN {name} USING (id)"})
        for name in ("u", "z")
    ]
    if unseen[0].body.replace(b"'u'", b"'z'") != unseen[1].body:
        wrong.append("a join tells whether a table exists")
    foreign = [server.send("GET", f"/api/v1/tables/{name}", tokens["an analyst"]).body for name in ("u", "z")]
    return wrong + ([] if foreign[0] == foreign[1] else ["a reply tells whether a table exists"])


@case(
    "W10",
    title="a token is nowhere to be read, and one that is ended is ended on every replica at once",
    feature="server",
)
def stolen(_: Size) -> Evidence:
    """Use a token on two replicas, end it on one, and look for it in all that was written."""
    with servers(count=2) as (one, two):
        kept, ended = token_of(one, "ada"), token_of(one, "ben")
        before = [each.send("GET", "/api/v1/tables", ended).status for each in (one, two)]
        one.ledger.end_token(ended)
        after = [each.send("GET", "/api/v1/tables", ended) for each in (one, two)]
        still = two.send("GET", "/api/v1/tables", kept).status
        wrong_ones = [two.send("GET", "/api/v1/tables", token) for token in ("tacit_x", kept[:-1] + "?", "", "ü")]
        in_url = two.send("GET", f"/api/v1/tables?token={kept}&access_token={kept}").status
        folder = Path(str(one.desk.file.path)).parent
        secrets = [kept.split("_", 2)[2].encode(), ended.split("_", 2)[2].encode()]
        found = [
            str(path) for path in folder.rglob("*") if path.is_file() and any(s in path.read_bytes() for s in secrets)
        ]
    statuses = [each.status for each in (*after, *wrong_ones)]
    bodies = {each.body for each in (*after, *wrong_ones)}
    passed = before == [200, 200] and statuses == [401] * 6 and len(bodies) == 1
    passed = passed and still == 200 and in_url == 401 and not found
    return Evidence(
        passed, {"before": before, "after": statuses, "bodies": len(bodies), "in a URL": in_url, "files": found}
    )


@case("W12", title="beyond this machine the server listens only encrypted, or behind a proxy", feature="server")
def listening(_: Size) -> Evidence:
    """Try every kind of address with and without what makes it safe."""
    here = ["127.0.0.1", "127.9.9.9", "::1", "localhost"]
    beyond = [
        "0.0.0.0",
        "::",
        "10.0.0.1",
        "192.168.1.1",
        "8.8.8.8",
        "2001:db8::1",
        "example.org",
        "127.0.0.1.example.org",
        "",
    ]
    file = __file__
    wrong = [host for host in here if not listens(host=host)]
    wrong += [host for host in beyond if listens(host=host)]
    wrong += [host for host in beyond if not listens(host=host, behind_proxy=True)]
    wrong += [host for host in beyond if not listens(host=host, certificate=file, key=file)]
    wrong += [host for host in beyond if listens(host=host, certificate=file) or listens(host=host, key=file)]
    return Evidence(not wrong, {"addresses": len(here) + len(beyond), "wrong": wrong})
