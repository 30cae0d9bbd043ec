"""The scaled plan: each unit's vectors are scaled into caps that were learned, or that a person gave.

Whatever the facts say, the plan is safe: a cap is what one unit can add to a release, and the noise is made for it
(docs/proofs/scaling.md). Facts decide how well the answer comes out.

Quantiles beside counts, sums or means: two plans in one, so that each part is as good as asked by itself.

Counts, sums and means are scaled; quantiles of people are drawn by weights and need no bound. All numbers have an
equal part of epsilon, and together the two plans cost the call's amount.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt

import numpy as np

from tacit.accounting import rho_within
from tacit.errors import QueryRefused
from tacit.numbers import Floats
from tacit.plan.bounds.caps import (
    EPSILON_MOST,
    ROWS_SHARES,
    Cap,
    MomentPart,
    NoiseTerms,
    Pair,
    Told,
    UnitSizes,
    best_cap,
    best_mean_caps,
    by_rank,
    in_fine_steps,
    moment_caps,
    outlook_of,
    tail_in_fine_steps,
)
from tacit.plan.bounds.chosen import PART_OF_MOMENT_ROWS, PART_OF_ROWS
from tacit.plan.bounds.facts import Fact, Facts, Keys, KeySearch, grouping_in, grouping_of, known_keys, reading_of
from tacit.plan.bounds.filled import Filled, filled, lacks_anything
from tacit.plan.bounds.moment_vectors import all_vectors
from tacit.plan.bounds.profiles import Reading, below, people_above
from tacit.plan.bounds.scaling import ByHand, Scaling, Vector
from tacit.plan.bounds.vectors import Wanted, WantedVector, is_scaled, under_ceilings, widens
from tacit.plan.groups import UNIT_SHIFT, refuse_private_keys, sensitivity_of_totals, sensitivity_of_vector
from tacit.plan.plan import NoiseKind, NoisyRelease, Part, Plan, Quantile, Sensitivity, Spend
from tacit.plan.split import rounded_shares, with_noise
from tacit.query import Query, limit_cells
from tacit.tables import Declaration


@dataclass(frozen=True)
class KnownSizes:
    """A question's vectors, and the rounds of facts that each one's cap is read off."""

    wanted: Wanted
    rounds: tuple[tuple[Fact, ...], ...]
    keys: Keys  # the groups: listed, or found by the rounds below
    found: tuple[Fact, ...]  # the rounds that found the groups
    declaration: Declaration
    spend: Spend
    totals: tuple[Reading | None, ...] = ()  # of each vector: its L1 profile under its ceilings
    ceilings: tuple[Fact, ...] = ()  # those that lowered one
    of_all_rows: tuple[bool, ...] = ()  # of each vector: whether its rounds are, though fewer rows are asked about

    @property
    def cells_most(self) -> int:
        """In how many groups one unit can be."""
        return len(self.keys) or 2  # where none was found, nothing is added up, and any number does

    @property
    def is_one_number(self) -> bool:
        """Whether all units are in one and the same group."""
        return self.cells_most == 1

    @property
    def public_rows(self) -> int | None:
        """How many rows the whole table has, where that is declared and all of them are asked about."""
        is_whole = self.wanted.grouping.where is None and not self.found
        return self.declaration.rows if is_whole else None

    @property
    def facts(self) -> tuple[Fact, ...]:
        """All of the facts, each once."""
        profiles = (fact for rounds in self.rounds for fact in rounds)
        return tuple(dict.fromkeys((*self.wanted.used, *profiles, *self.found, *self.ceilings)))


def known_facts(query: Query, declaration: Declaration, spend: Spend, facts: Facts) -> KnownSizes | None:
    """Return the vectors of a question with the facts that their caps are read off; None where one is missing."""
    grouping = grouping_in(query, declaration, spend, facts)
    if grouping.public_keys is None and spend.delta_keys == 0:
        refuse_private_keys(query)
    wanted = all_vectors(query, grouping, facts)
    if wanted is None:
        return None
    found: list[tuple[Fact, ...]] = []
    totals: list[Reading | None] = []
    ceilings: list[Fact] = []
    of_all_rows: list[bool] = []
    wide = widens(query)
    for each in wanted.vectors:
        subject = None if each.subject is None else each.subject.at_hand(facts, spend.epsilon, widens=wide)
        rounds = () if subject is None else tuple(subject.rounds(facts))
        if each.learned_from is not None and not rounds:
            return None
        found.append(rounds)
        of_all_rows.append(subject != each.subject)
        if each.subject is None or not rounds:
            totals.append(None)
            continue
        read = reading_of(rounds, 0, each.subject.profiles[0].vector, safe=each.safe)
        total, used = under_ceilings(read, each.subject, facts)
        totals.append(total)
        ceilings += used
    rounds_of_keys = tuple(KeySearch(grouping).at_hand(facts).rounds(facts)) if grouping.public_keys is None else ()
    if grouping.public_keys is None and not rounds_of_keys:
        return None
    keys = known_keys(rounds_of_keys) if grouping.public_keys is None else grouping.public_keys
    more = (tuple(totals), tuple(ceilings), tuple(of_all_rows))
    return KnownSizes(wanted, tuple(found), keys, rounds_of_keys, declaration, spend, *more)


def told_of(known: KnownSizes, place: int, noise: NoiseKind) -> Told:
    """Return what is known of one vector, for the norm of this noise."""
    each, rounds, total = known.wanted.vectors[place], known.rounds[place], known.totals[place]
    if each.subject is None or total is None:
        raise ValueError("a vector whose cap is one unit is not profiled")
    profiled = each.subject.profiles[0].vector
    rows = known.declaration.rows_per_unit
    times = float(rows) if rows is not None and profiled.kind == "units" and each.role != "units" else 1.0
    if noise == "laplace":
        return Told(total, times=times)
    if profiled.kind == "units":
        return Told(total, times=times, is_rooted=True)
    length = reading_of(rounds, 1, profiled, safe=each.safe) if len(rounds[0].parts) > 1 else None
    if length is not None and length.top is None:  # it has so much more noise that it tells nothing
        length = None
    length = None if length is None else below(length, total) if total.ceiling is not None else length
    return Told(total, length, cells=float(max(known.cells_most, 1)))


def people_longer(known: KnownSizes, place: int, noise: NoiseKind, cap: float) -> tuple[float, float] | None:
    """Return how many people's vectors are longer than a cap, in steps, at least and at most as far as noise tells."""
    told = told_of(known, place, noise)
    reading, profile = (told.total, 0) if told.length is None else (told.length, 1)
    size = cap**2 if told.is_rooted else cap
    rounds = [(fact.parts[profile], float(fact.scales[profile])) for fact in known.rounds[place]]
    found = people_above(rounds, size / told.times, reading)
    if found is None or noise == "laplace" or told.is_rooted or told.length is not None:
        return found
    return 0.0, found[1]  # of the L1 norm, which is the longer one


