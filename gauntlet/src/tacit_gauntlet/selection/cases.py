"""Selection under attack: chances that vanish or overflow, charges below the true divergence, wrong sparse vectors.

Laws are computed from their definitions in ball arithmetic (stage/selection.py) and share nothing with what draws; what
draws is then held against them. Statistical verdicts have a false-alarm rate of 1e-6 for the whole case. What a ranking
is chosen from is moved by one unit by at most one for each key.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from flint import arb

import tacit
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.accounting import Event, rho_and_delta
from tacit_gauntlet.stage.balls import at_precision, ball, floor_of
from tacit_gauntlet.stage.enumeration import GivenBits
from tacit_gauntlet.stage.selection import (
    ChoiceLaw,
    above_threshold_law,
    answer_rows,
    exponential_law,
    log_ratio,
    noisy_max_law,
    permute_and_flip_law,
    pick,
    picks,
    ranked_scores,
    renyi_divergence,
    top_k_law,
)
from tacit_gauntlet.stage.statistic import (
    FALSE_ALARM,
    binomial_at_least,
    binomial_at_most,
    chi_square_fit,
    log_ratio_lower,
)
from tacit_gauntlet.stage.table import protected

PRECISION = 256
# The fraction of a loss that rounding of a ball may add, far below what any bug adds.
SLACK = Fraction(1, 10**30)
ORDERS = tuple(Fraction(order) for order in ("1.01", "1.5", "2", "4", "16", "64"))

Pair = tuple[Sequence[int], Sequence[int]]


# ---- a ladder of ties ----------------------------------------------------------------------------------------------


@case("N08", title="the exponential mechanism is exact from 2 ties to a million", feature="selection")
def exact_on_a_ladder_of_ties(size: Size) -> Evidence:
    """At epsilon = 10, give it words on either side of where its law changes from one candidate to the next.

    All scores tie at a height where naive weights overflow; in the neighbour one is raised and all others are lowered.
    """
    epsilon, height = 10, 1000
    mechanism = tacit.Exponential(epsilon=epsilon)
    rungs = sorted({int(2 * (500_000 ** (i / 19))) for i in range(20)})
    rungs = rungs if size == "full" else rungs[::3] + rungs[-1:]
    wrong, worst = [], 0.0
    for rung in rungs:
        tied = np.full(rung, height, dtype=np.int64)
        raised = tied - 1
        raised[0] += 2
        weight = ball_of_weight(2, mechanism.terms.rate)
        for scores, share in ((tied, arb), (raised, lambda j, w=weight: 1 + (j - 1) * w())):
            for j in {1, rung // 2, rung - 1} - {0}:
                word = boundary(share, j, rung)
                found = [pick(mechanism, scores, GivenBits([word + side], then=0)) for side in (-1, 1)]
                if found != [j - 1, j]:
                    wrong.append(f"{rung} candidates at {j}: {found}")
        if not 0 <= mechanism.release(tied) < rung:
            wrong.append(f"{rung} candidates: a place outside")
        with at_precision(PRECISION):
            loss = (rung / (1 + (rung - 1) * weight())).log()
            worst = max(worst, float(loss.mid()))
            if not loss <= epsilon:
                wrong.append(f"{rung} candidates: loss {loss}")
    return Evidence(not wrong, {"rungs": len(rungs), "wrong": wrong[:3] or "none", "largest loss": round(worst, 6)})


def ball_of_weight(distance: int, rate: Fraction) -> Callable[[], arb]:
    """Return the weight of a candidate so far below the best, to be evaluated at the precision in force."""
    return lambda: ball(-rate * distance).exp()


def boundary(share: Callable[[int], arb], j: int, count: int) -> int:
    """Return the word at which the law passes from candidate j - 1 to j, for running sums of weights given."""

    def formula() -> arb:
        # a little off the boundary, so that one that is a whole number has a floor too
        return share(j) / share(count) * arb(2) ** 64 + arb(2) ** -30

    return floor_of(formula)


# ---- charges -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Subject:
    """A mechanism, its law on scores in steps, and neighbouring scores that try it."""

    mechanism: Any
    law: Callable[[Sequence[int], Fraction], list[arb]]
    pairs: Sequence[Pair]

    def chances(self, scores: Sequence[int]) -> list[arb]:
        """Return the law on these scores, at the rate the mechanism works with."""
        return self.law(scores, self.mechanism.terms.rate)


TWO_WAY: tuple[Pair, ...] = (
    ((0, 0), (-1, 1)),
    ((0, -5), (-1, -4)),
    ((0, -3, -3), (-1, -2, -2)),
    ((0, 0, 0, 0), (1, -1, -1, -1)),
    ((2, 0, 1), (1, 1, 0)),
)
ONE_WAY: tuple[Pair, ...] = (
    ((0, 0), (0, 1)),
    ((0, -30), (0, -29)),
    ((0, 0, 0), (1, 1, 0)),
    ((3, 1, 1, 2), (4, 1, 1, 2)),
)


def subjects() -> list[Subject]:
    """Return every mechanism with neighbours it promises to hide."""
    return [
        Subject(tacit.NoisyMax(epsilon=1, monotone=True), noisy_max_law, ONE_WAY),
        Subject(tacit.NoisyMax(epsilon=1), noisy_max_law, TWO_WAY),
        Subject(tacit.Exponential(epsilon=1), exponential_law, TWO_WAY),
        Subject(tacit.Exponential(epsilon=1, monotone=True), exponential_law, ONE_WAY),
        Subject(tacit.PermuteAndFlip(epsilon=1), permute_and_flip_law, TWO_WAY),
        Subject(tacit.PermuteAndFlip(epsilon=1, monotone=True), permute_and_flip_law, ONE_WAY),
    ]


@case("N09", title="no selection's exact divergence exceeds its charge, pure or zCDP", feature="selection")
def divergence_is_at_most_the_charge(size: Size) -> Evidence:
    """Hold the exact law between neighbours against what is charged, and what is drawn against the law."""
    draws = 3_000 if size == "quick" else 50_000
    wrong: list[str] = []
    figures: dict[str, object] = {}
    tried = subjects()
    for subject in tried:
        name = repr(subject.mechanism)
        largest = arb(0)
        with at_precision(PRECISION):
            for pair in subject.pairs:
                one, other = (subject.chances(scores) for scores in pair)
                largest = max(largest, log_ratio(one, other), key=lambda loss: float(loss.mid()))
                wrong += over_charge(name, one, other, subject.mechanism.loss.epsilon, [subject.mechanism.event])
        figures[f"{name}, loss"] = round(float(largest.mid()), 6)
        p_value = fit(subject, subject.pairs[-1][0], draws)
        if p_value < float(FALSE_ALARM) / len(tried):
            wrong.append(f"{name} does not follow its law: p = {p_value:.1e}")
    wrong += top_k_over_charge("permute-and-flip", permute_and_flip_law)
    wrong += top_k_over_charge("exponential", exponential_law)
    return Evidence(not wrong, figures | {"wrong": wrong[:4] or "none", "draws": draws})


def over_charge(name: str, one: list[arb], other: list[arb], epsilon: Fraction, events: Sequence[Event]) -> list[str]:
    """Return what is charged too little, at the working precision."""
    found = []
    if not log_ratio(one, other) <= ball(epsilon * (1 + SLACK)):
        found.append(f"{name}: pure loss {float(log_ratio(one, other).mid()):.6f}")
    rho = sum((rho_and_delta(event)[0] for event in events), Fraction(0))
    for order in ORDERS:
        divergence = max((renyi_divergence(a, b, order) for a, b in ((one, other), (other, one))), key=_middle)
        if not divergence <= ball(rho * order * (1 + SLACK)):
            found.append(f"{name}: Rényi {float(order)} is {_middle(divergence):.6f}, charged {float(rho * order):.6f}")
    return found


def fit(subject: Subject, scores: Sequence[int], draws: int) -> float:
    """Return the p-value of what is drawn against the law."""
    seen = np.bincount(picks(subject.mechanism, scores, draws), minlength=len(scores))
    with at_precision(PRECISION):
        expected = [draws * _middle(chance) for chance in subject.chances(scores)]
    return chi_square_fit(seen.tolist(), expected)


def top_k_over_charge(by: str, law: Callable[[Sequence[int], Fraction], list[arb]]) -> list[str]:
    """Return what top 2 of 3 is charged too little."""
    mechanism = tacit.TopK(k=2, epsilon=1, by=by)  # type: ignore[arg-type]
    rate = mechanism.round.terms.rate
    one_round: ChoiceLaw = lambda scores: law(scores, rate)  # noqa: E731
    found = []
    with at_precision(PRECISION):
        for pair in (((0, 0, 0), (1, -1, -1)), ((0, -4, -4), (-1, -3, -3))):
            one, other = (list(top_k_law(scores, 2, one_round).values()) for scores in pair)
            found += over_charge(repr(mechanism), one, other, mechanism.loss.epsilon, mechanism.events)
    return found


def _middle(value: arb) -> float:
    return float(value.mid())


# ---- sparse vectors ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pattern:
    """Two neighbouring rows of scores and the answers that tell them apart best."""

    name: str
    one: tuple[int, ...]
    other: tuple[int, ...]
    answers: tuple[bool, ...]
    paid: int
    monotone: bool = False


def _rise(low: int, high: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[bool, ...]]:
    """Scores of `low` noes and `high` yeses that all move against the answer in the neighbour."""
    return (0,) * low + (1,) * high, (1,) * low + (0,) * high, (False,) * low + (True,) * high


PATTERNS = (
    Pattern("one no, one yes", *_rise(1, 1), paid=1),
    Pattern("eight noes, one yes", *_rise(8, 1), paid=1),
    Pattern("eight noes", *_rise(8, 0), paid=1),
    Pattern("three noes, three yeses", *_rise(3, 3), paid=3),
    Pattern("three noes, three yeses, one paid", *_rise(3, 3), paid=1),
    Pattern("one way", (1,) * 8 + (0,), (0,) * 8 + (0,), (True,), paid=1, monotone=True),
)


@case("N10", title="no pattern of sparse-vector answers loses more than epsilon", feature="selection")
def sparse_vector_patterns(size: Size) -> Evidence:
    """Sample the answers on both sides; the loss the samples prove, and the exact law's, must be at most epsilon."""
    runs = 20_000 if size == "quick" else 100_000
    epsilon = 2
    alpha = FALSE_ALARM / (6 * len(PATTERNS))  # two directions of a loss and four tails for each
    wrong: list[str] = []
    figures: dict[str, object] = {}
    for pattern in PATTERNS:
        mechanism = tacit.AboveThreshold(threshold=1, epsilon=epsilon, answers=pattern.paid, monotone=pattern.monotone)
        seen = []
        for scores in (pattern.one, pattern.other):
            rows = answer_rows(mechanism, scores, runs)
            if {row.dtype for row in rows} != {np.dtype(bool)}:
                wrong.append(f"{pattern.name}: more than yes and no")
            elif max(map(np.count_nonzero, rows)) > pattern.paid:
                wrong.append(f"{pattern.name}: more yeses than paid for")
            seen.append([row.tobytes() for row in rows].count(bytes(pattern.answers)))
        # a loss can only be proved where it is seen
        seen_loss = math.log((max(seen) + 1) / (min(seen) + 1))
        proved = log_ratio_lower((max(seen), min(seen)), (runs, runs), alpha=alpha) if seen_loss > epsilon else 0.0
        figures[pattern.name] = f"loss seen {seen_loss:.3f}, proved above {epsilon}: {proved > epsilon}"
        if proved > epsilon:
            wrong.append(f"{pattern.name}: proved loss {proved:.3f} above {epsilon}")
        wrong += against_the_law(pattern, mechanism, seen, runs, alpha)
    return Evidence(not wrong, figures | {"wrong": wrong[:3] or "none", "runs": runs})


