"""The kernel: takes rows from DuckDB as Arrow batches, bounds each unit's contribution and adds up, in compiled loops.

Units are hashed into parts. Batches are sorted by part and kept as runs, over the memory limit in an unnamed file;
after the last batch each part is added up by itself. It keeps the rows that SQL keeps if units stay within their
bounds. If rows need more than their share of the memory limit, it stops with `OverMemory`, and the patient path takes
over.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.engine.external_sort import Held, SpillFile
from tacit.engine.kernel import coding
from tacit.system import cores

if TYPE_CHECKING:
    from tacit.engine.kernel import loops

Found = TypeVar("Found")
Rows = NDArray[np.uint32]


class Runs(Held):
    """All rows of one question, by part."""

    def __init__(self, *, width: int, parts: int, memory: int, folder: Path | None) -> None:
        self._width = width
        self._memory = memory
        self._held: list[tuple[Rows, NDArray[np.int64]]] = []
        self._written: list[tuple[int, NDArray[np.int64]]] = []  # where in the file a run begins, and its parts
        self._file = SpillFile(folder)
        self.sizes: NDArray[np.int64] = np.zeros(parts, dtype=np.int64)

    def add(self, rows: Rows, starts: NDArray[np.int64]) -> None:
        """Take a run; part p is rows[starts[p] : starts[p + 1]]."""
        self.sizes += np.diff(starts)
        self._held.append((rows, starts))
        if sum(held.nbytes for held, _ in self._held) > self._memory:
            self._spill()

    def part(self, part: int) -> Rows:
        """Return all rows of a part."""
        rows = np.empty((int(self.sizes[part]), self._width), dtype=np.uint32)
        done = 0
        for held, starts in self._held:
            count = int(starts[part + 1] - starts[part])
            rows[done : done + count] = held[starts[part] : starts[part + 1]]
            done += count
        for begin, starts in self._written:
            count = int(starts[part + 1] - starts[part])
            self._file.fill(rows[done : done + count], begin + int(starts[part]) * self._width * rows.itemsize)
            done += count
        return rows

    def few(self) -> tuple[Rows, NDArray[np.int64]] | None:
        """Return the only run and the starts of its parts, if one thread adds up all rows."""
        if len(self._held) != 1 or self._written or int(self.sizes.sum()) > ROWS_ALONE:
            return None
        return self._held[0]

    def _spill(self) -> None:
        self._written += [(self._file.append(rows), starts) for rows, starts in self._held]
        self._held.clear()


THREADS = min(8, cores())
# --- bounding and adding up ---

# Rows are sorted into 2^PART_BITS parts as they come, and each part into smaller ones of PART_ROWS at the end.
PART_BITS = 8
PART_ROWS = 1 << 13
# A limb of a value fits 32 bits, so this many rows add up within 64 bits.
ROWS_AT_ONCE = 1 << 30
ROWS_ALONE = 1 << 18  # up to this number, one thread adds up
LIMB_BITS = 31
NULL_WORD = (1 << 32) - 1
# Values moved by this many binary digits are 0, or more than any cell.
SHIFT_MOST = 62
# Divisors of the memory limit. DuckDB has half of it. Rows may take a quarter before they are written to a file. Tables
# of codes and the parts that are being added up have an eighth each.
HELD_SHARE, TABLES_SHARE, PARTS_SHARE = 4, 8, 8
# Bytes that a found key, and each of its sums, takes as Python objects.
KEY_BYTES, SUM_BYTES = 200, 40


@dataclass(frozen=True)
class Bounded:
    """The contribution bounds of one unit, and the salt that decides which of its rows are kept."""

    rows_most: int
    groups_most: int
    salt: str


@dataclass(frozen=True)
class Columns:
    """The meaning of a batch's columns; a value is one or more limbs of LIMB_BITS, the highest first."""

    unit: str
    keys: Sequence[str]
    values: Sequence[Sequence[str]]
    listed: int | None  # the length of the public list, in which a key is an index; None if keys are found
    # the public list of texts, in the form in which texts leave DuckDB, if the kernel looks up their indexes
    texts: Sequence[str | None] | None = None

    @property
    def limbs(self) -> list[str]:
        return [limb for value in self.values for limb in value]


@dataclass(frozen=True)
class Summed:
    """For each key rows, units, and counted and total of each value; of vectors, units and each vector if scaled."""

    keys: list[tuple[Any, ...]] | None  # None: the public list
    sums: list[NDArray[Any]]
    totals: Sequence[Sequence[int]] = ()  # of each vector: kept and cut
    people: Sequence[Sequence[int]] = ()  # of each vector: in each bin


