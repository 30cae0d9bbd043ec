"""The stages as tasks of any scheduler: functions from Arrow batches to Arrow batches that keep quiet about rows.

A scheduler ships tracebacks, which may quote a cell: so an error is replaced by one fixed sentence. A task of another
version is refused, since its integers would be others.

Makes a plan about rows elsewhere into the cutting of each table and the question of every part; it reads no row.
"""

import gc
import hashlib
import importlib.metadata
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import pyarrow as pa

from tacit.engine.coding_rows import columns_read
from tacit.engine.cutting import Cut, Piece, cut_of_table, cut_rows, put_together
from tacit.engine.derived import StoredRows, kinds_of, narrowed_source
from tacit.engine.engine import EmbeddedEngine, ExecutionPath, columns_named
from tacit.engine.kernel import compiled, summing
from tacit.engine.part import PartQuestion, PartTable, answered, count_values, part_tables
from tacit.engine.relation import counted_rows
from tacit.engine.scaled_relation import question_of_profiles
from tacit.errors import TacitError
from tacit.exact import ExactTable
from tacit.memory import LEAST, memory_limit, refuse_without_folder
from tacit.plan import CodedPlan, Plan
from tacit.query import Relation, TableRows, tables_of
from tacit.tables import ROW, Declaration, Source

FAILED = "a part of the question could not be computed here; what went wrong is not shown, since it may depend on rows"
OTHER_VERSION = "this executor has another version of tacit, or of what it needs, than the driver"
WITHOUT_LOOPS = "; without compiled loops"
PIECES = pa.schema([("part", pa.int32()), ("kind", pa.int32()), ("data", pa.binary())])
PIECES_SQL = "part int, kind int, data binary"
PACKAGES = ("duckdb", "pyarrow", "numpy", "sqlglot")
PACKAGE = Path(__file__).parents[2]
BATCH_BYTES = 1 << 24


class TaskFailed(RuntimeError):
    """A task failed; the words are fixed."""


@dataclass(frozen=True)
class Task:
    """A stage of a question, ready to run on batches: which stage, what it needs, and which version made it."""

    stage: "Callable[[Iterable[pa.RecordBatch]], Iterator[Piece]]"
    version: str
    maker: int = field(default_factory=os.getpid)  # the driver's process; tasks run in others, of the scheduler's

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the stage's pieces; nothing that it raises leaves."""
        failed = OTHER_VERSION if self.version != versions() else None
        try:
            if failed is None:
                share_machine()
                yield from as_batches(self.stage(batches))
        except Exception:  # noqa: BLE001 - its text, or its frames, may quote a cell
            failed = FAILED
        finally:
            forget_zips()
            if os.getpid() != self.maker:
                set_imports_apart()
        if failed is not None:
            raise TaskFailed(failed)


@dataclass(frozen=True)
class CutTask:
    """Stage one for one table, with the names of its columns; a part goes by its label."""

    cut: Cut
    kind: int
    labels: tuple[int, ...]
    columns: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Piece]:
        for piece in cut_rows(as_stored(batches, self.columns), self.cut, self.kind):
            yield Piece(self.labels[piece.part], piece.kind, piece.data)


@dataclass(frozen=True)
class PartTask:
    """Stage two: all pieces of some parts."""

    question: PartQuestion
    labels: tuple[int, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Piece]:
        return _labelled(part_tables(pieces_of(batches), self.question), self.labels)


@dataclass(frozen=True)
class RowsTask:
    """Stages one and two where every row is its own unit: any rows are a part."""

    question: PartQuestion
    labels: tuple[int, ...]
    columns: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Piece]:
        for rows in put_together(as_stored(batches, self.columns)):
            yield from _labelled(answered(self.question, [rows]), self.labels)


@dataclass(frozen=True)
class CountTask:
    """Stage three: values that are all in one place are counted."""

    question: PartQuestion

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Piece]:
        return count_values(pieces_of(batches), self.question)


def _labelled(pieces: Iterable[Piece], labels: tuple[int, ...]) -> Iterator[Piece]:
    for piece in pieces:
        yield Piece(labels[piece.part], piece.kind, piece.data)


def as_batches(pieces: Iterable[Piece]) -> Iterator[pa.RecordBatch]:
    """Yield pieces as Arrow rows, a few at a time."""
    waiting: list[Piece] = []
    for piece in pieces:
        waiting.append(piece)
        if sum(len(each.data) for each in waiting) >= BATCH_BYTES:
            yield _as_batch(waiting)
            waiting = []
    if waiting:
        yield _as_batch(waiting)


def _as_batch(pieces: list[Piece]) -> pa.RecordBatch:
    columns = [[each.part for each in pieces], [each.kind for each in pieces], [bytes(each.data) for each in pieces]]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, PIECES, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=PIECES)


def pieces_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Piece]:
    """Yield the pieces that Arrow rows hold."""
    for batch in batches:
        for part, kind, data in zip(*(batch.column(at) for at in range(3)), strict=True):
            yield Piece(part.as_py(), kind.as_py(), data.as_buffer())


