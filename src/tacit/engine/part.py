"""Stage two: one part's rows become its exact table, by the very engine that reads rows here; stage three counts.

A part holds all rows of its units, so sums over parts are sums over the table under the same salt. Two parts may have
the same of the different values, so these are cut by a hash of key and value, and stage three counts them. While rows
arrive they are in memory, and from a public size on in a private file that is mapped.

Exact tables and coded rows as bytes, from the task that computes a part to the driver, which adds the parts up.

All numbers stay whole: sums and keys that do not fit 64 bits, and decimals, travel as digits. A group of a public list
travels as its index, if it has any sum.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from tacit.engine import external_sort
from tacit.engine.coding_rows import Block, read_blocks
from tacit.engine.cutting import Piece, from_stream, part_of, to_stream
from tacit.engine.derived import StoredRows, derived_source, kinds_of
from tacit.engine.engine import EmbeddedEngine, ExecutionPath
from tacit.engine.external_sort import Held, SortedRecords, SpillFile
from tacit.engine.kernel import compiled
from tacit.engine.patience.patient import Beginnings, counted_once
from tacit.engine.patience.patient_path import PatientQuestion, key_values
from tacit.engine.relation import grouped, listed_keys
from tacit.exact import ExactTable, GroupedSteps, distinct_name, key_name
from tacit.memory import memory_limit, spill_folder
from tacit.numbers import Words
from tacit.plan import CodedPlan, Plan
from tacit.query import Relation, Scalar, TableRows
from tacit.tables import ColumnFacts, Declaration, PublicTable, Source, open_source, to_scalar

PLACE, TOTALS = "place", b"totals"
BYTES_MOST = 1 << 23
KEY_BYTES, VALUE_BYTES = 64, 12  # of one part of a key, and of one value with its weight
DIGITS = frozenset({"int", "decimal"})  # keys of these types are written as digits
KEY_KINDS: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "float": pa.float64(),
    "text": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "null": pa.string(),
}


@dataclass(frozen=True, repr=False)
class ExactPart:
    """Some groups of one part: their keys, or their places in the public list; their sums and values, and totals."""

    keys: Sequence[tuple[Scalar, ...]] | None
    places: Sequence[int] | None
    sums: Mapping[str, Sequence[int]]
    values: Mapping[int, GroupedSteps]
    totals: Mapping[str, int]

    def __repr__(self) -> str:
        return "ExactPart(withheld)"


def to_bytes(exact_table: ExactTable, plan: Plan, most: int = BYTES_MOST) -> Iterator[bytes]:
    """Yield an exact table of this plan as bytes, some groups at a time, or some values of a group that has more: about
    `most`, which a scheduler carries."""
    if plan.public_keys is None:
        groups: Sequence[int] = range(len(exact_table))
    else:
        sums, steps = exact_table.sums.values(), exact_table.values.values()
        groups = [
            at
            for at in range(len(exact_table))
            if any(each[at] for each in sums) or any(len(each[at]) for each in steps)
        ]
    values, at_once = exact_table.values.values(), max(1, most // VALUE_BYTES)
    for start, end in _slices(exact_table, groups, most):
        some = groups[start:end]
        longest = max((len(steps[at]) for steps in values for at in some), default=0)
        for first in range(0, max(longest, 1), at_once):
            is_first = start == first == 0
            within = slice(first, first + at_once)
            yield _written_groups(plan, exact_table, some, exact_table.totals if is_first else {}, within)


def _slices(exact_table: ExactTable, groups: Sequence[int], most: int) -> Iterator[tuple[int, int]]:
    """Yield where slices of some groups begin and end: one at least, which has the totals."""
    each = KEY_BYTES * (1 + len(exact_table.keys[0]) if len(exact_table) else 1) + 8 * len(exact_table.sums)
    sizes = np.full(len(groups), each, dtype=np.int64)
    for steps in exact_table.values.values():
        sizes += VALUE_BYTES * (steps.ends - steps.starts)[np.array(groups, dtype=np.int64)]
    slices = np.cumsum(sizes) // most
    edges = [0, *(np.flatnonzero(np.diff(slices)) + 1).tolist(), len(groups)]
    yield from pairwise(edges)


def _written_groups(
    plan: Plan, exact_table: ExactTable, groups: Sequence[int], exact_totals: Mapping[str, int], within: slice
) -> bytes:
    """Write some groups with these of their values; their sums go with the first ones."""
    columns: dict[str, pa.Array] = {}
    if plan.public_keys is None:
        for index, key in enumerate(plan.keys):
            columns[key_name(index)] = _key_column([exact_table.keys[at][index] for at in groups], key.type)
        columns[PLACE] = pa.nulls(len(groups), pa.int64())
    else:
        columns[PLACE] = pa.array(groups, pa.int64())
    for name, exact_sums in exact_table.sums.items():
        columns[f"sum {name}"] = _integers([0 if within.start else int(exact_sums[at]) for at in groups])
    for index, steps in exact_table.values.items():
        columns[f"steps {index}"] = _lists([steps[at][within] for at in groups], np.uint32)
        if steps.weights is not None:
            held = [steps.weights[steps.starts[at] : steps.ends[at]][within] for at in groups]
            columns[f"weights {index}"] = _lists(held, np.int64)
    totals = json.dumps({name: int(total) for name, total in exact_totals.items()})
    return to_stream(pa.table(columns).replace_schema_metadata({TOTALS: totals.encode()}))


def _key_column(values: list[Scalar], kind: str) -> pa.Array:
    if kind in DIGITS:
        return pa.array([None if value is None else str(Fraction(value)) for value in values], pa.string())  # type: ignore[arg-type]
    return pa.array(values, KEY_KINDS[kind])


def _integers(exact_sums: list[int]) -> pa.Array:
    try:
        return pa.array(exact_sums, pa.int64())
    except (OverflowError, pa.ArrowInvalid):
        return pa.array([str(each) for each in exact_sums], pa.string())


def _lists(groups: Sequence[Any], kind: Any) -> pa.Array:
    ends = np.cumsum([0, *(len(each) for each in groups)], dtype=np.int64)
    held = np.concatenate([np.empty(0, dtype=kind), *(np.asarray(each).astype(kind) for each in groups)])
    return pa.LargeListArray.from_arrays(pa.array(ends), pa.array(held))


def from_bytes(written: bytes, plan: Plan) -> ExactPart:
    """Return what `to_bytes` wrote."""
    table = from_stream(written)
    exact_sums: dict[str, Sequence[int]] = {}
    exact_values: dict[int, GroupedSteps] = {}
    for name in table.column_names:
        kind, _, rest = name.partition(" ")
        if kind == "sum":
            exact_sums[rest] = [int(each) for each in table.column(name).to_pylist()]
        elif kind == "steps":
            exact_values[int(rest)] = _steps(table, rest)
    totals = json.loads((table.schema.metadata or {})[TOTALS])
    if plan.public_keys is not None:
        return ExactPart(None, table.column(PLACE).to_pylist(), exact_sums, exact_values, totals)
    parts = [_keys(table.column(key_name(at)).to_pylist(), key.type) for at, key in enumerate(plan.keys)]
    keys = list(zip(*parts, strict=True)) if parts else [()] * len(table)
    return ExactPart(keys, None, exact_sums, exact_values, totals)


def _keys(values: list[Any], kind: str) -> list[Scalar]:
    if kind == "int":
        return [None if value is None else int(value) for value in values]
    return [None if value is None else Fraction(value) for value in values] if kind == "decimal" else values


def _steps(table: pa.Table, index: str) -> GroupedSteps:
    lists = table.column(f"steps {index}").combine_chunks()
    ends = np.zeros(1, dtype=np.int64) if not len(lists) else lists.offsets.to_numpy()
    steps = lists.values.to_numpy() if len(lists) else np.empty(0, dtype=np.uint32)
    weights = None
    if f"weights {index}" in table.column_names:
        held = table.column(f"weights {index}").combine_chunks()
        weights = held.values.to_numpy() if len(held) else np.empty(0, dtype=np.int64)
    return GroupedSteps(steps, ends[:-1], ends[1:], weights)


def block_to_bytes(block: Block, most: int = BYTES_MOST) -> Iterator[bytes]:
    """Yield coded rows as bytes, some rows at a time: about `most` bytes each, or one row."""
    rows = max(1, most * block.length // max(1, block.nbytes))
    for start in range(0, block.length, rows):
        piece = block.piece(start, start + rows)
        alike = [] if piece.rows_of_unit is None else [piece.rows_of_unit]
        columns = [pa.array(each) for each in (*piece.cells, *piece.values, *alike)]
        yield to_stream(pa.Table.from_arrays(columns, names=list(map(str, range(len(columns))))))


def block_from_bytes(data: Any, plan: CodedPlan) -> Block:
    """Return the coded rows that bytes hold."""
    columns = [np.array(each) for each in from_stream(data).columns]  # in separate memory, as loops need them
    cells, values = columns[: len(plan.columns)], columns[len(plan.columns) : len(plan.columns) + len(plan.values)]
    alike = None if plan.unit is None else columns[-1]
    return Block(tuple(cells), tuple(values), alike, len(columns[0]))


# --- sums of parts ---


def added_parts(nothing: ExactTable, parts: Iterable[ExactPart], plan: Plan) -> ExactTable:
    """Return the sum of all parts; `nothing` is the exact table of no rows, which has the names of all sums."""
    total = _Total(nothing, plan)
    for part in parts:
        total.add(part)
    return total.table()


class _Total:
    def __init__(self, nothing: ExactTable, plan: Plan) -> None:
        self._keys: list[tuple[Scalar, ...]] = list(nothing.keys)
        self._place_of = {key: at for at, key in enumerate(self._keys)} if plan.public_keys is None else {}
        self._sums = {name: [int(each) for each in sums] for name, sums in nothing.sums.items()}
        self._totals = dict(nothing.totals)
        # of each column with quantiles: the places of values, the values, and their weights if they have any
        self._drawn: dict[int, list[tuple[Any, Any, Any]]] = {index: [] for index in nothing.values}
        self._weighed = plan.weighed

    def add(self, part: ExactPart) -> None:
        places = part.places if part.keys is None else [self._place(key) for key in part.keys]
        if places is None:
            raise ValueError("a part has the keys of its groups, or their places")
        for name, sums in part.sums.items():
            exact_sums = self._sums[name]
            for at, value in zip(places, sums, strict=True):
                exact_sums[at] += value
        for name, total in part.totals.items():
            self._totals[name] = self._totals.get(name, 0) + total
        for index, steps in part.values.items():
            where = np.repeat(np.array(places, dtype=np.int64), steps.ends - steps.starts)
            self._drawn[index].append((where, steps.steps, steps.weights))

    def _place(self, key: tuple[Scalar, ...]) -> int:
        place = self._place_of.get(key)
        if place is None:
            place = self._place_of[key] = len(self._keys)
            self._keys.append(key)
            for exact_sums in self._sums.values():
                exact_sums.append(0)
        return place

    def table(self) -> ExactTable:
        values = {index: self._values(index) for index in self._drawn}
        return ExactTable(self._keys, self._sums, values, self._totals)

    def _values(self, index: int) -> GroupedSteps:
        found = self._drawn[index]
        places = np.concatenate([np.empty(0, dtype=np.int64), *(where for where, _, _ in found)])
        steps = np.concatenate([np.empty(0, dtype=np.int64), *(each for _, each, _ in found)])
        weights = None
        if index in self._weighed:
            held = [each for _, _, each in found if each is not None]
            weights = np.concatenate([np.empty(0, dtype=np.int64), *held])
        return grouped(places, steps, groups=len(self._keys), weights=weights)


# Kinds of pieces: below these, the rows of a table by its index; from VALUES on, those of the plan's different values.
EXACT, SEEN, TEXTS, CODED, VALUES = 1000, 1001, 1002, 1003, 2000
VALUES_SHARE = 16


@dataclass(frozen=True)
class PartTable:
    """A stored table as a part has it: its name, what is declared of it, and the columns that come."""

    name: str
    declaration: Declaration
    columns: Mapping[str, ColumnFacts]
    schema: pa.Schema


@dataclass(frozen=True)
class PartQuestion:
    """All that a part's exact table follows from, beside its rows."""

    plan: Plan | CodedPlan
    salt: str
    path: ExecutionPath
    tables: tuple[PartTable, ...]
    relation: Relation
    publics: Mapping[str, PublicTable] = field(default_factory=dict)
    parts: int = 1
    keys: Sequence[tuple[Any, ...]] | None = (
        None  # released keys whose long texts are looked up; then nothing is summed
    )

    @property
    def summed(self) -> Plan:
        """The plan that is added up: not one that rows are coded for."""
        if isinstance(self.plan, CodedPlan):
            raise TypeError("rows that are coded are not added up here")
        return self.plan


