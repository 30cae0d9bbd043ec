"""Subset selection: a report is a set of w codes, the sender's among them with probability w·e^ε/(w·e^ε + k - w).

The other members are a uniform choice among all other codes. The first part draws such choices for many rows at once,
as packed bits. Fair coins make all sets of one size equally likely. Within one word coins are tossed until every wanted
size has come up often enough. Two words first divide the size between them by its exact distribution. More words are
tossed and then corrected, one uniformly chosen bit at a time (docs/proofs/local.md).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import comb

import numpy as np
from flint import arb

from tacit.local.protocols.protocol import Payloads, SupportCounts, kept_chance, spread_of
from tacit.local.protocols.unary import BitReports, as_bytes, as_words, bit_of, last_mask, set_bits, width_of
from tacit.noise import WIDTH, Bits, ThresholdTable, draw_below, draw_heads, draw_packed_heads
from tacit.numbers import Flags, Integers, Words, ball, nearest_float

_WORD = 64
# Places tried for each row before rows that are done are set aside.
_AT_ONCE = 8


def draw_sets(size: int, members: Integers, bits: Bits) -> Words:
    """Return, for each row, a uniform choice of its wanted number of bits out of `size`, as packed bits.

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
    """Return the distribution of how many of `members` uniformly chosen bits, out of left + right, are left ones."""
    least, most = max(0, members - right), min(left, members)
    total = comb(left + right, members)
    sums = [0]
    for count in range(least, most + 1):
        sums.append(sums[-1] + comb(left, count) * comb(right, members - count))

    def cdf(count: int) -> arb:
        return ball(Fraction(sums[min(max(count - least + 1, 0), len(sums) - 1)], total))

    thresholds = [(below << WIDTH) // total for below in sums[1:-1]]
    return ThresholdTable(least, thresholds, cdf, last=most)


def _words_of(size: int, members: Integers, bits: Bits) -> Words:
    """Return, for each row, a uniform choice of its wanted number of at most 64 bits: toss words, assign by size."""
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
        least *= 2  # the remaining sizes are rare: toss more words each time
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
    """Flip uniformly chosen bits until every row has its wanted number."""
    flat = words.reshape(-1)
    surplus = sizes_of(words) - members
    rows = np.flatnonzero(surplus)
    while rows.size:
        indices = draw_below(size, _AT_ONCE * len(rows), bits).reshape(_AT_ONCE, len(rows))
        where = (indices >> 6) + rows * words.shape[1]
        masks = np.uint64(1) << (indices & 63).astype(np.uint64)
        left = surplus[rows]
        for index, mask in zip(where, masks, strict=True):
            here = flat[index]
            # a member leaves a set that is too large, another joins a set that is too small
            fits = ((here & mask != 0) == (left > 0)) & (left != 0)
            flat[index] = here ^ (mask * fits)
            left -= np.sign(left) * fits
        surplus[rows] = left
        rows = rows[left != 0]


def sizes_of(words: Words) -> Integers:
    sizes: Integers = np.bitwise_count(words).sum(axis=1, dtype=np.int64)
    return sizes


# Words drawn at a time: enough rows for the last few to cost little.
PIECE_WORDS = 1 << 17
PIECE_ROWS = 1 << 12


@dataclass(frozen=True)
class Subset(SupportCounts, BitReports):
    """A report is a set of `members` codes, as packed bits; of all protocols it errs least.

    Privacy: epsilon-DP for each code: a set with the sender's code is at most e^epsilon times as likely as one without.
    """

    size: int
    epsilon: Fraction

    name = "subset"

    @cached_property
    def members(self) -> int:
        """How many codes a report holds: the number near k/(e^ε + 1) that errs least."""
        ideal = nearest_float(lambda: self.size / (ball(self.epsilon).exp() + 1)) if self.epsilon < 100 else 0.0
        wanted = {min(max(1, int(ideal) + step), self.size - 1) for step in (0, 1)}
        return min(wanted, key=self._spread)

    @cached_property
    def keep(self) -> Fraction:
        """The chance that a report holds the sender's code."""
        return kept_chance(self.epsilon, inside=self.members, outside=self.size - self.members)

    @cached_property
    def stray(self) -> Fraction:
        """The chance that a report holds any one other code."""
        return self._stray(self.keep, self.members)

    def draw(self, codes: Integers, bits: Bits) -> Payloads:
        """Return a payload for each code.

        Privacy: epsilon-DP for each code, exactly.
        """
        rows = max(PIECE_ROWS, PIECE_WORDS // width_of(self.size))
        pieces = [self._draw_piece(codes[start : start + rows], bits) for start in range(0, len(codes), rows)]
        return np.concatenate(pieces) if pieces else np.empty((0, self.payload_bytes), dtype=np.uint8)

    def _draw_piece(self, codes: Integers, bits: Bits) -> Payloads:
        own = draw_heads(self.keep, len(codes), bits)
        words = draw_sets(self.size - 1, self.members - own.astype(np.int64), bits)
        if width_of(self.size) > words.shape[1]:
            words = np.hstack([words, np.zeros((len(words), 1), dtype=np.uint64)])
        # the others are all codes but the sender's: the last code stands in its place
        last = np.full(len(codes), self.size - 1)
        set_bits(words, last, bit_of(words, codes))
        set_bits(words, codes, own)
        return as_bytes(words)

    def valid(self, payloads: Payloads) -> Flags:
        """Return which payloads are sets of the right size within the domain."""
        words = as_words(payloads)
        found: Flags = BitReports.valid(self, payloads) & (sizes_of(words) == self.members)
        return found

    def parameters(self) -> dict[str, str | int]:
        return {"members": self.members, "keep": str(self.keep)}

    def _stray(self, keep: Fraction, members: int) -> Fraction:
        return (keep * (members - 1) + (1 - keep) * members) / (self.size - 1)

    def _spread(self, members: int) -> float:
        keep = kept_chance(self.epsilon, inside=members, outside=self.size - members)
        return spread_of(keep, self._stray(keep, members)).mean_over(self.size)
