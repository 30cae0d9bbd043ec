"""The bounds of an answer: learned facts, removed parts, and the parts that the intervals leave out; as data, in words.

All of it is released or public: noisy totals, facts that were paid for, and the plan. The record has every number for
programs; phrases and lines are made of it. If a share was measured, the measured one is printed and not the predicted
one, since the two may differ.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.answer.anchors import Anchor, anchors, fine_per_step, most_of_groups, vectors_of
from tacit.answer.moments import ScaledMoment, is_scaled_moment
from tacit.answer.scaled_columns import is_scaled
from tacit.numbers import show
from tacit.plan import (
    UNBOUNDED,
    Mean,
    Measured,
    Plan,
    PlannedOutput,
    Quantile,
    Vector,
    people_beyond_ranges,
)
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


TOO_FEW = (
    "There are too few people to learn bounds at this ε. The smallest caps were used, so results may be far too low."
)
OF_ALL_ROWS = (
    "The filter leaves too few people to learn their bounds at this ε. The bounds of all rows were used, so the noise"
    " may be larger than needed."
)
# The remedy in all three cases, for the line about a closer answer.
LEARN_MORE = "learn with more ε (table.learn), or declare rows_per_unit=, groups_per_unit= and between="
# How the words of a fact about a column's values begin.
SIZE_OF = "how large "
# The most columns that a line names; then it gives their number.
NAMED_MOST = 4


def warning_of(plan: Plan) -> str:
    """Return that too few people were seen to learn bounds; empty if enough were."""
    if any(each.outlook is not None and each.outlook.people <= 0 for each in _vectors(plan)):
        return TOO_FEW
    return filter_line(plan)


def filter_line(plan: Plan) -> str:
    """Return that a cap was read off what is known of all rows, though fewer are asked about; empty if it was not."""
    told = any(each.outlook is not None and each.outlook.of_all_rows for each in _vectors(plan))
    return OF_ALL_ROWS if told else ""


def _vectors(plan: Plan) -> tuple[Vector, ...]:
    return () if plan.scaling is None else plan.scaling.vectors


# ---- What the intervals leave out.


def left_out(plan: Plan, record: Record) -> list[str]:
    """Return what the intervals leave out of the table: rows, sums and values of a person beyond a cap or a range."""
    beyond = [
        f"values of {words.removeprefix(SIZE_OF).removesuffix(' is')} beyond 2^63 (about {people:,.0f} people)"
        for words, people in people_beyond_ranges(plan.learned).items()
        if words.startswith(SIZE_OF)
    ]
    if plan.scaling is not None:
        unknown = [] if _cuts_nobody(plan, plan.scaling.norm) else _caps(plan, record, are_known=False)
        return [*unknown, *beyond]
    return [*_beyond_bounds(plan), *_beyond_ranges(plan), *beyond]


def _cuts_nobody(plan: Plan, norm: int) -> bool:
    """Whether the declaration excludes people beyond the bounds given by hand."""
    if plan.most_rows is None or plan.by_hand.rows is None:
        return False
    groups = plan.by_hand.groups if plan.keys else 1
    return groups is not None and plan.most_rows <= plan.by_hand.rows * groups ** (1 / norm)


def _caps(plan: Plan, record: Record, *, are_known: bool) -> list[str]:
    """Return the caps that people may exceed: those of which it is known how many do, or the others."""
    found = [each for each in record["scaled"] if (each.get("people_beyond_most") is not None) is are_known]
    return [_beyond_cap(each, plan) for each in _limited(plan, found)]


def _limited(plan: Plan, vectors: Sequence[Record]) -> list[Record]:
    """Return the vectors that have a cap which someone may exceed; rows that several numbers are made of come once."""
    limited = [each for each in vectors if each["most"] and _may_be_beyond(each)]
    limited = [each for each in limited if plan.keys or each["kind"] != "units"]  # a unit is one unit
    rows = [each for each in limited if each["kind"] in ("rows", "counted")]
    if len({each["most"] for each in rows}) == 1:
        limited = [{**rows[0], "of": "rows"} if each is rows[0] else each for each in limited if each not in rows[1:]]
    return limited


def _may_be_beyond(each: Record) -> bool:
    most = each.get("people_beyond_most")
    return most is None or most > 0


def _beyond_cap(each: Record, plan: Plan) -> str:
    of = "groups" if each["kind"] == "units" else str(each["of"]).replace(SUM_OF, "a sum of ")
    by_hand, is_length = plan.by_hand, each["norm"] == 2 and each["kind"] in ("rows", "counted")
    is_given = by_hand.rows is not None and by_hand.groups is not None and each.get("people_beyond_most") is None
    if is_length and is_given:
        return f"{of} beyond {by_hand.rows:,} in each of {by_hand.groups:,} groups of one {plan.unit}"
    return f"{of} beyond {_exactly(each['most'])} of one {plan.unit}{_of_people(each)}"


def _of_people(each: Record) -> str:
    most, people = each.get("people_beyond_most"), each.get("people")
    if most is None or (people is not None and most >= people):
        return ""
    return f" (at most about {math.ceil(most):,} people)"


def _beyond_bounds(plan: Plan) -> list[str]:
    """Return the rows and values that bounds by hand leave out, if what they cut is not measured."""
    if plan.unit is None:
        return []
    found = []
    cuts_nobody = plan.most_rows is not None and plan.most_rows <= min(plan.rows_per_unit, plan.groups_per_unit)
    if plan.needs_rows and not cuts_nobody:
        groups = f" in each of {plan.groups_per_unit:,} groups" if plan.keys else ""
        found.append(f"rows beyond {plan.rows_per_unit:,}{groups} of one {plan.unit}")
    elif plan.keys and plan.groups_per_unit < UNBOUNDED and not cuts_nobody:
        found.append(f"groups beyond {plan.groups_per_unit:,} of one {plan.unit}")
    where = " in a group" if plan.keys else ""
    return found + [
        f"different values of {name_of(each.expression)} beyond {each.per_unit:,} of one {plan.unit}{where}"
        for each in plan.distincts
    ]


def _beyond_ranges(plan: Plan) -> list[str]:
    """Return the learned ranges that values are clipped to; only the least and greatest of quantiles need them."""
    drawn = {draw.column for draw in plan.quantiles if all(0 < fraction < 1 for fraction, _, _ in draw.targets)}
    return [
        f"values of {name_of(column.expression)} outside the learned range {_range_words(column)}"
        for place, column in enumerate(plan.measured)
        if column.expression in plan.learned_ranges and not column.counts_only and place not in drawn
    ]


def allowed_for(plan: Plan, record: Record) -> list[str]:
    """Return what is not counted and foreseen, so that the intervals allow for it: rows and sums beyond a cap."""
    if plan.scaling is None:
        return []
    caps = _caps(plan, record, are_known=True)
    extremes = [each for each in (*record["extremes"], *record["moments"]) if each["people_beyond_most"] is not None]
    return [
        *caps,
        *(f"extreme values in {each['name']}{_of_people(each)}" for each in extremes if _may_be_beyond(each)),
    ]


def _range_words(column: Measured) -> str:
    low, high = (_exactly(float(end * column.step)) for end in (column.low, column.high))
    return f"{low} to {high}"


# ---- Details: every fact about the bounds, a line each.


def bounds_lines(plan: Plan, record: Record) -> tuple[str, ...]:
    """Return every fact about an answer's bounds: removed parts, restored parts, and learned facts."""
    lines = [warning_of(plan), filter_line(plan)]
    vectors = record.get("scaled", [])
    lines += [_removed(each, plan) for each in vectors if _may_be_cut(each)]
    lines += [_moment_line(each) for each in record.get("moments", []) if plan.keys]
    lines += [f"Not counted: {phrase}. The intervals allow for it." for phrase in allowed_for(plan, record)]
    lines += [f"The intervals leave out {phrase}." for phrase in left_out(plan, record)]
    lines += learned_lines(plan)
    return tuple(line for line in dict.fromkeys(lines) if line)


