"""The questions a survey can ask, and how a person's answer becomes a code.

A question is a list of answers, a number in a range, several attributes of one person, or a string of an alphabet. An
answer outside the question is refused on the person's own side, before anything is drawn or sent, and is never quoted.
How a code becomes a report is left to `protocols/`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.local.protocols.hashing import SYMBOLS_MAX
from tacit.noise import Bits, draw_heads_each
from tacit.numbers import Integers, binary_meaning, show, whole

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
        return {name: code for code, name in enumerate(self.values)}

    @cached_property
    def _are_codes(self) -> bool:
        return self.names is None or self.names == tuple(range(self.size))

    @property
    def values(self) -> tuple[Label, ...]:
        return tuple(range(self.size)) if self.names is None else self.names

    def read_one(self, value: Any) -> int:
        if self.names is None:
            if isinstance(value, int | np.integer) and not isinstance(value, bool) and 0 <= value < self.size:
                return int(value)
        elif isinstance(value, str | int | np.integer | np.str_) and not isinstance(value, bool):
            code = self._codes.get(value if isinstance(value, str) else int(value))
            if code is not None:
                return code
        raise _outside()

    def read(self, values: Any, bits: Bits | None = None) -> Integers:  # noqa: ARG002 (a range needs coins)
        array = np.asarray(values) if self._are_codes and isinstance(values, np.ndarray | range) else None
        if array is not None and (self.names is None or array.dtype.kind in "iu"):
            if array.ndim != 1 or array.dtype.kind not in "iu":
                raise _outside()
            if array.size and not (int(array.min()) >= 0 and int(array.max()) < self.size):
                raise _outside()
            return array.astype(np.int64)
        if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
            raise InvalidParameter("values must be a list or an array of answers\nhint: report(value) is for one")
        if isinstance(values, np.ndarray) and values.dtype.kind in "iuU":
            distinct, which = np.unique(values, return_inverse=True)
            return np.array([self.read_one(value) for value in distinct.tolist()], dtype=np.int64)[which.ravel()]
        return np.array([self.read_one(value) for value in values], dtype=np.int64)

    def header_fields(self) -> dict[str, Any]:
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
        up = draw_heads_each(((scaled - below) * 2.0**64).astype(np.uint64), bits)  # below 2^64: a share is below 1
        return np.minimum(below.astype(np.int64) + up, 1 << self.grid_bits)

    def fractions(self, values: Any) -> NDArray[np.float64]:
        """Return each number as a fraction of the range; anything that is not a number in the range is refused."""
        try:
            array = np.asarray(values)
            plain = not array.size or (array.ndim == 1 and array.dtype.kind in "iuf")
            numbers = array.astype(np.float64) if plain else None
        except (TypeError, ValueError, OverflowError):
            numbers = None
        if numbers is None:
            raise InvalidParameter(f"values must be numbers from {show(self.low)} to {show(self.high)}")
        if not ((numbers >= float(self.low)) & (numbers <= float(self.high))).all():
            raise InvalidParameter(
                f"values must be numbers from {show(self.low)} to {show(self.high)}"
                "\nhint: clamp values to the public range before they are reported"
            )
        return np.clip((numbers - float(self.low)) / float(self.high - self.low), 0.0, 1.0)

    def header_fields(self) -> dict[str, Any]:
        return {"between": [str(self.low), str(self.high)]}


def read_labels(domain: Any) -> Labels:
    """Return the public list of answers: a list of different texts or whole numbers, or their number."""
    if isinstance(domain, Labels):
        return domain
    if isinstance(domain, int | np.integer) and not isinstance(domain, bool):
        size = whole(domain, name="domain", least=0)
        names = None
    else:
        if isinstance(domain, str | bytes | Mapping) or not isinstance(domain, Iterable):
            raise InvalidParameter(
                "domain must be a list of answers, or the number of answers\nhint: e.g. domain=['yes', 'no']"
            )
        names = tuple(_label(name) for name in domain)
        size = len(names)
        if len(set(names)) < size:
            raise InvalidParameter("domain lists an answer twice\nhint: list each answer once")
        if names == tuple(range(size)):
            names = None
    if size < 2:
        raise InvalidParameter(
            f"domain must have at least two answers, not {size}: with fewer, reports are pointless\nhint: list "
            "every answer a person can give; a last one can be 'other'"
        )
    if size > SIZE_MAX:
        raise InvalidParameter(f"domain must have at most 2^28 answers, not {size}\nhint: ask for strings, by prefix")
    return Labels(size, names)


def read_range(between: Any, grid_bits: int) -> Range:
    if isinstance(between, str | bytes) or not isinstance(between, Iterable):
        raise InvalidParameter("between must be two numbers\nhint: e.g. between=(0, 100)")
    ends = tuple(between)
    if len(ends) != 2:
        raise InvalidParameter(f"between must be two numbers, not {len(ends)}\nhint: e.g. between=(0, 100)")
    low, high = (binary_meaning(end, name="between") for end in ends)
    if not low < high or max(abs(low), abs(high), high - low) > FLOAT_MOST or float(high) == float(low):
        raise InvalidParameter(f"between must go from a lower to a higher number, not {show(low)} to {show(high)}")
    return Range(low, high, grid_bits)


def _label(name: Any) -> Label:
    if isinstance(name, str):
        return str(name)
    if isinstance(name, int | np.integer) and not isinstance(name, bool):
        return int(name)
    raise InvalidParameter("every answer of the domain must be text or a whole number\nhint: e.g. domain=['yes', 'no']")


def _outside() -> InvalidParameter:
    return InvalidParameter(
        "every value must be one of the domain's answers\nhint: list every possible answer; a last one can be 'other'"
    )


# ---- several attributes, and strings ---------------------------------------------------------------------------------


LENGTH_MAX = 64


@dataclass(frozen=True)
class Record:
    """Several named attributes, each with its own public list of answers."""

    names: tuple[str, ...]
    parts: tuple[Labels, ...]

    def read_one(self, value: Any) -> tuple[int, ...]:
        """Return the codes of one person's answers, given by attribute."""
        if not isinstance(value, Mapping) or set(value) != set(self.names):
            raise InvalidParameter(
                f"every value must give an answer to every attribute: {', '.join(self.names)}\nhint: e.g. "
                f"report({{'sex': 'f', 'region': 'north'}})"
            )
        return tuple(part.read_one(value[name]) for name, part in zip(self.names, self.parts, strict=True))

    def read(self, values: Any, bits: Bits | None = None) -> Integers:  # noqa: ARG002 (a range needs coins)
        """Return rows of codes: of a list of mappings, or of a mapping of columns."""
        if isinstance(values, Mapping):
            if set(values) != set(self.names):
                raise InvalidParameter(f"values must have the columns {', '.join(self.names)}")
            columns = [part.read(values[name]) for name, part in zip(self.names, self.parts, strict=True)]
            if len({len(column) for column in columns}) > 1:
                raise InvalidParameter("every column of values must have the same length")
            return np.stack(columns, axis=1)
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise InvalidParameter("values must be a list of mappings, or a mapping of columns")
        rows = [self.read_one(value) for value in values]
        return np.array(rows, dtype=np.int64).reshape(len(rows), len(self.names))

    def header_fields(self) -> dict[str, Any]:
        return {"attributes": {name: part.header_fields() for name, part in zip(self.names, self.parts, strict=True)}}


