"""The discrete Gaussian law: mass proportional to exp(-x² / (2 sigma²)) on the integers, drawn exactly.

Up to a sigma of 1024 it is one threshold table. Wider ones are drawn by rejection from blocks of neighbours, decided
in floating point if a proved margin allows and in ball arithmetic otherwise (docs/proofs/gaussian.md).
"""

from fractions import Fraction
from functools import lru_cache
from math import isqrt

import numpy as np
from flint import arb
from numpy.typing import NDArray

from tacit.noise.bits import Bits
from tacit.noise.coins import exp_digits, settle_below
from tacit.noise.laplace import check_scale
from tacit.noise.threshold import SEARCH_MOST, WIDTH, Bounds, IntegerNoise, ThresholdTable, certain_thresholds
from tacit.numbers import Integers, Number, Words, ball, certain_floor, close_below, show
from tacit.privacy import GaussianLaw

# Up to here a table is built in a few milliseconds; up to the second mark it pays for itself on many draws.
QUICK_TABLE_MOST = 128
ONE_TABLE_MOST = 1024
MANY = 10_000
# The float filter's error is below 2^-44 (docs/proofs/gaussian.md). Comparisons closer than 2^-40 plus a word's own
# interval are decided in ball arithmetic.
FILTER_MARGIN = 2.0**-40
# How many candidates are tried at a time.
PIECE = 1 << 17
# How many blocks a wide sigma has at least: more keep more candidates, and take a longer table.
BLOCKS_LEAST = 32
# Blocks within this many sigmas have a threshold: a smaller word keeps any distance in the block, without a comparison.
REACH_ALWAYS = 6


class DiscreteGaussian(IntegerNoise):
    """Integer noise with mass proportional to exp(-x² / (2 sigma²)), exact for every rational sigma.

    >>> noise = DiscreteGaussian(3)
    >>> noise.sample(5).dtype, round(noise.pmf(0), 6), noise.quantile(0.975), round(noise.variance, 6)
    (dtype('int64'), 0.132981, 6, 9.0)
    """

    def __init__(self, sigma: Number) -> None:
        self.sigma: Fraction = check_scale(sigma, name="sigma")
        self.law = GaussianLaw(self.sigma)

    def _draw(self, n: int, bits: Bits) -> Integers:
        return gaussian_sampler(self.sigma, many=n >= MANY).draw(n, bits)

    def __repr__(self) -> str:
        return f"DiscreteGaussian(sigma={show(self.sigma)})"


