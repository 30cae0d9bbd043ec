"""A plan before its facts are learned, in words: the facts to learn first, and the range of its errors.

The range comes from made-up facts, by the rules that plan from real ones. Everyone has one row, or everyone has many,
and values spread evenly over their range. The text reads no row, and depends on the question, epsilon and public facts.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from tacit.accounting import meaning_line
from tacit.answer import is_scaled
from tacit.forecast.closer import two_digits
from tacit.forecast.foreseen import foreseen_error, foreseen_range
from tacit.forecast.plan_text import expected_words
from tacit.forecast.scaled_text import NULL_UNITS
from tacit.forecast.target import depends_on, expected_error, farther_end
from tacit.noise import warning
from tacit.plan import Mean, Plan, PlannedOutput, Quantile, Sum, WantedFact
from tacit.privacy import Loss, show

# The group of the printed range, and the most rows of each of its people if no bound is declared.
PEOPLE, ROWS_MOST = 1000, 10
# Plans from made-up facts, each with the rows that a person has in them: the fewest and the most.
Ends = Sequence[tuple[int, Plan]]


def learning_in_words(
    plan: Plan, wanted: Sequence[WantedFact], loss: Loss, parts: Mapping[str, Ends], confidence: Fraction
) -> str:
    """Return a plan with facts still to learn: those facts, the expected errors, and the cost.

    `parts` maps the names of the questions, if there are several.
    """
    learned = sum((each.plan.spend.epsilon for each in wanted), Fraction(0))
    whole = plan.spend.epsilon + learned
    lines = [
        f"Plan for {plan.table}: free, and no row is read.",
        f"Bounds: learned in this call and kept. ε = {show(learned)} of {show(whole)} goes to them; they are free for"
        " every later question about the same people and groups.",
        *(f"  {each.words}: ε = {show(each.plan.spend.epsilon)}" for each in wanted),
    ]
    for label, ends in parts.items():
        lines += [*([f"--- {label}"] if label else []), *_expected_range(ends, confidence)]
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
        *(f"  {output.name}: {_range(output, ends, confidence)}" for output in first.outputs),
        "  Plan again once the bounds are learned."
        if first.unit is None
        else "  In proportion more if people have more rows than that. Plan again once the bounds are learned.",
    ]


def _range(output: PlannedOutput, ends: Ends, confidence: Fraction) -> str:
    _, first = ends[0]
    if isinstance(output, Quantile):
        return expected_words(output, first, confidence)
    errors = [_error(output, plan, rows, confidence) for rows, plan in ends]
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


def _error(output: PlannedOutput, plan: Plan, rows: int, confidence: Fraction) -> float | None:
    """Return the error of an output in a group of a thousand people; of a sum as a part of it.

    The error of a mean without a declared range is a part of the assumed range.
    """
    size = float(PEOPLE * rows)
    if is_scaled(output, plan):
        found = foreseen_error(output, plan, confidence, rows=size)
        if isinstance(output, Sum):
            return found.whole / found.size if found.size else None
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
