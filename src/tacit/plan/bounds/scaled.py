"""The scaled plan: no bound is given by hand, so each unit's vectors are scaled into caps that were learned.

Whatever the facts say, the plan is safe: a cap is what one unit can add to a release, and the noise is made for it
(docs/proofs/scaling.md). Facts decide how well the answer comes out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import log, pi, sqrt
from statistics import NormalDist

import numpy as np

from tacit.accounting import rho_within
from tacit.errors import QueryRefused
from tacit.plan.bounds.caps import (
    ANCHOR_SHARES,
    EPSILON_MOST,
    Cap,
    Sizes,
    Terms,
    best_cap,
    by_rank,
    in_fine_steps,
    outlook_of,
    root_above,
    tail_in_fine_steps,
)
from tacit.plan.bounds.facts import Facts
from tacit.plan.bounds.mean_caps import ROWS_SHARES, Pair, best_mean_caps, with_tails
from tacit.plan.bounds.moment_caps import MomentPart, moment_caps
from tacit.plan.bounds.profiles import Floats
from tacit.plan.bounds.scaled_known import Known, known_facts, people_longer, told_of
from tacit.plan.bounds.scaling import UNBOUNDED, Scaling, Vector
from tacit.plan.bounds.vectors import WantedVector
from tacit.plan.groups import KEYS_MOST, UNIT_SHIFT, threshold_for_weights
from tacit.plan.plan import NoiseKind, NoisyRelease, Part, Plan, Sensitivity, Spend, Threshold
from tacit.plan.split import rounded_shares, with_noise
from tacit.query import Query, limit_cells
from tacit.tables import Declaration

# Parts of the loss: of a vector that something is asked of, of rows that only a mean needs, and of the units by which
# private keys are shown, under either noise: under Gaussian noise their threshold is low already.
PART_ASKED, PART_OF_ROWS, PART_OF_KEYS = 1.0, 1 / 3, {"laplace": 1.0, "gaussian": 0.5}
# The same of rows that squares need, and half as much for each more vector of these: a group whose rows may be noise
# has no number.
PART_OF_MOMENT_ROWS = 1 / 2
# A group that is shown has about this many times the units of the threshold.
SHOWN_GROUP = 4
# The share of totals where a mean or a count is asked beside a variance.
ANCHOR_OF_MOMENTS = ANCHOR_SHARES[1]
# How often the caps of vectors with one weight are chosen in turn.
TURNS = 2

Piece = tuple[tuple[Part, ...], Sensitivity, Fraction]


@dataclass(frozen=True)
class _Choice:
    """One kind of noise for the whole call: the share and the cap of each vector, and about how well it does."""

    noise: NoiseKind
    shares: tuple[Fraction, ...]
    sizes: tuple[Sizes | None, ...]
    caps: tuple[Cap | None, ...]
    weights: tuple[Floats | None, ...]
    error: float


def scaled_plan(query: Query, declaration: Declaration, spend: Spend, facts: Facts) -> Plan | None:
    """Return the plan of a question in which no unit is bounded by hand; None where a fact is missing."""
    known = known_facts(query, declaration, spend, facts)
    if known is None:
        return None
    listed = known.wanted.grouping.public_keys
    limit_cells(query, None if listed is None else len(listed))
    choice = _chosen(known)
    vectors = tuple(_vector(known, choice, place) for place in range(len(known.wanted.vectors)))
    scaling = Scaling(1 if choice.noise == "laplace" else 2, vectors, tuple(map(tuple, known.wanted.together)))
    cells, totals = _pieces(known, choice, scaling)
    made = with_noise((*cells, *totals), spend, choice.noise)
    return _plan(query, known, scaling, made)


def _plan(query: Query, known: Known, scaling: Scaling, made: tuple[NoisyRelease, ...]) -> Plan:
    declaration, wanted = known.declaration, known.wanted
    groups = declaration.groups_per_unit or UNBOUNDED
    return Plan(
        table=declaration.name,
        version=declaration.version,
        unit=wanted.grouping.unit,
        neighbours=declaration.neighbours,
        where=query.where,
        keys=wanted.grouping.keys,
        public_keys=wanted.grouping.public_keys,
        rows_per_unit=declaration.rows_per_unit or UNBOUNDED,
        groups_per_unit=known.cells_most if known.is_private else groups,
        measured=tuple(wanted.measured),
        products=(),
        releases=made[: len(scaling.vectors)],
        quantiles=(),
        distincts=(),
        choice=None,
        threshold=_threshold(known, scaling, made),
        outputs=tuple(wanted.outputs[output.name] for output in query.outputs),
        columns=query.columns or (*(key.name for key in query.keys), *(output.name for output in query.outputs)),
        after=query.after,
        spend=known.spend,
        scaling=scaling,
        totals=made[len(scaling.vectors) :],
        public_rows=known.public_rows,
        learned=known.facts,
    )


# ---- Choosing noise, shares and caps.


def _chosen(known: Known) -> _Choice:
    """Return the kind of noise, and the caps, that err less; the kind that the call asks for if it asks."""
    noises = _noises(known.spend)
    shown = {noise: _groups_shown(known, noise) for noise in noises} if known.is_private else {}
    cells = min(max(shown.values()), known.groups_most) if shown else float(known.cells_most)
    choices = [_choice(known, noise, cells) for noise in noises]
    # which groups are seen at all counts as much as how well they are
    return min(choices, key=lambda choice: choice.error / shown.get(choice.noise, 1.0))


def _noises(spend: Spend) -> tuple[NoiseKind, ...]:
    if spend.delta_rho > 0:
        tiny = float(rho_within(min(spend.epsilon, EPSILON_MOST), spend.delta_rho)) == 0
        if tiny and spend.noise == "gaussian":
            raise QueryRefused("epsilon is too small: no Gaussian noise is that wide\nhint: give a larger epsilon")
        return ("laplace", "gaussian") if spend.noise is None and not tiny else (spend.noise or "laplace",)
    if spend.noise == "gaussian":
        raise QueryRefused(
            "Gaussian noise needs a delta, but this budget is pure (delta = 0)\nhint: use noise='laplace', or"
            " declare the budget with a delta, e.g. budget=tacit.epsilon(3, delta=1e-6)"
        )
    return ("laplace",)


def _choice(known: Known, noise: NoiseKind, cells: float) -> _Choice:
    vectors = known.wanted.vectors
    shares = _shares(known, noise)
    sizes: list[Sizes | None] = [None] * len(vectors)
    caps: list[Cap | None] = [None] * len(vectors)
    weights: list[Floats | None] = [None] * len(vectors)
    for group in known.wanted.together:
        scaled = [place for place in group if known.rounds[place]]
        if not scaled:
            continue
        ranked = by_rank([told_of(known, place, noise) for place in scaled])
        of_group = dict(zip(scaled, ranked, strict=True))
        if _is_of_means(known, of_group):
            of_group = {place: with_tails(each) for place, each in of_group.items()}
            chosen = _caps_of_means(known, noise, cells, of_group, shares)
        else:
            chosen = _caps(known, noise, cells, of_group, shares)
        together = np.minimum.reduce([each.weights(chosen[place].size) for place, each in of_group.items()])
        for place in scaled:
            sizes[place], caps[place], weights[place] = of_group[place], chosen[place], together
    error = sum(
        _weight(known, place) * cap.relative(each, cells)
        for place, (cap, each) in enumerate(zip(caps, sizes, strict=True))
        if cap is not None and each is not None
    )
    return _Choice(noise, tuple(shares), tuple(sizes), tuple(caps), tuple(weights), error)


def _caps(
    known: Known,
    noise: NoiseKind,
    cells: float,
    sizes: Mapping[int, Sizes],
    shares: Sequence[Fraction],
) -> dict[int, Cap]:
    """Return the caps of vectors that have one weight, each chosen in turn with the others as they are."""
    if _products_beside(known, next(iter(sizes))):
        return _moment_caps(known, noise, cells, sizes, shares)
    found: dict[int, Cap] = {}
    for _ in range(TURNS if len(sizes) > 1 else 1):
        for place, each in sizes.items():
            others = [other.weights(found[at].size) for at, other in sizes.items() if at != place and at in found]
            found[place] = best_cap(
                each,
                _terms(noise, known, known.wanted.vectors[place]),
                cells=cells,
                share=float(shares[place]),
                others=np.minimum.reduce(others) if others else None,
                is_public=known.public_rows is not None
                and known.wanted.together_with(place) == [place]
                and known.wanted.vectors[place].role == "rows",
            )
    if any(cap.anchor for cap in found.values()):  # one weight cuts all of them, so the totals of all are measured
        found = {place: replace(cap, anchor=cap.anchor or ANCHOR_SHARES[0]) for place, cap in found.items()}
    return found


def _moment_caps(
    known: Known, noise: NoiseKind, cells: float, sizes: Mapping[int, Sizes], shares: Sequence[Fraction]
) -> dict[int, Cap]:
    """Return the caps of a moment's vectors; totals are measured of those from which something else is asked too."""
    vectors = known.wanted.vectors
    parts = {
        place: MomentPart(
            each,
            _terms(noise, known, vectors[place]),
            float(shares[place]),
            is_product=vectors[place].factors is not None,
            is_rows=vectors[place].role != "centred",
        )
        for place, each in sizes.items()
    }
    found = moment_caps(parts, cells)
    if cells <= 1 or not any(vectors[place].names for place in parts if not parts[place].is_product):
        return found
    return {
        place: cap if parts[place].is_product else replace(cap, anchor=ANCHOR_OF_MOMENTS)
        for place, cap in found.items()
    }


