"""Rounds without a table, for the arithmetic of models: exact integers of made-up rows, and seeded noise."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.engine.coded_rows import CodedRows
from tacit.engine.coding_rows import Block
from tacit.plan import UNIT, BinMaps, CodedPlan, Scores


class StandIn:
    """The rounds of rows that are their own units; noise is `sigma` people of counts and of residuals."""

    def __init__(self, plan: CodedPlan, cells: Sequence[Any], values: Sequence[Any] = (), *, noise: Any = None) -> None:
        kept = tuple(np.asarray(each) for each in cells)
        block = Block(kept, tuple(np.asarray(each) for each in values), None, len(kept[0]))
        self._rows = CodedRows.of(plan, [block])
        self._noise = noise  # (generator, of counts, of residuals)
        self.asked = 0

    def counts(self, columns: Sequence[int] | None = None) -> list[Any]:
        """Return counts of cells, in steps of UNIT."""
        sizes = [self._rows.sizes[index] for index in (range(len(self._rows.sizes)) if columns is None else columns)]
        return np.split(self._noisy(self._rows.counts(columns), 1), np.cumsum(sizes)[:-1])

    def use_bins(self, maps: BinMaps) -> None:
        """Map cells to bins."""
        self._rows = self._rows.mapped(maps)

    def residuals(self, scores: Scores) -> Any:
        """Return sums of residuals, in steps of UNIT."""
        self.asked += 1
        return self._noisy(self._rows.residuals(scores), 2)

    def _noisy(self, exact: Any, place: int) -> Any:
        numbers = np.array(exact.values, dtype=np.int64)
        if self._noise is None:
            return numbers
        return numbers + np.rint(self._noise[0].normal(0, self._noise[place] * UNIT, len(numbers))).astype(np.int64)
