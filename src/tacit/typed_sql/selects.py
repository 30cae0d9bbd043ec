"""Relations (a stored table, an Arrow table that is lent, or one SELECT over other relations), and their SQL.

Relations are never changed, and the text of one is always the same. A relation that is read twice is written once,
first, under a name.
"""

import copy
import itertools
import threading
import weakref
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import duckdb
import pyarrow as pa

from tacit.typed_sql.types import INT64, Type, of_arrow, stored
from tacit.typed_sql.values import ColumnValue, Constant, Typed, as_value, columns_in, quoted

Given = str | Typed | Sequence[str | Typed]


class Relation:
    """Rows with columns of known types."""

    __slots__ = ("__weakref__", "kinds", "sources", "views")

    def __init__(self, kinds: Mapping[str, Type], *sources: "Relation") -> None:
        self.kinds: dict[str, Type] = dict(kinds)
        self.sources: tuple[Relation, ...] = sources
        # other views by which stored tables are read here, by the stored table's full name
        self.views: dict[str, str] = {}
        for each in sources:
            self.views |= each.views

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.kinds)

    def schema(self) -> dict[str, Type]:
        return dict(self.kinds)

    def __getitem__(self, name: str) -> ColumnValue:
        return ColumnValue(self, name, self.kinds[name])

    # --- one more SELECT ---

    def select(self, /, *given: Given, **named: Typed | Constant) -> "Relation":
        """Return these columns and values alone."""
        return Select(self, self._given(given, named))

    def mutate(self, /, *given: Given, **named: Typed | Constant) -> "Relation":
        """Return all columns, and further ones beside them or in their place."""
        return Select(self, {**{name: self[name] for name in self.kinds}, **self._given(given, named)})

    def drop(self, *names: str) -> "Relation":
        return Select(self, {name: self[name] for name in self.kinds if name not in names}) if names else self

    def filter(self, conditions: Typed | Sequence[Typed]) -> "Relation":
        """Return the rows for which all conditions hold."""
        return Filter(self, [conditions] if isinstance(conditions, Typed) else conditions)

    def distinct(self) -> "Relation":
        return DistinctRows(self)

    def group_by(self, *keys: Given) -> "Grouped":
        """Return the rows as groups of those with equal keys."""
        return Grouped(self, list(self._listed(keys)))

    def agg(self, /, *given: Given, **named: Typed | Constant) -> "Relation":
        return Aggregation(self, [], self._given(given, named))

    def count(self) -> Typed:
        return Typed(("COUNT(*)",), INT64)

    def inner_join(self, right: "Relation", matches: Typed | Sequence[Typed]) -> "Relation":
        """Return the pairs of rows that match; a column that both have is this table's."""
        return JoinedRows(self, right, [matches] if isinstance(matches, Typed) else matches, "INNER")

    def left_join(self, right: "Relation", matches: Typed | Sequence[Typed]) -> "Relation":
        """Return the same with each unmatched row once, beside NULLs."""
        return JoinedRows(self, right, [matches] if isinstance(matches, Typed) else matches, "LEFT")

    def _listed(self, given: Iterable[Given]) -> Iterator[Typed]:
        for each in given:
            for one in [each] if isinstance(each, str | Typed) else each:
                yield self[one] if isinstance(one, str) else one

    def _given(self, given: Iterable[Given], named: Mapping[str, Typed | Constant]) -> dict[str, Typed]:
        found = {_label_of(value): value for value in self._listed(given)}
        return found | {name: as_value(value) for name, value in named.items()}

    # --- what it is made of ---

    def values(self) -> Iterable[Typed]:
        """Yield the values that this SELECT names itself."""
        return ()

    def equals(self, other: "Relation") -> bool:
        """Return whether both are the same stored table, or the same relation."""
        if isinstance(self, Stored) and isinstance(other, Stored):
            return self.full_name == other.full_name and self.connection is other.connection
        return self is other

    def tables(self) -> "list[Relation]":
        """Return this relation and all that it is made of, each once."""
        found: dict[int, Relation] = {}
        waiting: list[Relation] = [self]
        while waiting:
            each = waiting.pop()
            if id(each) not in found:
                found[id(each)] = each
                waiting += each.sources
        return list(found.values())

    def stored(self) -> "list[Stored]":
        return list({each.full_name: each for each in self.tables() if isinstance(each, Stored)}.values())

    def lent(self) -> "list[Lent]":
        return [each for each in self.tables() if isinstance(each, Lent)]

    def columns_named(self) -> set[str]:
        """Return the name of every column that is named anywhere in it."""
        return {each.column for each in columns_in(value for table in self.tables() for value in table.values())}

    def reading(self, table: "Stored", view: str) -> "Relation":
        """Return the same relation, in which a stored table is read by another view of its rows."""
        again = copy.copy(self)
        again.views = {**self.views, table.full_name: view}
        return again


