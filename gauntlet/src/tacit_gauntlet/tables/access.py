"""Who may have an answer, and what it costs: stored answers of others, and charges that depend on rows (Q17, L10).

Whoever may ask a table may have what was answered from it before. A question to another table, version, declaration or
source is another question, however alike it looks, and one analyst's request id is nobody else's.
"""

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tacit import Answer, count, epsilon
from tacit.errors import DeadRequest, EngineError, TacitError
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.engine import engines_do
from tacit_gauntlet.stage.ledger import Ledger, open_at, private_home
from tacit_gauntlet.stage.table import Table, protected

Probe = Callable[[], Answer]

QUESTION = "SELECT g, COUNT(*) AS n FROM t GROUP BY g"
UNASKED = "SELECT g, COUNT(*) AS n FROM t WHERE x <> 8 GROUP BY g"
USUAL: dict[str, Any] = {"columns": {"g": {"keys": ["a", "b"]}, "x": {"between": (0, 9)}}}


@case("Q17", title="a stored answer reaches only who may ask its table, and a hit tells nothing else", feature="ledger")
def stored_answers(_: Size) -> Evidence:
    """Ask once; then probe as others would: only the same question to the same table may be free."""
    with private_home() as home:
        path = rows_at(home / "t.parquet")
        with open_at(home / "ledger.db") as book:
            table = protected(path, ledger=book, **USUAL)
            for text in (QUESTION, UNASKED):  # what bounds cut is learned once, and that it is known is no secret
                table.sql(text).answer(epsilon="0.7")
            planned = table.sql(QUESTION).plan(epsilon=1).plan
            first = table.sql(QUESTION).answer(epsilon=1, analyst="ann", request_id="r1")
            others, ours = foreign(home, book, table), own(path, book, table)
            # ours first: another version, once declared, is what a new handle is about
            told = [name for name, probe in ours.items() if not same(probe(), first)]
            wrong = [name for name, probe in others.items() if probe().facts.free]
            again, fresh = (table.sql(text).plan(epsilon=1) for text in (QUESTION, UNASKED))
            # what is left has changed for everyone; what is said of it is the same for a question never asked
            if again.plan != planned or str(again.fit) != str(fresh.fit):
                told.append("a plan tells whether a question was asked before")
            wrong += unanswered(table)
    tries = len(others) + len(ours) + 3
    return Evidence(not wrong and not told, {"probes": tries, "reached others": wrong, "not as stored": told})


def rows_at(path: Path) -> Path:
    """Write a small table and return where it is."""
    pq.write_table(
        pa.table({"id": range(40), "g": ["ab"[n % 2] for n in range(40)], "x": [n % 9 for n in range(40)]}), path
    )
    return path


def own(path: Path, book: Ledger, table: Table) -> dict[str, Probe]:
    """Return ways to ask the same question of the same table, which are free and give the same numbers."""
    return {
        "the same analyst again": lambda: table.sql(QUESTION).answer(epsilon=1, analyst="ann"),
        "the same request again": lambda: table.sql(QUESTION).answer(epsilon=1, analyst="ann", request_id="r1"),
        "another analyst": lambda: table.sql(QUESTION).answer(epsilon=1, analyst="bob"),
        "nobody in particular": lambda: table.sql(QUESTION).answer(epsilon=1),
        "another's request id": lambda: table.sql(QUESTION).answer(epsilon=1, analyst="eve", request_id="r1"),
        "in Python": lambda: table.group_by("g").agg(n=count()).answer(epsilon=1, analyst="bob"),
        "in other letters": lambda: table.sql(QUESTION.lower()).answer(epsilon=1, analyst="bob"),
        "in other spacing": lambda: table.sql(QUESTION.replace(" ", "\n")).answer(epsilon="1.0", analyst="bob"),
        "with a condition that is always true": lambda: table.sql(f"{QUESTION} HAVING n > -1000000").answer(epsilon=1),
        "a handle opened anew": lambda: protected(path, ledger=book, **USUAL).sql(QUESTION).answer(epsilon=1),
    }


def foreign(home: Path, book: Ledger, table: Table) -> dict[str, Probe]:
    """Return questions that only look the same, each of which must be charged."""
    apart = {"budget": table.session.registered.budget, **USUAL}
    elsewhere, moved = rows_at(home / "elsewhere.parquet"), rows_at(home / "moved.parquet")

    def asked(source: Any = None, ledger: Any = book, **declared: Any) -> Probe:
        def probe() -> Answer:
            given = home / "t.parquet" if source is None else source
            asked_of = protected(given, ledger=ledger, **(apart | declared))
            return asked_of.group_by("g").count().answer(epsilon=1, analyst="ann")

        return probe

    def other_columns(facts: dict[str, Any]) -> dict[str, Any]:
        return {"columns": USUAL["columns"] | facts}

    def question(text: str, **words: Any) -> Probe:
        given: dict[str, Any] = {"epsilon": 1, "analyst": "ann"}
        return lambda: table.sql(text).answer(**(given | words))

    return {
        "another table of the same rows": asked(elsewhere, name="u"),
        "another file under the same name": asked(moved),
        "a frame under the same name": asked(pa.table({"id": [1], "g": ["a"], "x": [1]})),
        "another ledger": asked(ledger=home / "other.db"),
        "another version": asked(version=2),
        "another bound of rows": asked(rows_per_unit=1),
        "another bound of groups": asked(groups_per_unit=1),
        "another range": asked(**other_columns({"x": {"between": (0, 8)}})),
        "other public keys": asked(**other_columns({"g": {"keys": ["a", "b", "c"]}})),
        "another epsilon": question(QUESTION, epsilon="0.5"),
        "another question under a new request": question("SELECT COUNT(*) AS n FROM t", request_id="r2"),
        "another analyst's request id": question(
            "SELECT COUNT(*) AS n FROM t WHERE x > 3", analyst="bob", request_id="r1"
        ),
        "another filter": question("SELECT g, COUNT(*) AS n FROM t WHERE x < 9 GROUP BY g"),
        "the units": question("SELECT g, COUNT(DISTINCT id) AS n FROM t GROUP BY g"),
        "no groups": question("SELECT COUNT(*) AS n FROM t WHERE x < 4"),
        "a mean": question("SELECT g, AVG(x) AS n FROM t GROUP BY g"),
        "another aggregate": question("SELECT g, SUM(x) AS n FROM t GROUP BY g"),
    }


