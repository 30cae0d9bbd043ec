"""Two baselines that have the whole epsilon, learn nothing and are given all keys: their expected errors.

The oracle has the best of a grid of caps on a person's rows or sums over all groups, L1 with Laplace or L2 with
Gaussian noise. Means and variances also have the best range and division of epsilon, all with the true error in view.
The sensible person has the true 99th percentile of people's rows, rounded up to 1, 2 or 5 times a power of ten, a range
that was looked up, and Laplace noise in equal parts. People with more rows than the cap are down-weighted to it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, floor, log10, sqrt

import numpy as np

from bench.learned.oracle import gaussian_error, laplace_error, sigma
from bench.learned.tasks import Cells

CAPS = 32
# Of means and variances: quantiles of people's rows that are caps, ranges as quantiles of values, parts for the rows.
CAP_QUANTILES = (0.25, 0.5, 0.75, 0.9, 0.97, 0.99, 0.998, 1)
RANGES = ((0, 1), (0.0005, 0.9995), (0.005, 0.995), (0.02, 0.98), (0, 0.99))
PARTS = (0.1, 0.25, 0.5, 0.7)
# How often the noise of a mean or of a variance is drawn, over all groups.
DRAWS = 4_000


@dataclass(frozen=True)
class Errors:
    """The expected absolute error of each group."""

    oracle: np.ndarray
    person: np.ndarray


def errors_of(cells: Cells, number: str, epsilon: float, between: tuple[float, float], numbers: int = 1) -> Errors:
    """Return both baselines of one number of a question that asks for so many."""
    if number in ("mean", "share"):
        between = (0.0, 100.0) if number == "share" else between
        return _quotients(cells, epsilon, between, _mean)
    if number == "variance":
        return _quotients(cells, epsilon, between, _variance)
    epsilon /= numbers
    if number == "sum":
        return Errors(best_cap(cells, cells.sums(), epsilon), _person_sum(cells, epsilon, between))
    of_cells = cells.rows if number == "count" else np.ones(len(cells.rows))
    cap = one_two_five(_percentile(cells, of_cells))
    cap = min(cap, cells.groups) if number == "units" else cap
    lost = cells.by_group(of_cells) - cells.up_to(of_cells, cap)
    return Errors(best_cap(cells, of_cells, epsilon), laplace_error(lost, cap / epsilon))


def truth_of(cells: Cells, number: str) -> np.ndarray:
    """Return the number of each group, of the table as it is."""
    if number == "count":
        return cells.by_group(cells.rows)
    if number == "units":
        return people_of(cells)
    if number == "sum":
        return cells.by_group(cells.sums())
    return cells.deviations() ** 2 if number == "variance" else cells.means()


def people_of(cells: Cells) -> np.ndarray:
    """Return how many people each group has."""
    return cells.by_group(np.ones(len(cells.rows)))


def best_cap(cells: Cells, of_cells: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the errors of counts or sums with the cap and the noise that err least."""
    truth, found = cells.by_group(of_cells), np.full(cells.groups, np.inf)
    for norm in 1, 2:
        sizes = np.bincount(cells.unit, np.abs(of_cells) ** norm, minlength=cells.people) ** (1 / norm)
        some = sizes[sizes > 0]
        if not len(some):
            return np.zeros(cells.groups)
        for cap in np.geomspace(max(np.quantile(some, 0.1), some.max() * 1e-6), some.max(), CAPS):
            kept = cells.by_group(of_cells * np.minimum(1, cap / np.maximum(sizes, 1e-300))[cells.unit])
            width = cap / epsilon if norm == 1 else cap * sigma(epsilon)
            error = laplace_error(truth - kept, width) if norm == 1 else gaussian_error(truth - kept, width)
            found = error if error.mean() < found.mean() else found
    return found


def one_two_five(size: float) -> float:
    """Return the next of 1, 2, 5, 10, 20 and so on.

    >>> one_two_five(2), one_two_five(2.1), one_two_five(70), one_two_five(0.4)
    (2.0, 5.0, 100.0, 1.0)
    """
    unit = 10.0 ** floor(log10(max(size, 1.0)))
    return next(times * unit for times in (1.0, 2.0, 5.0, 10.0) if times * unit >= size - 1e-9)


def _percentile(cells: Cells, of_cells: np.ndarray) -> float:
    return float(np.quantile(np.bincount(cells.unit, of_cells, minlength=cells.people), 0.99))


