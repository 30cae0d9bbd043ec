"""What a survey asks, and how a person's answer becomes a code: one of a list, or a number in a range.

An answer outside is refused on the person's own side, before anything is drawn or sent, and is never quoted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.noise.bits import Bits
from tacit.noise.threshold import Integers
from tacit.privacy.number import Number, binary_meaning, show, whole

SIZE_MAX = 1 << 28
FLOAT_MOST = Fraction(float(np.finfo(np.float64).max))
Label = str | int


@dataclass(frozen=True)
class Labels:
    """A public list of answers; `names` is None for the whole numbers 0, …, size - 1."""

    size: int
    names: tuple[Label, ...] | None = None

    @cached_property
    def _codes(self) -> dict[Label, int]:
        return {name: code for code, name in enumerate(self.names or ())}

    @property
    def values(self) -> tuple[Label, ...]:
        """The answers in order."""
        return tuple(range(self.size)) if self.names is None else self.names

    def read_one(self, value: Any) -> int:
        """Return the code of one answer."""
        if self.names is None:
            if isinstance(value, int | np.integer) and not isinstance(value, bool) and 0 <= value < self.size:
                return int(value)
        elif isinstance(value, str | int | np.integer | np.str_) and not isinstance(value, bool):
            code = self._codes.get(value if isinstance(value, str) else int(value))
            if code is not None:
                return code
        raise _outside()

    def read(self, values: Any, bits: Bits | None = None) -> Integers:  # noqa: ARG002 (a range needs coins)
        """Return the code of each answer."""
        if self.names is None and isinstance(values, np.ndarray | range):
            array = np.asarray(values)
            if array.ndim != 1 or array.dtype.kind not in "iu":
                raise _outside()
            if array.size and not (int(array.min()) >= 0 and int(array.max()) < self.size):
                raise _outside()
            return array.astype(np.int64)
        if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
            raise InvalidParameter("values must be a list or an array of answers\nhint: report(value) is for one")
        if isinstance(values, np.ndarray) and values.dtype.kind in "iuU":
            distinct, places = np.unique(values, return_inverse=True)
            return np.array([self.read_one(value) for value in distinct.tolist()], dtype=np.int64)[places.ravel()]
        return np.array([self.read_one(value) for value in values], dtype=np.int64)

    def said(self) -> dict[str, Any]:
        """Return what the header says of it."""
        return {"size": self.size} if self.names is None else {"labels": list(self.names)}


@dataclass(frozen=True)
class Range:
    """A public range of numbers, of which a mean is wanted."""

    low: Fraction
    high: Fraction
    grid_bits: int

    def read_one(self, value: Any) -> NDArray[np.float64]:
        """Return one number, checked, as a fraction of the range."""
        return self.fractions([value])

    def read(self, values: Any, bits: Bits) -> Integers:
        """Return a grid point for each number, up or down by a coin, so that it is right on average."""
        scaled = self.fractions(values) * (1 << self.grid_bits)
        below = np.floor(scaled)
        up = bits.words(len(scaled)) * 2.0**-64 < scaled - below
        return np.minimum(below.astype(np.int64) + up, 1 << self.grid_bits)

    def fractions(self, values: Any) -> NDArray[np.float64]:
        """Return each number as a fraction of the range; what is no number or lies outside is refused."""
        try:
            array = np.asarray(values)
            plain = not array.size or (array.ndim == 1 and array.dtype.kind in "iuf")
            numbers = array.astype(np.float64) if plain else None
        except (TypeError, ValueError, OverflowError):
            numbers = None
        if numbers is None:
            raise InvalidParameter(f"each value must be a number from {show(self.low)} to {show(self.high)}")
        if not ((numbers >= float(self.low)) & (numbers <= float(self.high))).all():
            raise InvalidParameter(
                f"each value must be a number from {show(self.low)} to {show(self.high)}"
                "\nhint: clamp values to the public range before they are reported"
            )
        return np.clip((numbers - float(self.low)) / float(self.high - self.low), 0.0, 1.0)

    def said(self) -> dict[str, Any]:
        """Return what the header says of it."""
        return {"between": [str(self.low), str(self.high)]}


def read_labels(domain: Any) -> Labels:
    """Return the public list of answers: a list of different texts or whole numbers, or how many there are."""
    if isinstance(domain, Labels):
        return domain
    if isinstance(domain, int | np.integer) and not isinstance(domain, bool):
        size = whole(domain, name="domain", least=0)
        names = None
    else:
        if isinstance(domain, str | bytes | Mapping) or not isinstance(domain, Iterable):
            raise InvalidParameter(
                "domain must be a list of answers, or how many there are\nhint: e.g. domain=['yes', 'no']"
            )
        names = tuple(_label(name) for name in domain)
        size = len(names)
        if len(set(names)) < size:
            raise InvalidParameter("domain must list different answers; one is there twice")
        if names == tuple(range(size)):
            names = None
    if size < 2:
        raise InvalidParameter(
            f"domain must have at least two answers, not {size}: with fewer there is nothing to hide or to learn"
            "\nhint: list every answer a person can give; a last one can be 'other'"
        )
    if size > SIZE_MAX:
        raise InvalidParameter(f"domain must have at most 2^28 answers, not {size}\nhint: ask for strings, by prefix")
    return Labels(size, names)


def read_range(between: Any, grid_bits: int) -> Range:
    """Return a public range from its two ends."""
    if isinstance(between, str | bytes) or not isinstance(between, Iterable):
        raise InvalidParameter("between must be two numbers\nhint: e.g. between=(0, 100)")
    ends = tuple(between)
    if len(ends) != 2:
        raise InvalidParameter(f"between must be two numbers, not {len(ends)}\nhint: e.g. between=(0, 100)")
    low, high = (_end(end) for end in ends)
    if not low < high or max(abs(low), abs(high), high - low) > FLOAT_MOST or float(high) == float(low):
        raise InvalidParameter(f"between must go from a lower to a higher number, not {show(low)} to {show(high)}")
    return Range(low, high, grid_bits)


def _end(end: Number) -> Fraction:
    return binary_meaning(end, name="between")


def _label(name: Any) -> Label:
    if isinstance(name, str):
        return str(name)
    if isinstance(name, int | np.integer) and not isinstance(name, bool):
        return int(name)
    raise InvalidParameter("each answer of the domain must be text or a whole number\nhint: e.g. domain=['yes', 'no']")


def _outside() -> InvalidParameter:
    return InvalidParameter(
        "each value must be one of the domain's answers\nhint: list every possible answer; a last one can be 'other'"
    )
