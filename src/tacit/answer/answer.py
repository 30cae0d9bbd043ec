"""An answer as people use it: rows with an error bar on every cell, its cost, and its conversion for other tools.

Everything in it is released already; rows cannot be reached from here. `make_answer` is the way in; the arithmetic of
columns is in `columns.py`, and printing is in `text.py`.
"""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Never, overload

import numpy as np
import pyarrow as pa

from tacit.accounting import meaning_line
from tacit.answer.columns import CONSISTENT, column_type, lower_ends, made_consistent, noisy_columns, parts_of_outputs
from tacit.answer.computed import COMPUTED, PLACE, ColumnsAt, computed_notes, shown_columns
from tacit.answer.disclosure import bounds_lines, bounds_record, learned_lines
from tacit.answer.moments import NoisyColumn
from tacit.answer.published import defused, html_page, map_json, wide_csv
from tacit.answer.text import (
    advice_of,
    details_text,
    html_table,
    is_picked,
    joined,
    question_notes,
    reading_of,
    special_label,
    text_table,
    why_empty,
)
from tacit.arrow_frames import as_pandas, as_polars
from tacit.errors import InvalidParameter, json_text, unknown_name
from tacit.files import path_of, write_text
from tacit.numbers import Number
from tacit.plan import Plan, Ranking
from tacit.privacy import ApproximateLoss, Loss, PureLoss
from tacit.query import Column, Parts, PostProcessing, apply_postprocessing, columns_of, grouping_name
from tacit.release import NoisyTable

if TYPE_CHECKING:
    from tacit.answer.population import Population

Row = Mapping[str, Any]
Laws = tuple[Plan, NoisyTable, ColumnsAt]
_OURS = ("certify", "laws", "released")  # names that Tab does not offer
# How the rows of a view name their lower ends: no column of a question can be called that.
AT_LEAST = "\x00at least"
ARROW_TYPES: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int": pa.int64(),
    "float": pa.float64(),
    "decimal": pa.float64(),
    "text": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "null": pa.string(),
}


class AnswerRows(Sequence[Row]):
    """The rows of an answer, built lazily from columns: building 100,000 dicts takes longer than computing the numbers.

    >>> AnswerRows({"ward": ["A", "B"], "n": [3, 4]})[1]
    {'ward': 'B', 'n': 4}
    """

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        self._names = tuple(columns)
        self._columns = tuple(columns.values())

    def column(self, name: str) -> Sequence[Any]:
        """Return one column whole, without making rows."""
        return self._columns[self._names.index(name)]

    def __len__(self) -> int:
        return len(self._columns[0]) if self._columns else 0

    @overload
    def __getitem__(self, place: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, place: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, place: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(place, slice):
            cut = zip(*(column[place] for column in self._columns), strict=True)
            return [dict(zip(self._names, cells, strict=True)) for cells in cut]
        return {name: column[place] for name, column in zip(self._names, self._columns, strict=True)}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for cells in zip(*self._columns, strict=True):
            yield dict(zip(self._names, cells, strict=True))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__: None = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))


@dataclass(frozen=True)
class AnswerInfo:
    """The facts about an answer: cost, remaining budget, promise. All public, released, or read from the ledger."""

    loss: Mapping[str, Any]  # epsilon and delta as numbers, and text
    left: Mapping[str, Any]  # the largest epsilon of one more question, how many more like this, and text
    unit: str
    neighbours: str
    confidence: Fraction
    durable: bool
    free: bool  # answered from the ledger's record, at no charge
    version: int = 1  # of the table, as the curator declared it
    has_changed: bool | None = None  # of a free answer: whether the source was written since; None if unknown
    receipt: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # a fact each, for `details()`
    reading: str = ""  # the line on how to read the intervals, and the parts they leave out
    advice: str = ""  # the line on hidden parts, and on a closer answer
    bounds: Mapping[str, Any] = field(default_factory=dict)  # learned facts and weights, as in `disclosure.py`
    is_public: bool = False  # without reading, and never charged


