"""A plan in words and numbers: the rows, the bounds, the noise, the cost, and the expected error in each cell."""

import math
from fractions import Fraction

from tacit.accounting import for_group, meaning_line
from tacit.answer import instead_words, is_scaled, least_shown
from tacit.forecast.scaled_text import (
    NULL_UNITS,
    expected_in_words,
    learned_words,
    scaled_reading,
    scaled_release,
    totals_lines,
)
from tacit.forecast.target import depends_on, expected_error, quantile_reach, rows_for_correlation
from tacit.noise import warning
from tacit.plan import (
    UNBOUNDED,
    Choice,
    Correlation,
    CountUnits,
    Measured,
    NoisyRelease,
    Plan,
    PlannedOutput,
    Quantile,
    QuantileDraw,
    Sum,
)
from tacit.privacy import PureLoss, StaircaseNoise, show
from tacit.query import after_in_words, name_of
from tacit.selection import TopK

GROUP_SIZES = (2, 5)
PEOPLE = (100, 10_000)
PATHS = {"kernel": "the compiled kernel", "rows": "compiled sums of rows", "sql": "SQL"}
PART_WORDS = {
    "rows": "rows",
    "units": "units",
    "missing": "rows without a value",
    "counted": "rows with a value",
    "below": "Σ(high − x)",
    "above": "Σ(x − low)",
    "total": "Σx",
}


def plan_in_words(plan: Plan, confidence: Fraction = Fraction(95, 100), *, path: str | None = None) -> str:
    """Return the plan for people, with the path it would take now. The text is free and reads no row."""
    lines = [f"Plan for {plan.table}: free, and no row is read.", *_reading(plan), *_groups(plan)]
    if path is not None:
        lines.append(f"Engine: {PATHS[path]}.")
    if plan.instead_of is not None:
        lines.append(instead_words(plan))
    for number, release in enumerate(plan.releases, 1):
        is_vector = release.parts[0].kind == "scaled"
        lines.extend((scaled_release if is_vector else _release)(number, release, plan))
    lines.extend(totals_lines(plan))
    lines.extend(level_lines(plan))
    for draw in plan.quantiles:
        lines.extend(_draw(draw, plan))
    if plan.choice is not None:
        return "\n".join([*lines, *_chosen(plan.choice, len(plan.public_keys or ()), confidence), *_promise(plan)])
    percent = f"{float(confidence) * 100:g} %"
    lines.append(f"Expected error ({percent} of answers are within):")
    lines.extend(f"  {output.name}: {expected_words(output, plan, confidence)}" for output in plan.outputs)
    after = after_in_words(plan.after, [output.name for output in plan.outputs])
    lines.extend([f"After the noise, free: {'; '.join(after)}."] if after else [])
    lines.extend(_promise(plan))
    return "\n".join(lines)


def level_lines(plan: Plan) -> list[str]:
    """Return which totals have separate noise."""
    lines = []
    for level in plan.levels:
        name = ", ".join(plan.keys[each].name for each in level.kept) or "all groups together"
        part = float(sum(release.share for release in level.releases))
        lines.append(f"Totals of {name}: separate noise for {part:.1%} of the loss, fitted to the groups.")
    return lines


def _reading(plan: Plan) -> list[str]:
    if plan.scaling is not None:
        return scaled_reading(plan)
    if plan.unit is None:
        return ["Unit: each row is its own. Neighbours: " + plan.neighbours + ".", *_learned(plan)]
    if plan.choice is not None:
        return [f"Unit: {plan.unit}; counted once for each key it has. {NULL_UNITS} Neighbours: {plan.neighbours}."]
    if plan.weighed and plan.groups_per_unit >= UNBOUNDED:
        evenly = f"{plan.unit}; every unit counts once, evenly in its groups"
        return [f"Unit: {evenly}. {NULL_UNITS} Neighbours: {plan.neighbours}."]
    bound = f"at most {_many(plan.groups_per_unit, 'group')}" if plan.keys else "one group"
    each = "each" if plan.keys else "it"
    rows = f"{_many(plan.rows_per_unit, 'row')} in {each}" if plan.needs_rows else f"counted once in {each}"
    return [
        f"Unit: {plan.unit}; {bound}, {rows}; the rest is left out at random, by a fresh salt. {NULL_UNITS} "
        f"Neighbours: {plan.neighbours}.",
        *_learned(plan),
    ]


def _learned(plan: Plan) -> list[str]:
    return [f"Bounds: learned for {learned_words(plan.learned)}, and free."] if plan.learned else []


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _groups(plan: Plan) -> list[str]:
    if not plan.keys:
        return ["Groups: one, the whole table."]
    if plan.choice is not None:
        return []
    least = f"groups with fewer than about {least_shown(plan):,} units are hidden" if _finds_groups(plan) else ""
    if plan.threshold is not None:
        return [f"Groups: found privately; {least} (δ = {show(plan.threshold.delta)})."]
    if any(not fact.entry for fact in plan.found_by):
        return [f"Groups: to be found first, once; {least}. The errors below are foreseen for a few groups."]
    count = len(plan.public_keys or ())
    if plan.found_by:
        return [f"Groups: {count:,} found earlier; {least}."]
    return [f"Groups: {_many(count, 'public key')}, all shown, empty ones with noise."]


def _finds_groups(plan: Plan) -> bool:
    return plan.threshold is not None or bool(plan.found_by)


def _release(number: int, release: NoisyRelease, plan: Plan) -> list[str]:
    far = release.sensitivity
    words = {"laplace": "Laplace noise of scale", "gaussian": "Gaussian noise of sigma"}
    law = f"{words[release.noise]} {show(release.scale)}" if release.noise in words else _staircase(release)
    of = "" if release.share == 1 else f", {show(release.share)} of the loss"
    return [
        f"Release {number}: {_what(release, plan)}{of}.",
        f"  sensitivity: L0 {far.l0}, L1 {far.l1:,}, L2 {_root(far.l2_squared)}, L∞ {far.linf:,} (in steps); "
        f"discrete {law} on each.",
    ]


