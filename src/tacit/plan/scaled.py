"""The scaled plan: no bound is given by hand, so each unit's vectors are scaled into caps that were learned.

Whatever the facts say, the plan is safe: a cap is what one unit can add to a release, and the noise is made for it
(docs/proofs/scaling.md). Facts decide how well the answer comes out.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

from tacit.accounting import rho_within
from tacit.errors import QueryRefused
from tacit.plan.caps import (
    Cap,
    Sizes,
    Terms,
    best_cap,
    in_fine_steps,
    outlook_of,
    root_above,
    sizes_of,
    tail_in_fine_steps,
)
from tacit.plan.facts import Fact, Facts
from tacit.plan.learning import ROWS, Grouping, grouping_of, known_rounds, norms_of, reading_of
from tacit.plan.outputs import CountRows
from tacit.plan.plan import NoiseKind, Part, Plan, Sensitivity, Spend
from tacit.plan.scaling import UNBOUNDED, Scaling, Vector
from tacit.plan.split import with_noise
from tacit.query import Query, limit_cells
from tacit.tables import Declaration

# A vector's share of the loss, and its parts: (parts, sensitivity, share).
Wanted = tuple[tuple[Part, ...], Sensitivity, Fraction]


@dataclass(frozen=True)
class _Choice:
    """One kind of noise for the whole call: the cap of each vector, and about how well the answer comes out."""

    noise: NoiseKind
    sizes: tuple[Sizes, ...]
    caps: tuple[Cap, ...]
    error: float


def scaled_plan(query: Query, declaration: Declaration, spend: Spend, facts: Facts) -> Plan | None:
    """Return the plan of a question in which no unit is bounded by hand; None where a fact is missing."""
    grouping = grouping_of(query, declaration)
    known = known_rounds(grouping, (), ROWS, norms_of(grouping, spend), facts)
    if not known:
        return None
    listed = grouping.public_keys
    if listed is None:
        return None
    limit_cells(query, len(listed))
    choice = _chosen(grouping, known, spend, cells=len(listed))
    vectors = tuple(_vector(ROWS, sizes, cap) for sizes, cap in zip(choice.sizes, choice.caps, strict=True))
    scaling = Scaling(1 if choice.noise == "laplace" else 2, vectors, tuple((at,) for at in range(len(vectors))))
    cells, totals = _released(scaling, choice, declaration, len(listed))
    made = with_noise((*cells, *totals), spend, choice.noise)
    return Plan(
        table=declaration.name,
        version=declaration.version,
        unit=grouping.unit,
        neighbours=declaration.neighbours,
        where=query.where,
        keys=grouping.keys,
        public_keys=listed,
        rows_per_unit=UNBOUNDED,
        groups_per_unit=UNBOUNDED,
        measured=(),
        products=(),
        releases=made[: len(cells)],
        quantiles=(),
        distincts=(),
        choice=None,
        threshold=None,
        outputs=tuple(CountRows(output.name, 0) for output in query.outputs),
        columns=query.columns or (*(key.name for key in query.keys), *(output.name for output in query.outputs)),
        after=query.after,
        spend=spend,
        scaling=scaling,
        totals=made[len(cells) :],
        learned=tuple(known),
    )


def _chosen(grouping: Grouping, known: list[Fact], spend: Spend, *, cells: int) -> _Choice:
    """Return the kind of noise, and the caps, that err less; the kind that the call asks for if it asks."""
    total = reading_of(known, 0, ROWS)
    length = reading_of(known, 1, ROWS) if len(known[0].parts) > 1 else None
    found = []
    for noise in _noises(spend):
        sizes = sizes_of(total, None if noise == "laplace" else length)
        cap = best_cap(sizes, _terms(noise, spend, grouping.declaration), cells=cells)
        found.append(_Choice(noise, (sizes,), (cap,), cap.relative(sizes, cells)))
    return min(found, key=lambda choice: choice.error)


def _noises(spend: Spend) -> tuple[NoiseKind, ...]:
    if spend.delta_rho == 0:
        if spend.noise == "gaussian":
            raise QueryRefused(
                "Gaussian noise needs a delta, but this budget is pure (delta = 0)\nhint: use noise='laplace', or"
                " declare the budget with a delta, e.g. budget=tacit.epsilon(3, delta=1e-6)"
            )
        return ("laplace",)
    return ("laplace", "gaussian") if spend.noise is None else (spend.noise,)


def _terms(noise: NoiseKind, spend: Spend, declaration: Declaration) -> Terms:
    replaced = declaration.neighbours == "replace"
    if noise == "laplace":
        return Terms("laplace", float(spend.epsilon), 2.0 if replaced else 1.0)
    return Terms("gaussian", float(rho_within(spend.epsilon, spend.delta_rho)), 2**0.5 if replaced else 1.0)


def _vector(profiled: Vector, sizes: Sizes, cap: Cap) -> Vector:
    shift, fine = in_fine_steps(cap.size)
    vector = replace(profiled, shift=shift, cap=fine, outlook=outlook_of(sizes, cap.size))
    if not cap.anchor:
        return vector
    tail, tail_shift = tail_in_fine_steps(sizes.tail_cap, shift)
    return replace(vector, totals="absolute", tail=tail, tail_shift=tail_shift)


def _released(
    scaling: Scaling, choice: _Choice, declaration: Declaration, listed: int
) -> tuple[list[Wanted], list[Wanted]]:
    """Return each vector's cells, and the totals of those that have them, with their shares of the loss."""
    cells: list[Wanted] = []
    totals: list[Wanted] = []
    replaced = declaration.neighbours == "replace"
    for place, (vector, cap) in enumerate(zip(scaling.vectors, choice.caps, strict=True)):
        how_far = sensitivity_of_vector(vector, norm=scaling.norm, replaced=replaced, cells=listed)
        cells.append(((Part("scaled", index=(place,)),), how_far, 1 - cap.anchor))
        if vector.totals is not None:
            parts = (Part("kept", index=(place,)), Part("cut", index=(place,)))
            how_far = sensitivity_of_totals(vector, replaced=replaced)
            totals.append((parts, how_far, cap.anchor))
    return cells, totals


def sensitivity_of_vector(vector: Vector, *, norm: int, replaced: bool, cells: int) -> Sensitivity:
    """Return how far one unit can move a scaled vector over all groups, in fine steps.

    A unit's vector is within its cap, in the norm. Where one unit replaces another, both are: the two may differ by
    twice the cap in L1. In L2 by twice the cap too, or by its √2-fold where no number is negative.
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
    return Sensitivity(l0=numbers, l1=2 * sum_most, l2_squared=(4 if signed else 2) * length * length, linf=linf)
