"""The privacy loss of one event, as the law of ln(P/Q) under P for a pair of laws that dominates the event.

Three forms: a `Lattice`, where the loss takes evenly spaced values with known chances; a `Curve`, where it is spread
out and known by its tails; and a `Normal`, which wide Gaussian noise has. All hold for every pair of neighbours, in
the order given and its reverse (docs/proofs/composition.md). What several losses add up to is `pld`'s business.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from tacit.accounting import hockey
from tacit.accounting.digits import shortened, upward
from tacit.privacy.event import (
    Event,
    ExponentialChoice,
    GaussianNoise,
    KeyThreshold,
    LaplaceNoise,
    PureChoice,
    StaircaseNoise,
)
from tacit.privacy.law import GaussianLaw, LaplaceLaw
from tacit.privacy.rounding import ball

# A Laplace loss with at most this many values, and Gaussian noise at most this wide, is kept value by value.
VALUES_MOST = 512
SIGMA_MOST = 512
# Spread-out losses are cut this many deviations out; what is beyond counts as a failure of the promise.
DEVIATIONS = 9


@dataclass(frozen=True)
class Lattice:
    """A loss with chances `masses` at start, start + step, …; `beyond` is the chance of anything larger."""

    start: Fraction
    step: Fraction
    masses: tuple[arb, ...]
    beyond: arb
    deviation: float


Tails = Callable[[Fraction], tuple[arb, arb]]


@dataclass(frozen=True)
class Curve:
    """A loss between `low` and `high` by its tails: Pr_P[loss > x] and Pr_Q[loss > x]; atoms, if any, at the two ends.

    `spread` is about the chance that is not in the atoms. `factor` multiplies every chance under P and `drift` is
    added to the loss, as in `Normal`.
    """

    low: Fraction
    high: Fraction
    tails: Tails
    deviation: float
    atoms: bool = False
    spread: float = 1.0
    factor: arb | int = 1
    drift: Fraction = Fraction(0)


@dataclass(frozen=True)
class Normal:
    """A loss with the normal law of mean `squared`/2 and variance `squared`, its chances times `factor`, plus `drift`.

    Factor and drift are the price of seeing grid noise as continuous (docs/proofs/gaussian-vector.md).
    """

    squared: Fraction
    factor: arb
    drift: Fraction

    @property
    def deviation(self) -> float:
        """How far the loss strays."""
        return math.sqrt(self.squared)

    @property
    def low(self) -> Fraction:
        """Where the loss is cut off below."""
        return self.squared / 2 - DEVIATIONS * Fraction(self.deviation)

    @property
    def high(self) -> Fraction:
        """Where the loss is cut off above."""
        return self.squared / 2 + DEVIATIONS * Fraction(self.deviation)


Pair = Lattice | Curve | Normal


def merged(pairs: Sequence[tuple[Pair, int]]) -> list[tuple[Pair, int]]:
    """Return the pairs with all normal losses as one: normal laws add up to a normal law, exactly."""
    others: list[tuple[Pair, int]] = []
    squared, factor, drift = Fraction(0), arb(1), Fraction(0)
    for pair, count in pairs:
        if isinstance(pair, Normal):
            squared, factor, drift = (
                squared + count * pair.squared,
                factor * pair.factor**count,
                drift + count * pair.drift,
            )
        else:
            others.append((pair, count))
    return [*others, (Normal(squared, factor, drift), 1)] if squared else others


def pair_of(event: Event) -> Pair | None:
    """Return the event's dominating pair at the working precision, or None where none is known."""
    if isinstance(event, LaplaceNoise):
        return _laplace(event)
    if isinstance(event, GaussianNoise):
        return _gaussian(event)
    if isinstance(event, PureChoice | StaircaseNoise):
        return _pure(event.epsilon)
    if isinstance(event, ExponentialChoice):
        return _exponential(event.epsilon)
    return Lattice(Fraction(0), Fraction(1), (arb(1) - ball(event.delta),), ball(event.delta), 0.0)


def moves_nothing(event: Event) -> bool:
    """Return whether the event cannot tell neighbours apart: what one unit moves is less than a step."""
    if isinstance(event, LaplaceNoise):
        return event.sensitivity < 1
    if isinstance(event, GaussianNoise):
        return event.sensitivity_squared < 1
    if isinstance(event, KeyThreshold):
        return event.delta == 0
    return event.epsilon == 0


