"""The stages as tasks of any scheduler: functions from Arrow batches to Arrow batches that keep quiet about rows.

A scheduler ships tracebacks, which may quote a cell: so an error is replaced by one fixed sentence. A task of another
version is refused, since its integers would be others.
"""

import gc
import hashlib
import importlib.metadata
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pyarrow as pa

from tacit.engine.kernel import compiled, summing
from tacit.engine.parts.cutting import Cut, Piece, cut_rows, put_together
from tacit.engine.parts.part import PartQuestion, answered, count_values, part_tables
from tacit.errors import TacitError
from tacit.memory import LEAST, memory_limit, refuse_without_folder

FAILED = "a part of the question could not be computed here; what went wrong is not shown, since it may depend on rows"
OTHER_VERSION = "this executor has another version of tacit, or of what it needs, than the driver"
WITHOUT_LOOPS = "; without compiled loops"
PIECES = pa.schema([("part", pa.int32()), ("kind", pa.int32()), ("data", pa.binary())])
PIECES_SQL = "part int, kind int, data binary"
PACKAGES = ("duckdb", "pyarrow", "numpy", "numba", "sqlglot")
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
