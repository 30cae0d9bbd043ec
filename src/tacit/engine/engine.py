"""`Engine`: runs a plan at the place of its rows; and the embedded engine, in which DuckDB computes expressions and the
kernel or SQL bounds and adds up, all in this process.

With one salt every engine gives the same integers for the same rows and path. If the kernel or SQL stops, for any
reason, the patient path gives the same integers in bounded memory. Every failure inside gives the analyst one fixed
message: an engine's own error text may quote a cell, and whether it fails may depend on one. Only the class of the
error reaches the curator's log.
"""

import errno
import logging
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, Literal, Protocol, TypeVar
from weakref import WeakKeyDictionary

import pyarrow as pa

from tacit.engine.coded_rows import CodedRows
from tacit.engine.coding_rows import columns_read, read_blocks
from tacit.engine.daily_counts import columns_counted, counted_days, running_relation, weighed_days
from tacit.engine.derived import kinds_of, narrowed_source
from tacit.engine.expression import read_column
from tacit.engine.kernel import compiled, kernel_path
from tacit.engine.patience import patient_path
from tacit.engine.patience.patient import Orders
from tacit.engine.relation import (
    DIGEST_BYTES,
    KEY_PLACE,
    counted_rows,
    distinct_relation,
    exact_relation,
    listed_keys,
    texts_relation,
    values_relation,
    wanted_rows,
    with_distinct,
    with_values,
)
from tacit.engine.scaled_relation import profile_table, question_of_profiles, scaled_table
from tacit.errors import EngineError
from tacit.exact import ExactIntegers, ExactTable, all_groups, key_name, sum_names, with_values_of
from tacit.memory import memory_limit, refuse_without_folder, spill_folder
from tacit.plan import CodedPlan, Plan, RunningPlan
from tacit.query import Scalar, columns_of
from tacit.tables import Source, to_scalar

# The class of an error may depend on rows. So records go only to handlers that the curator added to this very logger.
log: logging.Logger = logging.getLogger("tacit.curator")
log.addHandler(logging.NullHandler())
log.propagate = False

FAILED = (
    "the engine could not finish this question; the charge stands, since how it failed may depend on the data."
    "\nhint: the curator's log has the kind of error; ask the curator"
)

ExecutionPath = Literal["kernel", "sql", "patient"]
Found = TypeVar("Found")


class Engine(Protocol):
    """Answers plans about one source, exactly and in secret."""

    @property
    def source(self) -> Source:
        """The source that it reads; relations of several tables are derived from theirs."""

    def refuse_changes(self) -> None:
        """Refuse before the charge if the source changed since it was opened, or cannot be read now; reads no row."""

    def stamp(self) -> str | None:
        """Return a text that changes when the source is written; None if no change can be detected. Reads no row."""

    def moment(self) -> AbstractContextManager[None]:
        """Hold what is read inside to the rows of one moment; one question at a time reads."""

    def aggregate(self, plan: Plan, salt: str) -> ExactTable:
        """Return each group's exact sums, every unit bounded."""

    def parts(self, plan: Plan, salt: str) -> Generator[ExactTable, None, None]:
        """Yield the same in one table, or in several of different groups."""

    def texts(self, plan: Plan, keys: Sequence[tuple[Any, ...]]) -> Mapping[str, str]:
        """Return the long texts of released keys, by digest; until then a key has a digest instead of a long text."""

    def coded(self, plan: CodedPlan, /) -> AbstractContextManager[CodedRows]:
        """Lend the rows of a plan as cells, in secret; a failure inside gives the fixed words."""

    def running(self, plan: RunningPlan, first: int, end: int, /) -> ExactIntegers:
        """Return the exact numbers of a count that runs on, for the days from `first` to before `end`."""

    def path_of(self, plan: Plan) -> ExecutionPath:
        """Return the path that a plan would take now; it depends only on public facts."""


def open_engine(source: Source, *, path: ExecutionPath | None = None) -> Engine:
    """Return the engine of a source: the embedded one, or that of the cluster which has the rows."""
    if source.elsewhere is not None:
        from tacit.engine.spark import SparkEngine  # only who has rows in Spark has pyspark

        return SparkEngine(source, path=path)
    return EmbeddedEngine(source, path=path)


