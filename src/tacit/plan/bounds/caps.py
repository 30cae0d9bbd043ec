"""Choosing caps: how long a unit's vector may be, what share of the loss its totals get, and which noise is added.

A low cap has little noise and cuts much; totals of what was kept and cut let an answer scale its groups back, and what
is left of the cutting is a part of it: groups differ in how much of them is cut. All three are weighed against each
other from learned profiles, before anything else is paid for. Nothing here touches privacy: any cap is safe.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import inf, isqrt, log2, pi, sqrt

import numpy as np

from tacit.plan.bounds.profiles import Floats, Reading
from tacit.plan.bounds.scaling import CAP_BITS, Outlook
from tacit.plan.plan import NoiseKind

# Of what is cut, this part is still wrong in a group after its correction: measured between 0.01 and 0.45 on many
# tables, and more where little is kept (it grows by this power of the share that is).
MISMATCH = 1 / 10
MISMATCH_POWER = 1 / 4
# Errors are foreseen as if epsilon were at most this: one that is larger errs no less.
EPSILON_MOST = Fraction(10**6)
# What share of the loss totals may get.
ANCHOR_SHARES = tuple(Fraction(percent, 100) for percent in (5, 10, 20, 35, 50))
# Caps are tried from an eighth of the median size up, in steps of a quarter octave: where noise is as large as a group,
# the best cap is small.
BELOW_MEDIAN = 8
CAPS_PER_OCTAVE = 4
# About the mean error of a corrected answer, in scales of the noise on each of its two totals.
LAPLACE_TOTALS = 1.2
GAUSSIAN_TOTALS = 2 / sqrt(pi)
# No less is taken to be kept, so that errors stay finite.
KEPT_LEAST = 1e-9
# A tail has at most this many binary digits: fine enough that rounding many people's totals does not show.
TAIL_BITS = 30


@dataclass(frozen=True)
class Terms:
    """How wide noise is at a share of the call's loss, for a sensitivity of 1: for comparing, not for drawing."""

    noise: NoiseKind
    strength: float  # epsilon for Laplace noise, rho for Gaussian
    farther: float = 1.0  # how much farther one unit moves a vector, where neighbours replace it

    def width(self, share: float) -> float:
        """Return the mean size of the noise on one number."""
        if self.noise == "laplace":
            return self.farther / (self.strength * share)
        return self.farther / sqrt(2 * self.strength * share) * sqrt(2 / pi)

    def totals_width(self, share: float) -> float:
        """Return about the error of the sum of both totals."""
        return self.width(share) * (LAPLACE_TOTALS if self.noise == "laplace" else sqrt(pi / 2) * GAUSSIAN_TOTALS)


@dataclass(frozen=True)
class Told:
    """What is known of one vector: the profile of its L1 norm and, for the norm that is scaled, that of its length."""

    total: Reading
    length: Reading | None = None  # None: the L1 norm is the length
    times: float = 1.0  # all sizes are so many times those of the profiles
    is_rooted: bool = False  # the length is the root of the number that the profile is of: of ones, in the L2 norm
    cells: float = inf  # in at most so many groups: no L2 norm is below the L1 norm over the root of it

    @property
    def is_believed(self) -> bool:
        """Whether anything is believed of it."""
        return self.total.top is not None

    @property
    def tail_cap(self) -> float:
        """The total, in steps, that nobody is believed to exceed."""
        return self.total.tail_cap * self.times


