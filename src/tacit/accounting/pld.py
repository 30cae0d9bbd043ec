"""Numerical totals: the privacy losses of a batch fixed in advance, added up on a grid, every error on the safe side.

`pair.py` gives one event's loss and puts it on a grid. The first part here composes a whole batch near the epsilon that
matters: tilted, transformed, raised to its powers, transformed back. Tilting by exp(rate·loss) moves the bulk of the
probability near the answer, so that a rounding error is small relative to the answer and not only to 1.

The second part chooses the grid and the tilt. Every error is bounded and added, so each total is an upper bound
(docs/proofs/composition.md).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb

from tacit.accounting.convert import require_chance
from tacit.accounting.pair import (
    BITS,
    POWER_ERROR,
    PRODUCT_ERROR,
    UNIT,
    Curve,
    Gridded,
    Lattice,
    Normal,
    Pair,
    Reals,
    Spectrum,
    TooFine,
    dot,
    inverse,
    merged,
    on_grid,
    powers,
    relative_error,
    transform,
)
from tacit.errors import InvalidParameter
from tacit.numbers import as_rational, ball, shortened, show, upper_end, upward, working_precision

TILTED_BITS = 128
# Deviations of the tilted total that the window holds below its mean, and above. The part below wraps around to the
# top, with little weight if the tilt is steep (in tilt times deviation); otherwise more is held.
BELOW, ABOVE = 3.0, 5.5
WINDOW = BELOW + ABOVE
STEEP, BELOW_FLAT = 4.0, 6.5
# Points of the window: at least, at least where more is above it than may be lost, and at most.
SIZE_LEAST, SIZE_WIDE, SIZE_MOST = 64, 1 << 14, 1 << 22
SHOWS = 1e-6
# The largest exponent: tilted probabilities neither vanish nor overflow.
EXPONENT_MOST = 600.0

Parts = Sequence[tuple[Gridded, int]]


@dataclass(frozen=True)
class Tilted:
    """Chances of the total loss at the indices from `first` on, times exp(rate·step·index)/scale.

    `error` bounds their error in Euclidean length; `above` is the chance of all that the window leaves out above.
    """

    step: Fraction
    offset: Fraction
    rate: Fraction
    first: int
    chances: Reals
    scale: arb
    error: float
    above: arb
    beyond: Fraction  # the part of `above` that no window holds
    decay: Reals  # exp(-rate·step·i)
    loss: Reals  # exp(-step·i)

    def misses(self, chance: Fraction) -> bool:
        """Whether enough may lie above the window to show in `chance`."""
        with working_precision(TILTED_BITS):
            return bool(self.above - ball(self.beyond) > ball(chance) * SHOWS)

    def delta(self, index: int) -> Fraction:
        """Return an upper bound of delta at the epsilon of a grid index."""
        position = index - self.first
        if position < 0:
            return Fraction(1)
        chances = self.chances[position + 1 :]
        # 1 - exp(-loss over epsilon), with the tables' error added, is never below the true weight
        weights = self.decay[1 : len(chances) + 1] * (1 - self.loss[1 : len(chances) + 1] + 4 * POWER_ERROR)
        summed = dot(chances, weights) + self.error * math.sqrt(dot(weights, weights))
        rounding = 1 + 4 * (len(chances) + 16) * UNIT
        with working_precision(TILTED_BITS):
            tilt_back = self.scale * (-ball(self.rate * self.step * index)).exp()
            value = tilt_back * arb(summed * rounding) + self.above
            return min(upper_end(value), Fraction(1))

    def delta_between(self, epsilon: Fraction) -> Fraction:
        """Return an upper bound of delta at any epsilon: it is convex in exp(epsilon), so it lies below a chord."""
        index = min((epsilon - self.offset) // self.step, self.first + len(self.chances) - 2)
        over = min(epsilon - self.offset - index * self.step, self.step)
        before, after = self.delta(index), self.delta(index + 1)
        with working_precision(TILTED_BITS):
            share = ball(over).expm1() / ball(self.step).expm1()
            return upper_end(ball(before) * (1 - share) + ball(after) * share)

    def epsilon(self, delta: Fraction) -> Fraction | None:
        """Return an epsilon at which the total is within delta, or None if the window does not reach it."""
        index = self._guess(float(delta))
        last = self.first + len(self.chances)
        while index < last and (at := self.delta(index)) > delta:
            index += 1
        if index >= last:
            return None
        before = self.delta(index - 1)
        while before <= delta and index > self.first:
            index, at = index - 1, before
            before = self.delta(index - 1)
        epsilon = self.offset + index * self.step
        if epsilon <= 0 or before <= delta:
            return max(epsilon, Fraction(0))
        # delta is convex in exp(epsilon), so it lies below the chord from the point before
        share = (delta - at) / (before - at)
        with working_precision(TILTED_BITS):
            back = (ball(share) * (-ball(self.step)).expm1()).log1p()
            return max(as_rational((ball(epsilon) + back).upper()), Fraction(0))

    def _guess(self, delta: float) -> int:
        """Return about the first index at which delta is met: a float search over all of them at once."""
        count = len(self.chances)
        untilted, loss = self.chances * self.decay, np.maximum(self.loss, 1e-290)
        sums = np.cumsum(untilted[::-1])[::-1]
        discounted = np.cumsum((untilted * loss)[::-1])[::-1]
        with working_precision(TILTED_BITS):
            scale = float((self.scale * (-ball(self.rate * self.step * self.first)).exp()).mid())
            allowed = delta - float(self.above.mid())
        met = np.flatnonzero(scale * (sums - discounted / loss) <= allowed)
        return self.first + (int(met[0]) if len(met) else count - 1)


def infinite(parts: Parts) -> Fraction:
    """Return the chance that any part's loss is beyond all bounds, rounded up: all chances, less the finite ones."""
    if not any(part.beyond for part, _ in parts):
        return Fraction(0)

    def chance() -> arb:
        whole, finite = arb(1), arb(1)
        for part, count in parts:
            held = ball(Fraction(math.fsum(part.masses)) * (1 + Fraction(1, 2**50)))  # never below: both grow with it
            whole, finite = whole * (held + ball(part.beyond)) ** count, finite * held**count
        return whole - finite

    return upward(chance)