def _is_of_means(known: Known, sizes: Mapping[int, Sizes]) -> bool:
    """Whether vectors with one weight are rows and sums of which nothing but means is asked, all of them believed."""
    vectors = [known.wanted.vectors[place] for place in sizes]
    sums = [vector for vector in vectors if vector.role == "centred"]
    if _products_beside(known, next(iter(sizes))) or not all(each.told.is_believed for each in sizes.values()):
        return False
    return len(vectors) > len(sums) > 0 and all(vector.of_mean for vector in sums)


def _caps_of_means(
    known: Known, noise: NoiseKind, cells: float, sizes: Mapping[int, Sizes], shares: list[Fraction]
) -> dict[int, Cap]:
    """Return the caps of the rows and the sums of means; rows that nobody asked for get their share in `shares`."""
    vectors = known.wanted.vectors
    sums = [place for place in sizes if vectors[place].role == "centred"]
    (rows,) = (place for place in sizes if place not in sums)
    found: dict[int, Cap] = {}
    for turn in range(TURNS if len(sums) > 1 else 1):
        for place in sums:
            others = [sizes[at].weights(found[at].size) for at in sums if at != place and at in found]
            both = shares[rows] + shares[place]
            may_divide = not vectors[rows].names and turn == 0 and len(sums) == 1
            chosen = best_mean_caps(
                Pair(
                    sizes[rows],
                    sizes[place],
                    _terms(noise, known, vectors[rows]),
                    _terms(noise, known, vectors[place]),
                    both,
                    ROWS_SHARES if may_divide else (shares[rows] / both,),
                    counts=_weight(known, rows) / _weight(known, place) if vectors[rows].names else 0.0,
                    others=np.minimum.reduce(others) if others else None,
                ),
                cells,
            )
            found |= {rows: chosen.rows, place: chosen.sums}
            shares[rows] = both * chosen.rows_share
            shares[place] = both - shares[rows]
    return found


