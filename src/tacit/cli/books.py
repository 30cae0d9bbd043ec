"""Find the ledger of a command: a local one, or, with --server, a server's, by the same words.

The local ledger is the one of --ledger, or of the tacit.toml in this folder, or the default one.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.errors import InvalidParameter

if TYPE_CHECKING:
    from tacit.ledger import Ledger
    from tacit.remote import Server

TOKEN = "TACIT_TOKEN"  # noqa: S105 - the variable's name

LedgerPath = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="PATH",
        help="The ledger, if not the one in tacit.toml or in $TACIT_HOME: a file, or postgresql://...",
    ),
]
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


def ledger_here(given: str | None) -> str | None:
    """Return the ledger that a command uses: the given one, or that of ./tacit.toml; None is the default ledger."""
    from tacit.tables import FILE_NAME, catalog_ledger

    return catalog_ledger(FILE_NAME) if given is None else given


@contextmanager
def opened_here(given: str | None, *, accept: str | None = None) -> "Iterator[Ledger]":
    """Yield the existing ledger that a command uses."""
    from tacit.ledger import open_ledger

    with open_ledger(ledger_here(given), create=False, accept=accept) as opened:
        yield opened


@contextmanager
def opened_book(ledger: str | None, server: str | None) -> Iterator[Any]:
    """Yield the ledger, or the server that has the same words."""
    if server is None:
        with opened_here(ledger) as opened:
            yield opened
        return
    if ledger is not None:
        raise InvalidParameter("--ledger is for a ledger here, and --server for one elsewhere\nhint: give one of them")
    yield connected(server)
