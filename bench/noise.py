"""Exact noise against numpy's floating, insecure noise: a million draws at a time, and one at a time."""

import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from statistics import median

import numpy as np

from bench.measure import Result, Seconds, compare
from tacit.noise.gaussian import DiscreteGaussian, gaussian_table
from tacit.noise.laplace import DiscreteLaplace, laplace_tables

MANY = 10**6
REPEATS = 15


def results() -> Iterator[Result]:
    """Yield the ratios for many draws, then the times of a first and a later single draw."""
    numpy_noise = np.random.default_rng()
    for scale, limit in ((1, 1.5), (10, 1.5), (1000, 1.5), (2**20, 2.5), (2**56, None)):
        ours, theirs = DiscreteLaplace(scale).sample, numpy_noise.laplace
        yield compare(f"Laplace, scale {scale}", *draws(ours, theirs), limit=limit, repeats=REPEATS)
    for sigma, limit in ((1, 2.5), (10, 2.5), (1000, 2.5), (2**20, None), (2**56, None)):
        ours, theirs = DiscreteGaussian(sigma).sample, numpy_noise.standard_normal
        yield compare(f"Gaussian, sigma {sigma}", *draws(ours, theirs), limit=limit, repeats=REPEATS)
    for kind in (DiscreteLaplace, DiscreteGaussian):
        for scale in (Fraction(1), Fraction(50), Fraction(1000), Fraction(2**40)):
            name = f"{kind.__name__} {float(scale):g}"
            yield Seconds(f"first draw, {name}", first_draw(kind, scale), limit=20e-3)
            yield Seconds(f"later draw, {name}", later_draw(kind, scale), limit=50e-6)


def draws(ours: Callable[[int], object], theirs: Callable[..., object]) -> tuple[Callable[[], object], ...]:
    """A million of ours, a million of theirs."""
    return lambda: ours(MANY), lambda: theirs(size=MANY)


def first_draw(kind: type[DiscreteLaplace | DiscreteGaussian], scale: Fraction) -> float:
    """The median time of one draw at a scale never drawn before: its tables are built within it."""
    took = []
    for place in range(1, 8):
        fresh = scale + Fraction(place, 10**9)
        laplace_tables.cache_clear()
        gaussian_table.cache_clear()
        start = time.perf_counter()
        kind(fresh).sample(1)
        took.append(time.perf_counter() - start)
    return median(took)


def later_draw(kind: type[DiscreteLaplace | DiscreteGaussian], scale: Fraction) -> float:
    """The median time of one draw once the tables are there."""
    noise = kind(scale)
    noise.sample(1)
    took = []
    for _ in range(2000):
        start = time.perf_counter()
        noise.sample(1)
        took.append(time.perf_counter() - start)
    return median(took)
