"""Published bugs of single sign-on, planted in the server, that the cases must kill."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import original, planted


@mutant("a token whose signature is not looked at", killed_by="W27", published="alg none (CVE-2015-9235)")
@contextmanager
def unsigned() -> Iterator[None]:
    """Believe the body of a token."""

    def claims(token: str, _keys: Any) -> Any:
        body = token.split(".")[1]
        return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))

    with planted("claims of a signed token", claims):
        yield


@mutant("a token made for another service", killed_by="W27", published="tokens taken without their audience")
@contextmanager
def any_audience() -> Iterator[None]:
    """Compare no audience."""
    with planted("audience of a token", lambda _claims, _audience: None):
        yield


@mutant("a token that never ends", killed_by="W27", published="tokens taken after their expiry")
@contextmanager
def no_end() -> Iterator[None]:
    """Compare no time."""
    with planted("time of a token", lambda _claims, _now: None):
        yield


@mutant("a token of any issuer", killed_by="W27", published="issuer confusion between providers")
@contextmanager
def any_issuer() -> Iterator[None]:
    """Compare no issuer."""
    with planted("issuer of a token", lambda _claims, _issuer: None):
        yield


@mutant("a person who comes in by a claim", killed_by="W27", published="accounts made by the first sign-on")
@contextmanager
def anybody() -> Iterator[None]:
    """Let every person in whom the provider names."""
    usual = original("person of a claim")

    def named(self: Any, name: str) -> Any:
        try:
            return usual(self, name)
        except Exception:
            return self._people.add_person(name, role="analyst", reason="a claim")

    with planted("person of a claim", named):
        yield


@mutant("a state that is not compared", killed_by="W28", published="login forgery through OAuth callbacks")
@contextmanager
def any_state() -> Iterator[None]:
    """Take any state."""
    with planted("state of a way back", lambda _given, _kept: True):
        yield


@mutant("a way back that counts again", killed_by="W28", published="replayed authorization responses")
@contextmanager
def many_times() -> Iterator[None]:
    """Use a state as often as it comes."""
    with planted("Visits.once", lambda _self, _state, _until, _ledger: True):
        yield


@mutant("a nonce that is not compared", killed_by="W28", published="replayed ID tokens")
@contextmanager
def any_nonce() -> Iterator[None]:
    """Compare no nonce."""
    with planted("nonce of a token", lambda _claims, _nonce: None):
        yield
