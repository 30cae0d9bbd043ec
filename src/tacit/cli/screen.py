"""Prints the output of the commands safely, and shows a spinner during long work.

Names and keys come from files of others: control characters are escaped. The spinner is only for terminals, on stderr,
and never shows a count, since progress could reveal something about the rows.

Find the ledger of a command: a local one, or, with --server, a server's, by the same words.

The local ledger is the one of --ledger, or of the tacit.toml in this folder, or the default one.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.errors import InvalidParameter, printable

if TYPE_CHECKING:
    from tacit.ledger import Ledger
    from tacit.remote import Server


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print lines of text, with control characters of terminals escaped."""
    typer.echo(printable(text, keeping="\n"), err=err, nl=nl)


def write_text(text: str, output: str | None, *, is_data: bool = False) -> None:
    """Print a text, or write it to a file, ending with one newline; data is left as it is, but on a terminal."""
    text = text.rstrip("\n") + "\n"
    if output is None and is_data and not sys.stdout.isatty():
        typer.echo(text, nl=False)
    elif output is None:
        say(text, nl=False)
    else:
        Path(output).write_text(text, encoding="utf-8")


def check_plot(path: str | Path | None) -> None:
    """Refuse a picture that could not be written, before the work or the charge for it."""
    if path is not None:
        from tacit.pictures import check_path

        check_path(Path(path))


def check_writable(file: str | None) -> None:
    """Refuse, before the work or the charge for it, a file that could not be written."""
    if file is not None:
        path = Path(file)
        if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
            raise InvalidParameter(f"{file} cannot be written there\nhint: name a file in a folder you may write to")


PATIENCE = 1.0


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show that work goes on, after a second until the block ends."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    status = Console(stderr=True).status(f"{what} …")
    timer = Timer(PATIENCE, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()


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
    from tacit.remote import connect

    return connect(server, token=own_token())


def ledger_here(given: str | None) -> str | None:
    """Return the ledger that a command uses: the given one, or that of ./tacit.toml; None is the default ledger."""
    from tacit.catalog_file import FILE_NAME, catalog_ledger

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
        raise InvalidParameter(
            "--ledger is for a ledger on this machine, and --server for a server's\nhint: give one of them"
        )
    yield connected(server)