@dataclass(frozen=True, repr=False)
class Answer:
    """A private answer: `print` it, or take it `to_pandas`, `to_polars`, `to_arrow`, `to_dicts`, `to_csv`, `to_json`.

    An aggregate X has the columns X, X_low and X_high; the true value is between the last two at the stated confidence.
    """

    rows: Sequence[Row]
    columns: tuple[str, ...]  # as asked: keys and aggregates
    types: Mapping[str, str]  # every column's type, X_low and X_high included
    aggregates: tuple[str, ...]
    facts: AnswerInfo
    kinds: Mapping[str, str] = field(default_factory=dict)  # the kind of each aggregate, e.g. count or mean
    certify: Callable[[], Mapping[str, Any]] | None = field(default=None, compare=False)
    rolled: Mapping[str, Sequence[bool]] = field(default_factory=dict)  # of each key, the rows in which it is a total
    others: tuple[str, ...] = ()  # the keys whose NULL is of all groups that are not shown
    lower_ends: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # what `at_least` gives, by aggregate
    parts: "Mapping[str, Answer]" = field(default_factory=dict)  # of a workload, which has no rows of its own
    laws: "Laws | None" = field(default=None, compare=False)  # what numbers about the population are made from

    def __str__(self) -> str:
        return text_table(self)

    def __repr__(self) -> str:
        return text_table(self)

    def _repr_html_(self) -> str:
        return html_table(self)

    def details(self) -> "Details":
        """Return every fact about the answer, a line each: exact cost, bounds, learned facts, all digits."""
        return Details(details_text(self))

    def __dir__(self) -> list[str]:  # the names that Tab offers: `certify` is called by `certificate()`
        return sorted(name for name in super().__dir__() if not name.startswith("_") and name not in _OURS)

    def __len__(self) -> int:
        return len(self.parts) or len(self.rows)

    def __getitem__(self, name: str) -> "Answer":
        """Return the answer of one question of a workload, by its name."""
        if name not in self.parts:
            known = f"its questions are {', '.join(self.parts)}" if self.parts else "to_pandas()['ward'] has a column"
            raise InvalidParameter(f"this answer has no question of that name\nhint: {known}")
        return self.parts[name]

    @property
    def names(self) -> list[str]:
        """The columns of the answer as data: each aggregate is followed by its low and high end."""
        names: list[str] = []
        for name in self.columns:
            names.append(name)
            if name in self.aggregates:
                names.extend((f"{name}_low", f"{name}_high"))
        return names

    def certificate(self) -> Mapping[str, Any]:
        """Return the ledger's signed certificate of this answer: the release, and its promise.

        No part of it is computed from rows; anyone can check it offline with `tacit certificate verify FILE`.
        """
        if self.certify is None:
            raise InvalidParameter(
                "this answer has no certificate: no ledger recorded it\nhint: ask a table that tacit.table(...) opened"
            )
        return self.certify()

    def at_least(self, name: str) -> list[Any]:
        """Return, for each row, a lower bound of the table's own number, for any rows: a theorem.

        Bounds exist for counts, and for sums of columns that are declared not to be negative: bounding only lowers
        those. The bound holds for the whole table, not only up to the cap of a unit, and fails at half the probability
        that the interval may: at a confidence of 95 %, in one row of 40.
        """
        name = name if isinstance(name, str) else f"a {type(name).__name__}"
        if name not in self.lower_ends:
            known = ", ".join(sorted(self.lower_ends)) or "none here"
            raise InvalidParameter(
                f"'{name:.60}' has no lower end that holds whatever the rows are; these have: {known}"
                "\nhint: it is for counts, and for sums of a column with a range that begins at 0, as between=(0, 100)"
            )
        return list(self.lower_ends[name])

    def population(self, confidence: Number | None = None) -> "Population":
        """Return the means with intervals about the population that the table is a simple random sample of: free.

        Sampling error and noise are in one interval. Each row must be a person. A range that is declared bounds the
        spread of rows; `tacit.std("x")` in the same question gives it, and narrower intervals. A share is a mean of
        values that are 0 or 1.
        """
        from tacit.answer.population import population

        found = population(*self.released, self.facts.confidence if confidence is None else confidence)
        found.answer = self
        return found

    @property
    def released(self) -> "Laws":
        """What numbers about the population are made from; refused without them."""
        self._refuse_parts("answer['by_ward'].population()")
        if self.laws is None:
            raise InvalidParameter(
                "this answer has only its numbers, and no law of their noise"
                "\nhint: ask where the table is, as tacit.table(...) does, and one SELECT at a time"
            )
        return self.laws

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return one dict for each row."""
        return [{name: row[name] for name in self.names} for row in self.rows]

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table, typed by the question."""
        self._refuse_parts("answer['by_ward'].to_pandas()")
        columns = [_column_of_rows(self.rows, name) for name in self.names]
        arrays = [_array(column, self.types[name]) for name, column in zip(self.names, columns, strict=True)]
        return pa.table(dict(zip(self.names, arrays, strict=True)))

    def to_pandas(self) -> Any:
        """Return a pandas frame."""
        return as_pandas(self.to_arrow())

    def to_polars(self) -> Any:
        """Return a Polars frame."""
        return as_polars(self.to_arrow())

    def to_csv(self, path: str | Path | None = None, *, columns: str | None = None, unsure_from: float = 0.3) -> str:
        """Return the answer as CSV, and write it to `path` if given; text that a spreadsheet would run is defused.

        With `columns` it has the layout of the workbook: the values of that key across, then the ends of intervals.
        """
        if columns is not None and not self.parts:
            return _write_text_to(wide_csv(self, columns, unsure_from), path)
        if self.parts:
            made = [f"{defused(name)}\n{part.to_csv()}" for name, part in self.parts.items()]
            return _write_text_to("\n".join(made), path)
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([defused(name) for name in self.names])
        for at, row in enumerate(self.rows):
            labels = {name: special_label(self, name, at, row[name]) for name in self.columns}
            writer.writerow([labels.get(name) or defused(plain(row[name])) for name in self.names])
        return _write_text_to(out.getvalue(), path)

    def to_json(self, path: str | Path | None = None, *, areas: str | None = None) -> str:
        """Return one JSON object, with rows, loss, left, unit, neighbours, confidence, notes and more, and write it.

        With `areas`, a key such as "region", it has for each area its numbers with their intervals, ready for a map.
        """
        if areas is not None and not self.parts:
            return _write_text_to(json_text(map_json(self, areas)), path)
        facts = self.facts
        record = {
            "rows": [{name: plain(value) for name, value in row.items()} for row in self.to_dicts()],
            "loss": dict(facts.loss),
            "left": dict(facts.left),
            "unit": facts.unit,
            "neighbours": facts.neighbours,
            "confidence": float(facts.confidence),
            "free": facts.free,
            "answered": {"time": facts.receipt.get("time"), "version": facts.version, "changed": facts.has_changed},
            "durable": facts.durable,
            "notes": list(facts.notes),
            "receipt": dict(facts.receipt),
        }
        record |= {"bounds": dict(facts.bounds)} if facts.bounds else {}
        record |= (
            {"parts": {name: json.loads(each.to_json()) for name, each in self.parts.items()}} if self.parts else {}
        )
        return _write_text_to(json_text(record), path)

    def to_html(
        self,
        path: str | Path | None = None,
        *,
        columns: str | None = None,
        title: str | None = None,
        unsure_from: float = 0.3,
    ) -> str:
        """Return tables of HTML to publish, with the layout and the marks of the workbook, and write them to `path`."""
        parts = [html_page(part, columns, name, unsure_from) for name, part in self.parts.items()]
        parts = parts or [html_page(self, columns, title, unsure_from)]
        return _write_text_to("\n".join(parts), path)

    def to_excel(
        self,
        path: str | Path,
        *,
        columns: str | None = None,
        title: str | None = None,
        unsure_from: float = 0.3,
    ) -> None:
        """Write the answer as a workbook to publish: a sheet for each number, and a sheet of notes.

        The values of the key `columns` go across, with their intervals on a sheet beside it. A number is marked [low]
        if half of its interval is more than `unsure_from` of it, and [x] if it is not shown. Needs the `excel` extra.
        """
        from tacit.answer.spreadsheet import write_workbook

        self._refuse_parts("answer['by_ward'].to_excel('wards.xlsx')")
        write_workbook(self, path_of(path), columns=columns, title=title, unsure_from=unsure_from)

    def note(self, language: str = "en", *, title: str | None = None) -> "Details":
        """Return a note for the public, in English or German ("de"): the promise, the noise, how to read it."""
        from tacit.answer.note import note_text

        return Details(
            "\n\n".join(note_text(part, language, name) for name, part in self.parts.items())
            if self.parts
            else note_text(self, language, title)
        )

    def plot(self, path: str | Path | None = None) -> Any:
        """Return a picture of the answer, every number with its interval; with a path, write it there.

        The path ends in .png, .svg or .html. In a notebook the picture shows itself. Needs the `plots` extra.
        """
        from tacit.answer.panel import picture, write_picture

        self._refuse_parts("answer['by_ward'].plot()")
        return picture(self) if path is None else write_picture(self, path_of(path))

    def _refuse_parts(self, instead: str) -> None:
        if self.parts:
            raise InvalidParameter(f"this is the answer to several questions\nhint: take one of them: {instead}")

    if not TYPE_CHECKING:  # a checker should go on finding names that do not exist

        def __getattr__(self, name: str) -> Never:
            raise unknown_name(self, name, WORDS)