def _terms(noise: NoiseKind, known: Known, vector: WantedVector) -> Terms:
    replaced, one = known.declaration.neighbours == "replace", known.is_one_number
    signed = vector.role == "centred"
    spend = known.spend
    if noise == "laplace":
        farther = 1.0 if not replaced or (one and not signed) else 2.0
        return Terms("laplace", float(min(spend.epsilon, EPSILON_MOST)), farther)
    farther = 1.0 if not replaced or (one and not signed) else 2.0 if signed else sqrt(2)
    return Terms("gaussian", float(rho_within(min(spend.epsilon, EPSILON_MOST), spend.delta_rho)), farther)


def _weight(known: Known, place: int) -> float:
    """Return how much the error of a vector counts."""
    names, given = known.wanted.vectors[place].names, dict(known.spend.weights)
    return float(max((given.get(name, Fraction(1)) for name in names), default=Fraction(1)))


def _shares(known: Known, noise: NoiseKind) -> list[Fraction]:
    """Return the share of each vector, its totals included; they add up to 1 exactly."""
    root = 1 / 3 if noise == "laplace" else 1 / 2
    parts = []
    for place, vector in enumerate(known.wanted.vectors):
        part = PART_OF_KEYS[noise] if vector.role == "keys" else PART_ASKED if vector.names else PART_OF_ROWS
        if part == PART_OF_ROWS and vector.role != "centred" and (products := _products_beside(known, place)):
            part = PART_OF_MOMENT_ROWS * (1 + products) / 2
        parts.append(part * _weight(known, place) ** root)
    return rounded_shares(parts)


