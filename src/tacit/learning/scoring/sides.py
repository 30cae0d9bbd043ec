"""The rows that a model has seen: the record that a fitted model carries, and whether other rows are fresh to it.

A side is named only by public facts: the table, the salt and the places of its units. So the record may be pickled and
published with the model, and does not depend on any row.
"""

from dataclasses import dataclass
from typing import Literal

from tacit.asking import Table
from tacit.query import Join, Relation, SomeUnits, TableRows

Freshness = Literal["fresh", "seen", "other table", "unknown"]


@dataclass(frozen=True)
class UnitRange:
    """Units with a salted hash at a place from `first` up to `end`."""

    salt: str
    first: int
    end: int
    columns: tuple[str, ...]  # the hashed columns, if rows are units

    def is_apart_from(self, other: "UnitRange") -> bool:
        """Return whether no unit can be in both: under one hash, and at other places."""
        is_same_hash = (self.salt, self.columns) == (other.salt, other.columns)
        return is_same_hash and (self.end <= other.first or other.end <= self.first)


@dataclass(frozen=True)
class RowsUsed:
    """The rows that a model was fitted on: of which table, and which of its units; no ranges are the whole table."""

    table: str
    table_id: str
    people: str  # the cohort that paid
    unit: str | None  # None: every row is a unit
    ranges: tuple[UnitRange, ...] = ()

    @property
    def words(self) -> str:
        """The rows in words."""
        return f"the whole of '{self.table}'" if not self.ranges else f"a part of '{self.table}'"


def rows_used(table: Table) -> RowsUsed:
    """Return the rows that a model fitted on a table sees; a filter is left out, since it only makes them fewer."""
    session = table.session
    base = session.base or session
    return RowsUsed(
        table=base.declaration.name,
        table_id=f"{base.registered.id} {base.source_mark}",
        people=f"{base.ledger.id} {base.registered.cohort}",
        unit=base.declaration.unit_column,
        ranges=_ranges(session.relation),
    )


def freshness(fitted: RowsUsed | None, scored: RowsUsed) -> Freshness:
    """Return the relation between a model's rows and the rows to score it on.

    "fresh" only if no unit can be in both, by the hash alone. The rows of another table are unknown, unless it is
    about the same people: then they are taken as seen.
    """
    if fitted is None:
        return "unknown"
    if fitted.table_id != scored.table_id:
        return "seen" if fitted.people == scored.people else "other table"
    if fitted.unit != scored.unit:
        return "seen"
    apart = any(mine.is_apart_from(theirs) for mine in fitted.ranges for theirs in scored.ranges)
    return "fresh" if apart else "seen"


def _ranges(relation: Relation | None) -> tuple[UnitRange, ...]:
    """Return the ranges that every unit of a relation is in. A join's rows belong to the units of its left side."""
    if relation is None or isinstance(relation, TableRows):
        return ()
    if isinstance(relation, SomeUnits):
        own = UnitRange(relation.salt, relation.first, relation.end, relation.columns)
        return (own, *_ranges(relation.source))
    if isinstance(relation, Join):
        return _ranges(relation.left)
    source = getattr(relation, "source", None)
    return () if source is None else _ranges(source)
