"""Attacks on the pages: forms of other sites, cookies where tokens belong, and texts that would like to be markup."""

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote, urlencode

from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.server.doors import PAYLOADS, of_keys
from tacit_gauntlet.stage.server import Reply, Server, form_routes, servers, token_of, with_pages

HOST = "127.0.0.1"
OWN = f"http://{HOST}"
ELSEWHERE = (
    None,
    "null",
    "https://127.0.0.1",
    "http://127.0.0.1:81",
    "http://evil.example",
    "http://127.0.0.1.evil.example",
)
OWN_SCRIPT = "/static/tacit.js"
ADDRESSES = {"href", "src", "action", "formaction"}


class Page:
    """A visitor of a server's pages."""

    def __init__(self, server: Server, token: str) -> None:
        self.server = server
        reply = self.send("POST", "/sign-in", {"token": token}, origin=OWN)
        self.cookie = reply.headers["set-cookie"].partition(";")[0]
        page = self.send("GET", "/").body.decode()
        self.mark = page.partition('name="mark" value="')[2].partition('"')[0]

    def send(self, method: str, path: str, form: Any = None, *, origin: str | None = None) -> Reply:
        """Send what a browser would, with the cookie that it has."""
        headers = {"host": HOST, "accept": "text/html", "cookie": getattr(self, "cookie", "x=y")}
        headers |= {} if origin is None else {"origin": origin}
        body = None if form is None else urlencode(form, doseq=True).encode()
        if body is not None:
            headers |= {"content-type": "application/x-www-form-urlencoded", "content-length": str(len(body))}
        return self.server.send(method, path, None, body, headers)


@case(
    "W09",
    title="a form of another site, or of another visit, changes nothing; the API takes no cookie",
    feature="server",
)
def forged_forms(_: Size) -> Evidence:
    """Send every form of the pages from elsewhere, and without the mark of the visit; send the cookie to the API."""
    through: list[str] = []
    sent = 0
    with servers() as (plain,):
        server = with_pages(plain)
        ada, ben = (Page(server, token_of(server, name, "curator")) for name in ("ada", "ben"))
        before = server.ledger.length()
        asked = {"what": "count", "epsilon": "1", "key": "k1", "name": "eve", "reason": "x", "id": "0" * 16}
        for path in form_routes(server):
            place = path.replace("{table}", "t")
            tries = [(origin, ada.mark) for origin in ELSEWHERE] + [(OWN, mark) for mark in ("", ben.mark, "0" * 64)]
            for origin, mark in tries if path != "/sign-in" else tries[: len(ELSEWHERE)]:
                reply = ada.send("POST", place, {**asked, "mark": mark}, origin=origin)
                sent += 1
                if reply.status != 403:
                    through.append(f"{path} from {origin}: {reply.status}")
        for method, path in (
            ("GET", "/api/v1/tables"),
            ("POST", "/api/v1/tables/t/questions"),
            ("POST", "/api/v1/people"),
        ):
            sent += 1
            if ada.send(method, path).status != 401:
                through.append(f"{path} with a cookie")
        is_own = ada.send("POST", "/tables/t/ask", {**asked, "mark": ada.mark}, origin=OWN).status == 303
        entries = [
            entry for entry in server.ledger.entries(before + 1) if entry.kind not in ("charge", "answer", "token")
        ]
    return Evidence(
        not through and is_own and not entries,
        {"sent": sent, "through": through[:5], "own form asks": is_own, "entries": len(entries)},
    )


@case("W21", title="a visit that was signed out is over, on every replica and after a restart", feature="server")
def signed_out(_: Size) -> Evidence:
    """Sign two visits in, sign one of them out on one replica, and show both cookies to another replica."""
    with servers(count=2) as plain:
        one, two = map(with_pages, plain)
        token = token_of(one, "ada", "curator")
        ended, kept = Page(one, token), Page(one, token)
        before = [_at(server, ended.cookie) for server in (one, two)]
        left = ended.send("POST", "/sign-out", {"mark": ended.mark}, origin=OWN).status
        shown = [ended.cookie, ended.cookie + "=", ended.cookie[:-1] + chr(ord(ended.cookie[-1]) ^ 1)]
        after = [_at(server, cookie) for server in (one, two, with_pages(two)) for cookie in shown]
        others = [_at(server, kept.cookie) for server in (one, two)]
    passed = before == others == [200, 200] and left == 303 and set(after) == {303}
    return Evidence(passed, {"before": before, "after": after, "another visit of the same token": others})


