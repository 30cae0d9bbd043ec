"""Profile plans: how many units are in each bin of a histogram of sizes, with noise on every bin.

The groups of such a plan are bins, and the cells of a unit are those of the question that the profile is for. A session
charges for it and releases it as it does any plan; `profiles.py` reads what comes out.
"""

from collections.abc import Sequence
from fractions import Fraction

from tacit.plan.known import Subject
from tacit.plan.plan import Cells, KeyColumn, NoisyRelease, Part, Plan, Sensitivity, Spend
from tacit.plan.scaling import BINS, LARGEST_BINS, UNBOUNDED
from tacit.privacy import LaplaceNoise
from tacit.query import PostProcessing, Value


def profile_plan(subject: Subject, epsilons: Sequence[Fraction]) -> Plan:
    """Return the plan that learns profiles: a unit is in one bin of each, and every bin gets Laplace noise.

    Privacy: a unit changes one bin of a profile by 1; where it is replaced, two bins (docs/proofs/scaling.md).
    """
    grouping = subject.grouping
    moves = grouping.moves
    how_far = Sensitivity(l0=moves, l1=moves, l2_squared=moves, linf=1)
    whole = sum(epsilons, Fraction(0))
    declaration = grouping.declaration
    bins = LARGEST_BINS if subject.profiles[0].norm == "largest" else BINS
    return Plan(
        table=declaration.name,
        version=declaration.version,
        unit=grouping.unit,
        neighbours=declaration.neighbours,
        where=grouping.where,
        keys=(KeyColumn("bin", Value(0, "int"), "int"),),
        public_keys=tuple((place,) for place in range(bins)),
        rows_per_unit=UNBOUNDED,
        groups_per_unit=UNBOUNDED,
        measured=subject.measured,
        products=(),
        releases=tuple(_people(place, how_far, epsilon, whole) for place, epsilon in enumerate(epsilons)),
        quantiles=(),
        distincts=(),
        choice=None,
        threshold=None,
        outputs=(),
        columns=("bin",),
        after=PostProcessing(),
        spend=Spend(whole),
        profiles=subject.profiles,
        cells=Cells(grouping.keys, grouping.public_keys),
    )


def _people(place: int, how_far: Sensitivity, epsilon: Fraction, whole: Fraction) -> NoisyRelease:
    scale = how_far.l1 / epsilon
    event = LaplaceNoise(scale=scale, sensitivity=Fraction(how_far.l1))
    return NoisyRelease((Part("people", index=(place,)),), how_far, epsilon / whole, "laplace", scale, event)
