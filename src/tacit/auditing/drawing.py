"""Draws for an audit: many outputs of a callable on one input, or many releases of one exact table.

A callable is run again and again; an error that it raises is an output too. A question is drawn without reading a row
again: a release gives every group its own noise, so a table with many copies of its groups is released once for many
draws. Only tables that an audit made up are repeated.
"""

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.auditing.outcome import Raised
from tacit.errors import InvalidParameter
from tacit.exact import ExactTable
from tacit.plan import Plan
from tacit.release import NoisyTable, release

Tick = Callable[[int], None]
# Draws between two updates of a progress bar.
TICK = 64


def clock() -> float:
    """Return the clock that time limits use."""
    return time.monotonic()


def draw_outputs(fn: Callable[..., Any], data: Any, count: int, *, batch: bool, tick: Tick) -> Any:
    """Return `count` outputs on one input: a list, or the array that a batch gave."""
    if batch:
        outputs = _one_batch(fn, data, count)
        tick(count)
        return outputs
    outputs = []
    for turn in range(count):
        outputs.append(call(fn, data))
        if turn % TICK == TICK - 1:
            tick(TICK)
    tick(count % TICK)
    return outputs


def call(fn: Callable[..., Any], data: Any) -> Any:
    """Return the output of one call; an error is returned as its class."""
    try:
        return fn(data)
    except Exception as error:  # noqa: BLE001 - an error that an observer sees is an output
        return Raised(type(error).__name__)


def _one_batch(fn: Callable[..., Any], data: Any, count: int) -> Any:
    try:
        outputs = fn(data, count)
    except Exception as error:
        raise InvalidParameter(
            f"fn raised {type(error).__name__} when it was called for {count:,} outputs at once"
            "\nhint: use batch=False; then every call is one draw, and an error counts as an output"
        ) from error
    if isinstance(outputs, str | bytes | dict) or not hasattr(outputs, "__len__"):
        raise InvalidParameter(
            f"with batch=True, fn(data, n) must return n outputs as a list or an array, not a {type(outputs).__name__}"
        )
    if len(outputs) != count:
        raise InvalidParameter(
            f"with batch=True, fn(data, n) must return n outputs; for n = {count:,} it returned {len(outputs):,}"
            "\nhint: the first axis of an array must be the draw"
        )
    return outputs if isinstance(outputs, np.ndarray) else list(outputs)


@contextmanager
def progress(what: str, total: int) -> Iterator[Tick]:
    """Yield a function to call as draws are made, which moves a bar on a terminal and does nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda count: bar.advance(task, count)


# ---- Releases of one exact table.

CELLS_AT_ONCE = 200_000


def draw_releases(plan: Plan, exact: ExactTable, count: int) -> Any:
    """Return `count` independent releases of a table: rows of noisy integers, or the shown part of private groups."""
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
    """Return an exact table of these groups only, in this order; groups that it does not have are skipped."""
    place_of = {tuple(key): place for place, key in enumerate(exact.keys)}
    places = [place_of[key] for key in keys if key in place_of]
    return ExactTable(
        [tuple(exact.keys[place]) for place in places],
        {name: [column[place] for place in places] for name, column in exact.sums.items()},
        {name: column.only(places) for name, column in exact.values.items()},
    )


def more_people(one: ExactTable, other: ExactTable, times: int) -> tuple[ExactTable, ExactTable]:
    """Return two neighbours with `times` copies of everyone in the first table, and the same difference as before.

    Sums add up over units, so a larger crowd in both leaves the difference unchanged.
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
    """Return the groups repeated `copies` times, each key preceded by the number of its copy."""
    keys: list[Any] = [(copy, *key) for copy in range(copies) for key in exact.keys]
    return ExactTable(
        keys,
        {name: list(column) * copies for name, column in exact.sums.items()},
        {name: column.only(list(range(len(column))) * copies) for name, column in exact.values.items()},
    )


def _as_rows(noisy: NoisyTable, copies: int) -> NDArray[Any]:
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
