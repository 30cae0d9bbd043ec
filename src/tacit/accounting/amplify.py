"""Amplification: the cost of a release when units are sampled secretly, or when local reports are shuffled.

Sampling: each unit takes part only with a small probability. The bounds hold if the sample is Poisson (each unit by its
own coin), secret, drawn afresh for every release, and neighbours add or remove a unit. Anything else is refused: there
the formulas are false (docs/proofs/amplification.md).

Shuffling: many locally private reports, mixed so that no report can be matched to its sender. The bound is computed
from the clones of a report that the other reports hide (Feldman, McMillan and Talwar 2021), with certain rounding. The
bound holds for unlinkable reports that all come from one fixed randomizer.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np
from flint import arb
from numpy.typing import NDArray

from tacit.accounting.convert import require_chance
from tacit.accounting.pair import DEVIATIONS, UNIT, Curve, smooth_gaussian
from tacit.errors import InvalidParameter
from tacit.numbers import (
    Number,
    as_rational,
    ball,
    decimal_meaning,
    positive,
    shortened,
    show,
    upward,
    whole,
    working_precision,
)
from tacit.privacy import ApproximateLoss, PureLoss, SubsampledGaussian


@dataclass(frozen=True, kw_only=True)
class PoissonSample:
    """How units are sampled. The caller states each condition; a condition that fails is refused here.

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
                "a known sample gives no amplification: a unit that is known to be in it bears the whole "
                "loss\nhint: keep the sample secret, or charge the loss without amplification"
            )
        if self.fresh is not True:
            raise InvalidParameter(
                "a sample used for several releases amplifies none of them: their losses about one sample add "
                "first\nhint: draw a fresh sample for each release, or release everything at once and amplify the total"
            )
        if self.neighbours != "add-remove":
            raise InvalidParameter(
                f"sampling by coins amplifies for neighbours that add or remove a unit, not for {self.neighbours!r}"
                "\nhint: declare neighbours='add-remove'"
            )


def poisson_sample(rate: Number, *, secret: bool, fresh: bool, neighbours: str = "add-remove") -> PoissonSample:
    """Return a sample that includes each unit by its own coin of chance `rate`, or refuse one without amplification."""
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
    if not isinstance(sample, PoissonSample):
        raise InvalidParameter(
            f"a sample must be one that was described with poisson_sample, not a {type(sample).__name__}"
            "\nhint: amplified(loss, tacit.poisson_sample(0.01, secret=True, fresh=True))"
        )

    def lowered() -> arb:
        return (ball(sample.rate) * ball(loss.epsilon).expm1()).log1p()

    epsilon = min(upward(lowered), loss.epsilon)
    return PureLoss(epsilon) if isinstance(loss, PureLoss) else ApproximateLoss(epsilon, sample.rate * loss.delta)


def sampled_pair(event: SubsampledGaussian, *, adding: bool) -> Curve | None:
    """Return the pair that dominates removing a unit, or adding one; None if the noise is under a few steps."""
    normal = smooth_gaussian(event.sigma, event.sensitivity_squared)
    if normal is None:
        return None
    rate, squared = event.rate, normal.squared
    q, spread = ball(rate), ball(squared).sqrt()
    half = spread / arb(8).sqrt()  # positions are in units of √2 deviations, as erfc expects
    sign = -1 if adding else 1

    def tails(x: Fraction) -> tuple[arb, arb]:
        """Removing: P samples the unit with chance q and Q never, so the loss is ln(1 − q + q·e^l), l the noise's own.

        Adding: P never samples the unit and Q with chance q; the loss is −ln(1 − q + q·e^l).
        """
        inner = ball(sign * x).expm1() / q + 1
        if not inner > 0:
            return (arb(0), arb(0)) if adding else (arb(1), arb(1))
        middle = inner.log() / (4 * half)
        without, within = (sign * (middle + half)).erfc() / 2, (sign * (middle - half)).erfc() / 2
        mixed = without + q * (within - without)
        return (without, mixed) if adding else (mixed, without)

    drift = ball(squared / 2)
    if adding:
        low = _rational(-_sampled_loss(q, spread * DEVIATIONS - drift), up=False)
        high = _rational(-_sampled_loss(q, -spread * DEVIATIONS - drift), up=True)
    else:
        high = _rational(_sampled_loss(q, spread * (DEVIATIONS + spread) - drift), up=True)
        low = squared / 2 - DEVIATIONS * Fraction(math.sqrt(squared))
        low = _rational((-q).log1p(), up=False) if rate < 1 else low
    deviation = _deviation(rate, squared, -low if adding else high)
    return Curve(low, high, tails, deviation, factor=normal.factor, drift=normal.drift)


def _sampled_loss(q: arb, inner: arb) -> arb:
    return (q * inner.expm1()).log1p()


def _rational(value: arb, *, up: bool) -> Fraction:
    """Return a short rational about a ball, a little beyond it on the side asked for."""
    nudge = Fraction(1, 2**30) * (1 if up else -1)
    return Fraction(round(float(value.mid()) * 2**32), 2**32) + nudge


