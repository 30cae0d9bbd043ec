"""Record and replay: with noise and salt frozen, two neighbouring tables must differ in the noisy numbers alone."""

import json
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any

from tacit import Answer, count, count_units, mean
from tacit import sum as sum_of
from tacit.errors import EngineError, LargeEpsilonWarning
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.engine import heard_steps, reading_does, releasing_does
from tacit_gauntlet.stage.neighbours import Row, asked_of, crowd, newcomers
from tacit_gauntlet.stage.table import Ear, Question, Table, frozen, uncut

KEYS = ["a", "b", "f", "nowhere"]
EVEN = ("count", "n", "s", "c", "u")  # outputs whose bars are as wide as the law of the noise says


def asked(table: Table) -> list[Question]:
    """Return a question for every door, aggregate and kind of key."""
    return [
        table.count(),
        table.where("x > 0").agg(m=mean("y"), s=sum_of("z"), c=count("x"), u=count_units()),
        table.group_by("g", keys=KEYS).agg(n=count(), m=mean("x"), u=count_units()),
        table.sql("SELECT g, AVG(y) AS y, COUNT(*) AS n FROM t GROUP BY g HAVING n > 1000000 ORDER BY y DESC LIMIT 3"),
    ]


def record(answer: Answer) -> dict[str, Any]:
    """Return everything an answer shows but its noisy numbers and the ledger's name, time and hashes."""
    said: dict[str, Any] = json.loads(answer.to_json())
    said["receipt"] = {name: type(value).__name__ for name, value in said["receipt"].items()}
    said["answered"]["time"] = type(said["answered"]["time"]).__name__
    for learned in said.get("bounds", {}).get("learned", []):
        learned["time"] = type(learned["time"]).__name__
    said["rows"] = [[(name, type(value).__name__) for name, value in row.items()] for row in said["rows"]]
    typed = [(field.name, str(field.type)) for field in answer.to_arrow().schema]
    return said | {"columns": answer.columns, "types": dict(answer.types), "arrow": typed, "lines": _shape(answer)}


def _shape(answer: Answer) -> list[str]:
    """The printed answer's lines that hold no numbers of cells."""
    return [line for line in str(answer).splitlines() if "spent" in line or "shown" in line or "durable" in line]


@contextmanager
def listening() -> Iterator[list[str]]:
    """Yield a list of whatever is logged while open; a warning is an error."""
    ear = Ear()
    logging.getLogger().addHandler(ear)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", LargeEpsilonWarning)  # it is about the budget, before any row is read
            yield ear.heard
    finally:
        logging.getLogger().removeHandler(ear)


def run_all(rows: Sequence[Row], noise: Any) -> list[dict[str, Any]]:
    """Return the record of every question about the rows, logs included."""
    found = []
    with frozen(), listening() as heard:
        for question in asked(asked_of(rows)):
            said = record(question.answer(epsilon=1, noise=noise))
            found.append(said | {"log": list(heard)})
    return found


def tables(size: Size) -> dict[str, list[Row]]:
    """Return neighbours, and tables that rows alone make odd: empty, all NULL, nobody's, one heavy unit."""
    odd: dict[str, list[Row]] = {
        "empty": [],
        "all null": [(1, None, None, None, None)] * 5,
        "rows of nobody": [(None, "a", 1, 1.0, None)] * 5,
        "no row after WHERE": [(1, "a", -1, 1.0, None)],
    }
    people = newcomers()
    if size == "quick":
        return {"empty": [], "all null": odd["all null"], "heavy": crowd() + people["heavy, across groups"]}
    return odd | {name: crowd() + rows for name, rows in people.items()}


def _differences(size: Size, noise: Any) -> list[str]:
    usual = run_all(crowd(), noise)
    differ = []
    for name, rows in tables(size).items():
        for place, (left, right) in enumerate(zip(usual, run_all(rows, noise), strict=True)):
            differ += [f"{name}, question {place}: {what}" for what in left if left[what] != right[what]]
    return differ


