"""Questions with more to them: several attributes of one person, and strings of an alphabet."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.local.prefixes import SYMBOLS_MAX
from tacit.local.questions import Labels, read_labels
from tacit.noise.bits import Bits
from tacit.noise.threshold import Integers
from tacit.privacy.number import whole

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
                f"each value must give an answer to every attribute: {', '.join(self.names)}"
                "\nhint: e.g. report({'sex': 'f', 'region': 'north'})"
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

    def said(self) -> dict[str, Any]:
        """Return what the header says of it."""
        return {"attributes": {name: part.said() for name, part in zip(self.names, self.parts, strict=True)}}


@dataclass(frozen=True)
class Text:
    """Strings of a public alphabet up to a public length."""

    alphabet: str
    length: int
    step: int

    @cached_property
    def _symbols(self) -> dict[str, int]:
        return {character: place + 1 for place, character in enumerate(self.alphabet)}

    def read_one(self, value: Any) -> NDArray[np.uint8]:
        """Return the symbols of one string, 0 past its end."""
        if not isinstance(value, str) or len(value) > self.length or not set(value) <= set(self._symbols):
            raise InvalidParameter(
                f"each value must be a string of the alphabet of at most {self.length} characters"
                "\nhint: cut and clean strings before they are reported"
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
        """Return the string that symbols stand for."""
        return "".join(self.alphabet[symbol - 1] for symbol in symbols if symbol)

    def said(self) -> dict[str, Any]:
        """Return what the header says of it."""
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
    exact_length = whole(length, name="length")
    if exact_length > LENGTH_MAX:
        raise InvalidParameter(f"length must be at most {LENGTH_MAX}, not {exact_length}")
    exact_step = whole(step, name="step")
    if exact_step > 3:
        raise InvalidParameter(f"step must be at most 3 characters, not {exact_step}: every extension is tried")
    return Text(alphabet, exact_length, min(exact_step, exact_length))
