"""Published bugs of subqueries under differential privacy, planted: each must be noticed by the case it names."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import original, planted


@mutant(
    "floats of a unit added in any order",
    killed_by="S50",
    published="Casacuberta and others 2022: float sums depend on the order of rows, so on everybody's",
)
@contextmanager
def float_sums() -> Iterator[None]:
    """A unit's floats are added up as the engine does."""
    with planted("whole steps of a unit", lambda value: value), planted("sum of a unit", lambda value, *_: value.sum()):
        yield


@mutant("rows of nobody become a unit's", killed_by="S50", published="GROUP BY makes one group of all NULLs")
@contextmanager
def null_is_a_unit() -> Iterator[None]:
    """Rows whose unit is NULL are grouped as one unit."""
    with planted("belongs_to_someone", lambda unit: unit.notnull() | unit.isnull()):
        yield


@mutant("sums on disk forget a limb", killed_by="S50", published="two implementations of one sum drift apart")
@contextmanager
def limb_forgotten() -> Iterator[None]:
    """Sums on disk leave out the highest part of a word."""
    with planted("limbs of a word", lambda word: original("limbs of a word")(word % 2**42)):
        yield


@mutant(
    "grouped without the unit",
    killed_by="Q50",
    published="Kotsogiannis and others 2019: a subquery that mixes people has no bound",
)
@contextmanager
def group_without_unit() -> Iterator[None]:
    """A subquery may group by anything; the unit is added in silence to none of it."""
    keys = original("keys of a subquery")

    def careless(self: Any) -> Any:
        real = self.rows.is_unit
        object.__setattr__(self.rows, "is_unit", lambda _: True)
        try:
            return keys(self)
        finally:
            object.__setattr__(self.rows, "is_unit", real)

    with planted("keys of a subquery", careless):
        yield


@mutant("LIMIT inside left out", killed_by="Q50", published="clauses that are parsed and not looked at")
@contextmanager
def limit_inside() -> Iterator[None]:
    """Clauses of a subquery that mix people are read and ignored."""
    with planted("refuse_mixing", lambda *_: None):
        yield
