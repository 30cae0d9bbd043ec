"""Frequent strings from reports of prefixes: level by level, only what many share is extended.

A level's candidates are the kept prefixes with every next symbol, and the most frequent are kept, few enough to extend.
Other people then confirm the whole strings: shown are those whose support is beyond what chance gives any of them.
"""

import math
from dataclasses import dataclass
from itertools import product
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.local.estimate import ReportLaw
from tacit.local.estimating import Basis, FrequencyEstimate, FromReports, estimate_counts
from tacit.local.intervals import Counting
from tacit.local.prefixes import PrefixHashing
from tacit.local.records import Text
from tacit.noise.threshold import Integers
from tacit.privacy.symmetric import least_integer

KEPT_MOST = 64
# A prefix is extended from so many standard deviations above chance on.
DEVIATIONS_LEAST = 1.0
# The chance that any string is shown that nobody has.
FALSE_SHOWN = 0.01


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
    """Return the frequent strings that the reports show.

    Which strings are tried depends on other people's reports than those that confirm them.
    """
    prefixes = np.zeros((1, question.length), dtype=np.uint8)
    for level in range(protocol.levels - 1):
        candidates = _with_middle(prefixes, protocol, level)
        reports, counts = protocol.count_extensions(tally, level, candidates)
        prefixes = _kept(candidates, counts, reports, protocol, level)
        if not len(prefixes):
            break
    reports, supports = protocol.count_strings(tally, prefixes)
    shown = np.flatnonzero(supports >= _threshold(reports, len(prefixes), protocol))
    shown = shown[np.argsort(-supports[shown], kind="stable")]
    values = tuple(question.string_of(row) for row in prefixes[shown])
    counting = Counting(protocol.keep, protocol.stray, reports, basis.used)
    return StringsEstimate(estimate_counts(values, supports[shown], counting, basis), basis)


def _threshold(reports: int, tried: int, protocol: PrefixHashing) -> int:
    """Return the least support that none of the strings tried reaches by chance, but for `FALSE_SHOWN`."""
    law, allowed = ReportLaw(reports, float(protocol.keep), float(protocol.stray)), FALSE_SHOWN / max(tried, 1)
    expected = reports * law.stray
    guess = expected + NormalDist().inv_cdf(1 - allowed) * math.sqrt(expected * (1 - law.stray))
    return least_integer(lambda support: support > reports or law.at_least(0, support) <= allowed, round(guess))


def _with_middle(prefixes: NDArray[np.uint8], protocol: PrefixHashing, level: int) -> NDArray[np.uint8]:
    """Return prefixes with every choice of a level's symbols but the last; past a string's end only its end follows."""
    first = protocol.ends[level - 1] if level else 0
    middle = protocol.ends[level] - 1 - first
    rows = []
    for prefix in prefixes:
        for symbols in product(range(protocol.symbols + 1), repeat=middle):
            row = prefix.copy()
            row[first : first + middle] = symbols
            if _ends_once(row, first + middle):
                rows.append(row)
    return np.array(rows, dtype=np.uint8).reshape(len(rows), protocol.length)


def _kept(
    candidates: NDArray[np.uint8], counts: Integers, reports: int, protocol: PrefixHashing, level: int
) -> NDArray[np.uint8]:
    """Return the extended prefixes with the most support."""
    last = protocol.ends[level] - 1
    rows = np.repeat(candidates, protocol.symbols + 1, axis=0)
    rows[:, last] = np.tile(np.arange(protocol.symbols + 1, dtype=np.uint8), len(candidates))
    possible = np.array([_ends_once(row, last + 1) for row in rows], dtype=np.bool_)
    rows, supports = rows[possible], counts.ravel()[possible]
    stray = float(protocol.stray)
    least = reports * stray + DEVIATIONS_LEAST * math.sqrt(reports * stray * (1 - stray))
    order = np.argsort(-supports, kind="stable")[:KEPT_MOST]
    return rows[order[supports[order] > least]]


def _ends_once(row: NDArray[np.uint8], length: int) -> bool:
    """Whether no symbol follows a string's end within this length."""
    ended = np.flatnonzero(row[:length] == 0)
    return not ended.size or not row[ended[0] : length].any()
