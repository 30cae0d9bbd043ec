"""The integers of scaling for whole tables at once, in numpy: what an engine gives a plan, for tests of coverage.

`tests/engine/scaling_reference.py` states them for one unit; a test holds the two against each other.
"""

from dataclasses import dataclass

import numpy as np

from tacit.plan import CELL_MOST, WEIGHT_BITS


@dataclass(frozen=True)
class UnitTable:
    """One entry for each group that a unit is in: the unit, the group, its rows, and its sum in steps."""

    unit: np.ndarray
    group: np.ndarray
    rows: np.ndarray
    total: np.ndarray
    groups: int

    @classmethod
    def of_rows(cls, unit, group, value=None):
        """Return the table of single rows."""
        unit, group = np.unique(unit, return_inverse=True)[1], np.unique(group, return_inverse=True)[1]
        groups = int(group.max()) + 1
        pair, where, rows = np.unique(unit * groups + group, return_inverse=True, return_counts=True)
        total = np.zeros(len(pair)) if value is None else np.bincount(where, value)
        return cls(pair // groups, pair % groups, rows, np.rint(total).astype(np.int64), groups)

    def by_unit(self, values):
        """Add up over each unit's groups, exactly below 2^53."""
        return np.bincount(self.unit, values).astype(np.int64)

    def by_group(self, values):
        """Add up over each group's units."""
        return np.bincount(self.group, values, minlength=self.groups)

    def fine(self, vector, centre=0):
        """Return every entry of a vector in fine steps."""
        steps = {"rows": self.rows, "counted": self.rows, "units": np.ones_like(self.rows)}.get(vector.kind)
        steps = self.total - centre * self.rows if steps is None else steps
        size = np.abs(steps) << vector.shift if vector.shift >= 0 else np.abs(steps) >> -vector.shift
        return np.minimum(size, CELL_MOST) * np.where(steps >= 0, 1, -1)

    def lengths(self, values, norm):
        """Return the length of each unit's vector."""
        sizes = np.abs(values)
        if norm == 1:
            return self.by_unit(sizes)
        most = np.zeros(int(self.unit.max()) + 1, dtype=np.int64)
        np.maximum.at(most, self.unit, sizes)
        coarse = np.maximum(0, np.ceil(np.log2(most + 1)).astype(np.int64) - 20)
        squares = self.by_unit((-(-sizes >> coarse[self.unit])) ** 2)
        root = np.ceil(np.sqrt(squares)).astype(np.int64)
        return root << coarse

    def scaled(self, plan, centre=0):
        """Return what each unit adds to each group, and the totals: [vector][entry], [(kept, cut)]."""
        scaling = plan.scaling
        fine = [self.fine(vector, centre) for vector in scaling.vectors]
        added = [np.zeros(0)] * len(fine)
        for together in scaling.together:
            weight = np.full(int(self.unit.max()) + 1, 1 << WEIGHT_BITS)
            for index in together:
                cap, long = scaling.vectors[index].cap, np.maximum(self.lengths(fine[index], scaling.norm), 1)
                weight = np.minimum(weight, np.where(long > cap, (cap << WEIGHT_BITS) // long, 1 << WEIGHT_BITS))
            for index in together:
                signs = np.where(fine[index] >= 0, 1, -1)
                added[index] = (np.abs(fine[index]) * weight[self.unit] >> WEIGHT_BITS) * signs
        totals = [
            self._totals(vector, fine[index], added[index])
            for index, vector in enumerate(scaling.vectors)
            if vector.totals
        ]
        return added, totals

    def _totals(self, vector, before, added):
        if vector.totals == "absolute":
            before, added = np.abs(before), np.abs(added)
        most = vector.tail << vector.tail_shift
        kept = np.clip(self.by_unit(added), -most, most)
        room = most - np.abs(kept)
        cut = np.clip(self.by_unit(before) - self.by_unit(added), -room, room)
        return tuple(int(((np.abs(each) >> vector.tail_shift) * np.sign(each)).sum()) for each in (kept, cut))

    def up_to(self, vector, values):
        """Return every group's number where no unit counts for more than the tail cap of the vector, or its cap."""
        most = (vector.tail << vector.tail_shift if vector.tail else vector.cap) / 2.0**vector.shift
        whole = np.bincount(self.unit, np.abs(values))
        return self.by_group(values * np.minimum(1.0, most / np.maximum(whole, 1e-9))[self.unit])


def noise(release, size, rng):
    """Return noise of a release, nearly: rounded continuous noise, which is quicker to draw than the exact one."""
    scale = float(release.scale)
    drawn = rng.laplace(0, scale, size) if release.noise == "laplace" else rng.normal(0, scale, size)
    return np.rint(drawn).astype(np.int64)
