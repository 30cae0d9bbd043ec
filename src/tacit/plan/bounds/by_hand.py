"""Bounds by hand: what they leave out is measured, so that an answer can say so and scale its groups back.

Rows beyond a bound that a person gave are dropped, as they asked. How many those are nobody knows before it is
measured: two totals of the whole table, what was kept and what was cut, to which one unit adds at most the tail cap. It
is read off a learned profile of people's sizes. Where that profile shows nobody beyond the bounds, there is nothing to
measure. Like every learned number, the tail cap never touches privacy.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

from tacit.errors import with_article
from tacit.plan.bounds.caps import ANCHOR_SHARES, EPSILON_MOST, Terms, Told, by_rank, outlook_of, tail_in_fine_steps
from tacit.plan.bounds.facts import Fact, Facts, WantedFact
from tacit.plan.bounds.known import Grouping, Subject, grouping_of, profile_plan, reading_of
from tacit.plan.bounds.profiles import UNSEEN
from tacit.plan.bounds.scaling import Vector
from tacit.plan.bounds.vectors import count_subject
from tacit.plan.outputs import FAMILIES
from tacit.plan.plan import Spend
from tacit.query import Aggregate, Query
from tacit.tables import Declaration, RowUnit

# Which part of a call's epsilon learns how many rows people have, where the bounds are given by hand: more of a small
# one, which sees less with the same part.
LEARN_SHARE = Fraction(5, 100)
LEARN_SHARE_MOST = Fraction(20, 100)
LEARN_EPSILON = Fraction(5, 100)
# A profile that may have missed the first part of the people whom it has seen is coarse: its tail cap is doubled, at
# most so often, while the totals have noise of no more than a part of all rows. Where it may have missed the second
# part it is doubled twice, whatever the noise.
MISSED_SOME, MISSED_MANY = 0.01, 0.05
DOUBLED_MOST, DOUBLED_LEAST = 4, 2
TAIL_NOISE_MOST = 0.1
# Aggregates that are made of rows: what is dropped is missing in them, and can be told of.
OF_ROWS = ("rows", "values", "column", "pair")


@dataclass(frozen=True)
class Cut:
    """What is measured of the rows that bounds by hand leave out; `vector` is None where nothing need be measured."""

    vector: Vector | None
    share: Fraction  # of the call's loss, for both totals
    learned: tuple[Fact, ...]
    is_unknown: bool = False  # too few people were seen to tell whether anything is left out


def counts_rows(query: Query, declaration: Declaration) -> bool:
    """Whether bounds by hand, if there are any, drop rows that an answer's numbers are made of."""
    if isinstance(declaration.unit, RowUnit) or declaration.rows_per_unit is None:
        return False
    if query.keys and declaration.groups_per_unit is None:
        return False
    if declaration.most_rows_per_unit is not None and declaration.most_rows_per_unit <= min(
        declaration.rows_per_unit, (declaration.groups_per_unit or 1) if query.keys else declaration.rows_per_unit
    ):
        return False  # nobody has more, by declaration: nothing can be cut
    if declaration.rows_per_unit == 1 and all(_counts_people(output.aggregate) for output in query.outputs):
        return False  # a count of people is not scaled up, so that nothing is measured for it
    return any(FAMILIES[output.aggregate.kind] in OF_ROWS for output in query.outputs)


def _counts_people(aggregate: Aggregate) -> bool:
    """Whether a number is of people where each has one row in a group: COUNT(*) is, and COUNT(x) is not."""
    return aggregate.kind == "count_units" or (aggregate.kind == "count" and aggregate.expression is None)


