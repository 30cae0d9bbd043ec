"""Rows with their person in another table: each row is joined with the pairs of a key and a person that stand there.

A row belongs to every person who has its key in the other table, once to each, and to nobody if none has it
(docs/proofs/relations.md). So a person's rows follow from that person's own rows of the other table, whatever keys the
others have. The joined rows are an ordinary source: everything else reads them as it reads a stored table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa

from tacit import typed_sql as sql
from tacit.errors import InvalidParameter, QueryRefused, did_you_mean
from tacit.tables.cells import TEXT_BYTES_MAX, VIEWS_MOST
from tacit.tables.elsewhere import Elsewhere
from tacit.tables.formats import in_our_engine, no_warnings, open_elsewhere
from tacit.tables.schema import Declaration, Owners, RowUnit
from tacit.tables.source import Own, Source
from tacit.typed_sql import quoted

KEY = "key of the owner "
ROWS, OWNERS = "rows", "owners"  # the two parts' names, after the whole's
VIA_EXAMPLE = "via='order_id', or a dict where the names differ: via={'order_id': 'id'}"


def owned_source(
    source: Source, via: object, other: Source, declaration: Declaration, *, block: object, neighbours: object
) -> tuple[Source, Owners]:
    """Return the source of the same rows with their unit, from the table that has it, and that table; reads no row.

    `block` and `neighbours` are what else is declared of the rows.
    """
    owners, unit = _read_owners(via, declaration, block, neighbours), str(declaration.unit)
    if unit.lower() in {name.lower() for name in source.columns}:
        raise QueryRefused(
            f"these rows have a column '{unit}' themselves, and so does '{owners.table}'"
            f"\nhint: unit='{unit}' without via=, if it names the person of each row; otherwise rename it in the source"
        )
    _refuse_keys(source, owners, other)
    columns = {**source.columns, unit: other.columns[unit]}
    if source.elsewhere is not None or other.elsewhere is not None:
        joined = _owned_elsewhere(source, owners, other, unit)
    elif source.own is not None and other.own is not None:
        made = Own(partial(_owned_into, source.own, other.own, owners.on, unit), (*source.own.paths, *other.own.paths))
        with no_warnings():
            joined = in_our_engine(made, {})
    elif source.backend.con is other.backend.con:
        joined = _joined_source(source, other, joined_with_owners(source.table, other.table, owners.on, unit))
    else:
        raise QueryRefused(_APART)
    joined = replace(joined, stem=source.stem, identity=source.identity, aliases=source.aliases, columns=columns)
    return joined, owners


def _read_owners(via: object, declaration: Declaration, block: object, neighbours: object) -> Owners:
    """Return the table that has the unit, and the columns that are equal in both: a name, a list of them, or a dict."""
    if isinstance(declaration.unit, RowUnit):
        raise QueryRefused(
            f"every row of '{declaration.name}' is its own unit, so other rows cannot have their unit in it"
            f"\nhint: declare '{declaration.name}' with the column of people as its unit"
        )
    if declaration.block is not None or block is not None:
        raise QueryRefused(
            "rows with their unit in another table have no blocks: that table's rows of one block decide about all"
            "\nhint: leave block= out, or copy the unit's column into these rows"
        )
    if neighbours not in ("add-remove", declaration.neighbours):
        raise QueryRefused(
            f"'{declaration.name}' has other neighbours\nhint: leave out neighbours=: they are those of its people"
        )
    if isinstance(via, str):
        pairs = [(via, via)]
    elif isinstance(via, Mapping):
        pairs = list(via.items())
    else:
        pairs = [(each, each) for each in via] if isinstance(via, list | tuple) else []
    if not pairs or not all(isinstance(name, str) for pair in pairs for name in pair):
        raise InvalidParameter(f"via must name the columns that say which row is the owner's\nhint: {VIA_EXAMPLE}")
    return Owners(declaration.name, tuple(pairs), declaration.version)


_APART = (
    "these rows and the table that has their unit cannot be read together"
    "\nhint: give both as tables of one connection or Spark session, or both as files or frames"
)


def _refuse_keys(source: Source, owners: Owners, other: Source) -> None:
    """Refuse keys that are not there, or in which different cells could be taken for equal."""
    for pair in owners.on:
        kinds = []
        for name, side, of in zip(pair, (source, other), ("these rows", f"'{owners.table}'"), strict=True):
            if name not in side.table.columns:
                raise QueryRefused(
                    f"via names '{name}', which is not a column of {of}{did_you_mean(name, side.columns)}"
                )
            kind = side.table[name].type()
            plain = kind.is_integer() or kind.is_string() or kind.is_date() or kind.is_uuid() or kind.is_binary()
            if not plain or name in side.rounded:
                raise QueryRefused(
                    f"via names '{name}' of {of}, and a key must be whole numbers, text, dates, bytes or UUIDs"
                    "\nhint: store it as text or a whole number in both tables"
                )
            kinds.append(kind)
        if kinds[0] != kinds[1] and not all(kind.is_integer() for kind in kinds):
            raise QueryRefused(
                f"via compares {pair[0]}, stored as {kinds[0]}, with {pair[1]} of '{owners.table}', stored as"
                f" {kinds[1]}\nhint: store both with one type"
            )


def joined_with_owners(
    rows: sql.Relation,
    owners: sql.Relation,
    on: Sequence[tuple[str, str]],
    unit: str,
    columns: Sequence[str] | None = None,
) -> sql.Relation:
    """Return rows with these columns (None: all) and their unit: one for each different person with the key."""
    names = {f"{KEY}{place}": pair for place, pair in enumerate(on)}
    pairs = owners.filter([owners[name].notnull() for name in (*(there for _, there in on), unit)])
    pairs = pairs.select(**{key: pairs[there] for key, (_, there) in names.items()}, **{unit: pairs[unit]}).distinct()
    kept = [name for name in rows.columns if columns is None or name in columns]
    left = rows.select(*kept, **{key: rows[here] for key, (here, _) in names.items()})
    both = left.inner_join(pairs, [left[key] == pairs[key] for key in names])
    return both.select(*kept, unit)


@dataclass(frozen=True)
class OwnedRows:
    """A view of joined rows in a connection of ours; of both tables only the columns are read that are named."""

    name: str
    rows: Source
    owners: Source
    on: tuple[tuple[str, str], ...]
    unit: str
    _views: dict[tuple[str, ...], str] = field(default_factory=dict, init=False, compare=False)

    def reading(self, relation: sql.Relation) -> sql.Relation:
        """Return the relation over a view of the columns that it names."""
        return self.handing(relation)

    def handing(self, relation: sql.Relation) -> sql.Relation:
        """Return the same: joined rows are never read by the engine alone."""
        fields = relation.columns_named()
        names = tuple(name for name in self.rows.table.columns if name in fields)
        if names not in self._views and len(self._views) < VIEWS_MOST:
            self._views[names] = self.made_view(names, f"{self.name}_{len(self._views)}")
        view = self._views.get(names) or self.made_view(names, f"{self.name}_last")
        return relation.reading(sql.Stored(self.name, {}, self.rows.backend), view)

    def made_view(self, names: Sequence[str] | None, view: str) -> str:
        """Make a view of these columns and the unit, and return its name."""
        joined = joined_with_owners(self.rows.table, self.owners.table, self.on, self.unit, names)
        for each in self.rows.files:
            joined = each.reading(joined)
        for each in self.owners.files:
            joined = each.handing(joined)  # so that both sides are of unknown size: the second one is held in memory
        self.rows.backend.con.execute(f"CREATE OR REPLACE TEMP VIEW {quoted(view)} AS {sql.sql_of(joined)}")
        return view


def _owned_into(
    rows: Own, owners: Own, on: tuple[tuple[str, str], ...], unit: str, backend: sql.Connection, name: str
) -> Source:
    both = rows.into(backend, f"{name}_{ROWS}"), owners.into(backend, f"{name}_{OWNERS}")
    handed = OwnedRows(name, *both, on, unit)
    handed.made_view(None, name)
    return replace(_joined_source(*both, backend.table(name)), files=(handed,))


def _joined_source(rows: Source, owners: Source, table: sql.Relation) -> Source:
    """Return the source of joined rows: what holds one of its parts to a moment, or shows a change, holds the whole."""
    return replace(
        rows,
        table=table,
        files=(),
        opened=(*rows.opened, *owners.opened),
        written=(*rows.written, *owners.written),
        stores=(*rows.stores, *owners.stores),
        rounded=rows.rounded,
        again=None,
        own=None,
    )


# --- rows of Spark ---


@dataclass(frozen=True)
class OwnedSparkTable:
    """Two stored tables of a Spark session, joined by Spark, by the bytes of their keys."""

    rows_: Any  # a `SparkTable`, or another of these
    owners: Any
    on: tuple[tuple[str, str], ...]
    texts: frozenset[str]  # the columns of `on`, and the unit, that are texts
    unit: str

    @property
    def session(self) -> Any:
        return self.rows_.session

    @property
    def name(self) -> str:
        return f"{self.rows_.name} of {self.owners.name} by {self.on}"

    @property
    def mapped(self) -> Any:
        return self.rows_.mapped

    def refuse_changes(self) -> None:
        for each in (self.rows_, self.owners):
            each.refuse_changes()

    def rows(self, columns: tuple[str, ...]) -> Any:
        """Return a DataFrame of these columns, named c0 and on."""
        here, there = zip(*self.on, strict=True)
        own = tuple(name for name in columns if name != self.unit)
        left, right = self.rows_.rows((*own, *here)), self.owners.rows((*there, self.unit))
        keys = [f"k{at}" for at in range(len(here))]
        left = left.selectExpr(
            *(f"c{at} AS r{at}" for at in range(len(own))),
            *(f"{self._key(name, f'c{len(own) + at}')} AS k{at}" for at, name in enumerate(here)),
        )
        owner = f"c{len(there)}"
        right = right.selectExpr(
            *(f"{self._key(name, f'c{at}')} AS k{at}" for at, name in enumerate(here)),
            f"{f'{owner} COLLATE UTF8_BINARY' if self.unit in self.texts else owner} AS u",
        ).where("u IS NOT NULL")
        both = left.join(right.distinct(), keys, "inner")
        places = {name: f"r{at}" for at, name in enumerate(own)} | {self.unit: "u"}
        return both.selectExpr(*(f"{places[name]} AS c{at}" for at, name in enumerate(columns)))

    def _key(self, name: str, cell: str) -> str:
        """Return a key as our own engine reads it: a text's bytes, and NULL of one that is too long or not UTF-8."""
        if name not in self.texts:
            return cell
        is_read = f"is_valid_utf8({cell}) AND octet_length({cell}) <= {TEXT_BYTES_MAX}"
        return f"CASE WHEN {is_read} THEN CAST({cell} AS BINARY) END"


def _owned_elsewhere(source: Source, owners: Owners, other: Source, unit: str) -> Source:
    if source.elsewhere is None or other.elsewhere is None or source.elsewhere.place is not other.elsewhere.place:
        raise QueryRefused(_APART)
    schema = source.elsewhere.schema.append(other.elsewhere.schema.field(unit))
    texts = frozenset(
        name for name in (*(here for here, _ in owners.on), unit) if pa.types.is_string(schema.field(name).type)
    )
    table = OwnedSparkTable(source.elsewhere.rows, other.elsewhere.rows, owners.on, texts, unit)
    elsewhere = Elsewhere(schema, table, source.elsewhere.place)
    return open_elsewhere(elsewhere, {}, stem=source.stem, identity=str(source.identity), others=source.others)
