"""The oracle of questions: each plan that a public door runs, run again on all tables of a small world without noise.

Facts that a question learns are made up, so that caps and ranges are anything. Then the exact integers of neighbouring
tables are compared with the sensitivity that the plan declares and with the event that the ledger was charged for.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from tacit import ROW, asking
from tacit.asking.session import Beside, Session
from tacit.auditing import replay
from tacit.engine import ExecutionPath, open_engine
from tacit.engine.kernel import kernel_path
from tacit.errors import EngineError, TacitError
from tacit.exact import ExactTable
from tacit.ledger import open_ledger
from tacit.plan import NoisyRelease, Plan
from tacit.privacy import Event, GaussianNoise, LaplaceNoise, event_from_dict
from tacit.release import NoisyTable
from tacit.tables import PublicTable
from tacit_gauntlet.stage.engine import kernel_at_hand
from tacit_gauntlet.stage.fuzz import Chooser
from tacit_gauntlet.stage.oracle_questions import OF_ROWS, SHAPES, WARDS, declared_of, question_of
from tacit_gauntlet.stage.parts import asked_in_parts, stand_in
from tacit_gauntlet.stage.table import SALT
from tacit_gauntlet.stage.worlds import (
    IDS,
    NEIGHBOURS,
    SMALL,
    TABLES,
    VISITS,
    Likes,
    Neighbours,
    World,
    as_table,
    schema_of,
    world_of,
    world_of_rows,
)
from tacit_gauntlet.targets import planted, standing

Read = Callable[[], ExactTable]
BROKEN_MOST = 1  # so many are enough: each is a bug
EPSILONS: tuple[str | int, ...] = ("0.5", 1, 3, 8, 20)


@dataclass
class Found:
    """What the oracle has seen: how many pairs on which path and of which shape, what moved how far, what is broken."""

    pairs: Counter[str] = field(default_factory=Counter)
    questions: Counter[str] = field(default_factory=Counter)
    units: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    moved: int = 0  # pairs whose integers differ
    farthest: float = 0.0  # the largest part of a charged sensitivity that a pair is apart
    reached: dict[str, float] = field(default_factory=dict)  # the same on each path
    broken: list[str] = field(default_factory=list)

    @property
    def is_enough(self) -> bool:
        """Whether so much is broken that nothing more has to be looked for."""
        return len(self.broken) >= BROKEN_MOST

    def figures(self) -> dict[str, Any]:
        """Return it as figures to print."""
        return {
            "pairs": dict(self.pairs),
            "questions": dict(self.questions),
            "units": dict(self.units),
            "refused": self.refused,
            "pairs that differ": self.moved,
            "farthest, of what is charged": round(self.farthest, 4),
            "by path": {path: round(used, 4) for path, used in self.reached.items()},
            "broken": self.broken[:BROKEN_MOST],
        }


@dataclass(frozen=True)
class Asked:
    """One release of a question: the session of its rows, its plan, and the ledger's entry that pays for it."""

    session: Session
    plan: Plan
    entry: int
    charged: tuple[Event, ...]


# ---- where rows are -------------------------------------------------------------------------------------------------


class Place(Protocol):
    """Tables v and p in some engine, whose rows can be changed."""

    def fill(self, rows: Mapping[str, pa.Table]) -> None:
        """Have these rows and no others."""

    def reads(self, choose: Chooser, asked: Asked) -> Iterator[tuple[str, Read]]:
        """Yield the paths on which a plan is to be run, each with what runs it on the rows that are there then."""


