"""How pages are written: templates, budgets as bars, the lines of a plan, and pages that other packages bring.

Autoescaping is on for all templates, and templates cannot turn it off. The pages are in English, as plans, answers and
refusals are.

Pages of other packages are found by their entry points in the group `tacit.pages`.
An entry point is an `OutsidePages`. Their templates extend the server's. Pages are found once, when the first page or
route is made.

A refusal as a page shows it has only ways out that a page offers: hints may name options of the command line or
arguments in Python, and a page leaves those out.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from tacit.ledger import BudgetStatus, Ledger
from tacit.numbers import brief
from tacit.server.problems import Problem

_PYTHON = re.compile(r",? in Python [^;]*")
_ELSEWHERE = re.compile(r"--[a-z]|\btacit[ .'][a-z]|/api/|\w=|\{\"|\(\.\.\.")  # a command, an argument, a body

# the product's sentence -> the way out that a page offers
_WAYS_OUT: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"the groups of .+? are not public, and a pure budget"),
        "Group by columns with listed groups, or ask the curator for a budget with a δ.",
    ),
    (
        re.compile(r"the budget of '.+?',.* no charge was made"),
        "Spend less, or ask the curator for a larger budget.",
    ),
    (re.compile(r"(?:epsilon|delta|error|rho) must be"), "Write a number such as 0.5."),
    (re.compile(r"cannot .+: it has no public range"), "Ask the curator to declare the range of the column."),
    (
        re.compile(r"the question cannot be read as SQL"),
        "Write texts in 'single quotes', and names with odd characters in \"double quotes\".",
    ),
    (re.compile(r"a reason is needed"), "Write a reason, for the record."),
    (re.compile(r"give the budget as epsilon or as rho"), "Fill in the field ε."),
    (re.compile(r"who may not"), "Ask the curator."),
    (
        re.compile(r"this form (?:is not of this visit|lacks its key)|not sent by a page of this server"),
        "Open the page again and send the form from there.",
    ),
)


@dataclass(frozen=True)
class ShownRefusal:
    """A refusal on a page: its sentence, and the way out."""

    status: int
    detail: str
    hint: str


def shown_refusal(problem: Problem) -> ShownRefusal:
    """Return a refusal with the way out that a page offers."""
    charged = problem.kind == "refused-after-learning"
    found = "" if charged else next((way for pattern, way in _WAYS_OUT if pattern.search(problem.detail)), "")
    return ShownRefusal(problem.status, problem.detail, found or _offered(problem.hint))


def _offered(hint: str) -> str:
    """Return the parts of a hint that a browser offers: those without a command, an argument or a body."""
    parts = re.split(r"; |, or | \(", _PYTHON.sub("", hint))
    return "; ".join(part for part in parts if not _ELSEWHERE.search(part)) if _ELSEWHERE.search(hint) else hint


GROUP = "tacit.pages"

Visitor = Callable[[Request], Awaitable[dict[str, Any]]]


@dataclass(frozen=True)
class OutsidePages:
    """Pages of another package: a folder with templates/ and static/, a link for the header, and their routes.

    `add` gets the application, and a function that returns a page's values `person` and `visit`: None for a visitor
    who is not signed in.
    """

    folder: Path
    address: str
    title: str
    add: Callable[[FastAPI, Visitor], None]


@cache
def outside_pages() -> tuple[OutsidePages, ...]:
    """Return the pages of all installed packages, by the names of their entry points."""
    found = {(point.name, point.value): point for point in entry_points(group=GROUP)}  # a package may appear twice
    return tuple(found[key].load() for key in sorted(found))


HERE = Path(__file__).parent


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader([folder / "templates" for folder in folders()]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def folders() -> list[Path]:
    """Return the folders of templates and styles: the server's own, then those of other packages."""
    return [HERE, *(others.folder for others in outside_pages())]


def page(request: Request, template: str, status: int = 200, **values: Any) -> Response:
    """Return a page; pages get the visitor and their own address."""
    shown = {"path": request.url.path, "links": outside_pages(), **values}
    if isinstance(shown.get("problem"), Problem):
        shown["problem"] = shown_refusal(shown["problem"])
    written = _environment().get_template(template).render(shown)
    return Response(written, status, media_type="text/html; charset=utf-8")


def budget_bars(ledger: Ledger, table: str, analyst: str | None) -> list[dict[str, Any]]:
    """Return every budget of a table that counts for an analyst, as a bar and in words."""
    registered = ledger.table(table)
    return [] if registered is None else [_budget_bar(status) for status in ledger.budget_status(registered, analyst)]


