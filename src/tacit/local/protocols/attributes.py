"""Several attributes of one person in one report: split the loss, or sample one of them.

- split: every attribute, each at epsilon divided by the number of attributes;
- sample: one attribute, uniformly chosen and named in the report, at epsilon.

A person who changes all answers changes the sampled one too, so sampling allows no larger epsilon
(docs/proofs/local.md).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.local.choosing import FrequencyProtocol
from tacit.local.protocols.protocol import Payloads, as_payloads, code_type
from tacit.noise import Bits, draw_below
from tacit.privacy import Flags, Integers

Method = Literal["split", "sample"]
METHODS: tuple[Method, ...] = ("split", "sample")


@dataclass(frozen=True)
class Attributes:
    """A single report for all attributes; `parts` has a protocol for each, already at its own epsilon.

    Privacy: epsilon-DP for all of a person's attributes at once, even if all of them change.
    """

    epsilon: Fraction
    method: Method
    parts: tuple[FrequencyProtocol, ...]

    name = "attributes"

    @cached_property
    def _which_type(self) -> np.dtype[Any]:
        return code_type(len(self.parts))

    @cached_property
    def _longest(self) -> int:
        return max(part.payload_bytes for part in self.parts)

    @property
    def payload_bytes(self) -> int:
        """All parts, or which one and the longest of them."""
        if self.method == "sample":
            return self._which_type.itemsize + self._longest
        return sum(part.payload_bytes for part in self.parts)

    def draw(self, codes: Integers, bits: Bits) -> Payloads:
        """Return a payload for each row of codes.

        Privacy: epsilon-DP for each row, exactly. Which attribute is sampled does not depend on the row.
        """
        if self.method == "split":
            return np.hstack([part.draw(codes[:, index], bits) for index, part in enumerate(self.parts)])
        which = draw_below(len(self.parts), len(codes), bits)
        payloads = np.zeros((len(codes), self.payload_bytes), dtype=np.uint8)
        head = self._which_type.itemsize
        payloads[:, :head] = as_payloads(which.astype(self._which_type))
        for index, part in enumerate(self.parts):
            rows = np.flatnonzero(which == index)
            payloads[rows, head : head + part.payload_bytes] = part.draw(codes[rows, index], bits)
        return payloads

    def valid(self, payloads: Payloads) -> Flags:
        """Return which payloads every part could have made."""
        if self.method != "sample":
            found = np.ones(len(payloads), dtype=np.bool_)
            for part, columns in self._columns():
                found &= part.valid(payloads[:, columns])
            return found
        which = self._which(payloads)
        found = np.zeros(len(payloads), dtype=np.bool_)
        for index, part in enumerate(self.parts):
            rows = np.flatnonzero(which == index)
            own, rest = self._split_sampled(payloads[rows], part)
            found[rows] = part.valid(own) & ~rest.any(axis=1)
        return found

    def tally(self, payloads: Payloads) -> Integers:
        """Return how many reports hold each attribute, then the counters of every part, end to end."""
        if self.method != "sample":
            parts = [part.tally(payloads[:, columns]) for part, columns in self._columns()]
            return np.concatenate([np.full(len(self.parts), len(payloads)), *parts])
        which = self._which(payloads)
        parts = [
            part.tally(self._split_sampled(payloads[which == index], part)[0]) for index, part in enumerate(self.parts)
        ]
        return np.concatenate([np.bincount(which, minlength=len(self.parts)), *parts])

    def merge(self, one: Integers, other: Integers) -> Integers:
        """Return the counters of two batches together."""
        return one + other

    def split_tally(self, tally: NDArray[Any]) -> list[tuple[int, Integers]]:
        """Return, for each attribute, how many reports hold it and how many support each code."""
        found = []
        start = len(self.parts)
        for index, part in enumerate(self.parts):
            length = len(part.tally(np.empty((0, part.payload_bytes), dtype=np.uint8)))
            found.append((int(tally[index]), part.supports(tally[start : start + length])))
            start += length
        return found

    def parameters(self) -> dict[str, str | int]:
        return {"method": self.method, "parts": ",".join(part.name for part in self.parts)}

    def _columns(self) -> list[tuple[FrequencyProtocol, slice]]:
        found = []
        start = 0
        for part in self.parts:
            found.append((part, slice(start, start + part.payload_bytes)))
            start += part.payload_bytes
        return found

    def _which(self, payloads: Payloads) -> Integers:
        head = np.ascontiguousarray(payloads[:, : self._which_type.itemsize])
        return head.view(self._which_type).reshape(len(payloads)).astype(np.int64)

    def _split_sampled(self, payloads: Payloads, part: FrequencyProtocol) -> tuple[Payloads, Payloads]:
        """Return the part's own bytes, and the bytes after them, which must be zeros."""
        head = self._which_type.itemsize
        return payloads[:, head : head + part.payload_bytes], payloads[:, head + part.payload_bytes :]
