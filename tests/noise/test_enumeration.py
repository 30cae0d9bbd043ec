"""Exactness by enumeration (N04): every bit string of up to 16 bits, judged by an independent oracle."""

from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp

from tacit.noise.coins import Bernoulli, draw_flips
from tacit.noise.gaussian import WideGaussian, block_table, gaussian_table
from tacit.noise.laplace import DigitTables, laplace_tables
from tacit.noise.threshold import SEARCH_MOST
from tacit_gauntlet.stage.enumeration import GivenBits, paths, wrong_paths
from tests.noise import oracle

SHAPES = [(4, 16), (5, 15), pytest.param(8, 16, marks=pytest.mark.slow)]
SCALES = [Fraction(1, 10), Fraction(1), Fraction(7, 3), Fraction(8)]


def assert_every_string_is_decided_by_the_law(draw, edges, width, depth):
    wrong, judged = wrong_paths(draw, edges, width=width, depth=depth)
    assert judged == 1 << depth
    assert not wrong, wrong[:3]


def one_of(table):
    return lambda bits: int(table.draw(1, bits)[0])


@pytest.mark.parametrize(("width", "depth"), SHAPES)
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_one_laplace_table_gives_each_value_its_interval(scale, width, depth):
    reach = int(scale * 15) + 3
    edges = oracle.edges(oracle.laplace_cdf(scale), range(-reach, reach), depth)
    assert_every_string_is_decided_by_the_law(one_of(laplace_tables(scale, width)), edges, width, depth)


@pytest.mark.parametrize(("width", "depth"), SHAPES)
@pytest.mark.parametrize("sigma", [Fraction(1, 10), Fraction(1), Fraction(7, 3), Fraction(4)], ids=str)
def test_a_gaussian_table_gives_each_value_its_interval(sigma, width, depth):
    reach = int(sigma * 8) + 3
    edges = oracle.edges(oracle.gaussian_cdf(sigma), range(-reach, reach), depth)
    assert_every_string_is_decided_by_the_law(one_of(gaussian_table(sigma, width)), edges, width, depth)


@pytest.mark.parametrize(("width", "depth"), SHAPES)
@pytest.mark.parametrize("sigma", [Fraction(1), Fraction(7, 3), Fraction(33)], ids=str)
def test_a_table_of_blocks_gives_each_block_its_interval(sigma, width, depth):
    reach = int(sigma * 8) + 3
    edges = oracle.edges(oracle.block_cdf(sigma), range(reach), depth)
    assert_every_string_is_decided_by_the_law(one_of(block_table(sigma, width)), edges, width, depth)


@pytest.mark.parametrize(("width", "depth"), SHAPES)
@pytest.mark.parametrize("scale", [Fraction(65), Fraction(200, 3)], ids=str)
def test_digit_and_top_tables_give_each_value_its_interval(scale, width, depth):
    tables = DigitTables(scale, (3, 3), width)
    top = oracle.edges(oracle.top_cdf(scale, 64), range(40), depth)
    assert_every_string_is_decided_by_the_law(one_of(tables.top), top, width, depth)
    for place, table in zip((1, 8), tables.digits, strict=True):
        edges = oracle.edges(oracle.digit_cdf(scale, place, 8), range(8), depth, ends=True)
        assert_every_string_is_decided_by_the_law(one_of(table), edges, width, depth)


@pytest.mark.parametrize(("width", "depth"), [(4, 16), (8, 16)])
@pytest.mark.parametrize("p", ["0", "1", "1/2", "3/16", "1/3", "99999/100000"])
def test_a_rational_chance_is_the_share_of_strings(p, width, depth):
    chance = Fraction(p)

    def draw(bits):
        if chance == 1:
            bits.words(1, width)  # asks for none itself
        return int(not Bernoulli(p)._draw(1, bits, width)[0])

    whole = 1 << depth
    assert_every_string_is_decided_by_the_law(draw, {0: chance * whole, 1: Fraction(whole)}, width, depth)