def recording(find: Callable[[], Iterable[Found]], failed: list[Exception]) -> Iterator[Found]:
    """Yield from `find`; an exception ends it, goes into `failed`, and is logged for the curator by its class."""
    try:
        yield from find()
    except Exception as problem:  # noqa: BLE001 - whatever it is, the analyst learns only that it failed
        failed.append(problem)
        log.error("engine failed: %s", class_and_code(problem))  # noqa: TRY400 - a traceback may quote a cell


def raise_if_failed(failed: list[Exception]) -> None:
    """Raise the fixed words if anything failed: outside of `recording`, so that the error is not their context."""
    if failed:
        raise EngineError(FAILED)


def class_and_code(problem: Exception) -> str:
    """Return the error's class and, for an error of the operating system, its code: all that the curator may see."""
    code = errno.errorcode.get(problem.errno or 0) if isinstance(problem, OSError) else None
    return " ".join(filter(None, (type(problem).__name__, code)))


# --- the embedded engine ---

# Tables may share a connection, and a connection can read only one result at a time: one lock for each connection.
_turns: WeakKeyDictionary[Any, threading.RLock] = WeakKeyDictionary()
_giving_turns = threading.Lock()


# How many sets of columns of one relation are kept ready to be read.
NARROW_MOST = 16


