"""What is read of a server's record, what is written of its day, and what is written nowhere (W01, Q17h, W14, W15)."""

import json
from collections import Counter
from itertools import product
from typing import Any

import tacit
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.server.pages import Page
from tacit_gauntlet.stage.server import (
    ROWS,
    Server,
    logs_kept,
    said_about_secrets,
    servers,
    token_of,
    with_pages,
)

COUNT = {"sql": "SELECT g, COUNT(*) AS n FROM t GROUP BY g", "epsilon": "1"}
FORMS = ("/certificate", ".csv", ".svg")


@case("W01r", title="entries, certificates and pictures reach only who may see the table", feature="server")
def readers(_: Size) -> Evidence:
    """Read other people's entries and answers, as everyone, in every form."""
    wrong: list[str] = []
    with servers({"t": ROWS, "u": ROWS}) as (server,):
        tokens = {
            "ada": token_of(server, "ada", "curator"),
            "ben": token_of(server, "ben", tables=["t"]),
            "cleo": token_of(server, "cleo"),
            "dora": token_of(server, "dora", "auditor"),
            "emil": token_of(server, "emil", "auditor", tables=["u"]),
            "finn": token_of(server, "finn", "curator", tables=["u"]),
        }
        entry = server.ask(tokens["ben"], COUNT).record["facts"]["receipt"]["entry"]
        server.ask(tokens["cleo"], {**COUNT, "sql": "SELECT COUNT(*) AS n FROM u"}, table="u")
        for (name, token), form in product(tokens.items(), FORMS):
            reply = server.send("GET", f"/api/v1/answers/{entry}{form}", token)
            absent = server.send("GET", f"/api/v1/answers/9999{form}", token)
            may = name in ("ada", "ben", "dora")
            if (reply.status == 200) != may or (not may and (reply.status, reply.body) != (404, absent.body)):
                wrong.append(f"{name} {form}: {reply.status}")
        for name, token in tokens.items():
            seen = server.send("GET", "/api/v1/ledger", token).record["entries"]
            wrong += [f"{name}: {fault}" for fault in _beyond(name, seen, server)]
    return Evidence(not wrong, {"people": len(tokens), "wrong": wrong[:5]})


def _beyond(name: str, seen: list[dict[str, Any]], server: Server) -> list[str]:
    """Return what of the entries that somebody reads is not theirs to read, and what is missing."""
    if name in ("ada", "dora"):
        return [] if len(seen) == server.ledger.length() else ["not all entries"]
    of_u = server.ledger.table("u")
    bodies = [json.loads(each["body"]) for each in seen]
    if name in ("emil", "finn"):
        tables = {body["table"] for body in bodies if body["kind"] in ("charge", "answer", "refusal")}
        names = {body["name"] for body in bodies if body["kind"] in ("person", "token")}
        fine = of_u is not None and tables == {of_u.id} and names <= {name}
        return [] if fine else ["another table's entries, or other people's"]
    names = {body.get("analyst", body.get("name")) for body in bodies if body["kind"] != "answer"}
    return [] if names == {name} else [f"entries of {names}"]


@case("W01n", title="the ledger names no table that its reader may not see, on pages and over HTTP", feature="server")
def names_of_tables(_: Size) -> Evidence:
    """Declare tables of the same people with telling names, and read all that one table's people may read."""
    tables = {"payroll": ROWS, "t": ROWS, "layoffs": ROWS}
    with servers(tables, holds=dict.fromkeys(tables, "2s")) as (plain,):
        server = with_pages(plain)
        server.desk.warm()
        for name in ("t", "payroll"):
            server.ledger.grant(name, tacit.epsilon(3), analyst="otto", reason="as for the layoffs")
        readers = {role: token_of(server, f"{role} of t", role, ["t"]) for role in ("auditor", "curator", "analyst")}
        token_of(server, "ada", "curator")
        server.ledger.end_person("ada", reason="part of the layoffs")
        named, whole = [], {}
        for role, token in readers.items():
            visitor = Page(server, token)
            found = {
                path: visitor.send("GET", path).body.decode() for path in ("/ledger", "/ledger?verify=1", "/history")
            }
            found |= {f"/ledger/{each}": visitor.send("GET", f"/ledger/{each}").body.decode() for each in range(1, 20)}
            found["the API"] = server.send("GET", "/api/v1/ledger", token).body.decode()
            named += [
                f"{role} {path}" for path, text in found.items() if any(each in text for each in ("payroll", "layoffs"))
            ]
            count = str(server.ledger.length())
            named += [
                f"{role} {path}: the count"
                for path in ("/ledger", "/ledger?verify=1")
                if f"{count} entries" in found[path]
            ]
            whole[role] = "The chain is whole: " in found["/ledger?verify=1"]
    passed = not named and whole == {"auditor": True, "curator": True, "analyst": False}
    return Evidence(passed, {"named": named[:5], "verified": whole})


