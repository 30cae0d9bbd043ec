"""Amplification by secret sampling: what a release costs when each unit is in it only with a small chance.

It holds where the sample is Poisson (each unit in it by its own coin), secret, drawn afresh for every release, and
neighbours add or remove a unit. Anything else is refused: there the formulas are false (docs/proofs/amplification.md).
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar

from flint import arb

from tacit.accounting.digits import upward
from tacit.accounting.pair import DEVIATIONS, Curve, smooth_gaussian
from tacit.errors import InvalidParameter
from tacit.privacy.event import GaussianNoise
from tacit.privacy.loss import ApproximateLoss, PureLoss, RenyiLoss
from tacit.privacy.number import Number, decimal_meaning, show
from tacit.privacy.rounding import ball


@dataclass(frozen=True, kw_only=True)
class PoissonSample:
    """How units are sampled. Each condition is stated by whoever samples; where one fails it is refused here.

    >>> PoissonSample(rate=Fraction(1, 100), secret=True, fresh=True).rate
    Fraction(1, 100)
    """

    rate: Fraction
    secret: bool
    fresh: bool
    neighbours: str = "add-remove"

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise InvalidParameter(f"rate must be above 0 and at most 1, not {show(self.rate)}\nhint: e.g. rate=0.01")
        if self.secret is not True:
            raise InvalidParameter(
                "a sample that is known amplifies nothing: whoever sees that a unit is in it faces the whole loss"
                "\nhint: keep the sample secret, or charge the loss without amplification"
            )
        if self.fresh is not True:
            raise InvalidParameter(
                "a sample used for several releases amplifies none of them: their losses about one sample add first"
                "\nhint: draw a fresh sample for each release, or release everything at once and amplify the total"
            )
        if self.neighbours != "add-remove":
            raise InvalidParameter(
                f"sampling by coins amplifies for neighbours that add or remove a unit, not for {self.neighbours!r}"
                "\nhint: declare neighbours='add-remove'"
            )


def poisson_sample(rate: Number, *, secret: bool, fresh: bool, neighbours: str = "add-remove") -> PoissonSample:
    """Return a sample in which each unit is by its own coin of chance `rate`, or refuse one that amplifies nothing."""
    return PoissonSample(rate=decimal_meaning(rate, name="rate"), secret=secret, fresh=fresh, neighbours=neighbours)


def amplified(loss: PureLoss | ApproximateLoss, sample: PoissonSample) -> PureLoss | ApproximateLoss:
    """Return the loss of a release from the sample, to a unit of the whole: ln(1 + q(e^ε − 1)) and qδ, exactly.

    >>> sample = poisson_sample(0.01, secret=True, fresh=True)
    >>> print(amplified(PureLoss(Fraction(1)), sample))
    ε = 0.0170369
    """
    if not isinstance(loss, PureLoss | ApproximateLoss):
        raise InvalidParameter(
            "sampling amplifies pure and (epsilon, delta) losses here\nhint: convert it to (epsilon, delta) first"
        )

    def lowered() -> arb:
        return (ball(sample.rate) * ball(loss.epsilon).expm1()).log1p()

    epsilon = min(upward(lowered), loss.epsilon)
    return PureLoss(epsilon) if isinstance(loss, PureLoss) else ApproximateLoss(epsilon, sample.rate * loss.delta)


@dataclass(frozen=True)
class SubsampledGaussian:
    """Gaussian noise on a statistic of a fresh, secret Poisson sample of the units: the event of private learning."""

    noise: GaussianNoise
    sample: PoissonSample

    ORDER_MOST: ClassVar[int] = 1025

    def renyi(self, orders: Iterable[Fraction]) -> RenyiLoss:
        """Return the Rényi divergence at whole orders of at least 2, rounded up."""
        wanted = sorted(set(orders))
        if not wanted or any(order.denominator != 1 or not 2 <= order <= self.ORDER_MOST for order in wanted):
            raise InvalidParameter(f"orders of sampled noise must be whole, from 2 to {self.ORDER_MOST}")
        return RenyiLoss(tuple((order, upward(partial(self._renyi_at, int(order)))) for order in wanted))

    def pair(self, *, adding: bool) -> Curve | None:
        """Return the pair that dominates removing a unit, or adding one; None where the noise is under a few steps."""
        normal = smooth_gaussian(self.noise.sigma, self.noise.sensitivity_squared)
        if normal is None:
            return None
        build = _adding if adding else _removing
        return build(self.sample.rate, normal.squared, normal.factor, normal.drift)

    def _renyi_at(self, order: int) -> arb:
        rate, squared = ball(self.sample.rate), self.noise.sensitivity_squared / self.noise.sigma**2
        other, total = 1 - rate, arb(0)
        for k in range(order + 1):
            weight = arb(math.comb(order, k)) * other ** (order - k) * rate**k
            total = total + weight * ball(k * (k - 1) * squared / 2).exp()
        return total.log() / (order - 1) if total > 1 else arb(0)


def _removing(rate: Fraction, squared: Fraction, factor: arb, drift: Fraction) -> Curve:
    """P samples the unit with chance `rate`, Q never: the loss is ln(1 − q + q·e^l), with l the noise's own loss."""
    q, spread = ball(rate), ball(squared).sqrt()
    half = spread / arb(8).sqrt()  # places are in units of √2 deviations, as erfc wants them

    def tails(x: Fraction) -> tuple[arb, arb]:
        inner = ball(x).expm1() / q + 1
        if not inner > 0:
            return arb(1), arb(1)
        middle = inner.log() / (4 * half)
        without, within = (middle + half).erfc() / 2, (middle - half).erfc() / 2
        return without + q * (within - without), without

    top = _loss(q, spread * (DEVIATIONS + spread) - ball(squared / 2))
    low = _rational((-q).log1p(), up=False) if rate < 1 else squared / 2 - DEVIATIONS * Fraction(math.sqrt(squared))
    high = _rational(top, up=True)
    return Curve(low, high, tails, _deviation(rate, squared, high), factor=factor, drift=drift)


def _adding(rate: Fraction, squared: Fraction, factor: arb, drift: Fraction) -> Curve:
    """P never samples the unit, Q with chance `rate`: the loss is −ln(1 − q + q·e^l)."""
    q, spread = ball(rate), ball(squared).sqrt()
    half = spread / arb(8).sqrt()

    def tails(x: Fraction) -> tuple[arb, arb]:
        inner = (-ball(x)).expm1() / q + 1
        if not inner > 0:
            return arb(0), arb(0)
        middle = inner.log() / (4 * half)
        without, within = (-middle - half).erfc() / 2, (half - middle).erfc() / 2
        return without, without + q * (within - without)

    bottom = -_loss(q, spread * DEVIATIONS - ball(squared / 2))
    top = -_loss(q, -spread * DEVIATIONS - ball(squared / 2))
    low, high = _rational(bottom, up=False), _rational(top, up=True)
    return Curve(low, high, tails, _deviation(rate, squared, -low), factor=factor, drift=drift)


def _loss(q: arb, inner: arb) -> arb:
    return (q * inner.expm1()).log1p()


def _rational(value: arb, *, up: bool) -> Fraction:
    """Return a short rational about a ball, a little beyond it on the side asked for."""
    nudge = Fraction(1, 2**30) * (1 if up else -1)
    return Fraction(round(float(value.mid()) * 2**32), 2**32) + nudge


def _deviation(rate: Fraction, squared: Fraction, most: Fraction) -> float:
    """Return about how far the loss strays: only to choose a grid by."""
    return min(float(rate) * math.sqrt(math.expm1(min(float(squared), 30.0))), float(most) / 3 + 1e-9)