def _products_beside(known: Known, place: int) -> int:
    """Return how many vectors of squares or products have one weight with this one."""
    vectors = known.wanted.vectors
    return sum(vectors[each].factors is not None for each in known.wanted.together_with(place))


def _height(known: Known, noise: NoiseKind) -> float:
    """Return about the threshold of private keys, in units: for choosing; the true one is found afterwards."""
    place = next(place for place, vector in enumerate(known.wanted.vectors) if vector.role == "keys")
    width = _terms(noise, known, known.wanted.vectors[place]).width(float(_shares(known, noise)[place]))
    chance = max(float(known.spend.delta_keys), 1e-300)
    if noise == "laplace":
        return 1 + width * max(log(1 / (2 * chance)), 1.0)
    return 1 + width * sqrt(pi / 2) * max(-NormalDist().inv_cdf(chance), 1.0)


def _groups_shown(known: Known, noise: NoiseKind) -> float:
    """Return about how many groups are shown: as if each had some times the units of the threshold."""
    height = _height(known, noise)
    for place, rounds in enumerate(known.rounds):
        if rounds and known.wanted.vectors[place].role != "centred":
            (sizes,) = by_rank([told_of(known, place, "gaussian")])
            # a person in k groups alike has an L1 norm √k times the L2 norm, and weighs 1 over all of them, or √k
            groups = np.minimum((sizes.total / sizes.length) ** 2, KEYS_MOST)
            weighs = np.ones_like(groups) if noise == "laplace" else np.sqrt(groups)
            return max(2.0, float(np.sum(sizes.people * weighs)) / (SHOWN_GROUP * height))
    return 2.0


# ---- The plan's records.


def _vector(known: Known, choice: _Choice, place: int) -> Vector:
    each = known.wanted.vectors[place]
    sizes, cap, weights = choice.sizes[place], choice.caps[place], choice.weights[place]
    if sizes is None or cap is None or weights is None:  # one unit is its cap
        shift = UNIT_SHIFT if known.wanted.grouping.keys else 0
        return replace(each.vector, shift=shift, cap=1 << shift)
    shift, fine = in_fine_steps(cap.size)
    vector = replace(each.vector, shift=shift, cap=fine, rows=each.rows, factors=each.factors)
    outlook = outlook_of(sizes, weights, cap, told_of(known, place, "gaussian"))
    outlook = replace(outlook, of_all_rows=known.of_all_rows[place])
    longer = people_longer(known, place, choice.noise, cap.size)
    if longer is not None:
        outlook = replace(outlook, scaled_least=longer[0], scaled_most=longer[1])
    vector = replace(vector, outlook=outlook)
    if not cap.anchor and cap.size >= sizes.tail_cap:
        return vector
    tail, tail_shift = tail_in_fine_steps(cap.tail or sizes.tail_cap, shift)
    vector = replace(vector, tail=tail, tail_shift=tail_shift)  # without totals it is told of, and no more
    return replace(vector, totals="signed" if each.signed else "absolute") if cap.anchor else vector


