"""Optimal local hashing: a random hash of the code into g cells, reported through randomized response on the cells.

The hash is ((a·x + b) mod 2^64) >> 32, cut into g nearly equal intervals; a and b are random and part of the report.
Over (a, b) the hashes of two different codes are independent and uniform on 32 bits, so the chance that they share a
cell is known exactly (docs/proofs/local.md). Stepping x by one adds a, so counting needs no multiplication.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.local.coins import draw_heads, kept_chance
from tacit.local.protocol import Flags, Law, Payloads, as_payloads, as_records, code_type, spread_of
from tacit.noise import uniform
from tacit.noise.bits import Bits, Words
from tacit.noise.threshold import Integers
from tacit.privacy.rounding import ball, nearest_float

HASH_BITS = 32
SIZE_MAX = 1 << HASH_BITS
CELLS_MAX = 1 << 16
# Reports counted at a time: their hashes stay in the second-level cache while x steps through the domain.
_BLOCK = 1 << 14


@dataclass(frozen=True)
class LocalHashing:
    """A report is a hash function (16 bytes) and a cell.

    Privacy: epsilon-DP for each code: the hash is drawn without looking at it, and the cell is randomized response.
    """

    size: int
    epsilon: Fraction

    name = "local-hashing"

    @cached_property
    def cells(self) -> int:
        """How many cells: the number near e^ε + 1 that errs least."""
        ideal = nearest_float(lambda: ball(min(self.epsilon, Fraction(11))).exp() + 1)
        wanted = {min(max(2, int(ideal) + step), CELLS_MAX) for step in (0, 1)}
        return min(wanted, key=lambda cells: spread_of(*self._chances(cells)).other)

    @cached_property
    def keep(self) -> Fraction:
        """The chance that a report supports the sender's code."""
        return self._chances(self.cells)[0]

    @cached_property
    def stray(self) -> Fraction:
        """The chance, over hashes too, that a report supports any one other code."""
        return self._chances(self.cells)[1]

    def _chances(self, cells: int) -> tuple[Fraction, Fraction]:
        keep = kept_chance(self.epsilon, outside=cells - 1)
        shared = shared_cell(cells)
        return keep, shared * keep + (1 - shared) * (1 - keep) / (cells - 1)

    @cached_property
    def _type(self) -> np.dtype[Any]:
        return np.dtype([("a", "<u8"), ("b", "<u8"), ("cell", code_type(self.cells))])

    @property
    def payload_bytes(self) -> int:
        """Two words and a cell."""
        return self._type.itemsize

    def draw(self, codes: Integers, bits: Bits) -> Payloads:
        """Return a payload for each code.

        Privacy: epsilon-DP for each code, exactly.
        """
        records = np.empty(len(codes), dtype=self._type)
        records["a"], records["b"] = bits.words(2 * len(codes)).reshape(2, len(codes))
        hashed = records["a"] * codes.astype(np.uint64) + records["b"]
        records["cell"] = perturbed_cells(hashed, self.cells, self.keep, bits)
        return as_payloads(records)

    def valid(self, payloads: Payloads) -> Flags:
        """Return which payloads name a cell that there is; every hash is possible."""
        found: Flags = as_records(payloads, self._type)["cell"] < self.cells
        return found

    def tally(self, payloads: Payloads) -> Integers:
        """Return how many reports support each code, by trying every code on every report."""
        records = as_records(payloads, self._type)
        counts = np.zeros(self.size, dtype=np.int64)
        starts, lengths = cell_edges(self.cells)
        for start in range(0, len(records), _BLOCK):
            block = records[start : start + _BLOCK]
            step = np.ascontiguousarray(block["a"])
            # a report supports x where its hash, counted from its cell's start, is below the cell's length
            place = block["b"] - starts[block["cell"]]
            length = lengths[block["cell"]]
            inside = np.empty(len(block), dtype=np.bool_)
            for code in range(self.size):
                np.less(place, length, out=inside)
                counts[code] += np.count_nonzero(inside)
                np.add(place, step, out=place)
        return counts

    def merge(self, one: Integers, other: Integers) -> Integers:
        """Return the counters of two batches together."""
        return one + other

    def supports(self, tally: NDArray[Any]) -> Integers:
        """Return how many reports support each code."""
        return tally

    def supporting(self, payloads: Payloads, codes: Integers) -> Flags:
        """Return whether each report's cell is that of each of these codes."""
        records = as_records(payloads, self._type)
        hashed = records["a"][:, None] * codes.astype(np.uint64)[None, :] + records["b"][:, None]
        found: Flags = cells_of(hashed, self.cells) == records["cell"][:, None]
        return found

    def law(self, code: int) -> Law:
        """Return the chance of every payload under one hash, a = 2^63 + 2^31 and b = 0: it is the same for the rest."""
        records = np.zeros(self.cells, dtype=self._type)
        records["a"] = (1 << 63) + (1 << 31)
        records["cell"] = np.arange(self.cells)
        other = (1 - self.keep) / (self.cells - 1)
        own = self.supporting(as_payloads(records), np.array([code]))[:, 0]
        return {
            row.tobytes(): self.keep if mine else other for row, mine in zip(as_payloads(records), own, strict=True)
        }

    def parameters(self) -> dict[str, str | int]:
        """Return what the header says of it."""
        return {"cells": self.cells, "keep": str(self.keep)}


def perturbed_cells(hashed: Words, cells: int, keep: Fraction, bits: Bits) -> Integers:
    """Return the cell of each hash through randomized response on cells."""
    own = cells_of(hashed, cells)
    kept = draw_heads(keep, len(own), bits)
    others = uniform.draw_below(cells - 1, len(own), bits)
    others += others >= own
    return np.where(kept, own, others)


def cells_of(hashed: Words, cells: int) -> Integers:
    """Return the cell of each 64-bit hash, by its upper half."""
    return ((hashed >> np.uint64(HASH_BITS)) * np.uint64(cells) >> np.uint64(HASH_BITS)).astype(np.int64)


def cell_edges(cells: int) -> tuple[Words, Words]:
    """Return where each cell begins among 64-bit hashes, and how long it is: h·g >> 32 is j from ceil(j·2^32/g) on."""
    edges = [-(-(place << HASH_BITS) // cells) << HASH_BITS for place in range(cells + 1)]
    starts = np.array(edges[:-1], dtype=np.uint64)
    lengths = np.array([after - before for before, after in pairwise(edges)], dtype=np.uint64)
    return starts, lengths


def shared_cell(cells: int) -> Fraction:
    """Return the chance that two independent 32-bit hashes fall into one cell."""
    small, larger = divmod(1 << HASH_BITS, cells)
    return Fraction((cells - larger) * small**2 + larger * (small + 1) ** 2, 1 << 2 * HASH_BITS)
