"""The stage for attacks on single sign-on: a provider in this process, whose tokens may be anything."""

import base64
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from joserfc import jwt
from joserfc.jwk import RSAKey

from tacit.options import SignOn
from tacit.server import Provider

ISSUER, CLIENT = "https://login.example.org", "tacit"
NOW = 1_800_000_000.0


@dataclass
class MadeProvider:
    """A provider: its key, its answer to a code, and how often its keys were read."""

    key: Any = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one"}))
    issuer: str = ISSUER
    next_token: str = ""
    reads: int = 0

    def fetch(self, address: str, form: Mapping[str, str] | None) -> Any:
        """Answer as a provider does."""
        if address.endswith("/.well-known/openid-configuration"):
            names = {"authorization_endpoint": "auth", "token_endpoint": "token", "jwks_uri": "keys"}
            return {"issuer": self.issuer, **{name: f"{ISSUER}/{path}" for name, path in names.items()}}
        if address.endswith("/keys"):
            self.reads += 1
            return {"keys": [self.key.as_dict(private=False)]}
        return {"id_token": self.next_token} if form is not None else {}

    def claims(self, **changed: Any) -> dict[str, Any]:
        """Return the claims of a right token, with some changed; None leaves one out."""
        times = {"iat": int(NOW) - 10, "exp": int(NOW) + 600}
        usual = {"iss": ISSUER, "aud": CLIENT, "email": "ada", "email_verified": True, **times}
        return {name: value for name, value in {**usual, **changed}.items() if value is not None}

    def token(self, key: Any = None, algorithm: str = "RS256", **changed: Any) -> str:
        """Return a signed token."""
        signer = self.key if key is None else key
        header = {"alg": algorithm, "kid": self.key.kid}
        return str(jwt.encode(header, self.claims(**changed), signer, algorithms=[algorithm]))

    def unsigned(self) -> str:
        """Return a token of the algorithm none."""
        head = base64.urlsafe_b64encode(b'{"alg":"none","kid":"one"}').decode().rstrip("=")
        return f"{head}.{self.token().split('.')[1]}."

    def by_public_key(self) -> str:
        """Return a token whose shared secret is the text of the public key."""
        head = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"one"}').decode().rstrip("=")
        said = f"{head}.{self.token().split('.')[1]}"
        signature = hmac.digest(self.key.as_pem(private=False), said.encode(), "sha256")
        return f"{said}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def provider_of(made: MadeProvider, people: Any, **options: Any) -> Provider:
    """Return the server's side of a made provider, at a fixed time."""
    declared = SignOn(ISSUER, CLIENT, **options)
    return Provider(declared, people, made.fetch, lambda: NOW)