def learned_lines(plan: Plan) -> list[str]:
    """Return the learned facts: each with its price and its ledger entry. Later questions use them for free."""
    return [
        f"Learned for ε = {show(fact.epsilon)}{f' (entry {fact.entry})' if fact.entry else ''}, free for later"
        f" questions: {fact.words}."
        for fact in plan.learned
    ]


def _may_be_cut(each: Record) -> bool:
    return bool(each["factor_high"] != 1.0 or each["foreseen"] != 1.0)


def _removed(each: Record, plan: Plan) -> str:
    """Return which share of a vector down-weighting removed, measured if it was, and how it was put back."""
    of = _the(each["of"])
    if each["public_total"] is not None:
        rows = f"the declared {each['public_total']:,} rows"
        return (
            f"All counts were scaled up by {each['factor']:.4g} to {rows}."
            " If rows are in no listed group, all counts are too high."
        )
    if "share_cut" not in each:
        return (
            f"{_who(each)}Down-weighting removed about {_share_words(1 - 1 / each['foreseen'])} of {of}, by the"
            " learned facts. The intervals allow for it."
        )
    if each["factor_high"] is None:
        return f"The share of {of} that down-weighting removed is not known. The intervals allow for all of it."
    if each["factor"] == 1.0:
        return f"Down-weighting removed no measurable part of {of} (at most {_share_words(each['share_cut_high'])})."
    share = (
        f"about {_share_words(each['share_cut'])} of {of} ({_between(each['share_cut_low'], each['share_cut_high'])})"
    )
    total = f"{_amount(each['total'])} ± {_amount(each['total_error'])}"
    groups = "all groups were" if plan.keys else "the result was"
    return f"Down-weighting removed {share}; {groups} scaled up to the measured total, {total}."


