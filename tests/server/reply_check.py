"""Compares replies with the schemas of their routes: every reply that a test of the server gets by `House.send`.

A schema is closed here, so that a reply with a name that its route does not declare is noticed too.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import httpx
import jsonschema

from tacit.server.app import make_app


class _NoDesk:
    """In place of a desk, of which the document needs nothing."""


@cache
def document() -> Any:
    """Return the OpenAPI document, with every object closed."""
    return closed(make_app(_NoDesk()).app.openapi())  # type: ignore[arg-type]


def closed(schema: Any) -> Any:
    """Return a schema of which each object has no other names than those that it declares."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    own = {name: closed(each) for name, each in schema.items()}
    return {"additionalProperties": False, **own} if isinstance(schema.get("properties"), dict) else own


def check_reply(method: str, path: str, reply: httpx.Response) -> None:
    """Raise if a reply is not as the document has it; other addresses, such as pages, have no schema."""
    found = [(route, verb) for route, verb in routes(method) if is_of(path.partition("?")[0], route)]
    if not found:
        return
    route, verb = found[0]
    declared = verb["responses"].get(str(reply.status_code)) or verb["responses"].get("default")
    assert declared is not None, f"{method} {route} does not declare {reply.status_code}"
    media_type = reply.headers.get("content-type", "").partition(";")[0]
    content = declared.get("content", {})
    assert media_type in content or not (content or reply.content), f"{method} {route} does not declare {media_type!r}"
    if media_type.endswith("json"):
        checker(method, route, str(reply.status_code), media_type).validate(reply.json())


def is_of(path: str, route: str) -> bool:
    """Return whether a path is one of a route."""
    return re.fullmatch(re.sub(r"\\{[a-z]+\\}", "[^/]+", re.escape(route)), path) is not None


def routes(method: str) -> Iterator[tuple[str, Any]]:
    """Yield the routes of a method, the longest first, so that a number with an ending is not taken for a number."""
    paths = document()["paths"]
    for route in sorted(paths, key=len, reverse=True):
        if method.lower() in paths[route]:
            yield route, paths[route][method.lower()]


@cache
def checker(method: str, route: str, status: str, media_type: str) -> jsonschema.Draft202012Validator:
    """Return what checks a reply of a route."""
    responses = document()["paths"][route][method.lower()]["responses"]
    schema = (responses.get(status) or responses["default"])["content"][media_type]["schema"]
    return jsonschema.Draft202012Validator({**schema, "components": document()["components"]})
