"""Several attributes of one person in one report: split the loss, sample one of them, or sample one and fake the rest.

- split: every attribute, each at epsilon divided by the number of attributes;
- sample: one attribute, uniformly chosen and named in the report, at epsilon;
- fake: one attribute at epsilon through k-ary response, all others uniformly random; which one is real is hidden. A
  person who changes all answers changes the sampled one too, so hiding it allows no larger epsilon
  (docs/proofs/local.md).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.local.protocols.protocol import FrequencyProtocol, Law, Payloads, as_payloads, code_type
from tacit.noise import Bits, draw_below
from tacit.privacy import Flags, Integers

Method = Literal["split", "sample", "fake"]
METHODS: tuple[Method, ...] = ("split", "sample", "fake")


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
        if self.method == "fake":
            return np.hstack(
                [self._draw_or_fake(index, which == index, codes, bits) for index in range(len(self.parts))]
            )
        payloads = np.zeros((len(codes), self.payload_bytes), dtype=np.uint8)
        head = self._which_type.itemsize
        payloads[:, :head] = as_payloads(which.astype(self._which_type))
        for index, part in enumerate(self.parts):
            rows = np.flatnonzero(which == index)
            payloads[rows, head : head + part.payload_bytes] = part.draw(codes[rows, index], bits)
        return payloads

    def _draw_or_fake(self, index: int, sampled: Flags, codes: Integers, bits: Bits) -> Payloads:
        part = self.parts[index]
        fakes = draw_below(part.size, len(codes), bits).astype(code_type(part.size))
        return np.where(sampled[:, None], part.draw(codes[:, index], bits), as_payloads(fakes))

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

    def chances(self, index: int) -> tuple[Fraction, Fraction]:
        """Return the probabilities that a report with this attribute supports the sender's code, and any other code."""
        part, count = self.parts[index], len(self.parts)
        if self.method != "fake":
            return part.keep, part.stray
        fake = Fraction(count - 1, part.size)
        return (part.keep + fake) / count, (part.stray + fake) / count

    def law(self, codes: tuple[int, ...]) -> Law:
        """Return the chance of every payload, for small domains."""
        laws = [part.law(code) for part, code in zip(self.parts, codes, strict=True)]
        count = len(self.parts)
        law: Law = {}
        if self.method == "sample":
            for index, each in enumerate(laws):
                for payload, chance in each.items():
                    head = index.to_bytes(self._which_type.itemsize, "little")
                    law[head + payload.ljust(self._longest, b"\0")] = chance / count
            return law
        for payloads in product(*laws):
            chances = [each[payload] for each, payload in zip(laws, payloads, strict=True)]
            if self.method == "split":
                total = Fraction(1)
                for chance in chances:
                    total *= chance
            else:
                evenly = Fraction(1)
                for part in self.parts:
                    evenly /= part.size
                # the sampled attribute's own chance instead of an even one
                total = sum(
                    (evenly * part.size * chance / count for part, chance in zip(self.parts, chances, strict=True)),
                    Fraction(0),
                )
            law[b"".join(payloads)] = total
        return law

    def parameters(self) -> dict[str, str | int]:
        """Return the parameters that the header states."""
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
