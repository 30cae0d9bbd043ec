"""Above threshold, the sparse vector: many yes-or-no questions about scores, with only the yeses paid for.

A noisy threshold is drawn and kept; every score gets its own noise and is compared with it. The watch ends with the
last yes paid for. The release is only yes and no: a noisy score released beside its yes would break the promise.
"""

import threading
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BudgetExceeded, InvalidParameter, TacitError
from tacit.noise import SMALL, WIDTH, Bits, Keystream, add_steps, laplace_tables, warning
from tacit.numbers import Integers, Number, confidence_meaning, decimal_meaning, show, whole
from tacit.privacy import LaplaceLaw, PureChoice, PureLoss
from tacit.selection.scores import SelectionTerms, check_rate, read_score, read_scores, read_terms
from tacit.system import at_fork

# A more in every forked child, so that a copy of an open watch is recognised.
_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


at_fork(after_in_child=_count_fork)


@dataclass(frozen=True)
class Split:
    """How epsilon is divided: the loss per step of the threshold's noise and of each score's."""

    threshold_rate: Fraction
    score_rate: Fraction


class AboveThreshold:
    """Whether each of a row of scores is above a public threshold, up to and including the last yes paid for.

    Privacy: epsilon-DP in all, for any number of scores, chosen as one goes or at once, that one unit moves by at most
    `sensitivity` each. The price is for `answers` yeses; a no is free (docs/proofs/sparse-vector.md).

    >>> import tacit
    >>> spikes = tacit.AboveThreshold(threshold=500, epsilon=2, answers=1)
    >>> spikes.release([3, 12, 980, 7]).tolist()
    [False, False, True]
    >>> watch = spikes.watch()
    >>> watch.release(3), watch.release(980), watch.left
    (False, True, 0)
    """

    def __init__(
        self,
        *,
        threshold: Number,
        epsilon: Number,
        answers: int = 1,
        sensitivity: Number = 1,
        monotone: bool = False,
        step: Number | None = None,
    ) -> None:
        self.threshold: Fraction = decimal_meaning(threshold, name="threshold")
        self.answers: int = whole(answers, name="answers")
        self.terms: SelectionTerms = read_terms(epsilon=epsilon, sensitivity=sensitivity, monotone=monotone, step=step)
        self.split: Split = split_epsilon(self.terms.epsilon, self.terms.moves, self.terms.reach, self.answers)
        check_rate(self.split.threshold_rate)
        check_rate(self.split.score_rate)
        self._threshold_steps = -int(-self.threshold / (self.terms.step or 1) // 1)
        if abs(self._threshold_steps) >= SMALL:
            raise InvalidParameter("threshold must lie within 2^62 steps of 0\nhint: give a coarser step")

    @property
    def loss(self) -> PureLoss:
        """The loss of one release, or of one watch."""
        return PureLoss(self.terms.epsilon)

    @property
    def event(self) -> PureChoice:
        """The event of one release, or of one watch."""
        return PureChoice(self.terms.epsilon)

    def release(self, scores: Any) -> NDArray[np.bool_]:
        """Return a yes or no for each score in turn, ending with the last yes paid for or the last score.

        Privacy: epsilon-DP in all. How many scores there are is public.
        """
        steps = read_scores(scores, self.terms.step, least=1)
        return next(iter(self._answers(steps, 1, Keystream())))

    def watch(self) -> "Watch":
        """Return an object to ask one score at a time: it costs epsilon once, however many scores it is asked."""
        return Watch(self)

    def error(self, confidence: Number = 0.95, *, questions: int) -> int | float:
        """Return an a such that, with this confidence, among that many questions no score more than a above the
        threshold gets a no, and none more than a below it a yes."""
        chance = 1 - confidence_meaning(confidence)
        count = whole(questions, name="questions")
        hidden, noise = LaplaceLaw(1 / self.split.threshold_rate), LaplaceLaw(1 / self.split.score_rate)
        shares = (Fraction(part, 16) for part in (1, 2, 4, 8, 12))
        steps = min(
            hidden.smallest_bound(chance * share) + noise.smallest_bound(chance * (1 - share), count)
            for share in shares
        )
        return self.terms.in_units(steps)

    def explain(self) -> str:
        """Return what it does, in words and numbers."""
        within = ", ".join(f"{self.error(questions=10**p):.10g} for {10**p:,}" for p in (1, 3, 6))
        lines = [
            f"Above threshold {show(self.threshold)}: {self.loss} for {self.answers} yes answers to any number of "
            "questions.",
            self.terms.words(),
            f"With 95 % confidence no answer is wrong about a score farther from it than {within} questions.",
            *warning(self.terms.epsilon),
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"AboveThreshold(threshold={show(self.threshold)}, answers={self.answers}, {self.terms.arguments()})"

    def _answers(self, steps: Integers, runs: int, bits: Bits) -> list[NDArray[np.bool_]]:
        """Return the answers of `runs` independent runs on the same scores."""
        thresholds = self._noisy_thresholds(runs, bits)
        noise = _draw_laplace(self.split.score_rate, runs * len(steps), bits)
        noisy = add_steps(np.tile(steps, runs), noise)
        above = noisy.reshape(runs, len(steps)) >= thresholds[:, np.newaxis]
        return [row[:length] for row, length in zip(above, self._lengths(above), strict=True)]

    def _noisy_thresholds(self, runs: int, bits: Bits) -> NDArray[Any]:
        exact = np.full(runs, self._threshold_steps, dtype=np.int64)
        return add_steps(exact, _draw_laplace(self.split.threshold_rate, runs, bits))

    def _lengths(self, above: NDArray[np.bool_]) -> list[int]:
        """Return how many answers each run gives: up to and including the last yes paid for."""
        yeses_before: Integers = np.cumsum(above, axis=1) - above
        return [int(length) for length in np.count_nonzero(yeses_before < self.answers, axis=1)]


def answer_runs(mechanism: AboveThreshold, steps: Integers, runs: int, bits: Bits) -> list[NDArray[np.bool_]]:
    """Return the answers of `runs` independent runs on the same scores, in grid steps.

    Privacy: each run is one release, given uniform bits that are used only for it.
    """
    return mechanism._answers(steps, runs, bits)


class Watch:
    """A running sparse vector: its noisy threshold stays hidden in it, so it can be neither copied nor pickled.

    Privacy: epsilon-DP in all for everything it ever answers. After a fork the child's copy gives no answers.
    """

    def __init__(self, mechanism: AboveThreshold) -> None:
        self.mechanism = mechanism
        self.left: int = mechanism.answers
        self._noisy_threshold = int(mechanism._noisy_thresholds(1, Keystream())[0])
        self._forks = _forks
        self._lock = threading.Lock()

    def release(self, score: Any) -> bool:
        """Return whether the score is above the threshold, noise on both.

        Privacy: paid for when the watch was made; refused after its last yes.
        """
        if self._forks != _forks:
            raise TacitError(
                "this watch was made before a fork and answers only in its own process\nhint: make another"
            )
        steps = read_score(score, self.mechanism.terms.step)
        noise = int(_draw_laplace(self.mechanism.split.score_rate, 1, Keystream())[0])
        with self._lock:
            if self.left == 0:
                raise BudgetExceeded(
                    f"this watch has given the {self.mechanism.answers} yes answers it paid for"
                    "\nhint: make another, which costs epsilon again, or ask for more answers at the start"
                )
            above = steps + noise >= self._noisy_threshold
            self.left -= above
            return above

    def __reduce__(self) -> NoReturn:
        raise TacitError("a watch cannot be copied or pickled: a copy could give its yes answers twice")

    def __repr__(self) -> str:
        return f"Watch({self.mechanism!r}, left={self.left})"


def split_epsilon(epsilon: Fraction, moves: int, reach: int, answers: int) -> Split:
    """Return the loss per step of the two noises: epsilon as 1 to (answers·reach/moves)^(2/3), for the least
    variance."""
    times = answers * reach // moves
    share = Fraction(1 / (1 + times ** (2 / 3))).limit_denominator(10**6)
    return Split(
        threshold_rate=epsilon * share / moves,
        score_rate=epsilon * (1 - share) / (answers * reach),
    )


def _draw_laplace(rate: Fraction, n: int, bits: Bits) -> NDArray[Any]:
    return laplace_tables(1 / rate, WIDTH).draw(n, bits)
