"""The privacy loss of one event: the distribution of ln(P/Q) under P, for a pair (P, Q) that dominates the event.

There are three forms: a `Lattice`, if the loss takes evenly spaced values with known probabilities; a `Curve`, if it is
continuous and known by its tails; and a `Normal`, for wide Gaussian noise. All hold for every pair of neighbours, in
the given order and its reverse (docs/proofs/composition.md).

The last part puts a loss on a grid so that no delta falls ("connecting the dots"): a probability between two grid
points is shared between them so that its weight under both P and Q is kept. The result is never below the true loss in
the order that composition respects. Adding up several losses is left to `pld.py`.

A Fourier transform with a proved bound on its rounding error, and tables of powers, using only IEEE arithmetic.

numpy's own transform is as accurate, but unproved. This one uses additions, multiplications and
tables made in ball arithmetic; docs/proofs/composition.md derives `relative_error` and `POWER_ERROR`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from math import lcm

import numpy as np
from flint import arb
from numpy.typing import NDArray

from tacit.accounting import cost
from tacit.numbers import ball, shortened, upper_end, upward, working_precision
from tacit.privacy import (
    Event,
    ExponentialChoice,
    Failing,
    GaussianLaw,
    GaussianNoise,
    LaplaceLaw,
    LaplaceNoise,
    PureChoice,
    StaircaseNoise,
    SubsampledGaussian,
)

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


# A Laplace loss with at most this many values, and Gaussian noise at most this wide, is kept value by value.
VALUES_MOST = 512
SIGMA_MOST = 512
# Spread-out losses are cut this many deviations out; the tails beyond count as a failure of the promise.
DEVIATIONS = 9


@dataclass(frozen=True)
class Lattice:
    """A loss with chances `masses` at start, start + step, …; `beyond` is the chance of anything larger."""

    start: Fraction
    step: Fraction
    masses: tuple[arb, ...]
    beyond: arb
    deviation: float


Tails = Callable[[Fraction], tuple[arb, arb]]


@dataclass(frozen=True)
class Curve:
    """A loss between `low` and `high` by its tails: Pr_P[loss > x] and Pr_Q[loss > x]; atoms, if any, at the two ends.

    `spread` is about the chance that is not in the atoms. `factor` multiplies every chance under P and `drift` is
    added to the loss, as in `Normal`.
    """

    low: Fraction
    high: Fraction
    tails: Tails
    deviation: float
    atoms: bool = False
    spread: float = 1.0
    factor: arb | int = 1
    drift: Fraction = Fraction(0)


@dataclass(frozen=True)
class Normal:
    """A loss with the normal law of mean `squared`/2 and variance `squared`, its chances times `factor`, plus `drift`.

    Factor and drift are the price of seeing grid noise as continuous (docs/proofs/gaussian-vector.md).
    """

    squared: Fraction
    factor: arb
    drift: Fraction

    @property
    def deviation(self) -> float:
        """How far the loss strays."""
        return math.sqrt(self.squared)

    @property
    def low(self) -> Fraction:
        return self.squared / 2 - DEVIATIONS * Fraction(self.deviation)

    @property
    def high(self) -> Fraction:
        """The upper cut of the loss."""
        return self.squared / 2 + DEVIATIONS * Fraction(self.deviation)


Pair = Lattice | Curve | Normal


def merged(pairs: Sequence[tuple[Pair, int]]) -> list[tuple[Pair, int]]:
    """Return the pairs with all normal losses as one: normal laws add up to a normal law, exactly."""
    others: list[tuple[Pair, int]] = []
    squared, factor, drift = Fraction(0), arb(1), Fraction(0)
    for pair, count in pairs:
        if isinstance(pair, Normal):
            squared, factor, drift = (
                squared + count * pair.squared,
                factor * pair.factor**count,
                drift + count * pair.drift,
            )
        else:
            others.append((pair, count))
    return [*others, (Normal(squared, factor, drift), 1)] if squared else others


def pair_of(event: Event) -> Pair | None:
    """Return the event's dominating pair at the working precision, or None if none is known.

    A sampled one has two, by whether a unit is added or removed: `amplify.sampled_pair`.
    """
    if isinstance(event, LaplaceNoise):
        return _laplace_pair(event)
    if isinstance(event, GaussianNoise):
        return _gaussian_pair(event)
    if isinstance(event, PureChoice | StaircaseNoise):
        return _pure_pair(event.epsilon)
    if isinstance(event, ExponentialChoice):
        return _exponential_pair(event.epsilon)
    if isinstance(event, SubsampledGaussian):
        return None
    return Lattice(Fraction(0), Fraction(1), (arb(1) - ball(event.delta),), ball(event.delta), 0.0)


def moves_nothing(event: Event) -> bool:
    """Return whether the event cannot separate neighbours: one unit moves less than a step."""
    if isinstance(event, LaplaceNoise):
        return event.sensitivity < 1
    if isinstance(event, GaussianNoise | SubsampledGaussian):
        return event.sensitivity_squared < 1
    if isinstance(event, Failing):
        return event.delta == 0
    return event.epsilon == 0


def _pure_pair(epsilon: Fraction) -> Lattice:
    lower = 1 / (1 + ball(epsilon).exp())
    return Lattice(-epsilon, 2 * epsilon, (lower, 1 - lower), arb(0), float(epsilon))


def _exponential_pair(epsilon: Fraction) -> Curve:
    whole = -(-ball(epsilon)).expm1()

    def tails(x: Fraction) -> tuple[arb, arb]:
        if x >= epsilon:
            return arb(0), arb(0)
        if x <= -epsilon:
            return arb(1), arb(1)
        half = ball((x - epsilon) / 2)
        above = -half.expm1() / whole
        return above, above * (half - ball(x)).exp()

    return Curve(-epsilon, epsilon, tails, float(epsilon) / 3)


def _laplace_pair(event: LaplaceNoise) -> Pair:
    shift, law = math.floor(event.sensitivity), LaplaceLaw(event.scale)
    most = shift / event.scale
    if shift <= VALUES_MOST:
        # the loss of x is (2x - shift)/scale for x = 0..shift, and constant beyond; P is the law moved to `shift`
        inner = [law.pmf(x - shift) for x in range(1, shift)]
        masses = (law.upper_tail(shift), *inner, law.upper_tail(0))
        return Lattice(-most, 2 / event.scale, masses, arb(0), float(most))

    def tails(x: Fraction) -> tuple[arb, arb]:
        if x < -most:
            return arb(1), arb(1)
        cut = math.floor((x * event.scale + shift) / 2) + 1  # the least x with a loss above
        return (arb(0), arb(0)) if x >= most else (law.upper_tail(cut - shift), law.upper_tail(cut))

    return Curve(-most, most, tails, float(most), atoms=True, spread=-math.expm1(-float(most)) / 2)


def _gaussian_pair(event: GaussianNoise) -> Pair | None:
    shift = cost.single_shift(event)
    if shift is not None and event.sigma <= SIGMA_MOST:
        return _narrow_gaussian(event.sigma, shift)
    moved = None if shift is None else 1
    squared = event.sensitivity_squared if shift is None else Fraction(shift) ** 2
    return smooth_gaussian(event.sigma, squared, moved=moved)


def _narrow_gaussian(sigma: Fraction, shift: int) -> Lattice:
    law, reach = GaussianLaw(sigma), math.ceil((DEVIATIONS + 2) * sigma) + 1
    # P is the law about `shift`; x runs over shift - reach .. shift + reach, and all that is below counts as the first
    masses = _masses(sigma, reach)
    masses[0] = law.upper_tail(reach)
    start = (2 * (shift - reach) * shift - shift**2) / (2 * sigma**2)
    return Lattice(start, shift / sigma**2, tuple(masses), law.upper_tail(reach + 1), float(shift / sigma))


def _masses(sigma: Fraction, reach: int) -> list[arb]:
    """Return the discrete Gaussian's masses on -reach..reach, by recurrence from the middle."""
    rate = 1 / (2 * sigma**2)
    mass, ratio, step = GaussianLaw(sigma).pmf(0), (-ball(rate)).exp(), (-ball(2 * rate)).exp()
    half = [mass]
    for _ in range(reach):
        mass = mass * ratio
        ratio = ratio * step
        half.append(mass)
    return half[:0:-1] + half


