"""A plan in words and numbers: what will be read, bounded, noised and charged, and how far off to expect each cell."""

from fractions import Fraction
from math import prod

from tacit.accounting.group import for_group
from tacit.plan.plan import Measured, NoisyRelease, Plan, PlannedOutput, QuantileDraw
from tacit.privacy.loss import PureLoss
from tacit.privacy.number import show
from tacit.release.error_bars import mean_bounds, single_bound, weighted_bound

GROUP_SIZES = (2, 5)
PEOPLE = (100, 10_000)
LARGE_EPSILON = 10
PART_WORDS = {
    "rows": "rows",
    "units": "units",
    "missing": "rows without a value",
    "counted": "rows with a value",
    "below": "Σ(high − x)",
    "above": "Σ(x − low)",
    "total": "Σx",
}


def explain(plan: Plan, confidence: Fraction = Fraction(95, 100)) -> str:
    """Return the plan for people. It costs nothing and reads no row."""
    lines = [f"Plan for {plan.table}: costs nothing, reads nothing.", *_reading(plan), *_groups(plan)]
    for number, release in enumerate(plan.releases, 1):
        lines.extend(_release(number, release, plan))
    for draw in plan.quantiles:
        lines.extend(_draw(draw, plan))
    percent = f"{float(confidence) * 100:g} %"
    lines.append(f"Expected error ({percent} of answers are within):")
    lines.extend(f"  {output.name}: {_expected(output, plan, confidence)}" for output in plan.outputs)
    lines.extend(_promise(plan))
    return "\n".join(lines)


def _reading(plan: Plan) -> list[str]:
    if plan.unit is None:
        return ["Unit: each row is its own. Neighbours: " + plan.neighbours + "."]
    bound = f"at most {_many(plan.groups_per_unit, 'group')}" if plan.keys else "one group"
    rows = f"{_many(plan.rows_per_unit, 'row')} in each" if plan.needs_rows else "counted once in each"
    return [
        f"Unit: {plan.unit}; {bound}, {rows}; what is over is left out at random, by a fresh salt. "
        f"Neighbours: {plan.neighbours}."
    ]


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _groups(plan: Plan) -> list[str]:
    if not plan.keys:
        return ["Groups: one, the whole table."]
    if plan.threshold is None:
        return [f"Groups: {_many(len(plan.public_keys or ()), 'public key')}, all shown, empty ones with noise."]
    return [
        f"Groups: found privately; a key is shown where the noisy count of units is at least {plan.threshold.least} "
        f"(δ = {show(plan.threshold.delta)})."
    ]


def _release(number: int, release: NoisyRelease, plan: Plan) -> list[str]:
    far = release.sensitivity
    law = "Laplace noise of scale" if release.noise == "laplace" else "Gaussian noise of sigma"
    of = "" if release.share == 1 else f", {show(release.share)} of the loss"
    return [
        f"Release {number}: {_what(release, plan)}{of}.",
        f"  sensitivity: L0 {far.l0}, L1 {far.l1:,}, L2 {_root(far.l2_squared)}, L∞ {far.linf:,} (in steps); "
        f"discrete {law} {show(release.scale)} on each.",
    ]


def _what(release: NoisyRelease, plan: Plan) -> str:
    """Name the parts: those of one kind of moment together, and each column's range once."""
    columns = {place: _range(plan.measured[place], place) for part in release.parts for place in part.columns}
    words = [PART_WORDS[part.kind] for part in release.parts if part.kind != "moment"]
    moments = [part for part in release.parts if part.kind == "moment"]
    if moments:
        power = "moments" if len(columns) == 1 else "mixed moments"
        words.append(f"{len(moments)} parts that hold the {power} up to degree {max(moments[0].degrees)}")
    return " and ".join(words) + (f" of {' and '.join(columns.values())}" if columns else "")


def _range(column: Measured, place: int) -> str:
    name = getattr(column.expression, "name", f"expression {place + 1}")
    if column.counts_only:
        return str(name)
    return f"{name} ({show(column.low * column.step)} to {show(column.high * column.step)}, step {show(column.step)})"


