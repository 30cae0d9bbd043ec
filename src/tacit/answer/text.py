"""Print an answer: a table in the terminal or a notebook, ± if the interval is symmetric, and its cost.

The three lines below an answer: how to read its intervals, the hidden parts or a closer answer, and the cost.

Everything else about an answer is in `Answer.details()`, a line for each fact.
"""

from __future__ import annotations

import html
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, inf, isfinite, log10
from typing import TYPE_CHECKING, Any

from tacit.answer.computed import COMPUTED
from tacit.answer.disclosure import LEARN_MORE, allowed_for, is_of_people, left_out, named, warning_of
from tacit.answer.totals import ADDED_UP
from tacit.errors import printable
from tacit.numbers import brief
from tacit.plan import Plan, noise_line, smallest_shown
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
    facts = answer.facts
    return [printable(line) for line in (facts.reading, facts.advice, spent_line(facts, more)) if line]


def advised(answer: Answer, *sentences: str) -> Answer:
    """Return an answer with more sentences in the line on a closer answer, or on notes about it."""
    return replace(answer, facts=replace(answer.facts, advice=joined([answer.facts.advice, *sentences])))


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
    if line := noise_line(plan):
        notes.append(line)
    return tuple(notes)


def unknown_notes(view: View) -> tuple[str, ...]:
    """Return the numbers that are not shown or may be anything, and the remedy; only the noise decides which."""
    names = [name for name in view.kinds if name in view.shown and view.kinds[name] != COMPUTED]
    untold = [name for name in names if None in view.column(name)]
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


ROWS_SHOWN = 60


def text_table(answer: Answer, more: str = MORE) -> str:
    """Return the answer as a plain-text table with the lines below it; `more` is where to read the details."""
    parts = [line for name, part in answer.parts.items() for line in _part_lines(name, part)]
    return "\n".join([*(parts or _table_lines(answer)), *closing_lines(answer, more)]).strip("\n")


def _part_lines(name: str, part: Answer) -> list[str]:
    """Return the answer of one question of a workload, under its name; the cost of all is told once, below."""
    return [f"--- {printable(name)}", *_table_lines(part), *map(printable, filter(None, (part.facts.reading,))), ""]


def details_text(answer: Answer) -> str:
    """Return the answer with all digits, its exact cost, and every fact about it, a line each."""
    facts = answer.facts
    lines = [
        f"Spent: {facts.loss['text']}. Meaning: {facts.loss['meaning']}.",
        *([f"Left: {facts.left['text']}."] if facts.left else []),
        f"Protected: {facts.unit}; neighbouring tables: {facts.neighbours}.",
        f"Answered from version {facts.version}{_entry(facts)}.",
        f"Confidence of each interval: {float(facts.confidence) * 100:g} %.",
        *facts.notes,
    ]
    tables = [
        line
        for name, part in answer.parts.items()
        for line in (f"--- {printable(name)}", *_table_lines(part, whole=True), *map(printable, part.facts.notes), "")
    ]
    return "\n".join([*(tables or _table_lines(answer, whole=True)), *map(printable, lines)]).strip("\n")


def _entry(facts: AnswerInfo) -> str:
    number, time = facts.receipt.get("entry"), str(facts.receipt.get("time", ""))[:16].replace("T", " ")
    return (f" at {time} UTC" if time else "") + (f" (ledger entry {number})" if number else "")


def _table_lines(answer: Answer, *, whole: bool = False) -> list[str]:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    head, body = cells(answer, ROWS_SHOWN, whole=whole)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name, right in head:
        table.add_column(Text(name), justify="right" if right else "left", no_wrap=True)
    for row in body:
        table.add_row(*[Text(cell) for cell in row])
    out = io.StringIO()
    width = sum(max([len(name), *[len(row[place]) for row in body]]) + 3 for place, (name, _) in enumerate(head))
    # in a notebook too the text is returned, not pushed to the screen
    Console(file=out, width=max(80, width), color_system=None, force_jupyter=False).print(table)
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    if len(answer) > ROWS_SHOWN:
        lines.append(f"… and {len(answer) - ROWS_SHOWN} {'earlier' if runs_on(answer) else 'more'} rows")
    return lines