class Details(str):
    """A text of several lines that shows as it is printed, in a prompt and in a notebook too."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


# Names that other libraries have, and the words for them here.
WORDS = {
    **dict.fromkeys(("df", "to_frame", "to_df"), "write to_pandas(), to_polars() or to_arrow()"),
    **dict.fromkeys(("rows", "values", "collect", "fetchall", "data"), "write to_dicts(), or to_pandas()"),
    "epsilon": "write facts.loss for what the answer cost",
}


def make_answer(
    plan: Plan,
    noisy: NoisyTable,
    after: PostProcessing,
    facts: AnswerInfo,
    *,
    consistent: bool = False,
) -> Answer:
    """Return the answer made from noisy integers, after HAVING, ORDER BY and LIMIT: post-processing only."""

    @cache
    def columns_at(confidence: Fraction) -> list[NoisyColumn]:
        found = noisy_columns(plan, noisy, confidence)
        return made_consistent(plan, found) if consistent else found

    released = released_view(plan, noisy, columns_at(facts.confidence), facts.confidence)
    if after.shown:
        outputs = [output.name for output in plan.outputs]
        view = computed_view(outputs, after, released, columns_at, facts.confidence, parts_of_outputs(plan))
    else:
        kept = released.rows if after == PostProcessing() else apply_postprocessing(released.rows, after)
        view = replace(released, rows=kept)
    bounds = bounds_record(plan, noisy, facts.confidence)
    empty = "" if view.rows else why_empty(plan, noisy)
    notes = learned_lines(plan) if empty else (*bounds_lines(plan, bounds), *question_notes(plan, after), *view.notes)
    stated = replace(
        facts,
        notes=(*notes, *((CONSISTENT,) if consistent else ()), *facts.notes),
        reading=reading_of([(plan, bounds)], view, facts.confidence, picked=is_picked(plan, after)),
        advice=joined([empty, *([] if empty else advice_of([plan], view)), facts.advice]),
        bounds=bounds,
    )
    return replace(answer_of(view, plan.columns, stated), laws=(plan, noisy, columns_at))


@dataclass(frozen=True)
class View:
    """The rows of an answer, its columns, and the lower ends that hold for any rows."""

    rows: Sequence[Row]
    types: Mapping[str, str]
    kinds: Mapping[str, str]
    lower: frozenset[str]
    notes: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()  # the columns that people asked for, without the ends of intervals
    rolled: Mapping[str, Sequence[bool]] = field(default_factory=dict)  # of each key, the rows in which it is a total
    others: tuple[str, ...] = ()  # the keys whose NULL is of all groups that are not shown
    lower_levels: tuple[str, ...] = ()  # which intervals hold with a smaller probability, in words

    def column(self, name: str) -> Sequence[Any]:
        """Return one column whole."""
        return _column_of_rows(self.rows, name)


def answer_of(view: View, columns: tuple[str, ...], facts: AnswerInfo) -> Answer:
    """Return the answer with the rows of a view, with the requested columns and the ends of their intervals.

    Other columns of the view are left out.
    """
    kinds = tuple(view.kinds)
    lower = {name: _column_of_rows(view.rows, name + AT_LEAST) for name in sorted(view.lower)}
    shown = Answer((), columns, view.types, kinds, facts).names
    rows = AnswerRows({name: _column_of_rows(view.rows, name) for name in shown})
    return Answer(
        rows, columns, view.types, kinds, facts, view.kinds, lower_ends=lower, rolled=view.rolled, others=view.others
    )


def _column_of_rows(rows: Sequence[Row], name: str) -> Sequence[Any]:
    return rows.column(name) if isinstance(rows, AnswerRows) else [row[name] for row in rows]


def half_width(answer: Answer, name: str) -> float | None:
    """Return the middle half-width of an aggregate's intervals; None if it is not shown or has an unknown one."""
    if name not in answer.aggregates:
        return None
    low, high = (_column_of_rows(answer.rows, name + end) for end in ("_low", "_high"))
    widths = [most - least for least, most in zip(low, high, strict=True) if least is not None and most is not None]
    return float(np.median(np.array(widths, dtype=np.float64))) / 2 if widths else None


