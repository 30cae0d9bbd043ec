"""From a question, a declaration and what may be spent to a plan: a few passes, each adding one kind of decision.

1 bounds per unit   2 columns on their grids   3 parts of each release   4 sensitivity   5 noise   6 keys and threshold

What a call may spend: epsilon for the whole call, and its delta, by default its fair share of the budget's.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from tacit.accounting import shares_of
from tacit.errors import InvalidParameter, QueryRefused
from tacit.plan.choices import UnitBounds, choice_of
from tacit.plan.groups import public_keys, refuse_private_keys, threshold_for
from tacit.plan.layout import UNITS, Bounds, lay_out
from tacit.plan.plan import KeyColumn, NoiseKind, Plan, Spend
from tacit.plan.sensitivity import sensitivity_of
from tacit.plan.split import divide
from tacit.privacy import Loss, Number, RenyiLoss, decimal_meaning, delta_meaning, positive
from tacit.query import Query, limit_cells, type_of
from tacit.tables import Declaration, RowUnit

# What is asked of units, however many rows they have.
UNITS_ONLY = ("count_units", "count_distinct", "top")


def make_plan(query: Query, declaration: Declaration, spend: Spend) -> Plan:
    """Return the plan of a checked question: from public facts only, so it costs nothing."""
    listed = public_keys(query, declaration)
    if listed is None and spend.delta_keys == 0:
        refuse_private_keys(query)
    limit_cells(query, None if listed is None else len(listed))
    rows, groups = _bounds(query, declaration, listed)
    layout = lay_out(query, declaration, Bounds(rows, groups, spend.epsilon), private=listed is None)
    sensitivities = [
        sensitivity_of(
            parts,
            layout.measured,
            tuple(layout.distincts),
            rows_per_unit=rows,
            groups_per_unit=groups,
            neighbours=declaration.neighbours,
        )
        for parts in layout.released
    ]
    unit = UnitBounds(rows, groups, replace=declaration.neighbours == "replace")
    releases, draws = divide(layout, sensitivities, spend, unit)
    threshold = None
    if listed is None:
        place = layout.released.index(UNITS)
        chosen = releases[place]
        threshold = threshold_for(
            chosen.summed, chosen.scale, groups_per_unit=groups, delta=spend.delta_keys, release=place
        )
    return Plan(
        table=declaration.name,
        version=declaration.version,
        unit=None if isinstance(declaration.unit, RowUnit) else declaration.unit,
        neighbours=declaration.neighbours,
        where=query.where,
        keys=tuple(KeyColumn(key.name, key.expression, type_of(key.expression, declaration)) for key in query.keys),
        public_keys=listed,
        rows_per_unit=rows,
        groups_per_unit=groups,
        measured=layout.measured,
        products=layout.products,
        releases=releases,
        quantiles=draws,
        distincts=tuple(layout.distincts),
        choice=choice_of(query, listed, spend, unit),
        threshold=threshold,
        outputs=layout.outputs,
        columns=query.columns or (*(key.name for key in query.keys), *(output.name for output in query.outputs)),
        after=query.after,
        spend=spend,
    )


def plan_with_room(query: Query, declaration: Declaration, spend: Spend, admits: Callable[[Plan], bool]) -> Plan:
    """Return the plan of the noise that errs less, or of the other where the budget has room for that alone.

    Only where the noise was left open; the plan says which noise it is instead of.
    """
    plan = make_plan(query, declaration, spend)
    if spend.noise is not None or spend.delta_rho == 0 or admits(plan):
        return plan
    other = plan_of_other_noise(query, declaration, plan)
    return other if other is not None and admits(other) else plan


def plan_of_other_noise(query: Query, declaration: Declaration, plan: Plan) -> Plan | None:
    """Return the plan with the other kind of noise, or None where there is none."""
    other: NoiseKind = "gaussian" if plan.noise == "laplace" else "laplace"
    try:
        found = make_plan(query, declaration, replace(plan.spend, noise=other))
    except QueryRefused:
        return None
    return replace(found, spend=plan.spend, instead_of=plan.noise)


def _bounds(query: Query, declaration: Declaration, listed: object) -> tuple[int, int]:
    """Return how many rows in a group and how many groups one unit may have; missing ones are asked for."""
    if isinstance(declaration.unit, RowUnit):
        return 1, 1
    rows, groups = declaration.rows_per_unit, declaration.groups_per_unit
    needs_rows = any(output.aggregate.kind not in UNITS_ONLY for output in query.outputs)
    if rows is None and needs_rows:
        raise QueryRefused(
            f"a unit ('{declaration.unit}') can have any number of rows, and no bound is declared."
            "\nhint: add rows_per_unit=1 if each has at most one row in a group, or the most that should count, e.g."
            " rows_per_unit=5 (--rows-per-unit 5); rows beyond it are left out"
        )
    if not query.keys:
        return rows or 1, 1
    if isinstance(listed, tuple) and any(output.aggregate.kind == "top" for output in query.outputs):
        return rows or 1, len(listed)  # a ranking costs the same in however many groups a unit is
    if groups is None:
        raise QueryRefused(
            f"a unit ('{declaration.unit}') can be in any number of groups, and no bound is declared."
            "\nhint: add groups_per_unit=1 if each is in one group, or the most that should count, e.g."
            " groups_per_unit=3 (--groups-per-unit 3); groups beyond it are left out"
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
    """Return what a call asked with these words may spend.

    The call's delta is divided as the budget's own is. A delta given under a pure budget is accepted and not used.
    """
    epsilon_value = positive(decimal_meaning(epsilon, name="epsilon"), name="epsilon")
    if epsilon_value < EPSILON_LEAST:
        raise QueryRefused("epsilon is too small: below 1e-30 no noise can be drawn\nhint: ask with more")
    delta_value = None if delta is None else delta_meaning(delta)
    kind = next((known for known in NOISE_KINDS if isinstance(noise, str) and known == noise), None)
    if noise is not None and kind is None:
        raise InvalidParameter("noise must be 'laplace' or 'gaussian', or left out for the one that errs less")
    if isinstance(budget, RenyiLoss):
        raise InvalidParameter(
            "a table's budget is an epsilon, an (epsilon, delta) or a rho\nhint: tacit.epsilon(3, delta=1e-6)"
        )
    shares = shares_of(budget, epsilon_value, delta_value)
    return Spend(epsilon_value, shares.asked, shares.keys, shares.noise, shares.rho, kind, confidence, weights)
