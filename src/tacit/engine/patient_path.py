"""Runs a plan on the patient path: slower, but no rows can make it stop. It takes over when a quick path stops.

Rows leave DuckDB as words of fixed width in small batches, and are sorted on disk. The patient path keeps the same rows
and groups that the stopped path would have kept: it uses that path's order and the same salt
(docs/proofs/nothing-fails.md). So no answer depends on the path. Found groups are yielded in parts.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import ibis.expr.types as ir
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.engine import external_sort
from tacit.engine.external_sort import SortedRecords
from tacit.engine.kernel import coding, kernel_path, summing
from tacit.engine.patient import (
    NO_VALUE,
    Beginnings,
    KeyedFile,
    KeySums,
    Layout,
    ValuesByKey,
    added_up,
    kept_rows,
    kept_values,
    parts_of,
    slices,
    sums_of,
)
from tacit.engine.relation import GROUP_ORDER, KEY_PLACE, ROW_ORDER, UNIT, VALUE, counted_rows, value_rows, with_orders
from tacit.exact import ExactTable, GroupedSteps, distinct_name, sum_names, value_name
from tacit.plan import Plan
from tacit.privacy import Words
from tacit.query import Kind
from tacit.tables import Source, to_scalar

Orders = Literal["kernel", "sql"]

# Divisors of the memory limit: for sorting rows, and for sorting groups, values and distinct values.
ROWS_SHARE, GROUPS_SHARE = 8, 16
BATCH_BYTES_SHARE, BATCH_ROWS_MOST, BATCH_ROWS_LEAST = 64, 1 << 17, 1 << 11
UNBOUNDED = 1 << 62


@dataclass(frozen=True)
class PatientQuestion:
    """A question on this path: the plan, the source of its rows, and the path whose order it follows."""

    plan: Plan
    source: Source
    kinds: Mapping[str, Kind]
    salt: str
    orders: Orders
    memory: int
    folder: Path | None


def exact_tables(asked: PatientQuestion, listed: ir.Table | None) -> Iterator[ExactTable]:
    """Yield the groups' exact sums, every unit bounded; listed groups all at once, found ones in parts."""
    with ExitStack() as files:
        read = _Read(asked, listed, files)
        read.rows()
        distinct = [read.distinct(index) for index in range(len(asked.plan.distincts))]
        make = _listed_table if asked.plan.public_keys is not None else _found_tables
        yield from make(asked.plan, read, distinct)


