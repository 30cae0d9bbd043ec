"""Columns of made-up rows: from a declaration to public cells, and from cells back to values of the column's own type.

Listed keys have a cell each. Ranged numbers, and dates and times with a range, have fine cells. Noisy counts decide
which cells share a bin: runs of an ordered column, and the rare keys of a list. Within a bin, values are drawn by the
noisy counts again. The last cell of a column is for NULL, and for values that are not listed: it comes out as NULL, so
a value that is not public never appears.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
import pyarrow as pa

from tacit.asking import Table
from tacit.errors import InvalidParameter, QueryRefused
from tacit.learning.features import CELLS, Feature, coarse_of, feature_of, known_column
from tacit.learning.priors import Coarse, bins_of
from tacit.learning.synthetic.field import uniforms
from tacit.noise import Keystream
from tacit.numbers import Floats, Integers
from tacit.plan import STEPS_MOST, SUMS_MOST, CodedColumn, measured_column
from tacit.query import Aggregate, Call, Column, Value
from tacit.tables import ColumnFacts

LISTED_MOST = 300
# About how many bins an ordered column has beside atoms, and the most that it can have.
BINS_MOST, BINS_LEAST = 24, 8
# A pair has about this many people for each deviation of a cell's noise in a cell: with fewer people, bins are wider.
PEOPLE_OF_CELL = 2.0
BINS_PUBLIC = 3 * BINS_MOST + 2
# The least people of a bin, in deviations of their noise.
BIN_NOISE = 4.0
# A fine cell with fewer deviations is as likely as others in its bin at most.
CELL_NOISE = 1.5
# Keys of a list with fewer people share a bin; a column misses values if at least MISSING_NOISE deviations miss one.
RARE_NOISE, MISSING_NOISE = 2.0, 2.5
TIMES = ("date", "timestamp")
UNITS = {"date": "day", "timestamp": "second"}
COLUMNS_MOST = 60

Range = tuple[Any, Any]


@dataclass(frozen=True)
class MadeColumn:
    """A column of made-up rows: how rows are coded, and the type of its values; of dates and times also the start."""

    feature: Feature
    type: str
    scale: int = 0
    digits: int = 18
    start: date | None = None  # of dates and times: the value of the first cell

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.feature.name

    @property
    def is_binned(self) -> bool:
        """Whether its cells are joined to bins by noisy counts."""
        return self.feature.column.measured is not None

    @property
    def cells_most(self) -> int:
        """The most cells that a table has for it, from public facts."""
        return min(self.feature.cells, BINS_PUBLIC + 1) if self.is_binned else self.feature.cells

    def bins(self, noisy: Floats, sigma: float, coarse: Coarse | None, most: int = BINS_MOST) -> Integers:
        """Return the bin of each cell, by noisy counts of people, about `most` beside atoms.

        If few people miss a value, their cell shares the largest bin, and made-up rows never miss one.
        """
        if self.is_binned:
            found = bins_of(noisy, ordered=True, least=BIN_NOISE * sigma, most=most, noise=sigma, coarse=coarse)
            of_cells = found.of_cells.copy()
        else:
            of_cells = _listed_bins(noisy, RARE_NOISE * sigma)
        if misses_few(noisy, sigma):
            place = int(np.argmax(noisy[:-1]))
            of_cells[-1] = of_cells[place]
        return np.unique(of_cells, return_inverse=True)[1]

    def values(self, bins: Integers, of_cells: Integers, shares: Floats, bits: Keystream) -> "pa.Array":
        """Return values for the bins of made-up rows, each plausible within its bin; the last bin is NULL.

        `shares` is how likely each fine cell is, as noisy counts have it.
        """
        last = self.feature.cells - 1
        cells = cells_within(bins, of_cells, shares, bits)
        grid = self.feature.column.measured
        missing = cells == last
        if grid is None:
            listed = pa.array([_plain(each, self.type, self.scale) for each in self.feature.column.listed], self.arrow)
            return listed.take(pa.array(np.where(missing, 0, cells), mask=missing))
        edges = np.array([*self.feature.column.edges, 0], dtype=np.int64)
        low, width = edges[cells], np.where(missing, 1, edges[np.minimum(cells + 1, last)] - edges[cells])
        steps = grid.low + low + np.floor(uniforms(len(cells), bits) * width).astype(np.int64)
        distinct, places = np.unique(steps, return_inverse=True)
        found = pa.array([self._value(grid.step, int(step)) for step in distinct], self.arrow)
        return found.take(pa.array(places, mask=missing))

    def _value(self, step: Fraction, steps: int) -> Any:
        if self.start is not None:
            return self.start + (timedelta(days=steps) if self.type == "date" else timedelta(seconds=steps))
        return _plain(step * steps, self.type, self.scale)

    def examples(self, of_cells: Integers) -> list[list[Any]]:
        """Return some values of each bin: all of a list, the ends and the middle of a run; None is NULL."""
        last, edges, grid = self.feature.cells - 1, self.feature.column.edges, self.feature.column.measured
        found = []
        for place in range(int(of_cells.max()) + 1):
            cells = np.flatnonzero(of_cells == place).tolist()
            inner = [cell for cell in cells if cell != last]
            if not inner:
                found.append([None])
            elif grid is None:
                found.append([_plain(self.feature.column.listed[cell], self.type, self.scale) for cell in inner])
            else:
                low, high = edges[inner[0]], edges[inner[-1] + 1] - 1
                found.append([self._value(grid.step, grid.low + at) for at in sorted({low, (low + high) // 2, high})])
        return found

    @property
    def arrow(self) -> "pa.DataType":
        """The column's own type."""
        if self.type == "decimal":
            return pa.decimal128(max(self.digits, self.scale + 1), self.scale)
        types = {"bool": pa.bool_(), "int": pa.int64(), "float": pa.float64(), "date": pa.date32()}
        return types.get(self.type, pa.timestamp("us") if self.type == "timestamp" else pa.string())

    def words(self, of_cells: Integers) -> list[str]:
        """Return what each bin holds, in words."""
        bins = [[int(cell) for cell in np.flatnonzero(of_cells == place)] for place in range(int(of_cells.max()) + 1)]
        last = self.feature.cells - 1
        bins = [[cell for cell in cells if cell != last] or cells for cells in bins]
        if self.start is None:
            return [self.feature.words(cells) for cells in bins]
        edges = self.feature.column.edges
        return [
            "missing"
            if cells[0] == last
            else f"{self._value(Fraction(1), edges[cells[0]])} to {self._value(Fraction(1), edges[cells[-1] + 1] - 1)}"
            for cells in bins
        ]


