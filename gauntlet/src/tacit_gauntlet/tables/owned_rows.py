"""Attacks on rows whose unit is in another table: one person comes, with rows there that claim the keys of others.

Many small databases are asked at once, each a group of its own, so that what moves in a group is what its one newcomer
moved. Keys have no owner, one owner or several.
"""

from contextlib import nullcontext
from typing import Any

import pyarrow as pa

from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.table import Table, bounded_table, exact_cells, in_sql, owned_by, protected
from tacit_gauntlet.tables.joins import Picks, moved_too_far

KEYS, NEWCOMER = 4, 7
SUMS = "SELECT world, COUNT(*) AS n, SUM(x) AS s FROM lines"
QUESTIONS = (
    f"{SUMS} GROUP BY world",
    f"{SUMS} JOIN orders USING (world, o) WHERE y > 0 GROUP BY world",
    f"{SUMS} WHERE EXISTS (SELECT 1 FROM orders WHERE orders.id = lines.id AND y = x) GROUP BY world",
    "SELECT world, COUNT(*) AS n, SUM(k) AS s FROM (SELECT id, world, COUNT(*) AS k FROM lines GROUP BY id, world)"
    " GROUP BY world",
)


def tables(count: int, *, newcomers: bool) -> tuple[Table, Table]:
    """Return orders and the lines that hang on them; lines on a newcomer's own key come and go with the newcomer."""
    made = Picks()
    orders: list[tuple[Any, ...]] = []
    lines: list[tuple[Any, ...]] = []
    for world in range(count):
        for unit in (*range(made.below(4)), None, NEWCOMER):
            kept = newcomers or unit != NEWCOMER
            who = None if unit is None else 8 * world + unit
            own = [made.one_of([*range(KEYS), None, NEWCOMER if unit == NEWCOMER else 0]) for _ in range(made.below(4))]
            rows = [(who, world, key, made.below(3)) for key in own]
            orders += rows if kept else []
        for _ in range(made.below(12)):
            key, x = made.one_of([*range(KEYS), None, NEWCOMER]), made.below(5)
            lines += [(world, key, x)] if newcomers or key != NEWCOMER else []
    facts = {"world": {"keys": list(range(count))}, "x": {"between": (0, 4)}}
    owners = protected(_rows(orders, ("id", "world", "o", "y")), name="orders", columns={"world": facts["world"]})
    return owned_by(owners, _rows(lines, ("world", "o", "x")), via=["world", "o"], columns=facts), owners


def _rows(rows: list[tuple[Any, ...]], names: tuple[str, ...]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.table({name: pa.array(cells, pa.int64()) for name, cells in zip(names, columns, strict=True)})


@case(
    "S72",
    title="one person in the table that has the unit moves what is released no further than planned",
    feature="engine",
)
def rows_by_key(size: Size) -> Evidence:
    count = 300 if size == "quick" else 2500
    broken: list[str] = []
    both = [tables(count, newcomers=newcomers) for newcomers in (False, True)]
    asked = QUESTIONS if size == "full" else QUESTIONS[:2]
    for place, sql in enumerate(asked):
        with in_sql() if place % 2 == 0 else nullcontext():
            found = [lines.sql(sql, tables=[orders], between={"s": (0, 4)}) for lines, orders in both]
            before, after = (exact_cells(question) for question in found)
        broken += moved_too_far(found[0], before, after, sql)
    return Evidence(passed=not broken, details={"pairs": count * len(asked), "moved too far": broken[:5]})


# --- windows over a unit's own rows ---

RANKED = "SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY y) AS nth FROM t"
WINDOWS = (
    f"SELECT COUNT(*) AS n, SUM(x) AS s FROM ({RANKED}) WHERE nth < 3",
    "SELECT SUM(d) AS s FROM (SELECT x - LAG(x) OVER (PARTITION BY id, w ORDER BY y DESC) AS d FROM t) WHERE d > 0",
    "SELECT SUM(f) AS s FROM (SELECT FIRST_VALUE(x) OVER (PARTITION BY id ORDER BY y NULLS FIRST) AS f FROM t)",
    "SELECT SUM(x) AS s FROM (SELECT x FROM t QUALIFY RANK() OVER (PARTITION BY id ORDER BY x DESC) = 2)",
    "SELECT SUM(x) AS s FROM (SELECT x, LEAD(x, 2) OVER (PARTITION BY id ORDER BY y) AS b FROM t) WHERE x < b",
)
BOUNDS: dict[str, Any] = {"rows_per_unit": 64, "groups_per_unit": 2, "most_rows_per_unit": 64}


@case("S73", title="a window inside sees one unit's rows, and gives one result in any order of rows", feature="engine")
def windows_of_one_unit(_: Size) -> Evidence:
    """Sums over all units are the sums over each unit alone, and over the same rows turned round and mixed."""
    made = Picks()
    rows = [(made.one_of([*range(9), None]), made.below(3), made.below(2), made.below(9)) for _ in range(160)]
    mixed = [rows[(place * 77) % len(rows)] for place in range(len(rows))]
    alone = [[row for row in rows if row[0] == unit] for unit in range(9)]
    broken: list[str] = []
    for sql in WINDOWS:
        whole, *others = (_window_sums(each, sql) for each in (rows, rows[::-1], mixed))
        if any(each != whole for each in others):
            broken.append(f"another order, another sum: {sql}")
        each_alone = [_window_sums(mine, sql) for mine in alone]
        if [sum(column) for column in zip(*each_alone, strict=True)] != whole:
            broken.append(f"other people's rows change a sum: {sql}")
    return Evidence(passed=not broken, details={"questions": len(WINDOWS), "broken": broken})


def _window_sums(rows: list[tuple[Any, ...]], sql: str) -> list[int]:
    table = protected(_rows(rows, ("id", "y", "w", "x")), **BOUNDS)
    exact = bounded_table(table.sql(sql, between={"s": (-9, 9)}))
    return [exact.sums["rows"][0], exact.sums["total_0"][0]]
