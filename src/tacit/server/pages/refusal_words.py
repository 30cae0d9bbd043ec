"""A refusal as a page shows it: in the visitor's language, and with ways out that a page offers.

Refusals are English sentences of the product, and their hints may name options of the command line or arguments in
Python. The most frequent refusals have their own words here. Any other one keeps its English sentence, below
a line in the visitor's language, and loses the parts of its hint that a browser does not offer.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

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
