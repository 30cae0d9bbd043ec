"""Sum-product over a junction tree, planned once: from parameters of tables to the laws of cliques and of tables.

Each clique has steps that drop one column after the other until every table and separator is reached. Factors are
multiplied up the steps and laws are added up down them, so a large clique is read a few times, however many tables it
has. Axes are in an order in which the first ones are dropped: long inner loops, and much less at each step.
"""

from collections.abc import Collection, Sequence
from math import prod

import numpy as np

from tacit.learning.synthetic.field import Clique, JunctionTree, quotient
from tacit.numbers import Floats

# Sums over an axis with fewer numbers than this beside each other are written out.
SHORT = 16


class CliqueSteps:
    """One clique's columns in an order, and steps that each drop a column of the step that they come from."""

    def __init__(self, columns: Clique, wanted: Collection[Clique]) -> None:
        self.columns, self.froms, self.axes = [columns], [0], [0]
        self.at = {columns: 0}
        self._grow(0, [each for each in dict.fromkeys(wanted) if each != columns])
        self.below: list[list[int]] = [[] for _ in self.columns]
        for step in range(1, len(self.columns)):
            self.below[self.froms[step]].append(step)
        self.lifts = [(slice(None),) * axis + (None,) for axis in self.axes]

    def _grow(self, start: int, wanted: list[Clique]) -> None:
        columns = self.columns[start]
        for axis, column in enumerate(columns):
            inside = [each for each in wanted if column not in each]
            if not inside:
                continue
            wanted = [each for each in wanted if column in each]
            rest = (*columns[:axis], *columns[axis + 1 :])
            step = len(self.columns)
            self.columns.append(rest)
            self.froms.append(start)
            self.axes.append(axis)
            self.at[rest] = step
            self._grow(step, [each for each in inside if each != rest])

    def product(self, factors: Sequence[list[Floats]], shape: tuple[int, ...]) -> Floats:
        """Return the product of all factors over the clique: each is of a step's columns."""
        found: list[Floats | None] = [None] * len(self.columns)
        for step in range(len(self.columns) - 1, -1, -1):
            lifted = [(found[below], self.lifts[below]) for below in self.below[step]]
            terms = [*factors[step], *(each[lift] for each, lift in lifted if each is not None)]
            if terms:
                whole = terms[0]
                for term in terms[1:]:
                    whole = np.multiply(whole, term, order="C")
                found[step] = whole
        law = np.ones(shape) if found[0] is None else found[0]
        return law if law.shape == shape else np.broadcast_to(law, shape)

    def summed(self, law: Floats, step: int) -> Floats:
        """Return the clique's law added up to a step's columns."""
        return law if not step else without(self.summed(law, self.froms[step]), self.axes[step])

    def all_sums(self, law: Floats) -> list[Floats]:
        """Return the law added up to the columns of every step."""
        found = [law]
        for start, axis in zip(self.froms[1:], self.axes[1:], strict=True):
            found.append(without(found[start], axis))
        return found


def without(values: Floats, axis: int) -> Floats:
    """Return values added up over one axis."""
    shape = values.shape
    beside = prod(shape[axis + 1 :])
    if beside >= SHORT:
        found: Floats = np.add.reduce(values, axis=axis)
    else:
        rows = values.reshape(prod(shape[:axis]), shape[axis], beside)
        found = np.einsum("abc->ac", rows).reshape(shape[:axis] + shape[axis + 1 :])
    return found


