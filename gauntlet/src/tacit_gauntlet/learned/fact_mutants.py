"""Bugs of what is learned: a person counted in two bins, noise of the wrong share, facts that are trusted."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.stage.table import in_sql
from tacit_gauntlet.targets import original, planted


@mutant(
    "a bin for each cell of a person",
    killed_by="S35",
    published="a histogram of contributions counted by rows or groups, and charged as if by people",
)
@contextmanager
def bins_by_cell() -> Iterator[None]:
    def each_a_person(*args: Any, **words: Any) -> Any:
        cells = original("cells of profiles")(*args, **words)
        return cells.mutate(**{original("UNIT"): original("ibis").row_number()})

    with in_sql(), planted("cells of profiles", each_a_person):
        yield


@mutant(
    "each profile's noise at the whole share",
    killed_by="S35",
    published="several histograms of the same people, each with the noise of all of epsilon",
)
@contextmanager
def whole_share() -> Iterator[None]:
    def too_narrow(place: int, how_far: Any, epsilon: Any, whole: Any) -> Any:
        del epsilon
        return original("people of a profile")(place, how_far, whole, whole)

    with planted("people of a profile", too_narrow):
        yield


@mutant(
    "a replaced person leaves no bin",
    killed_by="S35",
    published="sensitivity 1 of a histogram under replacement, where one bin loses and another wins",
)
@contextmanager
def moves_once() -> Iterator[None]:
    with planted("Grouping.moves", property(lambda _: 1)):
        yield


@mutant(
    "noise for what people are believed to have",
    killed_by="S36",
    published="bounds estimated from the data set the noise, and nothing holds a unit to them",
)
@contextmanager
def noise_for_most() -> Iterator[None]:
    def believed(vector: Any, **words: Any) -> Any:
        share = 1.0 if vector.outlook is None else min(vector.outlook.kept, 0.99)
        return original("sensitivity_of_vector")(replace(vector, cap=max(1, int(vector.cap * share))), **words)

    with planted("sensitivity_of_vector", believed):
        yield


@mutant(
    "a range that was learned is not clamped to",
    killed_by="S36",
    published="learned bounds taken to hold for every row, so that clamping is left out",
)
@contextmanager
def range_believed() -> Iterator[None]:
    clamped = original("clamped")

    def hardly(value: Any, low: float, high: float) -> Any:
        return clamped(value, low - 3 * (high - low), high + 3 * (high - low))

    with planted("clamped", hardly):
        yield
