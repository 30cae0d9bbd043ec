"""Published bugs of tables with totals, planted: each must be noticed by the case it names."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import original, planted


@mutant(
    "totals charged once for all levels",
    killed_by="Q55",
    published="Abowd and others 2022: every level of a release takes its share of the loss",
)
@contextmanager
def levels_uncharged() -> Iterator[None]:
    """The events of the cells stand for all levels."""

    def events(self: Any) -> Any:
        return tuple(release.event for release in (*self.releases, *self.totals))

    with planted("Plan.events", property(events)):
        yield


@mutant(
    "levels at a share above the charge",
    killed_by="Q55",
    published="composition forgotten: k answers at epsilon each",
)
@contextmanager
def shares_above() -> Iterator[None]:
    """Each level gets all of the loss."""
    with planted("shares of levels", lambda weights: [Fraction(1)] * len(weights)):
        yield


@mutant(
    "a total moves like one of its cells",
    killed_by="Q55",
    published="Kotsogiannis and others 2019: the sensitivity of a sum taken for that of a group in it",
)
@contextmanager
def total_as_cell() -> Iterator[None]:
    """A level's sensitivity is that of a single row."""

    def of_cell(groups: Any) -> Any:
        return replace(groups, l1=1, l2_squared=1, linf=1)

    with planted("sensitivity of a level", of_cell):
        yield


@mutant(
    "a fit that sees exact totals",
    killed_by="Q55",
    published="invariants of the 2020 census in the United States: totals published as they are",
)
@contextmanager
def exact_totals() -> Iterator[None]:
    """A level is released without noise."""
    noisy = original("noise of a level")

    def released(level: Any, plan: Any, exact_table: Any) -> Any:
        found = noisy(level, plan, exact_table)
        sums = original("sums of a level")
        parts = tuple(
            tuple(
                tuple(sums(level.kept, exact_table.keys, exact_table.part_values(part, plan))[1].tolist())
                for part in each.parts
            )
            for each in level.releases
        )
        return replace(found, parts=parts)

    with planted("noise of a level", released):
        yield