# --- the plan ---


# How often the caps of vectors with one weight are chosen in turn.
TURNS = 2

Piece = tuple[tuple[Part, ...], Sensitivity, Fraction]


@dataclass(frozen=True)
class _Choice:
    """One kind of noise for the whole call: the share and the cap of each vector, and about how well it does."""

    noise: NoiseKind
    shares: tuple[Fraction, ...]
    sizes: tuple[UnitSizes | None, ...]
    caps: tuple[Cap | None, ...]
    weights: tuple[Floats | None, ...]
    error: float


def scaled_plan(query: Query, declaration: Declaration, spend: Spend, facts: Facts) -> Plan | None:
    """Return the plan of counts, sums, means and moments of units' rows; None where a fact is missing."""
    known = known_facts(query, declaration, spend, facts)
    if known is None:
        return None
    limit_cells(query, len(known.keys))
    choice = _chosen_noise(known)
    vectors = tuple(_vector(known, choice, place) for place in range(len(known.wanted.vectors)))
    scaling = Scaling(1 if choice.noise == "laplace" else 2, vectors, tuple(map(tuple, known.wanted.together)))
    cells, totals = _pieces(known, choice, scaling)
    made = with_noise((*cells, *totals), spend, choice.noise)
    return _plan(query, known, scaling, made)


def _plan(query: Query, known: KnownSizes, scaling: Scaling, made: tuple[NoisyRelease, ...]) -> Plan:
    declaration, wanted = known.declaration, known.wanted
    return Plan(
        table=declaration.name,
        version=declaration.version,
        unit=wanted.grouping.unit,
        neighbours=declaration.neighbours,
        where=query.where,
        keys=wanted.grouping.keys,
        public_keys=known.keys,
        measured=tuple(wanted.measured),
        releases=made[: len(scaling.vectors)],
        outputs=tuple(wanted.outputs[output.name] for output in query.outputs),
        columns=query.columns or (*(key.name for key in query.keys), *(output.name for output in query.outputs)),
        after=query.after,
        spend=known.spend,
        scaling=scaling,
        totals=made[len(scaling.vectors) :],
        public_rows=known.public_rows,
        learned=known.facts,
        by_hand=ByHand(declaration.rows_per_unit, declaration.groups_per_unit if query.keys else None),
        most_rows=declaration.most_rows_per_unit,
    )


