"""The prior of all terms' effects: the estimate with the least error, given the exact variance of the noise.

Effects are believed to be drawn around 0 with a spread, those of ordered bins near their neighbours'. Noisy sums are
the curvature times the effects, with the noise of privacy and of sampling. The spread of a term's effects, and their
smoothness, are unknown: every spread and smoothness of a small grid is tried, and estimates are averaged by the
probability of the noisy sums under each. A term without information is so shrunk to zero.

Bins are linked only to the next one, so that every equation has three diagonals; all terms are solved side by side,
padded to the one with the most bins.

Bins from noisy counts: which public cells a model treats alike.

Everything here is post-processing of noisy counts. An atom is a single cell with the count of a whole bin of the
others, such as an income of exactly 0. Ordered cells between atoms are joined to runs of about equal weight, and small
listed values go together into one bin. A bin that is still too small to learn from gets no effect.

A column with many cells is counted twice, in fine cells and in coarse ones: the noise of many fine cells adds up to
more than most of them hold. A coarse cell is cut only if it holds more than the noise of its own fine cells.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

import numpy as np

from tacit.numbers import Flags, Floats, Integers

SPREADS = np.geomspace(0.03, 3.0, 7)
SMOOTHS = (0.0, 2.0, 16.0)
# Before anything is seen, spreads are believed to be about this, within a factor of e^1.5.
USUAL_SPREAD, SPREAD_DOUBT = 0.3, 1.5
# The precision of an effect that is not learned, and so stays 0.
PINNED = 1e9
TINY = 1e-9


@dataclass(frozen=True)
class Term:
    """A term's bins: noisy counts that add up to all people, the learned bins, and the number of bins in a chain."""

    counts: Floats
    learned: Flags
    chain: int  # the first bins, of this number, follow each other in order; 0: none do

    @property
    def size(self) -> int:
        return len(self.counts)


class TermBins:
    """The bins of all terms side by side: arrays of (bins, terms), empty beyond a term's own bins."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self.sizes: tuple[int, ...] = tuple(term.size for term in terms)
        shape = (max(self.sizes), len(terms))
        self.counts, self.learned = np.zeros(shape), np.zeros(shape, dtype=np.bool_)
        self.linked = np.zeros((shape[0] - 1, shape[1]), dtype=np.bool_)  # a bin with the next one
        for place, term in enumerate(terms):
            self.counts[: term.size, place] = term.counts
            self.learned[: term.size, place] = term.learned & (term.size > 1)
            self.linked[: max(term.chain - 1, 0), place] = True
        self.linked &= self.learned[:-1] & self.learned[1:]
        self.linked = self.linked[: max(0, *(term.chain - 1 for term in terms))]  # later bins are not linked

    def centred(self, effects: Floats, people: float) -> Floats:
        """Return effects (bins, classes, terms) with a mean over people of 0, so that terms do not overlap."""
        means = (effects * self.counts[:, None]).sum(axis=0) / people
        inside: Floats = np.where(self.learned[:, None], effects - means, 0.0)
        return inside

    def spread(self, effects: Floats, people: float) -> Floats:
        """Return the variance over people of each term's effects: (classes, terms)."""
        squares: Floats = (effects**2 * self.counts[:, None]).sum(axis=0) / people
        return squares


class Prior:
    """The inverse covariances of effects: (bins, smooths, spreads, terms), and the same beside the diagonal."""

    def __init__(self, terms: TermBins, scale: float, smooth: float | None) -> None:
        smooths = np.array(SMOOTHS if smooth is None else (smooth,))[:, None]
        beside = -smooths * terms.linked[:, None]  # (links, smooths, terms)
        diagonal = np.ones((len(terms.counts), *beside.shape[1:]))
        diagonal[: len(beside)] -= beside
        diagonal[1 : len(beside) + 1] -= beside
        diagonal = np.where(terms.learned[:, None], diagonal, PINNED)
        solved = BandSolver(diagonal, beside, np.zeros_like(diagonal))
        # each prior is stretched until the mean variance over people is the spread's square
        weights = np.where(terms.learned, terms.counts, 0.0)[:, None]
        size = np.maximum((solved.variances() * weights).sum(axis=0) / terms.counts.sum(axis=0), TINY)
        precision = (scale * SPREADS[:, None]) ** -2.0
        self.diagonal = (diagonal * size)[:, :, None] * precision
        self.beside = (beside * size)[:, :, None] * precision
        bins = len(diagonal)
        doubt = -0.5 * (np.log(SPREADS / USUAL_SPREAD) / SPREAD_DOUBT)[:, None] ** 2
        log_size = solved.log_determinant() + bins * np.log(size)
        self.log_weight = 0.5 * (log_size[:, None] + bins * np.log(precision)) + doubt


