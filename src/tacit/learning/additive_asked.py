"""The plan of a fit of an additive model, made only from public facts: coded columns, events, and the recipe.

Rows are not read and no charge is made here, so a plan is free; a fit does exactly what its plan shows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any, Literal

from tacit.asking import Table
from tacit.errors import InvalidParameter, QueryRefused
from tacit.learning.additive_model import MARGIN, AdditiveModel
from tacit.learning.features import NUMBERS, Feature, coarse_of, feature_of, features_of, known_column, plain
from tacit.learning.price import noise_for
from tacit.learning.shapes import BINS_MOST, AskedRounds, Recipe, Shapes, learn_shapes
from tacit.learning.undeclared import KnownColumns
from tacit.plan import (
    STEPS_MOST,
    UNIT,
    ClassTarget,
    CodedColumn,
    CodedPlan,
    Measured,
    ValueTarget,
    count_moves_squared,
    measured_column,
)
from tacit.privacy import ApproximateLoss, GaussianNoise, Number, decimal_meaning, show
from tacit.query import Aggregate, Col, Column
from tacit.tables import RowUnit

LinkName = Literal["identity", "logistic", "log", "softmax"]

# The share of the loss that pays for counts, and so for bins.
FOR_COUNTS = Fraction(1, 10)
ROUNDS = 24
ROUNDS_MOST = 500
# Below this epsilon noise is the largest error, and a clip of a half keeps it low.
CLIPS_UNTIL = 2
CLASSES_MOST = 100
CELLS_OF_TARGET = 64
PAIRS_MOST = 10
# A plan gives the error of a bin with this number of people; numbers are taken to be off by this part of their range.
PEOPLE_SHOWN = (1_000, 10_000)
USUAL_ERROR = 0.1


@dataclass(frozen=True)
class Wanted:
    """How a model is to be learned: the parameters of an estimator."""

    epsilon: Number
    delta: Number | None
    rounds: int | None
    clip: Number | None
    interactions: Sequence[tuple[str, str]]
    monotone: Mapping[str, int] | None
    smooth: Number | None
    loss: str  # "classes", "squared" or "poisson"


@dataclass(frozen=True, repr=False)
class Asked:
    """The plan of a fit; printed as text."""

    table: Table
    target: str
    features: tuple[Feature, ...]
    classes: tuple[Any, ...]
    number: Measured | None
    coded: CodedPlan
    events: tuple[GaussianNoise, ...]
    asked: ApproximateLoss
    recipe: Recipe
    known: KnownColumns | None = None  # facts that are known and were not declared

    def learn(self, rounds: AskedRounds) -> Shapes:
        """Return the shapes that noisy rounds tell: all that a fit does after its charge."""
        return learn_shapes(rounds, self.recipe)

    def model(self, shapes: Shapes) -> AdditiveModel:
        """Return the model that shapes make."""
        grid, recipe = self.number, self.recipe
        low, width = (0.0, 1.0) if grid is None else (float(grid.step * grid.low), float(grid.step * grid.height))
        return AdditiveModel(self.target, self.features, recipe.pairs, recipe.link, self.classes, low, width, shapes)

    @property
    def words(self) -> str:
        """The request, for the record."""
        names = ", ".join(feature.name for feature in self.features)
        return f"an additive model of {self.target} from {names}"

    def __str__(self) -> str:
        recipe, noise = self.recipe, self.recipe.whole_noise
        whole = self.asked.epsilon + (0 if self.known is None else self.known.cost)
        lines = [f"{self.words}: ε = {float(whole):.6g}"]
        lines += [] if self.known is None or not self.known.words else [self.known.words]
        names = [feature.name for feature in self.features]
        rows = [("feature", "cells", "bins at most")]
        rows += [(each.name, str(each.cells), str(min(each.cells, BINS_MOST + 1))) for each in self.features]
        rows += [(f"{names[first]} x {names[second]}", "", "81") for first, second in recipe.pairs]
        widths = [max(len(row[place]) for row in rows) for place in range(3)]
        lines += ["  " + "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        lines += [
            f"{recipe.rounds} rounds; residuals are clipped to ±{recipe.clip / UNIT:g}",
            f"noise of counts ±{MARGIN * recipe.counts_noise:.4g} people; of all rounds together"
            f" ±{MARGIN * noise:.4g} people a bin (95 %)",
            *(self._expected(people) for people in PEOPLE_SHOWN),
            self._assumed,
            "charged once, before a row is read; this plan is free",
        ]
        return "\n".join(lines)

    def _expected(self, people: int) -> str:
        unit = {"logistic": "log-odds", "softmax": "log-odds", "log": "of the logarithm"}.get(self.recipe.link, "")
        curvature = {"logistic": 0.12, "softmax": 0.12, "log": 0.1}.get(self.recipe.link, 1.0)
        part = 1.0 if self.number is None or self.recipe.link == "log" else float(self.number.step * self.number.height)
        luck = {"logistic": 0.12, "softmax": 0.12}.get(self.recipe.link, USUAL_ERROR**2) * people
        # rounds weigh as their numbers do, so that their noise is that of three quarters of them
        error = MARGIN * sqrt(4 / 3 * self.recipe.whole_noise**2 + luck) / (curvature * people) * part
        shown = f"{float(f'{error:.2g}'):,g}"
        return f"the effect of a bin of {people:,} people: about ±{shown} {unit} of noise and luck".replace("  ", " ")

    @property
    def _assumed(self) -> str:
        """The assumptions behind the expected ±."""
        if self.number is not None:
            return "this holds for errors of about a tenth of the target's range; terms_ has every bin's own ±"
        return "this holds if classes are common; if one is rare, as along a steep term, it is larger: see terms_"

    __repr__ = __str__


def asked_of(
    table: Table, target: str, features: Iterable[str] | None, where: str | Col | None, wanted: Wanted
) -> Asked:
    """Return the plan of a fit, or refuse with the declaration or the option that is missing."""
    if not isinstance(table, Table):
        raise InvalidParameter(
            f"a model is learned from a protected table, not from a {type(table).__name__}"
            "\nhint: table = tacit.table(rows, unit=..., budget=tacit.epsilon(1, delta=1e-6), columns={...})"
        )
    if not isinstance(target, str):
        raise InvalidParameter("target must name the column to predict\nhint: fit(table, target='income')")
    if where is not None:
        table = table.where(where)
    if table.frame.keys:
        raise QueryRefused("a model is of the whole table\nhint: call fit before group_by")
    found = features_of(table, target, features)
    column, classes, number = target_of(table, target, wanted.loss)
    pairs = _pairs(wanted.interactions, found)
    coarse = [(place, *each) for place, feature in enumerate(found) if (each := coarse_of(feature)) is not None]
    coded = CodedPlan(
        None if isinstance(table.session.declaration.unit, RowUnit) else table.session.declaration.unit,
        table.frame.where,
        (*(feature.column for feature in found), column, *(each for _, each, _ in coarse)),
        () if number is None else (number,),
    )
    link: LinkName = _link(wanted.loss, classes)
    clip, rounds = _clip(wanted, link), _rounds(wanted.rounds)
    terms = len(found) + len(pairs)
    moves = rounds * (terms + 1) * clip**2
    wanted_noise = [(count_moves_squared(terms + 1 + len(coarse)), FOR_COUNTS), (moves, 1 - FOR_COUNTS)]
    events, asked = noise_for(table.session, wanted.epsilon, wanted.delta, wanted_noise)
    recipe = Recipe(
        ordered=tuple(feature.ordered for feature in found),
        cells=tuple(feature.cells for feature in found),
        coarse=tuple((place, of_cells) for place, _, of_cells in coarse),
        pairs=pairs,
        link=link,
        classes=len(classes) if link == "softmax" else 1,
        target=ValueTarget(0) if number is not None else class_target(column, classes, len(found)),
        middles=() if number is None else _parts(column, number),
        clip=clip,
        rounds=rounds,
        counts_noise=float(events[0].sigma) / UNIT,
        round_noise=float(events[1].sigma) / UNIT,
        monotone=_monotone(wanted.monotone, found),
        smooth=_smooth(wanted.smooth),
    )
    return Asked(table, target, found, classes, number, coded, events, asked, recipe)


def target_of(table: Table, target: str, loss: str) -> tuple[CodedColumn, tuple[Any, ...], Measured | None]:
    """Return the target's coded column, its classes in order, or the number that it is."""
    declaration = table.frame.declaration
    facts = known_column(target, declaration)
    if target == declaration.unit:
        raise InvalidParameter(f"'{target}' is the column of people and cannot be predicted")
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


