"""Prints the output of the commands safely, and shows a spinner during long work.

Names and keys come from files of others: control characters are escaped. The spinner is only for terminals, on stderr,
and never shows a count, since progress could reveal something about the rows.
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
