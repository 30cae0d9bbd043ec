"""What a cap leaves out of a group at most: the part of an interval that is foreseen, beside the noise.

People count with at most the cap. What all of them have beyond it is foreseen from the profile, with doubt
(`Outlook.lost_most`), or measured by totals. How it is spread over groups is not known: people with many rows may be in
one group. A group may lack its share of rows of it, and more if groups are few. This is a convention that held on many
tables, not a theorem (docs/proofs/corrected.md).
"""

import math
from typing import NamedTuple

import numpy as np

from tacit.answer.anchors import Anchor
from tacit.plan import FEW_CELLS, FORESEEN_TIMES, Vector
from tacit.privacy import Floats


class Missing(NamedTuple):
    """How much all groups together lack at most, in steps: of people foreseen, and of people whom noise hides."""

    foreseen: float
    hidden: float

    def of_groups(self, shares: Floats, part: float = 1.0) -> Floats:
        """Return how much each group may lack; of a mean only a `part` counts."""
        return most_of_groups(shares, part, FORESEEN_TIMES) * self.foreseen + most_of_groups(shares, part) * self.hidden


def most_missing(vector: Vector, anchor: Anchor) -> Missing:
    """Return how much the cap takes at most: as measured, or as foreseen."""
    outlook = vector.outlook
    if anchor.totals is not None:
        beyond = 0.0 if outlook is None else outlook.excess_most
        return Missing(0.0, max(anchor.totals.cut, 0.0) + math.hypot(anchor.totals.error, beyond))
    if outlook is None and anchor.public_total is not None and math.isfinite(anchor.high):
        return Missing(0.0, anchor.public_total * (1 - 1 / anchor.high))
    return foreseen_missing(vector)


def foreseen_missing(vector: Vector) -> Missing:
    """Return how much a cap takes at most by the profiles alone; what totals will measure is spread as rows are."""
    outlook = vector.outlook
    if outlook is None:
        return Missing(0.0, 0.0)
    foreseen = 0.0 if vector.totals is not None else min(FORESEEN_TIMES * outlook.lost, outlook.lost_most)
    return Missing(foreseen, outlook.lost_most - foreseen)


def most_of_groups(shares: Floats, part: float = 1.0, unevenly: float = 1.0) -> Floats:
    """Return which part of all that is missing each group may lack: its share, and more, as it may be spread unevenly.

    Of a mean only a `part` of that counts. No group lacks more than all.
    """
    groups = max(len(shares), 1)  # over more than a few, people with many rows are spread more evenly
    more = unevenly * min(1.0, FEW_CELLS / groups) / math.sqrt(groups)
    return np.minimum(1.0, part * (shares + more))


def shares_of(amounts: Floats, noise: float) -> Floats:
    """Return the share of each group by its noisy amount; groups are taken to have at least the noise."""
    least = np.abs(amounts) + max(noise, 1e-300)
    return np.asarray(least / np.sum(least)) if len(least) else least