def _parts(column: CodedColumn, grid: Measured) -> tuple[float, ...]:
    """Return the middles of a number's cells as parts of its range."""
    pairs = zip(column.edges, column.edges[1:], strict=False)
    return tuple((low + high - 1) / 2 / grid.height for low, high in pairs)


def _link(loss: str, classes: tuple[Any, ...]) -> LinkName:
    if loss == "classes":
        return "logistic" if len(classes) == 2 else "softmax"
    return "identity" if loss == "squared" else "log"


def _clip(wanted: Wanted, link: LinkName) -> int:
    """Return the clip in steps of UNIT, from epsilon if it is not given."""
    is_small = decimal_meaning(wanted.epsilon, name="epsilon") < CLIPS_UNTIL
    usual = {
        "logistic": Fraction(1, 2) if is_small else Fraction(4, 5),
        "softmax": Fraction(1) if is_small else Fraction(6, 5),
    }.get(link, Fraction(1, 2))
    clip = usual if wanted.clip is None else decimal_meaning(wanted.clip, name="clip")
    least = Fraction(1, 2) if link == "logistic" else Fraction(1, 1000)
    if not least <= clip <= 2:
        raise InvalidParameter(f"clip must be between {show(least)} and 2\nhint: leave it out for the usual one")
    return int(clip * UNIT)


