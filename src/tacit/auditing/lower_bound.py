"""Lower bounds on a loss from samples: the epsilon, at a given delta, that an event on two inputs demonstrates.

An event is fixed beforehand. Its probability is bounded from below on one input and from above on the other (exactly,
by Clopper and Pearson). The two bounds give a loss that is wrong with probability at most alpha. Floats search,
interval arithmetic verifies, and every result is rounded to the safe side (docs/proofs/auditing.md).

A test that may be stopped, saved and taken up again at any time: a bet against the claim, paid draw by draw.

For an event fixed beforehand, a pair of draws (one of each input) pays X - e^epsilon·Y - delta; its expectation is at
most 0 while the claim holds. A bet of a share of the money on it can then not expect to gain: money multiplied
1/alpha-fold, at any time, refutes the claim with a false-alarm rate of alpha (Ville's inequality;
docs/proofs/auditing.md). The money of a mixture of fixed bets depends on four counts only, which are the whole state.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from tacit.accounting import continuous_gaussian_delta
from tacit.errors import InvalidParameter
from tacit.numbers import (
    Floats,
    Number,
    as_rational,
    ball,
    certainly_less,
    decimal_meaning,
    rounded_down,
    working_precision,
)

_PRECISION = 128
_SEARCHES = 40
# A bound may be farther from the observed frequency by this fraction than the best one, which saves most of the search.
_SLACK = 1e-4
_EPSILON_MOST = 200.0


@dataclass(frozen=True)
class Tally:
    """The frequency of an event: on the input with more of it, and on the other."""

    likelier: int
    likelier_draws: int
    rarer: int
    rarer_draws: int


@dataclass(frozen=True)
class Proved:
    """Two bounds that hold with probability at least 1 - alpha: lower for the likelier input, upper for the other."""

    low: Fraction
    high: Fraction

    def exceeds(self, epsilon: Fraction, delta: Fraction) -> bool:
        """Whether the two chances cannot be those of an (epsilon, delta)-DP mechanism."""
        with working_precision(_PRECISION):
            return bool(ball(epsilon).exp() * ball(self.high) < ball(self.low - delta))

    def epsilon(self, delta: Fraction) -> float:
        """Return the loss demonstrated at this delta, rounded down; 0 where none is."""
        if self.low - delta <= self.high:
            return 0.0
        return _float_down(rounded_down(lambda: ball(self.low - delta).log() - ball(self.high).log()))

    def delta(self, epsilon: Fraction) -> float:
        """Return the delta demonstrated at this epsilon, rounded down; 0 where none is."""
        with working_precision(_PRECISION):
            found = as_rational((ball(self.low) - ball(epsilon).exp() * ball(self.high)).lower())
        return _float_down(found) if found > 0 else 0.0


def prove(tally: Tally, *, alpha: Fraction) -> Proved:
    """Return what a tally proves, wrong with probability at most `alpha` for both bounds together."""
    low = chance_lower(tally.likelier, tally.likelier_draws, alpha=alpha / 2)
    return Proved(low, chance_upper(tally.rarer, tally.rarer_draws, alpha=alpha / 2))


def chance_lower(happened: int, draws: int, *, alpha: Fraction) -> Fraction:
    """Return a lower bound on the true probability, wrong with probability at most `alpha`: Clopper and Pearson's.

    >>> round(float(chance_lower(10, 10, alpha=Fraction(1, 20))), 4)
    0.7411
    """
    if not 0 <= happened <= draws or draws == 0:
        raise InvalidParameter(f"an event must have happened between 0 and {draws} times, not {happened}")
    if happened == 0:
        return Fraction(0)
    seen = happened / draws
    start = float(chernoff_lower(np.array([happened]), draws, float(alpha))[0])

    def tail(chance: Fraction) -> arb:
        return ball(chance).beta_lower(arb(happened), arb(draws - happened + 1), 1)

    found = _where_tail_is(tail, alpha, start, seen)
    for guess in (found, *(start - back * (seen - start) for back in (0, 1e-6, 1e-3, 0.1))):
        exact = Fraction(guess)
        if exact > 0 and certainly_less(lambda chance=exact: tail(chance), lambda: ball(alpha)):  # type: ignore[misc]
            return exact
    return Fraction(0)


def chance_upper(happened: int, draws: int, *, alpha: Fraction) -> Fraction:
    """Return an upper bound on the true probability, wrong with probability at most `alpha`."""
    return 1 - chance_lower(draws - happened, draws, alpha=alpha)


def _where_tail_is(tail: Callable[[Fraction], arb], alpha: Fraction, low: float, high: float) -> float:
    """Return about where a rising tail reaches alpha, between a point with a tail below it and one above.

    The square root of the tail's exponent is nearly a straight line, along which a few steps arrive.
    """
    least, wanted, most = (math.sqrt(-math.log(alpha)) * (1 + slack) for slack in (1e-6, _SLACK / 2, _SLACK))

    def height(chance: float) -> float:
        with working_precision(_PRECISION):
            value = tail(Fraction(chance)).log()
            return math.sqrt(max(0.0, -float(value.mid()))) if value.is_finite() else math.inf

    left, right = (low, height(low)), (high, height(high))
    for turn in range(_SEARCHES):
        if turn % 4 == 3 or not math.isfinite(left[1]) or left[1] == right[1]:  # a line can creep; halving cannot
            middle = (left[0] + right[0]) / 2
        else:
            middle = left[0] + (right[0] - left[0]) * (left[1] - wanted) / (left[1] - right[1])
        if not left[0] < middle < right[0]:
            break
        found = (middle, height(middle))
        if least < found[1] < most:
            return middle
        if found[1] > wanted:
            left = found
        else:
            right = found
    return left[0]


# ---- quick bounds, to choose events by -----------------------------------------------------------------------------


def chernoff_lower(happened: NDArray[np.int64], draws: int, alpha: float) -> Floats:
    """Return Chernoff lower bounds of many probabilities at once: a little wider than Clopper and Pearson's, and quick.

    The bounds solve draws · KL(seen, chance) = ln(1/alpha) below the observed frequency.
    """
    seen = happened / draws
    allowed = -math.log(alpha) / draws
    low, high = np.zeros_like(seen), seen.copy()
    for _ in range(50):
        middle = (low + high) / 2
        too_far = _divergence(seen, middle) > allowed
        low, high = np.where(too_far, middle, low), np.where(too_far, high, middle)
    return low


def chernoff_upper(happened: NDArray[np.int64], draws: int, alpha: float) -> Floats:
    """Return Chernoff upper bounds of many chances at once."""
    upper: Floats = 1 - chernoff_lower(draws - happened, draws, alpha)
    return upper


def _divergence(seen: Floats, chance: Floats) -> Floats:
    """Return the binary Kullback–Leibler divergence, elementwise."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ones = np.where(seen > 0, seen * np.log(seen / chance), 0.0)
        zeros = np.where(seen < 1, (1 - seen) * np.log((1 - seen) / (1 - chance)), 0.0)
    return np.asarray(ones + zeros)


