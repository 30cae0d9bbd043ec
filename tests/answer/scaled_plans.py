"""Plans that scale, made by hand, and the integers that an engine would give them for a table of units and groups."""

from fractions import Fraction

from tacit.plan import Measured, NoisyRelease, Part, Plan, Scaling, Sensitivity, Spend
from tacit.plan.bounds.scaling import UNBOUNDED
from tacit.plan.plan import KeyColumn
from tacit.privacy import GaussianNoise, LaplaceNoise
from tacit.query import Column, PostProcessing
from tacit.release import NoisyTable

WHOLE = Measured(Column("x"), "int", Fraction(1), -(1 << 30), 1 << 30)


def noise_of(parts, scale, noise="laplace", share=1):
    """A release whose noise has this scale, whatever its sensitivity."""
    scale, one = Fraction(scale), Fraction(1)
    event = LaplaceNoise(scale, one) if noise == "laplace" else GaussianNoise(scale, one)
    return NoisyRelease(tuple(parts), Sensitivity(1, 1, 1, 1), Fraction(share), noise, scale, event)


def scaled_plan(outputs, vectors, *, scales, totals_scales=(), groups=1, noise="laplace", **changed):
    """A plan whose release i is vector i, with noise of these scales in fine steps; groups=0: no GROUP BY."""
    totals = [
        (Part("kept", index=(at,)), Part("cut", index=(at,))) for at, vector in enumerate(vectors) if vector.totals
    ]
    plan = {
        "table": "visits",
        "version": 1,
        "unit": "id",
        "neighbours": "add-remove",
        "where": None,
        "keys": (KeyColumn("g", Column("g"), "int"),) if groups else (),
        "public_keys": tuple((group,) for group in range(groups)) if groups else ((),),
        "rows_per_unit": UNBOUNDED,
        "groups_per_unit": UNBOUNDED,
        "measured": (WHOLE,),
        "products": (),
        "releases": tuple(noise_of([Part("scaled", index=(at,))], scale, noise) for at, scale in enumerate(scales)),
        "quantiles": (),
        "distincts": (),
        "choice": None,
        "threshold": None,
        "outputs": tuple(outputs),
        "columns": (*(("g",) if groups else ()), *(output.name for output in outputs)),
        "after": PostProcessing(),
        "spend": Spend(Fraction(1)),
        "scaling": Scaling(1 if noise == "laplace" else 2, tuple(vectors), tuple((at,) for at in range(len(vectors)))),
        "totals": tuple(noise_of(parts, scale, noise) for parts, scale in zip(totals, totals_scales, strict=True)),
    }
    return Plan(**(plan | changed))


def noisy_of(cells, totals=()):
    """A noisy table with these numbers: [vector][group], and (kept, cut) of each vector that has totals."""
    keys = tuple((group,) for group in range(len(cells[0])))
    return NoisyTable(keys, tuple((tuple(map(int, each)),) for each in cells), tuple(map(tuple, totals)))
