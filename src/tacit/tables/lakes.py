"""Delta and Iceberg tables, without Spark: one snapshot of a table, whose Parquet files are read as all others are.

The tables' own libraries read the log or the metadata: which files a snapshot has, their values of partition columns,
and the rows of them that are deleted. Cells are read by us, since no cell may make a question fail. A handle keeps the
snapshot that it was opened with, and that is the table's version: a later one is the same table, with the same budget.
Before a charge only metadata, schemas and sizes are read.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from tacit import typed_sql as sql
from tacit.errors import QueryRefused
from tacit.tables.cells import CellReading, hand, reading_of, value_type
from tacit.tables.formats import ICEBERG
from tacit.tables.parquet_files import BATCH_ROWS, columns_of, parquet_file
from tacit.tables.source import Source, described

# What a reader of Delta must understand, of which we do.
FEATURES = frozenset({"deletionVectors", "timestampNtz", "typeWidening", "v2Checkpoint", "vacuumProtocolCheck"})
LOOKED_FOR_MOST = 16  # files, before a charge
NO_ROWS = np.array([], np.int64)
# The rows of a file that are deleted, by their number in it.
Deleted = Callable[[], Mapping[str, Any]]


@dataclass(frozen=True)
class LakeFile:
    """One Parquet file of a snapshot: what it calls the columns, and the values of columns that it does not have."""

    path: str
    opening: Callable[[], Any] = field(repr=False)
    values: Mapping[str, Any] = field(default_factory=dict)
    ids: Mapping[int, str] | None = None  # the table's columns by the ids that the file's have; None: by their names

    def opened(self) -> Any:
        return self.opening()

    def stored_names(self, schema: pa.Schema) -> dict[str, str]:
        """Return what the file calls each of the table's columns that it has."""
        if self.ids is None:
            return {each.name: each.name for each in schema if each.name not in self.values}
        found = {_id_of(each): each.name for each in schema}
        return {column: found[number] for number, column in self.ids.items() if number in found}


