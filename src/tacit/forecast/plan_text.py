"""A plan in words and numbers: the rows, the bounds, the noise, the cost, and the expected error in each cell.

Before its facts are learned, a plan shows those facts and the range of its errors, from made-up facts: everyone has one
row, or many, and values spread evenly over their range.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from tacit.accounting import for_group, meaning_line
from tacit.answer import ScaledOutput, filter_line, is_scaled, least_shown
from tacit.forecast.target import (
    ForeseenError,
    depends_on,
    expected_error,
    farther_end,
    foreseen_error,
    foreseen_range,
    nothing_is_believed,
    quantile_reach,
    rows_for_correlation,
    sum_by_people,
    two_digits,
)
from tacit.noise import warning
from tacit.numbers import brief, show
from tacit.plan import (
    UNBOUNDED,
    Choice,
    Correlation,
    CountUnits,
    Fact,
    Mean,
    Measured,
    NoisyRelease,
    Plan,
    PlannedOutput,
    Quantile,
    QuantileDraw,
    Sum,
    Vector,
    WantedFact,
    noise_line,
)
from tacit.privacy import Loss, PureLoss, StaircaseNoise
from tacit.query import after_in_words, name_of
from tacit.selection import TopK

GROUP_SIZES = (2, 5)
SIZES = (100, 10_000)  # of groups, if their number is not public
NULL_UNITS = "Rows with a NULL unit never count."
NOISES = {"laplace": "Laplace noise of scale", "gaussian": "Gaussian noise of sigma"}
PATHS = {"kernel": "the compiled kernel", "sql": "SQL"}
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
    if line := noise_line(plan):
        lines.append(line)
    for number, release in enumerate(plan.releases, 1):
        is_vector = release.parts[0].kind == "scaled"
        lines.extend((scaled_release if is_vector else _release)(number, release, plan))
    lines.extend(totals_lines(plan))
    lines.extend(level_lines(plan))
    for draw in plan.quantiles:
        lines.extend(_quantile_words(draw, plan))
    if plan.choice is not None:
        return "\n".join(
            [*lines, *_choice_words(plan.choice, len(plan.public_keys or ()), confidence), *_promise(plan)]
        )
    percent = f"{float(confidence) * 100:g} %"
    lines.append(f"Expected error ({percent} of answers are within):")
    lines.extend(f"  {output.name}: {expected_words(output, plan, confidence)}" for output in plan.outputs)
    after = after_in_words(plan.after, [output.name for output in plan.outputs])
    lines.extend([f"After the noise, free: {'; '.join(after)}."] if after else [])
    lines.extend(_promise(plan))
    return "\n".join(lines)


def errors_in_words(plan: Plan, confidence: Fraction) -> str:
    """Return the expected error of every number of a plan, on one line."""
    return "; ".join(f"{output.name} {expected_words(output, plan, confidence)}" for output in plan.outputs)


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
    least = (
        f"groups with fewer than about {least_shown(plan):,} units are hidden"
        if plan.threshold is not None or plan.found_by
        else ""
    )
    if plan.threshold is not None:
        return [f"Groups: found privately; {least} (δ = {show(plan.threshold.delta)})."]
    if any(not fact.entry for fact in plan.found_by):
        return [f"Groups: to be found first, once; {least}. The errors below are foreseen for a few groups."]
    count = len(plan.public_keys or ())
    if plan.found_by:
        return [f"Groups: {count:,} found earlier; {least}."]
    return [f"Groups: {_many(count, 'public key')}, all shown, empty ones with noise."]


def _release(number: int, release: NoisyRelease, plan: Plan) -> list[str]:
    far = release.sensitivity
    law = f"{NOISES[release.noise]} {show(release.scale)}" if release.noise in NOISES else _staircase(release)
    of = "" if release.share == 1 else f", {show(release.share)} of the loss"
    return [
        f"Release {number}: {_what(release, plan)}{of}.",
        f"  sensitivity: L0 {far.l0}, L1 {far.l1:,}, L2 {far.l2_squared**0.5:,.6g}, L∞ {far.linf:,} (in steps); "
        f"discrete {law} on each.",
    ]


def _staircase(release: NoisyRelease) -> str:
    event = release.event
    width = int(event.width) if isinstance(event, StaircaseNoise) else 0
    far = release.sensitivity.linf
    return f"staircase noise, level over {width:,} steps on either side and falling by e^ε every {far:,},"


def _what(release: NoisyRelease, plan: Plan) -> str:
    """Name the parts: those of one kind of moment together, and each column's range once."""
    columns = {place: _range_text(plan.measured[place]) for part in release.parts for place in part.columns}
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


