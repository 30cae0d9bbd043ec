"""What the commands print: names and keys come from files and ledgers that others wrote, and no terminal obeys them."""

import typer

from tacit.printable import printable


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print lines of text, with whatever a terminal would obey written out."""
    typer.echo(printable(text, keeping="\n"), err=err, nl=nl)
