"""What coded rows add up to, said again row by row in Python's own integers and fractions: the slow oracle."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from math import isqrt
from typing import Any

import pyarrow as pa

from tacit.plan import LINK_REACH, LINK_SHIFT, SCORE_BITS, UNIT, ClassTarget, CodedPlan, Measured, Scores, link_table

Row = dict[str, Any]


def rows_of(table: pa.Table, plan: CodedPlan) -> list[tuple[Row, int]]:
    """Return the rows that count, each with how many rows its unit has."""
    rows = [row for row in table.to_pylist() if plan.unit is None or row[plan.unit] is not None]
    units = [row[plan.unit] if plan.unit else object() for row in rows]
    return [(row, units.count(unit) if plan.unit else 1) for row, unit in zip(rows, units, strict=True)]


def steps_of(value: Any, grid: Measured) -> int | None:
    """Return a number's whole steps above the low end of its range."""
    if value is None or value != value:
        return None
    nearest = (
        (Fraction(value) / grid.step + Fraction(1, 2)) // 1 if abs(value) < 10**9 else 10**9 * (1 if value > 0 else -1)
    )
    return min(max(nearest, grid.low), grid.high) - grid.low


def cell_of(row: Row, plan: CodedPlan, index: int) -> int:
    """Return the cell of a row in a column."""
    column = plan.columns[index]
    if column.of == "unit":
        return max(place for place, edge in enumerate(column.edges) if edge <= row["_own"][1])
    if column.of == "before":
        return column.cells - 1 if row["_own"][0] is None else cell_of(row["_own"][0], _as_row(plan, index), index)
    value = row[column.expression.name]  # type: ignore[union-attr]
    if column.measured is None:
        return column.listed.index(value) if value in column.listed else column.cells - 1
    steps = steps_of(value, column.measured)
    if steps is None:
        return column.cells - 1
    return max(place for place, edge in enumerate(column.edges) if edge <= steps)


def _as_row(plan: CodedPlan, index: int) -> CodedPlan:
    columns = list(plan.columns)
    columns[index] = replace(columns[index], of="row")
    return replace(plan, columns=tuple(columns))


def beside_rows_before(table: pa.Table, plan: CodedPlan, order: Callable[[Row], Any]) -> list[tuple[Row, int]]:
    """Return the rows that count, each beside the row before in an order and its unit's number of rows."""
    found, last = [], dict[Any, Row]()
    for row, alike in sorted(rows_of(table, plan), key=lambda each: order(each[0])):
        found.append(({**row, "_own": (last.get(row[plan.unit]), alike)}, alike))
        last[row[plan.unit]] = row
    return found


def counts(table: pa.Table, plan: CodedPlan, rows: list[tuple[Row, int]] | None = None) -> list[int]:
    """Return the weight of units in each cell."""
    found = [[0] * column.cells for column in plan.columns]
    for row, alike in rows_of(table, plan) if rows is None else rows:
        for index, block in enumerate(found):
            block[cell_of(row, plan, index)] += UNIT // alike
    return [number for block in found for number in block]


def pair_counts(table: pa.Table, plan: CodedPlan, pairs: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Return the weight of units in each cell of pairs of columns."""
    found = [[0] * (plan.columns[first].cells * plan.columns[second].cells) for first, second in pairs]
    for row, alike in rows_of(table, plan):
        for block, (first, second) in zip(found, pairs, strict=True):
            block[cell_of(row, plan, first) * plan.columns[second].cells + cell_of(row, plan, second)] += UNIT // alike
    return found


def residual_vectors(row: Row, plan: CodedPlan, scores: Scores) -> list[int] | None:
    """Return a row's clipped residuals, one for each class; None where its target is missing."""
    target = scores.target
    if isinstance(target, ClassTarget):
        seen = target.classes[cell_of(row, plan, target.column)]
        observed = [UNIT * (seen == each + (scores.link != "softmax")) for each in range(scores.classes)]
        known = seen >= 0
    else:
        grid = plan.values[target.index]
        steps = steps_of(row[grid.expression.name], grid)  # type: ignore[union-attr]
        known = steps is not None
        observed = [(steps or 0) * UNIT // grid.height]
    if not known:
        return None
    total = [int(start) for start in scores.intercept]
    for index in scores.columns:
        table = scores.tables[index]
        for each in range(scores.classes):
            total[each] += int(table[each][cell_of(row, plan, index)])  # type: ignore[index]
    found = [seen - expected for seen, expected in zip(observed, expected_of(total, scores), strict=True)]
    square = sum(each * each for each in found)
    length = isqrt(square - 1) + 1 if square else 0
    if length <= scores.clip:
        return found
    return [(abs(each) * scores.clip // length) * (1 if each > 0 else -1) for each in found]


def expected_of(total: list[int], scores: Scores) -> list[int]:
    """Return what a model predicts, in steps of UNIT."""
    if scores.link == "identity":
        return [each * UNIT >> SCORE_BITS for each in total]
    table = link_table(scores.link)

    def looked_up(score: int) -> int:
        place = (score + (LINK_REACH << SCORE_BITS)) >> LINK_SHIFT
        return int(table[min(max(place, 0), len(table) - 1)])

    if scores.link != "softmax":
        return [looked_up(each) for each in total]
    weights = [looked_up(each - max(total)) for each in total]
    return [each * UNIT // sum(weights) for each in weights]


def residuals(table: pa.Table, plan: CodedPlan, scores: Scores) -> list[int]:
    """Return the sums of residuals by column, class and bin, then the intercept's."""
    blocks = [[[0] * plan.columns[index].cells for _ in range(scores.classes)] for index in scores.columns]
    intercept = [0] * scores.classes
    for row, alike in rows_of(table, plan):
        vector = residual_vectors(row, plan, scores)
        for each, size in enumerate(vector or ()):
            part = abs(size) // alike * (1 if size > 0 else -1)
            intercept[each] += part
            for block, index in zip(blocks, scores.columns, strict=True):
                block[each][cell_of(row, plan, index)] += part
    return [number for block in blocks for line in block for number in line] + intercept
