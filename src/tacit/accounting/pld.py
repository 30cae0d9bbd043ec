"""Numerical totals: the privacy losses of a batch fixed in advance, added up on a grid, every error on the safe side.

Here the grid is chosen and the tilt found; `pair` says what one event's loss is, `gridded` puts it on the grid and
`tilted` adds them up. docs/proofs/composition.md proves that each total is an upper bound.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from tacit.accounting.convert import require_chance
from tacit.accounting.digits import shortened
from tacit.accounting.gridded import BITS, on_grid
from tacit.accounting.pair import Curve, Lattice, Normal, Pair, merged
from tacit.accounting.tilted import EXPONENT_MOST, SIZE_WIDE, WINDOW, Parts, Tilted, infinite, tilted
from tacit.errors import InvalidParameter
from tacit.privacy.number import show
from tacit.privacy.rounding import working_precision

# Points of the grid over the window, at least, for each root of the number of events; the window has some to spare.
POINTS = 2600
POINTS_LEAST, POINTS_MOST = 1 << 15, 1 << 20
# Normal losses are quick to put on a grid, so it may be finer.
POINTS_NORMAL = 1 << 17
SPARE = 1.06
# A total that strays less is put on a grid as if it strayed so far.
DEVIATION_LEAST = 1e-9
# A grid that holds every loss exactly is taken where it is no longer than this, or than the one of POINTS.
POINTS_NATIVE = 1 << 15
# One event's loss has at most so many cells, however little of it is within the window.
CELLS = 1 << 18


class Total:
    """The losses of a batch on one grid, ready to be asked for delta or epsilon."""

    def __init__(self, pairs: Sequence[tuple[Pair, int]]) -> None:
        if not pairs:
            raise InvalidParameter("nothing to compose\nhint: give at least one event")
        with working_precision(BITS):
            pairs = merged(pairs)
        self.step = choose_step(pairs)
        self._parts: Parts = [(on_grid(pair, self.step), count) for pair, count in pairs]
        self._offset = sum((count * part.offset for part, count in self._parts), Fraction(0))
        self._beyond = infinite(self._parts)

    def epsilon(self, delta: Fraction) -> Fraction | None:
        """Return an epsilon at which the batch is (epsilon, delta)-DP; None where the parts' own deltas use it up."""
        require_chance(delta)
        if self._beyond >= delta:
            return None
        log_delta = math.log(delta - self._beyond)
        rate = self._least(lambda rate: (self._cumulant(rate) - log_delta + _order_cost(rate)) / rate)
        near = self._near(rate)
        tries = [
            near.epsilon(delta),
            *([self._near(rate, least=SIZE_WIDE).epsilon(delta)] if near.misses(delta) else []),
        ]
        known = [each for each in tries if each is not None]
        return shortened(min(known), up=True) if known else None

    def delta(self, epsilon: Fraction) -> Fraction:
        """Return a delta at which the batch is (epsilon, delta)-DP; at most 1."""
        if epsilon < 0:
            raise InvalidParameter(f"epsilon must be at least 0, not {show(epsilon)}")
        goal = float(epsilon)
        rate = self._least(lambda rate: self._cumulant(rate) - rate * goal + _order_cost(rate))
        near = self._near(rate)
        found = near.delta_between(epsilon)
        if near.misses(found):
            found = min(found, self._near(rate, least=SIZE_WIDE).delta_between(epsilon))
        return shortened(min(found, Fraction(1)), up=True)

    def _near(self, rate: float, *, least: int | None = None) -> Tilted:
        return tilted(self._parts, self.step, self._offset, rate, self._beyond, least=least)

    def _least(self, objective: Callable[[float], float]) -> float:
        """Return about the rate at which an objective with one valley is least: golden sections of its logarithm."""
        longest = max(len(part.masses) for part, _ in self._parts)
        high = math.log(EXPONENT_MOST / (float(self.step) * max(longest, 2)))
        low, golden = high - 30, (math.sqrt(5) - 1) / 2
        inner, outer = high - golden * (high - low), low + golden * (high - low)
        at_inner, at_outer = objective(math.exp(inner)), objective(math.exp(outer))
        while high - low > 1e-4:
            if at_inner < at_outer:
                high, outer, at_outer = outer, inner, at_inner
                inner = high - golden * (high - low)
                at_inner = objective(math.exp(inner))
            else:
                low, inner, at_inner = inner, outer, at_outer
                outer = low + golden * (high - low)
                at_outer = objective(math.exp(outer))
        return math.exp(inner)

    def _cumulant(self, rate: float) -> float:
        """Return about ln E[exp(rate·loss)] of the total: only to choose a rate by."""
        total = rate * float(self._offset)
        for part, count in self._parts:
            raised = part.masses * np.exp(np.arange(len(part.masses)) * (float(self.step) * rate))
            total += count * math.log(raised.sum())
        return total


def choose_step(pairs: Sequence[tuple[Pair, int]]) -> Fraction:
    """Return the grid's step: one that holds every loss exactly where that is coarse enough, otherwise a fine one."""
    # chance that sits on the grid's points costs nothing; only what is spread out counts
    events = max(sum(count * (pair.spread if isinstance(pair, Curve) else 1.0) for pair, count in pairs), 1.0)
    deviation = math.sqrt(sum(count * pair.deviation**2 for pair, count in pairs))
    lattices = [pair for pair, _ in pairs if isinstance(pair, Lattice)]
    wanted = 1 << math.ceil(math.log2(POINTS * math.sqrt(events)))
    least = POINTS_NORMAL if all(isinstance(pair, Normal) for pair, _ in pairs) else POINTS_LEAST
    points = min(max(wanted, least), POINTS_MOST)
    spread = Fraction(SPARE * WINDOW * max(deviation, DEVIATION_LEAST))
    if len(lattices) == len(pairs):
        native = _native(lattices, least=spread / max(points, POINTS_NATIVE))
        if native is not None:
            return native
    longest = max(_length(pair) for pair, _ in pairs)
    fine = shortened(max(spread / points, longest / CELLS), up=True, bits=60)
    anchor = max((a for pair, _ in pairs if (a := _anchor(pair)) is not None), default=None)
    # a whole number of steps between the values that carry chance keeps them exact
    return fine if anchor is None else anchor / max(1, math.ceil(anchor / fine))


def _native(lattices: Sequence[Lattice], *, least: Fraction) -> Fraction | None:
    """Return the largest step that divides all steps, or None where that is below `least`."""
    native = lattices[0].step
    for pair in lattices:
        denominator = math.lcm(native.denominator, pair.step.denominator)
        native = Fraction(math.gcd(int(native * denominator), int(pair.step * denominator)), denominator)
        if native < least:
            return None
    return native


def _length(pair: Pair) -> Fraction:
    """Return how far apart the ends of a loss are."""
    return (len(pair.masses) - 1) * pair.step if isinstance(pair, Lattice) else pair.high - pair.low


def _anchor(pair: Pair) -> Fraction | None:
    if isinstance(pair, Lattice):
        return pair.step
    return pair.high - pair.low if isinstance(pair, Curve) and pair.atoms else None


def _order_cost(rate: float) -> float:
    return rate * math.log(rate) - (1 + rate) * math.log1p(rate)
