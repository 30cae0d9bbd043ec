"""Local hashing: counts of a large domain, and frequent strings of a domain too large to list.

Optimal local hashing reports a random hash of the code into g cells, through randomized response on the cells. The hash
is ((a·x + b) mod 2^64) >> 32, cut into g nearly equal intervals; a and b are random and part of the report. Over (a, b)
the hashes of two different codes are independent and uniform on 32 bits, so the probability that they share a cell is
known exactly (docs/proofs/local.md). Stepping x by one adds a, so counting needs no multiplication.

Frequent strings: a person is put on a level at random and reports one prefix of their string, of the level's length,
through local hashing with a hash over the words that the string needs. The collector extends, level by level, only
prefixes that many people share. Two people in five are on the last level and report the whole string: they confirm the
few candidates. A person sends one report, so the loss is epsilon for any number of levels.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.local.protocols.protocol import (
    Payloads,
    SupportCounts,
    as_payloads,
    as_records,
    code_type,
    kept_chance,
    respond,
    spread_of,
)
from tacit.noise import Bits, draw_below
from tacit.numbers import Flags, Integers, Words, ball, nearest_float

HASH_BITS = 32
SIZE_MAX = 1 << HASH_BITS
CELLS_MAX = 1 << 16
# Reports counted at a time: their hashes stay in the second-level cache while x steps through the domain.
_BLOCK = 1 << 14


@dataclass(frozen=True)
class LocalHashing(SupportCounts):
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

    def supporting(self, payloads: Payloads, codes: Integers) -> Flags:
        """Return whether each report's cell is that of each of these codes."""
        records = as_records(payloads, self._type)
        hashed = records["a"][:, None] * codes.astype(np.uint64)[None, :] + records["b"][:, None]
        found: Flags = cells_of(hashed, self.cells) == records["cell"][:, None]
        return found

    def parameters(self) -> dict[str, str | int]:
        return {"cells": self.cells, "keep": str(self.keep)}


def perturbed_cells(hashed: Words, cells: int, keep: Fraction, bits: Bits) -> Integers:
    """Return the cell of each hash through randomized response on cells."""
    return respond(cells_of(hashed, cells), cells, keep, bits)


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


# Four symbols of one byte fill the 32 bits that one word of the hash takes.
SYMBOLS_A_WORD = 4
SYMBOLS_MAX = 255
# ---- frequent strings ------------------------------------------------------------------------------------------------


# The first level tries every prefix, up to about this many.
FIRST_MOST = 4096
# Of five people, how many help to find strings; the others confirm the strings found.
FINDERS, OF = 3, 5