@dataclass(frozen=True)
class Sizes:
    """The people of a question by rank: about how long the vector of each is, by either norm, in steps."""

    told: Told
    people: Floats
    total: Floats  # the L1 norm: what a person adds to the whole table
    length: Floats  # the norm that is scaled

    @property
    def tail_cap(self) -> float:
        """The total, in steps, that nobody is believed to exceed."""
        return self.told.tail_cap

    @cached_property
    def mass(self) -> float:
        """About how much all people have together, none of them more than the tail cap."""
        return float(np.sum(self.people * np.minimum(self.total, self.tail_cap)))

    @cached_property
    def excess(self) -> float:
        """About how much people have beyond the tail cap."""
        return float(np.sum(self.people * np.maximum(self.total - self.tail_cap, 0)))

    @property
    def longest(self) -> float:
        """About how long the vector of someone who has the tail cap is."""
        return float(self.tail_cap * self.length[-1] / self.total[-1])

    def beyond(self, tail: float) -> float:
        """Return about how much people have beyond a tail, none of them more than the tail cap."""
        return float(np.sum(self.people * np.maximum(np.minimum(self.total, self.tail_cap) - tail, 0)))

    def weights(self, cap: float) -> Floats:
        """Return what each counts for, where this vector alone is scaled."""
        return np.minimum(1.0, cap / self.length)

    def kept(self, weights: Floats) -> float:
        """Return about which share of all they have is left by these weights."""
        had = self.people * self.total
        return float(np.sum(had * weights)) / float(np.sum(had))

    def median(self) -> float:
        """Return about the length that half of the people exceed."""
        order = np.argsort(self.length, kind="stable")
        ranks = np.cumsum(self.people[order])
        return float(self.length[order][min(int(np.searchsorted(ranks, ranks[-1] / 2)), len(order) - 1)])


def by_rank(told: Sequence[Told]) -> list[Sizes]:
    """Return people by rank: whoever has the most by one profile is taken to have the most by every other."""
    profiles = [[each.total] if each.length is None else [each.total, each.length] for each in told]
    points = [[reading.points() for reading in readings] for readings in profiles]
    risen = [[np.cumsum(people) / np.sum(people) for _, people in each] for each in points]
    edges = np.unique(np.concatenate([np.zeros(1), *(ranks for each in risen for ranks in each)]))
    middles, widths = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    found = []
    for each, placed, ranks in zip(told, points, risen, strict=True):
        columns = [
            sizes[np.minimum(np.searchsorted(rank, middles), len(sizes) - 1)] * each.times
            for (sizes, _), rank in zip(placed, ranks, strict=True)
        ]
        total = columns[0]
        length = np.sqrt(total * each.times) if each.is_rooted else np.minimum(columns[-1], total)
        length = np.maximum(length, total / sqrt(each.cells))  # whatever the noise of its own profile says
        found.append(Sizes(each, widths * float(np.sum(placed[0][1])), total, length))
    return found


@dataclass(frozen=True)
class Cap:
    """A cap and the share of its totals, with about what the answer then errs by in a group of mean size."""

    size: float  # in steps
    anchor: Fraction  # 0: no totals are released
    error: float  # in steps
    tail: float | None = None  # how much one person may add to the totals, in steps; None: as much as the tail cap
    by_values: float = 0.0  # of a mean's sums: the share that is cut because of far values, not of many rows

    def relative(self, sizes: Sizes, cells: float) -> float:
        """Return the error as a part of what a group has on average."""
        return self.error / max(sizes.mass / cells, 1e-300)


def best_cap(
    sizes: Sizes,
    terms: Terms,
    *,
    cells: float,
    share: float = 1.0,
    others: Floats | None = None,
    is_public: bool = False,
) -> Cap:
    """Return the cap of least error in a group of mean size, where `share` of the loss is for this vector.

    With one group there is nothing to scale back to: the cap is the tail cap, and no totals are released. `others` is
    what people count for already because of vectors that are scaled together with this one. Where the whole
    table's total `is_public`, groups are scaled back to that, and no totals are released.
    """
    whole = Cap(sizes.tail_cap, Fraction(0), sizes.tail_cap * terms.width(share) + sizes.excess / cells)
    if cells <= 1 or not sizes.told.is_believed:
        return whole
    mean = sizes.mass / cells
    anchored = []  # the share of totals, the noise on cells for a cap of 1, and the error of the totals in a mean group
    for anchor in () if is_public else ANCHOR_SHARES:
        totals = sizes.tail_cap * terms.totals_width(share * float(anchor)) + sizes.excess
        anchored.append((anchor, terms.width(share * float(1 - anchor)), mean * totals / sizes.mass))
    if is_public:  # what all groups add up to has the noise of all of them
        anchored.append((Fraction(0), terms.width(share) * (1 + 1 / sqrt(cells)), 0.0))
    found = whole
    for size in caps_tried(sizes):
        weights = sizes.weights(size)
        kept = max(sizes.kept(weights if others is None else np.minimum(weights, others)), KEPT_LEAST)
        wrong = MISMATCH * (1 - kept) / kept**MISMATCH_POWER * mean
        for anchor, width, off in anchored:
            error = size * width / kept + wrong + off
            if error < found.error:
                found = Cap(size, anchor, error)
    return found


