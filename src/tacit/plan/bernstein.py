"""The Bernstein basis for one column or two: moments as parts that are never negative and have a fixed sum.

For y in 0 … H and a degree d, part i is C(d,i)·(H-y)^(d-i)·y^i. No part is negative, and the parts add up to
H^d for every y. So one row changes them by H^d in total, however many moments are computed from them
(docs/proofs/moments.md). For two columns the parts are the products of the parts of each. All numbers are integers or
exact rationals.
"""

from collections.abc import Sequence
from itertools import product
from math import comb, prod

Index = tuple[int, ...]


def indices(degrees: Sequence[int]) -> tuple[Index, ...]:
    """Return the index of every part.

    >>> indices((1, 1))
    ((0, 0), (0, 1), (1, 0), (1, 1))
    """
    return tuple(product(*(range(degree + 1) for degree in degrees)))


def weights_of_part(index: Index, degrees: Sequence[int], heights: Sequence[int]) -> dict[Index, int]:
    """Return the weights that make a part from sums of powers; the index (1, 2) stands for Σ y₁·y₂².

    >>> weights_of_part((0,), (1,), (10,))
    {(0,): 10, (1,): -1}
    """
    weights = {}
    spans = [range(degree - i + 1) for i, degree in zip(index, degrees, strict=True)]
    for more in product(*spans):
        sign = -1 if sum(more) % 2 else 1
        factor = prod(
            comb(degree, i) * comb(degree - i, k) * height ** (degree - i - k)
            for i, k, degree, height in zip(index, more, degrees, heights, strict=True)
        )
        weights[tuple(i + k for i, k in zip(index, more, strict=True))] = sign * factor
    return weights
