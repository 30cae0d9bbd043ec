"""The Bernstein parts: never negative, adding up, and giving every moment back exactly."""

from fractions import Fraction
from itertools import product
from math import comb, prod

from hypothesis import given
from hypothesis import strategies as st

from tacit.plan.layout import indices, weights_of_part

SHAPES = st.sampled_from([(1,), (2,), (1, 1), (2, 2)])


def part_of(index, degrees, heights, powers):
    return sum(weight * powers[power] for power, weight in weights_of_part(index, degrees, heights).items())


@st.composite
def tables(draw: st.DrawFn) -> tuple[tuple[int, ...], list[int], list[tuple[int, ...]]]:
    degrees = draw(SHAPES)
    heights = [draw(st.integers(1, 40)) for _ in degrees]
    row = st.tuples(*(st.integers(0, height) for height in heights))
    return degrees, heights, draw(st.lists(row, max_size=6))


def powers_of(degrees: tuple[int, ...], rows: list[tuple[int, ...]]) -> dict[tuple[int, ...], int]:
    return {
        power: sum(prod(y**a for y, a in zip(row, power, strict=True)) for row in rows) for power in indices(degrees)
    }


@given(tables())
def test_every_row_moves_the_parts_by_the_same_whole_amount_and_none_below_zero(
    table: tuple[tuple[int, ...], list[int], list[tuple[int, ...]]],
) -> None:
    degrees, heights, rows = table
    for row in rows:
        powers = powers_of(degrees, [row])
        parts = [part_of(index, degrees, heights, powers) for index in indices(degrees)]
        assert min(parts) >= 0
        assert sum(parts) == prod(height**degree for height, degree in zip(heights, degrees, strict=True))


def weights_of_power(power, degrees, heights):
    """What each part counts in the sum of a power: Σ y^a = Σ over i of C(i,a)/C(d,a)·H^(a-d)·part i."""
    return {
        index: prod(
            Fraction(comb(i, a), comb(degree, a)) * Fraction(height) ** (a - degree)
            for i, a, degree, height in zip(index, power, degrees, heights, strict=True)
        )
        for index in indices(degrees)
    }


@given(tables())
def test_the_parts_give_every_moment_back(
    table: tuple[tuple[int, ...], list[int], list[tuple[int, ...]]],
) -> None:
    degrees, heights, rows = table
    powers = powers_of(degrees, rows)
    parts = {index: part_of(index, degrees, heights, powers) for index in indices(degrees)}
    for power in product(*(range(degree + 1) for degree in degrees)):
        weights = weights_of_power(power, degrees, heights)
        assert sum(weight * parts[index] for index, weight in weights.items()) == powers[power]
