"""The cost of one event in every notion of loss: pure epsilon, zCDP, a Rényi curve, and (epsilon, delta).

Costs are exact if a closed form is known, and rounded up if a function such as exp is involved.

The first part computes the hockey-stick delta of noise at an epsilon, as balls: exact for one coordinate, a proved
bound for several. Proofs: docs/proofs/losses.md (one coordinate, and Laplace vectors) and
docs/proofs/gaussian-vector.md. How costs add up is left to `composition.py` and `filter.py`.

The last part is the least noise for a target loss, verified at the noise chosen (docs/proofs/calibration.md). A search
in floats proposes a sigma, rounded up to a short rational; the exact delta at that sigma decides.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial

from flint import arb

from tacit.accounting.convert import (
    crossing,
    crossing_between,
    log_excess,
    pure_to_zcdp,
    renyi_to_delta,
    require_chance,
    rho_within,
    zcdp_to_delta,
    zcdp_to_epsilon,
)
from tacit.errors import InvalidParameter
from tacit.numbers import ball, downward, positive, rounded_up, shortened, show, upward, working_precision
from tacit.privacy import (
    SCALE_MIN,
    Event,
    ExponentialChoice,
    Failing,
    GaussianLaw,
    GaussianNoise,
    KeyThreshold,
    LaplaceLaw,
    LaplaceNoise,
    PureChoice,
    RenyiLoss,
    StaircaseNoise,
    SubsampledGaussian,
    ZcdpLoss,
    least_integer,
    scaled_erfc,
)


def laplace_delta(event: LaplaceNoise, epsilon: Fraction) -> arb:
    """Return the exact delta: for any vector the worst move is all of the sensitivity in one coordinate."""
    return LaplaceLaw(event.scale).delta(math.floor(event.sensitivity), epsilon)


def single_shift(event: GaussianNoise) -> int | None:
    """Return the worst whole move if only one coordinate can move, or None if several can."""
    if event.scalar or event.sensitivity_squared < 2:
        return math.isqrt(math.floor(event.sensitivity_squared))
    return None


def gaussian_delta(event: GaussianNoise, shift: int, epsilon: Fraction) -> arb:
    """Return the exact delta of a move by `shift` in one coordinate."""
    return GaussianLaw(event.sigma).delta(shift, epsilon)


def pure_delta(event: PureChoice | StaircaseNoise, epsilon: Fraction) -> arb:
    """Return the largest delta at `epsilon` of anything event.epsilon-DP: that of randomized response."""
    gap = ball(epsilon - event.epsilon)
    return -gap.expm1() / (1 + (-ball(event.epsilon)).exp()) if epsilon < event.epsilon else arb(0)


def exponential_delta(event: ExponentialChoice, epsilon: Fraction) -> arb:
    """Return the largest delta at `epsilon` of a choice with log-probabilities that move in a range of
    event.epsilon."""
    if epsilon >= event.epsilon:
        return arb(0)
    half_gap = ball((epsilon - event.epsilon) / 2)
    return half_gap.expm1() ** 2 / -(-ball(event.epsilon)).expm1()


def continuous_gaussian_delta(move: arb, epsilon: arb) -> arb:
    """Return the delta of continuous Gaussian noise of deviation 1 for a move of length `move`."""
    root = arb(2).sqrt()
    near, far = (epsilon / move - move / 2) / root, (epsilon / move + move / 2) / root
    # e^epsilon·erfc(far) = e^(-near²)·(e^(far²)·erfc(far)), as far² - near² = epsilon
    less_likely = (-(near**2)).exp() * scaled_erfc(far**2)
    likelier = (-(near**2)).exp() * scaled_erfc(near**2) if near > 9 else near.erfc()
    return (likelier - less_likely) / 2


@dataclass(frozen=True)
class Smoothing:
    """The view of a discrete Gaussian vector as a continuous one, blurred: its deviation, and the price.

    Noise of variance sigma² equals, up to a factor within 1 ± ripple per coordinate, continuous noise of variance
    sigma² - blur² rounded at random with blur².
    """

    blur_squared: Fraction
    moved: int

    def delta(self, sensitivity_squared: Fraction, sigma: Fraction, epsilon: Fraction) -> arb:
        """Return a bound on the delta of every whole move within the sensitivity; 1 if the noise is too narrow."""
        return self.joint_delta([(sensitivity_squared, sigma)], epsilon)

    def joint_delta(self, noises: Sequence[tuple[Fraction, Fraction]], epsilon: Fraction) -> arb:
        """Return the same bound for vectors released together, each by its sensitivity squared and its sigma."""
        ripple = self.ripple()
        if not ripple < 1 or any(sigma**2 <= self.blur_squared for _, sigma in noises):
            return arb(1)
        loss = ball(epsilon) - self.moved * (2 * ripple.log1p() - (-ripple).log1p())
        move = ball(sum(squared / (sigma**2 - self.blur_squared) for squared, sigma in noises)).sqrt()
        return (self.moved * ripple.log1p()).exp() * continuous_gaussian_delta(move, loss)

    def ripple(self) -> arb:
        """Return the bound of twice the sum of exp(-2 pi² blur² k²) over k >= 1."""
        first = (-2 * arb.pi() ** 2 * ball(self.blur_squared)).exp()
        return (2 * first / (1 - first)).upper()


def smoothing(sensitivity_squared: Fraction, epsilon: Fraction, *, bits: int = 43) -> Smoothing:
    """Return a blur at which the ripple over all the coordinates that can move is about 2^-bits of epsilon or of 1."""
    moved = math.floor(sensitivity_squared)
    size = moved.bit_length() + max(0, -_log2(epsilon)) + bits + 3
    return Smoothing(Fraction(math.ceil(size * math.log(2) / (2 * math.pi**2) * 256), 256), moved)


def joint_gaussian_delta(events: Iterable[GaussianNoise], epsilon: Fraction, *, bits: int) -> arb:
    """Return a bound on the delta of Gaussian vectors released together; 1 if one of them is too narrow for it.

    A blur with a larger ripple takes less of the noise away, which is better where sigma is a few steps.
    """
    noises = [(event.sensitivity_squared, event.sigma) for event in events]
    moved = sum(math.floor(squared) for squared, _ in noises)
    return smoothing(Fraction(moved), epsilon, bits=bits).joint_delta(noises, epsilon)


def _log2(value: Fraction) -> int:
    return value.numerator.bit_length() - value.denominator.bit_length() if value else -64


SEARCH_BITS = 128
# Blurs by which several Gaussian vectors are bounded: each bound holds, so the least does.
RIPPLES = (43, 20, 10)
# The Rényi divergence of sampled noise is known at whole orders from 2, and computed up to this one.
ORDER_MOST = 1025
# Orders at which it is read first, all of them whole; then nearer to the best of them.
_ORDERS = tuple(1 + 2**j for j in range(11))
_FINER = tuple(Fraction(5 + j, 10) for j in range(16))


# ---- the cost of an event --------------------------------------------------------------------------------------------


def pure_epsilon(event: Event) -> Fraction | None:
    """Return the event's pure epsilon, or None if no finite one holds.

    >>> pure_epsilon(LaplaceNoise(scale=Fraction(10), sensitivity=Fraction(1)))
    Fraction(1, 10)
    """
    if isinstance(event, LaplaceNoise):
        return event.sensitivity / event.scale
    if isinstance(event, PureChoice | ExponentialChoice | StaircaseNoise):
        return event.epsilon
    return None


@lru_cache(maxsize=4096)
def zcdp(event: Event) -> ZcdpLoss:
    """Return the event's rho, and the chance delta that it does not hold.

    >>> print(zcdp(GaussianNoise(sigma=Fraction(10), sensitivity_squared=Fraction(1))))
    ρ = 0.005
    """
    if isinstance(event, LaplaceNoise):
        return ZcdpLoss(upward(lambda: _laplace_relative_entropy(event)))
    if isinstance(event, GaussianNoise):
        return ZcdpLoss(event.sensitivity_squared / (2 * event.sigma**2))
    if isinstance(event, SubsampledGaussian):  # sampling lowers no rho (docs/proofs/amplification.md)
        return ZcdpLoss(event.rounds * event.sensitivity_squared / (2 * event.sigma**2))
    if isinstance(event, Failing):
        return ZcdpLoss(Fraction(0), event.delta)
    if isinstance(event, PureChoice | StaircaseNoise):
        return ZcdpLoss(pure_to_zcdp(event.epsilon))
    return ZcdpLoss(min(event.epsilon**2 / 8, pure_to_zcdp(event.epsilon)))


def renyi(event: Event, orders: Iterable[Fraction]) -> RenyiLoss:
    """Return the event's Rényi divergence at each order above 1; that of sampled noise only at whole orders."""
    wanted = tuple(sorted(set(orders)))
    if not wanted or wanted[0] <= 1:
        raise InvalidParameter("orders must be one or more numbers above 1\nhint: e.g. orders=[2, 4, 8, 16]")
    if isinstance(event, SubsampledGaussian) and any(
        order.denominator != 1 or not 2 <= order <= ORDER_MOST for order in wanted
    ):
        raise InvalidParameter(
            f"orders of sampled noise must be whole, from 2 to {ORDER_MOST}\nhint: e.g. orders=[2, 4]"
        )
    delta = event.delta if isinstance(event, Failing) else Fraction(0)
    return RenyiLoss(tuple((order, _renyi_at(event, order)) for order in wanted), delta)


