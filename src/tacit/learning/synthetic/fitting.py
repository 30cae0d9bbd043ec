"""Fit a field to noisy tables: the law of largest entropy, with slack by the noise of each table.

Minimised is log Z(t) - t·(y/N) + ½ Σ slack·σ/N·|t|², where y are noisy counts of N people: smooth, strongly convex and
without constraints. Slack towards 0 is least squares within all laws. Tables are first made to agree about each column
by least squares, so that the fit need not find out how they disagree. A cell that a rule makes impossible has the
probability 0 throughout.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tacit.learning.synthetic.clique_sums import CliqueSums
from tacit.learning.synthetic.field import Clique, Field, JunctionTree
from tacit.numbers import Flags, Floats

SLACK = 0.5
# The fit ends when the gradient adds up to this: a third of all people at most in all tables together.
GRADIENT = 0.35
STEPS_MOST = 300
MEMORY = 16
# How much of a cell's curvature is taken from its noisy count, and not from the law so far.
FROM_COUNTS = 0.1
# As good as impossible, in logarithms, without numbers that are not finite.
IMPOSSIBLE = -60.0


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """The noisy counts of people in the cells of some columns, and the standard deviation of each."""

    columns: Clique
    counts: Floats  # of the columns' cells, in any shape
    sigma: Floats | float


def fitted(
    sizes: Sequence[int],
    tables: Sequence[NoisyCounts],
    total: float,
    *,
    possible: Mapping[Clique, Flags] | None = None,
    start: Floats | None = None,
    gradient: float = GRADIENT,
) -> tuple[Field, Floats]:
    """Return the field of noisy tables, and its parameters, from which a fit of more tables can start."""
    barred = {columns: np.where(allowed, 0.0, IMPOSSIBLE).ravel() for columns, allowed in (possible or {}).items()}
    tree = JunctionTree.of(sizes, [*(each.columns for each in tables), *barred])
    sums = CliqueSums(tree, [*(each.columns for each in tables), *barred])
    people = max(total, 1.0)
    agreed = agreeing(sizes, tables, people)
    wanted = np.concatenate([each.ravel() for each in agreed]) / people
    sigmas = [np.broadcast_to(each.sigma, counts.shape).ravel() for each, counts in zip(tables, agreed, strict=True)]
    if start is None:
        start = np.concatenate([_logarithms(counts, each) for counts, each in zip(agreed, tables, strict=True)])
    begin = np.r_[start, np.zeros(len(wanted) - len(start))]
    hill = _Hill(sums, wanted, SLACK * np.concatenate(sigmas) / people, np.concatenate([wanted[:0], *barred.values()]))
    found = least(hill, begin, gradient)
    return Field(tree, sums.in_order(sums.laws(np.r_[found, hill.barred])[1])), found


def agreeing(sizes: Sequence[int], tables: Sequence[NoisyCounts], people: float) -> list[Floats]:
    """Return the counts of tables, moved to add up to the same counts of each column: least squares."""
    counts = [np.asarray(each.counts, dtype=np.float64).reshape([sizes[at] for at in each.columns]) for each in tables]
    counts = [each + (people - each.sum()) / each.size for each in counts]
    tops, weights = [np.zeros(size) for size in sizes], np.zeros(len(sizes))
    for each, table in zip(counts, tables, strict=True):
        for column in table.columns:
            weight = sizes[column] / (float(np.mean(np.square(table.sigma))) * each.size)
            tops[column] += weight * _of_column(each, table.columns, column)
            weights[column] += weight
    found = []
    for each, table in zip(counts, tables, strict=True):
        moved = each
        for place, column in enumerate(table.columns):
            off = tops[column] / weights[column] - _of_column(each, table.columns, column)
            shape = [1] * each.ndim
            shape[place] = -1
            moved = moved + (off * sizes[column] / each.size).reshape(shape)
        found.append(moved)
    return found


def _of_column(counts: Floats, columns: Clique, column: int) -> Floats:
    found: Floats = counts.sum(axis=tuple(place for place, each in enumerate(columns) if each != column))
    return found


def _logarithms(counts: Floats, table: NoisyCounts) -> Floats:
    """Return where the fit starts: columns by themselves."""
    if len(table.columns) > 1:
        return np.zeros(counts.size)
    found: Floats = np.log(np.maximum(counts, np.mean(table.sigma) / 2))
    found -= found.mean()
    return found


@dataclass(eq=False)
class _Hill:
    """What is minimised: its height and slope at parameters, and the scale of a step there."""

    sums: CliqueSums
    wanted: Floats
    slack: Floats
    barred: Floats

    @cached_property
    def curvature(self) -> Floats:
        return self.slack + FROM_COUNTS * np.maximum(self.wanted, 0) + 1e-5

    def at(self, parameters: Floats) -> tuple[float, Floats, Floats]:
        logarithm, _, expected = self.sums.laws(np.r_[parameters, self.barred])
        expected, pull = expected[: len(parameters)], self.slack * parameters
        height = logarithm - float(parameters @ self.wanted) + 0.5 * float(pull @ parameters)
        scale = 1 / (self.curvature + (1 - FROM_COUNTS) * expected)
        return height, expected - self.wanted + pull, scale


def least(hill: _Hill, at: Floats, gradient: float) -> Floats:
    """Minimise a smooth convex function, and return the point: L-BFGS with a diagonal scale."""
    height, slope, scale = hill.at(at)
    moves: list[tuple[Floats, Floats, float]] = []
    for _ in range(STEPS_MOST):
        if np.abs(slope).sum() < gradient:
            break
        direction = _direction(slope, moves, scale)
        descent = float(slope @ direction)
        step = 1.0
        while True:
            there = at - step * direction
            lower, its_slope, its_scale = hill.at(there)
            if lower <= height - 1e-4 * step * descent or step < 1e-6:
                break
            step *= 0.4
        move, change = there - at, its_slope - slope
        if (size := float(move @ change)) > 1e-14:
            moves = [*moves[1 - MEMORY :], (move, change, size)]
        at, height, slope, scale = there, lower, its_slope, its_scale
    return at


def _direction(slope: Floats, moves: Sequence[tuple[Floats, Floats, float]], scale: Floats) -> Floats:
    direction = slope.copy()
    shares = []
    for move, change, size in reversed(moves):
        shares.append(float(move @ direction) / size)
        direction -= shares[-1] * change
    direction *= scale
    if moves:
        _, change, size = moves[-1]
        direction *= size / float(change @ (scale * change))
    else:
        direction *= 0.5
    for (move, change, size), share in zip(moves, reversed(shares), strict=True):
        direction += move * (share - float(change @ direction) / size)
    return direction
