"""Choose the pairs of columns to count, and the share of the loss of each: from noisy numbers, so it is free.

A pair is worth its noisy distance from the model so far, less the error that would be left if it were counted: a cell
errs by its noise or by about its own size, the smaller of the two. Pairs are taken greedily while the junction tree
stays small, up to the number at which one more adds more noise to the others than it gains.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isqrt, sqrt

import numpy as np

from tacit.learning.synthetic.field import triangulated
from tacit.numbers import Floats

Pair = tuple[int, int]

# Whole weights of chosen pairs have squares that add up to this one's at most.
PAIR_WEIGHT = 1 << 10
# Cells of a clique: more where noise is small, since a larger table is then worth its cells.
CELLS_LEAST, CELLS_MOST = 6_000, 60_000
USUAL_PAIRS, CLEAR_CUBED = 36, 60_000
# Pairs with the target count this many times.
TARGET_TIMES = 2.0


@dataclass(frozen=True, eq=False)
class Candidates:
    """Pairs with their guessed numbers of people, their noisy distances from these, and the noise of a distance."""

    sizes: tuple[int, ...]
    guesses: Mapping[Pair, Floats]
    distances: Mapping[Pair, float]  # in people
    distance_sigma: float
    sigma: float  # of a cell, if only one pair were counted
    total: float
    target: int | None = None

    def left(self, pair: Pair, pairs: int) -> float:
        """Return the error in people that is left of a pair if this number of pairs are counted."""
        noise = self.sigma * sqrt(pairs)
        return float(np.minimum(0.8 * noise, self.guesses[pair] + 0.15 * noise).sum())

    def gain(self, pair: Pair, pairs: int) -> float:
        """Return by how many people the error of a pair would fall."""
        times = TARGET_TIMES if self.target in pair else 1.0
        return times * max(self.distances[pair] - self.distance_sigma, 0) - self.left(pair, pairs)

    @property
    def cells_most(self) -> float:
        """The largest clique to allow: it grows with the third power of the people beside a cell's noise."""
        clear = self.total / (self.sigma * sqrt(USUAL_PAIRS))
        return min(CELLS_MOST, max(CELLS_LEAST, clear**3 / CLEAR_CUBED))


def chosen_pairs(candidates: Candidates, always: Sequence[Pair] = ()) -> dict[Pair, int]:
    """Return the pairs to count, each with its whole weight: the squares add up to PAIR_WEIGHT's at most.

    `always` are pairs that share a clique anyway, since a rule links them.
    """
    chosen: list[Pair] = []
    while len(chosen) < len(candidates.guesses):
        pairs = len(chosen) + 1
        gains = {pair: candidates.gain(pair, pairs) for pair in candidates.guesses if pair not in chosen}
        order = sorted((pair for pair, gain in gains.items() if gain > 0), key=lambda pair: -gains[pair])
        fitting = (pair for pair in order if _fits(candidates, [*always, *chosen, pair]))
        pair = next(fitting, None)
        if pair is None:
            break
        chosen.append(pair)
    worth = [sum(candidates.gain(pair, many) for pair in chosen[:many]) for many in range(1, len(chosen) + 1)]
    return weights_of(candidates, chosen[: int(np.argmax(worth)) + 1]) if worth else {}


def _fits(candidates: Candidates, pairs: Sequence[Pair]) -> bool:
    return triangulated(candidates.sizes, pairs, candidates.cells_most) is not None


def weights_of(candidates: Candidates, pairs: Sequence[Pair]) -> dict[Pair, int]:
    """Return whole weights: the share of the loss grows with the error foreseen, to the power of two thirds."""
    errors = [candidates.left(pair, len(pairs)) ** (2 / 3) for pair in pairs]
    whole = sum(errors)
    weights = (isqrt(int(PAIR_WEIGHT**2 * error / whole * (1 - 1e-9))) for error in errors)
    return {pair: weight for pair, weight in zip(pairs, weights, strict=True) if weight}