class Here:
    """Tables in a DuckDB of their own: the paths in SQL, of the kernel, of rows that are units, and the patient one."""

    def __init__(self, schemas: Mapping[str, pa.Schema]) -> None:
        self.connection = duckdb.connect()
        self.connection.execute("SET threads = 1")
        for name, schema in schemas.items():
            self.connection.register("given", schema.empty_table())
            self.connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")

    def sources(self, names: Sequence[str]) -> dict[str, Any]:
        """Return what opens each table."""
        return {name: (self.connection, name) for name in names}

    def fill(self, rows: Mapping[str, pa.Table]) -> None:
        """Have these rows and no others."""
        for name, table in rows.items():
            self.connection.register("given", table)
            self.connection.execute(f"DELETE FROM {name}")
            self.connection.execute(f"INSERT INTO {name} SELECT * FROM given")

    def reads(self, choose: Chooser, asked: Asked) -> Iterator[tuple[str, Read]]:
        """Yield the quick path that a plan has, and one of the two that every plan has."""
        plan, source = asked.plan, asked.session.engine.source
        paths: list[ExecutionPath] = [choose.one(("sql", "patient"))]
        if kernel_path.supports(plan, source):
            paths.append("kernel")
        for path in paths:
            engine = open_engine(source, path=path)
            yield path, lambda engine=engine: engine.aggregate(plan, SALT)  # type: ignore[misc]


class InParts:
    """Tables whose rows another engine would keep: cut by unit, and answered part by part."""

    def __init__(self, schemas: Mapping[str, pa.Schema], declared: Mapping[str, Any]) -> None:
        self._rows = {name: _Handed(schema.empty_table()) for name, schema in schemas.items()}
        sources = {name: stand_in(handed, name) for name, handed in self._rows.items()}
        self._sessions = {name: table.session for name, table in protected_tables(sources, declared).items()}

    def fill(self, rows: Mapping[str, pa.Table]) -> None:
        """Have these rows and no others."""
        for name, table in rows.items():
            self._rows[name].rows = table

    def reads(self, _: Chooser, asked: Asked) -> Iterator[tuple[str, Read]]:
        """Yield parts on the quickest path that a plan allows."""
        session, plan = moved_to(asked.session, self._sessions), asked.plan
        path: ExecutionPath = "kernel" if kernel_path.supports(plan, session.engine.source) else "sql"
        yield f"parts, {path}", lambda: asked_in_parts(session, plan, SALT, parts=3, places=2, path=path)


class Elsewhere:
    """Tables that another engine has stored; `store` stores rows under a name and returns the words that open them."""

    def __init__(
        self, schemas: Mapping[str, pa.Schema], declared: Mapping[str, Any], store: Callable[[pa.Table, str], Any]
    ) -> None:
        self._store = store
        words = {name: store(schema.empty_table(), name) for name, schema in schemas.items()}
        sources = {name: each.pop("source") for name, each in words.items()}
        tables = protected_tables(sources, {**declared, **words["v"]})
        self._sessions = {name: table.session for name, table in tables.items()}

    def fill(self, rows: Mapping[str, pa.Table]) -> None:
        """Have these rows and no others."""
        for name, table in rows.items():
            self._store(table, name)

    def reads(self, choose: Chooser, asked: Asked) -> Iterator[tuple[str, Read]]:
        """Yield the path in SQL and, every second time, the kernel's if a plan has one."""
        session, plan = moved_to(asked.session, self._sessions), asked.plan
        is_quick = kernel_path.supports(plan, session.engine.source) and choose.number(2) == 0
        path: ExecutionPath = "kernel" if is_quick else "sql"
        engine = open_engine(session.engine.source, path=path)
        yield f"elsewhere, {path}", lambda: engine.aggregate(plan, SALT)


@dataclass
class _Handed:
    """Rows that are handed over in batches, as they are by then."""

    rows: pa.Table

    @property
    def schema(self) -> pa.Schema:
        return self.rows.schema

    def select(self, columns: Sequence[str]) -> pa.Table:
        return self.rows.select(columns)


def moved_to(asked: Session, sessions: Mapping[str, Session]) -> Session:
    """Return the session that asks the same of tables of the same names elsewhere."""
    base = sessions[(asked.base or asked).declaration.name]
    return base.about(asked.relation, Beside(sessions, asked.beside.publics))


def protected_tables(sources: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, asking.Table]:
    """Return the tables v and, where there is one, p of the same people, in a ledger of their own."""
    ledger = open_ledger(":memory:")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so large an epsilon protects nobody
        found = {"v": asking.table(sources["v"], **{"name": "v", "unit": "u", "ledger": ledger, **declared})}
        if "p" in sources:
            words = {name: declared[name] for name in ("neighbours", "spark") if name in declared}
            found["p"] = asking.table(sources["p"], name="p", unit="u", ledger=ledger, same_people_as="v", **words)
    return found


