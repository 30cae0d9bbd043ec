"""Every error that Tacit raises, the one warning, and the text that errors are made of.

The message states the mistake, the rule, and the remedy. The message depends only on the question and on public
metadata: it never quotes a row and never depends on one. There is one level of inheritance: catch `TacitError` for all.

Below them, `did_you_mean` suggests the name that was probably meant, and `printable` makes other people's text safe for
a screen. A key, a column's name or a ledger's reason may hold characters that a terminal obeys (an escape sequence that
moves the cursor, sets the title or pastes), or that reorder the text around them. Such characters are shown as `\\x1b`.
"""

import difflib
import json
import os
import sys
import traceback
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

_OURS = str(Path(__file__).parent) + os.sep


class TacitError(Exception):
    """The root of all our errors: the message names what is wrong, the rule, and the way out."""

    def __str__(self) -> str:
        return printable(super().__str__(), keeping="\n")  # the text may have names from a stranger's file

    def _render_traceback_(self) -> list[str]:
        """Return what a notebook shows: the asker's own lines and the message; all of it if TACIT_DEBUG is set."""
        if os.environ.get("TACIT_DEBUG"):
            return "".join(traceback.format_exception(self)).splitlines()
        lines = []
        for frame in traceback.extract_tb(self.__traceback__):
            if frame.filename.startswith(_OURS) or f"{os.sep}IPython{os.sep}" in frame.filename:
                continue
            is_cell = "ipykernel_" in frame.filename or frame.filename.startswith("<ipython")
            where = "this cell" if is_cell and frame.name == "<module>" else f"{frame.filename}, {frame.name}"
            lines += [f"{where}, line {frame.lineno}", f"    {frame.line}"]
        return [*lines, *f"{type(self).__name__}: {self}".splitlines()]


def frames_of_ours() -> int:
    """Return how many frames are between the caller of this function and the asker's own code: of ours, or frozen."""
    frame: FrameType | None = sys._getframe(1)
    count = 0
    while frame is not None and frame.f_code.co_filename.startswith((_OURS, "<frozen ")):
        frame, count = frame.f_back, count + 1
    return count


class LargeEpsilonWarning(UserWarning):
    """An epsilon so large that the promise to one person is weak. Give a smaller epsilon if you can."""


class InvalidParameter(TacitError):
    """An argument breaks its rule. Give a value that the message describes."""


class UnknownName(TacitError, AttributeError):
    """An object lacks an attribute of this name. Use the name that the message suggests."""


class QueryRefused(TacitError):
    """The question, or the declaration of the table, cannot be answered privately. Ask as the hint shows."""


class BudgetExceeded(TacitError):
    """The budget is too small for this charge. Ask with a smaller epsilon, or let the curator grant more."""


class NotAllowed(TacitError):
    """The asker may not ask this: unknown, ended, an auditor, or for other tables. The curator can let them in."""


class LedgerError(TacitError):
    """The ledger cannot be trusted or written, so no answer is given. The message names the repair."""


class DeadRequest(TacitError):
    """This request id was charged and never answered. Ask again under a new id; the new id is a new charge."""


class BeingAnswered(TacitError):
    """This request id is being answered by another process or thread. Ask again later, under the same id."""


class EngineError(TacitError):
    """The engine failed after the charge. The message is fixed, for every cause; the curator's log has the class."""


class NoRandomness(TacitError):
    """The operating system gave no randomness, so no answer is given. Try again on a healthy machine."""


# The message of NoRandomness, also used if it comes after a charge.
NO_RANDOMNESS = (
    "the operating system gave no fresh randomness, so nothing was released"
    "\nhint: check that getrandom or /dev/urandom works for this process, then ask again"
)


# The end of a refusal for want of room, if its request has not spent budget.
NOTHING_CHARGED = "no charge was made and no row was read"


class SelfTestFailed(TacitError):
    """This installation does not work as it should. Install it again; do not answer questions with it until the test
    passes."""


# ---- The name that was probably meant.

NAME_MOST = 200  # a longer text is not a mistyped name


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return a hint with the nearest public name, or with the list of names if no name is near."""
    names = sorted(known)
    folded = {each.lower(): each for each in names}
    near = difflib.get_close_matches(str(name)[:NAME_MOST].lower(), folded, n=1)
    if near:
        return f"\nhint: did you mean '{folded[near[0]]}'?"
    listed = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    return f"\nhint: there are {listed}" if names else ""


def unknown_name(owner: object, name: str, words: Mapping[str, str]) -> AttributeError:
    """Return the error for an attribute that an object does not have; `words` has hints for names of other libraries.

    Python's protocols look for names that begin with an underscore: these get its own error.
    """
    what = type(owner).__name__
    if name.startswith("_"):
        return AttributeError(f"'{what}' object has no attribute '{name}'")
    hint = f"\nhint: {words[name]}" if name in words else did_you_mean(name, dir(owner))
    return UnknownName(f"{with_article(what)} has no '{name}'{hint}")


# ---- Text of others, safe for a screen.

# Unicode categories that a screen obeys: controls, formats (also the direction of writing), lone surrogates, separators
# of lines and paragraphs.
OBEYED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
JOINERS = "\u200c\u200d"  # only for writing words and pictures


def with_article(name: str) -> str:
    """Return a name with its spoken article: a user_id, an id."""
    return f"{'an' if name[:1].lower() in ('a', 'e', 'i', 'o') else 'a'} {name}"


def printable(text: str, *, keeping: str = "") -> str:
    """Return a text with every character that a screen would obey written out, except those in `keeping`.

    >>> printable("a\\x1b[31mb"), printable("two\\nlines", keeping="\\n") == "two\\nlines"
    ('a\\\\x1b[31mb', True)
    """
    if text.isprintable() or (keeping and all(part.isprintable() for part in text.split(keeping))):
        return text
    return "".join(letter if letter in keeping else _written_out(letter) for letter in text)


def json_text(record: Any) -> str:
    """Return a record as JSON of the same meaning, without characters that a screen would obey."""
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
