"""The rounds of a linear model, and its result from the noisy integers that come back.

`asked_of` is the charged algorithm; its result, plain integers, is stored in the ledger. `LinearState` is computed
only from these integers and public facts, so a stored model is the same model.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from tacit.learning.linear_design import DesignCell, LinearDesign, bins_of, cells_of
from tacit.learning.linear_fit import Inference, clear_terms, inference, shrunk
from tacit.learning.noisy_gram import NoisyGram, NoisyTarget, gram_of, target_of
from tacit.learning.rounds import Rounds
from tacit.plan import NUMBER_ONE, UNIT, SquaredErrors, count_moves_squared
from tacit.privacy import Floats, GaussianNoise, Integers

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


def wanted_of(design: LinearDesign) -> list[tuple[int, Fraction]]:
    """Return how far one unit moves each round, squared, and the share of the loss that it gets."""
    columns, numbers = len(design.listed), len(design.numbers)
    wanted = [(count_moves_squared(columns), FOR_COUNTS)] if columns else []
    wanted.append((design.products.moves_squared, FOR_PRODUCTS))
    if design.target is not None:
        wanted.append((design.products_with_target.moves_squared, FOR_TARGET))
        wanted.append(((1 + columns + numbers) * CAP**2, FOR_ERRORS))
    total = sum(share for _, share in wanted)
    return [(squared, share / total) for squared, share in wanted]


def least_of(events: tuple[GaussianNoise, ...]) -> float:
    """Return the least number of units in a separate cell, by noisy counts."""
    return LEAST * max(float(event.sigma) for event in events[:2]) / UNIT


def asked_of(rounds: Rounds, design: LinearDesign, events: tuple[GaussianNoise, ...]) -> Integer:
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

    @cached_property
    def bins(self) -> list[list[int]]:
        """The bin of each cell of each listed column."""
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
        """The noisy products of features."""
        sizes = [max(bins) + 1 for bins in self.bins]
        event = self.events[1 if self.design.listed else 0]
        return gram_of(self._integers("products"), self.design.products, sizes, float(event.sigma))

    @cached_property
    def target(self) -> NoisyTarget:
        """The noisy products with the target."""
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
        """Return what a term is called."""
        if place == 0:
            return "intercept"
        numbers = len(self.design.numbers)
        if place <= numbers:
            return self.design.numbers[place - 1].name
        cell = self.cells[place - 1 - numbers]
        return f"{cell.feature}: {cell.label}"
