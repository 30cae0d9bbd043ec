"""The discrete Laplace distribution: mass proportional to exp(-|x| / scale) on the integers, drawn exactly.

Small scales are one table. Wide ones use that the digits of a geometric number are independent: the sign and the top
digit are one small table, each lower digit another, so a scale of 2^56 costs seven lookups (docs/proofs/laplace.md).

The first part computes the tables' thresholds: certain floors of a whole geometric progression at once, without one
ball per value. All tables here satisfy F(k+1) = r·F(k) + (1-r)·limit. Its values are u + w·v for a few dozen u, w and v
in 128 bits, each too low by a counted error, so that long integers can multiply many at a time. If the error could
change a floor, None is returned and the caller falls back to balls (docs/proofs/thresholds.md).

The discrete staircase distribution, drawn exactly: a level from a small table, then a uniform point on the level.

The first level holds 2·width - 1 integers around 0, every other one 2·sensitivity, half on either side
(docs/proofs/staircase.md).
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb

from tacit.errors import InvalidParameter
from tacit.noise.bits import Bits
from tacit.noise.coins import draw_below
from tacit.noise.threshold import PIECE, WIDTH, IntegerNoise, ThresholdTable, floors_one_by_one
from tacit.numbers import Formula, Integers, Number, Words, ball, binary_meaning, show, working_precision
from tacit.privacy import SCALE_MAX, SCALE_MIN, LaplaceLaw, StaircaseLaw

# Values are integers in units of 2^-128: 64 bits of threshold, and 64 that a few hundred units of error hardly reach.
LENGTH = 128
FIELD_BYTES = 2 * LENGTH // 8


def progression_floors(exponent: Fraction, *, starts: Sequence[Formula], limit: Formula, count: int) -> Words | None:
    """Return floor(2^64·F(k)) for k = 0 … count-1, or None if one is in doubt.

    r = exp(-exponent), F(0) is a start and F(k+1) = r·F(k) + (1-r)·limit. With several starts there are several F,
    listed in turn for each k. All are from 0 to below 1: for every k, or for a count that is a power of two.

    Privacy: every floor is certain, by a bound of the error and not by an estimate of it.
    """
    # About four times more columns than rows, each of which costs a call; two rows or more, of a size that divides
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
        factors=_affine(1 << LENGTH, far_ratio, 0, rows),
        parts=[part for together in listed for part in together],
        missing=3 * columns + 5 * rows,
    )
    return None if found is None else found[: count * len(firsts)]


def certain_grid(*, offsets: Sequence[int], factors: Sequence[int], parts: Sequence[int], missing: int) -> Words | None:
    """Return floor(2^64·(u + w·v)) for each pair (u, w) of an offset and a factor and, in each, for each part v.

    All are integers in units of 2^-128, at or below numbers from 0 to 1 with u + w·v < 1 for each. `missing` is at
    least the total error of a u, a w and a v. None if that could change any floor.

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
    """Return floor(2^128·x) for each constant, or None if with twice the digits one remains in doubt."""
    with working_precision(2 * LENGTH):
        found = [(constant * arb(2) ** LENGTH).floor().unique_fmpz() for constant in constants()]
    certain = [int(floor) for floor in found if floor is not None]
    return certain if len(certain) == len(found) else None


# Up to here one table of both signs is quick to build and stays in the cache.
ONE_TABLE_MOST = 64
DIGIT_BITS_MOST = 10


# ---- the distribution ------------------------------------------------------------------------------------------------


class DiscreteLaplace(IntegerNoise):
    """Integer noise with mass proportional to exp(-|x| / scale), exact for every rational scale.

    >>> noise = DiscreteLaplace(2)
    >>> noise.sample(5).dtype, round(noise.pmf(0), 6), noise.quantile(0.975)
    (dtype('int64'), 0.244919, 6)
    """

    def __init__(self, scale: Number) -> None:
        self.scale: Fraction = check_scale(scale, name="scale")
        self.law = LaplaceLaw(self.scale)

    def _draw(self, n: int, bits: Bits) -> Integers:
        return laplace_tables(self.scale, WIDTH).draw(n, bits)

    def __repr__(self) -> str:
        return f"DiscreteLaplace(scale={show(self.scale)})"


def check_scale(value: Number, *, name: str) -> Fraction:
    """Return a noise scale as an exact rational between 1/10^6 and 2^56, or refuse."""
    exact = binary_meaning(value, name=name)
    if not SCALE_MIN <= exact <= SCALE_MAX:
        raise InvalidParameter(
            f"{name} must lie between 1/10^6 and 2^56 grid steps, not {show(exact)}"
            "\nhint: measure in a coarser or a finer unit, so that the noise spans a number of steps in that range"
        )
    return exact


