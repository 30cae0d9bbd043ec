"""Stage two: one part's rows become its exact table, by the very engine that reads rows here; stage three counts.

A part holds all rows of its units, so sums over parts are sums over the table under the same salt. Two parts may have
the same of the different values, so these are cut by a hash of key and value, and stage three counts them. While rows
arrive they are in memory, and from a public size on in a private file that is mapped.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tacit.engine import external_sort
from tacit.engine.coded.coding_rows import read_blocks
from tacit.engine.derived import StoredRows, derived_source, kinds_of
from tacit.engine.embedded import EmbeddedEngine
from tacit.engine.engine import ExecutionPath
from tacit.engine.external_sort import Held, SortedRecords, SpillFile
from tacit.engine.kernel import compiled
from tacit.engine.parts.cutting import Piece, from_stream, part_of, to_stream
from tacit.engine.parts.part_bytes import block_to_bytes, to_bytes
from tacit.engine.patience.patient import Beginnings, counted_once
from tacit.engine.patience.patient_path import PatientQuestion, key_values
from tacit.engine.relation import listed_keys
from tacit.exact import ExactTable, distinct_name
from tacit.memory import memory_limit, spill_folder
from tacit.plan import CodedPlan, Plan
from tacit.privacy import Words
from tacit.query import Relation, TableRows
from tacit.tables import ColumnFacts, Declaration, PublicTable, Source, open_source, to_scalar

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
