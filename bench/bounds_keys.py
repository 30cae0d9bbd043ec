"""How many keys that nobody listed are shown: by weights, beside the best bound on a unit's groups.

A million orders of 100,000 people for 1000 items, people and items by Zipf's law. Keys have epsilon 0.5 and delta 5e-7.
A bound g drops a person's items beyond g, at random. The best of all bounds is found with the true result in view,
which nobody who asks can do. By weights, a person with many items counts for less in each, and no bound is needed.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from math import sqrt
from statistics import mean
from typing import Any

import numpy as np

from bench.measure import Figure, Result
from tacit.accounting import laplace_scale, rho_within
from tacit.noise import DiscreteGaussian, DiscreteLaplace
from tacit.plan.groups import KEYS_MOST, UNIT_SHIFT, key_weight, threshold_for, threshold_for_weights

ROWS, ITEMS = 10**6, 1000
EPSILON, DELTA = Fraction(1, 2), Fraction(1, 2 * 10**6)
RUNS = 12
BOUNDS = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100)
# A hand-set bound that is compared at the same bound, by weights.
HAND_SET = 5
GAIN_LEAST = 1.2


def results() -> Iterator[Result]:
    """Yield the keys shown, and how many times those of the best bound they are."""
    people, items = cells()
    rng = np.random.default_rng(1)
    dropped = {
        (noise, bound): shown_by_bound(noise, bound, people, items, rng)
        for noise in ("gaussian", "laplace")
        for bound in BOUNDS
    }
    (noise, bound), best = max(dropped.items(), key=lambda each: each[1])
    yield Figure(f"keys of {ITEMS} shown, best bound ({bound} items, {noise})", best)
    weighed = shown_by_weights("gaussian", KEYS_MOST, people, items, rng)
    yield Figure(f"keys of {ITEMS} shown, by weights", weighed)
    yield Figure("keys shown, by weights against the best bound", weighed / best, least=GAIN_LEAST)
    pure = max(each for (noise, _), each in dropped.items() if noise == "laplace")
    yield Figure("the same, Laplace noise", shown_by_weights("laplace", KEYS_MOST, people, items, rng) / pure)
    for noise in ("gaussian", "laplace"):
        same = shown_by_weights(noise, HAND_SET, people, items, rng) / dropped[noise, HAND_SET]
        yield Figure(f"keys shown, weights against counts at {HAND_SET} items, {noise}", same)


@lru_cache
def cells() -> tuple[np.ndarray, np.ndarray]:
    """Return the different pairs of a person and an item."""
    rng = np.random.default_rng(20261115)
    people = zipf(rng, ROWS, ROWS // 10, power=0.8, shift=10.0)
    pairs = np.unique(people * ITEMS + zipf(rng, ROWS, ITEMS, power=1.0, shift=5.0))
    return pairs // ITEMS, pairs % ITEMS


def zipf(rng: np.random.Generator, rows: int, kinds: int, *, power: float, shift: float) -> np.ndarray:
    """Draw kinds whose frequencies fall as (rank + shift)^-power, in no order."""
    cumulated = np.cumsum((np.arange(1, kinds + 1) + shift) ** -power)
    return rng.permutation(kinds)[np.searchsorted(cumulated / cumulated[-1], rng.random(rows))]


def kept(people: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """Return whether each cell is among the first `most` of its person, in a random order."""
    order = np.lexsort((rng.random(len(people)), people))
    first = np.append(True, people[order][1:] != people[order][:-1])
    places = np.arange(len(people))
    places -= np.maximum.accumulate(np.where(first, places, 0))
    found = np.empty(len(people), dtype=bool)
    found[order] = places < most
    return found


def noise_of(noise: str, size: int, *, norm_squared: int) -> tuple[Fraction, Any]:
    """Return the scale that keys get for this sensitivity, and its sampler."""
    if noise == "laplace":
        scale = laplace_scale(Fraction(size), EPSILON)
        return scale, DiscreteLaplace(scale)
    sigma = Fraction(sqrt(norm_squared / float(2 * rho_within(EPSILON, DELTA)))).limit_denominator(1000)
    return sigma, DiscreteGaussian(sigma)


def shown_by_bound(noise: str, bound: int, people: np.ndarray, items: np.ndarray, rng: np.random.Generator) -> float:
    """Return how many keys are shown, in the mean, where each person counts 1 in at most `bound` items."""
    scale, sampler = noise_of(noise, bound, norm_squared=bound)
    least = threshold_for(noise, scale, groups_per_unit=bound, delta=DELTA, release=0).least  # type: ignore[arg-type]
    counts = np.bincount(items[kept(people, bound, rng)], minlength=ITEMS)
    return mean(int((counts + sampler.sample(ITEMS) >= least).sum()) for _ in range(RUNS))


def shown_by_weights(noise: str, most: int, people: np.ndarray, items: np.ndarray, rng: np.random.Generator) -> float:
    """Return how many keys are shown, in the mean, where each person weighs less in each of many items."""
    norm, one = (1 if noise == "laplace" else 2), 1 << UNIT_SHIFT
    scale, sampler = noise_of(noise, one, norm_squared=one * one)
    least = threshold_for_weights(
        noise,  # type: ignore[arg-type]
        scale,
        norm=norm,  # type: ignore[arg-type]
        groups_most=most,
        delta=DELTA,
        release=0,
    ).least
    here = kept(people, most, rng)
    weights = np.array([0, *(key_weight(count, norm=norm) for count in range(1, most + 1))])  # type: ignore[arg-type]
    own = np.bincount(people[here])
    sums = np.bincount(items[here], weights=weights[own[people[here]]], minlength=ITEMS).astype(np.int64)
    return mean(int((sums + sampler.sample(ITEMS) >= least).sum()) for _ in range(RUNS))
