"""Rows that another engine keeps, cut by unit and answered part by part (S60, S61).

With one salt the parts must add up to the integers of the whole, over bounds and for people whose ids are written in
two ways: what splits one person, loses a part, counts one twice or chooses rows anew shows as another integer. And what
a task raises must tell nothing of the cell that made it raise.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.parts import (
    Piece,
    as_read,
    asked_in_parts,
    exact_whole,
    quickest_path,
    stand_in,
    told_by_a_task,
)
from tacit_gauntlet.stage.table import SALT, plan_of, protected_here

SECRET = "a cell that is nobody else's"
# ids of one person that are written in two ways, and of two people whose ids are nearly equal
UNITS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "float": (pa.float64(), [0.0, -0.0, 1.5, float("nan"), None, 5e-324]),
    "text": (pa.string(), ["a", "A", "é", "x" * 70, "x" * 71, None]),
    "int": (pa.int64(), [1, 2, 3, -(2**63), None, 7]),
}
QUESTIONS = (
    "SELECT g, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY g",
    "SELECT COUNT(DISTINCT x) AS d, COUNT(*) AS n FROM t",
    "SELECT g, MEDIAN(x) AS m FROM t GROUP BY g",
)


def rows_of(unit: str, rows: int) -> pa.Table:
    """Return rows over every bound: each person is in every group, many times."""
    kind, ids = UNITS[unit]
    return pa.table(
        {
            "id": pa.array([ids[at % len(ids)] for at in range(rows)], kind),
            "g": pa.array([("p", "q", "r", "s")[at // 6 % 4] for at in range(rows)]),
            "x": pa.array([at * 7 % 11 for at in range(rows)], pa.int64()),
        }
    )


@case("S60", title="rows cut by unit and answered in parts give the integers of the whole", feature="engine")
def cut_by_unit(size: Size) -> Evidence:
    asked = 0
    broken: list[str] = []
    numbers = (5,) if size == "quick" else (1, 2, 3, 5, 6, 8, 64)
    for unit in UNITS:
        rows = rows_of(unit, 180 if size == "quick" else 900)
        declared = {"columns": {"x": {"between": (0, 10)}}}
        for sql in QUESTIONS if size == "full" or unit == "float" else QUESTIONS[:1]:
            there, here = (protected_here(each, **declared).sql(sql) for each in (stand_in(rows), rows))
            plan = plan_of(here)
            with quickest_path(here, plan) as path:
                whole = as_read(exact_whole(here, plan, SALT, path))
                for parts in numbers:
                    found = asked_in_parts(there, plan, SALT, parts=parts, places=min(3, parts), path=path)
                    asked += 1
                    if as_read(found) != whole:
                        broken.append(f"{unit}: {sql} in {parts} parts")
    return Evidence(passed=not broken and asked > 0, details={"asked": asked, "other integers": broken[:5]})


@case("S61", title="what a task of another engine raises tells nothing of rows", feature="engine")
def quiet_tasks(_: Size) -> Evidence:
    def raising(batches: Iterable[pa.RecordBatch]) -> Iterator[Piece]:
        for batch in batches:
            raise ValueError(f"cannot read {batch.column(0)[0]}")
        yield Piece(0, 0, b"")

    told = told_by_a_task(raising, pa.RecordBatch.from_pydict({"x": [SECRET]}))
    return Evidence(passed=bool(told) and SECRET not in told, details={"raised": bool(told), "cell": SECRET in told})
