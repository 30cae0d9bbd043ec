"""Hadamard response: t bits of a random linear hash of the code, reported through randomized response.

A row a is drawn evenly from 2^m; the hash's bits are the parities of a, Ma, M²a, … with the code, where M multiplies by
X modulo an irreducible polynomial over GF(2). Any two codes then share a hash for exactly one row in 2^t, and all
counts come out of one fast Walsh–Hadamard transform (docs/proofs/local.md). With t = 1 it is the one-bit response.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.local.protocols.protocol import (
    Law,
    Payloads,
    as_payloads,
    as_records,
    code_type,
    kept_chance,
    respond,
    spread_of,
)
from tacit.noise import Bits
from tacit.privacy import Flags, Integers, Words

HASH_BITS_MAX = 10


@dataclass(frozen=True)
class Hadamard:
    """A report is a row of a Hadamard matrix and t perturbed signs; a million are made and counted in a second.

    Privacy: epsilon-DP for each code: the row is drawn without looking at it, and the bits are randomized response.
    """

    size: int
    epsilon: Fraction

    name = "hadamard"

    @cached_property
    def row_bits(self) -> int:
        """How many bits a row has: enough for every code."""
        return max(1, (self.size - 1).bit_length())

    @cached_property
    def hash_bits(self) -> int:
        """How many bits of hash are sent: the number that errs least."""
        wanted = range(1, min(HASH_BITS_MAX, self.row_bits) + 1)
        return min(wanted, key=lambda bits: spread_of(*self._chances(bits)).other)

    @cached_property
    def keep(self) -> Fraction:
        """The chance that a report supports the sender's code."""
        return self._chances(self.hash_bits)[0]

    @cached_property
    def stray(self) -> Fraction:
        """The chance, over rows too, that a report supports any one other code: 2^-t."""
        return self._chances(self.hash_bits)[1]

    def _chances(self, hash_bits: int) -> tuple[Fraction, Fraction]:
        return kept_chance(self.epsilon, outside=(1 << hash_bits) - 1), Fraction(1, 1 << hash_bits)

    @cached_property
    def _type(self) -> np.dtype[Any]:
        return np.dtype([("row", code_type(1 << self.row_bits)), ("bits", code_type(1 << self.hash_bits))])

    @property
    def payload_bytes(self) -> int:
        """A row and its bits."""
        return self._type.itemsize

    def draw(self, codes: Integers, bits: Bits) -> Payloads:
        """Return a payload for each code.

        Privacy: epsilon-DP for each code, exactly.
        """
        rows = bits.words(len(codes), self.row_bits)
        own = self._hash(rows, codes.astype(np.uint64))
        records = np.empty(len(codes), dtype=self._type)
        records["row"] = rows
        records["bits"] = respond(own, 1 << self.hash_bits, self.keep, bits)
        return as_payloads(records)

    def valid(self, payloads: Payloads) -> Flags:
        """Return which payloads name a row and bits that there are."""
        records = as_records(payloads, self._type)
        found: Flags = (records["row"] < 1 << self.row_bits) & (records["bits"] < 1 << self.hash_bits)
        return found

    def tally(self, payloads: Payloads) -> Integers:
        """Return how many reports there are of each row and bits."""
        records = as_records(payloads, self._type)
        cells = records["row"].astype(np.int64)
        cells <<= self.hash_bits
        cells |= records["bits"]
        return np.bincount(cells, minlength=1 << (self.row_bits + self.hash_bits))

    def merge(self, one: Integers, other: Integers) -> Integers:
        """Return the counters of two batches together."""
        return one + other

    def supports(self, tally: NDArray[Any]) -> Integers:
        """Return how many reports support each code: the sum over rows of the reports with the code's own hash there.

        Being equal to the code's hash is the average of all 2^t characters; the rows of a character are a relabelling.
        """
        by_character = walsh(tally.reshape(-1, 1 << self.hash_bits).T)
        rows = np.arange(1 << self.row_bits, dtype=np.uint64)
        spectrum = np.zeros(1 << self.row_bits, dtype=np.int64)
        for character in range(1, 1 << self.hash_bits):
            spectrum[self._relabelled(rows, character)] += by_character[character]
        total = int(tally.sum())
        return (total + walsh(spectrum)[: self.size]) >> self.hash_bits

    def supporting(self, payloads: Payloads, codes: Integers) -> Flags:
        """Return whether each report's bits are the hash of each of these codes."""
        records = as_records(payloads, self._type)
        rows = records["row"].astype(np.uint64)
        return np.stack(
            [self._hash(rows, np.full(len(rows), code, dtype=np.uint64)) == records["bits"] for code in codes], axis=1
        )

    def law(self, code: int) -> Law:
        """Return the chance of every payload."""
        rows, bits = np.divmod(np.arange(1 << (self.row_bits + self.hash_bits)), 1 << self.hash_bits)
        records = np.empty(len(rows), dtype=self._type)
        records["row"], records["bits"] = rows, bits
        own = self._hash(rows.astype(np.uint64), np.full(len(rows), code, dtype=np.uint64)) == bits
        share = Fraction(1, 1 << self.row_bits)
        other = (1 - self.keep) / ((1 << self.hash_bits) - 1)
        payloads = as_payloads(records)
        return {row.tobytes(): share * (self.keep if mine else other) for row, mine in zip(payloads, own, strict=True)}

    def parameters(self) -> dict[str, str | int]:
        """Return the parameters that the header states."""
        polynomial = irreducible(self.row_bits)
        return {"hash_bits": self.hash_bits, "polynomial": polynomial, "keep": str(self.keep)}

    def _hash(self, rows: Words, codes: Words) -> Integers:
        """Return the bits <M^i·row, code>, the first as the lowest."""
        hashed = np.zeros(len(rows), dtype=np.int64)
        for bit_index in range(self.hash_bits):
            parity = np.bitwise_count(rows & codes) & np.uint8(1)
            hashed |= parity.astype(np.int64) << bit_index
            rows = self._shifted(rows)
        return hashed

    def _relabelled(self, rows: Words, character: int) -> Integers:
        """Return u(M)·row for the polynomial u with the character's bits as coefficients."""
        total = np.zeros(len(rows), dtype=np.uint64)
        for bit_index in range(self.hash_bits):
            if character >> bit_index & 1:
                total ^= rows
            rows = self._shifted(rows)
        return total.astype(np.int64)

    def _shifted(self, rows: Words) -> Words:
        """Return M·row: times X, modulo the polynomial."""
        high = rows >> np.uint64(self.row_bits - 1)
        return (rows << np.uint64(1)) ^ (high * np.uint64(irreducible(self.row_bits)))


def walsh(values: Integers) -> Integers:
    """Return the Walsh–Hadamard transform along the first axis: Σ_j (-1)^<i, j>·values[j]."""
    found = np.array(values, dtype=np.int64)
    half = 1
    while half < len(found):
        pairs = found.reshape(-1, 2, half, *found.shape[1:])
        left, right = pairs[:, 0].copy(), pairs[:, 1]
        pairs[:, 0] += right
        np.subtract(left, right, out=pairs[:, 1])
        half *= 2
    return found


@lru_cache(maxsize=64)
def irreducible(degree: int) -> int:
    """Return the least irreducible polynomial over GF(2) of this degree, its coefficients as bits.

    >>> irreducible(3), irreducible(8)
    (11, 283)
    """
    candidates = range((1 << degree) + 1, 2 << degree, 2)
    return next(f for f in candidates if all(_remainder(f, g) for g in range(2, 2 << (degree // 2))))


def _remainder(value: int, divisor: int) -> int:
    while value.bit_length() >= divisor.bit_length():
        value ^= divisor << (value.bit_length() - divisor.bit_length())
    return value