def _range_text(column: Measured) -> str:
    name = name_of(column.expression)
    if column.counts_only:
        return name
    return f"{name} ({show(column.low * column.step)} to {show(column.high * column.step)}, step {show(column.step)})"


def _quantile_words(draw: QuantileDraw, plan: Plan) -> list[str]:
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


def _choice_words(choice: Choice, keys: int, confidence: Fraction) -> list[str]:
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
            for people in SIZES
        ]
        return "at most " + ", ".join(sizes) + " rows"
    bound = expected_error(output, plan, confidence) or 0
    if isinstance(output, CountUnits) and plan.threshold is not None:
        return f"± {_amount(bound)}, more on the low side for groups barely above the threshold"
    most = "at most " if isinstance(output, Sum) and plan.releases[output.release].parts[-1].kind == "moment" else ""
    return f"{most}± {_amount(bound)}"


def _promise(plan: Plan) -> list[str]:
    loss = plan.loss
    groups = [f"{size} together get {for_group(loss, size)}" for size in GROUP_SIZES]
    lines = [f"Loss: {loss} for one unit; {'; '.join(groups)}."]
    lines.append(f"Meaning: {meaning_line(loss)}.")
    lines.extend(warning(plan.spend.epsilon))
    if isinstance(loss, PureLoss):
        lines.append("Pure: the promise holds without exception (δ = 0).")
    return lines


def learned_words(facts: Sequence[Fact]) -> str:
    """Return for how much facts were learned, and at which entries of the ledger."""
    spent = brief(sum((fact.epsilon for fact in facts), Fraction(0)))
    entries = sorted({fact.entry for fact in facts if fact.entry})
    name = "entry" if len(entries) == 1 else "entries"
    return f"ε = {spent}" + (f" ({name} {', '.join(map(str, entries))})" if entries else "")


def scaled_reading(plan: Plan) -> list[str]:
    """Return how units count: each with one weight, in full up to the caps."""
    if plan.scaling is None:
        return []
    vectors = plan.scaling.vectors
    shown = [_size_words(vector, vector.cap, plan) for vector in vectors if vector.outlook is not None or plan.by_hand]
    full = f", in full up to {' and '.join(shown)}" if shown else ""
    norm = "" if plan.scaling.norm == 1 else " (as the root of the sum of squares over its groups)"
    lines = [
        f"Unit: {plan.unit}; all its rows count, with one weight{full}{norm}; no row is picked at random. "
        f"{NULL_UNITS} Neighbours: {plan.neighbours}."
    ]
    if plan.learned:
        lines.append(f"Bounds: learned for {learned_words(plan.learned)}, and free.")
    if line := filter_line(plan):
        lines.append(line)
    if nothing_is_believed(plan):
        lines.append("Too few people to learn bounds from: the caps are the least there are. Learn again with more ε.")
    return lines


def scaled_release(number: int, release: NoisyRelease, plan: Plan) -> list[str]:
    """Return what one vector's release is: its cap, and the noise on each group in the vector's own unit."""
    if plan.scaling is None:
        return []
    vector = plan.scaling.vectors[release.parts[0].index[0]]
    of = "" if release.share == 1 else f", {_in_percent(release.share)} of the loss"
    return [
        f"Release {number}: {_name(vector, plan)}, scaled into {_size_words(vector, vector.cap, plan)} of a unit"
        f" (L{plan.scaling.norm}){of}.",
        f"  discrete {NOISES.get(release.noise, 'staircase noise of scale')}"
        f" {_amount(_noise_words(release, vector, plan))} on each group.",
    ]


