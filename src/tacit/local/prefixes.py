"""Frequent strings of a domain too large to list: each person reports one prefix of theirs, hashed locally.

A person is put on a level at random and reports the first symbols of their string, as many as the level has, through
local hashing with a hash of as many words as the string needs. The collector extends, level by level, the prefixes that
many share: only those are ever tried. The last level has two people in five, who report the whole string: they confirm
the few that are left. One person sends one report: the loss is epsilon, however many levels there are.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.local.coins import kept_chance
from tacit.local.hashing import LocalHashing, cell_edges, perturbed_cells, shared_cell
from tacit.local.protocol import Flags, Law, Payloads, as_payloads, as_records, code_type
from tacit.noise import uniform
from tacit.noise.bits import Bits, Words
from tacit.noise.threshold import Integers

# Four symbols of one byte fill the 32 bits that one word of the hash takes.
SYMBOLS_A_WORD = 4
SYMBOLS_MAX = 255
# The first level tries every prefix, up to about so many.
FIRST_MOST = 4096
# Of five people, how many help to find strings; the others confirm what was found.
FINDERS, OF = 3, 5
_BLOCK = 1 << 14


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
        """Each level that finds is as likely as another, and all of them together as FINDERS in OF."""
        finding = self.levels - 1
        place = uniform.draw_below(OF * finding, n, bits)
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

    def law(self, code: int) -> Law:
        """Return the chance of each cell on the first level of a string that hashes to the cell `code`."""
        other = (1 - self.keep) / (self.cells - 1)
        return {cell.to_bytes(4, "little"): self.keep if cell == code else other for cell in range(self.cells)}

    def parameters(self) -> dict[str, str | int]:
        """Return what the header says of it."""
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
