"""Bugs of scaling and of its totals, planted in our engine and planner: each lets one unit move more than its cap."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from tacit_gauntlet.frame.mutant import Plant, mutant
from tacit_gauntlet.stage.table import in_sql
from tacit_gauntlet.targets import original, planted


def bug(name: str, *, killed_by: str, published: str, swap: Callable[[], dict[str, Any]]) -> None:
    """Register a bug of the path in SQL; `swap` says what is put in the place of which seams when it is planted."""

    @contextmanager
    def plant() -> Iterator[None]:
        with ExitStack() as stack:
            stack.enter_context(in_sql())
            for seam, replacement in swap().items():
                stack.enter_context(planted(seam, replacement))
            yield

    register: Callable[[Plant], Plant] = mutant(name, killed_by=killed_by, published=published)
    register(plant)


# ---- Weights and lengths.


def _rounded_up(scaling: Any, lengths: Any) -> Any:
    whole = original("weights of units")(scaling, lengths)
    return whole + (whole < original("ONE"))


def _root_below(sums: Any) -> Any:
    return np.maximum(original("roots of squares")(sums) - 1, 1)


def _square_below(sizes: Any, coarse: Any) -> Any:
    short = sizes >> coarse
    return short * short


def _by_the_largest_cell(cells: Any, indexes: Any, _norm: int, held: Any) -> Any:
    lengths = held(len(indexes))
    largest = original("sums of units")(cells, lambda block: np.abs(block.fine).view(np.uint64), np.maximum)
    for _, tops in largest:
        lengths.add(tops.view(np.int64))
    return lengths


class _LastAsTheOneBefore:
    """Lengths of units, in which the last vector has the length of the one before it."""

    def __init__(self, lengths: Any) -> None:
        self._lengths = lengths

    def of(self, units: Any) -> Any:
        found = self._lengths.of(units).copy()
        found[:, -1:] = found[:, -2:-1] if found.shape[1] > 1 else found[:, -1:]
        return found


def _as_long_as_its_sums(*given: Any) -> Any:
    """The last vector, of squares, is taken to be as long as the sums before it."""
    return _LastAsTheOneBefore(original("lengths of units")(*given))


def _by_squares_alone(cells: Any, indexes: Any, _norm: int, held: Any) -> Any:
    return original("lengths of units")(cells, indexes, 2, held)


def _by_the_table(_scaling: Any, lengths: Any) -> Any:
    """The cap is the mean length of the table's own units."""
    usual, one = np.floor(lengths.mean(axis=0)), original("ONE")
    return np.where(lengths > usual, usual * one // np.maximum(lengths, 1), one).astype(np.int64)


def _about_the_mean(vector: Any, rows: Any) -> Any:
    """The centre is the mean of the table's own values."""
    if vector.kind != "centred":
        return original("row_steps")(vector, rows)
    sql, value = original("typed SQL"), rows[f"x{vector.column}"]
    return (value - value.mean().over(sql.window()).floor().cast("int64")).fill_null(0)


bug(
    "a weight rounded up",
    killed_by="S32",
    published="rounding half up, or by the engine's own division: a vector just beyond the cap stays beyond it",
    swap=lambda: {"weights of units": _rounded_up},
)
bug(
    "a length rounded down",
    killed_by="S32",
    published="an L2 norm cut to whole numbers, so that two cells of 1 have the length 1",
    swap=lambda: {"roots of squares": _root_below},
)
bug(
    "squares of digits cut off",
    killed_by="S32",
    published="large numbers squared in low precision, each rounded down",
    swap=lambda: {"squares of sizes": _square_below},
)
bug(
    "weighed by the largest cell",
    killed_by="S32",
    published="each cell clipped by itself, although a unit has many: the norm of the noise is forgotten",
    swap=lambda: {"lengths of units": _by_the_largest_cell},
)
bug(
    "scaled by L2 under Laplace noise",
    killed_by="S32",
    published="one clipping norm for every kind of noise",
    swap=lambda: {"lengths of units": _by_squares_alone},
)
bug(
    "a replaced unit of both signs counted once",
    killed_by="S32",
    published="sensitivity of a signed vector under replacement taken for that of a count: √2 in place of 2",
    swap=lambda: {
        "sensitivity_of_vector": lambda vector, **words: original("sensitivity_of_vector")(
            replace(vector, kind="rows", column=None), **words
        )
    },
)
bug(
    "one group of a unit taken for the only group",
    killed_by="S42",
    published="a bound of one group a unit makes a histogram one number: a replaced unit then leaves no group behind",
    swap=lambda: {
        "sensitivity_of_vector": lambda vector, **words: original("sensitivity_of_vector")(
            vector, **(words | {"cells": 1})
        )
    },
)
bug(
    "groups left out of a cap given by hand",
    killed_by="S02",
    published="noise made for a unit's rows in one group, though it may be in two",
    swap=lambda: {
        "sensitivity_of_vector": lambda vector, **words: original("sensitivity_of_vector")(
            replace(vector, cap=vector.cap // 2), **words
        )
    },
)
bug(
    "squares bounded by their sums",
    killed_by="S32",
    published="a variance released under the clipping of its mean: squares of one person are not clipped",
    swap=lambda: {"lengths of units": _as_long_as_its_sums},
)
bug(
    "a cap read off the table",
    killed_by="S33",
    published="clipping norms chosen as a quantile of the data, without noise",
    swap=lambda: {"weights of units": _by_the_table},
)
bug(
    "a centre read off rows",
    killed_by="S33",
    published="values centred by the table's own mean before they are clipped",
    swap=lambda: {"row_steps": _about_the_mean},
)


# ---- Totals.


def _uncut(numbers: Any, vector: Any) -> Any:
    """Return a total in its units, as it is."""
    return original("towards zero")(numbers, vector.tail_shift)


def _each_within_the_tail(left: Any, taken: Any, vector: Any) -> Any:
    """Kept and cut may each be as large as the tail cap: together they are twice as large."""
    both = original("kept_and_cut")
    return both(left, taken * 0, vector)[0], both(taken, left * 0, vector)[0]


def _cut_as_it_is(left: Any, taken: Any, vector: Any) -> Any:
    return original("kept_and_cut")(left, taken, vector)[0], _uncut(taken, vector)


def _kept_as_it_is(left: Any, taken: Any, vector: Any) -> Any:
    return _uncut(left, vector), original("kept_and_cut")(left, taken, vector)[1]


bug(
    "cut not clipped",
    killed_by="S34",
    published="what clipping removed is released beside the clipped sum, and is itself not clipped",
    swap=lambda: {"kept_and_cut": _cut_as_it_is},
)
bug(
    "kept not clipped",
    killed_by="S34",
    published="a sum over many capped groups taken to be capped itself",
    swap=lambda: {"kept_and_cut": _kept_as_it_is},
)
bug(
    "kept and cut clipped each by itself",
    killed_by="S34",
    published="two sums in one release, each within its bound: together they are within twice the bound",
    swap=lambda: {"kept_and_cut": _each_within_the_tail},
)
bug(
    "totals' sensitivity of one of the two",
    killed_by="S34",
    published="a replaced unit may empty one total and fill the other: only one of them was counted",
    swap=lambda: {
        "sensitivity_of_totals": lambda vector, **_: original("sensitivity_of_totals")(vector, replaced=False)
    },
)
