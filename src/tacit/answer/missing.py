"""What a cap leaves out of a group at most: the part of an interval that is foreseen, beside the noise.

People count with at most the cap. What all of them have beyond it is foreseen from the profile, with doubt
(`Outlook.lost_most`), or measured by totals. How it is spread over groups is not known: people with many rows may be in
one group. A group may lack its share of rows of it, and more if groups are few. This is a convention that held on many
tables, not a theorem (docs/proofs/corrected.md).
"""

import math

import numpy as np

from tacit.answer.anchors import Anchor
from tacit.plan import FEW_CELLS, Vector
from tacit.privacy import Floats


def most_missing(vector: Vector, anchor: Anchor) -> float:
    """Return how much the cap takes from all groups together at most, in steps: as measured, or as foreseen."""
    outlook = vector.outlook
    if anchor.totals is not None:
        beyond = 0.0 if outlook is None else outlook.excess_most
        return max(anchor.totals.cut, 0.0) + math.hypot(anchor.totals.error, beyond)
    if outlook is None and anchor.public_total is not None and math.isfinite(anchor.high):
        return anchor.public_total * (1 - 1 / anchor.high)
    return 0.0 if outlook is None else outlook.lost_most


def most_of_groups(shares: Floats, part: float = 1.0) -> Floats:
    """Return which part of all that is missing each group may lack: its share, and 1 over the root of their number.

    Of a mean only a `part` of that counts. No group lacks more than all.
    """
    groups = max(len(shares), 1)  # over more than a few, people with many rows are spread more evenly
    more = min(1.0, FEW_CELLS / groups) / math.sqrt(groups)
    return np.minimum(1.0, part * (shares + more))


def shares_of(amounts: Floats, noise: float) -> Floats:
    """Return the share of each group by its noisy amount; groups are taken to have at least the noise."""
    least = np.abs(amounts) + max(noise, 1e-300)
    return np.asarray(least / np.sum(least)) if len(least) else least
