"""Relations: a stored table, an Arrow table that is lent, or one SELECT over other relations.

Relations are never changed; every method returns another one. Nothing is written or run here.
"""

import copy
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

if TYPE_CHECKING:
    from tacit.typed_sql.writing import Connection
from tacit.typed_sql.types import INT64, Type, of_arrow
from tacit.typed_sql.values import Column, Constant, Value, as_value, columns_in, quoted

Given = str | Value | Sequence[str | Value]


class Table:
    """Rows with columns of known types."""

    __slots__ = ("__weakref__", "kinds", "sources", "views")

    def __init__(self, kinds: Mapping[str, Type], *sources: "Table") -> None:
        self.kinds = dict(kinds)
        self.sources = sources
        # other views by which stored tables are read here, by the stored table's full name
        self.views: dict[str, str] = {}
        for each in sources:
            self.views |= each.views

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns, in order."""
        return tuple(self.kinds)

    def schema(self) -> dict[str, Type]:
        """Return the type of each column."""
        return dict(self.kinds)

    def __getitem__(self, name: str) -> Column:
        return Column(self, name, self.kinds[name])

    # --- one more SELECT ---

    def select(self, /, *given: Given, **named: Value | Constant) -> "Table":
        """Return these columns and values alone."""
        return Select(self, self._given(given, named))

    def mutate(self, /, *given: Given, **named: Value | Constant) -> "Table":
        """Return all columns, and further ones beside them or in their place."""
        return Select(self, {**{name: self[name] for name in self.kinds}, **self._given(given, named)})

    def drop(self, *names: str) -> "Table":
        """Return all columns but these."""
        return Select(self, {name: self[name] for name in self.kinds if name not in names}) if names else self

    def filter(self, conditions: Value | Sequence[Value]) -> "Table":
        """Return the rows for which all conditions hold."""
        return Filter(self, [conditions] if isinstance(conditions, Value) else conditions)

    def distinct(self) -> "Table":
        """Return each different row once."""
        return Distinct(self)

    def group_by(self, *keys: Given) -> "Grouped":
        """Return the rows as groups of those with equal keys."""
        return Grouped(self, list(self._listed(keys)))

    def agg(self, /, *given: Given, **named: Value | Constant) -> "Table":
        """Return one row of aggregates of all rows."""
        return Aggregate(self, [], self._given(given, named))

    def count(self) -> Value:
        """Return the number of rows, an aggregate."""
        return Value(("COUNT(*)",), INT64)

    def inner_join(self, right: "Table", matches: Value | Sequence[Value]) -> "Table":
        """Return the pairs of rows that match; a column that both have is this table's."""
        return Join(self, right, [matches] if isinstance(matches, Value) else matches, "INNER")

    def left_join(self, right: "Table", matches: Value | Sequence[Value]) -> "Table":
        """Return the same with each row that has no match once, beside NULLs."""
        return Join(self, right, [matches] if isinstance(matches, Value) else matches, "LEFT")

    def _listed(self, given: Iterable[Given]) -> Iterator[Value]:
        for each in given:
            for one in [each] if isinstance(each, str | Value) else each:
                yield self[one] if isinstance(one, str) else one

    def _given(self, given: Iterable[Given], named: Mapping[str, Value | Constant]) -> dict[str, Value]:
        found = {_label_of(value): value for value in self._listed(given)}
        return found | {name: as_value(value) for name, value in named.items()}

    # --- what it is made of ---

    def values(self) -> Iterable[Value]:
        """Yield the values that this SELECT names itself."""
        return ()

    def equals(self, other: "Table") -> bool:
        """Return whether both are the same stored table, or the same relation."""
        if isinstance(self, Stored) and isinstance(other, Stored):
            return self.full_name == other.full_name and self.connection is other.connection
        return self is other

    def tables(self) -> "list[Table]":
        """Return this relation and all that it is made of, each once."""
        found: dict[int, Table] = {}
        waiting: list[Table] = [self]
        while waiting:
            each = waiting.pop()
            if id(each) not in found:
                found[id(each)] = each
                waiting += each.sources
        return list(found.values())

    def stored(self) -> "list[Stored]":
        """Return the stored tables that it reads, each once."""
        return list({each.full_name: each for each in self.tables() if isinstance(each, Stored)}.values())

    def lent(self) -> "list[Lent]":
        """Return the Arrow tables that it reads."""
        return [each for each in self.tables() if isinstance(each, Lent)]

    def columns_named(self) -> set[str]:
        """Return the name of every column that is named anywhere in it."""
        return {each.column for each in columns_in(value for table in self.tables() for value in table.values())}

    def reading(self, table: "Stored", view: str) -> "Table":
        """Return the same relation, in which a stored table is read by another view of its rows."""
        again = copy.copy(self)
        again.views = {**self.views, table.full_name: view}
        return again