@lru_cache(maxsize=4096)
def delta_at(event: Event, epsilon: Fraction) -> Fraction:
    """Return the least delta at which the event is (epsilon, delta)-DP, rounded up; for Gaussian vectors a bound on it.

    >>> float(delta_at(GaussianNoise(Fraction(2), Fraction(1), scalar=True), Fraction(1)))
    0.0072487...
    """
    if epsilon < 0:
        raise InvalidParameter(f"epsilon must be at least 0, not {show(epsilon)}")
    if isinstance(event, Failing):
        return event.delta
    if isinstance(event, SubsampledGaussian):
        return _sampled_delta(event, epsilon)
    formula = delta_formula(event)
    if formula is not None:
        return upward(lambda: formula(epsilon))
    if not isinstance(event, GaussianNoise):
        raise TypeError(f"no delta is known for {type(event).__name__}")
    by_zcdp = zcdp_to_delta(zcdp(event).rho, epsilon)
    smooth = smoothing(event.sensitivity_squared, epsilon)
    return min(by_zcdp, upward(lambda: smooth.delta(event.sensitivity_squared, event.sigma, epsilon)))


@lru_cache(maxsize=1024)
def noise_delta(events: tuple[Event, ...], epsilon: Fraction) -> Fraction:
    """Return a delta at which all draws of one question are (epsilon, delta)-DP together, rounded up.

    Events that only fail are not part of it: they have a separate delta.

    >>> halves = (GaussianNoise(Fraction(10), Fraction(1)), GaussianNoise(Fraction(10), Fraction(1)))
    >>> float(noise_delta(halves, Fraction(1, 2)))
    9.643...e-06
    """
    drawn = [event for event in events if not isinstance(event, Failing)]
    by_zcdp = zcdp_to_delta(sum((zcdp(event).rho for event in drawn), Fraction(0)), epsilon)
    if any(isinstance(event, SubsampledGaussian) for event in drawn):
        if drawn == [one := drawn[0]] and isinstance(one, SubsampledGaussian) and one.rounds == 1:
            return min(by_zcdp, delta_at(one, epsilon), _renyi_delta(Counter(drawn), epsilon))
        from tacit.accounting.composition import numerical_delta  # it needs the names here

        numerical = numerical_delta(drawn, epsilon)
        is_wide = all(event.sigma >= SIGMA_SMOOTH for event in drawn if isinstance(event, SubsampledGaussian))
        # of wide noise the numerical total is the least, and Rényi orders cost as much time again
        return min(
            by_zcdp, numerical if numerical < 1 and is_wide else min(numerical, _renyi_delta(Counter(drawn), epsilon))
        )
    gaussian = [event for event in drawn if isinstance(event, GaussianNoise)]
    if not drawn or len(gaussian) < len(drawn):
        return by_zcdp
    if len(drawn) == 1 and delta_formula(drawn[0]) is not None:
        return min(by_zcdp, delta_at(drawn[0], epsilon))
    return min(by_zcdp, *(upward(partial(joint_gaussian_delta, gaussian, epsilon, bits=b)) for b in RIPPLES))