def tilted(
    parts: Parts, step: Fraction, offset: Fraction, rate: float, beyond: Fraction, *, least: int | None = None
) -> Tilted:
    """Return the batch's total near the bulk after tilting by `rate`; with chance `beyond` it is infinite.

    `least` is the least size of the window: a total may stray little most of the time, and far on rare occasions.
    """
    while True:
        rate_value = Fraction(rate)
        tilts = [_tilt(part, rate_value * step) for part, _ in parts]
        counts = [count for _, count in parts]
        first, size, width = _window(tilts, counts, float(step), rate, least or SIZE_LEAST)
        if rate * float(step) * size <= EXPONENT_MOST * 1.01:
            break
        rate = EXPONENT_MOST / (float(step) * size)  # so that no power in the window vanishes
    sums = arb(1)
    with working_precision(TILTED_BITS):
        for (_, count), tilt in zip(parts, tilts, strict=True):
            sums = sums * ball(Fraction(tilt.total)) ** count
        above = ball(beyond) + _above(parts, step, first + size, rate, width)
    chances, error = _composed([(tilt.chances, count) for tilt, (_, count) in zip(tilts, parts, strict=True)], size)
    in_order = np.roll(chances, -(first % size))
    decay, loss = powers(-rate_value * step, size), powers(-step, size)
    return Tilted(step, offset, rate_value, first, in_order, sums, error, above, beyond, decay, loss)


@dataclass(frozen=True)
class _Tilt:
    """An event's probabilities, tilted and divided by `total`; never below the true ones."""

    chances: Reals
    total: float

    def moments(self) -> tuple[float, float]:
        """Return about the mean and the variance of the index."""
        indices = np.arange(len(self.chances), dtype=np.float64)
        mean = dot(self.chances, indices)
        return mean, max(dot(self.chances, (indices - mean) ** 2), 0.0)


def _tilt(part: Gridded, rate: Fraction) -> _Tilt:
    raised = part.masses * powers(rate, len(part.masses))
    total = float(raised.sum())
    return _Tilt(raised / total * (1 + 2.0**-48), total)


def _window(
    tilts: Sequence[_Tilt], counts: Sequence[int], step: float, rate: float, least: int
) -> tuple[int, int, float]:
    """Return the first index of the window, its size, and the tilted total's deviation as a loss."""
    moments = [tilt.moments() for tilt in tilts]
    mean = sum(count * m for (m, _), count in zip(moments, counts, strict=True))
    deviation = math.sqrt(sum(count * v for (_, v), count in zip(moments, counts, strict=True)))
    whole = sum(count * (len(tilt.chances) - 1) for tilt, count in zip(tilts, counts, strict=True)) + 1
    below = BELOW if rate * step * deviation >= STEEP else BELOW_FLAT
    wanted = max((below + ABOVE) * deviation, least)
    if wanted >= whole:
        return 0, _power_of_two(whole), deviation * step
    size = _power_of_two(math.ceil(wanted))
    if size > SIZE_MOST:
        raise TooFine
    return max(0, math.floor(mean - size * below / (below + ABOVE))), size, deviation * step


