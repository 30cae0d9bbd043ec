"""Bugs of keys that are found: groups without noise, rounds by a look at the rows, a WHERE's groups for all rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import original, planted


@mutant(
    "groups of the rows added to those that were found",
    killed_by="S38",
    published="keys of a release united with the distinct values of the column, so that one person's own key is shown",
)
@contextmanager
def exact_groups_too() -> Iterator[None]:
    def with_all(self: Any, wanted: Any, *args: Any, **words: Any) -> Any:
        fact, is_new = original("Session.learn one fact")(self, wanted, *args, **words)
        if wanted.plan.threshold is None:
            return fact, is_new
        exact = {key for part in self.engine.parts(wanted.plan, "5a17") for key in part.keys}
        more = tuple(sorted(exact.difference(fact.keys), key=str))
        votes, threshold = fact.parts
        return replace(fact, keys=fact.keys + more, parts=(votes + (0,) * len(more), threshold)), is_new

    with planted("Session.learn one fact", with_all):
        yield


@mutant(
    "another round by the true number of people",
    killed_by="S38",
    published="an adaptive mechanism that decides by an exact count whether to go on",
)
@contextmanager
def true_people() -> Iterator[None]:
    people: list[int] = []

    def counting(self: Any, *args: Any, **words: Any) -> Any:
        people[:] = [len(set(self.engine._source.fetch(self.engine._source.table)["id"].to_pylist()) - {None})]
        return original("Session.learn_missing")(self, *args, **words)

    def by_rows(known: Any, readings: Any) -> bool:
        true = [replace(each, people=(float(people[-1]),)) if people else each for each in readings]
        return bool(original("enough people in known groups")(known, true))

    with planted("Session.learn_missing", counting), planted("enough people in known groups", by_rows):
        yield


@mutant(
    "groups of a WHERE for the whole table",
    killed_by="S38",
    published="a cache of groups keyed by table and column, though they were found under a filter",
)
@contextmanager
def groups_of_any_rows() -> Iterator[None]:
    def without_where(self: Any, again: int) -> str:
        return str(original("KeySearch.key")(replace(self, grouping=self.grouping.of_all_rows()), again))

    with planted("KeySearch.key", without_where):
        yield