def as_stored(batches: Iterable[pa.RecordBatch], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield rows with the names that their columns have where they are stored, and times in the zone UTC."""
    for batch in batches:
        kinds = [
            pa.timestamp("us", "UTC") if pa.types.is_timestamp(each.type) and each.type.tz is not None else each.type
            for each in batch.schema
        ]
        named = batch.rename_columns(list(columns))
        yield named.cast(pa.schema(list(zip(columns, kinds, strict=True))))


def share_machine() -> None:
    """Take one core, and a core's share of the machine's memory unless the curator has set what a process may take."""
    summing.THREADS = 1
    if "TACIT_MEMORY" not in os.environ:
        os.environ["TACIT_MEMORY"] = str(max(LEAST, memory_limit() // (os.cpu_count() or 1)))


def forget_zips() -> None:
    """Forget the importers of zip files: before each task Python would read every zip on the path again."""
    for path in [path for path in sys.path_importer_cache if ".zip" in path]:
        del sys.path_importer_cache[path]


_modules = 0  # how many were imported when they were last set apart


def set_imports_apart() -> None:
    """Have garbage collection, which a worker runs after each task, pass over all that is imported."""
    global _modules
    if len(sys.modules) != _modules:
        gc.collect()
        gc.freeze()
        _modules = len(sys.modules)


@cache
def versions() -> str:
    """Return a text that is equal where the same rows give the same integers: our code, and what runs it."""
    parts = [".".join(map(str, sys.version_info[:2])), sys.byteorder]
    parts += [f"{name} {importlib.metadata.version(name)}" for name in PACKAGES]
    ours = hashlib.blake2b(digest_size=8)
    for path in sorted(PACKAGE.rglob("*.py")):
        ours.update(path.read_bytes())
    return "; ".join([*parts, ours.hexdigest()])


def get_ready() -> str:
    """Return `versions`, with what this process cannot do; have the loops compiled, which the first question wants."""
    try:
        refuse_without_folder()
        memory_limit()
    except TacitError as fault:
        return f"{versions()}; {str(fault).partition(chr(10))[0]}"
    if not compiled.is_possible():
        return versions() + WITHOUT_LOOPS
    compiled.start()
    return versions()


ALONE = "protected"  # the name of a table that is asked without a relation


@dataclass(frozen=True)
class Cutting:
    """A table elsewhere, the columns that are read of it, and how they are cut; a table without units is not cut."""

    source: Source
    columns: tuple[str, ...]
    cut: Cut | None


@dataclass(frozen=True)
class PartedQuestion:
    """A question to parts: the tables and how they are cut, what each part is asked, and the table of no rows."""

    cuttings: tuple[Cutting, ...]
    asked: PartQuestion
    nothing: ExactTable


def parted(source: Source, engine: EmbeddedEngine, plan: Plan, salt: str, parts: int) -> PartedQuestion:
    """Return how a plan about a source elsewhere is asked of parts; `engine` is the embedded one over the same."""
    source = narrowed_source(source, columns_named(plan))  # as the engine of a part will have it
    path = engine.path_of(plan)
    empty = EmbeddedEngine(replace(source, elsewhere=None), path="sql")
    return _asked_of_parts(source, plan, salt, parts, path, empty.aggregate(plan, salt))


def coded_in_parts(source: Source, plan: CodedPlan, salt: str, parts: int) -> PartedQuestion:
    """Return how rows elsewhere are coded by parts: a unit's rows meet in one, so that they are counted there."""
    return _asked_of_parts(narrowed_source(source, columns_read(plan)), plan, salt, parts, "sql", ExactTable((), {}))


def _asked_of_parts(
    source: Source, plan: Plan | CodedPlan, salt: str, parts: int, path: ExecutionPath, nothing: ExactTable
) -> PartedQuestion:
    relation, stored = _made_of(source, plan)
    names = tuple(dict.fromkeys(tables_of(relation)))
    cuttings, tables = [], []
    for name in names:
        base, declaration = stored.sources[name], stored.declarations[name]
        unit = declaration.unit
        columns = _columns_read(base, plan) if isinstance(relation, TableRows) else _columns_named(base, unit, source)
        schema = pa.schema([base.elsewhere.schema.field(column) for column in columns])
        facts = {column: base.columns[column] for column in columns}
        cut = cut_of_table(base, unit, columns, salt, parts) if isinstance(unit, str) else None
        cuttings.append(Cutting(base, columns, cut))
        tables.append(PartTable(name, declaration, facts, schema))
    asked = PartQuestion(
        plan=plan,
        salt=salt,
        path=path,
        tables=tuple(tables),
        relation=relation,
        publics=stored.publics,
        parts=parts,
    )
    return PartedQuestion(tuple(cuttings), asked, nothing)


def _made_of(source: Source, plan: Plan | CodedPlan) -> tuple[Relation, StoredRows]:
    if source.made_of is not None:
        relation, stored = source.made_of
        return relation, stored
    unit = ROW if plan.unit is None else plan.unit
    declaration = Declaration(name=ALONE, unit=unit, columns=source.columns)
    return TableRows(ALONE), StoredRows({ALONE: source}, {ALONE: declaration})


def _columns_named(base: Source, unit: object, derived: Source) -> tuple[str, ...]:
    """Return the columns of a stored table that a relation of it names, in the table's order, and one at least."""
    named = {unit, *derived.table.columns_named()}
    return tuple(name for name in base.table.columns if name in named) or tuple(base.table.columns[:1])


def _columns_read(source: Source, plan: Plan | CodedPlan) -> tuple[str, ...]:
    """Return the columns that a plan names, in the table's order; one at least, so that rows can be counted."""
    columns = tuple(name for name in source.table.columns if name in _names_read(source, plan))
    return columns or tuple(source.table.columns[:1])


def _names_read(source: Source, plan: Plan | CodedPlan) -> set[str]:
    if isinstance(plan, CodedPlan):
        return {*columns_read(plan), *(() if plan.unit is None else (plan.unit,))}
    more = {f"distinct {index}": each.expression for index, each in enumerate(plan.distincts)}
    more |= {f"measured {index}": each.expression for index, each in enumerate(plan.measured)}
    named: set[str] = set()
    for asked in (plan, question_of_profiles(plan)) if plan.profiles else (plan,):
        rows, _ = counted_rows(asked, source.table, kinds_of(source), None, more)
        named |= rows.columns_named()
    return named