def _budget_bar(status: BudgetStatus) -> dict[str, Any]:
    rule, spent = status.budget.rule, status.spent.epsilon
    is_short = rule.epsilon is not None and spent is not None and not status.budget.is_revoked
    # amounts add up as long as addition has room; then the exact total is less, and the bar has only its part
    percent = max(0, min(100, round(100 * float(status.share_spent))))
    is_added = is_short and spent is not None and rule.admits_by_addition(status.spent)
    return {
        "whose": status.budget.analyst,
        "period": " ".join(filter(None, (status.budget.period, status.block))),
        "spent": f"ε {brief(spent or 0)}" if is_added else f"{percent} %" if is_short else status.words_spent,
        "whole": f"ε {brief(rule.epsilon or 0)}" if is_short else str(status.budget.loss),
        "exactly": f"{status.words_spent} of {status.budget.loss}; left: {status.words_left}",
        "percent": percent,
    }


# The lines of a plan that most people look for; the others are a click away.
_FIRST = ("Warning", "Learned first", "Too few people")
_LEARNING = re.compile(r"ε = ([0-9.]+(?:e-?\d+)?) of")
_ANYWAY = re.compile(r"; to answer anyway, .*")  # a page has a button for it
_ENOUGH = re.compile(r"give an epsilon of about ([0-9.]*[0-9])")
_TERMS = re.compile(r" \((?:noise|total|scaling) [^)]*\)")


def lines_of_plan(text: str) -> list[dict[str, Any]]:
    """Return a plan's lines: label, words, the finer lines below, and whether it is one that most people look for.

    >>> [line["label"] for line in lines_of_plan("Plan:\\nLoss: ε = 1.\\nMeaning: odds.") if not line["is_first"]]
    ['Loss', 'Meaning']
    """
    lines: list[dict[str, Any]] = []
    for line in text.splitlines()[1:]:
        if line.startswith("  ") and lines:
            lines[-1]["finer"].append(line.strip())
            continue
        line = _ANYWAY.sub(".", line)
        label, colon, words = line.removesuffix(":").partition(": ")
        if not colon and line.endswith(":"):
            label, words, colon = label.partition(" (")[0], line.removesuffix(":").partition("), ")[2], ":"
        is_label = bool(colon) and len(label) <= 24
        first = line.startswith(_FIRST)
        lines.append(
            {"label": label if is_label else "", "words": words if is_label else line, "finer": [], "is_first": first}
        )
    return lines


@dataclass(frozen=True)
class PlanOutlook:
    """How good an answer will be: the expected error of each number, of which group, and a closer question."""

    errors: tuple[tuple[str, str], ...] = ()
    group: str = ""
    closer: str = ""
    facts: int = 0  # to learn first
    learning: str = ""  # for how much
    useless: str = ""  # why it would be mostly noise, and is refused unless that is wanted
    enough: str = ""  # about how much would not be
    hidden: str = ""  # groups that are too small to be found

    @property
    def line(self) -> str:
        return "; ".join(f"{name} {words}" for name, words in self.errors)


def learning_cost(lines: list[dict[str, Any]]) -> Fraction | None:
    """Return the epsilon that a plan's facts still cost, as its lines print it; None if all are known."""
    for line in lines:
        if line["label"] == "Bounds" and line["words"].startswith("learned in this call"):
            amount = _LEARNING.search(line["words"])
            return None if amount is None else Fraction(amount[1])
    return None


def outlook_of(lines: list[dict[str, Any]]) -> PlanOutlook:
    """Return how good an answer will be, from the lines of its plan.

    >>> text = "Plan:\\nExpected error (95 % of answers are within):\\n  n: ± 5 (noise 5, total 0, scaling 0)"
    >>> outlook_of(lines_of_plan(text)).errors
    (('n', '± 5'),)
    """
    errors: list[tuple[str, str]] = []
    group = closer = learning = useless = hidden = ""
    facts = 0
    for line in lines:
        if line["label"] == "Expected error":
            group = group or line["words"]
            named = [finer.partition(": ") for finer in line["finer"]]
            errors += [(name, _TERMS.sub("", words)) for name, colon, words in named if colon]
        elif line["label"] == "Error":
            errors.append(("", _TERMS.sub("", line["words"])))
        elif line["label"] == "Refused, and free":
            useless = line["words"]
        elif line["label"] == "Hidden":
            hidden = line["words"].replace(" (keys=[...])", "").removesuffix(".")
        elif line["label"].startswith("Closer at the same"):
            closer = line["words"]
        elif line["label"] == "Bounds" and line["words"].startswith("learned in this call"):
            facts = len(line["finer"])
    if (cost := learning_cost(lines)) is not None:
        learning = f"ε {brief(cost)}"
    enough = _ENOUGH.search(useless)
    return PlanOutlook(tuple(errors), group, closer, facts, learning, useless, enough[1] if enough else "", hidden)
