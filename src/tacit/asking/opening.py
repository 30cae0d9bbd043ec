"""`tacit.table(...)` and `tacit.catalog(...)`: open a source, hold its declaration against its schema, and register it.

No row is read here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from inspect import signature
from os import PathLike
from typing import Any, Literal, cast
from weakref import WeakValueDictionary

from tacit.asking.describing import Description, asked_of_public_facts, described_as_asked
from tacit.asking.protected_table import Table
from tacit.asking.question import Question, warn_if_large
from tacit.asking.session import Session
from tacit.catalog_file import FILE_NAME, CatalogFile, read_catalog
from tacit.engine import open_engine, read_public
from tacit.errors import InvalidParameter, LedgerError, QueryRefused, did_you_mean
from tacit.hold import Hold, longest, read_hold
from tacit.ledger import MEMORY, Ledger, RegisteredTable, TryOut, has_default_ledger, open_ledger
from tacit.noise import fresh_bytes
from tacit.numbers import whole
from tacit.privacy import Loss, LossPerPeriod
from tacit.query import Frame, key_value, kind_of_column, tables_named
from tacit.tables import (
    ROW,
    ColumnFacts,
    Declaration,
    Neighbours,
    PublicTable,
    RowUnit,
    Source,
    open_source,
    owned_source,
    read_blocks,
    read_bound,
    read_columns,
)

Bound = int | Literal["auto"] | None
NEIGHBOURS: tuple[Neighbours, ...] = ("add-remove", "replace")
NAME_LENGTH_MAX = 100
MARK_BYTES = 8
DECLARED = "declared"  # instead of a random mark: the curator states by name= and version= that the frame is the same
# The frames that are protected tables in this process, as long as they live: a rehearsal refuses them.
FRAMES: WeakValueDictionary[int, Any] = WeakValueDictionary()
FORGOTTEN = (
    "After a restart this frame is not known again, and questions are charged again: give version= if the frame stays "
    "the same."
)


def table(
    source: Any,
    *,
    unit: str | RowUnit | Table,
    via: Any = None,
    budget: Loss | LossPerPeriod | None = None,
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
    block: Mapping[str, str] | None = None,
    accept_large_delta: bool = False,
    same_people_as: str | None = None,
    hold: Hold | None = None,
    spark: Any = None,
) -> Table:
    """Return a protected table to ask questions of.

    `source` is a path, glob or address (s3://…) of Parquet or CSV, a Delta table's folder, a table of Iceberg
    ('iceberg://catalog?table=care.visits'), DuckDB or SQLite ('air.db?table=flights'), PostgreSQL
    ('postgresql://host/db?table=care.visits') or Spark ('sc://host:15002?table=…'), a frame, (a connection, a table's
    name), or an Ibis table. `unit`: people's column, or `tacit.ROW`; or the table that has it, unit=orders,
    via="order_id", with which such rows share a budget.
    `budget` is what may ever be learned, as tacit.epsilon(3, delta=1e-6), or with period="year" each year.
    With `block`, such as {"column": "day", "every": "month", "zone": "Europe/Berlin"}, each month has the whole of it.
    `columns` are public: {"age": {"between": (0, 120)}, "ward": {"keys": ["A", "B"]}}. Bounds are learned, unless
    given. Raise `version` when rows were added.
    """
    ledger, same_people_as = _shared_with(unit, budget, ledger, same_people_as)
    opened, declaration = declared(
        source,
        unit=unit,
        via=via,
        name=name,
        neighbours=neighbours,
        columns=columns,
        rows_per_unit=rows_per_unit,
        groups_per_unit=groups_per_unit,
        population=population,
        rows=rows,
        most_rows_per_unit=most_rows_per_unit,
        version=version,
        block=block,
        spark=spark,
    )
    book = _book(ledger, budget, is_unnamed=opened.identity is None and name is None)
    registered = _registered(
        *(opened, declaration := _at_version(declaration, opened, book, version), book),
        budget=budget,
        population=population,
        accept_large_delta=accept_large_delta,
        same_people_as=same_people_as,
    )
    return _asked_as(opened, declaration, registered, book, read_hold(hold), unit, is_declared=bool(name and version))


def _registered(opened: Source, declaration: Declaration, book: Ledger, **wanted: Any) -> RegisteredTable:
    name, record = declaration.name, declaration.public_record()
    return book.register(name=name, declaration=record, source=opened.identity, marks=opened.aliases, **wanted)


def _at_version(declaration: Declaration, opened: Source, book: Ledger, given: int | None) -> Declaration:
    """Return a declaration at the version that was given, the snapshot that was opened, or the last one."""
    last = book.version_of(declaration.name)
    if opened.snapshot is not None:
        if last is not None and opened.snapshot < last:
            raise QueryRefused(
                f"this is snapshot {opened.snapshot} of '{declaration.name}', and snapshot {last} was opened before it:"
                " snapshots are asked in their order\nhint: open the newest one; or declare this one under another name"
                f" with same_people_as='{declaration.name}', and it spends the same budget"
            )
        return replace(declaration, version=opened.snapshot)
    return declaration if given is not None else replace(declaration, version=last or 1)


def _shared_with(unit: object, budget: object, ledger: Any, same_people_as: Any) -> tuple[Any, str | None]:
    """Return the ledger, and the table that shares its budget: with a table that has the unit, both are its own."""
    if not isinstance(unit, Table):
        return ledger, same_people_as
    session = unit.session
    name = session.declaration.name
    if session.base is not None or unit.frame != Frame(unit.frame.declaration):
        raise InvalidParameter(
            "unit must be a stored table as it is declared\nhint: give the table without filters, joins or groups"
        )
    if budget is not None or same_people_as not in (None, name):
        raise InvalidParameter(
            f"rows of the people of '{name}' share its budget\nhint: leave out budget= and same_people_as="
        )
    if ledger is not None and ledger is not session.ledger:
        raise InvalidParameter(f"rows of the people of '{name}' are in its ledger\nhint: leave out ledger=")
    return session.ledger, name


def declared(
    source: Any,
    *,
    unit: "str | RowUnit | Table | tuple[Source, Declaration]",
    via: Any = None,
    name: str | None = None,
    neighbours: Neighbours = "add-remove",
    columns: Mapping[str, Mapping[str, Any]] | None = None,
    rows_per_unit: Bound = "auto",
    groups_per_unit: Bound = "auto",
    population: int | None = None,
    rows: int | None = None,
    most_rows_per_unit: int | None = None,
    version: int | None = None,
    block: Mapping[str, str] | None = None,
    spark: Any = None,
) -> tuple[Source, Declaration]:
    """Return a source and what is declared of it, held against its schema; no row is read and no ledger is opened."""
    opened = open_source(source, read_columns(columns), spark=spark)
    owners = None
    owner = (unit.session.engine.source, unit.session.declaration) if isinstance(unit, Table) else unit
    if isinstance(owner, tuple) and len(owner) == 2 and isinstance(owner[1], Declaration):  # a catalog opened it
        other, theirs = owner
        opened, owners = owned_source(opened, via, other, theirs, block=block, neighbours=neighbours)
        unit, neighbours = str(theirs.unit), theirs.neighbours
    elif via is not None:
        raise InvalidParameter(
            "via= is for rows with their unit in another table\nhint: unit=orders, the protected table that has it,"
            " with via='order_id'; in a tacit.toml, unit = \"orders.customer_id\""
        )
    if opened.identity is None:
        with suppress(TypeError):  # not every object can be referred to weakly
            FRAMES[id(source)] = source
    return opened, Declaration(
        name=_table_name(opened.stem if name is None else name),
        unit=_declared_unit(unit, opened),
        columns={column: _with_checked_keys(column, known) for column, known in opened.columns.items()},
        neighbours=_neighbours(neighbours),
        rows_per_unit=read_bound(rows_per_unit, "rows_per_unit"),
        groups_per_unit=read_bound(groups_per_unit, "groups_per_unit"),
        population=None if population is None else whole(population, name="population"),
        rows=None if rows is None else whole(rows, name="rows"),
        most_rows_per_unit=(
            None if most_rows_per_unit is None else whole(most_rows_per_unit, name="most_rows_per_unit")
        ),
        version=_version(version, opened),
        block=(
            None
            if block is None
            else read_blocks(block, opened.columns, instants=opened.instants, read_in_utc=opened.read_in_utc)
        ),
        owners=owners,
    )


def _version(given: int | None, opened: Source) -> int:
    if given is not None and opened.snapshot is not None:
        raise InvalidParameter(
            "the version of a Delta or Iceberg table is its snapshot, which it has itself\nhint: leave out version="
        )
    if given is not None:
        return whole(given, name="version")
    return 1 if opened.snapshot is None else opened.snapshot


def public(
    source: Any, *, name: str | None = None, columns: Mapping[str, Mapping[str, Any]] | None = None
) -> PublicTable:
    """Return a table that is not secret, to join protected tables with: wards, airports, a calendar.

    `source` and `columns` are what `tacit.table` takes. It is read here, whole, and nothing in it is protected. A
    column's range is that of its rows, and a column of few values has them as its public keys, unless declared.

    `visits.join(tacit.public("wards.parquet"), on="ward")`
    """
    opened = open_source(source, read_columns(columns))
    named = _table_name(opened.stem if name is None else name)
    checked = {column: _with_checked_keys(column, known) for column, known in opened.columns.items()}
    return read_public(replace(opened, columns=checked), named)


def catalog(path: str = FILE_NAME) -> "Catalog":
    """Return the tables a curator declared in a tacit.toml, each opened when it is first used.

    `tacit.catalog("tacit.toml")["visits"].count().answer(epsilon=1)`
    """
    return Catalog(read_catalog(path))


class Catalog(Mapping[str, Table]):
    """The tables of a tacit.toml, by name; `sql` asks any of them, and joins them."""

    def __init__(
        self, file: CatalogFile, ledger: Ledger | None = None, open_as: Callable[[str], Any] = lambda source: source
    ) -> None:
        self.file = file
        self._ledger = ledger  # one that is open already, in place of the file's own
        self._open_as = open_as  # gives a source that is open already
        self._opened: dict[str, Table] = {}
        self._public: dict[str, PublicTable] = {}

    def __getitem__(self, name: str) -> Table:
        if name not in self._opened:
            entry = self.file.tables.get(name)
            if entry is None:
                raise QueryRefused(f"{self.file.path} has no table '{name}'{did_you_mean(name, self.file.tables)}")
            other = entry.options.get("same_people_as")
            if isinstance(other, str) and other in self.file.tables:
                self[other]  # whose budget it has must be known to the ledger
            ledger = self.file.ledger if self._ledger is None else self._ledger
            options = dict(entry.options)
            if (owner := self.file.owner_of(name)) is not None:
                options["unit"], ledger = self[owner], None
            opened = table(self._open_as(entry.source), name=name, ledger=ledger, **options)
            if self.file.people and opened.session.ledger.durable and not opened.session.ledger.has_people():
                raise QueryRefused(  # everyone could ask
                    f"{self.file.path} says who may ask, and its ledger does not know it yet, so nothing is asked"
                    "\nhint: have the curator write it into the ledger: tacit people apply"
                )
            self._ledger, self._opened[name] = opened.session.ledger, opened
        return self._opened[name]

    def public(self, name: str) -> PublicTable:
        """Return a public table of the catalog, read when it is first used."""
        if name not in self._public:
            entry = self.file.public.get(name)
            if entry is None:
                raise QueryRefused(
                    f"{self.file.path} has no public table '{name}'{did_you_mean(name, self.file.public)}"
                )
            self._public[name] = public(entry.source, name=name, columns=entry.options["columns"])
        return self._public[name]

    def sql(
        self,
        text: str,
        *,
        between: Mapping[str, Any] | None = None,
        per_unit: Mapping[str, int] | None = None,
        dialect: str | None = None,
        most: Mapping[str, int] | None = None,
    ) -> Question:
        """Return the question a SELECT asks about tables of the catalog, as `Table.sql` does.

        `catalog.sql("SELECT COUNT(*) FROM visits JOIN patients USING (patient_id) WHERE age >= 65")`
        """
        if (asked := asked_of_public_facts(text)) is not None:
            return cast(Question, self._described(asked))
        names = self.named(text, dialect)
        if not names or names[0] not in self.file.tables:
            raise QueryRefused(
                f"the SELECT names no protected table of {self.file.path}\nhint: its tables are {', '.join(self)}"
            )
        others, known = self.opened(names[1:])
        wanted = known | dict({} if most is None else most)
        return self[names[0]].sql(text, between=between, per_unit=per_unit, dialect=dialect, tables=others, most=wanted)

    def _described(self, asked: tuple[str, str | None]) -> Description:
        """Return the public facts that a statement asks for; no ledger is opened for it, and no protected row read."""
        _, name = asked
        wanted = [] if name is None else [each for each in (*self, *self.file.public) if each.lower() == name.lower()]
        if not wanted and name is not None:
            raise QueryRefused(f"{self.file.path} has no table '{name}'{did_you_mean(name, self.file.tables)}")
        tables = {each: self.declared(each)[1] for each in (wanted or self) if each in self.file.tables}
        publics = {each: self.public(each) for each in (wanted or self.file.public) if each in self.file.public}
        return described_as_asked(asked, tables, publics)

    def declared(self, name: str) -> tuple[Source, Declaration]:
        """Return a table's source and declaration, held against its schema; no row is read, no ledger opened."""
        entry = self.file.tables[name]
        known = {each: value for each, value in entry.options.items() if each in signature(declared).parameters}
        if (owner := self.file.owner_of(name)) is not None:
            known["unit"] = self.declared(owner)
        return declared(entry.source, name=name, **known)

    def named(self, text: str, dialect: str | None = None) -> list[str]:
        """Return the tables that a SELECT names, the protected ones first; none is opened."""
        names = {name.lower() for name in tables_named(text, dialect)}
        return [name for name in (*self.file.tables, *self.file.public) if name.lower() in names]

    def opened(
        self, names: Iterable[str], open_table: Callable[[str], Table] | None = None
    ) -> "tuple[list[Table | PublicTable], dict[str, int]]":
        """Open tables of these names, and return how many rows of each public one a row may match."""
        open_table = self.__getitem__ if open_table is None else open_table
        publics = [self.public(name) for name in names if name in self.file.public]
        tables: list[Table | PublicTable] = [open_table(name) for name in names if name in self.file.tables]
        return [*tables, *publics], {each.name: self.file.public[each.name].options["most"] for each in publics}

    def __contains__(self, name: object) -> bool:
        return name in self.file.tables

    def __iter__(self) -> Iterator[str]:
        return iter(self.file.tables)

    def __len__(self) -> int:
        return len(self.file.tables)

    def __dir__(self) -> list[str]:  # what Tab offers
        return ["get", "items", "keys", "public", "sql", "values"]

    def __repr__(self) -> str:
        publics = f"; public: {', '.join(self.file.public)}" if self.file.public else ""
        return f"<catalog {self.file.path}: {', '.join(self)}{publics}>"


def _asked_as(
    opened: Source,
    declaration: Declaration,
    registered: RegisteredTable,
    book: Ledger,
    held: Fraction | None,
    unit: object,
    *,
    is_declared: bool,
) -> Table:
    """Return the handle of a table; a frame that is not declared by name and version gets its own mark."""
    is_frame = opened.identity is None
    mark = "" if not is_frame else DECLARED if is_declared else fresh_bytes(MARK_BYTES).hex()
    forgotten = (FORGOTTEN,) if is_frame and not is_declared and book.durable else ()
    notices = _outside_of_budgets(opened, declaration.name, book) + forgotten
    if isinstance(unit, Table) and declaration.owners is not None:
        owner = unit.session
        mark, held = " ".join(filter(None, (mark, owner.source_mark))), longest((held, owner.hold))
        notices = (declaration.owners.words(declaration.name, str(declaration.unit)), *notices, *owner.notices)
    session = Session(declaration, registered, open_engine(opened), book, mark, notices, hold=held)
    return Table(session, Frame(declaration))


def _outside_of_budgets(opened: Source, name: str, book: Ledger) -> tuple[str, ...]:
    """Return a notice if the default ledger also knows this table: charges made here are not counted there.

    By name only beside a ledger in memory: a table of another study may have the same name.
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


def _book(ledger: Any, budget: Loss | LossPerPeriod | None, *, is_unnamed: bool = False) -> Ledger:
    """Return the open ledger that charges go to; warn of a budget that gives little protection."""
    if is_unnamed:
        _refuse_unnamed(ledger)
    warn_if_large(getattr(getattr(budget, "loss", budget), "epsilon", None))
    return ledger if isinstance(ledger, Ledger) else open_ledger(_ledger_address(ledger))


def _refuse_unnamed(ledger: Any) -> None:
    """Refuse a frame without a name in a kept ledger: a name from its rows would release them, one from its schema
    changes."""
    if ledger.durable if isinstance(ledger, Ledger) else _ledger_address(ledger) != MEMORY:
        raise InvalidParameter(
            "a frame in a ledger that is kept needs a name: its budget is found again by it"
            "\nhint: tacit.table(frame, name='visits', ...), the same name each time; or ledger=tacit.TRYOUT to try out"
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


def _declared_unit(unit: object, opened: Source) -> str | RowUnit:
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
            "\nhint: convert it to text or a number in the source"
        )
    _refuse_merged(unit, opened)
    return unit


def _refuse_merged(unit: str, opened: Source) -> None:
    """Refuse a unit column in which different cells may be read as equal: two people would be bounded as one."""
    stored = opened.table[unit].type()
    is_wide = stored.kind == "uint128"
    if opened.columns[unit].type == "other" and not (stored.is_uuid() or stored.is_binary() or is_wide):
        raise QueryRefused(
            f"column '{unit}' cannot be the unit: its type is not number, text, date, timestamp, bytes or UUID"
            "\nhint: convert it to text or a number in the source"
        )
    if unit in opened.rounded:
        raise QueryRefused(
            f"column '{unit}' has cells that are rounded when they are read, so two units could become one"
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
