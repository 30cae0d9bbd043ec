"""Moments as parts that are never negative and add up: the Bernstein basis, for one column or two.

For y in 0 … H and a degree d, part i is C(d,i)·(H-y)^(d-i)·y^i: none is negative and together they are H^d, whatever
y is. So one row moves them by H^d in all, however many moments are read off them (docs/proofs/moments.md). For two
columns the parts are the products of theirs. Everything is whole numbers or exact rationals.
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
    """Return what each sum of a power counts in a part: the part is their weighted sum; powers[(1, 2)] is Σ y₁·y₂².

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
