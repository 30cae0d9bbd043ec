"""Questions that would be mostly noise, predicted only from released and public numbers: the problem, and a remedy.

A number is too noisy if its noise is as large as itself in a group of average size, or its interval four times that; a
correlation, if its interval would be from -1 to 1. Groups of an unknown and undeclared size are not judged.
"""

from collections.abc import Sequence
from fractions import Fraction

from tacit.answer import is_scaled, is_scaled_moment
from tacit.errors import QueryRefused
from tacit.forecast.closer import two_digits
from tacit.forecast.foreseen import ForeseenError, foreseen_error, noise_of_moment, nothing_is_believed
from tacit.forecast.target import farther_end, noise_error, quantile_reach, rows_for_correlation
from tacit.plan import (
    FORESEEN_TO,
    NAMED_FOR,
    Correlation,
    CountRows,
    CountUnits,
    CountValues,
    Mean,
    Plan,
    PlannedOutput,
    Quantile,
    Sum,
)
from tacit.query import picks_by_noise, shown_outputs

ANYWAY = "to answer anyway, accept_noise=True (--accept-noise)"


def refuse_useless(plans: Sequence[Plan], rows: int | None, confidence: Fraction) -> None:
    """Refuse a question with a number that would be mostly noise; its plans are not charged yet.

    `rows` is the most rows that there are, if public.
    """
    found = useless_words(plans, rows, confidence)
    if found is not None:
        problem, mend = found
        raise QueryRefused(f"{problem}\nhint: {mend}; {ANYWAY}")


def useless_line(plans: Sequence[Plan], rows: int | None, confidence: Fraction) -> str:
    """Return that answering will be refused, and why; empty if it will not."""
    found = useless_words(plans, rows, confidence)
    return "" if found is None else f"Refused, and free: {found[0]}. Instead: {found[1]}; {ANYWAY}."


def useless_words(plans: Sequence[Plan], rows: int | None, confidence: Fraction) -> tuple[str, str] | None:
    """Return the number that would be mostly noise, and a remedy; None if there is no such number."""
    for plan in plans:
        names = [output.name for output in plan.outputs]
        shown = shown_outputs(plan.after, names)
        if picks_by_noise(plan.after, names):
            continue
        for output in plan.outputs:
            if nothing_is_believed(plan) and not isinstance(output, Correlation):  # few people may still be counted
                continue
            if output.name not in shown:
                continue
            found = _useless(output, plan, rows, confidence)
            if found is not None:
                return found
    return None


def _useless(output: PlannedOutput, plan: Plan, rows: int | None, confidence: Fraction) -> tuple[str, str] | None:
    if isinstance(output, Correlation):
        return _any_correlation(output, plan, rows, confidence)
    if is_scaled_moment(output, plan):
        share = noise_of_moment(output, plan, confidence)
        words = "the noise is as large as the number itself" if share < NAMED_FOR else "it is noise"
        return _found(output, plan, share, f"{words} in a group of average size")
    if plan.scaling is not None and isinstance(output, Mean) and noise_of_moment(output, plan, confidence) >= 1:
        share = noise_of_moment(output, plan, confidence)
        return _found(output, plan, share, "a group of average size has too few rows")
    found = _error(output, plan, rows, confidence)
    if found is None:
        return None
    words = f"about {two_digits(found.about or 0)} ± {two_digits(found.half_width)} in a group of average size"
    return _found(output, plan, found.uselessness, words)


def _found(output: PlannedOutput, plan: Plan, share: float, words: str) -> tuple[str, str] | None:
    """Return the words for a number with an error of this part of it; None if it is smaller than the number."""
    if share < 1:
        return None
    more = f"give an epsilon of about {two_digits(float(plan.spend.epsilon) * share * NAMED_FOR)}, or "
    others = f", or leave out '{output.name}'" if len(plan.outputs) > 1 else ""
    hint = f"{more if share <= FORESEEN_TO else ''}ask about fewer or larger groups{others}"
    return f"'{output.name}' is foreseen to be of no use: {words}", hint


def _error(output: PlannedOutput, plan: Plan, rows: int | None, confidence: Fraction) -> ForeseenError | None:
    """Return the noise of an output beside its number, in a group of average size; None if a size is not known."""
    most = None if rows is None or plan.public_keys is None else rows / max(len(plan.public_keys), 1)
    if is_scaled(output, plan):
        known = foreseen_error(output, plan, confidence)
        return known if known.about or most is None else foreseen_error(output, plan, confidence, rows=most)
    if most is None:
        return None
    if isinstance(output, Quantile):  # the interval of a median reaches both ends if its noise is half of the ranks
        return ForeseenError(quantile_reach(output, plan), size=most)
    noise = noise_error(output, plan, confidence, rows=most) or 0.0
    if isinstance(output, CountRows | CountValues | CountUnits):
        return ForeseenError(noise, size=most)
    if isinstance(output, Sum):
        return ForeseenError(noise, size=most * farther_end(output, plan))
    if isinstance(output, Mean):  # its interval has the whole range
        column = plan.measured[output.column]
        return ForeseenError(noise, size=most, number=float(column.height * column.step))
    return None


def _any_correlation(output: Correlation, plan: Plan, rows: int | None, confidence: Fraction) -> tuple[str, str] | None:
    """Return the words for a correlation from -1 to 1: by facts, or however values are spread over their ranges.

    Values at the two ends of their ranges need fewest rows.
    """
    words = f"'{output.name}' is foreseen to be from -1 to 1"
    if is_scaled_moment(output, plan):
        share = noise_of_moment(output, plan, confidence)
        found = _found(output, plan, share, "")
        return None if found is None else (f"{words}: the noise is as large as the sums behind it", found[1])
    least = rows_for_correlation(output, plan, confidence, spread=1 / 4) if rows else None
    if not rows or least is None or rows >= least:
        return None
    epsilon = float(plan.spend.epsilon) * 3 * least / rows
    problem = (
        f"{words}, with any values of the {rows:,} rows: at this epsilon it takes at least {least:,.0f} rows, and "
        f"about {3 * least:,.0f} if values spread evenly over their ranges"
    )
    return problem, f"give an epsilon of about {epsilon:.2g}, or ask about more rows"
