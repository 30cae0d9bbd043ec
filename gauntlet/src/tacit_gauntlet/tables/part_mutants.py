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


@mutant("a trim by arrival", killed_by="S60", published="a limit in each task, of whichever rows come first")
@contextmanager
def first_come() -> Iterator[None]:
    """A task keeps as many rows of a person as may be kept, but the first to come."""

    def arrived(packed: Any, _first: int, _hashes: Any, _ranks: Any, bounded: Any) -> Any:
        rows: dict[Any, int] = {}
        kept = []
        for at in np.argsort(packed[:, -1]).tolist():
            person, group = tuple(packed[at, :2].tolist()), int(packed[at, 2])
            groups = sum(each == person for each, _ in rows)
            if (person, group) in rows or groups < bounded.groups_most:
                rows[person, group] = rows.get((person, group), 0) + 1
                if rows[person, group] <= bounded.rows_most:
                    kept.append(at)
        return np.array(kept, dtype=np.int64)

    with planted("a task's first rows", arrived):
        yield


@mutant("a trim that keeps one too few", killed_by="S60", published="an off-by-one in a limit: r rows, less one")
@contextmanager
def one_too_few() -> Iterator[None]:
    """A task keeps one group less than may be kept."""
    kept = original("a task's first rows")

    def fewer(packed: Any, first: int, hashes: Any, ranks: Any, bounded: Any) -> Any:
        return kept(packed, first, hashes, ranks, replace(bounded, groups_most=bounded.groups_most - 1))

    with planted("a task's first rows", fewer):
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
