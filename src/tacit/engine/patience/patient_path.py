"""Runs a plan on the patient path: slower, but no rows can make it stop. It takes over when a quick path stops.

It keeps the rows and groups that the stopped path would have kept, by that path's order and salt, so that no answer
depends on the path (docs/proofs/nothing-fails.md). Found groups are yielded in parts.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit import typed_sql as sql
from tacit.engine import external_sort
from tacit.engine.external_sort import SortedRecords
from tacit.engine.kernel import kernel_path, summing
from tacit.engine.patience.patient import (
    COPIES,
    KeyedFile,
    KeySums,
    Orders,
    RankedRows,
    RecordLayout,
    RowRecords,
    ValuesByKey,
    counted_once,
    kept_values,
    parts_of,
    place_words,
    ranked_rows,
    slices,
    sums_of,
    value_records,
    weighed_blocks,
    weighed_records,
)
from tacit.engine.patience.patient_cells import (
    CellBlock,
    CellFile,
    UnitFile,
    UnitTotals,
    Whole,
    cell_blocks,
    group_parts,
    group_sums,
    largest_bins,
    last_of_units,
    length_bins,
    scaled_blocks,
    unit_lengths,
)
from tacit.engine.relation import (
    GROUP_ORDER,
    KEY_PLACE,
    ROW_ORDER,
    UNIT,
    VALUE,
    counted_rows,
    value_rows,
    weighed_rows,
    with_orders,
)
from tacit.engine.scaled_relation import is_of_largest, largest_rows, people_table, question_of_profiles, scaled_names
from tacit.exact import ExactTable, GroupedSteps, distinct_name, sum_names, value_name
from tacit.numbers import Words
from tacit.plan import LARGEST_BINS, UNBOUNDED, Plan, Scaling, Vector
from tacit.query import Kind
from tacit.tables import Source, to_scalar

# Divisors of the memory limit: for sorting rows, and for sorting groups, values and distinct values.
ROWS_SHARE, GROUPS_SHARE = 8, 16
BATCH_BYTES_SHARE, BATCH_ROWS_MOST, BATCH_ROWS_LEAST = 64, 1 << 17, 1 << 11


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


def exact_tables(asked: PatientQuestion, listed: sql.Relation | None) -> Iterator[ExactTable]:
    """Yield the groups' exact sums, every unit bounded; listed groups all at once, found ones in parts."""
    plan = asked.plan
    with ExitStack() as files:
        if plan.profiles:
            yield _profile_table(asked, listed, files)
            return
        read = _Read(asked, listed, files)
        if plan.scaling is None or any(draw.of == "rows" for draw in plan.quantiles):
            read.rows()
        if plan.scaling is not None:
            read.scaled(plan.scaling)
        for index in sorted(plan.weighed):
            read.weighed(index)
        distinct = [read.distinct(index) for index in range(len(plan.distincts))]
        make = _listed_table if plan.public_keys is not None else _found_tables
        yield from make(plan, read, distinct)


@dataclass(frozen=True)
class KeyValues:
    """What is counted where different values are: the words of a key, then of a value; and how to read the keys."""

    records: SortedRecords
    key_words: int
    key_kinds: Sequence[pa.DataType]  # none where keys are places in the public list


def key_values(asked: PatientQuestion, listed: sql.Relation | None, index: int, files: ExitStack) -> KeyValues:
    """Return the values of one expression that are kept, by key, for whoever counts the different ones."""
    read = _Read(asked, listed, files)
    records = read.key_values(index)
    return KeyValues(records, read.key_words, read.key_kinds)


