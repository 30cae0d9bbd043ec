"""Adds up the exact tables of parts that share no unit: one exact table, as one engine would have given it.

Sums and totals add as Python's integers, so that all of them fit. Values of a group are put together and sorted.
The groups of parts may be the same, and each is then there once.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from tacit.engine.parts.part_bytes import ExactPart
from tacit.engine.relation import grouped
from tacit.exact import ExactTable, GroupedSteps
from tacit.plan import Plan
from tacit.query import Scalar


def added_parts(nothing: ExactTable, parts: Iterable[ExactPart], plan: Plan) -> ExactTable:
    """Return the sum of all parts; `nothing` is the exact table of no rows, which has the names of all sums."""
    total = _Total(nothing, plan)
    for part in parts:
        total.add(part)
    return total.table()


class _Total:
    def __init__(self, nothing: ExactTable, plan: Plan) -> None:
        self._keys: list[tuple[Scalar, ...]] = list(nothing.keys)
        self._place_of = {key: at for at, key in enumerate(self._keys)} if plan.public_keys is None else {}
        self._sums = {name: [int(each) for each in sums] for name, sums in nothing.sums.items()}
        self._totals = dict(nothing.totals)
        # of each column with quantiles: the places of values, the values, and their weights if they have any
        self._drawn: dict[int, list[tuple[Any, Any, Any]]] = {index: [] for index in nothing.values}
        self._weighed = plan.weighed

    def add(self, part: ExactPart) -> None:
        places = part.places if part.keys is None else [self._place(key) for key in part.keys]
        if places is None:
            raise ValueError("a part has the keys of its groups, or their places")
        for name, sums in part.sums.items():
            exact_sums = self._sums[name]
            for at, value in zip(places, sums, strict=True):
                exact_sums[at] += value
        for name, total in part.totals.items():
            self._totals[name] = self._totals.get(name, 0) + total
        for index, steps in part.values.items():
            where = np.repeat(np.array(places, dtype=np.int64), steps.ends - steps.starts)
            self._drawn[index].append((where, steps.steps, steps.weights))

    def _place(self, key: tuple[Scalar, ...]) -> int:
        place = self._place_of.get(key)
        if place is None:
            place = self._place_of[key] = len(self._keys)
            self._keys.append(key)
            for exact_sums in self._sums.values():
                exact_sums.append(0)
        return place

    def table(self) -> ExactTable:
        values = {index: self._values(index) for index in self._drawn}
        return ExactTable(self._keys, self._sums, values, self._totals)

    def _values(self, index: int) -> GroupedSteps:
        found = self._drawn[index]
        places = np.concatenate([np.empty(0, dtype=np.int64), *(where for where, _, _ in found)])
        steps = np.concatenate([np.empty(0, dtype=np.int64), *(each for _, each, _ in found)])
        weights = None
        if index in self._weighed:
            held = [each for _, _, each in found if each is not None]
            weights = np.concatenate([np.empty(0, dtype=np.int64), *held])
        return grouped(places, steps, groups=len(self._keys), weights=weights)
