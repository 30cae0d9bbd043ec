"""People whose hours follow a known linear law, with uneven errors; and noisy moments of them without a table.

The second is for coverage: many models in seconds. Its sums are the engine's, which test_products.py checks; its
noise is normal with a seed, and everything after the noise is the product's own.
"""

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from tacit.accounting import rho_within
from tacit.learning.linear_fit import (
    CAP,
    FOR_COUNTS,
    FOR_ERRORS,
    FOR_PRODUCTS,
    FOR_TARGET,
    LEAST,
    Inference,
    bins_of,
    clear_terms,
    gram_of,
    inference,
    shrunk,
    target_of,
)
from tacit.numbers import Floats, Integers
from tacit.plan import UNIT, Moments

WARDS = ("A", "B", "C", "D")
COLUMNS: dict[str, dict[str, Any]] = {
    "age": {"between": (20, 80)},
    "score": {"between": (-1, 1)},
    "sex": {"keys": ["f", "m"]},
    "ward": {"keys": list(WARDS)},
    "hours": {"between": (0, 100)},
}
WARD_EFFECTS = np.array([0.0, 4.0, -6.0, 2.0])


def drawn(rng: np.random.Generator, count: int) -> dict[str, Any]:
    """Return people: older ones more often in ward B, and with errors that grow with age."""
    age = rng.integers(20, 81, count)
    score = rng.beta(2, 2, count) * 2 - 1
    sex = rng.integers(0, 2, count)
    ward = np.where(rng.random(count) < (age - 20) / 120, 1, rng.choice([0, 2, 3], count, p=[0.6, 0.3, 0.1]))
    errors = rng.normal(0, 1, count) * (4 + 6 * (age > 60))
    hours = 45 + 0.1 * (age - 50) + 5 * score - 3 * sex + WARD_EFFECTS[ward] + errors
    return {"age": age, "score": score, "sex": sex, "ward": ward, "hours": np.clip(hours, 0, 100)}


def frame(count: int, seed: int = 0) -> pa.Table:
    """Return a table of people, every third with two rows."""
    rng = np.random.default_rng(seed)
    people = drawn(rng, count)
    person = np.arange(count) - (np.arange(count) % 3 == 2)
    return pa.table(
        {
            "person": person,
            "age": people["age"],
            "score": people["score"],
            "sex": np.array(["f", "m"])[people["sex"]],
            "ward": np.array(WARDS)[people["ward"]],
            "hours": people["hours"],
        }
    )


FEATURES = Moments((0, 1), (0, 1), (0, 1, 2))
WITH_TARGET = Moments((0, 1), (0, 1), (0, 1, 2), target=2)


def placed(people: dict[str, Any], bins: list[Integers]) -> tuple[Floats, Floats]:
    """Return the features and the target in half ranges, every cell of every bin in place."""
    parts = [np.ones(len(people["age"])), (people["age"] - 50) / 30, people["score"]]
    for name, each in zip(("sex", "ward"), bins, strict=True):
        parts += [(each[people[name]] == place).astype(float) for place in range(int(each.max()) + 1)]
    return np.column_stack(parts), (people["hours"] - 50) / 50


def together(bins: list[Integers]) -> Floats:
    """Return the matrix that puts cells with a place each together in bins."""
    starts = np.cumsum([3, *(int(each.max()) + 1 for each in bins)])
    found = np.zeros((3 + sum(map(len, bins)), starts[-1]))
    found[range(3), range(3)] = 1
    cell = 3
    for start, each in zip(starts, bins, strict=False):
        for place in each:
            found[cell, start + place] = 1
            cell += 1
    return found


def inferred(
    people: dict[str, Any], epsilon: float, rng: np.random.Generator
) -> tuple[Inference, list[Integers], Floats]:
    """Return the inference from noisy moments of people, the bins of its lists, and the weights to predict with."""
    mu = float(2 * rho_within(Fraction(str(epsilon)), Fraction(1, 2_000_000))) ** 0.5

    def sigma(moves_squared: float, share: Any) -> float:
        return float((moves_squared / share) ** 0.5) / mu

    of_counts, of_errors = sigma(2, float(FOR_COUNTS)), sigma(5 * (CAP / UNIT) ** 2, float(FOR_ERRORS))
    of_products = sigma(FEATURES.moves_squared, float(FOR_PRODUCTS))
    of_target = sigma(WITH_TARGET.moves_squared, float(FOR_TARGET))
    least = LEAST * max(of_counts, of_products / UNIT)
    sizes = [3, 5]
    counts = [np.bincount(people[name], minlength=size) for name, size in zip(("sex", "ward"), sizes, strict=True)]
    bins = [bins_of(each + rng.normal(0, of_counts, len(each)), least) for each in counts]
    features, hours = placed(people, bins)
    cells = [int(each.max()) + 1 for each in bins]
    exact = features.T @ np.column_stack([features, hours])
    products = _released(exact, hours, FEATURES, cells) + rng.normal(0, of_products, _length(FEATURES, cells))
    crossed = _released(exact, hours, WITH_TARGET, cells) + rng.normal(0, of_target, _length(WITH_TARGET, cells))
    gram = gram_of(np.rint(products).astype(np.int64), FEATURES, cells, of_products)
    target = target_of(np.rint(crossed).astype(np.int64), gram, of_target)
    weights = shrunk(gram, target)
    squares = np.minimum((hours - features @ weights) ** 2, CAP / UNIT)
    errors = (features**2).T @ squares + rng.normal(0, of_errors, len(weights))
    bases = [where.start + int(np.argmax(np.diag(gram.matrix)[where])) for where in gram.columns]
    return inference(gram, target, clear_terms(gram, bases), errors, of_errors), bins, weights


def _length(moments: Moments, cells: list[int]) -> int:
    return sum(block.length(cells) for block in moments.blocks)


def _released(exact: Floats, hours: Floats, moments: Moments, cells: list[int]) -> Floats:
    """Return exact sums in the order in which a round releases them, in steps of UNIT."""
    starts = np.cumsum([3, *cells])
    found = []
    for block in moments.blocks:
        at = [slice(starts[each], starts[each + 1]) for each in block.columns]
        at += [slice(1 + each, 2 + each) if each < 2 else slice(-1, None) for each in block.values]
        if block.is_square:
            square = float(hours @ hours) if block.values[0] == 2 else exact[at[0], at[0]].item()
            found.append(np.array([square - len(hours) / 2]))
            continue
        rows, columns = [*at, slice(0, 1), slice(0, 1)][:2]
        if rows == slice(-1, None):
            rows, columns = columns, rows
        found.append(exact[rows, columns].ravel())
    return np.concatenate(found) * UNIT
