"""Choosing caps: how long a unit's vector may be, what share of the loss its totals get, and which noise is added.

A low cap has little noise and cuts much; totals of what was kept and cut let an answer scale its groups back, and what
is left of the cutting is a part of it: groups differ in how much of them is cut. All three are weighed against each
other from learned profiles, before anything else is paid for. Nothing here touches privacy: any cap is safe.

A mean has two caps, of rows and of sums about a centre, which have one weight and share the loss. To down-weight people
with many rows hardly moves a mean: it is then more about the others, who are much alike. To down-weight people who are
far from the centre moves every group's mean to the centre.

A variance, a covariance or a correlation has the caps of all its vectors, for one ratio. Rows, sums and squares have
one weight, so what is scaled away of all of them alike moves no variance. Left is what is scaled away of squares beyond
that, as the profiles foretell it: people who have the most rows are taken to have the most of all. Caps weigh that
against the noise on each of the vectors. No totals are needed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import exp, hypot, inf, isqrt, log2, pi, sqrt

import numpy as np

from tacit.numbers import Floats
from tacit.plan.bounds.chosen import (
    CLEARLY_LESS,
    LOST_MORE,
    MISMATCH,
    MISMATCH_BY_ROWS,
    MISMATCH_POWER,
    OFF_CENTRE,
)
from tacit.plan.bounds.profiles import NOBODY, ROUNDING, TAIL_OCTAVES, Reading
from tacit.plan.bounds.scaling import CAP_BITS, Outlook
from tacit.plan.plan import NoiseKind

# Errors are foreseen as if epsilon were at most this: one that is larger errs no less.
EPSILON_MOST = Fraction(10**6)
# What share of the loss totals may get: each is tried.
ANCHOR_SHARES = tuple(Fraction(percent, 100) for percent in (5, 10, 20, 35, 50))
# How many bins below the top of a profile caps are tried.
BELOW_TOP = 16
# Caps are tried from an eighth of the median size up, in steps of a quarter octave: where noise is as large as a group,
# the best cap is small.
BELOW_MEDIAN = 8
CAPS_PER_OCTAVE = 4
# No less is taken to be kept, so that errors stay finite.
KEPT_LEAST = 1e-9
# A tail has at most this many binary digits: fine enough that rounding many people's totals does not show.
TAIL_BITS = 30


@dataclass(frozen=True)
class NoiseTerms:
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
        """Return the mean size of the sum of two noises, as on both totals."""
        return self.width(share) * (3 / 2 if self.noise == "laplace" else sqrt(2))


@dataclass(frozen=True)
class Told:
    """What is known of one vector: the profile of its L1 norm and, for the norm that is scaled, that of its length."""

    total: Reading
    length: Reading | None = None  # None: the L1 norm is the length
    times: float = 1.0  # all sizes are those of the profiles times this
    is_rooted: bool = False  # the length is the root of the number that the profile is of: of ones, in the L2 norm
    cells: float = inf  # in at most this number of groups: no L2 norm is below the L1 norm over the root of it

    @property
    def is_believed(self) -> bool:
        """Whether anything is believed of it."""
        return self.total.top is not None

    @property
    def tail_cap(self) -> float:
        """The total, in steps, that nobody is believed to exceed."""
        return self.total.tail_cap * self.times


@dataclass(frozen=True)
class UnitSizes:
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

    def weights(self, cap: float) -> Floats:
        """Return what each counts for, where this vector alone is scaled."""
        return np.minimum(1.0, cap / self.length)

    def kept(self, weights: Floats) -> float:
        """Return about which share of all they have is left by these weights."""
        had = self.people * self.total
        return float(np.sum(had * weights)) / float(np.sum(had))

    def people_beyond(self, size: float) -> float:
        """Return about how many people have more than a size in all, at most."""
        if not self.told.is_believed:
            return self.told.total.unseen
        seen = float(np.sum(self.people[self.total > size * (1 + ROUNDING)]))
        return 2 * seen + self.told.total.hidden(size / self.told.times)

    def lost(self, weights: Floats) -> float:
        """Return about how much of all they have is taken by these weights."""
        return float(np.sum(self.people * self.total * (1 - weights)))

    def lost_most(self, weights: Floats, cap: float) -> float:
        """Return how much of it is taken at most: more than is foreseen, and by people whom noise hides."""
        if not self.told.is_believed:
            return self.told.total.unseen * cap
        told, reading = self.told, self.told.length or self.told.total
        size = cap**2 / told.times if told.is_rooted else cap
        return hypot(LOST_MORE * self.lost(weights), reading.hidden(size / told.times) * size)

    def ends(self) -> list[float]:
        """Return the caps that are worth trying: ends of bins, in steps, from well below the top on."""
        told = self.told
        if not told.is_believed:
            return [self.tail_cap]
        reading = told.total if told.length is None else told.length
        first = max(0, (reading.top or 0) - BELOW_TOP)
        ends = reading.ends()[first:]
        return sorted(set(((np.sqrt(ends) if told.is_rooted else ends) * told.times).tolist()))

    def median(self) -> float:
        """Return about the length that half of the people exceed."""
        order = np.argsort(self.length, kind="stable")
        ranks = np.cumsum(self.people[order])
        return float(self.length[order][min(int(np.searchsorted(ranks, ranks[-1] / 2)), len(order) - 1)])


def by_rank(told: Sequence[Told]) -> list[UnitSizes]:
    """Return people by rank: whoever has the most by one profile is taken to have the most by every other."""
    profiles = [[each.total] if each.length is None else [each.total, each.length] for each in told]
    points = [[reading.points() for reading in readings] for readings in profiles]
    risen = [[np.cumsum(people) / np.sum(people) for _, people in each] for each in points]
    edges = np.unique(np.concatenate([np.zeros(1), *(ranks for each in risen for ranks in each)]))
    middles, widths = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    found = []
    for each, placed, ranks in zip(told, points, risen, strict=True):
        places = [
            np.minimum(np.searchsorted(rank, middles), len(sizes) - 1)
            for (sizes, _), rank in zip(placed, ranks, strict=True)
        ]
        columns = [sizes[place] * each.times for (sizes, _), place in zip(placed, places, strict=True)]
        total = columns[0]
        length = np.sqrt(total * each.times) if each.is_rooted else np.minimum(columns[-1], total)
        length = np.maximum(length, total / sqrt(each.cells))  # whatever the noise of its profile says
        found.append(UnitSizes(each, widths * float(np.sum(placed[0][1])), total, length))
    return found


@dataclass(frozen=True)
class Cap:
    """A cap and the share of its totals, with about what the answer then errs by in a group of mean size."""

    size: float  # in steps
    anchor: Fraction  # 0: no totals are released
    error: float  # in steps
    tail: float | None = None  # how much one person may add to the totals, in steps

    def relative(self, sizes: UnitSizes, cells: float) -> float:
        """Return the error as a part of what a group has on average."""
        return self.error / max(sizes.mass / cells, 1e-300)


def best_cap(
    sizes: UnitSizes,
    terms: NoiseTerms,
    *,
    cells: float,
    share: float = 1.0,
    is_public: bool = False,
) -> Cap:
    """Return the cap of least error in a group of mean size, where `share` of the loss is for this vector.

    Either what people have beyond the cap is missing, or groups are scaled back to measured totals. Where the whole
    table's total `is_public`, groups are scaled back to that, and no totals are released.
    """
    whole = _whole_steps_of(sizes, terms.width(share), cells)
    if cells <= 1 or not sizes.told.is_believed:
        return whole
    scaled = _scaled_sizes(sizes, terms, cells, share, is_public=is_public)
    return whole if CLEARLY_LESS * whole.error <= scaled.error else scaled


def _whole_steps_of(sizes: UnitSizes, width: float, cells: float) -> Cap:
    """Return the cap of least error where nothing is scaled back; `width` is the mean noise for a cap of 1.

    A group lacks its share b of what is beyond the cap, so with Laplace noise of scale s it errs by b + s·exp(-b / s).
    """
    if not sizes.told.is_believed:
        return Cap(sizes.tail_cap, Fraction(0), sizes.tail_cap * width)
    found = Cap(sizes.tail_cap, Fraction(0), inf)
    for size in sizes.ends():
        lost = sizes.lost(sizes.weights(size)) / cells
        error = lost + size * width * exp(-lost / (size * width))
        if error < found.error:
            found = Cap(size, Fraction(0), error)
    return found


def _scaled_sizes(sizes: UnitSizes, terms: NoiseTerms, cells: float, share: float, *, is_public: bool) -> Cap:
    """Return the cap of least error where groups are scaled back to totals, whose tail has the least error too.

    Noise, totals and what groups lose more or less than the others are independent, so they are added as squares.
    """
    mean = sizes.mass / cells
    anchored = []  # the share of totals, the noise for a cap of 1, the error of totals in a mean group, their tail
    for anchor in () if is_public else ANCHOR_SHARES:
        totals, tail = _best_tail(sizes, terms.totals_width(share * float(anchor)))
        anchored.append((anchor, terms.width(share * float(1 - anchor)), totals / cells, tail))
    if is_public:  # what all groups add up to has the noise of all of them
        anchored.append((Fraction(0), terms.width(share) * (1 + 1 / sqrt(cells)), 0.0, sizes.tail_cap))
    found, least = Cap(sizes.tail_cap, Fraction(0), inf), inf
    for size in caps_tried(sizes):
        kept = max(sizes.kept(sizes.weights(size)), KEPT_LEAST)
        wrong = MISMATCH * (1 - kept) / kept**MISMATCH_POWER * mean
        for anchor, width, off, tail in anchored:
            noise = size * width / kept
            if noise + wrong + off < least:
                least = noise + wrong + off
                found = Cap(size, anchor, hypot(noise, wrong, off), max(tail, size))
    return found


def _best_tail(sizes: UnitSizes, width: float) -> tuple[float, float]:
    """Return the error of totals at the best tail, and that tail: more noise, or more of people's rows left out."""
    ends = (sizes.told.total.ends() * sizes.told.times).tolist()[-BELOW_TOP - 2 * TAIL_OCTAVES :]
    return min((end * width + float(sizes.people @ np.maximum(sizes.total - end, 0)), end) for end in ends)


