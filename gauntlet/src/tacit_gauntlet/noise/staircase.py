"""Staircase noise under attack: its law against every move it should hide, its draws, and the numbers that get it."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from tacit import count, mean
from tacit import sum as sum_of
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.accounting import pure_epsilon, staircase_of
from tacit_gauntlet.stage.balls import at_precision, ball, float_of
from tacit_gauntlet.stage.enumeration import edges_of, wrong_paths
from tacit_gauntlet.stage.samplers import staircase_draws, staircase_law, staircase_levels
from tacit_gauntlet.stage.statistic import FALSE_ALARM, chi_square_fit
from tacit_gauntlet.stage.table import Question, bounded_plan, exact_cells, plan_of, protected

LAWS = [
    staircase_law(Fraction(1), sensitivity=1, width=1),
    staircase_law(Fraction(2), sensitivity=4, width=1),
    staircase_law(Fraction(3, 2), sensitivity=5, width=3),
    staircase_law(Fraction(5), sensitivity=6, width=6),
]
CELLS_LEAST = 20
KEYS: list[tuple[str, ...]] = [(), ("g",)]
RANGES = {"x": {"between": (0, 10)}, "g": {"keys": ["a", "b", "c"]}}
QUESTIONS: list[dict[str, Any]] = [{"s": sum_of("x")}, {"n": count()}, {"s": sum_of("x"), "m": mean("x")}]


@case(
    "N20", title="a staircase tells no more of one number than epsilon, and is drawn as its law says", feature="noise"
)
def staircases_hide_one_number(size: Size) -> Evidence:
    """The largest log-ratio over every move and output; every bit string of the levels; and draws beside the masses."""
    count_drawn = 40_000 if size == "quick" else 400_000
    beyond, wrong, unlikely = [], [], []
    for law in LAWS:
        worst = _largest_loss(law)
        if worst > float(law.epsilon) + 1e-9:
            beyond.append(f"{law}: {worst:.4f}")
        wrong += [f"{law}: {path}" for path in _wrong_levels(law)[:2]]
        chance = _fit(law, count_drawn)
        if chance < float(FALSE_ALARM) / len(LAWS):
            unlikely.append(f"{law}: p = {chance:.2g}")
    details = {"beyond epsilon": beyond, "bit strings decided wrongly": wrong, "draws unlike the law": unlikely}
    return Evidence(passed=not (beyond or wrong or unlikely), details=details)


def _largest_loss(law: Any) -> float:
    """Over every move by at most the sensitivity, and every output within three levels."""
    reach = 4 * law.sensitivity
    with at_precision(128):
        logs = {x: float(law.pmf(x).log().mid()) for x in range(-reach, reach + 1)}
    moves = range(1, law.sensitivity + 1)
    return max(abs(logs[x] - logs[x - move]) for move in moves for x in range(move - reach, reach + 1))


def _wrong_levels(law: Any) -> list[Any]:
    def mass(level: int) -> Any:
        held = 2 * law.width - 1 if level == 0 else 2 * law.sensitivity
        return held * (-ball(law.epsilon * level)).exp()

    table = staircase_levels(law, 4)
    edges = edges_of(mass, range(400), depth=12, endless=True)
    return wrong_paths(lambda bits: int(table.draw(1, bits)[0]), edges, width=4, depth=12)[0]


def _fit(law: Any, drawn: int) -> float:
    values = staircase_draws(law, drawn)
    seen, expected, rest = [], [], 1.0
    for x in range(-6 * law.sensitivity, 6 * law.sensitivity + 1):
        chance = float_of(lambda x=x: law.pmf(x))  # type: ignore[misc]
        if chance * drawn >= CELLS_LEAST:
            seen.append(int(np.count_nonzero(values == x)))
            expected.append(chance * drawn)
            rest -= chance
    if rest * drawn >= CELLS_LEAST:
        seen.append(drawn - sum(seen))
        expected.append(rest * drawn)
    elif len(seen) > 1:
        expected = [each * sum(seen) / math.fsum(expected) for each in expected]
    return chi_square_fit(seen, expected)


@case("S30", title="a staircase is for what one unit moves in one number alone, as far as declared", feature="engine")
def staircases_are_for_one_number(size: Size) -> Evidence:
    """Bring one unit to tables of one and two groups a unit; compare how far the numbers move with what is charged.

    Whole tables and groups are asked about, by the plan that scales and by the one that drops.
    """
    people = 30 if size == "quick" else 300
    rows: dict[str, list[Any]] = {"id": list(range(people)), "g": ["a", "b", "c"] * (people // 3), "x": [3] * people}
    extra = [(people, group, 10) for group in "abc" for _ in range(4)]
    more = {name: values + [row[place] for row in extra] for place, (name, values) in enumerate(rows.items())}
    found: list[str] = []
    used = {"scaled": 0, "dropped": 0}
    for groups, neighbours, keys in product((1, 2), ("add-remove", "replace"), KEYS):
        bounds = {"rows_per_unit": 3, "groups_per_unit": groups, "neighbours": neighbours}
        tables = [protected(pa.table(each), columns=RANGES, **bounds) for each in (rows, more)]
        for asked in QUESTIONS:
            pair = [(each.group_by(*keys) if keys else each).agg(**asked) for each in tables]
            for plan in (plan_of(pair[0], epsilon=6), bounded_plan(pair[0], epsilon=6)):
                stairs, beyond = _moves_beyond(plan, pair)
                used["scaled" if plan.scaling else "dropped"] += stairs
                where = f"{list(asked)} by {keys} with {groups} groups, {neighbours}"
                found += [f"{where}: {moves}" for moves in beyond]
    passed = not found and min(used.values()) > 0
    return Evidence(passed=passed, details={"staircases": used, "moves beyond what is charged": found})


def _moves_beyond(plan: Any, pair: Sequence[Question]) -> tuple[int, list[list[int]]]:
    """Return how many staircases a plan has, and how far the numbers move where one of them tells more than it cost."""
    used, beyond = 0, []
    for place, each in enumerate(plan.releases):
        stairs = staircase_of(each.event)
        if stairs is not None:
            used += 1
            before, after = (exact_cells(question, plan=plan)[place] for question in pair)
            moves = [abs(after.get(cell, 0) - before.get(cell, 0)) for cell in before.keys() | after.keys()]
            told = sum(math.ceil(move / stairs[1]) for move in moves) * stairs[0]
            if told > (pure_epsilon(each.event) or 0):
                beyond.append(sorted(moves))
    return used, beyond
