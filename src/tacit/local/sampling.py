"""A uniform sample of the payloads seen so far, kept while they stream by, and mergeable like the counters.

Each payload gets a random number of our own and the smallest are kept, so that no sender can arrange to be left out.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.local.protocol import Payloads
from tacit.noise.bits import Keystream, Words

ROWS_MOST = 1 << 16
BYTES_MOST = 1 << 24


@dataclass(frozen=True)
class Sample:
    """Payloads and the random number of each.

    Privacy: keeps reports alone, each already perturbed by its sender.
    """

    numbers: Words
    payloads: Payloads

    def with_more(self, payloads: Payloads) -> "Sample":
        """Return the sample of what was seen before and these."""
        numbers = Keystream().words(len(payloads))
        if len(self.numbers) < rows_most(self.payloads.shape[1]):
            return self.merged(Sample(numbers, payloads))
        low = np.flatnonzero(numbers < self.numbers.max())
        return self.merged(Sample(numbers[low], payloads[low])) if low.size else self

    def merged(self, other: "Sample") -> "Sample":
        """Return the sample of what both have seen."""
        numbers = np.concatenate([self.numbers, other.numbers])
        most = rows_most(self.payloads.shape[1])
        if len(numbers) <= most:
            return Sample(numbers, np.concatenate([self.payloads, other.payloads]))
        kept: NDArray[np.intp] = np.argpartition(numbers, most - 1)[:most]
        ours, theirs = kept[kept < len(self.numbers)], kept[kept >= len(self.numbers)]
        rows = np.concatenate([self.payloads[ours], other.payloads[theirs - len(self.numbers)]])
        return Sample(np.concatenate([numbers[ours], numbers[theirs]]), rows)


def empty_sample(payload_bytes: int) -> Sample:
    """Return the sample of nothing."""
    return Sample(np.empty(0, dtype=np.uint64), np.empty((0, payload_bytes), dtype=np.uint8))


def rows_most(payload_bytes: int) -> int:
    """Return how many payloads are kept: 16 MB of them at most."""
    return max(256, min(ROWS_MOST, BYTES_MOST // payload_bytes))
