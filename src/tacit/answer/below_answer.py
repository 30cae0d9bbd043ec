"""The three lines below an answer: how to read its intervals, the hidden parts or a closer answer, and the cost.

Everything else about an answer is in `Answer.details()`, a line for each fact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil
from statistics import median
from typing import TYPE_CHECKING, Any

from tacit.answer.bounds_words import LEARN_MORE, allowed_for, is_of_people, left_out, named, warning_of
from tacit.answer.computed import COMPUTED
from tacit.errors import printable
from tacit.plan import Plan, smallest_shown
from tacit.privacy import brief
from tacit.query import PostProcessing
from tacit.release import NoisyTable

if TYPE_CHECKING:
    from tacit.answer.answer import Answer, AnswerInfo, View

MORE = "More: answer.details()"
PICKED = "the picking of rows by their noisy numbers, which favours lucky noise"
MORE_EPSILON = "Spend more ε, ask fewer numbers at once, or group more coarsely."
# A correlation with an interval this wide may be anything: its whole range.
ANYTHING = 1.9
# The most parts that the first line names, of those that intervals allow for or leave out; the details name all of
# them.
LEFT_OUT_MOST = 2


def joined(sentences: Sequence[str]) -> str:
    """Return sentences as one line, each of them once."""
    return " ".join(sentence for sentence in dict.fromkeys(sentences) if sentence)


def reading_line(
    confidence: Fraction, left_out: Sequence[str], allowed: Sequence[str] = (), warnings: Sequence[str] = ()
) -> str:
    """Return how to read the intervals of an answer, the parts they allow for, and the parts they leave out."""
    level = _level_words(confidence)
    held = f"Each interval holds the table's number with {level} probability (no sampling error included)."
    uncounted = _first_few(allowed)
    counted = f"Not counted, but allowed for: {'; '.join(uncounted)}." if uncounted else ""
    missing = _first_few(left_out)
    return joined([held, counted, f"Not included: {'; '.join(missing)}." if missing else "", *warnings])


def _first_few(phrases: Sequence[str]) -> list[str]:
    each = list(dict.fromkeys(phrases))
    if len(each) <= LEFT_OUT_MOST:
        return each
    return [*each[: LEFT_OUT_MOST - 1], f"{len(each) - LEFT_OUT_MOST + 1} more such parts (see details)"]


def hidden_line(least: Sequence[int], who: str, *, others: bool = False) -> str:
    """Return which groups are not shown; several parts of a question may have several such sizes."""
    if not least:
        return ""
    sizes = " to ".join(f"{size:,}" for size in dict.fromkeys((min(least), max(least))))
    return f"Groups with fewer than about {sizes} {who} are {'counted in Other' if others else 'hidden'}."


def spent_line(facts: AnswerInfo, more: str = MORE) -> str:
    """Return the cost and the rest of the budget, the protected unit, and where to read more."""
    left = _left_words(facts)
    sentences = [f"{_spent(facts)}{f'; {left}' if left else ''}."]
    if facts.free and facts.has_changed:
        later = facts.version + 1
        sentences.append(
            f"The source was written since: declare version={later} (--version {later}, or in the tacit.toml) to ask"
            " the new rows."
        )
    if not facts.durable:
        sentences.append("TRYOUT: nothing is kept.")
    return joined([*sentences, f"Protects {facts.unit}.", more])


def protected_words(unit: str | None, block: Mapping[str, Any] | None, period: str | None) -> str:
    """Return what an answer protects: all rows of a unit, or those in a block, by a budget for life or per period."""
    whose = "each row" if unit is None else f"all rows of one {unit}"
    if block is not None:
        of_block = f"{block['every']} of {block['column']}" + (f" ({block['zone']})" if block["zone"] else "")
        rest = "" if unit is None else f"; one {unit} with rows in several may lose the budget of each"
        return f"{whose} in one {of_block}{rest}"
    return whose if period is None else f"{whose}; the budget is new each {period}"


def closing_lines(answer: Answer, more: str = MORE) -> list[str]:
    """Return the lines below an answer, three at most."""
    facts = answer.facts
    return [printable(line) for line in (facts.reading, facts.advice, spent_line(facts, more)) if line]


def advised(answer: Answer, *sentences: str) -> Answer:
    """Return an answer with more sentences in the line on a closer answer, or on notes about it."""
    return replace(answer, facts=replace(answer.facts, advice=joined([answer.facts.advice, *sentences])))


def half_width(answer: Answer, name: str) -> float | None:
    """Return the middle half-width of an aggregate's intervals; None if it is not shown or has an unknown one."""
    if name not in answer.aggregates:
        return None
    ends = [(row[f"{name}_low"], row[f"{name}_high"]) for row in answer.rows]
    widths = [high - low for low, high in ends if low is not None and high is not None]
    return float(median(widths)) / 2 if widths else None


def amounts(facts: AnswerInfo) -> str:
    """Return what an answer cost, with two digits; a loss without ε in its own words."""
    epsilon, delta = facts.loss["epsilon"], facts.loss["delta"]
    if epsilon is None:
        return str(facts.loss["text"])
    return f"ε {brief(epsilon)}" + (f", δ {brief(delta)}" if delta else "")


