"""From a table's declaration to features: the columns that a model reads, and the public cells of each.

No row is read. A column with keys has a cell for each key. A ranged number has a cell for each whole value if there are
few; otherwise cells that grow with the value if the range starts at 0, as money does; otherwise cells of equal width.
The last cell of each is for missing values, and for undeclared values. Which cells become which bins is decided later,
from noisy counts (`priors.py`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np

from tacit.asking import Table
from tacit.errors import InvalidParameter, QueryRefused, did_you_mean
from tacit.numbers import Floats, Integers
from tacit.plan import STEPS_MOST, ClassTarget, CodedColumn, Measured, measured_column
from tacit.query import Aggregate, Column, Scalar, key_value, kind_of_column
from tacit.tables import ColumnFacts, Declaration

# The approximate limit on the cells of a ranged number.
CELLS = 256
# No cell is wider than this part of its range.
WIDEST = 32
# A column with more cells is counted in coarse cells too, each of this many fine ones.
FINE_FROM, FINE_IN_COARSE = 128, 32
NUMBERS = ("int", "float", "decimal")
CLASSES_MOST = 100
CELLS_OF_TARGET = 64


@dataclass(frozen=True)
class Feature:
    """A column as a model reads it: its public cells, the last for missing values, and whether they have an order."""

    name: str
    column: CodedColumn
    ordered: bool
    type: str

    @property
    def cells(self) -> int:
        return self.column.cells

    @cached_property
    def starts(self) -> Floats:
        """The starts of the cells of a ranged number, from the second on, as values of the column."""
        grid = self.column.measured
        if grid is None:
            return np.zeros(0)
        inner = [grid.step * (grid.low + edge) for edge in self.column.edges[1:-1]]
        back = Fraction(grid.step.numerator // 2) if is_whole(grid) else grid.step / 2
        return np.array([float(start - back) for start in inner])

    @cached_property
    def _places(self) -> dict[Any, int]:
        return {plain(value): place for place, value in enumerate(self.column.listed)}

    def cells_of(self, values: Any) -> Integers:
        """Return the cells of unprotected values; missing or unlisted values have the last cell."""
        if self.column.measured is not None:
            numbers = as_numbers(values, self.name)
            found = np.searchsorted(self.starts, numbers, side="right").astype(np.int64)
            found[np.isnan(numbers)] = self.cells - 1
            return found
        last = self.cells - 1
        places = [self._places.get(plain(value), last) for value in as_list(values)]
        return np.array(places, dtype=np.int64)

    def words(self, cells: Sequence[int]) -> str:
        last = self.cells - 1
        # of a list, the last cell has unlisted values too
        missing = ["missing" if self.column.measured is not None else "other or missing"] if last in cells else []
        inside = [cell for cell in cells if cell != last]
        if self.column.measured is None or not inside:
            shown = [str(plain(self.column.listed[cell])) for cell in inside]
            if len(shown) > 4:
                shown = [*shown[:3], f"{len(shown) - 3} more"]
            return ", ".join(shown + missing)
        return ", ".join([self._range_words(min(inside), max(inside)), *missing])

    def span(self, first: int, last: int) -> tuple[float, float]:
        """Return the least and the greatest value that a run of cells is declared to hold."""
        grid = self.column.measured
        if grid is None:
            return float(first), float(last)
        least, most = self.column.edges[first] + grid.low, self.column.edges[last + 1] - 1 + grid.low
        return float(grid.step * least), float(grid.step * most)

    def _range_words(self, first: int, last: int) -> str:
        grid = self.column.measured
        if grid is None or is_whole(grid):
            low, high = self.span(first, last)
            return f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"
        least, after = self.column.edges[first], self.column.edges[last + 1]
        if after == least + 1:
            return _fewest_digits(grid, least)
        start = "above 0" if least == 1 and grid.low == 0 else _fewest_digits(grid, least)
        return f"{start} to {_fewest_digits(grid, min(after, grid.height))}"


def _fewest_digits(grid: Measured, step: int) -> str:
    """Return the number of a step with the fewest digits that distinguish it from the next one."""
    value = float(grid.step * (grid.low + step))
    texts = (f"{value:.{digits}g}" for digits in range(1, 17))
    found = next((text for text in texts if abs(float(text) - value) <= float(grid.step) / 2), repr(value))
    return f"{Decimal(found):f}" if 1e-6 <= abs(value) < 1e15 else found


def is_whole(grid: Measured) -> bool:
    """Whether the rows of a grid are whole numbers throughout."""
    return grid.type == "int" and grid.step.denominator == 1


def features_of(table: Table, target: str, names: Iterable[str] | None) -> tuple[Feature, ...]:
    """Return the features of a table: those that are named, or all columns but the unit and the target."""
    declaration = table.frame.declaration
    if names is None:
        left_out = {target, declaration.unit}
        wanted = [name for name in declaration.columns if name not in left_out]
    else:
        wanted = _named_features(names, declaration, target)
    if not wanted:
        raise InvalidParameter("a model needs a feature\nhint: features=['age', 'sex']")
    problems, found = [], []
    for name in wanted:
        try:
            found.append(feature_of(name, declaration))
        except QueryRefused as problem:
            problems.append(str(problem).split("\nhint: ")[0])
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise QueryRefused(
            f"{problems[0]}{more}\nhint: declare what is public of it, e.g. columns={{'age': {{'between': (0, 120)}},"
            " 'ward': {'keys': ['A', 'B']}}, or name the columns to learn from: features=[...]; of a table, ranges of"
            " numbers and keys of texts are learned first, unless learn=False"
        )
    return tuple(found)


def _named_features(names: Iterable[str], declaration: Declaration, target: str) -> list[str]:
    if isinstance(names, str):
        raise InvalidParameter("features must be a list of columns\nhint: features=['age', 'sex']")
    wanted = list(names)
    for name in wanted:
        known_column(name, declaration)
        if name == target or name == declaration.unit:
            what = "what is predicted" if name == target else "the owners of rows"
            raise InvalidParameter(
                f"'{name}' cannot be a feature: it identifies {what}\nhint: leave it out of features"
            )
    if len(set(wanted)) != len(wanted):
        raise InvalidParameter("features names a column twice\nhint: name each column once")
    return wanted


def known_column(name: str, declaration: Declaration) -> ColumnFacts:
    """Return the public facts of a column; refuse a name that the table does not have."""
    if name not in declaration.columns:
        raise QueryRefused(f"there is no column '{name}'{did_you_mean(str(name), declaration.columns)}")
    return declaration.columns[name]


def feature_of(name: str, declaration: Declaration) -> Feature:
    """Return a column's feature, or refuse with the public fact that is missing."""
    facts = known_column(name, declaration)
    kind = kind_of_column(name, facts)
    if facts.keys is not None:
        return _listed_feature(name, kind.type, [key_value(key, kind, column=name) for key in facts.keys])
    if facts.type == "bool":
        return Feature(name, CodedColumn(name, Column(name), listed=(False, True)), ordered=False, type="bool")
    if facts.type in NUMBERS:
        if facts.between is None:
            raise QueryRefused(f"'{name}' needs a public range for its cells\nhint: declare one")
        grid = measured_column(Aggregate("mean", Column(name)), declaration, steps_most=STEPS_MOST)
        column = CodedColumn(name, Column(name), measured=grid, edges=edges_of(grid))
        return Feature(name, column, ordered=True, type=kind.type)
    raise QueryRefused(
        f"'{name}' needs a public list of keys, since a model must not find values by itself\nhint: keys="
    )


