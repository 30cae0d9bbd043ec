"""Kept plans: what each question would do, in words, and the key it is known by, which stored answers hang on."""

import tacit
from tacit.ledger import open_ledger
from tests.kept.questions import all_asked
from tests.kept.stage import question_key, run_tacit, section, standing_still, visits, visits_file

BOUNDS = ("--unit", "person", "--rows-per-unit", 2, "--groups-per-unit", 2, "--most-rows-per-unit", 1)
BUDGET = ("--budget", 3, "--delta", "1e-6")
COUNT = "SELECT COUNT(*) AS n FROM visits"
UNITS = "SELECT COUNT(DISTINCT person) AS people FROM visits"
MEAN = "SELECT ward, AVG(pay) AS pay FROM visits GROUP BY ward"
SUM = "SELECT urgent, SUM(age) AS age FROM visits GROUP BY urgent"
COMMANDS: dict[str, tuple[object, ...]] = {
    "count": (COUNT, "--epsilon", 1),
    "mean by ward": (MEAN, "--between", "pay=0:125", "--epsilon", 1),
    "Gaussian": (
        SUM,
        "--between",
        "age=18:88",
        "--keys",
        "urgent=true,false",
        "--noise",
        "gaussian",
        "--epsilon",
        "1/2",
    ),
    "error": (COUNT, "--error", "n=40"),
    "JSON": (UNITS, "--epsilon", 1, "--format", "json"),
    "a large epsilon": (COUNT, "--epsilon", 12),
    "refused": (MEAN, "--epsilon", 1),
}


def text() -> str:
    """Return the kept plans."""
    with standing_still():
        parts = [*_of_people(), *_of_rows(), *_of_commands(), *_meanings()]
    return "\n".join(parts)


def _of_people() -> list[str]:
    parts = []
    with open_ledger(":memory:") as ledger:
        table = visits(ledger)
        for asked in all_asked():
            words = {name: value for name, value in asked.words.items() if name != "consistent"}
            question = asked.python(table)
            report = question.plan(**words)
            told = [str(report), f"question {question_key(report.plan)}"]
            if asked.sql is not None:
                told.insert(0, "SQL: the same question" if asked.sql(table) == question else "SQL: ANOTHER QUESTION")
            parts.append(section(asked.title, *told))
    return parts


def _of_rows() -> list[str]:
    """Return plans where each row is its own unit and rows are replaced, under a pure budget and one in rho."""
    parts = []
    for budget in (tacit.epsilon(2), tacit.rho("0.1", delta="1e-6")):
        with open_ledger(":memory:") as ledger:
            declared = {"unit": tacit.ROW, "rows_per_unit": None, "groups_per_unit": None, "neighbours": "replace"}
            table = visits(ledger, budget=budget, population=600, **declared)
            for title, question in (("count", table.count()), ("mean", table.group_by("urgent").mean("pay"))):
                report = question.plan(epsilon="0.3")
                parts.append(section(f"rows, {budget}: {title}", report, f"question {question_key(report.plan)}"))
    return parts


def _of_commands() -> list[str]:
    return [
        section(f"tacit plan: {title}", run_tacit("plan", visits_file(), sql, *words, *BOUNDS, *BUDGET))
        for title, (sql, *words) in COMMANDS.items()
    ]


def _meanings() -> list[str]:
    losses = {"explain": tacit.explain(1), "explain, with delta": tacit.explain("0.25", delta="1e-6", priors=[0.5])}
    shown = {
        "fraction": tacit.tradeoff("fraction", error=0.01, epsilon=1),
        "mean": tacit.tradeoff("mean", people=1000, epsilon=1),
        "counts": tacit.tradeoff("counts", people=10_000, error=0.05, k=20, touched=3),
        "maximum": tacit.tradeoff("maximum", people=10_000, epsilon="0.5", k=50),
    }
    return [section(title, text) for title, text in (losses | shown).items()]
