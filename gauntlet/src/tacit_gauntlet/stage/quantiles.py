"""The laws of a quantile's draws, as a plan makes them: where each level aims, and how each interval reaches."""

from collections.abc import Sequence
from dataclasses import dataclass

from tacit.auditing.outcome import draw_releases
from tacit.selection import quantile
from tacit_gauntlet.stage.table import SALT, Question, plan_of
from tacit_gauntlet.targets import standing

Aim = quantile.Aim
Reach = quantile.Reach

# what a target may be asked for besides its fraction: rows it aims inside, and rows that its interval reaches
_ASKED = ((1, 1), (3, 4), (8, 2))


@dataclass(frozen=True)
class Draws:
    """What a plan draws: so many levels, each by one of the aims, and for each fraction an interval, by a reach."""

    levels: int
    aims: Sequence[Aim]
    reaches: Sequence[Sequence[Reach]]


def draws_of(question: Question, *, epsilon: object) -> Draws:
    """Return the laws that answering a question of quantiles would draw from, for several aims and reaches."""
    plan = plan_of(question, epsilon=epsilon)
    (draw,) = plan.quantiles
    rate, ends_rate = (standing("Rate")(each, plan.rows_per_unit) for each in (draw.epsilon, draw.ends_epsilon))
    targets = [
        [quantile.Target(fraction, inside and aim, reach) for aim, reach in _ASKED]
        for fraction, inside, _ in draw.targets
    ]
    return Draws(
        draw.levels,
        [quantile._aim(target, rate) for each in targets for target in each],
        [[quantile._scored_interval(target, ends_rate) for target in each] for each in targets],
    )


def rungs(height: int) -> Sequence[int]:
    """Return the widths that an interval may have on a grid of this height."""
    return quantile.ladder(height)


def prior_of(place: int) -> float:
    """Return the weight that a rung has before any row is seen."""
    return float(quantile.prior_weights(place + 1)[-1])


def drawn_again(question: Question, *, epsilon: object, runs: int) -> list[tuple[int, int, int]]:
    """Return (low end, quantile, high end), drawn again and again from the same exact table."""
    plan = plan_of(question, epsilon=epsilon)
    exact = question.session.engine.aggregate(plan, SALT)
    drawn = draw_releases(plan, exact, runs) + plan.measured[0].low
    return [tuple(each) for each in drawn.tolist()]
