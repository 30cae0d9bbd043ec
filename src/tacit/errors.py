"""Every error Tacit raises, each saying what the user can do about it, and the one warning.

One level of inheritance: catch `TacitError` for all of them. An error depends on the question and on public
metadata alone; it never quotes a row and never depends on one.

The name someone probably meant.

Text that others wrote, as a screen may show it.

A key, a column's name or a ledger's reason may hold what a terminal obeys (an escape sequence that moves the cursor,
sets the title or pastes), or what reorders the text around it. None of it is obeyed here: it is shown as `\x1b`.
"""

import difflib
import json
import os
import traceback
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Any

NAME_MOST = 200  # what is longer is no name that was mistyped


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return a hint with the nearest public name, or the list of them where none is near."""
    names = sorted(known)
    folded = {each.lower(): each for each in names}
    near = difflib.get_close_matches(str(name)[:NAME_MOST].lower(), folded, n=1)
    if near:
        return f"\nhint: did you mean '{folded[near[0]]}'?"
    listed = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    return f"\nhint: there are {listed}" if names else ""


# controls, formats (what turns the direction of writing is among them), halves of pairs, separators of lines
OBEYED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
JOINERS = "\u200c\u200d"  # part of how words and pictures are written, and of nothing else


def printable(text: str, *, keeping: str = "") -> str:
    """Return a text with everything that a screen would obey written out, but for the characters in `keeping`.

    >>> printable("a\\x1b[31mb"), printable("two\\nlines", keeping="\\n") == "two\\nlines"
    ('a\\\\x1b[31mb', True)
    """
    if text.isprintable():
        return text
    return "".join(letter if letter in keeping else _written_out(letter) for letter in text)


def json_text(record: Any) -> str:
    """Return a record as JSON of the same meaning in which nothing is left that a screen would obey."""
    written = json.dumps(record, ensure_ascii=False, indent=2)
    if all(line.isprintable() for line in written.split("\n")):
        return written
    return "".join(
        letter if letter == "\n" or _written_out(letter) == letter else json.dumps(letter)[1:-1] for letter in written
    )


def _written_out(letter: str) -> str:
    if unicodedata.category(letter) not in OBEYED or letter in JOINERS:
        return letter
    code = ord(letter)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 2**16 else f"\\U{code:08x}"


_OURS = str(Path(__file__).parent) + os.sep


class TacitError(Exception):
    """The root of all our errors: the message names what is wrong, the rule, and the way out."""

    def __str__(self) -> str:
        return printable(super().__str__(), keeping="\n")  # names in it may be those of a stranger's file

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows: the asker's own lines and the message; all of it if TACIT_DEBUG is set."""
        if os.environ.get("TACIT_DEBUG"):
            return "".join(traceback.format_exception(self)).splitlines()
        lines = []
        for frame in traceback.extract_tb(self.__traceback__):
            if frame.filename.startswith(_OURS) or f"{os.sep}IPython{os.sep}" in frame.filename:
                continue
            is_cell = "ipykernel_" in frame.filename or frame.filename.startswith("<ipython")
            place = "this cell" if is_cell and frame.name == "<module>" else f"{frame.filename}, {frame.name}"
            lines += [f"{place}, line {frame.lineno}", f"    {frame.line}"]
        return [*lines, *f"{type(self).__name__}: {self}".splitlines()]


class LargeEpsilonWarning(UserWarning):
    """An epsilon so large that little is promised to one person. Ask for less, or know what you do."""


class InvalidParameter(TacitError):
    """A number or an option is outside its rule. Give one that the message describes."""


class QueryRefused(TacitError):
    """The question, or what is declared about the table, cannot be answered privately. Ask as the hint says."""


class BudgetExceeded(TacitError):
    """The budget has no room for this charge. Ask for less, or have the curator grant more."""


class LedgerError(TacitError):
    """The ledger cannot be trusted or written, so nothing is answered. The message names the repair."""


class DeadRequest(TacitError):
    """This request id was charged and never answered. Ask again under a new id; that is a new charge."""


class EngineError(TacitError):
    """The engine failed after the charge. One fixed message, whatever the cause; the curator's log has the class."""


class NoRandomness(TacitError):
    """The operating system gave no randomness, so no answer is given. Try again on a healthy machine."""


class SelfTestFailed(TacitError):
    """This installation does not do what it should: install it again, and answer nothing with it until it does."""
