"""The planner: from a question, a declaration and a spend to a plan, by a tuple of passes.

A pass is a function from a draft to the next, and adds one kind of decision; `trace` shows the draft after each.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import reduce
from typing import TypeVar

from tacit.accounting import shares_of
from tacit.errors import InvalidParameter, QueryRefused
from tacit.plan.bounds.facts import NO_FACTS, Facts
from tacit.plan.bounds.filled import filled, lacks_anything
from tacit.plan.bounds.found_keys import refuse_no_groups
from tacit.plan.bounds.missing_bounds import is_scaled
from tacit.plan.bounds.mixed import Halves, filled_half, halves_of, scaled_half, united
from tacit.plan.bounds.others import with_others
from tacit.plan.bounds.scaled import scaled_plan
from tacit.plan.bounds.scaling import UNBOUNDED
from tacit.plan.choices import UnitBounds, choice_of, with_quantiles_of
from tacit.plan.groups import public_keys, refuse_private_keys, threshold_for
from tacit.plan.layout import UNITS, Bounds, Layout, lay_out
from tacit.plan.levels import plan_with_levels
from tacit.plan.outputs import FAMILIES
from tacit.plan.plan import (
    Choice,
    KeyColumn,
    NoiseKind,
    NoisyRelease,
    Plan,
    QuantileDraw,
    Sensitivity,
    Spend,
    Threshold,
)
from tacit.plan.sensitivity import sensitivity_of
from tacit.plan.split import divide
from tacit.privacy import Loss, Number, RenyiLoss, decimal_meaning, delta_meaning, positive
from tacit.query import Query, Scalar, limit_cells, type_of
from tacit.tables import Declaration, RowUnit

# Families that count units, however many rows each unit has.
UNITS_ONLY = ("units", "distinct", "ranking")

Found = TypeVar("Found")


@dataclass(frozen=True)
class PlanDraft:
    """A plan in the making: a question, and what earlier passes decided about it, which it prints."""

    query: Query = field(repr=False)
    declaration: Declaration = field(repr=False)
    spend: Spend = field(repr=False)
    public_keys: tuple[tuple[Scalar, ...], ...] | None = None  # None, once keys are listed: they are found privately
    unit: UnitBounds | None = None
    layout: Layout | None = None
    sensitivities: tuple[Sensitivity, ...] | None = None
    releases: tuple[NoisyRelease, ...] | None = None
    quantiles: tuple[QuantileDraw, ...] | None = None
    threshold: Threshold | None = None  # None, once it is set: no key is found
    choice: Choice | None = None  # None, once it is made: nothing is ranked

    def __str__(self) -> str:
        shown = {each.name: getattr(self, each.name) for each in fields(self) if each.repr}
        return "\n".join(f"{name}: {value}" for name, value in shown.items() if value is not None) or "nothing yet"


Pass = Callable[[PlanDraft], PlanDraft]


def list_keys(draft: PlanDraft) -> PlanDraft:
    """List the public keys, or None where they are found privately; refuse more cells than an answer may have."""
    listed = public_keys(draft.query, draft.declaration)
    if listed is None and draft.spend.delta_keys == 0:
        refuse_private_keys(draft.query)
    limit_cells(draft.query, None if listed is None else len(listed))
    return replace(draft, public_keys=listed)


def bound_units(draft: PlanDraft) -> PlanDraft:
    """Bound the rows in a group and the groups that one unit may have, and say which quantiles are of people."""
    query = with_quantiles_of(draft.query, draft.declaration)
    rows, groups = _declared_bounds(query, draft.declaration, draft.public_keys)
    return replace(draft, query=query, unit=UnitBounds(rows, groups, replace=draft.declaration.neighbours == "replace"))


def lay_out_parts(draft: PlanDraft) -> PlanDraft:
    """Put columns on their grids, and lay out which parts are released for which outputs."""
    unit = _decided(draft.unit)
    bounds = Bounds(unit.rows, unit.groups, draft.spend.epsilon)
    return replace(draft, layout=lay_out(draft.query, draft.declaration, bounds, private=draft.public_keys is None))


def bound_moves(draft: PlanDraft) -> PlanDraft:
    """Bound how far one unit can move each release: its sensitivity."""
    unit, layout = _decided(draft.unit), _decided(draft.layout)
    found = tuple(
        sensitivity_of(
            parts,
            tuple(layout.columns),
            tuple(layout.distincts),
            rows_per_unit=unit.rows,
            groups_per_unit=unit.groups,
            neighbours=draft.declaration.neighbours,
        )
        for parts in layout.released
    )
    return replace(draft, sensitivities=found)


def choose_noise(draft: PlanDraft) -> PlanDraft:
    """Divide the loss, and give each release and each draw the noise that errs less."""
    sensitivities = list(_decided(draft.sensitivities))
    releases, draws = divide(_decided(draft.layout), sensitivities, draft.spend, _decided(draft.unit))
    return replace(draft, releases=releases, quantiles=draws)


def set_threshold(draft: PlanDraft) -> PlanDraft:
    """Set the threshold: a key that is not public is shown if its noisy count of units reaches it."""
    if draft.public_keys is not None:
        return draft
    index = _decided(draft.layout).released.index(UNITS)
    chosen, groups = _decided(draft.releases)[index], _decided(draft.unit).groups
    threshold = threshold_for(
        chosen.summed, chosen.scale, groups_per_unit=groups, delta=draft.spend.delta_keys, release=index
    )
    return replace(draft, threshold=threshold)


def choose_ranking(draft: PlanDraft) -> PlanDraft:
    """Decide how the best of the public keys are chosen, where a ranking is asked for."""
    return replace(draft, choice=choice_of(draft.query, draft.public_keys, draft.spend, _decided(draft.unit)))


PASSES: tuple[Pass, ...] = (
    list_keys,
    bound_units,
    lay_out_parts,
    bound_moves,
    choose_noise,
    set_threshold,
    choose_ranking,
)


def make_plan(query: Query, declaration: Declaration, spend: Spend, facts: Facts = NO_FACTS) -> Plan:
    """Return the plan of a checked question, from public and learned facts; refuse one that lacks a bound."""
    if query.levels:
        groups = replace(query, levels=())

        def of_noise(noise: NoiseKind) -> Plan:
            return make_plan(groups, declaration, replace(spend, noise=noise), facts)

        return plan_with_levels(query, spend, make_plan(groups, declaration, spend, facts), of_noise)
    if query.other:
        listed, rounds = with_others(query, declaration, spend, facts)
        whole = make_plan(listed, declaration, spend, facts)
        return replace(whole, has_others=True, learned=tuple(dict.fromkeys((*whole.learned, *rounds))))
    query = with_quantiles_of(query, declaration)
    if (halves := halves_of(query, declaration, spend)) is not None:
        plan = _mixed_plan(query, halves, declaration, spend, facts)
        if plan is not None:
            return plan
    elif is_scaled(query, declaration):
        plan = scaled_plan(query, declaration, spend, facts)
        if plan is not None:
            return plan
    elif lacks_anything(query, declaration, spend):
        found = filled(query, declaration, spend, facts)
        if found is not None:
            plan = hand_set_plan(found.query, found.declaration, spend)
            return replace(plan, learned=found.used, learned_ranges=found.ranged)
    return hand_set_plan(query, declaration, spend)


def _mixed_plan(query: Query, halves: Halves, declaration: Declaration, spend: Spend, facts: Facts) -> Plan | None:
    scaled = scaled_half(halves, declaration, facts)
    if scaled is None:
        return None
    refuse_no_groups([scaled])  # the ranges of its quantiles are not learned then
    drawn = halves.drawn_with(scaled.public_keys)
    found = filled_half(drawn, declaration, facts)
    if found is None:
        return None
    return united(query, spend, scaled, hand_set_plan(found.query, found.declaration, drawn.spend), found)


def hand_set_plan(query: Query, declaration: Declaration, spend: Spend) -> Plan:
    """Return the plan of a question whose bounds and ranges are all given by hand; refuse where one is missing."""
    return _plan(reduce(lambda draft, step: step(draft), PASSES, PlanDraft(query, declaration, spend)))


def trace(query: Query, declaration: Declaration, spend: Spend) -> Iterator[tuple[str, PlanDraft]]:
    """Yield the name of each pass and the draft after it, for people who work on the planner; a draft prints."""
    draft = PlanDraft(query, declaration, spend)
    for each in PASSES:
        draft = each(draft)
        yield each.__name__, draft


def _plan(draft: PlanDraft) -> Plan:
    query, declaration = draft.query, draft.declaration
    unit, layout = _decided(draft.unit), _decided(draft.layout)
    return Plan(
        table=declaration.name,
        version=declaration.version,
        unit=None if isinstance(declaration.unit, RowUnit) else declaration.unit,
        neighbours=declaration.neighbours,
        where=query.where,
        keys=tuple(KeyColumn(key.name, key.expression, type_of(key.expression, declaration)) for key in query.keys),
        public_keys=draft.public_keys,
        rows_per_unit=unit.rows,
        groups_per_unit=unit.groups,
        measured=tuple(layout.columns),
        products=tuple(layout.products),
        releases=_decided(draft.releases),
        quantiles=_decided(draft.quantiles),
        distincts=tuple(layout.distincts),
        choice=draft.choice,
        threshold=draft.threshold,
        outputs=layout.outputs,
        columns=query.columns or (*(key.name for key in query.keys), *(output.name for output in query.outputs)),
        after=query.after,
        spend=draft.spend,
        public_rows=declaration.rows if query.where is None else None,
        most_rows=declaration.most_rows_per_unit,
    )


def _decided(value: Found | None) -> Found:
    """Return what an earlier pass has decided."""
    if value is None:
        raise ValueError("a pass of the planner ran before the pass that it depends on")
    return value


def plan_with_room(
    query: Query, declaration: Declaration, spend: Spend, admits: Callable[[Plan], bool], facts: Facts = NO_FACTS
) -> Plan:
    """Return the plan of the noise that errs less, or of the other if only that has room and the noise is open."""
    plan = make_plan(query, declaration, spend, facts)
    if spend.noise is not None or spend.delta_rho == 0 or admits(plan):
        return plan
    other = plan_of_other_noise(query, declaration, plan, facts)
    return other if other is not None and admits(other) else plan


def plan_of_other_noise(query: Query, declaration: Declaration, plan: Plan, facts: Facts = NO_FACTS) -> Plan | None:
    """Return the plan with the other kind of noise, or None where there is none."""
    other: NoiseKind = "gaussian" if plan.noise == "laplace" else "laplace"
    try:
        found = make_plan(query, declaration, replace(plan.spend, noise=other), facts)
    except QueryRefused:
        return None
    return replace(found, spend=plan.spend, instead_of=plan.noise)


def _declared_bounds(query: Query, declaration: Declaration, listed: object) -> tuple[int, int]:
    """Return how many rows in a group and how many groups one unit may have; refuse where a bound is missing."""
    if isinstance(declaration.unit, RowUnit):
        return 1, 1
    rows, groups = declaration.rows_per_unit, declaration.groups_per_unit
    of_people = [output.aggregate.of == "people" for output in query.outputs]
    needs_rows = any(
        FAMILIES[output.aggregate.kind] not in UNITS_ONLY and output.aggregate.of != "people"
        for output in query.outputs
    )
    if all(of_people) and isinstance(listed, tuple):  # their weights need no bound
        return rows or UNBOUNDED, groups or UNBOUNDED
    if rows is None and needs_rows:
        raise QueryRefused(
            f"a unit ('{declaration.unit}') can have any number of rows, and no bound is declared."
            "\nhint: add rows_per_unit=1 if each has at most one row in a group, or a larger bound, e.g."
            " rows_per_unit=5 (--rows-per-unit 5); people with more count for less"
        )
    if not query.keys:
        return rows or 1, 1
    if isinstance(listed, tuple) and any(FAMILIES[output.aggregate.kind] == "ranking" for output in query.outputs):
        return rows or 1, len(listed)  # a ranking costs the same in however many groups a unit is
    if groups is None:
        raise QueryRefused(
            f"a unit ('{declaration.unit}') can be in any number of groups, and no bound is declared."
            "\nhint: add groups_per_unit=1 if each is in one group, or a larger bound, e.g."
            " groups_per_unit=3 (--groups-per-unit 3); people in more count for less"
        )
    if isinstance(listed, tuple):
        groups = min(groups, len(listed))
    return rows or 1, groups


NOISE_KINDS: tuple[NoiseKind, ...] = ("laplace", "gaussian")
EPSILON_LEAST = Fraction(1, 10**30)


def make_spend(
    epsilon: Number,
    delta: Number | None,
    noise: str | None,
    budget: Loss,
    *,
    confidence: Fraction = Fraction(95, 100),
    weights: tuple[tuple[str, Fraction], ...] = (),
) -> Spend:
    """Return what a call with these arguments may spend; a delta under a pure budget is accepted and not used."""
    epsilon_value = positive(decimal_meaning(epsilon, name="epsilon"), name="epsilon")
    if epsilon_value < EPSILON_LEAST:
        raise QueryRefused("epsilon is too small: below 1e-30 no noise can be drawn\nhint: give a larger epsilon")
    delta_value = None if delta is None else delta_meaning(delta)
    kind = next((known for known in NOISE_KINDS if isinstance(noise, str) and known == noise), None)
    if noise is not None and kind is None:
        raise InvalidParameter(
            "noise must be 'laplace' or 'gaussian'\nhint: leave it out to get the one with the smaller error"
        )
    if isinstance(budget, RenyiLoss):
        raise InvalidParameter(
            "a table's budget must be an epsilon, an (epsilon, delta) or a rho\nhint: tacit.epsilon(3, delta=1e-6)"
        )
    shares = shares_of(budget, epsilon_value, delta_value)
    return Spend(epsilon_value, shares.asked, shares.keys, shares.noise, shares.rho, kind, confidence, weights)
