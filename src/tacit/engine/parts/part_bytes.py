"""Exact tables and coded rows as bytes, from the task that computes a part to the driver, which adds the parts up.

All numbers stay whole: sums and keys that do not fit 64 bits, and decimals, travel as digits. A group of a public list
travels as its index, if it has any sum.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from tacit.engine.coded.coding_rows import Block
from tacit.engine.parts.cutting import from_stream, to_stream
from tacit.engine.relation import grouped
from tacit.exact import ExactTable, GroupedSteps, key_name
from tacit.plan import CodedPlan, Plan
from tacit.query import Scalar

PLACE, TOTALS = "place", b"totals"
BYTES_MOST = 1 << 23
KEY_BYTES, VALUE_BYTES = 64, 12  # of one part of a key, and of one value with its weight
DIGITS = frozenset({"int", "decimal"})  # keys of these types are written as digits
KEY_KINDS: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "float": pa.float64(),
    "text": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "null": pa.string(),
}


@dataclass(frozen=True, repr=False)
class ExactPart:
    """Some groups of one part: their keys, or their places in the public list; their sums and values, and totals."""

    keys: Sequence[tuple[Scalar, ...]] | None
    places: Sequence[int] | None
    sums: Mapping[str, Sequence[int]]
    values: Mapping[int, GroupedSteps]
    totals: Mapping[str, int]

    def __repr__(self) -> str:
        return "ExactPart(withheld)"


def to_bytes(exact_table: ExactTable, plan: Plan, most: int = BYTES_MOST) -> Iterator[bytes]:
    """Yield an exact table of this plan as bytes, some groups at a time: about `most`, which a scheduler carries."""
    if plan.public_keys is None:
        groups: Sequence[int] = range(len(exact_table))
    else:
        sums, steps = exact_table.sums.values(), exact_table.values.values()
        groups = [
            at
            for at in range(len(exact_table))
            if any(each[at] for each in sums) or any(len(each[at]) for each in steps)
        ]
    for start, end in _slices(exact_table, groups, most):
        yield _written_groups(plan, exact_table, groups[start:end], exact_table.totals if start == 0 else {})


def _slices(exact_table: ExactTable, groups: Sequence[int], most: int) -> Iterator[tuple[int, int]]:
    """Yield where slices of some groups begin and end: one at least, which has the totals."""
    each = KEY_BYTES * (1 + len(exact_table.keys[0]) if len(exact_table) else 1) + 8 * len(exact_table.sums)
    sizes = np.full(len(groups), each, dtype=np.int64)
    for steps in exact_table.values.values():
        sizes += VALUE_BYTES * (steps.ends - steps.starts)[np.array(groups, dtype=np.int64)]
    slices = np.cumsum(sizes) // most
    edges = [0, *(np.flatnonzero(np.diff(slices)) + 1).tolist(), len(groups)]
    yield from pairwise(edges)


def _written_groups(
    plan: Plan, exact_table: ExactTable, groups: Sequence[int], exact_totals: Mapping[str, int]
) -> bytes:
    columns: dict[str, pa.Array] = {}
    if plan.public_keys is None:
        for index, key in enumerate(plan.keys):
            columns[key_name(index)] = _key_column([exact_table.keys[at][index] for at in groups], key.type)
        columns[PLACE] = pa.nulls(len(groups), pa.int64())
    else:
        columns[PLACE] = pa.array(groups, pa.int64())
    for name, exact_sums in exact_table.sums.items():
        columns[f"sum {name}"] = _integers([int(exact_sums[at]) for at in groups])
    for index, steps in exact_table.values.items():
        columns[f"steps {index}"] = _lists([steps[at] for at in groups], np.uint32)
        if steps.weights is not None:
            held = [steps.weights[steps.starts[at] : steps.ends[at]] for at in groups]
            columns[f"weights {index}"] = _lists(held, np.int64)
    totals = json.dumps({name: int(total) for name, total in exact_totals.items()})
    return to_stream(pa.table(columns).replace_schema_metadata({TOTALS: totals.encode()}))


def _key_column(values: list[Scalar], kind: str) -> pa.Array:
    if kind in DIGITS:
        return pa.array([None if value is None else str(Fraction(value)) for value in values], pa.string())  # type: ignore[arg-type]
    return pa.array(values, KEY_KINDS[kind])


def _integers(exact_sums: list[int]) -> pa.Array:
    try:
        return pa.array(exact_sums, pa.int64())
    except (OverflowError, pa.ArrowInvalid):
        return pa.array([str(each) for each in exact_sums], pa.string())


def _lists(groups: Sequence[Any], kind: Any) -> pa.Array:
    ends = np.cumsum([0, *(len(each) for each in groups)], dtype=np.int64)
    held = np.concatenate([np.empty(0, dtype=kind), *(np.asarray(each).astype(kind) for each in groups)])
    return pa.LargeListArray.from_arrays(pa.array(ends), pa.array(held))


def from_bytes(written: bytes, plan: Plan) -> ExactPart:
    """Return what `to_bytes` wrote."""
    table = from_stream(written)
    exact_sums: dict[str, Sequence[int]] = {}
    exact_values: dict[int, GroupedSteps] = {}
    for name in table.column_names:
        kind, _, rest = name.partition(" ")
        if kind == "sum":
            exact_sums[rest] = [int(each) for each in table.column(name).to_pylist()]
        elif kind == "steps":
            exact_values[int(rest)] = _steps(table, rest)
    totals = json.loads((table.schema.metadata or {})[TOTALS])
    if plan.public_keys is not None:
        return ExactPart(None, table.column(PLACE).to_pylist(), exact_sums, exact_values, totals)
    parts = [_keys(table.column(key_name(at)).to_pylist(), key.type) for at, key in enumerate(plan.keys)]
    keys = list(zip(*parts, strict=True)) if parts else [()] * len(table)
    return ExactPart(keys, None, exact_sums, exact_values, totals)


def _keys(values: list[Any], kind: str) -> list[Scalar]:
    if kind == "int":
        return [None if value is None else int(value) for value in values]
    return [None if value is None else Fraction(value) for value in values] if kind == "decimal" else values


def _steps(table: pa.Table, index: str) -> GroupedSteps:
    lists = table.column(f"steps {index}").combine_chunks()
    ends = np.zeros(1, dtype=np.int64) if not len(lists) else lists.offsets.to_numpy()
    steps = lists.values.to_numpy() if len(lists) else np.empty(0, dtype=np.uint32)
    weights = None
    if f"weights {index}" in table.column_names:
        held = table.column(f"weights {index}").combine_chunks()
        weights = held.values.to_numpy() if len(held) else np.empty(0, dtype=np.int64)
    return GroupedSteps(steps, ends[:-1], ends[1:], weights)


def block_to_bytes(block: Block, most: int = BYTES_MOST) -> Iterator[bytes]:
    """Yield coded rows as bytes, some rows at a time: about `most` bytes each, or one row."""
    rows = max(1, most * block.length // max(1, block.nbytes))
    for start in range(0, block.length, rows):
        piece = block.piece(start, start + rows)
        alike = [] if piece.rows_of_unit is None else [piece.rows_of_unit]
        columns = [pa.array(each) for each in (*piece.cells, *piece.values, *alike)]
        yield to_stream(pa.Table.from_arrays(columns, names=list(map(str, range(len(columns))))))


def block_from_bytes(data: Any, plan: CodedPlan) -> Block:
    """Return the coded rows that bytes hold."""
    columns = [np.array(each) for each in from_stream(data).columns]  # in separate memory, as loops need them
    cells, values = columns[: len(plan.columns)], columns[len(plan.columns) : len(plan.columns) + len(plan.values)]
    alike = None if plan.unit is None else columns[-1]
    return Block(tuple(cells), tuple(values), alike, len(columns[0]))


# --- sums of parts ---


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