def _at(server: Server, cookie: str) -> int:
    return server.send("GET", "/people", None, None, {"accept": "text/html", "cookie": cookie}).status


FOREIGN = (
    "evil.example",
    "evil.example:8765",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "evil.example#127.0.0.1",
    "127.0.0.1@evil.example",
    "[::1].evil.example",
    "192.168.1.1",
    "0.0.0.0",
    "127.0.0.1, evil.example",
    "",
)
OWN_HOSTS = ("127.0.0.1", "127.0.0.1:8765", "localhost", "LOCALHOST:1", "localhost.", "[::1]", "[::1]:8765")


@case("W22", title="a request to another host name is answered by nothing but its refusal", feature="server")
def other_hosts(_: Size) -> Evidence:
    """Send what a page sends whose site's name was made to point at this machine; then to the server's own names."""
    through = []
    with servers() as (plain,):
        server = with_pages(plain)
        token = token_of(server, "ada", "curator")
        for host in (*FOREIGN, *OWN_HOSTS):
            given = {"host": host, "origin": f"http://{host}", "accept": "text/html"}
            form = urlencode({"token": token}).encode()
            typed = {"content-type": "application/x-www-form-urlencoded", "content-length": str(len(form))}
            replies = [
                server.send("GET", "/sign-in", None, None, given),
                server.send("POST", "/sign-in", None, form, {**given, **typed}),
                server.send("GET", "/api/v1/tables", token, None, given),
            ]
            wanted = 200 if host in OWN_HOSTS else 421
            through += [f"{host}: {each.status}" for each in replies if each.status != wanted]
            through += [f"{host}: a cookie" for each in replies if wanted == 421 and "set-cookie" in each.headers]
        probes = [server.send("GET", path, None, None, {"host": "10.1.2.3"}).status for path in ("/health", "/ready")]
    passed = not through and probes == [200, 200]
    return Evidence(passed, {"hosts": len(FOREIGN), "own": len(OWN_HOSTS), "wrong": through[:5], "probes": probes})


class _Markup(HTMLParser):
    """Collects what a browser would run or follow."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag that our pages never have, a handler, and an address that runs."""
        given = dict(attrs)
        if tag in ("iframe", "object", "embed", "foreignobject", "svg", "style", "base", "animate"):
            self.found.append(f"<{tag}>")
        if tag == "script" and given.get("src") != OWN_SCRIPT:
            self.found.append("a script")
        for name, value in attrs:
            if name.startswith("on") or (
                name in ADDRESSES and (value or "").strip().lower().startswith(("javascript:", "data:"))
            ):
                self.found.append(f"{tag} {name}")


@case("W03p", title="keys, names, questions and refusals are text on every page, and run on none", feature="server")
def markup_on_pages(_: Size) -> Evidence:
    """Put forty payloads into every field and every key, and read the pages as a browser does."""
    wrong: list[str] = []
    count = 0
    with servers() as (plain,):
        server = with_pages(plain)
        token = token_of(server, "ada", "curator")
        of_keys(server, token)
        visitor = Page(server, token)
        for path, page in _pages(visitor):
            count += 1
            markup = _Markup()
            markup.feed(page)
            wrong += [f"{path}: {each}" for each in markup.found]
    return Evidence(not wrong, {"pages": count, "wrong": wrong[:5]})


def _pages(visitor: Page) -> Iterator[tuple[str, str]]:
    """Return every page on which a payload stands."""

    def got(path: str) -> tuple[str, str]:
        return path[:40], visitor.send("GET", path).body.decode()

    def posted(path: str, form: Any) -> Reply:
        return visitor.send("POST", path, {"mark": visitor.mark, "reason": "x", **form}, origin=OWN)

    for payload in PAYLOADS:
        given = quote(payload, safe="")
        yield got(f"/tables/t?mode=sql&sql={given}&epsilon={given}")
        yield got(f"/tables/t?where={given}&by={given}&error={given}&what=mean&of={given}")
        yield got(f"/tables/{given}")
        yield "people", posted("/people", {"name": payload, "until": payload}).body.decode()
        yield "declare", posted("/declare", {"source": payload, "name": payload}).body.decode()
        yield "grants", posted("/tables/t/grants", {"epsilon": payload, "analyst": payload}).body.decode()
    asked = posted("/tables/k/ask", {"what": "count", "by": "g", "epsilon": "9", "key": "k1"})
    yield got(asked.headers["location"])
    number = got(asked.headers["location"])[1].partition('href="/history/')[2].partition("/")[0]
    for payload in PAYLOADS[:4]:
        yield "request", posted("/tables/t/request", {"epsilon": "1", "reason": payload}).body.decode()
        yield "saved", posted("/saved", {"answer": number, "title": payload}).body.decode()
        yield "link", posted(f"/history/{number}/share", {"days": "7", "reason": payload}).body.decode()
    for path in ("/", "/people", "/ledger", "/history", "/saved"):
        yield got(path)