# ---- Gaussian noise ------------------------------------------------------------------------------------------------


def mu_lower(proved: Proved) -> Fraction:
    """Return the least mu of Gaussian DP that allows these chances, rounded down: 0 where any does.

    A guess by the event is right about one input with probability at least low, and wrong about the other with
    probability at most high; under mu-GDP these are at most mu apart as normal quantiles.
    """
    if not 0 < proved.high < proved.low < 1:
        return Fraction(0)
    apart = _normal_quantile(proved.low, below=True) - _normal_quantile(proved.high, below=False)
    return max(apart, Fraction(0))


def gaussian_exceeds(mu: Fraction, epsilon: Fraction, delta: Fraction) -> bool:
    """Whether Gaussian noise that hides a move of mu deviations is certainly not (epsilon, delta)-DP."""
    if mu <= 0 or delta <= 0:
        return mu > 0
    with working_precision(_PRECISION):
        return bool(continuous_gaussian_delta(ball(mu), ball(epsilon)) > ball(delta))


def gaussian_epsilon(mu: Fraction, delta: Fraction) -> float:
    """Return the epsilon that Gaussian noise exceeds at this delta when it hides a move of mu, rounded down."""
    if mu <= 0:
        return 0.0
    if delta <= 0:
        return math.inf
    return largest_epsilon(lambda epsilon: gaussian_exceeds(mu, epsilon, delta))


def largest_epsilon(exceeded: Callable[[Fraction], bool], *, most: float = _EPSILON_MOST) -> float:
    """Return nearly the largest epsilon that is exceeded, where smaller ones are too; 0 where none is."""
    low, high = 0.0, most
    while high - low > 1e-6 * max(high, 1e-3):
        middle = (low + high) / 2
        low, high = (middle, high) if exceeded(Fraction(middle)) else (low, middle)
    return low