class DigitTables:
    """A discrete Laplace law of a wide scale, as a table for (top digit, sign) and one for each lower digit."""

    def __init__(self, scale: Fraction, digit_bits: tuple[int, ...], width: int) -> None:
        self.width = width
        self.digit_bits = digit_bits
        self.low_bits: int = sum(digit_bits)
        self.top: ThresholdTable = _top_table(scale, 1 << self.low_bits, width)
        self.digits = []
        weight = 1
        for size in digit_bits:  # from the lowest digit up
            self.digits.append(_digit_table(scale, weight, 1 << size, width))
            weight <<= size

    def draw(self, n: int, bits: Bits) -> Integers:
        """Return `n` draws.

        Privacy: exactly the law: X is G with chance 1/(1+q) and -1-G otherwise, G geometric in q = exp(-1/scale).
        """
        if n == 1:
            return self._draw_one(bits)
        pieces = [self._draw_piece(min(PIECE, n - start), bits) for start in range(0, n, PIECE)]
        return np.concatenate(pieces) if pieces else np.empty(0, dtype=np.int64)

    def _draw_one(self, bits: Bits) -> Integers:
        """A draw in Python integers, which is quicker than arrays of one.

        Lower digits are nearly uniform, so that a search for them takes much the same time for each.
        """
        words = bits.words(1 + len(self.digits), self.width)
        top = self.top.place_of(words[:1], bits)
        value = top >> 1 << self.low_bits
        weight = 0
        for word, size, table in zip(words[1:].tolist(), self.digit_bits, self.digits, strict=True):
            value |= table.settle(word, bits) << weight
            weight += size
        value ^= -(top & 1)
        return np.array([value], dtype=np.int64 if -(1 << 63) <= value < 1 << 63 else object)

    def _draw_piece(self, n: int, bits: Bits) -> Integers:
        top = self.top.draw(n, bits)
        negative = -(top & 1)
        top >>= 1
        if int(top.max()) >> (63 - self.low_bits):
            top, negative = top.astype(object), negative.astype(object)
        value = top << self.low_bits
        weight = 0
        for size, table in zip(self.digit_bits, self.digits, strict=True):
            value |= table.draw(n, bits) << weight
            weight += size
        value ^= negative
        return value


@lru_cache(maxsize=128)
def laplace_tables(scale: Fraction, width: int) -> ThresholdTable | DigitTables:
    """Return the tables that draw this law, built once for each scale."""
    if scale <= ONE_TABLE_MOST:
        return _one_table(scale, width)
    low_bits = int(scale).bit_length() - 1
    count = -(-low_bits // DIGIT_BITS_MOST)
    return DigitTables(scale, tuple((low_bits + i) // count for i in range(count)), width)


def _one_table(scale: Fraction, width: int) -> ThresholdTable:
    """Both signs in one table: F(x) = q^-x/(1+q) below zero and 1 - q^(x+1)/(1+q) from zero on."""
    reach = _last_place(Fraction(1) / scale, width)

    def start() -> arb:
        return 1 / (1 + ball(-Fraction(1) / scale).exp())

    law = LaplaceLaw(scale)
    upper = progression_floors(Fraction(1) / scale, starts=[start], limit=_one, count=reach + 1)
    # F(-x-1) = 1 - F(x), and no F(x)·2^64 is an integer: the floors of both add up to 2^64 - 1
    both = None if upper is None else np.concatenate([~upper[::-1], upper])
    return _certain_table(both, law.cdf, range(-(reach + 1), reach + 1), width)


def _digit_table(scale: Fraction, weight: int, base: int, width: int) -> ThresholdTable:
    """A digit d in 0 … base-1 with mass proportional to r^d, r = exp(-weight/scale): F(d) = (1-r^(d+1))/(1-r^base)."""
    exponent = Fraction(weight) / scale

    def cdf(d: int) -> arb:
        return -(ball(-(d + 1) * exponent).expm1()) / -(ball(-base * exponent).expm1())

    def limit() -> arb:
        return -1 / ball(-base * exponent).expm1()

    found = progression_floors(exponent, starts=[lambda: arb(0)], limit=limit, count=base)  # F(-1), F(0), …
    return _certain_table(None if found is None else found[1:], cdf, range(base - 1), width, last=base - 1)


def _top_table(scale: Fraction, weight: int, width: int) -> ThresholdTable:
    """2·top + sign, where top is geometric in r = exp(-weight/scale) and the sign is 0 with chance 1/(1+q).

    F(2k) = 1 - r^k + r^k·(1-r)/(1+q) = 1 - r^k·(q+r)/(1+q) and F(2k+1) = 1 - r^(k+1).
    """
    exponent = Fraction(weight) / scale

    def both_signs() -> arb:
        return -ball(-exponent).expm1()

    def plus() -> arb:
        return both_signs() / (1 + ball(-Fraction(1) / scale).exp())

    def cdf(index: int) -> arb:
        k, q, r = index // 2, ball(-Fraction(1) / scale).exp(), ball(-exponent).exp()
        if index < 0:
            return arb(0)
        if index % 2:
            return -ball(-(k + 1) * exponent).expm1()
        return 1 - ball(-k * exponent).exp() * (q + r) / (1 + q)

    count = _last_place(exponent, width) + 2
    found = progression_floors(exponent, starts=[plus, both_signs], limit=_one, count=count)
    return _certain_table(found, cdf, range(2 * count), width)


def _certain_table(
    floors: Words | None, cdf: Callable[[int], arb], values: range, width: int, *, last: int | None = None
) -> ThresholdTable:
    """Return the table of these values: the top bits of their floors, or if these are in doubt one by one.

    Privacy: certain either way.
    """
    cut = floors_one_by_one(cdf, values, width=width) if floors is None else floors >> np.uint64(64 - width)
    return ThresholdTable(values.start, cut, cdf, last=last, width=width)


def _one() -> arb:
    return arb(1)


def _last_place(exponent: Fraction, width: int) -> int:
    """Return k with exp(-k·exponent) below 2^-(width+1), so that every threshold past it is 2^width - 1 or 0."""
    return int(Fraction(7, 10) * (width + 1) / exponent) + 1  # 7/10 > ln 2


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
