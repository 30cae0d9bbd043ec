"""Many independent releases of one exact table, without reading a row again: what an audit of a question draws from.

A release gives every group its own noise, so a table that holds many copies of its groups is released once for many
draws. Only tables that an audit made are ever repeated.
"""

from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.plan.exact import ExactTable
from tacit.plan.plan import Plan
from tacit.release.noisy import NoisyTable, release

CELLS_AT_ONCE = 200_000


def draw_releases(plan: Plan, exact: ExactTable, count: int) -> Any:
    """Return `count` independent releases of a table: rows of noisy integers, or what is shown of private groups."""
    if plan.choice is not None:
        return [tuple(map(str, release(plan, exact).keys)) for _ in range(count)]
    at_once = max(1, CELLS_AT_ONCE // max(1, len(exact)))
    shown: list[Any] = []
    for start in range(0, count, at_once):
        copies = min(at_once, count - start)
        noisy = release(plan, _copies(exact, copies))
        shown.append(_by_copy(noisy, copies) if plan.threshold is not None else _as_rows(noisy, copies))
    if plan.threshold is None:
        return np.concatenate(shown)
    return [each for part in shown for each in part]


def only_groups(exact: ExactTable, keys: list[tuple[Any, ...]]) -> ExactTable:
    """Return an exact table of these groups alone, in this order, without those it does not have."""
    place_of = {tuple(key): place for place, key in enumerate(exact.keys)}
    places = [place_of[key] for key in keys if key in place_of]
    return ExactTable(
        [tuple(exact.keys[place]) for place in places],
        {name: [column[place] for place in places] for name, column in exact.sums.items()},
        {name: column.only(places) for name, column in exact.values.items()},
    )


def more_people(one: ExactTable, other: ExactTable, times: int) -> tuple[ExactTable, ExactTable]:
    """Return two neighbours in which everyone of the first table is there so many times over, and so is the difference.

    Sums add up over units, so a larger crowd in both leaves the difference as it is.
    """
    place_of = {tuple(key): place for place, key in enumerate(one.keys)}

    def larger(exact: ExactTable) -> ExactTable:
        places = [place_of.get(tuple(key)) for key in exact.keys]
        sums = {
            name: [
                value + (0 if place is None else (times - 1) * one.sums[name][place])
                for value, place in zip(column, places, strict=True)
            ]
            for name, column in exact.sums.items()
        }
        return ExactTable(exact.keys, sums, exact.values)

    return larger(one), larger(other)


def _copies(exact: ExactTable, copies: int) -> ExactTable:
    """Return the groups so many times over, each key led by the number of its copy."""
    keys: list[Any] = [(copy, *key) for copy in range(copies) for key in exact.keys]
    return ExactTable(
        keys,
        {name: list(column) * copies for name, column in exact.sums.items()},
        {name: column.only(list(range(len(column))) * copies) for name, column in exact.values.items()},
    )


def _as_rows(noisy: NoisyTable, copies: int) -> NDArray[Any]:
    """Return one row of all noisy integers for each copy."""
    columns = [np.array(part, dtype=object) for each in noisy.parts for part in each]
    if not columns:
        return np.zeros((copies, 0), dtype=np.int64)
    cells = np.stack(columns, axis=1).reshape(copies, -1)
    biggest = max((abs(value) for value in cells.ravel().tolist()), default=0)
    return cells.astype(np.int64) if biggest < 2**63 else cells.astype(np.float64)


def _by_copy(noisy: NoisyTable, copies: int) -> list[Any]:
    """Return for each copy the groups that are shown, each with its noisy integers."""
    cells = [part for each in noisy.parts for part in each]
    shown: dict[int, list[Any]] = defaultdict(list)
    for place, (copy, *key) in enumerate(noisy.keys):
        if isinstance(copy, int):
            shown[copy].append((str(key), *(part[place] for part in cells)))
    return [tuple(shown[copy]) for copy in range(copies)]
