"""The experiments of the theory pages: five, all with the product's own mechanisms.

The people are made up and cost no budget. Their sizes are limited where inputs are read (`lessons.py`). An
experiment returns the contents of its page: numbers with their words, a picture's points, the same in Python.

Random results are a few whole numbers, `drawn`. A page's picture is made from the same ones, by any worker.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit import Gaussian, Laplace, RandomizedResponse, compose, explain
from tacit.noise import Keystream, draw_below, fresh_bytes
from tacit.numbers import show

Rows = tuple[tuple[str, str], ...]  # words, and the number that they name


def percent(share: float | Fraction) -> str:
    """Return a share in percent.

    >>> percent(0.7311)
    '73.1 %'
    """
    return f"{float(share) * 100:.1f} %"


def drawn_before(drawn: tuple[int, ...], most: Sequence[int]) -> bool:
    """Return whether these can be drawn numbers: one for each limit, and within it."""
    return len(drawn) == len(most) and all(0 <= each <= limit for each, limit in zip(drawn, most, strict=True))


def at_most(share: Fraction) -> str:
    """Return a bound in percent, rounded up, so that it stays one.

    >>> at_most(Fraction(75026, 100_000))
    '75.1 %'
    """
    return f"{ceil(share * 1000) / 10:.1f} %"


# ---- Randomized response.

FIRST = (10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)


@dataclass(frozen=True)
class Poll:
    """The first few people's reports, in words."""

    people: int
    yes: int  # of the true answers
    reported: int  # of the reports
    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class Polled:
    """Randomized answers as the number of people grows."""

    epsilon: Fraction
    share: Fraction
    keep: float
    polls: tuple[Poll, ...]

    @property
    def drawn(self) -> tuple[int, ...]:
        """The reports that say yes."""
        return tuple(poll.reported for poll in self.polls)

    @property
    def rows(self) -> Rows:
        """The last poll, in numbers."""
        last = self.polls[-1]
        people, share = f"{last.people:,}", last.reported / last.people
        return (
            ("An answer is sent as it is with probability", percent(self.keep)),
            ("True answers that are yes", f"{last.yes:,} / {people} ({percent(self.share)})"),
            ("Reports that say yes", f"{last.reported:,} / {people} ({percent(share)})"),
            ("Debiased estimate", f"{last.estimate * last.people:,.0f} ({percent(last.estimate)})"),
            ("Interval of the estimate", f"{percent(last.low)} – {percent(last.high)} (95 %)"),
        )

    @property
    def python(self) -> str:
        """The same in Python."""
        last = self.polls[-1]
        return (
            "import tacit\n\n"
            f"asking = tacit.RandomizedResponse(epsilon={show(self.epsilon)})\n"
            f"reports = asking.release([1] * {last.yes} + [0] * {last.people - last.yes})\n"
            "print(asking.estimate(reports))"
        )


def poll(*, people: int, share: Fraction, epsilon: Fraction, drawn: tuple[int, ...] = ()) -> Polled:
    """Return what randomized answers of made-up people say, of whom `share` percent have a yes."""
    asking = RandomizedResponse(epsilon=epsilon)
    # spread evenly: the first few have the same share of yeses as all
    yes = np.arange(people + 1, dtype=np.int64) * int(share) // 100
    sizes = (*(each for each in FIRST if each < people), people)
    if not drawn_before(drawn, sizes):
        reports = np.cumsum(asking.release(np.diff(yes)))
        drawn = tuple(int(reports[first - 1]) for first in sizes)
    polls = []
    for first, reported in zip(sizes, drawn, strict=True):
        found: Any = asking.estimate(np.arange(first) < reported)  # the order of reports does not matter
        polls.append(Poll(first, int(yes[first]), reported, found.value, found.low, found.high))
    return Polled(epsilon, share / 100, asking.keep, tuple(polls))


# ---- Laplace and Gaussian noise.

LARGEST = 10**8  # beyond what a picture shows
SIZES = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1_000)


@dataclass(frozen=True)
class Errors:
    """How far off the counts are, at most, in 95 % of releases."""

    counts: int
    laplace: int
    gaussian: int


