"""Attacks on joins: one unit that comes to several tables at once, and people whose two tables have two budgets.

Thousands of small databases, each with one unit more or without it, are asked at once: each has its own people and its
own group, so that what moves in a group is what its one newcomer moved.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import tacit
from tacit.errors import TacitError
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.table import (
    Cells,
    Question,
    Table,
    distance,
    exact_cells,
    in_sql,
    plan_of,
    protected,
    same_people,
)

NORMS = ("l0", "l1", "l2_squared", "linf")
BUDGET = tacit.epsilon(10, delta="1e-6")
WARDS = pa.table({"ward": ["a", "b", "c", None], "beds": [1, 5, 9, 2], "kind": ["x", "x", "y", "y"]})
DOUBLE = pa.table({"ward": ["a", "a", "a", "b"], "beds": [1, 5, 9, 2]})

# Each is asked by world. The unit `id` is never a key or a value.
SUMS = "SELECT world, COUNT(*) AS n, SUM(x) AS s FROM"
QUESTIONS = (
    f"{SUMS} visits JOIN people USING (id) GROUP BY world",
    f"{SUMS} visits LEFT JOIN people ON visits.id = people.id AND age > 1 WHERE COALESCE(age, 0) < 4 GROUP BY world",
    "SELECT a.world AS world, COUNT(*) AS n, SUM(a.x) AS s FROM visits AS a JOIN visits AS b ON a.id = b.id"
    " GROUP BY a.world",
    f"{SUMS} visits WHERE id IN (SELECT id FROM people WHERE age > 1) GROUP BY world",
    f"{SUMS} visits WHERE id NOT IN (SELECT id FROM people WHERE age > 1) GROUP BY world",
    f"{SUMS} visits WHERE EXISTS (SELECT 1 FROM people WHERE people.id = visits.id AND age = x) GROUP BY world",
    f"{SUMS} visits WHERE NOT EXISTS (SELECT 1 FROM people WHERE people.id = visits.id) OR x > 2 GROUP BY world",
    f"{SUMS} visits JOIN wards USING (ward) LEFT JOIN people USING (id) GROUP BY world",
    f"{SUMS} visits LEFT JOIN wards USING (ward) WHERE ward NOT IN (SELECT ward FROM wards WHERE beds < 2)"
    " GROUP BY world",
    "SELECT world, COUNT(*) AS n, SUM(k) AS s FROM visits JOIN (SELECT id, COUNT(*) AS k FROM people GROUP BY id) AS t"
    " USING (id) GROUP BY world",
)


class Picks:
    """Numbers that look random and are the same in every run."""

    def __init__(self) -> None:
        self._count = 0

    def below(self, limit: int) -> int:
        """Return a number from 0 to `limit` - 1."""
        self._count += 1
        return int.from_bytes(hashlib.blake2b(b"%d" % self._count, digest_size=8).digest(), "big") % limit

    def one_of(self, values: Sequence[Any]) -> Any:
        """Return one of some values."""
        return values[self.below(len(values))]


class Worlds:
    """Many small databases in one: the rows of visits and of people, with one newcomer in each, or without."""

    def __init__(self, count: int, *, newcomers: bool) -> None:
        made = Picks()
        self.count = count
        self.visits: list[tuple[Any, ...]] = []
        self.people: list[tuple[Any, ...]] = []
        for world in range(count):
            units = made.below(4)
            for unit in range(units):
                self._add(made, world, 8 * world + unit)
            self._add(made, world, None)
            self._add(made, world, 8 * world + 7, keep=newcomers)

    def _add(self, made: Picks, world: int, unit: int | None, *, keep: bool = True) -> None:
        """Draw a unit's rows in both tables; the draws are the same whether they are kept or not."""
        most = 2 if unit is None else 5
        visits = [
            (unit, world, made.one_of(["a", "b", "c", "z", None]), made.below(5)) for _ in range(made.below(most))
        ]
        people = [(unit, made.one_of([None, 0, 1, 2, 3, 4])) for _ in range(made.below(most))]
        if keep:
            self.visits += visits
            self.people += people

    def tables(self) -> tuple[Table, Table]:
        """Return both tables, protected as those of the same people."""
        visits = _rows(self.visits, ("id", "world", "ward", "x"))
        keys = {"world": {"keys": list(range(self.count))}, "x": {"between": (0, 4)}}
        return same_people(visits, _rows(self.people, ("id", "age")), columns=keys)


