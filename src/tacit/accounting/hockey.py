"""The hockey-stick delta of noise at an epsilon, as balls: exact for one coordinate, a proved bound for several.

Proofs: docs/proofs/losses.md (one coordinate, and Laplace vectors) and docs/proofs/gaussian-vector.md.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from tacit.privacy.event import ExponentialChoice, GaussianNoise, LaplaceNoise, PureChoice, StaircaseNoise
from tacit.privacy.gaussian_law import scaled_erfc
from tacit.privacy.law import GaussianLaw, LaplaceLaw
from tacit.privacy.rounding import ball


def laplace_delta(event: LaplaceNoise, epsilon: Fraction) -> arb:
    """Return the exact delta: for any vector the worst move is all of the sensitivity in one coordinate."""
    return LaplaceLaw(event.scale).delta(math.floor(event.sensitivity), epsilon)


def single_shift(event: GaussianNoise) -> int | None:
    """Return the worst whole move where only one coordinate can move, or None where several can."""
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
    """Return the largest delta at `epsilon` of a choice whose log-probabilities move in a range of event.epsilon."""
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
    """How a discrete Gaussian vector is seen as a continuous one, blurred: with what deviation, and at what price.

    Noise of variance sigma² is, but for a factor within 1 ± ripple per coordinate, continuous noise of variance
    sigma² - blur² rounded at random with blur².
    """

    blur_squared: Fraction
    moved: int

    def delta(self, sensitivity_squared: Fraction, sigma: Fraction, epsilon: Fraction) -> arb:
        """Return a bound on the delta of every whole move within the sensitivity; 1 where the noise is too narrow."""
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
    """Return a bound on the delta of Gaussian vectors released together; 1 where one of them is too narrow for it.

    A blur with a larger ripple takes less of the noise away, which is better where sigma is a few steps.
    """
    noises = [(event.sensitivity_squared, event.sigma) for event in events]
    moved = sum(math.floor(squared) for squared, _ in noises)
    return smoothing(Fraction(moved), epsilon, bits=bits).joint_delta(noises, epsilon)


def _log2(value: Fraction) -> int:
    return value.numerator.bit_length() - value.denominator.bit_length() if value else -64
