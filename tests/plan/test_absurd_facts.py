"""Absurd facts, as a damaged or forged entry might have: a plan is made or refused before the charge, and then runs."""

import decimal
from dataclasses import replace
from fractions import Fraction
from itertools import product

import pyarrow as pa
import pytest

import tacit
from tacit.answer.columns import noisy_columns
from tacit.answer.disclosure import bounds_lines, bounds_record
from tacit.errors import QueryRefused
from tacit.plan import Fact, make_plan, make_spend, missing_facts
from tacit.plan.bounds.facts import PEOPLE_MOST, sound
from tacit.plan.bounds.learning import made_up_groups
from tacit.release import joined, release
from tacit_gauntlet.stage.table import protected

CENTS = pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("-9.5"), decimal.Decimal(3)], pa.decimal128(20, 2))
DATA = pa.table(
    {
        "id": [1, 2, 3, 3],
        "g": ["a", "a", "b", "c"],
        "x": [1, None, 3, 2**62],
        "y": [1.0, 2.0, float("nan"), -1e300],
        "z": CENTS,
    }
)
BUDGETS = {"pure": tacit.epsilon(3), "approximate": tacit.epsilon(3, delta=1e-6)}
HUGEST = 10**400  # no float


def questions(**declared):
    free = {"rows_per_unit": None, "groups_per_unit": None, "most_rows_per_unit": None}
    asked = protected(DATA, **(free | declared))
    by = asked.group_by("g", keys=["a", "b", "c"])
    found = {
        "rows": asked.count(),
        "rows by": by.count(),
        "units by": by.count_units(),
        "different by": by.count_distinct("x"),
        "found keys": asked.group_by("g").agg(n=tacit.count(), m=tacit.mean("y"), u=tacit.count_units()),
        "medians of found keys": asked.group_by("g").median("x"),
        "of people": by.median("x", of="people"),
        "covariance": by.covariance("x", "y"),
        "correlation": by.correlation("z", "y"),
        "deviation": by.std("y"),
        "ranged": by.agg(m=tacit.mean("y", between=(0, 50)), s=tacit.sum("x", between=(3, 9))),
        "where": asked.where("y > 1").group_by("g", keys=["a", "b"]).agg(m=tacit.mean("x"), n=tacit.count()),
        "expressions": by.agg(m=tacit.mean("x * y"), s=tacit.sum("x + x")),
    }
    for name in "xyz":
        found |= {
            f"sum of {name}": asked.sum(name),
            f"all of {name}": by.agg(n=tacit.count(), s=tacit.sum(name), m=tacit.mean(name), k=tacit.count(name)),
            f"variance of {name}": by.variance(name),
            f"median of {name}": by.median(name),
        }
    return found


ASKED = {
    (budget, neighbours): questions(budget=BUDGETS[budget], neighbours=neighbours)
    for budget, neighbours in product(BUDGETS, ("add-remove", "replace"))
}
USUAL = ASKED["approximate", "add-remove"]
NAMES = tuple(USUAL)


def same(number):
    return lambda _, sizes: tuple((number,) * size for size in sizes)


def at(place, number):
    return lambda _, sizes: tuple(tuple(number * (each == place % size) for each in range(size)) for size in sizes)


def with_centre(number):
    """People with sizes as usual, and a centre that no column has."""
    return lambda wanted, sizes: (same(number) if wanted.plan.quantiles else at(70, 10**6))(wanted, sizes)


ABSURD = {
    "nobody": same(0),
    "fewer than nobody": same(-(10**30)),
    "everybody everywhere": same(HUGEST),
    "all in the first bin": at(0, 10**18),
    "all in the last bin": at(-1, 10**30),
    "a centre far above": with_centre(HUGEST),
    "a centre far below": with_centre(-HUGEST),
}
SCALES = {"no noise": Fraction(0), "negative noise": Fraction(-1), "endless noise": Fraction(HUGEST)}


def told(wanted, tell, scale=None):
    plan = wanted.plan
    if plan.threshold is not None:
        made = made_up_groups(wanted, groups=3, people=1)
        scales = made.scales if scale is None else (scale,)
        return replace(made, parts=tell(wanted, [len(part) for part in made.parts]), scales=scales)
    sizes = [1] * sum(3 * len(draw.targets) for draw in plan.quantiles) or [len(plan.public_keys or ())] * len(
        plan.releases
    )
    scales = tuple(each.scale if scale is None else scale for each in plan.releases)
    return Fact(wanted.key, wanted.words, tell(wanted, sizes), scales, plan.spend.epsilon)


