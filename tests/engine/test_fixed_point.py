"""A row's number becomes the nearest step, clamped, exactly as rationals say, for every type and any range."""

import math
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tacit.errors import QueryRefused
from tacit_gauntlet.stage.table import bounded_plan, bounded_table, disagreements, nearest_steps, plan_of

several = settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
INTS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-20, 20))
FLOATS = st.floats(width=64)


def column(engine, values, kind):
    return engine(pa.table({"id": pa.array(range(len(values)), pa.int64()), "x": pa.array(values, kind)}))


def assert_agrees(engine, values, kind, between, **words):
    table = column(engine, values, kind)
    try:
        question = table.mean("x", between=between, **words)
        plan_of(question)
    except QueryRefused:
        assume(False)
    assert disagreements(question, values) == []


@several
@given(values=st.lists(st.one_of(st.none(), INTS), max_size=30), ends=st.tuples(INTS, INTS), step=st.integers(1, 50))
def test_integers(engine, values, ends, step):
    assume(ends[0] < ends[1])
    wide = ends[1] - ends[0] >= 2**60  # read as floats, whose own rounding may cross a tie between two steps
    assume(not wide)
    assert_agrees(engine, values, pa.int64(), ends, step=step)


@several
@given(
    values=st.lists(st.one_of(st.none(), FLOATS, st.floats(-4, 4)), max_size=30),
    low=st.integers(-50, 50),
    height=st.integers(1, 100),
    scale=st.sampled_from([1, 2**40, Fraction(1, 2**40), 3]),
)
def test_floats(engine, values, low, height, scale):
    assume(all(v is None or not math.isfinite(v) or abs(v) < 2.0**900 for v in values))
    assert_agrees(engine, values, pa.float64(), (low * scale, (low + height) * scale))


@several
@given(
    values=st.lists(st.one_of(st.none(), st.decimals(-(10**9), 10**9, places=3)), max_size=30),
    low=st.integers(-1000, 1000),
    height=st.integers(1, 10**5),
)
def test_decimals(engine, values, low, height):
    assert_agrees(engine, values, pa.decimal128(20, 3), (low, low + height))


@pytest.mark.parametrize(
    ("value", "steps"), [("0.004", 0), ("0.005", 1), ("0.994", 99), ("0.995", 100), ("-3", 0), ("7", 100)]
)
def test_halves_round_up(engine, value, steps):
    table = column(engine, [Decimal(value)], pa.decimal128(10, 3))
    question = table.sum("x", between=(0, 1), step=Fraction(1, 100))
    assert bounded_table(question).sums["total_0"] == [steps]
    assert nearest_steps(Decimal(value), bounded_plan(question).measured[0]) == steps


def test_sums_of_many_rows_are_exact(engine):
    """A hundred thousand rows at the top of a wide range add up without a rounding."""
    n = 100_000
    table = column(engine, [2**31 - 1] * n, pa.int64())
    assert bounded_table(table.sum("x", between=(0, 2**31))).sums["total_0"] == [n * (2**31 - 1)]
