"""Bugs that only a table, a part or a WHERE without rows shows, planted in what models and questions are made of."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tacit.errors import QueryRefused
from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import original, planted


@mutant("blocks of no rows put together", killed_by="M16", published="np.concatenate of an empty list raises")
@contextmanager
def nothing_put_together() -> Iterator[None]:
    """Holding the rows fails where there is no block of rows."""
    held = original("blocks of rows")

    def together(blocks: Any) -> Any:
        kept = held(blocks)
        np.concatenate([block.cells[0] for block in kept])
        return kept

    with planted("blocks of rows", together):
        yield


@mutant(
    "a fit of no rows is refused",
    killed_by="M16",
    published="scikit-learn refuses an array with 0 samples: whether anybody matches a filter, without noise",
)
@contextmanager
def no_samples() -> Iterator[None]:
    """A model says that there is nobody to learn from."""
    coded = original("Engine.coded")

    @contextmanager
    def refusing(self: Any, plan: Any, /) -> Iterator[Any]:
        with coded(self, plan) as rows:
            if not rows.blocks:
                raise QueryRefused("there are no rows to learn from")
            yield rows

    with planted("Engine.coded", refusing):
        yield


@mutant("types as a connection's settings make them", killed_by="M18", published="DuckDB's arrow_lossless_conversion")
@contextmanager
def types_of_a_setting() -> Iterator[None]:
    """Truth values arrive as a type that the code which places them does not know."""
    with planted("plain_schema", lambda schema: schema):
        yield


@mutant("a part without rows fails", killed_by="M17", published="a task that takes the first of no batches")
@contextmanager
def first_of_none() -> Iterator[None]:
    """A part is taken to have a row that counts."""
    read_blocks = original("coded rows of a part")

    def first(plan: Any, source: Any, kinds: Any) -> Any:
        blocks = list(read_blocks(plan, source, kinds))
        yield blocks[0]
        yield from blocks[1:]

    with planted("coded rows of a part", first):
        yield


@mutant("a part's first group", killed_by="S63", published="an aggregation in tasks that begins with the first row")
@contextmanager
def first_group() -> Iterator[None]:
    """A part is taken to have a group, or a sum of it that is not 0."""
    to_bytes = original("a part as bytes")

    def first(exact_table: Any, plan: Any, most: int = 1 << 23) -> Any:
        if not len(exact_table) or not any(any(each) for each in exact_table.sums.values()):
            raise IndexError("list index out of range")
        return to_bytes(exact_table, plan, most)

    with planted("a part as bytes", first):
        yield


@mutant("a listed key without rows is left out", killed_by="S62", published="GROUP BY has no group without rows")
@contextmanager
def groups_that_occur() -> Iterator[None]:
    """With no row at all a question has no groups, though its keys are public."""
    listed_groups = original("listed_groups")

    def occurring(found: Any, plan: Any) -> Any:
        exact = listed_groups(found, plan)
        if any(any(each) for each in exact.sums.values()):
            return exact
        return type(exact)((), {name: [] for name in exact.sums})

    with planted("listed_groups", occurring):
        yield


@mutant("a log line about no rows", killed_by="S62", published="a warning that a data frame is empty")
@contextmanager
def empty_warning() -> Iterator[None]:
    """The log says that no row counts."""
    aggregate = original("Engine.aggregate")

    def saying(self: Any, plan: Any, salt: str) -> Any:
        for exact in aggregate(self, plan, salt):
            if not any(any(each) for each in exact.sums.values()):
                logging.getLogger("tacit").warning("no row of the table counts")
            yield exact

    with planted("Engine.aggregate", saying):
        yield


@mutant(
    "arithmetic as the process has it",
    killed_by="S66",
    published="np.seterr(all='raise'): a number that underflows ends a question, whose charge stands",
)
@contextmanager
def arithmetic_of_the_process() -> Iterator[None]:
    """What runs after the charge raises on what the user's process raises on."""
    failing_alike = original("failures after a charge")

    @contextmanager
    def as_it_is(charge: Any) -> Iterator[None]:
        settings = np.geterr()
        with failing_alike(charge), np.errstate(**settings):
            yield

    with planted("failures after a charge", as_it_is):
        yield


@mutant("what a teacher logs is heard", killed_by="M16", published="an estimator that logs how many samples it has")
@contextmanager
def teachers_log() -> Iterator[None]:
    """Output of a teacher's code is kept back, and its log is not."""
    fence = original("fence of a teacher")

    @contextmanager
    def open_to_logs() -> Iterator[None]:
        with fence():
            logging.disable(logging.NOTSET)
            yield

    with planted("fence of a teacher", open_to_logs):
        yield