@case(
    "W29",
    title="a link shows one answer, to its very letters, until it or its maker is ended",
    feature="server",
)
def links_to_answers(_: Size) -> Evidence:
    """Make two links, and try parts of one in the other; then end one, and the access of their maker."""
    wrong: list[str] = []
    with servers() as (plain,):
        server = with_pages(plain)
        ada = Page(server, token_of(server, "ada", "curator"))
        stranger = Stranger(server)
        numbers = [_answered(ada, f"k{at}", f"0.{at + 4}") for at in range(2)]
        links = [_link(ada, number) for number in numbers]
        texts = [stranger.at(link) for link in links]
        wrong += [f"answer {number} is not shown" for number, each in zip(numbers, texts, strict=True) if not each]
        wrong += ["the address of another answer"] if f"/history/{numbers[1]}" in texts[0] else []
        tried = [*_near(*links)]
        wrong += [f"{each} shows an answer" for each in tried if stranger.at(each)]
        closed = ("/", "/history", f"/history/{numbers[0]}", f"/history/{numbers[0]}/answer.csv", "/saved", "/ledger")
        wrong += [f"a stranger sees {each}" for each in closed if stranger.send(each).status == 200]
        form = {"mark": ada.mark, "id": links[0][:16], "reason": "x"}
        ended = ada.send("POST", "/notes/end", form, origin=OWN).status
        parts = ("", "/answer.svg", "/answer.csv")
        wrong += [f"an ended link shows '{part}'" for part in parts if stranger.at(links[0] + part)]
        goes_on = bool(stranger.at(links[1] + "/answer.svg"))
        server.ledger.end_person("ada", reason="x")
        wrong += ["a link outlives its maker's access"] if stranger.at(links[1]) else []
        bodies = [entry.body for entry in server.ledger.entries()]
        kept = [link for link in links if any(link[17:] in body for body in bodies)]
    passed = not wrong and ended == 200 and goes_on and not kept
    return Evidence(passed, {"tried": len(tried), "wrong": wrong[:5], "secrets in the ledger": len(kept)})


def _near(link: str, other: str) -> Iterator[str]:
    """Yield links that are wrong in one part, or in one letter."""
    id, secret = link[:16], link[17:]
    yield from (f"{id}_{other[17:]}", f"{other[:16]}_{secret}", f"{id}_", id, secret, link.upper(), link + "A")
    for at in (0, 20, 40):
        yield f"{id}_{secret[:at]}{'B' if secret[at] == 'A' else 'A'}{secret[at + 1 :]}"


class Stranger:
    """A visitor without a sign-in."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def send(self, path: str) -> Reply:
        """Open a page without a cookie."""
        return self.server.send("GET", path, None, None, {"host": HOST, "accept": "text/html"})

    def at(self, link: str) -> str:
        """Return the page of a link; empty if it shows none."""
        reply = self.send(f"/shared/{link}")
        return reply.body.decode() if reply.status == 200 else ""


def _answered(visitor: Page, key: str, epsilon: str) -> int:
    asked = {"mark": visitor.mark, "what": "count", "epsilon": epsilon, "key": key}
    where = visitor.send("POST", "/tables/t/ask", asked, origin=OWN).headers["location"]
    page = visitor.send("GET", where).body.decode()
    return int(page.partition('href="/history/')[2].partition("/")[0])


def _link(visitor: Page, number: int) -> str:
    form = {"mark": visitor.mark, "days": "7", "reason": "x"}
    page = visitor.send("POST", f"/history/{number}/share", form, origin=OWN).body.decode()
    return page.partition("/shared/")[2].partition("<")[0]