@lru_cache(maxsize=4096)
def epsilon_at(event: Event, delta: Fraction) -> Fraction:
    """Return the least epsilon at which the event is (epsilon, delta)-DP, rounded up by at most one part in 10^9.

    >>> float(epsilon_at(GaussianNoise(Fraction(10), Fraction(1), scalar=True), Fraction(1, 10**6)))
    0.3967900...
    """
    if isinstance(event, Failing):
        if delta < event.delta:
            raise InvalidParameter(
                f"delta must be at least {show(event.delta)}, the probability that this {_failing_words(event)} fails"
                "\nhint: give a larger delta"
            )
        return Fraction(0)
    if isinstance(event, SubsampledGaussian):
        return _sampled_epsilon(event, delta)
    most = pure_epsilon(event)
    if most is not None and delta == 0:
        return most
    require_chance(delta)
    formula = delta_formula(event)
    if formula is None and isinstance(event, GaussianNoise):
        return _vector_epsilon(event, delta)
    if formula is None:
        raise TypeError(f"no delta is known for {type(event).__name__}")
    guess = most if most is not None else zcdp_to_epsilon(zcdp(event).rho, delta)
    found = _least_epsilon(formula, delta, guess)
    return found if most is None else min(found, most)


def delta_formula(event: Event) -> Callable[[Fraction], arb] | None:
    """Return the function from epsilon to the event's exact delta, or None if only a bound is known."""
    if isinstance(event, LaplaceNoise):
        return lambda epsilon: laplace_delta(event, epsilon)
    if isinstance(event, PureChoice | StaircaseNoise):
        return lambda epsilon: pure_delta(event, epsilon)
    if isinstance(event, ExponentialChoice):
        return lambda epsilon: exponential_delta(event, epsilon)
    shift = single_shift(event) if isinstance(event, GaussianNoise) else None
    if isinstance(event, GaussianNoise) and shift is not None:
        return lambda epsilon: gaussian_delta(event, shift, epsilon)
    return None