def gaussian_mu(epsilon: Fraction, delta: Fraction) -> float:
    """Return the largest mu that Gaussian noise may hide within (epsilon, delta), to about nine digits."""
    low, high = 0.0, 1.0
    while not gaussian_exceeds(Fraction(high), epsilon, delta):
        high *= 2
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if gaussian_exceeds(Fraction(middle), epsilon, delta) else (middle, high)
    return low


def gaussian_draws(
    epsilon: Fraction,
    delta: Fraction,
    *,
    shortage: float = 0.1,
    alpha: float = 9e-7,
    events: int = 3,
    power: float = 0.99,
) -> int:
    """Return about how many draws a side show that a Gaussian's deviation is `shortage` too small, with this power.

    By the normal approximation of a threshold between the two inputs: half of the draws choose it, half test it.
    """
    normal = NormalDist()
    mu = gaussian_mu(epsilon, delta)
    found = mu / (1 - shortage)
    at = found / 2  # the threshold that errs evenly on both sides
    spread = math.sqrt(normal.cdf(at) * (1 - normal.cdf(at))) / normal.pdf(at)  # of one quantile, times √draws
    sure = 2 * -normal.inv_cdf(alpha / (2 * events)) + math.sqrt(2) * normal.inv_cdf(power)
    return math.ceil(1.15 * 2 * (sure * spread / (found - mu)) ** 2)


def _normal_quantile(chance: Fraction, *, below: bool) -> Fraction:
    """Return a rational at or below (or above) the normal quantile of a probability strictly between 0 and 1."""
    guess = NormalDist().inv_cdf(min(max(float(chance), 1e-300), 1 - 1e-16))
    step = Fraction(1, 2**40)
    side = -1 if below else 1
    for _ in range(80):
        exact = Fraction(guess) + side * step
        if certainly_less(*(_ordered(exact, chance) if below else reversed(_ordered(exact, chance)))):
            return exact
        step *= 2
    raise InvalidParameter("a normal quantile could not be verified\nhint: please report the counts of this audit")


def _ordered(quantile: Fraction, chance: Fraction) -> tuple[Callable[[], arb], Callable[[], arb]]:
    return lambda: (-ball(quantile) / arb(2).sqrt()).erfc() / 2, lambda: ball(chance)


def _float_down(value: Fraction) -> float:
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


