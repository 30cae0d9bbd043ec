"""How pages are written: templates, words in the visitor's language, numbers as their locale has them.

Autoescaping is on for all templates, and templates cannot turn it off. A language is there if its words are; the
sentences of plans and answers are the product's own, in English; so are refusals without a translation in
`refusal_words.py`.
"""

import gettext
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import Request, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from tacit.ledger import BudgetStatus, Ledger
from tacit.server.pages.outside_pages import outside_pages
from tacit.server.pages.refusal_words import shown_refusal
from tacit.server.problems import Problem

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
    made.install_gettext_translations(_words(language), newstyle=True)  # type: ignore[attr-defined]
    made.filters["number"] = lambda text: in_locale(str(text), language)
    return made


@cache
def _words(language: str) -> gettext.NullTranslations:
    ours, *others = (gettext.translation("pages", each / "words", [language], fallback=True) for each in folders())
    for other in others:
        ours.add_fallback(other)
    return ours


def folders() -> list[Path]:
    """Return the folders of templates, styles and words: the server's own, then those of other packages."""
    return [HERE, *(others.folder for others in outside_pages())]


def say_in(language: str) -> Callable[[str], str]:
    """Return what translates the words of a picture, as templates do those of a page."""
    return _words(language).gettext


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
    return [] if registered is None else [_bar(status) for status in ledger.budget_status(registered, analyst)]


def _bar(status: BudgetStatus) -> dict[str, Any]:
    return {
        "whose": status.budget.analyst,
        "period": status.budget.period,
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
