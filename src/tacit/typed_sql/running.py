"""Runs relations in a DuckDB connection, and lends it the Arrow tables that they read."""

import threading
import weakref
from collections import deque
from typing import Any

import duckdb
import pyarrow as pa

from tacit.typed_sql.selects import Stored, Table
from tacit.typed_sql.types import stored
from tacit.typed_sql.writing import sql_of


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