def runs_on(answer: Answer) -> bool:
    """Whether it is of days, the last of which are shown."""
    return "running" in answer.kinds.values()


def shown_rows(answer: Answer, most: int | None) -> Sequence[Mapping[str, Any]]:
    """Return the first rows; of days the last."""
    return answer.rows[-most:] if most and runs_on(answer) else answer.rows[:most]


TOTAL = "Total"  # the label of a key that is rolled up
OTHER = "Other"  # and that of all groups that are not shown

# The text of an answer in the ledger: its most rows, and the most characters of a cell. All noisy integers are kept
# beside it.
ROWS_KEPT = 200
# The digits after the point that a decimal of a database has at most.
DECIMALS_MOST = 38
DIGITS_MOST = 12  # of a float that was rounded to a power of ten
CELL_KEPT = 200


def kept_text(answer: Answer) -> str:
    """Return the columns and cells of an answer with all digits, the ± among them, its cost and its lines, as JSON.

    `kept_lines` and `kept_answer` read it.
    """
    if answer.parts:
        parts = {name: json.loads(kept_text(part)) for name, part in answer.parts.items()}
        return json.dumps({"parts": parts}, ensure_ascii=False, separators=(",", ":"))
    head, body = cells(answer, ROWS_KEPT, whole=True)
    rows = [[cell[:CELL_KEPT] for cell in row] for row in body]
    columns = [[name[:CELL_KEPT], right] for name, right in head]
    kept = {"columns": columns, "rows": rows, "more": max(0, len(answer) - ROWS_KEPT)}
    facts = answer.facts
    kept |= {"loss": dict(facts.loss), "notes": list(facts.notes), "reading": facts.reading, "advice": facts.advice}
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))


def kept_lines(text: str) -> list[str]:
    """Return a table, line by line, from what `kept_text` wrote; a text of anyone else's may be refused."""
    kept = json.loads(text)
    if "parts" in kept:
        each = kept["parts"].items()
        return [line for name, part in each for line in (f"--- {printable(name)}", *kept_lines(json.dumps(part)))]
    columns, rows = [(str(name), bool(right)) for name, right in kept["columns"]], kept["rows"]
    cut = [[printable(str(cell)) for cell in row] for row in rows]
    widths = [max(map(len, [name, *column])) for (name, _), *column in zip(columns, *cut, strict=True)]

    def line(row: list[str]) -> str:
        placed = zip(row, widths, columns, strict=True)
        return "   ".join(cell.rjust(width) if right else cell.ljust(width) for cell, width, (_, right) in placed)

    lines = [line([printable(name) for name, _ in columns]), *map(line, cut)]
    more = [f"… and {int(kept['more']):,} more rows, which are kept as numbers, not as text"] if kept["more"] else []
    return [*(each.rstrip() for each in lines), *more]


def html_table(answer: Answer) -> str:
    """Return the answer as an HTML table, every cell escaped."""
    if answer.parts:
        return "".join(f"<h4>{html.escape(name)}</h4>{html_table(part)}" for name, part in answer.parts.items())
    head, body = cells(answer, ROWS_SHOWN)
    sides = [f' style="text-align: {"right" if right else "left"}"' for _, right in head]
    names = "".join(f"<th{side}>{html.escape(name)}</th>" for (name, _), side in zip(head, sides, strict=True))
    rows = "".join(
        "<tr>" + "".join(f"<td{side}>{html.escape(cell)}</td>" for cell, side in zip(row, sides, strict=True)) + "</tr>"
        for row in body
    )
    hidden = [f"… and {len(answer) - ROWS_SHOWN} more rows"] if len(answer) > ROWS_SHOWN else []
    closing = "<br>".join(html.escape(line) for line in (*hidden, *closing_lines(answer)))
    return f"<table><thead><tr>{names}</tr></thead><tbody>{rows}</tbody></table><p>{closing}</p>"


