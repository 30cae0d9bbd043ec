"""The bounds of an answer as data: learned facts, removed parts, and the parts that the intervals leave out.

All of it is released or public: noisy totals, facts that were paid for, and the plan. `bounds_words.py` puts it in
words.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.answer.anchors import Anchor, anchors, fine_per_step, vectors_of
from tacit.answer.missing import most_of_groups
from tacit.answer.moments import ScaledMoment, is_scaled_moment
from tacit.answer.scaled_columns import is_scaled
from tacit.plan import Mean, Plan, Vector
from tacit.query import name_of
from tacit.release import NoisyTable

Record = dict[str, Any]
SUM_OF = "the sum of "


def bounds_record(plan: Plan, noisy: NoisyTable, confidence: Fraction) -> Record:
    """Return what was learned, scaled and left out as plain values; empty if there are none."""
    record: Record = {}
    if plan.learned:
        record["learned"] = [
            {"what": fact.words, "epsilon": float(fact.epsilon), "entry": fact.entry or None, "time": fact.time or None}
            for fact in plan.learned
        ]
    if plan.learned_ranges:
        record["ranges"] = {
            name_of(column.expression): [float(end * column.step) for end in (column.low, column.high)]
            for column in plan.measured
            if column.expression in plan.learned_ranges
        }
    if plan.scaling is None:
        return record
    found = anchors(plan, noisy, confidence)
    record["scaled"] = [
        _scaled_record(plan.scaling.vectors[index], plan, found[index]) for index in _shown_vectors(plan)
    ]
    record["moments"] = [_moment(output, plan) for output in plan.outputs if is_scaled_moment(output, plan)]
    record["extremes"] = [
        _extremes(output, plan) for output in plan.outputs if is_scaled(output, plan) and isinstance(output, Mean)
    ]
    return record


def _shown_vectors(plan: Plan) -> list[int]:
    """Return the vectors that outputs are made of, those of a mean's rows included; signed ones only shift a mean."""
    used: dict[int, None] = {}
    for output in plan.outputs:
        if is_scaled(output, plan) and plan.scaling is not None:
            counting = plan.scaling.vectors[output.release].rows
            used[output.release if counting is None else counting] = None
        elif is_scaled_moment(output, plan) and plan.scaling is not None and not plan.keys:
            used[plan.scaling.vectors[output.release].rows or 0] = None
    return list(used)


def _moment(output: ScaledMoment, plan: Plan) -> Record:
    """Return the predicted parts of a variance, covariance or correlation: they are not measured."""
    vectors = vectors_of(plan)
    products, sides = vectors[output.release], vectors[output.release].factors or (0, 0)
    rows = vectors[products.rows or 0]
    known = [vector.outlook for vector in (rows, products) if vector.outlook is not None]
    return {
        "name": output.name,
        "of": "squares" if sides[0] == sides[1] else "products",
        "share_of_rows": 1 - min(known[0].kept, 1.0) if known else None,
        "share_of_products": 1 - min(known[-1].kept, 1.0) if known else None,
        "people_beyond_most": max((each.beyond_most for each in known), default=None),
    }


def _scaled_record(vector: Vector, plan: Plan, anchor: Anchor) -> Record:
    column = None if vector.column is None else plan.measured[vector.column]
    step = float(column.step) if column is not None and vector.kind == "centred" else 1.0
    per_step = step / float(fine_per_step(vector))
    record: Record = {
        "of": _name_of(vector, plan),
        "kind": vector.kind,
        "norm": plan.scaling.norm if plan.scaling is not None else None,
        "cap": vector.cap * per_step,
        "most": _most(vector) * per_step or None,
        "factor": float(anchor.factor),
        "factor_low": anchor.low,
        "factor_high": None if math.isinf(anchor.high) else anchor.high,
        "public_total": anchor.public_total,
        "foreseen": _foreseen(vector, anchor),
        "lost_times": _lost_times(plan),
    }
    if anchor.totals is not None:
        totals, high = anchor.totals, anchor.high
        record |= {
            "kept": totals.kept * step,
            "cut": totals.cut * step,
            "total": (totals.kept + totals.cut) * step,
            "total_error": totals.total_error * step,
            "share_cut": 1 - 1 / float(anchor.factor),
            "share_cut_low": 1 - 1 / anchor.low,
            "share_cut_high": 1.0 if math.isinf(high) else 1 - 1 / high,
        }
    outlook = vector.outlook
    if outlook is not None:
        record |= {
            "people": outlook.people,
            "people_scaled_least": outlook.scaled_least,
            "people_scaled_most": outlook.scaled_most,
            "lost_most": outlook.lost_most * step,
            "people_beyond_most": outlook.beyond_most,
        }
    return record


def _foreseen(vector: Vector, anchor: Anchor) -> float:
    """Return by which factor all groups together are lowered: as measured, or as foreseen."""
    outlook = vector.outlook
    if anchor.totals is not None or anchor.public_total is not None or outlook is None:
        return float(anchor.factor)
    return 1 / min(max(outlook.kept, 1e-9), 1.0)


def _lost_times(plan: Plan) -> float:
    """Return how many times what groups lose on average a group of mean size may have lost, by its interval."""
    groups = max(len(plan.public_keys or ()), 1)
    return groups * float(most_of_groups(np.full(groups, 1 / groups))[0])


def _most(vector: Vector) -> float:
    """Return the most that a person has in the table that intervals are about, in fine steps."""
    return float(vector.tail * 2**vector.tail_shift if vector.tail else vector.cap)


def _name_of(vector: Vector, plan: Plan) -> str:
    name = "" if vector.column is None else name_of(plan.measured[vector.column].expression)
    words = {
        "rows": "rows",
        "units": "memberships in groups",
        "counted": f"rows with {name}",
        "centred": f"{SUM_OF}{name}",
    }
    return words.get(vector.kind, vector.kind)


def _extremes(output: Mean, plan: Plan) -> Record:
    column, vector = plan.measured[output.column], vectors_of(plan)[output.release]
    per_step = float(column.step) / float(fine_per_step(vector))
    return {
        "name": output.name,
        "centre": float((column.low + vector.centre) * column.step),
        "most": _most(vector) * per_step,
        "people": None if vector.outlook is None else vector.outlook.people,
        "people_beyond_most": None if vector.outlook is None else vector.outlook.beyond_most,
    }
