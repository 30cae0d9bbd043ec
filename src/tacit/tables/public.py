"""A public table: read whole, not secret, and known by its content. Wards with their beds, airports, a calendar.

Its ranges and keys may be read off its rows, and repeated keys may be reported.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from tacit.errors import QueryRefused
from tacit.tables.frames import to_scalar
from tacit.tables.schema import ColumnFacts

ROWS_MAX = 1_000_000
BYTES_MAX = 1 << 28
# A column with at most this many values has them as public keys: groups by it are then all shown.
LISTED_MAX = 250
NUMBERS = ("int", "float", "decimal")


@dataclass(frozen=True, eq=False)
class PublicTable:
    """A public table, read whole: its rows, facts from them, and a hash of its content."""

    name: str
    rows: pa.Table = field(repr=False)
    columns: Mapping[str, ColumnFacts] = field(repr=False)
    digest: str = field(repr=False)

    def __repr__(self) -> str:
        return f"<public table '{self.name}': {len(self.rows):,} rows of {', '.join(self.columns)}>"


def make_public(name: str, batches: pa.RecordBatchReader, declared: Mapping[str, ColumnFacts]) -> PublicTable:
    """Return rows, each column of its declared type, as a public table; its columns' facts follow from the rows."""
    kept: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        kept.append(batch)
        rows, size = rows + len(batch), size + batch.nbytes
        if rows > ROWS_MAX or size > BYTES_MAX:
            raise QueryRefused(
                f"the public table '{name}' has more than {ROWS_MAX:,} rows, or more than {BYTES_MAX >> 20} MB"
                "\nhint: leave out columns and rows that no question needs"
            )
    table = pa.Table.from_batches(kept, batches.schema).combine_chunks()
    table = table.sort_by([(column, "ascending") for column in table.column_names])
    facts = {column: _facts_of_rows(table.column(column), declared[column]) for column in table.column_names}
    return PublicTable(name, table, facts, _digest_of_content(table, facts))


def _facts_of_rows(column: pa.ChunkedArray, declared: ColumnFacts) -> ColumnFacts:
    """Return a column's facts: declared ones, and otherwise those of its rows."""
    facts = declared
    known = column.drop_null()
    if facts.between is None and facts.type in NUMBERS and len(known):
        ends = pc.min_max(known).as_py()
        facts = replace(facts, between=_range_of_rows(ends["min"], ends["max"]))
    if facts.keys is None and facts.type != "float":
        values = pc.unique(column)
        if 0 < len(values) <= LISTED_MAX:
            in_order = [*sorted(values.drop_null().to_pylist()), *([None] if values.null_count else [])]
            facts = replace(facts, keys=tuple(map(to_scalar, in_order)))
    return facts


def _range_of_rows(low: Any, high: Any) -> tuple[Fraction, Fraction] | None:
    """Return the range of numbers; of a single one, a range that begins with it. Infinities have none."""
    if not all(isinstance(end, Decimal) or isfinite(end) for end in (low, high)):
        return None
    least, most = Fraction(low), Fraction(high)
    return (least, most) if least < most else (least, least + 1)


def _digest_of_content(rows: pa.Table, facts: Mapping[str, ColumnFacts]) -> str:
    """Return a hash of names, facts and cells."""
    made = hashlib.sha256(repr(sorted(facts.items())).encode("utf-8", "surrogatepass"))
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        made.update(repr((name, str(column.type), len(column))).encode("utf-8", "surrogatepass"))
        made.update(pc.is_null(column).to_numpy(zero_copy_only=False).tobytes())
        if pat.is_decimal(column.type) or pat.is_date(column.type) or pat.is_timestamp(column.type):
            column = column.cast(pa.string())
        if pat.is_string(column.type) or pat.is_large_string(column.type):
            filled = pc.fill_null(column, "")
            made.update(pc.binary_length(filled).to_numpy(zero_copy_only=False).tobytes())
            made.update("".join(filled.to_pylist()).encode("utf-8", "surrogatepass"))
        else:
            nothing = pa.scalar(0).cast(column.type)
            made.update(pc.fill_null(column, nothing).to_numpy(zero_copy_only=False).tobytes())
    return made.hexdigest()