@dataclass(frozen=True)
class Noises:
    """Both kinds of noise on `counts` counts that one person changes by 1 each."""

    epsilon: Fraction
    delta: Fraction
    here: Errors
    along: tuple[Errors, ...]
    drawn: tuple[int, ...]  # the largest noise of one release: Laplace, Gaussian

    @property
    def rows(self) -> Rows:
        """The errors at the chosen number of counts."""
        return (
            ("Laplace: no count is off by more than", f"{self.here.laplace:,} (95 %)"),
            ("Gaussian: no count is off by more than", f"{self.here.gaussian:,} (95 %)"),
            ("Laplace, one release now: the largest error", f"{self.drawn[0]:,}"),
            ("Gaussian, one release now: the largest error", f"{self.drawn[1]:,}"),
        )

    @property
    def python(self) -> str:
        """The same in Python."""
        k, root = self.here.counts, show(_root(self.here.counts))
        epsilon, delta = show(self.epsilon), show(self.delta)
        return (
            "import tacit\n\n"
            f"laplace = tacit.Laplace(sensitivity={k}, epsilon={epsilon})\n"
            f"gaussian = tacit.Gaussian(sensitivity={root}, epsilon={epsilon}, delta={delta})\n"
            f"print(laplace.error(coordinates={k}), gaussian.error(coordinates={k}, dtype=int))\n"
            f"print(laplace.release([0] * {k}), gaussian.release([0] * {k}))"
        )


def compare_noises(*, counts: int, epsilon: Fraction, delta: Fraction, drawn: tuple[int, ...] = ()) -> Noises:
    """Return the errors of both kinds of noise, and the largest noise of one release of each."""
    along = tuple(_errors(size, epsilon, delta) for size in SIZES)
    if not drawn_before(drawn, (LARGEST, LARGEST)):
        zeros = np.zeros(counts, dtype=np.int64)
        drawn = tuple(int(np.abs(each.release(zeros)).max()) for each in _both(counts, epsilon, delta))
    return Noises(epsilon, delta, _errors(counts, epsilon, delta), along, drawn)


@lru_cache(maxsize=10_000)
def _errors(counts: int, epsilon: Fraction, delta: Fraction) -> Errors:
    laplace, gaussian = _both(counts, epsilon, delta)
    each = [int(noise.error(coordinates=counts, dtype=int)) for noise in (laplace, gaussian)]
    return Errors(counts, each[0], each[1])


def _both(counts: int, epsilon: Fraction, delta: Fraction) -> tuple[Laplace, Gaussian]:
    gaussian = Gaussian(sensitivity=_root(counts), epsilon=epsilon, delta=delta)
    return Laplace(sensitivity=counts, epsilon=epsilon), gaussian


def _root(counts: int) -> Fraction:
    """Return the square root, rounded up to four digits.

    >>> _root(4), _root(2)
    (Fraction(2, 1), Fraction(14143, 10000))
    """
    return Fraction(isqrt(counts * 10**8 - 1) + 1, 10**4)


# ---- What an attacker learns.

TRIES = 10_000
BELIEFS = tuple(Fraction(percents, 100) for percents in (*range(1, 10), *range(10, 91, 4), *range(91, 100)))


@dataclass(frozen=True)
class Odds:
    """The worst attacker's possible belief afterwards, and the success rate of a simulated one."""

    epsilon: Fraction
    before: Fraction
    after: Fraction
    factor: Fraction | float
    most_right: Fraction
    right: int  # of TRIES
    curve: tuple[tuple[Fraction, Fraction], ...]

    @property
    def drawn(self) -> tuple[int, ...]:
        """How often the attacker guessed right."""
        return (self.right,)

    @property
    def rows(self) -> Rows:
        """The belief, and the attack that was tried."""
        return (
            ("Odds about one person grow at most", f"× {ceil(self.factor * 100) / 100:,.2f}"),
            ("The chosen belief becomes at most", f"{percent(self.before)} → {at_most(self.after)}"),
            ("A guess between two equally likely cases is right at most", at_most(self.most_right)),
            (
                "An attacker tried it now, and was right",
                f"{self.right:,} / {TRIES:,} ({percent(self.right / TRIES)})",
            ),
        )

    @property
    def python(self) -> str:
        """The same in Python."""
        return (
            "import numpy as np\nimport tacit\n\n"
            f"print(tacit.explain({show(self.epsilon)}, priors=[{show(self.before)}]))\n"
            f"is_in = np.arange({TRIES}) % 2  # every second person is in the data\n"
            f"noisy = tacit.Laplace(epsilon={show(self.epsilon)}).release(is_in)\n"
            "print('guessed right:', ((noisy >= 1) == is_in).mean())"
        )