# ---- what is asked --------------------------------------------------------------------------------------------------


@contextmanager
def heard_plans(choose: Chooser) -> Iterator[list[Asked]]:
    """Keep what is released while open; facts about people are made up."""
    heard: list[Asked] = []
    release_of = standing("Session.release")

    def releasing(session: Session, plan: Plan) -> NoisyTable:
        charge = [entry for entry in session.ledger.entries() if entry.kind == "charge"][-1]
        events = tuple(event_from_dict(event) for event in charge.record["events"])
        heard.append(Asked(session, plan, charge.number, events))
        noisy: NoisyTable = made_up_fact(choose, plan) if plan.profiles else release_of(session, plan)
        return noisy

    with planted("Session.release", releasing):
        yield heard


def made_up_fact(choose: Chooser, plan: Plan) -> NoisyTable:
    """Return what a profile could show: next to no people, or very many about one bin, which is mostly a low one."""
    bins = len(plan.public_keys or ())
    parts = []
    for _ in plan.releases:
        peak, wide = choose.number(min(bins, choose.one((2, 4, 8, 14, 30, bins)))), choose.one((0, 0, 1, 3))
        people = 0 if choose.number(7) == 0 else 10 ** (2 + choose.number(5))
        parts.append((tuple(choose.one((0, 0, 3, -2)) + people * (abs(at - peak) <= wide) for at in range(bins)),))
    return NoisyTable(tuple(plan.public_keys or ()), tuple(parts))


def uncharged(asked: Sequence[Asked]) -> list[str]:
    """Return the plans with noise that the ledger was not charged for before they were run."""
    left: dict[int, Counter[Event]] = {}
    found = []
    for each in asked:
        paid = left.setdefault(each.entry, Counter(each.charged))
        if Counter(each.plan.events) - paid:
            found.append("a release has other noise than was charged")
        paid.subtract(each.plan.events)
    return found


# ---- how far apart --------------------------------------------------------------------------------------------------


def too_far(plan: Plan, before: ExactTable, after: ExactTable) -> list[str]:
    """Return where neighbours are farther apart than the plan declares, or than was charged for."""
    found = replay.exact_differences(plan, before, after)
    for name, each, one, other in replay.vectors_of(plan, before, after):
        found += [f"{name}: {what}" for what in _beyond_the_charge(each, replay.distance(one, other))]
    return found


def _beyond_the_charge(each: NoisyRelease, moved: replay.Distance) -> list[str]:
    """Compare a move with the event itself, and the noise that is drawn with the noise that was charged."""
    event = each.event
    if isinstance(event, LaplaceNoise):
        right = moved.l1 <= event.sensitivity and event.scale == each.scale
    elif isinstance(event, GaussianNoise):
        right = moved.l2_squared <= event.sensitivity_squared and event.sigma == each.scale
        right &= moved.l0 <= 1 or not event.scalar
    else:
        right = moved.linf <= event.sensitivity and moved.l0 <= 1
    return [] if right else [f"{moved} is more than {event}"]


def part_used(plan: Plan, before: ExactTable, after: ExactTable) -> float:
    """Return the largest part of a declared sensitivity that two tables are apart, in L1 or in L2 squared."""
    used = [0.0]
    for _, each, one, other in replay.vectors_of(plan, before, after):
        moved, most = replay.distance(one, other), each.sensitivity
        far = (moved.l2_squared, most.l2_squared) if each.noise == "gaussian" else (moved.l1, most.l1)
        used.append(far[0] / far[1])
    return max(used)


# ---- the search -----------------------------------------------------------------------------------------------------


