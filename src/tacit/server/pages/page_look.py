"""How pages are written: templates, words in the visitor's language, numbers as their locale has them.

Autoescaping is on for all templates, and templates cannot turn it off. A language is there if its words are; the
sentences of plans and answers are the product's own, in English; so are refusals without a translation in
the table below.

Pages that other packages bring, found by their entry points in the group `tacit.pages`.

An entry point is an `OutsidePages`. Their templates extend the server's, and their words are translated by catalogs of
their own. Pages are found once, when the first page or route is made.

A refusal as a page shows it: in the visitor's language, and with ways out that a page offers.

Refusals are English sentences of the product, and their hints may name options of the command line or arguments in
Python. The most frequent refusals have their own words here. Any other one keeps its English sentence, below
a line in the visitor's language, and loses the parts of its hint that a browser does not offer.
"""

import gettext
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from tacit.ledger import BudgetStatus, Ledger
from tacit.server.pages.wording_of_forms import N_
from tacit.server.problems import Problem

_SIGNS = {"epsilon": "ε", "delta": "δ", "error": "±", "rho": "ρ"}
_PLACE = re.compile(r"\(line (?P<line>\d+), column (?P<column>\d+)\)")
_MEANT = re.compile(r"did you mean '([^']+)'")
_PYTHON = re.compile(r",? in Python [^;]*")
_ELSEWHERE = re.compile(r"--[a-z]|\btacit[ .'][a-z]|/api/|\w=|\{\"|\(\.\.\.")  # a command, an argument, a body

# the product's sentence -> the page's sentence, and the way out on a page
_OWN: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (
        re.compile(r"the groups of (?P<names>.+?) are not public, and a pure budget"),
        N_("The groups of %(names)s are not listed, and a budget without a δ cannot find groups in the data."),
        N_("Group by columns with listed groups, or ask the curator for a budget with a δ."),
    ),
    (
        re.compile(r"the budget of '(?P<name>.+?)',.* no charge was made"),
        N_("The budget of '%(name)s' is too small for this question, and no charge was made."),
        N_("Spend less, or ask the curator for a larger budget."),
    ),
    (
        re.compile(r"this is not a number of this page: (?P<written>.*)"),
        N_("'%(written)s' is not a number here."),
        N_("Write a number without a sign between thousands, such as 0.5."),
    ),
    (
        re.compile(r"(?P<name>epsilon|delta|error|rho) must be (?:a|a finite) number"),
        N_("%(name)s must be a number."),
        N_("Write a number such as 0.5."),
    ),
    (
        re.compile(r"(?P<name>epsilon|delta|error|rho) must be above 0"),
        N_("%(name)s must be above 0."),
        N_("Write a number such as 0.5."),
    ),
    (re.compile(r"there is no column '(?P<name>[^']+)'"), N_("The column '%(name)s' does not exist here."), ""),
    (
        re.compile(r"cannot .+: it has no public range"),
        N_("This column needs a public range."),
        N_("Ask the curator to declare the range of the column."),
    ),
    (
        re.compile(r"the question cannot be read as SQL"),
        N_("This cannot be read as SQL."),
        N_("Write texts in 'single quotes', and names with odd characters in \"double quotes\"."),
    ),
    (re.compile(r"there is no such"), N_("This page does not exist, or you may not see it."), ""),
    (re.compile(r"a reason is needed"), N_("The reason is missing."), N_("Write a reason, for the record.")),
    (re.compile(r"give the budget as epsilon or as rho"), N_("The amount is missing."), N_("Fill in the field ε.")),
    (re.compile(r"who may not"), N_("Your role does not allow this."), N_("Ask the curator.")),
    (
        re.compile(r"this form (?:is not of this visit|lacks its key)|not sent by a page of this server"),
        N_("This form was not sent from a page of this visit."),
        N_("Open the page again and send the form from there."),
    ),
)
_TITLES = {
    "refused": N_("This was refused, and no charge was made:"),
    "no-room": N_("The budget is too small for this question, and no charge was made."),
    "refused-after-learning": N_("This was refused. The facts that were learned for it first are charged and kept:"),
    "unavailable": N_("The server cannot do this now:"),
}


@dataclass(frozen=True)
class ShownRefusal:
    """A refusal on a page: a line in the visitor's language if the sentence below it is English, and the way out."""

    status: int
    title: str
    detail: str
    hint: str


def shown_refusal(problem: Problem, language: str, say: Callable[[str], str]) -> ShownRefusal:
    """Return a refusal in the words of a page; `say` translates."""
    charged = problem.kind == "refused-after-learning"
    found, words, way_out = (None, "", "") if charged else _own(problem.detail)
    hint = say(way_out) if way_out else _offered(problem.hint)
    if language == "en":
        return ShownRefusal(problem.status, "", problem.detail, hint)
    if found is None:
        return ShownRefusal(
            problem.status, say(_TITLES.get(problem.kind, N_("This did not work:"))), problem.detail, hint
        )
    if not way_out:
        meant = _MEANT.search(problem.hint)
        hint = "" if meant is None else say(N_("Did you mean '%(name)s'?")) % {"name": meant[1]}
    named = {name: _SIGNS.get(each, each) for name, each in found.groupdict().items()}
    place = _PLACE.search(problem.detail)
    where = "" if place is None else say(N_(" (line %(line)s, column %(column)s)")) % place.groupdict()
    return ShownRefusal(problem.status, "", say(words) % named + where, hint)


