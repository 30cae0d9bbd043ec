"""Amplification by shuffling: many locally private reports, mixed so that no one can tell whose is whose.

The bound is computed from the clones of a report that the other reports hide (Feldman, McMillan and Talwar 2021), with
certain rounding; docs/proofs/amplification.md derives it. It holds for reports that are unlinkable and that all come
from one fixed randomizer.
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
from tacit.accounting.digits import shortened
from tacit.accounting.transform import UNIT
from tacit.errors import InvalidParameter
from tacit.privacy.loss import ApproximateLoss
from tacit.privacy.number import Number, decimal_meaning, positive, show, whole
from tacit.privacy.rounding import ball, exact_rational, working_precision

BITS = 128
# How far from the expected number of clones, in deviations; fewer count as a failure of the promise.
DEVIATIONS = 9.0
REPORTS_MOST = 10**9

# A report with more hides nothing by itself.
LOCAL_MOST = 20
Randomizer = Literal["any", "randomized response"]


def shuffled(
    epsilon: Number, *, reports: int, delta: Number, unlinkable: bool, randomizer: Randomizer = "any"
) -> ApproximateLoss:
    """Return the central loss of `reports` shuffled reports that are each epsilon-DP by themselves.

    `unlinkable` states that whoever sees the reports cannot tell whose they are, by address, time or order. All
    reports come from one fixed randomizer; for randomized response, binary or k-ary, the bound is smaller.

    >>> print(shuffled(1, reports=10_000, delta=1e-6, unlinkable=True))
    ε = 0.0530..., δ = 1e-06
    """
    local = positive(decimal_meaning(epsilon, name="epsilon"), name="epsilon")
    exact_delta = decimal_meaning(delta, name="delta")
    require_chance(exact_delta)
    count = whole(reports, name="reports", least=2)
    _require(unlinkable=unlinkable, count=count, local=local, randomizer=randomizer)
    coarse = _least(_clones(local, count, randomizer, blocks=12), exact_delta, 0.0, float(local), tight=1e-2)
    fine = _clones(local, count, randomizer, blocks=_blocks(count, local))
    found = _least(fine, exact_delta, 0.0, coarse, tight=1e-6)
    return ApproximateLoss(min(shortened(Fraction(found), up=True), local), exact_delta)


@lru_cache(maxsize=4096)
def local_epsilon(central: Fraction, reports: int, delta: Fraction, randomizer: Randomizer) -> Fraction:
    """Return a local epsilon, to three digits the largest found, whose shuffled reports are (central, delta)-DP.

    Every value tried is verified against the bound of `shuffled`; where shuffling gains nothing it is `central`.

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


def closed_form(epsilon: Fraction, reports: int, delta: Fraction) -> ApproximateLoss:
    """Return the closed-form bound of Feldman, McMillan and Talwar, rounded up; refused outside its theorem."""
    require_chance(delta)
    count = whole(reports, name="reports", least=2)
    with working_precision(BITS):
        largest = (ball(Fraction(count)) / (16 * (2 / ball(delta)).log())).log()
        if not ball(epsilon) <= largest:
            raise InvalidParameter(
                f"the closed form holds for epsilon up to ln(n/(16 ln(2/delta))), and epsilon is {show(epsilon)}"
                "\nhint: use the numerical bound, or collect more reports"
            )
        power = ball(epsilon).exp()
        spread = 8 * (power * (4 / ball(delta)).log() / count).sqrt() + 8 * power / count
        total = ((power - 1) / (power + 1) * spread).log1p()
        return ApproximateLoss(shortened(exact_rational(total.upper()), up=True), delta)


def _require(*, unlinkable: bool, count: int, local: Fraction, randomizer: str) -> None:
    if unlinkable is not True:
        raise InvalidParameter(
            "shuffling hides nothing where reports can be linked to people"
            "\nhint: strip addresses, times and order first, or charge each report its own epsilon"
        )
    if randomizer not in ("any", "randomized response"):
        raise InvalidParameter(f"randomizer must be 'any' or 'randomized response', not {randomizer!r}")
    if count > REPORTS_MOST:
        raise InvalidParameter(f"reports must be at most {REPORTS_MOST:,}\nhint: a smaller number gives a valid bound")
    if local > LOCAL_MOST:
        raise InvalidParameter(
            f"epsilon must be at most {LOCAL_MOST} for a report, not {show(local)}: it hides nothing"
        )


def _least(clones: "_Clones", delta: Fraction, low: float, high: float, *, tight: float) -> float:
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
            total += Fraction(chance) * _given(clones, self.local, epsilon)
        return total


def _clones(local: Fraction, count: int, randomizer: str, *, blocks: int) -> _Clones:
    with working_precision(BITS):
        power = ball(local).exp()
        share = 1 / power if randomizer == "any" else 2 / (power + 1)
        rate = exact_rational(share.lower())  # fewer clones hide less
        trials = count - 1
        mean, deviation = float(trials * rate), math.sqrt(float(trials * rate * (1 - rate))) + 1e-9
        low = max(0, math.floor(mean - DEVIATIONS * deviation))
        high = min(trials, math.ceil(mean + DEVIATIONS * deviation))
        chances = _binomial(trials, rate, low, high)
        missed = _up(_chernoff(trials, rate, low))
    edges = sorted({low + (high + 1 - low) * block // blocks for block in range(blocks)})
    sums = [float(part.sum()) for part in np.split(chances, [edge - low for edge in edges[1:]])]
    # whatever lies above the last block is hidden at least as well as its first
    sums[-1] += float(_up(_chernoff(trials, 1 - rate, trials - high)))
    return _Clones(local, tuple(edges), tuple(value * (1 + 1e-9) for value in sums), missed)


def _binomial(trials: int, rate: Fraction, low: int, high: int) -> NDArray[np.float64]:
    """Return chances of low..high successes, each rounded up: products of ratios outward from the middle."""
    middle = min(max(math.floor((trials + 1) * rate), low), high)
    log_middle = (
        arb(trials + 1).lgamma() - arb(middle + 1).lgamma() - arb(trials - middle + 1).lgamma()
        + middle * ball(rate).log() + ((trials - middle) * (1 - ball(rate)).log() if middle < trials else 0)
    )  # fmt: skip
    odds = float(ball(rate / (1 - rate))) if rate < 1 else 0.0
    above = np.arange(middle, high, dtype=np.float64)
    below = np.arange(middle, low, -1, dtype=np.float64)
    up = np.multiply.accumulate((trials - above) / (above + 1) * odds)
    down = np.multiply.accumulate(below / ((trials - below + 1) * odds))
    chances = np.concatenate([down[::-1], [1.0], up]) * float(log_middle.exp().upper())
    slack: NDArray[np.float64] = chances * (1 + 8 * (len(chances) + 4) * UNIT)
    return slack


def _chernoff(trials: int, rate: Fraction, most: int) -> arb:
    """Return a bound on the chance of fewer than `most` successes: exp(-trials·relative entropy)."""
    if most <= 0:
        return arb(0)
    share = Fraction(most, trials)
    if share >= rate:
        return arb(1)
    entropy = ball(share) * ball(share / rate).log() + ball(1 - share) * ball((1 - share) / (1 - rate)).log()
    return (-trials * entropy).exp()


def _given(clones: int, local: Fraction, epsilon: Fraction) -> Fraction:
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
    """Return the chance of `heads` among fair coins."""
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
    return max(exact_rational(value.upper()), Fraction(0))
