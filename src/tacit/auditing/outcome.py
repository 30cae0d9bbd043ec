"""The outputs of a callable on two inputs, as an observer sees them: their kinds, exact values and numbers.

Every difference that an observer could see is kept: a number's type, NaN, the length of a list, the class of an error
(an error that only one input raises is an output like any other). Only the text of an error is ignored.

Draws for an audit: many outputs of a callable on one input, or many releases of one exact table.

A callable is run again and again; an error that it raises is an output too. A question is drawn without reading a row
again: a release gives every group its own noise, so a table with many copies of its groups is released once for many
draws. Only tables that an audit made up are repeated.
"""

import dataclasses
import math
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.exact import ExactTable
from tacit.numbers import Floats, Integers
from tacit.plan import Plan
from tacit.release import NoisyTable, release

NUMBERS_MOST = 64
KIND_LETTERS = 120
_PLAIN_TYPES = (float, int, bool, np.float64, np.int64, np.bool_)


@dataclass(frozen=True)
class Raised:
    """An error instead of an output: its class."""

    name: str


@dataclass(frozen=True)
class Outcomes:
    """The outputs on both inputs, those of the first input before those of the second, in the order of drawing."""

    first: int  # how many are of the first input
    kinds: Integers
    kind_names: tuple[str, ...]
    values: Integers  # equal outputs have equal codes
    value_of: Callable[[int], str]  # a code in words
    numbers: Floats  # one column for each position in an output; NaN if it is not a number
    names: tuple[str, ...]  # of the columns
    plain: bool  # whether all outputs are numbers, or vectors of one length, of one type

    @property
    def second(self) -> int:
        return len(self.kinds) - self.first

    @property
    def constant(self) -> tuple[bool, bool]:
        """Whether each input gave one and the same output every time."""
        sides = (self.values[: self.first], self.values[self.first :])
        return tuple(bool(len(side) and (side == side[0]).all()) for side in sides)  # type: ignore[return-value]


def read_outcomes(one: Any, other: Any) -> Outcomes:
    """Return the outputs on two inputs, each a list or an array with one entry for each draw."""
    plain = [_plain_array(side) for side in (one, other)]
    if plain[0] is not None and plain[1] is not None and _alike(plain[0], plain[1]):
        return _from_arrays(plain[0], plain[1])
    described = [[_describe(output) for output in side] for side in (one, other)]
    return _from_descriptions(described[0], described[1])


def _alike(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return one.dtype.kind == other.dtype.kind and one.shape[1:] == other.shape[1:]


def _plain_array(side: Any) -> NDArray[Any] | None:
    """Return outputs that are numbers of one kind, or vectors of one length, as an array; None for others."""
    if isinstance(side, np.ndarray):
        found = side
    else:
        types = set(map(type, side))
        if len(types) != 1 or not types <= set(_PLAIN_TYPES):
            return None
        try:
            found = np.array(side)
        except OverflowError:
            return None
    if found.dtype.kind == "u" and found.dtype.itemsize == 8:
        return None
    return found if found.dtype.kind in "iufb" and found.ndim in (1, 2) and found.dtype.itemsize <= 8 else None


def _from_arrays(one: NDArray[Any], other: NDArray[Any]) -> Outcomes:
    both = np.concatenate([one, other])
    rows = both.reshape(len(both), -1)
    numbers = rows.astype(np.float64)
    nan, infinite = np.isnan(numbers).any(axis=1), np.isinf(numbers).any(axis=1)
    minus_zero = ((numbers == 0) & np.signbit(numbers)).any(axis=1)
    kinds = np.where(nan, 1, np.where(infinite, 2, np.where(minus_zero, 3, 0))).astype(np.int64)
    if rows.shape[1] == 1:
        distinct, values = np.unique(rows[:, 0], return_inverse=True)
    else:
        packed = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))
        _, places, values = np.unique(packed.ravel(), return_index=True, return_inverse=True)
        distinct = rows[places]
    names = ("x",) if both.ndim == 1 else tuple(f"x[{place}]" for place in range(rows.shape[1]))
    return Outcomes(
        first=len(one),
        kinds=kinds,
        kind_names=("finite and without a minus zero", "NaN", "infinite", "a minus zero"),
        values=values.astype(np.int64),
        value_of=lambda code: _short(distinct[code].tolist()),
        numbers=numbers[:, :NUMBERS_MOST],
        names=names[:NUMBERS_MOST],
        plain=True,
    )


@dataclass(frozen=True)
class OutputDescription:
    """An output: its kind, a key for equality, and its numbers."""

    kind: str
    value: Hashable
    numbers: tuple[float, ...]
    names: tuple[str, ...]