class BandSolver:
    """Linear equations of three diagonals, solved for many right sides at once along the first axis.

    Rows are taken out from both ends at once towards one in the middle, which halves the steps. Rows beyond the links
    stand by themselves.
    """

    def __init__(self, diagonal: Floats, beside: Floats, right: Floats) -> None:
        links = len(beside)
        self.steps, self.alone = (links + 1) // 2, links + 1
        self.diagonal = diagonal
        self.pivots: Floats = self._folded(diagonal, 1.0)  # (steps, both ends, ...)
        self.middle = np.array(diagonal[self.steps])
        self.factors: Floats = np.empty_like(self.pivots)
        wide = np.broadcast_to(right, diagonal.shape)
        ends, middle = self._folded(wide, 0.0), np.array(wide[self.steps])
        pivots, factors, solved = map(list, (self.pivots, self.factors, ends))
        product = np.empty(self.pivots.shape[1:])  # used again and again: arrays are small, and many
        for place, link in enumerate(self._folded(beside, 0.0, shift=1)):
            np.divide(link, pivots[place], out=factors[place])
            np.multiply(factors[place], link, out=product)
            if place + 1 == self.steps:
                self.middle -= product.sum(axis=0)
                middle -= (factors[place] * solved[place]).sum(axis=0)
                break
            np.subtract(pivots[place + 1], product, out=pivots[place + 1])
            np.multiply(factors[place], solved[place], out=product)
            np.subtract(solved[place + 1], product, out=solved[place + 1])
        middle /= self.middle
        ends /= self.pivots
        after: Floats = middle
        for place in range(self.steps - 1, -1, -1):
            np.multiply(factors[place], after, out=product)
            after = np.subtract(solved[place], product, out=solved[place])
        self.solution: Floats = self._unfolded(ends, middle, wide / diagonal)

    def _folded(self, rows: Floats, none: float, *, shift: int = 0) -> Floats:
        """Return rows from the first and from the last on, towards the middle one; of links, which are one fewer."""
        links, steps = self.alone - 1, self.steps
        both = np.full((steps, 2, *rows.shape[1:]), none)
        both[:, 0] = rows[:steps]
        both[2 * steps - links :, 1] = rows[steps + 1 - shift : links + 1 - shift][::-1]
        return both

    def _unfolded(self, ends: Floats, middle: Floats, alone: Floats) -> Floats:
        rows = np.array(alone)
        rows[: self.steps] = ends[:, 0]
        rows[self.steps] = middle
        rows[self.steps + 1 : self.alone] = ends[2 * self.steps + 1 - self.alone :, 1][::-1]
        return rows

    def log_determinant(self) -> Floats:
        alone = np.log(self.diagonal[self.alone :]).sum(axis=0)
        logs: Floats = alone + np.log(self.middle) + np.log(self.pivots).sum(axis=(0, 1))
        return logs

    def variances(self) -> Floats:
        ends, after = 1 / self.pivots, 1 / self.middle
        middle = after
        for place in range(self.steps - 1, -1, -1):
            ends[place] += self.factors[place] ** 2 * after
            after = ends[place]
        return self._unfolded(ends, middle, 1 / self.diagonal)


@dataclass(frozen=True)
class Seen:
    """The information of noisy sums on effects: (bins, classes, terms) each.

    `told` is info times effects, with an error of this variance.
    """

    told: Floats
    info: Floats
    variance: Floats


def believed(terms: TermBins, prior: Prior, seen: Seen, *, deviations: bool) -> tuple[Floats, Floats]:
    """Return the mean of all effects that remain possible, and their deviations if requested."""
    learned = terms.learned[:, None]
    precision = np.where(learned, seen.info**2 / seen.variance, 0.0)
    right = np.where(learned, seen.info * seen.told / seen.variance, 0.0)
    classes = precision.shape[1]
    solved = [
        BandSolver(prior.diagonal + precision[:, place, None, None], prior.beside, right[:, place, None, None])
        for place in range(classes)
    ]
    # how probable each spread and smoothness makes the sums of all classes: (smooths, spreads, terms)
    likely = classes * prior.log_weight
    for place, each in enumerate(solved):
        likely = likely + 0.5 * (each.solution * right[:, place, None, None]).sum(axis=0) - 0.5 * each.log_determinant()
    weights = np.exp(likely - likely.max(axis=(0, 1)))
    weights /= weights.sum(axis=(0, 1))
    means: Floats = np.stack([(weights * each.solution).sum(axis=(1, 2)) for each in solved], axis=1)
    if not deviations:
        return means, np.zeros_like(means)
    squares = [(weights * (each.variances() + each.solution**2)).sum(axis=(1, 2)) for each in solved]
    spread: Floats = np.sqrt(np.maximum(np.stack(squares, axis=1) - means**2, 0.0))
    return means, np.where(learned, spread, 0.0)


# Of terms without any effect, this part is taken for one that has some.
FALSE_ALARM = 0.01


def signals(terms: TermBins, seen: Seen, people: float, moving: Floats) -> Floats:
    """Return how far the sums of all bins of each term are from noise: (classes, terms); above 1 it has an effect.

    The ratio is a quadratic form of the sums under their covariance, over the value it exceeds with probability
    `FALSE_ALARM` for a term without any effect (chi-squared, the noise being Gaussian). Sums of different bins have
    independent noise; subtracting their common level makes them dependent, which the covariance includes. `moving` is
    the variance of effects that were still moving: it makes the test more careful.
    """
    found: Floats = np.zeros(seen.told.shape[1:])
    for term, size in enumerate(terms.sizes):
        learned = np.flatnonzero(terms.learned[:size, term])
        subtracted = np.eye(size) - terms.counts[:size, term][:, None] / people
        for place in range(seen.told.shape[1]) if len(learned) > 1 else ():
            whole = (subtracted * seen.variance[:size, place, term]) @ subtracted.T
            own = seen.info[learned, place, term] ** 2 * moving[place, term]
            covariance = whole[np.ix_(learned, learned)] + np.diag(own)
            scale = np.sqrt(np.diag(covariance))
            values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
            kept = values > 1e-9 * values[-1]
            turned = (vectors.T @ (seen.told[learned, place, term] / scale))[kept]
            found[place, term] = float((turned**2 / values[kept]).sum()) / _exceeded(int(kept.sum()))
    return found


def _exceeded(freedom: int) -> float:
    """Return what chi-squared exceeds with probability `FALSE_ALARM`, by Wilson and Hilferty: within 1 %."""
    part = 2 / (9 * freedom)
    return float(freedom * (1 - part + NormalDist().inv_cdf(1 - FALSE_ALARM) * part**0.5) ** 3)


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
    found = np.empty(count, dtype=np.int64)
    for place, group in enumerate(groups):
        found[list(group)] = place
    return found