def smooth_gaussian(sigma: Fraction, sensitivity_squared: Fraction, *, moved: int | None = None) -> Normal | None:
    """Return a wide or many-dimensional Gaussian as a continuous one, blurred; None if sigma is too narrow."""
    smooth = cost.smoothing(sensitivity_squared, Fraction(1, 2**20))
    smooth = smooth if moved is None else cost.Smoothing(smooth.blur_squared, moved)
    left, ripple = sigma**2 - smooth.blur_squared, smooth.ripple()
    if left <= 0 or not ripple < 1:
        return None
    factor = (smooth.moved * ripple.log1p()).exp()
    drift = upward(lambda: smooth.moved * (2 * smooth.ripple().log1p() - (-smooth.ripple()).log1p()))
    return Normal(shortened(sensitivity_squared / left, up=True), factor, drift)


def normal_curve(pair: Normal) -> Curve:
    def tails(x: Fraction) -> tuple[arb, arb]:
        spread = ball(2 * pair.squared).sqrt()
        return (
            (ball(x - pair.squared / 2) / spread).erfc() / 2,
            (ball(x + pair.squared / 2) / spread).erfc() / 2,
        )

    return Curve(pair.low, pair.high, tails, pair.deviation, factor=pair.factor, drift=pair.drift)


BITS = 128
CELLS_MOST = 1 << 20
ROW = 128
# Cells are widened up to the point at which the probability in one, times the cube of its width in steps, is this.
SHARING_COST = 1e-4
# Gauss's five points on [0, 1], their weights, and their largest error for an integral here, relative to the height.
NODES = (0.046910077030668, 0.23076534494715845, 0.5, 0.7692346550528415, 0.953089922969332)
WEIGHTS = (0.11846344252809454, 0.23931433524968324, 0.28444444444444444, 0.23931433524968324, 0.11846344252809454)
QUADRATURE_ERROR = 2.0**-40
# The cells it is proved for; in wider ones a normal loss is known by its tails.
CELLS_PER_DEVIATION, STEP_MOST = 64, 0.1


