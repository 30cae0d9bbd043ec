"""Sensitivity: how far one unit can change a release, computed from the bounds only (docs/proofs/sensitivity.md)."""

from collections.abc import Sequence
from math import prod
from typing import Literal

from tacit.plan.bounds.caps import root_above
from tacit.plan.bounds.scaling import Vector
from tacit.plan.plan import Distinct, Measured, Part, Sensitivity


def sensitivity_of(
    parts: tuple[Part, ...],
    measured: tuple[Measured, ...],
    distincts: tuple[Distinct, ...] = (),
    *,
    rows_per_unit: int,
    groups_per_unit: int,
    neighbours: Literal["add-remove", "replace"],
) -> Sensitivity:
    """Return the exact L0, L1, squared L2 and L-infinity sensitivity of these parts over all groups.

    A unit touches at most g groups with at most r rows in each. The parts of one column are never negative and add up
    to the column's height in every row, so in one group they move by at most r·height in L1, and no more in L2.
    """
    groups = groups_per_unit
    if parts[0].kind == "distinct":
        most = spread = distincts[parts[0].index[0]].per_unit
    else:
        most, spread = _reach_in_one_group(parts, measured, rows_per_unit)
    if neighbours == "add-remove":
        return Sensitivity(l0=groups * len(parts), l1=most * groups, l2_squared=most * most * groups, linf=most)
    # the unit's old groups empty and its new groups fill: 2g groups; or both in the same groups, if signs can differ
    return Sensitivity(
        l0=2 * groups * len(parts),
        l1=2 * most * groups,
        l2_squared=max(2 * most * most, spread * spread) * groups,
        linf=max(most, spread),
    )


def _reach_in_one_group(parts: tuple[Part, ...], measured: tuple[Measured, ...], rows: int) -> tuple[int, int]:
    """Return the most that one unit adds to a group, and the largest difference of two units' additions."""
    first = parts[0]
    if first.kind == "units":
        return 1, 1
    if first.kind == "rows":
        return rows, rows
    if first.column is None:
        raise ValueError("a part of this kind must name its column")
    column = measured[first.column]
    if first.kind == "total":
        lowest, highest = min(column.low, 0), max(column.high, 0)
        return max(-lowest, highest) * rows, (highest - lowest) * rows
    return whole_of(first, measured) * rows, whole_of(first, measured) * rows


def whole_of(part: Part, measured: Sequence[Measured]) -> int:
    """Return what the parts of one row add up to: the height, and for Bernstein parts the product of all heights."""
    if part.column is None:
        return 1
    degrees = part.degrees or (1,)
    return prod(measured[column].height ** degree for column, degree in zip(part.columns, degrees, strict=True))


def sensitivity_of_vector(vector: Vector, *, norm: int, replaced: bool, cells: int) -> Sensitivity:
    """Return how far one unit can move a scaled vector over all groups, in fine steps.

    One that replaces another moves by twice the cap, in L2 by its √2-fold if no number is negative. `cells` is 1 only
    if there is a single group in all.
    """
    signed = vector.kind == "centred"
    one = vector.cap if norm == 1 else vector.cap * root_above(cells)
    return _sensitivity(vector.cap, one, cells, replaced=replaced, signed=signed)


def sensitivity_of_totals(vector: Vector, *, replaced: bool) -> Sensitivity:
    """Return how far one unit can move both totals of a vector: together at most its tail (docs/proofs/scaling.md)."""
    return _sensitivity(vector.tail, vector.tail, 2, replaced=replaced, signed=vector.totals == "signed")


def _sensitivity(length: int, sum_most: int, numbers: int, *, replaced: bool, signed: bool) -> Sensitivity:
    """Return the sensitivity of these numbers: one unit's are of this length at most, and add up to `sum_most`."""
    if not replaced:
        return Sensitivity(l0=numbers, l1=sum_most, l2_squared=length * length, linf=length)
    linf = 2 * length if signed else length
    if numbers == 1:
        return Sensitivity(l0=1, l1=linf, l2_squared=linf * linf, linf=linf)
    return Sensitivity(l0=2 * numbers, l1=2 * sum_most, l2_squared=(4 if signed else 2) * length**2, linf=linf)