def _deviation(rate: Fraction, squared: Fraction, most: Fraction) -> float:
    """Return about how far the loss strays: only to choose a grid by."""
    return min(float(rate) * math.sqrt(math.expm1(min(float(squared), 30.0))), float(most) / 3 + 1e-9)


BITS = 128
# How far from the expected number of clones, in deviations; fewer count as a failure of the promise.
SHUFFLE_DEVIATIONS = 9.0
REPORTS_MOST = 10**9

# A report with more gives no protection by itself.
LOCAL_MOST = 20
Randomizer = Literal["any", "randomized response"]


# ---- shuffling -------------------------------------------------------------------------------------------------------


def shuffled(
    epsilon: Number, *, reports: int, delta: Number, unlinkable: bool, randomizer: Randomizer = "any"
) -> ApproximateLoss:
    """Return the central loss of `reports` shuffled reports that are each epsilon-DP by themselves.

    `unlinkable` states that readers of the reports cannot link them to people, by address, time or order. All
    reports come from one fixed randomizer; for randomized response, binary or k-ary, the bound is smaller.

    >>> print(shuffled(1, reports=10_000, delta=1e-6, unlinkable=True))
    ε = 0.0530..., δ = 1e-6
    """
    local = positive(decimal_meaning(epsilon, name="epsilon"), name="epsilon")
    delta_value = decimal_meaning(delta, name="delta")
    require_chance(delta_value)
    count = whole(reports, name="reports", least=2)
    _require_shuffled(unlinkable=unlinkable, count=count, local=local, randomizer=randomizer)
    coarse = _least_epsilon_within(
        _clones(local, count, randomizer, blocks=12), delta_value, 0.0, float(local), tight=1e-2
    )
    fine = _clones(local, count, randomizer, blocks=_blocks(count, local))
    found = _least_epsilon_within(fine, delta_value, 0.0, coarse, tight=1e-6)
    return ApproximateLoss(min(shortened(Fraction(found), up=True), local), delta_value)


@lru_cache(maxsize=4096)
def local_epsilon(central: Fraction, reports: int, delta: Fraction, randomizer: Randomizer) -> Fraction:
    """Return a local epsilon, to three digits the largest found, such that its shuffled reports are (central,
    delta)-DP.

    Every value tried is verified against the bound of `shuffled`; if shuffling gains nothing it is `central`.

    >>> print(float(local_epsilon(Fraction(1), 10_000, Fraction(1, 10**6), "randomized response")))
    5.4...
    """
    low, high = central, min(Fraction(LOCAL_MOST), central + 16)
    if reports < 2 or low >= high:
        return central
    while high > low * Fraction(1001, 1000):
        middle = shortened((low + high) / 2, up=False)
        blocks = min(96, 2 * _blocks(reports, middle))
        if _clones(middle, reports, randomizer, blocks=blocks).delta(central) <= delta:
            low = middle
        else:
            high = middle
    return low


def _require_shuffled(*, unlinkable: bool, count: int, local: Fraction, randomizer: str) -> None:
    if unlinkable is not True:
        raise InvalidParameter(
            "shuffling gives no protection if reports can be linked to people\nhint: strip addresses, times and "
            "order first, or charge each report its own epsilon"
        )
    if randomizer not in ("any", "randomized response"):
        raise InvalidParameter(f"randomizer must be 'any' or 'randomized response', not {randomizer!r}")
    if count > REPORTS_MOST:
        raise InvalidParameter(f"reports must be at most {REPORTS_MOST:,}\nhint: a smaller number gives a valid bound")
    if local > LOCAL_MOST:
        raise InvalidParameter(
            f"epsilon must be at most {LOCAL_MOST} for a report, not {show(local)}: such a report gives no protection"
        )


def _least_epsilon_within(clones: "_Clones", delta: Fraction, low: float, high: float, *, tight: float) -> float:
    """Return an epsilon within delta between the two, or the upper one: delta falls in epsilon; each is verified."""
    while high - low > tight * high:
        middle = (low + high) / 2
        if clones.delta(Fraction(middle)) <= delta:
            high = middle
        else:
            low = middle
    return high


def _blocks(count: int, local: Fraction) -> int:
    """Return how many numbers of clones are looked at; between two, the smaller stands for all. Fewer do for many."""
    return max(24, min(192, math.ceil(12 * math.exp(float(local) / 2) / math.sqrt(count) * 1000)))


@dataclass(frozen=True)
class _Clones:
    """The number of clones C among the other reports: blocks of it, each with its least C and its chance."""

    local: Fraction
    least: tuple[int, ...]
    chances: tuple[float, ...]
    missed: Fraction

    def delta(self, epsilon: Fraction) -> Fraction:
        """Return a bound on the hockey-stick divergence between the two neighbours' shuffled reports."""
        total = self.missed
        for clones, chance in zip(self.least, self.chances, strict=True):
            total += Fraction(chance) * _delta_with_clones(clones, self.local, epsilon)
        return total


