"""Tables of a workload that share cells, fitted together: post-processing of released integers by public facts.

Tables of counts over the same rows, grouped by some of the same keys, must agree where they overlap. They do if every
row of the question is in one cell of each table, which its filter must prove. The fit is least squares by main effects
and interactions, as of totals (docs/proofs/totals.md). `consistent=True` then shows the tables of largest entropy near
it, which have no negative count; their intervals stay those of the unbiased numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import prod, sqrt
from typing import Any

import numpy as np

from tacit.answer.answer import Answer, AnswerInfo, AnswerRows
from tacit.answer.totals import cube_of, fit_cube, fitted_width, with_error
from tacit.numbers import Floats
from tacit.plan import ENTROPY_SLACK, CountRows, Plan
from tacit.query import Call, Expression, PostProcessing, Scalar, Value
from tacit.release import NoisyTable

FITTED = "Counts of tables that share cells were fitted together, and agree where they overlap."
STEPS, MARGIN_ROUNDS, POTENTIAL_MOST = 80, 3, 12
LEAST = 1e-9

Axis = tuple[Expression, tuple[Scalar, ...]]


@dataclass(frozen=True)
class Fitted:
    """The plans and tables of a workload after the fit, and the cells of each fitted table as an array."""

    plans: list[Plan]
    noisy: list[NoisyTable]
    notes: tuple[str, ...] = ()
    tables: Mapping[int, tuple[Floats, float]] = field(default_factory=dict)  # fitted cells, and their own noise
    total: float = 0.0


def fitted_together(
    plans: Sequence[Plan], noisy: Sequence[NoisyTable], confidence: Fraction, rows: Sequence[object]
) -> Fitted:
    """Return the plans and tables of a workload; those that share cells are replaced by their least squares.

    `rows` tells the rows of each table apart: a join, or one side of a holdout, may have the name of its table.
    """
    groups: dict[Any, list[int]] = {}
    for at, (plan, table, own) in enumerate(zip(plans, noisy, rows, strict=True)):
        if _is_counted_whole(plan, table):
            groups.setdefault((own, plan.table, plan.version, plan.where), []).append(at)
    made, tables = [*plans], [*noisy]
    cells: dict[int, tuple[Floats, float]] = {}
    total = 0.0
    for members in groups.values():
        if len(members) < 2:
            continue
        axes = [_axes(plans[at], noisy[at]) for at in members]
        index = {axis: place for place, axis in enumerate(dict.fromkeys(axis for own in axes for axis in own))}
        sizes = [len(values) for _, values in index]
        shown = [tuple(index[axis] for axis in own) for own in axes]
        kept = [tuple(sorted(each)) for each in shown]
        own_variance = [float(plans[at].releases[0].law.variance()) for at in members]
        asked: dict[tuple[int, ...], tuple[Floats, float]] = {}
        for at in dict.fromkeys(members[[id(noisy[each]) for each in members].index(id(noisy[at]))] for at in members):
            place = members.index(at)
            values = np.array(noisy[at].parts[0][0], dtype=np.float64).reshape([sizes[axis] for axis in shown[place]])
            one = _moved(values, shown[place], kept[place]).ravel(), own_variance[place]
            asked[kept[place]] = _weighed(one, asked.get(kept[place]))
        fit = fit_cube(sizes, asked, kept)
        total = max(float(fit_cube(sizes, asked, [()]).values[0][0]), 1.0)
        for place, at in enumerate(members):
            back = _moved(fit.values[place].reshape([sizes[axis] for axis in kept[place]]), kept[place], shown[place])
            part = float(fit.variances[place][0]) / own_variance[place]
            made[at] = with_error(plans[at], fitted_width(part, plans[at], confidence))
            tables[at] = replace(noisy[at], parts=((tuple(np.rint(back).astype(np.int64).ravel().tolist()),),))
            cells[at] = back, sqrt(own_variance[place])
    return Fitted(made, tables, (FITTED,) if cells else (), cells, total)


def _weighed(one: tuple[Floats, float], other: tuple[Floats, float] | None) -> tuple[Floats, float]:
    """Return the best estimate from a table and another release of it, and its variance."""
    if other is None:
        return one
    share = other[1] / (one[1] + other[1])
    return share * one[0] + (1 - share) * other[0], share * one[1]


def shown_as_possible(answer: Answer, fitted: Fitted, at: int) -> Answer:
    """Return an answer with the table of largest entropy near its fitted counts, in intervals that hold them."""
    if at not in fitted.tables or fitted.plans[at].after != PostProcessing():
        return answer
    cells, deviation = fitted.tables[at]
    (name,) = (output.name for output in fitted.plans[at].outputs)
    found = entropic(cells, _margins(fitted, at), deviation, fitted.total)
    columns: dict[str, Sequence[Any]] = {each: [row[each] for row in answer.rows] for each in answer.names}
    columns[name] = np.rint(found.ravel() * fitted.total).astype(np.int64).tolist()
    columns[f"{name}_low"] = [min(each) for each in zip(columns[f"{name}_low"], columns[name], strict=True)]
    columns[f"{name}_high"] = [max(each) for each in zip(columns[f"{name}_high"], columns[name], strict=True)]
    return replace(answer, rows=AnswerRows(columns))


def _margins(fitted: Fitted, at: int) -> list[Floats]:
    """Return the share of each value of each key: the nearest possible one to the fitted counts."""
    cells, _ = fitted.tables[at]
    every = range(cells.ndim)
    sums = [cells.sum(axis=tuple(other for other in every if other != axis)) for axis in every]
    return [nearest_possible(each, fitted.total) / fitted.total + LEAST for each in sums]


def nearest_possible(values: Floats, total: float) -> Floats:
    """Return the nearest numbers that are not negative and have this sum.

    >>> nearest_possible(np.array([3.0, -1.0, 1.0]), 3.0).tolist()
    [2.5, 0.0, 0.5]
    """
    falling = np.sort(values)[::-1]
    moves = (np.cumsum(falling) - total) / np.arange(1, len(falling) + 1)
    last = int(np.nonzero(falling - moves > 0)[0][-1])
    return np.asarray(np.maximum(values - moves[last], 0.0))


def entropic(cells: Floats, margins: Sequence[Floats], deviation: float, total: float) -> Floats:
    """Return shares of cells with these margins, of largest entropy with as much slack as the noise has.

    Cells that are noise become what independent keys would have; others stay near to their number.
    """
    base: Floats = np.ones(())
    for margin in margins:
        base = np.multiply.outer(base, margin)
    slack = ENTROPY_SLACK * deviation**2 / total
    found, target, potentials = base.copy(), cells / total, np.zeros_like(base)
    for _ in range(STEPS):
        step = found - target + slack * potentials
        potentials = np.clip(potentials - step / (slack + np.maximum(found, 1e-6)) / 2, -POTENTIAL_MOST, POTENTIAL_MOST)
        found = base * np.exp(potentials)
        for _ in range(MARGIN_ROUNDS):
            for axis, margin in enumerate(margins):
                others = tuple(other for other in range(found.ndim) if other != axis)
                ratio = margin / np.maximum(found.sum(axis=others), 1e-12)
                found = found * ratio.reshape([-1 if each == axis else 1 for each in range(found.ndim)])
    return found


def answer_of_parts(parts: Mapping[str, Answer], facts: AnswerInfo, notes: tuple[str, ...]) -> Answer:
    return Answer(AnswerRows({}), (), {}, (), replace(facts, notes=(*notes, *facts.notes)), parts=dict(parts))


# ---- Which tables share cells.


def _is_counted_whole(plan: Plan, noisy: NoisyTable) -> bool:
    """Whether a table counts all rows of its question, each in one cell: then tables of one question agree.

    Of people with several rows it would take one weight for all tables. A unit is one row here, so nothing is cut.
    """
    is_count = len(plan.outputs) == 1 and isinstance(plan.outputs[0], CountRows) and len(plan.releases) == 1
    is_plain = plan.scaling is None and not plan.levels and plan.threshold is None and not plan.quantiles
    one_row = plan.unit is None or plan.most_rows == 1
    if not (
        is_count
        and is_plain
        and one_row
        and plan.keys
        and plan.public_keys
        and plan.releases[0].parts[0].kind == "rows"
    ):
        return False
    return cube_of(noisy.keys) is not None and all(_is_listed(plan.where, axis) for axis in _axes(plan, noisy))


def _axes(plan: Plan, noisy: NoisyTable) -> list[Axis]:
    columns = zip(*noisy.keys, strict=True)
    return [(key.expression, tuple(dict.fromkeys(own))) for key, own in zip(plan.keys, columns, strict=True)]


def _is_listed(where: Expression | None, axis: Axis) -> bool:
    """Whether a filter keeps only rows whose key is one of these values."""
    if not isinstance(where, Call):
        return False
    if where.function == "and":
        return any(_is_listed(each, axis) for each in where.arguments)
    expression, values = axis
    if where.function != "in" or where.arguments[0] != expression:
        return False
    listed = [each.value for each in where.arguments[1:] if isinstance(each, Value)]
    return len(listed) == len(where.arguments) - 1 and set(listed) <= set(values)


def _moved(values: Floats, own: tuple[int, ...], order: tuple[int, ...]) -> Floats:
    """Return an array over some keys with its axes in another order."""
    return values.transpose([own.index(axis) for axis in order]) if prod(values.shape) else values
