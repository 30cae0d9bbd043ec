"""Fit a field to noisy tables: the law of largest entropy, with slack by the noise of each table.

Minimised is log Z(t) - t·(y/N) + ½ Σ slack·σ/N·|t|², where y are noisy counts of N people: smooth, strongly convex and
without constraints. Slack towards 0 is least squares within all laws. A cell that a rule makes impossible has the
probability 0 throughout.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tacit.learning.synthetic.field import Clique, Field, JunctionTree
from tacit.numbers import Flags, Floats

SLACK = 0.5
# The fit ends when the gradient adds up to this: a quarter of all people at most in all tables together.
GRADIENT = 0.25
STEPS_MOST = 300
MEMORY = 10
# As good as impossible, in logarithms, without numbers that are not finite.
IMPOSSIBLE = -60.0

Value = Callable[[Floats], tuple[float, Floats]]


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
) -> tuple[Field, Floats]:
    """Return the field of noisy tables, and its parameters, from which a fit of more tables can start."""
    possible = possible or {}
    tree = JunctionTree.of(sizes, [*(each.columns for each in tables), *possible])
    homes = [tree.home(each.columns) for each in tables]
    cells = [prod(sizes[column] for column in each.columns) for each in tables]
    cuts = np.cumsum(cells)[:-1]
    people = max(total, 1.0)
    wanted = np.concatenate([np.asarray(each.counts, dtype=np.float64).ravel() for each in tables]) / people
    slack = (
        SLACK * np.concatenate([np.zeros(size) + each.sigma for each, size in zip(tables, cells, strict=True)]) / people
    )
    barred = [np.zeros(tree.shape(at)) for at in range(len(tree.cliques))]
    for columns, allowed in possible.items():
        at = tree.home(columns)
        barred[at] = barred[at] + tree.spread(at, columns, np.where(allowed, 0.0, IMPOSSIBLE))

    def laws(at: Floats) -> tuple[float, list[Floats]]:
        potentials = [each.copy() for each in barred]
        for table, home, part in zip(tables, homes, np.split(at, cuts), strict=True):
            potentials[home] += tree.spread(home, table.columns, part)
        return tree.beliefs(potentials)

    def value(at: Floats) -> tuple[float, Floats]:
        logarithm, found = laws(at)
        expected = np.concatenate(
            [tree.summed(home, table.columns, found[home]).ravel() for table, home in zip(tables, homes, strict=True)]
        )
        pull = slack * at
        return logarithm - float(at @ wanted) + 0.5 * float(pull @ at), expected - wanted + pull

    begin = np.zeros(len(wanted)) if start is None else np.r_[start, np.zeros(len(wanted) - len(start))]
    found = least(value, begin, 1 / (slack + np.maximum(wanted, 0) + 1e-5))
    return Field(tree, tuple(laws(found)[1])), found


def least(value: Value, at: Floats, scale: Floats) -> Floats:
    """Minimise a smooth convex function, and return the point: L-BFGS with a diagonal scale."""
    height, slope = value(at)
    moves: list[Floats] = []
    changes: list[Floats] = []
    for _ in range(STEPS_MOST):
        direction = _direction(slope, moves, changes, scale)
        descent = float(slope @ direction)
        step = 1.0
        while True:
            there = at - step * direction
            lower, its_slope = value(there)
            if lower <= height - 1e-4 * step * descent or step < 1e-6:
                break
            step *= 0.4
        move, change = there - at, its_slope - slope
        if move @ change > 1e-14:
            moves, changes = [*moves[1 - MEMORY :], move], [*changes[1 - MEMORY :], change]
        at, height, slope = there, lower, its_slope
        if np.abs(slope).sum() < GRADIENT:
            break
    return at


def _direction(slope: Floats, moves: Sequence[Floats], changes: Sequence[Floats], scale: Floats) -> Floats:
    direction = slope.copy()
    shares = []
    for move, change in zip(reversed(moves), reversed(changes), strict=True):
        share = float(move @ direction) / float(move @ change)
        shares.append(share)
        direction -= share * change
    direction *= scale
    if moves:
        direction *= float(moves[-1] @ changes[-1]) / float(changes[-1] @ (scale * changes[-1]))
    else:
        direction *= 0.2
    for move, change, share in zip(moves, changes, reversed(shares), strict=True):
        direction += move * (share - float(change @ direction) / float(move @ change))
    return direction
