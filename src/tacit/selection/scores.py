"""Reads the scores of a selection as whole steps of a public grid, and the terms of the selection.

Floats need a public `step`: each becomes the nearest multiple, so two scores at most x steps apart end at most ⌈x⌉
apart (docs/proofs/selection.md). The type and number of the scores are public and may be refused. Their values are
secret and never refused: beyond ±2^62 they count as that bound, and NaN as the lowest.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.noise import is_float, is_whole
from tacit.numbers import Integers, Number, decimal_meaning, positive, sensitivity_meaning, show
from tacit.privacy import SCALE_MAX, SCALE_MIN

# Two scores within these bounds have a difference that fits int64.
HIGHEST = (1 << 62) - 1
# Above this many steps every float is looked at exactly.
FLOAT_MOST = 2.0**45


def read_scores(scores: object, step: Fraction | None, *, least: int) -> Integers:
    """Return one whole number of steps for each candidate; there must be at least `least` of them."""
    values = _numbers_in(scores)
    if values.ndim != 1:
        raise InvalidParameter(
            f"scores must be one row of numbers, not an array of {values.ndim} dimensions\nhint: scores.ravel()"
        )
    if len(values) < least:
        raise _too_few(len(values), least)
    if values.dtype.kind == "O":
        return _objects_to_steps(values, step)
    if values.dtype.kind == "f":
        if step is None:
            raise _refuse_floats()
        return _floats_to_steps(values.astype(np.float64), step)
    if step is not None and step != 1:
        return _objects_to_steps(values.astype(object), step)
    if values.dtype.kind == "u" and values.dtype.itemsize == 8:
        values = np.minimum(values, np.uint64(HIGHEST))
    steps: Integers = np.clip(values.astype(np.int64), -HIGHEST, HIGHEST)
    return steps


def read_score(score: object, step: Fraction | None) -> int:
    return int(read_scores([score], step, least=1)[0])


def _numbers_in(scores: object) -> NDArray[Any]:
    if isinstance(scores, list | tuple):
        values = np.empty(len(scores), dtype=object)
        values[:] = scores
        kinds = set(map(type, scores))
        if kinds == {int}:
            try:
                return np.array(scores, dtype=np.int64)
            except OverflowError:
                return values
        return values if kinds != {float} else values.astype(np.float64)
    if not hasattr(scores, "__array__") or isinstance(scores, np.generic):
        raise _not_scores(scores)
    array = np.asarray(scores)
    is_number = array.dtype.kind in "iuO" or (array.dtype.kind == "f" and array.dtype.itemsize <= 8)
    if not is_number:
        raise _not_scores(scores)
    return array


def _objects_to_steps(values: NDArray[Any], step: Fraction | None) -> Integers:
    if not all(is_whole(value) or is_float(value) for value in values):
        raise InvalidParameter(
            "every score must be a whole number, or a float of at most 64 bits with a public step"
            "\nhint: count or sum first; a bool is int(flag)"
        )
    if step is None and not all(map(is_whole, values)):
        raise _refuse_floats()
    return np.array([_nearest(value, step or Fraction(1)) for value in values], dtype=np.int64)


def _floats_to_steps(values: NDArray[np.float64], step: Fraction) -> Integers:
    """Return ⌊x/step + ½⌋, by floats where their error cannot reach a half."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        scaled = values / float(step)
        floor = np.floor(scaled)
        over = scaled - floor - 0.5
        near = np.abs(over) <= 2.0**-50 * np.abs(scaled) + 2.0**-50
    near |= ~(np.abs(scaled) < FLOAT_MOST)  # NaN and infinities too
    steps = (np.where(near, 0.0, floor) + (over >= 0)).astype(np.int64)
    for place in np.flatnonzero(near):
        steps[place] = _nearest(float(values[place]), step)
    return steps


def _nearest(value: Any, step: Fraction) -> int:
    """Return the nearest whole number of steps, halves upward, for any number."""
    if not is_whole(value):
        value = float(value)
        if not -np.inf < value < np.inf:
            return HIGHEST if value > 0 else -HIGHEST
    exact = Fraction(int(value)) if is_whole(value) else Fraction(value)
    steps = (2 * exact / step + 1) // 2
    return min(max(int(steps), -HIGHEST), HIGHEST)


def _too_few(found: int, least: int) -> InvalidParameter:
    if found == 0:
        return InvalidParameter("there are no scores to choose from\nhint: give one score per candidate")
    return InvalidParameter(
        f"scores must be of at least {least} candidates, not {found}\nhint: the list of candidates is public; "
        "name them all"
    )


def _refuse_floats() -> InvalidParameter:
    return InvalidParameter(
        "scores must be whole numbers: how far one unit moves a float's last digits is not known exactly"
        "\nhint: give a public grid, e.g. step=0.01, and each score is first put on it"
    )


def _not_scores(scores: object) -> InvalidParameter:
    return InvalidParameter(
        f"scores must be a list or an array of numbers, one per candidate, not {type(scores).__name__}"
        "\nhint: e.g. release([120, 98, 131])"
    )


# Within these a step is an ordinary float too.
STEP_MIN, STEP_MAX = Fraction(1, 10**300), Fraction(10**300)


# ---- the terms of a selection ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SelectionTerms:
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
        """The number of steps that one unit can move a score against another: doubled if scores may move both ways."""
        return self.moves if self.monotone else 2 * self.moves

    @property
    def rate(self) -> Fraction:
        return self.epsilon / self.reach

    def in_units(self, steps: int) -> int | float:
        """Return a gap between two scores on the grid as one between the scores themselves, rounding included."""
        return steps if self.step is None else float((steps + 1) * self.step)

    def words(self) -> str:
        """Return the assumptions about the scores, in words."""
        way = "all in one direction" if self.monotone else "in either direction"
        grid = "" if self.step is None else f" Scores are first put on a public grid of step {show(self.step)}."
        return f"This holds if one unit moves each score by at most {show(self.sensitivity)}, {way}.{grid}"

    def arguments(self) -> str:
        """Return the terms as they were written in the call."""
        grid = "" if self.step is None else f", step={show(self.step)}"
        return f"epsilon={show(self.epsilon)}, sensitivity={show(self.sensitivity)}, monotone={self.monotone}{grid}"


def read_terms(*, epsilon: Number, sensitivity: Number, monotone: bool, step: Number | None) -> SelectionTerms:
    """Return the terms; refuse those that break a rule."""
    if not isinstance(monotone, bool):
        raise InvalidParameter(
            f"monotone must be True or False, not {type(monotone).__name__}"
            "\nhint: True if one unit moves all scores in the same direction, as counts under add/remove"
        )
    terms = SelectionTerms(
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
            f"epsilon and sensitivity ask for noise of {show(1 / rate)} grid steps; the noise must lie between "
            "1/10^6 and 2^56\nhint: give another epsilon, or a finer or coarser step"
        )
