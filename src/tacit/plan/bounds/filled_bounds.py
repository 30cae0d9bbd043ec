"""Bounds that are filled in: how many rows, groups and different values of one unit count, read off learned profiles.

A bound on rows is what a cap would be; any other one is such that most people keep all they have. Like every learned
number it never touches privacy: what is beyond it is dropped, whatever it is.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

import numpy as np

from tacit.plan.bounds.caps import EPSILON_MOST, NoiseTerms, Told, UnitSizes, best_cap, by_rank
from tacit.plan.bounds.ceilings import under_ceilings
from tacit.plan.bounds.chosen import WITHIN_BOUNDS
from tacit.plan.bounds.facts import Fact, Facts
from tacit.plan.bounds.known import Grouping, Subject, reading_of
from tacit.plan.bounds.missing_bounds import lacks_groups, lacks_rows_bound
from tacit.plan.bounds.vectors import count_subject
from tacit.plan.plan import KeyColumn
from tacit.query import Aggregate, Expression, Query, type_of
from tacit.tables import Declaration, RowUnit

BOUND_MOST = 1 << 20


@dataclass(frozen=True)
class MissingBound:
    """A bound that is not given by hand: what it is a bound on, and the fact that it is read off."""

    what: str
    subject: Subject
    expression: Expression | None = None  # whose different values are bounded


def missing_bounds(query: Query, grouping: Grouping) -> Iterator[MissingBound]:
    """Yield each bound that a question needs and does not have, groups last: others are divided by them."""
    declaration = grouping.declaration
    if lacks_rows_bound(query, declaration):
        yield MissingBound("rows", count_subject(grouping, "rows"))
    for expression in dict.fromkeys(_unbounded_values(query, declaration)):
        value = KeyColumn("value", expression, type_of(expression, declaration))
        cells = replace(grouping, keys=(*grouping.keys, value), public_keys=None, cells=0)
        yield MissingBound("values", count_subject(cells, "units"), expression)
    if lacks_groups(query, declaration):
        yield MissingBound("groups", count_subject(grouping, "units"))


def _unbounded_values(query: Query, declaration: Declaration) -> Iterator[Expression]:
    for output in query.outputs:
        if _lacks_per_unit(output.aggregate, declaration) and output.aggregate.expression is not None:
            yield output.aggregate.expression


def _lacks_per_unit(aggregate: Aggregate, declaration: Declaration) -> bool:
    if isinstance(declaration.unit, RowUnit) or declaration.rows_per_unit is not None:
        return False
    return aggregate.kind == "count_distinct" and aggregate.per_unit is None


@dataclass(frozen=True)
class FilledBounds:
    """A question and a declaration with the bounds that they lacked, and the facts these were read off."""

    query: Query
    declaration: Declaration
    used: tuple[Fact, ...]


def with_bounds_filled(query: Query, grouping: Grouping, facts: Facts, epsilon: Fraction) -> FilledBounds | None:
    """Return the question with the bounds that it lacks; None where a fact is missing."""
    declaration = grouping.declaration
    sizes: dict[tuple[str, Expression | None], float] = {}
    used: list[Fact] = []
    for bound in missing_bounds(query, grouping):
        rounds = bound.subject.at_hand(facts, epsilon).rounds(facts)
        if not rounds:
            return None
        read, ceilings = under_ceilings(reading_of(rounds, 0, bound.subject.profiles[0].vector), bound.subject, facts)
        used += [*rounds, *ceilings]
        (people,) = by_rank([Told(read)])
        if bound.what == "rows":  # noise grows with them, as with a cap, so they are as many as a cap would be
            cells = float(len(grouping.public_keys or ()) or grouping.cells or 1)
            terms = NoiseTerms("laplace", float(min(epsilon, EPSILON_MOST)) / len(query.outputs))
            cap = best_cap(people, terms, cells=cells)
            sizes[bound.what, bound.expression] = cap.tail or cap.size
        else:
            sizes[bound.what, bound.expression] = _size_of_most(people)
    groups = declaration.groups_per_unit
    if ("groups", None) in sizes:
        groups = _whole_bound(sizes["groups", None])
    shared = groups if query.keys and groups is not None else 1
    rows = declaration.rows_per_unit
    if ("rows", None) in sizes:
        rows = _whole_bound(sizes["rows", None] / shared)

    def bounded(aggregate: Aggregate) -> Aggregate:
        if not _lacks_per_unit(aggregate, declaration):
            return aggregate
        return replace(aggregate, per_unit=_whole_bound(sizes["values", aggregate.expression] / shared))

    outputs = tuple(replace(output, aggregate=bounded(output.aggregate)) for output in query.outputs)
    filled = replace(declaration, rows_per_unit=rows, groups_per_unit=groups)
    return FilledBounds(replace(query, outputs=outputs), filled, tuple(dict.fromkeys(used)))


def _whole_bound(size: float) -> int:
    return min(max(1, ceil(size)), BOUND_MOST)


def _size_of_most(people: UnitSizes) -> float:
    """Return what most people have no more of."""
    ranks = np.cumsum(people.people)
    place = min(int(np.searchsorted(ranks, WITHIN_BOUNDS * ranks[-1])), len(ranks) - 1)
    return min(float(people.total[place]), people.tail_cap)
