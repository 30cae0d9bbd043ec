"""Single sign-on by OpenID Connect: a provider's signed token names a person who is in the ledger.

The provider is the one that the catalog names. Its token counts only with its signature, for this server, in its time,
and by the algorithms listed here. The claim is compared with the names in the ledger, which is read anew for every
request: an end of access holds at once, and nobody comes in whom the curator has not let in.
"""

import base64
import hashlib
import json
import ssl
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit

from tacit.errors import InvalidParameter
from tacit.files import read_small
from tacit.ledger import Person
from tacit.noise import fresh_bytes
from tacit.options import SignOn
from tacit.remote import is_this_machine
from tacit.server.problems import Problem, unauthorised

ALGORITHMS = ["RS256", "PS256", "ES256", "ES384", "RS384", "RS512", "EdDSA", "Ed25519"]  # signatures; no shared secrets
TOKEN_CHARACTERS_MAX = 16_000
NAME_CHARACTERS_MAX = 200
SKEW_SECONDS = 60  # between the provider's clock and ours
BYTES_MAX = 1 << 20
WAIT_SECONDS = 10.0
KEYS_SECONDS = 3600.0  # after which the provider's addresses and keys are read again
NEW_KEYS_SECONDS = 60.0  # a token with an unknown key has them read again, at most so often
STARTED_SECONDS = 600  # to sign in at the provider
SCOPE = "openid email profile"


class AdmitsPeople(Protocol):
    """The part of the ledger that a claim is compared with."""

    def admitted(self, name: str) -> Person | None:
        """Return the person of a name if they have access now."""

    def add_person(self, name: str, *, role: str, reason: str) -> Person:
        """Let a person in."""


Fetch = Callable[[str, Mapping[str, str] | None], Any]