def _staircase(release: NoisyRelease) -> str:
    event = release.event
    width = int(event.width) if isinstance(event, StaircaseNoise) else 0
    far = release.sensitivity.linf
    return f"staircase noise, level over {width:,} steps on either side and falling by e^ε every {far:,},"


def _what(release: NoisyRelease, plan: Plan) -> str:
    """Name the parts: those of one kind of moment together, and each column's range once."""
    columns = {place: _range(plan.measured[place]) for part in release.parts for place in part.columns}
    words = [PART_WORDS[part.kind] for part in release.parts if part.kind in PART_WORDS]
    moments = [part for part in release.parts if part.kind == "moment"]
    if moments:
        power = "moments" if len(columns) == 1 else "mixed moments"
        words.append(f"{len(moments)} parts that hold the {power} up to degree {max(moments[0].degrees)}")
    for part in release.parts:
        if part.kind == "distinct":
            wanted = plan.distincts[part.index[0]]
            name = name_of(wanted.expression)
            return f"different values of {name}, at most {wanted.per_unit:,} of one unit in a group"
    return " and ".join(words) + (f" of {' and '.join(columns.values())}" if columns else "")


def _range(column: Measured) -> str:
    name = name_of(column.expression)
    if column.counts_only:
        return name
    return f"{name} ({show(column.low * column.step)} to {show(column.high * column.step)}, step {show(column.step)})"


def _draw(draw: QuantileDraw, plan: Plan) -> list[str]:
    column = plan.measured[draw.column]
    name = name_of(column.expression)
    shown = ", ".join(show(fraction) for fraction, _, _ in draw.targets)
    of = "" if draw.share == 1 else f", {show(draw.share)} of the loss"
    each = ", in all groups together" if draw.of == "people" else " and each of a unit's groups"
    lines = [
        f"Quantiles of {name} at {shown}{of}: exponential mechanism on a grid of step {show(column.step)}.",
        f"  {_many(draw.levels, 'level')} of splitting, ε = {show(draw.epsilon)} for each{each}.",
    ]
    if draw.ends:
        lines.append(
            f"  the width of each interval is drawn too, paid for here: {draw.ends} times ε = {show(draw.ends_epsilon)}"
            f"{each.replace(' and each', ' for each')}."
        )
    if draw.of == "people":
        lines.append("  of people: the rows of a unit share one vote, so that no bound per unit is needed.")
    return lines


def _chosen(choice: Choice, keys: int, confidence: Fraction) -> list[str]:
    top = TopK(k=choice.best, epsilon=choice.epsilon, monotone=choice.monotone, by=choice.by)
    short = top.error(confidence, candidates=keys)
    which = "most common" if choice.best == 1 else f"{choice.best} most common, in order,"
    left = "" if choice.best == 1 else " then left, each"
    return [
        f"Chosen: the {which} of {keys:,} keys, by {choice.by}; their counts of units stay secret.",
        f"  within {short:,} units of the most common{left}, {float(confidence) * 100:g} % of the time.",
    ]


def expected_words(output: PlannedOutput, plan: Plan, confidence: Fraction) -> str:
    """Return the error that one output is expected to have, in words."""
    if is_scaled(output, plan):
        return expected_in_words(output, plan, confidence)
    depends = depends_on(output, plan)
    if isinstance(output, Correlation) and (rows := rows_for_correlation(output, plan, confidence, spread=1 / 12)):
        return (
            f"about ± 0.1 takes {math.ceil(10 * rows):,} rows in a group, and {math.ceil(rows):,} or fewer"
            " give -1 to 1, if values spread evenly over their ranges; more rows if values lie closer together"
        )
    if depends == "data":
        return "depends on the group's size and spread; the answer states it"
    if isinstance(output, Quantile):
        reach, draw = quantile_reach(output, plan), plan.quantiles[output.draw]
        fraction = draw.targets[output.fraction][0]
        if fraction in (0, 1):
            side = "least" if fraction == 0 else "greatest"
            return f"about {reach:,} {draw.of} inside the {side}; the interval's other end is the range's"
        return f"an interval of about {reach:,} {draw.of} on either side of its rank"
    if depends == "rows":
        sizes = [
            f"± {_amount(expected_error(output, plan, confidence, rows=people) or 0)} for a group of {people:,}"
            for people in PEOPLE
        ]
        return "at most " + ", ".join(sizes) + " rows"
    bound = expected_error(output, plan, confidence) or 0
    if isinstance(output, CountUnits) and plan.threshold is not None:
        return f"± {_amount(bound)}, more on the low side for groups barely above the threshold"
    most = "at most " if isinstance(output, Sum) and plan.releases[output.release].parts[-1].kind == "moment" else ""
    return f"{most}± {_amount(bound)}"


def _amount(value: float) -> str:
    """Return a size for people: three digits that count, and whole thousands with their commas."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _promise(plan: Plan) -> list[str]:
    loss = plan.loss
    groups = [f"{size} together get {for_group(loss, size)}" for size in GROUP_SIZES]
    lines = [f"Loss: {loss} for one unit; {'; '.join(groups)}."]
    lines.append(f"Meaning: {meaning_line(loss)}.")
    lines.extend(warning(plan.spend.epsilon))
    if isinstance(loss, PureLoss):
        lines.append("Pure: the promise holds without exception (δ = 0).")
    return lines


def _root(squared: int) -> str:
    return f"{squared**0.5:,.6g}"
