"""The error of one mechanism for one kind of question, exactly from its law: the arithmetic behind `tradeoff`."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Literal

from tacit.accounting.calibrate import gaussian_sigma, gaussian_sigma_vector, laplace_scale
from tacit.accounting.shuffle import LOCAL_MOST, Randomizer, local_epsilon, shuffled
from tacit.local.estimate import ReportLaw
from tacit.privacy.law import GaussianLaw, LaplaceLaw
from tacit.privacy.symmetric import least_integer
from tacit.selection.noisy_max import NoisyMax

Kind = Literal["mean", "fraction", "counts", "maximum"]

CENTRAL_LAPLACE, CENTRAL_GAUSSIAN, LOCAL = "central Laplace", "central Gaussian", "local randomized response"
# Local reports whose order and origin someone hides; epsilon is then what their whole heap gives away.
SHUFFLED = "local, then shuffled"

# Steps of the public grid that a mean's values are put on.
GRID = 1 << 20


@dataclass(frozen=True)
class Accuracy:
    """One mechanism asked one kind of question: what error it has, but for `chance`."""

    mechanism: str
    kind: Kind
    k: int
    touched: int
    delta: Fraction
    chance: Fraction

    def error(self, people: int, epsilon: Fraction) -> float:
        """Return the error, as a share of the people or of the values' range."""
        if self.mechanism == SHUFFLED:  # a shuffler allows each report a larger epsilon
            epsilon = local_epsilon(epsilon, people, self.delta, self.randomizer)
        if self.mechanism in (LOCAL, SHUFFLED):
            return local_error(self.kind, people, epsilon, self.k, self.touched, self.chance)
        if self.kind == "maximum" and self.mechanism == CENTRAL_LAPLACE:
            return NoisyMax(epsilon=epsilon).error(confidence=1 - self.chance, candidates=self.k) / people
        noise = laplace_bound if self.mechanism == CENTRAL_LAPLACE else gaussian_bound
        steps = GRID if self.kind == "mean" else 1
        bound = noise(epsilon, steps, self.touched, self.k, self.delta, self.chance)
        # the largest noisy count is at most two errors from the largest
        return float(Fraction(bound * (2 if self.kind == "maximum" else 1), steps * people))

    @property
    def randomizer(self) -> Randomizer:
        """What one person sends: randomized response, or several of them side by side."""
        return "any" if self.kind == "counts" and self.touched > 1 else "randomized response"


def given_away(law: Accuracy, people: int, local: Fraction) -> Fraction:
    """Return the central epsilon of so many shuffled reports of this local epsilon."""
    if people < 2 or local > LOCAL_MOST:
        return local
    return shuffled(local, reports=people, delta=law.delta, unlinkable=True, randomizer=law.randomizer).epsilon


@lru_cache(maxsize=4096)
def laplace_bound(epsilon: Fraction, steps: int, touched: int, k: int, delta: Fraction, chance: Fraction) -> int:
    """Return the least a that Laplace noise on all of k numbers stays within: one unit moves `touched` by `steps`."""
    del delta  # pure noise has none
    return LaplaceLaw(laplace_scale(Fraction(steps * touched), epsilon)).smallest_bound(chance, k)


@lru_cache(maxsize=4096)
def gaussian_bound(epsilon: Fraction, steps: int, touched: int, k: int, delta: Fraction, chance: Fraction) -> int:
    """Return the least a that Gaussian noise on all of k numbers stays within."""
    if touched == 1:
        sigma = gaussian_sigma(Fraction(steps), epsilon, delta)
    else:
        sigma = gaussian_sigma_vector(Fraction(steps**2 * touched), epsilon, delta)
    return GaussianLaw(sigma).smallest_bound(chance, k)


@lru_cache(maxsize=4096)
def local_error(kind: Kind, people: int, epsilon: Fraction, k: int, touched: int, chance: Fraction) -> float:
    """Return the error of debiased reports, at the true answers where reports vary most.

    A mean's value is first rounded to 0 or 1 at random; of counts that one person touches several of, each is reported
    at its share of epsilon; of options, one of k is reported. Several counts share `chance` evenly.
    """
    each = float(epsilon) / (touched if kind == "counts" else 1)
    options = k if kind == "maximum" or (kind == "counts" and touched == 1) else 2
    options = max(options, 2)
    others = (options - 1) * math.exp(-each)
    keep = 1 / (1 + others)
    stray = (1 - keep) / (options - 1)
    gain = keep - stray
    allowed = -math.expm1(math.log1p(-float(chance)) / k) if touched == k else float(chance) / k
    if kind == "mean":
        law, holders = ReportLaw(people, 0.5, 0.5), people  # values of one half: every report is a fair coin
    else:
        law = ReportLaw(people, keep, stray)
        holders = _noisiest(people, keep, stray, options)
    reports = _within(law, holders, allowed)
    return (2 if kind == "maximum" else 1) * reports / (gain * people)


def _noisiest(people: int, keep: float, stray: float, options: int) -> int:
    """Return how many hold a category where its reports vary most."""
    if options == 2:
        return people // 2
    return people if keep * (1 - keep) >= stray * (1 - stray) else 0


def _within(law: ReportLaw, holders: int, chance: float) -> int:
    """Return the least r such that reports are within r of their mean but for `chance`."""
    mean = holders * law.keep + (law.people - holders) * law.stray
    variance = holders * law.keep * (1 - law.keep) + (law.people - holders) * law.stray * (1 - law.stray)
    guess = NormalDist().inv_cdf(1 - chance / 2) * math.sqrt(variance)

    def holds(r: int) -> bool:
        above = law.at_least(holders, math.floor(mean + r) + 1)
        below = 1 - law.at_least(holders, math.ceil(mean - r))
        return above + below <= chance

    return least_integer(holds, round(guess))
