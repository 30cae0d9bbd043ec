"""Every mechanism of the product, with a pair of neighbouring inputs to audit it on, for `tacit audit`.

A subject draws from the mechanism itself, many outputs at once. With a `shortage` it draws from one that was given a
larger epsilon than is claimed, so that the noise falls short by that fraction: a planted fault that an audit must see.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal

import numpy as np

import tacit
from tacit.accounting import FOR_KEYS
from tacit.auditing.function_audit import Claim, judge
from tacit.auditing.lower_bound import gaussian_draws
from tacit.auditing.outcome import draw_releases
from tacit.auditing.result import AuditResult
from tacit.errors import InvalidParameter
from tacit.exact import ROWS, UNITS, ExactTable
from tacit.local import FREQUENCIES, LocalProtocol, MeanResponse, Permanent
from tacit.noise import DiscreteGaussian, DiscreteStaircase, Keystream
from tacit.numbers import Number, confidence_meaning, decimal_meaning, positive, whole
from tacit.plan import make_plan, make_spend
from tacit.privacy import delta_meaning, staircase_for
from tacit.privacy import epsilon as loss_of
from tacit.query import parse_query
from tacit.selection import Rate, Selection, Target, answer_runs, draw_quantiles, pick, pick_all
from tacit.tables import ColumnFacts, Declaration

# From (epsilon, delta, shortage) to a function that draws n outputs on input 0 or 1
Prepare = Callable[[Fraction, Fraction, Fraction], Callable[[int, int], Any]]

DRAWS = 120_000
DRAWS_OF_SLOW = 20_000
DELTA = Fraction(1, 10**6)


@dataclass(frozen=True)
class AuditSubject:
    """A mechanism to audit: its name, the pair of inputs in words, and how to draw from it."""

    name: str
    inputs: str
    prepare: Prepare
    draws: int = DRAWS
    delta: Fraction = Fraction(0)
    noise: Literal["gaussian"] | None = None


def audit_mechanism(
    name: str,
    *,
    epsilon: Number,
    delta: Number | None = None,
    shortage: Number = 0,
    draws: int | None = None,
    confidence: Number = "0.999999",
) -> AuditResult:
    """Return the verdict on one of our own mechanisms; with a shortage, on one with that share of noise missing."""
    subject = SUBJECTS.get(name)
    if subject is None:
        raise InvalidParameter(f"'{name}' is not a mechanism to audit\nhint: one of {', '.join(SUBJECTS)}")
    exact = positive(decimal_meaning(epsilon, name="epsilon"), name="epsilon")
    missing = decimal_meaning(shortage, name="shortage")
    if not 0 <= missing < 1:
        raise InvalidParameter("shortage must be at least 0 and below 1\nhint: --shortage 0.1 plants 10 % too little")
    claimed_delta = subject.delta if delta is None else delta_meaning(delta)
    if (claimed_delta > 0) != (subject.delta > 0):
        rule = "needs a delta above 0" if subject.delta else "is pure: its delta is 0"
        raise InvalidParameter(f"{name} {rule}\nhint: leave delta out to use {float(subject.delta):g}")
    count = subject.draws if draws is None else whole(draws, name="draws", least=100)
    if draws is None and subject.noise == "gaussian":
        count = max(DRAWS, gaussian_draws(exact, claimed_delta))
    draw = subject.prepare(exact, claimed_delta, missing)
    claim = Claim(exact, claimed_delta, confidence_meaning(confidence))
    return judge(draw(0, count), draw(1, count), claim, noise=subject.noise)


# ---- noise ---------------------------------------------------------------------------------------------------------


def _laplace(epsilon: Fraction, _: Fraction, shortage: Fraction) -> Callable[[int, int], Any]:
    mechanism = tacit.Laplace(epsilon=epsilon / (1 - shortage))
    return lambda side, count: mechanism.release(np.full(count, side, dtype=np.int64))


def _laplace_float(epsilon: Fraction, _: Fraction, shortage: Fraction) -> Callable[[int, int], Any]:
    mechanism = tacit.Laplace(epsilon=epsilon / (1 - shortage))
    return lambda side, count: np.array([mechanism.release(float(side)) for _ in range(count)])


def _laplace_vector(epsilon: Fraction, _: Fraction, shortage: Fraction) -> Callable[[int, int], Any]:
    mechanism = tacit.Laplace(sensitivity=4, epsilon=epsilon / (1 - shortage))
    moved = np.array([2, -1, 0, 1])
    return lambda side, count: mechanism.release(np.tile(side * moved, (count, 1)))


def _staircase(epsilon: Fraction, _: Fraction, shortage: Fraction) -> Callable[[int, int], Any]:
    """A number that moves by 8, drawn with the noise that a sum gets at a large epsilon."""
    noise = DiscreteStaircase(staircase_for(8, epsilon / (1 - shortage)))
    return lambda side, count: noise.sample(count) + 8 * side


def _gaussian(epsilon: Fraction, delta: Fraction, shortage: Fraction) -> Callable[[int, int], Any]:
    """A float on its grid, drawn with the noise that a release of one number gets."""
    event = tacit.Gaussian(epsilon=epsilon, delta=delta).event_of(dtype=float)
    noise = DiscreteGaussian(event.sigma * (1 - shortage))
    move = math.isqrt(math.floor(event.sensitivity_squared))
    return lambda side, count: noise.sample(count) + side * move


def _gaussian_vector(epsilon: Fraction, delta: Fraction, shortage: Fraction) -> Callable[[int, int], Any]:
    event = tacit.Gaussian(sensitivity=2, epsilon=epsilon, delta=delta).event_of(size=4)
    noise = DiscreteGaussian(event.sigma * (1 - shortage))
    moved = np.array([1, -1, 1, 1])
    return lambda side, count: noise.sample(4 * count).reshape(count, 4) + side * moved


# ---- selection -----------------------------------------------------------------------------------------------------

ONE_WAY = ((0,) * 3, (1, 0, 0))
TWO_WAYS = ((0,) * 12, (1, *(-1,) * 11))


def _choosing(make: Callable[..., Selection], pair: tuple[tuple[int, ...], ...], **terms: Any) -> Prepare:
    def prepare(epsilon: Fraction, _: Fraction, shortage: Fraction) -> Callable[[int, int], Any]:
        mechanism, bits = make(epsilon=epsilon / (1 - shortage), **terms), Keystream()
        steps = [np.array(scores, dtype=np.int64) for scores in pair]
        return lambda side, count: np.array([pick(mechanism, steps[side], bits) for _ in range(count)])

    return prepare


def _top_k(by: str) -> Prepare:
    def prepare(epsilon: Fraction, _: Fraction, shortage: Fraction) -> Callable[[int, int], Any]:
        mechanism = tacit.TopK(k=2, epsilon=epsilon / (1 - shortage), by=by)  # type: ignore[arg-type]
        steps = [np.array(scores, dtype=np.int64) for scores in ((0,) * 6, (1, 1, *(-1,) * 4))]
        bits = Keystream()
        return lambda side, count: np.array([pick_all(mechanism, steps[side], bits) for _ in range(count)])

    return prepare


def _sparse_vector(epsilon: Fraction, _: Fraction, shortage: Fraction) -> Callable[[int, int], Any]:
    mechanism = tacit.AboveThreshold(threshold=1, epsilon=epsilon / (1 - shortage), answers=1)
    scores = [np.array(row, dtype=np.int64) for row in ((0, 0, 0, 1), (1, 1, 1, 0))]

    def draw(side: int, count: int) -> Any:
        answers = answer_runs(mechanism, scores[side], count, Keystream())
        shown = np.full((count, 4), -1, dtype=np.int64)  # -1: it had ended
        for place, row in enumerate(answers):
            shown[place, : len(row)] = row
        return shown

    return draw


def _median_of_row(epsilon: Fraction, _: Fraction, shortage: Fraction) -> Callable[[int, int], Any]:
    """A row at 0, and another at 2 or absent: it brings the median nearer to 1 and farther from all that lies above."""
    larger = epsilon / (1 - shortage)
    rate, ends_rate = Rate(larger * Fraction(19, 20), 1), Rate(larger / 20, 1)
    rows = [np.array(values, dtype=np.int64) for values in ((0,), (0, 2))]
    target = (Target(Fraction(1, 2)),)

    def draw(side: int, count: int) -> Any:
        starts = np.zeros(count, dtype=np.int64)
        words: dict[str, Any] = {"starts": starts, "ends": starts + len(rows[side]), "height": 24}
        return draw_quantiles(rows[side], target, rate=rate, ends_rate=ends_rate, **words)[0, 1]

    return draw


def _private_keys(epsilon: Fraction, delta: Fraction, shortage: Fraction) -> Callable[[int, int], Any]:
    """A person's own key, beside one that others have: it is shown with probability delta at most."""
    columns = {"id": ColumnFacts("int"), "g": ColumnFacts("text")}
    declared = Declaration("t", "id", columns, rows_per_unit=1, groups_per_unit=1)
    query = parse_query("SELECT g, COUNT(DISTINCT id) AS n FROM t GROUP BY g", declared)
    whole = delta / FOR_KEYS
    spend = make_spend(epsilon, whole, "laplace", loss_of(epsilon, delta=whole))
    plan = make_plan(query, declared, spend)
    if plan.threshold is not None:
        lower = replace(plan.threshold, least=math.ceil(plan.threshold.least * (1 - shortage)))
        plan = replace(plan, threshold=lower)
    tables = (
        ExactTable([("shared",)], {ROWS: [9], UNITS: [9]}),
        ExactTable([("shared",), ("own",)], {ROWS: [9, 1], UNITS: [9, 1]}),
    )
    return lambda side, count: draw_releases(plan, tables[side], count)


