"""The exact table: the bounded integers of each group, which are secret until noise is added.

`ExactIntegers` are the same without groups, for a round of learning. An engine fills them and a release adds noise;
rooms that print cannot import them. The names of sums, and of the columns they come from, are spelled only here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.numbers import Integers, Wholes, combined, wholes
from tacit.plan import Measured, Part, PartKind, Plan, weights_of_part
from tacit.query import Scalar

Steps = NDArray[Any]  # integers of 32 bits or more

# Sums that every group has: its rows, and its units.
ROWS, UNITS = "rows", "units"


def counted_name(index: int) -> str:
    """Return the name of the sum that counts the rows where value `index` is not NULL."""
    return f"counted_{index}"


def total_name(index: int) -> str:
    """Return the name of the sum of value `index`, in steps above the low end of its range."""
    return f"total_{index}"


def distinct_name(index: int) -> str:
    """Return the name of the sum that counts the different values of the plan's expression `index`."""
    return f"distinct_{index}"


def scaled_name(index: int) -> str:
    """Return the name of the sum of the plan's vector `index`, each unit's scaled into its cap."""
    return f"scaled_{index}"


def kept_name(index: int) -> str:
    """Return the name of the table's total of what bounding left of vector `index`."""
    return f"kept_{index}"


def cut_name(index: int) -> str:
    """Return the name of the table's total of what bounding took from vector `index`."""
    return f"cut_{index}"


def people_name(index: int) -> str:
    """Return the name of the sum that counts the units in each bin of the plan's profile `index`."""
    return f"people_{index}"


def sum_names(plan: Plan) -> list[str]:
    """Return the names of the sums over kept rows, in the order in which engines compute them."""
    names = [ROWS, UNITS]
    for index in range(plan.value_count):
        names += [counted_name(index), total_name(index)]
    return names


def key_name(index: int) -> str:
    """Return the name of the column with part `index` of each row's key."""
    return f"k{index}"


def value_name(index: int) -> str:
    """Return the name of the column with value `index` of each row: measured columns first, then products."""
    return f"x{index}"


def listed_name(index: int) -> str:
    """Return the name of the column with part `index` of the public keys."""
    return f"listed_{key_name(index)}"


@dataclass(frozen=True, repr=False)
class GroupedSteps:
    """One column's values in steps, group after group: group g has steps[starts[g] : ends[g]], sorted.

    Where people are asked about, each value has the weight of its row.
    """

    steps: Steps  # (values,)
    starts: Integers  # (groups,)
    ends: Integers  # (groups,)
    weights: Steps | None = None  # (values,)

    @classmethod
    def joined(cls, groups: Iterable[Steps]) -> "GroupedSteps":
        """Return one record of groups that are given one by one."""
        each = list(groups)
        sizes = np.array([len(one) for one in each], dtype=np.int64)
        ends = np.cumsum(sizes, dtype=np.int64)
        return cls(np.concatenate(each) if each else np.empty(0, dtype=np.int64), ends - sizes, ends)

    @classmethod
    def together(cls, several: Iterable["GroupedSteps"]) -> "GroupedSteps":
        """Return one record of the groups of several records, in their order."""
        each = list(several)
        steps = cls.joined(one for some in each for one in some)
        if all(some.weights is None for some in each):
            return steps
        weights = [
            some.weights[start:end]
            for some in each
            if some.weights is not None
            for start, end in zip(some.starts, some.ends, strict=True)
        ]
        return replace(steps, weights=np.concatenate(weights))

    def only(self, groups: Sequence[int]) -> "GroupedSteps":
        """Return the groups at these indices, in this order."""
        chosen = np.array(groups, dtype=np.int64)
        return replace(self, starts=self.starts[chosen], ends=self.ends[chosen])

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, group: int) -> Steps:
        return self.steps[self.starts[group] : self.ends[group]]

    def __iter__(self) -> Iterator[Steps]:
        return (self[group] for group in range(len(self)))

    def __repr__(self) -> str:
        return "GroupedSteps(withheld)"


