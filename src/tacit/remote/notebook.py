"""`%load_ext tacit`: a cell of SQL is a question to a table that the notebook has, here or on a server.

    %%tacit visits --epsilon 1 --to counts
    SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward

`visits` is a variable. `--plan` shows the cost and the expected error, free. `%tacit` lists tables and budgets.
"""

import argparse
import shlex
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

from tacit.errors import InvalidParameter, did_you_mean

MAGIC = "tacit"
SPENDING = ("epsilon", "error", "delta", "confidence")
OPTIONS = (*(f"--{name}" for name in SPENDING), "--plan", "--to")
WORDS = ("SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "HAVING", "COUNT(*)", "SUM(", "AVG(", "MEDIAN(")
SHOWN_AFTER = 0.5  # seconds until the line of progress appears


def load_notebook(shell: Any) -> None:
    """Add `%tacit`, `%%tacit` and their completion to a notebook."""
    magic = TacitMagic(shell)
    shell.register_magic_function(magic.run, "line_cell", MAGIC)
    from IPython.core.completer import context_matcher

    @context_matcher(identifier=MAGIC)  # type: ignore[untyped-decorator]
    def complete(context: Any) -> Mapping[str, Any]:
        return magic.complete(context)

    shell.Completer.custom_matchers.append(complete)


class _Arguments(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InvalidParameter(f"%%tacit: {message}\nhint: %%tacit visits --epsilon 1")


class TacitMagic:
    """The magic of one notebook."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def run(self, line: str, cell: str | None = None) -> Any:
        """Answer a cell of SQL and show the answer; without a cell, list the tables."""
        if cell is None:
            return self._listed()
        given = self._read(line)
        table = self._tables().get(given.table)
        if table is None:
            known = ", ".join(self._tables()) or "none yet"
            raise InvalidParameter(
                f"a table is missing in the variable '{given.table}'{did_you_mean(given.table, list(self._tables()))}"
                f"\nhint: the tables here are: {known}; visits = tacit.table(...) makes one"
            )
        question = table.sql(cell.strip())
        spending = {name: value for name in SPENDING if (value := getattr(given, name)) is not None}
        if given.plan:
            return question.plan(**spending)
        if not spending.keys() & {"epsilon", "error"}:
            raise InvalidParameter(
                "this cell does not name an amount to spend\nhint: --epsilon 1, or --plan, which is free"
            )
        with progress(f"asking {given.table}"):
            answer = question.answer(**spending)
        if given.to is not None:
            self._shell.user_ns[given.to] = answer
        return answer

    def _read(self, line: str) -> argparse.Namespace:
        parser = _Arguments(prog="%%tacit", add_help=False, allow_abbrev=False)
        parser.add_argument("table")
        for name in SPENDING:
            parser.add_argument(f"--{name}")
        parser.add_argument("--plan", action="store_true")
        parser.add_argument("--to")
        try:
            given = parser.parse_args(shlex.split(line))
        except ValueError:
            raise InvalidParameter("%%tacit: a quote is not closed\nhint: %%tacit visits --epsilon 1") from None
        if given.to is not None and not given.to.isidentifier():
            raise InvalidParameter("--to takes the name of a variable\nhint: --to counts")
        return given

    def _tables(self) -> dict[str, Any]:
        from tacit.asking import Table
        from tacit.remote.tables import RemoteTable

        named = [(name, value) for name, value in self._shell.user_ns.items() if not name.startswith("_")]
        return {name: value for name, value in named if isinstance(value, Table | RemoteTable)}

    def _listed(self) -> "Listing":
        tables = self._tables()
        return Listing(
            "\n".join(f"{name}: {getattr(table, 'left', 'on a server')}" for name, table in tables.items())
            or "no table yet: visits = tacit.table(...)"
        )

    def complete(self, context: Any) -> Mapping[str, Any]:
        """Offer tables and options on the first line of a cell, and columns and words of SQL below it."""
        from IPython.core.completer import SimpleCompletion

        lines = context.full_text.split("\n")
        if not lines[0].startswith(f"%%{MAGIC}"):
            return {"completions": []}
        words = lines[0].split()[1:]
        offered = [*self._tables(), *OPTIONS] if context.cursor_line == 0 else self._columns(words)
        found = [each for each in offered if each.lower().startswith(context.token.lower())]
        return {
            "completions": [SimpleCompletion(text=each, type="tacit") for each in found],
            "matched_fragment": context.token,
            "suppress": True,
        }

    def _columns(self, words: list[str]) -> list[str]:
        table = self._tables().get(words[0]) if words else None
        return [*([] if table is None else table.frame.declaration.columns), *WORDS]


@dataclass(frozen=True, repr=False)
class Listing:
    """Lines that a notebook shows as they are."""

    text: str

    def __repr__(self) -> str:
        return self.text


@contextmanager
def progress(words: str) -> Iterator[None]:
    """Show a line while a question runs: the same for every question, with the seconds since it was asked."""
    from IPython import display

    show: Any = display.display

    shown: list[Any] = []
    done, began = threading.Event(), time.monotonic()

    def run() -> None:
        while not done.wait(SHOWN_AFTER):
            line = {"text/plain": f"{words} … {time.monotonic() - began:.0f} s"}
            if shown:
                shown[0].update(line, raw=True)
            else:
                shown.append(show(line, raw=True, display_id=True))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        if shown:
            shown[0].update({"text/plain": ""}, raw=True)