@dataclass(frozen=True)
class Text:
    """Strings of a public alphabet up to a public length."""

    alphabet: str
    length: int
    step: int

    @cached_property
    def _symbols(self) -> dict[str, int]:
        return {character: index + 1 for index, character in enumerate(self.alphabet)}

    def read_one(self, value: Any) -> NDArray[np.uint8]:
        """Return the symbols of one string, 0 past its end."""
        if not isinstance(value, str) or len(value) > self.length or not set(value) <= set(self._symbols):
            raise InvalidParameter(
                f"every value must be a string of at most {self.length} characters of the alphabet\nhint: shorten "
                "and clean strings before they are reported"
            )
        row = np.zeros(self.length, dtype=np.uint8)
        row[: len(value)] = [self._symbols[character] for character in value]
        return row

    def read(self, values: Any, bits: Bits | None = None) -> NDArray[np.uint8]:  # noqa: ARG002 (a range needs coins)
        """Return the symbols of each string: (strings, length)."""
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise InvalidParameter("values must be a list of strings\nhint: report(value) is for one")
        rows = [self.read_one(str(value) if isinstance(value, np.str_) else value) for value in values]
        return np.array(rows, dtype=np.uint8).reshape(len(rows), self.length)

    def string_of(self, symbols: NDArray[np.uint8]) -> str:
        return "".join(self.alphabet[symbol - 1] for symbol in symbols if symbol)

    def header_fields(self) -> dict[str, Any]:
        return {"alphabet": self.alphabet, "length": self.length, "step": self.step}


def read_attributes(attributes: Any) -> Record:
    """Return several named attributes from a mapping of names to lists of answers."""
    if (
        not isinstance(attributes, Mapping)
        or len(attributes) < 2
        or not all(isinstance(name, str) for name in attributes)
    ):
        raise InvalidParameter(
            "attributes must be two or more names with their answers"
            "\nhint: e.g. attributes={'sex': ['f', 'm'], 'region': ['north', 'south']}"
        )
    return Record(tuple(attributes), tuple(read_labels(domain) for domain in attributes.values()))


def read_text(alphabet: Any, length: Any, step: Any) -> Text:
    """Return strings of an alphabet, up to a length, found `step` characters at a time."""
    if not isinstance(alphabet, str) or not alphabet or len(set(alphabet)) < len(alphabet):
        raise InvalidParameter("alphabet must be a text of different characters\nhint: e.g. alphabet='abcdefgh'")
    if len(alphabet) > SYMBOLS_MAX:
        raise InvalidParameter(f"alphabet must have at most {SYMBOLS_MAX} characters, not {len(alphabet)}")
    length_value = whole(length, name="length")
    if length_value > LENGTH_MAX:
        raise InvalidParameter(f"length must be at most {LENGTH_MAX}, not {length_value}")
    step_value = whole(step, name="step")
    if step_value > 3:
        raise InvalidParameter(
            f"step must be at most 3 characters, not {step_value}: the collector tries every extension"
        )
    return Text(alphabet, length_value, min(step_value, length_value))
