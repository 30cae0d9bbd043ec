"""Attacks on variance, covariance, quantiles, rankings and counts of different values: one unit, both ways."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tacit import correlation, count, count_distinct, covariance, mean, variance
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.neighbours import Row, asked_of, crowd, newcomers, one_person
from tacit_gauntlet.stage.quantiles import Aim, Reach, drawn_again, draws_of, prior_of, rungs
from tacit_gauntlet.stage.statistic import log_ratio_lower
from tacit_gauntlet.stage.table import Cells, Question, Table, distance, exact_parts, plan_of

KEYS = ["a", "b", "c", "only me", None]
EPSILON = 1


def moments(table: Table) -> Question:
    """Return a question with second moments of one column and of two, beside COUNT(*) and a mean."""
    return table.group_by("g", keys=KEYS).agg(
        n=count(), v=variance("x"), m=mean("x"), c=covariance("x", "y"), r=correlation("y", "z")
    )


def values_and_places(table: Table) -> Question:
    """Return a question of different values, and of units behind them."""
    return table.group_by("g", keys=KEYS).agg(d=count_distinct("x", per_unit=2), e=count_distinct("z", per_unit=1))


@case("S18", title="one unit moves second moments and counts of different values as declared", feature="engine")
def second_moments(size: Size) -> Evidence:
    tries, broken = 0, []
    bounds = [(2, 2)] if size == "quick" else [(1, 1), (2, 2), (3, 4), (50, 1)]
    for rows_per_unit, groups_per_unit in bounds:
        limits = {"rows_per_unit": rows_per_unit, "groups_per_unit": groups_per_unit}
        for ask in (moments, values_and_places):
            found = {"nobody": exact_parts(ask(asked_of(crowd(), **limits)))}
            for name, rows in _people(size).items():
                found[name] = exact_parts(ask(asked_of(crowd() + rows, **limits)))
            for neighbours in ("add-remove", "replace"):
                plan = plan_of(ask(asked_of(crowd(), **limits, neighbours=neighbours)))
                pairs = found.items() if neighbours == "replace" else [("nobody", found["nobody"])]
                for name, before in pairs:
                    for other, after in found.items():
                        tries += 1
                        broken += _beyond(plan, before, after, f"{name} to {other} ({neighbours})")
    return Evidence(passed=not broken, details={"neighbours": tries, "moved too far": broken[:5]})


def _people(size: Size) -> dict[str, list[Row]]:
    corners = [(0, g, x, y, None) for g in "abc" for x, y in ((7, 10.0), (7, 10.0), (-3, -5.0), (7, -5.0))]
    top = [(0, g, 7, 10.0, 100) for g in "abc" for _ in range(4)]
    many = [(0, g, place, 1.0, place) for g in "abc" for place in range(-3, 8)]
    known = newcomers()
    if size == "quick":
        known = {name: known[name] for name in ("lowest values", "beyond every range")}
    return known | {"corners": one_person(corners), "the top": one_person(top), "many values": one_person(many)}


def _beyond(plan: Any, before: list[Cells], after: list[Cells], name: str) -> list[str]:
    broken = []
    for left, right, each in zip(before, after, plan.releases, strict=True):
        moved = distance(left, right)
        broken += [
            f"{name}: {norm} {getattr(moved, norm)} > {getattr(each.sensitivity, norm)}"
            for norm in ("l0", "l1", "l2_squared", "linf")
            if getattr(moved, norm) > getattr(each.sensitivity, norm)
        ]
    return broken


@case("S19", title="a quantile and the ends of its interval tell no more of one unit than epsilon", feature="release")
def quantile_loss(size: Size) -> Evidence:
    """By their laws, point by point, for a unit of three rows; and by drawing, so that nothing else is told."""
    by_law = max(_loss_by_law(fractions) for fractions in ([0.5], [0], [0, 0.5, 1]))
    drawn = _proved_by_drawing(400 if size == "quick" else 20_000)
    details = {"loss by law": round(by_law, 6), "loss proved by drawing": round(drawn, 3), "claimed": EPSILON}
    return Evidence(passed=by_law <= EPSILON + 1e-9 and drawn <= EPSILON, details=details)


def _loss_by_law(fractions: Sequence[float]) -> float:
    """Return the loss of every level of splitting and of every interval that a plan draws, one after the other."""
    question = asked_of(_people_at(2, 5), rows_per_unit=3, groups_per_unit=1).quantile("x", list(fractions))
    draws = draws_of(question, epsilon=EPSILON)
    level = max(_law_moves(partial(_law, aim=aim)) for aim in draws.aims)
    interval = [
        max(_law_moves(partial(_rung_law, middle=middle, reach=reach)) for reach in reaches for middle in range(10))
        for reaches in draws.reaches
    ]
    return draws.levels * level + sum(interval)


def _people_at(*values: int) -> list[Row]:
    """Three people at each value."""
    return [(10 * value + turn, "a", value, 1.0, None) for value in values for turn in range(3)]


def _law_moves(law: Callable[[list[int]], list[float]]) -> float:
    """Return the largest log-ratio between the laws with and without one unit's three rows."""
    here = [2, 2, 2, 5, 5, 5]
    comers = ([0, 0, 0], [9, 9, 9], [0, 9, 9], [5, 5, 5], [3])
    laws = [law(here)] + [law(sorted(here + more)) for more in comers]
    return max(abs(one - two) for other in laws[1:] for one, two in zip(laws[0], other, strict=True))