@pytest.mark.parametrize(("width", "depth"), [(4, 16), (8, 16)])
@pytest.mark.parametrize("x", ["1/1000", "5/7", "3", "40", "1e9"])
def test_an_exponential_chance_is_the_share_of_strings(x, width, depth):
    with mp.workdps(oracle.DIGITS):
        chance = mp.exp(-oracle.exact(Fraction(x)))
    edges = oracle.edges(lambda _: chance, range(1), depth) | {1: Fraction(1 << depth)}
    assert_every_string_is_decided_by_the_law(
        lambda bits: int(not draw_flips(np.array([1]), Fraction(x), bits, width)[0]), edges, width, depth
    )


@pytest.mark.parametrize(("width", "depth"), SHAPES)
def test_a_wide_gaussian_keeps_each_candidate_with_its_chance(width, depth):
    sigma = Fraction(1001, 7)
    wide = WideGaussian(sigma, width)
    for distance in (1, 3, 99, 143, 301, 702):  # a first place is always kept
        block = distance >> wide.shift
        with mp.workdps(oracle.DIGITS):
            chance = mp.exp(-oracle.exact((distance**2 - (block << wide.shift) ** 2) / (2 * sigma**2)))
        edges = oracle.edges(lambda _, chance=chance: chance, range(1), depth) | {1: Fraction(1 << depth)}
        blocks, distances = np.array([block]), np.array([distance])
        assert_every_string_is_decided_by_the_law(
            lambda bits, blocks=blocks, distances=distances: int(not wide._keep(blocks, distances, bits)[0]),
            edges,
            width,
            depth,
        )


@pytest.mark.parametrize("width", [4, 8, 12])
@pytest.mark.parametrize(
    "table_of",
    [
        lambda width: laplace_tables(Fraction(7, 3), width),
        lambda width: gaussian_table(Fraction(7, 3), width),
        lambda width: block_table(Fraction(7, 3), width),
        lambda width: DigitTables(Fraction(65), (3, 3), width).top,
        lambda width: DigitTables(Fraction(65), (3, 3), width).digits[1],
    ],
    ids=["laplace", "gaussian", "blocks", "top", "digit"],
)
def test_arrays_decide_every_word_as_single_draws_do(table_of, width):
    table = table_of(width)
    words = list(range(1 << width))
    follow = (1 << width) // 3
    alone = [int(table.draw(1, GivenBits([word], then=follow))[0]) for word in words]
    for copies in (1, SEARCH_MOST // len(words) + 1):
        together = table.draw(copies * len(words), GivenBits(words * copies, then=follow))
        assert together.tolist() == alone * copies


def test_a_word_of_eight_bits_and_the_next_decide_by_the_law():
    edges = oracle.edges(oracle.laplace_cdf(Fraction(1)), range(-20, 20), 16)
    assert_every_string_is_decided_by_the_law(one_of(laplace_tables(Fraction(1), 8)), edges, 8, 16)
    edges = oracle.edges(oracle.gaussian_cdf(Fraction(1)), range(-9, 9), 16)
    assert_every_string_is_decided_by_the_law(one_of(gaussian_table(Fraction(1), 8)), edges, 8, 16)


def test_the_share_of_each_value_of_digits_put_together_encloses_its_mass():
    scale, width, depth = Fraction(9), 4, 12
    tables = DigitTables(scale, (2,), width)
    cdf = oracle.laplace_cdf(scale)
    counts: dict[int | None, int] = {}
    for path in paths(lambda bits: int(tables.draw(1, bits)[0]), width=width, depth=depth):
        counts[path.value] = counts.get(path.value, 0) + (1 << depth - path.length)
    undecided = counts.pop(None)
    assert sum(counts.values()) + undecided == 1 << depth
    for x in range(-60, 60):
        mass = (cdf(x) - cdf(x - 1)) * 2**depth
        assert counts.get(x, 0) <= mass <= counts.get(x, 0) + undecided
