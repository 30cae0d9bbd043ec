"""Bins from noisy counts: which public cells a model treats alike.

Everything here is post-processing of noisy counts. An atom is a cell that alone carries what a bin of the others does,
such as an income of exactly 0. Ordered cells between atoms are joined to runs of about equal weight, and small listed
values go together into one bin. A bin that is still too small to learn of has no effect of its own.
"""

from dataclasses import dataclass

import numpy as np

from tacit.privacy import Floats, Integers

# Atoms are found again and again, as the bins of the rest shrink; it ends after a few times.
TIMES = 20


@dataclass(frozen=True)
class Bins:
    """The bin of each cell, and which bins are learned: the others have no effect."""

    of_cells: Integers
    learned: tuple[bool, ...]

    @property
    def size(self) -> int:
        """How many bins there are."""
        return len(self.learned)

    def cells(self, place: int) -> list[int]:
        """Return the cells of a bin."""
        return [int(cell) for cell in np.flatnonzero(self.of_cells == place)]


def bins_of(noisy: Floats, *, ordered: bool, least: float, most: int) -> Bins:
    """Return bins of at least about `least` people, and at most about `most` of them beside atoms."""
    inner, missing = noisy[:-1], float(noisy[-1])
    runs = _runs(inner, least, most) if ordered else _groups(inner, least, most)
    alone = missing >= least
    if ordered or alone:
        size = int(runs.max()) + 1
        return Bins(np.append(runs, size), (*_large(runs, inner, least), alone))
    # small values and missing ones go together, so that what nobody declared has the effect of the rare
    together = _groups(noisy, least, most)
    return Bins(together, _large(together, noisy, least))


def _large(bins: Integers, noisy: Floats, least: float) -> tuple[bool, ...]:
    """Return which bins have enough people; one bin alone says nothing that the intercept does not."""
    masses = np.bincount(bins, weights=noisy)
    return tuple(bool(mass >= least) for mass in masses)


def _groups(noisy: Floats, least: float, most: int) -> Integers:
    """Return a bin for each large cell, and one for all others together."""
    bins = np.full(len(noisy), -1, dtype=np.int64)
    order = [int(cell) for cell in np.argsort(-noisy, kind="stable") if noisy[cell] >= least][: 2 * most]
    for place, cell in enumerate(sorted(order)):
        bins[cell] = place
    bins[bins < 0] = len(order)
    return bins


def _runs(noisy: Floats, least: float, most: int) -> Integers:
    """Return atoms and runs of about equal weight, in order."""
    weight = np.maximum(noisy, 0.0)
    atoms, goal = _atoms(weight, least, most)
    bins = np.zeros(len(weight), dtype=np.int64)
    place, carried, after_atom = -1, 0.0, True
    for cell, each in enumerate(weight):
        if atoms[cell] or after_atom or (carried > 0 and carried + each / 2 >= goal):
            place, carried = place + 1, 0.0
        bins[cell] = place
        carried += each
        after_atom = bool(atoms[cell])
    return _joined(bins, noisy, atoms, least)


def _atoms(weight: Floats, least: float, most: int) -> tuple[np.ndarray[tuple[int], np.dtype[np.bool_]], float]:
    """Return which cells are atoms, and how much a bin of the other cells carries."""
    atoms = np.zeros(len(weight), dtype=np.bool_)
    goal = max(float(weight.sum()) / most, least)
    for _ in range(TIMES):
        found = weight >= goal
        if np.array_equal(found, atoms):
            break
        atoms = found
        goal = max(float(weight[~atoms].sum()) / most, least)
    return atoms, goal


def _joined(bins: Integers, noisy: Floats, atoms: np.ndarray[tuple[int], np.dtype[np.bool_]], least: float) -> Integers:
    """Return bins of which the smallest were joined to a neighbour, rather to a run than to an atom."""
    count = int(bins.max()) + 1
    masses = list(np.bincount(bins, weights=noisy, minlength=count))
    has_atom = [bool(atoms[bins == place].any()) for place in range(count)]
    groups = [[place] for place in range(count)]
    while len(groups) > 1:
        smallest = min(range(len(groups)), key=lambda place: masses[place])
        if masses[smallest] >= least:
            break
        beside = [place for place in (smallest - 1, smallest + 1) if 0 <= place < len(groups)]
        other = min(beside, key=lambda place: (has_atom[place], masses[place]))
        first, second = min(smallest, other), max(smallest, other)
        groups[first] += groups.pop(second)
        masses[first] += masses.pop(second)
        has_atom[first] = has_atom[first] | has_atom.pop(second)
    place_of = np.empty(count, dtype=np.int64)
    for place, group in enumerate(groups):
        place_of[group] = place
    return place_of[bins]
