"""Votes: in quantiles of people the rows of one unit weigh no more together than the draws are made for."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.table import exact_table, plan_of, protected

Row = tuple[int, str | None, int | None]
GROUPS = ["a", "b", "c", None]
CROWD: list[Row] = [(n % 7, GROUPS[n * n % 4], n * 5 % 11) for n in range(40)]
NEWCOMERS: dict[str, list[Row]] = {
    "one row": [(99, "a", 3)],
    "many rows in one group": [(99, "b", n % 11) for n in range(500)],
    "a row in every group": [(99, group, 10) for group in GROUPS],
    "many rows in every group": [(99, group, n % 3) for group in GROUPS for n in range(70)],
    "equal values": [(99, "c", 5)] * 33,
    "values that are NULL": [(99, "a", None), (99, "b", None), (99, "c", 1)],
    "values outside the range": [(99, "a", -(2**62)), (99, "b", 2**62)],
}


def votes(rows: Sequence[Row], **declared: Any) -> tuple[Counter[Any], int]:
    """Return what each value weighs in each group, and how much one unit may weigh."""
    data = pa.table(
        {
            "id": pa.array([row[0] for row in rows], pa.int64()),
            "g": pa.array([row[1] for row in rows], pa.string()),
            "x": pa.array([row[2] for row in rows], pa.int64()),
        }
    )
    table = protected(data, columns={"x": {"between": (0, 10)}}, **declared)
    question = table.group_by("g", keys=GROUPS).median("x", of="people")
    plan, exact = plan_of(question), exact_table(question)
    (draw,) = plan.quantiles
    values, found = exact.values[draw.column], Counter[Any]()
    for at, key in enumerate(exact.keys):
        here = slice(values.starts[at], values.ends[at])
        weights = [1] * len(values.steps[here]) if values.weights is None else values.weights[here].tolist()
        for step, weight in zip(values.steps[here].tolist(), weights, strict=True):
            found[key, step] += weight
    return found, draw.per_unit(plan.rows_per_unit)


@case("S40", title="one unit has one vote in quantiles of people, in all its groups and rows", feature="quantile")
def one_vote(size: Size) -> Evidence:
    broken, most = [], 0
    bounds = [(None, None), (None, 2)] if size == "quick" else [(None, None), (None, 1), (None, 2), (3, 2)]
    for rows_most, groups_most in bounds:
        declared = {"rows_per_unit": rows_most, "groups_per_unit": groups_most}
        crowd, _ = votes(CROWD, **declared)
        for name, newcomer in NEWCOMERS.items():
            together, allowed = votes([*CROWD, *newcomer], **declared)
            own = Counter({place: together[place] - crowd[place] for place in together | crowd})
            moved = sum(abs(weight) for weight in own.values())
            most = max(most, moved)
            if moved > allowed:
                broken.append(f"{name}, bounds {rows_most} and {groups_most}: {moved} of {allowed}")
            if any(weight < 0 for weight in own.values()):
                broken.append(f"{name}: others weigh less")
    return Evidence(not broken and most > 0, {"most moved": most, "broken": broken[:5]})
