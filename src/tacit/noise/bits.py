"""Random bits: a fresh key from the operating system for every release, stretched by AES-256-CTR within it.

Keys never outlive their release, so a fork, a pre-forked server, a raw clone, a thread or a restored snapshot cannot
repeat noise. Noise cannot be seeded. If the operating system gives no randomness, no answer is given.
This is the only module that knows a cipher or asks the operating system.
"""

import os
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from tacit.errors import NO_RANDOMNESS, NoRandomness
from tacit.numbers import Words

KEY_BYTES = 32
MARK_BYTES = 16
# A keystream request: large enough to amortise the call, small enough for the second-level cache.
BLOCK_BYTES = 1 << 18
_ZEROS = bytes(BLOCK_BYTES)


class Bits(Protocol):
    """The source of a sampler's words: `n` independent uniform integers below 2^width."""

    def words(self, n: int, width: int = 64) -> Words: ...


class Keystream:
    """The bits of one release: AES-256-CTR under a key that is used only for it."""

    def __init__(self) -> None:
        self._encryptor = _encryptor(_fresh_key())

    def words(self, n: int, width: int = 64) -> Words:
        """Return `n` uniform words of `width` bits.

        Privacy: computationally indistinguishable from uniform to anyone without the key, which is never stored.
        """
        words = np.empty(n, dtype=np.uint64)
        room = words.view(np.uint8).data
        for start in range(0, 8 * n, BLOCK_BYTES):
            size = min(BLOCK_BYTES, 8 * n - start)
            source = _ZEROS if size == BLOCK_BYTES else _ZEROS[:size]
            if self._encryptor.update_into(source, room[start : start + size]) != size:
                raise NoRandomness("the keystream returned too few bytes, so no release was made\nhint: try again")
        return words if width == 64 else words >> np.uint64(64 - width)


# The words of three counter blocks under a key of zeros. The first is a known answer of AES-256, the others are the tag
# and the ciphertext of zeros in test cases 13 and 14 of the specification of GCM, which counts from one.
_PUBLISHED = "dc95c078a2408989ad48a21492842087530f8afbc74536b9a963b4f1c4cb738bcea7403d4d606b6e074ec5d3baf39d18"


def keystream_is_as_published() -> bool:
    """Return whether the words of a keystream are, under a published key, the published ones; nothing is drawn."""
    stream = Keystream.__new__(Keystream)  # no call can give a key: an answer's is fresh, always
    stream._encryptor = _encryptor(bytes(KEY_BYTES))
    return stream.words(len(_PUBLISHED) // 16).tobytes().hex() == _PUBLISHED


def fresh_bytes(n: int) -> bytes:
    """Return `n` bytes from the operating system, or refuse: for keys, salts and identifiers."""
    try:
        given = os.urandom(n)
    except (OSError, NotImplementedError) as problem:
        raise NoRandomness(NO_RANDOMNESS) from problem
    if not isinstance(given, bytes) or len(given) != n:
        raise NoRandomness(NO_RANDOMNESS)
    return given


def _encryptor(key: bytes) -> CipherContext:
    return Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()


_last_mark = bytes(MARK_BYTES)


def _fresh_key() -> bytes:
    """Return a new key, from more bytes than it needs: the rest is a mark that shows a source which repeats itself.

    A source of zeros, or one that gave the same mark twice, is broken and is refused. The key itself is not stored.
    """
    global _last_mark
    given = fresh_bytes(KEY_BYTES + MARK_BYTES)
    key, mark = given[:KEY_BYTES], given[KEY_BYTES:]
    if mark == _last_mark or not any(given):
        raise NoRandomness(NO_RANDOMNESS)
    _last_mark = mark
    return key