def sum_batches(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    columns: Columns,
    bounded: Bounded,
    *,
    memory: int,
    folder: Path | None = None,
) -> Summed:
    """Return each key's exact sums, every unit bounded."""
    packer = Packer(schema, columns, bounded.salt, memory)
    with packed(batches, packer, memory=memory, folder=folder) as runs:
        keys, hashes, order = packer.keys()
        table = _sum_parts(runs, packer, hashes, order, bounded, memory)
    return Summed(keys, joined_limbs(table, columns))


@contextmanager
def packed(batches: Iterable[pa.RecordBatch], packer: "Packer", *, memory: int, folder: Path | None) -> Iterator[Runs]:
    """Lend all rows, sorted by part."""
    with Runs(width=packer.width, parts=1 << PART_BITS, memory=memory // HELD_SHARE, folder=folder) as runs:
        take_beside(batches, lambda batch: runs.add(*packer.pack(batch)))
        yield runs


def take_beside(batches: Iterable[pa.RecordBatch], take: Callable[[pa.RecordBatch], None]) -> None:
    """Call `take` with each batch, one after the other, in a thread while DuckDB makes the next batch."""
    made = iter(batches)
    first = list(islice(made, 2))
    if len(first) < 2:  # a separate thread takes longer than a small table
        for batch in first:
            take(batch)
        return
    with ThreadPoolExecutor(1, "tacit-kernel") as worker:
        waiting: Future[None] | None = None
        for batch in chain(first, made):
            if waiting is not None:
                waiting.result()
            waiting = worker.submit(take, batch)
        if waiting is not None:
            waiting.result()


class Packer:
    """Turns batches into sorted rows of words."""

    def __init__(self, schema: pa.Schema, columns: Columns, salt: str, memory: int) -> None:
        self._columns = columns
        self._salt = salt
        self._memory = memory
        self._unit_secret = coding.make_secret(salt, "unit")
        unit_kind = schema.field(columns.unit).type
        self._units = None if coding.is_number(unit_kind) else coding.TextCoder(self._unit_secret)
        kinds = [schema.field(key).type for key in columns.keys]
        self._keys = coding.KeyCoder(kinds, salt) if columns.listed is None else None
        self._places = place_finder(columns, salt)
        self.finds_keys: bool = columns.listed is None
        self.first = 3 if self._units is None else 4
        self.width: int = self.first + len(columns.limbs)

    def pack(self, batch: pa.RecordBatch) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Return the batch's rows sorted by part, and where each part begins."""
        from tacit.engine.kernel import loops

        hashes, codes = self._hash_units(batch.column(self._columns.unit))
        keys = self._code_keys(batch)
        values = np.empty((len(self._columns.limbs), len(batch)), dtype=np.uint32)
        for place, limb in enumerate(self._columns.limbs):
            values[place] = coding.cells_of(batch.column(limb))
        rows = np.empty((len(batch), self.width), dtype=np.uint32)
        starts = np.empty((1 << PART_BITS) + 1, dtype=np.int64)
        loops.scatter(hashes, coding.as_input(codes), coding.as_input(keys), values, PART_BITS, starts, rows)
        held = sum(coder.bytes_held for coder in (self._units, self._keys) if coder is not None)
        if held > self._memory // TABLES_SHARE:
            raise coding.OverMemory
        return rows[: starts[-1]], starts

    def keys(self) -> tuple[list[tuple[Any, ...]] | None, NDArray[np.uint64], NDArray[np.int64]]:
        """Return the keys of all codes, a hash of each one's value, and where each is in the order of keys."""
        if self._keys is not None:
            keys, hashes = self._keys.keys(), self._keys.hashes
            return keys, hashes, coding.ranks(keys, hashes)
        places = np.arange(self._columns.listed or 1, dtype=np.int64)
        return None, coding.hashed(places, place_secret(self._salt)), places

    def _hash_units(self, units: pa.Array) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        if self._units is not None:
            codes = self._units.code(units)
            return self._units.hashes_of(codes), codes
        return coding.hashed(coding.as_words(units), self._unit_secret), np.empty(0, dtype=np.int64)

    def _code_keys(self, batch: pa.RecordBatch) -> NDArray[np.int64]:
        columns = [batch.column(key) for key in self._columns.keys]
        if self._keys is not None:
            return self._keys.code(columns)
        if self._places is not None:
            return self._places.find(columns[0])
        return coding.as_words(columns[0]) if columns else np.zeros(len(batch), dtype=np.int64)


def place_secret(salt: str) -> coding.Secret:
    return coding.make_secret(salt, "place")


def place_finder(columns: Columns, salt: str) -> coding.TextFinder | None:
    """Return what finds the listed keys' places, where rows come with the keys themselves."""
    return None if columns.texts is None else coding.TextFinder(columns.texts, coding.make_secret(salt, "listed"))


def threads_for(rows: int, packer: "Packer", shape: tuple[int, int], memory: int, cell_bytes: int = 0) -> int:
    """Return how many parts are added up at once, if the largest unit's cells take `cell_bytes` each; OverMemory if not
    one fits."""
    found = packer.finds_keys
    widest = (
        rows * packer.width * 4 * 4 + min(rows, shape[0]) * cell_bytes
    )  # two copies, and entries of about that size
    table = shape[0] * shape[1] * 8
    room = memory // PARTS_SHARE
    listed = shape[0] * (KEY_BYTES + SUM_BYTES * shape[1])
    if rows > ROWS_AT_ONCE or widest > room or (found and max(table, listed) > room):
        raise coding.OverMemory
    return max(1, min(THREADS, room // max(1, widest + table)))  # a public list's table has a fixed size


def rule_of(
    packer: Packer, hashes: NDArray[np.uint64], order: NDArray[np.int64], bounded: Bounded
) -> "loops.BoundingRule":
    """Return how the rows of one question are bounded, for the loops."""
    from tacit.engine.kernel import loops

    rows_most, groups_most = (min(most, ROWS_AT_ONCE) for most in (bounded.rows_most, bounded.groups_most))
    return loops.BoundingRule(packer.first, hashes, order, rows_most, groups_most)


def _sum_parts(
    runs: Runs,
    packer: Packer,
    hashes: NDArray[np.uint64],
    order: NDArray[np.int64],
    bounded: Bounded,
    memory: int,
) -> NDArray[Any]:
    """Return (key, sum) integers: rows, units, and counted and total of each limb."""
    from tacit.engine.kernel import loops

    shape = (len(hashes), 2 + 2 * (packer.width - packer.first))
    threads = threads_for(int(runs.sizes.max(initial=0)), packer, shape, memory)
    rule = rule_of(packer, hashes, order, bounded)
    if (few := runs.few()) is not None:
        sums = np.zeros(shape, dtype=np.int64)
        loops.sum_rows(*few, PART_BITS, 0, rule, sums)
        return sums

    def add(rows: Rows, sums: NDArray[np.int64]) -> None:
        loops.sum_rows(rows, np.array([0, len(rows)]), PART_BITS, bits_for(len(rows)), rule, sums)

    def work(parts: Iterator[Rows]) -> NDArray[Any]:
        return sums_of(parts, [shape], add)[0]

    return added_up(over_parts(runs, threads, work), runs)


def sums_of(
    parts: Iterable[Rows], shapes: Sequence[tuple[int, ...]], add: Callable[..., None]
) -> tuple[NDArray[Any], ...]:
    """Return what `add` adds up of the rows of all parts, in tables of these shapes; none of them wraps."""
    whole: list[NDArray[Any]] = [np.zeros(shape, dtype=np.int64) for shape in shapes]
    sums, added = [np.zeros(shape, dtype=np.int64) for shape in shapes], 0
    for rows in parts:
        if added + len(rows) > ROWS_AT_ONCE:
            whole, added = [total.astype(object) + some for total, some in zip(whole, sums, strict=True)], 0
            for some in sums:
                some[:] = 0
        added += len(rows)
        add(rows, *sums)
    return tuple(total + some for total, some in zip(whole, sums, strict=True))


def over_parts(runs: Runs, threads: int, work: Callable[[Iterator[Rows]], Found]) -> list[Found]:
    """Return what each thread makes of its parts: the largest first, so that no thread ends late."""
    waiting = iter(np.argsort(-runs.sizes, kind="stable").tolist())
    turn = threading.Lock()

    def parts() -> Iterator[Rows]:
        while True:
            with turn:
                part = next(waiting, None)
            if part is None or not runs.sizes[part]:
                return
            yield runs.part(part)

    if threads == 1 or int(runs.sizes.sum()) <= ROWS_ALONE:  # one thread is done before a second has begun
        return [work(parts())]
    with ThreadPoolExecutor(threads, "tacit-kernel") as workers:
        return list(workers.map(lambda _: work(parts()), range(threads)))


def added_up(tables: Sequence[NDArray[Any]], runs: Runs) -> NDArray[Any]:
    """Return the sum of the threads' tables; if there are many rows, of integers of any size."""
    table = tables[0]
    many = int(runs.sizes.sum()) > ROWS_AT_ONCE
    for other in tables[1:]:
        table = table.astype(object) + other if many else table + other
    return table


def bits_for(rows: int) -> int:
    """Return into how many parts, as a power of two, the rows of one part are split further."""
    return min((rows // PART_ROWS).bit_length(), 32 - PART_BITS)


def joined_limbs(table: NDArray[Any], columns: Columns) -> list[NDArray[Any]]:
    """Return rows, units, and counted and total of each value, its limbs put together again."""
    sums = [table[:, 0], table[:, 1]]
    at = 2
    for value in columns.values:
        counted, total = table[:, at], table[:, at + 1]
        for limb in range(1, len(value)):
            total = total.astype(object) * (1 << LIMB_BITS) + table[:, at + 2 * limb + 1]
        sums += [counted, total]
        at += 2 * len(value)
    return sums