def plan_from(question, tell, scale=None):
    """Return the plan of a question all of whose facts are told so."""
    spend = make_spend(1, None, None, question.session.registered.budget)
    asked, facts = (question.query, question.session.declaration, spend), {}
    for turn in range(20):
        wanted = missing_facts(*asked, facts)
        if not wanted:
            return make_plan(*asked, facts)
        # a profile with far too much noise is learned again: what is learned then has its own
        facts |= {each.key: told(each, tell, scale if turn < 4 else None) for each in wanted}
    raise AssertionError("a question never stops learning")


def run(question, plan):
    """Answer from a plan as a session does once it is charged for."""
    parts = question.session.engine.parts(plan, "5a17")
    noisy = joined([release(plan, part) for part in parts])
    confidence = Fraction(95, 100)
    columns = noisy_columns(plan, noisy, confidence)
    return columns, bounds_lines(plan, bounds_record(plan, noisy, confidence))


@pytest.mark.parametrize("name", NAMES)
def test_absurd_facts_give_plans_whose_grids_have_an_inside_and_whose_noise_can_be_drawn(name):
    for budget, neighbours in product(BUDGETS, ("add-remove", "replace")):
        if budget == "pure" and "found keys" in name:
            continue
        question = ASKED[budget, neighbours][name]
        for tell in list(ABSURD.values()) if budget == "approximate" else [ABSURD["a centre far above"]]:
            plan = plan_from(question, tell)
            assert all(column.low < column.high for column in plan.measured)
            assert all(release.law is not None for release in (*plan.releases, *plan.totals))


@pytest.mark.parametrize("scale", SCALES)
def test_absurd_noise_of_facts_is_no_more_than_a_poor_plan(scale):
    for name in ("rows by", "all of x", "found keys", "variance of y"):
        for tell in ("nobody", "all in the first bin"):
            assert plan_from(USUAL[name], ABSURD[tell], SCALES[scale]).learned


@pytest.mark.parametrize("name", NAMES)
def test_what_is_planned_from_absurd_facts_runs_once_it_is_charged_for(name):
    """Each question with some of the facts: those that once gave a grid without an inside among them."""
    place = NAMES.index(name)
    chosen = ["a centre far above", list(ABSURD)[place % len(ABSURD)]]
    for tell in dict.fromkeys(chosen):
        question = ASKED["approximate", ("add-remove", "replace")[place % 2]][name]
        columns, _ = run(question, plan_from(question, ABSURD[tell]))
        assert len(columns) == len(question.query.outputs)


@pytest.mark.parametrize("parts", [(), ((),), ((0,) * 64,), ((0,) * 127,), ((0,) * 128,) * 3])
def test_a_fact_with_other_parts_is_refused_before_anything_is_charged(parts):
    question = USUAL["rows by"]
    spend = make_spend(1, None, None, question.session.registered.budget)
    asked = question.query, question.session.declaration, spend
    (wanted,) = missing_facts(*asked, {})
    whole = told(wanted, ABSURD["nobody"])
    for fact in (replace(whole, parts=parts), replace(whole, scales=())):
        with pytest.raises(QueryRefused, match="ledger verify"):
            make_plan(*asked, {wanted.key: fact})
        with pytest.raises(QueryRefused, match="ledger verify"):
            missing_facts(*asked, {wanted.key: fact})


def test_a_fact_that_could_have_been_learned_stays_as_it_is():
    fact = Fact("k", "words", ((3, -2), (0, 10**9)), (Fraction(20), Fraction(40)), Fraction(1, 10))
    assert sound(fact, [2, 2], scales=2) is fact
    absurd = replace(fact, parts=((10**30, -(10**30)), (0, 1)), epsilon=Fraction(-3))
    held = sound(absurd, [2, 2], scales=2)
    assert held.parts == ((PEOPLE_MOST, -PEOPLE_MOST), (0, 1))
    assert held.epsilon == 0
