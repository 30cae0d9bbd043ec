"""The public side of a linear model, its rounds, and its result from the noisy integers that come back.

A ranged number is one term. A listed column has a term for each value that enough people have, by noisy counts; the
values that too few have share one term. The cell that most have is the base that the others are compared with.
`ask` is the charged algorithm; its result, plain integers, is stored in the ledger. `LinearState` is
computed only from these integers and public facts, so a stored model is the same model.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from tacit.asking import Table, noise_for
from tacit.errors import QueryRefused, printable
from tacit.learning.features import NUMBERS, Feature, as_numbers, features_of, known_column, plain
from tacit.learning.linear_fit import (
    Inference,
    NoisyGram,
    NoisyTarget,
    clear_terms,
    gram_of,
    inference,
    shrunk,
    target_of,
)
from tacit.learning.rounds import Rounds
from tacit.learning.undeclared import FitPlan, KnownColumns
from tacit.plan import (
    NUMBER_ONE,
    STEPS_MOST,
    UNIT,
    CodedPlan,
    Measured,
    Moments,
    SquaredErrors,
    count_moves_squared,
    measured_column,
)
from tacit.privacy import ApproximateLoss, Floats, GaussianNoise, Integers, Number
from tacit.query import Aggregate, Column

# Which part of the loss each round gets; a model without listed columns counts no cells.
FOR_COUNTS = Fraction(5, 100)
FOR_PRODUCTS = Fraction(33, 100)
FOR_TARGET = Fraction(55, 100)
FOR_ERRORS = Fraction(7, 100)
# The least people of a separate cell, in standard deviations of noise.
LEAST = 3.0
# Squared errors count up to this, in half ranges of the target squared.
CAP = UNIT // 2
SCORE_MOST = 1 << 20

Integer = dict[str, Any]


@dataclass(frozen=True)
class Scale:
    """A ranged number as a model reads it: -1 at the low end of its range, 1 at its high end."""

    name: str
    grid: Measured

    @property
    def middle(self) -> float:
        return float(self.grid.step * (self.grid.low + self.grid.high) / 2)

    @property
    def half(self) -> float:
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

    @property
    def values(self) -> tuple[Scale, ...]:
        """All numbers that are read, the target last."""
        return (*self.numbers, *(() if self.target is None else (self.target,)))

    @property
    def middle(self) -> float:
        """The middle of the target's range."""
        return 0.0 if self.target is None else self.target.middle

    @property
    def half(self) -> float:
        """Half of the target's range."""
        return 1.0 if self.target is None else self.target.half

    @cached_property
    def products(self) -> Moments:
        return self._moments(None)

    @cached_property
    def products_with_target(self) -> Moments:
        return self._moments(len(self.numbers))

    def _moments(self, target: int | None) -> Moments:
        columns, numbers, values = (tuple(range(len(each))) for each in (self.listed, self.numbers, self.values))
        return Moments(columns, numbers, values, target=target)

    @property
    def rounds(self) -> list[tuple[int, Fraction]]:
        """How far one unit moves each round, squared, and the share of the loss that it gets."""
        columns, numbers = len(self.listed), len(self.numbers)
        wanted = [(count_moves_squared(columns), FOR_COUNTS)] if columns else []
        wanted.append((self.products.moves_squared, FOR_PRODUCTS))
        if self.target is not None:
            wanted.append((self.products_with_target.moves_squared, FOR_TARGET))
            wanted.append(((1 + columns + numbers) * CAP**2, FOR_ERRORS))
        total = sum(share for _, share in wanted)
        return [(squared, share / total) for squared, share in wanted]


@dataclass(frozen=True)
class DesignCell:
    """A cell of a listed column after joining small ones: its name, and its values."""

    feature: str
    label: str
    values: tuple[Any, ...]
    missing: bool  # whether it is for missing or unlisted values


