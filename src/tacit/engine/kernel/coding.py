"""Codes cells as small numbers: each distinct value gets a code when it first comes, and a hash of the value itself.

Which rows of a unit are kept is decided by hashes of values, then by values, never by codes.
"""

import hashlib
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.numbers import Words

Codes = NDArray[np.int64]
NULL_CODE = 0
MASK = (1 << 32) - 1
ROOM = 1 << 12
# Codes are 32 bits wide in the tables and in rows.
CODES_MOST = (1 << 31) - 2


class OverMemory(Exception):
    """The kernel needs more memory than its share; no row is lost, because another path takes over the question."""


class Secret(NamedTuple):
    """The key of a hash: new for every question, so that values cannot be chosen for their hashes."""

    times_first: np.uint64  # the factors are odd
    times_second: np.uint64
    times_third: np.uint64
    add_first: np.uint64
    add_second: np.uint64
    add_third: np.uint64
    point: np.uint64  # of the field in which texts are polynomials


def make_secret(salt: str, purpose: str) -> Secret:
    """Return a secret that depends on the salt and its purpose."""
    digest = hashlib.blake2b(f"{purpose}\n{salt}".encode(), digest_size=56).digest()
    words = [int.from_bytes(digest[at : at + 8], "little") for at in range(0, 56, 8)]
    first, second, third = (np.uint64(word | 1) for word in words[:3])
    return Secret(first, second, third, *(np.uint64(word) for word in (*words[3:6], words[6] >> 3)))


def hashed(words: Codes, secret: Secret) -> Words:
    """Return the keyed hash of each word."""
    from tacit.engine.kernel import coding_loops as loops

    hashes = np.empty(len(words), dtype=np.uint64)
    loops.hash_words(as_input(words), secret, hashes)
    return hashes


def keyed_hash(words: Words, secret: Secret) -> Words:
    """Return what the compiled `hash_word` does, for arrays."""
    word = (words + secret.add_first) * secret.times_first
    word ^= word >> np.uint64(32)
    word = (word + secret.add_second) * secret.times_second
    word ^= word >> np.uint64(29)
    word = (word + secret.add_third) * secret.times_third
    return word ^ (word >> np.uint64(32))


def null_hash(secret: Secret) -> np.uint64:
    """Return the hash of NULL: that of a secret word."""
    return np.uint64(keyed_hash(np.full(1, secret.point), secret)[0])


def mixed(word: Words, more: Words | np.uint64) -> Words:
    """Return what the compiled `mix` does, for arrays."""
    word = (word ^ more) * np.uint64(0xBF58476D1CE4E5B9)
    word ^= word >> np.uint64(29)
    word *= np.uint64(0x94D049BB133111EB)
    word ^= word >> np.uint64(32)
    word *= np.uint64(0x9E3779B97F4A7C15)
    return word ^ (word >> np.uint64(31))


def is_number(kind: pa.DataType) -> bool:
    """Return whether 64 bits distinguish cells of this type."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_temporal(kind)
    )


def cells_of(column: pa.Array) -> NDArray[Any]:
    """Return a column of plain numbers, NULL as any; Arrow's own to_numpy would import pandas first."""
    kind = column.type
    letter = "f" if pa.types.is_floating(kind) else "u" if pa.types.is_unsigned_integer(kind) else "i"
    if not len(column):
        return np.empty(0, dtype=f"{letter}{kind.bit_width // 8}")
    cells = np.frombuffer(column.buffers()[1], dtype=f"{letter}{kind.bit_width // 8}")
    return cells[column.offset : column.offset + len(column)]


def as_words(column: pa.Array) -> Codes:
    """Return numbers, dates and times as 64-bit words, equal if and only if the cells are; NULL is any word."""
    kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif pa.types.is_temporal(kind):
        column = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    cells = cells_of(column)
    if pa.types.is_floating(kind):
        positive: NDArray[np.float64] = cells.astype(np.float64) + 0.0  # -0.0 is 0.0
        return positive.view(np.int64)
    return np.ascontiguousarray(cells.view(np.int64) if kind == pa.uint64() else cells, dtype=np.int64)