def against_the_law(
    pattern: Pattern, mechanism: tacit.AboveThreshold, seen: list[int], runs: int, alpha: Fraction
) -> list[str]:
    """Return where the exact law loses more than epsilon, or what was sampled is not the law."""
    if sum(pattern.answers) > pattern.paid:
        return []
    used = len(pattern.answers)
    with at_precision(PRECISION):
        chances = [
            above_threshold_law(
                scores[:used],
                pattern.answers,
                threshold=1,
                threshold_rate=mechanism.split.threshold_rate,
                score_rate=mechanism.split.score_rate,
            )
            for scores in (pattern.one, pattern.other)
        ]
        loss = abs((chances[0] / chances[1]).log())
        found = [] if loss <= ball(mechanism.loss.epsilon) else [f"{pattern.name}: exact loss {_middle(loss):.4f}"]
    for count, chance in zip(seen, chances, strict=True):
        tails = [tail(count, runs, _middle(chance)) for tail in (binomial_at_least, binomial_at_most)]
        if min(tails) < alpha:
            found.append(f"{pattern.name}: seen {count} of {runs}, the law says {_middle(chance) * runs:.0f}")
    return found


KEYS = ["a", "b", "c", "d", "e"]
# Of one unit: how many rows of which key.
NEWCOMERS = {"many of one": "a" * 40, "many of all": "abcde" * 9, "keys nobody listed": "axyz" * 9}


@case("S31", title="one unit moves every count behind a ranking by at most one, all the same way", feature="release")
def rankings_count_units(size: Size) -> Evidence:
    """Let a unit with many rows and keys come, and see what the choice is made from."""
    people = 40 if size == "quick" else 400
    rows = [(place, KEYS[place % 4]) for place in range(people)]
    before, found = _ranked(rows), []
    for name, brought in NEWCOMERS.items():
        after = _ranked(rows + [(people, key) for key in brought])
        moves = [int(new - old) for old, new in zip(before, after, strict=True)]
        if not set(moves) <= {0, 1}:
            found.append(f"{name}: {moves}")
    return Evidence(passed=not found, details={"moves beyond one": found})


def _ranked(rows: list[tuple[int, str]]) -> list[int]:
    """Return the scores that the choice is given, as it is given them."""
    table = protected(pa.table({"id": [unit for unit, _ in rows], "k": [key for _, key in rows]}), groups_per_unit=1)
    question = table.top("k", 2, keys=KEYS)
    return ranked_scores(question)
