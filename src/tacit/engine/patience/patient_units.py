"""Aggregates each unit's rows on disk, for the patient path: in memory that does not grow with the rows.

Rows are sorted by unit and key, once for each aggregate with its value, so that one pass adds up. The results are those
of the SQL in `derived.py`, bit for bit, in a Parquet file of our own that streams in turn.
"""

import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tacit import typed_sql as sql
from tacit.engine import external_sort
from tacit.engine.external_sort import SortedRecords, SpillFile
from tacit.engine.kernel.coding import bytes_of
from tacit.engine.patience.patient import Beginnings, added_up
from tacit.engine.relation import TEXT_BYTES_MOST, leaving
from tacit.memory import memory_limit, spill_folder
from tacit.numbers import Words
from tacit.query import INT_LEAST, INT_MOST, Kind, UnitAggregate
from tacit.tables import Source, open_source

SORT_SHARE = 8
BATCH_ROWS, TEXT_BATCH_ROWS = 1 << 15, 1 << 11
GROUPS_AT_ONCE = 1 << 14
# A word is added up in three limbs, each in 64 bits: enough for 2^42 rows.
_LIMB_BITS, _LIMBS = 21, 3
_LIMB = np.uint64((1 << _LIMB_BITS) - 1)
_BIAS = 1 << 63
_WORD = 1 << 64
# A long text has at most 2^15 bytes.
_SIZE_BITS = 16


@dataclass(frozen=True)
class Added:
    """One aggregate as rows bring it to a unit, and as it is written."""

    name: str
    aggregate: UnitAggregate
    kind: Kind | None  # of its expression; None: it counts rows
    result: Kind
    step_bits: int = 0  # of a float that is added up in whole steps


def rows_on_disk(rows: sql.Relation, who: Sequence[str], added: Sequence[Added], source: Source) -> Source:
    """Return a source of one row for each different `who` (the unit, then keys), with the aggregates of its rows."""
    folder = Path(tempfile.mkdtemp(dir=spill_folder()))
    try:
        with ExitStack() as files:
            read = _Sorted(rows, who, added, source, files)
            path = folder / "rows.parquet"
            _write_units(path, read)
        opened = open_source(str(path), {}).streaming()
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(opened.backend.con, shutil.rmtree, folder, ignore_errors=True)
    return opened


class _Sorted:
    """Reads rows, sorts them, and holds what each group has in files, group by group."""

    def __init__(
        self, rows: sql.Relation, who: Sequence[str], added: Sequence[Added], source: Source, files: ExitStack
    ) -> None:
        self.who, self.added = list(who), list(added)
        self._files, self._folder = files, spill_folder()
        self._memory = memory_limit() // SORT_SHARE // (1 + len(added))
        self._texts = [name for name in who[1:] if rows[name].type().is_string()]
        self._blob = self._file()
        with source.stream(self._leaving(rows), TEXT_BATCH_ROWS if self._texts else BATCH_ROWS) as batches:
            self.kinds = {field.name: field.type for field in batches.schema}
            self._width = sum(external_sort.word_count(self.kinds[name]) for name in who)
            groups = self._records(len(self._texts))
            values = {each.name: self._records(external_sort.word_count(self.kinds[each.name])) for each in self._of()}
            for batch in batches:
                self._take(batch, groups, values)
        self.groups, self.places, self.rows = self._file(), self._file(), self._file()
        self._write_groups(groups)
        self.result_words = {each.name: self._result_words(each) for each in self._of()}
        self.results = {each.name: self._write_results(each, values[each.name]) for each in self._of()}

    def _of(self) -> Iterator[Added]:
        return (each for each in self.added if each.kind is not None)

    def _result_words(self, each: Added) -> int:
        words = external_sort.word_count(self.kinds[each.name])
        if each.aggregate.kind in ("sum", "mean"):
            return 1 + _LIMBS * (words - 1)
        return 1 if each.aggregate.kind in ("count", "count_distinct") else words

    def _leaving(self, rows: sql.Relation) -> sql.Relation:
        """Return rows with long texts of keys as digests, beside the texts themselves."""
        texts = {name: leaving(rows[name]) for name in self._texts}
        long = {
            f"{name} whole": sql.cases(
                (rows[name].byte_length() > TEXT_BYTES_MOST, rows[name]), else_=sql.null("string")
            )
            for name in self._texts
        }
        return rows.mutate(**(texts | long)) if texts else rows

    def _file(self) -> SpillFile:
        return self._files.enter_context(SpillFile(self._folder))

    def _records(self, more: int) -> SortedRecords:
        records = SortedRecords(words=self._width + more, memory=self._memory, folder=self._folder)
        return self._files.enter_context(records)

    def _take(self, batch: pa.RecordBatch, groups: SortedRecords, values: dict[str, SortedRecords]) -> None:
        who = external_sort.encode_all([batch.column(name) for name in self.who], len(batch))
        places = [self._kept_texts(batch.column(f"{name} whole"))[:, None] for name in self._texts]
        groups.add(np.hstack([who, *places]))
        for each in self._of():
            words = external_sort.encode(batch.column(each.name))
            if each.aggregate.kind in ("max", "any"):  # the greatest first, NULL last
                words[:, 1:] = ~words[:, 1:]
            values[each.name].add(np.hstack([who, words]))

    def _kept_texts(self, texts: pa.Array) -> Words:
        """Write long texts to the file, and return each one's place in it and its size; 0 where there is none."""
        places = np.zeros(len(texts), dtype=np.uint64)
        data, ends = bytes_of(texts.drop_null())
        starts = self._blob.append(data[ends[0] : ends[-1]]) + (ends[:-1] - ends[0])
        places[np.asarray(texts.is_valid())] = (starts << _SIZE_BITS) | np.diff(ends)
        return places

    def text_at(self, place: int) -> str:
        """Return the long text at a place of the file."""
        text = np.empty(place & ((1 << _SIZE_BITS) - 1), dtype=np.uint8)
        self._blob.fill(text, place >> _SIZE_BITS)
        return text.tobytes().decode()

    def _write_groups(self, records: SortedRecords) -> None:
        beginnings = Beginnings()

        def counted() -> Iterator[tuple[Words, Words]]:
            for block in records.blocks():
                (new,) = beginnings.of(block, (self._width,))
                self.groups.append(block[new, : self._width])
                self.places.append(block[new, self._width :])
                yield block[:, : self._width], np.ones((len(block), 1), dtype=np.uint64)

        for _, counts in added_up(counted()):
            self.rows.append(counts)

    def _write_results(self, each: Added, records: SortedRecords) -> SpillFile:
        file, kind = self._file(), each.aggregate.kind
        if kind in ("min", "max", "all", "any"):
            beginnings = Beginnings()
            for block in records.blocks():
                (new,) = beginnings.of(block, (self._width,))
                file.append(block[new, self._width :])
        else:
            for _, parts in added_up(self._parts(kind, records)):
                file.append(parts)
        return file

    def _parts(self, kind: str, records: SortedRecords) -> Iterator[tuple[Words, Words]]:
        beginnings = Beginnings()
        for block in records.blocks():
            known = block[:, self._width] == 0
            if kind == "count":  # of TRUE and FALSE
                known &= block[:, self._width + 1] != external_sort.SIGN
            if kind == "count_distinct":
                known &= beginnings.of(block, (block.shape[1],))[0]
            parts = [known.astype(np.uint64)[:, None]]
            if kind in ("sum", "mean"):
                parts += [_unit_limbs(np.where(known, word, 0)) for word in block[:, self._width + 1 :].T]
            yield block[:, : self._width], np.hstack(parts)


