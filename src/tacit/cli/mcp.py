"""`tacit mcp`: an agent's door on standard input and output, to the tables of a server."""

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.books import own_token
from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit.remote import Server

INTERNAL_ERROR, PARSE_ERROR = -32603, -32700


def mcp(
    server: Annotated[str, typer.Option("--server", metavar="URL", help="The server; the token is in $TACIT_TOKEN.")],
) -> None:
    """Let an agent list, describe, plan and ask the tables of a server, within the budget of a token (MCP, stdio).

    An agent's own settings start it. The tools do not return rows and cannot grant. Over HTTP the same door is at /mcp.

    Example: `tacit mcp --server https://data.example.org`
    """
    from tacit.remote import connect

    opened = connect(server, token=own_token())
    for line in sys.stdin:
        reply = forwarded(opened, line)
        if reply is not None:
            sys.stdout.write(reply + "\n")
            sys.stdout.flush()


def forwarded(server: "Server", line: str) -> str | None:
    """Return the server's reply to one message, as a line; None if the message needs no reply."""
    if not line.strip():
        return None
    try:
        message: Any = json.loads(line)
    except (ValueError, RecursionError):
        return _fault(None, PARSE_ERROR, "this is not JSON")
    id = message.get("id") if isinstance(message, dict) else None
    try:
        body = server.agent(line.encode("utf-8", "replace"))
    except TacitError as problem:
        return None if id is None else _fault(id, INTERNAL_ERROR, str(problem))
    return body.decode("utf-8") if body else None


def _fault(id: Any, code: int, words: str) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": words}})