# The shares bet on each pair, mixed evenly: much against claims that are far off, little against near misses.
BETS = tuple(Fraction(19, 20 * 2 ** (place // 2)) * (Fraction(7, 10) if place % 2 else 1) for place in range(28))
PAIRS_AT_ONCE = 64
_PRECISION_OF_BETS = 128


@dataclass(frozen=True)
class Bets:
    """The state of a bet on one event: the number of pairs of draws with the event in both, in one, or in neither.

    `likelier` is the input on which the event is suspected to be likelier than the claim allows.

    >>> bets = Bets().seen([True] * 80, [False] * 80)
    >>> bets.refutes(epsilon=1, delta=0, alpha=Fraction(1, 10**6)), Bets.from_json(bets.to_json()) == bets
    (True, True)
    """

    both: int = 0
    likelier_alone: int = 0
    rarer_alone: int = 0
    neither: int = 0

    @property
    def pairs(self) -> int:
        """How many pairs of draws it has seen."""
        return self.both + self.likelier_alone + self.rarer_alone + self.neither

    def seen(self, likelier: Sequence[bool] | NDArray[np.bool_], rarer: Sequence[bool] | NDArray[np.bool_]) -> "Bets":
        """Return the state after further pairs: whether the event happened on each input."""
        one, other = np.asarray(likelier, dtype=bool), np.asarray(rarer, dtype=bool)
        if one.shape != other.shape or one.ndim != 1:
            raise InvalidParameter(
                "a batch of pairs must be two sequences of the same length\nhint: one draw of each input makes a pair"
            )
        return Bets(
            self.both + int((one & other).sum()),
            self.likelier_alone + int((one & ~other).sum()),
            self.rarer_alone + int((~one & other).sum()),
            self.neither + int((~one & ~other).sum()),
        )

    def refutes(self, epsilon: Number, delta: Number, alpha: Fraction) -> bool:
        """Whether the claim is refuted, with a false-alarm rate of alpha however often and whenever one looks."""
        exact = decimal_meaning(epsilon, name="epsilon"), decimal_meaning(delta, name="delta")
        with working_precision(_PRECISION_OF_BETS):
            return bool(self._money(*exact) * ball(alpha) > 1)

    def epsilon(self, delta: Number, alpha: Fraction) -> float:
        """Return the largest epsilon refuted so far at this delta: a lower bound of the loss at any time."""
        return largest_epsilon(lambda tried: self.refutes(tried, delta, alpha))

    def evidence(self, epsilon: Number, delta: Number) -> float:
        """Return by how much the money has grown: 1 at the start; for showing."""
        with working_precision(_PRECISION_OF_BETS):
            grown = self._money(decimal_meaning(epsilon, name="epsilon"), decimal_meaning(delta, name="delta"))
            return float(min(grown.log().mid(), arb(700)).exp().mid()) if grown > 0 else 0.0

    def _money(self, epsilon: Fraction, delta: Fraction) -> arb:
        """Return the mixture's money at the working precision; a bet that could lose more than all is left out."""
        stake = ball(epsilon).exp() + ball(delta)
        total = arb(0)
        for bet in map(ball, BETS):
            if not bet * stake < 1:
                continue
            grown = (1 + bet * (1 - stake)).log() * self.both
            grown += (1 + bet * (1 - ball(delta))).log() * self.likelier_alone
            grown += (1 - bet * stake).log() * self.rarer_alone
            grown += (1 - bet * ball(delta)).log() * self.neither
            total += grown.exp()
        return total / len(BETS)

    def to_json(self) -> str:
        """Return the state as text, to go on another day."""
        return json.dumps(
            {"both": self.both, "likelier": self.likelier_alone, "rarer": self.rarer_alone, "neither": self.neither}
        )

    @classmethod
    def from_json(cls, text: str) -> "Bets":
        """Return the state that `to_json` wrote."""
        try:
            record = json.loads(text)
            counts = [record[name] for name in ("both", "likelier", "rarer", "neither")]
        except (ValueError, KeyError, TypeError):
            counts = [-1]
        if not all(isinstance(count, int) and not isinstance(count, bool) and count >= 0 for count in counts):
            raise InvalidParameter("this text is not the state of a bet\nhint: give the text that to_json returned")
        return cls(*counts)


def keep_betting(
    draw: Callable[[int], tuple[NDArray[np.bool_], NDArray[np.bool_]]],
    *,
    epsilon: Fraction,
    delta: Fraction,
    alpha: Fraction,
    pairs_most: int,
    go_on: Callable[[], bool],
    bets: Bets | None = None,
    pairs_at_once: int = PAIRS_AT_ONCE,
) -> Bets:
    """Return the state once the claim is refuted, the pairs are used up, or `go_on` says to stop.

    `draw(n)` gives n pairs: whether the event happened on the likelier and on the rarer input.
    """
    state = bets or Bets()
    while state.pairs < pairs_most and go_on() and not state.refutes(epsilon, delta, alpha):
        state = state.seen(*draw(min(pairs_at_once, pairs_most - state.pairs)))
    return state


def bet_on(
    fn: Callable[[Any], Any],
    likelier: Any,
    rarer: Any,
    inside: Callable[[Any], bool],
    *,
    epsilon: Number,
    delta: Number = 0,
    pairs: int,
    confidence: Number = "0.999999",
    bets: Bets | None = None,
) -> Bets:
    """Return the state after at most `pairs` further pairs of calls, for an event that was fixed before any of them.

    For functions too slow to audit in one sitting: keep `to_json()`, and go on tomorrow from
    `bets=Bets.from_json(...)`. An error never counts as the event.
    """

    def happened(data: Any) -> bool:
        try:
            return bool(inside(fn(data)))
        except Exception:  # noqa: BLE001 - whatever it is, it is not in the event
            return False

    def draw(count: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        seen = np.array([[happened(likelier), happened(rarer)] for _ in range(count)], dtype=bool)
        return seen[:, 0], seen[:, 1]

    start = bets or Bets()
    return keep_betting(
        draw,
        epsilon=decimal_meaning(epsilon, name="epsilon"),
        delta=decimal_meaning(delta, name="delta"),
        alpha=1 - decimal_meaning(confidence, name="confidence"),
        pairs_most=start.pairs + pairs,
        go_on=lambda: True,
        bets=start,
    )
