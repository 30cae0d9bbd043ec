"""Each group's values, sorted, and how many differ: what quantiles are drawn from, still exact and secret."""

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.engine.relation import KEY_PLACE
from tacit.plan.exact import ExactTable, GroupedSteps, Integers
from tacit.plan.plan import Plan
from tacit.tables.arrow import to_scalar

# A group's place takes at most the 31 bits above these.
WORD_BITS = 32


def with_values(exact: ExactTable, column: int, found: pa.Table, plan: Plan) -> ExactTable:
    """Return the exact table with one column's values, sorted, for every group; a group without any has none."""
    places = _places(exact, found, plan)
    values = found.column("value").to_numpy().astype(np.int64)
    return replace(exact, values={**exact.values, column: grouped(places, values, groups=len(exact))})


def grouped(places: NDArray[Any], values: NDArray[Any], *, groups: int) -> GroupedSteps:
    """Return each group's values, rising; a value is of the group whose place stands beside it.

    Values on a quantile's grid take at most 30 bits, so that both fit one word, which sorts soonest.
    """
    if groups == 1:
        steps = values.astype(np.uint32)
        steps.sort()
        return GroupedSteps(steps, np.array([0]), np.array([len(steps)]))
    words = places.astype(np.int64)
    words <<= WORD_BITS
    words |= values
    words.sort()
    edges = np.searchsorted(words, np.arange(groups + 1) << WORD_BITS)
    return GroupedSteps((words & ((1 << WORD_BITS) - 1)).astype(np.uint32), edges[:-1], edges[1:])


def with_distinct(exact: ExactTable, place: int, found: pa.Table, plan: Plan) -> ExactTable:
    """Return the exact table with how many different values one expression has in every group."""
    counts = [0] * len(exact)
    name = f"distinct_{place}"
    for at, text in zip(_places(exact, found, plan).tolist(), found.column(name).to_pylist(), strict=True):
        counts[at] = 0 if text is None else int(text)
    return replace(exact, sums={**exact.sums, name: counts})


def _places(exact: ExactTable, found: pa.Table, plan: Plan) -> Integers:
    """Return which of the exact table's groups each found row is about."""
    if not plan.keys:
        return np.zeros(len(found), dtype=np.int64)
    if plan.public_keys is not None:
        listed: Integers = found.column(KEY_PLACE).to_numpy().astype(np.int64)
        return listed
    place_of = {key: place for place, key in enumerate(exact.keys)}
    columns = [found.column(f"k{at}").to_pylist() for at in range(len(plan.keys))]
    keys = zip(*columns, strict=True)
    return np.array([place_of[tuple(to_scalar(part) for part in key)] for key in keys], dtype=np.int64)