def attack_odds(*, epsilon: Fraction, belief: Fraction, drawn: tuple[int, ...] = ()) -> Odds:
    """Return the effect of a loss on a belief, in percent, with a membership test that reaches the bound.

    The attacker knows everyone else, so the only unknown of a count is a 0 or a 1. Tries are about different people.
    """
    one, before = explain(epsilon).one, belief / 100
    if not drawn_before(drawn, (TRIES,)):
        is_in = np.arange(TRIES, dtype=np.int64) % 2
        guessed = Laplace(epsilon=epsilon).release(is_in) >= 1
        drawn = (int((guessed == is_in).sum()),)
    curve = tuple((each, one.posterior(each)) for each in BELIEFS)
    return Odds(epsilon, before, one.posterior(before), one.odds, one.accuracy, drawn[0], curve)


# ---- Composition.

PLACES_ALONG = 8


@dataclass(frozen=True)
class Composed:
    """The cost of a batch of equal Laplace releases together, by every rule."""

    questions: int
    epsilon: Fraction
    delta: Fraction
    total: str
    way: str
    by_rule: Rows
    along: tuple[tuple[str, int, float], ...]  # rule, questions, epsilon
    drawn: tuple[int, ...] = ()  # nothing is

    @property
    def rows(self) -> Rows:
        """The total by every rule."""
        return (("The smallest total", f"{self.total} ({self.way})"), *self.by_rule)

    @property
    def python(self) -> str:
        """The same in Python."""
        each = f"tacit.Laplace(epsilon={show(self.epsilon)})"
        return f"import tacit\n\nprint(tacit.compose([{each}] * {self.questions}, delta={show(self.delta)}))"


def compose_questions(*, questions: int, epsilon: Fraction, delta: Fraction, drawn: tuple[int, ...] = ()) -> Composed:
    """Return what Laplace releases of `epsilon` each cost together; nothing is drawn."""
    del drawn
    sizes = sorted({max(1, round(questions * place / PLACES_ALONG)) for place in range(1, PLACES_ALONG + 1)} | {1})
    along = [(name, size, total) for size in sizes for name, total, _ in _totals(size, epsilon, delta)[2]]
    total, way, totals = _totals(questions, epsilon, delta)
    by_rule = tuple((name, text) for name, _, text in totals)
    return Composed(questions, epsilon, delta, total, way, by_rule, tuple(along))


@lru_cache(maxsize=10_000)
def _totals(questions: int, epsilon: Fraction, delta: Fraction) -> tuple[str, str, tuple[tuple[str, float, str], ...]]:
    batch = compose({Laplace(epsilon=epsilon): questions}, delta=delta)
    known = [(way.name, way.loss) for way in batch.ways if way.loss is not None]
    return str(batch.loss), batch.way, tuple((name, float(loss.epsilon), str(loss)) for name, loss in known)


# ---- Reconstruction.

STREETS, HOUSES = 20, 20
SPREAD = 2
ASKED = (1, 2, 5, 10, 15, 20, 25, 30, 40, 50, 60, 80, 100)
WAYS = EXACT, SMALL_NOISE, BUDGET = "exact", "small noise", "budget"


