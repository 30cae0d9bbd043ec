"""A Fourier transform with a proved bound on its rounding error, and tables of powers, using only IEEE arithmetic.

numpy's own transform is as accurate, but unproved. This one uses additions, multiplications and
tables made in ball arithmetic; docs/proofs/composition.md derives `relative_error` and `POWER_ERROR`.
"""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb
from numpy.typing import NDArray

from tacit.privacy import ball, working_precision

Reals = NDArray[np.float64]
Spectrum = NDArray[np.complex128]

# The unit roundoff of IEEE doubles.
UNIT = 2.0**-53
# Every entry of `powers` is within this relative distance of the true power.
POWER_ERROR = 6 * UNIT
# A multiplication of complex numbers is within this relative distance of the true product.
PRODUCT_ERROR = 3 * UNIT

_BLOCK = 512


def relative_error(size: int) -> float:
    """Return a bound on either transform's relative error in Euclidean length: 12 roundoffs a halving, and 16 more."""
    return 12.01 * UNIT * math.log2(size) + 16 * UNIT


def transform(values: Reals) -> Spectrum:
    """Return the first half (and the middle) of the Fourier transform of reals; their count must be a power of two, >=
    4."""
    half = len(values) // 2
    packed = _stockham(values[0::2] + 1j * values[1::2])
    mirrored = np.conj(np.roll(packed[::-1], 1))
    even, odd = (packed + mirrored) / 2, (packed - mirrored) * _roots(2 * half)
    spectrum = np.empty(half + 1, dtype=np.complex128)
    spectrum[:half] = even - 0.5j * odd
    spectrum[half] = packed[0].real - packed[0].imag
    return spectrum


def inverse(spectrum: Spectrum) -> Reals:
    half = len(spectrum) - 1
    mirrored = np.conj(spectrum[:0:-1])
    front = spectrum[:half]
    packed = (front + mirrored) / 2 + 0.5j * ((front - mirrored) * np.conj(_roots(2 * half)))
    pairs = np.conj(_stockham(np.conj(packed))) / half
    values = np.empty(2 * half)
    values[0::2], values[1::2] = pairs.real, pairs.imag
    return values


def _stockham(values: Spectrum) -> Spectrum:
    """Return the whole transform of a complex vector with a length that is a power of two."""
    size = len(values)
    roots = _roots(size)
    current, half, stride = values, size // 2, 1
    while half >= 1:
        upper = current[: half * stride].reshape(half, stride)
        lower = current[half * stride :].reshape(half, stride)
        following = np.empty((half, 2, stride), dtype=np.complex128)
        np.add(upper, lower, out=following[:, 0, :])
        np.multiply(upper - lower, roots[::stride][:half, None], out=following[:, 1, :])
        current, half, stride = following.reshape(size), half // 2, stride * 2
    return current


def powers(rate: Fraction, count: int) -> Reals:
    """Return exp(rate·i) for i below `count`, each to within `POWER_ERROR`; no entry may overflow."""
    rows = -(-count // _BLOCK)
    with working_precision(96):
        each = ball(rate)
        coarse = np.array([float((each * (_BLOCK * row)).exp()) for row in range(rows)])
        fine = np.array([float((each * column).exp()) for column in range(min(_BLOCK, count))])
    with np.errstate(over="ignore"):  # in the last row, beyond what is asked for
        return np.outer(coarse, fine).reshape(-1)[:count]


def dot(one: Reals, other: Reals) -> float:
    """Return the sum of products, within one roundoff per term; no threads, unlike a matrix product."""
    return float(np.einsum("i,i->", one, other))


@lru_cache(maxsize=24)
def _roots(size: int) -> Spectrum:
    """Return exp(-2 pi i k/size) for k below size/2, each to within 7 roundoffs: products of two tables."""
    count = max(size // 2, 1)
    columns = min(_BLOCK, count)
    with working_precision(96):
        coarse = np.array([_unit_root(_BLOCK * row, size) for row in range(-(-count // _BLOCK))])
        fine = np.array([_unit_root(column, size) for column in range(columns)])
    roots = np.outer(coarse, fine).reshape(-1)[:count]
    roots.setflags(write=False)
    return roots


def _unit_root(k: int, size: int) -> complex:
    angle = arb.pi() * ball(Fraction(-2 * k, size))
    return complex(float(angle.cos()), float(angle.sin()))
