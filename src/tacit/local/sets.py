"""An even choice of a given number of places, for many rows at once, as packed bits.

Equal coins leave all sets of one number equally likely. In one word they are tossed until every wanted number has come
up often enough; two words first share the number between them by its exact law; more are tossed and evened out, one
evenly chosen place at a time (docs/proofs/local.md).
"""

from fractions import Fraction
from functools import lru_cache
from math import comb

import numpy as np
from flint import arb

from tacit.local.coins import draw_packed_heads
from tacit.local.unary import last_mask, width_of
from tacit.noise import uniform
from tacit.noise.bits import Bits, Words
from tacit.noise.threshold import WIDTH, Integers, ThresholdTable
from tacit.privacy.rounding import ball

_WORD = 64
# Places tried for each row before rows that are done are set aside.
_AT_ONCE = 8


def draw_sets(size: int, members: Integers, bits: Bits) -> Words:
    """Return an even choice of as many of `size` places as each row wants, as packed bits.

    Privacy: every set of the wanted number is equally likely, exactly.
    """
    if size <= _WORD:
        return _words_of(size, members, bits)[:, None]
    if size <= 2 * _WORD:
        first = np.empty(len(members), dtype=np.int64)
        for number in np.unique(members).tolist():
            rows = np.flatnonzero(members == number)
            first[rows] = share_table(_WORD, size - _WORD, number).draw(len(rows), bits)
        return np.stack([_words_of(_WORD, first, bits), _words_of(size - _WORD, members - first, bits)], axis=1)
    words = _tossed(size, float(members.mean()), len(members), bits)
    _even_out(words, size, members, bits)
    return words


@lru_cache(maxsize=1024)
def share_table(left: int, right: int, members: int) -> ThresholdTable:
    """Return the law of how many of an even choice of `members` among left + right places are among the left ones."""
    least, most = max(0, members - right), min(left, members)
    total = comb(left + right, members)
    sums = [0]
    for place in range(least, most + 1):
        sums.append(sums[-1] + comb(left, place) * comb(right, members - place))

    def cdf(place: int) -> arb:
        return ball(Fraction(sums[min(max(place - least + 1, 0), len(sums) - 1)], total))

    thresholds = [(below << WIDTH) // total for below in sums[1:-1]]
    return ThresholdTable(least, thresholds, cdf, last=most)


def _words_of(size: int, members: Integers, bits: Bits) -> Words:
    """Return an even choice of as many of at most 64 places as each row wants: toss, and hand out by number."""
    words = np.empty(len(members), dtype=np.uint64)
    rows = np.argsort(members.astype(np.uint8), kind="stable")  # by wanted number
    least = 64
    while rows.size:
        wanted = members[rows]
        pool = _tossed(size, float(wanted.mean()), max(least, rows.size + rows.size // 2), bits).ravel()
        sizes = np.bitwise_count(pool)
        pool = pool[np.argsort(sizes, kind="stable")]
        needed = np.bincount(wanted, minlength=_WORD + 1)
        there = np.bincount(sizes, minlength=_WORD + 1)
        left = []
        row_start = pool_start = 0
        for need, have in zip(needed.tolist(), there.tolist(), strict=True):
            take = min(need, have)
            if need:
                words[rows[row_start : row_start + take]] = pool[pool_start : pool_start + take]
                left.append(rows[row_start + take : row_start + need])
            row_start += need
            pool_start += have
        rows = np.concatenate(left)
        least *= 2  # what is left is rare: look further each time
    return words


def _tossed(size: int, mean: float, rows: int, bits: Bits) -> Words:
    """Return sets made by equal coins, with about this many members: all sets of one number are equally likely."""
    width = width_of(size)
    words = draw_packed_heads(_coarse_chance(size, mean), rows * width, bits).reshape(rows, width)
    words[:, -1] &= last_mask(size)
    return words


def _coarse_chance(size: int, mean: float) -> Fraction:
    """Return a chance of few binary digits, which is quick to toss, near the one asked for."""
    share = min(max(mean / size, 2.0**-8), 0.5)
    near = 0.5 * (share * (1 - share) / size) ** 0.5
    for digits in range(1, 9):
        chance = Fraction(max(1, round(share * 2**digits)), 2**digits)
        if abs(float(chance) - share) <= near:
            return chance
    return Fraction(max(1, round(share * 2**8)), 2**8)


def _even_out(words: Words, size: int, members: Integers, bits: Bits) -> None:
    """Flip evenly chosen bits until every row has as many as wanted."""
    flat = words.reshape(-1)
    surplus = sizes_of(words) - members
    rows = np.flatnonzero(surplus)
    while rows.size:
        places = uniform.draw_below(size, _AT_ONCE * len(rows), bits).reshape(_AT_ONCE, len(rows))
        where = (places >> 6) + rows * words.shape[1]
        masks = np.uint64(1) << (places & 63).astype(np.uint64)
        left = surplus[rows]
        for place, mask in zip(where, masks, strict=True):
            here = flat[place]
            # a member goes where there are too many, another comes where there are too few
            fits = ((here & mask != 0) == (left > 0)) & (left != 0)
            flat[place] = here ^ (mask * fits)
            left -= np.sign(left) * fits
        surplus[rows] = left
        rows = rows[left != 0]


def sizes_of(words: Words) -> Integers:
    sizes: Integers = np.bitwise_count(words).sum(axis=1, dtype=np.int64)
    return sizes
