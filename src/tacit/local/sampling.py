"""A uniform sample of the payloads seen so far, kept while they stream by, and mergeable like the counters.

Each payload gets a random number of our own and the smallest are kept, so that no sender can arrange to be left out.
"""

from dataclasses import dataclass, replace

import numpy as np

from tacit.local.protocol import Payloads
from tacit.noise.bits import Keystream, Words

ROWS_MOST = 1 << 16
BYTES_MOST = 1 << 23


@dataclass(frozen=True)
class Sample:
    """Payloads and the random number of each, in parts; those with a number of at least `limit` have been let go.

    Privacy: keeps reports alone, each already perturbed by its sender.
    """

    payload_bytes: int
    parts: tuple[tuple[Words, Payloads], ...] = ()
    limit: int = 1 << 64

    @property
    def payloads(self) -> Payloads:
        """The sampled payloads: all that were seen, or as many as are kept."""
        return self._trimmed(rows_most(self.payload_bytes))._joined()[1]

    def with_more(self, payloads: Payloads) -> "Sample":
        """Return the sample of what was seen before and these."""
        numbers = Keystream().words(len(payloads))
        if self.limit < 1 << 64:
            low = np.flatnonzero(numbers < np.uint64(self.limit))
            numbers, payloads = numbers[low], payloads[low]
        if len(numbers) > 2 * rows_most(self.payload_bytes):  # sorted out before anything is copied
            alone = Sample(self.payload_bytes, ((numbers, payloads),), self.limit)._trimmed(
                rows_most(self.payload_bytes)
            )
            return self.merged(alone)
        # twice as many are let pile up before they are sorted out, so that most batches only add to the pile
        return replace(self, parts=(*self.parts, (numbers, payloads.copy())))._trimmed(
            2 * rows_most(self.payload_bytes)
        )

    def merged(self, other: "Sample") -> "Sample":
        """Return the sample of what both have seen."""
        limit = min(self.limit, other.limit)
        both = Sample(self.payload_bytes, (*self.parts, *other.parts), limit)
        numbers, payloads = both._joined()
        low = np.flatnonzero(numbers < np.uint64(limit)) if limit < 1 << 64 else np.arange(len(numbers))
        kept = Sample(self.payload_bytes, ((numbers[low], payloads[low]),), limit)
        return kept._trimmed(2 * rows_most(self.payload_bytes))

    def _joined(self) -> tuple[Words, Payloads]:
        if not self.parts:
            return np.empty(0, dtype=np.uint64), np.empty((0, self.payload_bytes), dtype=np.uint8)
        return np.concatenate([part[0] for part in self.parts]), np.concatenate([part[1] for part in self.parts])

    def _trimmed(self, most: int) -> "Sample":
        """Keep the smallest numbers alone, if there are more than this."""
        if sum(len(part[0]) for part in self.parts) <= most:
            return self
        numbers, payloads = self._joined()
        count = rows_most(self.payload_bytes)
        order = np.argpartition(numbers, count)
        kept = order[:count]
        return Sample(self.payload_bytes, ((numbers[kept], payloads[kept]),), int(numbers[order[count]]))


def rows_most(payload_bytes: int) -> int:
    """Return how many payloads are kept: 8 MB of them at most."""
    return max(256, min(ROWS_MOST, BYTES_MOST // payload_bytes))
