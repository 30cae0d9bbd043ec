"""The product's samplers one by one: tables on words of any width, coins, and noise of one law."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.noise import bits as source
from tacit.noise import coins, gaussian, grid, laplace, threshold
from tacit.privacy.law import StaircaseLaw
from tacit_gauntlet.targets import planted

# what the functions below take and give
Bits = source.Bits
ThresholdTable = threshold.ThresholdTable
Noise = laplace.DiscreteLaplace | gaussian.DiscreteGaussian

# Arrays at most this long are looked up word by word, longer ones all at once.
SEARCH_MOST = threshold.SEARCH_MOST


def fresh_bits() -> Bits:
    """Return bits from the operating system's randomness, under a key of their own."""
    return source.Keystream()


def every_table(width: int) -> Iterator[tuple[str, ThresholdTable]]:
    """Yield each kind of table that draws by words of `width` bits, small enough to enumerate."""
    of_laplace, digits = laplace.laplace_tables(Fraction(3, 2), width), laplace.DigitTables(Fraction(13), (3,), width)
    if not isinstance(of_laplace, ThresholdTable):
        raise TypeError("a small scale should be one table")
    yield "Laplace 3/2", of_laplace
    yield "top digit", digits.top
    yield "lower digit", digits.digits[0]
    yield "Gaussian 7/5", gaussian.gaussian_table(Fraction(7, 5), width)
    yield "Gaussian blocks 7/5", gaussian.block_table(Fraction(7, 5), width)


def coin(chance: Fraction, width: int) -> Callable[[Bits], int]:
    """Return what draws 0 with this chance, and 1 otherwise, by words of `width` bits."""
    return lambda bits: int(not coins.Bernoulli(chance)._draw(1, bits, width)[0])


def exponential_coin(exponent: Fraction, width: int) -> Callable[[Bits], int]:
    """Return what draws 0 with chance e^-exponent, and 1 otherwise, by words of `width` bits."""
    steps, rate = np.array([exponent.numerator]), Fraction(1, exponent.denominator)
    return lambda bits: int(not coins.draw_flips(steps, rate, bits, width)[0])


def kept_by_wide_gaussian(sigma: Fraction, distance: int, width: int) -> tuple[int, Callable[[Bits], int]]:
    """Return where the block of a distance starts, and what draws 0 where a candidate so far out is kept."""
    wide = gaussian.WideGaussian(sigma, width)
    blocks, distances = np.array([distance >> wide.shift]), np.array([distance])
    return distance >> wide.shift << wide.shift, lambda bits: int(not wide._keep(blocks, distances, bits)[0])


def laplace_noise(scale: Fraction | int) -> laplace.DiscreteLaplace:
    """Return discrete Laplace noise of a scale: its draws and its law."""
    return laplace.DiscreteLaplace(scale)


def gaussian_noise(sigma: Fraction | int) -> gaussian.DiscreteGaussian:
    """Return discrete Gaussian noise of a sigma: its draws and its law."""
    return gaussian.DiscreteGaussian(sigma)


def tossed(chance: str) -> object:
    """Toss a coin once."""
    return coins.Bernoulli(chance).sample(1)


def float_step(unit: Fraction, *, spread: int) -> float:
    """Return the step of the grid on which floats are released, of which one unit moves so many so far."""
    return float(grid.float_step(unit, spread=spread))


# ---- staircases ----------------------------------------------------------------------------------------------------


def staircase_law(epsilon: Fraction, *, sensitivity: int, width: int) -> StaircaseLaw:
    """Return the law of staircase noise."""
    return StaircaseLaw(epsilon, sensitivity=sensitivity, width=width)


def staircase_levels(law: StaircaseLaw, width: int) -> ThresholdTable:
    """Return the table that draws a staircase's level by words of `width` bits."""
    return laplace.level_table(law, width)


def staircase_draws(law: StaircaseLaw, count: int) -> Any:
    """Draw staircase noise."""
    return laplace.draw_staircase(law, count, source.Keystream(), 64)


# ---- broken randomness ---------------------------------------------------------------------------------------------


@contextmanager
def randomness_from(broken: Callable[[int], object]) -> Iterator[None]:
    """Let the operating system's randomness be what a function gives, while open."""
    with planted("urandom", broken):
        yield


@contextmanager
def generators_that_raise() -> Iterator[None]:
    """Let every generator that can be predicted raise where it is used, while open."""

    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("a generator that can be predicted was used")

    with planted("predictable generators", refuse):
        yield
