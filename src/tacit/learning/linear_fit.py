"""Least squares from noisy moments: the best guess for predicting, and coefficients with intervals that hold.

Noisy moments are the sums of products that one or two rounds released, as a matrix. All numbers are in half ranges: a
number is -1 at the low end of its range and 1 at its high end, a cell is 1 for a row in it. Index 0 is the constant,
then come the numbers, then the cells of each column. The input is only released integers and public facts.

Two estimates of one thing. `shrunk` is for predicting: the mean of the coefficients given the noisy moments, the known
variance of their noise, and a common prior size that the moments choose themselves. The guess is better, but has no
interval. `inference` is for reading: the solution of the noisy normal equations for those terms that the noise leaves
apart from each other. Its error is that of the sample and that of the noise, and both are known
(docs/proofs/linear.md). Which terms these are is decided by the noisy products of features, never by the target.

The public side of a linear model, its rounds, and its result from the noisy integers that come back.

A ranged number is one term. A listed column has a term for each value that enough people have, by noisy counts; the
values that too few have share one term. The cell that most have is the base that the others are compared with.
`ask` is the charged algorithm; its result, plain integers, is stored in the ledger. `LinearState` is
computed only from these integers and public facts, so a stored model is the same model.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

from tacit.asking import Table, noise_for
from tacit.errors import QueryRefused, printable
from tacit.learning.features import NUMBERS, Feature, as_numbers, features_of, known_column, plain
from tacit.learning.rounds import Rounds
from tacit.learning.undeclared import FitPlan, KnownColumns
from tacit.numbers import Floats, Integers, Number
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
from tacit.privacy import ApproximateLoss, GaussianNoise
from tacit.query import Aggregate, Column

# Sizes of effects that are tried, in half ranges of the target.
PRIOR_SIZES = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64)
# The constant is not shrunk.
CONSTANT_SIZE = 10.0
# A term is read if its independent part is this many standard deviations of its noise.
CLEAR = 7.0
# How much the variance of errors is expected to differ between cells, as a part of it.
UNEVEN = 0.5
# No variance of errors is below this part of the target's.
VARIANCE_LEAST = 1e-3


@dataclass(frozen=True, eq=False)
class NoisyGram:
    """The noisy sums of products of features with each other, and the standard deviation of the noise of each sum."""

    matrix: Floats
    sigma: float
    numbers: int
    cells: tuple[int, ...]  # how many of each column

    @property
    def rows(self) -> float:
        """About how many units there are, where each has one weight."""
        return float(self.matrix[0, 0])

    @property
    def columns(self) -> list[slice]:
        starts = np.cumsum([1 + self.numbers, *self.cells])
        return [slice(int(start), int(stop)) for start, stop in pairwise(starts)]

    def noise_of(self, weights: Floats) -> Floats:
        """Return the covariance of (noise of the matrix) @ weights, from how each sum enters the matrix.

        A sum of a pair of places enters twice. A cell's sum is in the constant's row and on the diagonal. The number of
        units is the constant's square, and half of it is part of every number's square.
        """
        places = len(self.matrix)
        paired = np.ones((places, places))
        np.fill_diagonal(paired, 0)
        first_cell = 1 + self.numbers
        paired[0, first_cell:] = paired[first_cell:, 0] = 0
        for cells in self.columns:
            paired[cells, cells] = 0
        covariance = paired * np.outer(weights, weights) + np.diag(paired @ weights**2)
        at, with_constant = weights[first_cell:], weights[first_cell:] + weights[0]
        covariance[0, 0] += np.sum(at**2)
        covariance[0, first_cell:] += at * with_constant
        covariance[first_cell:, 0] += at * with_constant
        covariance[range(first_cell, places), range(first_cell, places)] += with_constant**2
        of_rows = np.zeros(places)
        of_rows[0], of_rows[1:first_cell] = weights[0], weights[1:first_cell] / 2
        squares = np.zeros(places)
        squares[1:first_cell] = weights[1:first_cell]
        covariance += np.outer(of_rows, of_rows) + np.diag(squares**2)
        return np.asarray(covariance * self.sigma**2)


@dataclass(frozen=True, eq=False)
class NoisyTarget:
    """The noisy sums of products with the target: with each feature, and with itself."""

    cross: Floats
    square: float
    sigma: float


def gram_of(noisy: Integers, moments: Moments, sizes: Sequence[int], sigma: float) -> NoisyGram:
    """Return the matrix of released products of features; `sigma` is in steps of UNIT.

    The noisy number of units is taken as 1 at least, so that a table without rows gives a matrix that can be inverted.
    """
    numbers, cells = len(moments.values), tuple(sizes[column] for column in moments.columns)
    place = {("value", value): slice(1 + at, 2 + at) for at, value in enumerate(moments.values)}
    starts = np.cumsum([1 + numbers, *cells])
    place |= {
        ("column", column): slice(int(starts[at]), int(starts[at + 1])) for at, column in enumerate(moments.columns)
    }
    matrix = np.zeros((int(starts[-1]), int(starts[-1])))
    start = 0
    for block in moments.blocks:
        stop = start + block.length(sizes)
        found = noisy[start:stop].astype(np.float64) / UNIT
        start = stop
        at = [place["column", column] for column in block.columns] + [place["value", value] for value in block.values]
        if block.is_square:
            matrix[at[0], at[0]] = found + matrix[0, 0] / 2
            continue
        rows, columns = [*at, slice(0, 1), slice(0, 1)][:2]
        shaped = found.reshape(rows.stop - rows.start, columns.stop - columns.start)
        matrix[rows, columns], matrix[columns, rows] = shaped, shaped.T
        matrix[0, 0] = max(float(matrix[0, 0]), 1.0)
        if len(block.columns) == 1 and not block.values:
            matrix[rows, rows] = np.diag(found)
    return NoisyGram(matrix, sigma / UNIT, numbers, cells)


def target_of(noisy: Integers, gram: NoisyGram, sigma: float) -> NoisyTarget:
    """Return the released products with the target; `sigma` is in steps of UNIT."""
    found = noisy.astype(np.float64) / UNIT
    cross = np.concatenate([found[:1], found[2:]])
    return NoisyTarget(cross, float(found[1]) + gram.rows / 2, sigma / UNIT)


@dataclass(frozen=True, eq=False)
class Inference:
    """Coefficients of the terms in `places`, by the noisy normal equations, with the covariance of their errors."""

    places: tuple[int, ...]
    estimate: Floats
    covariance: Floats
    noise: Floats  # the part of the covariance that is noise
    explained: float  # R²
    explained_error: float  # its standard error


def shrunk(gram: NoisyGram, target: NoisyTarget, places: Sequence[int] | None = None) -> Floats:
    """Return the mean of coefficients given noisy moments, nearer to 0 the more noise there is; 0 outside of `places`.

    Directions in which the noisy products of features are negative, which true ones never are, count as unknown.
    """
    chosen = list(range(len(gram.matrix))) if places is None else list(places)
    values, vectors = np.linalg.eigh(gram.matrix[np.ix_(chosen, chosen)])
    positive: Floats = (vectors * np.maximum(values, 0)) @ vectors.T
    found = []
    for size in PRIOR_SIZES:
        prior = np.full(len(chosen), size**2)
        prior[0] = CONSTANT_SIZE**2
        found.append(_posterior(gram, target, chosen, positive, prior))
    return max(found, key=lambda each: each[0])[1]


def _posterior(
    gram: NoisyGram, target: NoisyTarget, chosen: list[int], positive: Floats, prior: Floats
) -> tuple[float, Floats]:
    """Return the log probability of the noisy sums under a prior size, and the mean of the coefficients."""
    cross, evidence = target.cross[chosen], -np.inf
    whole = np.zeros(len(gram.matrix))
    whole[0] = target.cross[0] / gram.rows
    for _ in range(3):
        mean = whole[chosen]
        left = target.square - 2 * mean @ cross + mean @ positive @ mean
        variance = float(np.clip(left / gram.rows, VARIANCE_LEAST, 1.0))
        noise = gram.noise_of(whole)[np.ix_(chosen, chosen)] + np.eye(len(chosen)) * target.sigma**2
        seen = (positive * prior) @ positive + noise + variance * positive
        factor = np.linalg.cholesky(seen + np.eye(len(chosen)) * 1e-9 * np.trace(seen) / len(chosen))
        half = np.linalg.solve(factor, cross)
        evidence = float(-np.sum(np.log(np.diag(factor))) - half @ half / 2)
        whole[chosen] = prior * (positive @ np.linalg.solve(factor.T, half))
    return evidence, whole


def clear_terms(gram: NoisyGram, bases: Sequence[int]) -> tuple[int, ...]:
    """Return the indices of terms that remain distinguishable under the noise; the constant is always one.

    The term with the largest independent part, in standard deviations of its noise, comes first; the independent part
    is the part that earlier terms do not explain. `bases` are cells that others are compared with: one of each column.
    """
    chosen, left = [0], [place for place in range(1, len(gram.matrix)) if place not in set(bases)]
    matrix = gram.matrix
    while left:
        inside, beside = matrix[np.ix_(chosen, chosen)], matrix[np.ix_(chosen, left)]
        shares = np.linalg.solve(inside, beside)
        own = matrix[left, left] - np.sum(beside * shares, axis=0)
        clear = own / (gram.sigma * np.sqrt(2) * (1 + np.sum(shares**2, axis=0)))
        best = int(np.argmax(clear))
        if clear[best] < CLEAR:
            break
        chosen.append(left.pop(best))
    return tuple(sorted(chosen))


def inference(
    gram: NoisyGram, target: NoisyTarget, places: tuple[int, ...], squared_errors: Floats, sigma: float
) -> Inference:
    """Return coefficients with the covariance of their errors, of the sample and of the noise.

    `squared_errors` are noisy sums of squared errors in all, by squared number and by cell, of standard deviation
    `sigma`. How large the noise of the matrix is for these coefficients is judged by shrunk ones.
    """
    chosen = list(places)
    inside = gram.matrix[np.ix_(chosen, chosen)]
    inverse = np.linalg.inv(inside)
    estimate = inverse @ target.cross[chosen]
    whole = np.zeros(len(gram.matrix))
    whole[chosen] = estimate
    noise_of_sums = gram.noise_of(whole)[np.ix_(chosen, chosen)] + np.eye(len(chosen)) * target.sigma**2
    left = target.square - estimate @ target.cross[chosen] + np.trace(inverse @ noise_of_sums)
    spread = max(target.square - target.cross[0] ** 2 / gram.rows, VARIANCE_LEAST * gram.rows)
    left = float(np.clip(left, VARIANCE_LEAST * spread, spread))
    variance = left / gram.rows
    roots = np.sqrt(_variances(gram, variance, squared_errors, sigma)[chosen])
    sample = inside * np.outer(roots, roots)
    noise = inverse @ noise_of_sums @ inverse.T
    covariance = noise + inverse @ sample @ inverse.T
    explained = 1 - left / spread
    error = _explained_error(gram, target, whole, explained, spread)
    return Inference(places, estimate, covariance, noise, explained, error)


def _variances(gram: NoisyGram, variance: float, squared_errors: Floats, sigma: float) -> Floats:
    """Return the variance of errors at each index: the estimate there, drawn to the common one by its noise."""
    weights = np.maximum(np.diag(gram.matrix), 1.0)
    common = max(float(squared_errors[0]) / gram.rows, 1e-12)
    found = squared_errors / weights
    trust = (UNEVEN * common) ** 2 / ((UNEVEN * common) ** 2 + (sigma / weights) ** 2)
    uneven = np.clip(1 + trust * (found / common - 1), 0.1, 10.0)
    uneven[0] = 1.0
    return np.asarray(variance * uneven)


def _explained_error(gram: NoisyGram, target: NoisyTarget, weights: Floats, explained: float, spread: float) -> float:
    """Return the standard error of R²: of the noise through its derivative, and of the sample for normal errors."""
    middle = float(target.cross[0]) / gram.rows
    effects = weights.copy()
    effects[0] -= middle
    along = effects.copy()
    along[0] += 2 * middle
    of_matrix = float(along @ gram.noise_of(effects) @ along) + (explained * middle**2 * gram.sigma) ** 2
    of_cross = 4 * float(effects @ effects) + 4 * (explained * middle) ** 2 + explained**2
    noise = of_matrix + of_cross * target.sigma**2 + (explained * gram.sigma / 2) ** 2
    sample = 4 * max(explained, 0.0) * (1 - explained) ** 2 / gram.rows
    return float(np.sqrt(noise / spread**2 + sample))


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
        return 0.0 if self.target is None else self.target.middle

    @property
    def half(self) -> float:
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


def design_of_numbers(table: Table, features: Iterable[str] | None, what: str) -> LinearDesign:
    """Return the design of ranged numbers without a target; if none is named, columns without a range are left out."""
    declared = table.session.declaration
    ranged = [
        name
        for name, facts in declared.columns.items()
        if facts.between is not None and facts.keys is None and facts.type in NUMBERS and name != declared.unit
    ]
    design = design_of(table, "", ranged if features is None else features)
    if design.listed:
        raise QueryRefused(
            f"'{design.listed[0].name}' is a list, and {what} of numbers"
            "\nhint: name columns with a public range: features=['age', 'hours']"
        )
    return design


def bins_of(noisy_counts: Integers, least: float) -> Integers:
    """Return the bin of each cell of a listed column: its own if enough people are in it, else one for the rest."""
    large = noisy_counts >= least
    bins = np.cumsum(large) - 1
    bins[~large] = int(large.sum())
    found: Integers = bins.astype(np.int64)
    return found


def cells_of(feature: Feature, bins: Sequence[int]) -> tuple[DesignCell, ...]:
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
