"""Bounds set by hand, simulated: means shifted or not, and people scaled into the same numbers instead of dropped.

It decided two things (docs/decisions.md): means under such bounds are not shifted, and rows beyond them are dropped.
Noise is drawn in floats: this is about errors, and releases nothing. Run it with `python -m bench.learned.hand_set DIR`
where DIR has, or gets, the tables.
"""

import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np

from bench.learned.tables import write
from bench.learned.tasks import Cells, Task
from tacit.accounting import rho_within

TASKS = (
    (Task("zipf", "user_id", "country", "amount"), (0, 100)),
    (Task("retail", "customer", "country", "revenue"), (0, 200)),
    (Task("retail", "customer", "month", "revenue"), (0, 200)),
    (Task("retail", "customer", "hour", "quantity"), (0, 100)),
    (Task("flights", "tailnum", "dest", "distance"), (0, 5000)),
    (Task("flights", "tailnum", "carrier", "distance"), (0, 5000)),
    (Task("flights", "tailnum", "month", "dep_delay"), (-60, 300)),
    (Task("ratings", "userId", "year", "rating"), (0, 5)),
    (Task("women", "idcode", "occ_code", "hours"), (0, 168)),
    (Task("insured", "zper", "site", "mdvis"), (0, 50)),
)
BOUNDS = ((3, 2), (5, 2), (20, 5))
RUNS = 3
RHO = float(rho_within(Fraction(1), Fraction(1, 2 * 10**6)))
TOTALS_SHARE = 0.1


class HandSet:
    """A task with a range, of which rows are dropped beyond so many a group and so many groups."""

    def __init__(self, task: Task, between: tuple[float, float], path: Path, seed: int) -> None:
        self.cells, self.rng = Cells(task, path), np.random.default_rng(seed)
        self.low, self.high = between
        self.values = np.clip(self.cells.values, *between)
        self.group, self.unit = self.cells.group[self.cells.cell], self.cells.unit[self.cells.cell]

    def by_group(self, rows: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """Return how many of these rows each group has, or what they add up to."""
        given = None if weights is None else weights[rows]
        return np.bincount(self.group[rows], given, minlength=self.cells.groups).astype(float)

    def kept(self, rows_most: int, groups_most: int) -> np.ndarray:
        """Return which rows are kept: of each cell, and of each person's cells, some at random."""
        first = self._ranks(self.cells.cell, len(self.cells.rows)) < rows_most
        some = self._ranks(self.cells.unit, self.cells.people) < groups_most
        return first & some[self.cells.cell]

    def _ranks(self, of: np.ndarray, kinds: int) -> np.ndarray:
        order = np.lexsort((self.rng.random(len(of)), of))
        found = np.empty(len(of), int)
        found[order] = np.arange(len(of)) - np.searchsorted(of[order], np.arange(kinds))[of[order]]
        return found

    def noise(self, l1: float, l2: float, share: float, size: int) -> tuple[np.ndarray, float]:
        """Return the narrower noise for these sensitivities, and its standard deviation."""
        scale, sigma = l1 / share, l2 / np.sqrt(2 * RHO * share)
        if scale * np.sqrt(2) <= sigma:
            return self.rng.laplace(0, scale, size), scale * np.sqrt(2)
        return self.rng.normal(0, sigma, size), sigma

    def means(self, rows_most: int, groups_most: int) -> Iterator[tuple[str, float]]:
        """Yield errors of means, shifted and not, and how many bars hold the table's own, widened and not."""
        every, span = self.cells.counted, self.high - self.low
        kept = self.kept(rows_most, groups_most) & every
        truth = self.by_group(every, self.values) / np.maximum(self.by_group(every), 1)
        count, total = self.by_group(kept), self.by_group(kept, self.values)
        l1, l2 = rows_most * groups_most * span, rows_most * np.sqrt(groups_most) * span
        (off, width), (other, _) = (self.noise(l1, l2, 0.9, self.cells.groups) for _ in range(2))
        above, below = total - self.low * count + off, self.high * count - total + other
        whole = np.maximum(above + below, 1e-9)
        place = np.clip(above / whole, 0, 1)
        mean, bar = self.low + span * place, 2.16 * width * np.hypot(place, 1 - place) * span / whole
        rows = self.by_group(every)
        known = (rows >= np.median(rows)) & (whole > 2.8 * width)
        share = 1 - kept.sum() / every.sum()
        near = np.minimum(mean - self.low, self.high - mean)
        wrong = np.abs(mean - truth)
        yield "left out", share
        yield "error", wrong[known].mean()
        yield "bias", np.abs(total / np.maximum(count, 1) - truth)[known].mean()
        yield "shifted", np.abs(mean + self._shift(kept) - truth)[known].mean()
        yield "held", (wrong <= bar)[known].mean()
        yield "held, widened", (wrong <= bar + share * near / 2)[known].mean()

    def _shift(self, kept: np.ndarray) -> float:
        """Return how far the noisy mean of the whole table is from that of what was kept."""
        every = self.cells.counted
        off = self.values - np.median(self.values[every])
        tail = 2.0 ** np.ceil(np.log2(np.abs(np.bincount(self.unit[every], off[every])).max()))
        whole = (off[every].sum() + self.rng.laplace(0, tail / TOTALS_SHARE)) / every.sum()
        return float(whole - off[kept].mean())

    def counts(self, rows_most: int, groups_most: int) -> Iterator[tuple[str, float]]:
        """Yield errors of counts: rows dropped, and people scaled into the cap that the same numbers make."""
        cells, own = self.cells, np.bincount(self.unit, minlength=self.cells.people).astype(float)
        length = np.sqrt(np.bincount(cells.unit, cells.rows**2, minlength=cells.people))
        tail, truth = 2.0 ** np.ceil(np.log2(np.quantile(own, 0.9995))), cells.by_group(cells.rows)
        kept = self.kept(rows_most, groups_most)
        l1, l2 = float(rows_most * groups_most), rows_most * np.sqrt(groups_most)
        noise, width = self.noise(l1, l2, 0.85, cells.groups)
        factor = self._factor(np.bincount(self.unit[kept], minlength=cells.people), own, tail)
        yield "dropped", np.abs((self.by_group(kept) + noise) * factor - truth).mean()
        is_l1 = width == l1 / 0.85 * np.sqrt(2)
        weight = np.minimum(1, l1 / own if is_l1 else l2 / length)
        scaled = cells.by_group(cells.rows * weight[cells.unit])
        yield "scaled", np.abs((scaled + noise) * self._factor(own * weight, own, tail) - truth).mean()

    def _factor(self, kept: np.ndarray, own: np.ndarray, tail: float) -> float:
        within = np.minimum(own, tail)
        left = np.minimum(kept, within).sum() + self.rng.laplace(0, tail / TOTALS_SHARE)
        took = (within - np.minimum(kept, within)).sum() + self.rng.laplace(0, tail / TOTALS_SHARE)
        return float(1 + max(took, 0.0) / max(left, 4 * tail / TOTALS_SHARE))


def main(folder: Path) -> None:
    """Print a line for each table and each pair of bounds."""
    for task, between in TASKS:
        asked = HandSet(task, between, write(task.table, folder), seed=16)
        for bounds in BOUNDS:
            found: dict[str, list[float]] = {}
            for _ in range(RUNS):
                for name, value in (*asked.means(*bounds), *asked.counts(*bounds)):
                    found.setdefault(name, []).append(value)
            figures = ", ".join(f"{name} {np.mean(values):.3g}" for name, values in found.items())
            print(f"{task.name}, {task.value}, {bounds[0]}×{bounds[1]}: {figures}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
