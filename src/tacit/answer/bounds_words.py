"""The few lines below an answer about its bounds: what was scaled away, what no bar holds, and what was learned.

They are made of `disclosure.py`'s record, which has every number for programs. A line says what changes how a number
is to be read, in the words of the question; what is the same for several numbers is said once.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from tacit.answer.disclosure import SUM_OF, Record
from tacit.errors import with_article
from tacit.plan import (
    UNBOUNDED,
    CountRows,
    CountValues,
    Mean,
    Measured,
    Plan,
    PlannedOutput,
    Quantile,
    Sum,
    people_beyond_ranges,
)
from tacit.privacy import show
from tacit.query import name_of

TOO_FEW = (
    "Too few people to learn bounds from at this ε: the caps are the least there are, and numbers may be far too low."
    " Learn with more ε, or give what you know: rows_per_unit=, groups_per_unit=, between=."
)
OF_ALL_ROWS = (
    "Too little is known of the people whom the filter leaves, so they are taken to be as large as those of all rows:"
    " the noise may be more than they need. Spend more ε, or give what you know: rows_per_unit=, groups_per_unit=."
)
CUT_UNKNOWN = (
    "Too few people were seen at this ε to tell what the bounds leave out: nothing is scaled up for it, and numbers may"
    " be far too low. Learn with more ε (table.learn), or declare rows= or most_rows_per_unit=."
)
COARSE = (
    "Sizes of people are known coarsely at this ε, so the measured total may be too low. Learn them with more ε"
    " (table.learn)."
)
# Of the people who were seen, this part may have more than is believed where sizes are known coarsely.
COARSE_FROM = 0.05
# At most about this many scales of noise are in a bin of a profile and not seen.
UNSEEN = 3
# A share of people is "about" one number if its ends are no further apart than this part of it.
NEAR = 0.5
# How the words of a fact about a column's values begin.
SIZE_OF = "how large "
# A line names so many columns, and says how many more there are.
NAMED_MOST = 4


def bounds_lines(plan: Plan, record: Record) -> tuple[str, ...]:
    """Return the lines below an answer: what was scaled away, what nobody counts beyond, and what was learned."""
    if plan.scaling is None:
        return _dropping_lines(plan, record.get("left_out", []))
    vectors = record["scaled"]
    lines = [TOO_FEW if is_unlearned(plan) else filter_line(plan)]
    lines.append(_joined([_who(plan, vectors), *_taken([each for each in vectors if _may_be_cut(each)])]))
    lines += _shift_lines(record["shifted"])
    lines += [_moment_line(each, plan) for each in record["moments"]]
    limited = [each for each in vectors if plan.keys or each["kind"] != "units"]  # a unit is one unit
    lines += [_tail_line(limited, record["shifted"]), *_beyond_lines(plan), learned_line(plan)]
    return tuple(line for line in dict.fromkeys(lines) if line)


def is_unlearned(plan: Plan) -> bool:
    """Whether too few people are in a profile to read a cap off it, so that the cap is the least there is."""
    outlooks = (vector.outlook for vector in plan.scaling.vectors) if plan.scaling is not None else ()
    return any(outlook is not None and outlook.people <= 0 for outlook in outlooks)


def filter_line(plan: Plan) -> str:
    """Return what to say where a cap is read off what is known of all rows, though fewer are asked about."""
    outlooks = (vector.outlook for vector in plan.scaling.vectors) if plan.scaling is not None else ()
    return OF_ALL_ROWS if any(outlook is not None and outlook.of_all_rows for outlook in outlooks) else ""


def learned_line(plan: Plan) -> str:
    """Return what was paid for once, and where the ledger has it."""
    if not plan.learned:
        return ""
    entries = sorted({fact.entry for fact in plan.learned if fact.entry})
    where = "" if not entries else f" (entry {entries[0]})" if len(entries) == 1 else f" (entries {_span(entries)})"
    words = sorted(dict.fromkeys(fact.words for fact in plan.learned), key=lambda each: not each.startswith("how many"))
    more = f", and {len(words) - 1} more" if len(words) > 1 else ""
    spent = _spent(sum((fact.epsilon for fact in plan.learned), Fraction(0)))
    return f"Learned once for ε {spent}{where}, free from now on: {words[0]}{more}."


def _span(entries: Sequence[int]) -> str:
    return ", ".join(map(str, entries)) if len(entries) <= 2 else f"{entries[0]} to {entries[-1]}"


def _spent(epsilon: Fraction) -> str:
    exact, short = show(epsilon), f"{float(epsilon):.2g}"
    return f"= {exact}" if len(exact) <= len(short) + 1 else f"≈ {short}"


def _joined(sentences: Iterable[str]) -> str:
    return " ".join(sentence for sentence in sentences if sentence)


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


# ---- Who counts for less, and what that takes.


def _may_be_cut(each: Record) -> bool:
    return bool(each["factor_high"] != 1.0 or each["foreseen"] != 1.0)


def _who(plan: Plan, vectors: Sequence[Record]) -> str:
    """Return from which size on people count for less, and about how many they are."""
    whole = next((each for each in vectors if each.get("people")), None)
    if whole is None or not plan.keys or not plan.learned:
        return ""
    share = _share_of_people(whole)
    if share is None:
        return ""
    return f"Who {_has_more(whole)} counts for less ({share})."


def _has_more(each: Record) -> str:
    """Return beyond which size people count for less: with the L2 norm, it is more in different groups than in one."""
    in_one = "" if each["norm"] == 1 else " in one group"
    if each["kind"] == "units":
        groups = each["cap"] if each["norm"] == 1 else each["cap"] ** 2
        return f"is in more than about {_many(groups, 'groups')}"
    of = f"of {each['of'].removeprefix(SUM_OF)}" if each["of"].startswith(SUM_OF) else each["of"]
    return f"has more than about {_many(each['cap'], of)}{in_one}"


def _share_of_people(each: Record) -> str | None:
    """Return which share of people has more, as far as the noise tells; None where nobody is known or foreseen to."""
    people = each["people"]
    share = min(each["people_scaled"] / people, 1.0)
    low, high = each.get("people_scaled_least"), each.get("people_scaled_most")
    if low is None or high is None:
        return f"about {_percent(share)} of people" if share >= 5e-5 else None
    low, high = max(low / people, 0.0), min(high / people, 1.0)
    if low <= 0 and high >= 1:
        return "how many is not known at this ε"
    if low <= 0:
        return f"at most {_percent(high)} of people, perhaps nobody" if share >= 5e-5 else None
    if high >= 1:
        return f"at least {_percent(low)} of people"
    if high - low <= NEAR * high:
        return f"about {_percent(min(max(share, low), high))} of people"
    return f"{_between(low, high)} of people"


def _taken(cut: Sequence[Record], away: str = "scaled away") -> list[str]:
    """Return what was taken from the vectors in which something may have been, and what is done about it."""
    sentences = [_to_public(each) for each in cut if each["public_total"] is not None]
    rest = [each for each in cut if each["public_total"] is None]
    unmeasured = [each for each in rest if "share_cut" not in each]
    for share in dict.fromkeys(_percent(1 - 1 / each["foreseen"]) for each in unmeasured):
        of = _and([each["of"] for each in unmeasured if _percent(1 - 1 / each["foreseen"]) == share])
        sentences.append(f"About {share} of {of} {_is(of)} {away}, by what was learned; bars allow for it.")
    measured = [each for each in rest if "share_cut" in each]
    unknown = [each["of"] for each in measured if each["factor_high"] is None]
    if unknown:
        sentences.append(f"How much of {_and(unknown)} was {away} is not known; bars allow for all that may have been.")
    known = [each for each in measured if each["factor_high"] is not None]
    whole = [f"{each['of']} (at most {_percent(each['share_cut_high'])})" for each in known if each["factor"] == 1.0]
    if whole:
        sentences.append(f"Nothing is known to be {away} of {_and(whole)}.")
    scaled = [each for each in known if each["factor"] != 1.0]
    if scaled:
        totals = [f"{_amount(each['total'])} ± {_amount(each['total_error'])}" for each in scaled]
        to = "a measured total of" if len(totals) == 1 else "measured totals of"
        shares = _and([_share_cut(each) for each in scaled])
        sentences.append(
            f"Scaling took {shares}; all groups are scaled up for it, to {to} {_and(totals)}."
            if away == "scaled away"
            else f"The bounds leave out {shares}; all groups are scaled up for it, to {to} {_and(totals)}."
        )
        sentences.append(_bars(scaled))
    return sentences


def _is(of: str) -> str:
    return "is" if of.startswith(SUM_OF) and " and " not in of else "are"


def _to_public(each: Record) -> str:
    to = f"the declared {each['public_total']:,} rows; rows in no listed group would make all of them too high"
    return f"All counts are scaled up by {each['factor']:.4g} to {to}. {_bars([each])}"


def _share_cut(each: Record) -> str:
    if "share_cut" not in each:
        return f"about {_percent(1 - 1 / each['factor'])} of {each['of']}"
    return f"{_percent(each['share_cut'])} of {each['of']} ({_between(each['share_cut_low'], each['share_cut_high'])})"


def _between(low: float, high: float) -> str:
    return f"{' to '.join(_digits(100 * end, 100 * (high - low)) for end in (low, high))} %"


def _bars(scaled: Sequence[Record]) -> str:
    """Return what bars allow a group to have lost, and how far all groups may be off together."""
    most = f"{max(each.get('lost_most', 2.0) for each in scaled):.1f}"
    times = "twice" if most == "2.0" else f"{most} times"
    together = _and(list(dict.fromkeys(_off(each) for each in scaled)))
    return f"Bars allow a group to have lost nothing or {times} the average, and all to be off together by {together}."


def _off(each: Record) -> str:
    off = max(each["factor_high"] - each["factor"], each["factor"] - each["factor_low"]) / each["factor"]
    return _percent(off) if off < 1 else f"a factor of up to {1 + off:.2g}"


def _shift_lines(shifted: Sequence[Record]) -> list[str]:
    measured = [each for each in shifted if each["error"]]
    moved = [f"{each['name']} by {each['shift']:+.3g} ± {each['error']:.2g}" for each in measured if each["shift"]]
    alike = [f"{each['name']} is within {each['error']:.2g}" for each in measured if not each["shift"]]
    lines = [f"Means are shifted to that of the whole table: {', '.join(moved)}."] if moved else []
    if alike:
        told = "What was scaled away is not known to differ from the rest"
        lines.append(f"{told}: by the measured totals of the whole table {', '.join(alike)}. Bars allow it.")
    return lines


def _moment_line(each: Record, plan: Plan) -> str:
    if each["share_of_rows"] is None or not plan.keys:
        return ""
    rows, products = (_percent(each[name]) for name in ("share_of_rows", "share_of_products"))
    return (
        f"{each['name']} is of what scaling leaves: by the facts it takes {rows} of rows and {products} of {each['of']}"
        f" about the middle, and bars allow for the difference. At most {math.ceil(each['people_beyond_most']):,}"
        " people have more than anybody who was seen; what they have beyond that is in no bar."
    )


# ---- What nobody counts beyond.


def _tail_line(vectors: Sequence[Record], shifted: Sequence[Record] = ()) -> str:
    """Return what the bars are about, and who is in none of them."""
    limited = [each for each in vectors if each["most"]]
    if not limited:
        return ""
    line = f"Nobody counts for more than {_limits(limited, shifted)}"
    known = [each for each in limited if "people_beyond" in each]
    if not known:
        return f"{line}; what people have beyond it is in no bar."
    if any(each["people_beyond_most"] >= each["people"] for each in known):
        return f"{line}; how many people have more is not known at this ε, and what they have beyond it is in no bar."
    about, unseen = (max(each[name] for each in known) for name in ("people_beyond", "people_beyond_most"))
    who = (
        f"about {about:,.0f} people (at most {math.ceil(unseen):,})"
        if round(about)
        else f"at most {math.ceil(unseen):,} people"
    )
    return f"{line}; {who} have more, and what they have beyond it is in no bar."


def _beyond_lines(plan: Plan) -> list[str]:
    """Return which columns have values that are beyond all that is learned: they count as if they were far smaller."""
    return [
        f"About {people:,.0f} people have values of {words.removeprefix(SIZE_OF).removesuffix(' is')} beyond 2^63,"
        " which no learned range is for: they may count for far less than they are. Declare a range: between=."
        for words, people in people_beyond_ranges(plan.learned).items()
        if words.startswith(SIZE_OF)
    ]


def _limits(limited: Sequence[Record], shifted: Sequence[Record]) -> str:
    """Return what nobody counts for more than: rows that several numbers are made of are named once."""
    rows = [each for each in limited if each["kind"] in ("rows", "counted")]
    if len({each["most"] for each in rows}) == 1:
        limited = [{**rows[0], "of": "rows"} if each is rows[0] else each for each in limited if each not in rows[1:]]
    most = [f"{_exactly(each['most'])} {_of(each)}" for each in limited]
    most += [f"{_exactly(each['most'])} above or below {each['centre']:.4g} in {each['name']}" for each in shifted]
    if len(most) > NAMED_MOST:
        most = [*most[: NAMED_MOST - 1], f"{len(most) - NAMED_MOST + 1} more such limits"]
    return " or ".join([", ".join(most[:-1]), most[-1]] if len(most) > 1 else most)


def _of(each: Record) -> str:
    words = "groups" if each["kind"] == "units" else str(each["of"]).replace("the sum of", "of")
    return _one(words) if each["most"] == 1 else words


# ---- Bounds by which rows are dropped, and ranges.


def _dropping_lines(plan: Plan, left_out: Sequence[Record]) -> tuple[str, ...]:
    """Return what is said where units are bounded by dropping, or rows by a range that was learned."""
    lines: list[str] = []
    scaled_up = [output for output in plan.outputs if isinstance(output, CountRows | CountValues | Sum)]
    means = [output.name for output in plan.outputs if isinstance(output, Mean)]
    as_it_is = [
        output.name
        for output in plan.outputs
        if output not in scaled_up and output.name not in means and not is_of_people(output, plan)
    ]
    if left_out:
        taken = _taken(left_out, "left out") if scaled_up else [f"The bounds leave out {_share_cut(left_out[0])}."]
        lines += [_joined(taken), _tail_line(left_out) if scaled_up else "", _kept_line(means, as_it_is)]
        lines += [COARSE for each in left_out if _is_coarse(each)]
    elif plan.learned:
        lines += [CUT_UNKNOWN if plan.cut_is_unknown else "", *_bound_lines(plan)]
    lines += [_range_line(plan), *_beyond_lines(plan), learned_line(plan)]
    return tuple(line for line in dict.fromkeys(lines) if line)


def _is_coarse(each: Record) -> bool:
    return bool(each.get("people")) and each["people_beyond_most"] >= COARSE_FROM * each["people"]


def _kept_line(means: Sequence[str], others: Sequence[str]) -> str:
    """Return which numbers are of the rows that were kept, and what their bars hold of the rest."""
    sentences = []
    if means:
        sentences.append(
            f"Of the rows that were kept: {named(means)}. The bars allow for rows left out that differ from these by"
            " half the way to the nearer end of the range."
        )
    if others:
        sentences.append(f"Not scaled up, but of the rows that were kept, as are their bars: {named(others)}.")
    return _joined(sentences)


def named(names: Sequence[str]) -> str:
    """Return names, the first of them where they are many."""
    if len(names) <= NAMED_MOST:
        return ", ".join(names)
    return f"{', '.join(names[: NAMED_MOST - 1])} and {len(names) - NAMED_MOST + 1} more"


def is_of_people(output: PlannedOutput, plan: Plan) -> bool:
    """Whether a quantile is of people, so that no row of theirs was left out by a bound on rows."""
    return isinstance(output, Quantile) and plan.quantiles[output.draw].of == "people"


def _bound_lines(plan: Plan) -> list[str]:
    """Return learned bounds whose cut is not measured."""
    lines = []
    named = with_article(plan.unit or "row")
    who = named[0].upper() + named[1:]
    cuts_nobody = plan.most_rows is not None and plan.most_rows <= min(plan.rows_per_unit, plan.groups_per_unit)
    if plan.unit is not None and plan.needs_rows and not cuts_nobody:
        groups = f" in each of {plan.groups_per_unit:,} groups" if plan.keys else ""
        row = "row" if plan.rows_per_unit == 1 else "rows"
        rows = f"{who} counts with at most {plan.rows_per_unit:,} {row}{groups}"
        lines.append(f"{rows}; what it has beyond them is left out at random, and is in no bar.")
    elif plan.unit is not None and plan.keys and plan.groups_per_unit < UNBOUNDED and not cuts_nobody:
        groups = f"{who} counts in at most {plan.groups_per_unit:,} groups"
        lines.append(f"{groups}; what it has beyond them is left out at random, and is in no bar.")
    where = " in a group" if plan.keys else ""
    values = [f"{each.per_unit:,} different values of {name_of(each.expression)}" for each in plan.distincts]
    if values:
        lines.append(f"{who} counts with at most {_and(values)}{where}; what it has beyond them is in no bar.")
    return lines


def _range_line(plan: Plan) -> str:
    """Return the learned ranges that values are held in, where that matters: no bar has what is beyond.

    It does not to a quantile, unless it is the least or the greatest.
    """
    unseen = max((UNSEEN * float(scale) for fact in plan.learned for scale in fact.scales[:1]), default=0.0)
    drawn = {draw.column for draw in plan.quantiles if all(0 < fraction < 1 for fraction, _, _ in draw.targets)}
    held = {
        name_of(column.expression): _held(column)
        for place, column in enumerate(plan.measured)
        if column.expression in plan.learned_ranges and not column.counts_only and place not in drawn
    }
    if not held:
        return ""
    between, it = ("these are", "them") if len(held) > 1 else ("it is", "it")
    return (
        f"Values count as if within {named(list(held.values()))}: nobody is known to be beyond (at most about"
        f" {math.ceil(unseen):,} people), and no bar holds what is. If {between} public, declare {it}: the error is"
        " smaller."
    )


def _held(column: Measured) -> str:
    low, high = (_exactly(float(end * column.step)) for end in (column.low, column.high))
    return f"{low} to {high} of {name_of(column.expression)}"


# ---- Numbers in words.


def _many(size: float, of: str) -> str:
    """Return so many of something, in the singular if it is one."""
    amount = _amount(size)
    return f"{amount} {_one(of) if amount == '1' else of}"


def _one(of: str) -> str:
    return of.replace("rows", "row").replace("groups", "group")


def _percent(share: float) -> str:
    """Return a share in percent, with two digits that count."""
    if share <= 0:
        return "0 %"
    return f"{share * 100:.2g} %" if share < 0.995 else "100 %"


def _digits(value: float, width: float) -> str:
    """Return a number with as many decimals as an interval of this width needs to show its two ends apart."""
    decimals = min(max(1 - math.floor(math.log10(width)), 0), 9) if width > 0 else 2
    return f"{value:.{decimals}f}"


def _exactly(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.4g}"


def _amount(value: float) -> str:
    """Return a number with three or four digits that count, and commas."""
    if abs(value) < 100:
        return f"{value:.3g}"
    digits = 4 - math.ceil(math.log10(abs(value)))
    return f"{round(value, min(digits, 0)):,.0f}"
