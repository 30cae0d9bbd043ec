"""Run a callable on an input many times and keep what it says: outputs, and errors as outputs."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tacit.auditing.outcome import Raised
from tacit.errors import InvalidParameter

Tick = Callable[[int], None]
# How often a progress bar is told.
TICK = 64


def clock() -> float:
    """Return the time that limits are kept by."""
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
    """Return what one call says; an error is its class."""
    try:
        return fn(data)
    except Exception as error:  # noqa: BLE001 - an error that an observer sees is an output
        return Raised(type(error).__name__)


def _one_batch(fn: Callable[..., Any], data: Any, count: int) -> Any:
    try:
        outputs = fn(data, count)
    except Exception as error:
        raise InvalidParameter(
            f"fn raised {type(error).__name__} when asked for {count:,} outputs at once"
            "\nhint: with batch=False every call is one draw, and an error is an output like any other"
        ) from error
    if isinstance(outputs, str | bytes | dict) or not hasattr(outputs, "__len__"):
        raise InvalidParameter(
            f"with batch=True fn(data, n) returns n outputs as a list or an array, not a {type(outputs).__name__}"
        )
    if len(outputs) != count:
        raise InvalidParameter(
            f"with batch=True fn(data, n) returns n outputs; asked for {count:,} it returned {len(outputs):,}"
            "\nhint: for an array the first axis is the draw"
        )
    return outputs if isinstance(outputs, np.ndarray) else list(outputs)


@contextmanager
def progress(what: str, total: int) -> Iterator[Tick]:
    """Yield a function to call as draws are made, which moves a bar on a terminal and nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda count: bar.advance(task, count)
