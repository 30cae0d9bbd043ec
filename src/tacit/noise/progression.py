"""Certain floors of a whole geometric progression at once: the thresholds of Laplace tables, without a ball for each.

F(k+1) = r·F(k) + (1-r)·limit is what the tables of this law have in common. Its values are u + w·v for a few dozen
u, w and v in 128 bits, each low by a counted error, so that long integers can multiply many at a time. Where the
error could reach a floor, none is returned: what to do then is the caller's business (docs/proofs/thresholds.md).
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import islice

import numpy as np
from flint import arb

from tacit.noise.bits import Words
from tacit.noise.threshold import powers
from tacit.privacy.rounding import Formula, ball, working_precision

# Values are integers in units of 2^-128: 64 bits of threshold, and 64 that a few hundred units of error hardly reach.
LENGTH = 128
FIELD_BYTES = 2 * LENGTH // 8


def progression_floors(exponent: Fraction, *, starts: Sequence[Formula], limit: Formula, count: int) -> Words | None:
    """Return floor(2^64·F(k)) for k = 0 … count-1, or None where one is in doubt.

    r = exp(-exponent), F(0) is a start and F(k+1) = r·F(k) + (1-r)·limit. With several starts there are several F,
    listed in turn for each k. All are from 0 to below 1: for every k, or for a count that is a power of two.

    Privacy: every floor is certain, by a bound of the error and not by an estimate of it.
    """
    # About four times as many columns as rows, each of which costs a call; two rows or more, of a size that divides
    # a count that is a power of two.
    columns = 1 << max(0, min((4 * count).bit_length() // 2, count.bit_length() - 2))
    rows = -(-count // columns)

    def constants() -> list[arb]:
        small, large = ball(-exponent), ball(-columns * exponent)
        return [small.exp(), -small.expm1() * limit(), large.exp(), -large.expm1() * limit(), *(f() for f in starts)]

    floors = _floors(constants)
    if floors is None:
        return None
    ratio, step, far_ratio, far_step, *firsts = floors
    listed = zip(*(_affine(first, ratio, step, columns) for first in firsts), strict=True)
    found = certain_grid(
        offsets=_affine(0, far_ratio, far_step, rows),
        factors=[below for below, _ in islice(powers(far_ratio, LENGTH), rows)],
        parts=[part for together in listed for part in together],
        missing=3 * columns + 5 * rows,
    )
    return None if found is None else found[: count * len(firsts)]


def certain_grid(*, offsets: Sequence[int], factors: Sequence[int], parts: Sequence[int], missing: int) -> Words | None:
    """Return floor(2^64·(u + w·v)) for each pair (u, w) of an offset and a factor and, in each, for each part v.

    All are integers in units of 2^-128, at or below numbers from 0 to 1 with u + w·v < 1 for each. `missing` is no less
    than what a u, a w and a v lack together. None if that could change any floor.

    Privacy: a floor that is returned is the true number's.
    """
    # A field has room for a whole product, so that one multiplication of long integers makes a row of them, exactly.
    row = int.from_bytes(b"".join([part.to_bytes(FIELD_BYTES, "little") for part in parts]), "little")
    ones = int.from_bytes((1 << LENGTH).to_bytes(FIELD_BYTES, "little") * len(parts), "little")
    size = FIELD_BYTES * len(parts)
    fields = b"".join([(ones * u + row * w).to_bytes(size, "little") for u, w in zip(offsets, factors, strict=True)])
    quarters = np.frombuffer(fields, dtype="<u8").reshape(-1, 4)
    # The true number is at least the field and less than (rest + 1 + missing)·2^-128 above its floor.
    if int(quarters[:, 2].max()) + 1 + missing > 1 << 64:
        return None
    return quarters[:, 3].astype(np.uint64)


def _affine(first: int, ratio: int, step: int, count: int) -> list[int]:
    """Return x(0), x(1), … with x(k+1) = r·x(k) + c from floors of x(0), r and c, the k-th low by at most 3k + 1."""
    value, found = first, []
    for _ in range(count):
        found.append(value)
        value = (value * ratio >> LENGTH) + step
    return found


def _floors(constants: Callable[[], list[arb]]) -> list[int] | None:
    """Return floor(2^128·x) for each constant, or None if twice the digits leave one in doubt."""
    with working_precision(2 * LENGTH):
        found = [(constant * arb(2) ** LENGTH).floor().unique_fmpz() for constant in constants()]
    certain = [int(floor) for floor in found if floor is not None]
    return certain if len(certain) == len(found) else None
