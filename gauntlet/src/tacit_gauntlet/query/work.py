"""Attacks by size: questions whose every part is small and whose product is not, guarded by a predicate or not.

Work that a guard lets happen for one person alone shows in the time. Work that never ends holds the machine. So both
are bounded by what is public, and refused before the charge; and a row's own text has an end.
"""

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from tacit import correlation, count, count_distinct, mean, quantile
from tacit.errors import TacitError
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.engine import STEPS_MAX, TEXT_BYTES_MAX
from tacit_gauntlet.stage.table import Question, Table, exact_cells, plan_of, protected

LISTED = ", ".join(map(str, range(900)))
GUARDED = "CASE WHEN name = 'target' THEN {} ELSE '' END"
Ask = Callable[[Table], Question]


def _correlations() -> dict[str, Any]:
    return {f"c{at}": correlation("x", "x * x", between=(0, 9 + at), other_between=(0, 81)) for at in range(60)}


def _people() -> Table:
    rows = pa.table({"id": range(4), "name": ["a", "b", "target", None], "x": [1.0, 2.0, 3.0, None]})
    return protected(rows)


def _searched(text: str, pattern: str, times: int) -> Ask:
    terms = " AND ".join(f"NOT {text} LIKE '{pattern}{place:03d}%'" for place in range(times))
    return lambda table: table.where(terms).count()


def _often(table: Table) -> Question:
    asked = table
    for place in range(40):
        asked = asked.where(f"NOT name LIKE '%{'a' * 980}_b{place:03d}%'")
    return asked.count()


# Each part of these is within its own limit.
HEAVY_ROWS: dict[str, Ask] = {
    "constants that grow": _searched(f"REPLACE({GUARDED.format(repr('a' * 999))}, 'a', '{'b' * 100}')", "%a_b", 1),
    "long patterns with _, many times": _often,
    "long patterns with an escape": lambda table: table.where(f"name LIKE '%!%{'a' * 900}%' ESCAPE '!'").count(),
    "the same text in many ways": lambda table: table.where(
        " OR ".join(f"LENGTH(CONCAT(name, '{place}')) = {place}" for place in range(80))
    ).count(),
    "rows read again for each value": lambda table: table.where(
        " OR ".join(f"name LIKE '%{place}%'" for place in range(40))
    ).agg(**{f"d{place}": count_distinct(f"x + {place}", per_unit=1) for place in range(40)}),
    "parts of many aggregates": lambda table: table.agg(
        **{f"m{place}": count(f"CASE WHEN x + {place} IN ({LISTED}) THEN 1 END") for place in range(9)}
    ),
}
MANY_CELLS: dict[str, Ask] = {
    "quantiles of listed groups": lambda table: table.group_by("x", keys=range(5_000)).agg(
        **{f"q{place}": quantile("x", (place + 1) / 101, between=(0, 9)) for place in range(60)}
    ),
    "correlations of listed groups": lambda table: table.group_by("x", keys=range(1_000)).agg(**_correlations()),
    "means of listed groups": lambda table: table.group_by("x", keys=range(60_000)).agg(
        **{f"m{place}": mean("x", between=(0, 9 + place)) for place in range(100)}
    ),
    "correlations of groups that are found": lambda table: table.group_by("x").agg(**_correlations()),
}
LIGHT: dict[str, Ask] = {
    "words": lambda table: table.where(" OR ".join(f"name LIKE '%w{place}%'" for place in range(40))).count(),
    "shapes": lambda table: table.where("name LIKE 'A__-%' OR LOWER(name) LIKE '%x_y%'").count(),
    "many means": lambda table: table.group_by("x", keys=range(100)).agg(
        **{f"m{place}": mean("x", between=(0, 9 + place)) for place in range(50)}
    ),
}


def _accepted(asks: dict[str, Ask], table: Table) -> list[str]:
    """Return what is planned, and so would be charged."""
    found = []
    for name, ask in asks.items():
        try:
            plan_of(ask(table))
        except TacitError:
            continue
        found.append(name)
    return found


@case("Q23", title="what a question does for one row is bounded by what is public", feature="query")
def heavy_rows(_: Size) -> Evidence:
    table = _people()
    passed, heard = _accepted(HEAVY_ROWS, table), _accepted(LIGHT, table)
    made = _text_that_is_made()
    return Evidence(
        passed=not passed and len(heard) == len(LIGHT) and made,
        details={"steps a row at most": STEPS_MAX, "accepted": passed, "still answered": len(heard), "cut off": made},
    )


@case("Q24", title="groups times aggregates are bounded together", feature="plan")
def many_cells(_: Size) -> Evidence:
    table = _people()
    passed, heard = _accepted(MANY_CELLS, table), _accepted(LIGHT, table)
    return Evidence(
        passed=not passed and len(heard) == len(LIGHT), details={"accepted": passed, "still answered": len(heard)}
    )


def _text_that_is_made() -> bool:
    """Whether no text is longer than a text may be: neither a row's own nor one that a function makes of it."""
    sizes = [10, TEXT_BYTES_MAX // 2, TEXT_BYTES_MAX, TEXT_BYTES_MAX + 1]
    rows = pa.table({"id": range(len(sizes)), "t": ["a" * size for size in sizes]})
    lengths: dict[str, set[Any]] = {
        "LENGTH(t)": {*sizes[:3], None},
        "LENGTH(t || t)": {20, TEXT_BYTES_MAX, None},
        "LENGTH(REPLACE(t, 'a', 'bb'))": {20, TEXT_BYTES_MAX, None},
        "LENGTH(REPLACE(t, 'a', ''))": {0, None},
    }
    for text, wanted in lengths.items():
        (cells,) = exact_cells(protected(rows).derive(n=text).group_by("n").count_units())
        if {key for key, _part in cells} != wanted:
            return False
    return True
