"""What the best hand-set bounds would give: an oracle picks them with the true error in view, and pays for no learning.

A hand-set bound is (r, g): of a person's groups g are kept at random, and of the rows in each r. The errors here are
expected ones, by formula, with the noise that the product has at this loss, so they have no luck in them.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import pi, sqrt

import numpy as np
from scipy.special import ndtr

from bench.learned.tasks import Cells
from tacit.accounting import rho_within
from tacit.answer import weighted_bound

ROWS = (1, 2, 3, 5, 8, 12, 20, 32, 50, 100, 200, 500, 1000)
GROUPS = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 75, 100, 200, 500)
RANGES = (0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)
# Ends of ranges for standard deviations, as quantiles of the values, and bounds (rows, groups) for them.
LOW_ENDS, HIGH_ENDS = (0.0, 0.01, 0.05), (0.9, 0.95, 0.99, 0.999, 1.0)
STD_BOUNDS = ((1, 1), (1, 2), (1, 5), (1, 15), (3, 2), (3, 5), (20, 2), (50, 1), (200, 1))
CONFIDENCE = Fraction(95, 100)
# The bound that the guides used to begin with: 5 groups, 2 rows in each.
GUESS = (2, 5)


def laplace_error(off: np.ndarray, scale: float | np.ndarray) -> np.ndarray:
    """Return the expected absolute error of numbers that are off by so much and have Laplace noise.

    >>> laplace_error(np.array([0.0, 1e6]), 3.0).tolist()
    [3.0, 1000000.0]
    """
    off = np.abs(off)
    return off + scale * np.exp(-off / scale)


def gaussian_error(off: np.ndarray, deviation: float | np.ndarray) -> np.ndarray:
    """Return the expected absolute error of numbers that are off by so much and have Gaussian noise."""
    reach = np.abs(off) / deviation
    return deviation * sqrt(2 / pi) * np.exp(-reach * reach / 2) + np.abs(off) * (1 - 2 * ndtr(-reach))


@cache
def sigma(epsilon: float) -> float:
    """Return the deviation of the Gaussian noise that the product has at this loss, for a length of 1."""
    return 1 / sqrt(2 * float(rho_within(Fraction(epsilon).limit_denominator(10**6), Fraction(1, 10**6))))


SIGMA = sigma(1.0)


def error_of(off: np.ndarray, rows: int, groups: int, size: float | np.ndarray = 1.0) -> float:
    """Return the mean error of groups that are off by so much, with the noise that errs less."""
    laplace, gaussian = size * rows * groups, size * rows * sqrt(groups) * SIGMA
    return float(min(laplace_error(off, laplace).mean(), gaussian_error(off, gaussian).mean()))


def noise_of(rows: int, groups: int) -> float:
    """Return the mean size of the noise alone, below which no error is."""
    return rows * min(float(groups), sqrt(groups) * SIGMA * sqrt(2 / pi))


def hand_set_count(cells: Cells, rows: int, groups: int) -> float:
    """Return the mean error of counts by group with this bound."""
    return _dropped(cells, cells.rows, np.minimum(cells.rows, rows), rows, groups, 1.0)


def best_count(cells: Cells) -> float:
    """Return the mean error of counts by group with the best bound."""
    found = np.inf
    for rows, groups in _bounds(cells):
        if noise_of(rows, groups) < found:
            found = min(found, hand_set_count(cells, rows, groups))
    return found


def hand_set_sum(cells: Cells, rows: int, groups: int, high: float) -> float:
    """Return the mean error of sums by group with this bound and the range up to `high`."""
    low = -high if cells.values.min() < 0 else 0.0
    kept = cells.sums(low, high) * np.minimum(1.0, rows / cells.rows)
    return _dropped(cells, cells.sums(), kept, rows, groups, high)


def best_sum(cells: Cells) -> float:
    """Return the mean error of sums by group with the best bound and range."""
    whole, low = cells.sums(), cells.values.min()
    found = np.inf
    for high in ranges(cells):
        clipped = cells.sums(-high if low < 0 else 0.0, high)
        for rows, groups in _bounds(cells):
            if high * noise_of(rows, groups) < found:
                kept = clipped * np.minimum(1.0, rows / cells.rows)
                found = min(found, _dropped(cells, whole, kept, rows, groups, high))
    return found


@dataclass(frozen=True)
class Means:
    """What the best bound and range give: which share of means is known at all, and the mean error of those."""

    error: float
    known: float


def best_mean(cells: Cells) -> Means:
    """Return how means of the larger groups come out with the best bound and range for them.

    A mean is made of two parts, how far values are above the low end and below the high one, and each gets noise. The
    bound is the one that errs least if every group has a mean; its error is then that of the groups that do have one.
    """
    counted = np.bincount(cells.cell, cells.counted).astype(float)
    truth, large, low = cells.means(), cells.large(), float(cells.values[cells.counted].min())
    least, found = np.inf, Means(np.inf, 0.0)
    for high in ranges(cells):
        if high <= low:
            continue
        clipped = cells.sums(low, high)
        for rows, groups in _bounds(cells):
            share = np.minimum(1.0, rows / cells.rows) * np.minimum(1.0, groups / cells.cells_of_unit)
            kept = np.maximum(cells.by_group(counted * share), 1.0)
            mean = cells.by_group(clipped * share) / kept
            above = np.clip((mean - low) / (high - low), 0, 1)
            size = (high - low) * np.hypot(above, 1 - above) / kept
            off, size = (mean - truth)[large], np.maximum(size[large], 1e-300)
            error = error_of(off, rows, groups, size)
            if error < least:
                least, known = error, are_known(kept[large], rows, groups)
                found = Means(error_of(off[known], rows, groups, size[known]), float(known.mean()))
    return found


def are_known(kept: np.ndarray, rows: int, groups: int) -> np.ndarray:
    """Return which groups have a mean: their noisy rows, both parts' noise in them, are above twice its bound.

    The noise that errs less is the one whose bound is lower. Half of all noise is below 0, so a group whose rows are
    just at the end has a mean half of the time; how far from it others are changes little, and is left out.
    """
    laplace = weighted_bound("laplace", Fraction(rows * groups), (1.0, 1.0), CONFIDENCE)
    gaussian = weighted_bound("gaussian", Fraction(rows * sqrt(groups) * SIGMA), (1.0, 1.0), CONFIDENCE)
    return kept > 2 * min(laplace, gaussian)


def best_std(cells: Cells) -> float:
    """Return the mean error of standard deviations, of the larger groups, with the best bounds and range for them.

    A variance is made of three parts of a range (docs/proofs/moments.md), and each gets noise. Which rows are kept is
    luck, and is in the error, as if rows were picked one by one.
    """
    truth, large = cells.deviations(), cells.large()
    values = cells.values[cells.counted]
    found = np.inf
    for low in np.unique(np.quantile(values, LOW_ENDS)):
        for high in np.unique(np.quantile(values, HIGH_ENDS)):
            if high <= low:
                continue
            above = np.clip(cells.values, low, high) - low
            powers = [np.bincount(cells.cell, above**power * cells.counted) for power in range(5)]
            for rows, groups in STD_BOUNDS:
                share = np.minimum(1.0, rows / cells.rows) * np.minimum(1.0, groups / cells.cells_of_unit)
                off, size = _std_errors(cells, powers, share, high - low, truth)
                found = min(found, error_of(off[large], rows, groups, np.maximum(size[large], 1e-300)))
    return found


def _std_errors(
    cells: Cells, powers: list[np.ndarray], share: np.ndarray, height: float, truth: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return how far off groups are by clipping and luck, and the noise on each for noise of 1 on its parts."""
    kept = np.maximum(cells.by_group(powers[0] * share), 1e-9)
    mean, square = (cells.by_group(powers[power] * share) / kept for power in (1, 2))
    variance = np.maximum(square - mean**2, 0.0)
    parts = np.stack([mean**2, mean**2 - mean * height, (height - mean) ** 2]) - variance
    twice = 2 * np.maximum(np.sqrt(variance), 1e-9)
    size = np.minimum(np.sqrt((parts**2).sum(axis=0)) / kept / twice, height)
    # the sum of ((y - mean)² - variance)² over rows that are kept with a chance
    lacks = mean**2 - variance
    times = (lacks**2, -4 * mean * lacks, 4 * mean**2 + 2 * lacks, -4 * mean, np.ones_like(mean))
    by_luck = sum(each * cells.by_group(power * share * (1 - share)) for each, power in zip(times, powers, strict=True))
    luck = np.minimum(np.sqrt(np.maximum(by_luck, 0.0)) / kept / twice, height)
    return np.hypot(np.sqrt(variance) - truth, luck), size