class WordCoder:
    """Codes 64-bit words (numbers, times, pairs of codes), batch by batch, as they first come; NULL's code is 0."""

    def __init__(self, secret: Secret) -> None:
        self._secret = secret
        self._slots = np.full(2 * ROOM, -1, dtype=np.int32)
        self._words = np.zeros(ROOM, dtype=np.int64)
        self._known = np.zeros(1, dtype=np.int64)

    @property
    def bytes_held(self) -> int:
        return self._slots.nbytes + self._words.nbytes

    @property
    def words(self) -> Codes:
        """The word of each code; NULL lacks one, and 0 replaces it."""
        return np.concatenate([np.zeros(1, dtype=np.int64), self._words[: self._known[0]]])

    @property
    def hashes(self) -> Words:
        """A hash of the word of each code."""
        hashes = hashed(self.words, self._secret)
        hashes[NULL_CODE] = null_hash(self._secret)
        return hashes

    def code(self, column: pa.Array) -> Codes:
        """Return each cell's code."""
        words = as_words(column)
        if column.null_count:  # the value under a NULL is arbitrary, and may not be valid for the type
            words = np.where(is_null(column), 0, words)
        return _null_coded(self.code_words(words), column)

    def code_words(self, words: Codes) -> Codes:
        """Return the code of each word, from 1 on."""
        from tacit.engine.kernel import coding_loops as loops

        codes = np.empty(len(words), dtype=np.int64)
        words, done = as_input(words), 0
        while True:
            table = (self._slots, self._words, self._known, codes)
            if (done := loops.code_words(words, done, self._secret, *table)) == len(words):
                break
            if 2 * len(self._words) > CODES_MOST:
                raise OverMemory
            self._words = np.concatenate([self._words, np.zeros_like(self._words)])
            self._slots = np.full(2 * len(self._words), -1, dtype=np.int32)
            count = int(self._known[0])
            loops.refill(self._slots, hashed(self._words[:count], self._secret), count)
        codes += 1
        return codes

    def values(self, kind: pa.DataType) -> list[Any]:
        """Return the value of each code, the column being of this type."""
        words = self.words
        if pa.types.is_floating(kind):
            return [None, *words.view(np.float64)[1:].tolist()]
        if pa.types.is_temporal(kind):
            column = pa.array(words).cast(pa.int32()).view(kind) if kind.bit_width == 32 else pa.array(words).view(kind)
            return [None, *column[1:].to_pylist()]
        return [None, *(words.astype(bool) if pa.types.is_boolean(kind) else words)[1:].tolist()]


class TextCoder:
    """Codes texts, and decimals, by their bytes, as `WordCoder` codes words."""

    def __init__(self, secret: Secret) -> None:
        self._secret = secret
        self._slots = np.full(2 * ROOM, -1, dtype=np.int32)
        self._hashes = np.zeros(ROOM, dtype=np.uint64)
        self._known = np.zeros(ROOM + 2, dtype=np.int64)  # how many, then where each text ends in the arena
        self._arena = np.zeros(16 * ROOM, dtype=np.uint8)

    @property
    def bytes_held(self) -> int:
        return self._slots.nbytes + self._hashes.nbytes + self._known.nbytes + self._arena.nbytes

    @property
    def hashes(self) -> Words:
        null = np.full(1, null_hash(self._secret))
        return np.concatenate([null, self._hashes[: self._known[0]]])

    def hashes_of(self, codes: Codes) -> Words:
        """Return a hash of the text of each of some codes, without NULL's."""
        return self._hashes[codes - 1]

    def code(self, column: pa.Array) -> Codes:
        """Return each cell's code."""
        from tacit.engine.kernel import coding_loops as loops

        holed = column.null_count and pa.types.is_decimal(column.type)  # the value under a NULL is arbitrary
        data, ends = bytes_of(column.fill_null(Decimal(0)) if holed else column)
        done = 0
        while True:
            table = (self._slots, self._hashes, self._known, self._arena)
            done = loops.code_texts(as_input(data), ends, done, self._secret, *table)
            if done == len(column):
                return _null_coded(ends[:-1] + 1, column)
            self._grow(int(ends[done + 1] - ends[done]))

    def find(self, column: pa.Array) -> Codes:
        """Return how many texts were coded before each text was, and -1 for one that was not; NULL is any."""
        from tacit.engine.kernel import coding_loops as loops

        data, ends = bytes_of(column)
        found = np.empty(len(column), dtype=np.int64)
        table = (self._slots, self._hashes, self._known, self._arena)
        loops.find_texts(as_input(data), as_input(ends), self._secret, *table, found)
        return found

    def _grow(self, text: int) -> None:
        from tacit.engine.kernel import coding_loops as loops

        count = int(self._known[0])
        if self._known[1 + count] + text > len(self._arena):
            self._arena = np.concatenate([self._arena, np.zeros(max(len(self._arena), text), dtype=np.uint8)])
        if 2 * (count + 1) > len(self._slots) - 1:
            if 2 * len(self._hashes) > CODES_MOST:
                raise OverMemory
            self._known = np.concatenate([self._known, np.zeros(len(self._hashes), dtype=np.int64)])
            self._hashes = np.concatenate([self._hashes, np.zeros_like(self._hashes)])
            self._slots = np.full(2 * len(self._hashes), -1, dtype=np.int32)
            loops.refill(self._slots, self._hashes, count)

    def values(self, kind: pa.DataType) -> list[Any]:
        """Return the value of each code, the column being of this type."""
        count = int(self._known[0])
        ends = self._known[1 : count + 2].copy()
        data = pa.py_buffer(self._arena[: ends[-1]].tobytes())
        if pa.types.is_decimal(kind):
            return [None, *pa.Array.from_buffers(kind, count, [None, data]).to_pylist()]
        return [None, *pa.Array.from_buffers(pa.large_string(), count, [None, pa.py_buffer(ends), data]).to_pylist()]


