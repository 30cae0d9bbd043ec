"""Read answers and reports as codes 0, …, k-1 of a public domain; what lies outside it is refused and never quoted."""

from collections.abc import Hashable, Iterable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.noise.threshold import Integers

CATEGORIES_MAX = 2**31

Codes = tuple[Integers, tuple[int, ...] | None]


def read_categories(categories: Iterable[Hashable] | None) -> tuple[Hashable, ...] | None:
    """Return the categories in the order given, at least two and all different; None stands for 0 and 1."""
    if categories is None:
        return None
    if isinstance(categories, str | bytes) or not isinstance(categories, Iterable):
        raise InvalidParameter("categories must be a list\nhint: e.g. categories=['red', 'green', 'blue']")
    listed = tuple(categories)
    try:
        different = len(set(listed))
    except TypeError:
        raise InvalidParameter("categories must be plain values, such as text or numbers") from None
    if different < len(listed):
        raise InvalidParameter("categories must differ from each other\nhint: True is 1, and 1.0 too")
    if not 2 <= different <= CATEGORIES_MAX:
        raise InvalidParameter(
            f"categories must be at least two, not {different}\nhint: with one category there is nothing to hide"
        )
    return listed


def read_bits(given: Any, name: str) -> Codes:
    """Return zeros and ones, bools included, and their shape (None for one alone)."""
    if isinstance(given, bool | np.bool_ | Integral):
        values, shape = np.array([int(given)], dtype=object), None
    else:
        array = _array(given, name)
        if array.dtype.kind == "O" and not all(isinstance(value, bool | np.bool_ | Integral) for value in array.flat):
            raise _outside_bits(name)
        if array.dtype.kind not in "biuO" and array.size:
            raise _outside_bits(name)
        values, shape = array.ravel(), array.shape
    if len(values) and not ((values == 0) | (values == 1)).all():
        raise _outside_bits(name)
    return values.astype(np.int64), shape


def read_members(given: Any, categories: tuple[Hashable, ...], name: str) -> Codes:
    """Return each value's place among the categories, and their shape (None for one alone)."""
    code = {category: place for place, category in enumerate(categories)}
    if _is_one(given, code):
        return np.array([code[given]], dtype=np.int64), None
    array = _array(given, name)
    if array.dtype.kind in "iu" and categories == tuple(range(len(categories))):
        if array.size and not 0 <= int(array.min()) <= int(array.max()) < len(categories):
            raise _outside(name)
        return array.ravel().astype(np.int64), array.shape
    if array.dtype.kind in "iuU":
        distinct, places = np.unique(array, return_inverse=True)
        codes = _look_up(distinct.tolist(), code, name)[places.ravel()]
    else:
        codes = _look_up(array.ravel().tolist(), code, name)
    return codes, array.shape


def as_array(categories: tuple[Hashable, ...]) -> NDArray[Any]:
    """Return the categories as an array to pick from: of integers or text where all are, of objects otherwise."""
    kinds = set(map(type, categories))
    if kinds == {str} or (kinds == {int} and max(map(abs, categories)) < 2**63):  # type: ignore[arg-type]
        return np.array(categories)
    array = np.empty(len(categories), dtype=object)
    array[:] = categories
    return array


def _look_up(values: list[Any], code: dict[Hashable, int], name: str) -> Integers:
    try:
        return np.array([code[value] for value in values], dtype=np.int64)
    except (KeyError, TypeError):
        raise _outside(name) from None


def _is_one(given: Any, code: dict[Hashable, int]) -> bool:
    try:
        return given in code
    except TypeError:
        return False


def _array(given: Any, name: str) -> NDArray[Any]:
    if isinstance(given, list | tuple):
        kinds = set(map(type, given))
        if kinds <= {int} or kinds <= {bool} or kinds <= {str}:
            return np.array(given, dtype=object if kinds == {int} and _is_wide(given) else None)
        array = np.empty(len(given), dtype=object)
        array[:] = given
        return array
    if isinstance(given, str | bytes | np.generic) or not hasattr(given, "__array__"):
        raise _outside(name)
    return np.asarray(given)


def _is_wide(given: Any) -> bool:
    return any(abs(value) >> 62 for value in given)


def _outside_bits(name: str) -> InvalidParameter:
    return InvalidParameter(
        f"each {name} must be 0 or 1 (or False or True)"
        "\nhint: name other answers, e.g. categories=['no', 'yes', 'unsure']"
    )


def _outside(name: str) -> InvalidParameter:
    return InvalidParameter(
        f"each {name} must be one of the categories\nhint: list every possible answer; a last one can be 'other'"
    )
