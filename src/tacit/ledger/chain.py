"""The chain: one way to write a record as bytes, the hash that ties it to the one before, and the signing key.

Every entry's hash covers the hash before it, so the last hash stands for the whole history; it, and only it, is
signed (Ed25519). The key is a file that only its owner may read, made on first use.
"""

import hashlib
import hmac
import json
import os
import secrets
import stat
import uuid
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from tacit.errors import LedgerError
from tacit.system import PLAIN, sync_folder

# The first entry does not follow another; its hash covers this text instead.
BEGINNING = "0" * 64

_ID_LETTERS = frozenset("0123456789abcdef")
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def is_whole_text(text: str) -> bool:
    """Whether a text is free of half characters, which cannot be written."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def canonical(value: object) -> str:
    """Return the one text of a JSON value: sorted keys, no spaces, ASCII; NaN and infinity are refused.

    >>> canonical({"b": 1, "a": "ε"})
    '{"a":"\\\\u03b5","b":1}'
    """
    return _ENCODER.encode(value)


def digest(*parts: object) -> str:
    """Return a hash of JSON values that no other values have."""
    return hashlib.sha256(canonical(parts).encode()).hexdigest()


def link(previous: str, body: str) -> str:
    """Return the hash of an entry with the text `body` that follows the entry hashed `previous`."""
    return hashlib.sha256(f"{previous}\n{body}".encode()).hexdigest()


def fresh_id() -> str:
    """Return a random name of 122 bits, unique in practice."""
    return uuid.uuid4().hex


def fresh_secret() -> tuple[str, str]:
    """Return a new token's id and its secret, which is the id and 256 random bits."""
    id = secrets.token_hex(8)
    return id, f"tacit_{id}_{secrets.token_urlsafe(32)}"


def is_fresh_id(text: object) -> bool:
    """Return whether a text could be from `fresh_id`; a text from outside may be a path, or anything else."""
    return isinstance(text, str) and len(text) == 32 and set(text) <= _ID_LETTERS


class SigningKey:
    """The curator's key: signs the head of a ledger and its certificates."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public: str = private.public_key().public_bytes_raw().hex()

    def __repr__(self) -> str:
        return f"SigningKey({fingerprint(self.public)})"

    def sign(self, message: Mapping[str, Any]) -> str:
        return self._private.sign(canonical(message).encode()).hex()

    def secret_for(self, purpose: str) -> bytes:
        """Return 32 bytes for another purpose, which do not reveal the key; every holder of the key can derive them."""
        return hmac.digest(self._private.private_bytes_raw(), purpose.encode(), "sha256")

    def text(self) -> bytes:
        """Return the key itself, as PEM, to be written to a private file."""
        return self._private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )


def new_key() -> SigningKey:
    """Return a fresh key that is not written to a file."""
    return SigningKey(Ed25519PrivateKey.generate())


def load_key(path: Path) -> SigningKey | None:
    """Return the key in the file, or None if the file is missing; a file that others may read is refused."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise LedgerError(f"the signing key {path} is not a plain file\nhint: restore it from a backup")
        mode, text = stat.S_IMODE(found.st_mode), path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LedgerError(
            f"the signing key {path} cannot be read ({error.strerror})\nhint: run as its owner"
        ) from error
    if mode & 0o077:
        raise LedgerError(f"the signing key {path} may be read by others (mode {mode:o})\nhint: chmod 600 {path}")
    return key_from(text, str(path))


def key_from(text: bytes, where: str) -> SigningKey:
    """Return the key that a PEM text is; an error names the source, and never quotes the text."""
    try:
        private = serialization.load_pem_private_key(text, password=None)
    except (ValueError, TypeError):
        raise LedgerError(f"{where} is not a signing key\nhint: restore it from a backup") from None
    if not isinstance(private, Ed25519PrivateKey):
        raise LedgerError(f"{where} is not an Ed25519 key\nhint: restore it from a backup")
    return SigningKey(private)


def load_or_make_key(path: Path) -> SigningKey:
    """Return the key in the file, or make it now; two processes that race here get the same key."""
    existing = load_key(path)
    if existing is not None:
        return existing
    text = new_key().text()
    draft = path.with_name(f".{path.name}.{fresh_id()}")
    write_privately(draft, text)
    try:
        path.hardlink_to(draft)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    sync_folder(path.parent)
    made = load_key(path)
    if made is None:
        raise LedgerError(f"the signing key {path} disappeared while it was made\nhint: try again")
    return made


def verify_signature(message: Mapping[str, Any], *, signature: str, public: str) -> bool:
    """Return whether the holder of the key `public` signed the record."""
    try:
        _public_key(public).verify(bytes.fromhex(signature), canonical(message).encode())
    except (InvalidSignature, ValueError):
        return False
    return True


@lru_cache(maxsize=64)
def _public_key(public: str) -> Ed25519PublicKey:
    return Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))


def fingerprint(public: str) -> str:
    """Return a short name of a public key, for people to compare.

    >>> fingerprint("00" * 32)
    '6668-7aad-f862-bd77'
    """
    name = hashlib.sha256(bytes.fromhex(public)).hexdigest()[:16]
    return "-".join(name[place : place + 4] for place in range(0, 16, 4))


def write_privately(path: Path, text: bytes) -> None:
    """Write a new file that only its owner may read, and have it on the disk on return."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | PLAIN, 0o600)
    try:
        os.write(descriptor, text)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
