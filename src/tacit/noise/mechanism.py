"""The Laplace and Gaussian mechanisms: the least noise for the stated loss, added to numbers and vectors.

Tables, ledgers and questions are left to others: a caller that releases twice has spent twice.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf, isqrt, nextafter
from pathlib import Path
from typing import Any, Generic, TypeVar

from tacit.accounting import gaussian_sigma, gaussian_sigma_vector, laplace_scale, textbook_sigma
from tacit.errors import InvalidParameter
from tacit.noise import grid
from tacit.noise.gaussian import DiscreteGaussian
from tacit.noise.laplace import DiscreteLaplace
from tacit.noise.threshold import IntegerNoise
from tacit.numbers import (
    Number,
    confidence_meaning,
    decimal_meaning,
    positive,
    sensitivity_meaning,
    show,
    whole,
)
from tacit.privacy import SCALE_MAX, ApproximateLoss, GaussianNoise, LaplaceNoise, PureLoss, delta_meaning, large_words

FRACTIONAL = "A fractional sensitivity means float values: they get noise in whole steps of a public grid."
TOO_WIDE = "Integers would need noise wider than can be drawn: release them as floats, on a coarser grid."

Drawn = TypeVar("Drawn", LaplaceNoise, GaussianNoise)


@dataclass(frozen=True)
class NoiseDraw(Generic[Drawn]):
    """The grid, the noise and the event of one release; the event is in steps of the grid."""

    step: Fraction
    noise: IntegerNoise
    event: Drawn


class AdditiveMechanism(ABC, Generic[Drawn]):
    """What the two mechanisms share: the event and the error of a release, and both in words."""

    sensitivity: Fraction
    epsilon: Fraction
    norm: str

    @property
    @abstractmethod
    def loss(self) -> PureLoss | ApproximateLoss:
        """The loss of one release."""

    @abstractmethod
    def draw_for(self, size: int, *, is_float: bool) -> NoiseDraw[Drawn]:
        """Return the noise for `size` numbers, or refuse if it is wider than can be drawn."""

    @abstractmethod
    def _integer_words(self) -> str | None:
        """Return the noise that integers get, in words; None if it is wider than can be drawn."""

    @property
    def event(self) -> Drawn:
        """The event of one release: of an integer, or of a float if the sensitivity is not a whole number."""
        return self.event_of()

    def event_of(self, *, size: int = 1, dtype: type | None = None) -> Drawn:
        """Return the event that records a release of `size` numbers of this type, in steps of its grid."""
        return self.draw_for(whole(size, name="size"), is_float=_is_float(dtype, self.sensitivity)).event

    def error(self, confidence: Number = 0.95, *, coordinates: int = 1, dtype: type | None = None) -> int | float:
        """Return the least a such that, with this confidence, all of `coordinates` outputs are off by at most a.

        For floats that includes half a step, which rounding to the grid can add, and is rounded up. `dtype` is int or
        float; by default it is float if the sensitivity is not a whole number.
        """
        size, is_float = whole(coordinates, name="coordinates"), _is_float(dtype, self.sensitivity)
        draw = self.draw_for(size, is_float=is_float)
        steps = draw.noise.law.smallest_bound(1 - confidence_meaning(confidence), size)
        return _float_at_least((steps + Fraction(1, 2)) * draw.step) if is_float else steps

    @property
    def std(self) -> float:
        """The standard deviation of one output's noise: of an integer, or of a float by default."""
        draw = self.draw_for(1, is_float=_is_float(None, self.sensitivity))
        return float(draw.noise.law.variance().sqrt()) * float(draw.step)

    def probabilities(self, within: int = 5) -> dict[int, float]:
        """Return the probability of each step of noise on one output, from -within to within; a step is 1 for integers.

        >>> import tacit
        >>> round(tacit.Laplace(sensitivity=1, epsilon=1).probabilities(1)[0], 4)
        0.4621
        """
        law = self.draw_for(1, is_float=_is_float(None, self.sensitivity)).noise.law
        most = whole(within, name="within")
        return {step: float(law.pmf(step)) for step in range(-most, most + 1)}

    def plot(self, path: str | Path | None = None) -> Any:
        """Return a picture of the law of the noise on one output, out to 99 % of it; with a path, write it there.

        The path ends in .png, .svg or .html. Needs the `plots` extra.
        """
        from tacit.pictures import BLUE, Axis, LevelLine, Look, as_chart, line_panel, page, write

        draw = self.draw_for(1, is_float=_is_float(None, self.sensitivity))
        reach = max(3, draw.noise.law.smallest_bound(Fraction(1, 100), 1))
        shown = range(-reach, reach + 1, ceil(reach / 200))  # at most 400 points
        points = [("law", float(step * draw.step), float(draw.noise.law.pmf(step))) for step in shown]
        of = "one number" if draw.step == 1 else f"one number, in steps of {show(draw.step)}"
        panel = line_panel(
            points,
            {"law": Look("probability", BLUE, size=25)},
            x=Axis(f"noise on {of}"),
            y=Axis("probability", zero=True),
            levels=(LevelLine(0, ""),),
        )
        within = f"95 % of draws are within ± {show(Fraction(self.error()))}; standard deviation {self.std:.3g}"
        spec = page(panel, title=f"{self!r}", notes=[f"{self.loss}", within], letters=(64, 90))
        return as_chart(spec) if path is None else write(spec, Path(path))

    def explain(self) -> str:
        """Return what it does, in words and numbers."""
        is_whole = _is_whole(self.sensitivity)
        of_integers = self._integer_words() if is_whole else None
        kind: type = float if of_integers is None else int

        def within(confidence: float, coordinates: int = 1, dtype: type = kind) -> str:
            bound = self.error(confidence, coordinates=coordinates, dtype=dtype)
            return show(Fraction(bound)) if bound < inf else "inf"

        return "\n".join(
            [
                f"{type(self).__name__} mechanism: {self.loss} for anything one unit moves by at most "
                f"{show(self.sensitivity)} ({self.norm}).",
                of_integers or (TOO_WIDE if is_whole else FRACTIONAL),
                f"95 % of answers are within {within(0.95)} of the truth, 99 % within {within(0.99)}; "
                f"all of 100 at once within {within(0.95, 100)} (95 %).",
                f"Floats are first put on a public grid of step {show(self.draw_for(1, is_float=True).step)}, "
                "which adds at most 0.1 % to the sensitivity"
                + (f"; 95 % of them are within {within(0.95, dtype=float)}." if kind is int else "."),
                *warning(self.epsilon),
            ]
        )

    def _noisy(self, exact: Any) -> Any:
        """Return `exact` plus this mechanism's noise, in the form it came."""
        values, is_float, shape = grid.read(exact)
        draw = self.draw_for(max(1, len(values)), is_float=is_float)
        noisy = grid.add_steps(grid.to_steps(values, draw.step), draw.noise.sample(len(values)))
        return grid.from_steps(noisy, draw.step, is_float=is_float, shape=shape)


