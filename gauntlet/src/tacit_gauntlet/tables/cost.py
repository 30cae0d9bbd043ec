"""What a question costs: a function of its text and of public facts, never of a row (L10)."""

from collections.abc import Iterator
from itertools import product

import pyarrow as pa

from tacit.door import Table
from tacit.errors import TacitError
from tacit.privacy.loss import epsilon
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.table import protected

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