def facts_by_hand(
    query: Query, declaration: Declaration, spend: Spend, facts: Facts, learn: Fraction | None
) -> tuple[WantedFact, ...]:
    """Return the fact that the totals of a question with bounds by hand are planned from."""
    if not counts_rows(query, declaration) or _rows_are_public(query, declaration):
        return ()
    grouping = grouping_of(query, declaration, spend)
    subject = _of_rows(grouping, by_both_norms=False)
    if _known(grouping, facts) and subject.key() not in facts:
        return ()  # a question without bounds has learned more than is needed here
    epsilon = spend.epsilon * (_learn_share(spend.epsilon) if learn is None else learn)
    words = f"how many rows {with_article(str(grouping.unit))} has"
    return (WantedFact(subject.key(), words, profile_plan(subject, [epsilon])),)


def _learn_share(epsilon: Fraction) -> Fraction:
    return max(LEARN_SHARE, min(LEARN_SHARE_MOST, LEARN_EPSILON / epsilon))


def _rows_are_public(query: Query, declaration: Declaration) -> bool:
    return declaration.rows is not None and query.where is None


def cut_by_hand(query: Query, declaration: Declaration, spend: Spend, facts: Facts) -> Cut | None:
    """Return what is to be measured, by what is known; None where it is not known, or nothing of it is asked."""
    if not counts_rows(query, declaration) or _rows_are_public(query, declaration):
        return None
    grouping = grouping_of(query, declaration, spend)
    known = _known(grouping, facts)
    if not known:
        return None
    rows_vector = _of_rows(grouping, by_both_norms=False).profiles[0].vector
    reading = reading_of(known, 0, rows_vector)
    rows = declaration.rows_per_unit or 1
    if reading.top is None:
        return Cut(None, Fraction(0), tuple(known), is_unknown=True)
    missed = UNSEEN * reading.scale / max(reading.count, 1.0)
    (sizes,) = by_rank([Told(reading)])
    terms = Terms("laplace", float(min(spend.epsilon, EPSILON_MOST)))
    tail_cap = _safe_tail(reading.tail_cap, missed, sizes.mass, terms)
    tail_cap = min(tail_cap, float(declaration.most_rows_per_unit or tail_cap))
    if tail_cap <= rows or (reading.tail_cap <= rows and tail_cap * _noise(terms) > TAIL_NOISE_MOST * sizes.mass):
        return Cut(None, Fraction(0), tuple(known), is_unknown=missed >= MISSED_MANY)
    tail, tail_shift = tail_in_fine_steps(tail_cap, 0)
    groups = declaration.groups_per_unit if query.keys and declaration.groups_per_unit else 1
    vector = replace(rows_vector, shift=0, totals="absolute", tail=tail, tail_shift=tail_shift)
    vector = replace(vector, outlook=outlook_of(sizes, sizes.weights(float(rows * groups))))
    width = terms.width
    cells = len(grouping.public_keys) if grouping.public_keys is not None else max(1.0, sizes.mass / (rows * groups))

    def error(share: Fraction) -> float:
        noise = rows * groups * width(float(1 - share))
        return noise + tail_cap * width(float(share)) / cells

    return Cut(vector, min(ANCHOR_SHARES[:3], key=error), tuple(known))


def _safe_tail(tail_cap: float, missed: float, mass: float, terms: Terms) -> float:
    """Return a tail cap that allows for people whom a coarse profile has not seen; `missed` is their part at most."""
    if missed < MISSED_SOME:
        return tail_cap
    for doubled in range(DOUBLED_MOST):
        is_sharp = 2 * tail_cap * _noise(terms) <= TAIL_NOISE_MOST * mass
        if not is_sharp and (missed < MISSED_MANY or doubled >= DOUBLED_LEAST):
            break
        tail_cap *= 2
    return tail_cap


def _noise(terms: Terms) -> float:
    """Return about the error of both totals for a tail cap of 1, at the share that they have most often."""
    return terms.totals_width(float(ANCHOR_SHARES[1]))


def _known(grouping: Grouping, facts: Facts) -> list[Fact]:
    found = (_of_rows(grouping, by_both_norms=both).rounds(facts) for both in (False, True))
    return next((known for known in found if known), [])


def _of_rows(grouping: Grouping, *, by_both_norms: bool) -> Subject:
    return count_subject(replace(grouping, only_l1=not by_both_norms), "rows")
