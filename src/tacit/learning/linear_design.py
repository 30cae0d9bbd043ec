"""The public side of a linear model: its number columns, its listed columns, and the names of its terms.

A ranged number is one term. A listed column has a term for each value that enough people have, by noisy counts; the
values that too few have share one term. The cell that most have is the base that the others are compared with.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tacit.asking import Table
from tacit.errors import InvalidParameter, QueryRefused
from tacit.learning.features import NUMBERS, Feature, as_numbers, features_of, known_column, plain
from tacit.plan import STEPS_MOST, CodedPlan, Measured, Moments, measured_column
from tacit.privacy import Floats, Integers
from tacit.query import Aggregate, Col, Column
from tacit.tables import RowUnit


@dataclass(frozen=True)
class Scale:
    """A ranged number as a model reads it: -1 at the low end of its range, 1 at its high end."""

    name: str
    grid: Measured

    @property
    def middle(self) -> float:
        """The middle of the range."""
        return float(self.grid.step * (self.grid.low + self.grid.high) / 2)

    @property
    def half(self) -> float:
        """Half the range."""
        return float(self.grid.step * self.grid.height / 2)

    @property
    def ends(self) -> tuple[float, float]:
        """The range; values beyond it count as its ends."""
        return float(self.grid.step * self.grid.low), float(self.grid.step * self.grid.high)

    def scaled(self, values: Any) -> Floats:
        """Return unprotected values in half ranges, clamped; NaN for a missing one."""
        found: Floats = np.clip((as_numbers(values, self.name) - self.middle) / self.half, -1, 1)
        return found


@dataclass(frozen=True)
class LinearDesign:
    """The features of a linear model, and its target; PCA has none."""

    features: tuple[str, ...]
    numbers: tuple[Scale, ...]
    listed: tuple[Feature, ...]
    target: Scale | None

    def coded(self, table: Table) -> CodedPlan:
        """Return what is read of a table's rows."""
        unit = table.session.declaration.unit
        values = [*self.numbers, *([] if self.target is None else [self.target])]
        return CodedPlan(
            None if isinstance(unit, RowUnit) else unit,
            table.frame.where,
            tuple(feature.column for feature in self.listed),
            tuple(value.grid for value in values),
        )

    @cached_property
    def products(self) -> Moments:
        """The products of features with each other."""
        return self._moments(None)

    @cached_property
    def products_with_target(self) -> Moments:
        """The products of features with the target."""
        return self._moments(len(self.numbers))

    def _moments(self, target: int | None) -> Moments:
        known = len(self.numbers) + (self.target is not None)
        return Moments(
            tuple(range(len(self.listed))), tuple(range(len(self.numbers))), tuple(range(known)), target=target
        )


@dataclass(frozen=True)
class DesignCell:
    """A cell of a listed column after joining small ones: its name, and its values."""

    feature: str
    label: str
    values: tuple[Any, ...]
    missing: bool  # whether it holds missing or unlisted values


def design_of(table: Table, target: str | None, features: Iterable[str] | None) -> LinearDesign:
    """Return the design of a model of a table, from public facts; refuse columns without one."""
    if not isinstance(table, Table):
        raise InvalidParameter(
            f"a model is fitted to a protected table, not to a {type(table).__name__}"
            "\nhint: tacit.table(frame, unit=..., budget=..., columns=...)"
        )
    if table.frame.keys or table.frame.derived:
        raise QueryRefused(
            "a model is fitted to columns of a table, without groups and computed columns"
            "\nhint: fit(table, target=..., where='age >= 18')"
        )
    declaration = table.session.declaration
    found = features_of(table, "" if target is None else target, features)
    scale = None
    if target is not None:
        if known_column(target, declaration).type not in NUMBERS:
            raise QueryRefused(
                f"'{target}' is not a column of numbers, so a linear model cannot predict it\nhint: "
                "AdditiveClassifier predicts classes"
            )
        scale = Scale(target, measured_column(Aggregate("mean", Column(target)), declaration, steps_most=STEPS_MOST))
    return LinearDesign(
        tuple(feature.name for feature in found),
        tuple(Scale(each.name, each.column.measured) for each in found if each.column.measured is not None),
        tuple(feature for feature in found if feature.column.measured is None),
        scale,
    )


def bins_of(noisy_counts: Integers, least: float) -> Integers:
    """Return the bin of each cell of a listed column: a separate one if enough people are in it, else one for the
    rest."""
    large = noisy_counts >= least
    bins = np.cumsum(large) - 1
    bins[~large] = int(large.sum())
    found: Integers = bins.astype(np.int64)
    return found


def cells_of(feature: Feature, bins: Sequence[int]) -> tuple[DesignCell, ...]:
    """Return what the bins of a listed column are called."""
    found = []
    missing = feature.cells - 1
    for place in range(max(bins) + 1):
        inside = [cell for cell in range(feature.cells) if bins[cell] == place]
        values = tuple(plain(feature.column.listed[cell]) for cell in inside if cell != missing)
        names = [str(value) for value in values] + (["missing"] if missing in inside else [])
        label = names[0] if len(names) == 1 else f"other ({len(names)})"
        found.append(DesignCell(feature.name, label, values, missing in inside))
    return tuple(found)


def filtered(table: Table, where: str | Col | None) -> Table:
    """Return the rows of a table that a model is fitted to."""
    return table if where is None or not isinstance(table, Table) else table.where(where)


def numbers_named(table: Table) -> list[str]:
    """Return the columns with a public range and no list, but the unit."""
    if not isinstance(table, Table):
        return []
    declaration = table.session.declaration
    return [
        name
        for name, facts in declaration.columns.items()
        if facts.between is not None and facts.keys is None and facts.type in NUMBERS and name != declaration.unit
    ]


def columns_in(rows: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return the columns of unprotected rows, a frame or a dict of columns."""
    found = {}
    for name in names:
        try:
            found[name] = rows[name]
        except (KeyError, IndexError, TypeError, ValueError):
            raise InvalidParameter(
                f"the rows lack the column '{name}'\nhint: pass a frame, or a dict of columns, with the model's "
                "features"
            ) from None
    return found
