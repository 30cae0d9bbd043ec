"""The mean of values in a range, one value a person: a hybrid of Duchi's one bit and the piecewise response.

A value is first put on a public grid of N + 1 points, up or down by a coin so that it is right on average. Duchi: a
coin with the value's own chance, through binary randomized response. Piecewise: one of N + w cells, evenly from the w
cells that begin at the value with chance w·e^ε/(w·e^ε + N) and evenly from the N others else. A public coin chooses
which of the two. Expectations are linear in the value, so the estimate is unbiased (docs/proofs/local.md).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from tacit.local.protocols.protocol import Payloads, as_payloads, as_records, kept_chance
from tacit.noise import CHANCE_BITS, ONE, Bits, draw_below, draw_heads, draw_heads_each
from tacit.numbers import Flags, Integers, ball, certain_floor, nearest_float

GRID_BITS = 20
# Below this epsilon the hybrid is only Duchi's response; above it a share 1 - e^(-ε/2) of piecewise errs less.
HYBRID_FROM = Fraction(61, 100)

# indices of the counters: one-bit reports, ones among them, piecewise reports, their cells' sum and sum of squares
ONE_BIT, ONES, PIECEWISE, CELLS, SQUARES = range(5)
# squares of cells of 2^22 add up in 64 bits for this many reports
_BLOCK = 1 << 18

_TYPE = np.dtype([("piecewise", "u1"), ("cell", "<u4")])


@dataclass(frozen=True)
class MeanResponse:
    """A report is one bit, or one cell, for a value on the grid 0, …, 2^grid_bits.

    Privacy: epsilon-DP for each value: each output's chance moves by at most a factor e^epsilon between any two values.
    """

    epsilon: Fraction
    grid_bits: int = GRID_BITS

    name = "hybrid"

    @property
    def steps(self) -> int:
        """N: the range in grid steps."""
        return 1 << self.grid_bits

    @cached_property
    def share(self) -> Fraction:
        """The chance that a report is piecewise."""
        if self.epsilon <= HYBRID_FROM:
            return Fraction(0)
        scaled = certain_floor(lambda: -(ball(-self.epsilon / 2).expm1()) * arb(2) ** CHANCE_BITS)
        return Fraction(min(scaled, ONE - 1), ONE)

    @cached_property
    def keep(self) -> Fraction:
        """The chance that the one bit is sent as it is."""
        return kept_chance(self.epsilon, outside=1)

    @cached_property
    def window(self) -> int:
        """w: how many cells are favoured, about N·e^(-ε/2)."""
        half = min(self.epsilon / 2, Fraction(100))
        return max(1, round(nearest_float(lambda: self.steps * ball(-half).exp())))

    @cached_property
    def inside(self) -> Fraction:
        """The chance that a cell is one of the favoured."""
        return kept_chance(self.epsilon, inside=self.window, outside=self.steps)

    @property
    def payload_bytes(self) -> int:
        """Which kind, and a bit or a cell."""
        return _TYPE.itemsize

    def draw(self, codes: Integers, bits: Bits) -> Payloads:
        """Return a payload for each grid point.

        Privacy: epsilon-DP for each grid point, exactly; which kind a report is does not depend on the value.
        """
        n = len(codes)
        piecewise = draw_heads(self.share, n, bits) if self.share else np.zeros(n, dtype=np.bool_)
        records = np.empty(n, dtype=_TYPE)
        records["piecewise"] = piecewise
        records["cell"] = np.where(piecewise, self._draw_cells(codes, bits), self._draw_bits(codes, bits))
        return as_payloads(records)

    def _draw_bits(self, codes: Integers, bits: Bits) -> Integers:
        own = draw_heads_each(codes.astype(np.uint64), bits, self.grid_bits)
        sent: Integers = (own == draw_heads(self.keep, len(codes), bits)).astype(np.int64)
        return sent

    def _draw_cells(self, codes: Integers, bits: Bits) -> Integers:
        favoured = codes + draw_below(self.window, len(codes), bits)
        others = draw_below(self.steps, len(codes), bits)
        others += self.window * (others >= codes)  # the cells before the window, then those after it
        return np.where(draw_heads(self.inside, len(codes), bits), favoured, others)

    def valid(self, payloads: Payloads) -> Flags:
        """Return which payloads are of a kind that is sent, with a bit or a cell that there is."""
        records = as_records(payloads, _TYPE)
        most = np.where(records["piecewise"] == 1, self.steps + self.window, 2)
        found: Flags = (records["piecewise"] <= int(self.share > 0)) & (records["cell"] < most)
        return found

    def tally(self, payloads: Payloads) -> NDArray[Any]:
        """Return the five counters, as whole numbers of any size."""
        total = np.zeros(5, dtype=object)
        records = as_records(payloads, _TYPE)
        for start in range(0, len(records), _BLOCK):
            block = records[start : start + _BLOCK]
            cells, piecewise = block["cell"].astype(np.uint64), block["piecewise"] == 1
            within = cells[piecewise]
            ones = int(cells[~piecewise].sum())
            sums = (len(cells) - len(within), ones, len(within), int(within.sum()), int(np.dot(within, within)))
            total = total + np.array([int(part) for part in sums], dtype=object)
        return total

    def merge(self, one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
        """Return the counters of two batches together."""
        total: NDArray[Any] = one + other
        return total

    def parameters(self) -> dict[str, str | int]:
        stated: dict[str, str | int] = {"grid_bits": self.grid_bits, "share": str(self.share), "keep": str(self.keep)}
        return stated | ({"window": self.window, "inside": str(self.inside)} if self.share else {})

    @cached_property
    def bit_line(self) -> tuple[Fraction, Fraction]:
        """Slope and start of the expected bit as a function of the value as a fraction of the range."""
        return 2 * self.keep - 1, 1 - self.keep

    @cached_property
    def cell_line(self) -> tuple[Fraction, Fraction]:
        """Slope and start of the expected cell as a function of the value as a fraction of the range."""
        w, n = self.window, self.steps
        outside = 1 - self.inside
        slope = self.inside - outside * Fraction(w, n)
        cells = n + w
        others = Fraction(cells * (cells - 1) - w * (w - 1), 2 * n)
        return slope * n, self.inside * Fraction(w - 1, 2) + outside * others

    def extremes(self) -> tuple[float, float]:
        """Return the least and the largest estimate that one report can give, as fractions of the range."""
        ends = [float((bit - self.bit_line[1]) / self.bit_line[0]) for bit in (0, 1)]
        if self.share:
            last = self.steps + self.window - 1
            ends += [float((cell - self.cell_line[1]) / self.cell_line[0]) for cell in (0, last)]
        return min(ends), max(ends)

    def variance(self, value: Fraction) -> float:
        """Return the variance of one report's estimate of a value, both in fractions of the range."""
        slope, start = self.bit_line
        one = start + slope * value
        total = (1 - self.share) * (one * (1 - start) ** 2 + (1 - one) * start**2) / slope**2 - value**2
        if self.share:
            slope, start = self.cell_line
            total += self.share * self._square(value, start) / slope**2
        return float(total)

    def _square(self, value: Fraction, start: Fraction) -> Fraction:
        """Return E[(cell - start)²] for a value on the grid."""
        code, w, n = value * self.steps, self.window, self.steps
        window = _squares(code + w - start) - _squares(code - start)
        everything = _squares(n + w - start) - _squares(-start)
        return self.inside * window / w + (1 - self.inside) * (everything - window) / n


def _squares(x: Fraction) -> Fraction:
    """Return a function with squares as its differences: S(x + 1) - S(x) = x²."""
    return x * (x - 1) * (2 * x - 1) / 6