def _law(rows: list[int], *, aim: Aim) -> list[float]:
    """Return the logarithm of every point's chance on the grid 0 … 9, by definition."""
    leads = [aim.up * below - aim.down * (len(rows) - below) - aim.at for below in range(len(rows) + 1)]
    scores = []
    for point in range(10):
        low, high = leads[sum(row < point for row in rows)], leads[sum(row <= point for row in rows)]
        scores.append(aim.over * max(low, 0) + aim.under * max(-high, 0))
    return _log_chances([-float(aim.slope) * score for score in scores])


def _rung_law(rows: list[int], *, middle: int, reach: Reach) -> list[float]:
    """Return the logarithm of every rung's chance on the grid 0 … 9, around a point, by definition."""
    unit, weights, before = reach.fraction.denominator, [], -math.inf
    extreme = reach.fraction in (0, 1)
    wanted = reach.rows if extreme else unit * (1 + reach.rows)
    for place, rung in enumerate(rungs(9)):
        low, high = max(middle - rung, 0), min(middle + rung, 9)
        aimed = reach.fraction.numerator * len(rows)
        left = sum(row >= low for row in rows) if extreme else aimed - unit * sum(row < low for row in rows)
        right = sum(row <= high for row in rows) if extreme else unit * sum(row <= high for row in rows) - aimed
        held = min(
            left if low > 0 and reach.fraction > 0 else math.inf,
            right if high < 9 and reach.fraction < 1 else math.inf,
        )
        score = reach.short * max(wanted - held, 0) + reach.long * max(before - wanted, 0)
        weights.append(math.log(prior_of(place)) - float(reach.slope) * min(score, 1e6))
        before = held
    return _log_chances(weights)


def _log_chances(weights: list[float]) -> list[float]:
    most = max(weights)
    total = most + math.log(math.fsum(math.exp(weight - most) for weight in weights))
    return [weight - total for weight in weights]


def _proved_by_drawing(runs: int) -> float:
    """Return the largest loss that drawn answers prove when one unit of three rows comes."""
    comers: tuple[list[Row], ...] = (
        [],
        one_person([(0, "a", 7, 1.0, None)] * 3),
        one_person([(0, "a", -3, 1.0, None)] * 3),
    )
    here, *others = (_drawn(_people_at(2, 5) + more, runs) for more in comers)
    most = 0.0
    for there in others:
        for end in range(3):
            for point in range(-3, 8):
                hits = [sum(found[end] == point for found in side) for side in (here, there)]
                for one, two in ((0, 1), (1, 0)):
                    most = max(most, log_ratio_lower((hits[one], hits[two]), (runs, runs), alpha=1e-6 / 264))
    return most


def _drawn(rows: list[Row], runs: int) -> list[tuple[int, int, int]]:
    """Return (low end, median, high end) of x, drawn again and again from the same exact table."""
    question = asked_of(rows, rows_per_unit=3, groups_per_unit=1).median("x")
    return drawn_again(question, epsilon=EPSILON, runs=runs)