@dataclass(frozen=True)
class LakeTable:
    """A snapshot of a table."""

    words: str  # for messages: what it is, and where
    name: str
    identity: str
    place: str
    version: int
    schema: pa.Schema
    files: Sequence[LakeFile]
    deleted: Deleted = field(repr=False)

    def refuse_changes(self) -> None:
        """Refuse if files of the snapshot are gone; of many, some are looked for. Reads no row."""
        try:
            for each in self.files[:: len(self.files) // LOOKED_FOR_MOST + 1]:
                with each.opened() as file:
                    file.read(1)
        except Exception:  # noqa: BLE001 - for any reason, it cannot be read
            raise QueryRefused(
                f"files of {self.words} are gone or cannot be read, so no charge was made"
                "\nhint: open the table again, for its newest snapshot"
            ) from None

    @cached_property
    def columns(self) -> tuple[list[CellReading], dict[str, str]]:
        """How each column is read, the same for all files, and the columns that cannot be, with their type."""
        readings = {each.name: reading_of(each.name, _handed_type(each.type)) for each in self.schema}
        unreadable = {name for name, reading in readings.items() if reading is None}
        rounded = set[str]()
        for each in self.files:
            with parquet_file(each) as file:
                found, _ = columns_of(file)
                for name, stored in each.stored_names(file.schema_arrow).items():
                    if name not in readings:  # the table has dropped it
                        continue
                    kind, reading = self.schema.field(name).type, found[stored]
                    if isinstance(reading, str):
                        unreadable.add(name)
                    elif not _fits(file.schema_arrow.field(stored).type, kind):
                        raise QueryRefused(
                            f"'{name}' has another type in a file of {self.words} than in the table"
                            "\nhint: have the engine that wrote the table rewrite its files"
                        )
                    elif reading.rounds:
                        rounded.add(name)
        read = [
            replace(each, rounds=each.rounds or name in rounded)
            for name, each in readings.items()
            if each is not None and name not in unreadable
        ]
        return read, {each.name: str(each.type) for each in self.schema if each.name in unreadable}

    def read(self, readings: Sequence[CellReading]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of these columns that are not deleted."""
        deleted = self.deleted()
        if not deleted.keys() <= {each.path for each in self.files}:
            raise OSError("rows are deleted of files that the snapshot does not have")
        for each in self.files:
            yield from self._rows(each, readings, deleted.get(each.path))

    def _rows(self, of: LakeFile, readings: Sequence[CellReading], deleted: Any) -> Iterator[pa.RecordBatch]:
        with parquet_file(of) as file:
            stored = of.stored_names(file.schema_arrow)
            here = [stored[each.name] for each in readings if each.name in stored]
            first = 0
            # a file of no wanted column still has rows
            for batch in file.iter_batches(BATCH_ROWS, columns=here or [file.schema_arrow.names[0]]):
                cells = [self._cells(each.name, of, batch, stored.get(each.name)) for each in readings]
                rows = pa.RecordBatch.from_arrays(cells, names=[each.name for each in readings])
                yield rows if deleted is None else rows.filter(_kept(deleted, first, len(batch)))
                first += len(batch)

    def _cells(self, name: str, of: LakeFile, batch: pa.RecordBatch, stored: str | None) -> pa.Array:
        kind = _handed_type(self.schema.field(name).type)
        if stored is None:
            value = of.values.get(name)
            return pa.repeat(value.cast(kind) if isinstance(value, pa.Scalar) else pa.scalar(value, kind), len(batch))
        cells = batch.column(stored)
        while pat.is_dictionary(cells.type):
            cells = cells.dictionary_decode()
        is_cast = kind == pa.large_string() or pat.is_integer(kind) or pat.is_floating(kind)
        return cells.cast(kind) if is_cast and cells.type != kind else cells


def into(table: LakeTable, backend: sql.Connection, name: str) -> Source:
    """Open a snapshot in a connection of ours, as a view of that name; reads no row."""
    readings, others = _asked(table.words, lambda: table.columns)
    if not readings:
        raise QueryRefused(f"no column of {table.words} can be read\nhint: convert a column to text or a number")
    handed = hand(backend, name, table.read, readings, frozenset())
    source = described(
        handed.view, backend, {}, stem=table.name, identity=table.identity, others=others, readings=readings
    )
    return replace(source, files=(handed,), opened=(table,), aliases=(f"lake:{table.place}",), snapshot=table.version)


def _handed_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in which a column is handed over: files may have texts of several."""
    kind = value_type(kind)
    return pa.large_string() if _is_text(kind) else kind


def _is_text(kind: pa.DataType) -> bool:
    return bool(pat.is_string(kind) or pat.is_large_string(kind) or pat.is_string_view(kind))


def _fits(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether every cell of a file's type is a cell of the table's, of the same meaning."""
    stored, wanted = _handed_type(stored), _handed_type(wanted)
    if pat.is_timestamp(stored) and pat.is_timestamp(wanted):
        return bool(stored.unit == wanted.unit)
    if pat.is_decimal(stored) and pat.is_decimal(wanted):
        return bool(stored.scale == wanted.scale and stored.precision <= wanted.precision)
    for each in (pat.is_signed_integer, pat.is_floating):
        if each(stored) and each(wanted):
            return bool(stored.bit_width <= wanted.bit_width)
    return bool(stored == wanted)


def lake_table(source: Any) -> LakeTable:
    """Return the snapshot of a table that its library has opened."""
    return delta_table(source) if type(source).__module__.startswith("deltalake.") else iceberg_table(source)


def _refuse_missing(package: str, kind: str) -> None:
    if find_spec(package) is None:
        raise QueryRefused(
            f"{kind} tables need a package that is not installed\nhint: pip install 'tacit[{kind.lower()}]'"
        )


def _kept(deleted: Any, first: int, rows: int) -> pa.Array:
    kept = np.ones(rows, bool)
    kept[deleted[(deleted >= first) & (deleted < first + rows)] - first] = False
    return pa.array(kept)


def _asked(words: str, ask: Callable[[], Any]) -> Any:
    """Return what a library says of a table's metadata, or refuse the table: its words may have a key of the place."""
    try:
        return ask()
    except QueryRefused:
        raise
    except Exception:  # noqa: BLE001 - a library's text is not ours
        raise QueryRefused(
            f"{words} cannot be read\nhint: check the address (a file's ends in .parquet or .csv), its credentials,"
            " and that the table is complete"
        ) from None


# --- Delta ---


def delta_table(source: Any) -> LakeTable:
    """Return the snapshot of a DeltaTable, or the newest one of the table at an address or in a folder."""
    _refuse_missing("deltalake", "Delta")
    words = f"the Delta table at {source!r}" if isinstance(source, str) else "this Delta table"
    return _asked(words, lambda: _delta(source, words))  # type: ignore[no-any-return]


def _delta(source: Any, words: str) -> LakeTable:
    import pyarrow.fs as pa_fs
    from deltalake import DeltaTable
    from deltalake.fs import DeltaStorageHandler

    table: Any = DeltaTable(source) if isinstance(source, str) else source
    protocol, metadata = table.protocol(), table.metadata()
    unknown = {*(protocol.reader_features or ())} - FEATURES
    if metadata.configuration.get("delta.columnMapping.mode", "none") != "none":
        unknown.add("columnMapping")
    if unknown or protocol.min_reader_version > 3:
        raise QueryRefused(
            f"{words} needs a reader that knows {', '.join(sorted(unknown)) or 'a later protocol'}, and this one does"
            " not\nhint: read it through Spark (spark://…), or store a copy without that"
        )
    place: str = table.table_uri
    added = pa.table(table.get_add_actions())
    paths = [unquote(path) for path in added["path"].to_pylist()]  # the log writes them as in an address
    # values of rows, so not as Python's: its dates end where a row's need not, and no row decides whether a table opens
    no_parts = pa.array([{}] * len(paths), pa.struct([]))
    parts = added["partition"].combine_chunks() if "partition" in added.column_names else no_parts
    named = [(each.name, parts.field(each.name)) for each in parts.type]
    sizes = dict(zip(paths, added["size_bytes"].to_pylist(), strict=True))
    options = getattr(table, "_storage_options", None)
    files = pa_fs.PyFileSystem(DeltaStorageHandler(place, options, sizes))
    found = [
        LakeFile(path, partial(files.open_input_file, path), {name: cells[at] for name, cells in named})
        for path, at in sorted(zip(paths, range(len(paths)), strict=True))
    ]

    def deleted() -> dict[str, Any]:
        if "deletionVectors" not in (protocol.reader_features or ()):
            return {}
        by_place = {f"{place.rstrip('/')}/{each.path}": each.path for each in found}
        vectors = pa.table(table.deletion_vectors()).to_pylist()
        return {
            _delta_path(by_place, each["filepath"]): np.flatnonzero(~np.array(each["selection_vector"], bool))
            for each in vectors
        }

    return LakeTable(
        words,
        PurePosixPath(unquote(urlsplit(place).path)).name or "data",
        f"delta:{metadata.id}",
        place.rstrip("/"),
        table.version(),
        pa.schema(table.schema().to_arrow()),
        found,
        deleted,
    )


def _delta_path(by_place: Mapping[str, str], address: str) -> str:
    """Return the file of an address, which may be written as it is or as in an address; fail without one."""
    return by_place.get(address) or by_place[unquote(address)]


# --- Iceberg ---


def iceberg_table(source: Any) -> LakeTable:
    """Return the snapshot of a pyiceberg table, or the newest one of 'iceberg://catalog?table=care.visits'."""
    _refuse_missing("pyiceberg", "Iceberg")
    words = f"the Iceberg table {source!r}" if isinstance(source, str) else "this Iceberg table"
    return _asked(words, lambda: _iceberg(source, words))  # type: ignore[no-any-return]


def _iceberg(source: Any, words: str) -> LakeTable:
    from pyiceberg.catalog import load_catalog

    table: Any = source
    if isinstance(source, str):
        catalog, mark, name = source[len(ICEBERG) :].partition("?table=")
        if not (catalog and mark and name):
            raise QueryRefused(f"{source!r} names no table\nhint: iceberg://catalog?table=care.visits")
        table = load_catalog(catalog).load_table(name)
    metadata, snapshot = table.metadata, table.current_snapshot()
    if metadata.format_version < 2:
        raise QueryRefused(
            f"{words} has format version 1, in which snapshots have no order\nhint: upgrade it: format-version = 2"
        )
    tasks = [] if snapshot is None else list(_planned(table, words))
    specs, io = table.specs(), table.io
    ids = {each.field_id: each.name for each in table.schema().fields}
    defaults = {each.name: each.initial_default for each in table.schema().fields}
    found = [
        LakeFile(
            each.file.file_path,
            partial(_open_at, io, each.file.file_path),
            {**defaults, **_partition_values(each.file, specs[each.file.spec_id], ids)},
            ids,
        )
        for each in sorted(tasks, key=lambda each: str(each.file.file_path))
    ]

    def deleted() -> dict[str, Any]:
        named = {each.file_path: each for task in tasks for each in task.delete_files}
        known = {path: _deleted_by(io, each) for path, each in named.items()}
        return {
            task.file.file_path: np.concatenate(
                # one file of deletes may name several data files, also those of earlier snapshots
                [known[each.file_path].get(task.file.file_path, NO_ROWS) for each in task.delete_files]
            )
            for task in tasks
            if task.delete_files
        }

    return LakeTable(
        words,
        table.name()[-1],
        f"iceberg:{metadata.table_uuid}",
        str(metadata.location).rstrip("/"),
        0 if snapshot is None else int(snapshot.sequence_number or 0),
        table.schema().as_arrow(),
        found,
        deleted,
    )


def _open_at(io: Any, path: str) -> Any:
    return io.new_input(path).open()


def _planned(table: Any, words: str) -> Any:
    """Return the files of the snapshot, each with those that delete rows of it."""
    try:
        tasks = list(table.scan().plan_files())
    except (ValueError, NotImplementedError):
        raise QueryRefused(
            f"{words} deletes rows by equality, which its library does not read"
            "\nhint: rewrite its data files in the engine that wrote them (CALL system.rewrite_data_files), then ask"
        ) from None
    formats = {each.file.file_format.name for each in tasks}
    deletes = {each.file_format.name for task in tasks for each in task.delete_files}
    if formats - {"PARQUET"} or deletes - {"PARQUET", "PUFFIN"}:
        raise QueryRefused(f"{words} has files that are not Parquet\nhint: rewrite them as Parquet")
    return tasks


def _partition_values(file: Any, spec: Any, ids: Mapping[int, str]) -> dict[str, Any]:
    """Return the values of the columns by which a table is partitioned as they are, without a transform."""
    return {
        ids[each.source_id]: file.partition[at]
        for at, each in enumerate(spec.fields)
        if str(each.transform) == "identity" and each.source_id in ids
    }


def _deleted_by(io: Any, delete: Any) -> dict[str, Any]:
    """Return the numbers of the rows that a file of deletes names, by the data file."""
    if delete.file_format.name == "PUFFIN":
        from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
        from pyiceberg.table.puffin import PuffinFile

        with _open_at(io, delete.file_path) as file:
            vectors = deletion_vectors_from_puffin_file(PuffinFile(file.read()))
        return {each.referenced_data_file: each.to_vector().to_numpy() for each in vectors}
    with parquet_file(LakeFile(delete.file_path, partial(_open_at, io, delete.file_path))) as file:
        rows = file.read(columns=["file_path", "pos"])
    grouped = rows.group_by("file_path").aggregate([("pos", "list")])
    return {each["file_path"]: np.array(each["pos_list"], np.int64) for each in grouped.to_pylist()}


def _id_of(column: pa.Field) -> int:
    """Return the id of a file's column, by which Iceberg knows it whatever its name is now."""
    written = (column.metadata or {}).get(b"PARQUET:field_id")
    if written is None:
        raise QueryRefused(
            "a file of this Iceberg table has columns without ids, so their names may mean others"
            "\nhint: have the engine that wrote the table rewrite its files"
        )
    return int(written)
