"""Bugs of engines that cut rows into parts, planted in our own stages, that the cases must kill."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import original, planted


@mutant(
    "a salt of each task's own", killed_by="S60", published="a random choice in a task: a task run again chooses anew"
)
@contextmanager
def salt_in_the_task() -> Iterator[None]:
    """Each part draws its own salt."""
    part_tables, tasks = original("part_tables"), count()

    def drawn(pieces: Any, question: Any) -> Any:
        return part_tables(pieces, replace(question, salt=f"{next(tasks):032x}"))

    with planted("part_tables", drawn):
        yield


@mutant(
    "parts by the cell as it is written", killed_by="S60", published="repartition by the engine's hash of the raw unit"
)
@contextmanager
def raw_hash() -> Iterator[None]:
    """0.0 and -0.0 are one person in two parts."""

    def raw(table: Any, unit: str, _source: Any, _salt: str) -> Any:
        return table[unit].cast("string").hash()

    with planted("hash of the unit", raw):
        yield


@mutant("parts in turn", killed_by="S60", published="round-robin repartition: a person's rows are in all parts")
@contextmanager
def in_turn() -> Iterator[None]:
    """Rows go to parts one after the other."""
    with planted("part of a hash", lambda words, parts: (np.arange(len(words)) % parts).astype(np.uint16)):
        yield


@mutant("a result added twice", killed_by="S60", published="an accumulator that a task run again adds to again")
@contextmanager
def added_twice() -> Iterator[None]:
    """The result of a task that ran twice counts twice."""
    added_parts = original("added_parts")

    def twice(nothing: Any, parts: Iterable[Any], plan: Any) -> Any:
        each = list(parts)
        return added_parts(nothing, [*each, *each[:1]], plan)

    with planted("added_parts", twice):
        yield


@mutant(
    "the last parts are lost", killed_by="S60", published="parts by the highest bits, where parts is no power of two"
)
@contextmanager
def lost_parts() -> Iterator[None]:
    """Of 5 parts there are 8 by bits, and the last 3 go nowhere."""

    def by_bits(words: Any, parts: int) -> Any:
        bits = max(1, (parts - 1).bit_length())
        return (words >> np.uint64(64 - bits)).astype(np.uint16)

    with planted("part of a hash", by_bits):
        yield


@mutant("values counted in each part", killed_by="S60", published="counts of different values added up over partitions")
@contextmanager
def counted_apart() -> Iterator[None]:
    """A value that two parts have counts twice."""
    pairs = original("pairs of a key and a value")

    def one_by_one(pieces: Iterable[Any], question: Any) -> Any:
        for piece in pieces:
            yield from pairs([piece], question)

    with planted("pairs of a key and a value", one_by_one):
        yield


@mutant("a part that takes the place of another", killed_by="S60", published="results written over, and not added up")
@contextmanager
def written_over() -> Iterator[None]:
    """Of all parts the last one is left."""
    added_parts = original("added_parts")

    def last(nothing: Any, parts: Iterable[Any], plan: Any) -> Any:
        return added_parts(nothing, list(parts)[-1:], plan)

    with planted("added_parts", last):
        yield


@mutant("a piece that never arrives", killed_by="S60", published="a block that is fetched again, and lost")
@contextmanager
def one_lost() -> Iterator[None]:
    """The first piece of each place is lost on its way."""
    part_tables = original("part_tables")

    def fewer(pieces: Iterable[Any], question: Any) -> Any:
        return part_tables(list(pieces)[1:], question)

    with planted("part_tables", fewer):
        yield


@mutant(
    "a task in its own words", killed_by="S61", published="a worker's traceback, shipped to the driver and its pages"
)
@contextmanager
def own_words() -> Iterator[None]:
    """What a task raises leaves as it is."""

    def loud(task: Any, batches: Any) -> Any:
        yield from task.stage(batches)

    with planted("Task.__call__", loud):
        yield