def _pieces(known: Known, choice: _Choice, scaling: Scaling) -> tuple[list[Piece], list[Piece]]:
    """Return each vector's cells, and the totals of those that have them, with their shares of the loss."""
    cells: list[Piece] = []
    totals: list[Piece] = []
    replaced = known.declaration.neighbours == "replace"
    numbers = 1 if known.is_one_number else max(known.cells_most, 2)
    for place, (vector, cap) in enumerate(zip(scaling.vectors, choice.caps, strict=True)):
        share, anchor = choice.shares[place], Fraction(0) if cap is None else cap.anchor
        how_far = sensitivity_of_vector(vector, norm=scaling.norm, replaced=replaced, cells=numbers)
        cells.append(((Part("scaled", index=(place,)),), how_far, share * (1 - anchor)))
        if vector.totals is not None:
            parts = (Part("kept", index=(place,)), Part("cut", index=(place,)))
            totals.append((parts, sensitivity_of_totals(vector, replaced=replaced), share * anchor))
    return cells, totals


def _threshold(known: Known, scaling: Scaling, made: tuple[NoisyRelease, ...]) -> Threshold | None:
    """Return the threshold of private keys: their noisy sum of weights, of one unit at most each, must reach it."""
    if not known.is_private:
        return None
    place = next(place for place, vector in enumerate(known.wanted.vectors) if vector.role == "keys")
    vector, release = scaling.vectors[place], made[place]
    return threshold_for_weights(
        release.summed,
        release.scale,
        cap=vector.cap,
        shift=vector.shift,
        norm=scaling.norm,
        groups_most=known.cells_most,
        delta=known.spend.delta_keys,
        release=place,
    )


def sensitivity_of_vector(vector: Vector, *, norm: int, replaced: bool, cells: int) -> Sensitivity:
    """Return how far one unit can move a scaled vector over all groups, in fine steps.

    A unit's vector is within its cap, in the norm. Where one unit replaces another, both are: the two may differ by
    twice the cap in L1. In L2 by twice the cap too, or by its √2-fold where no number is negative. `cells` is 1 only
    where there is a single group in all: one unit in one group may be replaced by another in another.
    """
    signed = vector.kind == "centred"
    one = vector.cap if norm == 1 else vector.cap * root_above(cells)
    return _sensitivity(vector.cap, one, cells, replaced=replaced, signed=signed)


def sensitivity_of_totals(vector: Vector, *, replaced: bool) -> Sensitivity:
    """Return how far one unit can move both totals of a vector: together at most its tail (docs/proofs/scaling.md)."""
    return _sensitivity(vector.tail, vector.tail, 2, replaced=replaced, signed=vector.totals == "signed")


def _sensitivity(length: int, sum_most: int, numbers: int, *, replaced: bool, signed: bool) -> Sensitivity:
    """Return the sensitivity of so many numbers: one unit's are of this length at most, and add up to `sum_most`."""
    if not replaced:
        return Sensitivity(l0=numbers, l1=sum_most, l2_squared=length * length, linf=length)
    linf = 2 * length if signed else length
    if numbers == 1:
        return Sensitivity(l0=1, l1=linf, l2_squared=linf * linf, linf=linf)
    return Sensitivity(l0=2 * numbers, l1=2 * sum_most, l2_squared=(4 if signed else 2) * length**2, linf=linf)
