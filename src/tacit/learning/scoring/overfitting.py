"""An analyst who asks a holdout again and again fools it, and does not fool noisy answers: the demo, on made-up coins.

There is nothing to find: labels and features are coins. The analyst keeps features that agree with the label on the
training rows and, by the holdout's own answers, there too. What the plain holdout then says of them is too good. Coins
follow from a seed, and are packed, 64 to a word; noise is drawn by `tacit.noise` and has no seed.
"""

import hashlib
from dataclasses import dataclass
from math import expm1, inf, isqrt, log, sqrt

import numpy as np
from numpy.typing import NDArray

from tacit.noise import DiscreteGaussian
from tacit.privacy import Floats, Integers

PEOPLE, FEATURES = 5_000, 5_000
KEPT = (11, 51, 101, 201, 501)  # odd, so that a majority never ties
# The spread of the noise of a count of people who agree, and of one of people predicted right.
AGREE_SIGMA, RIGHT_SIGMA = (3 * isqrt(PEOPLE)) // 4, PEOPLE // 100


@dataclass(frozen=True)
class Told:
    """What one way to answer says of a classifier of so many features, and what is true of everybody else."""

    features: int
    training: float
    told: float
    truth: float


def fooled(*, noisy: bool, seed: int = 1) -> list[Told]:
    """Return what a holdout says of classifiers of more and more features; with `noisy`, its answers have noise."""
    training, holdout, fresh = (_coins(f"{which}:{seed}") for which in ("training", "holdout", "fresh"))
    mine, theirs = _agreeing(training), _agreeing(holdout)
    if noisy:
        theirs = theirs + np.array(DiscreteGaussian(AGREE_SIGMA).sample(FEATURES), dtype=np.int64)
    both = np.flatnonzero(np.sign(2 * mine - PEOPLE) * np.sign(2 * theirs - PEOPLE) > 0)
    best = both[np.argsort(-np.abs(2 * mine[both] - PEOPLE), kind="stable")]
    found = []
    for kept in KEPT:
        chosen = best[:kept]
        signs = np.sign(2 * mine[chosen] - PEOPLE)
        right = [_right(rows[chosen], signs) for rows in (training, holdout, fresh)]
        told = right[1] + (int(DiscreteGaussian(RIGHT_SIGMA).sample(1)[0]) if noisy else 0)
        found.append(Told(kept, right[0] / PEOPLE, told / PEOPLE, right[2] / PEOPLE))
    return found


def _coins(label: str) -> NDArray[np.uint8]:
    """Return for each feature whether it agrees with each person's label: a fair coin, packed."""
    width = -(-PEOPLE // 8)
    coins = np.frombuffer(hashlib.shake_128(label.encode()).digest(FEATURES * width), dtype=np.uint8)
    return coins.reshape(FEATURES, width)


def _bits(coins: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.unpackbits(coins, axis=1, count=PEOPLE)


def _agreeing(coins: NDArray[np.uint8]) -> Integers:
    """Return how many people each feature agrees with."""
    counts: Integers = np.concatenate(
        [_bits(coins[start : start + 500]).sum(axis=1, dtype=np.int64) for start in range(0, FEATURES, 500)]
    )
    return counts


def _right(coins: NDArray[np.uint8], signs: Integers) -> int:
    """Return how many people the majority of the chosen features is right about."""
    votes = signs @ (2 * _bits(coins).astype(np.int64) - 1)
    return int((votes > 0).sum())


# --- what a theorem promises ---


def guaranteed(people: int, questions: int, *, chance: float = 0.05) -> float:
    """Return how far any of so many adaptive answers with the best Gaussian noise may be from the population's.

    With probability 1 - chance, all of them together (Jung et al. 2020, with zCDP turned into (epsilon, delta)).
    """
    best = inf
    rhos: Floats = 10 ** np.linspace(-9, 2, 90)
    for rho in rhos.tolist():
        sigma = sqrt(questions / (2 * rho)) / people
        for delta in (10.0**-power for power in range(3, 12)):
            epsilon = rho + 2 * sqrt(rho * log(1 / delta))
            for beta in (10.0**-power for power in range(3, 10)):
                off = sigma * sqrt(2 * log(2 * questions / beta))
                best = min(best, off + expm1(min(epsilon, 5)) + beta / (0.75 * chance) + 2 * delta / (0.25 * chance))
    return best


def by_splitting(people: int, questions: int, *, chance: float = 0.05) -> float:
    """Return the same where every question has people of its own: no noise, and fewer people for each."""
    return sqrt(log(2 * questions / chance) / (2 * people / questions))


def overfitting_story(seed: int = 1) -> str:
    """Return the demo as text: what an analyst is told, and what is true."""
    plain, noisy = fooled(noisy=False, seed=seed), fooled(noisy=True, seed=seed)
    lines = [
        f"{PEOPLE:,} people to learn from, {PEOPLE:,} set aside, {FEATURES:,} features; every label is a coin, so no",
        "classifier is right for more than half of the people. An analyst asks the holdout which features agree there",
        "too, and adds up the best of them.",
        "",
        "features kept   on training   plain holdout says   noisy holdout says   truth",
    ]
    lines += [
        f"{one.features:>13}   {one.training:>11.3f}   {one.told:>18.3f}   {other.told:>18.3f}   {one.truth:>5.3f}"
        for one, other in zip(plain, noisy, strict=True)
    ]
    lines += [
        "",
        "What a theorem promises of noisy answers (Jung et al. 2020; 100,000 people; 95 %, all answers together):",
        "adaptive questions     noisy answers, at best    new people for each question",
    ]
    for questions in (100, 1_000, 10_000):
        noise, split = (f"± {width(100_000, questions):.3f}" for width in (guaranteed, by_splitting))
        lines.append(f"{questions:>18,}     {noise:>21}    {split:>28}")
    last = plain[-1], noisy[-1]
    lines += [
        "",
        f"A plain holdout says {last[0].told:.1%} of pure luck after {FEATURES:,} questions; with noise it says"
        f" {last[1].told:.1%}, and the truth is half.",
    ]
    return "\n".join(lines)
