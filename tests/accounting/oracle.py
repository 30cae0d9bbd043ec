"""A slow oracle for losses: plain sums over the integers in high precision, sharing no code with the product."""

from fractions import Fraction

import mpmath
import numpy as np

mpmath.mp.prec = 240


def real(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


def gaussian_masses(sigma: Fraction, reach: int) -> dict[int, mpmath.mpf]:
    """Return the discrete Gaussian's masses on -reach..reach; choose a reach past which nothing matters."""
    half = 2 * real(sigma) ** 2
    raw = {x: mpmath.exp(-(x * x) / half) for x in range(-reach, reach + 1)}
    total = mpmath.fsum(raw.values())
    return {x: mass / total for x, mass in raw.items()}


def laplace_masses(scale: Fraction, reach: int) -> dict[int, mpmath.mpf]:
    """Return the discrete Laplace's masses on -reach..reach."""
    raw = {x: mpmath.exp(-abs(x) / real(scale)) for x in range(-reach, reach + 1)}
    total = mpmath.fsum(raw.values())
    return {x: mass / total for x, mass in raw.items()}


def hockey_stick(masses: dict[int, mpmath.mpf], shift: int, epsilon: Fraction) -> mpmath.mpf:
    """Return the sum of max(0, p(x - shift) - e^epsilon p(x)): no cut, no tail, every term."""
    factor = mpmath.exp(real(epsilon))
    zero = mpmath.mpf(0)
    return mpmath.fsum(max(zero, mass - factor * masses.get(x + shift, zero)) for x, mass in masses.items())


def renyi(masses: dict[int, mpmath.mpf], shift: int, order: Fraction) -> mpmath.mpf:
    """Return the Rényi divergence of the law moved by `shift` from the law."""
    alpha = real(order)
    terms = [mass**alpha * masses[x + shift] ** (1 - alpha) for x, mass in masses.items() if x + shift in masses]
    return mpmath.log(mpmath.fsum(terms)) / (alpha - 1)


def relative_entropy(masses: dict[int, mpmath.mpf], shift: int) -> mpmath.mpf:
    """Return the relative entropy of the law moved by `shift` from the law."""
    return mpmath.fsum(mass * mpmath.log(mass / masses[x + shift]) for x, mass in masses.items() if x + shift in masses)


def gaussian_delta(sigma: Fraction, shift: int, epsilon: Fraction) -> mpmath.mpf:
    """Return the discrete Gaussian's delta for a move of `shift`, by the plain sum."""
    reach = int(20 * sigma) + 2 * shift + 8
    return hockey_stick(gaussian_masses(sigma, reach), shift, epsilon)


def least_sigma(shift: int, epsilon: Fraction, delta: Fraction, most: float) -> mpmath.mpf:
    """Return the least sigma below `most` whose delta is within its goal, by scanning every sigma from zero.

    Delta is not monotone in sigma. Its local minima are kinks, where a point of the law has exactly the ratio
    e^epsilon, so those sigmas are scanned too.
    """
    grid = np.geomspace(most / 40, most, 1500)
    ends = [((2 * n - shift) * shift / (2 * float(epsilon))) ** 0.5 for n in range(shift // 2 + 1, shift + 400)]
    sigmas = np.unique(np.concatenate([grid, [end for end in ends if grid[0] < end < most]]))
    deltas = [_float_delta(sigma, shift, float(epsilon)) for sigma in sigmas]
    first = next(i for i, value in enumerate(deltas) if value <= float(delta) * (1 + 1e-9))
    low, high = mpmath.mpf(sigmas[first - 1]), mpmath.mpf(sigmas[first]) * (1 + mpmath.mpf(2) ** -45)
    goal = real(delta)
    for _ in range(40):
        middle = (low + high) / 2
        if _delta_of_real(middle, shift, epsilon) <= goal:
            high = middle
        else:
            low = middle
    return high


def _delta_of_real(sigma: mpmath.mpf, shift: int, epsilon: Fraction) -> mpmath.mpf:
    with mpmath.workprec(120):
        half, reach = 2 * sigma**2, int(16 * sigma) + 2 * shift + 6
        raw = [mpmath.exp(-(x * x) / half) for x in range(reach + 1)]
        total = raw[0] + 2 * mpmath.fsum(raw[1:])
        factor = mpmath.exp(real(epsilon))
        # the only positive terms are on the side of the move
        gains = (raw[abs(x - shift)] - factor * raw[x] for x in range(reach))
        return mpmath.fsum(gain for gain in gains if gain > 0) / total


def _float_delta(sigma: float, shift: int, epsilon: float) -> float:
    reach = int(16 * sigma) + 2 * shift + 6
    x = np.arange(-reach, reach + 1)
    total = np.exp(-(x**2) / (2 * sigma**2)).sum()
    far = np.exp(-((x - shift) ** 2) / (2 * sigma**2)) - np.exp(epsilon - x**2 / (2 * sigma**2))
    return float(np.maximum(far, 0).sum() / total)


def textbook_sigma(sensitivity: Fraction, epsilon: Fraction, delta: Fraction, constant: Fraction) -> mpmath.mpf:
    """The textbook's sensitivity·sqrt(2 ln(constant/delta))/epsilon: loose, and a proof only up to epsilon = 1."""
    return real(sensitivity / epsilon) * mpmath.sqrt(2 * mpmath.log(real(constant / delta)))


def shuffled_closed_form(epsilon: Fraction, reports: int, delta: Fraction) -> mpmath.mpf:
    """The closed-form bound of Feldman, McMillan and Talwar on the central epsilon of shuffled reports."""
    power = mpmath.exp(real(epsilon))
    spread = 8 * mpmath.sqrt(power * mpmath.log(4 / real(delta)) / reports) + 8 * power / reports
    return mpmath.log1p((power - 1) / (power + 1) * spread)