def _label_of(value: Typed) -> str:
    if value.label is None:
        raise TypeError("a value needs a name to be a column")
    return value.label


class Stored(Relation):
    """A table or view of a connection."""

    __slots__ = ("connection", "database", "name")

    def __init__(
        self, name: str, kinds: Mapping[str, Type], connection: "Connection", database: tuple[str, ...] = ()
    ) -> None:
        super().__init__(kinds)
        self.name: str = name
        self.connection: Connection = connection
        self.database: tuple[str, ...] = database

    @property
    def full_name(self) -> str:
        return ".".join(quoted(each) for each in (*self.database, self.name))


_numbers = itertools.count()


class Lent(Relation):
    """An Arrow table that is lent to a connection as long as a relation of it is held."""

    __slots__ = ("data", "name")

    def __init__(self, data: pa.Table) -> None:
        super().__init__({field.name: of_arrow(field.type) for field in data.schema})
        self.data: pa.Table = data
        self.name: str = f"tacit_lent_{next(_numbers)}"


class Select(Relation):
    """Values of each row of another relation."""

    __slots__ = ("given",)

    def __init__(self, source: Relation, given: Mapping[str, Typed]) -> None:
        super().__init__({name: value.dtype for name, value in given.items()}, source)
        self.given: Mapping[str, Typed] = given

    def values(self) -> Iterable[Typed]:
        return self.given.values()


class Filter(Relation):
    """The rows of another relation for which conditions hold."""

    __slots__ = ("conditions",)

    def __init__(self, source: Relation, conditions: Sequence[Typed]) -> None:
        super().__init__(source.kinds, source)
        self.conditions: Sequence[Typed] = conditions

    def values(self) -> Iterable[Typed]:
        return self.conditions


class DistinctRows(Relation):
    """The different rows of another relation."""

    __slots__ = ()

    def __init__(self, source: Relation) -> None:
        super().__init__(source.kinds, source)


class Grouped:
    """Rows in groups, before anything is computed of them."""

    def __init__(self, source: Relation, keys: list[Typed]) -> None:
        self._source, self._keys = source, keys

    def agg(self, /, *given: Given, **named: Typed | Constant) -> Relation:
        """Return one row for each group: its keys, and aggregates of its rows."""
        return Aggregation(self._source, self._keys, self._source._given(given, named))


class Aggregation(Relation):
    """Aggregates of the groups of another relation, or of all of its rows."""

    __slots__ = ("given", "keys")

    def __init__(self, source: Relation, keys: list[Typed], given: Mapping[str, Typed]) -> None:
        self.keys, self.given = {_label_of(each): each for each in keys}, given
        super().__init__({name: value.dtype for name, value in (self.keys | dict(given)).items()}, source)

    def values(self) -> Iterable[Typed]:
        return itertools.chain(self.keys.values(), self.given.values())


class JoinedRows(Relation):
    """Pairs of rows of two relations that match."""

    __slots__ = ("how", "left", "matches", "right")

    def __init__(
        self, left: Relation, right: Relation, matches: Sequence[Typed], how: Literal["INNER", "LEFT"]
    ) -> None:
        if left is right:
            raise TypeError("a relation is not joined with itself: its columns would be taken for each other's")
        more = {name: kind for name, kind in right.kinds.items() if name not in left.kinds}
        super().__init__({**left.kinds, **more}, left, right)
        self.left, self.right, self.matches, self.how = left, right, matches, how

    def values(self) -> Iterable[Typed]:
        own = (self.left[name] for name in self.left.columns)
        return itertools.chain(self.matches, own, (self.right[name] for name in self.right.columns))


# --- relations as SQL ---


Scope = tuple[tuple[Relation, str], ...]  # the relations that a SELECT reads, each with the name that it has there


def sql_of(relation: Relation) -> str:
    return _Writer(relation).sql


