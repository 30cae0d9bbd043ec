"""AIM's published rules on our fit: the anchor that ends in seconds (McKenna and others, 2022, for all pairs).

Its choices, its rounds and its conversion of the budget are as published, with noise of numpy: a tenth of each round
chooses a table by the exponential mechanism, the rest measures it, and the noise is halved where a table changed less
than its noise. The fit is the product's.
"""

import math
from itertools import combinations

import numpy as np

from tacit.learning.synthetic.field import Field, triangulated
from tacit.learning.synthetic.fitting import NoisyCounts, fitted
from tacit.noise import Keystream

MEGABYTES = 2.0
TO_MEASURE = 0.9
# A fit that starts at the one before must go on until one more table is felt.
GRADIENT = 0.1


def rho_of(epsilon: float, delta: float) -> float:
    """Return the rho that zCDP's conversion allows for an epsilon and a delta."""

    def reached(rho: float) -> float:
        low, high = 1.01, (epsilon + 1) / (2 * rho) + 2
        for _ in range(200):
            middle = (low + high) / 2
            rises = (2 * middle - 1) * rho - epsilon + math.log1p(-1 / middle) < 0
            low, high = (middle, high) if rises else (low, middle)
        return math.exp((low - 1) * (low * rho - epsilon) + low * math.log1p(-1 / low)) / (low - 1)

    least, most = 0.0, epsilon + 1.0
    for _ in range(100):
        rho = (least + most) / 2
        least, most = (rho, most) if reached(rho) <= delta else (least, rho)
    return least


def aim_rows(rows: np.ndarray, sizes: list[int], epsilon: float, delta: float, seed: int) -> np.ndarray:
    """Return as many made-up rows as there are, by AIM's rules."""
    rng, rho, columns = np.random.default_rng(seed), rho_of(epsilon, delta), len(sizes)
    pairs = [*combinations(range(columns), 2)]
    worth = {(at,): float(columns - 1) for at in range(columns)}
    worth |= {pair: float(sum(len({*pair} & {*other}) for other in pairs)) for pair in pairs}
    exact = {table: _counted(rows, sizes, table) for table in worth}
    rounds = 16 * columns
    sigma, choosing = math.sqrt(rounds / (2 * TO_MEASURE * rho)), math.sqrt(8 * (1 - TO_MEASURE) * rho / rounds)
    noisy = {(at,): (exact[at,] + rng.normal(0, sigma, exact[at,].shape), sigma) for at in range(columns)}
    used, last = columns * 0.5 / sigma**2, False
    field, start = _fit(noisy, sizes, None)
    while not last:
        if rho - used < 2 * (0.5 / sigma**2 + choosing**2 / 8):
            left, last = rho - used, True
            sigma, choosing = math.sqrt(1 / (2 * TO_MEASURE * left)), math.sqrt(8 * (1 - TO_MEASURE) * left)
        used += choosing**2 / 8 + 0.5 / sigma**2
        total = _total(noisy)
        allowed = [table for table in worth if _fits(field, noisy, sizes, table, MEGABYTES * used / rho)]
        merits = [
            worth[table]
            * (
                float(np.abs(exact[table] - total * field.table(table)).sum())
                - math.sqrt(2 / math.pi) * sigma * exact[table].size
            )
            for table in allowed
        ]
        most = max(worth[table] for table in allowed)
        chosen = allowed[int(np.argmax(0.5 * choosing / most * np.array(merits) + rng.gumbel(size=len(merits))))]
        before = total * field.table(chosen)
        drawn = exact[chosen] + rng.normal(0, sigma, exact[chosen].shape)
        if chosen in noisy:
            (old, old_sigma), new = noisy[chosen], sigma**-2
            weight = old_sigma**-2
            noisy[chosen] = ((weight * old + new * drawn) / (weight + new), (weight + new) ** -0.5)
        else:
            noisy[chosen] = (drawn, sigma)
        field, start = _fit(noisy, sizes, start)
        moved = float(np.abs(_total(noisy) * field.table(chosen) - before).sum())
        if moved <= sigma * math.sqrt(2 / math.pi) * drawn.size:
            sigma, choosing = sigma / 2, choosing * 2
    return field.rows(len(rows), Keystream())


def _counted(rows: np.ndarray, sizes: list[int], table: tuple[int, ...]) -> np.ndarray:
    shape = tuple(sizes[at] for at in table)
    return np.bincount(
        np.ravel_multi_index(tuple(rows[:, at] for at in table), shape), minlength=math.prod(shape)
    ).reshape(shape)


def _total(noisy: dict[tuple[int, ...], tuple[np.ndarray, float]]) -> float:
    weights = [1 / (sigma * sigma * counts.size) for counts, sigma in noisy.values()]
    return float(np.average([counts.sum() for counts, _ in noisy.values()], weights=weights))


def _fit(
    noisy: dict[tuple[int, ...], tuple[np.ndarray, float]], sizes: list[int], start: np.ndarray | None
) -> tuple[Field, np.ndarray]:
    tables = [NoisyCounts(table, counts, sigma) for table, (counts, sigma) in noisy.items()]
    return fitted(sizes, tables, _total(noisy), start=start, gradient=GRADIENT)


def _fits(
    field: Field, noisy: dict[tuple[int, ...], object], sizes: list[int], table: tuple[int, ...], megabytes: float
) -> bool:
    """Whether a model with this table as well would stay within the memory."""
    if any({*table} <= {*clique} for clique in field.tree.cliques):
        return True
    cliques = triangulated(sizes, [*noisy, table]) or []
    return sum(math.prod(sizes[at] for at in clique) for clique in cliques) <= megabytes * 2**20 / 8
