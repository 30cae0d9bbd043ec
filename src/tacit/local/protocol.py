"""What every protocol is: how an answer's code becomes a payload of fixed length, and how payloads are counted.

A protocol knows no labels, no files and no people. Payloads are rows of bytes, all of one length, so that a report's
size says nothing; every chance is an exact rational. What the counts say is `estimating.py`'s business.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.noise.bits import Bits
from tacit.noise.threshold import Integers

# One row of bytes for each report: (reports, payload_bytes)
Payloads = NDArray[np.uint8]
Flags = NDArray[np.bool_]
# The chance of each payload, for one answer
Law = dict[bytes, Fraction]


class LocalProtocol(Protocol):
    """A randomizer of codes and the counting of its payloads."""

    @property
    def name(self) -> str:
        """Its public name."""
        ...

    @property
    def epsilon(self) -> Fraction:
        """What one report costs the person who sends it."""
        ...

    @property
    def payload_bytes(self) -> int:
        """How long every payload is."""
        ...

    def draw(self, codes: Any, bits: Bits) -> Payloads:
        """Return a payload for each code.

        Privacy: epsilon-DP for each code.
        """
        ...

    def valid(self, payloads: Payloads) -> Flags:
        """Return which payloads this protocol could have made."""
        ...

    def tally(self, payloads: Payloads) -> NDArray[Any]:
        """Return the counters of these valid payloads; counters of two batches merge into those of both."""
        ...

    def merge(self, one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
        """Return the counters of two batches together."""
        ...

    def parameters(self) -> dict[str, str | int]:
        """Return what the header says of it, chances as exact text."""
        ...


class FrequencyProtocol(LocalProtocol, Protocol):
    """A protocol on codes 0, …, size - 1 whose report supports some of them, its own oftener than any other.

    A report supports its sender's code with chance `keep` and each other code with chance `stray`, whichever the
    sender's is: that is all an estimate needs.
    """

    @property
    def size(self) -> int:
        """How many codes there are."""
        ...

    @property
    def keep(self) -> Fraction:
        """The chance that a report supports its sender's code."""
        ...

    @property
    def stray(self) -> Fraction:
        """The chance that a report supports any one other code."""
        ...

    def supports(self, tally: NDArray[Any]) -> Integers:
        """Return how many reports support each code."""
        ...

    def supporting(self, payloads: Payloads, codes: Integers) -> Flags:
        """Return whether each report supports each of these codes: (reports, codes)."""
        ...

    def law(self, code: int) -> Law:
        """Return the chance of every payload, for a small domain."""
        ...


@dataclass(frozen=True)
class Spread:
    """What a protocol's estimates of counts vary by, for one report: enough to compare protocols by."""

    holder: Fraction
    other: Fraction

    def mean_over(self, size: int) -> float:
        """The variance of one report's estimate, averaged over the domain's codes."""
        return float((self.holder + (size - 1) * self.other) / size)


def spread_of(keep: Fraction, stray: Fraction) -> Spread:
    """Return the variance that one report adds to the estimated count of its own code, and of any other."""
    gain = (keep - stray) ** 2
    return Spread(keep * (1 - keep) / gain, stray * (1 - stray) / gain)


def code_type(size: int) -> np.dtype[Any]:
    """Return the shortest unsigned type that holds 0, …, size - 1, of 1, 2, 4 or 8 bytes."""
    for bytes_ in (1, 2, 4):
        if size <= 1 << 8 * bytes_:
            return np.dtype(f"<u{bytes_}")
    return np.dtype("<u8")


def as_payloads(records: NDArray[Any]) -> Payloads:
    """Return an array of fixed-size records as rows of bytes."""
    contiguous = np.ascontiguousarray(records)
    return contiguous.view(np.uint8).reshape(len(contiguous), -1 if len(contiguous) else contiguous.dtype.itemsize)


def as_records(payloads: Payloads, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return rows of bytes as the records they hold."""
    return np.ascontiguousarray(payloads).view(dtype).reshape(len(payloads))
