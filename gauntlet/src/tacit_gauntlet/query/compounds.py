"""Attacks on questions of several parts: what is released of every level and branch is charged, all at once."""

import json
from fractions import Fraction
from typing import Any

import pyarrow as pa

import tacit
from tacit.errors import BudgetExceeded
from tacit_gauntlet.frame.case import Evidence, Size, case

HALF = Fraction(1, 2)
# Each with how many tables are released for it.
ASKED = {
    "SELECT a, b, COUNT(*) AS n FROM t GROUP BY ROLLUP (a, b)": 1,
    "SELECT a, b, COUNT(*) AS n FROM t GROUP BY CUBE (a, b)": 1,
    "SELECT a, b, SUM(x) AS n FROM t GROUP BY GROUPING SETS ((a, b), (b))": 1,
    "SELECT a, b, VARIANCE(x) AS n FROM t GROUP BY ROLLUP (a, b)": 3,
    "SELECT 'u' AS a, COUNT(*) AS n FROM t WHERE a = 'u' UNION ALL SELECT 'v', COUNT(*) FROM t WHERE a = 'v'": 2,
    "SELECT a, COUNT(*) AS n FROM t GROUP BY ROLLUP (a) UNION ALL SELECT 'x', SUM(x) FROM t": 2,
    "SELECT 1 AS a, COUNT(*) AS n FROM t UNION ALL SELECT 2, COUNT(*) FROM t": 1,
    "SELECT a, COUNT(*) AS n, MODE(b) AS m FROM t GROUP BY a": 2,
    "SELECT a, MODE(b) AS m, COUNT(*) AS n FROM t GROUP BY ROLLUP (a)": 3,
    "SELECT a, COUNT(*) / (SELECT SUM(x) FROM t WHERE x > 3) AS n FROM t GROUP BY a HAVING COUNT(*) > 0": 2,
}


def _table() -> Any:
    rows = pa.table({"a": ["u", "v"] * 40, "b": [1, 2, 3, 4] * 20, "x": list(range(8)) * 10})
    columns: dict[str, Any] = {"a": {"keys": ["u", "v"]}, "b": {"keys": [1, 2, 3, 4]}, "x": {"between": (0, 7)}}
    return tacit.table(
        rows, unit=tacit.ROW, name="t", budget=tacit.epsilon(1), columns=columns, ledger=tacit.TRYOUT, version=1
    )


@case("Q51", title="a question of several parts is charged for all of them, at once or not at all", feature="query")
def parts_charged(_: Size) -> Evidence:
    """Ask for levels and branches, and add up what the certificate's noise costs beside what the budget lost."""
    wrong: list[str] = []
    for text, tables in ASKED.items():
        table = _table()
        answer = table.sql(text).answer(epsilon=HALF)
        certificate = answer.certificate()
        released = json.loads(certificate["answer"])["together"]
        costs = [Fraction(event["sensitivity"]) / Fraction(event["scale"]) for event in certificate["events"]]
        checks = {
            "tables": len(released) == tables,
            "an event for every table": len(costs) >= tables,
            "noise for all of epsilon": sum(costs) <= HALF,
            "charged": table.left.epsilon == 1 - HALF,
            "one entry": certificate["loss"]["epsilon"] == "1/2",
            "equal parts are one": "UNION ALL" not in text
            or tables > 1
            or len({row["n"] for row in answer.to_dicts()}) == 1,
            "free again": table.sql(text).answer(epsilon=HALF).to_dicts() == answer.to_dicts(),
            "nothing more for that": table.left.epsilon == 1 - HALF,
            "refused whole": _is_refused(table, text),
        }
        wrong += [f"{name}: {text}" for name, holds in checks.items() if not holds]
    return Evidence(not wrong, {"questions": len(ASKED), "wrong": wrong[:5]})


def _is_refused(table: Any, text: str) -> bool:
    """Whether a question with room for a part of it alone is refused, and nothing is taken for it."""
    try:
        table.sql(text).answer(epsilon=Fraction(3, 4))
    except BudgetExceeded:
        return bool(table.left.epsilon == HALF)
    return False