# ---- Choosing noise, shares and caps.


def _chosen_noise(known: KnownSizes) -> _Choice:
    """Return the kind of noise, and the caps, that err less; the kind that the call asks for if it asks."""
    given = any(vector.given is not None for vector in known.wanted.vectors)
    only_l1 = known.wanted.grouping.only_l1 and not given
    noises = ("laplace",) if only_l1 and known.spend.noise is None else _noises(known.spend)
    choices = [_choice(known, noise, float(known.cells_most)) for noise in noises]
    return min(choices, key=lambda choice: choice.error)


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


def _choice(known: KnownSizes, noise: NoiseKind, cells: float) -> _Choice:
    vectors = known.wanted.vectors
    shares = _vector_shares(known, noise)
    sizes: list[UnitSizes | None] = [None] * len(vectors)
    caps: list[Cap | None] = [None] * len(vectors)
    weights: list[Floats | None] = [None] * len(vectors)
    error = 0.0
    for group in known.wanted.together:
        by_hand = [place for place in group if vectors[place].given is not None]
        for place in by_hand:
            caps[place], sizes[place], weights[place] = _given(known, place, noise)
            error += _error_given(known, place, noise, float(shares[place]))
        scaled = [place for place in group if known.rounds[place] and place not in by_hand]
        if not scaled:
            continue
        ranked = by_rank([told_of(known, place, noise) for place in scaled])
        of_group = dict(zip(scaled, ranked, strict=True))
        chosen = _caps(known, noise, cells, of_group, shares)
        together = np.minimum.reduce([each.weights(chosen[place].size) for place, each in of_group.items()])
        for place in scaled:
            sizes[place], caps[place], weights[place] = of_group[place], chosen[place], together
    error += sum(
        _weight(known, place) * cap.relative(each, cells)
        for place, (cap, each) in enumerate(zip(caps, sizes, strict=True))
        if cap is not None and each is not None and vectors[place].given is None
    )
    return _Choice(noise, tuple(shares), tuple(sizes), tuple(caps), tuple(weights), error)


def _given(known: KnownSizes, place: int, noise: NoiseKind) -> tuple[Cap, UnitSizes | None, Floats | None]:
    """Return a cap that is given by hand, and what is known of people's sizes if that was learned before."""
    given = known.wanted.vectors[place].given
    if given is None:
        raise ValueError("this cap is not given by hand")
    cap = Cap(given.size(noise), Fraction(0), 0.0)
    if not known.rounds[place]:
        return cap, None, None
    (sizes,) = by_rank([told_of(known, place, noise)])
    return cap, sizes, sizes.weights(cap.size)


def _error_given(known: KnownSizes, place: int, noise: NoiseKind, share: float) -> float:
    """Return the noise under a cap given by hand, as a part of what one row adds, to compare kinds of noise by."""
    vector = known.wanted.vectors[place]
    if vector.given is None:
        return 0.0
    width = _terms(noise, known, vector).width(share)
    return _weight(known, place) * vector.given.size(noise) / vector.given.each * width


def _caps(
    known: KnownSizes, noise: NoiseKind, cells: float, sizes: Mapping[int, UnitSizes], shares: list[Fraction]
) -> dict[int, Cap]:
    """Return the caps of vectors that have one weight: of a count or a sum, of a mean, or of a moment."""
    vectors = known.wanted.vectors
    if _products_beside(known, next(iter(sizes))):
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
        return moment_caps(parts, cells)
    if len(sizes) > 1:
        return _caps_of_means(known, noise, cells, sizes, shares)
    ((place, each),) = sizes.items()
    is_public = known.public_rows is not None and vectors[place].role == "rows"
    terms = _terms(noise, known, vectors[place])
    return {place: best_cap(each, terms, cells=cells, share=float(shares[place]), is_public=is_public)}