class _Writer:
    """Writes one relation."""

    def __init__(self, relation: Relation) -> None:
        self._views = relation.views
        self._names = 0
        read = Counter(id(source) for table in relation.tables() for source in table.sources)
        self._shared = {each for each, times in read.items() if times > 1}
        self._before: dict[int, tuple[str, str]] = {}  # shared relations that are written, with their names
        query = self._query(relation)
        before = ", ".join(f"{name} AS ({text})" for name, text in self._before.values())
        self.sql = f"WITH {before} {query}" if before else query

    def _name(self) -> str:
        self._names += 1
        return f"t{self._names - 1}"

    def _from(self, table: Relation) -> tuple[str, str]:
        """Return the words after FROM, and the name that the relation has there."""
        if isinstance(table, Stored):
            written = self._views.get(table.full_name)
            source = table.full_name if written is None else quoted(written)
        elif isinstance(table, Lent):
            source = quoted(table.name)
        elif id(table) in self._shared:
            if id(table) not in self._before:
                text = self._query(table)
                self._before[id(table)] = f"shared_{len(self._before)}", text
            source = self._before[id(table)][0]
        else:
            source = f"({self._query(table)})"
        name = self._name()
        return f"{source} AS {name}", name

    def _query(self, table: Relation) -> str:
        if isinstance(table, JoinedRows):
            return self._joined(table)
        source, name = self._from(table.sources[0] if table.sources else table)
        if not table.sources:
            return f"SELECT * FROM {source}"  # noqa: S608 - every name is quoted
        if isinstance(table, DistinctRows):
            return f"SELECT DISTINCT * FROM {source}"  # noqa: S608 - every name is quoted
        scope = ((table.sources[0], name),)
        if isinstance(table, Filter):
            conditions = " AND ".join(_relation_text(each, scope) for each in table.conditions)
            return f"SELECT * FROM {source} WHERE {conditions}"  # noqa: S608 - every name is quoted
        if isinstance(table, Aggregation):
            columns = _columns_sql(table.keys | dict(table.given), scope)
            groups = ", ".join(str(1 + index) for index in range(len(table.keys)))
            return f"SELECT {columns} FROM {source}" + (f" GROUP BY {groups}" if groups else "")  # noqa: S608
        if isinstance(table, Select):
            return f"SELECT {_columns_sql(dict(table.given), scope)} FROM {source}"  # noqa: S608 - every name is quoted
        raise TypeError(f"a {type(table).__name__} is not written as SQL")

    def _joined(self, table: JoinedRows) -> str:
        (left, mine), (right, theirs) = self._from(table.left), self._from(table.right)
        scope = ((table.left, mine), (table.right, theirs))
        columns = [f"{mine}.{quoted(name)}" for name in table.left.columns]
        columns += [f"{theirs}.{quoted(name)}" for name in table.right.columns if name not in table.left.kinds]
        matches = " AND ".join(_relation_text(each, scope) for each in table.matches)
        return f"SELECT {', '.join(columns)} FROM {left} {table.how} JOIN {right} ON {matches}"  # noqa: S608


def _columns_sql(values: dict[str, Typed], scope: Scope) -> str:
    return ", ".join(f"{_relation_text(value, scope)} AS {quoted(name)}" for name, value in values.items())


def _relation_text(value: Typed, scope: Scope) -> str:
    written: list[str] = []
    _write_select(value, scope, written)
    return "".join(written)


def _write_select(value: Typed, scope: Scope, written: list[str]) -> None:
    if isinstance(value, ColumnValue):
        written.append(_column_sql(value, scope))
        return
    for piece in value.pieces:
        if isinstance(piece, str):
            written.append(piece)
        else:
            _write_select(piece, scope, written)


def _column_sql(value: ColumnValue, scope: Scope) -> str:
    """Return a column with the name of the relation that it is read from: its own, or the first that has the column."""
    found = [name for table, name in scope if table is value.table]
    found = found or [name for table, name in scope if _has(table, value)]
    if not found:
        raise TypeError("a relation names a column that it does not read")
    return f"{found[0]}.{quoted(value.column)}"


def _has(table: Relation, column: ColumnValue) -> bool:
    kind = table.kinds.get(column.column)
    return kind is not None and (column.table is None or kind == column.dtype)


class Connection:
    """A DuckDB connection that runs relations; `con` is DuckDB's own."""

    def __init__(self, con: Any) -> None:
        self.con = con
        self._lending = threading.Lock()
        self._lent: set[str] = set()
        self._forgotten: deque[str] = deque()  # lent tables that no relation holds any more

    def table(self, name: str, database: tuple[str, ...] = ()) -> Stored:
        """Return a stored table or view, perhaps of a named schema, or of a database and a schema; reads no row."""
        found = Stored(name, {}, self, database)
        rows = self.con.execute(f"DESCRIBE {found.full_name}").fetchall()
        return Stored(name, {row[0]: stored(row[1]) for row in rows}, self, database)

    def run(self, relation: Relation) -> Any:
        self.lend(relation)
        return self.con.sql(sql_of(relation))

    def to_arrow(self, relation: Relation) -> pa.Table:
        found: pa.Table = self.run(relation).to_arrow_table()
        return found

    def lend(self, relation: Relation) -> None:
        """Lend the tables that a relation reads, until nothing holds them; take back those that nothing holds now.

        They are taken back here, and not at the moment they are let go: a connection runs one thing at a time.
        """
        with self._lending:
            while self._forgotten:
                name = self._forgotten.popleft()
                self._lent.discard(name)
                self.con.unregister(name)
            for each in relation.lent():
                if each.name not in self._lent:
                    self.con.register(each.name, each.data)
                    self._lent.add(each.name)
                    weakref.finalize(each, self._forgotten.append, each.name).atexit = False

    def close(self) -> None:
        self.con.close()


def connected() -> Connection:
    """Return a connection to a new DuckDB in memory."""
    return Connection(duckdb.connect())