# ---- losses on a grid ------------------------------------------------------------------------------------------------


class TooFine(Exception):
    """The losses would need a grid with more points than are ever computed: this rule does not apply to them."""


@dataclass(frozen=True)
class Gridded:
    """A loss of offset + i·step with chance at most `masses[i]`, and of anything larger with chance `beyond`."""

    offset: Fraction
    masses: Reals
    beyond: Fraction


def on_grid(pair: Pair, step: Fraction) -> Gridded:
    """Return the pair's loss on a grid of this step; chances and offset are rounded up."""
    with working_precision(BITS):
        if isinstance(pair, Lattice):
            return Gridded(pair.start, _floats(_lattice_masses(pair, step)), upper_end(pair.beyond))
        if isinstance(pair, Normal):
            if step <= min(pair.deviation / CELLS_PER_DEVIATION, STEP_MOST):
                return _normal(pair, step)
            pair = normal_curve(pair)
        masses, beyond = _curve_masses(pair, step)
        floats = _floats([pair.factor * mass for mass in masses])
        return Gridded(pair.low + pair.drift, floats, upper_end(pair.factor * beyond))


def _lattice_masses(pair: Lattice, step: Fraction) -> list[arb]:
    ratio = pair.step / step
    stride, over = ratio.numerator, ratio.denominator
    if over == 1 and stride == 1:
        return list(pair.masses)
    cells = (len(pair.masses) - 1) * stride // over + 2
    _require_cells(cells)
    masses, whole = [arb(0)] * cells, -(-ball(step)).expm1()
    for i, mass in enumerate(pair.masses):
        index, rest = divmod(i * stride, over)
        if rest == 0:
            masses[index] += mass
            continue
        share = -(-ball(Fraction(rest, over) * step)).expm1() / whole
        masses[index] += mass * (1 - share)
        masses[index + 1] += mass * share
    return masses


