"""Noise enters the product on this page and nowhere else.

In comes the exact table: the bounded integers of every group, which an engine read from rows and which are secret. With
it comes the plan, which is public: it was made before any row was read, and it says what noise each number gets.

Out goes a noisy table, and nothing else of the exact one. There are five kinds of release:

1. A number. Each part of each group gets its own noise: Laplace, Gaussian or staircase (`_add_noise`).
2. A key that is not public. It is shown if the noisy count of its units reaches the plan's threshold (`_shown_groups`).
3. A quantile. It is drawn by the exponential mechanism from the values of a shown group (`_draw_quantiles`).
4. A ranking. The best of the public keys are chosen, and their counts stay secret (`_choose_keys`).
5. A round of learning. A vector of sums gets Gaussian noise (`release_integers`).

Totals of the whole table (what bounding left, and what it took) are numbers too, with one draw each, and so are the
totals of a level of groups (`_add_noise_to_level`).

Random bits come from `tacit.noise`. A session charges the ledger for all of this before an engine reads any row.
"""

from tacit.errors import InvalidParameter
from tacit.exact import UNITS, ExactIntegers, ExactTable, added_to_levels
from tacit.noise import DiscreteGaussian, DiscreteLaplace, DiscreteStaircase, IntegerNoise
from tacit.numbers import Wholes, combined
from tacit.plan import Choice, NoisyRelease, Plan, PlannedLevel, QuantileDraw
from tacit.privacy import GaussianNoise, LaplaceLaw, StaircaseLaw
from tacit.release.noisy_table import Key, NoisyTable
from tacit.selection import NoisyMax, Rate, Target, TopK, draw_quantiles


def release(plan: Plan, exact_table: ExactTable) -> NoisyTable:
    """Return the plan's noisy integers.

    Privacy: every part of every group gets independent noise of the plan's distribution, which hides the largest change
    that one unit can make (docs/proofs/sensitivity.md); a group whose key is not public is shown only if its noisy
    count of units reaches the plan's threshold; and shown groups are sorted by their keys, so that nothing depends on
    the order of rows. A ranking is a choice by the mechanism that the plan names, and it shows only the chosen keys.
    """
    if plan.choice is not None:
        return NoisyTable(_choose_keys(plan.choice, exact_table), ())
    noisy_parts = [_add_noise(each, plan, exact_table) for each in plan.releases]  # [release][part][group]
    shown = _shown_groups(plan, noisy_parts, len(exact_table))
    if plan.threshold is None:
        noisy_shown = noisy_parts
    else:
        noisy_shown = [[[part[group] for group in shown] for part in each] for each in noisy_parts]
    # quantiles last, and of shown groups only: a hidden group has nothing drawn
    noisy_shown += [_draw_quantiles(each, plan, exact_table, shown) for each in plan.quantiles]
    keys = [tuple(exact_table.keys[group]) for group in shown]
    # only of the table that holds them: where groups come in several tables, one of them has the totals
    noisy_totals = tuple(
        tuple(number for (number,) in _add_noise(each, plan, exact_table, once=True))
        for each in (plan.totals if exact_table.totals else ())
    )
    if plan.threshold is None:  # the order of public keys is public, and stays
        noisy_levels = tuple(_add_noise_to_level(each, plan, exact_table) for each in plan.levels)
        noisy_cells = tuple(tuple(map(tuple, each)) for each in noisy_shown)
        return NoisyTable(tuple(keys), noisy_cells, noisy_totals, noisy_levels)
    return NoisyTable.sorted_by_key(keys, noisy_shown, noisy_totals)


def release_integers(exact: ExactIntegers, event: GaussianNoise) -> list[int]:
    """Return the integers of one round with fresh Gaussian noise of the event's sigma on each.

    Privacy: the event hides any move of the root of its `sensitivity_squared` in L2; it is refused where one unit can
    move the integers farther, or where it claims that only one of several can move (docs/proofs/rounds.md).
    """
    noisy: list[int] = release_vector(exact, event).tolist()
    return noisy


def release_vector(exact: ExactIntegers, event: GaussianNoise) -> Wholes:
    """Return the integers of one round, as an array, with fresh Gaussian noise of the event's sigma on each.

    Privacy: as of `release_integers`.
    """
    if event.scalar and len(exact) > 1:
        raise InvalidParameter("this event is for one number, and a round has several\nhint: reserve it as a vector")
    if event.sensitivity_squared < exact.moves_squared:
        raise InvalidParameter("one unit can move this round farther than its event hides\nhint: reserve a wider event")
    noise = DiscreteGaussian(event.sigma).sample(len(exact))
    return combined((1, exact.values), (1, noise))