def _unsampled(event: SubsampledGaussian) -> GaussianNoise:
    """Return the noise that the sample's statistic has."""
    return GaussianNoise(event.sigma, event.sensitivity_squared)


def _sampled_delta(event: SubsampledGaussian, epsilon: Fraction) -> Fraction:
    """Return rate times the noise's own delta, at the epsilon that sampling lowers to this one (rounded down)."""
    if event.rounds != 1:
        return noise_delta((event,), epsilon)

    def raised() -> arb:
        return (ball(epsilon).expm1() / ball(event.rate)).log1p()

    return shortened(event.rate * delta_at(_unsampled(event), downward(raised)), up=True)


def _sampled_epsilon(event: SubsampledGaussian, delta: Fraction) -> Fraction:
    require_chance(delta)
    if event.rounds != 1:
        raise InvalidParameter("several samples are a batch\nhint: tacit.compose([event], delta=1e-6)")
    if delta >= event.rate:
        return Fraction(0)
    inner = epsilon_at(_unsampled(event), delta / event.rate)

    def lowered() -> arb:
        return (ball(event.rate) * ball(inner).expm1()).log1p()

    return min(inner, upward(lowered))


def _renyi_delta(events: Counter[Event], epsilon: Fraction) -> Fraction:
    """Return the delta that the summed Rényi curve gives at its best order, found coarsely and then finely."""

    def read(order: int) -> tuple[Fraction, int]:
        paid = sum((n * _renyi_at(event, Fraction(order)) for event, n in events.items()), Fraction(0))
        return renyi_to_delta(RenyiLoss(((Fraction(order), paid),)), epsilon), order

    found = [read(order) for order in _ORDERS]
    best = min(found)[1]
    near = {min(max(2, round(best * share)), ORDER_MOST) for share in _FINER} - set(_ORDERS)
    return min(found + [read(order) for order in sorted(near)])[0]


