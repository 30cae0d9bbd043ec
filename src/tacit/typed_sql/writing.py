"""Writes relations as DuckDB's SQL: the same text for the same relation, whenever it was made.

Each step of a relation is one SELECT over the SELECT before it. A relation that is read twice is written once, before
all else, under a name.
"""

import threading
import weakref
from collections import Counter, deque
from typing import Any

import duckdb
import pyarrow as pa

from tacit.typed_sql.selects import Aggregate, Distinct, Filter, Join, Lent, Select, Stored, Table
from tacit.typed_sql.types import stored
from tacit.typed_sql.values import Column, Value, quoted

Scope = tuple[tuple[Table, str], ...]  # the relations that a SELECT reads, each with the name that it has there


def sql_of(relation: Table) -> str:
    """Return a relation as SQL."""
    return _Writer(relation).sql


class _Writer:
    """Writes one relation."""

    def __init__(self, relation: Table) -> None:
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

    def _from(self, table: Table) -> tuple[str, str]:
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

    def _query(self, table: Table) -> str:
        if isinstance(table, Join):
            return self._joined(table)
        source, name = self._from(table.sources[0] if table.sources else table)
        if not table.sources:
            return f"SELECT * FROM {source}"  # noqa: S608 - every name is quoted
        if isinstance(table, Distinct):
            return f"SELECT DISTINCT * FROM {source}"  # noqa: S608 - every name is quoted
        scope = ((table.sources[0], name),)
        if isinstance(table, Filter):
            conditions = " AND ".join(_text(each, scope) for each in table.conditions)
            return f"SELECT * FROM {source} WHERE {conditions}"  # noqa: S608 - every name is quoted
        if isinstance(table, Aggregate):
            columns = _columns(table.keys | dict(table.given), scope)
            groups = ", ".join(str(1 + index) for index in range(len(table.keys)))
            return f"SELECT {columns} FROM {source}" + (f" GROUP BY {groups}" if groups else "")  # noqa: S608
        if isinstance(table, Select):
            return f"SELECT {_columns(dict(table.given), scope)} FROM {source}"  # noqa: S608 - every name is quoted
        raise TypeError(f"a {type(table).__name__} is not written as SQL")

    def _joined(self, table: Join) -> str:
        (left, mine), (right, theirs) = self._from(table.left), self._from(table.right)
        scope = ((table.left, mine), (table.right, theirs))
        columns = [f"{mine}.{quoted(name)}" for name in table.left.columns]
        columns += [f"{theirs}.{quoted(name)}" for name in table.right.columns if name not in table.left.kinds]
        matches = " AND ".join(_text(each, scope) for each in table.matches)
        return f"SELECT {', '.join(columns)} FROM {left} {table.how} JOIN {right} ON {matches}"  # noqa: S608


def _columns(values: dict[str, Value], scope: Scope) -> str:
    return ", ".join(f"{_text(value, scope)} AS {quoted(name)}" for name, value in values.items())


def _text(value: Value, scope: Scope) -> str:
    written: list[str] = []
    _write(value, scope, written)
    return "".join(written)


def _write(value: Value, scope: Scope, written: list[str]) -> None:
    if isinstance(value, Column):
        written.append(_column(value, scope))
        return
    for piece in value.pieces:
        if isinstance(piece, str):
            written.append(piece)
        else:
            _write(piece, scope, written)


def _column(value: Column, scope: Scope) -> str:
    """Return a column with the name of the relation that it is read from: its own, or the first that has the column."""
    found = [name for table, name in scope if table is value.table]
    found = found or [name for table, name in scope if _has(table, value)]
    if not found:
        raise TypeError("a relation names a column that it does not read")
    return f"{found[0]}.{quoted(value.column)}"


def _has(table: Table, column: Column) -> bool:
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

    def run(self, relation: Table) -> Any:
        """Return a relation as a result of DuckDB's, which is read as Arrow."""
        self.lend(relation)
        return self.con.sql(sql_of(relation))

    def to_arrow(self, relation: Table) -> pa.Table:
        """Return the rows of a relation."""
        found: pa.Table = self.run(relation).to_arrow_table()
        return found

    def lend(self, relation: Table) -> None:
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
        """Close DuckDB's connection."""
        self.con.close()


def connected() -> Connection:
    """Return a connection to a new DuckDB in memory."""
    return Connection(duckdb.connect())