def totals_lines(plan: Plan) -> list[str]:
    """Return what is measured of the whole table."""
    vectors = () if plan.scaling is None else plan.scaling.vectors
    lines = []
    for release in plan.totals:
        vector = vectors[release.parts[0].index[0]]
        tail = _size_words(vector, vector.tail * 2**vector.tail_shift, plan)
        times = 2**vector.tail_shift
        lines.append(
            f"Totals: of all {_name(vector, plan)}, the kept and the cut part, {_in_percent(release.share)} of "
            f"the loss; a unit adds at most {tail}, "
            f"{NOISES[release.noise]} {_amount(_noise_words(release, vector, plan) * times)}."
        )
    return lines


def expected_in_words(output: ScaledOutput, plan: Plan, confidence: Fraction) -> str:
    """Return the approximate error of an output, and its parts."""
    if nothing_is_believed(plan):
        noise = foreseen_error(output, plan, confidence).noise
        return "not known: too few people" if math.isinf(noise) else f"noise {_amount(noise)}; the rest is not known"
    if plan.public_keys is None:
        sizes = [(size, foreseen_error(output, plan, confidence, rows=size)) for size in SIZES]
        return "; ".join(f"about ± {_amount(each.whole)} {_terms(each)} for {size:,} rows" for size, each in sizes)
    found = foreseen_error(output, plan, confidence)
    if not plan.keys:
        return f"± {_amount(found.whole)}" if math.isfinite(found.whole) else "not known: too few people"
    groups = f"{len(plan.public_keys):,} groups"
    of = "" if found.size is None else f", for {groups} of about {_amount(found.size)}{_unit_words(output)}"
    return f"about ± {_amount(found.whole)} a group on average {_terms(found)}{of}"


def _terms(found: ForeseenError) -> str:
    return f"(noise {_amount(found.noise)}, total {_amount(found.total)}, scaling {_amount(found.scaling)})"


def _unit_words(output: ScaledOutput) -> str:
    return " units" if output.kind == "count_units" else " rows" if output.kind in ("count", "mean") else ""


def _noise_words(release: NoisyRelease, vector: Vector, plan: Plan) -> float:
    return float(release.scale * Fraction(2) ** -vector.shift * _step(vector, plan))


def _step(vector: Vector, plan: Plan) -> Fraction:
    return plan.measured[vector.column].step if vector.kind == "centred" and vector.column is not None else Fraction(1)


def _name(vector: Vector, plan: Plan) -> str:
    column = None if vector.column is None else plan.measured[vector.column]
    name = name_of(column.expression) if column is not None else ""
    if vector.factors is not None and plan.scaling is not None:
        one, two = (_name(plan.scaling.vectors[place], plan).removeprefix("Σ") for place in vector.factors)
        return f"Σ{one}²" if one == two else f"Σ{one}·{two}"
    if vector.kind == "centred" and column is not None:
        centre = (column.low + vector.centre) * column.step
        return f"Σ{name}" if centre == 0 else f"Σ({name} − {show(centre)})"
    return {"counted": f"rows with {name}", "missing": f"rows without {name}"}.get(vector.kind, vector.kind)


def _size_words(vector: Vector, fine: int, plan: Plan) -> str:
    size = _amount(float(fine * Fraction(2) ** -vector.shift * _step(vector, plan)))
    name = "groups" if vector.kind == "units" else _name(vector, plan)
    return f"{size} {name}" if vector.kind != "centred" else f"{size} in {name}"


def _in_percent(share: Fraction) -> str:
    return f"{float(share) * 100:.3g} %"


