"""Every error Tacit raises, each saying what the user can do about it, and the one warning.

One level of inheritance: catch `TacitError` for all of them. An error depends on the question and on public
metadata alone; it never quotes a row and never depends on one.
"""

import os
import traceback
from pathlib import Path

from tacit.printable import printable

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