@dataclass(frozen=True)
class Rebuilt:
    """How many secrets come back from counts, as more are asked; and one street, house by house."""

    questions: int
    epsilon: Fraction
    most_right: Fraction
    drawn: tuple[int, ...]  # how many secrets are right: for each number of questions, by each way to answer
    secrets: tuple[bool, ...] = ()  # of the first street, made up
    guesses: tuple[tuple[str, tuple[bool, ...]], ...] = ()

    @property
    def along(self) -> tuple[tuple[str, int, float], ...]:
        """The way to answer, the number of questions, and the share of secrets that are right."""
        places = [(way, few) for few in _asked_at(self.questions) for way in WAYS]
        return tuple(
            (way, few, right / (STREETS * HOUSES)) for (way, few), right in zip(places, self.drawn, strict=True)
        )

    def share(self, way: str) -> float:
        """Return the share of secrets that all the questions gave back."""
        return next(share for name, few, share in self.along if name == way and few == self.questions)

    @property
    def rows(self) -> Rows:
        """The share of secrets that came back."""
        return (
            ("Secrets recovered from exact counts", percent(self.share(EXACT))),
            ("From counts with fixed noise of up to ± 2", percent(self.share(SMALL_NOISE))),
            ("From counts through a budget", percent(self.share(BUDGET))),
            ("Guessing without any answer", percent(0.5)),
            ("No attack on this budget can expect more than", at_most(self.most_right)),
        )

    @property
    def python(self) -> str:
        """The same in Python, through a table with a ledger."""
        sizes = f"rows={STREETS * HOUSES}, questions={self.questions}, epsilon={show(self.epsilon)}"
        return (
            "from tacit_classroom.attacks import reconstruct\n\n"
            f'print(reconstruct({sizes}, solver="squares", curves=False))'
        )


def rebuild_secrets(*, questions: int, epsilon: Fraction, drawn: tuple[int, ...] = ()) -> Rebuilt:
    """Return the part of a made-up secret column that comes back from counts over random halves of every street.

    One person changes at most one count per question by 1, so the sensitivity is the number of questions, and the
    whole budget is spent again for each number of questions.
    """
    most_right = explain(epsilon).one.accuracy
    if drawn_before(drawn, [STREETS * HOUSES] * len(WAYS) * len(_asked_at(questions))):
        return Rebuilt(questions, epsilon, most_right, drawn)
    secrets, asked = _coins(STREETS, HOUSES), _coins(questions, HOUSES)
    counts = secrets.astype(np.int64) @ asked.T.astype(np.int64)
    noise = draw_below(2 * SPREAD + 1, counts.size, Keystream()).reshape(counts.shape) - SPREAD
    right: list[int] = []
    guesses: list[tuple[str, tuple[bool, ...]]] = []
    for few in _asked_at(questions):
        first = counts[:, :few]
        private = Laplace(sensitivity=few, epsilon=epsilon).release(first)
        answers = {EXACT: first, SMALL_NOISE: first + noise[:, :few], BUDGET: private}
        guessed = {way: _solved(asked[:few], given) for way, given in answers.items()}
        right += [int((guessed[way] == secrets).sum()) for way in WAYS]
        guesses = [(way, _truths(guessed[way][0])) for way in WAYS]
    return Rebuilt(questions, epsilon, most_right, tuple(right), _truths(secrets[0]), tuple(guesses))


def _asked_at(questions: int) -> tuple[int, ...]:
    return (*(each for each in ASKED if each < questions), questions)


def _solved(asked: NDArray[np.bool_], answers: NDArray[Any]) -> NDArray[np.bool_]:
    """Return the guesses with the least squared difference between their counts and the answers; ties go to the value
    nearest to one half."""
    matrix = asked.astype(np.float64)
    moved, *_ = np.linalg.lstsq(matrix, answers.T - matrix.sum(axis=1, keepdims=True) / 2, rcond=None)
    found: NDArray[np.bool_] = moved.T > 0
    return found


def _coins(rows: int, columns: int) -> NDArray[np.bool_]:
    size = rows * columns
    flipped: NDArray[np.uint8] = np.unpackbits(np.frombuffer(fresh_bytes((size + 7) // 8), dtype=np.uint8))[:size]
    return flipped.reshape(rows, columns).astype(bool)


def _truths(values: NDArray[np.bool_]) -> tuple[bool, ...]:
    return tuple(bool(value) for value in values)