def _own(detail: str) -> tuple[re.Match[str] | None, str, str]:
    """Return our own words for a refusal: the values to fill in, the sentence and the way out."""
    for pattern, words, way_out in _OWN:
        found = pattern.search(detail)
        if found is not None:
            return found, words, way_out
    return None, "", ""


def _offered(hint: str) -> str:
    """Return the parts of a hint that a browser offers: those without a command, an argument or a body."""
    parts = re.split(r"; |, or | \(", _PYTHON.sub("", hint))
    return "; ".join(part for part in parts if not _ELSEWHERE.search(part)) if _ELSEWHERE.search(hint) else hint


GROUP = "tacit.pages"

Visitor = Callable[[Request], Awaitable[dict[str, Any]]]


@dataclass(frozen=True)
class OutsidePages:
    """Pages of another package: a folder with templates/, static/ and words/, a link for the header, and their routes.

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
LANGUAGES = ("en", *sorted(path.parent.parent.name for path in HERE.glob("words/*/LC_MESSAGES/pages.mo")))
_NUMBER = re.compile(r"(?<![\w.,-])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\w,])|(?<![\w.,])\d+\.\d+(?![\w.])")
_SWAPPED = str.maketrans(",.", ".,")


@cache
def _environment(language: str) -> Environment:
    made = Environment(
        loader=FileSystemLoader([folder / "templates" for folder in folders()]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n"],
    )
    made.install_gettext_translations(_translations(language), newstyle=True)  # type: ignore[attr-defined]
    made.filters["number"] = lambda text: in_locale(str(text), language)
    return made


@cache
def _translations(language: str) -> gettext.NullTranslations:
    ours, *others = (gettext.translation("pages", each / "words", [language], fallback=True) for each in folders())
    for other in others:
        ours.add_fallback(other)
    return ours


def folders() -> list[Path]:
    """Return the folders of templates, styles and words: the server's own, then those of other packages."""
    return [HERE, *(others.folder for others in outside_pages())]


def say_in(language: str) -> Callable[[str], str]:
    """Return what translates the words of a picture, as templates do those of a page."""
    return _translations(language).gettext


def language_of(request: Request) -> str:
    """Return the first language of the visitor's that the pages have."""
    wished: list[tuple[float, int, str]] = []
    for place, part in enumerate(request.headers.get("accept-language", "")[:200].split(",")):
        name, _, weight = part.strip().partition(";q=")
        try:
            wished.append((-float(weight or 1), place, name[:2].lower()))
        except ValueError:
            continue
    return next((name for _, _, name in sorted(wished) if name in LANGUAGES), "en")


def in_locale(text: str, language: str) -> str:
    """Return a text with its numbers as the language writes them.

    >>> in_locale("1,234.5 ± 0.25, version 3", "de")
    '1.234,5 ± 0,25, version 3'
    """
    return text if language == "en" else _NUMBER.sub(lambda found: found[0].translate(_SWAPPED), text)


def page(request: Request, template: str, status: int = 200, **values: Any) -> Response:
    """Return a page; pages get the visitor and their own address."""
    language = language_of(request)
    shown = {"path": request.url.path, "language": language, "links": outside_pages(), **values}
    if isinstance(shown.get("problem"), Problem):
        shown["problem"] = shown_refusal(shown["problem"], language, say_in(language))
    written = _environment(language).get_template(template).render(shown)
    return Response(written, status, media_type="text/html; charset=utf-8")


def budget_bars(ledger: Ledger, table: str, analyst: str | None) -> list[dict[str, Any]]:
    """Return every budget of a table that counts for an analyst, as a bar and in words."""
    registered = ledger.table(table)
    return [] if registered is None else [_budget_bar(status) for status in ledger.budget_status(registered, analyst)]


def _budget_bar(status: BudgetStatus) -> dict[str, Any]:
    return {
        "whose": status.budget.analyst,
        "period": " ".join(filter(None, (status.budget.period, status.block))),
        "whole": str(status.budget.loss),
        "spent": status.words_spent,
        "left": status.words_left,
        "percent": max(0, min(100, round(100 * float(status.share_spent)))),
        "questions": status.questions,
    }


# The lines of a plan that most people look for; the others are a click away.
_FIRST = ("Bounds", "Expected error", "Error", "Meaning", "Budget", "Warning", "Learned first")


def lines_of_plan(text: str) -> list[dict[str, Any]]:
    """Return a plan's lines: label, words, the finer lines below, and whether it is one that most people look for.

    >>> [line["label"] for line in lines_of_plan("Plan:\\nLoss: ε = 1.\\nMeaning: odds.") if line["is_first"]]
    ['Meaning']
    """
    lines: list[dict[str, Any]] = []
    for line in text.splitlines()[1:]:
        if line.startswith("  ") and lines:
            lines[-1]["finer"].append(line.strip())
            continue
        label, colon, words = line.removesuffix(":").partition(": ")
        if not colon and line.endswith(":"):
            label, words, colon = label.partition(" (")[0], "", ":"
        is_label = bool(colon) and len(label) <= 24
        first = line.startswith(_FIRST)
        lines.append(
            {"label": label if is_label else "", "words": words if is_label else line, "finer": [], "is_first": first}
        )
    return lines
