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
        return cells.mutate(**{original("UNIT"): original("typed SQL").row_number()})

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


@mutant(
    "a threshold for one key alone",
    killed_by="S37",
    published="the threshold of partition selection made for a unit with one group, though units have many",
)
@contextmanager
def one_key() -> Iterator[None]:
    def for_one(*args: Any, **words: Any) -> Any:
        return original("threshold_for_weights")(*args, **(words | {"groups_most": 1}))

    with planted("threshold_for_weights", for_one):
        yield


@mutant(
    "a fact without a charge",
    killed_by="L25",
    published="bounds estimated from the data before the accounted part of a query begins",
)
@contextmanager
def unpaid() -> Iterator[None]:
    def for_nothing(self: Any, wanted: Any, *_: Any, **__: Any) -> Any:
        noisy = self.release(wanted.plan)
        numbers = tuple(part for each in noisy.parts for part in each)
        scales = tuple(each.scale for each in wanted.plan.releases)
        return original("Fact")(wanted.key, wanted.words, numbers, scales, wanted.plan.spend.epsilon), True

    with planted("Session.learn one fact", for_nothing):
        yield


@mutant(
    "rows are read before a fact is paid for",
    killed_by="L25",
    published="statistics gathered first, and charged once they turn out to be useful",
)
@contextmanager
def read_first() -> Iterator[None]:
    def eager(self: Any, wanted: Any, *args: Any, **words: Any) -> Any:
        self.release(wanted.plan)
        return original("Session.learn one fact")(self, wanted, *args, **words)

    with planted("Session.learn one fact", eager):
        yield


@mutant(
    "a fact for whatever unit",
    killed_by="L25",
    published="a cached bound keyed by table and column, though another column says whose rows they are",
)
@contextmanager
def any_unit() -> Iterator[None]:
    def without_unit(self: Any, *expressions: Any) -> Any:
        unit, *rest, types = original("Grouping.record")(self, *expressions)
        return *rest, tuple(each for each in types if each[0] != unit)

    with planted("Grouping.record", without_unit):
        yield


@mutant(
    "a fact for whatever type of unit",
    killed_by="L25",
    published="a cached bound that outlives a change of the ids: texts that look alike were other people as numbers",
)
@contextmanager
def any_type() -> Iterator[None]:
    def without_types(self: Any, *expressions: Any) -> Any:
        return original("Grouping.record")(self, *expressions)[:-1]

    with planted("Grouping.record", without_types):
        yield


@mutant(
    "a fact of whatever frame",
    killed_by="L25",
    published="a cache by name, though a frame of the same name holds other people",
)
@contextmanager
def any_frame() -> Iterator[None]:
    with planted("Session.key of a fact", lambda _self, about: about):
        yield


@mutant("learning though it was forbidden", killed_by="L25", published="an option that is read and not obeyed")
@contextmanager
def learns_anyway() -> Iterator[None]:
    def usual(_learn: Any) -> Any:
        return original("read_learn")(None)

    with planted("read_learn", usual):
        yield


def _saying(what: Any) -> Any:
    """Return an answering request that changes its plans by how many rows there are, as its answer is written."""

    def answered(self: Any, **words: Any) -> Any:
        source = self.payer.engine._source
        rows = source.fetch(source.table).num_rows
        show = words.pop("show")

        def shown(planned: Any, plans: Any, *more: Any) -> Any:
            return show(planned, tuple(what(plan, rows) for plan in plans), *more)

        return original("Request.answer")(self, **words, show=shown)

    return answered


@mutant(
    "how many rows there are, told in a note",
    killed_by="Q31",
    published="sizes of the data in notes, progress bars and query plans, exact and free",
)
@contextmanager
def told_in_a_note() -> Iterator[None]:
    def with_rows(plan: Any, rows: int) -> Any:
        return replace(
            plan, learned=tuple(replace(fact, words=f"{fact.words}, {rows} in all") for fact in plan.learned)
        )

    with planted("Request.answer", _saying(with_rows)):
        yield


@mutant(
    "the share that was scaled away, by exact counts",
    killed_by="Q31",
    published="the fraction of clipped records reported from the data beside a private sum",
)
@contextmanager
def exact_outlook() -> Iterator[None]:
    def with_outlook(plan: Any, rows: int) -> Any:
        vectors = tuple(
            each if each.outlook is None else replace(each, outlook=replace(each.outlook, people=float(rows)))
            for each in plan.scaling.vectors
        )
        return replace(plan, scaling=replace(plan.scaling, vectors=vectors))

    with planted("Request.answer", _saying(with_outlook)):
        yield
