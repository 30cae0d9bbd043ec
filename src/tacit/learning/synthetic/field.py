"""A Markov random field over public cells: a junction tree, its beliefs, the table of any columns, and rows.

Everything here is post-processing of noisy numbers. Columns that were counted together share a clique; the joint law of
all columns is the product of the cliques over the separators between them, so it is never written out.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from math import prod

import numpy as np

from tacit.noise import Keystream
from tacit.numbers import Flags, Floats, Integers

Clique = tuple[int, ...]

# Rows are completed some at a time, with about this many numbers in memory.
CELLS_AT_ONCE = 1 << 22
# Of rows that no law makes possible, every cell is as likely.
TINY = 1e-300


def triangulated(sizes: Sequence[int], tables: Iterable[Collection[int]], limit: float = np.inf) -> list[Clique] | None:
    """Return the cliques of a triangulated graph, by least-weight elimination; None if one has more cells than limit.

    >>> triangulated([2, 3, 4], [(0, 1), (1, 2)])
    [(0, 1), (1, 2)]
    """
    beside: list[set[int]] = [set() for _ in sizes]
    for table in tables:
        for first, second in permutations(table, 2):
            beside[first].add(second)
    cells = [size * prod(sizes[other] for other in near) for size, near in zip(sizes, beside, strict=True)]
    left = set(range(len(sizes)))
    found: list[frozenset[int]] = []
    while left:
        column = min(left, key=lambda each: (cells[each], each))
        if cells[column] > limit:
            return None
        clique = frozenset(beside[column] | {column})
        if not any(clique <= other for other in found):
            found.append(clique)
        near = beside[column]
        for first, second in combinations(near, 2):
            beside[first].add(second)
            beside[second].add(first)
        for other in near:
            beside[other].discard(column)
            cells[other] = sizes[other] * prod(sizes[each] for each in beside[other])
        left.remove(column)
        beside[column] = set()
    return [tuple(sorted(clique)) for clique in found]


@dataclass(frozen=True)
class JunctionTree:
    """Cliques in an order from the root, each with its parent and the columns it shares with it."""

    sizes: tuple[int, ...]
    cliques: tuple[Clique, ...]
    order: tuple[int, ...]
    parents: Mapping[int, int]  # -1 of the root
    shared: Mapping[int, Clique]

    @classmethod
    def of(cls, sizes: Sequence[int], tables: Iterable[Clique]) -> "JunctionTree":
        """Return a tree in which the columns of every table share a clique."""
        cliques = triangulated(sizes, [*tables, *((column,) for column in range(len(sizes)))])
        found = tuple(cliques or ())
        order, parents = [0], {0: -1}
        best = {at: (len({*found[at]} & {*found[0]}), 0) for at in range(1, len(found))}
        while best:
            at = max(best, key=lambda each: best[each][0])
            _, parents[at] = best.pop(at)
            order.append(at)
            for other in best:
                overlap = len({*found[other]} & {*found[at]})
                if overlap > best[other][0]:
                    best[other] = (overlap, at)
        shared = {
            at: tuple(column for column in found[at] if parent >= 0 and column in found[parent])
            for at, parent in parents.items()
        }
        return cls(tuple(sizes), found, tuple(order), parents, shared)

    def home(self, table: Collection[int]) -> int:
        """Return the smallest clique that has all columns of a table."""
        inside = [at for at, clique in enumerate(self.cliques) if {*table} <= {*clique}]
        return min(inside, key=lambda at: prod(self.shape(at)))

    def shape(self, at: int) -> tuple[int, ...]:
        """Return the sizes of a clique's columns."""
        return tuple(self.sizes[column] for column in self.cliques[at])

    def spread(self, at: int, table: Collection[int], values: Floats) -> Floats:
        """Return values over a table's columns, shaped to be broadcast over a clique."""
        return values.reshape(tuple(self.sizes[column] if column in table else 1 for column in self.cliques[at]))

    def summed(self, at: int, table: Collection[int], values: Floats) -> Floats:
        """Return a clique's values added up to a table of some of its columns."""
        out = [axis for axis, column in enumerate(self.cliques[at]) if column not in table]
        for done, axis in enumerate(
            out
        ):  # one after the other, the first first: long inner loops, and less at each step
            values = values.sum(axis=axis - done)
        return values


def quotient(top: Floats, bottom: Floats) -> Floats:
    """Return the quotient, 0 if the bottom is 0."""
    return np.divide(top, bottom, out=np.zeros_like(bottom), where=bottom > 0)


