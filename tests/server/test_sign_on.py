"""Single sign-on: a real provider from npm on loopback, and what the server does with keys that change."""

import html
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx
import pytest
from joserfc.jwk import RSAKey

from tacit.catalog_file import catalog_from
from tacit.cli.sign_in import device_token
from tacit.errors import InvalidParameter
from tacit.ledger import Person
from tacit.options import SignOn
from tacit.server import Provider, Visits
from tacit.server.problems import Problem
from tacit.server.sign_on import fetched, require_address
from tacit_gauntlet.stage.sign_on import NOW, MadeProvider, provider_of
from tests.server.conftest import House
from tests.server.test_pages import HERE, Browser

PACKAGE = "oidc-provider@9"
PROGRAM = Path(__file__).with_name("oidc_provider.mjs")


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a provider that was started for these tests."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not here, so no provider was asked: Debian has it as nodejs and npm")
    folder = tmp_path_factory.mktemp("provider")
    words = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", PACKAGE]
    made = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert made.returncode == 0, f"npm cannot fetch {PACKAGE} from its registry:\n{made.stderr}"
    shutil.copy(PROGRAM, folder)
    with subprocess.Popen(
        ["node", PROGRAM.name], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


def signed_in(client: httpx.Client, address: str, name: str) -> httpx.Response:
    """Open an address of the provider and fill in its forms until it sends us back, or has no more of them."""
    reply = client.get(address)
    for _ in range(20):
        if reply.is_redirect:
            address = urljoin(str(reply.url), reply.headers["location"])
            if address.startswith("https://test"):
                return reply
            reply = client.get(address)
            continue
        form = re.search(r'<form[^>]*action="([^"]+)"', reply.text)
        if form is None:
            return reply
        fields = dict(re.findall(r'<input[^>]*name="(\w+)"[^>]*value="([^"]*)"', reply.text))
        fields |= {"login": name, "password": "x"} if 'name="login"' in reply.text else {"confirm": "yes"}
        reply = client.post(urljoin(str(reply.url), html.unescape(form[1])), data=fields)
    raise AssertionError("the provider goes round in circles")


def with_provider(house: House, issuer: str, **options: Any) -> House:
    house.desk.ledger.add_person("ada", role="curator")
    house.desk.sign_on = Provider(SignOn(issuer, "tacit", **options), house.desk.ledger)
    return house


@pytest.mark.far
def test_a_person_signs_in_at_a_provider_asks_and_signs_out(house: House, issuer: str) -> None:
    browser = Browser(with_provider(house, issuer), Visits(b"k" * 32))
    assert "organisation's account" in html.unescape(browser.send("GET", "/sign-in").text)
    sent = browser.send("GET", "/sign-in/provider")
    with httpx.Client() as client:
        back = signed_in(client, sent.headers["location"], "ada")
    way = back.headers["location"].removeprefix("https://test")
    entered = browser.send("GET", way)
    assert entered.status_code == 200
    assert "You are signed in" in entered.text
    home = browser.send("GET", "/")
    assert home.status_code == 200
    assert "ada" in home.text
    assert "visits" in home.text
    assert browser.send("GET", way).status_code == 401  # a way back counts once
    kept = dict(browser.cookies)
    browser.send("POST", "/sign-out", data={"mark": browser.form("/")["mark"]}, headers=HERE)
    browser.cookies = kept
    assert browser.send("GET", "/").status_code == 303


@pytest.mark.far
def test_a_person_who_is_not_let_in_stays_out_unless_the_curator_says_so(house: House, issuer: str) -> None:
    for options, status in (({}, 401), ({"new_people": "analyst"}, 200)):
        browser = Browser(with_provider(house, issuer, **options), Visits(b"k" * 32))
        with httpx.Client() as client:
            back = signed_in(client, browser.send("GET", "/sign-in/provider").headers["location"], "mallory")
        assert browser.send("GET", back.headers["location"].removeprefix("https://test")).status_code == status
    assert house.desk.ledger.person("mallory") is not None


@pytest.mark.far
def test_the_command_line_signs_in_by_a_code_and_asks_with_the_token(house: House, issuer: str) -> None:
    with_provider(house, issuer)
    about = house.send("GET", "/api/v1/sign-on", token=None).json()
    said, done = list[str](), threading.Event()

    def tell(words: str) -> None:
        said.append(words)
        address, code = re.findall(r"open (\S+) in a browser, and enter the code (\S+)", words)[0]
        with httpx.Client() as client:
            signed_in(client, f"{address}?user_code={code}", "ada")
        done.set()

    token = device_token(about, fetched, tell, lambda _: None)
    assert done.is_set()
    listed = house.send("GET", "/api/v1/tables", token)
    assert listed.status_code == 200
    assert [each["name"] for each in listed.json()["tables"]] == ["visits", "pay"]
    head, body, _ = token.split(".")
    assert house.send("GET", "/api/v1/tables", f"{head}.{body}.AAAA").status_code == 401


class People:
    """A ledger with one person."""

    def admitted(self, name: str) -> Person | None:
        return Person("ada", "analyst") if name == "ada" else None

    def add_person(self, name: str, *, role: str, reason: str) -> Person:
        raise InvalidParameter("this person has left")


def test_new_keys_of_a_provider_are_read_once_a_minute_at_most() -> None:
    made, now = MadeProvider(), [NOW]
    provider = Provider(SignOn("https://login.example.org", "tacit"), People(), made.fetch, lambda: now[0])
    assert provider.person(made.token()).name == "ada"
    made.key = RSAKey.generate_key(2048, {"kid": "two"})
    for _ in range(5):
        with pytest.raises(Problem):
            provider.person(made.token())
    assert made.reads == 1
    now[0] += 61
    assert provider.person(made.token()).name == "ada"
    assert made.reads == 2


def test_a_provider_that_is_another_or_away_lets_nobody_in() -> None:
    made = MadeProvider(issuer="https://evil.example")
    with pytest.raises(Problem) as other:
        provider_of(made, People()).person(made.token())
    assert other.value.status == 503
    with pytest.raises(Problem) as away:
        Provider(SignOn("http://127.0.0.1:1", "tacit"), People()).person(made.token())
    assert away.value.status == 503
    for address in ("http://login.example.org", "ftp://127.0.0.1", "file:///etc/passwd"):
        with pytest.raises(ValueError, match="https"):
            require_address(address)


def test_a_person_who_was_ended_does_not_come_in_anew() -> None:
    made = MadeProvider()
    with pytest.raises(Problem):
        provider_of(made, People(), new_people="analyst").person(made.token(email="mallory"))


def test_a_code_that_nobody_uses_ends_in_words() -> None:
    replies = {
        "configuration": {"device_authorization_endpoint": "d", "token_endpoint": "t"},
        "d": {"verification_uri": "v", "user_code": "c", "device_code": "x", "expires_in": 12, "interval": 5},
        "t": {"error": "authorization_pending"},
    }
    waited: list[float] = []
    about = {"issuer": "https://login.example.org", "client_id": "tacit", "scope": "openid"}
    with pytest.raises(InvalidParameter, match="not used in time"):
        device_token(about, lambda where, _: replies[where.rpartition("-")[2]], lambda _: None, waited.append)
    assert waited == [5, 5, 5]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('client_id = "x"', "no issuer"),
        ('issuer = "https://x"', "no client_id"),
        ('issuer = "https://x"\nclient_id = "x"\nnew_people = "curator"', "analyst or auditor"),
        ('issuer = "https://x"\nclient_id = "x"\nsecret = "x"', "'secret' is not an option"),
    ],
)
def test_a_sign_on_that_is_declared_wrongly_is_refused_with_its_line(lines: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match=words):
        catalog_from(tmp_path / "tacit.toml", f"[sign_on]\n{lines}\n", may_be_empty=True)


def test_a_server_without_a_provider_has_no_such_page(house: House) -> None:
    assert house.send("GET", "/api/v1/sign-on", token=None).status_code == 404
    browser = Browser(house, Visits(b"k" * 32))
    assert browser.send("GET", "/sign-in/provider").status_code == 404
    assert "/sign-in/provider" not in browser.send("GET", "/sign-in").text