def _listed_feature(name: str, kind: str, keys: Sequence[Scalar]) -> Feature:
    values = [key for key in dict.fromkeys(keys) if key is not None]
    ordered = kind in NUMBERS
    if ordered:
        values.sort(key=lambda value: float(value) if isinstance(value, int | float | Fraction) else 0.0)
    if not values:
        raise QueryRefused(f"the keys of '{name}' hold no value\nhint: declare its keys")
    return Feature(name, CodedColumn(name, Column(name), listed=tuple(values)), ordered=ordered, type=kind)


def edges_of(grid: Measured) -> tuple[int, ...]:
    """Return the edges of a ranged number's cells, in steps above its low end, only from public facts."""
    top = grid.height + 1
    if top <= CELLS:
        return tuple(range(top + 1))
    if not is_whole(grid):
        return _round_edges(grid)
    if grid.low != 0:
        return tuple(sorted({round(Fraction(top * place, CELLS)) for place in range(CELLS + 1)}))
    grown = {round(top ** (place / CELLS)) for place in range(CELLS + 1)}
    widest = {round(Fraction(top * place, WIDEST)) for place in range(1, WIDEST)}
    edges = sorted({0, *grown, top})
    wide = [cut for cut in widest if _gap(edges, cut) * WIDEST > top]
    return tuple(sorted({*edges, *wide}))


