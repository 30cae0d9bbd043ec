"""Common parts of every route: the sender of a request, its body, a page's number, and a record as a reply."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fastapi import Request, Response
from starlette.requests import ClientDisconnect

from tacit.errors import InvalidParameter
from tacit.json_wire import write_json
from tacit.ledger import Person
from tacit.options import BODY_BYTES_MAX, FLAGS, QUESTION, SPENDING
from tacit.server.problems import Problem, unknown

Who = Callable[[Request], Awaitable[Person]]
NUMBER_DIGITS_MAX = 18
KEY_MAX = 200
KEY_DOCUMENT = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "maxLength": KEY_MAX},
    "description": "charged once under it; sent again, it gets the same bytes",
}


async def body_of(request: Request) -> bytes:
    """Return the body of a request, never more than a question may have."""
    read = bytearray()
    try:
        async for chunk in request.stream():
            read += chunk
            if len(read) > BODY_BYTES_MAX:
                raise Problem(
                    "too-large", 413, f"the body has more than {BODY_BYTES_MAX} bytes", "ask several smaller questions"
                )
    except ClientDisconnect:  # nobody hears it
        raise Problem("refused", 408, "the request did not arrive whole", "send it again") from None
    return bytes(read)


def read_key(written: str | None) -> str | None:
    """Return the key under which a question is charged once, from the Idempotency-Key header."""
    if written is None:
        return None
    if not 0 < len(written) <= KEY_MAX or not written.isascii() or not written.isprintable():
        raise InvalidParameter(f"an Idempotency-Key has 1 to {KEY_MAX} plain characters\nhint: a random text")
    return written


def number_of(written: str, what: str) -> int:
    """Return the number in a path, or the reply for missing objects."""
    if not written.isascii() or not written.isdecimal() or len(written) > NUMBER_DIGITS_MAX:
        raise unknown(what)
    return int(written)


def json_reply(record: Any, status: int = 200) -> Response:
    return Response(write_json(record), status, media_type="application/json")


def object_document(properties: Mapping[str, Any], required: tuple[str, ...], **more: Any) -> dict[str, Any]:
    """Return what OpenAPI says of a body that is one object."""
    schema = {"type": "object", "properties": dict(properties), **more}
    schema |= {"required": list(required)} if required else {}
    return {"required": True, "content": {"application/json": {"schema": {**schema, "additionalProperties": False}}}}


def question_document(*, may_answer: bool) -> dict[str, Any]:
    """Return what OpenAPI says of a body that asks or plans: the names that `read_wording` reads."""
    options = {**QUESTION, **SPENDING, **(FLAGS if may_answer else {})}
    one_of = [{"required": [name]} for name in ("sql", "question", "questions")]
    return object_document({name: each.document for name, each in options.items()}, (), oneOf=one_of)