def _pure(epsilon: Fraction) -> Lattice:
    lower = 1 / (1 + ball(epsilon).exp())
    return Lattice(-epsilon, 2 * epsilon, (lower, 1 - lower), arb(0), float(epsilon))


def _exponential(epsilon: Fraction) -> Curve:
    whole = -(-ball(epsilon)).expm1()

    def tails(x: Fraction) -> tuple[arb, arb]:
        if x >= epsilon:
            return arb(0), arb(0)
        if x <= -epsilon:
            return arb(1), arb(1)
        half = ball((x - epsilon) / 2)
        above = -half.expm1() / whole
        return above, above * (half - ball(x)).exp()

    return Curve(-epsilon, epsilon, tails, float(epsilon) / 3)


def _laplace(event: LaplaceNoise) -> Pair:
    shift, law = math.floor(event.sensitivity), LaplaceLaw(event.scale)
    most = shift / event.scale
    if shift <= VALUES_MOST:
        # the loss of x is (2x - shift)/scale for x = 0..shift, and constant beyond; P is the law moved to `shift`
        inner = [law.pmf(x - shift) for x in range(1, shift)]
        masses = (law.upper_tail(shift), *inner, law.upper_tail(0))
        return Lattice(-most, 2 / event.scale, masses, arb(0), float(most))

    def tails(x: Fraction) -> tuple[arb, arb]:
        if x < -most:
            return arb(1), arb(1)
        cut = math.floor((x * event.scale + shift) / 2) + 1  # the least x whose loss is above
        return (arb(0), arb(0)) if x >= most else (law.upper_tail(cut - shift), law.upper_tail(cut))

    return Curve(-most, most, tails, float(most), atoms=True, spread=-math.expm1(-float(most)) / 2)


def _gaussian(event: GaussianNoise) -> Pair | None:
    shift = hockey.single_shift(event)
    if shift is not None and event.sigma <= SIGMA_MOST:
        return _narrow_gaussian(event.sigma, shift)
    moved = None if shift is None else 1
    squared = event.sensitivity_squared if shift is None else Fraction(shift) ** 2
    return smooth_gaussian(event.sigma, squared, moved=moved)


def _narrow_gaussian(sigma: Fraction, shift: int) -> Lattice:
    law, reach = GaussianLaw(sigma), math.ceil((DEVIATIONS + 2) * sigma) + 1
    # P is the law about `shift`; x runs over shift - reach .. shift + reach, and all that is below counts as the first
    masses = _masses(sigma, reach)
    masses[0] = law.upper_tail(reach)
    start = (2 * (shift - reach) * shift - shift**2) / (2 * sigma**2)
    return Lattice(start, shift / sigma**2, tuple(masses), law.upper_tail(reach + 1), float(shift / sigma))


def _masses(sigma: Fraction, reach: int) -> list[arb]:
    """Return the discrete Gaussian's masses on -reach..reach, by recurrence from the middle."""
    rate = 1 / (2 * sigma**2)
    mass, ratio, step = GaussianLaw(sigma).pmf(0), (-ball(rate)).exp(), (-ball(2 * rate)).exp()
    half = [mass]
    for _ in range(reach):
        mass = mass * ratio
        ratio = ratio * step
        half.append(mass)
    return half[:0:-1] + half


def smooth_gaussian(sigma: Fraction, sensitivity_squared: Fraction, *, moved: int | None = None) -> Normal | None:
    """Return a wide or many-dimensional Gaussian as a continuous one, blurred; None where sigma is too narrow."""
    smooth = hockey.smoothing(sensitivity_squared, Fraction(1, 2**20))
    smooth = smooth if moved is None else hockey.Smoothing(smooth.blur_squared, moved)
    left, ripple = sigma**2 - smooth.blur_squared, smooth.ripple()
    if left <= 0 or not ripple < 1:
        return None
    factor = (smooth.moved * ripple.log1p()).exp()
    drift = upward(lambda: smooth.moved * (2 * smooth.ripple().log1p() - (-smooth.ripple()).log1p()))
    return Normal(shortened(sensitivity_squared / left, up=True), factor, drift)


def normal_curve(pair: Normal) -> Curve:
    """Return a normal loss by its tails."""

    def tails(x: Fraction) -> tuple[arb, arb]:
        spread = ball(2 * pair.squared).sqrt()
        return (
            (ball(x - pair.squared / 2) / spread).erfc() / 2,
            (ball(x + pair.squared / 2) / spread).erfc() / 2,
        )

    return Curve(pair.low, pair.high, tails, pair.deviation, factor=pair.factor, drift=pair.drift)