@case("Q13", title="a response's shape, order and types do not depend on rows", feature="release")
def response_shape(size: Size) -> Evidence:
    differ = _differences(size, None)
    return Evidence(passed=not differ, details={"tables": len(tables(size)) + 1, "differ": differ[:5]})


@case(
    "Q21",
    title="nothing computed exactly from rows leaves: charges, notes, logs, warnings, stored text",
    feature="door",
)
def nothing_exact_leaves(size: Size) -> Evidence:
    differ = _differences(size, "gaussian")
    stored = []
    for rows in (crowd(), []):
        table = asked_of(rows)
        with frozen():
            for question in asked(table):
                question.answer(epsilon=1)
        kept = []
        for entry in table.session.ledger.entries():
            plain = {name: value for name, value in entry.record.items() if name in ("kind", "events", "version")}
            kept.append((entry.kind, plain, sorted(entry.record)))
        stored.append(kept)
    if stored[0] != stored[1]:
        differ.append("the ledger's entries differ beyond the answers")
    return Evidence(passed=not differ, details={"differ": differ[:5]})


@case("Q14", title="error bars and everything said about an answer depend on no row", feature="release")
def bars_reveal_nothing(size: Size) -> Evidence:
    """Counts and sums have the same width on every table; each interval is a function of the noisy number alone."""
    widths: dict[str, list[list[Any]]] = {}
    for name, rows in ({"usual": crowd()} | tables(size)).items():
        with frozen(), uncut():
            found = []
            for question in asked(asked_of(rows))[:3]:
                rows_of = question.answer(epsilon=1).to_dicts()
                found += [[_wide(row, cell) for cell in row if cell in EVEN] for row in rows_of]
            widths[name] = found
    differ = [name for name, found in widths.items() if found != widths["usual"]]
    return Evidence(passed=not differ, details={"tables": len(widths), "differ": differ})


def _wide(row: dict[str, Any], name: str) -> tuple[Any, Any]:
    return round(row[name] - row[f"{name}_low"], 9), round(row[f"{name}_high"] - row[name], 9)


@case("S13", title="charge, then read, then noise, then record: in this order, whatever the rows", feature="session")
def control_flow(size: Size) -> Evidence:
    runs = {name: _steps(rows) for name, rows in ({"usual": crowd()} | tables(size)).items()}
    wanted = ["charge", "read", "noise", "record"]
    wrong = [name for name, steps in runs.items() if steps != runs["usual"]]
    order = list(dict.fromkeys(step.split(":")[0] for step in runs["usual"]))
    failures = [] if order == wanted else [f"the order is {order}"]
    failures += [f"{name}: another course than usual" for name in wrong] + _failing_engine()
    return Evidence(passed=not failures, details={"steps": runs["usual"][:6], "failures": failures})


def _steps(rows: Sequence[Row]) -> list[str]:
    """Return the steps of answering public-key questions, in order; a charge counts once it is durable."""
    with heard_steps() as steps:
        for question in asked(asked_of(rows))[:3]:
            question.answer(epsilon=1)
    return steps


def _failing_engine() -> list[str]:
    """An engine or a release that fails leaves the charge, and says one fixed thing."""
    said, failures = set(), []
    for problem, step in product(("CANARY 4711", "another"), (reading_does, releasing_does)):
        table = asked_of(crowd())
        before = table.session.ledger.spent(table.session.registered)

        def failing(*_: Any, problem: str = problem) -> None:
            raise ValueError(problem)

        with step(failing), listening():
            try:
                table.count().answer(epsilon=1)
                failures.append("a failed engine was answered")
            except (EngineError, ValueError) as error:
                said.add(str(error))
        if table.session.ledger.spent(table.session.registered) == before:
            failures.append("a failed engine was not charged for")
    return failures if len(said) == 1 else [*failures, "the message depends on the failure"]