@dataclass(frozen=True, repr=False)
class ExactTable:
    """The exact sums and values of every group, from an engine to the release. It prints as "withheld".

    `sums` has one integer for each group under each of `sum_names`, and under `distinct_name` of each expression whose
    different values are counted.
    """

    keys: Sequence[tuple[Scalar, ...]]
    sums: Mapping[str, Sequence[int]]
    # index of a measured column -> each group's values in steps, sorted: for the columns that have quantiles
    values: Mapping[int, GroupedSteps] = field(default_factory=dict)
    # one number each for the whole table, under `kept_name` and `cut_name`
    totals: Mapping[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        return "ExactTable(withheld)"

    def __len__(self) -> int:
        return len(self.keys)

    def part(self, part: Part, plan: Plan) -> list[int]:
        """Return one part for every group as Python integers, still exact."""
        exact_part: list[int] = self.part_values(part, plan).tolist()
        return exact_part

    def part_values(self, part: Part, plan: Plan) -> Wholes:
        """Return one part for every group as an array, still exact."""
        if part.kind == "distinct":
            return wholes(self.sums[distinct_name(part.index[0])])
        if part.kind == "scaled":
            return wholes(self.sums[scaled_name(part.index[0])])
        if part.kind == "people":
            return wholes(self.sums[people_name(part.index[0])])
        if part.kind in ("kept", "cut"):
            return wholes([self.totals[(kept_name if part.kind == "kept" else cut_name)(part.index[0])]])
        if part.column is None:
            return wholes(self.sums[part.kind])
        if part.kind == "moment":
            heights = [plan.measured[column].height for column in part.columns]
            weights = weights_of_part(part.index, part.degrees, heights)
            return combined(*((weight, self._power(power, part, plan)) for power, weight in weights.items()))
        if part.degrees:  # the rows where a column of a moment is NULL
            height = prod(
                plan.measured[column].height ** d for column, d in zip(part.columns, part.degrees, strict=True)
            )
            counted = self._power((0,) * len(part.columns), part, plan)
            return combined((height, self.sums[ROWS]), (-height, counted))
        return self._of_column(part.kind, part.column, plan.measured[part.column])

    def _of_column(self, kind: PartKind, index: int, column: Measured) -> Wholes:
        counted = self.sums[counted_name(index)]
        if kind == "counted":
            return wholes(counted)
        if kind == "missing":
            return combined((column.height, self.sums[ROWS]), (-column.height, counted))
        total = self.sums[total_name(index)]
        if kind == "above":
            return wholes(total)
        if kind == "below":
            return combined((column.height, counted), (-1, total))
        return combined((1, total), (column.low, counted))

    def _power(self, power: tuple[int, ...], part: Part, plan: Plan) -> Sequence[int]:
        """Return every group's sum of a power, over the rows where no column of the part is NULL."""
        if len(power) == 1 and power[0] < 2:
            return self.sums[(counted_name, total_name)[power[0]](part.columns[0])]
        product = tuple(zip(part.columns, power, strict=True))
        if not any(power):  # the count of rows, which every product of the part has beside its sum
            product = tuple((column, 1) for column in part.columns)
            return self.sums[counted_name(len(plan.measured) + plan.products.index(product))]
        return self.sums[total_name(len(plan.measured) + plan.products.index(product))]


def added_to_levels(
    kept: Sequence[int], keys: Sequence[tuple[Scalar, ...]], exact_values: Wholes
) -> tuple[list[tuple[Scalar, ...]], Wholes]:
    """Return the keys of a level, in the order of their first group, and its totals of the groups' values, exact."""
    places: dict[tuple[Scalar, ...], int] = {}
    of_group = [places.setdefault(tuple(key[each] for each in kept), len(places)) for key in keys]
    most = max((abs(int(end)) for end in (exact_values.min(), exact_values.max())), default=0) if len(keys) else 0
    dtype = object if most * max(len(keys), 1) >= 1 << 62 else np.int64
    exact_totals = np.zeros(len(places), dtype=dtype)
    np.add.at(exact_totals, of_group, exact_values.astype(dtype))
    return list(places), exact_totals


def all_groups(exact_tables: Iterable[ExactTable]) -> ExactTable:
    """Return one exact table of groups that come in several; the totals of the whole are in one of these."""
    exact_each = list(exact_tables)
    if len(exact_each) == 1:
        return exact_each[0]
    names = {name for exact in exact_each for name in exact.sums}
    exact_sums = {name: [value for exact in exact_each for value in exact.sums[name]] for name in sorted(names)}
    drawn = {column for exact in exact_each for column in exact.values}
    exact_values = {column: GroupedSteps.together(exact.values[column] for exact in exact_each) for column in drawn}
    exact_totals = next((exact.totals for exact in exact_each if exact.totals), {})
    return ExactTable([key for exact in exact_each for key in exact.keys], exact_sums, exact_values, exact_totals)


def with_values_of(plan: Plan, exact_scaled: ExactTable, exact_drawn: ExactTable) -> ExactTable:
    """Return the exact table of a mixed plan from those of its halves, whose groups are the same listed ones."""
    first = min(draw.column for draw in plan.quantiles)
    values = {column + first: each for column, each in exact_drawn.values.items()}
    return replace(exact_scaled, values=values)


@dataclass(frozen=True, repr=False)
class ExactIntegers:
    """A secret vector of sums, and the square of how far one unit can move it in L2. It prints as "withheld"."""

    values: Integers
    moves_squared: int

    def __repr__(self) -> str:
        return "ExactIntegers(withheld)"

    def __len__(self) -> int:
        return len(self.values)
