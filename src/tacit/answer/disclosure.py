"""What an answer says of its bounds: what was learned, what was scaled away, and what no bar holds. As data and lines.

All of it is released or public: noisy totals, facts that were paid for, and the plan. The lines are for people and say
at most a few numbers each; `bounds_record` has all of them for programs.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from tacit.answer.anchors import Anchor, anchors, fine_per_step, vectors_of
from tacit.answer.columns import measured_cut
from tacit.answer.scaled_columns import is_scaled, mean_shift
from tacit.plan import (
    UNBOUNDED,
    CountRows,
    CountValues,
    Mean,
    Measured,
    Plan,
    PlannedOutput,
    Quantile,
    Sum,
    Vector,
)
from tacit.privacy import show
from tacit.release import NoisyTable

Record = dict[str, Any]
SUM_OF = "the sum of "
TOO_FEW = (
    "Too few people to learn bounds from at this ε: the caps are the least there are, and numbers may be far too low."
    " Learn with more ε, or give what you know: rows_per_unit=, groups_per_unit=, between=."
)
# At most about this many scales of noise are in a bin of a profile and not seen.
UNSEEN = 3
# What a public number of rows is of, where bounds are given by hand.
ROWS_BY_HAND = Vector("rows", cap=0)


def bounds_record(plan: Plan, noisy: NoisyTable, confidence: Fraction) -> Record:
    """Return what was learned, scaled and left out as plain values; empty where nothing was."""
    record: Record = {}
    if plan.learned:
        record["learned"] = [
            {"what": fact.words, "epsilon": float(fact.epsilon), "entry": fact.entry or None, "time": fact.time or None}
            for fact in plan.learned
        ]
    if plan.scaling is None:
        by_hand = measured_cut(plan, noisy, confidence)
        vector = plan.measured_totals[0] if plan.measured_totals else ROWS_BY_HAND
        return record if by_hand is None else record | {"left_out": [_scaled(vector, plan, by_hand)]}
    found = anchors(plan, noisy, confidence)
    record["scaled"] = [_scaled(plan.scaling.vectors[index], plan, found[index]) for index in _shown(plan)]
    record["shifted"] = [
        _shifted(output, plan, noisy, confidence)
        for output in plan.outputs
        if is_scaled(output, plan) and isinstance(output, Mean)
    ]
    return record


def bounds_lines(plan: Plan, record: Record) -> tuple[str, ...]:
    """Return the lines below an answer: what was learned, what was scaled away, and what nobody counts beyond."""
    if plan.scaling is None:
        return _dropping_lines(plan, record.get("left_out", []))
    vectors = record["scaled"]
    lines = [_learned_line(plan, vectors), TOO_FEW if is_unlearned(plan) else ""]
    lines += [_cut_line(each) for each in vectors if each["factor_high"] != 1.0 or each["foreseen"] != 1.0]
    lines += _shift_lines(record["shifted"])
    lines.append(_tail_line(vectors, record["shifted"]))
    return tuple(line for line in lines if line)


def is_unlearned(plan: Plan) -> bool:
    """Whether too few people are in a profile to read a cap off it, so that the cap is the least there is."""
    outlooks = (vector.outlook for vector in plan.scaling.vectors) if plan.scaling is not None else ()
    return any(outlook is not None and outlook.people <= 0 for outlook in outlooks)


def _shown(plan: Plan) -> list[int]:
    """Return the vectors that outputs are made of, those of a mean's rows included; signed ones only shift a mean."""
    used: dict[int, None] = {}
    for output in plan.outputs:
        if is_scaled(output, plan) and plan.scaling is not None:
            counting = plan.scaling.vectors[output.release].rows
            used[output.release if counting is None else counting] = None
    return list(used)


def _scaled(vector: Vector, plan: Plan, anchor: Anchor) -> Record:
    column = None if vector.column is None else plan.measured[vector.column]
    step = float(column.step) if column is not None and vector.kind == "centred" else 1.0
    per_step = step / float(fine_per_step(vector))
    record: Record = {
        "of": _name_of(vector, plan),
        "norm": None if plan.scaling is None else plan.scaling.norm,
        "cap": None if plan.scaling is None else vector.cap * per_step,
        # without totals the cap itself is what nobody counts beyond
        "most": (vector.tail * 2**vector.tail_shift if vector.tail else vector.cap) * per_step or None,
        "factor": float(anchor.factor),
        "factor_low": anchor.low,
        "factor_high": None if math.isinf(anchor.high) else anchor.high,
        "foreseen": anchor.foreseen,
        "public_total": anchor.public_total,
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
            "people_scaled": outlook.scaled,
            "people_beyond": outlook.beyond,
            "people_beyond_most": outlook.beyond_most,
        }
    return record


