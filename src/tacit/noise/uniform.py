"""A whole number below m with every value equally likely: no remainder of a word is ever folded back.

2^w mod m words of the 2^w are left over; a word among those is thrown away and a new one drawn. Whether one is thrown
away says nothing about what is kept (docs/proofs/selection.md).
"""

import numpy as np

from tacit.errors import InvalidParameter
from tacit.noise.bits import Bits
from tacit.noise.threshold import WIDTH, Integers


def draw_below(most: int, n: int, bits: Bits, width: int = WIDTH) -> Integers:
    """Return `n` independent whole numbers, each uniform on 0, …, most - 1.

    Privacy: exactly uniform, given uniform bits.
    """
    if not 1 <= most <= 1 << min(width, 63):
        raise InvalidParameter(f"most must lie between 1 and 2^{min(width, 63)}, not {most}")
    if most == 1:
        return np.zeros(n, dtype=np.int64)
    words = bits.words(n, width)
    last = np.uint64((1 << width) - (1 << width) % most - 1)
    while (left_over := np.flatnonzero(words > last)).size:
        words[left_over] = bits.words(left_over.size, width)
    return (words % np.uint64(most)).astype(np.int64)
