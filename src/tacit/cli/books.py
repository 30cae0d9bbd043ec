"""Where a command's record is: a ledger that is here, or, with --server, the one of a server, by the same words."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.errors import InvalidParameter

if TYPE_CHECKING:
    from tacit.remote import Server

TOKEN = "TACIT_TOKEN"  # noqa: S105 - the variable's name

ServerAddress = Annotated[
    str | None,
    typer.Option(
        "--server", metavar="URL", help="Do it on a server, with the token in $TACIT_TOKEN, and not on a ledger here."
    ),
]


def own_token() -> str:
    """Return the token in the environment: a command line is seen by every user of the machine."""
    token = os.environ.get(TOKEN)
    if not token:
        raise InvalidParameter(f"a token is needed, in the variable {TOKEN}\nhint: export {TOKEN}=tacit_...")
    return token


def connected(server: str) -> "Server":
    """Return a server by its address, with the token in the environment."""
    from tacit.remote import connect

    return connect(server, token=own_token())


@contextmanager
def opened_book(ledger: str | None, server: str | None) -> Iterator[Any]:
    """Yield the ledger, or the server that has the same words."""
    if server is None:
        from tacit.ledger import open_ledger

        with open_ledger(ledger, create=False) as opened:
            yield opened
        return
    if ledger is not None:
        raise InvalidParameter("--ledger is for a ledger here, and --server for one elsewhere\nhint: give one of them")
    yield connected(server)