def search(
    seed: object,
    found: Found,
    *,
    shapes: Sequence[str] = tuple(SHAPES),
    kinds: Sequence[str] = (*IDS, "row"),
    questions: int = 2,
    facts: bool = True,
    likes: Likes = SMALL,
    where: Callable[[Mapping[str, pa.Schema], Mapping[str, Any]], Place] | None = None,
) -> None:
    """Ask some questions of one made-up world, and add what is found to `found`; a seed gives the same each time.

    With `facts`, one of the plans by which a question learns is looked at too.
    """
    choose = Chooser(f"world {seed}")
    shape = choose.one(shapes)
    ids = choose.one([each for each in kinds if each != "row" or shape in OF_ROWS])
    neighbours = choose.one((NEIGHBOURS[0], *NEIGHBOURS))
    tables = {"v": VISITS} if ids == "row" else TABLES
    world = world_of_rows(choose, likes) if ids == "row" else world_of(choose, ids, likes)
    schemas = {name: schema_of(columns, "int" if ids == "row" else ids) for name, columns in tables.items()}
    declared = declared_of(choose, neighbours) | ({"unit": ROW} if ids == "row" else {})
    here = Here(schemas)
    rows = {
        place: {name: as_table(some, schemas[name]) for name, some in world.rows(place).items()}
        for place in world.places()
    }
    try:
        asked_of = protected_tables(here.sources(list(schemas)), declared)
        place = here if where is None else where(schemas, declared)
    except TacitError:  # what is declared does not fit together
        found.refused += 1
        return
    here.fill(rows[choose.one(world.places())])
    for turn in range(questions):
        if turn:
            shape = choose.one([each for each in shapes if ids != "row" or each in OF_ROWS])
        text = question_of(choose, shape)
        title = f"seed {seed}, {ids}, {neighbours}: {text}"
        asked, learned = _ask(choose, asked_of, text, title, found)
        found.questions[shape] += bool(asked)
        found.units[ids] += bool(asked)
        for each in [*asked, *([choose.one(learned)] if facts and learned else [])]:
            _compare(choose, place, each, world, rows, neighbours, title, found)
            if found.is_enough:
                return


def _ask(
    choose: Chooser, tables: Mapping[str, asking.Table], text: str, title: str, found: Found
) -> tuple[list[Asked], list[Asked]]:
    """Ask through the door, and return the plans that answer and those that learn; none if it is refused."""
    others: list[asking.Table | PublicTable] = [table for name, table in tables.items() if name != "v"]
    others.append(asking.public(WARDS, name="w"))
    with heard_plans(choose) as heard, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so large an epsilon protects nobody
        try:
            tables["v"].sql(text, tables=others).answer(
                epsilon=choose.one(EPSILONS),
                noise=choose.one((None, None, "laplace", "gaussian")),
                accept_noise=True,
            )
        except EngineError:
            found.broken.append(f"{title}: it fails after its charge")
            return [], []
        except TacitError:
            found.refused += 1
            return [], []
    found.broken += [f"{title}: {what}" for what in uncharged(heard)]
    last = heard[-1].entry  # the question itself is charged after what it learns
    return [each for each in heard if each.entry == last], [each for each in heard if each.entry != last]


def _compare(
    choose: Chooser,
    place: Place,
    asked: Asked,
    world: World,
    rows: Mapping[Any, Mapping[str, pa.Table]],
    neighbours: Neighbours,
    title: str,
    found: Found,
) -> None:
    """Run a plan on every table of a world, and compare those that are neighbours."""
    plan = asked.plan
    if plan.keys and plan.public_keys == ():
        return  # no group was found, so nothing is added up
    with kernel_at_hand():
        for path, read in place.reads(choose, asked):
            exact = {}
            for at, tables in rows.items():
                place.fill(tables)
                try:
                    exact[at] = read()
                except EngineError:
                    found.broken.append(f"{title}: on the {path} path it fails on table {at}")
                    return
            for before, after in world.pairs(neighbours):
                found.pairs[path] += 1
                used = part_used(plan, exact[before], exact[after])
                found.moved += used > 0
                found.farthest = max(found.farthest, used)
                found.reached[path] = max(found.reached.get(path, 0.0), used)
                far = too_far(plan, exact[before], exact[after])
                found.broken += [f"{title}: {path}, {before} and {after}: {what}" for what in far[:1]]
                if found.is_enough:
                    return