def bins_most(people: float, sigma: float) -> int:
    """Return about how many bins an ordered column has, if a cell of a pair has this noise."""
    return int(min(max(sqrt(max(people, 0.0) / (PEOPLE_OF_CELL * sigma)), BINS_LEAST), BINS_MOST))


def misses_few(noisy: Floats, sigma: float) -> bool:
    """Whether noise explains the people in the last cell, of NULL and unlisted values."""
    return bool(noisy[-1] < MISSING_NOISE * sigma)


def _listed_bins(noisy: Floats, least: float) -> Integers:
    """Return a bin for each cell with enough people, one for all others, and one for the last cell."""
    rare = np.flatnonzero(noisy[:-1] < least)
    of_cells = np.arange(len(noisy))
    if len(rare) > 1:
        of_cells[rare] = rare[0]
    return of_cells


def cells_within(bins: Integers, of_cells: Integers, shares: Floats, bits: Keystream) -> Integers:
    """Draw a fine cell for each row, by the shares of the cells in its bin."""
    order = np.argsort(of_cells, kind="stable")
    if len(order) == int(of_cells[order[-1]]) + 1:  # a cell for each bin
        only: Integers = order[bins]
        return only
    totals = np.bincount(of_cells, weights=shares)
    within = shares[order] / totals[of_cells[order]]
    heights = np.cumsum(within)
    begins = np.r_[0.0, heights][np.searchsorted(of_cells[order], np.arange(len(totals)))]
    ends = np.r_[begins[1:], heights[-1]]
    at = begins[bins] + uniforms(len(bins), bits) * (ends - begins)[bins]
    places = np.clip(np.searchsorted(heights, at, side="right"), 0, len(order) - 1)
    found: Integers = order[places]
    wrong = of_cells[found] != bins  # by a rounding at the end of a bin
    found[wrong] = order[np.searchsorted(of_cells[order], bins[wrong])]
    return found


