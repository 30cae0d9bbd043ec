"""What an attacker, or whoever makes up a table, chooses: the same for the same seed, on every machine.

These are choices and made-up people, never noise. Noise has no seed and comes from `tacit.noise` alone.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

from tacit.auditing.attacks.sizes import size

BYTES_OF_WORD = 8
SEED_MOST = 10**18


class Choices:
    """Choices that follow from a seed: each kind of choice has a label, and labels do not disturb each other.

    >>> bool((Choices(1).coins("a", 5) == Choices(1).coins("a", 5)).all())
    True
    """

    def __init__(self, seed: int) -> None:
        self.seed = size(seed, name="seed", least=0, most=SEED_MOST)

    def coins(self, label: str, n: int) -> NDArray[np.bool_]:
        """Return `n` coins, heads and tails alike."""
        heads: NDArray[np.bool_] = (self._words(label, n) >> np.uint64(63)).astype(bool)
        return heads

    def fractions(self, label: str, n: int) -> NDArray[np.float64]:
        """Return `n` numbers between 0 and 1, spread evenly."""
        return self._words(label, n).astype(np.float64) / 2.0**64

    def _words(self, label: str, n: int) -> NDArray[np.uint64]:
        stretched = hashlib.shake_256(f"{label}:{self.seed}".encode()).digest(BYTES_OF_WORD * n)
        return np.frombuffer(stretched, dtype="<u8").astype(np.uint64)