def _person_sum(cells: Cells, epsilon: float, between: tuple[float, float]) -> np.ndarray:
    cap = one_two_five(_percentile(cells, cells.rows))
    weights = _weights(cells, cap)
    lost = cells.by_group(cells.sums()) - cells.by_group(cells.sums(*between) * weights[cells.unit])
    return laplace_error(lost, cap * max(map(abs, between)) / epsilon)


def _weights(cells: Cells, cap: float) -> np.ndarray:
    rows = np.bincount(cells.unit, np.bincount(cells.cell, cells.counted), minlength=cells.people)
    return np.minimum(1, cap / np.maximum(rows, 1e-300))


@dataclass(frozen=True)
class _Kept:
    """Of each group under a cap and a range: rows, and sums of the values and of their squares about the middle."""

    rows: np.ndarray
    sums: np.ndarray
    squares: np.ndarray
    middle: float
    half: float


def _quotients(cells: Cells, epsilon: float, between: tuple[float, float], error) -> Errors:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(5)
    draws = max(DRAWS // cells.groups, 100)
    noises = {
        "laplace": rng.laplace(0, 1, (3, draws, cells.groups)),
        "gaussian": rng.normal(0, 1, (3, draws, cells.groups)),
    }
    best = np.full(cells.groups, np.inf)
    rows = np.bincount(cells.unit, np.bincount(cells.cell, cells.counted), minlength=cells.people)
    person = one_two_five(float(np.quantile(rows[rows > 0], 0.99)))
    laplace = noises["laplace"] / epsilon
    of_person = error(cells, _kept(cells, between, person), person, laplace, None)
    for ends in _ranges(cells, between):
        for cap in sorted({float(ceil(np.quantile(rows[rows > 0], each))) for each in CAP_QUANTILES}):
            kept = _kept(cells, ends, cap)
            for part in PARTS:
                for noise, size in ("laplace", 1 / epsilon), ("gaussian", sigma(epsilon)):
                    found = error(cells, kept, cap, noises[noise] * size, (part, noise))
                    best = found if found.mean() < best.mean() else best
    return Errors(best, of_person)


def _ranges(cells: Cells, between: tuple[float, float]) -> Iterator[tuple[float, float]]:
    values = cells.values[cells.counted]
    for low, high in {between, *(tuple(np.quantile(values, ends).tolist()) for ends in RANGES)}:
        if high > low:
            yield low, high


def _kept(cells: Cells, between: tuple[float, float], cap: float) -> _Kept:
    (low, high), weights = between, _weights(cells, cap)[cells.unit[cells.cell]] * cells.counted
    away, group = np.clip(cells.values, low, high) - (low + high) / 2, cells.group[cells.cell]
    powers = (np.bincount(group, weights * away**power, minlength=cells.groups) for power in range(3))
    return _Kept(*powers, middle=(low + high) / 2, half=(high - low) / 2)


def _parts(numbers: int, chosen: tuple[float, str] | None) -> list[float]:
    """Return by how much each part's noise grows: a share of epsilon, or the root of one of rho."""
    if chosen is None:
        return [float(numbers)] * numbers
    part, noise = chosen
    shares = [part, *((1 - part) / (numbers - 1) for _ in range(numbers - 1))]
    return [1 / share if noise == "laplace" else 1 / sqrt(share) for share in shares]


def _mean(cells: Cells, kept: _Kept, cap: float, noise: np.ndarray, chosen: tuple[float, str] | None) -> np.ndarray:
    """Return the mean absolute error of noisy means, each within its range."""
    for_rows, for_sums = _parts(2, chosen)
    rows = np.maximum(kept.rows + noise[0] * cap * for_rows, 1)
    means = (kept.sums + noise[1] * cap * kept.half * for_sums) / rows
    return np.abs(kept.middle + np.clip(means, -kept.half, kept.half) - cells.means()).mean(axis=0)


def _variance(cells: Cells, kept: _Kept, cap: float, noise: np.ndarray, chosen: tuple[float, str] | None) -> np.ndarray:
    """Return the mean absolute error of noisy variances from rows, sums and squares, these about half of their most."""
    for_rows, for_sums, for_squares = _parts(3, chosen)
    most = kept.half**2
    rows = np.maximum(kept.rows + noise[0] * cap * for_rows, 1)
    means = (kept.sums + noise[1] * cap * kept.half * for_sums) / rows
    squares = (kept.squares - kept.rows * most / 2 + noise[2] * cap * most / 2 * for_squares) / rows + most / 2
    return np.abs(np.clip(squares - means**2, 0, most) - cells.deviations() ** 2).mean(axis=0)
