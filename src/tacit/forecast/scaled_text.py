"""A plan with down-weighting in words: the learned facts, the caps, and the three parts of its error.

Also the notes before any fact is learned.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

from tacit.answer import ScaledOutput, filter_line
from tacit.forecast.foreseen import ForeseenError, foreseen_error, nothing_is_believed
from tacit.plan import Fact, NoisyRelease, Plan, Vector
from tacit.privacy import show
from tacit.query import name_of

SIZES = (100, 10_000)  # of groups, if their number is not public
NULL_UNITS = "Rows with a NULL unit never count."
NOISES = {"laplace": "Laplace noise of scale", "gaussian": "Gaussian noise of sigma"}


def learned_words(facts: Sequence[Fact]) -> str:
    """Return for how much facts were learned, and at which entries of the ledger."""
    spent = show(sum((fact.epsilon for fact in facts), Fraction(0)))
    entries = sorted({fact.entry for fact in facts if fact.entry})
    name = "entry" if len(entries) == 1 else "entries"
    return f"ε = {spent}" + (f" ({name} {', '.join(map(str, entries))})" if entries else "")


def scaled_reading(plan: Plan) -> list[str]:
    """Return how units count: each with one weight, in full up to the caps."""
    if plan.scaling is None:
        return []
    vectors = plan.scaling.vectors
    shown = [_size(vector, vector.cap, plan) for vector in vectors if vector.outlook is not None or plan.by_hand]
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
    of = "" if release.share == 1 else f", {_percent(release.share)} of the loss"
    return [
        f"Release {number}: {_name(vector, plan)}, scaled into {_size(vector, vector.cap, plan)} of a unit"
        f" (L{plan.scaling.norm}){of}.",
        f"  discrete {NOISES.get(release.noise, 'staircase noise of scale')}"
        f" {_amount(_scale(release, vector, plan))} on each group.",
    ]


def totals_lines(plan: Plan) -> list[str]:
    """Return what is measured of the whole table."""
    vectors = () if plan.scaling is None else plan.scaling.vectors
    lines = []
    for release in plan.totals:
        vector = vectors[release.parts[0].index[0]]
        tail = _size(vector, vector.tail * 2**vector.tail_shift, plan)
        times = 2**vector.tail_shift
        lines.append(
            f"Totals: of all {_name(vector, plan)}, the kept and the cut part, {_percent(release.share)} of the loss;"
            f" a unit adds at most {tail}, {NOISES[release.noise]} {_amount(_scale(release, vector, plan) * times)}."
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
    of = "" if found.size is None else f", for {groups} of about {_amount(found.size)}{_unit(output)}"
    return f"about ± {_amount(found.whole)} a group on average {_terms(found)}{of}"


def _terms(found: ForeseenError) -> str:
    return f"(noise {_amount(found.noise)}, total {_amount(found.total)}, scaling {_amount(found.scaling)})"


def _unit(output: ScaledOutput) -> str:
    return " units" if output.kind == "count_units" else " rows" if output.kind in ("count", "mean") else ""


def _scale(release: NoisyRelease, vector: Vector, plan: Plan) -> float:
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


def _size(vector: Vector, fine: int, plan: Plan) -> str:
    size = _amount(float(fine * Fraction(2) ** -vector.shift * _step(vector, plan)))
    name = "groups" if vector.kind == "units" else _name(vector, plan)
    return f"{size} {name}" if vector.kind != "centred" else f"{size} in {name}"


def _percent(share: Fraction) -> str:
    return f"{float(share) * 100:.3g} %"


def _amount(value: float) -> str:
    """Return a size for people: three digits that count, and whole thousands with their commas."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