def _curve_masses(pair: Curve, step: Fraction) -> tuple[list[arb], arb]:
    cells = -((pair.low - pair.high) // step)
    _require_cells(cells)
    over = lcm(pair.low.denominator, step.denominator)
    start, stride = int(pair.low * over), int(step * over)  # the grid in whole parts, which add up faster
    wholes = cache(lambda width: -(-ball(width * step)).expm1())
    above_p, above_q = pair.tails(pair.low)
    masses, at, index, width = [1 - above_p] + [arb(0)] * cells, pair.low, 0, 1
    while index < cells:
        # cells may be wide where chance is small: sharing costs the probability times the width squared
        width = min(width, cells - index)
        while True:
            end = Fraction(start + (index + width) * stride, over)
            next_p, next_q = pair.tails(end)
            cell_p, cell_q = above_p - next_p, above_q - next_q
            if width == 1 or cell_p * width**3 < SHARING_COST:
                break
            width = max(1, width // 2)
        upper = (cell_p - ball(at).exp() * cell_q) / wholes(width)
        masses[index] += cell_p - upper
        masses[index + width] += upper
        above_p, above_q, at, index = next_p, next_q, end, index + width
        width = 2 * width if cell_p * (2 * width) ** 3 < SHARING_COST / 4 else width
    return masses, above_p


def _normal(pair: Normal, step: Fraction) -> Gridded:
    """Return a normal loss on the grid: per cell, the two shares are integrals over it, by Gauss's five points."""
    cells = -((pair.low - pair.high) // step)
    _require_cells(cells)
    start = pair.low - pair.squared / 2
    height, slope = _densities(pair, step, start, cells), -step / pair.squared
    upper, lower = np.zeros(cells), np.zeros(cells)
    for node, weight in zip(map(Fraction, NODES), WEIGHTS, strict=True):
        inside = (ball(node * slope * start) + ball(node**2 * step * slope / 2)).exp()
        values = weight * float(inside) * powers(node * slope * step, cells)
        share = float((-ball(node * step)).expm1() / (-ball(step)).expm1())
        upper += share * values
        lower += (1 - share) * values
    masses = np.zeros(cells + 1)
    masses[1:] += height * (upper + QUADRATURE_ERROR)
    masses[:-1] += height * (lower + QUADRATURE_ERROR)
    tail = ((ball(pair.high - pair.squared / 2) / ball(2 * pair.squared).sqrt()).erfc() / 2).upper()
    masses[0] += float(tail) * (1 + 1e-15)
    scale = float(pair.factor.upper()) * (1 + 2.0**-40)
    return Gridded(pair.low + pair.drift, masses * scale, upper_end(pair.factor * tail))


def _densities(pair: Normal, step: Fraction, start: Fraction, cells: int) -> Reals:
    """Return the chance of a cell at the density of its left end, to within 2^-43: short rows of powers."""
    width, squared = ball(step), ball(pair.squared)
    constant, rate = width / (2 * arb.pi() * squared).sqrt(), -1 / (2 * squared)
    ends = [ball(start) + ROW * row * width for row in range(-(-cells // ROW))]
    first = np.array([float(constant * (end * end * rate).exp()) for end in ends])
    ratio = np.array([float((2 * end * width * rate).exp()) for end in ends])
    curve = np.array([float((c * c * width * width * rate).exp()) for c in range(ROW)])
    table = np.empty((len(ends), ROW))
    table[:, 0], table[:, 1:] = 1.0, ratio[:, None]
    rows: Reals = np.multiply.accumulate(table, axis=1) * curve * first[:, None]
    flat: Reals = rows.ravel()[:cells]
    return flat


def _require_cells(cells: int) -> None:
    if cells > CELLS_MOST:
        raise TooFine


def _floats(masses: list[arb]) -> Reals:
    values = np.array([float(mass.upper()) for mass in masses])
    # a float of a ball's end is within one unit in its last place; the least positive float covers what vanishes
    above: Reals = np.maximum(values, 0.0) * (1 + 2.0**-50) + 1e-300
    return above
