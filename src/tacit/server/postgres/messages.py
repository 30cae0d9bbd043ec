"""Messages of PostgreSQL's protocol, version 3: read from bytes with limits, and written as bytes.

Only shapes are here. A message that is too long, cut off or malformed raises `Broken`, and its connection ends.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tacit.options import BODY_BYTES_MAX

PROTOCOL_3 = 3 << 16
SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = (1234 << 16 | number for number in (5679, 5680, 5678))
STARTUP_BYTES_MAX = 10_000
MESSAGE_BYTES_MAX = BODY_BYTES_MAX + 1_024
PARAMETERS_MAX = 1_000
HEAD_BYTES = 5

Cell = bytes | None


class Broken(Exception):
    """The bytes of a client are not the protocol: its connection ends."""


@dataclass(frozen=True)
class Described:
    """A column of a result: its name, the number of its type, the type's size, and whether its cells are binary."""

    name: str
    type: int
    size: int = -1
    is_binary: bool = False


class Fields:
    """The fields of a message, read one after the other."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def take(self, count: int) -> bytes:
        if count < 0 or self._at + count > len(self._body):
            raise Broken
        self._at += count
        return self._body[self._at - count : self._at]

    def int16(self) -> int:
        return int(struct.unpack("!h", self.take(2))[0])

    def int32(self) -> int:
        return int(struct.unpack("!i", self.take(4))[0])

    def text(self) -> str:
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise Broken
        found = self._body[self._at : end]
        self._at = end + 1
        return decoded(found)

    def count(self) -> int:
        found = self.int16()
        if not 0 <= found <= PARAMETERS_MAX:
            raise Broken
        return found

    def cell(self) -> Cell:
        """Return a value with its length before it; a length of -1 is NULL."""
        size = self.int32()
        return None if size == -1 else self.take(size)

    def rest(self) -> bytes:
        return self.take(len(self._body) - self._at)

    def end(self) -> None:
        """Refuse a message with more bytes than its fields have."""
        if self._at != len(self._body):
            raise Broken


def decoded(text: bytes) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        raise Broken from None


def startup_options(fields: Fields) -> dict[str, str]:
    """Return the names and values of a startup message, after its version."""
    found: dict[str, str] = {}
    while name := fields.text():
        found[name] = fields.text()
    fields.end()
    return found


# ---- to a client -----------------------------------------------------------------------------------------------------


def message(kind: bytes, *parts: bytes) -> bytes:
    """Return a message: its kind, its length, its fields."""
    body = b"".join(parts)
    return kind + struct.pack("!i", len(body) + 4) + body


def text_field(written: str) -> bytes:
    """Return a text with the NUL that ends it; NULs inside are left out."""
    return written.replace("\0", "").encode("utf-8", "backslashreplace") + b"\0"


def authentication(kind: int, body: bytes = b"") -> bytes:
    """Return a step of signing in: mechanisms (10), the server's messages (11, 12), or that the client is in (0)."""
    return message(b"R", struct.pack("!i", kind), body)


def parameter_status(name: str, value: str) -> bytes:
    return message(b"S", text_field(name), text_field(value))


def key_data(process: int, secret: bytes) -> bytes:
    return message(b"K", struct.pack("!i", process), secret)


def ready(*, in_transaction: bool) -> bytes:
    return message(b"Z", b"T" if in_transaction else b"I")


def row_description(columns: Sequence[Described]) -> bytes:
    parts = [
        text_field(each.name) + struct.pack("!ihihih", 0, 0, each.type, each.size, -1, int(each.is_binary))
        for each in columns
    ]
    return message(b"T", struct.pack("!h", len(columns)), *parts)


def data_rows(rows: Iterable[Sequence[Cell]]) -> bytes:
    found = bytearray()
    for row in rows:
        cells = (b"\xff\xff\xff\xff" if cell is None else struct.pack("!i", len(cell)) + cell for cell in row)
        found += message(b"D", struct.pack("!h", len(row)), *cells)
    return bytes(found)


def complete(tag: str) -> bytes:
    return message(b"C", text_field(tag))


def parameter_description(types: Sequence[int]) -> bytes:
    return message(b"t", struct.pack("!h", len(types)), *(struct.pack("!I", each) for each in types))


def report(kind: bytes, fields: Mapping[str, str]) -> bytes:
    """Return an error (E) or a notice (N): a letter and a text for each field that is not empty."""
    parts = [letter.encode() + text_field(text) for letter, text in fields.items() if text]
    return message(kind, *parts, b"\0")


PARSED, BOUND, CLOSED, NO_DATA, SUSPENDED, EMPTY = (message(kind) for kind in (b"1", b"2", b"3", b"n", b"s", b"I"))