def _who(each: Record) -> str:
    """Return the down-weighted people, and a bound on their number; empty if that is not known.

    People below the total cap never are: in the L2 norm, the cap is larger for rows in several groups.
    """
    people, most = each.get("people"), each.get("people_scaled_most")
    if each["kind"] != "rows" or not people or most is None or most >= people or not each["cap"]:
        return ""
    share = f"at most about {_share_words(max(most, 1) / people)} of people"
    return f"People with more than about {_amount(each['cap'])} rows may be down-weighted ({share}). "


def _the(of: str) -> str:
    return of if of.startswith(SUM_OF) else f"the {of}"


def _between(low: float, high: float) -> str:
    return f"{' to '.join(_digits(100 * end, 100 * (high - low)) for end in (low, high))} %"


def _moment_line(each: Record) -> str:
    if each["share_of_rows"] is None:
        return ""
    rows, products = (_share_words(each[name]) for name in ("share_of_rows", "share_of_products"))
    return (
        f"{each['name']} was computed after down-weighting, which by the learned facts removed about {rows} of the rows"
        f" and {products} of the {each['of']} about the mean. The intervals allow for the difference."
    )


def named(names: Sequence[str]) -> str:
    """Return names; of many, the first ones and how many more there are."""
    if len(names) <= NAMED_MOST:
        return ", ".join(names)
    return f"{', '.join(names[: NAMED_MOST - 1])} and {len(names) - NAMED_MOST + 1} more"


def is_of_people(output: PlannedOutput, plan: Plan) -> bool:
    """Whether a quantile is of people, so that no row of theirs was left out by a bound on rows."""
    return isinstance(output, Quantile) and plan.quantiles[output.draw].of == "people"


# ---- Numbers in words.


def _share_words(share: float) -> str:
    """Return a share in percent, with two significant digits."""
    if share <= 0:
        return "0 %"
    return f"{share * 100:.2g} %" if share < 0.995 else "100 %"


def _digits(value: float, width: float) -> str:
    """Return a number with the decimals that the two ends of an interval of this width need to differ."""
    decimals = min(max(1 - math.floor(math.log10(width)), 0), 9) if width > 0 else 2
    return f"{value:.{decimals}f}"


def _exactly(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.4g}"


def _amount(value: float) -> str:
    """Return a number with three or four significant digits, and commas."""
    if abs(value) < 100:
        return f"{value:.3g}"
    digits = 4 - math.ceil(math.log10(abs(value)))
    return f"{round(value, min(digits, 0)):,.0f}"
