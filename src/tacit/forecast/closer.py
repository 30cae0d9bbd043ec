"""Smaller errors at the same epsilon, in numbers: other plans from the same facts, beside the current one.

Alternatives are planned, not run: from the plan, the facts that were paid for, and the intervals that were released.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import isnan

from tacit.forecast.target import expected_error
from tacit.plan import CLEARLY_LESS, Fact, Plan, PlannedOutput

# Planning takes longer with many groups, and a hint is worth little of it.
GROUPS_MOST = 10_000


def closer_words(
    plan: Plan,
    learned: Sequence[Fact],
    planned: Callable[[Fraction, str | None], Plan | None],
    widths: Mapping[str, float | None],
    confidence: Fraction,
    *,
    rows: float | None = None,
    most: int = 1,
) -> str:
    """Return what would give a narrower interval at the same epsilon, and about how narrow; empty if there is none.

    `learned` are the facts that the call itself pays for. `planned` makes the plan at another epsilon, of one output
    only if it is named. `widths` are the current half-widths, nan if only the part that is left of them is known.
    `rows` is the size of a group, if the plan does not know it.
    """
    if len(plan.public_keys or ()) > GROUPS_MOST:
        return ""
    outputs = [output for output in plan.outputs if widths.get(output.name)]
    found: list[tuple[float, str, str]] = []

    def tried(output: PlannedOutput, other: Plan | None, words: str) -> None:
        share = _part(output, plan, other, confidence, rows)
        if share < CLEARLY_LESS:
            found.append((share, output.name, words))

    for output in outputs if len(plan.outputs) > 1 else ():
        tried(output, planned(plan.spend.epsilon, output.name), "ask {} by itself: about")
    finding = sum((fact.epsilon for fact in learned if fact.finds_groups), Fraction(0))
    if finding and outputs:
        tried(outputs[0], planned(plan.spend.epsilon + finding, None), "list the groups (keys=[...]): {} about")
    ranging = sum((fact.epsilon for fact in learned if fact.tells_range), Fraction(0))
    for output in outputs if ranging else ():
        tried(output, planned(plan.spend.epsilon + ranging, None), "declare the range (between=): {} about")
    if not found:
        return ""
    named = [
        f"{words.format(name)} {_narrower(share, widths[name] or 0)}" for share, name, words in sorted(found)[:most]
    ]
    return f"Closer at the same ε: {'; '.join(named)}."


def _narrower(share: float, width: float) -> str:
    if isnan(width):
        return f"{two_digits(share)} times as wide"
    return f"± {two_digits(share * width)} instead of ± {two_digits(width)}"


def _part(output: PlannedOutput, plan: Plan, other: Plan | None, confidence: Fraction, rows: float | None) -> float:
    """Return the error that an output is foreseen to have in another plan, as a part of that in its own."""
    same = None if other is None else next((each for each in other.outputs if each.name == output.name), None)
    if other is None or same is None:
        return 1.0
    before, after = (expected_error(one, by, confidence, rows=rows) for one, by in ((output, plan), (same, other)))
    return after / before if before and after is not None else 1.0


def two_digits(value: float) -> str:
    """Return a number with two significant digits, and commas."""
    short = float(f"{value:.2g}")
    return f"{short:,.0f}" if short >= 10 else f"{short:.2g}"
