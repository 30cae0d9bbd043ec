"""The discrete staircase distribution, drawn exactly: a level from a small table, then a uniform point on the level.

The first level holds 2·width - 1 integers around 0, every other one 2·sensitivity, half on either side
(docs/proofs/staircase.md).
"""

from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb

from tacit.errors import InvalidParameter
from tacit.noise.bits import Bits
from tacit.noise.coins import draw_below
from tacit.noise.threshold import WIDTH, IntegerNoise, ThresholdTable, floors_one_by_one
from tacit.privacy import SCALE_MAX, Integers, StaircaseLaw, show

# A word can reach fewer levels than this, which limits the table.
LEVELS_MOST = 1 << 16
FITS = 1 << 62


class DiscreteStaircase(IntegerNoise):
    """Integer noise that hides a move of one number by up to `sensitivity`, exact for every rational epsilon.

    >>> noise = DiscreteStaircase(StaircaseLaw(Fraction(3), sensitivity=10, width=2))
    >>> noise.sample(5).dtype, round(noise.pmf(0), 6)
    (dtype('int64'), 0.247041)
    """

    law: StaircaseLaw

    def __init__(self, law: StaircaseLaw) -> None:
        if law.sensitivity > SCALE_MAX or law.epsilon * LEVELS_MOST < 2 * WIDTH:
            raise InvalidParameter(
                "this staircase cannot be drawn: it has too many steps or levels\nhint: use Laplace noise"
            )
        self.law = law

    def _draw(self, n: int, bits: Bits) -> Integers:
        return draw_staircase(self.law, n, bits, WIDTH)

    def __repr__(self) -> str:
        law = self.law
        return f"DiscreteStaircase(epsilon={show(law.epsilon)}, sensitivity={law.sensitivity}, width={law.width})"


def draw_staircase(law: StaircaseLaw, n: int, bits: Bits, width: int) -> Integers:
    """Return `n` draws.

    Privacy: exactly the law. A point is drawn on both kinds of level, and one is kept, so that the time does not
    depend on the level.
    """
    levels = level_table(law, width).draw(n, bits)
    inner = draw_below(2 * law.width - 1, n, bits)
    outer = draw_below(2 * law.sensitivity, n, bits)
    if n and int(levels.max()) > FITS // law.sensitivity - 2:
        levels, outer = levels.astype(object), outer.astype(object)
    place, negative = outer >> 1, (outer & 1).astype(bool)
    size = law.width + (levels - 1) * law.sensitivity + place
    found: Integers = np.where(levels == 0, inner - (law.width - 1), np.where(negative, -size, size))
    return found


@lru_cache(maxsize=128)
def level_table(law: StaircaseLaw, width: int) -> ThresholdTable:
    def cdf(level: int) -> arb:
        return arb(0) if level < 0 else 1 - law.beyond(level)

    # 7/10 > ln 2: one word cannot separate the levels beyond
    reach = int(Fraction(7, 10) * (width + 1) / law.epsilon) + 2
    return ThresholdTable(0, floors_one_by_one(cdf, range(reach), width=width), cdf, width=width)
