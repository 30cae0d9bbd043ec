"""Randomized response on k codes: the code itself with chance e^ε/(e^ε + k - 1), and else any other, evenly."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.local.coins import draw_heads, kept_chance
from tacit.local.protocol import Flags, Law, Payloads, as_payloads, as_records, code_type
from tacit.noise import uniform
from tacit.noise.bits import Bits
from tacit.noise.threshold import Integers


@dataclass(frozen=True)
class Response:
    """Binary (size 2) and k-ary randomized response; a report is one code.

    Privacy: epsilon-DP for each code: chances `keep` and (1 - keep)/(k - 1), whose ratio is at most e^epsilon.
    """

    size: int
    epsilon: Fraction

    name = "response"

    @cached_property
    def keep(self) -> Fraction:
        """The chance that a report is the sender's code."""
        return kept_chance(self.epsilon, outside=self.size - 1)

    @cached_property
    def stray(self) -> Fraction:
        """The chance that a report is any one other code."""
        return (1 - self.keep) / (self.size - 1)

    @cached_property
    def _type(self) -> np.dtype[Any]:
        return code_type(self.size)

    @property
    def payload_bytes(self) -> int:
        """One code."""
        return self._type.itemsize

    def draw(self, codes: Integers, bits: Bits) -> Payloads:
        """Return a payload for each code.

        Privacy: epsilon-DP for each code, exactly; the time does not depend on the codes.
        """
        kept = draw_heads(self.keep, len(codes), bits)
        others = uniform.draw_below(self.size - 1, len(codes), bits)
        others += others >= codes  # any code but the sender's
        return as_payloads(np.where(kept, codes, others).astype(self._type))

    def valid(self, payloads: Payloads) -> Flags:
        """Return which payloads are codes of the domain."""
        return as_records(payloads, self._type) < self.size

    def tally(self, payloads: Payloads) -> Integers:
        """Return how many reports name each code."""
        return np.bincount(as_records(payloads, self._type), minlength=self.size)

    def merge(self, one: Integers, other: Integers) -> Integers:
        """Return the counters of two batches together."""
        return one + other

    def supports(self, tally: NDArray[Any]) -> Integers:
        """Return how many reports support each code: those that name it."""
        return tally

    def supporting(self, payloads: Payloads, codes: Integers) -> Flags:
        """Return whether each report names each of these codes."""
        found: Flags = as_records(payloads, self._type)[:, None] == codes[None, :]
        return found

    def law(self, code: int) -> Law:
        """Return the chance of every payload."""
        payloads = as_payloads(np.arange(self.size).astype(self._type))
        return {row.tobytes(): self.keep if place == code else self.stray for place, row in enumerate(payloads)}

    def parameters(self) -> dict[str, str | int]:
        """Return what the header says of it."""
        return {"keep": str(self.keep)}