def engine_of(question: PartQuestion, rows: Sequence[pa.Table]) -> EmbeddedEngine:
    """Return the engine that reads a part's rows, on the path that all parts take."""
    if question.path == "kernel":
        _load_loops()
    sources = {
        table.name: replace(open_source(given, {}), columns=table.columns)
        for table, given in zip(question.tables, rows, strict=True)
    }
    declarations = {table.name: table.declaration for table in question.tables}
    if isinstance(question.relation, TableRows):
        source: Source = sources[question.relation.name]
    else:
        source = derived_source(question.relation, StoredRows(sources, declarations, question.publics))
    return EmbeddedEngine(source, path=question.path)


def _load_loops() -> None:
    if not compiled.load():
        compiled.compile_now()
        if not compiled.load():
            raise RuntimeError("the compiled loops are missing here, and other parts use them")


def _exact_pieces(exact_table: ExactTable, plan: Plan) -> Iterator[Piece]:
    for written in to_bytes(exact_table, plan):
        yield Piece(0, EXACT, written)


def part_tables(pieces: Iterable[Piece], question: PartQuestion) -> Iterator[Piece]:
    """Yield a part's exact table, and the values that stage three counts; there may be several parts together."""
    with Spool(memory_limit(), len(question.tables)) as spool:
        seen: set[int] = set()
        for piece in pieces:
            seen.add(piece.part)
            spool.add(piece.kind, piece.data)
        if not seen:
            return
        yield Piece(0, SEEN, np.array(sorted(seen), dtype=np.int64).tobytes())
        rows = [spool.table(kind, table.schema) for kind, table in enumerate(question.tables)]
        yield from answered(question, rows)