def caps_tried(sizes: UnitSizes, per_octave: int = CAPS_PER_OCTAVE, below: int = BELOW_MEDIAN) -> Iterator[float]:
    """Yield the caps that are tried, from below the median size up to the tail cap."""
    low = max(sizes.median() / below, float(np.min(sizes.length)))
    high = min(sizes.tail_cap, float(np.max(sizes.length)))
    for step in range(max(0, int(log2(max(high / low, 1.0)) * per_octave)) + 1):
        yield low * 2 ** (step / per_octave)


def outlook_of(sizes: UnitSizes, weights: Floats, cap: Cap | None = None) -> Outlook:
    """Return what the profiles foretell of a vector whose people count for these weights, in its own steps."""
    believed = sizes.told.is_believed
    size = sizes.tail_cap if cap is None else cap.size
    tail = size if cap is None or cap.tail is None else cap.tail
    under_tail = np.minimum(1.0, tail / np.maximum(sizes.total, NOBODY))
    return Outlook(
        people=sizes.told.total.count,
        mass=sizes.mass if believed else 0.0,
        kept=sizes.kept(weights),
        scaled=float(np.sum(sizes.people[weights < 1 - ROUNDING])) if believed else 0.0,
        beyond_most=sizes.people_beyond(tail),
        excess=sizes.lost(under_tail) if believed else 0.0,
        tail_cap=sizes.tail_cap,
        lost=sizes.lost(weights) if believed else 0.0,
        lost_most=sizes.lost_most(weights, size),
        excess_most=sizes.lost_most(under_tail, tail),
    )


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