def _power_of_two(count: int) -> int:
    return 1 << max(count - 1, 3).bit_length()


def _above(parts: Parts, step: Fraction, index: int, rate: float, width: float) -> arb:
    """Return a bound on the chance that the total reaches `index`: Markov's inequality at two rates, the smaller."""
    if index > sum(count * (len(part.masses) - 1) for part, count in parts):
        return arb(0)
    longest = max(len(part.masses) for part, _ in parts)
    steeper = min(rate + 5 / max(width, 1e-12), EXPONENT_MOST / (float(step) * longest))
    bounds = []
    for tried in (rate, steeper):
        rate_value = Fraction(tried) * step
        bound = (-ball(rate_value * index)).exp()
        for part, count in parts:
            sums = dot(part.masses, powers(rate_value, len(part.masses)))
            bound = bound * arb(sums * (1 + 4 * (len(part.masses) + 16) * UNIT)) ** count
        bounds.append(bound)
    return min(bounds, key=lambda bound: float(bound.log().mid()))


def _composed(parts: Sequence[tuple[Reals, int]], size: int) -> tuple[Reals, float]:
    """Return the cyclic convolution of all parts to their powers, and a bound of its error in Euclidean length."""
    accuracy = relative_error(size)
    product, slack, most, events = np.ones(size // 2 + 1, dtype=np.complex128), 0.0, 1.0, 0
    for chances, count in parts:
        spectrum = transform(_on_circle(chances, size))
        length = math.sqrt(dot(chances, chances))
        largest = max(float(np.abs(spectrum).max()), float(chances.sum())) * (1 + 1e-9 / max(count, 1))
        slack += count * accuracy * length
        most *= max(largest, 1.0) ** count
        product = product * _spectrum_power(spectrum, count)
        events += count + 1
    values = np.maximum(inverse(product), 0.0)
    length = math.sqrt(
        2 * dot(product.real, product.real) / size + 2 * dot(product.imag, product.imag) / size
    )  # the half that is not kept mirrors this one
    error = 1.01 * ((accuracy + PRODUCT_ERROR * events) * length + most * slack) + 1e-280
    return values, error


def _on_circle(chances: Reals, size: int) -> Reals:
    padded = np.zeros(-(-len(chances) // size) * size)
    padded[: len(chances)] = chances
    folded: Reals = padded.reshape(-1, size).sum(axis=0)
    return folded


def _spectrum_power(values: Spectrum, count: int) -> Spectrum:
    """Return each value to the power `count`, by squaring: at most count - 1 roundings deep."""
    result, square = None, values
    while count:
        if count & 1:
            result = square if result is None else result * square
        count >>= 1
        if count:
            square = square * square
    return values if result is None else result


# Points of the grid over the window, at least, for each root of the number of events; the window has some to spare.
POINTS = 2600
POINTS_LEAST, POINTS_MOST = 1 << 15, 1 << 20
# Normal losses are quick to put on a grid, so it may be finer.
POINTS_NORMAL = 1 << 17
SPARE = 1.06
# A total with a smaller spread is put on a grid as if it had this spread.
DEVIATION_LEAST = 1e-9
# A grid that holds every loss exactly is taken if it is no longer than this, or than the one of POINTS.
POINTS_NATIVE = 1 << 15
# An event's loss has at most this many cells, even if few of them are within the window.
CELLS = 1 << 18


class Total:
    """The losses of a batch on one grid, ready to be asked for delta or epsilon."""

    def __init__(self, pairs: Sequence[tuple[Pair, int]]) -> None:
        if not pairs:
            raise InvalidParameter("the batch is empty\nhint: give at least one event")
        with working_precision(BITS):
            pairs = merged(pairs)
        self.step: Fraction = choose_step(pairs)
        self._parts: Parts = [(on_grid(pair, self.step), count) for pair, count in pairs]
        self._offset = sum((count * part.offset for part, count in self._parts), Fraction(0))
        self._beyond = infinite(self._parts)

    def epsilon(self, delta: Fraction) -> Fraction | None:
        """Return an epsilon at which the batch is (epsilon, delta)-DP; None if the parts' own deltas use it up."""
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
    """Return the grid's step: one that holds every loss exactly if that is coarse enough, otherwise a fine one."""
    # probability on the grid's points is free; only continuous parts count
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
    """Return the largest step that divides all steps, or None if that is below `least`."""
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
