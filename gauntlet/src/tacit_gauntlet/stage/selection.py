"""The exact laws of the selections on given scores, as balls: what the promise of each is checked against.

They are written from the definitions and share nothing with what draws. Nothing here is private: the scores are
made up by whoever checks.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
from flint import arb, ctx

from tacit import selection
from tacit.asking import Question
from tacit.privacy.law import LaplaceLaw
from tacit.release import noisy
from tacit_gauntlet.stage.balls import ball
from tacit_gauntlet.stage.samplers import Bits, fresh_bits
from tacit_gauntlet.stage.table import SALT, plan_of
from tacit_gauntlet.targets import planted

# scores in steps -> the chance of each candidate
ChoiceLaw = Callable[[Sequence[int]], list[arb]]


def exponential_law(scores: Sequence[int], rate: Fraction) -> list[arb]:
    """Return the chances of the exponential mechanism: proportional to exp(rate·score)."""
    best = max(scores)
    weights = [ball(-rate * (best - score)).exp() for score in scores]
    total = sum(weights, arb(0))
    return [weight / total for weight in weights]


def permute_and_flip_law(scores: Sequence[int], rate: Fraction) -> list[arb]:
    """Return the chances of permute-and-flip: p_i · ∫₀¹ Π_{j≠i} (1 - p_j + p_j·t) dt."""
    best = max(scores)
    chances = [ball(-rate * (best - score)).exp() for score in scores]
    return [
        chance * _integral([(1 - other, other) for j, other in enumerate(chances) if j != i])
        for i, chance in enumerate(chances)
    ]


def noisy_max_law(scores: Sequence[int], rate: Fraction) -> list[arb]:
    """Return the chances of a noisy maximum with discrete Laplace noise of scale 1/rate, ties broken evenly.

    Candidate i wins with chance Σ_z P(z - s_i) ∫₀¹ Π_{j≠i} (F(z-1-s_j) + P(z-s_j)·t) dt; what the sum leaves out on
    either side is the chance that a noise is larger than the reach, added to each as a radius.
    """
    law = LaplaceLaw(1 / rate)
    reach = int(ctx.prec / rate) + 1
    left_out = 2 * len(scores) * law.upper_tail(reach)
    won = [arb(0)] * len(scores)
    for z in range(min(scores) - reach, max(scores) + reach + 1):
        pairs = [(law.cdf(z - 1 - score), law.pmf(z - score)) for score in scores]
        for i, (_, here) in enumerate(pairs):
            won[i] += here * _integral(pairs[:i] + pairs[i + 1 :])
    return [chance + arb(0).union(left_out) for chance in won]


def top_k_law(scores: Sequence[int], k: int, law: ChoiceLaw) -> dict[tuple[int, ...], arb]:
    """Return the chance of each ordered choice of k, peeled one at a time by `law`."""
    found = {}
    for order in permutations(range(len(scores)), k):
        left = list(range(len(scores)))
        chance = arb(1)
        for place in order:
            chance *= law([scores[i] for i in left])[left.index(place)]
            left.remove(place)
        found[order] = chance
    return found


def above_threshold_law(
    scores: Sequence[int], answers: Sequence[bool], *, threshold: int, threshold_rate: Fraction, score_rate: Fraction
) -> arb:
    """Return the chance that a sparse vector gives exactly these answers; both noises are Laplace of scale 1/rate."""
    noise, hidden = LaplaceLaw(1 / score_rate), LaplaceLaw(1 / threshold_rate)
    reach = int(ctx.prec / threshold_rate) + 1
    total = arb(0)
    for z in range(-reach, reach + 1):
        chance = hidden.pmf(z)
        for score, answer in zip(scores, answers, strict=True):
            least = threshold + z - score  # a yes wants noise of at least this
            chance *= noise.upper_tail(least) if answer else noise.cdf(least - 1)
        total += chance
    return total + arb(0).union(2 * hidden.upper_tail(reach + 1))


def log_ratio(one: Sequence[arb], other: Sequence[arb]) -> arb:
    """Return the largest log-ratio of chances, in either direction: the pure loss between two laws."""
    logs = [abs((p / q).log()) for p, q in zip(one, other, strict=True)]
    return max(logs, key=lambda value: float(value.mid()))


def renyi_divergence(one: Sequence[arb], other: Sequence[arb], order: Fraction) -> arb:
    """Return the Rényi divergence of an order above 1."""
    moment = sum((p ** ball(order) * q ** ball(1 - order) for p, q in zip(one, other, strict=True)), arb(0))
    return moment.log() / ball(order - 1)


def _integral(factors: Sequence[tuple[arb, arb]]) -> arb:
    """Return ∫₀¹ Π (a + b·t) dt."""
    product = [arb(1)]
    for a, b in factors:
        product = [
            (product[i] * a if i < len(product) else arb(0)) + (product[i - 1] * b if i else arb(0))
            for i in range(len(product) + 1)
        ]
    return sum((part / (power + 1) for power, part in enumerate(product)), arb(0))


# ---- what draws ----------------------------------------------------------------------------------------------------


def pick(mechanism: Any, steps: Any, bits: Bits) -> int:
    """Return the place that a selection chooses among scores in steps, by the bits given."""
    return int(selection.pick(mechanism, steps, bits))


def picks(mechanism: Any, scores: Sequence[int], times: int) -> list[int]:
    """Return what a selection chooses, again and again."""
    steps, bits = np.array(scores, dtype=np.int64), fresh_bits()
    return [pick(mechanism, steps, bits) for _ in range(times)]


def answer_rows(mechanism: Any, scores: Sequence[int], runs: int) -> list[Any]:
    """Return the answers of many runs of a sparse vector over the same scores."""
    rows: list[Any] = list(selection.answer_runs(mechanism, np.array(scores, dtype=np.int64), runs, fresh_bits()))
    return rows


def ranked_scores(question: Question) -> list[int]:
    """Return the scores that a ranking is chosen from, as the choice is given them."""
    plan, seen = plan_of(question), []

    def watched(_: object, scores: Any) -> list[int]:
        seen.append(list(scores))
        return [0, 1]

    with planted("TopK.release", watched):
        noisy.release(plan, question.session.engine.aggregate(plan, SALT))
    (scores,) = seen
    return scores