def _caps_of_means(
    known: KnownSizes, noise: NoiseKind, cells: float, sizes: Mapping[int, UnitSizes], shares: list[Fraction]
) -> dict[int, Cap]:
    """Return the caps of the rows and the sums of means; the rows of one mean get their share in `shares`."""
    vectors = known.wanted.vectors
    sums = [place for place in sizes if vectors[place].role == "centred"]
    (rows,) = (place for place in sizes if place not in sums)
    found: dict[int, Cap] = {}
    for turn in range(TURNS if len(sums) > 1 else 1):
        for place in sums:
            others = [sizes[at].weights(found[at].size) for at in sums if at != place and at in found]
            both = shares[rows] + shares[place]
            may_divide = turn == 0 and len(sums) == 1
            chosen = best_mean_caps(
                Pair(
                    sizes[rows],
                    sizes[place],
                    _terms(noise, known, vectors[rows]),
                    _terms(noise, known, vectors[place]),
                    both,
                    ROWS_SHARES if may_divide else (shares[rows] / both,),
                    others=np.minimum.reduce(others) if others else None,
                    has_sum=not vectors[place].of_mean,
                ),
                cells,
            )
            found |= {rows: chosen.rows, place: chosen.sums}
            shares[rows] = both * chosen.rows_share
            shares[place] = both - shares[rows]
    return found


def _terms(noise: NoiseKind, known: KnownSizes, vector: WantedVector) -> NoiseTerms:
    replaced, one = known.declaration.neighbours == "replace", known.is_one_number
    signed = vector.role == "centred"
    spend = known.spend
    if noise == "laplace":
        farther = 1.0 if not replaced or (one and not signed) else 2.0
        return NoiseTerms("laplace", float(min(spend.epsilon, EPSILON_MOST)), farther)
    farther = 1.0 if not replaced or (one and not signed) else 2.0 if signed else sqrt(2)
    return NoiseTerms("gaussian", float(rho_within(min(spend.epsilon, EPSILON_MOST), spend.delta_rho)), farther)


def _weight(known: KnownSizes, place: int) -> float:
    """Return how much the error of a vector counts, as a part of the most that one counts."""
    given = dict(known.spend.weights)
    counts = [
        max((given.get(name, Fraction(1)) for name in vector.names), default=Fraction(1))
        for vector in known.wanted.vectors
    ]
    return float(counts[place] / max(counts))


def _vector_shares(known: KnownSizes, noise: NoiseKind) -> list[Fraction]:
    """Return the share of each vector, its totals included; they add up to 1 exactly."""
    root = 1 / 3 if noise == "laplace" else 1 / 2
    parts = []
    for place, vector in enumerate(known.wanted.vectors):
        beside, products = len(known.wanted.together_with(place)), _products_beside(known, place)
        part = 1.0 if vector.names else PART_OF_ROWS
        if products and vector.role != "centred":  # a group whose rows may be noise has no number
            part = PART_OF_MOMENT_ROWS * (1 + products) / 2
        elif not products and beside > 1:  # a mean has as much as a count: its rows a part of that, its sums the rest
            part = PART_OF_ROWS if vector.role != "centred" else 1 - PART_OF_ROWS / (beside - 1)
        parts.append(part * _weight(known, place) ** root)
    return rounded_shares(parts)


def _products_beside(known: KnownSizes, place: int) -> int:
    """Return how many vectors of squares or products have one weight with this one."""
    vectors = known.wanted.vectors
    return sum(vectors[each].factors is not None for each in known.wanted.together_with(place))


# ---- The plan's records.


def _vector(known: KnownSizes, choice: _Choice, place: int) -> Vector:
    each = known.wanted.vectors[place]
    sizes, cap, weights = choice.sizes[place], choice.caps[place], choice.weights[place]
    if cap is None:  # one unit is its cap
        shift = UNIT_SHIFT if known.wanted.grouping.keys else 0
        return replace(each.vector, shift=shift, cap=1 << shift)
    shift, fine = in_fine_steps(cap.size)
    vector = replace(each.vector, shift=shift, cap=fine, rows=each.rows, factors=each.factors)
    if sizes is None or weights is None:  # given by hand, and nothing is known of what people have beyond it
        return vector
    outlook = outlook_of(sizes, weights, cap)
    outlook = replace(outlook, of_all_rows=known.of_all_rows[place], one_sign=each.one_sign)
    longer = people_longer(known, place, choice.noise, cap.size)
    if longer is not None:
        outlook = replace(outlook, scaled_least=longer[0], scaled_most=longer[1])
    vector = replace(vector, outlook=outlook)
    if not cap.anchor and cap.size >= sizes.tail_cap:
        return vector
    tail, tail_shift = tail_in_fine_steps(cap.tail or sizes.tail_cap, shift)
    vector = replace(vector, tail=tail, tail_shift=tail_shift)  # without totals it is told of, and no more
    return replace(vector, totals="signed" if each.signed else "absolute") if cap.anchor else vector


