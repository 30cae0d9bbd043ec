"""Two experiments on selection: the most common of many, and the first count above a threshold."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tacit import AboveThreshold, Laplace, NoisyMax
from tacit.numbers import show
from tacit_classroom.theory.experiments import Rows, drawn_before, percent

# ---- Noisy max.

PICKS = 100
LEAD = 20  # votes between the most common and the next
ALONG = tuple(Fraction(each, 100) for each in (2, 5, 10, 20, 40, 80, 160))


@dataclass(frozen=True)
class Picked:
    """How often the most common candidate is found: by noisy max, and by counts of all with noise."""

    candidates: int
    epsilon: Fraction
    drawn: tuple[int, ...]  # right picks of PICKS, at each ε: noisy max, counts

    @property
    def along(self) -> tuple[tuple[str, Fraction, float], ...]:
        """The way to pick, ε, and the share of right picks."""
        places = [(way, epsilon) for epsilon in _epsilons(self.epsilon) for way in ("max", "counts")]
        return tuple((way, at, right / PICKS) for (way, at), right in zip(places, self.drawn, strict=True))

    @property
    def rows(self) -> Rows:
        """The share of right picks at the chosen ε."""
        here = {way: share for way, at, share in self.along if at == self.epsilon}
        lost = NoisyMax(epsilon=self.epsilon, monotone=True).error(candidates=self.candidates)
        return (
            ("Noisy max found the most common", f"{percent(here['max'])} of {PICKS} times"),
            ("All counts with noise found it", f"{percent(here['counts'])} of {PICKS} times"),
            ("Noisy max is short of the most common by at most", f"{lost:,} votes (95 %)"),
        )

    @property
    def python(self) -> str:
        """The same in Python."""
        votes = f"[100] * {self.candidates - 1} + [{100 + LEAD}]"
        return (
            "import tacit\n\n"
            f"votes = {votes}\n"
            f"print(tacit.NoisyMax(epsilon={show(self.epsilon)}, monotone=True).release(votes))\n"
            f"noise = tacit.Laplace(sensitivity={self.candidates}, epsilon={show(self.epsilon)})\n"
            "print(noise.release(votes).argmax())"
        )


def pick_best(*, candidates: int, epsilon: Fraction, drawn: tuple[int, ...] = ()) -> Picked:
    """Return how often the most common of made-up candidates is picked; a person may vote for all of them."""
    epsilons = _epsilons(epsilon)
    if not drawn_before(drawn, [PICKS] * 2 * len(epsilons)):
        votes = np.full(candidates, 100, dtype=np.int64)
        votes[-1] += LEAD
        best, right = candidates - 1, []
        for each in epsilons:
            picking = NoisyMax(epsilon=each, monotone=True)
            right.append(sum(picking.release(votes) == best for _ in range(PICKS)))
            noisy = Laplace(sensitivity=candidates, epsilon=each).release(np.tile(votes, PICKS))
            right.append(int((noisy.reshape(PICKS, -1).argmax(axis=1) == best).sum()))
        drawn = tuple(right)
    return Picked(candidates, epsilon, drawn)


def _epsilons(epsilon: Fraction) -> tuple[Fraction, ...]:
    return tuple(sorted({*ALONG, epsilon}))


# ---- Sparse vector.

DAYS = 60
BASE, RISE = 100, 5


@dataclass(frozen=True)
class Watched:
    """A count that rises day by day, watched for a threshold at one price for all days."""

    threshold: int
    epsilon: Fraction
    each_day: Fraction  # ε of one count with noise as small as in the comparison
    drawn: tuple[int, ...]  # the day of each run's alarm; DAYS for none

    @property
    def true_day(self) -> int:
        """The first day on which the count itself is above the threshold."""
        return next((day for day in range(DAYS) if count_on(day) >= self.threshold), DAYS)

    @property
    def rows(self) -> Rows:
        """The days of the alarm, and the price of asking each day by itself."""
        days = sorted(self.drawn)
        return (
            ("The count reaches the threshold on day", f"{self.true_day + 1}"),
            (f"Half of {len(days)} watches gave the alarm by day", f"{days[len(days) // 2] + 1}"),
            ("The earliest and the latest alarm", f"day {days[0] + 1} and day {days[-1] + 1}"),
            (f"ε for all {DAYS} days together", show(self.epsilon)),
            ("ε of a count for each day, with noise as small", show(self.each_day * DAYS)),
        )

    @property
    def python(self) -> str:
        """The same in Python."""
        return (
            "import tacit\n\n"
            f"counts = [{BASE} + {RISE} * day for day in range({DAYS})]\n"
            f"watch = tacit.AboveThreshold(threshold={self.threshold}, epsilon={show(self.epsilon)}, monotone=True)\n"
            "print('alarm on day', len(watch.release(counts)))"
        )


RUNS = 40


def watch_count(*, threshold: int, epsilon: Fraction, drawn: tuple[int, ...] = ()) -> Watched:
    """Return on which days watches of the same made-up count give their alarm."""
    watch = AboveThreshold(threshold=threshold, epsilon=epsilon, monotone=True)
    if not drawn_before(drawn, [DAYS] * RUNS):
        counts = [count_on(day) for day in range(DAYS)]
        runs = [watch.release(counts) for _ in range(RUNS)]
        drawn = tuple(len(each) - 1 if each[-1] else DAYS for each in runs)
    return Watched(threshold, epsilon, watch.split.score_rate, drawn)


def count_on(day: int) -> int:
    """Return the made-up count of a day."""
    return BASE + RISE * day
