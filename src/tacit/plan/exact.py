"""The exact, bounded integers of each group: secret until noise is added, and shown to nobody."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tacit.plan.plan import Part, Plan
from tacit.query.nodes import Scalar


@dataclass(frozen=True, repr=False)
class ExactTable:
    """What an engine hands to the release, group by group; it prints as withheld.

    `sums` has, for each group, rows and units, and for measured column i counted_i (rows where it is not NULL) and
    total_i (the sum of x - low over them, in steps).
    """

    keys: Sequence[tuple[Scalar, ...]]
    sums: Mapping[str, Sequence[int]]

    def __repr__(self) -> str:
        return "ExactTable(withheld)"

    def __len__(self) -> int:
        return len(self.keys)

    def part(self, part: Part, plan: Plan) -> list[int]:
        """Return one part for every group, still exact."""
        if part.column is None:
            return list(self.sums[part.kind])
        column = plan.measured[part.column]
        counted = self.sums[f"counted_{part.column}"]
        if part.kind == "counted":
            return list(counted)
        if part.kind == "missing":
            return [(r - n) * column.height for r, n in zip(self.sums["rows"], counted, strict=True)]
        total = self.sums[f"total_{part.column}"]
        if part.kind == "above":
            return list(total)
        if part.kind == "below":
            return [n * column.height - s for n, s in zip(counted, total, strict=True)]
        return [s + n * column.low for n, s in zip(counted, total, strict=True)]
