"""Each group's values and how often each is there: what quantiles are drawn from, still exact and secret."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from tacit.engine.relation import KEY_PLACE
from tacit.plan.exact import ExactTable
from tacit.plan.plan import Plan
from tacit.tables.arrow import to_scalar


def with_histogram(exact: ExactTable, column: int, found: pa.Table, plan: Plan) -> ExactTable:
    """Return the exact table with one column's values, sorted, for every group; a group without any has none."""
    if not plan.keys:
        places = np.zeros(len(found), dtype=np.int64)
    elif plan.public_keys is not None:
        places = found.column(KEY_PLACE).to_numpy()
    else:
        place_of = {key: place for place, key in enumerate(exact.keys)}
        columns = [found.column(f"k{at}").to_pylist() for at in range(len(plan.keys))]
        listed = zip(*columns, strict=True)
        places = np.array([place_of[tuple(to_scalar(part) for part in key)] for key in listed], dtype=np.int64)
    values = found.column("value").to_numpy().astype(np.int64)
    times = found.column("times").to_numpy().astype(np.int64)
    order = np.lexsort((values, places))
    edges = np.searchsorted(places[order], np.arange(len(exact) + 1))
    groups = [(values[order[start:end]], times[order[start:end]]) for start, end in pairwise(edges)]
    return replace(exact, histograms={**exact.histograms, column: groups})