def cell_shares(noisy: Floats, of_cells: Integers, widths: Floats, sigma: float) -> Floats:
    """Return how likely each fine cell is within its bin: even, up to differences that noise does not explain."""
    if int((of_cells == of_cells[-1]).sum()) > 1:  # few people miss a value, so no made-up row does
        noisy, widths = np.append(noisy[:-1], 0.0), np.append(widths[:-1], 0.0)
    shares = np.zeros(len(noisy))
    for place in range(int(of_cells.max()) + 1):
        cells = np.flatnonzero(of_cells == place)
        even = widths[cells] / widths[cells].sum()
        counts = noisy[cells]
        total = max(float(counts.sum()), 0.0)
        stray = float(((counts - total * even) ** 2).sum())
        kept = max(0.0, 1 - len(cells) * sigma**2 / stray) if stray > 0 else 0.0
        clear = np.where(counts > CELL_NOISE * sigma, counts, 0.0)
        mixed = kept * clear + (1 - kept) * total * even
        mixed[even == 0] = 0
        shares[cells] = mixed / mixed.sum() if mixed.sum() > 0 else even
    return shares


def _plain(value: Any, kind: str, scale: int) -> Any:
    """Return a public value as Python has it in the column's type."""
    if kind == "decimal" and isinstance(value, Fraction | int):
        return Decimal(round(Fraction(value) * 10**scale)).scaleb(-scale)
    if kind == "float" and isinstance(value, Fraction | int):
        return float(value)
    return int(value) if kind == "int" and isinstance(value, Fraction) else value


# --- from a declaration ---


def read_columns(
    columns: Iterable[str] | Mapping[str, Range | None] | None,
) -> tuple[list[str] | None, dict[str, Range]]:
    """Return the named columns, or None for all, and the ranges given for dates and times."""
    if columns is None:
        return None, {}
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise InvalidParameter("columns must be a list of names\nhint: columns=['age', 'ward']")
    names = list(columns)
    if not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
        raise InvalidParameter("columns must name each column once\nhint: columns=['age', 'ward']")
    if not isinstance(columns, Mapping):
        return names, {}
    return names, {name: given for name, given in columns.items() if given is not None}


def made_columns(
    table: Table, names: Sequence[str], ranges: Mapping[str, Range]
) -> tuple[tuple[MadeColumn, ...], tuple[tuple[int, Feature, tuple[int, ...]], ...]]:
    """Return the columns to make, and the coarse cells that wide ones are counted in too; refuse others in words."""
    declaration = table.frame.declaration
    if len(names) < 2:
        raise InvalidParameter("made-up rows need at least two columns\nhint: columns=['age', 'ward']")
    if len(names) > COLUMNS_MOST:
        raise QueryRefused(
            f"{len(names)} columns are more than the {COLUMNS_MOST} that rows are made of at once, and each takes a"
            " share of epsilon\nhint: columns=[...] with those that belong together"
        )
    found = tuple(_made_column(name, known_column(name, declaration), table, ranges.get(name)) for name in names)
    refuse_too_many_cells(found)
    coarse = []
    for place, column in enumerate(found):
        wide = coarse_of(column.feature) if column.is_binned else None
        if wide is not None:
            coarse.append((place, Feature(column.name, wide[0], ordered=True, type=column.feature.type), wide[1]))
    return found, tuple(coarse)


def refuse_too_many_cells(columns: Sequence[MadeColumn]) -> None:
    """Refuse columns with more pairs of cells than fit in memory; how many there are is public."""
    sizes = {column.name: column.cells_most for column in columns}
    pairs = (sum(sizes.values()) ** 2 - sum(size**2 for size in sizes.values())) // 2
    if pairs > SUMS_MOST:
        widest = sorted(sizes, key=lambda name: -sizes[name])[:3]
        raise QueryRefused(
            f"the pairs of these columns have {pairs:,} cells, and {SUMS_MOST:,} at most are counted; the most are in "
            f"{', '.join(f'{name} ({sizes[name]})' for name in widest)}"
            "\nhint: leave some out with columns=[...], or list fewer keys"
        )


