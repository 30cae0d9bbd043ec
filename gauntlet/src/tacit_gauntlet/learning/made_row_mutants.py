"""Bugs of made-up rows: exact distances and choices, values and numbers of the data, and rows that weigh one."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import original, planted


@mutant(
    "distances of pairs without noise", killed_by="M23", published="scores of pairs read from the data to choose by"
)
@contextmanager
def exact_distances() -> Iterator[None]:
    with planted("Rounds.distances", lambda self, asked: self._rows.distances(asked).values):
        yield


@mutant("pairs chosen by exact distances", killed_by="M02", published="correlations of the data that choose the tables")
@contextmanager
def pairs_by_exact_distances() -> Iterator[None]:
    seen: list[Any] = []

    def distances(self: Any, asked: Any) -> Any:
        seen.append(self._rows.distances(asked).values / (1 << 24))
        return original("Rounds.distances")(self, asked)

    def chosen(candidates: Any, *always: Any) -> Any:
        exact = dict(zip(candidates.distances, seen[-1].tolist(), strict=True))
        return original("choice of pairs")(replace(candidates, distances=exact, distance_sigma=0.0), *always)

    with planted("Rounds.distances", distances), planted("choice of pairs", chosen):
        yield


@mutant(
    "bins from the data's ends", killed_by="M02", published="synthesizers that bin between the least and greatest value"
)
@contextmanager
def bins_between_ends() -> Iterator[None]:
    def counts(self: Any, columns: Any = None) -> Any:
        noisy = original("Rounds.counts")(self, columns)
        exact = np.split(self._rows.counts(columns).values, np.cumsum([len(each) for each in noisy])[:-1])
        for each, true in zip(noisy, exact, strict=True):
            held = np.flatnonzero(true)
            if len(held):
                each[: held[0]], each[held[-1] + 1 :] = 0, 0
        return noisy

    with planted("Rounds.counts", counts):
        yield


@mutant("as many rows as are secret", killed_by="M22", published="SmartNoise's MST makes len(data) rows by default")
@contextmanager
def exact_people() -> Iterator[None]:
    seen: list[float] = [0.0]

    def counts(self: Any, columns: Any = None) -> Any:
        exact = self._rows.counts([0]).values
        seen[0] = float(exact.sum()) / (1 << 24)
        return original("Rounds.counts")(self, columns)

    with planted("Rounds.counts", counts), planted("people of made-up rows", property(lambda _: max(seen[0], 1.0))):
        yield


@mutant("an unlisted value is made", killed_by="M22", published="synthesizers that take categories from the data")
@contextmanager
def unlisted_values() -> Iterator[None]:
    def values(self: Any, *rest: Any) -> Any:
        made = original("values of made-up rows")(self, *rest)
        if self.type != "text":
            return made
        return pa.array(["elsewhere" if at % 7 == 0 else each for at, each in enumerate(made.to_pylist())], pa.string())

    with planted("values of made-up rows", values):
        yield


@mutant(
    "every row weighs one in pairs",
    killed_by="M03",
    published="made-up rows of visits that protect a visit, not a person",
)
@contextmanager
def rows_that_weigh_one() -> Iterator[None]:
    def add(block: Any, *rest: Any) -> None:
        original("counts by pairs")(replace(block, rows_of_unit=None), *rest)

    with planted("counts by pairs", add):
        yield


@mutant("the row before is anybody's", killed_by="M03", published="window functions without PARTITION BY the person")
@contextmanager
def rows_before_of_others() -> Iterator[None]:
    def beside(plan: Any, rows: Any) -> Any:
        return original("rows before")(plan, rows.mutate(unit=rows["unit"].hash() * 0))

    with planted("rows before", beside):
        yield