def _clones(local: Fraction, count: int, randomizer: str, *, blocks: int) -> _Clones:
    with working_precision(BITS):
        power = ball(local).exp()
        share = 1 / power if randomizer == "any" else 2 / (power + 1)
        rate = as_rational(share.lower())  # fewer clones hide less
        trials = count - 1
        mean, deviation = float(trials * rate), math.sqrt(float(trials * rate * (1 - rate))) + 1e-9
        low = max(0, math.floor(mean - SHUFFLE_DEVIATIONS * deviation))
        high = min(trials, math.ceil(mean + SHUFFLE_DEVIATIONS * deviation))
        chances = _binomial(trials, rate, low, high)
        missed = _up(_chernoff(trials, rate, low))
    edges = sorted({low + (high + 1 - low) * block // blocks for block in range(blocks)})
    sums = [float(part.sum()) for part in np.split(chances, [edge - low for edge in edges[1:]])]
    # values above the last block are hidden at least as well as its first
    sums[-1] += float(_up(_chernoff(trials, 1 - rate, trials - high)))
    return _Clones(local, tuple(edges), tuple(value * (1 + 1e-9) for value in sums), missed)


def _binomial(trials: int, rate: Fraction, low: int, high: int) -> NDArray[np.float64]:
    """Return chances of low..high successes, each rounded up."""
    middle = min(max(math.floor((trials + 1) * rate), low), high)
    log_middle = (
        arb(trials + 1).lgamma() - arb(middle + 1).lgamma() - arb(trials - middle + 1).lgamma()
        + middle * ball(rate).log() + ((trials - middle) * (1 - ball(rate)).log() if middle < trials else 0)
    )  # fmt: skip
    odds = float(ball(rate / (1 - rate))) if rate < 1 else 0.0
    chances = binomial_ratios(trials, odds, low, middle, high) * float(log_middle.exp().upper())
    slack: NDArray[np.float64] = chances * (1 + 8 * (len(chances) + 4) * UNIT)
    return slack


def binomial_ratios(trials: int, odds: float, low: int, middle: int, high: int) -> NDArray[np.float64]:
    """Return the masses of low..high successes as multiples of the middle's: products of ratios, outward from it."""
    above = np.arange(middle, high, dtype=np.float64)
    below = np.arange(middle, low, -1, dtype=np.float64)
    up = np.multiply.accumulate((trials - above) / (above + 1) * odds)
    down = np.multiply.accumulate(below / ((trials - below + 1) * odds))
    return np.concatenate([down[::-1], [1.0], up])


def _chernoff(trials: int, rate: Fraction, most: int) -> arb:
    """Return a bound on the chance of fewer than `most` successes: exp(-trials·relative entropy)."""
    if most <= 0:
        return arb(0)
    share = Fraction(most, trials)
    if share >= rate:
        return arb(1)
    entropy = ball(share) * ball(share / rate).log() + ball(1 - share) * ball((1 - share) / (1 - rate)).log()
    return (-trials * entropy).exp()


def _delta_with_clones(clones: int, local: Fraction, epsilon: Fraction) -> Fraction:
    """Return the divergence given `clones` of them, rounded up: one report of either kind among fair coins.

    With v = 1/(e^local + 1), w = 1 - v and A of clones fair coins: P = A + Bernoulli(w), Q = A + Bernoulli(v). The
    bad set is {sum >= t}, and delta is Pr[A = t - 1](w - e^epsilon v) - (e^epsilon - 1) Pr[A >= t].
    """
    with working_precision(BITS):
        v = 1 / (ball(local).exp() + 1)
        w, factor = 1 - v, ball(epsilon).exp()
        gain = w - factor * v
        if not gain > 0:
            return Fraction(0)
        cut = (clones + 1) * (factor * w - v) / ((w - v) * (1 + factor))  # the bad set's sums are above it
        t = math.floor(float(cut.mid())) + 1
        best = Fraction(0)
        # no set shows more than the bad set; trying its neighbours makes a cut that is nearly whole harmless
        for start in (t - 1, t, t + 1):
            if 1 <= start <= clones + 1:
                excess = gain - ball(epsilon).expm1() * arb(_tail_ratio(clones, start))
                best = max(best, _up(_fair(clones, start - 1) * excess))
        return min(best, Fraction(1))


def _fair(coins: int, heads: int) -> arb:
    log_chance = arb(coins + 1).lgamma() - arb(heads + 1).lgamma() - arb(coins - heads + 1).lgamma()
    return (log_chance - coins * arb(2).log()).exp()


def _tail_ratio(coins: int, start: int) -> float:
    """Return Pr[A >= start]/Pr[A = start - 1] for fair coins, rounded down: a sum of falling products."""
    falling = 1 - (coins - start + 1) / start  # the first product's distance from 1; later ones fall faster
    length = min(coins - start + 1, 64 + 12 * math.isqrt(coins + 1), 64 + math.ceil(40 / max(falling, 1e-9)))
    if length <= 0:
        return 0.0
    heads = np.arange(start - 1, start - 1 + length, dtype=np.float64)
    products = np.multiply.accumulate((coins - heads) / (heads + 1))
    return float(products.sum()) * (1 - 8 * (length + 4) * UNIT)


def _up(value: arb) -> Fraction:
    return max(as_rational(value.upper()), Fraction(0))
