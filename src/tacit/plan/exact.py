"""The exact, bounded integers of each group: secret until noise is added, and shown to nobody."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from tacit.plan.bernstein import indices, part_from_powers
from tacit.plan.plan import Part, Plan
from tacit.query.nodes import Scalar

Integers = NDArray[np.int64]


@dataclass(frozen=True, repr=False)
class ExactTable:
    """What an engine hands to the release, group by group; it prints as withheld.

    `sums` has, for each group, rows and units, and for measured column i counted_i (rows where it is not NULL) and
    total_i (the sum of x - low over them, in steps).
    """

    keys: Sequence[tuple[Scalar, ...]]
    sums: Mapping[str, Sequence[int]]
    # for a measured column that quantiles are asked of: each group's values in steps, rising
    values: Mapping[int, Sequence[Integers]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return "ExactTable(withheld)"

    def __len__(self) -> int:
        return len(self.keys)

    def part(self, part: Part, plan: Plan) -> list[int]:
        """Return one part for every group, still exact."""
        if part.kind == "distinct":
            return list(self.sums[f"distinct_{part.index[0]}"])
        if part.column is None:
            return list(self.sums[part.kind])
        if part.kind == "moment":
            return self._moment(part, plan)
        if part.degrees:  # the rows where a column of a moment is NULL
            height = prod(plan.measured[place].height ** d for place, d in zip(part.columns, part.degrees, strict=True))
            counted = self._power((0,) * len(part.columns), part, plan)
            return [(r - n) * height for r, n in zip(self.sums["rows"], counted, strict=True)]
        column = plan.measured[part.column]
        low, height = column.low, column.height
        counted = self.sums[f"counted_{part.column}"]
        if part.kind == "counted":
            return list(counted)
        if part.kind == "missing":
            return [(r - n) * height for r, n in zip(self.sums["rows"], counted, strict=True)]
        total = self.sums[f"total_{part.column}"]
        if part.kind == "above":
            return list(total)
        if part.kind == "below":
            return [n * height - s for n, s in zip(counted, total, strict=True)]
        return [s + n * low for n, s in zip(counted, total, strict=True)]

    def _moment(self, part: Part, plan: Plan) -> list[int]:
        heights = [plan.measured[place].height for place in part.columns]
        powers = {power: self._power(power, part, plan) for power in indices(part.degrees)}
        return [
            part_from_powers(part.index, part.degrees, heights, {power: sums[group] for power, sums in powers.items()})
            for group in range(len(self))
        ]

    def _power(self, power: tuple[int, ...], part: Part, plan: Plan) -> Sequence[int]:
        """Return every group's sum of a power, over the rows where no column of the part is NULL."""
        if len(power) == 1 and power[0] < 2:
            return self.sums[f"{('counted', 'total')[power[0]]}_{part.column}"]
        product = tuple(zip(part.columns, power, strict=True))
        if not any(power):  # counted with any of the part's products
            product = tuple((place, 1) for place in part.columns)
            return self.sums[f"counted_{len(plan.measured) + plan.products.index(product)}"]
        return self.sums[f"total_{len(plan.measured) + plan.products.index(product)}"]
