"""How a call's loss is divided between its releases: so that the squared relative errors add up to the least.

An error is taken relative to the most the answer could be: a mean's to its range, a sum's to its rows at the end of the
range, a count's to its rows, a quantile's in ranks. All of these fall with the number of rows alike, so which division
is best depends on public facts alone. Noise falls as 1/share under epsilon and as 1/√share under rho, so a share is in
proportion to the cube root, or the square root, of what its outputs weigh.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import sqrt

from tacit.errors import InvalidParameter
from tacit.plan.layout import UNITS, Layout
from tacit.plan.plan import NoiseKind, PlannedOutput, Sensitivity
from tacit.plan.ranks import ESTIMATES_PART, ESTIMATES_PART_OF_RHO, UnitBounds
from tacit.plan.sensitivity import whole_of
from tacit.privacy.number import Number, decimal_meaning, positive
from tacit.selection.quantile import levels_of

# Shares are whole parts of this.
PARTS = 1000
# No release gets less than this part of an even share: grids are chosen so that its noise can still be drawn.
EVEN_LEAST = Fraction(1, 8)
# Under Gaussian noise a threshold is so low already that a count of units alone needs half of another's share.
GAUSSIAN_UNITS = 1 / 4


def read_weights(weights: Mapping[str, Number] | None, names: Sequence[str]) -> tuple[tuple[str, Fraction], ...]:
    """Return how much each named aggregate's squared error counts, or refuse a name that is not there."""
    if weights is None:
        return ()
    if not isinstance(weights, Mapping):
        raise InvalidParameter("weights must be a dict from an aggregate's name to a number\nhint: weights={'n': 2}")
    found = []
    for name, weight in weights.items():
        if name not in names:
            raise InvalidParameter(f"weights names '{name}', which is not asked\nhint: there is {', '.join(names)}")
        found.append((name, positive(decimal_meaning(weight, name=f"the weight of '{name}'"), name="a weight")))
    return tuple(sorted(found))


def shares_of(
    layout: Layout,
    sensitivities: Sequence[Sensitivity],
    unit: UnitBounds,
    weights: tuple[tuple[str, Fraction], ...],
    *,
    noise: NoiseKind,
) -> tuple[list[Fraction], list[Fraction]]:
    """Return the share of each release and of each draw of quantiles; they add up to 1 exactly."""
    counts = len(layout.released), len(layout.quantiles)
    if sum(counts) <= 1:
        return [Fraction(1)] * counts[0], [Fraction(1)] * counts[1]
    weighed = [[0.0] * counts[0], [0.0] * counts[1]]
    given = dict(weights)
    most = max((given.get(output.name, Fraction(1)) for output in layout.outputs), default=Fraction(1))
    for output in layout.outputs:  # a ranking has no release, and is asked alone
        kind = output.kind == "quantile"
        error = (
            _rank_error(output, layout, unit, noise=noise)
            if kind
            else _error(output, layout, sensitivities[output.release], noise=noise)
        )
        weighed[kind][output.release] += float(given.get(output.name, Fraction(1)) / most) * error**2
    if layout.private:  # which groups are shown hangs on the count of units, so it gets no less than others do
        place = layout.released.index(UNITS)
        rest = [*weighed[0][:place], *weighed[0][place + 1 :], *weighed[1]]
        least = sum(rest) / len(rest) * (1 if noise == "laplace" else GAUSSIAN_UNITS)
        weighed[0][place] = max(weighed[0][place], least)
    root = 1 / 3 if noise == "laplace" else 1 / 2
    shares = _rounded([weight**root for weight in (*weighed[0], *weighed[1])])
    return shares[: counts[0]], shares[counts[0] :]


def _size(how_far: Sensitivity, *, noise: NoiseKind) -> float:
    """Return the standard deviation of the noise at a loss of 1, in steps."""
    return how_far.l1 * sqrt(2) if noise == "laplace" else sqrt(how_far.l2_squared / 2)


def _error(output: PlannedOutput, layout: Layout, how_far: Sensitivity, *, noise: NoiseKind) -> float:
    """Return about how many rows of a group the noise is worth in this output, at a loss of 1."""
    parts = layout.released[output.release]
    whole = float(whole_of(parts[-1], layout.columns))
    if output.kind in ("count", "count_units", "count_distinct"):
        counted = [part for part in parts if part.kind != "missing" or output.column is None]
        return _size(how_far, noise=noise) * sqrt(len(counted)) / whole
    if parts[-1].kind == "total":
        column = layout.columns[parts[-1].column or 0]
        whole = float(max(abs(column.low), abs(column.high)))
    return _size(how_far, noise=noise) / whole


def _rank_error(output: PlannedOutput, layout: Layout, unit: UnitBounds, *, noise: NoiseKind) -> float:
    """Return about how many rows a quantile is off by, at a loss of 1."""
    levels = levels_of(len(layout.quantiles[output.release].fractions))
    if noise == "laplace":
        draws = unit.groups * float(levels / ESTIMATES_PART)
    else:
        draws = sqrt(unit.groups * float(levels / ESTIMATES_PART_OF_RHO) / 8)
    return sqrt(2) * unit.rows * draws * (2 if unit.replace else 1)


def _rounded(sizes: list[float]) -> list[Fraction]:
    """Return shares in about these proportions as whole parts of PARTS that add up to 1."""
    total, least = sum(sizes), -(-PARTS * EVEN_LEAST // len(sizes))
    parts = [max(int(least), int(PARTS * size / total)) for size in sizes]
    order = sorted(range(len(sizes)), key=lambda place: (parts[place] - PARTS * sizes[place] / total, place))
    step = 1 if sum(parts) < PARTS else -1
    while sum(parts) != PARTS:
        for place in order if step > 0 else reversed(order):
            if sum(parts) != PARTS and parts[place] + step >= least:
                parts[place] += step
    return [Fraction(part, PARTS) for part in parts]
