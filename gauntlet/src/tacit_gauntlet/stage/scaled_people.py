"""People whose vectors of cells are long, tied, huge, of both signs or nothing at all; and vectors to scale them by."""

from collections.abc import Mapping, Sequence

from tacit_gauntlet.stage.neighbours import INF, NAN, Row
from tacit_gauntlet.stage.scaling import CELL_MOST, GRID_MIDDLE, Vector
from tacit_gauntlet.stage.table import Cells

_HUGE = 2**63 - 1
# Vectors about a centre have it this many steps above 0.
CENTRE = 3
_CENTRE = GRID_MIDDLE + CENTRE

# Together they have every kind, caps of one step and of the most that there may be, shifts up, down and out of sight.
VECTORS: tuple[Vector, ...] = (
    Vector("rows", cap=1, totals="absolute", tail=1),
    Vector("rows", shift=15, cap=1000, totals="absolute", tail=7, tail_shift=12),
    Vector("units", shift=10, cap=1 << 10),
    Vector("counted", 0, shift=4, cap=37, totals="absolute", tail=30),
    Vector("counted", 0, shift=18, cap=(1 << 20) + 1, totals="absolute", tail=9, tail_shift=16),
    Vector("centred", 0, centre=_CENTRE, shift=17, cap=1 << 30, totals="signed", tail=1 << 20, tail_shift=18),
    Vector("centred", 0, centre=_CENTRE, shift=30, cap=1000, totals="absolute", tail=1 << 30),
    Vector("centred", 1, centre=_CENTRE, shift=-3, cap=1 << 20, totals="signed", tail=1),
    Vector("centred", 1, centre=_CENTRE, shift=3, cap=1 << 20, totals="absolute", tail=1 << 20),
    Vector("centred", 2, shift=-6, cap=1 << 20, totals="absolute", tail=1 << 20),
)
# Those of a mean have one weight, and so have sums and squares of a variance.
TOGETHER: tuple[tuple[int, ...], ...] = ((0,), (1,), (2,), (3,), (4, 5), (6,), (7,), (8, 9))
# The kernel leaves these to SQL: the greatest caps and tails that there may be.
BEYOND_THE_KERNEL: tuple[Vector, ...] = (
    Vector("centred", 0, centre=_CENTRE, shift=17, cap=CELL_MOST, totals="signed", tail=1 << 20, tail_shift=18),
    Vector("centred", 0, centre=_CENTRE, shift=38, cap=CELL_MOST - 1, totals="absolute", tail=1 << 62),
)
# What a quick look at one person at a time is about: rows, values of both signs, and numbers that are too large.
FEW: tuple[Vector, ...] = (VECTORS[0], VECTORS[5], VECTORS[6])

Person = Sequence[tuple[str, int | None, float | None]]  # (g, x, y) of each row

PEOPLE: Mapping[str, Person] = {
    "one row": [("a", 1, 1.0)],
    "one row in each of two cells": [(g, 4, 0.25) for g in "ab"],
    "one row in each of three cells": [(g, 4, 0.25) for g in "abc"],
    "many rows in one cell": [("a", 8, -2.0)] * 300,
    "many rows in many cells": [(f"g{n % 90}", n % 11, n / 7) for n in range(400)],
    "huge in one cell": [("a", _HUGE, 1e308)] * 3,
    "huge, of both signs": [("a", _HUGE, INF), ("b", -_HUGE, -INF), ("c", -_HUGE, INF)],
    "huge and cancelling": [("a", _HUGE, 1e308), ("a", -_HUGE, -1e308), ("b", 5, 1.0)],
    "huge beside tiny": [("a", _HUGE, 1e300), *[(f"g{n}", CENTRE + 1, 1.25) for n in range(40)]],
    "tied in all cells": [(f"g{n}", (1 << 21) - 1 + CENTRE, 1e6) for n in range(16)],
    "missing values": [("a", None, NAN), ("b", None, None), ("b", None, 1.0), ("c", None, NAN)],
    "nothing about the centre": [("a", CENTRE, CENTRE / 4), ("b", CENTRE, CENTRE / 4)],
}


def rows_of(person: Person, unit: int, *, apart: str = "") -> list[Row]:
    """Return a person's rows; `apart` begins every key, so that no other person is in a group of theirs."""
    return [(unit, f"{apart}{g}", x, y, None) for g, x, y in person]


def apart_from_each_other() -> list[Row]:
    """Return the rows of all of them, each in groups where nobody else is."""
    return [row for unit, name in enumerate(PEOPLE) for row in rows_of(PEOPLE[name], unit, apart=f"{name}/")]


def own_cells(cells: Cells, name: str) -> Cells:
    """Return one person's cells among those of people apart, by their groups' own keys."""
    begin = f"{name}/"
    return {(key.removeprefix(begin), *rest): n for (key, *rest), n in cells.items() if key.startswith(begin)}