def _rounds(rounds: int | None) -> int:
    if rounds is None:
        return ROUNDS
    if isinstance(rounds, bool) or not isinstance(rounds, int) or not 1 <= rounds <= ROUNDS_MOST:
        raise InvalidParameter(f"rounds must be a whole number from 1 to {ROUNDS_MOST}\nhint: leave it out")
    return rounds


def _pairs(interactions: Sequence[tuple[str, str]], features: tuple[Feature, ...]) -> tuple[tuple[int, int], ...]:
    names = [feature.name for feature in features]
    found = []
    for pair in interactions or ():
        if isinstance(pair, str) or len(pair) != 2 or pair[0] == pair[1] or any(each not in names for each in pair):
            raise InvalidParameter(
                "interactions must be pairs of two different features\nhint: interactions=[('age', 'sex')]"
            )
        found.append((names.index(pair[0]), names.index(pair[1])))
    if len(found) > PAIRS_MOST:
        raise InvalidParameter(f"a model has at most {PAIRS_MOST} interactions\nhint: each one adds noise to all terms")
    return tuple(found)


def _monotone(wanted: Mapping[str, int] | None, features: tuple[Feature, ...]) -> tuple[int, ...]:
    given = dict(wanted or {})
    known = {feature.name: feature for feature in features}
    for name, direction in given.items():
        if name not in known or not known[name].ordered:
            raise InvalidParameter(
                f"monotone names '{name}', which is not a feature of ordered values\nhint: {{'age': 1}}"
            )
        if direction not in (1, -1):
            raise InvalidParameter(f"monotone['{name}'] must be 1 (rising) or -1 (falling)")
    return tuple(int(given.get(feature.name, 0)) for feature in features)


def _smooth(smooth: Number | None) -> float | None:
    if smooth is None:
        return None
    given = decimal_meaning(smooth, name="smooth")
    if not 0 <= given <= 10**6:
        raise InvalidParameter("smooth must be between 0 and 1e6\nhint: leave it out, and it is chosen for each term")
    return float(given)
