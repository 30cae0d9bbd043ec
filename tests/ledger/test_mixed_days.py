"""A day of mixed questions ends no earlier than plain addition of what was asked would: the figures of the guide."""

import random
from fractions import Fraction
from itertools import chain, count, cycle, repeat
from pathlib import Path

import pyarrow as pa
import pytest

import tacit
from tacit.accounting.filter import ZERO_CHARGE, charge_of, rule_of
from tacit.errors import BudgetExceeded
from tacit.numbers import show
from tacit.plan.planner import make_plan, make_spend
from tacit.privacy.loss import epsilon
from tacit.query.sql.questions import parse_query
from tacit.tables.schema import ColumnFacts, Declaration

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "composition.md"
DECLARED = Declaration("t", "id", {"id": ColumnFacts("int")}, rows_per_unit=1, groups_per_unit=1)
COUNT = parse_query("SELECT COUNT(*) AS n FROM t", DECLARED)
BUDGETS = [epsilon(size, delta=1e-6) for size in (1, 3, 10)]
STEPS = [Fraction(1, 10), Fraction(1, 5), Fraction(1, 4), Fraction(3, 10), Fraction(1, 3)]
NOISES = ("laplace", "gaussian")
SEEDS = range(20)


def days(step):
    """The days of the table: which noise each question has, one after the other, without end."""
    half = int(1 / step / 2)
    return [
        [repeat("laplace")],
        [repeat("gaussian")],
        [cycle(NOISES)],
        [chain(["gaussian"], repeat("laplace"))],
        [chain(repeat("laplace", half), repeat("gaussian"))],
        [(draw.choice(NOISES) for _ in count()) for draw in map(random.Random, SEEDS)],
    ]


def charge_at(budget, step, noise):
    plan = make_plan(COUNT, DECLARED, make_spend(budget.epsilon * step, None, noise, budget))
    return charge_of(plan.events, asked=plan.asked)


def admitted(day, charges, step, admits):
    """The part of the budget's epsilon that is asked for before the first refusal."""
    total = ZERO_CHARGE
    for number, noise in enumerate(day):
        total += charges[noise]
        if not admits(total):
            return float(number * step)
    raise AssertionError("a day has no end")


def pure_sum_or_rho(rule):
    """The rule that has no arm of addition for what is not pure."""
    return lambda total: (total.delta_noise == 0 and total.epsilon <= rule.epsilon) or total.rho <= rule.rho


def figures(budget, step):
    """What is admitted of each kind of day, at the least, and in brackets without addition for what is not pure."""
    rule = rule_of(budget)
    charges = {noise: charge_at(budget, step, noise) for noise in NOISES}

    def least(admits):
        return [min(admitted(day, charges, step, admits) for day in kind) for kind in days(step)]

    return list(zip(least(rule.admits), least(pure_sum_or_rho(rule)), strict=True))


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_the_guides_table_is_what_the_rule_admits(budget):
    page = PAGE.read_text()
    for step in STEPS:
        cells = " | ".join(f"{now:.2f} ({without:.2f})" for now, without in figures(budget, step))
        line = f"| {show(budget.epsilon)} | {show(budget.epsilon * step, up=False)[:5]} | {cells} |"
        assert line in page, f"the guide should have the line\n{line}"


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("step", STEPS, ids=str)
def test_every_order_is_admitted_as_far_as_addition_goes_and_none_is_worse_than_before(budget, step):
    for now, without in figures(budget, step):
        assert now >= max(float(step * (1 // step)), 0.8, without)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("size", "step"), [(1, "0.3"), (3, "0.6"), (10, "2")])
def test_a_day_that_mixes_groups_and_plain_counts_is_answered_to_its_end(size, step, noise):
    rows = pa.table({"id": list(range(50)), "g": [n % 5 for n in range(50)], "x": [n % 9 for n in range(50)]})
    table = tacit.table(
        rows,
        name="t",
        unit="id",
        rows_per_unit=1,
        groups_per_unit=1,
        columns={"g": {"keys": list(range(5))}},
        budget=tacit.epsilon(size, delta=1e-6),
        ledger=":memory:",
    )
    asked = Fraction(0)
    for turn in count():
        if asked + Fraction(step) > size:
            break
        part = table.where(f"x <> {turn}")
        if turn % 2:
            part.count().answer(epsilon=step, noise="laplace")
        else:
            part.group_by("g").count().answer(epsilon=step, noise=noise)
        asked += Fraction(step)
        assert table.left.epsilon >= size - asked
    assert asked >= Fraction(8, 10) * size
    with pytest.raises(BudgetExceeded, match="left: "):
        table.count().answer(epsilon=str(size), noise="laplace")
