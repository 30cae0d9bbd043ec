"""Bugs of votes: a person who counts once in each group, or once for each row, or a little more than once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import original, planted


@contextmanager
def _weighing(wrong: Callable[[Any], Any]) -> Iterator[None]:
    def weighed(*args: Any) -> Any:
        rows = original("weighed")(*args)
        return rows.mutate(weight=wrong(rows))

    with planted("weighed", weighed):
        yield


@mutant(
    "a vote in each group",
    killed_by="S40",
    published="each group's statistic taken as if a person were in that group alone",
)
@contextmanager
def vote_in_each_group() -> Iterator[None]:
    with _weighing(lambda rows: rows["weight"] * rows["groups_of_unit"]):
        yield


@mutant(
    "a vote for each row",
    killed_by="S40",
    published="item-level ranks sold as user-level ones",
)
@contextmanager
def vote_for_each_row() -> Iterator[None]:
    with _weighing(lambda rows: rows["weight"] * rows["rows_of_cell"]):
        yield


@mutant(
    "votes rounded up",
    killed_by="S40",
    published="shares of one that are rounded each by itself, and add up to more than one",
)
@contextmanager
def votes_rounded_up() -> Iterator[None]:
    with _weighing(lambda rows: rows["weight"] + 1):
        yield
