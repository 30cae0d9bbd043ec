"""Choose the pairs of columns to count, and the share of the loss of each: from noisy numbers, so it is free.

A pair is worth its noisy distance from the model so far, less the error that would be left if it were counted: a cell
errs by its noise or by about its own size, the smaller of the two. Pairs are taken greedily while the junction tree
stays small, up to the number at which one more adds more noise to the others than it gains.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isqrt, sqrt

import numpy as np

from tacit.learning.synthetic.field import triangulated
from tacit.numbers import Floats, Integers

Pair = tuple[int, int]

# Whole weights of chosen pairs have squares that add up to this one's at most.
PAIR_WEIGHT = 1 << 10
# Cells of a clique: more where noise is small, since a larger table is then worth its cells.
CELLS_LEAST, CELLS_MOST = 6_000, 60_000
USUAL_PAIRS, CLEAR_CUBED = 36, 60_000
# Pairs with the target count this many times.
TARGET_TIMES = 4.0


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

    @cached_property
    def _cells(self) -> tuple[Floats, Integers]:
        """The guesses of all pairs' cells, and where each pair's begin."""
        flat = [self.guesses[pair].ravel() for pair in self.guesses]
        return np.concatenate(flat), np.cumsum([0, *(len(each) for each in flat[:-1])])

    @cached_property
    def _worth(self) -> Floats:
        """How far each pair is from its guess beyond noise, in people: more of pairs with the target."""
        times = [TARGET_TIMES if self.target in pair else 1.0 for pair in self.guesses]
        apart = np.array([self.distances[pair] for pair in self.guesses])
        found: Floats = np.array(times) * np.maximum(apart - self.distance_sigma, 0)
        return found

    def left(self, pairs: int) -> Floats:
        """Return the error in people that is left of each pair if this number of pairs are counted."""
        noise, (cells, begins) = self.sigma * sqrt(pairs), self._cells
        found: Floats = np.add.reduceat(np.minimum(0.8 * noise, cells + 0.15 * noise), begins)
        return found

    def gains(self, pairs: int) -> Floats:
        """Return by how many people the error of each pair would fall if this number of pairs are counted."""
        return self._worth - self.left(pairs)

    @property
    def cells_most(self) -> float:
        """The largest clique to allow: it grows with the third power of the people beside a cell's noise."""
        clear = self.total / (self.sigma * sqrt(USUAL_PAIRS))
        return min(CELLS_MOST, max(CELLS_LEAST, clear**3 / CLEAR_CUBED))


def chosen_pairs(candidates: Candidates, always: Sequence[Pair] = ()) -> dict[Pair, int]:
    """Return the pairs to count, each with its whole weight: the squares add up to PAIR_WEIGHT's at most.

    `always` are pairs that share a clique anyway, since a rule links them.
    """
    pairs, chosen, worth = [*candidates.guesses], list[int](), list[float]()
    open_ones = np.ones(len(pairs), dtype=np.bool_)  # neither chosen nor too large
    while True:
        gains = candidates.gains(len(chosen) + 1)
        best = int(np.argmax(np.where(open_ones, gains, -np.inf)))
        if not open_ones[best] or gains[best] <= 0:
            break
        open_ones[best] = False
        if _fits(candidates, [*always, *(pairs[at] for at in chosen), pairs[best]]):
            chosen.append(best)
            worth.append(float(gains[chosen].sum()))
    return weights_of(candidates, [pairs[at] for at in chosen[: int(np.argmax(worth)) + 1]]) if worth else {}


def _fits(candidates: Candidates, pairs: Sequence[Pair]) -> bool:
    return triangulated(candidates.sizes, pairs, candidates.cells_most) is not None


def weights_of(candidates: Candidates, pairs: Sequence[Pair]) -> dict[Pair, int]:
    """Return whole weights: the share of the loss grows with the error foreseen, to the power of two thirds."""
    left = dict(zip(candidates.guesses, candidates.left(len(pairs)), strict=True))
    errors = [float(left[pair]) ** (2 / 3) for pair in pairs]
    whole = sum(errors)
    weights = (isqrt(int(PAIR_WEIGHT**2 * error / whole * (1 - 1e-9))) for error in errors)
    return {pair: weight for pair, weight in zip(pairs, weights, strict=True) if weight}