def _name_of(vector: Vector, plan: Plan) -> str:
    column = None if vector.column is None else plan.measured[vector.column].expression
    name = getattr(column, "name", "an expression")
    words = {
        "rows": "rows",
        "units": "memberships in groups",
        "counted": f"rows with {name}",
        "missing": f"rows without {name}",
        "centred": f"{SUM_OF}{name}",
    }
    return words.get(vector.kind, vector.kind)


def _shifted(output: Mean, plan: Plan, noisy: NoisyTable, confidence: Fraction) -> Record:
    shift, error = mean_shift(output, plan, noisy, confidence)
    column, vector = plan.measured[output.column], vectors_of(plan)[output.release]
    per_step = float(column.step) / float(fine_per_step(vector))
    return {
        "name": output.name,
        "shift": shift,
        "error": error,
        "centre": float((column.low + vector.centre) * column.step),
        "most": (vector.tail * 2**vector.tail_shift if vector.tail else vector.cap) * per_step,
    }


def _learned_line(plan: Plan, vectors: Sequence[Record]) -> str:
    """Return what was paid for once, and from which size on people count for less."""
    if not plan.learned:
        return ""
    entries = sorted({fact.entry for fact in plan.learned if fact.entry})
    where = f" ({'entry' if len(entries) == 1 else 'entries'} {', '.join(map(str, entries))})" if entries else ""
    spent = show(sum((fact.epsilon for fact in plan.learned), Fraction(0)))
    words = sorted(dict.fromkeys(fact.words for fact in plan.learned), key=lambda each: not each.startswith("how many"))
    more = f", and {len(words) - 1} more" if len(words) > 1 else ""
    line = f"Learned once for ε = {spent}{where}, free from now on: {words[0]}{more}."
    whole = next((each for each in vectors if each.get("people")), None)
    if whole is None or not plan.keys or plan.scaling is None:
        return line
    share = min(whole["people_scaled"] / whole["people"], 1.0)
    more = f"about {_percent(share)} have more, and count for less" if share >= 5e-5 else "few or none have more"
    return f"{line} People count in full up to {_full(whole)}; {more}."


def _full(each: Record) -> str:
    """Return up to where people count in full: with the L2 norm, more in different groups than in one."""
    if each["of"].startswith(SUM_OF):
        of = each["of"].removeprefix(SUM_OF)
        return f"about {_amount(each['cap'])} of {of}{'' if each['norm'] == 1 else ' in one group'}"
    size = each["cap"] if each["norm"] == 1 else each["cap"] ** 2
    apart = each["norm"] != 1 and not each["of"].endswith("in groups")
    return f"about {_amount(size)} {each['of']}{' in different groups' if apart else ''}"


def _cut_line(each: Record) -> str:
    """Return what share was scaled away, and what the groups were scaled up by and to."""
    what = each["of"]
    if each["public_total"] is not None:
        to = f"the declared {each['public_total']:,} rows; rows in no listed group would make all of them too high"
        return f"All counts are scaled up by {each['factor']:.4g} to {to}. {_bars(each)}"
    if "share_cut" not in each:
        return (
            f"About {_percent(1 - 1 / each['foreseen'])} of {what} are scaled away, as facts foretell; bars allow it."
        )
    if each["factor_high"] is None:
        return (
            f"The totals of {what} are too small to tell what was scaled away; bars allow for all that may have been."
        )
    if each["factor"] == 1.0:
        most = _percent(each["share_cut_high"])
        return f"Nothing of {what} is known to be scaled away, at most {most}; nothing is scaled up."
    total = f"{_amount(each['total'])} ± {_amount(each['total_error'])}"
    scaled = f"all groups are scaled up by {each['factor']:.4g} to the measured total, {total}"
    return f"{_share_line(each)}; {scaled}. {_bars(each)}"


def _share_line(each: Record) -> str:
    away = "Scaled away" if each["cap"] is not None else "Left out by the bounds"
    if "share_cut" not in each:
        return f"{away}: about {_percent(1 - 1 / each['factor'])} of {each['of']}"
    low, high = each["share_cut_low"], each["share_cut_high"]
    between = " to ".join(_digits(100 * end, 100 * (high - low)) for end in (low, high))
    return f"{away}: {_percent(each['share_cut'])} of {each['of']} ({between} %)"


def _bars(each: Record) -> str:
    off = max(each["factor_high"] - each["factor"], each["factor"] - each["factor_low"]) / each["factor"]
    together = f"{_percent(off)}" if off < 1 else f"a factor of up to {1 + off:.2g}"
    return (
        "Bars reach from a group that lost none to one that lost half as much again; all groups may be too high or too"
        f" low together by {together}."
    )


def _shift_lines(shifted: Sequence[Record]) -> list[str]:
    moved = [f"{each['name']} by {each['shift']:+.3g} ± {each['error']:.2g}" for each in shifted if each["error"]]
    return [f"Means are shifted to that of the whole table: {', '.join(moved)}."] if moved else []