def _spent(facts: AnswerInfo) -> str:
    if not facts.free:
        return f"Spent {amounts(facts)}"
    if facts.is_public:
        return "Free: all of it is public, and no row was read"
    time = str(facts.receipt.get("time", ""))[:16].replace("T", " ")
    answered = f"answered {time} UTC from version {facts.version}" if time else "this question was already answered"
    return f"Free: {answered}"


def _left_words(facts: AnswerInfo) -> str:
    """Return what is left of the budget; empty for an answer read from a ledger."""
    if not facts.left:
        return ""
    if not facts.left["epsilon"]:
        return "the budget is used up"
    questions = facts.left.get("questions")
    about = f", about {questions:,} more like this" if questions and not facts.free else ""
    return f"ε {brief(facts.left['epsilon'], up=False)} is left{about}"


def _level_words(confidence: Fraction) -> str:
    return f"{float(confidence) * 100:g} %"


# ---- What a plan and its view give to the lines and to the details.


def reading_of(
    parts: Sequence[tuple[Plan, Mapping[str, Any]]], view: View, confidence: Fraction, *, picked: bool
) -> str:
    """Return how to read an answer's intervals, from the plans of its parts and their bounds; empty if it has none."""
    if not view.rows or not any(name in view.kinds for name in view.shown):
        return ""
    phrases = [phrase for plan, bounds in parts for phrase in left_out(plan, dict(bounds))]
    warnings = [warning_of(plan) for plan, _ in parts]
    allowed = [phrase for plan, bounds in parts for phrase in allowed_for(plan, dict(bounds))]
    missing = [*phrases, *([PICKED] if picked else [])]
    return reading_line(confidence, missing, allowed, [*view.lower_levels, *warnings])


def advice_of(plans: Sequence[Plan], view: View) -> list[str]:
    """Return the hidden groups, the numbers that are not shown, and the remedy."""
    least = [least_shown(plan) for plan in plans if plan.threshold is not None or plan.found_by]
    learn = f"Closer: {LEARN_MORE}." if any(warning_of(plan) for plan in plans) else ""
    others = all(plan.has_others for plan in plans)
    return [hidden_line(least, _people(plans[0]), others=others), *unknown_notes(view), learn]


def is_picked(plan: Plan, after: PostProcessing) -> bool:
    """Whether rows were picked by their noisy numbers."""
    return after.picks_by_noise([output.name for output in plan.outputs])


def question_notes(plan: Plan, after: PostProcessing) -> tuple[str, ...]:
    """Return the facts that follow from the question, and not from rows."""
    notes = []
    if after.windows and (plan.threshold is not None or plan.found_by):
        notes.append("Windows are computed over the groups that are shown.")
    if plan.weighed:
        names = [output.name for output in plan.outputs if is_of_people(output, plan)]
        each = "its groups and rows" if plan.keys else "its rows"
        verb = "is" if len(names) == 1 else "are"
        notes.append(f"{named(names)} {verb} of people: each {plan.unit} counts once, shared evenly by {each}.")
    if plan.instead_of is not None:
        notes.append(instead_words(plan))
    return tuple(notes)


def unknown_notes(view: View) -> tuple[str, ...]:
    """Return the numbers that are not shown or may be anything, and the remedy; only the noise decides which."""
    names = [name for name in view.kinds if name in view.shown and view.kinds[name] != COMPUTED]
    untold = [name for name in names if any(value is None for value in view.column(name))]
    vague = [
        name
        for name in names
        if view.kinds[name] == "correlation"
        and any(row[name] is not None and row[f"{name}_high"] - row[f"{name}_low"] >= ANYTHING for row in view.rows)
    ]
    notes = []
    if untold:
        where = "" if len(view.rows) == 1 else " in rows with a –"
        notes.append(f"There are too few people for {', '.join(untold)}{where}.")
    if vague:
        where = "" if len(view.rows) == 1 else " in some rows"
        notes.append(f"{', '.join(vague)} may be anything{where}: the noise is as large as the sums behind it.")
    return (*notes, *([MORE_EPSILON] if notes else []))


def _people(plan: Plan) -> str:
    return "rows" if plan.unit is None else "people"


def why_empty(plan: Plan, noisy: NoisyTable) -> str:
    """Return why no row is shown; an empty answer is an outcome of the noise like any other."""
    if not noisy.keys and plan.threshold is not None:
        return (
            f"No group is shown: none has about {least_shown(plan):,} {_people(plan)}. Group more coarsely, spend more"
            " ε or δ, or list the groups if they are public: keys=[...], or --keys."
        )
    return "No row is left after HAVING, QUALIFY and LIMIT, which look at the noisy numbers." if noisy.keys else ""


def least_shown(plan: Plan) -> int:
    """Return about how many units a group that is not listed must have to be shown."""
    if plan.threshold is not None:
        return plan.threshold.least
    return ceil(smallest_shown(plan.found_by))


def instead_words(plan: Plan) -> str:
    """Return why the plan does not use the noise with the smaller error."""
    names = {"laplace": "Laplace", "gaussian": "Gaussian"}
    used, other = names[plan.noise], names[plan.instead_of or plan.noise]
    return f"{used} noise: {other} noise would err less, but the budget has no room for it at this ε."
