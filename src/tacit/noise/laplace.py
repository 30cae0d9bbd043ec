"""The discrete Laplace law: mass proportional to exp(-|x| / scale) on the integers, drawn exactly.

Small scales are one table. Wide ones use that the digits of a geometric number are independent: the sign and the top
digit are one small table, each lower digit another, so a scale of 2^56 costs seven lookups (docs/proofs/laplace.md).
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb

from tacit.errors import InvalidParameter
from tacit.noise.bits import Bits, Words
from tacit.noise.integer_noise import IntegerNoise
from tacit.noise.progression import progression_floors
from tacit.noise.threshold import PIECE, WIDTH, Bounds, Integers, ThresholdTable, certain_thresholds, powers
from tacit.privacy.law import SCALE_MAX, SCALE_MIN, LaplaceLaw
from tacit.privacy.number import Number, binary_meaning, show
from tacit.privacy.rounding import ball, certain_floor

# Up to here one table of both signs is quick to build and stays in the cache.
ONE_TABLE_MOST = 64
DIGIT_BITS_MOST = 10


class DiscreteLaplace(IntegerNoise):
    """Integer noise with mass proportional to exp(-|x| / scale), exact for every rational scale.

    >>> noise = DiscreteLaplace(2)
    >>> noise.sample(5).dtype, round(noise.pmf(0), 6), noise.quantile(0.975)
    (dtype('int64'), 0.244919, 6)
    """

    def __init__(self, scale: Number) -> None:
        self.scale = check_scale(scale, name="scale")
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
        self.low_bits = sum(digit_bits)
        self.top = _top_table(scale, 1 << self.low_bits, width)
        self.digits = []
        place = 1
        for size in digit_bits:  # from the lowest digit up
            self.digits.append(_digit_table(scale, place, 1 << size, width))
            place <<= size

    def draw(self, n: int, bits: Bits) -> Integers:
        """Return `n` draws.

        Privacy: exactly the law: X is G with chance 1/(1+q) and -1-G otherwise, G geometric in q = exp(-1/scale).
        """
        if n == 1:
            return self._draw_one(bits)
        pieces = [self._draw_piece(min(PIECE, n - start), bits) for start in range(0, n, PIECE)]
        return np.concatenate(pieces) if pieces else np.empty(0, dtype=np.int64)

    def _draw_one(self, bits: Bits) -> Integers:
        """One draw in Python integers, which is quicker than arrays of one.

        Lower digits are nearly uniform, so that a search for them takes much the same time for each.
        """
        words = bits.words(1 + len(self.digits), self.width)
        top = self.top.place_of(words[:1], bits)
        value = top >> 1 << self.low_bits
        place = 0
        for word, size, table in zip(words[1:].tolist(), self.digit_bits, self.digits, strict=True):
            value |= table.settle(word, bits) << place
            place += size
        value ^= -(top & 1)
        return np.array([value], dtype=np.int64 if -(1 << 63) <= value < 1 << 63 else object)

    def _draw_piece(self, n: int, bits: Bits) -> Integers:
        top = self.top.draw(n, bits)
        negative = -(top & 1)
        top >>= 1
        if int(top.max()) >> (63 - self.low_bits):
            top, negative = top.astype(object), negative.astype(object)
        value = top << self.low_bits
        place = 0
        for size, table in zip(self.digit_bits, self.digits, strict=True):
            value |= table.draw(n, bits) << place
            place += size
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
    ratio = _exp_floor(Fraction(1) / scale)
    reach = _reach(Fraction(1) / scale, width)

    def bounds(guard: int) -> Bounds:
        length = width + guard
        q = ratio(length)
        whole = 1 << length
        tails = []  # bounds of q^k/(1+q) for k = 0 … reach + 1
        for (power, error), _ in zip(powers(q, length), range(reach + 2), strict=False):
            tails.append((((power << length) // (whole + q + 1)), -((-(power + error) << length) // (whole + q))))
        for below, above in reversed(tails[1:]):
            yield below, above
        for below, above in tails[1:]:
            yield whole - above, whole - below

    def start() -> arb:
        return 1 / (1 + ball(-Fraction(1) / scale).exp())

    law = LaplaceLaw(scale)
    upper = progression_floors(Fraction(1) / scale, starts=[start], limit=_one, count=reach + 1)
    # F(-x-1) = 1 - F(x), and no F(x)·2^64 is an integer: the floors of both add up to 2^64 - 1
    both = None if upper is None else np.concatenate([~upper[::-1], upper])
    return ThresholdTable(-(reach + 1), _thresholds(both, bounds, width), law.cdf, width=width)


def _digit_table(scale: Fraction, place: int, base: int, width: int) -> ThresholdTable:
    """A digit d in 0 … base-1 with mass proportional to r^d, r = exp(-place/scale): F(d) = (1-r^(d+1))/(1-r^base)."""
    exponent = Fraction(place) / scale
    ratio = _exp_floor(exponent)

    def bounds(guard: int) -> Bounds:
        length = width + 2 * guard
        whole = 1 << length
        listed = [pair for pair, _ in zip(powers(ratio(length), length), range(base + 1), strict=False)]
        last_below, last_error = listed[base]
        for below, error in listed[1:base]:
            yield (
                (whole - below - error << width + guard) // (whole - last_below),
                -((-(whole - below) << width + guard) // (whole - last_below - last_error)),
            )

    def cdf(d: int) -> arb:
        return -(ball(-(d + 1) * exponent).expm1()) / -(ball(-base * exponent).expm1())

    def limit() -> arb:
        return -1 / ball(-base * exponent).expm1()

    found = progression_floors(exponent, starts=[lambda: arb(0)], limit=limit, count=base)  # F(-1), F(0), …
    thresholds = _thresholds(None if found is None else found[1:], bounds, width)
    return ThresholdTable(0, thresholds, cdf, last=base - 1, width=width)


def _top_table(scale: Fraction, place: int, width: int) -> ThresholdTable:
    """2·top + sign, where top is geometric in r = exp(-place/scale) and the sign is 0 with chance 1/(1+q)."""
    exponent = Fraction(place) / scale
    ratio, step = _exp_floor(exponent), _exp_floor(Fraction(1) / scale)
    reach = _reach(exponent, width)

    def bounds(guard: int) -> Bounds:
        length = width + guard
        r, q, whole = ratio(length), step(length), 1 << length
        for (power, error), _ in zip(powers(r, length), range(reach + 2), strict=False):
            # F(2k) = 1 - r^k + r^k·(1-r)/(1+q) = 1 - r^k·(q+r)/(1+q);  F(2k+1) = 1 - r^(k+1)
            yield (
                whole - -(-(power + error) * (q + r + 2) // (whole + q)),
                whole - power * (q + r) // (whole + q + 1),
            )
            yield whole - -(-(power + error) * (r + 1) // whole), whole - power * r // whole

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

    found = progression_floors(exponent, starts=[plus, both_signs], limit=_one, count=reach + 2)
    return ThresholdTable(0, _thresholds(found, bounds, width), cdf, width=width)


def _thresholds(floors: Words | None, bounds: Callable[[int], Bounds], width: int) -> Words | list[int]:
    """Return the thresholds of `width` bits: the top of those of 64, or where these are in doubt one by one.

    Privacy: certain either way.
    """
    if floors is None:
        return certain_thresholds(bounds, width=width)
    return floors >> np.uint64(64 - width)


def _one() -> arb:
    return arb(1)


def _exp_floor(exponent: Fraction) -> Callable[[int], int]:
    """Return a function of a length: floor(exp(-exponent)·2^length), certain."""
    return lambda length: certain_floor(lambda: ball(-exponent).exp() * arb(2) ** length)


def _reach(exponent: Fraction, width: int) -> int:
    """Return k with exp(-k·exponent) below 2^-(width+1), so that every threshold past it is 2^width - 1 or 0."""
    return int(Fraction(7, 10) * (width + 1) / exponent) + 1  # 7/10 > ln 2