class WideGaussian:
    """A discrete Gaussian law of a wide sigma, by rejection from blocks of 2^shift neighbouring distances from zero.

    A block is drawn from a table, the offset in it and the sign are plain bits. A distance m in the block that starts
    at s is kept with chance exp(-(m² - s²) / (2 sigma²)), about 99 times in 100; of the two zeros, one.
    """

    def __init__(self, sigma: Fraction, width: int = WIDTH) -> None:
        self.sigma = sigma
        self.width = width
        self.shift: int = max(int(sigma / BLOCKS_LEAST).bit_length() - 1, 0)  # sigma is 32 to 64 blocks
        self.blocks: ThresholdTable = block_table(sigma / 2**self.shift, width)
        self._always = _always_kept(sigma / 2**self.shift, width)
        self._rate = float(1 / (2 * sigma**2))

    def draw(self, n: int, bits: Bits) -> Integers:
        """Return `n` draws.

        Privacy: exactly the law, given uniform bits: the number of tried candidates is independent of the kept ones.
        """
        draws = np.empty(n, dtype=np.int64)
        missing = n
        while missing > 0:
            found = self._try(1 if n == 1 else min(PIECE, missing + missing // 64 + 16), bits)[:missing]
            draws[n - missing : n - missing + len(found)] = found
            missing -= len(found)
        return draws

    def _try(self, n: int, bits: Bits) -> Integers:
        """Return the draws that `n` candidates give."""
        blocks = self.blocks.draw(n, bits)
        offsets = bits.words(n, self.shift + 1).view(np.int64)  # where in the block, and a sign
        minus = offsets & 1
        offsets >>= 1
        distances = blocks << self.shift
        distances += offsets
        keep = self._keep(blocks, distances, bits)
        zeros = np.flatnonzero(distances == 0)
        keep[zeros] &= minus[zeros] == 0
        # -m is the complement of m, plus one
        distances ^= np.negative(minus, out=offsets)
        distances += minus
        found: Integers = distances[keep]
        return found

    def _keep(self, blocks: Integers, distances: Integers, bits: Bits) -> NDArray[np.bool_]:
        words = bits.words(len(blocks), self.width)
        if len(words) <= SEARCH_MOST:  # the same work for every candidate, so that a short draw's time shows no tail
            return self._decide(blocks, distances, words, bits)
        keep: NDArray[np.bool_] = words < np.take(self._always, blocks, mode="clip")
        rest = np.flatnonzero(~keep)
        keep[rest] = self._decide(blocks[rest], distances[rest], words[rest], bits)
        return keep

    def _decide(self, blocks: Integers, distances: Integers, words: Words, bits: Bits) -> NDArray[np.bool_]:
        unit = 2.0**-self.width
        excess = self._chance(blocks, distances) - words.astype(np.float64) * unit
        keep = excess > 0
        near = np.abs(excess) <= FILTER_MARGIN + unit
        for index in np.flatnonzero(near) if near.any() else ():
            exponent = self._exponent(int(blocks[index]), int(distances[index]))
            keep[index] = settle_below(int(words[index]), exp_digits(exponent), bits, self.width)
        return keep

    def _chance(self, blocks: Integers, distances: Integers) -> NDArray[np.float64]:
        starts = blocks << self.shift
        exponents = (distances - starts).astype(np.float64) * (distances + starts).astype(np.float64) * self._rate
        chance: NDArray[np.float64] = np.exp(-exponents)
        return chance

    def _exponent(self, block: int, distance: int) -> Fraction:
        return (distance**2 - (block << self.shift) ** 2) / (2 * self.sigma**2)


@lru_cache(maxsize=128)
def _always_kept(sigma: Fraction, width: int) -> Words:
    """Return for each block of a table, sigma in blocks, a mark below which a word keeps every distance in it.

    Up to the next block the exponent is below (2k + 1)/(2 sigma²), and exp(-x) >= 1 - x. The last mark is 0.
    """
    chances = (1 - Fraction(2 * k + 1) / (2 * sigma**2) for k in range(int(sigma) * REACH_ALWAYS))
    marks = [max(chance.numerator << width, 0) // chance.denominator for chance in chances]
    return np.array([*marks, 0], dtype=np.uint64)


def gaussian_sampler(sigma: Fraction, *, many: bool) -> "ThresholdTable | WideGaussian":
    """Return the faster sampler of this distribution for `n` draws; both kinds are exact."""
    if sigma <= QUICK_TABLE_MOST or (many and sigma <= ONE_TABLE_MOST):
        return gaussian_table(sigma, WIDTH)
    return _wide_gaussian(sigma)


@lru_cache(maxsize=128)
def _wide_gaussian(sigma: Fraction) -> WideGaussian:
    return WideGaussian(sigma)


@lru_cache(maxsize=128)
def block_table(sigma: Fraction, width: int) -> ThresholdTable:
    """Return the table of k = 0, 1, … with mass proportional to exp(-k² / (2 sigma²)).

    With F and p the distribution function and the mass at 0 of both signs: G(k) = (2F(k) - 1 + p)/(1 + p).
    """
    reach = isqrt(int(Fraction(14, 10) * (width + 2) * sigma**2)) + 2  # as below; a single sign has twice the tail
    law = GaussianLaw(sigma)

    def bounds(guard: int) -> Bounds:
        length = width + guard
        whole = 1 << length
        peak = close_below(lambda: law.pmf(0), length=length)  # p in these units, low by at most 2
        for below, above in _upper_half(law, reach, length):
            low, high = 2 * below - whole + peak, 2 * above - whole + peak + 2
            yield (low << length) // (whole + peak + 2), -(-(high << length) // (whole + peak))

    def cdf(k: int) -> arb:
        return (2 * law.cdf(k) - 1 + law.pmf(0)) / (1 + law.pmf(0)) if k >= 0 else arb(0)

    return ThresholdTable(0, certain_thresholds(bounds, width=width), cdf, width=width)


@lru_cache(maxsize=128)
def gaussian_table(sigma: Fraction, width: int) -> ThresholdTable:
    """Return one table of both signs.

    F(x) = 1/2 + (1/2 + S_x)/Z from zero on, S_x = g_1 + … + g_x, Z the normaliser; F(-x-1) = 1 - F(x).
    """
    # 7/10 > ln 2: past the reach every threshold is 2^width - 1, or 0 on the other side
    reach = isqrt(int(Fraction(14, 10) * (width + 1) * sigma**2)) + 2
    law = GaussianLaw(sigma)

    def bounds(guard: int) -> Bounds:
        upper = list(_upper_half(law, reach, width + guard))
        whole = 1 << width + guard
        for below, above in reversed(upper):
            yield whole - above, whole - below
        yield from upper

    return ThresholdTable(-(reach + 1), certain_thresholds(bounds, width=width), law.cdf, width=width)


def _upper_half(law: GaussianLaw, reach: int, length: int) -> Bounds:
    """Yield bounds of F(0), …, F(reach) in units of 2^-length.

    g_(k+1) = g_k·s_k and s_(k+1) = s_k·exp(-1/sigma²), every product rounded down: s_k is low by at most 2k+1 units,
    g_k by k²+k, and S_k by k(k+1)(k+2)/3.
    """
    whole, half = 1 << length, 1 << length - 1
    step_down = _floor_exp(1 / law.sigma**2, length)
    step = _floor_exp(1 / (2 * law.sigma**2), length)
    normaliser = close_below(lambda: 1 / law.pmf(0), length=length)  # Z in these units, low by at most 2
    inverse = (1 << 2 * length) // (normaliser + 2)  # low by at most 3 units, since Z >= 1
    missing = reach * (reach + 1) * (reach + 2) // 3 + 3 * ((normaliser >> length) + 2) + 1
    weight, total = whole, 0
    for _ in range(reach + 1):
        below = half + ((half + total) * inverse >> length)
        yield below, below + missing
        weight = weight * step >> length
        step = step * step_down >> length
        total += weight


def _floor_exp(exponent: Fraction, length: int) -> int:
    return certain_floor(lambda: ball(-exponent).exp() * arb(2) ** length)