# --- the two caps of a mean ---


# Which part of the loss of a mean its rows get: each is tried.
ROWS_SHARES = tuple(Fraction(percent, 100) for percent in (6, 10, 15, 25, 35, 50))


@dataclass(frozen=True)
class MeanCaps:
    """The caps of the rows and of the sums of a mean, and which part of their loss is for the rows."""

    rows: Cap
    sums: Cap
    rows_share: Fraction


@dataclass(frozen=True)
class Pair:
    """Rows and sums about a centre, with one weight: by rank, and what noise they get."""

    rows: UnitSizes
    sums: UnitSizes
    rows_terms: NoiseTerms
    sums_terms: NoiseTerms
    share: Fraction  # of the call's loss, for both
    rows_shares: Sequence[Fraction]  # which part of it rows may get
    others: Floats | None = None  # what people count for already, because of further vectors with the same weight
    has_sum: bool = False  # the sum is asked too, in which all that is cut is missing


def best_mean_caps(pair: Pair, cells: float) -> MeanCaps:
    """Return the caps, and the share of rows, of least error in a group of mean size."""
    rows, sums = pair.rows, pair.sums
    of_sums = np.array(sums.ends())
    by_sums = np.minimum(1.0, of_sums[:, None] / sums.length[None, :])
    if pair.others is not None:
        by_sums = np.minimum(by_sums, pair.others[None, :])
    found: tuple[float, MeanCaps] | None = None
    for size in rows.ends():
        by_rows = rows.weights(size)
        weights = np.minimum(by_sums, by_rows[None, :])
        kept_rows, kept_sums = _kept_part(rows, weights), _kept_part(sums, weights)
        cut_by_rows = 1 - sums.kept(by_rows)
        far = np.maximum(1 - cut_by_rows - kept_sums, 0.0)
        wrong = cut_by_rows + far if pair.has_sum else MISMATCH_BY_ROWS * cut_by_rows + OFF_CENTRE * far
        for share in pair.rows_shares:
            of_rows = size * pair.rows_terms.width(float(pair.share * share)) * cells / rows.mass
            noise = of_sums * pair.sums_terms.width(float(pair.share * (1 - share))) * cells / sums.mass
            errors = np.hypot(noise, OFF_CENTRE * of_rows) / kept_rows + wrong
            place = int(np.argmin(errors))
            if found is None or errors[place] < found[0]:
                caps = (
                    Cap(size, Fraction(0), 0.0),
                    Cap(float(of_sums[place]), Fraction(0), float(errors[place]) * sums.mass / cells),
                )
                found = float(errors[place]), MeanCaps(*caps, share)
    if found is None:
        raise ValueError("a cap or a share to try is missing")
    return found[1]


