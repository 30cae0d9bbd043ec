"""Window functions over the rows of a noisy answer, one for each group: no window sees a row of the table.

Does to the noisy answer what HAVING, OVER, QUALIFY, DISTINCT, ORDER BY, OFFSET and LIMIT say, in Python. Functions
mean the same as on rows, but whole numbers have no limit of 64 bits.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tacit.errors import QueryRefused
from tacit.query.language.catalogue import function
from tacit.query.language.functions import aligned, as_float, comparable, settled
from tacit.query.nodes import FLOAT, INT, Column, Expression, Kind, Ordering, PostProcessing, Value, Window

# A frame between two rows is added up anew for each row, so it is not wide.
FRAME_MOST = 100
TILES_MOST = 10**6

Values = Sequence[Any]


@dataclass(frozen=True)
class Partition:
    """The rows of one partition in the window's order: each argument's values, how far each row's frame reaches, and
    the first of the rows equal to it in the order with the first after them."""

    arguments: tuple[Values, ...]
    peers: Sequence[tuple[int, int]]
    frames: Sequence[tuple[int, int]]

    @property
    def rows(self) -> int:
        return len(self.peers)


Run = Callable[[Partition], Values]


@dataclass(frozen=True)
class WindowFunction:
    """A window function; `reads`: a result is made of all rows of its "frame", of "one" row, or of the "order"."""

    form: str
    arguments: tuple[int, int]
    kind: Callable[[tuple[Kind, ...]], Kind]
    run: Run
    reads: str = "order"
    needs_order: bool = False


def window_kind(window: Window, kinds: tuple[Kind, ...]) -> Kind:
    """Return what a window yields; refuse arguments that it does not take."""
    record = WINDOWS.get(window.function)
    if record is None:
        raise QueryRefused(
            f"{window.function.upper()} is not a window function\nhint: they are {', '.join(sorted(WINDOWS)).upper()}"
        )
    least, most = record.arguments
    if not least <= len(kinds) <= most:
        raise QueryRefused(f"{window.function.upper()} has {len(kinds)} argument(s)\nhint: write {record.form}")
    if record.needs_order and not window.order:
        raise QueryRefused(f"{window.function.upper()} needs an order\nhint: write {record.form}")
    _refuse_number(window, record)
    _refuse_wide_frame(window)
    return record.kind(kinds)


# the index of a function's constant among its arguments, and its least value
_CONSTANTS = {"ntile": (0, 1), "lag": (1, 0), "lead": (1, 0), "nth_value": (1, 1)}


def _refuse_number(window: Window, record: WindowFunction) -> None:
    place, least = _CONSTANTS.get(window.function, (0, 0))
    if window.function not in _CONSTANTS or place >= len(window.arguments):
        return
    given = window.arguments[place]
    number = given.value if isinstance(given, Value) else None
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= TILES_MOST:
        raise QueryRefused(
            f"{window.function.upper()} takes a whole constant from {least} to {TILES_MOST:,}"
            f"\nhint: write {record.form}"
        )


def _refuse_wide_frame(window: Window) -> None:
    if window.frame is None:
        return
    start, end = window.frame
    if start is not None and end is not None and (end < start or end - start >= FRAME_MOST):
        raise QueryRefused(
            f"a frame has 1 to {FRAME_MOST} rows, or no end on one side"
            "\nhint: ROWS BETWEEN 6 PRECEDING AND CURRENT ROW, or ROWS UNBOUNDED PRECEDING"
        )


def window_values(
    window: Window, partitions: Values, ordering: Sequence[Values], arguments: Sequence[Values]
) -> list[Any]:
    """Return a window's value for each row, given each row's partition and, for each part of the order and each
    argument, every row's value."""
    found: list[Any] = [None] * len(partitions)
    places: dict[Any, list[int]] = {}
    for place, key in enumerate(partitions):
        places.setdefault(key, []).append(place)
    run = WINDOWS[window.function].run
    for members in places.values():
        ordered = in_order(members, window.order, ordering)
        peers = _peers(ordered, ordering)
        frames = [_frame(window, at, each, len(ordered)) for at, each in enumerate(peers)]
        taken = tuple([values[place] for place in ordered] for values in arguments)
        for place, value in zip(ordered, run(Partition(taken, peers, frames)), strict=True):
            found[place] = value
    return found


def in_order(places: Sequence[int], order: Sequence[Ordering], ordering: Sequence[Values]) -> list[int]:
    """Return places sorted by an order, given each part's value at every place; equal ones stay as they were."""
    found = list(places)
    for each, values in reversed(list(zip(order, ordering, strict=True))):
        known = [place for place in found if values[place] is not None]
        unknown = [place for place in found if values[place] is None]
        known.sort(key=lambda place: comparable(values[place]), reverse=each.descending)
        found = unknown + known if each.nulls_first else known + unknown
    return found