@dataclass(frozen=True, eq=False)
class Field:
    """The law of all columns together: a junction tree with the law of each clique."""

    tree: JunctionTree
    laws: tuple[Floats, ...]

    def table(self, columns: Collection[int]) -> Floats:
        """Return the law of some columns, in ascending order: by elimination along the tree."""
        tree, wanted = self.tree, tuple(sorted(columns))
        for at, clique in enumerate(tree.cliques):
            if {*wanted} <= {*clique}:
                return tree.summed(at, wanted, self.laws[at])
        below: dict[int, set[int]] = {at: {*tree.cliques[at]} & {*wanted} for at in tree.order}
        for at in reversed(tree.order[1:]):
            below[tree.parents[at]] |= below[at]
        messages: dict[int, list[tuple[Floats, Clique]]] = {at: [] for at in tree.order}
        law = np.ones(())
        for at in reversed(tree.order):
            is_root, shared = tree.parents[at] < 0, tree.shared[at]
            end = wanted if is_root else tuple(sorted({*shared} | below[at]))
            if not is_root and not messages[at] and {*end} == {*shared}:
                continue  # sums to one
            law = self.laws[at]
            if not is_root:
                law = law * tree.spread(at, shared, quotient(np.ones(()), tree.summed(at, shared, law)))
            terms: list[object] = [law, [*tree.cliques[at]]]
            for message, over in messages[at]:
                terms += [message, [*over]]
            law = np.einsum(*terms, [*end], optimize="greedy")  # type: ignore[call-overload]
            if not is_root:
                messages[tree.parents[at]].append((law, end))
        return law

    def rows(self, count: int, bits: Keystream) -> Integers:
        """Draw cells of `count` rows: (rows, columns).

        In each clique every cell gets its expected number of rows, given the columns drawn before, rounded up or down
        at random: so the rows stray less from the law than independent ones.
        """
        tree = self.tree
        rows = np.zeros((count, len(tree.sizes)), dtype=np.int64)
        for at in tree.order:
            shared = tree.shared[at]
            drawn = tuple(column for column in tree.cliques[at] if column not in shared)
            if not drawn or not count:
                continue
            places = [tree.cliques[at].index(column) for column in (*shared, *drawn)]
            given = prod(tree.sizes[column] for column in shared)
            law = np.transpose(self.laws[at], places).reshape(given, -1)
            groups = np.zeros(count, dtype=np.int64)
            for column in shared:
                groups = groups * tree.sizes[column] + rows[:, column]
            cells, order = systematic_cells(law, groups, bits)
            for column in reversed(drawn):
                rows[order, column] = cells % tree.sizes[column]
                cells //= tree.sizes[column]
        return rows

    def completed(self, rows: Integers, known: Collection[int], bits: Keystream) -> Integers:
        """Draw the other columns of rows, each row given its cells of the known columns: (rows, columns)."""
        free = sum(prod(self.tree.sizes[each] for each in clique if each not in known) for clique in self.tree.cliques)
        size = max(1, CELLS_AT_ONCE // free)
        pieces = [_completed(self, rows[start : start + size], known, bits) for start in range(0, len(rows), size)]
        return np.concatenate([rows[:0], *pieces])


def _completed(field: Field, rows: Integers, known: Collection[int], bits: Keystream) -> Integers:
    """Draw columns given others: weights go to the root, and cells are drawn from there."""
    tree, found, every = field.tree, rows.copy(), np.arange(len(rows))
    frees = [tuple(column for column in clique if column not in known) for clique in tree.cliques]
    weights: dict[int, Floats] = {}
    messages: dict[int, list[tuple[Floats, Clique]]] = {at: [] for at in tree.order}
    for at in reversed(tree.order):
        clique, shared = tree.cliques[at], tree.shared[at]
        law = field.laws[at]
        if shared:
            law = law * tree.spread(at, shared, quotient(np.ones(()), tree.summed(at, shared, law)))
        given = [column for column in clique if column in known]
        law = np.transpose(law, [clique.index(column) for column in (*given, *frees[at])])
        weight = np.broadcast_to(law[tuple(rows[:, each] for each in given)], (len(rows), *law.shape[len(given) :]))
        for message, over in messages[at]:
            shape = tuple(tree.sizes[column] if column in over else 1 for column in frees[at])
            weight = weight * message.reshape(len(rows), *shape)
        weights[at] = weight
        if tree.parents[at] >= 0:
            out = tuple(axis + 1 for axis, column in enumerate(frees[at]) if column not in shared)
            message = weight.sum(axis=out) if out else weight
            over = tuple(column for column in frees[at] if column in shared)
            whole = message.reshape(len(rows), -1).sum(axis=1).reshape(-1, *(1 for _ in over))
            messages[tree.parents[at]].append((quotient(message, np.broadcast_to(whole, message.shape)), over))
    for at in tree.order:
        shared = tuple(column for column in frees[at] if column in tree.shared[at])
        drawn = tuple(column for column in frees[at] if column not in shared)
        if not drawn:
            continue
        axes = [0, *(frees[at].index(column) + 1 for column in (*shared, *drawn))]
        weight = np.transpose(weights[at], axes)[(every, *(found[:, column] for column in shared))]
        heights = np.cumsum(weight.reshape(len(rows), -1) + TINY, axis=1)
        cells = (heights < (uniforms(len(rows), bits) * heights[:, -1])[:, None]).sum(axis=1)
        for column in reversed(drawn):
            found[:, column] = cells % tree.sizes[column]
            cells //= tree.sizes[column]
    return found


def uniforms(count: int, bits: Keystream) -> Floats:
    """Draw numbers from 0 to below 1."""
    found: Floats = (bits.words(count) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return found


def systematic_cells(law: Floats, groups: Integers, bits: Keystream) -> tuple[Integers, Integers]:
    """Draw a cell for each row, by the law of its group; return the cells, and the rows they are for."""
    count, cells = len(groups), law.shape[1]
    totals = law.sum(axis=1, keepdims=True)
    heights = np.cumsum(np.where(totals > 0, law / np.where(totals > 0, totals, 1), 1 / cells), axis=1)
    heights /= heights[:, -1:]
    keys = (groups.astype(np.uint64) << np.uint64(40)) | (bits.words(count) >> np.uint64(24))
    order = np.argsort(keys)
    own = groups[order]
    starts: Flags = np.r_[True, own[1:] != own[:-1]]
    first = np.flatnonzero(starts)
    sizes = np.diff(np.r_[first, count])
    rank = np.arange(count) - np.repeat(first, sizes)
    at = (rank + np.repeat(uniforms(len(first), bits), sizes)) / np.repeat(sizes, sizes)
    found = np.searchsorted((heights + np.arange(len(heights))[:, None]).ravel(), own + at, side="right") - own * cells
    return np.clip(found, 0, cells - 1), order