def answered(question: PartQuestion, rows: Sequence[pa.Table]) -> Iterator[Piece]:
    """Yield what a part's rows answer."""
    engine = engine_of(question, rows)
    if isinstance(question.plan, CodedPlan):
        for block in read_blocks(question.plan, engine.source, kinds_of(engine.source)):
            yield from (Piece(0, CODED, data) for data in block_to_bytes(block))
        return
    if question.keys is not None:
        yield Piece(0, TEXTS, json.dumps(dict(engine.texts(question.summed, question.keys))).encode())
        return
    summed = replace(question.summed, distincts=())
    for exact_table in engine.parts(summed, question.salt):
        yield from _exact_pieces(exact_table, question.summed)
    for index in range(len(question.summed.distincts)):
        yield from _values(question, engine, index)


def _values(question: PartQuestion, engine: EmbeddedEngine, index: int) -> Iterator[Piece]:
    """Yield the kept values of one expression with their keys, each pair once, cut by their hash."""
    source = engine.source.streaming()
    kinds_read = kinds_of(engine.source)
    asked = PatientQuestion(question.summed, source, kinds_read, question.salt, "sql", memory_limit(), spill_folder())
    listed = listed_keys(question.summed)
    with ExitStack() as files:
        found = key_values(asked, listed, index, files)
        kinds = pa.schema([(str(at), kind) for at, kind in enumerate(found.key_kinds)])
        beginnings = Beginnings()
        for block in found.records.blocks():
            (new,) = beginnings.of(block, (block.shape[1],))
            pairs = block[new]
            part = part_of(_mixed(pairs), question.parts)
            for at in np.unique(part).tolist():
                mine = pairs[part == at]
                words = pa.table({str(place): mine[:, place] for place in range(mine.shape[1])})
                metadata = {b"key_words": str(found.key_words).encode(), b"kinds": kinds.serialize().to_pybytes()}
                yield Piece(at, VALUES + index, to_stream(words.replace_schema_metadata(metadata)))