def release_choice(exact: ExactIntegers, mechanism: NoisyMax) -> int:
    """Return which of several sums is about the largest, and nothing else of them.

    Privacy: report noisy max at the mechanism's epsilon; refused where one unit can move a sum farther than the
    mechanism hides (docs/proofs/selection.md).
    """
    if mechanism.terms.sensitivity**2 * len(exact) < exact.moves_squared:
        raise InvalidParameter("one unit can move these sums farther than the choice hides\nhint: reserve a wider one")
    index: int = mechanism.release(exact.values.tolist())
    return index


def _add_noise(each: NoisyRelease, plan: Plan, exact_table: ExactTable, *, once: bool = False) -> list[list[int]]:
    """Return each part with fresh noise on every group, or `once` on its total: [part][group].

    Privacy: one draw for each number; none is used twice.
    """
    groups = 1 if once else len(exact_table)
    noise = _sampler(each).sample(groups * len(each.parts))
    return [
        combined((1, exact_table.part_values(part, plan)), (1, noise[index * groups : (index + 1) * groups])).tolist()
        for index, part in enumerate(each.parts)
    ]


def _add_noise_to_level(level: PlannedLevel, plan: Plan, exact_table: ExactTable) -> NoisyTable:
    """Return the totals of a level, each part with fresh noise.

    Privacy: the noise is made for all that one unit may add to the groups together, in L1; a total moves by no more
    (docs/proofs/totals.md). All groups must be in the one exact table.
    """
    noisy_parts = []
    keys: list[Key] = []
    for each in level.releases:
        noisy_release = []
        for part in each.parts:
            keys, exact_totals = added_to_levels(level.kept, exact_table.keys, exact_table.part_values(part, plan))
            noise = _sampler(each).sample(len(keys))
            noisy_release.append(tuple(combined((1, exact_totals), (1, noise)).tolist()))
        noisy_parts.append(tuple(noisy_release))
    return NoisyTable(tuple(keys), tuple(noisy_parts))


def _sampler(each: NoisyRelease) -> IntegerNoise:
    """Return the exact sampler of the plan's distribution, on the integers."""
    law = each.law
    if isinstance(law, StaircaseLaw):
        return DiscreteStaircase(law)
    return DiscreteLaplace(law.scale) if isinstance(law, LaplaceLaw) else DiscreteGaussian(law.sigma)


def _shown_groups(plan: Plan, noisy_parts: list[list[list[int]]], groups: int) -> list[int]:
    """Return the indices of the groups that are shown: all if keys are public, else those that reach the threshold.

    Privacy: the noisy count of units decides, never the exact one (docs/proofs/sensitivity.md).
    """
    if plan.threshold is None:
        return list(range(groups))
    noisy_counts = noisy_parts[plan.threshold.release][0]
    return [group for group in range(groups) if noisy_counts[group] >= plan.threshold.least]


def _draw_quantiles(draw: QuantileDraw, plan: Plan, exact_table: ExactTable, shown: list[int]) -> list[list[int]]:
    """Return for each fraction the low end, the quantile and the high end of every shown group.

    They are in steps above the low end of the column's range.

    Privacy: the exponential mechanism, at the epsilon of the plan for each level and each interval
    (docs/proofs/quantiles.md).
    """
    replace = plan.neighbours == "replace"
    per_unit = draw.per_unit(plan.rows_per_unit)
    rate, ends_rate = (Rate(each, per_unit, replace) for each in (draw.epsilon, draw.ends_epsilon))
    targets = tuple(Target(fraction, inside, reach) for fraction, inside, reach in draw.targets)
    exact_values = exact_table.values[draw.column].only(shown)
    noisy_drawn = draw_quantiles(
        exact_values.steps,
        targets,
        starts=exact_values.starts,
        ends=exact_values.ends,
        height=plan.measured[draw.column].height,
        rate=rate,
        ends_rate=ends_rate,
        exact_weights=exact_values.weights,
    )
    noisy_steps: list[list[int]] = noisy_drawn.reshape(3 * len(targets), len(shown)).tolist()
    return noisy_steps


def _choose_keys(choice: Choice, exact_table: ExactTable) -> tuple[Key, ...]:
    """Return the best keys in order.

    Privacy: permute-and-flip or the exponential mechanism, at the plan's epsilon; the counts stay secret
    (docs/proofs/selection.md).
    """
    top = TopK(k=choice.best, epsilon=choice.epsilon, monotone=choice.monotone, by=choice.by)
    exact_counts = list(exact_table.sums[UNITS])
    return tuple(tuple(exact_table.keys[index]) for index in top.release(exact_counts))
