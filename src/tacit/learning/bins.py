"""Bins from noisy counts: which public cells a model treats alike.

Everything here is post-processing of noisy counts. An atom is a single cell with the count of a whole bin of the
others, such as an income of exactly 0. Ordered cells between atoms are joined to runs of about equal weight, and small
listed values go together into one bin. A bin that is still too small to learn from gets no effect.

A column with many cells is counted twice, in fine cells and in coarse ones: the noise of many fine cells adds up to
more than most of them hold. A coarse cell is cut only if it holds more than the noise of its own fine cells.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from tacit.privacy import Flags, Floats, Integers

# Atoms are found again and again, as the bins of the rest shrink; the search ends after a few times.
TIMES = 20


@dataclass(frozen=True)
class Coarse:
    """Noisy counts of coarse cells, and the coarse cell of each fine one, the missing one left out."""

    noisy: Floats
    of_cells: Integers


@dataclass(frozen=True)
class Bins:
    """The bin of each cell, which bins are learned, the others having no effect, and their noisy counts."""

    of_cells: Integers
    learned: tuple[bool, ...]
    counts: Floats

    @property
    def size(self) -> int:
        """How many bins there are."""
        return len(self.learned)

    def cells(self, place: int) -> list[int]:
        """Return the cells of a bin."""
        return [int(cell) for cell in np.flatnonzero(self.of_cells == place)]


def bins_of(
    noisy: Floats, *, ordered: bool, least: float, most: int, noise: float = 0.0, coarse: Coarse | None = None
) -> Bins:
    """Return bins of at least about `least` people, and at most about `most` of them beside atoms.

    `noise` is the standard deviation of a count.
    """
    inner, missing = noisy[:-1], float(noisy[-1])
    alone = missing >= least
    if ordered:
        runs, counts = _runs(inner, least, most, noise, coarse)
        return Bins(np.append(runs, len(counts)), (*(True for _ in counts), alone), np.append(counts, missing))
    # small values and missing ones go together, so that undeclared values have the effect of rare ones
    together = _groups(noisy, least, most)
    masses = np.bincount(together, weights=noisy)
    return Bins(together, tuple(bool(mass >= least) for mass in masses), masses.astype(np.float64))


def _groups(noisy: Floats, least: float, most: int) -> Integers:
    """Return a bin for each large cell, and one for all others together."""
    bins = np.full(len(noisy), -1, dtype=np.int64)
    order = [int(cell) for cell in np.argsort(-noisy, kind="stable") if noisy[cell] >= least][: 2 * most]
    for place, cell in enumerate(sorted(order)):
        bins[cell] = place
    bins[bins < 0] = len(order)
    return bins


def _runs(noisy: Floats, least: float, most: int, noise: float, coarse: Coarse | None) -> tuple[Integers, Floats]:
    """Return atoms and runs of about equal weight, in order, and their counts as all cells tell together."""
    counted, pieces = _pieces_of_cells(noisy, noise, coarse)
    weight = np.maximum(counted, 0.0)
    atoms, goal = _atoms(weight, least, most)
    bins = np.zeros(len(weight), dtype=np.int64)
    place, carried, after_atom = -1, 0.0, True
    for piece, each in enumerate(weight):
        if atoms[piece] or after_atom or (carried > 0 and carried + each / 2 >= goal):
            place, carried = place + 1, 0.0
        bins[piece] = place
        carried += each
        after_atom = bool(atoms[piece])
    joined = _joined_bins(bins, counted, atoms, least)
    found: Integers = joined[pieces]
    return found, np.bincount(joined, weights=counted).astype(np.float64)


def _pieces_of_cells(noisy: Floats, noise: float, coarse: Coarse | None) -> tuple[Floats, Integers]:
    """Return the noisy counts of the pieces, and the piece of each cell."""
    if coarse is None:
        return noisy, np.arange(len(noisy))
    counts: list[float] = []
    pieces = np.zeros(len(noisy), dtype=np.int64)
    for place, counted in enumerate(coarse.noisy[: int(coarse.of_cells.max()) + 1]):
        cells = np.flatnonzero(coarse.of_cells == place)
        many = len(cells)
        total = (many * float(counted) + float(noisy[cells].sum())) / (many + 1)  # the mean that errs least
        if many > 1 and total < sqrt(many) * noise:
            pieces[cells] = len(counts)
            counts.append(total)
            continue
        pieces[cells] = len(counts) + np.arange(many)
        counts += (noisy[cells] + (total - noisy[cells].sum()) / many).tolist()
    return np.array(counts), pieces


def _atoms(weight: Floats, least: float, most: int) -> tuple[Flags, float]:
    """Return which pieces are atoms, and how much a bin of the others carries."""
    atoms = np.zeros(len(weight), dtype=np.bool_)
    goal = max(float(weight.sum()) / most, least)
    for _ in range(TIMES):
        found = weight >= goal
        if np.array_equal(found, atoms):
            break
        atoms = found
        goal = max(float(weight[~atoms].sum()) / most, least)
    return atoms, goal


def _joined_bins(bins: Integers, counted: Floats, atoms: Flags, least: float) -> Integers:
    """Return bins of which the smallest were joined to a neighbour, rather to a run than to an atom.

    A bin of more than half of all people is never joined: people with any capital gain are unlike the many without one,
    and noise in few counts would hide them. Counts are added up as they are: noise below 0 takes away what noise above
    0 has added to empty cells.
    """
    count = int(bins.max()) + 1
    masses: list[float] = np.bincount(bins, weights=counted, minlength=count).tolist()
    has_atom = [bool(atoms[bins == place].any()) for place in range(count)]
    groups, half = [[place] for place in range(count)], sum(masses) / 2
    while True:
        beside = _beside_smallest(masses, least, half)
        if not beside:
            return place_of(groups, count)[bins]
        _, _, other, place = min((has_atom[other], masses[other], other, place) for place, other in beside)
        first, second = min(place, other), max(place, other)
        groups[first] += groups.pop(second)
        masses[first] += masses.pop(second)
        has_atom[first] = has_atom[first] | has_atom.pop(second)


def _beside_smallest(masses: Sequence[float], least: float, half: float) -> list[tuple[int, int]]:
    """Return the smallest bin that is below `least` and may be joined, with each neighbour that it may be joined to."""
    for place in sorted(range(len(masses)), key=masses.__getitem__):
        if masses[place] >= least:
            break
        near = [each for each in (place - 1, place + 1) if 0 <= each < len(masses) and masses[each] <= half]
        if near:
            return [(place, each) for each in near]
    return []


def place_of(groups: Sequence[Sequence[int]], count: int) -> Integers:
    """Return the group of each member, given the group sizes."""
    found = np.empty(count, dtype=np.int64)
    for place, group in enumerate(groups):
        found[list(group)] = place
    return found
