"""What would make an answer closer at the same epsilon, in numbers: other plans from the same facts, beside its own.

Each alternative is planned, not run: from the plan, the facts that were paid for, and the intervals that were released.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from statistics import median

from tacit.answer import Answer
from tacit.forecast.target import expected_error
from tacit.plan import Fact, Plan, PlannedOutput

# An alternative is named if it makes intervals narrower than this part of what they are.
WORTH_NAMING = 0.8
# One number asked by itself has all of the epsilon. It is named if it gains more than that: a plain split between k
# numbers makes each interval k times as wide.
WORTH_ASKING_ALONE = 0.9
# Planning takes longer with many groups, and a hint is worth little of it.
GROUPS_MOST = 10_000


def closer_words(
    plan: Plan,
    learned: Sequence[Fact],
    planned: Callable[[Fraction, str | None], Plan | None],
    answer: Answer,
    confidence: Fraction,
) -> str:
    """Return what would give a narrower interval at the same epsilon, and about how narrow; empty if nothing would.

    `learned` are the facts that the call itself paid for. `planned` makes the plan at another epsilon, of one output
    only if it is named.
    """
    if len(plan.public_keys or ()) > GROUPS_MOST:
        return ""
    widths = {output.name: _half_width(answer, output.name) for output in plan.outputs}
    outputs = [output for output in plan.outputs if widths[output.name]]
    found: list[tuple[float, str, str]] = []
    for output in outputs if len(plan.outputs) > 1 else ():
        share = _part(output, plan, planned(plan.spend.epsilon, output.name), confidence)
        if share < WORTH_ASKING_ALONE / len(plan.outputs):
            found.append((share, output.name, f"ask {output.name} by itself:"))
    finding = sum((fact.epsilon for fact in learned if fact.finds_groups), Fraction(0))
    if finding and outputs:
        listed = planned(plan.spend.epsilon + finding, None)
        share = _part(outputs[0], plan, listed, confidence)
        if share < WORTH_NAMING:
            found.append((share, outputs[0].name, f"list the groups (keys=[...]): {outputs[0].name}"))
    if not found:
        return ""
    share, name, words = min(found)
    now = widths[name] or 0.0
    return f"Closer at the same ε: {words} about ± {_amount(share * now)} instead of ± {_amount(now)}."


def _part(output: PlannedOutput, plan: Plan, other: Plan | None, confidence: Fraction) -> float:
    """Return the error that an output is foreseen to have in another plan, as a part of that in its own."""
    same = None if other is None else next((each for each in other.outputs if each.name == output.name), None)
    if other is None or same is None:
        return 1.0
    before, after = expected_error(output, plan, confidence), expected_error(same, other, confidence)
    return after / before if before and after is not None else 1.0


def _amount(value: float) -> str:
    """Return a half-width with two significant digits."""
    short = float(f"{value:.2g}")
    return f"{short:,.0f}" if short >= 10 else f"{short:.2g}"


def _half_width(answer: Answer, name: str) -> float | None:
    """Return the middle half-width of an aggregate's intervals; None if it is not shown or has no known one."""
    if name not in answer.aggregates:
        return None
    ends = [(row[f"{name}_low"], row[f"{name}_high"]) for row in answer.rows]
    widths = [high - low for low, high in ends if low is not None and high is not None]
    return float(median(widths)) / 2 if widths else None
