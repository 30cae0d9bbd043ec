"""One event's privacy loss on a grid, moved there so that no delta falls: "connecting the dots".

A chance between two grid points is shared between them so that its weight under both laws of the pair is kept. The
result is never below the true loss in the order that composition respects (docs/proofs/composition.md).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import lcm

import numpy as np
from flint import arb

from tacit.accounting.digits import upper_end
from tacit.accounting.pair import Curve, Lattice, Normal, Pair, normal_curve
from tacit.accounting.transform import Reals, powers
from tacit.privacy.rounding import ball, working_precision

BITS = 128
CELLS_MOST = 1 << 20
ROW = 128
# Cells are widened up to where the chance in one times the cube of its width, in steps, is this.
SHARING_COST = 1e-4
# Gauss's five points on [0, 1], their weights, and what they may miss of an integral here, relative to the height.
NODES = (0.046910077030668, 0.23076534494715845, 0.5, 0.7692346550528415, 0.953089922969332)
WEIGHTS = (0.11846344252809454, 0.23931433524968324, 0.28444444444444444, 0.23931433524968324, 0.11846344252809454)
QUADRATURE_ERROR = 2.0**-40
# The cells it is proved for; in wider ones a normal loss is known by its tails.
CELLS_PER_DEVIATION, STEP_MOST = 64, 0.1


class TooFine(Exception):
    """The losses would need a grid with more points than are ever computed: this rule has nothing to say of them."""


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
    _check(cells)
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
    _check(cells)
    over = lcm(pair.low.denominator, step.denominator)
    start, stride = int(pair.low * over), int(step * over)  # the grid in whole parts, which add up faster
    wholes = cache(lambda width: -(-ball(width * step)).expm1())
    above_p, above_q = pair.tails(pair.low)
    masses, at, index, width = [1 - above_p] + [arb(0)] * cells, pair.low, 0, 1
    while index < cells:
        # cells may be wide where chance is small: what sharing costs is the chance times the width squared
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
    _check(cells)
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


def _check(cells: int) -> None:
    if cells > CELLS_MOST:
        raise TooFine


def _floats(masses: list[arb]) -> Reals:
    """Return floats at or above the masses."""
    values = np.array([float(mass.upper()) for mass in masses])
    # a float of a ball's end is within one unit in its last place; the least positive float covers what vanishes
    above: Reals = np.maximum(values, 0.0) * (1 + 2.0**-50) + 1e-300
    return above