class Laplace(AdditiveMechanism[LaplaceNoise]):
    """The Laplace mechanism, for anything one unit moves by at most `sensitivity` in L1.

    Privacy: `release` is epsilon-DP for any value, integer or float, scalar or vector, that one unit can move by at
    most `sensitivity` in the sum of its coordinates. Exact: no floating point decides (docs/proofs/laplace.md).

    >>> import tacit
    >>> counting = tacit.Laplace(sensitivity=1, epsilon=1)
    >>> counting.error(confidence=0.95)
    3
    """

    norm: str = "L1"

    def __init__(self, *, sensitivity: Number = 1, epsilon: Number) -> None:
        self.sensitivity = sensitivity_meaning(sensitivity)
        self.epsilon: Fraction = positive(decimal_meaning(epsilon, name="epsilon"), name="epsilon")
        self.draw_for(1, is_float=True)  # refuses parameters with noise that cannot be drawn

    @property
    def loss(self) -> PureLoss:
        """The loss of one release."""
        return PureLoss(self.epsilon)

    def release(self, exact: Any) -> Any:
        """Return `exact` plus noise, in the form it came: an int, a float, or an array of its shape.

        Privacy: epsilon-DP; every output lies on a public grid, so no digit of it reveals the input.
        """
        return self._noisy(exact)

    def __repr__(self) -> str:
        return f"Laplace(sensitivity={show(self.sensitivity)}, epsilon={show(self.epsilon)})"

    def draw_for(self, size: int, *, is_float: bool) -> NoiseDraw[LaplaceNoise]:
        step = grid.float_step(self.sensitivity, spread=size) if is_float else Fraction(1)
        # rounding to the nearest step moves each coordinate's difference by at most one step
        steps = Fraction(int(self.sensitivity / step) + size) if is_float else self.sensitivity
        scale = _require_drawable(laplace_scale(steps, self.epsilon))
        return NoiseDraw(step, DiscreteLaplace(scale), LaplaceNoise(scale, steps))

    @property
    def scale(self) -> Fraction:
        """The scale of the noise: sensitivity / epsilon."""
        return laplace_scale(self.sensitivity, self.epsilon)

    def _integer_words(self) -> str | None:
        scale = laplace_scale(self.sensitivity, self.epsilon)
        if scale > SCALE_MAX:
            return None
        divided = f"{show(self.sensitivity)}/{show(self.epsilon)}"
        return f"Integers get discrete Laplace noise of scale {divided} = {show(scale)}."


