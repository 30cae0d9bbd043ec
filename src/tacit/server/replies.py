"""Common parts of every route: the sender of a request, its body, a page's number, and a record as a reply."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fastapi import Request, Response
from starlette.requests import ClientDisconnect

from tacit.errors import InvalidParameter
from tacit.json_wire import read_json, write_json
from tacit.ledger import Person
from tacit.server.problems import Problem, unknown
from tacit.server.wording import BODY_BYTES_MAX

Who = Callable[[Request], Awaitable[Person]]
NUMBER_DIGITS_MAX = 18


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


async def record_of(request: Request, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object that a body holds, if all its names are known."""
    record = read_json(await body_of(request), bytes_max=BODY_BYTES_MAX)
    if not isinstance(record, dict):
        raise InvalidParameter(f"the body must be an object\nhint: its names are {', '.join(known)}")
    for name in record:
        if name not in known:
            raise InvalidParameter(f"the body may not have '{name[:40]}'\nhint: its names are {', '.join(known)}")
    return record


def number_of(written: str, what: str) -> int:
    """Return the number in a path, or the reply for missing objects."""
    if not written.isascii() or not written.isdecimal() or len(written) > NUMBER_DIGITS_MAX:
        raise unknown(what)
    return int(written)


def json_reply(record: Any, status: int = 200) -> Response:
    """Return a record as a reply, exactly."""
    return Response(write_json(record), status, media_type="application/json")


def object_document(properties: Mapping[str, Any], required: tuple[str, ...]) -> dict[str, Any]:
    """Return what OpenAPI says of a body that is one object."""
    schema = {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }
    return {"required": True, "content": {"application/json": {"schema": schema}}}