def released_view(plan: Plan, noisy: NoisyTable, columns: Sequence[NoisyColumn], confidence: Fraction) -> View:
    """Return all keys and outputs of a plan, each output with its interval."""
    lower = lower_ends(plan, noisy, confidence)
    types: dict[str, str] = {key.name: key.type for key in plan.keys}
    named: dict[str, Sequence[Any]] = {name: [key[at] for key in noisy.keys] for at, name in enumerate(types)}
    for output, column in zip(plan.outputs, columns, strict=True):
        kind = column_type(output, plan)
        for end, values in (("", column.values), ("_low", column.low), ("_high", column.high)):
            types[column.name + end] = kind
            named[column.name + end] = values
    named |= {name + AT_LEAST: values for name, values in lower.items()}
    kinds: dict[str, str] = {output.name: output.kind for output in plan.outputs if not isinstance(output, Ranking)}
    others = tuple(key.name for key in plan.keys) if plan.has_others else ()
    return View(AnswerRows(named), types, kinds, frozenset(lower), shown=plan.columns, others=others)


def computed_view(
    outputs: Sequence[str],
    after: PostProcessing,
    released: View,
    columns_at: ColumnsAt,
    confidence: Fraction,
    parts: Parts = frozenset(),
) -> View:
    """Return the shown part of an answer, computed from released numbers; `parts` are outputs and wholes of them."""
    rows = [row | {PLACE: at} for at, row in enumerate(map(dict, released.rows))]
    kept = apply_postprocessing(rows, after)
    columns = shown_columns(after, rows, kept, outputs, columns_at, confidence, parts)
    named: dict[str, Sequence[Any]] = {}
    types: dict[str, str] = {}
    kinds: dict[str, str] = {}
    lower: set[str] = set()
    for column in columns:
        named[column.name] = column.values
        types[column.name] = released.types[column.output] if column.output else column.type
        if column.low is None or column.high is None:
            continue
        named |= {f"{column.name}_low": column.low, f"{column.name}_high": column.high}
        types |= dict.fromkeys((f"{column.name}_low", f"{column.name}_high"), types[column.name])
        kinds[column.name] = released.kinds[column.output] if column.output else COMPUTED
        if column.output in released.lower:
            named[column.name + AT_LEAST] = [row[f"{column.output}{AT_LEAST}"] for row in kept]
            lower.add(column.name)
    drawn = {
        shown.name: sum(released.kinds[name] == "quantile" for name in columns_of(shown.expression) if name in outputs)
        for shown in after.shown
    }
    notes, lower_levels = computed_notes(columns, drawn, confidence)
    shown = tuple(each.name for each in columns)
    keys = {each.name: each.expression.name for each in after.shown if isinstance(each.expression, Column)}
    rolled = rolled_up(kept, keys)
    others = tuple(name for name, key in keys.items() if key in released.others)
    return View(AnswerRows(named), types, kinds, frozenset(lower), notes, shown, rolled, others, lower_levels)


