"""Runs a plan on Spark: it stores, prunes columns, moves pieces by part and schedules; our own engine computes inside.

Tables are mapped over in Arrow (stage one), pieces repartitioned by their part and mapped over again (stage two, and
three for different values); the driver adds up, and checks that each part was answered once. A task is a pure function
of its rows and the question, so the layout, the number of parts and repeated tasks do not matter.
"""

import json
import sys
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from tacit.engine.coded_rows import CodedRows
from tacit.engine.cutting import Piece
from tacit.engine.engine import EmbeddedEngine, ExecutionPath, is_digest, log, raise_if_failed, recording
from tacit.engine.part import CODED, EXACT, SEEN, TEXTS, added_parts, block_from_bytes, from_bytes
from tacit.engine.task import (
    PIECES_SQL,
    WITHOUT_LOOPS,
    CountTask,
    CutTask,
    Cutting,
    PartedQuestion,
    PartTask,
    RowsTask,
    Task,
    coded_in_parts,
    parted,
    pieces_of,
    versions,
)
from tacit.errors import QueryRefused
from tacit.exact import ExactIntegers, ExactTable, all_groups, with_values_of
from tacit.memory import refuse_without_folder
from tacit.plan import CodedPlan, Plan, RunningPlan
from tacit.tables import Source, SparkTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PARTS_SETTING = "spark.tacit.parts"
PARTS_USUAL, PARTS_MOST = 16, 1 << 12
PROBES_MOST = 16
WORD = (1 << 32) - 1
SPARK_SEED = 42
MEETING_SALT = "texts"  # it does not choose rows: rows that belong together only have to meet


