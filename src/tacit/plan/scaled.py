"""The scaled plan: no bound is given by hand, so each unit's vectors are scaled into caps that were learned.

Whatever the facts say, the plan is safe: a cap is what one unit can add to a release, and the noise is made for it
(docs/proofs/scaling.md). Facts decide how well the answer comes out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import log, pi, prod, sqrt
from statistics import NormalDist

import numpy as np

from tacit.accounting import rho_within
from tacit.errors import QueryRefused
from tacit.plan.caps import (
    ANCHOR_SHARES,
    EPSILON_MOST,
    MISMATCH,
    MISMATCH_OF_MEANS,
    Cap,
    Sizes,
    Terms,
    Told,
    best_cap,
    by_rank,
    in_fine_steps,
    outlook_of,
    root_above,
    tail_in_fine_steps,
)
from tacit.plan.facts import Fact, Facts
from tacit.plan.groups import KEYS_MOST, UNIT_SHIFT, refuse_private_keys, threshold_for_weights
from tacit.plan.known import grouping_of, key_counts, reading_of
from tacit.plan.plan import NoiseKind, NoisyRelease, Part, Plan, Sensitivity, Spend, Threshold
from tacit.plan.profiles import Floats
from tacit.plan.scaling import UNBOUNDED, Scaling, Vector
from tacit.plan.split import rounded_shares, with_noise
from tacit.plan.vectors import Wanted, WantedVector, wanted_vectors
from tacit.query import Query, limit_cells
from tacit.tables import Declaration

# Parts of the loss: of a vector that something is asked of, of rows that only a mean needs, and of the units by which
# private keys are shown, under either noise: under Gaussian noise their threshold is low already.
PART_ASKED, PART_OF_ROWS, PART_OF_KEYS = 1.0, 1 / 3, {"laplace": 1.0, "gaussian": 0.5}
# A group that is shown has about this many times the units of the threshold.
SHOWN_GROUP = 4
# A noisy number of different keys is below the true one by more than so many scales of its noise once in five times.
SURE = 1.0
# How often the caps of vectors with one weight are chosen in turn.
TURNS = 2

Piece = tuple[tuple[Part, ...], Sensitivity, Fraction]


@dataclass(frozen=True)
class _Known:
    """A question's vectors, and the rounds of facts that each one's cap is read off."""

    wanted: Wanted
    rounds: tuple[tuple[Fact, ...], ...]
    keys_counted: tuple[Fact, ...]  # how many different keys there are, where they are found
    declaration: Declaration
    spend: Spend

    @property
    def is_private(self) -> bool:
        """Whether keys are found privately."""
        return self.wanted.grouping.public_keys is None

    @property
    def cells_most(self) -> int:
        """In how many groups one unit can be."""
        listed = self.wanted.grouping.public_keys
        if listed is not None:
            return len(listed)
        return min(self.declaration.groups_per_unit or KEYS_MOST, KEYS_MOST)

    @property
    def is_one_number(self) -> bool:
        """Whether all units are in one and the same group; of found keys, another unit's one group may be another."""
        return not self.is_private and self.cells_most == 1

    @property
    def public_rows(self) -> int | None:
        """How many rows the whole table has, where that is declared and all of them are asked about."""
        is_whole = self.wanted.grouping.where is None and not self.is_private
        return self.declaration.rows if is_whole else None

    @property
    def groups_most(self) -> float:
        """About how many groups there are at most, where keys are found, by the noisy numbers of different keys."""
        counts = (fact.parts[0][0] + SURE * float(fact.scales[0]) for fact in self.keys_counted)
        return max(2.0, prod(max(count, 1.0) for count in counts))

    @property
    def facts(self) -> tuple[Fact, ...]:
        """All of the facts, each once."""
        profiles = (fact for rounds in self.rounds for fact in rounds)
        return tuple(dict.fromkeys((*self.wanted.used, *profiles, *self.keys_counted)))


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
    known = _known(query, declaration, spend, facts)
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


def _plan(query: Query, known: _Known, scaling: Scaling, made: tuple[NoisyRelease, ...]) -> Plan:
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