class CliqueSums:
    """The plan of sum-product for tables over a junction tree."""

    def __init__(self, tree: JunctionTree, tables: Sequence[Clique]) -> None:
        self.tree, self.tables = tree, tables
        homes = [tree.home(table) for table in tables]
        self.orders = [
            tuple(sorted(clique, key=lambda column: (column in tree.shared[at], -tree.sizes[column])))
            for at, clique in enumerate(tree.cliques)
        ]
        wanted: list[list[Clique]] = [[] for _ in tree.cliques]
        for table, home in zip(tables, homes, strict=True):
            wanted[home].append(self._ordered(home, table))
        for at in tree.order[1:]:
            for clique in (at, tree.parents[at]):
                wanted[clique].append(self._ordered(clique, tree.shared[at]))
        self.steps = [CliqueSteps(order, each) for order, each in zip(self.orders, wanted, strict=True)]
        self.places = [self._place(home, table) for table, home in zip(tables, homes, strict=True)]
        self.shapes = [tuple(tree.sizes[column] for column in table) for table in tables]
        self.ends = np.cumsum([0, *(prod(shape) for shape in self.shapes)])
        self.sizes = np.diff(self.ends)
        self.messages = {at: self._message(at) for at in tree.order[1:]}

    def _ordered(self, at: int, table: Collection[int]) -> Clique:
        return tuple(column for column in self.orders[at] if column in table)

    def _place(self, home: int, table: Clique) -> tuple[int, int, list[int], list[int]]:
        """Return a table's clique and step, and the axes to there and back."""
        own = self._ordered(home, table)
        to, back = [table.index(column) for column in own], [own.index(column) for column in table]
        return home, self.steps[home].at[own], to, back

    def _message(self, at: int) -> tuple[int, int, list[int], list[int], tuple[slice | None, ...]]:
        """Return the steps of a separator in its clique and its parent, the axes between them, and how it is spread."""
        parent, shared = self.tree.parents[at], self.tree.shared[at]
        own, above = self._ordered(at, shared), self._ordered(parent, shared)
        spread = tuple(slice(None) if column in shared else None for column in self.orders[at])
        steps = self.steps[at].at[own], self.steps[parent].at[above]
        return *steps, [own.index(each) for each in above], [above.index(each) for each in own], spread

    def laws(self, parameters: Floats) -> tuple[float, list[Floats], Floats]:
        """Return the logarithm of the sum of all products, the law of each clique, and the laws of all tables.

        Messages go to the root, and come back.
        """
        tree = self.tree
        tops = np.maximum.reduceat(parameters, self.ends[:-1])
        flat = np.exp(parameters - np.repeat(tops, self.sizes))
        logarithm = float(tops.sum())
        factors: list[list[list[Floats]]] = [[[] for _ in each.columns] for each in self.steps]
        for (home, step, axes, _), start, end, shape in zip(
            self.places, self.ends[:-1], self.ends[1:], self.shapes, strict=True
        ):
            factors[home][step].append(flat[start:end].reshape(shape).transpose(axes).copy())
        laws: list[Floats] = [flat] * len(tree.cliques)
        sent: dict[int, Floats] = {}
        for at in reversed(tree.order):
            shape = tuple(tree.sizes[column] for column in self.orders[at])
            laws[at] = self.steps[at].product(factors[at], shape)
            if at in self.messages:
                own, above, axes, _, _ = self.messages[at]
                sent[at] = self.steps[at].summed(laws[at], own)
                total = float(sent[at].sum())
                logarithm += np.log(total)
                factors[tree.parents[at]][above].append((sent[at] / total).transpose(axes).copy())
        root = tree.order[0]
        total = float(laws[root].sum())
        logarithm += np.log(total)
        laws[root] = laws[root] / total
        sums: list[list[Floats]] = [[] for _ in tree.cliques]
        for at in tree.order:
            if at in self.messages:
                _, above, _, axes, spread = self.messages[at]
                change = quotient(sums[tree.parents[at]][above].transpose(axes), sent[at])
                laws[at] = np.multiply(laws[at], change[spread], order="C")
            sums[at] = self.steps[at].all_sums(laws[at])
        found = [sums[home][step].transpose(axes).ravel() for home, step, _, axes in self.places]
        return float(logarithm), laws, np.concatenate(found)

    def in_order(self, laws: Sequence[Floats]) -> tuple[Floats, ...]:
        """Return laws with the columns of each clique in ascending order."""
        return tuple(
            np.ascontiguousarray(np.transpose(law, [order.index(column) for column in clique]))
            for law, order, clique in zip(laws, self.orders, self.tree.cliques, strict=True)
        )