def same(answer: Answer, first: Answer) -> bool:
    """Return whether an answer is free and shows what the first one did."""
    return answer.facts.free and answer.to_dicts() == first.to_dicts()


def unanswered(table: Table) -> list[str]:
    """Return what is told of a question that was charged and failed: it has no answer, and its request id is dead."""
    text, faults = "SELECT COUNT(*) AS n FROM t WHERE x = 2", []

    def fails(*_: Any) -> Any:
        raise EngineError("the engine failed")

    with engines_do(fails):
        _raises(EngineError, lambda: table.sql(text).answer(epsilon=1, analyst="ann", request_id="dead"))
    if not _raises(DeadRequest, lambda: table.sql(text).answer(epsilon=1, analyst="ann", request_id="dead")):
        faults.append("a dead request was answered")
    if table.sql(text).answer(epsilon=1, analyst="bob", request_id="dead").facts.free:
        faults.append("a failed question was free for another analyst")
    return faults


def _raises(kind: type[Exception], action: Callable[[], object]) -> bool:
    try:
        action()
    except kind:
        return True
    return False


AGGREGATES = (
    "COUNT(*)",
    "COUNT(x)",
    "SUM(x)",
    "AVG(x)",
    "VARIANCE(x)",
    "MEDIAN(x)",
    "CORR(x, y)",
    "COUNT(DISTINCT id)",
    "SUM(z)",  # z has no range: refused
)
FILTERS = ("", "WHERE x > 3", "WHERE g = 'a'", "WHERE x / y > 1 AND g LIKE 'a%'", "WHERE x IS NULL", "WHERE q > 1")
KEYS = ("", "g", "h")
EPSILONS = ("0.01", "0.3", "2")
QUICK = 12
FULL = 60


def _tables() -> list[Table]:
    """The same declaration over no rows, a few, many of one person, and odd ones."""
    whole, part, text = pa.int64(), pa.float64(), pa.string()
    schema = pa.schema([("id", whole), ("x", whole), ("y", part), ("z", part), ("g", text), ("h", text)])
    empty = schema.empty_table()
    few = pa.table(
        [[1, 2, 3], [1, 5, None], [0.5, 2.0, None], [1.0] * 3, ["a", "b", None], ["p", "q", "p"]], schema=schema
    )
    heavy = pa.table(
        [[1] * 400, [9] * 400, [1.0] * 400, [0.0] * 400, ["a"] * 400, [f"h{i}" for i in range(400)]], schema=schema
    )
    odd = pa.table(
        [[None, 7], [2**62, -(2**62)], [float("nan"), float("inf")], [-0.0, 1e300], ["", "é"], ["", "'"]], schema=schema
    )
    columns = {"x": {"between": (0, 10)}, "y": {"between": (0, 1)}, "g": {"keys": ["a", "b"]}}
    return [
        protected(rows, unit="id", rows_per_unit=2, groups_per_unit=3, columns=columns, budget=epsilon(50, delta=1e-6))
        for rows in (empty, few, heavy, odd)
    ]


def _questions(count: int) -> Iterator[tuple[str, str]]:
    for place, (asked, where, key, spent) in enumerate(product(AGGREGATES, FILTERS, KEYS, EPSILONS)):
        if place % max(1, len(AGGREGATES) * len(FILTERS) * len(KEYS) * len(EPSILONS) // count):
            continue
        grouped = (f"{key}, ", f" GROUP BY {key}") if key else ("", "")
        yield f"SELECT {grouped[0]}{asked} AS n FROM t {where}{grouped[1]}", spent


def _outcome(table: Table, text: str, spent: str) -> str:
    """Return the charge as the ledger has it, or the refusal's words."""
    before = table.session.ledger.spent(table.session.registered)
    try:
        table.sql(text).answer(spent)
    except TacitError as refusal:
        return f"{type(refusal).__name__}: {refusal}"
    after = table.session.ledger.spent(table.session.registered)
    return f"{before} -> {after}"


@case("L10", title="what a question costs depends on its text and on public facts alone", feature="ledger")
def cost(size: Size) -> Evidence:
    """Ask the same questions of tables that differ in every row, and compare every charge and refusal."""
    tables = _tables()
    different: list[str] = []
    asked = 0
    for text, spent in _questions(QUICK if size == "quick" else FULL):
        outcomes = {_outcome(table, text, spent) for table in tables}
        asked += 1
        if len(outcomes) > 1:
            different.append(text)
    return Evidence(not different, {"questions": asked, "tables": len(tables), "charged differently": different[:5]})
