"""Loops that hash and code cells, compiled by numba: 64-bit words and texts, compared whole.

Hashes are of values and a `coding.Secret` that is new for every question: values with equal hashes cannot be chosen
(docs/proofs/nothing-fails.md). Importing numba takes a while, so only `compiled` imports this.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])
_njit: Any = numba.njit  # its types do not have all of its options


def loop(function: Function) -> Function:
    """Compile a function that Python calls, and keep its machine code."""
    compiled: Function = _njit(cache=True, nogil=True, no_cfunc_wrapper=True)(function)
    return compiled


def part_of_loops(function: Function) -> Function:
    """Compile a function that only loops call, without the two more by which Python and C could call it."""
    compiled: Function = _njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
    return compiled


PRIME = np.uint64((1 << 61) - 1)
LOW_30, LOW_31 = np.uint64((1 << 30) - 1), np.uint64((1 << 31) - 1)
TEXT_STEP = 7  # bytes that are read as one number below the prime


@part_of_loops
def mix(word: Any, more: Any) -> Any:
    """Return a 64-bit hash of two words that are secret themselves, one-to-one in either."""
    word = (word ^ more) * np.uint64(0xBF58476D1CE4E5B9)
    word ^= word >> np.uint64(29)
    word *= np.uint64(0x94D049BB133111EB)
    word ^= word >> np.uint64(32)
    word *= np.uint64(0x9E3779B97F4A7C15)
    return word ^ (word >> np.uint64(31))


@part_of_loops
def hash_word(word: Any, secret: Any) -> Any:
    """Return a keyed hash of a 64-bit word, one-to-one; its top bits are those of a multiplication by a secret."""
    word = (np.uint64(word) + secret.add_first) * secret.times_first
    word ^= word >> np.uint64(32)
    word = (word + secret.add_second) * secret.times_second
    word ^= word >> np.uint64(29)
    word = (word + secret.add_third) * secret.times_third
    return word ^ (word >> np.uint64(32))


@part_of_loops
def _shift_for(slots: Any) -> Any:
    """Return how far a hash is shifted to be a slot: its top bits say where to look first."""
    bits = 0
    while 1 << bits < len(slots):
        bits += 1
    return np.uint64(64 - bits)


@loop
def hash_words(words: Any, secret: Any, out: Any) -> None:
    for place in range(len(words)):
        out[place] = hash_word(words[place], secret)


@loop
def hash_texts(data: Any, ends: Any, secret: Any, out: Any) -> None:
    """Hash each of some texts; text i is data[ends[i] : ends[i + 1]]."""
    for place in range(len(ends) - 1):
        out[place] = _hash_text(data, ends[place], ends[place + 1] - ends[place], secret)


@loop
def code_texts(data: Any, ends: Any, start: Any, secret: Any, slots: Any, hashes: Any, known: Any, arena: Any) -> Any:
    """Code texts from `start` on, in place of their ends; return the number of coded ones: fewer without enough room.

    Text i is data[ends[i] : ends[i + 1]], that of code c in the arena at known[1 + c] … known[2 + c]; known[0] counts
    codes.
    """
    mask, shift = len(slots) - 1, _shift_for(slots)
    begin = ends[start]
    for place in range(start, len(ends) - 1):
        end = ends[place + 1]
        size = end - begin
        word = _hash_text(data, begin, size, secret)
        slot = np.int64(word >> shift)
        while True:
            code = slots[slot]
            if code < 0:
                code = known[0]
                at = known[1 + code]
                if 2 * (code + 1) > mask or code + 2 >= len(known) or at + size > len(arena):
                    return place
                for byte in range(size):
                    arena[at + byte] = data[begin + byte]
                slots[slot] = code
                hashes[code] = word
                known[0] = code + 1
                known[2 + code] = at + size
                break
            if hashes[code] == word and _same_bytes(data, begin, size, arena, known[1 + code], known[2 + code]):
                break
            slot = (slot + 1) & mask
        ends[place] = code
        begin = end
    return len(ends) - 1


@loop
def find_texts(data: Any, ends: Any, secret: Any, slots: Any, hashes: Any, known: Any, arena: Any, places: Any) -> None:
    """Write the code of each text that `code_texts` has coded, and -1 for every other."""
    mask, shift = len(slots) - 1, _shift_for(slots)
    for place in range(len(ends) - 1):
        begin, size = ends[place], ends[place + 1] - ends[place]
        word = _hash_text(data, begin, size, secret)
        slot = np.int64(word >> shift)
        code = slots[slot]
        while code >= 0:
            if hashes[code] == word and _same_bytes(data, begin, size, arena, known[1 + code], known[2 + code]):
                break
            slot = (slot + 1) & mask
            code = slots[slot]
        places[place] = code


@part_of_loops
def _hash_text(data: Any, begin: Any, size: Any, secret: Any) -> Any:
    """Return a keyed hash: the text as a polynomial, at a secret point of the prime field, then hashed as a word."""
    total, place = np.uint64(size), 0
    while place < size:
        part = np.uint64(0)
        for byte in range(min(TEXT_STEP, size - place)):
            part |= np.uint64(data[begin + place + byte]) << np.uint64(8 * byte)
        total = _reduced(_times_in_field(total, secret.point) + part)
        place += TEXT_STEP
    return hash_word(_times_in_field(total, secret.point), secret)


@part_of_loops
def _times_in_field(one: Any, two: Any) -> Any:
    """Return the product of two numbers below 2^61 in the prime field; no intermediate value is beyond 64 bits."""
    one_high, one_low = one >> np.uint64(31), one & LOW_31
    two_high, two_low = two >> np.uint64(31), two & LOW_31
    middle = one_low * two_high + one_high * two_low
    high = one_high * two_high * np.uint64(2) + (middle >> np.uint64(30))
    return _reduced(high + ((middle & LOW_30) << np.uint64(31)) + one_low * two_low)


@part_of_loops
def _reduced(number: Any) -> Any:
    number = (number >> np.uint64(61)) + (number & PRIME)
    return number - PRIME if number >= PRIME else number


@part_of_loops
def _same_bytes(data: Any, begin: Any, size: Any, arena: Any, at: Any, end: Any) -> Any:
    if end - at != size:
        return False
    for byte in range(size):  # noqa: SIM110 - numba knows no all() of a generator
        if data[begin + byte] != arena[at + byte]:
            return False
    return True


@loop
def code_words(words: Any, start: Any, secret: Any, slots: Any, values: Any, known: Any, codes: Any) -> Any:
    """Code 64-bit words from `start` on; return the number of coded ones: fewer if there is not enough room."""
    mask, shift = len(slots) - 1, _shift_for(slots)
    for place in range(start, len(words)):
        word = words[place]
        slot = np.int64(hash_word(word, secret) >> shift)
        while True:
            code = slots[slot]
            if code < 0:
                code = known[0]
                if 2 * (code + 1) > mask or code >= len(values):
                    return place
                slots[slot] = code
                values[code] = word
                known[0] = code + 1
                break
            if values[code] == word:
                break
            slot = (slot + 1) & mask
        codes[place] = code
    return len(words)


@loop
def refill(slots: Any, hashes: Any, count: Any) -> None:
    """Put codes 0 … count-1 into empty slots again, by their hashes."""
    mask, shift = len(slots) - 1, _shift_for(slots)
    for code in range(count):
        slot = np.int64(hashes[code] >> shift)
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = code