def rolled_up(rows: Sequence[Row], keys: Mapping[str, str]) -> dict[str, list[bool]]:
    """Return in which rows each of these columns, by the key that it shows, is rolled up to a total."""
    found = {name: grouping_name(key) for name, key in keys.items()}
    return {name: [row[mark] == 1 for row in rows] for name, mark in found.items() if rows and mark in rows[0]}


def loss_record(loss: Loss) -> dict[str, Any]:
    """Return a loss as numbers and in words."""
    delta = loss.delta if isinstance(loss, ApproximateLoss) else 0
    epsilon = loss.epsilon if isinstance(loss, PureLoss | ApproximateLoss) else None
    known = None if epsilon is None else float(epsilon)
    return {"epsilon": known, "delta": float(delta), "text": str(loss), "meaning": meaning_line(loss)}


def plain(value: Any) -> Any:
    """Return a cell as JSON and CSV write it."""
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    return value


def _array(values: Sequence[Any], kind: str) -> pa.Array:
    try:
        return pa.array([float(v) if isinstance(v, Fraction) else v for v in values], ARROW_TYPES[kind])
    except (pa.ArrowInvalid, OverflowError):  # a noisy sum beyond 64 bits
        return pa.array([None if v is None else float(v) for v in values], pa.float64())


def _write_text_to(text: str, path: str | Path | None) -> str:
    if path is not None:
        write_text(path, text)
    return text
