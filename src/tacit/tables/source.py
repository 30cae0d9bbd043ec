"""`Source`: a protected table, ready for an engine; and the public facts of its columns."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

import pyarrow as pa

from tacit import typed_sql as sql
from tacit.errors import QueryRefused
from tacit.memory import reuse_freed_memory
from tacit.tables.cells import CellReading, HandedTable, put_together
from tacit.tables.identity import written_stamp
from tacit.tables.schema import ColumnFacts, ColumnType, WrittenFacts

NO_COLUMNS: Mapping[str, str] = MappingProxyType({})
# The digits of a decimal that is declared over text or ints; a stored decimal has its own.
DECLARED_DIGITS, DECLARED_SCALE = 18, 6


@dataclass(frozen=True)
class Own:
    """How a source is opened in a connection of ours: the files it may reach, and the view that it becomes."""

    into: "Callable[[Any, str], Source]"  # opens it in a connection that is not locked yet, under a name
    paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class WantedRows:
    """A condition on rows, of what a store may compare: columns with constants, AND, OR, and "any" for all else."""

    operator: str  # and, or, any, is_null, is_not_null, in, =, <>, <, <=, >, >=
    column: str = ""
    type: str = ""  # that the column is read as
    values: tuple[object, ...] = ()
    of: "tuple[WantedRows, ...]" = ()


class Store(Protocol):
    """A table on a server: what is read of it inside `moment` is of one snapshot."""

    def moment(self, beside: "Sequence[Store]") -> AbstractContextManager[None]:
        """Hold what is read inside, in any connection of ours, to one snapshot; one question at a time."""

    def wanting(self, wanted: WantedRows | None) -> AbstractContextManager[None]:
        """Let the server leave out rows that are not wanted; it may leave out fewer, and never others."""


class Handed(Protocol):
    """A view of a connection of ours, of which only the columns are read that a relation names."""

    def reading(self, relation: sql.Relation) -> sql.Relation:
        """Return the same relation over a view of these columns."""

    def handing(self, relation: sql.Relation) -> sql.Relation:
        """Return it over a view whose rows are handed over, of a size that the engine does not know."""


class Opened(Protocol):
    """What was opened, and may have changed since."""

    def refuse_changes(self) -> None:
        """Refuse if it is gone, or has other columns than when it was opened; reads no row."""


@dataclass(frozen=True)
class Source:
    """A protected table, ready for an engine. Its rows are secret; its name and the types of its columns are public."""

    table: sql.Relation
    backend: sql.Connection
    columns: Mapping[str, ColumnFacts]
    stem: str  # the table's name if the curator gives no other
    identity: str | None  # by which the ledger recognises the table; None for frames
    aliases: tuple[str, ...] = ()  # further identities of its parts: each file's path, and the file behind the path
    files: tuple[Handed, ...] = ()  # Parquet files, and tables of servers: views whose rows may be handed over
    opened: tuple[Opened, ...] = ()  # if the rows are in files, or on a server
    written: tuple[str, ...] = ()  # the files whose time of last writing shows whether rows may have changed
    others: Mapping[str, str] = field(default_factory=dict)  # columns that cannot be read, with their type
    rounded: frozenset[str] = frozenset()  # columns in which two different cells may be read as equal
    instants: frozenset[str] = frozenset()  # columns of times that have a zone, read in UTC
    again: "Callable[[], Source] | None" = None  # opens it in a streaming engine; None: a user's own engine
    stores: tuple[Store, ...] = ()  # the tables of servers that have the rows
    own: Own | None = None  # how it is opened beside others; None: a user's own engine
    elsewhere: Any = None  # where the rows are if another engine keeps them: the table here is then empty
    snapshot: int | None = None  # of a Delta or Iceberg table: it is the table's version
    made_of: Any = None  # of a relation's rows: the relation, and the stored tables that it is computed from

    @property
    def read_in_utc(self) -> frozenset[str]:
        """The columns of times that are read from texts, and of dates that are made from instants."""
        kinds = {name: kind for name, kind in self.table.schema().items() if name in self.columns}
        texts = {name for name, kind in kinds.items() if kind.is_string() and self.columns[name].type == "timestamp"}
        return frozenset(texts | {name for name in self.instants if self.columns[name].type == "date"})

    def refuse_changes(self) -> None:
        """Refuse if a file is gone, or has other columns than when it was opened; reads no row."""
        for opened in self.opened:
            opened.refuse_changes()

    @contextmanager
    def moment(self) -> Iterator[None]:
        """Hold what is read inside to one snapshot of each server; files and frames stay as they are."""
        with ExitStack() as held:
            stores = sorted(set(self.stores), key=id)  # in one order, so that two questions never wait in a circle
            for store in stores:
                held.enter_context(store.moment(stores))
            yield

    @contextmanager
    def wanting(self, wanted: WantedRows | None) -> Iterator[None]:
        """Let a server leave out rows that are not wanted; only where the source is the stored table itself."""
        (stored,) = self.files if len(self.stores) == len(self.files) == 1 else (None,)
        is_stored = isinstance(stored, HandedTable) and self.table.equals(stored.view)
        with self.stores[0].wanting(wanted) if is_stored else nullcontext():
            yield

    def streaming(self) -> "Source":
        """Return the same rows in an engine with one thread and a few thousand rows at a time, which needs no memory
        limit; a user's own engine stays."""
        return self if self.again is None else self.again()

    def stamp(self) -> str | None:
        """Return a text that changes when a file of the source is written; None without a file."""
        return written_stamp(self.written) if self.written else None

    def fetch(self, relation: sql.Relation) -> pa.Table:
        """Return a relation's rows."""
        self._refuse_empty()
        with stopping():
            found = self.backend.to_arrow(self._read(relation))
        schema = plain_schema(found.schema)
        if schema == found.schema:
            return found
        return pa.Table.from_batches([plain_batch(each, schema) for each in found.to_batches()], schema)

    def stream(self, relation: sql.Relation, batch_rows: int) -> pa.RecordBatchReader:
        """Return a DuckDB relation's rows in batches, made as they are read."""
        self._refuse_empty()
        reuse_freed_memory()
        with stopping():
            reader = self.backend.run(self._read(relation)).to_arrow_reader(batch_rows)
            batches, schema = put_together(reader, reader.schema), plain_schema(reader.schema)
            if schema != reader.schema:
                batches = (plain_batch(each, schema) for each in batches)
            return pa.RecordBatchReader.from_batches(schema, batches)

    def _refuse_empty(self) -> None:
        """An answer about the empty table that stands for rows elsewhere would be wrong, and nobody would notice."""
        if self.elsewhere is not None:
            raise TypeError("these rows are in another engine and must be read there")

    def _read(self, relation: sql.Relation) -> sql.Relation:
        for files in self.files:
            relation = files.reading(relation)
        return relation


