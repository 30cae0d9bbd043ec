"""Put numbers on a public grid, in whole steps, and take noisy steps back to numbers.

The step is chosen only from public parameters: 1 for integers, a power of two for floats. Rounding happens before noise
and its effect is part of the sensitivity; after the noise, values are never rounded. No value makes it fail: NaN counts
as 0 and an infinity as the largest float of its sign. The result, its type included, depends only on the noisy steps.
"""

from fractions import Fraction
from numbers import Integral
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter

# Two integers below this in size have a sum that fits int64.
SMALL = 1 << 62
LARGEST = float(np.finfo(np.float64).max)
# Between these, int64 steps times the step are ordinary floats: neither too large nor subnormal.
STEP_ORDINARY = (Fraction(2) ** -900, Fraction(2) ** 900)


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

    The kind of a value is public and may be refused; its content is secret and never refused. Kinds that a
    64-bit float cannot hold exactly are refused: rounding them would move them by more than the grid accounts for.
    """
    if is_whole(exact):
        number = int(exact)
        return np.array([number], dtype=np.int64 if -SMALL < number < SMALL else object), False, None
    if is_float(exact):
        return np.array([exact], dtype=np.float64), True, None
    if isinstance(exact, list | tuple):
        return _read_objects(np.array(exact, dtype=object), exact)
    if not hasattr(exact, "__array__") or isinstance(exact, np.generic):
        raise _unreadable(exact)
    array = np.asarray(exact)
    if array.dtype.kind in "iu":
        return array.ravel(), False, array.shape
    if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
        return array.ravel().astype(np.float64), True, array.shape
    if array.dtype.kind == "O":
        return _read_objects(array, exact)
    raise _unreadable(exact)


def to_steps(values: NDArray[Any], step: Fraction) -> NDArray[Any]:
    """Return each value as its nearest whole number of steps (halves to even), without error."""
    if values.dtype.kind == "f":
        return _floats_to_steps(values, step)
    if values.dtype.kind == "O":
        return np.array([_nearest_step(value, step) for value in values], dtype=object)
    return values.astype(np.int64) if np.can_cast(values.dtype, np.int64) else values.astype(object)


def add_steps(exact: NDArray[Any], noise: NDArray[Any]) -> NDArray[Any]:
    """Return the sums: int64 if all of them fit it, Python integers otherwise, for any types of the two sides.

    Privacy: the noise's own; the noise is added in full, without wrapping around.
    """
    sums: NDArray[Any]
    if _is_small(exact) and _is_small(noise):
        sums = exact + noise
        return sums
    sums = exact.astype(object) + noise.astype(object)
    fits = all(-(1 << 63) <= value < 1 << 63 for value in sums)
    return sums.astype(np.int64) if fits else sums


def from_steps(noisy: NDArray[Any], step: Fraction, *, is_float: bool, shape: tuple[int, ...] | None) -> Any:
    """Return noisy steps as numbers of the kind that came in: post-processing."""
    if not is_float:
        return int(noisy[0]) if shape is None else noisy.reshape(shape)
    if noisy.dtype == np.int64 and STEP_ORDINARY[0] < step < STEP_ORDINARY[1]:
        numbers = noisy * float(step)
    else:
        numbers = np.array([_float_of(int(value) * step) for value in noisy], dtype=np.float64)
    return float(numbers[0]) if shape is None else numbers.reshape(shape)


def _read_objects(array: NDArray[Any], exact: object) -> tuple[NDArray[Any], bool, tuple[int, ...]]:
    flat = array.ravel()
    whole = [is_whole(value) for value in flat]
    if not all(is_whole or is_float(value) for is_whole, value in zip(whole, flat, strict=True)):
        raise _unreadable(exact)
    if not any(whole):  # only floats, or nothing
        return flat.astype(np.float64), True, array.shape
    return flat, not all(whole), array.shape


def _floats_to_steps(values: NDArray[np.float64], step: Fraction) -> NDArray[Any]:
    finite = np.nan_to_num(values, nan=0.0, posinf=LARGEST, neginf=-LARGEST)
    if STEP_ORDINARY[0] < step < STEP_ORDINARY[1]:
        with np.errstate(over="ignore", under="ignore"):
            scaled = np.rint(finite * float(1 / step))  # exact: the step is a power of two
        if (np.abs(scaled) < SMALL).all():
            return scaled.astype(np.int64)
    return np.array([_nearest_step(float(value), step) for value in finite], dtype=object)


def _nearest_step(value: float, step: Fraction) -> int:
    """The same rounding as the vectorised one, for a number of any size."""
    if is_whole(value):
        return int(value) if step == 1 else round(Fraction(int(value)) / step)
    return round(Fraction(float(np.nan_to_num(value, nan=0.0, posinf=LARGEST, neginf=-LARGEST))) / step)


def _is_small(values: NDArray[Any]) -> bool:
    if values.dtype != np.int64:
        return False
    return not len(values) or bool(values.min() > -SMALL and values.max() < SMALL)


def is_whole(value: object) -> TypeGuard[Integral]:
    """Whether this is a whole number, and not a bool."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_float(value: object) -> bool:
    """Whether this is a float that 64 bits hold."""
    return isinstance(value, float | np.float32 | np.float16)


def _float_of(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return LARGEST if value > 0 else -LARGEST


def _unreadable(exact: object) -> InvalidParameter:
    return InvalidParameter(
        f"release takes an integer, a float of at most 64 bits, or an array of them, not {type(exact).__name__}"
        "\nhint: count or sum first; a bool is int(flag), a fraction or a wider float is float(value)"
    )