def _made_column(name: str, facts: ColumnFacts, table: Table, between: Range | None) -> MadeColumn:
    declaration = table.frame.declaration
    if name == declaration.unit_column:
        raise QueryRefused(
            f"'{name}' identifies people, so no made-up row can have it\nhint: leave it out of columns; rows of "
            "one person get made-up ids with once=[...]"
        )
    if between is not None and facts.type not in TIMES:
        raise InvalidParameter(
            f"only dates and times have their range here, and '{name}' is a column of type {facts.type}"
            f"\nhint: declare it with the table: columns={{'{name}': {{'between': (0, 100)}}}}"
        )
    if facts.keys is None and facts.type in TIMES:
        return _column_of_times(name, facts, table, between)
    if facts.keys is None and facts.type == "text":
        raise QueryRefused(
            f"'{name}' is text without public keys: made-up rows cannot have ids or free text\nhint: "
            + (
                "declare its type, since the columns of a CSV file are text until then:"
                f" columns={{'{name}': {{'type': 'float'}}}}"
                if facts.between is not None
                else f"declare its keys, columns={{'{name}': {{'keys': [...]}}}}, or leave it out of columns"
            )
        )
    if facts.keys is not None and len(facts.keys) > LISTED_MOST:
        raise QueryRefused(
            f"'{name}' has {len(facts.keys):,} keys, and a column of made-up rows has {LISTED_MOST} at most"
            "\nhint: list the most common keys; others come out as missing"
        )
    return MadeColumn(feature_of(name, declaration), facts.type, facts.scale, facts.digits)


def _column_of_times(name: str, facts: ColumnFacts, table: Table, between: Range | None) -> MadeColumn:
    """Return a column of dates or times: days or seconds since the start of its range, which is given here."""
    if between is None:
        raise QueryRefused(
            f"'{name}' is a column of {facts.type}s without a public range"
            f"\nhint: columns={{'{name}': ('2026-01-01', '2026-12-31'), 'ward': None}}, or leave it out"
        )
    first, last = (_end_of_times(each, facts.type, name) for each in _two(between, name))
    length = last - first
    steps = length.days if facts.type == "date" else int(length.total_seconds())
    if not 1 <= steps < STEPS_MOST:
        raise InvalidParameter(f"the range of '{name}' must begin before it ends, within 136 years")
    since = Call("date_diff", (Value(UNITS[facts.type], "text"), Value(first, facts.type), Column(name)))  # type: ignore[arg-type]
    asked = Aggregate("mean", since, between=(Fraction(0), Fraction(steps)))
    grid = measured_column(asked, table.frame.declaration, steps_most=STEPS_MOST)
    top = grid.height + 1
    cells = min(CELLS, top)
    edges = tuple(sorted({round(Fraction(top * place, cells)) for place in range(cells + 1)}))
    column = CodedColumn(name, since, measured=grid, edges=edges)
    return MadeColumn(Feature(name, column, ordered=True, type="int"), facts.type, start=first)


def _two(between: Range, name: str) -> Range:
    if not isinstance(between, tuple | list) or len(between) != 2:
        raise InvalidParameter(f"the range of '{name}' is a pair\nhint: ('2026-01-01', '2026-12-31')")
    return between[0], between[1]


def _end_of_times(given: Any, kind: str, name: str) -> Any:
    """Return an end of a range of dates or times, from a date, a time or its text."""
    try:
        found = datetime.fromisoformat(given) if isinstance(given, str) else given
        if kind == "date":
            return found.date() if isinstance(found, datetime) else date.fromisoformat(str(found))
        at = found if isinstance(found, datetime) else datetime.fromisoformat(str(found))
        return at.replace(tzinfo=None, microsecond=0)
    except (ValueError, TypeError):
        raise InvalidParameter(
            f"the range of '{name}' must be two dates or times\nhint: ('2026-01-01', '2026-12-31')"
        ) from None