def _round_edges(grid: Measured) -> tuple[int, ...]:
    """Return the edges of numbers with a fraction, at round ones: 21 and 21.5 can be edges, and 20.7734 cannot.

    So whole numbers, which a column that misses values often holds as fractions, start a cell.
    """
    top = grid.height + 1
    even = {_step_of(each, grid) for each in _even_values(grid, WIDEST if grid.low == 0 else CELLS)}
    if grid.low != 0:
        return tuple(sorted({0, *even, top}))
    grown = (_step_of(_round_number(grid.step * round(top ** (place / CELLS))), grid) for place in range(1, CELLS))
    edges = sorted({0, 1, *(edge for edge in grown if edge < top), top})
    return tuple(sorted({*edges, *(cut for cut in even if _gap(edges, cut) * WIDEST > top)}))


def _even_values(grid: Measured, most: int) -> list[Fraction]:
    """Return all multiples of a round number inside a range: at most the limit, and at least a third of it."""
    least = grid.step * (grid.height + 1) / most
    tens = Fraction(10) ** (len(str(int(least))) if least >= 1 else 1 - len(str(int(1 / least))))
    width = next(tens * part for part in (Fraction(1, 10), Fraction(1, 5), Fraction(1, 2), 1) if tens * part >= least)
    first, last = grid.step * grid.low // width + 1, grid.step * grid.high // width
    return [width * place for place in range(int(first), int(last) + 1)]


def _round_number(value: Fraction) -> Fraction:
    """Return a number above 0 rounded to a twentieth of its first digit's place, or to a tenth from 5 on.

    >>> [float(_round_number(Fraction(each))) for each in (0.0123, 3.06, 7.77, 4321)]
    [0.0125, 3.05, 7.8, 4300.0]
    """
    tens = Fraction(10) ** (len(str(int(value))) - 1 if value >= 1 else -len(str(int(1 / value))))
    part = tens / (20 if value < 5 * tens else 10)
    return round(value / part) * part


def _step_of(value: Fraction, grid: Measured) -> int:
    """Return the step above the low end that a value is rounded to; of two that are as near, the lower one."""
    return ceil(value / grid.step - Fraction(1, 2)) - grid.low


def coarse_of(feature: Feature) -> tuple[CodedColumn, tuple[int, ...]] | None:
    """Return a column of many cells in coarse ones, and the coarse cell of each fine one; the first cell is not
    joined."""
    edges = feature.column.edges
    if len(edges) <= FINE_FROM:
        return None
    kept = [0, *range(1, len(edges) - 1, FINE_IN_COARSE), len(edges) - 1]
    wide = CodedColumn(
        feature.name,
        feature.column.expression,
        measured=feature.column.measured,
        edges=tuple(edges[place] for place in kept),
    )
    places = np.searchsorted(np.array(kept), np.arange(len(edges) - 1), side="right") - 1
    return wide, tuple(int(place) for place in places)


