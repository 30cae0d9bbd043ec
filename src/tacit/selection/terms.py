"""What every selection is told: the loss, how far one unit moves a score, which way, and on which grid.

From those come the whole number of steps a score can move and the rate at which noise hides them.
"""

from dataclasses import dataclass
from fractions import Fraction

from tacit.errors import InvalidParameter
from tacit.noise.mechanism import sensitivity_meaning
from tacit.privacy.law import SCALE_MAX, SCALE_MIN
from tacit.privacy.number import Number, decimal_meaning, positive, show

# Within these a step is an ordinary float too.
STEP_MIN, STEP_MAX = Fraction(1, 10**300), Fraction(10**300)


@dataclass(frozen=True)
class Terms:
    """The public terms of a selection, as exact rationals."""

    epsilon: Fraction
    sensitivity: Fraction
    monotone: bool
    step: Fraction | None

    @property
    def moves(self) -> int:
        """How many whole steps one unit can move a score, rounding to the grid included."""
        if self.step is None:
            return int(self.sensitivity)
        return -int(-self.sensitivity / self.step // 1)

    @property
    def reach(self) -> int:
        """How many steps one unit can move a score against another: twice as many if scores may move both ways."""
        return self.moves if self.monotone else 2 * self.moves

    @property
    def rate(self) -> Fraction:
        """The loss per step."""
        return self.epsilon / self.reach

    def in_units(self, steps: int) -> int | float:
        """Return a gap between two scores on the grid as one between the scores themselves, rounding included."""
        return steps if self.step is None else float((steps + 1) * self.step)

    def words(self) -> str:
        """Return what is assumed of the scores, in words."""
        way = "all in one direction" if self.monotone else "in either direction"
        grid = "" if self.step is None else f" Scores are first put on a public grid of step {show(self.step)}."
        return f"It holds if one unit moves each score by at most {show(self.sensitivity)}, {way}.{grid}"

    def arguments(self) -> str:
        """Return the terms as they were written in the call."""
        grid = "" if self.step is None else f", step={show(self.step)}"
        return f"epsilon={show(self.epsilon)}, sensitivity={show(self.sensitivity)}, monotone={self.monotone}{grid}"


def read_terms(*, epsilon: Number, sensitivity: Number, monotone: bool, step: Number | None) -> Terms:
    """Return the terms, or refuse what breaks a rule."""
    if not isinstance(monotone, bool):
        raise InvalidParameter(
            f"monotone must be True or False, not {type(monotone).__name__}"
            "\nhint: True if one unit moves all scores in the same direction, as counts under add/remove"
        )
    terms = Terms(
        epsilon=positive(decimal_meaning(epsilon, name="epsilon"), name="epsilon"),
        sensitivity=sensitivity_meaning(sensitivity),
        monotone=monotone,
        step=None if step is None else positive(decimal_meaning(step, name="step"), name="step"),
    )
    if terms.step is not None and not STEP_MIN <= terms.step <= STEP_MAX:
        raise InvalidParameter(f"step must lie between 1e-300 and 1e300, not {show(terms.step)}")
    if terms.moves < 1:
        raise InvalidParameter(
            f"sensitivity must be at least 1 for whole-number scores, not {show(terms.sensitivity)}"
            "\nhint: for scores that are not whole numbers give a public grid, e.g. step=0.01"
        )
    check_rate(terms.rate)
    return terms


def check_rate(rate: Fraction) -> None:
    """Refuse noise that is narrower or wider than can be drawn."""
    if not SCALE_MIN <= 1 / rate <= SCALE_MAX:
        raise InvalidParameter(
            f"epsilon and sensitivity ask for noise of {show(1 / rate)} grid steps; it must lie between 1/10^6 and 2^56"
            "\nhint: give another epsilon, or a finer or coarser step"
        )
