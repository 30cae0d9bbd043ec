"""Columns on their public grids: own steps kept, floats on powers of two, coarser where noise dwarfs them."""

from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest

from tacit.errors import QueryRefused
from tacit.privacy.law import SCALE_MAX
from tacit_gauntlet.stage.table import bounded_plan, protected

ROWS = pa.table({"id": [1], "i": [1], "f": [1.0], "d": pa.array([Decimal("1.00")], pa.decimal128(10, 2)), "t": ["a"]})


def grid(column, between, *, epsilon=1, rows_per_unit=2, **words):
    table = protected(ROWS, rows_per_unit=rows_per_unit)
    return bounded_plan(table.mean(column, between=between, **words), epsilon=epsilon).measured[0]


def test_integers_and_decimals_keep_their_own_step():
    assert (grid("i", (-3, 7)).step, grid("i", (-3, 7)).low, grid("i", (-3, 7)).high) == (1, -3, 7)
    assert (grid("d", (0, 10)).step, grid("d", (0, 10)).high) == (Fraction(1, 100), 1000)


@pytest.mark.parametrize("between", [(0, 1), (-5, 10), (0, 1000), ("0.1", "0.3"), (10**6, 10**6 + 1)])
def test_a_float_has_a_power_of_two_near_a_millionth_of_its_range(between):
    found = grid("f", between)
    step = found.step
    assert step.numerator == 1 or step.denominator == 1
    assert (step.numerator * step.denominator).bit_count() == 1
    assert 2**20 <= found.height <= 2**21 + 1


def test_a_declared_step_wins():
    assert grid("f", (0, 10), step=Fraction(1, 4)).step == Fraction(1, 4)
    assert grid("i", (0, 1000), step=10).high == 100


def test_the_step_is_coarser_where_noise_could_not_be_drawn_otherwise():
    found = grid("f", (0, 1), epsilon=Fraction(1, 10**9), rows_per_unit=10**6)
    assert found.step > grid("f", (0, 1)).step
    assert found.height * 10**6 * 10**9 <= SCALE_MAX


def test_an_integer_range_wider_than_integers_are_is_cut_to_them():
    found = grid("i", (0, 10**40))
    assert found.high * found.step <= 2**63


@pytest.mark.parametrize(
    ("column", "between", "words"),
    [
        ("f", (0, "1e300"), "narrower range"),
        ("i", ("0.2", "0.8"), "at least two multiples of its step"),
        ("f", (0, 5e-324), "at least two multiples of its step"),
        ("i", (10**30, 10**31), "at least two multiples of its step"),
    ],
)
def test_a_range_that_cannot_be_measured_is_refused_before_any_charge(column, between, words):
    with pytest.raises(QueryRefused, match=words):
        grid(column, between)


def test_noise_that_cannot_be_drawn_is_refused_with_a_way_out():
    table = protected(ROWS, rows_per_unit=10**18, groups_per_unit=10**18)
    with pytest.raises(QueryRefused, match="coarser step"):
        bounded_plan(table.group_by("t").sum("i", between=(0, 10)), epsilon=Fraction(1, 10**9))


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (lambda table: table.std("i"), "cannot take the std of 'i'.*: std[(]'i', between="),
        (lambda table: table.median("i"), "cannot take the quantile of 'i'.*: quantile[(]'i', 0.9, between="),
        (lambda table: table.correlation("i", "f"), "cannot take the correlation of 'i'.*: columns={'i': "),
        (lambda table: table.covariance("i", "f", between=(0, 1)), "the covariance of 'f'.*: columns={'f': "),
    ],
)
def test_a_missing_range_is_said_in_words_that_can_be_written(asked, words):
    with pytest.raises(QueryRefused, match=f"(?s){words}"):
        asked(protected(ROWS, rows_per_unit=1)).plan(epsilon=1, learn=False)
