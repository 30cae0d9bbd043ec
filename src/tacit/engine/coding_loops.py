"""Loops that hash and code cells, compiled by numba: 64-bit words and texts, compared whole.

Hashes are of values and a salt, never of codes. Importing numba takes a while, so only `compiled` imports this.
"""

from typing import Any

import numba
import numpy as np


@numba.njit
def mix(word: Any, more: Any) -> Any:
    """Return a 64-bit hash of two words, one-to-one in either."""
    word = (word ^ more) * np.uint64(0xBF58476D1CE4E5B9)
    word ^= word >> np.uint64(29)
    word *= np.uint64(0x94D049BB133111EB)
    word ^= word >> np.uint64(32)
    word *= np.uint64(0x9E3779B97F4A7C15)
    return word ^ (word >> np.uint64(31))


@numba.njit(cache=True, nogil=True)
def hash_words(words: Any, salt: Any, out: Any) -> None:
    """Hash each of some 64-bit words."""
    for place in range(len(words)):
        out[place] = mix(np.uint64(words[place]), salt)


@numba.njit(cache=True, nogil=True)
def code_texts(data: Any, ends: Any, start: Any, salt: Any, slots: Any, hashes: Any, known: Any, arena: Any) -> Any:
    """Code texts from `start` on, in place of their ends; return how many were coded: fewer where there is no room.

    Text i is data[ends[i] : ends[i + 1]]. known[0] is how many codes there are; the text of code c is in the arena at
    known[1 + c] … known[2 + c]. A text is compared whole.
    """
    mask = len(slots) - 1
    begin = ends[start]
    for place in range(start, len(ends) - 1):
        end = ends[place + 1]
        size = end - begin
        word = _hash_text(data, begin, size, salt)
        slot = np.int64(word) & mask
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
            if hashes[code] == word and _same(data, begin, size, arena, known[1 + code], known[2 + code]):
                break
            slot = (slot + 1) & mask
        ends[place] = code
        begin = end
    return len(ends) - 1


@numba.njit
def _hash_text(data: Any, begin: Any, size: Any, salt: Any) -> Any:
    word = mix(salt, np.uint64(size))
    place = 0
    while place < size:
        part = np.uint64(0)
        for byte in range(min(8, size - place)):
            part |= np.uint64(data[begin + place + byte]) << np.uint64(8 * byte)
        word = mix(word, part)
        place += 8
    return word


@numba.njit
def _same(data: Any, begin: Any, size: Any, arena: Any, at: Any, end: Any) -> Any:
    if end - at != size:
        return False
    for byte in range(size):  # noqa: SIM110 - numba knows no all() of a generator
        if data[begin + byte] != arena[at + byte]:
            return False
    return True


@numba.njit(cache=True, nogil=True)
def code_words(words: Any, start: Any, slots: Any, values: Any, known: Any, codes: Any) -> Any:
    """Code 64-bit words from `start` on; return how many were coded: fewer where there is no room."""
    mask = len(slots) - 1
    for place in range(start, len(words)):
        word = words[place]
        slot = np.int64(mix(np.uint64(word), np.uint64(1))) & mask
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


@numba.njit(cache=True, nogil=True)
def find_words(words: Any, slots: Any, values: Any, places: Any) -> None:
    """Write the code of each 64-bit word that `code_words` has coded, and -1 for every other."""
    mask = len(slots) - 1
    for place in range(len(words)):
        word = words[place]
        slot = np.int64(mix(np.uint64(word), np.uint64(1))) & mask
        code = slots[slot]
        while code >= 0 and values[code] != word:
            slot = (slot + 1) & mask
            code = slots[slot]
        places[place] = code


@numba.njit(cache=True, nogil=True)
def find_near(words: Any, least: Any, place_of: Any, places: Any) -> None:
    """Write place_of[word - least] for each 64-bit word, and -1 for those outside."""
    for place in range(len(words)):
        at = np.uint64(words[place]) - np.uint64(least)  # what is below wraps around, far beyond the end
        places[place] = place_of[at] if at < np.uint64(len(place_of)) else -1


@numba.njit(cache=True, nogil=True)
def refill(slots: Any, hashes: Any, count: Any) -> None:
    """Put codes 0 … count-1 into empty slots again, by their hashes."""
    mask = len(slots) - 1
    for code in range(count):
        slot = np.int64(hashes[code]) & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = code
