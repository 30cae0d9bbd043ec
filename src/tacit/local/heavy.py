"""Frequent strings from reports of prefixes: level by level, only what many share is extended.

A level's candidates are the kept prefixes with every next symbol. Kept are those whose estimated count is beyond what
chance gives any of them, and the most frequent among those.
"""

import math
from dataclasses import dataclass
from itertools import product
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.local.estimating import Basis, FrequencyEstimate, FromReports, estimate_counts
from tacit.local.intervals import Counting
from tacit.local.prefixes import PrefixHashing
from tacit.local.records import Text
from tacit.noise.threshold import Integers

KEPT_MOST = 64
# The chance that a level keeps any prefix that nobody has.
FALSE_KEPT = 0.01


@dataclass(frozen=True)
class StringsEstimate(FromReports):
    """The strings that many share, most frequent first, with counts and intervals."""

    found: FrequencyEstimate
    basis: Basis

    @property
    def strings(self) -> tuple[str, ...]:
        """The strings, most frequent first."""
        return tuple(str(value) for value in self.found.values)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, for JSON."""
        return self.found.to_dict()

    def __str__(self) -> str:
        return str(self.found) if self.found.values else f"no string is frequent enough to show\n{self.basis.line()}"

    __repr__ = __str__


def find_strings(question: Text, protocol: PrefixHashing, tally: NDArray[Any], basis: Basis) -> StringsEstimate:
    """Return the frequent strings that the reports show."""
    prefixes = np.zeros((1, question.length), dtype=np.uint8)
    supports = np.zeros(0, dtype=np.int64)
    counting = Counting(protocol.keep, protocol.stray, 0, basis.used)
    for level in range(protocol.levels):
        candidates = _with_middle(prefixes, protocol, level)
        reports, counts = protocol.count_extensions(tally, level, candidates)
        counting = Counting(protocol.keep, protocol.stray, reports, basis.used)
        prefixes, supports = _kept(candidates, counts, counting, protocol, level)
        if not len(prefixes):
            break
    values = tuple(question.string_of(row) for row in prefixes)
    return StringsEstimate(estimate_counts(values, supports, counting, basis), basis)


def _with_middle(prefixes: NDArray[np.uint8], protocol: PrefixHashing, level: int) -> NDArray[np.uint8]:
    """Return prefixes with every choice of a level's symbols but the last; past a string's end only its end follows."""
    first = level * protocol.step
    middle = min(first + protocol.step, protocol.length) - 1 - first
    rows = []
    for prefix in prefixes:
        for symbols in product(range(protocol.symbols + 1), repeat=middle):
            row = prefix.copy()
            row[first : first + middle] = symbols
            if _ends_once(row, first + middle):
                rows.append(row)
    return np.array(rows, dtype=np.uint8).reshape(len(rows), protocol.length)


def _kept(
    candidates: NDArray[np.uint8], counts: Integers, counting: Counting, protocol: PrefixHashing, level: int
) -> tuple[NDArray[np.uint8], Integers]:
    """Return the extended prefixes that stand out, most frequent first, and their supports."""
    last = min((level + 1) * protocol.step, protocol.length) - 1
    rows = np.repeat(candidates, protocol.symbols + 1, axis=0)
    rows[:, last] = np.tile(np.arange(protocol.symbols + 1, dtype=np.uint8), len(candidates))
    possible = np.array([_ends_once(row, last + 1) for row in rows], dtype=np.bool_)
    rows, supports = rows[possible], counts.ravel()[possible]
    n, stray = counting.reports, float(counting.stray)
    quantile = NormalDist().inv_cdf(1 - FALSE_KEPT / max(len(rows), 1))
    threshold = n * stray + quantile * math.sqrt(n * stray * (1 - stray))
    order = np.argsort(-supports, kind="stable")[:KEPT_MOST]
    order = order[supports[order] > threshold]
    return rows[order], supports[order]


def _ends_once(row: NDArray[np.uint8], length: int) -> bool:
    """Whether no symbol follows a string's end within this length."""
    ended = np.flatnonzero(row[:length] == 0)
    return not ended.size or not row[ended[0] : length].any()