def _amount(value: float) -> str:
    """Return a size for people: three digits that count, and whole thousands with their commas."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


# The group of the printed range, and the most rows of each of its people if no bound is declared.
PEOPLE, ROWS_MOST = 1000, 10
# Plans from made-up facts, each with the rows that a person has in them: the fewest and the most.
Ends = Sequence[tuple[int, Plan]]


def learning_in_words(
    plan: Plan, wanted: Sequence[WantedFact], loss: Loss, parts: Mapping[str, Ends], confidence: Fraction
) -> str:
    """Return the facts still to learn for a plan, its expected errors and cost; `parts` names questions' plans."""
    learned = sum((each.plan.spend.epsilon for each in wanted), Fraction(0))
    whole = plan.spend.epsilon + learned
    lines = [
        f"Plan for {plan.table}: free, and no row is read.",
        f"Bounds: learned in this call and kept. ε = {brief(learned)} of {brief(whole)} goes to them; they are free for"
        " every later question about the same people and groups.",
        *(f"  {each.words}: ε = {brief(each.plan.spend.epsilon)}" for each in wanted),
    ]
    for label, ends in parts.items():
        lines += [*([f"--- {label}"] if label else []), *_expected_range(ends, confidence)]
    if sizes := [size for each in wanted for size in each.smallest]:
        people = " to ".join(dict.fromkeys(f"{float(f'{size:.2g}'):,.0f}" for size in (min(sizes), max(sizes))))
        lines.append(
            f"Hidden: groups with fewer than about {people} people; groups that are listed (keys=[...]) are shown."
        )
    if plan.unit is not None:
        lines.append(NULL_UNITS)
    promise = [f"Loss: {loss} for one unit.", f"Meaning: {meaning_line(loss)}.", *warning(whole)]
    return "\n".join([*lines, *promise])


def _expected_range(ends: Ends, confidence: Fraction) -> list[str]:
    """Return the error that each output is expected to have in a group of a thousand people, from end to end."""
    (fewest, first), (most, _) = ends[0], ends[-1]
    each = "" if first.unit is None else f" with {fewest} to {most} rows each" if most > fewest else ""
    who = "rows" if first.unit is None else "people"
    percent = f"{float(confidence) * 100:g} %"
    return [
        f"Expected error ({percent} of answers are within), for a group of {PEOPLE:,} {who}{each}:",
        *(f"  {output.name}: {_error_range(output, ends, confidence)}" for output in first.outputs),
        "  Plan again once the bounds are learned."
        if first.unit is None
        else "  In proportion more if people have more rows than that. Plan again once the bounds are learned.",
    ]


def _error_range(output: PlannedOutput, ends: Ends, confidence: Fraction) -> str:
    _, first = ends[0]
    if isinstance(output, Quantile):
        return expected_words(output, first, confidence)
    errors = [_error_words(output, plan, rows, confidence) for rows, plan in ends]
    known = [error for error in errors if error is not None]
    if not known or depends_on(output, first) == "data":
        return "depends on how values spread; known once the bounds are learned"
    is_share = isinstance(output, Sum) or (isinstance(output, Mean) and is_range_made_up(output, first))
    shown = [f"± {two_digits(100 * each)} %" if is_share else f"± {two_digits(each)}" for each in known]
    of = " of the sum" if isinstance(output, Sum) else " of the range of its values" if is_share else ""
    even = ", if values spread evenly over their range" if isinstance(output, Sum | Mean) else ""
    return f"about {' to '.join(dict.fromkeys(shown))}{of}{even}"


def is_range_made_up(output: Mean, plan: Plan) -> bool:
    """Whether no range of a mean's column is declared."""
    column = plan.measured[output.column]
    return column.between is None or column.expression in plan.learned_ranges


def _error_words(output: PlannedOutput, plan: Plan, rows: int, confidence: Fraction) -> float | None:
    """Return the error of an output in a group of a thousand people: of a sum, or a mean without a range, as a part."""
    size = float(PEOPLE * rows)
    if is_scaled(output, plan):
        found = foreseen_error(output, plan, confidence, rows=size)
        if isinstance(output, Sum):
            about = found.size if (mass := sum_by_people(output, plan, PEOPLE)) is None else mass
            return found.whole / about if about else None
        if isinstance(output, Mean) and is_range_made_up(output, plan):
            return found.whole / width if (width := foreseen_range(output, plan)) else None
        return found.whole
    error = expected_error(output, plan, confidence, rows=size)
    if error is None or not isinstance(output, Sum | Mean):
        return error
    if isinstance(output, Sum):
        return error / (size * farther_end(output, plan) / 2)
    column = plan.measured[output.column]
    return error / float(column.height * column.step) if is_range_made_up(output, plan) else error