def _peers(ordered: Sequence[int], ordering: Sequence[Values]) -> list[tuple[int, int]]:
    """Return for each row of a partition the first and last of the rows equal to it; without an order, all."""
    keys = [
        tuple(None if values[place] is None else comparable(values[place]) for values in ordering) for place in ordered
    ]
    found: list[tuple[int, int]] = []
    start = 0
    for at in range(1, len(keys) + 1):
        if at == len(keys) or keys[at] != keys[start]:
            found += [(start, at)] * (at - start)
            start = at
    return found


def _frame(window: Window, at: int, peers: tuple[int, int], rows: int) -> tuple[int, int]:
    if window.frame is None:
        return 0, peers[1]  # without an order, all rows are equal
    start, end = window.frame
    first = 0 if start is None else min(max(at + start, 0), rows)
    return first, rows if end is None else max(min(at + end + 1, rows), first)


# --- what each yields ---


def _same_place(kinds: tuple[Kind, ...]) -> Kind:
    return INT if kinds[0].type == "int" else kinds[0]


def _added_in_frame(kinds: tuple[Kind, ...]) -> Kind:
    kind = kinds[0]
    if not kind.is_number:
        raise QueryRefused(f"a window adds up numbers, but has {kind.phrase}\nhint: SUM(COUNT(*)) OVER ()")
    return INT if kind.type == "int" else FLOAT


def _averaged(kinds: tuple[Kind, ...]) -> Kind:
    _added_in_frame(kinds)
    return FLOAT


# --- their values ---


def _dense_ranks(part: Partition) -> Values:
    rank, found = 0, []
    for at, (start, _) in enumerate(part.peers):
        rank += at == start
        found.append(rank)
    return found


def _tiles(part: Partition) -> Values:
    """Tiles as equal as can be, the larger ones first."""
    tiles = part.arguments[0][0] if part.rows else 1
    size, more = divmod(part.rows, tiles)
    found: list[int] = []
    for tile in range(1, min(tiles, part.rows) + 1):
        found += [tile] * (size + (tile <= more))
    return found


def _moved_in_frame(sign: int) -> Run:
    def run(part: Partition) -> Values:
        values = part.arguments[0]
        by = sign * (part.arguments[1][0] if len(part.arguments) > 1 and part.rows else 1)
        other = part.arguments[2] if len(part.arguments) > 2 else [None] * part.rows
        return [values[at + by] if 0 <= at + by < part.rows else other[at] for at in range(part.rows)]

    return run


def _at_frame(choose: Callable[[int, int], int]) -> Run:
    def run(part: Partition) -> Values:
        values = part.arguments[0]
        return [values[choose(start, end)] if start < end else None for start, end in part.frames]

    return run


def _nth(part: Partition) -> Values:
    values, nth = part.arguments
    return [values[start + nth[0] - 1] if start + nth[0] <= end else None for start, end in part.frames]


def _over_frames(add: Callable[[Any, Any], Any], finish: Callable[[Any, int], Any]) -> Run:
    """Return how the values of a frame that are not NULL become one: one by one, then finished with their number."""

    def run(part: Partition) -> Values:
        values, frames = part.arguments[0], part.frames
        if all(start == 0 for start, _ in frames):
            return _growing(values, [end for _, end in frames], add, finish)
        if all(end == part.rows for _, end in frames):
            grown = _growing(values[::-1], [part.rows - start for start, _ in reversed(frames)], add, finish)
            return list(grown)[::-1]
        return [_growing(values[start:end], [end - start], add, finish)[0] for start, end in frames]

    return run


def _growing(
    values: Values, ends: Sequence[int], add: Callable[[Any, Any], Any], finish: Callable[[Any, int], Any]
) -> list[Any]:
    """Return what the first values together are, for rising numbers of them."""
    together, known, taken, found = None, 0, 0, []
    for end in ends:
        for value in values[taken:end]:
            if value is not None:
                together = value if together is None else add(together, value)
                known += 1
        taken = max(taken, end)
        found.append(finish(together, known))
    return found


def _plus(left: Any, right: Any) -> Any:
    return operator.add(*aligned(left, right))