class SparkEngine:
    """Answers plans about tables of one Spark session, exactly and in secret."""

    def __init__(self, source: Source, *, path: ExecutionPath | None = None) -> None:
        self._source = source
        session = getattr(source.elsewhere.rows, "session", None)
        if session is not None:
            refuse_other_executors(session)
            path = path or (None if _have_loops[session] else "sql")
        self._embedded = EmbeddedEngine(source, path=path)  # for decisions without rows
        self._turn = threading.RLock()
        self._depth = 0
        self._frames: dict[tuple[str, tuple[str, ...]], DataFrame] = {}  # those of this moment

    @property
    def source(self) -> Source:
        return self._source

    def refuse_changes(self) -> None:
        """Refuse if a table is gone or has other columns, or if a folder for spilled rows is missing; reads no row."""
        for table in self._tables():
            table.elsewhere.rows.refuse_changes()
        refuse_without_folder()

    def stamp(self) -> str | None:
        """Return None: Spark cannot give the time of writing without reading."""
        return None

    @contextmanager
    def moment(self) -> Iterator[None]:
        """Hold what is read inside to one list of files: Spark lists them when a table is first named."""
        with self._turn:
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if not self._depth:
                    self._frames.clear()

    def aggregate(self, plan: Plan, salt: str) -> ExactTable:
        return all_groups(self.parts(plan, salt))

    def parts(self, plan: Plan, salt: str) -> Generator[ExactTable, None, None]:
        """Yield the exact table, in one part: the driver holds all groups."""
        if plan.is_mixed:
            with self.moment():
                yield with_values_of(plan, *(self.aggregate(half, salt) for half in plan.halves()))
            return
        with self.moment():
            failed: list[Exception] = []
            yield from recording(partial(self._aggregate, plan, salt), failed)
        raise_if_failed(failed)  # out here, so that the engine's own error is not its context

    def texts(self, plan: Plan, keys: Sequence[tuple[Any, ...]]) -> Mapping[str, str]:
        """Return the long texts of released keys, by digest; until then a key has a digest instead of a long text."""
        if not any(is_digest(part) for key in keys for part in key):
            return {}
        found: dict[str, str] = {}
        with self.moment():
            failed: list[Exception] = []
            for texts in recording(partial(self._long_texts, plan, keys), failed):
                found |= texts
        raise_if_failed(failed)
        return found

    @contextmanager
    def coded(self, plan: CodedPlan, /) -> Iterator[CodedRows]:
        """Lend the rows of a plan as cells: parts code them, and the driver holds the cells."""
        with self.moment():
            failed: list[Exception] = []
            found = list(recording(lambda: [self._coded(plan)], failed))
        raise_if_failed(failed)
        yield found[0]

    def running(self, _plan: RunningPlan, _first: int, _end: int, /) -> ExactIntegers:
        """Refuse: counts that run on are for rows in files and databases. A session refuses them before a charge."""
        raise QueryRefused("running counts are for rows in files and databases, and these are in Spark")

    def path_of(self, plan: Plan) -> ExecutionPath:
        return self._embedded.path_of(plan)

    def _aggregate(self, plan: Plan, salt: str) -> Iterator[ExactTable]:
        question = parted(self._source, self._embedded, plan, salt, self._parts())
        pieces = self._pieces(question)
        exact = (from_bytes(piece.data, plan) for piece in pieces if piece.kind == EXACT)
        yield added_parts(question.nothing, exact, plan)

    def _pieces(self, question: PartedQuestion) -> list[Piece]:
        pieces = list(pieces_of(self._frame(question).toArrow().to_batches()))
        refuse_twice(pieces)
        return pieces

    def _long_texts(self, plan: Plan, keys: Sequence[tuple[Any, ...]]) -> Iterator[dict[str, str]]:
        question = parted(self._source, self._embedded, plan, MEETING_SALT, self._parts())
        question = replace(question, asked=replace(question.asked, keys=tuple(keys)))
        for piece in self._pieces(question):
            if piece.kind == TEXTS:
                yield json.loads(bytes(piece.data))

    def _coded(self, plan: CodedPlan) -> CodedRows:
        question = coded_in_parts(self._source, plan, MEETING_SALT, self._parts())
        pieces = self._pieces(question)
        return CodedRows.of(plan, (block_from_bytes(piece.data, plan) for piece in pieces if piece.kind == CODED))

    def _frame(self, question: PartedQuestion) -> "DataFrame":
        """Return the rows of pieces that hold the answer of all parts."""
        asked, parts = question.asked, question.asked.parts
        labels = labels_for(parts)
        first = question.cuttings[0]
        if first.cut is None:
            done = self._mapped(self._rows(first), RowsTask(asked, labels, first.columns))
        else:
            cut = None
            for kind, each in enumerate(question.cuttings):
                if each.cut is None:
                    raise ValueError("all tables of one question are cut, or none")
                some = self._mapped(self._rows(each), CutTask(each.cut, kind, labels, each.columns))
                cut = some if cut is None else cut.union(some)
            if cut is None:
                raise ValueError("a question is about some table")
            done = self._mapped(cut.repartition(parts, "part"), PartTask(asked, labels))
        if isinstance(asked.plan, Plan) and asked.plan.distincts and asked.keys is None:
            done = self._mapped(done.repartition(parts, "part"), CountTask(asked))
        return done

    def _rows(self, cutting: Cutting) -> "DataFrame":
        table = cutting.source.elsewhere.rows
        which = (table.name, cutting.columns)
        if which not in self._frames:
            self._frames[which] = table.rows(cutting.columns)
        return self._frames[which]

    def _mapped(self, frame: "DataFrame", stage: Any) -> "DataFrame":
        mapped: DataFrame = self._source.elsewhere.rows.mapped(frame, Task(stage, versions()), PIECES_SQL)
        return mapped

    def _tables(self) -> list[Source]:
        if self._source.made_of is None:
            return [self._source]
        _, stored = self._source.made_of
        return list(stored.sources.values())

    def _parts(self) -> int:
        return parts_for(self._source.elsewhere.rows.session)


