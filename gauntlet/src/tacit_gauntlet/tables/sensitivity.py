"""Attacks on sensitivity: people who come, go or change must move what is released no further than was charged for."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from tacit.errors import QueryRefused
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.neighbours import (
    NEWCOMER,
    QUESTIONS,
    Row,
    as_table,
    asked_of,
    crowd,
    everything,
    newcomers,
    one_person,
    whole_table,
)
from tacit_gauntlet.stage.odd_cells import ODD_LINES, odd_lines_that_move_others
from tacit_gauntlet.stage.table import (
    Cells,
    Question,
    added,
    distance,
    exact_cells,
    pandas,
    plan_of,
    protected,
    too_far,
)


@case("S01", title="the order, partition and threads of rows do not show in a sum", feature="engine")
def order_and_partition(size: Size) -> Evidence:
    n = 1 << (16 if size == "quick" else 20)
    # as floats, whatever is added between the first and the last of these is lost: it is more where they are far apart
    values = [1e17, *((1.0, 0.1, 3.14e-9)[place % 3] * (1 + place % 7) for place in range(n - 2)), -1e17]
    single = pa.table({"id": range(n), "y": pa.array(values), "f": pa.array(values, pa.float32())})
    orders = [list(range(n)), list(range(n))[::-1], sorted(range(n), key=lambda place: place * 40503 % n)]
    seen: dict[str, list[Cells]] = {}
    for order, name in zip(orders, ("as given", "reversed", "mixed"), strict=True):
        moved = single.take(pa.array(order))
        for threads in (1, 2, 8):
            if size == "quick" and (name, threads) not in {("as given", 1), ("reversed", 8), ("mixed", 2)}:
                continue
            seen[f"{name}, {threads} threads"] = exact_cells(_sums(_in_duckdb(moved, threads)))
    with tempfile.TemporaryDirectory() as folder:
        for part in range(3):
            pq.write_table(single.slice(part * n // 3, n // 3 + (part == 2) * 2), Path(folder) / f"{part}.parquet")
        seen["three files"] = exact_cells(_sums(os.path.join(folder, "*.parquet")))
    first = next(iter(seen.values()))
    differ = [name for name, cells in seen.items() if cells != first]
    return Evidence(passed=not differ, details={"rows": n, "runs": len(seen), "sums that differ": differ})


def _sums(source: Any) -> Question:
    table = protected(source, columns={"y": {"between": (-100, 100)}, "f": {"between": (-1, 1)}})
    return table.sql("SELECT SUM(y) AS y, AVG(f) AS f, COUNT(*) AS n FROM t")


def _in_duckdb(rows: pa.Table, threads: int) -> tuple[Any, str]:
    connection = duckdb.connect()
    connection.execute(f"SET threads = {threads}")
    connection.register("rows_of", rows)
    connection.execute("CREATE TABLE t AS SELECT * FROM rows_of")
    return connection, "t"


@case("S02", title="one unit moves every aggregate by no more than the plan declares", feature="engine")
def remove_one(size: Size) -> Evidence:
    everyone = newcomers()
    bounds = [(2, 2)] if size == "quick" else [(1, 1), (2, 2), (3, 5), (50, 1)]
    tries, broken = 0, []
    for rows_per_unit, groups_per_unit in bounds:
        limits = {"rows_per_unit": rows_per_unit, "groups_per_unit": groups_per_unit}
        for ask in QUESTIONS if size == "full" else QUESTIONS[:2]:
            before = ask(asked_of(crowd(), **limits))
            without, plan = exact_cells(before), plan_of(before)
            found: dict[str, list[Cells]] = {"nobody": without}
            for name, rows in everyone.items():
                found[name] = exact_cells(ask(asked_of(crowd() + rows, **limits)))
                tries += 1
                broken += _beyond(plan, without, found[name], name)
            plan = plan_of(ask(asked_of(crowd(), **limits, neighbours="replace")))
            for name, cells in found.items():  # the newcomer's rows become another's
                for other, others in found.items():
                    broken += _beyond(plan, cells, others, f"{name} replaced by {other}")
    return Evidence(passed=not broken, details={"neighbours": tries, "moved too far": broken[:5]})


def _beyond(plan: Any, before: list[Cells], after: list[Cells], name: str) -> list[str]:
    broken = []
    for left, right, release in zip(before, after, plan.releases, strict=True):
        moved = distance(left, right)
        broken += [
            f"{name}: {norm} {getattr(moved, norm)} > {getattr(release.sensitivity, norm)}"
            for norm in ("l0", "l1", "l2_squared", "linf")
            if getattr(moved, norm) > getattr(release.sensitivity, norm)
        ]
    return broken


@case("S07", title="a heavy unit across very many groups moves what one unit may", feature="engine")
def heavy_unit(size: Size) -> Evidence:
    n = 5_000 if size == "quick" else 100_000
    heavy = one_person([(0, f"g{place % (n // 5)}", 7, 10.0, None) for place in range(n)])
    broken = too_far(everything(asked_of(crowd())), everything(asked_of(crowd() + heavy)))
    return Evidence(passed=not broken, details={"rows of one unit": n, "moved too far": broken})


@case("S08", title="keys merged, renamed or redefined are bounded as they are used", feature="query")
def redefined_keys(size: Size) -> Evidence:
    heavy = one_person([(0, f"g{place}", place, 10.0, None) for place in range(60)])
    merges = {
        "merged": "CASE WHEN g IN ('a', 'b', 'g1', 'g2') THEN 'm' ELSE 'n' END",
        "folded": "UPPER(g)",
        "trimmed": "TRIM(g)",
        "by value": "x % 3",
        "many": "x",
        "coalesced": "COALESCE(NULLIF(g, 'a'), 'b')",
    }
    tries, broken = 0, []
    for name, expression in merges.items():
        for where in (None, "y >= 0") if size == "full" else (None,):
            asked = []
            for rows in (crowd(), crowd() + heavy):
                table = asked_of(rows).derive(key=expression)
                asked.append((table.where(where) if where else table).group_by("key").sum("y"))
            tries += 1
            broken += [f"{name}: {what}" for what in too_far(*asked)]
    taken = 0
    for name in ("g", "id", "G", "X"):
        try:
            asked_of(crowd()).derive(**{name: "x + 1"})
        except QueryRefused:
            taken += 1
    details = {"plans": tries, "moved too far": broken, "redefinitions refused": f"{taken} of 4"}
    return Evidence(passed=not broken and taken == 4, details=details)


@case("S11", title="a row added at the front moves no other row's category", feature="tables")
def row_locality(size: Size) -> Evidence:
    differ = []
    front = one_person([(0, "A first", 1, 1.0, None)])
    for kind in ("dictionary", "enum") if size == "quick" else ("dictionary", "enum", "pandas"):
        for turn in range(1 if size == "quick" else 4):
            rows = [(row[0], f"{row[1]}{turn}", *row[2:]) for row in crowd(8 + turn)]
            sums = [exact_cells(_with_codes(each, kind)) for each in (rows, front, front + rows)]
            if [added(left, right) for left, right in zip(sums[0], sums[1], strict=True)] != sums[2]:
                differ.append(f"{kind} {turn}")
    return Evidence(passed=not differ, details={"others' rows that moved": differ})


def _with_codes(rows: Sequence[Row], kind: str) -> Question:
    """The same rows with units and keys held as codes, numbered as they come or as they sort."""
    table = as_table(rows)
    if kind == "enum":
        connection, _ = _in_duckdb(table, 2)
        connection.execute("CREATE TYPE key_code AS ENUM (SELECT DISTINCT g FROM t WHERE g IS NOT NULL ORDER BY g)")
        connection.execute("CREATE TYPE unit_code AS ENUM (SELECT DISTINCT id::VARCHAR FROM t ORDER BY id DESC)")
        connection.execute(
            "CREATE TABLE coded AS SELECT id::VARCHAR::unit_code AS id, g::key_code AS g, x, y, z FROM t"
        )
        return everything(protected((connection, "coded"), columns=_declared()))
    coded = table.set_column(1, "g", table["g"].dictionary_encode())
    coded = coded.set_column(0, "id", pa.array([str(row[0]) for row in rows]).dictionary_encode())
    # pandas would turn whole numbers with a gap into floats, by itself
    source = coded.to_pandas(types_mapper={pa.int64(): pandas().Int64Dtype()}.get) if kind == "pandas" else coded
    return everything(protected(source, columns=_declared()))


def _declared() -> dict[str, dict[str, Any]]:
    return {"x": {"between": (-3, 7)}, "y": {"between": (-5, 10)}, "z": {"between": (0, 100)}}


@case("S12", title="what one unit adds does not depend on how many others there are", feature="engine")
def pairing(size: Size) -> Evidence:
    newcomer = one_person([(0, "a", 1, 1.0, None)])
    alone = exact_cells(whole_table(asked_of(newcomer)))
    differ = []
    for people in (1, 2, 3) if size == "quick" else range(1, 12):
        sums = [exact_cells(whole_table(asked_of(rows))) for rows in (crowd(people), crowd(people) + newcomer)]
        if [added(left, right) for left, right in zip(sums[0], alone, strict=True)] != sums[1]:
            differ.append(people)
    return Evidence(passed=not differ, details={"crowds that changed what it adds": differ})


@case("S16", title="a unit that is added leaves every other unit's kept rows as they were", feature="engine")
def stable_bounding(size: Size) -> Evidence:
    """f(D + unit) − f(D) must be f(unit) to the last integer, for one salt."""
    differ, tries = [], 0
    names = list(newcomers())
    for salt in ("5a17",) if size == "quick" else [f"{n:04x}" for n in range(5)]:
        without = exact_cells(everything(asked_of(crowd())), salt=salt)
        for name in names if size == "full" else [names[0], names[2], names[3], names[-1]]:
            rows = newcomers()[name]
            alone = exact_cells(everything(asked_of(rows)), salt=salt)
            mixed = sorted(crowd() + rows, key=lambda row: (str(row[2]), str(row[1]), -row[0]))
            both = exact_cells(everything(asked_of(mixed)), salt=salt)
            tries += 1
            if [added(left, right) for left, right in zip(without, alone, strict=True)] != both:
                differ.append(f"{name}, salt {salt}")
    differ += [f"the line {line}" for line in odd_lines_that_move_others(size)]
    tries += len(ODD_LINES)
    return Evidence(passed=not differ, details={"tables": tries, "others' rows that moved": differ[:5]})


@case("S17", title="declared bounds are enforced, not trusted", feature="engine")
def enforced_bounds(size: Size) -> Evidence:
    people = 40 if size == "quick" else 400
    rows = [(person, "abcdefgh"[n % 8], 7, 10.0, None) for person in range(people) for n in range(24)]
    failures, kept = [], set[Any]()
    for rows_per_unit, groups_per_unit in ((1, 1), (2, 3), (3, 8)):
        limits = {"rows_per_unit": rows_per_unit, "groups_per_unit": groups_per_unit}
        cells = exact_cells(everything(asked_of(rows, **limits)))
        units = sum(value for place, value in cells[-1].items() if place[-1] == "units")
        total = sum(value for place, value in cells[1].items() if place[-1] == "total")
        step = plan_of(everything(asked_of(rows, **limits))).measured[1].step
        if units != people * groups_per_unit or total * step != 10 * units * rows_per_unit:
            failures.append(f"{limits}: {units} units, total {total * step}")
        if groups_per_unit == 1:
            kept = {place[0] for place in cells[-1]}
    if len(kept) < 8:  # units with the same groups must not all keep the same ones
        failures.append(f"only the groups {sorted(kept)} were ever kept")
    nobodys = [(None, "a", 7, 10.0, None)] * 50
    if exact_cells(everything(asked_of(rows + nobodys))) != exact_cells(everything(asked_of(rows))):
        failures.append("rows of nobody were counted")
    newcomer = everything(asked_of([*rows, *one_person([(0, "a", 7, 10.0, None)] * 500)]))
    failures += too_far(everything(asked_of(rows)), newcomer)
    return Evidence(passed=not failures, details={"units": people, "newcomer": NEWCOMER, "failures": failures})
