"""A private summary of a table's columns: one answer of many aggregates, shown as a row for each column."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa

from tacit.answer.answer import Answer
from tacit.answer.text import Printed, cell_text, closing_lines
from tacit.arrow_frames import as_pandas
from tacit.errors import printable
from tacit.plan import VAGUE_FROM, WILD_FROM

VAGUE = "too vague"
VAGUE_NOTE = "Too vague: the number may be nearly anything. Ask fewer columns (columns=[...]) or spend more ε."
STATISTICS = ("count", "mean", "std", "p25", "p50", "p75")
# It joins a column and a statistic in the name of an aggregate; a statistic has none, so its last one is the join.
_JOIN = " "
Spec = TypeVar("Spec")


@dataclass(frozen=True, repr=False)
class Summary(Printed):
    """A private summary: a row for each column, every number with its ±; `answer` is the whole answer behind it."""

    answer: Answer
    declared: Mapping[str, Sequence[float]] = field(default_factory=dict)  # the ranges of columns that have one by hand

    @staticmethod
    def named(column: str, statistics: Mapping[str, Spec]) -> dict[str, Spec]:
        """Return what is asked of a column, some or all of STATISTICS, by the names that a summary reads it by."""
        return {f"{column}{_JOIN}{name}": spec for name, spec in statistics.items()}

    @property
    def statistics(self) -> tuple[str, ...]:
        """The statistics that it has."""
        asked = {name.rsplit(_JOIN, 1)[1] for name in self.answer.columns}
        return tuple(name for name in STATISTICS if name in asked)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a dict for each column: its name, and each statistic with its low and high end."""
        (row,) = self.answer.to_dicts()
        names = list(dict.fromkeys(name.rsplit(_JOIN, 1)[0] for name in self.answer.columns))
        ends = ("", "_low", "_high")
        return [
            {"column": name}
            | {f"{each}{end}": row[f"{name}{_JOIN}{each}{end}"] for each in self.statistics for end in ends}
            for name in names
        ]

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table."""
        return pa.Table.from_pylist(self.to_dicts())

    def to_pandas(self) -> Any:
        """Return a pandas frame."""
        return as_pandas(self.to_arrow())

    def __str__(self) -> str:
        rows = [("column", *self.statistics)]
        rows += [(row["column"], *(self._cell(row, each) for each in self.statistics)) for row in self.to_dicts()]
        widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
        lines = [
            "  ".join(
                cell.rjust(width) if at else cell.ljust(width)
                for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        told = [VAGUE_NOTE] if any(VAGUE in line for line in lines) else []
        return printable("\n".join([*lines, "", *told, *closing_lines(self.answer)]), keeping="\n")

    def _cell(self, row: Mapping[str, Any], statistic: str) -> str:
        """Return a number with its interval, or that it is too vague: within half of all that the column may have."""
        value, low, high = (row[f"{statistic}{end}"] for end in ("", "_low", "_high"))
        between = (self.answer.facts.bounds.get("ranges", {}) | self.declared).get(row["column"])
        if value is None or None in (low, high):
            return VAGUE
        if between is None or statistic == "count":
            return cell_text(value, low, high)
        sizes = [abs(row[name]) for name in ("p25", "p50", "p75") if row.get(name) is not None]
        is_wide = high - low >= VAGUE_FROM * (between[1] - between[0])
        is_wild = high - low > WILD_FROM * max(abs(value), *sizes, 1.0)
        return VAGUE if is_wide or is_wild else cell_text(value, low, high)