def _draw(draw: QuantileDraw, plan: Plan) -> list[str]:
    column = plan.measured[draw.column]
    name = getattr(column.expression, "name", f"expression {draw.column + 1}")
    shown = ", ".join(show(fraction) for fraction, _, _ in draw.targets)
    of = "" if draw.share == 1 else f", {show(draw.share)} of the loss"
    lines = [
        f"Quantiles of {name} at {shown}{of}: exponential mechanism on a grid of step {show(column.step)}.",
        f"  {_many(draw.levels, 'level')} of splitting, ε = {show(draw.epsilon)} for each and each of a unit's groups.",
    ]
    if draw.ends:
        lines.append(
            f"  the ends of intervals are quantiles too, paid for here: {draw.ends} times ε = {show(draw.ends_epsilon)}"
            " for each of a unit's groups."
        )
    return lines


def _expected(output: PlannedOutput, plan: Plan, confidence: Fraction) -> str:
    if output.kind == "quantile" and output.targets is not None:
        fraction, shift, reach = plan.quantiles[output.release].targets[output.targets[1] // 3]
        if fraction in (0, 1):
            side = "least" if fraction == 0 else "greatest"
            return f"about {abs(shift):,} rows inside the {side}; the interval's other end is the range's"
        return f"an interval of about {reach:,} rows on either side of its rank"
    if output.kind in ("variance", "std", "covariance", "correlation"):
        return "depends on the group's size and spread; the answer states it"
    release = plan.releases[output.release]
    kinds = [part.kind for part in release.parts]
    if output.kind == "count_units" or kinds == ["rows"]:
        bound = single_bound(release.noise, release.scale, confidence)
        if output.kind == "count_units" and plan.threshold is not None:
            return f"± {bound:,}, more on the low side for groups barely above the threshold"
        return f"± {bound:,}"
    column = plan.measured[release.parts[0].column or 0]
    if release.parts[0].degrees:
        return _expected_moment(output, release, column, plan, confidence)
    if output.kind == "count":
        counted = [kind for kind in kinds if kind != "missing" or output.column is None]
        weights = [1 / column.height] * len(counted)
        return f"± {_amount(weighted_bound(release.noise, release.scale, weights, confidence) + 0.5)}"
    if output.kind == "sum":
        weights = [1.0] if kinds == ["total"] else [column.low / column.height, column.high / column.height]
        return f"± {_amount(weighted_bound(release.noise, release.scale, weights, confidence) * float(column.step))}"
    bounds = mean_bounds(release.noise, release.scale, confidence)
    shown = [
        f"± {_amount(bounds.usual[0] * float(column.step) / people)} for a group of {people:,}" for people in PEOPLE
    ]
    return "at most " + ", ".join(shown) + " rows"


def _expected_moment(
    output: PlannedOutput, release: NoisyRelease, column: Measured, plan: Plan, confidence: Fraction
) -> str:
    """A count, sum or mean that comes with a variance or a correlation."""
    first = release.parts[0]
    whole = prod(plan.measured[at].height ** degree for at, degree in zip(first.columns, first.degrees, strict=True))
    rows = weighted_bound(release.noise, release.scale, [1 / whole] * len(release.parts), confidence)
    if output.kind == "count":
        return f"± {_amount(rows + 0.5)}"
    most = rows * float(column.height * column.step)
    if output.kind == "sum":
        return f"at most ± {_amount(most)}"
    return (
        "at most " + ", ".join(f"± {_amount(most / people)} for a group of {people:,}" for people in PEOPLE) + " rows"
    )


def _amount(value: float) -> str:
    """Return a size for people: three digits that count, and whole thousands with their commas."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _promise(plan: Plan) -> list[str]:
    loss = plan.loss
    groups = [f"{size} together get {for_group(loss, size)}" for size in GROUP_SIZES]
    lines = [f"Loss: {loss} for one unit; {'; '.join(groups)}."]
    if plan.spend.epsilon > LARGE_EPSILON:
        lines.append(
            f"Warning: ε = {show(plan.spend.epsilon)} is above {LARGE_EPSILON}: close to no promise to one person."
        )
    if isinstance(loss, PureLoss):
        lines.append("Pure: the promise holds without exception (δ = 0).")
    return lines


def _root(squared: int) -> str:
    return f"{squared**0.5:,.6g}"