class EmbeddedEngine:
    """Answers plans about one source, exactly and in secret; a given `path` is used even once the kernel is ready."""

    def __init__(self, source: Source, *, path: ExecutionPath | None = None) -> None:
        self._source = source
        self._path = path
        self._kinds = kinds_of(source)
        for name, kind in self._kinds.items():
            read_column(source.table, name, kind)  # refuses a declared type that no cast gives, before any charge
        self._memory = memory_limit()
        with _giving_turns:
            self._turn = _turns.setdefault(source.backend.con, threading.RLock())
        self._narrow: dict[frozenset[str], EmbeddedEngine] = {}

    @property
    def source(self) -> Source:
        return self._source

    def refuse_changes(self) -> None:
        """Refuse if the source changed since it was opened, or if there is no folder for spilled rows; reads no row."""
        self._source.refuse_changes()
        refuse_without_folder()

    def stamp(self) -> str | None:
        return self._source.stamp()

    @contextmanager
    def moment(self) -> Iterator[None]:
        """Hold what is read inside to the rows of one moment; one question of a connection at a time."""
        with self._turn, self._source.moment():
            yield

    def aggregate(self, plan: Plan, salt: str) -> ExactTable:
        return all_groups(self.parts(plan, salt))

    def parts(self, plan: Plan, salt: str) -> Generator[ExactTable, None, None]:
        """Yield each group's exact sums: nearly always one table, but several if memory is short and keys are found."""
        if plan.is_mixed:
            with self.moment():
                yield with_values_of(plan, *(self.aggregate(half, salt) for half in plan.halves()))
            return
        if (narrow := self._with_columns(columns_named(plan))) is not self:
            yield from narrow.parts(plan, salt)
            return
        with self.moment(), self._source.wanting(wanted_rows(plan.where, self._source.columns)):
            failed: list[Exception] = []
            yield from recording(partial(self._aggregate, plan, salt), failed)
        raise_if_failed(failed)  # out here, where the engine's own error is not its context

    def texts(self, plan: Plan, keys: Sequence[tuple[Any, ...]]) -> Mapping[str, str]:
        """Return the long texts of released keys, by digest; until then a key has a digest instead of a long text."""
        if (narrow := self._with_columns(columns_named(plan))) is not self:
            return narrow.texts(plan, keys)
        found: dict[str, str] = {}
        with self.moment(), self._source.wanting(wanted_rows(plan.where, self._source.columns)):
            failed: list[Exception] = []
            for texts in recording(partial(self._long_texts, plan, keys), failed):
                found |= texts
        raise_if_failed(failed)
        return found

    @contextmanager
    def coded(self, plan: CodedPlan, /) -> Iterator[CodedRows]:
        """Lend the rows of a plan as cells; they are coded once, and gone when the caller is done with them."""
        narrow = self._with_columns(columns_read(plan))
        failed: list[Exception] = []
        with self.moment():
            found = list(recording(lambda: [narrow._coded(plan)], failed))
            raise_if_failed(failed)
            yield found[0]

    def running(self, plan: RunningPlan, first: int, end: int, /) -> ExactIntegers:
        """Return the exact numbers of a count that runs on, for the days from `first` to before `end`."""
        narrow = self._with_columns(columns_counted(plan))
        failed: list[Exception] = []
        with self.moment():
            found = list(recording(lambda: [narrow._running(plan, first, end)], failed))
        raise_if_failed(failed)
        return found[0]

    def _running(self, plan: RunningPlan, first: int, end: int) -> ExactIntegers:
        with self._source.wanting(wanted_rows(plan.where, self._source.columns)):
            found = self._source.fetch(running_relation(plan, self._source.table, self._kinds))
        return weighed_days(plan, counted_days(plan, found), first, end)

    def _coded(self, plan: CodedPlan) -> CodedRows:
        with self._source.wanting(wanted_rows(plan.where, self._source.columns)):
            return CodedRows.of(plan, read_blocks(plan, self._source, self._kinds))

    def _with_columns(self, needed: frozenset[str]) -> "EmbeddedEngine":
        """Return the engine over these columns of a relation: no others are read or carried along."""
        if self._source.made_of is None:
            return self
        if needed not in self._narrow:
            source = narrowed_source(self._source, needed)
            if len(self._narrow) >= NARROW_MOST:
                self._narrow.clear()
            self._narrow[needed] = self if source is self._source else EmbeddedEngine(source, path=self._path)
        return self._narrow[needed]

    def _aggregate(self, plan: Plan, salt: str) -> Iterator[ExactTable]:
        path = self._taken(plan)
        exact_table = None if path == "patient" else self._quick(plan, salt, path)
        if exact_table is not None:
            yield exact_table
        else:
            yield from self._patient(plan, salt, path)

    def _long_texts(self, plan: Plan, keys: Sequence[tuple[Any, ...]]) -> Iterator[dict[str, str]]:
        for index, key in enumerate(plan.keys):
            if key.type == "text" and plan.public_keys is None:
                digests = sorted({each[index] for each in keys if is_digest(each[index])})
                try:
                    texts = self._texts(self._source, plan, index, digests)
                except Exception as problem:  # noqa: BLE001 - these rows may need more memory than the engine has
                    log.info("looking up texts stopped: %s", class_and_code(problem))
                    texts = self._texts(self._source.streaming(), plan, index, digests)
                yield texts

    def _texts(self, source: Source, plan: Plan, index: int, digests: list[str]) -> dict[str, str]:
        """Look up texts by digest; where they do not fit memory together, look up half of them at a time."""
        if not digests:
            return {}
        relation = texts_relation(plan, index, source.table, self._kinds, digests)
        try:
            table = source.fetch(relation)
        except Exception:
            if len(digests) == 1:
                raise
            half = len(digests) // 2
            return self._texts(source, plan, index, digests[:half]) | self._texts(source, plan, index, digests[half:])
        return dict(zip(table.column("digest").to_pylist(), table.column("text").to_pylist(), strict=True))

    def _quick(self, plan: Plan, salt: str, path: ExecutionPath) -> ExactTable | None:
        """Return the exact table of a quick path, or None if the path stops."""
        try:
            return self._on_path(plan, salt, path)
        except Exception as problem:  # noqa: BLE001 - for any reason, the patient path takes over
            log.info("the %s path stopped: %s", path, class_and_code(problem))
            return None

    def _patient(self, plan: Plan, salt: str, path: ExecutionPath) -> Iterator[ExactTable]:
        orders: Orders = "kernel" if path == "kernel" else "sql"
        source = self._source.streaming()
        asked = patient_path.PatientQuestion(plan, source, self._kinds, salt, orders, self._memory, spill_folder())
        listed = listed_keys(question_of_profiles(plan) if plan.profiles else plan)
        yield from patient_path.exact_tables(asked, listed)

    def _on_path(self, plan: Plan, salt: str, path: ExecutionPath) -> ExactTable:
        if path == "kernel":
            read = kernel_path.by_cells(plan)
            listed = None if kernel_path.looks_up_keys(read) else listed_keys(read)
            rows, keys = counted_rows(read, self._source.table, self._kinds, listed)
            asked = kernel_path.relation_of(read, rows, keys)
            return kernel_path.exact_sums(plan, self._source, asked, salt, memory=self._memory)
        if plan.profiles:
            listed = listed_keys(question_of_profiles(plan))
            return profile_table(plan, self._source, self._kinds, listed, self._memory)
        listed = listed_keys(plan)
        if plan.scaling is not None:
            exact_table = scaled_table(plan, self._source, self._kinds, salt, listed, self._memory)
        elif plan.sums_nothing:
            exact_table = ExactTable(((),) if plan.public_keys is None else plan.public_keys, {})
        else:
            summed = exact_relation(plan, self._source.table, self._kinds, salt, listed)
            exact_table = _table_of(self._source.fetch(summed), plan)
        for column in sorted({draw.column for draw in plan.quantiles}):
            values = values_relation(plan, column, self._source.table, self._kinds, salt, listed)
            exact_table = with_values(exact_table, column, self._source.fetch(values), plan)
        for index in range(len(plan.distincts)):
            counts = distinct_relation(plan, index, self._source.table, self._kinds, salt, listed)
            exact_table = with_distinct(exact_table, index, self._source.fetch(counts), plan)
        return exact_table

    def path_of(self, plan: Plan) -> ExecutionPath:
        """Return the path that this plan would take now: by public facts, and by whether loops are compiled."""
        if plan.is_mixed:
            return self.path_of(plan.halves()[0])
        if self._path in ("sql", "patient") or not kernel_path.supports(plan, self._source):
            return self._path if self._path == "patient" else "sql"
        return "kernel" if self._path == "kernel" or compiled.is_ready() else "sql"

    def _taken(self, plan: Plan) -> ExecutionPath:
        """Return the path that this plan takes; load the loops if it needs them, or start compiling them."""
        path = self.path_of(plan)
        if self._path is None and kernel_path.supports(plan, self._source):
            compiled.start()  # does nothing once they are compiled
        return path if path in ("sql", "patient") or compiled.load() else "sql"