def _failing_words(event: Failing) -> str:
    return "threshold" if isinstance(event, KeyThreshold) else "promise"


def _vector_epsilon(event: GaussianNoise, delta: Fraction) -> Fraction:
    by_zcdp = zcdp_to_epsilon(zcdp(event).rho, delta)
    smooth = smoothing(event.sensitivity_squared, by_zcdp)

    def formula(epsilon: Fraction) -> arb:
        return smooth.delta(event.sensitivity_squared, event.sigma, epsilon)

    if event.sigma**2 <= smooth.blur_squared or not _reached(formula, by_zcdp, delta):
        return by_zcdp
    return min(by_zcdp, _least_epsilon(formula, delta, by_zcdp))


def _least_epsilon(formula: Callable[[Fraction], arb], delta: Fraction, guess: Fraction) -> Fraction:
    """Return the epsilon at which a falling delta meets its goal: searched in floats, then verified, rounded up.

    `guess` is an epsilon known to be enough, and the answer if the search does not find a smaller one.
    """
    if _reached(formula, Fraction(0), delta):
        return Fraction(0)

    def excess(epsilon: float) -> float:
        with working_precision(SEARCH_BITS):
            return log_excess(formula(Fraction(epsilon)), ball(delta))

    start = max(min(float(min(guess, Fraction(10**300))), 1e300), 1e-300)
    found, growth = Fraction(crossing(excess, start)), Fraction(1, 2**40)
    while not _reached(formula, found * (1 + growth), delta):
        growth *= 2
        if growth > 1:
            return guess
    return shortened(found * (1 + growth), up=True)


def _reached(formula: Callable[[Fraction], arb], epsilon: Fraction, delta: Fraction) -> bool:
    return upward(lambda: formula(epsilon)) <= delta


def _laplace_relative_entropy(event: LaplaceNoise) -> arb:
    """Return the relative entropy of a move by the sensitivity, which is the least rho (docs/proofs/losses.md)."""
    rate, whole = ball(1 / event.scale), ball(event.sensitivity / event.scale)
    return whole + (-whole).expm1() * rate / rate.sinh()


def _renyi_at(event: Event, order: Fraction) -> Fraction:
    if isinstance(event, GaussianNoise):
        return order * event.sensitivity_squared / (2 * event.sigma**2)
    if isinstance(event, Failing):
        return Fraction(0)
    if isinstance(event, SubsampledGaussian):
        return event.rounds * upward(partial(_sampled_renyi, replace(event, rounds=Fraction(1)), int(order)))
    if isinstance(event, LaplaceNoise):
        return upward(lambda: _laplace_renyi(event, order))
    by_pure = upward(lambda: _pure_renyi(event.epsilon, order))
    return min(by_pure, order * event.epsilon**2 / 8) if isinstance(event, ExponentialChoice) else by_pure


def _laplace_renyi(event: LaplaceNoise, order: Fraction) -> arb:
    """Return the exact divergence of a move by the sensitivity in one coordinate, the worst of all vectors."""
    rate, whole, a = 1 / event.scale, event.sensitivity / event.scale, 2 * order - 1
    near = -(-ball(rate * (a - 1))).expm1() * (-ball(rate)).exp()
    share = near / ((1 + (-ball(rate)).exp()) * -(-ball(rate * a)).expm1())
    return ball(whole) + (share * (-ball(whole * a)).expm1()).log1p() / ball(order - 1)


