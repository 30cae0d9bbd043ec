"""How far a group's mean may have been moved by scaling beside what was measured: what learned facts foretell of it.

A mean is of people who count for less the more rows they have. It is off by how much those who were cut differ from the
rest. On average that is no more than the share of the sums about the centre that was cut, times how far rows are from
the centre. Bars have parts of that bound, by convention, as measured on many tables (docs/proofs/corrected.md).
"""

import numpy as np

from tacit.plan import Vector
from tacit.privacy import Floats

# Of what is cut because of many rows: the most where nothing is measured; where the shift of all means together is
# measured, as much as that may be, between these.
LEAST, MOST = 1 / 8, 1 / 2
# How many standard deviations of what is cut by luck are in a bar, and how many mean distances one of them is.
LUCK = 2.0
DEVIATION = 1.25
# Of people who are too few to be seen: a group has more than its share by luck where about so many would be in it; and
# where the cap leaves them all up to the tail cap, they are taken to have this part of it beyond.
LIKELY = 1 / 40
BEYOND = 1 / 2


def moved_by_scaling(
    sums: Vector, counting: Vector, rows: Floats, shift: float | None, *, by_luck: bool = True
) -> Floats:
    """Return how far the means of groups of so many rows may have been moved, in steps.

    Who has many rows is taken to be mostly like the others, but for luck: a group has few such people. Who is cut
    because of far values is not like them. `shift` is how far all means together may be off by what was measured; None
    where nothing was. One group of all rows has no more than its share by luck.
    """
    of_sums, of_rows = sums.outlook, counting.outlook
    if of_sums is None or of_rows is None or of_rows.mass <= 0:
        return np.zeros_like(rows)
    distance = of_sums.mass / of_rows.mass  # of rows from the centre, on average
    lost = 1 - min(max(of_sums.kept, 0.0), 1.0)
    part, by_values = MOST, min(of_sums.by_values, lost)
    if shift is not None:
        part = min(max(shift / max(lost * distance, 1e-300), LEAST), MOST)
    people = of_rows.cut_in_cells / np.maximum(rows, 1e-9)  # 1 over about how many people a group's cut rows are from
    lucky = LUCK * DEVIATION * np.minimum(np.sqrt(people), lost)
    seen = part * (lost - by_values) + by_values
    unseen, unseen_luck = _of_unseen(sums, counting, rows)
    return np.asarray(np.hypot(distance * seen + unseen, float(by_luck) * np.hypot(distance * lucky, unseen_luck)))


def _of_unseen(sums: Vector, counting: Vector, rows: Floats) -> tuple[float, Floats]:
    """Return what people too few to be seen move the mean of every group by, and one that has more of them by luck.

    Each is taken to have the tail cap in sums and rows as others do. Of that the cap on sums leaves less than it leaves
    of others' rows, and what is missing is in no mean.
    """
    of_sums, of_rows = sums.outlook, counting.outlook
    if of_sums is None or of_rows is None or of_rows.kept <= 0:
        return 0.0, np.zeros_like(rows)
    far = of_sums.tail_cap * max(BEYOND, 1 - of_sums.at_tail / min(of_rows.kept, 1.0))
    there = of_sums.unseen * rows / of_rows.mass  # of them in each group
    by_luck = LUCK * np.sqrt(np.maximum(there - LIKELY, 0.0)) / np.maximum(rows, 1e-9)
    return far * of_sums.unseen / of_rows.mass, far * by_luck
