"""Differencing: how many people of a street are in debt, and how many without house 20? The difference is one person.

Exact counts reveal that person, even if everything else is hidden. Ours have noise, charged to one budget. The attack
is tried in many streets at once, to measure the share of right guesses.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tacit.accounting import explain
from tacit.numbers import Number
from tacit_classroom.attacks.answerers import Questions, budgeted_answers
from tacit_classroom.attacks.people import (
    PLACES,
    Progress,
    at_most,
    loss_to_try,
    made_up,
    percent,
    silent,
    size,
    without_warnings,
)

STREETS, STREETS_LEAST, STREETS_MOST = 2_000, 10, 50_000
EXACT, BUDGET = "exact", "budget"


@dataclass(frozen=True)
class Differencing:
    """The result of two counts that differ by one person: print it, `plot` it, or take `record()` as data."""

    streets: int
    epsilon: float
    seed: int
    right_exact: float
    right_budget: float
    bound: float
    example_exact: tuple[int, int]
    example_budget: tuple[int, int]
    # answers -> the person's secret, yes or no -> difference of the counts -> share of the pairs
    differences: Mapping[str, Mapping[str, Mapping[int, float]]]

    @property
    def sentence(self) -> str:
        """The meaning, for decision makers."""
        return (
            f"Two exact counts reveal a person's secret every time ({percent(self.right_exact)}); two counts "
            f"through a budget of ε = {self.epsilon:g} let the guess be right {percent(self.right_budget)} of the "
            f"time, compared with 50 % for a coin and at most {at_most(self.bound)} for any attack."
        )

    def record(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return asdict(self) | {"attack": "difference", "sentence": self.sentence}

    def plot(self, path: str | Path) -> Path:
        """Draw how the differences fall for a yes and for a no: .png, .svg or .html."""
        from tacit_classroom.attacks.drawings import draw_differencing

        return draw_differencing(self, Path(path))

    def __str__(self) -> str:
        (exact, without), (noisy, noisy_without) = self.example_exact, self.example_budget
        lines = [
            f"Two counts that differ by one person, in {self.streets:,} made-up streets of {PLACES} (seed {self.seed})",
            "",
            f"{'in the first street':<36}{'in debt':>9}{'without house 20':>19}{'so house 20 is':>17}",
            f"{'exact counts':<36}{exact:>9}{without:>19}{_verdict(exact - without):>17}",
            f"{f'Tacit, a budget of ε = {self.epsilon:g}':<36}{noisy:>9}{noisy_without:>19}"
            f"{_verdict(noisy - noisy_without) + '?':>17}",
            "",
            f"{'right, over all streets':<36}{'':>9}",
            f"{'exact counts':<36}{percent(self.right_exact):>9}",
            f"{f'Tacit, a budget of ε = {self.epsilon:g}':<36}{percent(self.right_budget):>9}",
            f"{'at most, by any attack on it':<36}{at_most(self.bound):>9}",
            f"{'a coin':<36}{percent(0.5):>9}",
            "",
            self.sentence,
        ]
        return "\n".join(line.rstrip() for line in lines)

    __repr__ = __str__


@without_warnings()
def difference(
    *, epsilon: Number = 1, streets: int = STREETS, seed: int = 1, progress: Progress = silent
) -> Differencing:
    """Return what subtracting two counts reveals about one person: exact ones, and through a budget of `epsilon`."""
    loss = loss_to_try(epsilon)
    count = size(streets, name="streets", least=STREETS_LEAST, most=STREETS_MOST)
    people = made_up(count * PLACES, seed=seed)
    everyone = np.ones(PLACES, dtype=bool)
    pair = Questions(np.array([everyone, everyone & (np.arange(PLACES) < PLACES - 1)]))
    secret = people.exact_yes[:, -1] == 1
    exact = pair.exact_answers(people)
    noisy = budgeted_answers(people, pair, epsilon=loss, progress=progress).astype(np.int64)
    return Differencing(
        streets=count,
        epsilon=float(loss),
        seed=seed,
        right_exact=_share_right(exact, secret),
        right_budget=_share_right(noisy, secret),
        bound=float(explain(loss).one.accuracy),
        example_exact=(int(exact[0, 0]), int(exact[0, 1])),
        example_budget=(int(noisy[0, 0]), int(noisy[0, 1])),
        differences={
            name: {said: _shares((answers[:, 0] - answers[:, 1])[secret == (said == "yes")]) for said in ("yes", "no")}
            for name, answers in ((EXACT, exact), (BUDGET, noisy))
        },
    )


def _share_right(answers: Any, secret: Any) -> float:
    return float((((answers[:, 0] - answers[:, 1]) > 0) == secret).mean())


def _shares(differences: Any) -> dict[int, float]:
    seen = Counter(int(value) for value in differences)
    return {value: seen[value] / len(differences) for value in sorted(seen)}


def _verdict(difference: int) -> str:
    return "in debt" if difference > 0 else "not in debt"