def _sampled_renyi(event: SubsampledGaussian, order: int) -> arb:
    """Return a bound on the divergence of the mixture at a whole order, in both directions."""
    rate, squared = ball(event.rate), event.sensitivity_squared / event.sigma**2
    other, beyond = (
        1 - rate,
        arb(0),
    )  # of a moment that is 1 without any move: a rate may be so small that 1 hides it
    for k in range(2, order + 1):
        weight = arb(math.comb(order, k)) * other ** (order - k) * rate**k
        beyond = beyond + weight * ball(k * (k - 1) * squared / 2).expm1()
    return beyond.log1p() / (order - 1)


def _pure_renyi(epsilon: Fraction, order: Fraction) -> arb:
    """Return the divergence of randomized response, the worst of everything epsilon-DP."""
    share = 1 / (1 + ball(epsilon).exp())
    return ball(epsilon) + (share * (-2 * ball((order - 1) * epsilon)).expm1()).log1p() / ball(order - 1)


# From here on the grid's steps no longer show in delta beyond a relative 1e-9, and sigma is searched as a real number.
SIGMA_SMOOTH = 1 << 14
# No table's noise is as wide; past it floats could not even search.
SIGMA_BEYOND = 1e200
# Sigmas are multiples of a power of two that is about 2^-30 of them; finer only if that overshoots.
SIGMA_BITS = (30, 38, 46, 54)


def laplace_scale(sensitivity: Fraction, epsilon: Fraction) -> Fraction:
    """Return the least scale at which Laplace noise hides a move of `sensitivity` in L1 at epsilon.

    >>> laplace_scale(Fraction(1), Fraction(1, 10))
    Fraction(10, 1)
    """
    positive(epsilon, name="epsilon")
    return max(positive(sensitivity, name="sensitivity") / epsilon, SCALE_MIN)