def _rows(rows: Sequence[tuple[Any, ...]], names: Sequence[str]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    kinds = {"ward": pa.string()}
    return pa.table(
        {name: pa.array(cells, kinds.get(name, pa.int64())) for name, cells in zip(names, columns, strict=True)}
    )


@case(
    "S45",
    title="one unit that comes to all joined tables moves what is released no further than planned",
    feature="engine",
)
def joined_tables(size: Size) -> Evidence:
    count = 300 if size == "quick" else 2500
    asked = QUESTIONS if size == "full" else QUESTIONS[::2] + QUESTIONS[1:4:2]
    broken: list[str] = []
    pairs = 0
    wards = tacit.public(WARDS, name="wards")
    tables = [Worlds(count, newcomers=newcomers).tables() for newcomers in (False, True)]
    for place, sql in enumerate(asked):
        with in_sql() if place % 2 == 0 else nullcontext():
            found = [visits.sql(sql, tables=[people, wards], between={"s": (0, 4)}) for visits, people in tables]
            before, after = (exact_cells(question) for question in found)
        pairs += count
        broken += moved_too_far(found[0], before, after, sql)
    broken += [*_doubled_rows(), *_other_rows(), *_shared_rows(salts=12)]
    return Evidence(passed=not broken, details={"pairs": pairs, "questions": len(asked), "moved too far": broken[:5]})


def moved_too_far(question: Question, before: list[Cells], after: list[Cells], sql: str) -> list[str]:
    """Return the worlds whose newcomer moved a release further than its plan says."""
    broken = []
    for left, right, release in zip(before, after, plan_of(question).releases, strict=True):
        sides = _by_world(left), _by_world(right)
        for world in sorted(sides[0].keys() | sides[1].keys()):
            moved = distance(*(side.get(world, {}) for side in sides))
            broken += [
                f"{sql}: {norm} {getattr(moved, norm)} > {getattr(release.sensitivity, norm)}"
                for norm in NORMS
                if getattr(moved, norm) > getattr(release.sensitivity, norm)
            ][:1]
    return broken[:3]


def _by_world(cells: Cells) -> dict[int, Cells]:
    found: dict[int, Cells] = {}
    for key, value in cells.items():
        found.setdefault(key[0], {})[key] = value
    return found


def _doubled_rows() -> list[str]:
    """Return where a row that is its own unit counts more than once: a public table has its key three times."""
    counts = []
    for rows in (["b"], ["b", "a"]):
        table = tacit.table(pa.table({"ward": rows}), unit=tacit.ROW, name="rows", budget=BUDGET, ledger=tacit.TRYOUT)
        for most in (1, 3):
            try:
                question = table.join(tacit.public(DOUBLE, name="double"), on="ward", most=most).count()
            except TacitError:
                continue
            counts.append(sum(exact_cells(question)[0].values()))
    return [f"one row moves a count by {counts[-1] - counts[0]}"] if counts and counts[-1] - counts[0] > 1 else []


def _other_rows() -> list[str]:
    """Return where other people's rows are changed by someone who is in the second table alone: a match on no unit."""
    visits = pa.table({"id": list(range(20)), "x": [3] * 20})
    asked = (
        "SELECT COUNT(*) AS n FROM visits WHERE EXISTS (SELECT 1 FROM people WHERE people.age = visits.x)",
        "SELECT COUNT(*) AS n FROM visits JOIN people ON people.age = visits.x",
        "SELECT COUNT(*) AS n FROM visits WHERE x IN (SELECT age FROM people)",
    )
    broken = []
    for sql in asked:
        counts = []
        for ages in ([9], [9, 3]):
            mine = same_people(visits, pa.table({"id": list(range(50, 50 + len(ages))), "age": ages}))
            try:
                counts.append(sum(exact_cells(mine[0].sql(sql, tables=[mine[1]]))[0].values()))
            except TacitError:
                counts.append(0)
        if abs(counts[1] - counts[0]) > 2:
            broken.append(f"{sql}: moved by {counts[1] - counts[0]}")
    return broken


def _shared_rows(salts: int) -> list[str]:
    """Return where someone without a match takes the places of others without one."""
    found = []
    others = [(1, -4), (2, -4), (3, -4)]
    for rows in (others, [*others, *[(4, 4)] * 4]):
        visits = pa.table({"id": [unit for unit, _ in rows], "x": [x for _, x in rows]})
        mine = same_people(visits, pa.table({"id": [9], "age": [1]}), columns={"x": {"between": (-4, 4)}})
        found.append(mine[0].sql("SELECT SUM(x) AS s FROM visits LEFT JOIN people USING (id)", tables=[mine[1]]))
    declared = plan_of(found[0]).releases[0].sensitivity.l1
    moves = []
    for number in range(salts):
        with in_sql():
            before, after = (exact_cells(each, salt=f"{number:032x}")[0] for each in found)
        moves.append(distance(before, after).l1)
    return [f"a left join moves by {max(moves)} > {declared}"] if max(moves) > declared else []


@case("Q40", title="people of joined tables pay once for both, and never from a fresh budget", feature="ledger")
def joined_budgets(_: Size) -> Evidence:
    """Join tables of two budgets, declare a file anew, and ask what was answered about other rows."""
    visits = pa.table({"id": [1, 2, 3, 3], "ward": ["a", "b", "a", "a"]})
    people = pa.table({"id": [1, 2, 3], "age": [1, 2, 3]})
    with tempfile.TemporaryDirectory() as folder:
        for name, rows in (("visits", visits), ("people", people)):
            pq.write_table(rows, Path(folder) / f"{name}.parquet")
        paths = [os.path.join(folder, f"{name}.parquet") for name in ("visits", "people")]
        first, second = same_people(*paths, budget=BUDGET)
        broken = _other_budgets(first, paths)
        wards = [tacit.public(rows, name="wards") for rows in (WARDS, WARDS.slice(1))]
        questions = [
            first.count(),
            first.join(second, on="id").count(),
            first.join(second.where("age > 1"), on="id", how="semi").count(),
            first.join(second.where("age > 2"), on="id", how="semi").count(),
            *(first.join(each, on="ward").count() for each in wards),
            second.count(),
        ]
        for number, question in enumerate(questions, 1):
            question.answer(epsilon=1)
            if not first.left.laplace == second.left.laplace == 10 - number:
                broken.append(f"question {number} left {first.left.laplace} and {second.left.laplace}")
    return Evidence(passed=not broken, details={"questions": len(questions), "not as charged": broken[:5]})


def _other_budgets(first: Table, paths: Sequence[str]) -> list[str]:
    """Return what was not refused of joins with tables of other budgets, and of a known file with a fresh one."""
    ledger = first.session.ledger
    apart = protected(paths[1], name="apart", budget=BUDGET, ledger=protected(paths[0]).session.ledger)
    elsewhere = protected(paths[1], name="elsewhere", budget=BUDGET)
    return [
        *_not_refused("tables of two ledgers", lambda: first.join(elsewhere, on="id")),
        *_not_refused(
            "tables of two budgets", lambda: apart.join(protected(paths[0], ledger=apart.session.ledger), on="id")
        ),
        *_not_refused("a file anew", lambda: protected(paths[0], name="anew", budget=BUDGET, ledger=ledger)),
    ]


def _not_refused(what: str, ask: Callable[[], object]) -> list[str]:
    try:
        ask()
    except TacitError:
        return []
    return [f"{what}: not refused"]
