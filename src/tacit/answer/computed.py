"""The columns of an answer that are computed from released numbers, each with the interval that follows from theirs.

A column of one number has the image of that number's interval. A column of several numbers has the interval arithmetic
of theirs, each at a confidence that holds for all of them at once (by Bonferroni), so it is wide rather than wrong.
An unknown end is None. All of it is post-processing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.answer.moments import NoisyColumn
from tacit.query import (
    AnswerSpan,
    Column,
    Parts,
    PostProcessing,
    Shown,
    Window,
    columns_of,
    evaluate,
    parts_of_window,
    rows_read,
    span_of,
    window_span_of,
)

# The place of a row among those of the plan, under a name that no column has.
PLACE = "\x00place"
# The kind of a column that is not a single aggregate.
COMPUTED = "computed"
UNKNOWN = AnswerSpan(None, None)

Row = Mapping[str, Any]
ColumnsAt = Callable[[Fraction], Sequence[NoisyColumn]]


@dataclass(frozen=True)
class ShownColumn:
    """A shown column: its values, and its ends if it is a noisy number."""

    name: str
    type: str
    values: list[Any]
    low: list[Any] | None = None
    high: list[Any] | None = None
    output: str | None = None  # the output that it is, unchanged
    numbers: int = 1  # how many released numbers it is computed from


def shown_columns(
    after: PostProcessing,
    rows: Sequence[Row],
    kept: Sequence[Row],
    outputs: Sequence[str],
    columns_at: ColumnsAt,
    confidence: Fraction,
    parts: Parts = frozenset(),
) -> list[ShownColumn]:
    """Return what is shown of the rows that are kept.

    `rows` are all rows of the answer, each with its place, and `columns_at` gives all outputs with their intervals at a
    confidence.
    """
    reckoning = _Reckoning(after, rows, frozenset(outputs), columns_at, parts)
    ranged = after.with_intervals(outputs)
    found = []
    for shown in after.shown:
        plain = shown.expression.name if isinstance(shown.expression, Column) else None
        output = plain if plain in outputs else None
        values = [evaluate(shown.expression, row) for row in kept]
        values = values if output else [_typed(value, shown.type) for value in values]
        if shown.name not in ranged:
            found.append(ShownColumn(shown.name, shown.type, values))
            continue
        numbers = reckoning.numbers_of(shown)
        level = 1 - (1 - confidence) / numbers
        places = [row[PLACE] for row in kept]
        spans = reckoning.spans(shown, places, level)
        values = [span.nearest(value) for span, value in zip(spans, values, strict=True)]
        low, high = ([getattr(span, end) for span in spans] for end in ("low", "high"))
        if output is None:
            low, high = ([_typed(end, shown.type) for end in ends] for ends in (low, high))
        found.append(ShownColumn(shown.name, shown.type, values, low, high, output, numbers))
    return found


@dataclass(frozen=True)
class _Reckoning:
    """Computes spans of shown columns from the intervals of outputs."""

    after: PostProcessing
    rows: Sequence[Row]
    outputs: frozenset[str]
    columns_at: ColumnsAt
    parts: Parts

    @property
    def windows(self) -> dict[str, Window]:
        return {window.name: window for window in self.after.windows}

    def numbers_of(self, shown: Shown) -> int:
        """Return how many released numbers one cell of a column can depend on, at least one."""
        read = columns_of(shown.expression)
        whole: dict[str, int] = {name: 1 for name in read if name in self.outputs}
        for name in read:
            window = self.windows.get(name)
            if window is not None:
                inside = frozenset().union(*map(columns_of, window.arguments)) & self.outputs
                for each in inside:
                    whole[each] = max(whole.get(each, 0), rows_read(window, len(self.rows)) + (each in read))
        return max(1, sum(min(count, max(len(self.rows), 1)) for count in whole.values()))

    def spans(self, shown: Shown, places: Sequence[int], level: Fraction) -> list[AnswerSpan]:
        """Return the range of a column in each of the rows at these indices."""
        columns = {column.name: column for column in self.columns_at(level)}
        of_rows = [self._spans_of_row(row, columns) for row in self.rows]
        kept = [at for at, row in enumerate(self.rows) if self._is_kept(row)]
        noisy, parts = self.after.noisy_columns(self.outputs), set(self.parts)
        for name in sorted(columns_of(shown.expression)):
            window = self.windows.get(name)
            if window is not None:
                spans = window_span_of(window, [self.rows[at] for at in kept], [of_rows[at] for at in kept], noisy)
                for at, span in zip(kept, spans, strict=True):
                    of_rows[at][name] = span
                parts |= parts_of_window(window, [of_rows[at] for at in kept])
        by_place = {row[PLACE]: at for at, row in enumerate(self.rows)}
        wholes = frozenset(parts)
        return [span_of(shown.expression, of_rows[by_place[place]], wholes) or UNKNOWN for place in places]

    def _is_kept(self, row: Row) -> bool:
        return self.after.having is None or evaluate(self.after.having, row) is True

    def _spans_of_row(self, row: Row, columns: Mapping[str, NoisyColumn]) -> dict[str, AnswerSpan | None]:
        place = row[PLACE]
        found: dict[str, AnswerSpan | None] = {name: AnswerSpan(value, value) for name, value in row.items()}
        for name, column in columns.items():
            low, high = column.low[place], column.high[place]
            found[name] = None if low is None or high is None else AnswerSpan(low, high)
        return found


def computed_notes(
    columns: Sequence[ShownColumn], quantiles: Mapping[str, int], confidence: Fraction
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what the intervals of computed columns mean, and which of them hold with a smaller probability.

    `quantiles` is how many quantiles each column is computed from.
    """
    wide = [each.name for each in columns if each.numbers > 1 and not quantiles.get(each.name)]
    notes, lower = [], []
    if wide:
        verb = "is" if len(wide) == 1 else "are"
        notes.append(
            f"{', '.join(wide)} {verb} computed from several released numbers. The interval is conservative: it holds"
            " if all of these numbers are within their own intervals."
        )
    for each in columns:
        drawn = quantiles.get(each.name, 0)
        if each.numbers > 1 and drawn:
            missed = (1 - confidence) * drawn + (1 - confidence) * (each.numbers - drawn) / each.numbers
            level = f"{max(0.0, float(1 - missed)) * 100:g} %"
            lower.append(f"The interval of {each.name}, computed from quantiles, holds with {level} probability.")
    return tuple(notes), tuple(lower)


def _typed(value: Any, kind: str) -> Any:
    """Return a number as an answer has it: whole if its type is, else a float; infinities and NaN are unknown."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    whole = kind == "int" and isinstance(value, int | Fraction) and value.denominator == 1
    if whole or isinstance(value, bool) or not isinstance(value, int | Fraction):
        return int(value) if isinstance(value, Fraction) else value
    try:
        return float(value)
    except OverflowError:
        return None
