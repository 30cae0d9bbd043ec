"""Kept answers: what a person sees of each question under random bits that stand still, printed, as JSON and as HTML.

Each is asked of a ledger of its own, so that one more question changes no other. JSON and HTML are long; all are kept
as a hash, and those of a few questions in full.
"""

from tacit.ledger import open_ledger
from tests.kept.questions import OTHERS, all_asked
from tests.kept.stage import run_tacit, section, short, standing_still, steady, visits, visits_file

IN_FULL = ("mean, private groups, laplace", *(title for title in OTHERS if title[0] in "sH"))
BOUNDS = ("--unit", "person", "--rows-per-unit", 2, "--groups-per-unit", 2, "--most-rows-per-unit", 1)
BOUNDS += ("--between", "age=18:88")
COMMANDS = {
    "table": (),
    "the same again": (),
    "CSV": ("--format", "csv"),
    "no room": ("--epsilon", 9),
}


def text() -> str:
    """Return the kept answers."""
    parts = []
    with standing_still() as world:
        for asked in all_asked(both_noises=False):
            with open_ledger(":memory:") as ledger:
                question = asked.python(visits(ledger))
                world.again()
                answer = question.answer(**asked.words)
                json, html, csv = map(steady, (answer.to_json(), answer._repr_html_(), answer.to_csv()))
                types = ", ".join(f"{name} {kind}" for name, kind in answer.types.items())
                parts.append(section(asked.title, answer, types, f"JSON {short(json)}", f"HTML {short(html)}"))
                if asked.title in IN_FULL:
                    parts.append(section(f"{asked.title}: JSON, HTML and CSV", json, html, csv))
        budget = ("--budget", 3, "--delta", "1e-6")
        sql = "SELECT site, COUNT(*) AS n, AVG(age) AS age FROM visits GROUP BY site"
        for title, words in COMMANDS.items():
            world.again()
            words = words if "--epsilon" in words else (*words, "--epsilon", 1)
            parts.append(section(f"tacit ask: {title}", run_tacit("ask", visits_file(), sql, *words, *BOUNDS, *budget)))
    return "\n".join(parts)