def _kept_part(sizes: UnitSizes, weights: Floats) -> Floats:
    """Return, for each row of weights, about which share of all that people have is left."""
    had = sizes.people * sizes.total
    return np.maximum(weights @ had / np.sum(had), KEPT_LEAST)


# --- the caps of a variance, a covariance or a correlation ---


# By how much noise on sums moves a variance, as a part of it: twice a group's distance from the centre, which is given
# in mean distances. The variance of a normal law is pi / 2 squares of its mean distance.
PULL_OF_SUMS = 2 * OFF_CENTRE / (pi / 2)
# Caps are tried from a quarter of the median size up, in steps of a half octave, each vector's in turn.
MOMENT_BELOW_MEDIAN = 4
MOMENT_CAPS_PER_OCTAVE = 2
TURNS = 3


@dataclass(frozen=True)
class MomentPart:
    """One vector of a moment: its people, its noise at its share of the loss, and how much that noise counts."""

    sizes: UnitSizes
    terms: NoiseTerms
    share: float
    is_product: bool
    is_rows: bool

    def noise(self, cap: float, kept: float, cells: float) -> float:
        """Return the noise on a group of mean size as a part of what is kept of it."""
        pull = 1.0 if self.is_product or self.is_rows else PULL_OF_SUMS
        mean = max(kept, KEPT_LEAST) * max(self.sizes.mass, 1e-300) / cells
        return pull * cap * self.terms.width(self.share) / mean


def moment_caps(parts: Mapping[int, MomentPart], cells: float) -> dict[int, Cap]:
    """Return the caps of least error of the ratio, and about what each vector then errs by in a mean group."""
    found = {place: part.sizes.tail_cap for place, part in parts.items()}
    if cells > 1 and all(part.sizes.told.is_believed for part in parts.values()):
        for _ in range(TURNS):
            for place, part in parts.items():
                tried = [
                    found | {place: cap} for cap in caps_tried(part.sizes, MOMENT_CAPS_PER_OCTAVE, MOMENT_BELOW_MEDIAN)
                ]
                found = min((found, *tried), key=lambda caps: _moment_error(parts, caps, cells))
    error = _moment_error(parts, found, cells)
    return {place: Cap(cap, Fraction(0), error * parts[place].sizes.mass / cells) for place, cap in found.items()}


def joint_weights(parts: Mapping[int, MomentPart], caps: Mapping[int, float]) -> Floats:
    """Return what people count for where all vectors have one weight."""
    weights: Floats = np.minimum.reduce([part.sizes.weights(caps[place]) for place, part in parts.items()])
    return weights


def _moment_error(parts: Mapping[int, MomentPart], caps: Mapping[int, float], cells: float) -> float:
    """Return about how far off the ratio is, as a part of it: noise, and what is scaled away unevenly."""
    weights = joint_weights(parts, caps)
    kept = {place: part.sizes.kept(weights) for place, part in parts.items()}
    noises = [part.noise(caps[place], kept[place], cells) for place, part in parts.items()]
    rows = next(kept[place] for place, part in parts.items() if part.is_rows)
    uneven = [abs(1 - kept[place] / max(rows, KEPT_LEAST)) for place, part in parts.items() if part.is_product]
    return sqrt(sum(noise * noise for noise in noises)) + sum(uneven) / max(len(uneven), 1)
