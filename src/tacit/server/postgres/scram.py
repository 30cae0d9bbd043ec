"""SCRAM-SHA-256 (RFC 5802 and 7677) as a server: a client proves that it has a token, and the token is never sent.

The proof is good for one exchange, since the server's own nonce is in it. The server proves in return that it knows the
token. All tokens of a person have one salt, so that the token need not be named: the proof is tried on each of them.
"""

import base64
import hashlib
import hmac
from binascii import Error
from collections.abc import Mapping
from dataclasses import dataclass

from tacit.noise import fresh_bytes
from tacit.server.postgres.messages import Broken, decoded

MECHANISM = "SCRAM-SHA-256"
NONCE_BYTES = 18
NONCE_CHARACTERS_MAX = 256
PROOF_BYTES = 32
_WITHOUT_BINDING = {"n": "biws", "y": "eSws"}  # how a client without channel binding begins, and says so again


@dataclass(frozen=True)
class ScramExchange:
    """The first half of an exchange: the client's first message without its head, the server's, and the head."""

    client_first: str
    server_first: str
    head: str

    @classmethod
    def begun(cls, sent: bytes, salt: bytes, rounds: int) -> "ScramExchange":
        """Read a client's first message, and make the server's."""
        parts = decoded(sent).split(",")
        if len(parts) < 4 or parts[0] not in _WITHOUT_BINDING or not parts[3].startswith("r="):
            raise Broken
        nonce = parts[3].removeprefix("r=")
        if not 8 <= len(nonce) <= NONCE_CHARACTERS_MAX or not nonce.isascii() or not nonce.isprintable():
            raise Broken
        own = base64.b64encode(server_nonce()).decode()
        answer = f"r={nonce}{own},s={base64.b64encode(salt).decode()},i={rounds}"
        return cls(",".join(parts[2:]), answer, _WITHOUT_BINDING[parts[0]])

    def finished(self, sent: bytes, keys: Mapping[str, tuple[bytes, bytes]]) -> tuple[str, bytes] | None:
        """Return the id of the token that a client's last message proves, and the server's last; None for none."""
        written = decoded(sent)
        plain, _, proof = written.rpartition(",p=")
        nonce = self.server_first.partition(",")[0]
        if plain != f"c={self.head},{nonce}":
            return None
        try:
            given = base64.b64decode(proof, validate=True)
        except (Error, ValueError):
            return None
        if len(given) != PROOF_BYTES:
            return None
        said = f"{self.client_first},{self.server_first},{plain}".encode()
        found = None
        for id, (stored, server) in keys.items():
            signature = hmac.digest(stored, said, "sha256")
            client = bytes(a ^ b for a, b in zip(given, signature, strict=True))
            if hmac.compare_digest(hashlib.sha256(client).digest(), stored):
                found = id, b"v=" + base64.b64encode(hmac.digest(server, said, "sha256"))
        return found


def server_nonce() -> bytes:
    """Return random bytes, by which an exchange differs from all others."""
    return fresh_bytes(NONCE_BYTES)