class _Read:
    """Reads a question's rows into sums, values and counts by key."""

    def __init__(self, asked: PatientQuestion, listed: ir.Table | None, files: ExitStack) -> None:
        self.asked = asked
        self._listed = listed
        self._files = files
        self.key_kinds: list[pa.DataType] = []
        self.key_words = 1
        self.sums: KeySums | None = None
        self.values: dict[int, ValuesByKey] = {}

    def rows(self) -> None:
        """Read the rows that are added up, and the values that quantiles are drawn from."""
        plan, asked = self.asked.plan, self.asked
        joined = None if self._looks_up_keys else self._listed
        rows, keys = counted_rows(plan, asked.source.table, asked.kinds, joined)
        if asked.orders == "sql" and plan.unit is not None:
            values = [value_name(index) for index in range(plan.value_count)]
            rows = with_orders(rows, keys, values, asked.salt)
        more = [name for name in (GROUP_ORDER, ROW_ORDER) if name in rows.columns]
        relation, form = kernel_path.relation_of(plan, rows, keys, more=more)
        limits = (plan.rows_per_unit if plan.needs_rows else UNBOUNDED, plan.groups_per_unit)
        for keys_of_rows, values_of_rows, first in self._bounded(relation, form.columns, limits):
            self._take(keys_of_rows, values_of_rows, first)

    @property
    def _looks_up_keys(self) -> bool:
        return self.asked.orders == "kernel" and kernel_path.looks_up_keys(self.asked.plan)

    def _take(self, keys: Words, values: Words, first: NDArray[np.bool_]) -> None:
        if self.sums is None and len(keys):
            self._open(values.shape[1])
        for some in slices(len(keys), self.key_words + 2 + 4 * values.shape[1]):
            if self.sums is not None and len(keys[some]):
                self.sums.add(keys[some], parts_of(values[some], first[some]))
        for index, kept in self.values.items():
            kept.add(keys, values[:, index])

    def _open(self, values: int) -> None:
        drawn = sorted({draw.column for draw in self.asked.plan.quantiles})
        memory, folder = self.asked.memory // GROUPS_SHARE, self.asked.folder
        self.sums = KeySums(key=self.key_words, parts=2 + 4 * values, memory=memory, folder=folder)
        self._files.enter_context(closing(self.sums))
        for index in drawn:
            kept = ValuesByKey(key=self.key_words, memory=memory // len(drawn), folder=folder)
            self.values[index] = self._files.enter_context(closing(kept))

    def _bounded(
        self, relation: ir.Table, columns: summing.Columns, limits: tuple[int, int]
    ) -> Iterator[tuple[Words, Words, NDArray[np.bool_]]]:
        """Yield the keys and values of the kept rows, and whether each is its unit's first row in the group."""
        plan, asked = self.asked.plan, self.asked
        with asked.source.stream(relation, self._batch_rows(relation)) as batches:
            self._describe(batches.schema, columns.keys)
            cells = _Cells(batches.schema, columns, asked)
            if plan.unit is None:
                for batch in batches:
                    keys, values = cells.keys(batch), cells.values(batch)
                    yield keys, values, np.ones(len(batch), dtype=bool)
                return
            layout = Layout(cells.unit_words, self.key_words, len(columns.values))
            memory = asked.memory // ROWS_SHARE
            records = SortedRecords(words=layout.words, memory=memory, folder=asked.folder)
            self._files.enter_context(closing(records))
            for batch in batches:
                records.add(cells.records(batch))
        rows_most, groups_most = limits
        yield from kept_rows(records.blocks(), layout, rows_most=rows_most, groups_most=groups_most)

    def distinct(self, index: int) -> KeyedFile:
        """Return how many distinct values one expression has in each group, with each unit's values bounded."""
        plan, asked = self.asked.plan, self.asked
        wanted = plan.distincts[index]
        relation, keys = value_rows(plan, index, asked.source.table, asked.kinds, asked.salt, self._listed)
        memory = asked.memory // GROUPS_SHARE
        with asked.source.stream(relation, self._batch_rows(relation)) as batches:
            schema = batches.schema
            self._describe(schema, keys)
            value_words = external_sort.word_count(schema.field(VALUE).type)
            of_key = SortedRecords(words=self.key_words + value_words, memory=memory, folder=asked.folder)
            self._files.enter_context(closing(of_key))
            if plan.unit is None:
                for batch in batches:
                    words = external_sort.encode(batch.column(VALUE))
                    known = words[:, 0] == 0
                    of_key.add(np.hstack([self._key_words(batch, keys), words])[known])
            else:
                layout = Layout(external_sort.word_count(schema.field(UNIT).type), self.key_words, value_words)
                records = SortedRecords(words=layout.words, memory=asked.memory // ROWS_SHARE, folder=asked.folder)
                self._files.enter_context(closing(records))
                for batch in batches:
                    records.add(_value_records(batch, self._key_words(batch, keys)))
        if plan.unit is not None:
            limits = {"values_most": wanted.per_unit, "groups_most": plan.groups_per_unit if keys else UNBOUNDED}
            for found in kept_values(records.blocks(), layout, **limits):
                of_key.add(np.hstack(found))
        return self._counted(of_key)

    def _counted(self, of_key: SortedRecords) -> KeyedFile:
        counts = self._files.enter_context(closing(KeyedFile(key=self.key_words, folder=self.asked.folder)))
        beginnings = Beginnings()

        def new_ones() -> Iterator[tuple[Words, Words]]:
            for block in of_key.blocks():
                (new,) = beginnings.of(block, (block.shape[1],))
                yield block[:, : self.key_words], new.astype(np.uint64)[:, None]

        for keys, counted in added_up(new_ones()):
            counts.add(keys, counted[:, 0])
        return counts

    def _describe(self, schema: pa.Schema, keys: Any) -> None:
        if self.asked.plan.public_keys is None:
            self.key_kinds = [schema.field(key).type for key in keys]
            self.key_words = sum(map(external_sort.word_count, self.key_kinds))

    def _key_words(self, batch: pa.RecordBatch, keys: list[str]) -> Words:
        if self.asked.plan.public_keys is None:
            return external_sort.encode_all([batch.column(key) for key in keys], len(batch))
        return place_words(batch.column(KEY_PLACE) if KEY_PLACE in keys else None, len(batch))

    def _batch_rows(self, relation: ir.Table) -> int:
        """Return how many rows a batch has, so that their words and copies take a small share of the memory limit."""
        size = 8 * external_sort.TEXT_BYTES_MOST * len(relation.columns)
        return min(BATCH_ROWS_MOST, max(BATCH_ROWS_LEAST, self.asked.memory // BATCH_BYTES_SHARE // size))


def place_words(places: pa.Array | None, rows: int) -> Words:
    """Return the indexes of listed keys as words; without keys, the index 0 for every row."""
    if places is None:
        return np.zeros((rows, 1), dtype=np.uint64)
    return coding.as_words(places).astype(np.uint64)[:, None]


class _Cells:
    """Turns batches into records, with the orders of the path that stopped."""

    def __init__(self, schema: pa.Schema, columns: summing.Columns, asked: PatientQuestion) -> None:
        self._columns = columns
        self._asked = asked
        self._places = summing.place_finder(columns, asked.salt) if asked.orders == "kernel" else None
        self.unit_words = 0 if asked.plan.unit is None else external_sort.word_count(schema.field(UNIT).type)

    def keys(self, batch: pa.RecordBatch) -> Words:
        """Return the rows' keys as words."""
        columns = [batch.column(key) for key in self._columns.keys]
        if self._columns.listed is None:
            return external_sort.encode_all(columns, len(batch))
        return place_words(columns[0] if columns else None, len(batch))

    def values(self, batch: pa.RecordBatch) -> Words:
        """Return the rows' values, each in one word."""
        values = np.empty((len(batch), len(self._columns.values)), dtype=np.uint64)
        for index, limbs in enumerate(self._columns.values):
            words = [coding.cells_of(batch.column(limb)).astype(np.uint64) for limb in limbs]
            whole = words[0] if len(words) == 1 else (words[0] << np.uint64(summing.LIMB_BITS)) | words[1]
            values[:, index] = np.where(words[-1] == summing.NULL_WORD, NO_VALUE, whole)
        return values

    def records(self, batch: pa.RecordBatch) -> Words:
        """Return unit, order of the group, key, order of the row and values of each row."""
        if self._places is not None:
            places = self._places.find(batch.column(self._columns.keys[0]))
            batch = batch.filter(pa.array(places >= 0))
            keys = places[places >= 0].astype(np.uint64)[:, None]
        else:
            keys = self.keys(batch)
        group_order, row_order = self._orders(batch, keys)
        units = external_sort.encode(batch.column(UNIT))
        return np.column_stack([units, group_order, keys, row_order, self.values(batch)])

    def _orders(self, batch: pa.RecordBatch, keys: Words) -> tuple[Words, Words]:
        if self._asked.orders == "sql":
            return _order(batch, GROUP_ORDER), _order(batch, ROW_ORDER)
        salt, listed = self._asked.salt, self._columns.listed is not None
        units = hashes_of(batch.column(UNIT), coding.make_secret(salt, "unit"))
        if listed:
            of_keys = coding.hashed(keys[:, 0].astype(np.int64), summing.place_secret(salt))
        else:
            of_keys = hashes_of(batch.column(self._columns.keys[0]), coding.key_secret(salt, 0))
            for index, key in enumerate(self._columns.keys[1:], 1):
                of_keys = coding.mixed(of_keys, hashes_of(batch.column(key), coding.key_secret(salt, index)))
        group_order = order = coding.mixed(units, of_keys)
        for limb in self._columns.limbs:
            order = coding.mixed(order, coding.cells_of(batch.column(limb)).astype(np.uint64))
        return group_order, order


def hashes_of(column: pa.Array, secret: coding.Secret) -> Words:
    """Return the keyed hash of each cell, equal to the hash of the kernel's coders."""
    from tacit.engine.kernel import coding_loops as loops

    if coding.is_number(column.type):
        hashes = coding.hashed(coding.as_words(column), secret)
    else:
        data, ends = coding.bytes_of(column)
        hashes = np.empty(len(column), dtype=np.uint64)
        loops.hash_texts(coding.as_input(data), coding.as_input(ends), secret, hashes)
    if column.null_count:
        hashes[coding.is_null(column)] = coding.null_hash(secret)
    return hashes


def _order(batch: pa.RecordBatch, name: str) -> Words:
    """Return the words of an order, which is never NULL."""
    return external_sort.encode(batch.column(name))[:, 1]


def _value_records(batch: pa.RecordBatch, keys: Words) -> Words:
    value = external_sort.encode(batch.column(VALUE))
    order = np.where(value[:, 0] == 0, _order(batch, ROW_ORDER), NO_VALUE)  # NULL is no value, and comes last
    units = external_sort.encode(batch.column(UNIT))
    return np.column_stack([units, _order(batch, GROUP_ORDER), keys, order, value])


def _listed_table(plan: Plan, read: _Read, distinct: list[KeyedFile]) -> Iterator[ExactTable]:
    listed = plan.public_keys or ((),)
    exact_sums: dict[str, list[int]] = {}
    if not plan.sums_nothing:
        exact_sums = {name: [0] * len(listed) for name in sum_names(plan)}
    for keys, exact_parts in read.sums.groups() if read.sums is not None and exact_sums else ():
        for name, exact_column in zip(exact_sums, sums_of(exact_parts), strict=True):
            for index, exact_value in zip(keys[:, 0].tolist(), exact_column, strict=True):
                exact_sums[name][index] = exact_value
    places = np.arange(len(listed), dtype=np.uint64)[:, None]
    for index, counts in enumerate(distinct):
        exact_sums[distinct_name(index)] = counts.find(places)[1].tolist()
    drawn = {draw.column for draw in plan.quantiles}
    yield ExactTable(listed, exact_sums, {index: _values_of(read, index, places) for index in sorted(drawn)})


def _found_tables(plan: Plan, read: _Read, distinct: list[KeyedFile]) -> Iterator[ExactTable]:
    drawn = sorted({draw.column for draw in plan.quantiles})
    if read.sums is None:  # no row
        names = [*sum_names(plan), *(distinct_name(at) for at in range(len(distinct)))]
        yield ExactTable([], {name: [] for name in names}, {index: GroupedSteps.joined([]) for index in drawn})
        return
    for words, exact_parts in read.sums.groups():
        keys = [tuple(to_scalar(part) for part in key) for key in external_sort.decode_all(words, read.key_kinds)]
        exact_sums = dict(zip(sum_names(plan), sums_of(exact_parts), strict=True))
        for index, counts in enumerate(distinct):
            exact_sums[distinct_name(index)] = counts.find(words)[1].tolist()
        yield ExactTable(keys, exact_sums, {index: _values_of(read, index, words) for index in drawn})


def _values_of(read: _Read, index: int, keys: Words) -> GroupedSteps:
    kept = read.values.get(index)
    if kept is not None:
        return kept.of(keys)
    return GroupedSteps.joined([np.empty(0, dtype=np.int64)] * len(keys))