def _pieces(known: KnownSizes, choice: _Choice, scaling: Scaling) -> tuple[list[Piece], list[Piece]]:
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


@dataclass(frozen=True)
class Half:
    """A part of a question, and its amount."""

    query: Query
    spend: Spend


@dataclass(frozen=True)
class Halves:
    """A question in two parts: the down-weighted numbers, and its quantiles."""

    scaled: Half
    drawn: Half

    def drawn_with(self, keys: Keys | None) -> Half:
        """Return the quantiles of these groups."""
        if not self.drawn.query.keys:
            return self.drawn
        return replace(self.drawn, query=replace(self.drawn.query, public_keys=keys))


def halves_of(query: Query, declaration: Declaration, spend: Spend) -> Halves | None:
    """Return both parts of a question that asks quantiles of people beside numbers that are scaled; else None.

    Noise is Laplace's, so that both parts are charged in epsilon.
    """
    drawn = tuple(output for output in query.outputs if output.aggregate.of == "people")
    others = tuple(output for output in query.outputs if output not in drawn)
    if not drawn or not others:
        return None
    scaled = replace(query, outputs=others, columns=())
    if not is_scaled(scaled, declaration):
        return None
    if spend.noise == "gaussian":
        raise QueryRefused(
            "quantiles of people are asked beside counts, sums or means with Laplace noise only"
            "\nhint: leave noise= out, or ask for the quantiles by themselves"
        )
    part = Fraction(len(others), len(query.outputs))
    names = {output.name for output in others}
    weights = tuple(each for each in spend.weights if each[0] in names)
    return Halves(
        Half(scaled, replace(spend, epsilon=spend.epsilon * part, noise="laplace", weights=weights)),
        Half(
            replace(query, outputs=drawn, columns=()),
            replace(spend, epsilon=spend.epsilon * (1 - part), noise="laplace", weights=()),
        ),
    )


def known_groups(halves: Halves, declaration: Declaration, facts: Facts) -> Keys | None:
    """Return the groups that are listed, or known to have been found."""
    half = halves.scaled
    grouping = grouping_of(half.query, declaration, half.spend)
    if grouping.public_keys is not None:
        return grouping.public_keys
    return known_keys(KeySearch(grouping).at_hand(facts).rounds(facts)) or None


def filled_half(half: Half, declaration: Declaration, facts: Facts) -> Filled | None:
    """Return the quantiles with their missing ranges filled in; None if a fact is missing."""
    if not lacks_anything(half.query, declaration, half.spend):
        return Filled(half.query, declaration, ())
    return filled(half.query, declaration, half.spend, facts)


def scaled_half(halves: Halves, declaration: Declaration, facts: Facts) -> Plan | None:
    """Return the plan of the down-weighted part; None if a fact is missing."""
    return scaled_plan(halves.scaled.query, declaration, halves.scaled.spend, facts)


def united(query: Query, spend: Spend, scaled: Plan, drawn: Plan, filled: Filled) -> Plan:
    """Return one plan of both: the columns of the quantiles come after those that are scaled."""
    first = len(scaled.measured)
    part = scaled.spend.epsilon / spend.epsilon
    releases, totals = (
        tuple(replace(each, share=each.share * part) for each in some) for some in (scaled.releases, scaled.totals)
    )
    quantiles = tuple(
        replace(draw, column=draw.column + first, share=draw.share * (1 - part)) for draw in drawn.quantiles
    )
    outputs = {output.name: output for output in scaled.outputs}
    for output in drawn.outputs:
        if isinstance(output, Quantile):
            outputs[output.name] = replace(output, column=output.column + first)
    return replace(
        scaled,
        measured=(*scaled.measured, *drawn.measured),
        releases=releases,
        totals=totals,
        quantiles=quantiles,
        outputs=tuple(outputs[output.name] for output in query.outputs),
        columns=query.columns or (*(key.name for key in query.keys), *(output.name for output in query.outputs)),
        spend=spend,
        learned=tuple(dict.fromkeys((*scaled.learned, *filled.used))),
        learned_ranges=filled.ranged,
    )
