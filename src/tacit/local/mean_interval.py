"""The interval of a mean behind perturbed reports, in fractions of the range.

One-bit reports are ones with a chance that is linear in the value; their sum varies at most as a binomial of the same
mean does, so Wilson's interval covers. Otherwise the spread of the reports' own estimates is used, which is at least
that of the noise; for few reports Hoeffding's, which holds for any number (docs/proofs/local.md).
"""

import math
from fractions import Fraction
from statistics import NormalDist
from typing import Any

from numpy.typing import NDArray

from tacit.local.means import CELLS, ONE_BIT, ONES, PIECEWISE, SQUARES, MeanResponse

# Below this the mean of bounded reports is not yet near a normal one.
NORMAL_FROM = 100


def mean_interval(protocol: MeanResponse, tally: NDArray[Any], confidence: float) -> tuple[float, float, float] | None:
    """Return the unbiased mean and the ends of its interval; None without a report."""
    one_bit, ones, piecewise, cells, squares = (
        int(tally[place]) for place in (ONE_BIT, ONES, PIECEWISE, CELLS, SQUARES)
    )
    n = one_bit + piecewise
    if not n:
        return None
    slope, start = protocol.bit_line
    total = (ones - one_bit * start) / slope
    if not piecewise:
        low, high = _wilson(ones, n, confidence)
        return float(total / n), float((low - start) / slope), float((high - start) / slope)
    square = (ones * (1 - start) ** 2 + (one_bit - ones) * start**2) / slope**2
    slope, start = protocol.cell_line
    total += (cells - piecewise * start) / slope
    square += (squares - 2 * start * cells + piecewise * start**2) / slope**2
    mean = total / n
    if n < NORMAL_FROM:
        least, most = protocol.extremes()
        half = (most - least) * math.sqrt(math.log(2 / (1 - confidence)) / (2 * n))
    else:
        half = NormalDist().inv_cdf(0.5 + confidence / 2) * math.sqrt(float((square - n * mean**2) / (n - 1) / n))
    return float(mean), float(mean) - half, float(mean) + half


def _wilson(ones: int, n: int, confidence: float) -> tuple[Fraction, Fraction]:
    """Return Wilson's interval for a chance, half a report allowed for whole numbers."""
    z = NormalDist().inv_cdf(0.5 + confidence / 2)

    def end(seen: float, side: float) -> Fraction:
        root = math.sqrt(max(z**2 / 4 + seen * (1 - seen / n), 0.0))
        return Fraction((seen + z**2 / 2 + side * z * root) / (n + z**2))

    return end(max(ones - 0.5, 0.0), -1.0), end(min(ones + 0.5, float(n)), 1.0)
