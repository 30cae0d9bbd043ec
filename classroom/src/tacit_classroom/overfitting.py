"""An analyst who asks a holdout again and again fools it, and does not fool noisy answers: the demo, on made-up coins.

There is no signal to find: labels and features are coins. The analyst keeps features that agree with the label on the
training rows and, by the holdout's own answers, there too. The plain holdout's later score for them is too good. Coins
follow from a seed, and are packed, 64 to a word; noise is drawn by `tacit.noise` and cannot be seeded.
"""

import hashlib
from dataclasses import dataclass
from math import expm1, inf, isqrt, log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.noise import DiscreteGaussian
from tacit.numbers import Floats, Integers
from tacit.pictures import (
    BLUE,
    GREEN,
    ORANGE,
    PALE,
    RED,
    Axis,
    LevelLine,
    Look,
    Spec,
    as_chart,
    line_panel,
    side_by_side,
    write,
)

PEOPLE, FEATURES = 5_000, 5_000
KEPT = (11, 51, 101, 201, 501)  # odd, so that a majority never ties
# The spread of the noise of a count of people who agree, and of one of people predicted right.
AGREE_SIGMA, RIGHT_SIGMA = (3 * isqrt(PEOPLE)) // 4, PEOPLE // 100
# The number of people for the theorem's widths.
PROMISED_TO = 100_000
WHAT_HAPPENS = (
    f"{PEOPLE:,} people to learn from, {PEOPLE:,} set aside, {FEATURES:,} features; every label is a coin, so no",
    "classifier is right for more than half of the people. An analyst asks the holdout which features agree there",
    "too, and adds up the best of them.",
)


@dataclass(frozen=True)
class Told:
    """Accuracy of one classifier: on the training people, as the holdout reports it, and on fresh people."""

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
    """Return a bound on the error of many adaptive answers with the best Gaussian noise, against the population.

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
    """Return the same if every question has separate people: no noise, and fewer people for each."""
    return sqrt(log(2 * questions / chance) / (2 * people / questions))


def overfitting_story(seed: int = 1) -> "Overfitting":
    """Return the demo: the reported and the true accuracies; printed as text, and drawn by `plot`."""
    return Overfitting(tuple(fooled(noisy=False, seed=seed)), tuple(fooled(noisy=True, seed=seed)))


@dataclass(frozen=True, repr=False)
class Overfitting:
    """The reports of a plain holdout and a noisy one on the same analyst's classifiers; printed as text."""

    plain: tuple[Told, ...]
    noisy: tuple[Told, ...]

    def __str__(self) -> str:
        lines = [
            *WHAT_HAPPENS,
            "",
            "features kept   on training   plain holdout says   noisy holdout says   truth",
        ]
        lines += [
            f"{one.features:>13}   {one.training:>11.3f}   {one.told:>18.3f}   {other.told:>18.3f}   {one.truth:>5.3f}"
            for one, other in zip(self.plain, self.noisy, strict=True)
        ]
        lines += [
            "",
            f"Widths that a theorem promises for noisy answers (Jung et al. 2020; {PROMISED_TO:,} people; 95 %, "
            "all answers"
            " together):",
            "adaptive questions     noisy answers, at best    new people for each question",
        ]
        for questions in (100, 1_000, 10_000):
            noise, split = (f"± {width(PROMISED_TO, questions):.3f}" for width in (guaranteed, by_splitting))
            lines.append(f"{questions:>18,}     {noise:>21}    {split:>28}")
        plain, noisy = self.plain[-1].told, self.noisy[-1].told
        lines += [
            "",
            f"A plain holdout reports {plain:.1%} for pure luck after {FEATURES:,} questions; with noise it "
            f"reports {noisy:.1%}, and the truth is half.",
        ]
        return "\n".join(lines)

    __repr__ = __str__

    def plot(self, path: str | Path | None = None) -> Any:
        """Return a picture of it; with a path that ends in .png, .svg or .html, write it there and return the path."""
        plain, noisy = self.plain[-1].told, self.noisy[-1].told
        spec = side_by_side(
            [self._told_panel(), _promised_panel()],
            title=f"A plain holdout reports {plain:.1%} for pure luck; with noise it reports {noisy:.1%}",
            notes=[" ".join(WHAT_HAPPENS)],
        )
        return as_chart(spec) if path is None else write(spec, Path(path))

    def _told_panel(self) -> Spec:
        looks = {
            "training": Look("on the training rows", PALE, "square", (2, 2)),
            "plain": Look("a plain holdout says", RED, "triangle-up", (6, 3)),
            "noisy": Look("a noisy holdout says", BLUE),
            "truth": Look("the truth, of new people", GREEN, "diamond", (1, 3)),
        }
        points = [("training", each.features, each.training) for each in self.plain]
        points += [("plain", each.features, each.told) for each in self.plain]
        points += [("noisy", each.features, each.told) for each in self.noisy]
        points += [("truth", each.features, each.truth) for each in self.plain]
        x = Axis("features kept", log=True, values=KEPT, form=",d")
        y = Axis("people predicted right", form=".0%", domain=(0.48, 0.74))
        title = "The reported accuracy, without any signal to find"
        return line_panel(points, looks, x=x, y=y, title=title, levels=[LevelLine(0.5, "", below=True)])


def _promised_panel() -> Spec:
    looks = {
        "noisy": Look("noisy answers, at best", BLUE),
        "split": Look("new people for each question", ORANGE, "square", (6, 3)),
    }
    questions = (10, 30, 100, 300, 1_000, 3_000, 10_000)
    points = [("noisy", each, guaranteed(PROMISED_TO, each)) for each in questions]
    points += [("split", each, by_splitting(PROMISED_TO, each)) for each in questions]
    x = Axis("adaptive questions", log=True, values=(10, 100, 1_000, 10_000), form=",d")
    y = Axis("± 95 %, all answers together", form=".1f", domain=(0, 0.85))
    return line_panel(points, looks, x=x, y=y, title=f"The widths of a theorem, for {PROMISED_TO:,} people")