@dataclass(frozen=True)
class PrefixHashing:
    """A report is a level, a hash function and a cell; codes are rows of symbols, 0 past a string's end.

    Privacy: epsilon-DP for each string: level and hash are drawn without looking, the cell is randomized response.
    """

    epsilon: Fraction
    length: int
    symbols: int
    step: int = 1

    name = "prefix"

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """How many symbols each level reports: more and more to find strings, and all of them again to confirm them."""
        first = min(self.step, self.length)
        while first < self.length and (self.symbols + 1) ** (first + 1) <= FIRST_MOST:
            first += 1
        return (*range(first, self.length, self.step), self.length, self.length)

    @property
    def levels(self) -> int:
        """How many levels there are, the one that confirms included."""
        return len(self.ends)

    @property
    def words(self) -> int:
        """How many 32-bit words hold a string."""
        return -(-self.length // SYMBOLS_A_WORD)

    @cached_property
    def cells(self) -> int:
        """How many cells: the number near e^ε + 1 that errs least."""
        return LocalHashing(2, self.epsilon).cells

    @cached_property
    def keep(self) -> Fraction:
        """The chance that a report supports the sender's prefix."""
        return kept_chance(self.epsilon, outside=self.cells - 1)

    @cached_property
    def stray(self) -> Fraction:
        """The chance, over hashes too, that a report supports any one other prefix of its level."""
        shared = shared_cell(self.cells)
        return shared * self.keep + (1 - shared) * (1 - self.keep) / (self.cells - 1)

    @cached_property
    def _type(self) -> np.dtype[Any]:
        return np.dtype([("level", "u1"), ("a", "<u8", (self.words,)), ("b", "<u8"), ("cell", code_type(self.cells))])

    @property
    def payload_bytes(self) -> int:
        """A level, a word for every four symbols and one more, and a cell."""
        return self._type.itemsize

    def draw(self, codes: NDArray[np.uint8], bits: Bits) -> Payloads:
        """Return a payload for each row of symbols.

        Privacy: epsilon-DP for each row, exactly.
        """
        records = np.empty(len(codes), dtype=self._type)
        level = self._draw_levels(len(codes), bits)
        records["level"] = level
        records["a"] = bits.words(len(codes) * self.words).reshape(len(codes), self.words)
        records["b"] = bits.words(len(codes))
        beyond = np.arange(self.length)[None, :] >= np.array(self.ends)[level][:, None]
        hashed = records["b"] + (records["a"] * pack_symbols(np.where(beyond, 0, codes))).sum(axis=1, dtype=np.uint64)
        records["cell"] = perturbed_cells(hashed, self.cells, self.keep, bits)
        return as_payloads(records)

    def _draw_levels(self, n: int, bits: Bits) -> Integers:
        """The finding levels are equally likely, and together they have probability FINDERS in OF."""
        finding = self.levels - 1
        place = draw_below(OF * finding, n, bits)
        return np.minimum(place // FINDERS, finding)

    def valid(self, payloads: Payloads) -> Flags:
        """Return which payloads name a level and a cell that there are."""
        records = as_records(payloads, self._type)
        found: Flags = (records["level"] < self.levels) & (records["cell"] < self.cells)
        return found

    def tally(self, payloads: Payloads) -> Payloads:
        """Return the reports themselves: which prefixes to count is known only level by level."""
        return np.array(payloads)

    def merge(self, one: Payloads, other: Payloads) -> Payloads:
        """Return the reports of two batches together."""
        return np.concatenate([one, other])

    def parameters(self) -> dict[str, str | int]:
        ends = " ".join(map(str, self.ends))
        return {"cells": self.cells, "keep": str(self.keep), "length": self.length, "step": self.step, "levels": ends}

    def count_extensions(self, tally: Payloads, level: int, prefixes: NDArray[np.uint8]) -> tuple[int, Integers]:
        """Return how many reports a level has and how many support each prefix extended by each symbol.

        `prefixes` are rows of symbols that are 0 from the last symbol of this level on: (prefixes, length).
        """
        records = as_records(tally, self._type)
        records = records[records["level"] == level]
        last = self.ends[level] - 1
        word, shift = divmod(last, SYMBOLS_A_WORD)
        starts, lengths = cell_edges(self.cells)
        counts = np.zeros((len(prefixes), self.symbols + 1), dtype=np.int64)
        packed = pack_symbols(prefixes)
        for begin in range(0, len(records), _BLOCK):
            block = records[begin : begin + _BLOCK]
            first = block["b"] - starts[block["cell"]]
            length = lengths[block["cell"]]
            step = np.ascontiguousarray(block["a"][:, word]) << np.uint64(8 * shift)
            for place, symbols in enumerate(packed):
                here: Words = first + (block["a"] * symbols[None, :]).sum(axis=1, dtype=np.uint64)
                for symbol in range(self.symbols + 1):
                    counts[place, symbol] += np.count_nonzero(here < length)
                    here += step
        return len(records), counts

    def count_strings(self, tally: Payloads, strings: NDArray[np.uint8]) -> tuple[int, Integers]:
        """Return how many reports confirm, and how many of them support each string: (strings, length)."""
        records = as_records(tally, self._type)
        records = records[records["level"] == self.levels - 1]
        starts, lengths = cell_edges(self.cells)
        first, length = records["b"] - starts[records["cell"]], lengths[records["cell"]]
        counts = np.zeros(len(strings), dtype=np.int64)
        for place, symbols in enumerate(pack_symbols(strings)):
            here: Words = first + (records["a"] * symbols[None, :]).sum(axis=1, dtype=np.uint64)
            counts[place] = np.count_nonzero(here < length)
        return len(records), counts


def pack_symbols(codes: NDArray[Any]) -> Words:
    """Return rows of symbols as rows of words below 2^32, the first symbol lowest."""
    rows, length = codes.shape
    padded = np.zeros((rows, -(-length // SYMBOLS_A_WORD) * SYMBOLS_A_WORD), dtype=np.uint8)
    padded[:, :length] = codes
    return padded.view("<u4").astype(np.uint64)
