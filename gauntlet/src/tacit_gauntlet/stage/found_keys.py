"""Keys that nobody listed, shown by weights: what an engine gives a unit's keys, and the chance that one is shown.

The chance is by the exact law of the noise on the plan's own release, in balls; what draws is the product's release.
"""

from collections.abc import Sequence
from fractions import Fraction

from flint import arb

from tacit.exact import UNITS, ExactTable, scaled_name
from tacit.plan import groups
from tacit.plan.plan import Plan, Threshold
from tacit.release import release
from tacit_gauntlet.stage.balls import at_precision
from tacit_gauntlet.stage.engine import Way
from tacit_gauntlet.stage.neighbours import Row
from tacit_gauntlet.stage.scaling import exact_of, released_cells

# Of one unit's keys no more than this many count.
KEYS_OF_A_UNIT_MOST = groups.KEYS_MOST
_PRECISION = 256


def threshold_of(plan: Plan) -> Threshold:
    """Return what the noisy weight of a key has to reach."""
    if plan.threshold is None:
        raise RuntimeError("private keys have a threshold")
    return plan.threshold


def one_with_keys(unit: int, keys: int) -> list[Row]:
    """Return the rows of a person who alone has so many keys."""
    return [(unit, f"{unit}/{place}", 1, 1.0, None) for place in range(keys)]


def weights_given(plan: Plan, people: Sequence[int], way: Way) -> dict[int, list[int]]:
    """Return the weights that an engine gives the keys of people, each with so many keys of their own."""
    rows = [row for keys in people for row in one_with_keys(keys, keys)]
    cells = released_cells(plan, exact_of(plan, rows, way))[threshold_of(plan).release]
    found: dict[int, list[int]] = {keys: [] for keys in people}
    for (key, *_), weight in cells.items():
        found[int(key.split("/")[0])].append(weight)
    return found


def shows_more_than(plan: Plan, weights: Sequence[int], delta: Fraction) -> bool:
    """Return whether the chance that any key of these weights is shown is certainly above delta."""
    threshold = threshold_of(plan)
    law = plan.releases[threshold.release].law
    with at_precision(_PRECISION):
        hidden = arb(1)
        for weight in set(weights):
            hidden *= (1 - law.upper_tail(threshold.least - weight)) ** list(weights).count(weight)
        return bool(1 - hidden > arb(delta.numerator) / arb(delta.denominator))


def people_shown(plan: Plan, weights: Sequence[int], *, people: int) -> int:
    """Return how many of so many people, each with keys of these weights, have one shown by a real release."""
    decisive = threshold_of(plan).release
    keys = [(f"{person}/{place}",) for person in range(people) for place in range(len(weights))]
    sums = {scaled_name(place): [0] * len(keys) for place in range(len(plan.releases))}
    sums |= {scaled_name(decisive): list(weights) * people, UNITS: [1] * len(keys)}
    return len({str(key).split("/")[0] for (key,) in release(plan, ExactTable(keys, sums)).keys})