# ---- the local model -----------------------------------------------------------------------------------------------


def _randomized_response(epsilon: Fraction, _: Fraction, shortage: Fraction) -> Callable[[int, int], Any]:
    mechanism = tacit.RandomizedResponse(epsilon=epsilon / (1 - shortage))
    return lambda side, count: mechanism.release(np.full(count, side, dtype=np.int64))


def _local(make: Callable[[Fraction], LocalProtocol], pair: tuple[int, int]) -> Prepare:
    """A report's bytes and, for counts, whether it supports either of the two answers."""

    def prepare(epsilon: Fraction, _: Fraction, shortage: Fraction) -> Callable[[int, int], Any]:
        protocol = make(epsilon / (1 - shortage))

        def draw(side: int, count: int) -> Any:
            payloads = protocol.draw(np.full(count, pair[side], dtype=np.int64), Keystream())
            columns = [payloads[:, :8].astype(np.int64)]
            if hasattr(protocol, "supporting"):
                columns.append(protocol.supporting(payloads, np.array(pair)).astype(np.int64))
            return np.concatenate(columns, axis=1)

        return draw

    return prepare


DOMAIN = 8
FIRST_TWO = (0, 1)

SUBJECTS: dict[str, AuditSubject] = {
    each.name: each
    for each in (
        AuditSubject("laplace", "the integers 0 and 1", _laplace),
        AuditSubject("laplace-float", "the floats 0.0 and 1.0", _laplace_float, draws=DRAWS_OF_SLOW),
        AuditSubject("laplace-vector", "four integers that move by 4 in all", _laplace_vector),
        AuditSubject("staircase", "the integers 0 and 8", _staircase),
        AuditSubject("gaussian", "the floats 0.0 and 1.0, on their grid", _gaussian, delta=DELTA, noise="gaussian"),
        AuditSubject(
            "gaussian-vector", "four integers, each moved by 1", _gaussian_vector, delta=DELTA, noise="gaussian"
        ),
        AuditSubject(
            "noisy-max",
            "three tied counts, one of which rises",
            _choosing(tacit.NoisyMax, ONE_WAY, monotone=True),
            DRAWS_OF_SLOW,
        ),
        AuditSubject(
            "noisy-max-two-ways",
            "twelve tied scores, one rises and the others fall",
            _choosing(tacit.NoisyMax, TWO_WAYS),
            DRAWS_OF_SLOW,
        ),
        AuditSubject(
            "exponential",
            "twelve tied scores, one rises and the others fall",
            _choosing(tacit.Exponential, TWO_WAYS),
            DRAWS_OF_SLOW,
        ),
        AuditSubject(
            "permute-and-flip",
            "twelve tied scores, one rises and the others fall",
            _choosing(tacit.PermuteAndFlip, TWO_WAYS),
            DRAWS_OF_SLOW,
        ),
        AuditSubject("top-k", "six tied scores, two rise and four fall", _top_k("permute-and-flip"), DRAWS_OF_SLOW),
        AuditSubject("sparse-vector", "three scores rise and the last falls", _sparse_vector),
        AuditSubject("quantile", "the median of one row, and of that and another", _median_of_row, 4_000),
        AuditSubject(
            "private-keys",
            "a person with a private key, and without",
            _private_keys,
            draws=40_000,
            delta=Fraction(1, 100),
        ),
        AuditSubject("randomized-response", "no and yes", _randomized_response),
        *(
            AuditSubject(
                f"local-{name}",
                f"the first two of {DOMAIN} answers",
                _local(partial(make, DOMAIN), FIRST_TWO),
            )
            for name, make in FREQUENCIES.items()
        ),
        AuditSubject(
            "local-longitudinal",
            f"the first two of {DOMAIN} answers, one report",
            _local(lambda epsilon: Permanent(DOMAIN, 2 * epsilon, epsilon), FIRST_TWO),
        ),
        AuditSubject("local-mean", "the two ends of the range", _local(MeanResponse, (0, 1 << MeanResponse.grid_bits))),
    )
}