class Gaussian(AdditiveMechanism[GaussianNoise]):
    """The Gaussian mechanism, for anything one unit moves by at most `sensitivity` in L2.

    Privacy: `release` is (epsilon, delta)-DP for any value, integer or float, scalar or vector, that one unit can move
    by at most `sensitivity` in Euclidean length. The discrete law's own delta is used for scalars and zCDP for
    vectors (docs/proofs/gaussian.md). With `textbook`, sigma is the textbook's √(2 ln(2/δ))·Δ/ε, which is larger and
    is proved for epsilon up to 1 only; it is checked by the same discrete delta before it is drawn.

    >>> import tacit
    >>> tacit.Gaussian(sensitivity=1, epsilon=1, delta=1e-6).error(confidence=0.95)
    8
    >>> round(float(tacit.Gaussian(sensitivity=1, epsilon=1, delta=1e-6, textbook=True).sigma), 4)
    5.3868
    """

    norm: str = "L2"

    def __init__(self, *, sensitivity: Number = 1, epsilon: Number, delta: Number, textbook: bool = False) -> None:
        self.sensitivity = sensitivity_meaning(sensitivity)
        self.epsilon: Fraction = positive(decimal_meaning(epsilon, name="epsilon"), name="epsilon")
        self.delta: Fraction = positive(delta_meaning(delta), name="delta")
        self.textbook = textbook
        if textbook and self.epsilon > 1:
            raise InvalidParameter(
                f"the textbook's formula is proved for epsilon up to 1, not {show(self.epsilon)}"
                "\nhint: leave out textbook=True: the usual sigma is exact for every epsilon"
            )
        self.draw_for(1, is_float=True)  # refuses parameters with noise that cannot be drawn

    @property
    def loss(self) -> ApproximateLoss:
        """The loss of one release."""
        return ApproximateLoss(self.epsilon, self.delta)

    def release(self, exact: Any) -> Any:
        """Return `exact` plus noise, in the form it came: an int, a float, or an array of its shape.

        Privacy: (epsilon, delta)-DP; every output lies on a public grid, so no digit of it reveals the input.
        """
        return self._noisy(exact)

    def __repr__(self) -> str:
        textbook = ", textbook=True" if self.textbook else ""
        return (
            f"Gaussian(sensitivity={show(self.sensitivity)}, epsilon={show(self.epsilon)}, "
            f"delta={show(self.delta)}{textbook})"
        )

    def draw_for(self, size: int, *, is_float: bool) -> NoiseDraw[GaussianNoise]:
        root = isqrt(size - 1) + 1  # at least the square root of size
        step = grid.float_step(self.sensitivity, spread=root) if is_float else Fraction(1)
        steps = self.sensitivity / step + root if is_float else self.sensitivity
        sigma = _require_drawable(self._sigma_for(steps, scalar=size == 1))
        return NoiseDraw(step, DiscreteGaussian(sigma), GaussianNoise(sigma, steps * steps, scalar=size == 1))

    @property
    def sigma(self) -> Fraction:
        """The sigma of the noise on one number: the least that the discrete law needs, or the textbook's."""
        return self._sigma_for(self.sensitivity, scalar=True)

    def _sigma_for(self, move: Fraction, *, scalar: bool) -> Fraction:
        """Return the sigma for an exact value that one unit moves by `move` in Euclidean length."""
        if self.textbook:
            return textbook_sigma(move, self.epsilon, self.delta, scalar=scalar)
        if scalar:
            return gaussian_sigma(move, self.epsilon, self.delta)
        return gaussian_sigma_vector(move * move, self.epsilon, self.delta)

    def _integer_words(self) -> str | None:
        many = self._sigma_for(self.sensitivity, scalar=False)
        if many > SCALE_MAX:
            return None
        one = show(self.sigma)
        return f"An integer gets discrete Gaussian noise of sigma {one}; for several integers, it is {show(many)} each."


def warning(epsilon: Fraction) -> list[str]:
    """Return a line of warning where epsilon is too large to mean much."""
    words = large_words(epsilon)
    return [] if words is None else [f"Warning: {words}."]


def _require_drawable(scale: Fraction) -> Fraction:
    """Return the noise's scale in grid steps, or refuse one wider than can be drawn."""
    if scale > SCALE_MAX:
        raise InvalidParameter(
            f"epsilon and sensitivity ask for noise of {show(scale)} grid steps, and at most 2^56 can be drawn"
            "\nhint: give a larger epsilon; integers of a wide range can be released as floats, on a coarser grid"
        )
    return scale


def _is_float(dtype: type | None, sensitivity: Fraction) -> bool:
    if dtype not in (int, float, None):
        raise InvalidParameter("dtype must be int or float")
    return dtype is float if dtype is not None else not _is_whole(sensitivity)


def _is_whole(sensitivity: Fraction) -> bool:
    """Whether the sensitivity is a whole number; if not, released values are taken to be floats."""
    return sensitivity.denominator == 1


def _float_at_least(exact: Fraction) -> float:
    try:
        nearest = float(exact)
    except OverflowError:
        return inf
    return nearest if Fraction(nearest) >= exact else nextafter(nearest, inf)