class _Read:
    """Reads a question's rows into sums, values and counts by key."""

    def __init__(self, asked: PatientQuestion, listed: sql.Relation | None, files: ExitStack) -> None:
        self.asked = asked
        self._listed = listed
        self._files = files
        self.key_kinds: list[pa.DataType] = []
        self.key_words = 1
        self.sums: KeySums | None = None
        self.values: dict[int, ValuesByKey] = {}
        self.totals: dict[str, int] = {}

    def _records(self, words: int, memory: int) -> SortedRecords:
        return self._files.enter_context(SortedRecords(words=words, memory=memory, folder=self.asked.folder))

    def rows(self) -> None:
        """Read the rows that are added up, and the values that quantiles are drawn from."""
        plan = self.asked.plan
        rows_most = plan.rows_per_unit if plan.needs_rows else UNBOUNDED
        for rows in self.ranked():
            kept = (rows.group < plan.groups_per_unit) & (rows.place < rows_most)
            self._take(rows.keys[kept], rows.values[kept], rows.place[kept] == 0)

    def scaled(self, scaling: Scaling) -> None:
        """Read the sums of vectors that are scaled, and the totals of what was left of them and what was taken."""
        blocks = cell_blocks(self.ranked(), scaling.vectors, groups_most=self.asked.plan.groups_per_unit)
        cells = self.cell_file(scaling.vectors, blocks)
        lengths = unit_lengths(cells, range(len(scaling.vectors)), scaling.norm, self.unit_file)
        totals, self.sums = UnitTotals(scaling.vectors), None
        for block, added in scaled_blocks(cells, scaling, lengths):
            totals.add(block, added)
            self._take_groups(block, added)
        self.totals = totals.named()

    def _take_groups(self, block: CellBlock, added: Whole) -> None:
        keys, parts = group_parts(block, added)
        if self.sums is None:
            memory, folder = self.asked.memory // GROUPS_SHARE, self.asked.folder
            sums = KeySums(key=self.key_words, parts=parts.shape[1], memory=memory, folder=folder)
            self.sums = self._files.enter_context(sums)
        self.sums.add(keys, parts)

    def unit_file(self, columns: int) -> UnitFile:
        """Return an empty file of numbers of units."""
        return self._files.enter_context(UnitFile(columns=columns, folder=self.asked.folder))

    def cell_file(self, vectors: Sequence[Vector], blocks: Iterator[CellBlock]) -> CellFile:
        """Write cells to a file, so that they can be read several times."""
        cells = self._files.enter_context(CellFile(vectors=len(vectors), folder=self.asked.folder))
        for block in blocks:
            cells.add(block)
        return cells

    def ranked(self) -> Iterator[RankedRows]:
        """Yield the rows of the question in the order in which those of a unit are kept."""
        plan, asked = self.asked.plan, self.asked
        joined = None if self._looks_up_keys else self._listed
        rows, keys = counted_rows(plan, asked.source.table, asked.kinds, joined)
        if asked.orders == "sql" and plan.unit is not None:
            values = [value_name(index) for index in range(plan.value_count)]
            rows = with_orders(rows, keys, values, asked.salt)
        more = [name for name in (GROUP_ORDER, ROW_ORDER) if name in rows.columns]
        relation, columns, _ = kernel_path.relation_of(plan, rows, keys, more=more)
        yield from self._ranked(relation, columns)

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

    def weighed(self, index: int) -> None:
        """Read the values of a column with the weights of their rows."""
        plan, asked = self.asked.plan, self.asked
        relation, keys = weighed_rows(plan, index, asked.source.table, asked.kinds, asked.salt, self._listed)
        memory = asked.memory // GROUPS_SHARE
        with asked.source.stream(relation, self.batch_rows(relation)) as batches:
            self._describe(batches.schema, keys)
            layout = RecordLayout(external_sort.word_count(batches.schema.field(UNIT).type), self.key_words, 0)
            copies = [self._records(layout.group_end + 1, memory // COPIES) for _ in range(COPIES)]
            for batch in batches:
                records = weighed_records(batch, self._key_words(batch, keys))
                for copy in copies:
                    copy.add(records)
        kept = ValuesByKey(key=self.key_words, memory=memory, folder=asked.folder, weights=True)
        self.values[index] = self._files.enter_context(kept)
        first, second, third = (copy.blocks() for copy in copies)
        for found in weighed_blocks((first, second, third), layout, groups_most=plan.groups_per_unit):
            kept.add(*found)

    def _open(self, values: int) -> None:
        drawn = sorted({draw.column for draw in self.asked.plan.quantiles} - self.asked.plan.weighed)
        memory, folder = self.asked.memory // GROUPS_SHARE, self.asked.folder
        sums = KeySums(key=self.key_words, parts=2 + 4 * values, memory=memory, folder=folder)
        self.sums = self._files.enter_context(sums)
        for index in drawn:
            kept = ValuesByKey(key=self.key_words, memory=memory // len(drawn), folder=folder)
            self.values[index] = self._files.enter_context(kept)

    def _ranked(self, relation: sql.Relation, columns: summing.Columns) -> Iterator[RankedRows]:
        """Yield the rows in the order in which those of a unit are kept; a row that is a unit comes as it is read."""
        plan, asked, unit = self.asked.plan, self.asked, 0
        with asked.source.stream(relation, self.batch_rows(relation)) as batches:
            self._describe(batches.schema, columns.keys)
            cells = RowRecords(batches.schema, columns, asked.salt, asked.orders)
            if plan.unit is None:
                for batch in batches:
                    first = np.zeros(len(batch), dtype=np.int64)
                    units = np.arange(unit, unit + len(batch))
                    yield RankedRows(units, first, first, cells.keys(batch), cells.values(batch))
                    unit += len(batch)
                return
            layout = RecordLayout(cells.unit_words, self.key_words, len(columns.values))
            records = self._records(layout.words, asked.memory // ROWS_SHARE)
            for batch in batches:
                records.add(cells.records(batch))
        yield from ranked_rows(records.blocks(), layout)

    def distinct(self, index: int) -> KeyedFile:
        """Return how many distinct values one expression has in each group, with each unit's values bounded."""
        return self._counted(self.key_values(index))

    def key_values(self, index: int) -> SortedRecords:
        """Return the key and value of each value that is kept of a unit, as words; one pair may be there many times."""
        plan, asked = self.asked.plan, self.asked
        wanted = plan.distincts[index]
        relation, keys = value_rows(plan, index, asked.source.table, asked.kinds, asked.salt, self._listed)
        with asked.source.stream(relation, self.batch_rows(relation)) as batches:
            schema = batches.schema
            self._describe(schema, keys)
            value_words = external_sort.word_count(schema.field(VALUE).type)
            of_key = self._records(self.key_words + value_words, asked.memory // GROUPS_SHARE)
            if plan.unit is None:
                for batch in batches:
                    words = external_sort.encode(batch.column(VALUE))
                    known = words[:, 0] == 0
                    of_key.add(np.hstack([self._key_words(batch, keys), words])[known])
            else:
                layout = RecordLayout(external_sort.word_count(schema.field(UNIT).type), self.key_words, value_words)
                records = self._records(layout.words, asked.memory // ROWS_SHARE)
                for batch in batches:
                    records.add(value_records(batch, self._key_words(batch, keys)))
        if plan.unit is not None:
            limits = {"values_most": wanted.per_unit, "groups_most": plan.groups_per_unit if keys else UNBOUNDED}
            for found in kept_values(records.blocks(), layout, **limits):
                of_key.add(np.hstack(found))
        return of_key

    def _counted(self, of_key: SortedRecords) -> KeyedFile:
        counts = self._files.enter_context(KeyedFile(key=self.key_words, folder=self.asked.folder))
        for keys, counted in counted_once(of_key, self.key_words):
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

    def batch_rows(self, relation: sql.Relation) -> int:
        """Return how many rows a batch has, so that their words and copies take a small share of the memory limit."""
        size = 8 * external_sort.TEXT_BYTES_MOST * len(relation.columns)
        return min(BATCH_ROWS_MOST, max(BATCH_ROWS_LEAST, self.asked.memory // BATCH_BYTES_SHARE // size))


def _listed_table(plan: Plan, read: _Read, distinct: list[KeyedFile]) -> Iterator[ExactTable]:
    listed = ((),) if plan.public_keys is None else plan.public_keys
    exact_sums: dict[str, list[int]] = {}
    if not plan.sums_nothing:
        exact_sums = {name: [0] * len(listed) for name in _sum_names(plan)}
    of_parts = sums_of if plan.scaling is None else group_sums
    for keys, exact_parts in read.sums.groups() if read.sums is not None and exact_sums else ():
        for name, exact_column in zip(exact_sums, of_parts(exact_parts), strict=True):
            for index, exact_value in zip(keys[:, 0].tolist(), exact_column, strict=True):
                exact_sums[name][index] = exact_value
    places = np.arange(len(listed), dtype=np.uint64)[:, None]
    for index, counts in enumerate(distinct):
        exact_sums[distinct_name(index)] = counts.find(places)[1].tolist()
    drawn = {draw.column for draw in plan.quantiles}
    exact_values = {index: _values_of(read, index, places) for index in sorted(drawn)}
    yield ExactTable(listed, exact_sums, exact_values, read.totals)


def _sum_names(plan: Plan) -> list[str]:
    return sum_names(plan) if plan.scaling is None else scaled_names(plan)


def _found_tables(plan: Plan, read: _Read, distinct: list[KeyedFile]) -> Iterator[ExactTable]:
    drawn = sorted({draw.column for draw in plan.quantiles})
    if read.sums is None:  # no row
        names = [*_sum_names(plan), *(distinct_name(at) for at in range(len(distinct)))]
        nothing = {index: GroupedSteps.joined([]) for index in drawn}
        yield ExactTable([], {name: [] for name in names}, nothing, read.totals)
        return
    totals, of_parts = read.totals, sums_of if plan.scaling is None else group_sums
    for words, exact_parts in read.sums.groups():
        keys = [tuple(to_scalar(part) for part in key) for key in external_sort.decode_all(words, read.key_kinds)]
        exact_sums = dict(zip(_sum_names(plan), of_parts(exact_parts), strict=True))
        for index, counts in enumerate(distinct):
            exact_sums[distinct_name(index)] = counts.find(words)[1].tolist()
        yield ExactTable(keys, exact_sums, {index: _values_of(read, index, words) for index in drawn}, totals)
        totals = {}  # they are of the whole table, and in one part of it


def _values_of(read: _Read, index: int, keys: Words) -> GroupedSteps:
    kept = read.values.get(index)
    if kept is not None:
        return kept.of(keys)
    return GroupedSteps.joined([np.empty(0, dtype=np.int64)] * len(keys))


# --- profiles ---


def _profile_table(asked: PatientQuestion, listed: sql.Relation | None, files: ExitStack) -> ExactTable:
    """Return how many units are in each bin of each profile."""
    plan, question = asked.plan, question_of_profiles(asked.plan)
    if is_of_largest(plan):
        people = [_people_by_largest(asked, listed, files, index) for index in range(len(plan.profiles))]
    else:
        read, vectors = _Read(replace(asked, plan=question), listed, files), [each.vector for each in plan.profiles]
        blocks = cell_blocks(read.ranked(), vectors, groups_most=UNBOUNDED)
        cells = read.cell_file(vectors, blocks)
        people = [
            length_bins(cells, index, int(profile.norm), read.unit_file) for index, profile in enumerate(plan.profiles)
        ]
    return people_table(plan, people)


def _people_by_largest(asked: PatientQuestion, listed: sql.Relation | None, files: ExitStack, index: int) -> list[int]:
    """Return how many units have their largest value in each bin: values of a unit are sorted by their size."""
    plan, question = asked.plan, question_of_profiles(asked.plan)
    rows, (name,) = largest_rows(plan, [index], asked.source.table, asked.kinds, listed)
    relation, *_ = kernel_path.relation_of(question, rows, [], more=[name])
    people = np.zeros(LARGEST_BINS, dtype=np.int64)
    records: SortedRecords | None = None
    read = _Read(asked, listed, files)
    with asked.source.stream(relation, read.batch_rows(relation)) as batches:
        for batch in batches:
            values = batch.column(name).to_numpy(zero_copy_only=False).astype(np.float64)
            counts = largest_bins(values) >= 0
            values = values[counts]
            if plan.unit is None:
                people += np.bincount(largest_bins(values), minlength=LARGEST_BINS)
                continue
            units = external_sort.encode(batch.column(UNIT))[counts]
            if records is None:
                opened = SortedRecords(words=units.shape[1] + 2, memory=asked.memory // ROWS_SHARE, folder=asked.folder)
                records = files.enter_context(opened)
            sizes = np.abs(values).view(np.uint64)
            records.add(np.column_stack([units, sizes, (values > 0).astype(np.uint64)]))
    for last in last_of_units(records.blocks()) if records is not None else ():
        values = np.ascontiguousarray(last[:, -2]).view(np.float64)
        bins = largest_bins(np.where(last[:, -1] == 1, values, -values))
        people += np.bincount(bins, minlength=LARGEST_BINS)
    return [int(count) for count in people]
