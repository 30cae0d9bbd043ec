"""Put numbers on a public grid, in whole steps, and take noisy steps back to numbers.

The step is chosen from public parameters alone: 1 for integers, a power of two for floats. Rounding happens before
noise and its effect is part of the sensitivity; nothing is rounded after. No value makes it fail: NaN counts as 0 and
an infinity as the largest float of its sign.
"""

from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter

# |steps| below this, plus noise below 2^62, fits int64.
SMALL = 1 << 62
LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Steps:
    """Exact values in whole steps, still secret, with what is needed to give noisy ones the same form."""

    values: NDArray[Any]  # int64, or Python integers where they are large
    is_float: bool
    shape: tuple[int, ...] | None  # None: a scalar


def float_step(sensitivity: Fraction, *, spread: int) -> Fraction:
    """Return the largest power of two at most sensitivity / (1000·spread): rounding adds at most 0.1 %.

    >>> float_step(Fraction(1), spread=1)
    Fraction(1, 1024)
    """
    target = sensitivity / (1000 * spread)
    exponent = target.numerator.bit_length() - target.denominator.bit_length()
    step = Fraction(2) ** exponent
    return step if step <= target else step / 2


def read(exact: object) -> tuple[NDArray[Any], bool, tuple[int, ...] | None]:
    """Return the values as a flat array, whether they are floats, and their shape (None for a scalar).

    What kind of thing it is, is public and may be refused; what it holds is secret and never refused.
    """
    if isinstance(exact, bool | np.bool_):
        raise _refuse(exact)
    if isinstance(exact, Integral):
        return np.array([int(exact)], dtype=object), False, None
    if isinstance(exact, Real):
        return np.array([float(exact)]), True, None
    if isinstance(exact, str | bytes) or not (hasattr(exact, "__array__") or isinstance(exact, list | tuple)):
        raise _refuse(exact)
    array = np.asarray(exact)
    if array.dtype.kind in "iu" or (array.dtype.kind == "O" and all(_is_whole(value) for value in array.flat)):
        return array.ravel(), False, array.shape
    if array.dtype.kind == "f":
        return array.ravel().astype(np.float64), True, array.shape
    raise _refuse(exact)


def to_steps(values: NDArray[Any], step: Fraction) -> NDArray[Any]:
    """Return each value as its nearest whole number of steps (halves to even), without error."""
    if values.dtype.kind != "f":
        return _as_small(values)
    finite = np.nan_to_num(values, nan=0.0, posinf=LARGEST, neginf=-LARGEST)
    with np.errstate(over="ignore", under="ignore"):
        scaled = np.rint(finite * float(1 / step)) if _is_normal(1 / step) else np.full(len(finite), np.inf)
    if not (np.abs(scaled) < SMALL).all():
        return np.array([round(Fraction(float(value)) / step) for value in finite], dtype=object)
    return scaled.astype(np.int64)


def add_steps(exact: NDArray[Any], noise: NDArray[Any]) -> NDArray[Any]:
    """Return the sums, in Python integers unless both sides are small."""
    if exact.dtype == object or noise.dtype == object:
        return _as_small(exact.astype(object) + noise.astype(object))
    if len(noise) and int(np.abs(noise).max()) >= SMALL:
        return exact.astype(object) + noise.astype(object)
    return exact + noise


def from_steps(noisy: NDArray[Any], step: Fraction, *, is_float: bool, shape: tuple[int, ...] | None) -> Any:
    """Return noisy steps as numbers of the form that came in: post-processing."""
    if not is_float:
        return int(noisy[0]) if shape is None else noisy.reshape(shape)
    numbers = np.array([_float(int(value) * step) for value in noisy]) if noisy.dtype == object else noisy * float(step)
    return float(numbers[0]) if shape is None else numbers.reshape(shape)


def _as_small(values: NDArray[Any]) -> NDArray[Any]:
    """Return int64 where every value is well inside it, otherwise Python integers."""
    if values.dtype.kind == "i":
        values = values.astype(np.int64)
        return values if not len(values) or (values.min() > -SMALL and values.max() < SMALL) else values.astype(object)
    integers = [int(value) for value in values]
    small = all(-SMALL < value < SMALL for value in integers)
    return np.array(integers, dtype=np.int64 if small else object)


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_normal(value: Fraction) -> bool:
    return Fraction(2) ** -1000 < value < Fraction(2) ** 1000


def _float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return LARGEST if value > 0 else -LARGEST


def _refuse(exact: object) -> InvalidParameter:
    return InvalidParameter(
        f"release takes an integer, a float, or an array of them, not {type(exact).__name__}"
        "\nhint: count or sum first; a bool is int(flag), a list of numbers is an array"
    )