class Printed:
    """An object that shows itself as it prints, in a notebook too."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_lines(str(self))


def html_lines(text: str) -> str:
    """Return lines of text for a notebook, escaped, and broken if the page is too narrow for them."""
    return f'<pre style="white-space: pre-wrap">{html.escape(text)}</pre>'


def cells(
    answer: Answer, most: int | None = None, *, whole: bool = False
) -> tuple[list[tuple[str, bool]], list[list[str]]]:
    """Return the shown columns (name, whether right-aligned) and the cells of the first `most` rows as text.

    `None` is all rows; `whole` keeps digits that an interval does not support. A cell takes about the time that the
    kernel needs for a hundred rows of the table.
    """
    rows = shown_rows(answer, most)
    percent = f"{float(answer.facts.confidence) * 100:g} %"
    head: list[tuple[str, bool]] = []
    columns: list[list[str]] = []
    for name in answer.columns:
        if name not in answer.aggregates:
            head.append((key_text(name), False))
            columns.append(key_labels(answer, name, most))
            continue
        head.append((key_text(name), True))
        head.append((f"± {percent}", True))
        low, high = f"{name}_low", f"{name}_high"
        shown = [
            _value_and_bar(row[name], row[low], row[high], whole=whole, decimals=added_decimals(answer, row[name]))
            for row in rows
        ]
        if answer.kinds.get(name) == "computed":  # NULL as the expression says, and no want of people
            shown = [(value, "" if value == "–" else bar) for value, bar in shown]
        columns.append([value for value, _ in shown])
        columns.append([bar for _, bar in shown])
    return head, [list(row) for row in zip(*columns, strict=True)]


def added_decimals(answer: Answer, value: Any) -> int | None:
    """Return how many decimals of a number are printed whatever its interval is, so that numbers add up as printed."""
    return decimals_of(value) if ADDED_UP in answer.facts.notes and value is not None else None


def decimals_of(value: float) -> int | None:
    """Return how many decimals a number of few digits has; None for a number that needs more.

    >>> decimals_of(12), decimals_of(36_600.25), decimals_of(1 / 3)
    (0, 2, None)
    """
    if isinstance(value, int) or not isfinite(value):
        return 0 if isinstance(value, int) else None
    short = f"{value:.{DIGITS_MOST}g}"
    return max(0, -int(Decimal(short).normalize().as_tuple().exponent)) if float(short) == value else None


def key_labels(answer: Answer, name: str, most: int | None = None) -> list[str]:
    """Return a key of the first rows for people, with a label for totals and others."""
    values = [row[name] for row in shown_rows(answer, most)]
    return [special_label(answer, name, at, value) or key_text(value) for at, value in enumerate(values)]


def special_label(answer: Answer, name: str, at: int, value: Any) -> str:
    """Return the label of a total, or of all groups that are not shown; empty for any other group.

    A group with the text of such a label, in a table that has it, is in quotes.
    """
    if name in answer.rolled and answer.rolled[name][at]:
        return TOTAL
    if value is None and name in answer.others:
        return OTHER
    taken = (*[TOTAL] * (name in answer.rolled), *[OTHER] * (name in answer.others))
    return f'"{value}"' if isinstance(value, str) and value.strip('"') in taken else ""


def key_text(value: Any) -> str:
    """Return a key for people; NULL is written as NULL."""
    if value is None:
        return "NULL"
    if type(value) is int:
        return str(value)
    if isinstance(value, datetime | date):
        return value.isoformat(sep=" ") if isinstance(value, datetime) else value.isoformat()
    if isinstance(value, Fraction):  # keys are decimals, which have few digits
        return _exact_text(value)
    return printable(str(value).replace("\r\n", "⏎").replace("\n", "⏎").replace("\r", "⏎"))


def _exact_text(value: Fraction) -> str:
    """Return a decimal with all its digits, so that different keys have different texts.

    >>> _exact_text(Fraction("1234567.25")), _exact_text(Fraction(3))
    ('1234567.25', '3')
    """
    scale = next((each for each in range(DECIMALS_MOST) if (value * 10**each).denominator == 1), DECIMALS_MOST)
    return f"{Decimal(f'{int(value * 10**scale)}e-{scale}'):f}"


def _value_and_bar(
    value: Any, low: Any, high: Any, *, whole: bool = False, decimals: int | None = None
) -> tuple[str, str]:
    """Return a number with the digits that its interval supports, and the interval; `whole` keeps all of a whole one.

    With `decimals` a number has at least these.

    >>> _value_and_bar(62_247, 53_247, 71_247), _value_and_bar(58_821, 58_368, 59_520)
    (('62,000', '9,000'), ('58,800', '58,300 … 59,600'))
    """
    if value is None:
        return "–", "not enough people"
    if low is None or high is None:
        return _number_text(value, _last_digit(abs(value) / 100, two_from=inf), round), "not known"
    above, below = high - value, value - low
    power = _last_digit((above + below) / 2)
    if whole or decimals is not None:
        power = 0 if isinstance(value, int) else _last_digit(max(above, below), two_from=inf)
    else:
        while power > LEAST_POWER and not _stands(value, low, high, power):
            power -= 1
    number = _number_text(value, power if decimals is None else min(power, -decimals), round)
    if abs(above - below) <= 1e-9 * (abs(high - low) or 1e-300):
        return number, _number_text(above, power, ceil)
    return number, f"{_number_text(low, power, floor)} … {_number_text(high, power, ceil)}"


def cell_text(value: Any, low: Any, high: Any, *, decimals: int | None = None) -> str:
    """Return a number and its interval on one line; with `decimals` the number has at least these."""
    number, bar = _value_and_bar(value, low, high, decimals=decimals)
    if value is None:
        return bar
    return f"{number}  ({bar})" if "…" in bar else f"{number} ± {bar}"


# The last digit of a number that is printed at most: the twelfth decimal.
LEAST_POWER = -12
# An interval has two digits if it begins with 1, 2 or 3.5 and less; otherwise one is enough.
TWO_DIGITS_TO = 3.55


def _last_digit(half: float, two_from: float = TWO_DIGITS_TO) -> int:
    """Return the power of ten of the last digit that an interval of this half-width supports."""
    if half <= 0:
        return -6
    if half == inf:
        return 0
    power = floor(log10(half))
    return max(power - (half < two_from * 10.0**power), LEAST_POWER)


def _stands(value: Any, low: Any, high: Any, power: int) -> bool:
    """Whether a number that is rounded at this digit is still within its interval, and not 0 unless it was."""
    rounded = _rounded_at(value, power, round)
    return bool(low <= rounded <= high and (rounded or not value))


def _rounded_at(value: Any, power: int, to_whole: Callable[[Any], int]) -> Any:
    """Return a number rounded at this power of ten; an excess of a float's last bits is ignored."""
    if isinstance(value, int):
        return value if power <= 0 else to_whole(Fraction(value, 10**power)) * 10**power
    if not -(2.0**53) < value < 2.0**53:
        return value
    scaled = float(value) * 10.0**-power
    nearest = round(scaled)
    off, size = scaled - nearest, 1e-9 * abs(scaled)
    is_whole = -size <= off <= size or -1e-9 <= off <= 1e-9
    return (nearest if is_whole else to_whole(scaled)) / 10.0**-power


def _number_text(value: Any, power: int, to_whole: Callable[[Any], int]) -> str:
    rounded = _rounded_at(value, power, to_whole)
    return f"{rounded:,}" if isinstance(rounded, int) else f"{rounded:,.{max(-power, 0)}f}"
