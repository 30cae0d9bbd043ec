"""Quantiles beside counts, sums or means: two plans in one, so that each part is as good as asked by itself.

Counts, sums and means are scaled; quantiles of people are drawn by weights and need no bound. All numbers have an
equal part of epsilon, and together the two plans cost the call's amount.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

from tacit.errors import QueryRefused
from tacit.plan.bounds.facts import Facts
from tacit.plan.bounds.filled import Filled, filled, lacks_anything
from tacit.plan.bounds.found_keys import Keys, KeySearch, known_keys
from tacit.plan.bounds.known import grouping_of
from tacit.plan.bounds.missing_bounds import is_scaled
from tacit.plan.bounds.scaled import scaled_plan
from tacit.plan.outputs import Quantile
from tacit.plan.plan import Plan, Spend
from tacit.query import Query
from tacit.tables import Declaration


@dataclass(frozen=True)
class Half:
    """A part of a question, and its amount."""

    query: Query
    spend: Spend


@dataclass(frozen=True)
class Halves:
    """A question in two parts: the down-weighted numbers, and its quantiles."""

    scaled: Half
    drawn: Half

    def drawn_with(self, keys: Keys | None) -> Half:
        """Return the quantiles of these groups."""
        if not self.drawn.query.keys:
            return self.drawn
        return replace(self.drawn, query=replace(self.drawn.query, public_keys=keys))


def halves_of(query: Query, declaration: Declaration, spend: Spend) -> Halves | None:
    """Return both parts of a question that asks quantiles of people beside numbers that are scaled; else None.

    Noise is Laplace's, so that both parts are charged in epsilon.
    """
    drawn = tuple(output for output in query.outputs if output.aggregate.of == "people")
    others = tuple(output for output in query.outputs if output not in drawn)
    if not drawn or not others:
        return None
    scaled = replace(query, outputs=others, columns=())
    if not is_scaled(scaled, declaration):
        return None
    if spend.noise == "gaussian":
        raise QueryRefused(
            "quantiles of people are asked beside counts, sums or means with Laplace noise only"
            "\nhint: leave noise= out, or ask for the quantiles by themselves"
        )
    part = Fraction(len(others), len(query.outputs))
    names = {output.name for output in others}
    weights = tuple(each for each in spend.weights if each[0] in names)
    return Halves(
        Half(scaled, replace(spend, epsilon=spend.epsilon * part, noise="laplace", weights=weights)),
        Half(
            replace(query, outputs=drawn, columns=()),
            replace(spend, epsilon=spend.epsilon * (1 - part), noise="laplace", weights=()),
        ),
    )


def known_groups(halves: Halves, declaration: Declaration, facts: Facts) -> Keys | None:
    """Return the groups that are listed, or known to have been found."""
    half = halves.scaled
    grouping = grouping_of(half.query, declaration, half.spend)
    if grouping.public_keys is not None:
        return grouping.public_keys
    return known_keys(KeySearch(grouping).at_hand(facts).rounds(facts)) or None


def filled_half(half: Half, declaration: Declaration, facts: Facts) -> Filled | None:
    """Return the quantiles with their missing ranges filled in; None if a fact is missing."""
    if not lacks_anything(half.query, declaration, half.spend):
        return Filled(half.query, declaration, ())
    return filled(half.query, declaration, half.spend, facts)


def scaled_half(halves: Halves, declaration: Declaration, facts: Facts) -> Plan | None:
    """Return the plan of the down-weighted part; None if a fact is missing."""
    return scaled_plan(halves.scaled.query, declaration, halves.scaled.spend, facts)


def united(query: Query, spend: Spend, scaled: Plan, drawn: Plan, filled: Filled) -> Plan:
    """Return one plan of both: the columns of the quantiles come after those that are scaled."""
    first = len(scaled.measured)
    part = scaled.spend.epsilon / spend.epsilon
    releases, totals = (
        tuple(replace(each, share=each.share * part) for each in some) for some in (scaled.releases, scaled.totals)
    )
    quantiles = tuple(
        replace(draw, column=draw.column + first, share=draw.share * (1 - part)) for draw in drawn.quantiles
    )
    outputs = {output.name: output for output in scaled.outputs}
    for output in drawn.outputs:
        if isinstance(output, Quantile):
            outputs[output.name] = replace(output, column=output.column + first)
    return replace(
        scaled,
        measured=(*scaled.measured, *drawn.measured),
        releases=releases,
        totals=totals,
        quantiles=quantiles,
        outputs=tuple(outputs[output.name] for output in query.outputs),
        columns=query.columns or (*(key.name for key in query.keys), *(output.name for output in query.outputs)),
        spend=spend,
        learned=tuple(dict.fromkeys((*scaled.learned, *filled.used))),
        learned_ranges=filled.ranged,
    )
