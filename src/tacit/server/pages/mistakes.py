"""The position of a refusal on the page, and the button that mends it.

A refusal has words, a hint and, for SQL, a line and a column. The builder's SELECT has one line for each part of the
form, so the line identifies the field.
"""

import re
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, Decimal

from tacit.server.pages.page_look import in_locale
from tacit.server.pages.wording_of_forms import Chosen
from tacit.server.problems import Problem

_PLACE = re.compile(r"\(line (\d+), column (\d+)\)")
_MEANT = re.compile(r"did you mean '([^']+)'")
_UNKNOWN = re.compile(r"there is no (?:column|table|function) '([^']+)'")
_FIELDS = {"SELECT": "what", "FROM": "what", "WHERE": "where", "GROUP": "by"}
_SPENDING = re.compile(r"\b(epsilon|error|delta|budget)\b")


@dataclass(frozen=True)
class Fix:
    """A button: its words, and the values that it sets."""

    words: str
    value: str  # field=text


def field_of(problem: Problem, chosen: Chosen, sql: str) -> str:
    """Return the field at which a refusal stands."""
    place = _PLACE.search(problem.detail)
    if problem.kind == "no-room" or (place is None and _SPENDING.search(problem.detail + problem.hint)):
        return "spend"
    if chosen.mode == "sql":
        return "sql"
    lines = sql.splitlines()
    line = lines[int(place[1]) - 1] if place and int(place[1]) <= len(lines) else ""
    if place is None and chosen.where and not chosen.by:
        return "where"
    return _FIELDS.get(line.split(" ")[0], "what")


def two_digits(amount: float) -> str:
    """Return an amount in two digits, rounded down.

    >>> two_digits(3.119), two_digits(0.0456), two_digits(2.0), two_digits(128.7)
    ('3.1', '0.045', '2', '120')
    """
    exact = Decimal(repr(amount))
    return f"{exact.quantize(Decimal(1).scaleb(exact.adjusted() - 1), ROUND_DOWN).normalize():f}"


def fixes_of(problem: Problem, chosen: Chosen, sql: str, epsilon: str) -> list[Fix]:
    """Return the buttons that mend a refusal; `epsilon` is an amount that fits, or None."""
    field = field_of(problem, chosen, sql)
    meant, unknown = _MEANT.search(problem.hint), _UNKNOWN.search(problem.detail)
    if meant and unknown and field in ("where", "sql"):
        text = getattr(chosen, field)
        found = re.sub(rf"\b{re.escape(unknown[1])}\b", lambda _: meant[1], text)
        return [Fix(meant[1], f"{field}={found}")] if found != text else []
    return [Fix(f"ε = {epsilon}", f"epsilon={epsilon}")] if field == "spend" and epsilon else []


def mended(chosen: Chosen, fix: str) -> Chosen:
    """Return what is chosen after a button of `fixes_of`."""
    field, _, text = fix.partition("=")
    if field == "epsilon":
        return replace(chosen, epsilon=in_locale(text, chosen.language), error="")
    if field == "where":
        return replace(chosen, where=text)
    return replace(chosen, sql=text) if field == "sql" else chosen