def caps_tried(sizes: Sizes, per_octave: int = CAPS_PER_OCTAVE) -> Iterator[float]:
    """Yield the caps that are tried, from below the median size up to the tail cap."""
    low = max(sizes.median() / BELOW_MEDIAN, float(np.min(sizes.length)))
    high = min(sizes.tail_cap, float(np.max(sizes.length)))
    for step in range(max(0, int(log2(max(high / low, 1.0)) * per_octave)) + 1):
        yield low * 2 ** (step / per_octave)


def outlook_of(sizes: Sizes, weights: Floats, cap: Cap | None = None, by_cells: Told | None = None) -> Outlook:
    """Return what the profiles foretell of a vector whose people count for these weights, in its own steps.

    `by_cells` is what is known of people's L2 norms, whichever norm is scaled: how much each has in single groups.
    """
    beyond = float(np.sum(sizes.people[sizes.total > sizes.tail_cap]))
    believed = sizes.told.is_believed
    tail = sizes.tail_cap if cap is None or cap.tail is None else cap.tail
    lengths = sizes.length
    if by_cells is not None:
        (ranked,) = by_rank([by_cells])
        lengths = np.minimum(np.interp(sizes.total, ranked.total, ranked.length), sizes.total)
    cut = float(np.sum(sizes.people * ((1 - weights) * lengths) ** 2))
    lost = sizes.people * sizes.total * (1 - weights)
    is_told = by_cells is not None and (by_cells.length is not None or by_cells.is_rooted) and np.sum(lost) > 0
    return Outlook(
        people=sizes.told.total.count,
        mass=sizes.mass if believed else 0.0,
        kept=sizes.kept(weights),
        scaled=float(np.sum(sizes.people[weights < 1])) if believed else 0.0,
        beyond=beyond,
        beyond_most=beyond + sizes.told.total.unseen,
        excess=sizes.excess,
        tail_cap=sizes.tail_cap,
        beyond_totals=sizes.beyond(tail),
        by_values=0.0 if cap is None else cap.by_values,
        unseen=sizes.told.total.unseen,
        at_tail=1.0 if cap is None else min(1.0, cap.size / sizes.longest),
        unseen_cut=_unseen_cut(sizes, weights) if believed else 0.0,
        cut_in_cells=cut / sizes.mass if believed else 0.0,
        alone=float(np.average((lengths / sizes.total) ** 2, weights=lost)) if is_told else 0.0,
    )


def _unseen_cut(sizes: Sizes, weights: Floats) -> float:
    """Return about how much may be cut from people too few to be seen: beyond the tail cap, and as much below it.

    Each octave between the cap and the tail cap can hide as many as there may be beyond; together they lose about as
    much as those, who count for the tail cap.
    """
    return 2 * sizes.told.total.unseen * sizes.tail_cap * (1 - float(np.min(weights)))


def in_fine_steps(size: float) -> tuple[int, int]:
    """Return (shift, cap): a size in steps as a cap of at most 2^CAP_BITS fine steps, and at least half of that."""
    exact = Fraction(size)
    shift = CAP_BITS - exact.numerator.bit_length() + exact.denominator.bit_length()
    while exact * Fraction(2) ** shift > 1 << CAP_BITS:
        shift -= 1
    return shift, max(1, int(exact * Fraction(2) ** shift))


def tail_in_fine_steps(size: float, shift: int) -> tuple[int, int]:
    """Return (tail, tail_shift): a tail cap in steps, in units of 2^tail_shift fine steps."""
    fine = max(1, int(Fraction(size) * Fraction(2) ** shift))
    tail_shift = max(0, fine.bit_length() - TAIL_BITS)
    return max(1, fine >> tail_shift), tail_shift


def root_above(value: int) -> int:
    """Return a whole number at or just above the square root."""
    return 0 if value <= 0 else isqrt(value - 1) + 1