def columns_named(plan: Plan) -> frozenset[str]:
    """Return the columns that a plan's expressions name."""
    keys = (*plan.keys, *(() if plan.cells is None else plan.cells.keys))
    read = [plan.where, *(key.expression for key in keys)]
    read += [*(each.expression for each in plan.measured), *(each.expression for each in plan.distincts)]
    return frozenset().union(*map(columns_of, read))


def is_digest(part: Any) -> bool:
    """Whether a text is the digest of a longer one: no other text that leaves the engine has DIGEST_BYTES bytes."""
    return isinstance(part, str) and len(part.encode()) == DIGEST_BYTES


def _table_of(found: pa.Table, plan: Plan) -> ExactTable:
    if plan.public_keys is not None:
        return _listed_groups(found, plan)
    columns = [found.column(key_name(index)).to_pylist() for index in range(len(plan.keys))]
    keys: list[tuple[Scalar, ...]] = [tuple(to_scalar(part) for part in key) for key in zip(*columns, strict=True)]
    return ExactTable(keys, {name: _integers(found, name) for name in sum_names(plan)})


def _listed_groups(found: pa.Table, plan: Plan) -> ExactTable:
    """Every listed key, in the order of the list; a key without rows has zeros."""
    listed = ((),) if plan.public_keys is None else plan.public_keys
    places: Any = found.column(KEY_PLACE).to_pylist() if plan.keys else [0] * len(found)
    sums = {}
    for name in sum_names(plan):
        column = [0] * len(listed)
        for index, value in zip(places, _integers(found, name), strict=True):
            column[index] = value
        sums[name] = column
    return ExactTable(listed, sums)


def _integers(found: pa.Table, name: str) -> list[int]:
    return [0 if text is None else int(text) for text in found.column(name).to_pylist()]