@case("Q17h", title="over HTTP too, a stored answer is free for its own question alone", feature="server")
def stored_answers(_: Size) -> Evidence:
    """Ask once; then ask what is the same, and what only looks so, as others would."""
    asked = {"sql": "SELECT g, COUNT(*) AS n FROM t WHERE x <> 7 GROUP BY g", "epsilon": "1"}
    spelled = {"sql": "select  g,\ncount(*) as n from t where x <> 7 group by g", "epsilon": "1.0"}
    with servers({"t": ROWS, "u": ROWS}) as (server,):
        ada, ben, cleo = (token_of(server, name) for name in ("ada", "ben", "cleo"))
        server.desk.warm()
        server.ledger.grant("t", tacit.epsilon(3), analyst="cleo")
        first = server.ask(ada, asked, key="r1")
        same = [server.ask(ada, asked, key="r1"), server.ask(ben, asked), server.ask(ben, spelled, key="r1")]
        free = [each.record["cells"] == first.record["cells"] for each in same]
        after_same = server.charges()
        other = {**asked, "sql": asked["sql"].replace("FROM t", "FROM u")}
        charged = [
            server.ask(ben, {**asked, "epsilon": "0.5"}),
            server.ask(ben, {**asked, "sql": asked["sql"].replace("7", "6")}, key="r2"),
            server.ask(ben, other, table="u"),
            server.ask(cleo, asked),  # who has a budget pays for what others asked
        ]
        taken = server.ask(ben, {**asked, "epsilon": "0.25"}, key="r2").status  # a key of another question
        plans = [
            server.send("POST", "/api/v1/tables/t/plan", ben, {**asked, "sql": asked["sql"].replace("7", each)}).body
            for each in ("7", "5")  # asked before, and never
        ]
        told = plans[0].replace(b"x <> 7", b"x <> 5") != plans[1]
        count = server.charges()
    statuses = [each.status for each in charged]
    passed = all(free) and after_same == 1 and count == 5 and statuses == [200] * 4 and taken == 422 and not told
    return Evidence(
        passed, {"same": free, "charged": count - after_same, "another's key": taken, "a plan tells it": told}
    )


@case("W14", title="a day can be told again: each act is an entry or a line, and the chain verifies", feature="server")
def day(_: Size) -> Evidence:
    """Live through a day of tokens, questions, refusals and wrong tokens; then count what was written of it."""
    with servers() as (server,), logs_kept() as kept:
        server.desk.warm()
        ada, why = token_of(server, "ada", "curator"), {"reason": "the day"}
        before = server.ledger.length()
        server.send("POST", "/api/v1/people", ada, {"name": "ben", "tables": ["t"], **why})
        made = server.send("POST", "/api/v1/tokens", ada, {"name": "ben", **why}).record
        server.send("POST", "/api/v1/grants", ada, {"table": "t", "epsilon": "2", "analyst": "ben", **why})
        ben = made["token"]
        server.ask(ben, COUNT)
        server.ask(ben, {**COUNT, "sql": "SELECT COUNT(*) AS m FROM t", "epsilon": "8"})  # no room
        server.send("POST", "/api/v1/people", ben, {"name": "eve", **why})  # not a curator
        for number in range(3):
            server.send("GET", "/api/v1/tables", f"tacit_{number}")
        used = {one.id: one.first_used for one in server.ledger.tokens("ben")}
        server.send("DELETE", f"/api/v1/tokens/{made['id']}?reason=lost", ada)
        server.send("GET", "/api/v1/tables", ben)
        server.send("POST", "/api/v1/grants", ada, {"table": "t", "analyst": "ben", "revoke": True, **why})
        server.send("POST", "/api/v1/people", ada, {"name": "ben", "end": True, **why})
        entries = [entry.record for entry in server.ledger.entries(before + 1)]
        verified = server.ledger.verify().entries == server.ledger.length()
    lines = [json.loads(line) for line in kept.getvalue().splitlines()]
    kinds = Counter(record["kind"] + (" ended" if record.get("ended") else "") for record in entries)
    wanted = {"person": 1, "token": 1, "budget": 2, "charge": 1, "answer": 1, "refusal": 1}
    wanted |= {"token ended": 1, "person ended": 1}
    acts = [record for record in entries if record["kind"] in ("person", "token", "budget")]
    by = [record for record in acts if "(by ada, over HTTP)" not in record["reason"]]
    statuses = Counter(line["status"] for line in lines)
    first = [line for line in lines if line.get("token") == made["id"]]
    passed = kinds == wanted and not by and statuses[401] == 4 and statuses[403] == 1 and statuses[402] == 1
    passed = passed and verified and len(lines) == 13 and bool(first) and used.get(made["id"]) is not None
    return Evidence(
        passed,
        {"entries": dict(kinds), "lines": len(lines), "denied": statuses[401], "no actor": len(by), "whole": verified},
    )


@case("W15", title="keys, tokens and passwords are in no error, reply, log, picture or command line", feature="server")
def canaries(_: Size) -> Evidence:
    """Plant secrets where they belong, provoke every kind of error, and look for them in all that comes out."""
    with servers() as (server,), logs_kept() as kept:
        token = token_of(server, "ada", "curator")
        secrets, told = said_about_secrets(server, token)
        for method, path in [
            ("GET", "/health"),
            ("GET", "/ready"),
            ("GET", "/metrics"),
            ("GET", "/api/v1/openapi.json"),
            ("GET", "/api/v1/tables"),
            ("GET", "/api/v1/tables/t"),
            ("GET", "/api/v1/tables/far"),
            ("GET", "/api/v1/people"),
            ("GET", "/api/v1/ledger"),
            ("POST", "/api/v1/tables/far/plan"),
            ("POST", "/api/v1/tables/far/questions"),
            ("POST", "/api/v1/tables"),
            ("POST", "/api/v1/grants"),
            ("POST", "/mcp"),
            ("DELETE", f"/api/v1/tokens/{token}?reason=x"),
            ("GET", "/api/v1/questions/x"),
        ]:
            body = None if method != "POST" else {"sql": "SELECT COUNT(*) FROM far", "epsilon": "1"}
            reply = server.send(method, path, token, body)
            told.append(f"{dict(reply.headers)}\n{reply.body.decode()}")
        told.append(kept.getvalue())
    found = sorted({name for name, secret in secrets.items() for text in told if secret in text})
    return Evidence(not found, {"secrets": len(secrets), "texts": len(told), "found": found})
