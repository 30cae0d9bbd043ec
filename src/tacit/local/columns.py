"""Add up the columns of packed bits: how many of many rows have each bit set, 64 columns to a word.

Rows are added as binary numbers held bit-sliced, one word per digit: two of k digits make one of k + 1 by a full adder
on whole words. Eight rounds turn 256 rows into nine words of digits, which are unpacked once.
"""

import numpy as np

from tacit.noise.bits import Words
from tacit.noise.threshold import Integers

_ROUNDS = 8
_ROWS = 1 << _ROUNDS
# Words that are added side by side: a block of 256 rows of them stays in the second-level cache.
_LANES = 512


def count_columns(words: Words) -> Integers:
    """Return, for rows of words, how many rows have each bit set: 64 counts a word, lowest bit first.

    >>> count_columns(np.array([[5], [4]], dtype=np.uint64))[:4].tolist()
    [1, 0, 2, 0]
    """
    width = words.shape[1]
    totals = np.zeros(64 * width, dtype=np.int64)
    for first in range(0, width, _LANES):
        columns = slice(first, min(first + _LANES, width))
        totals[64 * columns.start : 64 * columns.stop] = _count_narrow(words[:, columns])
    return totals


def _count_narrow(words: Words) -> Integers:
    rows, width = words.shape
    lanes = max(1, _LANES // width)
    totals = np.zeros(64 * width, dtype=np.int64)
    for start in range(0, rows, _ROWS * lanes):
        piece = words[start : start + _ROWS * lanes]
        if len(piece) < _ROWS * lanes:
            lanes = -(-len(piece) // _ROWS)
            padded = np.zeros((_ROWS * lanes, width), dtype=np.uint64)
            padded[: len(piece)] = piece
            piece = padded
        totals += _count_block(piece.reshape(_ROWS, lanes * width)).reshape(lanes, 64 * width).sum(axis=0)
    return totals


def _count_block(rows: Words) -> Integers:
    """Return the column counts of 256 rows."""
    digits = [rows]  # digits[i]: the digit of weight 2^i of each group's count, one row a group
    for _ in range(_ROUNDS):
        half = len(digits[0]) // 2
        digits = _add([digit[:half] for digit in digits], [digit[half:] for digit in digits])
    counts = np.zeros(64 * rows.shape[1], dtype=np.int64)
    for weight, digit in enumerate(digits):
        ones = np.unpackbits(digit[0].astype("<u8").view(np.uint8), bitorder="little")
        counts += ones.astype(np.int64) << weight
    return counts


def _add(one: list[Words], other: list[Words]) -> list[Words]:
    """Return the digits of the sums: a ripple of full adders."""
    total = [one[0] ^ other[0]]
    carry = one[0] & other[0]
    for left, right in zip(one[1:], other[1:], strict=True):
        either = left ^ right
        total.append(either ^ carry)
        either &= carry
        carry = left & right
        carry |= either
    return [*total, carry]