def ranges(cells: Cells) -> list[float]:
    """Return the ends that are tried: quantiles of how large values are."""
    ends = np.quantile(np.abs(cells.values[cells.counted]), RANGES)
    return sorted(set(ends[ends > 0].tolist()))


def best_clip(totals: np.ndarray) -> float:
    """Return the error of one number where each person's total is clipped at the best place."""
    ends = np.unique(np.quantile(totals, 1 - np.geomspace(1 / len(totals), 0.5, 60)))
    ends = np.append(ends, totals.max())
    lost = [totals.sum() - np.minimum(totals, end).sum() for end in ends[ends > 0]]
    return float(laplace_error(np.array(lost), ends[ends > 0]).min())


def _dropped(cells: Cells, whole: np.ndarray, kept: np.ndarray, rows: int, groups: int, size: float) -> float:
    """Return the mean error where each cell is kept with the chance that its person's groups leave it."""
    chance = np.minimum(1.0, groups / cells.cells_of_unit)
    off = cells.by_group(whole - kept * chance)
    by_luck = cells.by_group(kept * kept * chance * (1 - chance))
    return error_of(np.sqrt(off * off + by_luck), rows, groups, size)


def _bounds(cells: Cells) -> list[tuple[int, int]]:
    rows_most, groups_most = 1.5 * cells.rows.max(), cells.cells_of_unit.max()
    rows = [each for each in ROWS if each <= rows_most] or [1]
    groups = [each for each in GROUPS if each <= groups_most] or [1]
    return [(r, g) for r in rows for g in groups]