def _unit_limbs(word: Words) -> Words:
    low, middle = word & _LIMB, (word >> np.uint64(_LIMB_BITS)) & _LIMB
    return np.column_stack([low, middle, word >> np.uint64(2 * _LIMB_BITS)])


def _write_units(path: Path, read: _Sorted) -> None:
    words = sum(external_sort.word_count(read.kinds[name]) for name in read.who)
    groups = _unit_table(read.groups, words)
    texts = [name for name in read.who[1:] if f"{name} whole" in read.kinds]
    places, rows = _unit_table(read.places, len(texts)), _unit_table(read.rows, 1)
    results = {name: _unit_table(file, read.result_words[name]) for name, file in read.results.items()}
    schema = pa.schema(
        [(name, read.kinds[name]) for name in read.who] + [(each.name, _arrow_type(each.result)) for each in read.added]
    )
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for start in range(0, max(len(groups), 1), GROUPS_AT_ONCE):
            some = slice(start, start + GROUPS_AT_ONCE)
            columns: dict[str, list[Any]] = {}
            decoded = external_sort.decode_all(np.asarray(groups[some]), [read.kinds[name] for name in read.who])
            for at, name in enumerate(read.who):
                columns[name] = [row[at] for row in decoded]
            for at, name in enumerate(texts):
                for index, place in enumerate(places[some, at].tolist()):
                    if place:
                        columns[name][index] = read.text_at(place)
            for each in read.added:
                found = rows[some] if each.kind is None else results[each.name][some]
                columns[each.name] = _result(each, np.asarray(found), read.kinds.get(each.name))
            arrays = [pa.array(columns[field.name], field.type) for field in schema]
            writer.write_batch(pa.record_batch(arrays, schema=schema))


def _unit_table(file: SpillFile, words: int) -> NDArray[np.uint64]:
    return file.mapped(np.uint64).reshape(-1, words) if words else np.empty((0, 0), dtype=np.uint64)


def _arrow_type(kind: Kind) -> pa.DataType:
    if kind.type == "decimal":
        return pa.decimal128(kind.digits, kind.scale)
    plain = {"bool": pa.bool_(), "int": pa.int64(), "float": pa.float64(), "date": pa.date32()}
    return plain.get(kind.type, pa.timestamp("us"))


def _result(each: Added, found: Words, stored: pa.DataType | None) -> list[Any]:
    kind = each.aggregate.kind
    if kind in ("count", "count_distinct"):
        return [int(number) for number in found[:, 0].tolist()]
    if kind in ("sum", "mean"):
        return [_added_up(each, row) for row in found.tolist()]
    words = found.copy()
    if kind in ("max", "any"):
        words[:, 1:] = ~words[:, 1:]
    return external_sort.decode(words, stored)


def _added_up(each: Added, parts: list[int]) -> Any:
    """Return a sum or a mean from the limbs of a group's values, as the SQL computes it."""
    known = parts[0]
    if not known or each.kind is None:
        return None
    words = [
        sum(part << _LIMB_BITS * limb for limb, part in enumerate(parts[at : at + _LIMBS]))
        for at in range(1, len(parts), _LIMBS)
    ]
    total = words[0] - known * _BIAS
    if len(words) == 2:
        total = total * _WORD + words[1]
    if each.kind.type == "float":
        whole = float(total) / float(1 << each.step_bits)
        return whole / float(known) if each.aggregate.kind == "mean" else whole
    if each.aggregate.kind == "mean":
        return total / 10**each.kind.scale / float(known)
    if each.result.type == "int":
        return total if INT_LEAST <= total <= INT_MOST else None
    return None if abs(total) >= 10**each.result.digits else Decimal(f"{total}e-{each.result.scale}")  # in full
