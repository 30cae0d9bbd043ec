"""Prints the output of the commands safely, and shows a spinner during long work.

Names and keys come from files and ledgers that others wrote, so control characters are escaped before they are printed.
The spinner appears only on a terminal, on stderr, and never shows a count.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import typer

from tacit.errors import InvalidParameter, printable


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print lines of text, with control characters of terminals escaped."""
    typer.echo(printable(text, keeping="\n"), err=err, nl=nl)


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
    """Show that work goes on, after two seconds until the block ends.

    Show only `what`: progress or amounts could reveal something about the rows.
    """
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