def _mixed(words: Words) -> Words:
    """Return a hash of each record: where it is counted, and no secret of anybody's."""
    mixed = np.zeros(len(words), dtype=np.uint64)
    for column in words.T:
        mixed = (mixed ^ column) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed * np.uint64(0xBF58476D1CE4E5B9)


def count_values(pieces: Iterable[Piece], question: PartQuestion) -> Iterator[Piece]:
    """Yield how many different values each key has, of values that are all here; other pieces pass."""
    with ExitStack() as files:
        found: dict[int, tuple[SortedRecords, int, list[pa.DataType]]] = {}
        for piece in pieces:
            if piece.kind < VALUES:
                yield piece
                continue
            table = from_stream(piece.data)
            words = np.column_stack([column.to_numpy() for column in table.columns])
            if piece.kind not in found:
                memory, metadata = memory_limit() // VALUES_SHARE, table.schema.metadata
                opened = SortedRecords(words=words.shape[1], memory=memory, folder=spill_folder())
                records = files.enter_context(opened)
                kinds = pa.ipc.read_schema(pa.py_buffer(metadata[b"kinds"])).types
                found[piece.kind] = records, int(metadata[b"key_words"]), kinds
            found[piece.kind][0].add(words)
        for kind, (records, key_words, kinds) in found.items():
            for keys, counts in counted_once(records, key_words):
                yield from _exact_pieces(
                    _counted_values(question.summed, kind - VALUES, keys, counts, kinds), question.summed
                )