def _tail_line(vectors: Sequence[Record], shifted: Sequence[Record] = ()) -> str:
    """Return what the bars are about, and who is in none of them."""
    limited = [each for each in vectors if each["most"]]
    if not limited:
        return ""
    most = " or ".join(
        [f"{_exactly(each['most'])} {_of(each)}" for each in limited]
        + [f"{_exactly(each['most'])} above or below {each['centre']:.4g} in {each['name']}" for each in shifted]
    )
    line = f"Bars are about a table in which nobody counts for more than {most}"
    known = [each for each in limited if "people_beyond" in each]
    if not known:
        return f"{line}; what people have beyond it is in no bar."
    about, unseen = (max(each[name] for each in known) for name in ("people_beyond", "people_beyond_most"))
    who = (
        f"about {about:,.0f} people (at most {math.ceil(unseen):,})"
        if round(about)
        else f"at most {math.ceil(unseen):,} people"
    )
    return f"{line}; {who} have more, and what they have beyond it is in no bar."


def _of(each: Record) -> str:
    words = str(each["of"]).replace("the sum of", "of")
    return words.replace("rows", "row").replace("memberships", "membership") if each["most"] == 1 else words


def _dropping_lines(plan: Plan, left_out: Sequence[Record]) -> tuple[str, ...]:
    """Return what is said where units are bounded by dropping, or rows by a range that was learned."""
    lines = [_learned_line(plan, left_out)]
    scaled_up = [output for output in plan.outputs if isinstance(output, CountRows | CountValues | Sum)]
    others = [output.name for output in plan.outputs if output not in scaled_up and not is_of_people(output, plan)]
    kept = f"of the rows that were kept, as are their bars: {', '.join(others)}."
    if left_out and scaled_up:
        lines += [_cut_line(each) for each in left_out]
        lines += [_tail_line(left_out), f"Not scaled up, but {kept}" if others else ""]
    elif left_out:
        lines += [f"{_share_line(each)}. Numbers here are {kept}" for each in left_out]
    elif plan.learned:
        lines += _bound_lines(plan)
    return tuple(line for line in lines if line)


def is_of_people(output: PlannedOutput, plan: Plan) -> bool:
    """Whether a quantile is of people, so that no row of theirs was left out by a bound on rows."""
    return isinstance(output, Quantile) and plan.quantiles[output.draw].of == "people"


def _bound_lines(plan: Plan) -> list[str]:
    """Return learned bounds whose cut is not measured."""
    lines = []
    if plan.unit is not None and plan.needs_rows:
        groups = f" in each of {plan.groups_per_unit:,} groups" if plan.keys else ""
        rows = f"A {plan.unit} counts with at most {plan.rows_per_unit:,} rows{groups}"
        lines.append(f"{rows}; what it has beyond them is left out at random, and is in no bar.")
    elif plan.unit is not None and plan.keys and plan.groups_per_unit < UNBOUNDED:
        groups = f"A {plan.unit} counts in at most {plan.groups_per_unit:,} groups"
        lines.append(f"{groups}; what it has beyond them is left out at random, and is in no bar.")
    for each in plan.distincts:
        name = getattr(each.expression, "name", "the expression")
        most = f"A {plan.unit} counts with at most {each.per_unit:,} different values of {name} in a group"
        lines.append(f"{most}; what it has beyond them is in no bar.")
    if plan.unit is None:
        unseen = max((UNSEEN * float(scale) for fact in plan.learned for scale in fact.scales[:1]), default=0.0)
        lines += [_range_line(column, unseen) for column in plan.measured if not column.counts_only]
    return lines


def _range_line(column: Measured, unseen: float) -> str:
    name = getattr(column.expression, "name", "the expression")
    low, high = (_exactly(float(end * column.step)) for end in (column.low, column.high))
    return (
        f"{name}: a value above {high} counts as {high}, and one below {low} as {low}; nobody is known to be there (at"
        f" most about {math.ceil(unseen):,} people), and what they have beyond it is in no bar. Declare the range if it"
        " is public: the error is smaller."
    )


def _percent(share: float) -> str:
    """Return a share in percent, with two digits that count."""
    if share <= 0:
        return "0 %"
    return f"{share * 100:.2g} %" if share < 0.995 else "100 %"


def _digits(value: float, width: float) -> str:
    """Return a number with as many decimals as an interval of this width needs to show its two ends apart."""
    decimals = min(max(1 - math.floor(math.log10(width)), 0), 9) if width > 0 else 2
    return f"{value:.{decimals}f}"


def _exactly(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.4g}"


def _amount(value: float) -> str:
    """Return a number with three or four digits that count, and commas."""
    if abs(value) < 100:
        return f"{value:.3g}"
    digits = 4 - math.ceil(math.log10(abs(value)))
    return f"{round(value, min(digits, 0)):,.0f}"