def _gap(edges: list[int], cut: int) -> int:
    place = int(np.searchsorted(np.array(edges), cut, side="right"))
    return edges[min(place, len(edges) - 1)] - edges[place - 1]


def plain(value: Any) -> Any:
    """Return a value as lists are searched by: decimals and rationals as floats, numpy's scalars as Python's own."""
    if isinstance(value, Fraction | Decimal):
        return float(value) if value != int(value) else int(value)
    if hasattr(value, "item") and not isinstance(value, date | datetime):
        value = value.item()
    return None if isinstance(value, float) and value != value else value


def as_list(values: Any) -> list[Any]:
    """Return a column of a frame, a list or an array as a list."""
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(values, method):
            found: list[Any] = getattr(values, method)()
            return found
    return list(values)


def as_numbers(values: Any, name: str) -> Floats:
    """Return a column of numbers as floats, NaN for a missing one."""
    try:
        if hasattr(values, "dtype") and getattr(values.dtype, "kind", "") in "biuf":
            return np.asarray(values, dtype=np.float64)
        return np.array([_float_of(value) for value in as_list(values)], dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter(
            f"'{name}' must be a column of numbers\nhint: pass numbers, with None or NaN for missing ones"
        ) from None


def _float_of(value: Any) -> float:
    if isinstance(value, str | bytes):
        raise TypeError(value)
    try:
        return float("nan") if value is None else float(value)
    except TypeError:  # pandas' NA
        if type(value).__name__ in ("NAType", "NaTType"):
            return float("nan")
        raise


# --- the target of an additive model ---


def target_of(table: Table, target: str, loss: str) -> tuple[CodedColumn, tuple[Any, ...], Measured | None]:
    """Return the target's coded column, its classes in order, or the number that it is."""
    declaration = table.frame.declaration
    facts = known_column(target, declaration)
    if target == declaration.unit:
        raise InvalidParameter(f"'{target}' identifies the people and cannot be predicted")
    if loss == "classes":
        feature = feature_of(target, declaration)
        values = [plain(value) for value in feature.column.listed]
        if feature.column.measured is not None:
            if feature.column.measured.height + 2 != feature.cells or feature.cells - 1 > CLASSES_MOST:
                raise QueryRefused(
                    f"'{target}' is a number of many values, not a class\nhint: AdditiveRegressor predicts numbers;"
                    f" or declare its classes: columns={{'{target}': {{'keys': [...]}}}}"
                )
            grid = feature.column.measured
            values = [plain(grid.step * (grid.low + step)) for step in range(feature.cells - 1)]
        if not 2 <= len(values) <= CLASSES_MOST:
            raise QueryRefused(f"'{target}' must have between 2 and {CLASSES_MOST} classes\nhint: declare its keys")
        return feature.column, tuple(sorted(values)), None
    if facts.type not in NUMBERS:
        raise QueryRefused(f"'{target}' is not a number\nhint: AdditiveClassifier predicts classes")
    grid = measured_column(Aggregate("mean", Column(target)), declaration, steps_most=STEPS_MOST)
    if loss == "poisson" and grid.low < 0:
        raise QueryRefused(f"counts are not below 0, but the range of '{target}' starts there\nhint: between=(0, ...)")
    if loss == "poisson" and grid.low > 0:
        raise QueryRefused(f"the range of a count starts at 0, that of '{target}' does not\nhint: between=(0, ...)")
    top = grid.height + 1
    cells = min(top, CELLS_OF_TARGET)
    edges = tuple(sorted({round(Fraction(top * place, cells)) for place in range(cells + 1)}))
    return CodedColumn(target, Column(target), measured=grid, edges=edges), (), grid


def class_target(column: CodedColumn, classes: tuple[Any, ...], place: int) -> ClassTarget:
    """Return which class each cell of the target is; the column is at this place."""
    values = [plain(value) for value in column.listed]
    if column.measured is not None:
        values = [plain(column.measured.step * (column.measured.low + step)) for step in range(column.cells - 1)]
    return ClassTarget(place, (*(classes.index(value) for value in values), -1))
