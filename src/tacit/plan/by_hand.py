"""Bounds by hand: what they leave out is measured, so that an answer can say so and scale its groups back.

Rows beyond a bound that a person gave are dropped, as they asked. How many those are nobody knows before it is
measured: two totals of the whole table, what was kept and what was cut, to which one unit adds at most the tail cap. It
is read off a learned profile of people's sizes. Where that profile shows nobody beyond the bounds, there is nothing to
measure. Like every learned number, the tail cap never touches privacy.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

from tacit.plan.caps import ANCHOR_SHARES, EPSILON_MOST, Terms, Told, by_rank, outlook_of, tail_in_fine_steps
from tacit.plan.facts import Fact, Facts, WantedFact
from tacit.plan.known import Grouping, Subject, grouping_of, profile_plan, reading_of
from tacit.plan.outputs import FAMILIES
from tacit.plan.plan import Spend
from tacit.plan.scaling import Vector
from tacit.plan.vectors import count_subject
from tacit.query import Query
from tacit.tables import Declaration, RowUnit

# Which part of a call's epsilon learns how many rows people have, where the bounds are given by hand.
LEARN_SHARE = Fraction(5, 100)
# Aggregates that are made of rows: what is dropped is missing in them, and can be told of.
OF_ROWS = ("rows", "values", "column", "pair")


@dataclass(frozen=True)
class Cut:
    """What is measured of the rows that bounds by hand leave out; `vector` is None where nothing need be measured."""

    vector: Vector | None
    share: Fraction  # of the call's loss, for both totals
    learned: tuple[Fact, ...]


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
    return any(FAMILIES[output.aggregate.kind] in OF_ROWS for output in query.outputs)


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
    epsilon = spend.epsilon * (LEARN_SHARE if learn is None else learn)
    words = f"how many rows a {grouping.unit} has"
    return (WantedFact(subject.key(), words, profile_plan(subject, [epsilon])),)


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
    if reading.top is None or reading.tail_cap <= rows:
        return Cut(None, Fraction(0), tuple(known))
    (sizes,) = by_rank([Told(reading)])
    tail, tail_shift = tail_in_fine_steps(reading.tail_cap, 0)
    groups = declaration.groups_per_unit if query.keys and declaration.groups_per_unit else 1
    vector = replace(rows_vector, shift=0, totals="absolute", tail=tail, tail_shift=tail_shift)
    vector = replace(vector, outlook=outlook_of(sizes, sizes.weights(float(rows * groups))))
    width = Terms("laplace", float(min(spend.epsilon, EPSILON_MOST))).width
    cells = len(grouping.public_keys) if grouping.public_keys is not None else max(1.0, sizes.mass / (rows * groups))

    def error(share: Fraction) -> float:
        noise = rows * groups * width(float(1 - share))
        return noise + sizes.tail_cap * width(float(share)) / cells

    return Cut(vector, min(ANCHOR_SHARES[:3], key=error), tuple(known))


def _known(grouping: Grouping, facts: Facts) -> list[Fact]:
    found = (_of_rows(grouping, by_both_norms=both).rounds(facts) for both in (False, True))
    return next((known for known in found if known), [])


def _of_rows(grouping: Grouping, *, by_both_norms: bool) -> Subject:
    return count_subject(replace(grouping, is_pure=not by_both_norms), "rows")