def refuse_twice(pieces: Sequence[Piece]) -> None:
    """Stop if a part was answered in two places: its units would have been bounded twice."""
    seen = [part for piece in pieces if piece.kind == SEEN for part in np.frombuffer(piece.data, np.int64).tolist()]
    if len(seen) != len(set(seen)):
        raise RuntimeError("a part was answered in two places")


def parts_for(session: Any) -> int:
    """Return the number of parts of a question: the curator's setting, or one for each core that Spark reports."""
    said = session.conf.get(PARTS_SETTING, None)
    if said is not None:
        return max(1, min(PARTS_MOST, int(said)))
    context = getattr(session, "_sc", None)  # Spark Connect lacks one
    return PARTS_USUAL if context is None else max(1, min(PARTS_MOST, int(context.defaultParallelism)))


# --- executors ---

_have_loops: "WeakKeyDictionary[Any, bool]" = WeakKeyDictionary()  # of sessions that were looked at
_INTERPRETER = (
    "If they run on this machine, set their Python to the driver's own before the session or the server is made:"
    f" PYSPARK_PYTHON={sys.executable}"
)


def refuse_other_executors(session: Any) -> None:
    """Refuse executors that lack packages of the driver, as a few tasks report, without rows. If one cannot have the
    compiled loops, all answer in SQL: a part could not be computed after the charge."""
    if session in _have_loops:
        return
    tasks = min(PROBES_MOST, parts_for(session))
    try:
        frame = SparkTable.mapped(session.range(0, tasks, 1, tasks), _probe(), "found string")
        said = set(frame.toArrow().column("found").to_pylist())
    except Exception:  # noqa: BLE001 - for any reason, no task can be run
        raise QueryRefused(
            "Spark's executors cannot run Python tasks on Arrow batches"
            f"\nhint: they need Python with pyarrow and pandas, of the driver's version. {_INTERPRETER}"
        ) from None
    mine = versions()
    fine = {mine, mine + WITHOUT_LOOPS}
    if not said or said - fine:
        other = min(said - fine, default="nothing")
        raise QueryRefused(
            f"Spark's executors do not have what the driver has, so their integers could be others.\ndriver: {mine}"
            f"\nexecutor: {other}\nhint: install the same tacit, Python and packages on all executors, for example"
            f" with an image or a packed environment (spark.archives). {_INTERPRETER}"
        )
    _have_loops[session] = said == {mine}
    if not _have_loops[session]:
        log.info("executors cannot have the compiled loops: parts are answered in SQL, more slowly")


def _probe() -> Any:
    """Return a task that reports installed packages; it is sent by its code, as an executor may not have ours."""

    def probe(batches: Any) -> Any:
        import pyarrow as pa

        for _ in batches:
            pass
        try:
            from tacit.engine.task import get_ready

            found = get_ready()
        except Exception as problem:  # noqa: BLE001 - whatever is missing there
            found = f"{type(problem).__name__}: {getattr(problem, 'name', None) or 'tacit cannot be imported'}"
        yield pa.RecordBatch.from_pydict({"found": [found]})

    return probe


# --- one part to one task ---


def labels_for(parts: int) -> tuple[int, ...]:
    """Return a number for each part, such that Spark's hash sends each to its own partition, for balance only."""
    labels: dict[int, int] = {}
    label = 0
    while len(labels) < parts:
        labels.setdefault(_spark_hash(label) % parts, label)
        label += 1
    return tuple(labels[at] for at in range(parts))


def _spark_hash(value: int) -> int:
    """Return Spark's hash of an int, with its sign: Murmur 3 of 32 bits."""
    mixed = _turned(value * 0xCC9E2D51 & WORD, 15) * 0x1B873593 & WORD
    mixed = (_turned(SPARK_SEED ^ mixed, 13) * 5 + 0xE6546B64 & WORD) ^ 4
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        mixed = (mixed ^ mixed >> shift) * factor & WORD
    return mixed - (1 << 32) if mixed >> 31 else mixed


def _turned(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & WORD