class Provider:
    """A provider: its addresses, its keys, and the claims of its tokens."""

    def __init__(
        self,
        declared: SignOn,
        people: AdmitsPeople,
        fetch: "Fetch | None" = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.declared = declared
        self._people = people
        self._fetch = fetched if fetch is None else fetch
        self._now = now
        self._lock = threading.Lock()
        self._about: dict[str, Any] = {}
        self._keys: Any = None
        self._read = float("-inf")

    def public(self) -> dict[str, str]:
        """Return the settings by which a program signs a person in."""
        return {"issuer": self.declared.issuer, "client_id": self.declared.client_id, "scope": SCOPE}

    # --- a token of the provider's ---

    def person(self, token: str) -> Person:
        """Return the person of a bearer token, read from the ledger now."""
        return self._admitted(self.claims(token, self.declared.audience or self.declared.client_id))

    def claims(self, token: str, audience: str) -> Mapping[str, Any]:
        """Return the claims of a token if its signature, issuer, audience and time are right; refuse it otherwise."""
        if len(token) > TOKEN_CHARACTERS_MAX or not token.isascii():
            raise unauthorised()
        claims = self._verified(token)
        require_issuer(claims, self.declared.issuer)
        require_audience(claims, audience)
        require_time(claims, self._now())
        return claims

    def _verified(self, token: str) -> Mapping[str, Any]:
        from joserfc.errors import JoseError

        try:
            return signed_claims(token, self._known_keys())
        except (JoseError, ValueError, KeyError, TypeError):
            if not self._has_new_keys():
                raise unauthorised() from None
        try:
            return signed_claims(token, self._known_keys())
        except (JoseError, ValueError, KeyError, TypeError):
            raise unauthorised() from None

    def _admitted(self, claims: Mapping[str, Any]) -> Person:
        name = claims.get(self.declared.claim)
        is_text = isinstance(name, str) and 0 < len(name) <= NAME_CHARACTERS_MAX and name.isprintable()
        verified = claims.get("email_verified", True)  # some providers write it as a text, and some do not write it
        if not is_text or (self.declared.claim == "email" and verified not in (True, "true")):
            raise unauthorised()
        return self.named(str(name))

    def named(self, name: str) -> Person:
        """Return the person of a claimed name; one who is not in the ledger comes in only if the curator says so."""
        person = self._people.admitted(name)
        if person is not None:
            return person
        if self.declared.new_people is None:
            raise unauthorised()
        try:  # refused for a person whose access has ended: their entry stands
            return self._people.add_person(name, role=self.declared.new_people, reason="by single sign-on")
        except InvalidParameter:
            raise unauthorised() from None

    # --- its addresses and keys ---

    def about(self) -> Mapping[str, Any]:
        """Return the provider's addresses, as it publishes them."""
        with self._lock:
            if self._now() - self._read > KEYS_SECONDS:
                self._read_again()
            return self._about

    def _known_keys(self) -> Any:
        self.about()
        return self._keys

    def _has_new_keys(self) -> bool:
        """Read the keys again, for a token that none of them has signed; not often."""
        with self._lock:
            if self._now() - self._read < NEW_KEYS_SECONDS:
                return False
            self._read_again()
            return True

    def _read_again(self) -> None:
        from joserfc.jwk import KeySet

        issuer = self.declared.issuer.rstrip("/")
        try:
            about = self._fetch(f"{issuer}/.well-known/openid-configuration", None)
            require_same_issuer(about, self.declared.issuer)
            found = self._fetch(str(about["jwks_uri"]), None)
            self._keys = KeySet.import_key_set({"keys": [each for each in found["keys"] if each.get("kty") != "oct"]})
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise _unreachable() from None
        self._about, self._read = about, self._now()

    # --- the code flow of the pages ---

    def begun(self, redirect: str) -> tuple[str, dict[str, Any]]:
        """Return the address at the provider to sign in at, and the values by which the way back is checked."""
        started = {name: fresh_bytes(32).hex() for name in ("state", "nonce", "verifier")}
        challenge = base64.urlsafe_b64encode(hashlib.sha256(started["verifier"].encode()).digest()).decode().rstrip("=")
        asked = {
            "response_type": "code",
            "client_id": self.declared.client_id,
            "redirect_uri": redirect,
            "scope": SCOPE,
            "state": started["state"],
            "nonce": started["nonce"],
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        address = str(self.about()["authorization_endpoint"])
        kept = {**started, "redirect": redirect, "until": self._now() + STARTED_SECONDS}
        return f"{address}{'&' if '?' in address else '?'}{urlencode(asked)}", kept

    def finished(self, code: str, kept: Mapping[str, Any]) -> Person:
        """Return the person who has signed in, by the code that the provider gave them."""
        if self._now() > kept["until"]:
            raise unauthorised()
        asked = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": kept["redirect"],
            "client_id": self.declared.client_id,
            "code_verifier": kept["verifier"],
            **({} if self.declared.secret_file is None else {"client_secret": _secret(self.declared.secret_file)}),
        }
        try:
            token = self._fetch(str(self.about()["token_endpoint"]), asked)["id_token"]
        except (OSError, ValueError, KeyError, TypeError):
            raise unauthorised() from None
        claims = self.claims(str(token), self.declared.client_id)
        require_nonce(claims, kept["nonce"])
        return self._admitted(claims)


def signed_claims(token: str, keys: Any) -> Mapping[str, Any]:
    """Return the claims of a token whose signature is by one of these keys and algorithms."""
    from joserfc import jwt

    return dict(jwt.decode(token, keys, algorithms=ALGORITHMS).claims)


def require_same_issuer(about: Mapping[str, Any], issuer: str) -> None:
    """Refuse a document that names another provider than the one that was asked."""
    if about.get("issuer") != issuer:
        raise ValueError("another issuer")


def require_issuer(claims: Mapping[str, Any], issuer: str) -> None:
    """Refuse a token of another provider."""
    if claims.get("iss") != issuer:
        raise unauthorised()


def require_audience(claims: Mapping[str, Any], audience: str) -> None:
    """Refuse a token that was made for others, or for others too."""
    given = claims.get("aud")
    if (given if isinstance(given, list) else [given]) != [audience]:
        raise unauthorised()


def require_time(claims: Mapping[str, Any], now: float) -> None:
    """Refuse a token without an end, after it, and before its beginning."""
    ends, begins = claims.get("exp"), [claims.get(name, now) for name in ("nbf", "iat")]
    if any(isinstance(each, bool) or not isinstance(each, int | float) for each in (ends, *begins)):
        raise unauthorised()
    if not now < float(str(ends)) + SKEW_SECONDS or any(float(str(each)) > now + SKEW_SECONDS for each in begins):
        raise unauthorised()


def require_nonce(claims: Mapping[str, Any], nonce: str) -> None:
    """Refuse a token that was made for another visit."""
    if claims.get("nonce") != nonce:
        raise unauthorised()


def is_signed_token(secret: str) -> bool:
    """Return whether a bearer token is a provider's, and not one of the ledger's."""
    return not secret.startswith("tacit_") and secret.count(".") == 2


def _secret(path: str) -> str:
    return read_small(Path(path), bytes_max=10_000).strip()


def _unreachable() -> Problem:
    return Problem("unavailable", 503, "the sign-on provider cannot be reached now", "try again later, or use a token")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follow no redirect: addresses come only from the provider's own document."""

    def redirect_request(self, *_: Any) -> None:
        return None


def require_address(address: str) -> None:
    """Refuse an address of a provider where others could read along."""
    parts = urlsplit(address)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_this_machine(parts.hostname or "")):
        raise ValueError("a provider is asked only by https")


def fetched(address: str, form: Mapping[str, str] | None) -> Any:
    """Return the JSON at an address of the provider's; a form is sent by POST. Redirects and proxies are not used."""
    require_address(address)
    body = None if form is None else urlencode(form).encode()
    request = urllib.request.Request(address, body, {"Accept": "application/json"})  # noqa: S310 - checked above
    handlers = [urllib.request.ProxyHandler({}), _NoRedirect()]
    handlers += [urllib.request.HTTPSHandler(context=ssl.create_default_context())]
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=WAIT_SECONDS) as reply:
            return json.loads(reply.read(BYTES_MAX))
    except HTTPError as error:
        with error:
            return json.loads(error.read(BYTES_MAX))
    except URLError as error:
        raise OSError(str(error.reason)) from None
