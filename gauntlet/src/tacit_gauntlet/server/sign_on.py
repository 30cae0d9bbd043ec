"""Single sign-on: forged, foreign and stale tokens of a provider, people who are not let in, and replays (W27, W28)."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

from joserfc.jwk import RSAKey

from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.server import Server, servers, token_of, with_pages
from tacit_gauntlet.stage.sign_on import NOW, MadeProvider, provider_of

HOST = {"host": "127.0.0.1", "accept": "text/html"}


def _with_provider(server: Server, made: MadeProvider, **options: Any) -> Server:
    server.desk.sign_on = provider_of(made, server.ledger, **options)
    return server


def _status(server: Server, token: str) -> int:
    return server.send("GET", "/api/v1/tables", token).status


@case(
    "W27",
    title="single sign-on: only the provider's own, timely token for this server names a person",
    feature="server",
)
def forged_tokens(_: Size) -> Evidence:
    """Send tokens that are unsigned, foreign, for others, stale or about people who are not let in."""
    made, stranger = MadeProvider(), RSAKey.generate_key(2048, {"kid": "one"})
    with servers() as (server,):
        token_of(server, "ada", tables=["t"])
        token_of(server, "eve")
        server.ledger.end_person("eve")
        people = len(server.ledger.people())
        _with_provider(server, made)
        right = {
            "a right token": made.token(),
            "for a list of one": made.token(aud=["tacit"]),
            "a minute's skew": made.token(exp=int(NOW) - 30),
        }
        wrong = {
            "no algorithm": made.unsigned(),
            "a secret that is the public key": made.by_public_key(),
            "another key": made.token(stranger),
            "a body that was changed": _changed(made),
            "another audience": made.token(aud="other"),
            "others too": made.token(aud=["tacit", "other"]),
            "no audience": made.token(aud=None),
            "over": made.token(exp=int(NOW) - 120),
            "without an end": made.token(exp=None),
            "not begun": made.token(nbf=int(NOW) + 600),
            "another issuer": made.token(iss="https://evil.example"),
            "no issuer": made.token(iss=None),
            "an unknown person": made.token(email="mallory"),
            "a person whose access has ended": made.token(email="eve"),
            "no name": made.token(email=None),
            "a list of names": made.token(email=["ada"]),
            "an address that is not verified": made.token(email_verified=False),
            "the same as a text": made.token(email_verified="false"),
            "the same as a number": made.token(email_verified=0),
        }
        through = [name for name, token in wrong.items() if _status(server, token) not in (401, 429)]
        refused = [name for name, token in right.items() if _status(server, token) != 200]
        others = server.send("GET", "/api/v1/people", right["a right token"]).status
        is_same = len(server.ledger.people()) == people
        server.ledger.end_person("ada")
        after = _status(server, right["a right token"])
    evidence = {"through": through, "refused": refused, "people page": others, "after the end": after}
    return Evidence(not through and not refused and others == 403 and after in (401, 429) and is_same, evidence)


def _changed(made: MadeProvider) -> str:
    head, _, signature = made.token().split(".")
    return f"{head}.{made.token(email='eve').split('.')[1]}.{signature}"


@case(
    "W28", title="single sign-on of the pages: a way back counts once, for the browser that began it", feature="server"
)
def replayed_ways_back(_: Size) -> Evidence:
    """Come back twice, with another browser's state or another nonce; end the visit, and the person's access."""
    made = MadeProvider()
    wrong: list[str] = []
    with servers(count=2) as plain:
        one, two = (_with_provider(with_pages(each), made) for each in plain)
        token_of(one, "ada", "curator")
        first, other = _begun(one), _begun(one)
        for name, cookie, state, nonce in (
            ("another browser's state", other[0], first[1], first[2]),
            ("no cookie", "x=y", first[1], first[2]),
            ("another nonce", other[0], other[1], first[2]),
        ):
            wrong += [name] if _back(one, made, cookie, state, nonce) is not None else []
        visit = _back(one, made, *first)
        wrong += ["a right way back was refused"] if visit is None else []
        wrong += ["a way back counted twice"] if _back(two, made, *first) is not None else []
        inside = [_at_home(each, visit or "") for each in (one, two)]
        wrong += [f"inside: {inside}"] if inside != [200, 200] else []
        mark = one.send("GET", "/", None, None, {**HOST, "cookie": visit or ""}).body.decode()
        mark = mark.partition('name="mark" value="')[2].partition('"')[0]
        again = _back(one, made, *_begun(one))
        form = {**HOST, "cookie": visit or "", "origin": "http://127.0.0.1", "content-length": str(len(mark) + 5)}
        form["content-type"] = "application/x-www-form-urlencoded"
        one.send("POST", "/sign-out", None, f"mark={mark}".encode(), form)
        wrong += (
            ["a visit outlived its sign-out"] if 200 in [_at_home(each, visit or "") for each in (one, two)] else []
        )
        one.ledger.end_person("ada")
        one.ledger.add_person("ada", role="curator")
        wrong += ["a visit outlived the person's access"] if _at_home(two, again or "") == 200 else []
    return Evidence(not wrong, {"wrong": wrong})


def _begun(server: Server) -> tuple[str, str, str]:
    """Return the cookie, the state and the nonce of a visitor who was sent to the provider."""
    reply = server.send("GET", "/sign-in/provider", None, None, HOST)
    asked = parse_qs(urlsplit(reply.headers["location"]).query)
    return reply.headers["set-cookie"].partition(";")[0], asked["state"][0], asked["nonce"][0]


def _back(server: Server, made: MadeProvider, cookie: str, state: str, nonce: str) -> str | None:
    """Come back with a code; return the visit's cookie, if there is one."""
    made.next_token = made.token(nonce=nonce)
    reply = server.send("GET", f"/sign-in/callback?code=c&state={state}", None, None, {**HOST, "cookie": cookie})
    given = reply.headers.get("set-cookie", "")
    return given.partition(";")[0] if reply.status == 200 and given.startswith("__Host-tacit=") else None


def _at_home(server: Server, cookie: str) -> int:
    return server.send("GET", "/", None, None, {**HOST, "cookie": cookie}).status
