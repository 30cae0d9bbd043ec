"""Keys nobody listed: the threshold is the least whose exact delta fits, and a pure budget is told its two ways out."""

from fractions import Fraction

import mpmath
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.accounting.filter import FOR_KEYS
from tacit.errors import QueryRefused
from tacit.plan.groups import threshold_for
from tacit.privacy.loss import epsilon
from tacit_gauntlet.stage.table import bounded_plan, exact_cells, protected

mpmath.mp.dps = 120


def delta_formula(noise, scale, least, groups):
    """1 - (1 - Pr[1 + Z >= least])^groups, summed term by term."""
    far = 60 * (int(scale) + 1) if noise == "laplace" else 40 * (int(scale) + 1)
    s = mpmath.mpf(scale.numerator) / scale.denominator

    def mass(x):
        return mpmath.exp(-abs(x) / s) if noise == "laplace" else mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * s * s))

    whole = mpmath.fsum(mass(x) for x in range(-far, far + 1))
    tail = mpmath.fsum(mass(x) for x in range(least - 1, far + 1)) / whole
    return 1 - (1 - tail) ** groups


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@settings(max_examples=8)
@given(scale=st.sampled_from(["1/2", "1", "3", "7/2", "10"]), groups=st.integers(1, 20), power=st.integers(1, 9))
def test_the_threshold_is_the_least_whose_exact_delta_fits(noise, scale, groups, power):
    scale, delta = Fraction(scale), Fraction(1, 10**power)
    found = threshold_for(noise, scale, groups_per_unit=groups, delta=delta, release=0)
    here, below = (delta_formula(noise, scale, least, groups) for least in (found.least, found.least - 1))
    assert here <= delta
    assert found.least == 2 or below > delta
    assert here <= mpmath.mpf(found.delta.numerator) / found.delta.denominator
    assert float(found.delta) == pytest.approx(float(here), rel=1e-12)


def test_more_groups_per_unit_ask_for_a_higher_threshold():
    least = [
        threshold_for("laplace", Fraction(5), groups_per_unit=groups, delta=Fraction(1, 10**6), release=0).least
        for groups in (1, 10, 100)
    ]
    assert least == sorted(set(least))


def test_what_a_threshold_costs_is_charged_beside_the_noise():
    rows = pa.table({"id": [1], "g": ["a"]})
    plan = bounded_plan(protected(rows).group_by("g").count())
    assert [type(event).__name__ for event in plan.events] == ["LaplaceNoise", "LaplaceNoise", "KeyThreshold"]
    assert plan.loss.delta == plan.threshold.delta / FOR_KEYS > 0


def test_public_keys_and_no_keys_have_no_threshold():
    rows = pa.table({"id": [1], "g": ["a"]})
    for asked in (protected(rows).count(), protected(rows).group_by("g", keys=["a"]).count()):
        assert bounded_plan(asked).threshold is None


def test_under_a_pure_budget_private_keys_are_refused_with_both_ways_out():
    table = protected(pa.table({"id": [1], "g": ["a"]}), budget=epsilon(3))
    with pytest.raises(QueryRefused, match=r"keys=\['A', 'B'\]") as refused:
        table.group_by("g").count().plan(epsilon=1)
    assert "delta=1e-6" in str(refused.value)


def test_composite_keys_are_one_key():
    rows = pa.table({"id": [1, 1, 2], "g": ["a", "b", "a"], "h": [1, 2, None]})
    table = protected(rows, columns={"h": {"keys": [1, None]}, "g": {"keys": ["a", "b"]}})
    assert bounded_plan(table.group_by("g", "h").count()).public_keys == (("a", 1), ("a", None), ("b", 1), ("b", None))
    found = protected(rows).group_by("g", "h").count_units()
    (cells,) = exact_cells(found, plan=bounded_plan(found))
    assert cells == {("a", 1, "units"): 1, ("b", 2, "units"): 1, ("a", None, "units"): 1}


def test_declared_keys_that_combine_to_too_many_are_refused():
    declared = {name: {"keys": list(range(1001))} for name in ("g", "h")}
    table = protected(pa.table({"id": [1], "g": [1], "h": [1]}), columns=declared)
    with pytest.raises(QueryRefused, match="1,002,001 groups"):
        table.group_by("g", "h").count().plan(epsilon=1)
