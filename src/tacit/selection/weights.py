"""Draws one candidate with probability proportional to exp(-rate·distance), exactly, from one lazily extended uniform.

The candidates' weights in turn cover [0, W); u·W falls to one of them. Running sums in floats decide where their proved
margin allows. Otherwise the same u gets more bits and the two ends are compared without error: an integer combination
of powers of e is zero only if every coefficient is, and else balls find its sign (docs/proofs/selection.md).
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from tacit.noise import WIDTH, Bits
from tacit.numbers import Flags, Floats, Integers, ball, certainly_less

# The relative error of a weight is below 2^-41 and that of a running sum of n below 2^-41 + n·2^-53.
WEIGHT_MARGIN = 2.0**-39
SUM_MARGIN = 2.0**-51
# How many running sums are computed at once.
SUMS_AT_ONCE = 1 << 19


def draw_weighted(
    distances: Integers, rate: Fraction, bits: Bits, width: int = WIDTH, *, times: Integers | None = None
) -> int:
    """Return an index with chance proportional to exp(-rate·distances[index]), distances >= 0 and one of them 0.

    With `times`, each index stands for that many candidates of the same distance, below 2^50 in all.

    Privacy: exactly that law, given uniform bits.
    """
    if int(distances.min(initial=0)) < 0:
        raise ValueError("a distance is below 0: the choice would not have the probabilities that are charged for")
    word = int(bits.words(1, width)[0])
    weights = np.exp(distances * -float(rate))
    sums = np.cumsum(weights if times is None else weights * times)
    last = len(sums) - 1
    total = float(sums[last])
    target = word * 2.0**-width * total
    margin = (WEIGHT_MARGIN + len(sums) * SUM_MARGIN + 2.0**-width) * total
    low, high = (int(index) for index in np.searchsorted(sums, [target - margin, target + margin], side="right"))
    low, high = min(low, last), min(high, last)
    if low == high:
        return low
    return _settle(ExactSums(distances, rate, times), word, low, high, bits, width)


def index_in_each(
    weights: Floats, edges: Integers, words: NDArray[np.uint64], *, left_out: float = 0.0
) -> tuple[Integers, Flags]:
    """Return the index each group's word falls to in weights[edges[g] : edges[g + 1]], and whether that is certain.

    The weights are floats within 2^-41 of the true ones; the true sum in a group may be larger by `left_out` of it.
    If it is not certain, `settle` decides by the same word.
    """
    sizes = np.diff(edges)
    indices, certain = np.zeros(len(sizes), dtype=np.int64), np.zeros(len(sizes), dtype=bool)
    classes = np.frexp(sizes.astype(np.float64))[1]
    for each in np.unique(classes):
        alike = np.flatnonzero(classes == each)
        width = int(sizes[alike].max())
        turn = max(1, SUMS_AT_ONCE // width)
        for start in range(0, len(alike), turn):
            some = alike[start : start + turn]
            cells = edges[some, None] + np.arange(width)
            inside = np.arange(width) < sizes[some, None]
            sums = np.cumsum(np.where(inside, weights[np.minimum(cells, len(weights) - 1)], 0.0), axis=1)
            total = sums[:, -1]
            targets = words[some].astype(np.float64) * 2.0**-WIDTH * total
            margins = (WEIGHT_MARGIN + width * SUM_MARGIN + 2.0**-WIDTH + 2 * left_out) * total
            low, high = ((sums <= each[:, None]).sum(axis=1) for each in (targets - margins, targets + margins))
            indices[some] = low
            certain[some] = (low == high) & (targets > margins) & (low < sizes[some])
    return indices, certain


def settle(distances: Integers, rate: Fraction, word: int, bits: Bits, *, times: Integers) -> int:
    """Return the index that a word of WIDTH bits falls to, as `draw_weighted` would, without floats."""
    return _settle(ExactSums(distances, rate, times), word, 0, len(distances) - 1, bits, WIDTH)


def _settle(sums: "ExactSums", word: int, low: int, high: int, bits: Bits, width: int) -> int:
    """Return the index with weights that hold every u beginning with `word`, which lies between `low` and `high`."""
    length = width
    while True:
        while low < high:  # the last index that begins at or before u
            middle = (low + high + 1) // 2
            if sums.compare(middle, word, length) <= 0:
                low = middle
            else:
                high = middle - 1
        if low == len(sums) - 1 or sums.compare(low + 1, word + 1, length) >= 0:
            return low
        word = (word << width) | int(bits.words(1, width)[0])
        length += width
        high = len(sums) - 1


@dataclass
class ExactSums:
    """The running sums of the weights as integer combinations of exp(-rate·level), one level per distinct distance."""

    distances: Integers
    rate: Fraction
    times: Integers | None = None

    def __post_init__(self) -> None:
        levels, self._level_of = np.unique(self.distances, return_inverse=True)
        self._levels = [int(level) for level in levels]
        self._counts = self._before(len(self.distances))

    def __len__(self) -> int:
        return len(self.distances)

    def compare(self, index: int, word: int, length: int) -> int:
        """Return the sign of the weights before `index` minus word/2^length of all of them."""
        excess = self._before(index) * (1 << length) - self._counts * word
        terms = [(level, part) for level, part in zip(self._levels, excess, strict=True) if part]
        if not terms:
            return 0
        if len(terms) == 1:
            return 1 if terms[0][1] > 0 else -1
        return 1 if certainly_less(lambda: arb(0), lambda: self._sum(terms)) else -1

    def _before(self, index: int) -> NDArray[Any]:
        """Return the number of candidates per level before an index; float sums of integers below 2^53 are exact."""
        times = None if self.times is None else self.times[:index]
        counts = np.bincount(self._level_of[:index], weights=times, minlength=len(self._levels))
        return counts.astype(np.int64).astype(object)

    def _sum(self, terms: list[tuple[int, int]]) -> arb:
        """Return Σ part·exp(-rate·(level - first level)) as a ball; terms too small to matter go into its radius."""
        first = terms[0][0]
        rest = sum(abs(part) for _, part in terms)
        total = arb(0)
        for level, part in terms:
            weight = ball(-self.rate * (level - first)).exp()
            if rest * weight < arb(2) ** -ctx.prec:
                return total + (rest * weight).union(-rest * weight)
            total += part * weight
            rest -= abs(part)
        return total