@contextmanager
def stopping() -> Iterator[None]:
    """Raise Ctrl-C as such: DuckDB reports it as an error like another, in these words and no others."""
    try:
        yield
    except RuntimeError as problem:
        if type(problem) is RuntimeError and str(problem) == "Query interrupted":
            raise KeyboardInterrupt from None
        raise


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema with truth values as such: by a setting, a user's connection gives them as numbers of 8 bits."""
    return pa.schema([each.with_type(pa.bool_()) if _is_bool8(each.type) else each for each in schema])


def plain_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch's rows in the schema that `plain_schema` made of the batch's."""
    columns = [each.storage.cast(pa.bool_()) if _is_bool8(each.type) else each for each in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _is_bool8(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.BaseExtensionType) and kind.extension_name == "arrow.bool8"


def described(
    table: sql.Relation,
    backend: sql.Connection,
    written: Mapping[str, WrittenFacts],
    *,
    stem: str,
    identity: str | None,
    others: Mapping[str, str] = NO_COLUMNS,
    readings: Sequence[CellReading] = (),
) -> Source:
    """Give every column its public facts; a declared type wins. `others` are columns that cannot be read."""
    refuse_duplicates([*table.columns, *others])
    for name in written:
        if name in others:
            raise QueryRefused(
                f"columns= names '{name}', but its stored type, {others[name]}, cannot be read for every "
                "row\nhint: convert it to text or a number in the source"
            )
        if name not in table.columns:
            raise QueryRefused(
                f"columns= names '{name}', but the table has no such column"
                f"\nhint: its columns are {', '.join(table.columns)}"
            )
    columns = {name: ColumnFacts(type="other") for name in others}
    for name, found in table.schema().items():
        facts = written.get(name, WrittenFacts())
        digits, scale = DECLARED_DIGITS, DECLARED_SCALE
        if _type_of(found) == "decimal":
            digits, scale = (found.digits, found.scale) if found.is_decimal() else (38, 0)
        columns[name] = ColumnFacts(
            type=facts.type or _type_of(found),
            between=facts.between,
            step=facts.step,
            keys=facts.keys,
            scale=scale,
            digits=digits,
        )
    rounded = frozenset(each.name for each in readings if each.rounds)
    instants = frozenset(each.name for each in readings if each.is_instant)
    return Source(table, backend, columns, stem, identity, others=others, rounded=rounded, instants=instants)


def _type_of(found: sql.Type) -> ColumnType:
    checks: tuple[tuple[bool, ColumnType], ...] = (
        (found.is_boolean(), "bool"),
        (found.is_integer(), "int"),
        (found.is_floating(), "float"),
        (found.kind == "int128" or (found.is_decimal() and found.scale < 38), "decimal"),  # one digit before the point
        (found.is_string(), "text"),
        (found.is_date(), "date"),
        (found.is_timestamp(), "timestamp"),
    )
    return next((kind for matches, kind in checks if matches), "other")


def refuse_duplicates(names: Any) -> None:
    """Refuse two columns of one name, whatever their case."""
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise QueryRefused(f"two columns of the table are named '{name}' (ignoring case)\nhint: rename one of them")
        seen.add(name.lower())
