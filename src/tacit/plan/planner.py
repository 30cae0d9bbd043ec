"""The planner: from a question, a declaration and a spend to a plan, by a tuple of passes.

A pass is a function from a draft to the next, and adds one kind of decision; `trace` shows the draft after each.

Plans that are charged together: one loss for several questions, divided among them, with one kind of noise for all.

Laplace noise is charged in epsilon, so each question gets its share of epsilon. Gaussian noise is charged in rho, so
each gets its share of rho, which is more: among k questions each error is √k times, and not k times, that of the
question by itself. Their events are one list, with a cost within the (epsilon, delta) of the whole call.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import lru_cache, reduce
from math import log
from typing import TypeVar

from tacit.accounting import noise_delta, rho_within, shares_of
from tacit.errors import InvalidParameter, QueryRefused
from tacit.numbers import Number, decimal_meaning, positive
from tacit.plan.bounds.facts import NO_FACTS, Facts, refuse_no_groups, with_others
from tacit.plan.bounds.filled import filled, lacks_anything
from tacit.plan.bounds.scaled import Halves, filled_half, halves_of, scaled_half, scaled_plan, united
from tacit.plan.bounds.scaling import UNBOUNDED
from tacit.plan.bounds.vectors import is_scaled
from tacit.plan.groups import public_keys, refuse_private_keys, sensitivity_of, threshold_for
from tacit.plan.layout import UNITS, Bounds, Layout, lay_out
from tacit.plan.levels import plan_with_levels
from tacit.plan.plan import (
    FAMILIES,
    Choice,
    Cost,
    KeyColumn,
    NoiseKind,
    NoisyRelease,
    Plan,
    QuantileDraw,
    Sensitivity,
    Spend,
    Threshold,
    loss_of,
    question_key,
)
from tacit.plan.split import (
    PARTS_TRIED,
    ROUNDING,
    UnitBounds,
    choice_of,
    divide,
    rounded_shares,
    standard_deviation,
    with_quantiles_of,
)
from tacit.privacy import ApproximateLoss, Event, Loss, RenyiLoss, delta_meaning
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


def noise_line(plan: Plan) -> str:
    """Return why a plan does not use the noise with the smaller error; empty if it does."""
    if plan.instead_of is None:
        return ""
    used, other = plan.noise.capitalize(), plan.instead_of.capitalize()
    return f"{used} noise: {other} noise would err less, but the budget has no room for it at this ε."


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


# Epsilons of parts are whole steps of this; the search for one ends there.
EPSILON_BITS = 40
DEVIATION_LEAST = 1e-300
# Even shares of so many questions are whole thousandths.
ROUNDED_MOST = 64

# A question, the public facts of its rows, and the learned ones.
Asked = tuple[Query, Declaration, Facts]


@dataclass(frozen=True)
class PlannedTogether:
    """The plans of several questions, and their cost as one."""

    plans: tuple[Plan, ...]
    spend: Spend  # of the whole call, without what it learns
    noise: NoiseKind

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(event for plan in self.plans for event in plan.events)

    @property
    def asked(self) -> ApproximateLoss | None:
        gaussian = any(plan.noise == "gaussian" for plan in self.plans)
        return ApproximateLoss(self.spend.epsilon, self.spend.delta_noise) if gaussian else None

    @property
    def loss(self) -> Loss:
        """The cost of the call by itself; for an (epsilon, delta) budget, its amount by plain addition."""
        return self.loss_with(())

    def loss_with(self, learned: Iterable[Cost]) -> Loss:
        keys = sum((plan.threshold.delta for plan in self.plans if plan.threshold is not None), Fraction(0))
        return loss_of(self.spend, keys=keys, noise=self.asked.delta if self.asked else Fraction(0), learned=learned)

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(question_key(plan) for plan in self.plans)


def spends_of(spend: Spend, queries: Sequence[Query]) -> tuple[Spend, ...]:
    """Return what each question may spend, as pure noise is charged: shares that add up to the whole."""
    shares = spend.parts or even_shares(len(queries))
    return tuple(_share_of(spend, share, query) for share, query in zip(shares, queries, strict=True))


def even_shares(count: int) -> tuple[Fraction, ...]:
    """Return even shares; of many questions they are exact, as no thousandths are."""
    if count == 1 or count > ROUNDED_MOST:
        return (Fraction(1, count),) * count
    return tuple(rounded_shares([1.0] * count))


def plans_together(asked: Sequence[Asked], spend: Spend, admits: Callable[[PlannedTogether], bool]) -> PlannedTogether:
    """Return the plans with the noise of smaller error, or with the other if the budget has room only for that."""
    found: dict[NoiseKind, PlannedTogether] = {}
    refused: QueryRefused | None = None
    for noise in _kinds(spend):
        try:
            found[noise] = plans_of_noise(asked, spend, noise)
        except QueryRefused as problem:
            refused = refused or problem
    if not found:
        raise refused or QueryRefused("no noise is left for these questions\nhint: leave out noise=")
    best = _better(found)
    if len(found) == 1 or admits(best):
        return best
    other = found["gaussian" if best.noise == "laplace" else "laplace"]
    if not admits(other):
        return best
    return replace(other, plans=tuple(replace(plan, instead_of=best.noise) for plan in other.plans))


def plans_of_noise(asked: Sequence[Asked], spend: Spend, noise: NoiseKind) -> PlannedTogether:
    """Return the plans with one kind of noise; the same call always gets the same."""
    queries = [query for query, _, _ in asked]
    shares = spends_of(spend, queries)
    if noise == "laplace":  # said, so that no number has a staircase, which could not be weighed with others
        return _made(asked, [replace(each, noise="laplace") for each in shares], spend, noise)
    for rho in _rhos(spend):
        by_rho = [
            replace(
                each,
                epsilon=_epsilon_of(rho * each.epsilon / spend.epsilon, spend.epsilon, spend.delta_rho),
                delta_noise=spend.delta_noise,
                delta_rho=spend.delta_rho,
                noise="gaussian",
            )
            for each in shares
        ]
        made = _made(asked, by_rho, spend, noise)
        if noise_delta(made.events, spend.epsilon) <= spend.delta_noise:
            break
    return made


def _made(asked: Sequence[Asked], spends: Sequence[Spend], spend: Spend, noise: NoiseKind) -> PlannedTogether:
    plans = [make_plan(*each[:2], share, each[2]) for each, share in zip(asked, spends, strict=True)]
    return PlannedTogether(tuple(plans), spend, noise)


def _share_of(spend: Spend, share: Fraction, query: Query) -> Spend:
    names = {output.name for output in query.outputs} | {query.level_name(kept) for kept in query.levels}
    return replace(
        spend,
        epsilon=spend.epsilon * share,
        delta=spend.delta * share,
        delta_keys=spend.delta_keys * share,
        delta_noise=spend.delta_noise * share,
        delta_rho=spend.delta_rho * share,
        weights=tuple((name, weight) for name, weight in spend.weights if name in names),
        parts=(),
    )


def _kinds(spend: Spend) -> tuple[NoiseKind, ...]:
    if spend.noise is not None:
        return (spend.noise,)
    return ("laplace",) if spend.delta_rho == 0 else ("laplace", "gaussian")


def _rhos(spend: Spend) -> Iterator[Fraction]:
    """Yield the rho that a whole call may have: the most first, and last what is surely within its delta for noise."""
    if spend.delta_rho == 0:  # its plan refuses, with words
        yield Fraction(0)
        return
    yield from (rho_within(spend.epsilon, spend.delta_rho) * part for part in PARTS_TRIED)
    yield rho_within(spend.epsilon, spend.delta_noise) * (1 - ROUNDING)


@lru_cache(maxsize=256)
def _epsilon_of(rho: Fraction, most: Fraction, delta: Fraction) -> Fraction:
    """Return the largest epsilon, in whole steps, that has no more than `rho` within it."""
    if delta == 0:
        return most
    step = most / (1 << EPSILON_BITS)
    low, high = 0, 1 << EPSILON_BITS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if rho_within(step * middle, delta) <= rho else (low, middle)
    return step * max(low, 1)


def _better(found: dict[NoiseKind, PlannedTogether]) -> PlannedTogether:
    """Return the ones with smaller errors, compared as for one question: by the logarithms of all errors."""
    if len(found) == 1:
        return next(iter(found.values()))
    laplace, gaussian = found["laplace"], found["gaussian"]
    gain = sum(_log_gain(one, two) for one, two in zip(laplace.plans, gaussian.plans, strict=True))
    return gaussian if gain < 0 else laplace


def _log_gain(laplace: Plan, gaussian: Plan) -> float:
    """Return by how much, in logarithms, the errors of a plan grow with Gaussian noise in the place of Laplace."""
    one, two = (_log_errors(plan) for plan in (laplace, gaussian))
    gain = sum(two) / max(len(two), 1) - sum(one) / max(len(one), 1)
    draws = zip(laplace.quantiles, gaussian.quantiles, strict=True)
    return gain + sum(log(pure.epsilon / by_rho.epsilon) for pure, by_rho in draws)


def _log_errors(plan: Plan) -> list[float]:
    errors = []
    for place, release in enumerate(plan.releases):
        scaled = plan.scaling is not None and place < len(plan.scaling.vectors)
        fine = 2.0 ** plan.scaling.vectors[place].shift if plan.scaling is not None and scaled else 1.0
        if plan.threshold is not None and plan.threshold.release == place:
            size = float(plan.threshold.least)  # which decides what groups are seen
        else:
            size = standard_deviation(release.summed, release.scale)
        errors.append(log(max(size / fine, DEVIATION_LEAST)))
    return errors
