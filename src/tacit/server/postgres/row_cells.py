"""`StatementResult`: the result of a statement as columns with types by number, rows and notices; and rows as cells."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tacit.errors import QueryRefused
from tacit.server.postgres import postgres_types
from tacit.server.postgres.messages import Cell, Described

Column = tuple[str, int]


@dataclass(frozen=True)
class StatementResult:
    """Columns, rows and notices; a statement without columns, such as SET, has only a tag."""

    columns: Sequence[Column] = ()
    rows: Sequence[Sequence[Any]] = ()
    notices: Sequence[str] = ()
    tag: str = ""
    is_empty: bool = field(default=False, kw_only=True)  # of an empty text

    @property
    def words(self) -> str:
        """The tag that ends it."""
        return self.tag or f"SELECT {len(self.rows)}"

    def chosen(self, shown: Sequence[tuple[str, str]]) -> "StatementResult":
        """Return the columns that a SELECT names, each with its own column of the answer; without names, all."""
        if not shown:
            return self
        places = {name: place for place, (name, _) in enumerate(self.columns)}
        missing = next((column for _, column in shown if column not in places), None)
        if missing is not None:
            raise QueryRefused(
                f"a column is missing in the answer: '{missing[:60]}'\nhint: leave it out; only numbers have intervals"
            )
        columns = [(name, self.columns[places[column]][1]) for name, column in shown]
        return replace(self, columns=columns, rows=[[row[places[column]] for _, column in shown] for row in self.rows])


def described(columns: Sequence[Column], formats: Sequence[int]) -> list[Described]:
    """Return columns as they are described; `formats` are 1 for binary, one for all columns or one for each."""
    chosen = _formats(columns, formats)
    return [
        Described(name, type, postgres_types.SIZES.get(type, -1), is_binary)
        for (name, type), is_binary in zip(columns, chosen, strict=True)
    ]


def cells_of(rows: Sequence[Sequence[Any]], columns: Sequence[Column], formats: Sequence[int]) -> list[list[Cell]]:
    """Return rows as they leave."""
    shape = [(type, is_binary) for (_, type), is_binary in zip(columns, _formats(columns, formats), strict=True)]
    try:
        return [
            [
                postgres_types.cell_of(value, type, is_binary=is_binary)
                for value, (type, is_binary) in zip(row, shape, strict=True)
            ]
            for row in rows
        ]
    except (struct.error, OverflowError):
        raise QueryRefused(
            "a number of this answer is larger than its binary type holds\nhint: ask for text results; the same"
            " question again is free"
        ) from None


def _formats(columns: Sequence[Column], formats: Sequence[int]) -> list[bool]:
    if len(formats) not in (0, 1, len(columns)) or not set(formats) <= {0, 1}:
        raise QueryRefused("the formats of the result do not match its columns\nhint: send one for all of them")
    wanted = list(formats) * len(columns) if len(formats) == 1 else list(formats) or [0] * len(columns)
    return [bool(each) and postgres_types.has_binary(type) for each, (_, type) in zip(wanted, columns, strict=True)]