def _from_descriptions(one: Sequence[OutputDescription], other: Sequence[OutputDescription]) -> Outcomes:
    both = [*one, *other]
    kind_codes: dict[str, int] = {}
    value_codes: dict[tuple[str, Hashable], int] = {}
    kinds = [kind_codes.setdefault(each.kind, len(kind_codes)) for each in both]
    values = [value_codes.setdefault((each.kind, each.value), len(value_codes)) for each in both]
    widest = max(both, key=lambda each: len(each.numbers), default=None)
    names = widest.names[:NUMBERS_MOST] if widest else ()
    numbers = np.full((len(both), len(names)), np.nan)
    for place, each in enumerate(both):
        if each.numbers:
            numbers[place, : min(len(each.numbers), len(names))] = each.numbers[: len(names)]
    listed = list(value_codes)
    return Outcomes(
        first=len(one),
        kinds=np.array(kinds, dtype=np.int64),
        kind_names=tuple(kind_codes),
        values=np.array(values, dtype=np.int64),
        value_of=lambda code: _short(listed[code][1]),
        numbers=numbers,
        names=names,
        plain=False,
    )


def _describe(output: Any, name: str = "x") -> OutputDescription:
    if isinstance(output, np.generic):
        output = output.item()
    if isinstance(output, Raised):
        return OutputDescription(f"raised {output.name}", "", (), ())
    if output is None:
        return OutputDescription("None", "None", (), ())
    if isinstance(output, bool | int | float | Decimal | Fraction):
        return _describe_number(output, name)
    if isinstance(output, str | bytes):
        return OutputDescription(type(output).__name__, output, (float(len(output)),), (f"length of {name}",))
    if isinstance(output, date | datetime | timedelta):
        return OutputDescription(type(output).__name__, str(output), (), ())
    parts = _output_parts(output, name)
    if parts is None:
        raise InvalidParameter(
            f"fn returned a {type(output).__name__}, but an audit compares only numbers, text, None, and lists, "
            "dicts or arrays of these\nhint: return the part that an observer would see, e.g. a tuple of its numbers"
        )
    label, inner = parts
    found = [_describe(part, place) for place, part in inner]
    inside = ", ".join(each.kind for each in found)
    kind = f"{label}({inside})"
    if len(kind) > KIND_LETTERS:
        kind = f"{label}({len(found)} of {', '.join(sorted({each.kind for each in found}))})"[:KIND_LETTERS]
    return OutputDescription(
        kind,
        tuple((each.kind, each.value) for each in found),
        tuple(number for each in found for number in each.numbers),
        tuple(place for each in found for place in each.names),
    )


def _describe_number(output: Any, name: str) -> OutputDescription:
    try:
        number = float(output)
    except OverflowError:
        number = math.inf if output > 0 else -math.inf
    except ValueError:  # a signalling NaN
        number = math.nan
    kind = type(output).__name__
    if number != number:
        return OutputDescription(f"{kind} NaN", "NaN", (math.nan,), (name,))
    if math.isinf(number) and isinstance(output, float):
        return OutputDescription(f"{kind} {number}", number, (number,), (name,))
    # -0.0 and 0.0 are printed as two values
    value = repr(output) if number == 0 and isinstance(output, float) else output
    return OutputDescription(kind, value, (number,), (name,))


def _output_parts(output: Any, name: str) -> tuple[str, list[tuple[str, Any]]] | None:
    if isinstance(output, np.ndarray):
        shape = "x".join(map(str, output.shape))
        return f"array {shape}", [(f"{name}[{place}]", part) for place, part in enumerate(output.ravel().tolist())]
    if isinstance(output, Mapping):
        listed = sorted(output.items(), key=lambda item: repr(item[0]))
        return f"dict of {_short([key for key, _ in listed])}", [(f"{name}[{key!r}]", part) for key, part in listed]
    if isinstance(output, set | frozenset):
        listed_parts = sorted(output, key=repr)
        return "set", [(f"{name}[{place}]", part) for place, part in enumerate(listed_parts)]
    if isinstance(output, list | tuple):
        return type(output).__name__, [(f"{name}[{place}]", part) for place, part in enumerate(output)]
    if dataclasses.is_dataclass(output) and not isinstance(output, type):
        fields = [(f"{name}.{each.name}", getattr(output, each.name)) for each in dataclasses.fields(output)]
        return type(output).__name__, fields
    return None


def _short(value: Any, letters: int = 60) -> str:
    text = repr(_value_as_it_was(value))
    return text if len(text) <= letters else text[: letters - 1] + "…"


def _value_as_it_was(value: Any) -> Any:
    """Return the value of a description as it was: nested (kind, value) pairs become tuples of values."""
    if isinstance(value, tuple) and all(isinstance(part, tuple) and len(part) == 2 for part in value):
        return tuple(_value_as_it_was(part[1]) for part in value)
    return value


Tick = Callable[[int], None]
# Draws between two updates of a progress bar.
TICK = 64


def clock() -> float:
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
