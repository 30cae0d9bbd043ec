"""`tacit.table(...)` and `tacit.catalog(...)`: open a protected table from a curator's declaration.

This file opens the source, checks the declaration against its schema, and registers the table in the ledger. It reads
no row. Asking is left to `asking.py` and `question.py`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from os import PathLike
from typing import Any, Literal

from tacit.door.asking import Table
from tacit.door.question import warn_if_large
from tacit.engine import Engine
from tacit.errors import InvalidParameter, LedgerError, QueryRefused, did_you_mean
from tacit.ledger import MEMORY, Ledger, RegisteredTable, TryOut, has_default_ledger, open_ledger
from tacit.noise import fresh_bytes
from tacit.privacy import Loss, whole
from tacit.query import Frame, key_value, kind_of_column
from tacit.session import Session
from tacit.tables import (
    FILE_NAME,
    ROW,
    CatalogFile,
    ColumnFacts,
    Declaration,
    Neighbours,
    RowUnit,
    Source,
    open_source,
    read_bound,
    read_catalog,
    read_columns,
)

Bound = int | Literal["auto"] | None
NEIGHBOURS: tuple[Neighbours, ...] = ("add-remove", "replace")
NAME_LENGTH_MAX = 100
MARK_BYTES = 8
DECLARED = "declared"  # instead of a random mark: the curator states by name= and version= that the frame is the same
FORGOTTEN = (
    "After a restart this frame is not known again, and questions are charged again: give it name= and version= if it "
    "stays the same."
)


def table(
    source: Any,
    *,
    unit: str | RowUnit,
    budget: Loss | None = None,
    name: str | None = None,
    ledger: Any = None,
    neighbours: Neighbours = "add-remove",
    columns: Mapping[str, Mapping[str, Any]] | None = None,
    rows_per_unit: Bound = "auto",
    groups_per_unit: Bound = "auto",
    population: int | None = None,
    rows: int | None = None,
    most_rows_per_unit: int | None = None,
    version: int | None = None,
    accept_large_delta: bool = False,
    same_people_as: str | None = None,
) -> Table:
    """Return a protected table to ask questions of.

    `source` is a path or glob of Parquet or CSV files, a table of a DuckDB file ('air.duckdb?table=flights'), a pandas,
    Polars or Arrow frame, (a DuckDB connection, a table's name), or an Ibis table. `unit` is the column that says whose
    row it is, or `tacit.ROW`. `budget` is what may ever be learned, e.g. tacit.epsilon(3, delta=1e-6); a table that is
    new to the ledger needs one. `columns` declares what is public:
    {"age": {"between": (0, 120)}, "ward": {"keys": ["A", "B"]}, "id": {"type": "text"}}.
    What a unit may count for, and ranges, are learned when a question needs them, for a part of its epsilon. A number
    in `rows_per_unit` or `groups_per_unit` is a bound by hand: what is over it is dropped. `rows` is how many there
    are, `most_rows_per_unit` the most that any unit can have, if public. `version` says which state of the data it is:
    raise it when rows were added, so that questions are asked anew. A frame is known after a restart by its `name`
    and `version`. `ledger` is where charges are kept, $TACIT_HOME/ledger.db if left out; tacit.TRYOUT keeps nothing.
    """
    opened, declaration = declared(
        source,
        unit=unit,
        name=name,
        neighbours=neighbours,
        columns=columns,
        rows_per_unit=rows_per_unit,
        groups_per_unit=groups_per_unit,
        population=population,
        rows=rows,
        most_rows_per_unit=most_rows_per_unit,
        version=version,
    )
    warn_if_large(getattr(budget, "epsilon", None))
    book = ledger if isinstance(ledger, Ledger) else open_ledger(_ledger_address(ledger))
    if version is None:
        declaration = replace(declaration, version=book.version_of(declaration.name) or 1)
    registered = book.register(
        name=declaration.name,
        declaration=declaration.public_record(),
        source=opened.identity,
        marks=opened.aliases,
        budget=budget,
        population=population,
        accept_large_delta=accept_large_delta,
        same_people_as=same_people_as,
    )
    is_declared = name is not None and version is not None
    return Table(_session(opened, declaration, registered, book, is_declared=is_declared), Frame(declaration))


def declared(
    source: Any,
    *,
    unit: str | RowUnit,
    name: str | None = None,
    neighbours: Neighbours = "add-remove",
    columns: Mapping[str, Mapping[str, Any]] | None = None,
    rows_per_unit: Bound = "auto",
    groups_per_unit: Bound = "auto",
    population: int | None = None,
    rows: int | None = None,
    most_rows_per_unit: int | None = None,
    version: int | None = None,
) -> tuple[Source, Declaration]:
    """Return a source and what is declared of it, held against its schema; no row is read and no ledger is opened."""
    opened = open_source(source, read_columns(columns))
    return opened, Declaration(
        name=_table_name(opened.stem if name is None else name),
        unit=_unit(unit, opened),
        columns={column: _with_checked_keys(column, known) for column, known in opened.columns.items()},
        neighbours=_neighbours(neighbours),
        rows_per_unit=read_bound(rows_per_unit, "rows_per_unit"),
        groups_per_unit=read_bound(groups_per_unit, "groups_per_unit"),
        population=None if population is None else whole(population, name="population"),
        rows=None if rows is None else whole(rows, name="rows"),
        most_rows_per_unit=(
            None if most_rows_per_unit is None else whole(most_rows_per_unit, name="most_rows_per_unit")
        ),
        version=1 if version is None else whole(version, name="version"),
    )


def catalog(path: str = FILE_NAME) -> "Catalog":
    """Return the tables a curator declared in a tacit.toml, each opened when it is first used.

    `tacit.catalog("tacit.toml")["visits"].count().answer(epsilon=1)`
    """
    return Catalog(read_catalog(path))


class Catalog(Mapping[str, Table]):
    """The tables of a tacit.toml, by name."""

    def __init__(self, file: CatalogFile) -> None:
        self.file = file
        self._opened: dict[str, Table] = {}

    def __getitem__(self, name: str) -> Table:
        if name not in self._opened:
            entry = self.file.tables.get(name)
            if entry is None:
                raise QueryRefused(f"{self.file.path} has no table '{name}'{did_you_mean(name, self.file.tables)}")
            self._opened[name] = table(entry.source, name=name, ledger=self.file.ledger, **entry.options)
        return self._opened[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.file.tables)

    def __len__(self) -> int:
        return len(self.file.tables)

    def __dir__(self) -> list[str]:  # what Tab offers
        return ["get", "items", "keys", "values"]

    def __repr__(self) -> str:
        return f"<catalog {self.file.path}: {', '.join(self)}>"


def _session(
    opened: Source, declaration: Declaration, registered: RegisteredTable, book: Ledger, *, is_declared: bool
) -> Session:
    """Return the session of a table; a frame that is not declared by name and version gets a mark of its own."""
    is_frame = opened.identity is None
    mark = "" if not is_frame else DECLARED if is_declared else fresh_bytes(MARK_BYTES).hex()
    forgotten = (FORGOTTEN,) if is_frame and not is_declared and book.durable else ()
    notices = _outside_of_budgets(opened, declaration.name, book) + forgotten
    return Session(declaration, registered, Engine(opened), book, mark, notices)


def _outside_of_budgets(opened: Source, name: str, book: Ledger) -> tuple[str, ...]:
    """Return a notice if the default ledger also knows this table: charges made here are not counted there.

    In a durable ledger a table with only the same name may belong to another study, so the name alone is no match.
    """
    if not has_default_ledger():
        return ()
    try:
        with open_ledger(create=False) as kept:
            if kept.id == book.id:
                return ()
            known = kept.known_as(name=name, source=opened.identity, marks=opened.aliases, by_name=not book.durable)
    except LedgerError:
        return ()
    if known is None:
        return ()
    return (
        f"The ledger in use knows this as '{known}': what is answered here is not charged there, though it is "
        "learned of the same people.",
    )


def _ledger_address(ledger: object) -> str | PathLike[str] | None:
    if isinstance(ledger, TryOut):
        return MEMORY
    if ledger is None or isinstance(ledger, str | PathLike):
        return ledger
    raise InvalidParameter(
        f"ledger must be a path, a postgresql:// address or tacit.TRYOUT, not {type(ledger).__name__}"
        "\nhint: leave it out to use the ledger in $TACIT_HOME"
    )


def _table_name(name: str) -> str:
    if not isinstance(name, str) or not name.strip() or len(name) > NAME_LENGTH_MAX:
        raise InvalidParameter(f"name must be text of 1 to {NAME_LENGTH_MAX} characters\nhint: name='visits'")
    return name


def _unit(unit: object, opened: Source) -> str | RowUnit:
    if unit is ROW:
        return ROW
    if not isinstance(unit, str):
        raise InvalidParameter(
            "unit must name the column that identifies the person of each row"
            "\nhint: unit='person_id', or unit=tacit.ROW if each row is its own person"
        )
    if unit not in opened.columns:
        hint = did_you_mean(unit, opened.columns) if unit.lower() != "row" else "\nhint: unit=tacit.ROW, or --unit ROW"
        raise QueryRefused(f"the table has no column '{unit}' for the unit{hint}")
    if unit not in opened.table.columns:
        raise QueryRefused(
            f"column '{unit}' has a type that cannot be read for every row, so it cannot be the unit"
            "\nhint: convert it to text or a number where the table is made"
        )
    _refuse_merged(unit, opened)
    return unit


def _refuse_merged(unit: str, opened: Source) -> None:
    """Refuse a unit column in which different cells may be read as equal: two people would be bounded as one."""
    stored = opened.table[unit].type()
    is_wide = "UINT128" in str(stored)  # a type of DuckDB's that Ibis has no name for
    if opened.columns[unit].type == "other" and not (stored.is_uuid() or stored.is_binary() or is_wide):
        raise QueryRefused(
            f"column '{unit}' cannot be the unit: its type is not number, text, date, timestamp, bytes or UUID"
            "\nhint: convert it to text or a number where the table is made"
        )
    if unit in opened.rounded:
        raise QueryRefused(
            f"column '{unit}' has times that are rounded when they are read, so two units could become one"
            "\nhint: store it as text, a whole number or a time in microseconds where the table is made"
        )


def _neighbours(neighbours: object) -> Neighbours:
    for known in NEIGHBOURS:
        if isinstance(neighbours, str) and neighbours == known:
            return known
    raise InvalidParameter("neighbours must be 'add-remove' or 'replace'")


def _with_checked_keys(column: str, facts: ColumnFacts) -> ColumnFacts:
    """Read declared keys as the column's type does, so that they equal the rows' own values."""
    if facts.keys is None:
        return facts
    kind = kind_of_column(column, facts)
    keys = tuple(key_value(key, kind, column=column) for key in facts.keys)
    if len(set(keys)) != len(keys):
        raise InvalidParameter(f"the keys of '{column}' contain one key twice\nhint: give each key once")
    return replace(facts, keys=keys)
