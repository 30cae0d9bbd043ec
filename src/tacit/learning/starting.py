"""The start of a fit, and its curvature: intercept, curvature and spread from a noisy histogram of the target.

Clipped residuals need a separate link: the score at which they add up to zero is not the logit of a probability, but a
known function of it. `clipped_chance` and `chance_of` go between the two, so that predictions are probabilities.
"""

from dataclasses import dataclass
from math import log, sqrt
from typing import Any

import numpy as np

from tacit.learning.priors import TermBins
from tacit.plan import ClassTarget, ValueTarget
from tacit.privacy import Floats

# A model that knows the features is surer than its start, but features overlap, which adds curvature: about this.
FALLS_TO = 1.3
CHANCE_LEAST = 1e-3
# Cells with a count this many deviations of its noise above 0 are taken to hold people.
SEEN = 2.5
# The points at which a normal law is evaluated for a mean over it, and their weights.
POINTS, PARTS = np.polynomial.hermite_e.hermegauss(7)
PARTS = PARTS / PARTS.sum()


@dataclass(frozen=True)
class Start:
    """For each class: the intercept, curvature and variance of a residual per person; and the scale of effects."""

    intercept: Floats
    curvature: Floats
    variance: Floats
    scale: float


def start_of(
    noisy: Floats,
    link: str,
    target: ClassTarget | ValueTarget,
    middles: tuple[float, ...],
    clip: float,
    people: float,
    noise: float,
) -> Start:
    """Return where to start, from a noisy histogram of the target's cells; `noise` is the deviation of a count."""
    if isinstance(target, ClassTarget):
        classes = max(target.classes) + 1
        counts = np.array([sum(noisy[cell] for cell, c in enumerate(target.classes) if c == k) for k in range(classes)])
        shares = np.maximum(counts, CHANCE_LEAST * people)
        shares = shares / shares.sum()
        if link == "logistic":
            return _of_two(float(shares[1]), clip)
        logs, spread = np.log(shares), FALLS_TO * shares * (1 - shares)
        return Start(logs - logs.mean(), spread, spread, 1.0)
    weights = without_noise(noisy[:-1], noise) + 1e-9
    weights, values = weights / weights.sum(), np.array(middles)
    mean = float(np.clip(weights @ values, CHANCE_LEAST, 1 - CHANCE_LEAST))
    variance = float(max(weights @ (values - mean) ** 2, 1e-4))
    if link == "identity":
        return Start(np.array([mean]), np.array([1.0]), np.array([variance]), sqrt(variance))
    return Start(np.array([log(mean)]), np.array([mean]), np.array([variance]), 1.0)


def without_noise(noisy: Floats, noise: float) -> Floats:
    """Return noisy counts of cells in order, with those set to 0 that noise could have made.

    Halves are tested, then their halves: many cells of a few people each are found together even if each is too small.
    Taking every count above 0 as it is would put people all over an empty range, and make a narrow target look wide.

    >>> without_noise(np.array([90.0, 30.0, 4.0, -3.0]), 2.0).tolist()
    [90.0, 30.0, 0.0, 0.0]
    """
    total = float(noisy.sum())
    if total <= SEEN * noise * sqrt(len(noisy)):
        return np.zeros(len(noisy))
    if len(noisy) == 1:
        return np.array([total])
    half = len(noisy) // 2
    found = np.concatenate([without_noise(noisy[:half], noise), without_noise(noisy[half:], noise)])
    return found if found.any() else np.full(len(noisy), total / len(noisy))


def _of_two(share: float, clip: float) -> Start:
    chance = clipped_chance(share, clip)
    slope = chance * (1 - chance)
    curvature = slope * (share * (1 - chance <= clip) + (1 - share) * (chance <= clip))
    variance = share * min(1 - chance, clip) ** 2 + (1 - share) * min(chance, clip) ** 2
    start = np.array([log(chance / (1 - chance))])
    return Start(start, np.array([FALLS_TO * curvature]), np.array([variance]), 1.0)


@dataclass(frozen=True)
class Curved:
    """How steep residuals fall with the score, and their variance, per person: of each bin, and of all people.

    Bins' are (bins, classes, terms), or one for each class.
    """

    curvature: Floats
    variance: Floats
    of_all: Floats
    variance_of_all: Floats


def curved_at(
    start: Start, link: str, clip: float, intercept: Floats, effects: Floats, terms: TermBins, people: float
) -> Curved:
    """Return how steep residuals are at a model.

    For two classes it is the mean over the scores of a bin's people, if the other terms were independent of it: with a
    rare class, bins differ by a factor of ten. Otherwise it is the value at the start.
    """
    if link != "logistic":
        curvature, variance = start.curvature[:, None], start.variance[:, None]
        return Curved(curvature, variance, start.curvature, start.variance)
    spreads = terms.spread(effects, people)
    of_others = np.sqrt(np.maximum(spreads.sum(axis=1, keepdims=True) - spreads, 0.0))
    steep, varies = _steepness(intercept[:, None] + effects, of_others, clip)
    of_all, varies_all = _steepness(intercept, np.sqrt(spreads.sum(axis=1)), clip)
    return Curved(FALLS_TO * steep, varies, FALLS_TO * of_all, varies_all)


def _steepness(scores: Floats, deviations: Floats, clip: float) -> tuple[Floats, Floats]:
    """Return how steep residuals of two classes fall at scores around these, and their variance: means of both."""
    chance = 1 / (1 + np.exp(-(scores[..., None] + deviations[..., None] * POINTS)))
    share = chance_of(chance, clip)
    other = 1 - chance
    steep = chance * other * (share * (other <= clip) + (1 - share) * (chance <= clip))
    varies = share * np.minimum(other, clip) ** 2 + (1 - share) * np.minimum(chance, clip) ** 2
    return steep @ PARTS, varies @ PARTS


def clipped_chance(share: float, clip: float) -> float:
    """Return the p at which residuals of a share of ones, clipped, add up to zero.

    >>> clipped_chance(0.2, 0.5)
    0.125
    """
    if share > 0.5:
        return 1 - clipped_chance(1 - share, clip)
    if clip >= 1:
        return share
    if clip < 0.5:
        clip = 0.5
    low = clip * share / (1 - share)
    return low if low <= 1 - clip else share


def chance_of(chance: Any, clip: float) -> Any:
    """Return the probability that a p of clipped residuals stands for: the inverse of `clipped_chance`, of arrays.

    >>> float(chance_of(np.array([0.125]), 0.5)[0])
    0.2
    """
    clip = min(max(clip, 0.5), 1.0)
    low, high = 1 - clip, clip
    with np.errstate(divide="ignore", invalid="ignore"):
        rare = chance / (chance + clip)
        common = clip / (1 - chance + clip)
    return np.where(chance < low, rare, np.where(chance > high, common, chance))