def design_of(table: Table, target: str, features: Iterable[str] | None) -> LinearDesign:
    """Return the design of a model of a table, from public facts; refuse columns without one. PCA has no target: ''."""
    if table.frame.derived:
        raise QueryRefused("a linear model is fitted to stored columns\nhint: fit before derive(...)")
    declaration = table.session.declaration
    found = features_of(table, target, features)
    if target and known_column(target, declaration).type not in NUMBERS:
        raise QueryRefused(
            f"'{target}' is not a column of numbers, so a linear model cannot predict it\nhint: "
            "AdditiveClassifier predicts classes"
        )
    of_target = Aggregate("mean", Column(target))
    return LinearDesign(
        tuple(feature.name for feature in found),
        tuple(Scale(each.name, each.column.measured) for each in found if each.column.measured is not None),
        tuple(feature for feature in found if feature.column.measured is None),
        Scale(target, measured_column(of_target, declaration, steps_most=STEPS_MOST)) if target else None,
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


def least_of(events: tuple[GaussianNoise, ...]) -> float:
    """Return the least number of units in a separate cell, by noisy counts."""
    return LEAST * max(float(event.sigma) for event in events[:2]) / UNIT


def plan_of(table: Table, design: LinearDesign, known: KnownColumns, delta: Number | None) -> FitPlan:
    events, asked = noise_for(table.session, known.epsilon, delta, design.rounds)
    coded = CodedPlan(
        table.session.declaration.unit_column,
        table.frame.where,
        tuple(feature.column for feature in design.listed),
        tuple(value.grid for value in design.values),
    )
    target, names = design.target, ", ".join(design.features)
    return FitPlan(
        table, features_of(table, "" if target is None else target.name, design.features), coded, events, asked, known,
        recipe=design,
        words=f"principal components of {names}" if target is None else f"a linear model of {target.name} from {names}",
        text=_plan_text(design, events, known, asked),
        learn=partial(ask, design=design, events=events),
        model=partial(LinearState, design, events),
    )  # fmt: skip


def _plan_text(
    design: LinearDesign, events: tuple[GaussianNoise, ...], known: KnownColumns, asked: ApproximateLoss
) -> str:
    products, target = events[1 if design.listed else 0], design.target
    lines = [
        "principal components" if target is None else f"linear model of {target.name}",
        f"numbers: {', '.join(each.name for each in design.numbers) or 'none'}",
        f"lists: {', '.join(f'{each.name} ({each.cells - 1})' for each in design.listed) or 'none'}",
        f"noise of a sum of products: a standard deviation of {float(products.sigma) / UNIT:,.1f} people",
    ]
    if target is not None:
        of_target = float(events[-2].sigma) / UNIT * target.half
        lines.append(f"noise of a sum of {target.name}: a standard deviation of {of_target:,.0f}")
    if design.listed:
        lines.append(f"a value has a separate term from about {least_of(events):,.0f} people on")
    lines.append(f"cost: epsilon {float(asked.epsilon + known.cost):.6g} at delta {float(asked.delta):.2g}")
    lines += [known.words] if known.words else []
    return printable("\n".join(lines), keeping="\n")


def ask(rounds: Rounds, design: LinearDesign, events: tuple[GaussianNoise, ...]) -> Integer:
    """Ask for counts, products, products with the target and squared errors; return the noisy integers."""
    counts = rounds.counts() if design.listed else []
    found: Integer = {"counts": [each.tolist() for each in counts]}
    state = LinearState(design, events, found)
    rounds.use_bins([np.array(bins, dtype=np.int64) for bins in state.bins])
    found["products"] = rounds.moments(design.products).tolist()
    if design.target is not None:
        found["target"] = rounds.moments(design.products_with_target).tolist()
        found["errors"] = rounds.squared_errors(state.squared_errors()).tolist()
    return found


@dataclass(eq=False)
class LinearState:
    """A linear model as its noisy integers and public facts; everything else follows from them."""

    design: LinearDesign
    events: tuple[GaussianNoise, ...]
    noisy: Integer

    @property
    def names(self) -> tuple[str, ...]:
        return self.design.features

    @cached_property
    def bins(self) -> list[list[int]]:
        least = least_of(self.events) * UNIT
        found = [bins_of(np.array(each, dtype=np.int64), least) for each in self.noisy["counts"]]
        return [each.tolist() for each in found]

    @cached_property
    def cells(self) -> tuple[DesignCell, ...]:
        """The cells of all listed columns, in the order of their places."""
        listed = zip(self.design.listed, self.bins, strict=True)
        return tuple(cell for feature, bins in listed for cell in cells_of(feature, bins))

    @cached_property
    def gram(self) -> NoisyGram:
        sizes = [max(bins) + 1 for bins in self.bins]
        event = self.events[1 if self.design.listed else 0]
        return gram_of(self._integers("products"), self.design.products, sizes, float(event.sigma))

    @cached_property
    def target(self) -> NoisyTarget:
        return target_of(self._integers("target"), self.gram, float(self.events[-2].sigma))

    def _integers(self, name: str) -> Integers:
        return np.array(self.noisy[name], dtype=np.int64)

    @cached_property
    def weights(self) -> Floats:
        """The coefficients to predict with, in half ranges; every cell has one."""
        return shrunk(self.gram, self.target)

    def squared_errors(self) -> SquaredErrors:
        """Return the model for the round of squared errors: the coefficients to predict with, in whole steps."""
        whole = np.clip(np.rint(self.weights * NUMBER_ONE), -SCORE_MOST, SCORE_MOST).astype(np.int64)
        products = self.design.products
        return SquaredErrors(
            products.columns,
            products.values,
            len(products.values),
            tuple(whole[cells] for cells in self.gram.columns),
            whole[1 : 1 + len(products.values)],
            int(whole[0]),
            CAP,
        )

    @cached_property
    def bases(self) -> list[int]:
        """The place of each column's base: the cell that most people are in, by the noisy counts."""
        sizes = np.diag(self.gram.matrix)
        return [cells.start + int(np.argmax(sizes[cells])) for cells in self.gram.columns]

    @cached_property
    def inference(self) -> Inference:
        """The coefficients that the noise leaves apart from each other, with their errors."""
        sums = self._integers("errors").astype(np.float64) / UNIT
        places = clear_terms(self.gram, self.bases)
        return inference(self.gram, self.target, places, sums, float(self.events[-1].sigma) / UNIT)

    def name_of(self, place: int) -> str:
        if place == 0:
            return "intercept"
        numbers = len(self.design.numbers)
        if place <= numbers:
            return self.design.numbers[place - 1].name
        cell = self.cells[place - 1 - numbers]
        return f"{cell.feature}: {cell.label}"