def _counted_values(plan: Plan, index: int, keys: Words, counts: Words, kinds: Sequence[Any]) -> ExactTable:
    exact_counts = counts[:, 0].tolist()
    if plan.public_keys is not None:
        listed = [0] * len(plan.public_keys)
        for place, count in zip(keys[:, 0].tolist(), exact_counts, strict=True):
            listed[place] = count
        return ExactTable(plan.public_keys, {distinct_name(index): listed})
    found = [tuple(to_scalar(part) for part in key) for key in external_sort.decode_all(keys, kinds)]
    return ExactTable(found, {distinct_name(index): exact_counts})


# --- the rows of one part, while they arrive ---


HELD_SHARE = 8
ALIGNED = 64  # bytes: Arrow reads blocks at a multiple of them in place


class Spool(Held):
    """Arrow rows of a few tables, taken piece by piece."""

    def __init__(self, memory: int, tables: int) -> None:
        self._most = memory // HELD_SHARE
        self._held: list[list[Any]] = [[] for _ in range(tables)]
        self._size = 0
        self._file = SpillFile(spill_folder())
        self._written: list[list[tuple[int, int]]] = [[] for _ in range(tables)]

    def add(self, table: int, data: bytes) -> None:
        """Take a piece: an Arrow stream of rows of one table."""
        self._held[table].append(data)
        self._size += len(data)
        if self._size > self._most:
            self._spill()

    def table(self, table: int, schema: pa.Schema) -> pa.Table:
        """Return all rows of one table; rows in the file are read as they are used."""
        pieces = list(self._held[table])
        if self._written[table]:
            mapped = pa.py_buffer(self._file.mapped(np.uint8))
            pieces += [mapped.slice(start, size) for start, size in self._written[table]]
        tables = [pa.ipc.open_stream(piece).read_all() for piece in pieces]
        return pa.concat_tables(tables) if tables else schema.empty_table()

    def _spill(self) -> None:
        for held, written in zip(self._held, self._written, strict=True):
            for data in held:
                aligned = bytes(data) + bytes(-len(data) % ALIGNED)
                written.append((self._file.append(np.frombuffer(aligned, dtype=np.uint8)), len(data)))
            held.clear()
        self._size = 0