def _known(query: Query, declaration: Declaration, spend: Spend, facts: Facts) -> _Known | None:
    grouping = grouping_of(query, declaration, spend)
    if grouping.public_keys is None and spend.delta_keys == 0:
        refuse_private_keys(query)
    wanted = wanted_vectors(query, grouping, facts, spend.epsilon)
    if wanted is None:
        return None
    found: list[tuple[Fact, ...]] = []
    for each in wanted.vectors:
        rounds = () if each.subject is None else tuple(each.subject.at_hand(facts, spend.epsilon).rounds(facts))
        if each.subject is not None and not rounds:
            return None
        found.append(rounds)
    counted = key_counts(grouping, facts, spend.epsilon)
    if any(each.key not in facts for each in counted):
        return None
    return _Known(wanted, tuple(found), tuple(facts[each.key] for each in counted), declaration, spend)


# ---- Choosing noise, shares and caps.


def _chosen(known: _Known) -> _Choice:
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


def _choice(known: _Known, noise: NoiseKind, cells: float) -> _Choice:
    vectors = known.wanted.vectors
    shares = _shares(known, noise)
    sizes: list[Sizes | None] = [None] * len(vectors)
    caps: list[Cap | None] = [None] * len(vectors)
    weights: list[Floats | None] = [None] * len(vectors)
    for group in known.wanted.together:
        scaled = [place for place in group if known.rounds[place]]
        if not scaled:
            continue
        for place, each in zip(scaled, by_rank([_told(known, place, noise) for place in scaled]), strict=True):
            sizes[place] = each
        for place, cap in _caps(known, noise, cells, {place: sizes[place] for place in scaled}, shares).items():
            caps[place] = cap
        ones = [sizes[place].weights(caps[place].size) for place in scaled]  # type: ignore[union-attr]
        for place in scaled:
            weights[place] = np.minimum.reduce(ones)
    error = sum(_weight(known, place) * cap.error for place, cap in enumerate(caps) if cap is not None)
    return _Choice(noise, tuple(shares), tuple(sizes), tuple(caps), tuple(weights), error)


def _caps(
    known: _Known,
    noise: NoiseKind,
    cells: float,
    sizes: dict[int, Sizes | None],
    shares: Sequence[Fraction],
) -> dict[int, Cap]:
    """Return the caps of vectors that have one weight, each chosen in turn with the others as they are."""
    found: dict[int, Cap] = {}
    for _ in range(TURNS if len(sizes) > 1 else 1):
        for place, each in sizes.items():
            if each is None:
                continue
            others = [
                other.weights(found[at].size)
                for at, other in sizes.items()
                if at != place and other is not None and at in found
            ]
            found[place] = best_cap(
                each,
                _terms(noise, known, known.wanted.vectors[place]),
                cells=cells,
                share=float(shares[place]),
                mismatch=MISMATCH_OF_MEANS if known.wanted.vectors[place].of_mean else MISMATCH,
                others=np.minimum.reduce(others) if others else None,
                is_public=known.public_rows is not None
                and known.wanted.together_with(place) == [place]
                and known.wanted.vectors[place].role == "rows",
            )
    if any(cap.anchor for cap in found.values()):  # one weight cuts all of them, so the totals of all are measured
        found = {place: replace(cap, anchor=cap.anchor or ANCHOR_SHARES[0]) for place, cap in found.items()}
    return found


def _told(known: _Known, place: int, noise: NoiseKind) -> Told:
    """Return what is known of one vector, for the norm of this noise."""
    each, rounds = known.wanted.vectors[place], known.rounds[place]
    if each.subject is None:
        raise ValueError("a vector whose cap is one unit is not profiled")
    profiled = each.subject.profiles[0].vector
    total = reading_of(rounds, 0, profiled, safe=each.safe)
    rows = known.declaration.rows_per_unit
    times = float(rows) if rows is not None and profiled.kind == "units" and each.role != "units" else 1.0
    if noise == "laplace":
        return Told(total, times=times)
    if profiled.kind == "units":
        return Told(total, times=times, is_rooted=True)
    length = reading_of(rounds, 1, profiled, safe=each.safe) if len(rounds[0].parts) > 1 else None
    return Told(total, None if length is None or length.top is None else length)


