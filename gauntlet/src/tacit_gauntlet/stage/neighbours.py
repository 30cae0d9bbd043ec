"""Adversarial people: the units whose coming or going has shown exact sums to move too far, and a crowd to join."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tacit.asking import Question, Table
from tacit.query.frame import count, count_units, mean
from tacit.query.frame import sum as sum_of
from tacit_gauntlet.stage.table import protected

Row = tuple[Any, ...]  # (id, g, x, y, z)

NAN, INF = float("nan"), float("inf")
SCHEMA = pa.schema(
    [("id", pa.int64()), ("g", pa.string()), ("x", pa.int64()), ("y", pa.float64()), ("z", pa.decimal128(20, 2))]
)
DECLARED = {"x": {"between": (-3, 7)}, "y": {"between": (-5, 10)}, "z": {"between": (0, 100)}}
NEWCOMER = 10**6


def crowd(people: int = 12) -> list[Row]:
    """Return the rows of some people: over their bounds, tied, repeated, with values missing."""
    found: list[Row] = []
    for person in range(people):
        for turn in range(1 + person % 6):
            group = "abcdef"[(person * turn + turn) % 6]
            x = None if (person + turn) % 5 == 0 else (person * 7 + turn * 3) % 12 - 4
            y = (person - 5) * 1.37 * (turn % 3)
            found.append((person, group, x, y, Decimal(person * turn) / 4))
            if turn % 2:
                found.append(found[-1])  # the same row twice
    return found


def one_person(rows: Sequence[Row]) -> list[Row]:
    """Return rows as those of one newcomer."""
    return [(NEWCOMER, *row[1:]) for row in rows]


def newcomers() -> dict[str, list[Row]]:
    """Return one person's rows for every way such a person has mattered."""
    plain: Row = (0, "a", 1, 1.0, Decimal(1))
    limits = [(0, "a", 2**63 - 1, 1e308, Decimal("9" * 18)), (0, "b", -(2**63), -1e308, Decimal("-" + "9" * 18))]
    return {
        "one plain row": one_person([plain]),
        "a key nobody has": one_person([(0, "only me", 1, 1.0, None)]),
        "heavy, across groups": one_person([(0, f"g{n % 50}", 7, 10.0, Decimal(100)) for n in range(200)]),
        "heavy, in one group": one_person([(0, "a", 7, 10.0, Decimal(100))] * 200),
        "lowest values": one_person([(0, "a", -3, -5.0, Decimal(0)), (0, "b", -3, -5.0, Decimal(0))] * 3),
        "beyond every range": one_person(limits * 3),
        "nan and infinity": one_person([(0, "a", None, NAN, None), (0, "a", 0, INF, None), (0, "b", 0, -INF, None)]),
        "minus zero and subnormal": one_person([(0, "a", 0, -0.0, Decimal(0)), (0, "a", 0, 5e-324, Decimal(0))]),
        "all null": one_person([(0, None, None, None, None)] * 4),
        "first and last key": one_person([(0, "", 1, 1.0, None), (0, "\U0010ffff", 1, 1.0, None)]),
        "makes a group even": one_person([(0, "f", 1, 1.0, Decimal(1))]),
        "the crowd's own rows": one_person(crowd()[:9]),
    }


def as_table(rows: Sequence[Row]) -> pa.Table:
    """Return rows as an Arrow table."""
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def asked_of(rows: Sequence[Row], **declared: Any) -> Table:
    """Return the rows as a protected table."""
    return protected(as_table(rows), **({"columns": DECLARED} | declared))


def everything(table: Table) -> Question:
    """Return one question with every kind of part: missing, below, above, total, counted and units."""
    return table.group_by("g").agg(
        n=count(), x_mean=mean("x"), y_sum=sum_of("y"), z_count=count("z"), people=count_units()
    )


def rows_alone(table: Table) -> Question:
    """Return a question of rows and of units alone, for public keys."""
    return table.group_by("g", keys=["a", "b", "only me", None, "nowhere"]).agg(n=count(), people=count_units())


def whole_table(table: Table) -> Question:
    """Return a question without groups."""
    return table.agg(n=count(), x_count=count("x"), y_mean=mean("y"), z_sum=sum_of("z"))


QUESTIONS = (everything, rows_alone, whole_table)
