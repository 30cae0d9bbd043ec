"""Bugs by which one unit moves more than was charged for, on one path or in one step, that S70 and S71 kill."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import original, planted


@mutant("a cap of the kernel's own", killed_by="S70", published="a quick path beside the one that was proved")
@contextmanager
def cap_in_the_kernel() -> Iterator[None]:
    """The kernel scales units into twice their caps."""
    arrays = original("vectors of the kernel")

    def wider(asked: Any, columns: Any) -> Any:
        return arrays(replace(asked, vectors=tuple(replace(each, cap=2 * each.cap) for each in asked.vectors)), columns)

    with planted("vectors of the kernel", wider):
        yield


@mutant("no cap on disk", killed_by="S70", published="a fallback for large tables that leaves out a step")
@contextmanager
def no_cap_on_disk() -> Iterator[None]:
    """The patient path scales no unit."""

    def full(_scaling: Any, lengths: Any) -> Any:
        return np.full(lengths.shape, original("ONE"), dtype=np.int64)

    with planted("weights of units", full):
        yield


@mutant("a cap that is doubled in SQL", killed_by="S70", published="clipping to [-c, c] charged as [0, c]")
@contextmanager
def cap_in_sql() -> Iterator[None]:
    """SQL scales units into twice their caps."""
    blocks = original("scaled cells")

    def wider(cells: Any, scaling: Any, lengths: Any) -> Any:
        vectors = tuple(replace(each, cap=2 * each.cap) for each in scaling.vectors)
        return blocks(cells, replace(scaling, vectors=vectors), lengths)

    with planted("scaled cells", wider):
        yield


@mutant(
    "a length on disk rounded down",
    killed_by="S70",
    published="a norm in integers, rounded down before it is divided by",
)
@contextmanager
def length_rounded_down() -> Iterator[None]:
    """On disk the L2 length of a unit is the whole number below the root."""
    roots = original("roots of squares")
    with planted("roots of squares", lambda sums: np.maximum(roots(sums) - 1, 1)):
        yield


@mutant("replaced units charged as added", killed_by="S70", published="bounded neighbours at unbounded sensitivity")
@contextmanager
def replaced_as_added() -> Iterator[None]:
    """A unit that is replaced is taken to move sums as far as one that comes."""
    of_parts, of_vector = original("sensitivity_of"), original("sensitivity_of_vector")

    def parts(*words: Any, neighbours: str, **more: Any) -> Any:
        del neighbours
        return of_parts(*words, neighbours="add-remove", **more)

    def vector(*words: Any, replaced: bool, **more: Any) -> Any:
        del replaced
        return of_vector(*words, replaced=False, **more)

    with planted("sensitivity_of", parts), planted("sensitivity_of_vector", vector):
        yield


@mutant("an event of half the sensitivity", killed_by="S70", published="a charge computed apart from the noise")
@contextmanager
def half_an_event() -> Iterator[None]:
    """The plan declares how far one unit moves a sum, and its event says half of it."""
    laplace = original("Laplace release")

    def half(*words: Any) -> Any:
        made = laplace(*words)
        return replace(made, event=replace(made.event, sensitivity=made.event.sensitivity / 2))

    with planted("Laplace release", half):
        yield


@mutant("a part that is not charged", killed_by="S70", published="several queries in one call, and one of them charged")
@contextmanager
def part_not_charged() -> Iterator[None]:
    """Of questions that are answered together, the last is not charged for."""
    with planted("events of plans together", property(lambda self: self.plans[0].events)):
        yield


@mutant("a join that doubles a unit", killed_by="S70", published="a join on a key that two people have")
@contextmanager
def doubled_by_a_join() -> Iterator[None]:
    """A unit's row is joined to the rows of every unit, and counts once for each of them."""
    equal, unit = original("keys of a join"), original("unit of a join")

    def loose(left: Any, right: Any, sides: Any) -> Any:
        if sides.unit is None:
            return equal(left, right, sides)
        names = [name for name in right.columns if name in left.columns]
        return [left[name].notnull() if name == unit else left[name] == right[name] for name in names]

    with planted("keys of a join", loose):
        yield


@mutant("weights of every group in full", killed_by="S70", published="a person's weight, once for each of their groups")
@contextmanager
def weights_in_full() -> Iterator[None]:
    """In quantiles of people a unit weighs as much in each group as it may in all."""
    weighed, weight = original("weighed"), original("weight of a row")

    def full(known: Any, keys: list[str], value: str) -> Any:
        found = weighed(known, keys, value)
        return found.mutate(**{weight: found[weight] * found["groups_of_unit"]})

    with planted("weighed", full):
        yield


@mutant("a unit in several parts", killed_by="S71", published="rows dealt to partitions in turn, and bounded in each")
@contextmanager
def unit_in_several_parts() -> Iterator[None]:
    """Rows go to parts in turn, so that a unit is bounded once in each of them."""
    with planted("part of a hash", lambda words, parts: (np.arange(len(words)) % parts).astype(np.uint16)):
        yield