def _terms(noise: NoiseKind, known: _Known, vector: WantedVector) -> Terms:
    replaced, one = known.declaration.neighbours == "replace", known.is_one_number
    signed = vector.role == "centred"
    spend = known.spend
    if noise == "laplace":
        farther = 1.0 if not replaced or (one and not signed) else 2.0
        return Terms("laplace", float(min(spend.epsilon, EPSILON_MOST)), farther)
    farther = 1.0 if not replaced or (one and not signed) else 2.0 if signed else sqrt(2)
    return Terms("gaussian", float(rho_within(min(spend.epsilon, EPSILON_MOST), spend.delta_rho)), farther)


def _weight(known: _Known, place: int) -> float:
    """Return how much the error of a vector counts."""
    names, given = known.wanted.vectors[place].names, dict(known.spend.weights)
    return float(max((given.get(name, Fraction(1)) for name in names), default=Fraction(1)))


def _shares(known: _Known, noise: NoiseKind) -> list[Fraction]:
    """Return the share of each vector, its totals included; they add up to 1 exactly."""
    root = 1 / 3 if noise == "laplace" else 1 / 2
    parts = []
    for place, vector in enumerate(known.wanted.vectors):
        part = PART_OF_KEYS[noise] if vector.role == "keys" else PART_ASKED if vector.names else PART_OF_ROWS
        parts.append(part * _weight(known, place) ** root)
    return rounded_shares(parts)


def _height(known: _Known, noise: NoiseKind) -> float:
    """Return about the threshold of private keys, in units: for choosing; the true one is found afterwards."""
    place = next(place for place, vector in enumerate(known.wanted.vectors) if vector.role == "keys")
    width = _terms(noise, known, known.wanted.vectors[place]).width(float(_shares(known, noise)[place]))
    chance = max(float(known.spend.delta_keys), 1e-300)
    if noise == "laplace":
        return 1 + width * max(log(1 / (2 * chance)), 1.0)
    return 1 + width * sqrt(pi / 2) * max(-NormalDist().inv_cdf(chance), 1.0)


def _groups_shown(known: _Known, noise: NoiseKind) -> float:
    """Return about how many groups are shown: as if each had some times the units of the threshold."""
    height = _height(known, noise)
    for place, rounds in enumerate(known.rounds):
        if rounds and known.wanted.vectors[place].role != "centred":
            (sizes,) = by_rank([_told(known, place, "gaussian")])
            # a person in k groups alike has an L1 norm √k times the L2 norm, and weighs 1 over all of them, or √k
            groups = np.minimum((sizes.total / sizes.length) ** 2, KEYS_MOST)
            weighs = np.ones_like(groups) if noise == "laplace" else np.sqrt(groups)
            return max(2.0, float(np.sum(sizes.people * weighs)) / (SHOWN_GROUP * height))
    return 2.0


# ---- The plan's records.


def _vector(known: _Known, choice: _Choice, place: int) -> Vector:
    each = known.wanted.vectors[place]
    sizes, cap, weights = choice.sizes[place], choice.caps[place], choice.weights[place]
    if sizes is None or cap is None or weights is None:  # one unit is its cap
        shift = UNIT_SHIFT if known.wanted.grouping.keys else 0
        return replace(each.vector, shift=shift, cap=1 << shift)
    shift, fine = in_fine_steps(cap.size)
    vector = replace(each.vector, shift=shift, cap=fine, rows=each.rows, outlook=outlook_of(sizes, weights))
    if not cap.anchor:
        return vector
    tail, tail_shift = tail_in_fine_steps(sizes.tail_cap, shift)
    return replace(vector, totals="signed" if each.signed else "absolute", tail=tail, tail_shift=tail_shift)


def _pieces(known: _Known, choice: _Choice, scaling: Scaling) -> tuple[list[Piece], list[Piece]]:
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


def _threshold(known: _Known, scaling: Scaling, made: tuple[NoisyRelease, ...]) -> Threshold | None:
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
    signed = vector.kind in ("centred", "product")
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