@lru_cache(maxsize=4096)
def gaussian_sigma(sensitivity: Fraction, epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the least sigma, within one part in 10^7, at which one coordinate is (epsilon, delta)-DP.

    The discrete law's own delta is used: above epsilon = 1 it is not monotone in sigma where sigma is small.

    >>> float(gaussian_sigma(Fraction(1), Fraction(1), Fraction(1, 10**6)))
    4.230778...
    """
    _require_target(epsilon, delta)
    shift = math.floor(positive(sensitivity, name="sensitivity"))

    def holds(sigma: Fraction) -> bool:
        return delta_at(GaussianNoise(sigma, Fraction(shift) ** 2, scalar=True), epsilon) <= delta

    if holds(SCALE_MIN):  # always if the sensitivity is below one step, since such moves round to 0
        return SCALE_MIN

    def excess(sigma: float) -> float:
        with working_precision(SEARCH_BITS):
            return log_excess(GaussianLaw(Fraction(sigma)).delta(shift, epsilon), ball(delta))

    continuous = _continuous_sigma(lambda: ball(shift), epsilon, delta)
    if continuous > SIGMA_SMOOTH or 2 * epsilon < shift:  # delta then falls with sigma all the way
        found = crossing(excess, continuous)
    else:
        found = _first_crossing(excess, shift, epsilon, continuous)
    return _verified(holds, found)


@lru_cache(maxsize=4096)
def gaussian_sigma_vector(sensitivity_squared: Fraction, epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return a sigma at which a vector that moves by the root of `sensitivity_squared` in L2 is (epsilon, delta)-DP.

    Exact where only one coordinate can move by one step; otherwise the smaller of two bounds that hold whatever the
    shape of the move: zCDP, and continuous noise blurred onto the grid.
    """
    _require_target(epsilon, delta)
    positive(sensitivity_squared, name="sensitivity_squared")
    if sensitivity_squared < 2:
        return gaussian_sigma(sensitivity_squared, epsilon, delta)

    def holds(sigma: Fraction) -> bool:
        return delta_at(GaussianNoise(sigma, sensitivity_squared), epsilon) <= delta

    if holds(SCALE_MIN):
        return SCALE_MIN
    rho = rho_within(epsilon, delta)
    by_zcdp = math.sqrt(sensitivity_squared / (2 * rho)) if rho else math.inf
    blur = smoothing(sensitivity_squared, epsilon).blur_squared
    continuous = _continuous_sigma(lambda: ball(sensitivity_squared).sqrt(), epsilon, delta)
    found = min(by_zcdp, math.hypot(continuous, math.sqrt(blur)))
    return _verified(holds, found)


def textbook_sigma(move: Fraction, epsilon: Fraction, delta: Fraction, *, scalar: bool) -> Fraction:
    """Return the textbook's √(2 ln(2/δ))·Δ/ε, rounded up, or the least sigma if the discrete delta does not fit there.

    The discrete law's delta need not fall as sigma grows, so the wider sigma is checked by itself.

    >>> round(float(textbook_sigma(Fraction(1), Fraction(1), Fraction(1, 10**6), scalar=True)), 4)
    5.3868
    """
    least = gaussian_sigma(move, epsilon, delta) if scalar else gaussian_sigma_vector(move * move, epsilon, delta)
    formula = rounded_up(lambda: (2 * ball(2 / delta).log()).sqrt() * ball(move / epsilon))
    wider = Fraction(math.ceil(formula * 2**30), 2**30)
    fits = wider >= least and delta_at(GaussianNoise(wider, move * move, scalar=scalar), epsilon) <= delta
    return wider if fits else least


def _require_target(epsilon: Fraction, delta: Fraction) -> None:
    positive(epsilon, name="epsilon")
    require_chance(delta)


def _continuous_sigma(move: Callable[[], arb], epsilon: Fraction, delta: Fraction) -> float:
    def excess(sigma: float) -> float:
        with working_precision(SEARCH_BITS):
            width = ball(Fraction(sigma))
            return log_excess(continuous_gaussian_delta(move() / width, ball(epsilon)), ball(delta))

    with working_precision(SEARCH_BITS):
        # for a wide move's delta; if epsilon is almost 0, delta alone asks for noise of about move/delta
        guess = move() * ((2 * (1 / ball(delta)).log() + ball(epsilon)).sqrt() / ball(epsilon)).min(1 / ball(delta))
        if not guess < SIGMA_BEYOND:
            raise InvalidParameter(
                "this epsilon and delta ask for noise far wider than can be drawn\nhint: give a larger epsilon or delta"
            )
    return crossing(excess, float(guess))


def _first_crossing(excess: Callable[[float], float], shift: int, epsilon: Fraction, about: float) -> float:
    """Return about the least sigma at which delta reaches its goal, among the several at which it may.

    As sigma grows past each value at which the cut between the good and the bad set is a whole number n, delta turns
    from falling to rising: those are its local minima. Between two of them it rises, then falls.
    """
    first = shift // 2 + 1  # the cuts run from here: n - first = 0, 1, ...

    def turning(n: int) -> float:
        return math.sqrt((first + n - Fraction(shift, 2)) * shift / epsilon) * (1 - 1e-15)

    begin = math.floor(epsilon * Fraction(about) ** 2 / shift + Fraction(shift, 2)) - first
    n = least_integer(lambda n: excess(turning(n)) <= 0, max(begin, 0))
    low = turning(n - 1) if n else turning(0) / 2
    while excess(low) <= 0:  # only below the first turning, where delta falls all the way from 1
        low /= 2
    return crossing_between(excess, low, turning(n))


def _verified(holds: Callable[[Fraction], bool], found: float) -> Fraction:
    """Return a short sigma at or just above `found` at which `holds` is certain."""
    for sigma in _candidates(Fraction(found)):
        if holds(sigma):
            return sigma
    raise InvalidParameter("no noise was found for this loss\nhint: please report the epsilon and delta used")


def _candidates(found: Fraction) -> Iterator[Fraction]:
    if found <= SCALE_MIN:
        yield SCALE_MIN
    for bits in SIGMA_BITS:
        yield max(shortened(found, up=True, bits=bits), SCALE_MIN)
    growth = Fraction(1, 2**40)
    while growth < 1:
        yield max(shortened(found * (1 + growth), up=True, bits=60), SCALE_MIN)
        growth *= 2