def _label_of(value: Value) -> str:
    if value.label is None:
        raise TypeError("a value needs a name to be a column")
    return value.label


class Stored(Table):
    """A table or view of a connection."""

    __slots__ = ("connection", "database", "name")

    def __init__(
        self, name: str, kinds: Mapping[str, Type], connection: "Connection", database: tuple[str, ...] = ()
    ) -> None:
        super().__init__(kinds)
        self.name, self.connection, self.database = name, connection, database

    @property
    def full_name(self) -> str:
        """The name by which SQL reads it."""
        return ".".join(quoted(each) for each in (*self.database, self.name))


_numbers = itertools.count()


class Lent(Table):
    """An Arrow table that is lent to a connection as long as a relation of it is held."""

    __slots__ = ("data", "name")

    def __init__(self, data: pa.Table) -> None:
        super().__init__({field.name: of_arrow(field.type) for field in data.schema})
        self.data, self.name = data, f"tacit_lent_{next(_numbers)}"


class Select(Table):
    """Values of each row of another relation."""

    __slots__ = ("given",)

    def __init__(self, source: Table, given: Mapping[str, Value]) -> None:
        super().__init__({name: value.dtype for name, value in given.items()}, source)
        self.given = given

    def values(self) -> Iterable[Value]:
        """Return the selected values."""
        return self.given.values()


class Filter(Table):
    """The rows of another relation for which conditions hold."""

    __slots__ = ("conditions",)

    def __init__(self, source: Table, conditions: Sequence[Value]) -> None:
        super().__init__(source.kinds, source)
        self.conditions = conditions

    def values(self) -> Iterable[Value]:
        """Return the conditions."""
        return self.conditions


class Distinct(Table):
    """The different rows of another relation."""

    __slots__ = ()

    def __init__(self, source: Table) -> None:
        super().__init__(source.kinds, source)


class Grouped:
    """Rows in groups, before anything is computed of them."""

    def __init__(self, source: Table, keys: list[Value]) -> None:
        self._source, self._keys = source, keys

    def agg(self, /, *given: Given, **named: Value | Constant) -> Table:
        """Return one row for each group: its keys, and aggregates of its rows."""
        return Aggregate(self._source, self._keys, self._source._given(given, named))


class Aggregate(Table):
    """Aggregates of the groups of another relation, or of all of its rows."""

    __slots__ = ("given", "keys")

    def __init__(self, source: Table, keys: list[Value], given: Mapping[str, Value]) -> None:
        self.keys, self.given = {_label_of(each): each for each in keys}, given
        super().__init__({name: value.dtype for name, value in (self.keys | dict(given)).items()}, source)

    def values(self) -> Iterable[Value]:
        """Yield the keys and the aggregates."""
        return itertools.chain(self.keys.values(), self.given.values())


class Join(Table):
    """Pairs of rows of two relations that match."""

    __slots__ = ("how", "left", "matches", "right")

    def __init__(self, left: Table, right: Table, matches: Sequence[Value], how: Literal["INNER", "LEFT"]) -> None:
        if left is right:
            raise TypeError("a relation is not joined with itself: its columns would be taken for each other's")
        more = {name: kind for name, kind in right.kinds.items() if name not in left.kinds}
        super().__init__({**left.kinds, **more}, left, right)
        self.left, self.right, self.matches, self.how = left, right, matches, how

    def values(self) -> Iterable[Value]:
        """Yield the conditions of a match, and the columns of both sides."""
        own = (self.left[name] for name in self.left.columns)
        return itertools.chain(self.matches, own, (self.right[name] for name in self.right.columns))
