"""Gaussian noise in a plan: as little as a budget by rho alone would give it, and within what the call is charged."""

import itertools
from fractions import Fraction
from functools import cache

import pyarrow as pa
import pytest

import tacit
from tacit.accounting.convert import rho_within
from tacit.accounting.cost import noise_delta
from tacit.accounting.filter import charge_of
from tacit.privacy.loss import GaussianNoise

COLUMNS = {"x": {"between": (0, 100)}, "y": {"between": (0, 10)}, "g": {"keys": [1, 2, 3]}}


@cache
def protected(size, *, delta=1e-6, groups=2):
    rows = pa.table({"id": [1, 2], "g": [1, 2], "x": [1, 2], "y": [1.5, 2.5]})
    return tacit.table(
        rows,
        name="t",
        unit="id",
        rows_per_unit=2,
        most_rows_per_unit=1,  # so that nothing is learned of what the bounds cut
        groups_per_unit=groups,
        columns=COLUMNS,
        budget=tacit.epsilon(size, delta=delta),
        ledger=":memory:",
    )


QUESTIONS = {
    "count": lambda table: table.count(),
    "groups": lambda table: table.group_by("g").count(),
    "mean": lambda table: table.group_by("g").mean("x"),
    "several": lambda table: table.agg(n=tacit.count(), m=tacit.mean("x"), s=tacit.sum("y")),
    "found": lambda table: table.group_by("x").agg(n=tacit.count(), m=tacit.mean("y")),
}


def drawn(plan):
    return [event for event in plan.events if isinstance(event, GaussianNoise)]


@pytest.mark.parametrize("asked", QUESTIONS)
def test_gaussian_noise_has_the_rho_of_half_the_calls_delta_unless_it_is_a_few_steps_wide(asked):
    for size, part in itertools.product([1, 3, 10], [Fraction(1, 20), Fraction(1, 10), Fraction(1, 3), Fraction(1)]):
        epsilon, delta = size * part, part / 10**6
        plan = QUESTIONS[asked](protected(size)).plan(epsilon=epsilon, noise="gaussian").plan
        rho = sum(event.sensitivity_squared / (2 * event.sigma**2) for event in drawn(plan))
        whole = rho_within(plan.spend.epsilon, delta / 2)
        wide = all(event.sigma > 6 for event in drawn(plan))
        assert whole * (1 - (Fraction(1, 10**9) if wide else Fraction(9, 100))) <= rho <= whole


@pytest.mark.parametrize("asked", [*QUESTIONS, "median", "top"])
@pytest.mark.parametrize(("size", "delta"), [(1, 1e-6), (40, 1e-6), (1, 1e-9)])
def test_all_noise_is_within_what_the_call_is_charged(asked, size, delta):
    others = {"median": lambda table: table.median("x"), "top": lambda table: table.top("g", 1, keys=[1, 2, 3])}
    question = (QUESTIONS | others)[asked](protected(size, delta=delta))
    for part in (Fraction(1, 30), Fraction(1, 2)):
        plan = question.plan(epsilon=size * part, noise="gaussian").plan
        charge = charge_of(plan.events, asked=plan.asked)
        assert charge.epsilon <= size * part
        assert charge.delta_noise <= plan.spend.delta_noise <= Fraction(str(delta)) * part / 8
        if plan.asked is not None:
            assert noise_delta(plan.events, plan.spend.epsilon) <= plan.spend.delta_noise