def _extreme_in_frame(is_better: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    return lambda left, right: right if is_better(*reversed(aligned(left, right))) else left


def _mean_in_frame(total: Any, known: int) -> Any:
    return None if known == 0 else settled(as_float(total) / known)


def _total_in_frame(total: Any, _known: int) -> Any:
    return settled(total)


def _counted_in_frame(part: Partition) -> Values:
    values = part.arguments[0] if part.arguments else [1] * part.rows
    return _over_frames(_plus, lambda _total_in_frame, known: known)(Partition((values,), part.peers, part.frames))


def _whole_argument(
    form: str, counts: tuple[int, int], run: Run, reads: str = "order", *, needs_order: bool = False
) -> WindowFunction:
    return WindowFunction(form, counts, lambda _kinds: INT, run, reads, needs_order)


def _one_row(form: str, counts: tuple[int, int], run: Run) -> WindowFunction:
    return WindowFunction(form, counts, _same_place, run, "one", needs_order=True)


def _share_of_rows(form: str, run: Run) -> WindowFunction:
    return WindowFunction(form, (0, 0), lambda _kinds: FLOAT, run, needs_order=True)


WINDOWS: dict[str, WindowFunction] = {
    "row_number": _whole_argument("ROW_NUMBER() OVER (ORDER BY n)", (0, 0), lambda part: range(1, part.rows + 1)),
    "rank": _whole_argument(
        "RANK() OVER (ORDER BY n DESC)", (0, 0), lambda part: [start + 1 for start, _ in part.peers], needs_order=True
    ),
    "dense_rank": _whole_argument("DENSE_RANK() OVER (ORDER BY n)", (0, 0), _dense_ranks, needs_order=True),
    "percent_rank": _share_of_rows(
        "PERCENT_RANK() OVER (ORDER BY n)",
        lambda part: [start / (part.rows - 1) if part.rows > 1 else 0.0 for start, _ in part.peers],
    ),
    "cume_dist": _share_of_rows(
        "CUME_DIST() OVER (ORDER BY n)", lambda part: [end / part.rows for _, end in part.peers]
    ),
    "ntile": _whole_argument("NTILE(4) OVER (ORDER BY n)", (1, 1), _tiles, needs_order=True),
    "lag": _one_row("LAG(n) OVER (ORDER BY k)", (1, 3), _moved_in_frame(-1)),
    "lead": _one_row("LEAD(n) OVER (ORDER BY k)", (1, 3), _moved_in_frame(1)),
    "first_value": _one_row("FIRST_VALUE(n) OVER (ORDER BY k)", (1, 1), _at_frame(lambda start, _: start)),
    "last_value": _one_row("LAST_VALUE(n) OVER (ORDER BY k)", (1, 1), _at_frame(lambda _, end: end - 1)),
    "nth_value": _one_row("NTH_VALUE(n, 2) OVER (ORDER BY k)", (2, 2), _nth),
    "sum": WindowFunction("SUM(n) OVER ()", (1, 1), _added_in_frame, _over_frames(_plus, _total_in_frame), "frame"),
    "avg": WindowFunction("AVG(n) OVER ()", (1, 1), _averaged, _over_frames(_plus, _mean_in_frame), "frame"),
    "min": WindowFunction(
        "MIN(n) OVER ()", (1, 1), _same_place, _over_frames(_extreme_in_frame(operator.lt), _total_in_frame), "frame"
    ),
    "max": WindowFunction(
        "MAX(n) OVER ()", (1, 1), _same_place, _over_frames(_extreme_in_frame(operator.gt), _total_in_frame), "frame"
    ),
    "count": _whole_argument("COUNT(*) OVER ()", (0, 1), _counted_in_frame),
}


Row = Mapping[str, Any]


def apply_postprocessing(rows: Sequence[Row], after: PostProcessing) -> list[dict[str, Any]]:
    """Return the rows that are kept, in their order, with a column for each window; shown columns are not computed."""
    having = after.having
    kept = [dict(row) for row in rows if having is None or evaluate(having, row) is True]
    for window in after.windows:
        for row, value in zip(kept, values_of(window, kept), strict=True):
            row[window.name] = value
    if after.qualify is not None:
        kept = [row for row in kept if evaluate(after.qualify, row) is True]
    kept = _distinct(kept, after) if after.distinct else kept
    ordering = [[evaluate(each.expression, row) for row in kept] for each in after.order]
    kept = [kept[place] for place in in_order(range(len(kept)), after.order, ordering)]
    return kept[after.offset :] if after.limit is None else kept[after.offset : after.offset + after.limit]


def values_of(window: Window, rows: Sequence[Row], arguments: Sequence[Sequence[Any]] | None = None) -> list[Any]:
    """Return a window's value for each row; its arguments' values may be others than the rows give."""
    given = [[evaluate(argument, row) for row in rows] for argument in window.arguments]
    return window_values(
        window,
        [tuple(_same_names(evaluate(each, row)) for each in window.partition) for row in rows],
        [[evaluate(each.expression, row) for row in rows] for each in window.order],
        given if arguments is None else arguments,
    )


def _distinct(rows: list[dict[str, Any]], after: PostProcessing) -> list[dict[str, Any]]:
    """Return the first of rows that show the same."""
    found: dict[Any, dict[str, Any]] = {}
    for row in rows:
        found.setdefault(tuple(_same_names(evaluate(each.expression, row)) for each in after.shown), row)
    return list(found.values())


def _same_names(value: Any) -> Any:
    """Return a value that is equal for equal values and not for NULL and others; True is not 1."""
    return None if value is None else (isinstance(value, bool), comparable(value))


def evaluate(expression: Expression, row: Row) -> Any:
    """Return an expression's value on one noisy row; None is NULL."""
    if isinstance(expression, Value):
        return expression.value
    if isinstance(expression, Column):
        value = row[expression.name]
        return None if isinstance(value, float) and value != value else value
    return function(expression.function).evaluate(*(evaluate(argument, row) for argument in expression.arguments))