class TextFinder:
    """Finds the indexes of texts in a public list, which may contain NULL; -1 for an unlisted text."""

    def __init__(self, listed: Sequence[str | None], secret: Secret) -> None:
        self._null = listed.index(None) if None in listed else -1
        known = {text: place for place, text in enumerate(listed) if text is not None}
        self._coder = TextCoder(secret)
        self._coder.code(pa.array(list(known), pa.large_string()))
        self._place_of = np.array([*known.values(), -1], dtype=np.int64)  # code -1 is the last

    def find(self, column: pa.Array) -> Codes:
        """Return each cell's index in the list."""
        places = self._place_of[self._coder.find(column)]
        if column.null_count:
            places[is_null(column)] = self._null
        return places


def make_coder(kind: pa.DataType, secret: Secret) -> WordCoder | TextCoder:
    return WordCoder(secret) if is_number(kind) else TextCoder(secret)


def key_secret(salt: str, place: int) -> Secret:
    return make_secret(salt, f"key {place}")


class KeyCoder:
    """Codes whole keys, of one column or several. A code may stand for no key; no row has it then."""

    def __init__(self, kinds: Sequence[pa.DataType], salt: str) -> None:
        self._kinds = kinds
        self._coders = [make_coder(kind, key_secret(salt, place)) for place, kind in enumerate(kinds)]
        self._pairs = [WordCoder(make_secret(salt, f"pair {place}")) for place in range(1, len(kinds))]

    @property
    def bytes_held(self) -> int:
        return sum(coder.bytes_held for coder in (*self._coders, *self._pairs))

    def code(self, columns: Sequence[pa.Array]) -> Codes:
        """Return the code of each row's key."""
        codes = self._coders[0].code(columns[0])
        for coder, pairs, column in zip(self._coders[1:], self._pairs, columns[1:], strict=True):
            codes = pairs.code_words((codes << 32) | coder.code(column))
        return codes

    @property
    def hashes(self) -> Words:
        """A hash of the key of each code."""
        hashes = self._coders[0].hashes
        for coder, pairs in zip(self._coders[1:], self._pairs, strict=True):
            words = pairs.words
            hashes = mixed(hashes[words >> 32], coder.hashes[words & MASK])
        return hashes

    def keys(self) -> list[tuple[Any, ...]]:
        """Return the key of each code."""
        columns = [self._coders[0].values(self._kinds[0])]
        for coder, pairs, kind in zip(self._coders[1:], self._pairs, self._kinds[1:], strict=True):
            left, right = (pairs.words >> 32).tolist(), (pairs.words & MASK).tolist()
            values = coder.values(kind)
            columns = [[column[code] for code in left] for column in columns]
            columns.append([values[code] for code in right])
        return list(zip(*columns, strict=True))


def ranks(keys: Sequence[tuple[Any, ...]], hashes: Words) -> Codes:
    """Return each key's rank in the order of keys; all 0 if no two hashes are equal, because no rank is needed then."""
    places = np.zeros(len(keys), dtype=np.int64)
    if len(np.unique(hashes)) < len(hashes):
        order = sorted(range(len(keys)), key=lambda code: [(part is None, part) for part in keys[code]])
        places[order] = np.arange(len(keys))
    return places


def as_input(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array as the loops are compiled for it: one that they only read."""
    array = array.view()
    array.flags.writeable = False
    return array


def _null_coded(codes: Codes, column: pa.Array) -> Codes:
    if column.null_count:
        codes[is_null(column)] = NULL_CODE
    return codes


def is_null(column: pa.Array) -> NDArray[np.bool_]:
    null: NDArray[np.bool_] = cells_of(column.is_null().cast(pa.int8())) != 0
    return null


def bytes_of(column: pa.Array) -> tuple[NDArray[np.uint8], Codes]:
    """Return the cells' bytes one after another and where each begins, with the end."""
    if pa.types.is_decimal128(column.type):
        width, data = 16, column.buffers()[1]
        ends = (np.arange(len(column) + 1, dtype=np.int64) + column.offset) * width
    else:
        column = column.cast(pa.large_string())
        _, offsets, data = column.buffers()
        ends = np.frombuffer(offsets, dtype=np.int64)[column.offset : column.offset + len(column) + 1].copy()
    return np.frombuffer(data, dtype=np.uint8) if data is not None and data.size else np.zeros(1, np.uint8), ends
