"""Divide a call's loss between its releases, and choose the noise that errs less.

First the shares: they minimize the sum of the squared relative errors. An error is relative to the largest possible
answer: for a mean its range, for a sum its rows times the end of the range, for a count its rows; for a quantile it is
in ranks. All of these fall in the same way with the number of rows, so the best shares depend on public facts only.
Noise falls as 1/share under epsilon and as 1/√share under rho, so a share is in proportion to the cube root, or the
square root, of the weight of its outputs.

Then the noise: Laplace noise is charged in epsilon and Gaussian noise in rho. So the two are compared at the same total
(epsilon, delta), and one kind serves the whole call. Where keys are private, the count of units is compared by how high
its threshold would be, since the threshold decides which groups are seen.

Private choices in a plan: the quantiles of a column, and the ranking of public keys.

Of quantiles, estimates get most of the loss; the rest pays for intervals, which cover the quantile at the stated rate
for every table (docs/proofs/quantiles.md). A ranking shows the keys with the most units, without their counts. A unit
changes every count by at most 1, all in the same direction, so it costs the same however many keys a unit is in
(docs/proofs/selection.md).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, isqrt, log, sinh, sqrt
from statistics import NormalDist
from typing import assert_never

from tacit.accounting import laplace_scale, noise_delta, rho_within
from tacit.errors import InvalidParameter, QueryRefused
from tacit.numbers import Number, decimal_meaning, positive
from tacit.plan.groups import whole_of
from tacit.plan.layout import UNITS, Layout, WantedQuantiles
from tacit.plan.plan import (
    UNIT_WEIGHT,
    Choice,
    Correlation,
    CountDistinct,
    CountRows,
    CountUnits,
    CountValues,
    Covariance,
    Mean,
    NoiseKind,
    NoisyRelease,
    Part,
    Quantile,
    QuantileDraw,
    Ranking,
    Released,
    Sensitivity,
    Spend,
    StandardDeviation,
    Sum,
    Variance,
)
from tacit.privacy import (
    SCALE_MAX,
    SCALE_MIN,
    Event,
    ExponentialChoice,
    GaussianNoise,
    LaplaceNoise,
    PureChoice,
    StaircaseNoise,
    staircase_for,
)
from tacit.query import Aggregate, QuantileOf, Query, Scalar
from tacit.selection import BEYOND, EXTREME_BITS, Rate, TopK, levels_of, rows_for
from tacit.tables import Declaration, RowUnit

# The share of the loss that estimates get, in epsilon and in rho: either way they err by a third more than without
# intervals.
ESTIMATES_PART = Fraction(3, 4)
ESTIMATES_PART_OF_RHO = Fraction(9, 16)
# The same if only the minimum or the maximum is asked: they aim far enough inside for a short interval.
EXTREMES_PART = Fraction(9, 10)
# The minimum and the maximum are drawn beyond the last row with about this probability at most, even if the range is
# nearly empty.
BEYOND_CHANCE = Fraction(1, 20)
# Up to this many choices are recorded one by one, each at its epsilon²/8; more are recorded as one, at its epsilon.
EVENTS_MOST = 1024
EPSILON_BITS = 40
EPSILON_STEP = Fraction(1, 1 << EPSILON_BITS)
EPSILON_LEAST = Fraction(1, 2**36)
EPSILON_USEFUL = Fraction(2**20)


@dataclass(frozen=True)
class UnitBounds:
    """The bounds on one unit: rows in each group, groups, and whether neighbours replace it or add it."""

    rows: int
    groups: int
    replace: bool


def with_quantiles_of(query: Query, declaration: Declaration) -> Query:
    """Return the question with its open quantiles decided: of rows if bounds for that are declared, else people."""
    alone = isinstance(declaration.unit, RowUnit)
    bounded = declaration.rows_per_unit is not None and (not query.keys or declaration.groups_per_unit is not None)
    usual: QuantileOf = "rows" if alone or bounded else "people"

    def decided(aggregate: Aggregate) -> Aggregate:
        if aggregate.kind != "quantile":
            return aggregate
        return replace(aggregate, of="rows" if alone else aggregate.of or usual)

    outputs = tuple(replace(output, aggregate=decided(output.aggregate)) for output in query.outputs)
    return replace(query, outputs=outputs)


def draw_of(
    wanted: WantedQuantiles,
    heights: tuple[int, ...],
    spend: Spend,
    share: Fraction,
    unit: UnitBounds,
    *,
    rho: Fraction | None,
) -> QuantileDraw:
    """Return the draw of one column's quantiles; with `rho`, levels and intervals in all groups cost it together."""
    if wanted.of == "people":  # a unit's weights in all groups add up to this, so groups cost no more together than one
        unit = UnitBounds(UNIT_WEIGHT, 1, replace=unit.replace)
    fractions = wanted.fractions
    levels, ends = levels_of(len(fractions)), len(fractions)
    many = (levels + ends) * unit.groups > EVENTS_MOST
    extreme = all(fraction in (0, 1) for fraction in fractions)
    part, part_of_rho = (EXTREMES_PART,) * 2 if extreme else (ESTIMATES_PART, ESTIMATES_PART_OF_RHO)
    if rho is None or many:
        whole = spend.epsilon * share if rho is None else _root_down(2 * rho)  # epsilon-DP is at most epsilon²/2-zCDP
        epsilon = whole * part / (unit.groups * levels)
        ends_epsilon = whole * (1 - part) / (unit.groups * ends)
    else:
        epsilon = _root_down(8 * rho * part_of_rho / (unit.groups * levels))
        ends_epsilon = _root_down(8 * rho * (1 - part_of_rho) / (unit.groups * ends))
    epsilon, ends_epsilon = (_drawable_quantile(each, unit.rows) for each in (epsilon, ends_epsilon))
    rate, ends_rate = (Rate(each, unit.rows, unit.replace) for each in (epsilon, ends_epsilon))
    targets = tuple(
        (fraction, inside_of(rate, fraction, heights[wanted.column]), reach_of(ends_rate, fraction, spend.confidence))
        for fraction in fractions
    )
    if rho is None or many:
        events: tuple[Event, ...] = (PureChoice((epsilon * levels + ends_epsilon * ends) * unit.groups),)
    else:
        events = (ExponentialChoice(epsilon),) * (levels * unit.groups)
        events += (ExponentialChoice(ends_epsilon),) * (ends * unit.groups)
    return QuantileDraw(wanted.column, targets, levels, ends, epsilon, ends_epsilon, share, events, wanted.of)


def inside_of(rate: Rate, fraction: Fraction, height: int) -> int:
    """Return how many rows inside to aim for the least and the greatest; 0 for every other quantile."""
    if fraction not in (0, 1):
        return 0
    return max(1, ceil(log(min(height + 1, 1 << EXTREME_BITS) / BEYOND_CHANCE) / float(rate.for_extreme() * BEYOND)))


def reach_of(rate: Rate, fraction: Fraction, confidence: Fraction) -> int:
    """Return how many rows should lie between a quantile and each end of its interval."""
    if fraction in (0, 1):
        return rows_for(1 - confidence, per_row=rate.for_extreme() * BEYOND)
    up, down, slope = rate.for_fraction(fraction)
    return rows_for(1 - confidence, per_row=slope * (up + down))


def _drawable_quantile(epsilon: Fraction, rows: int) -> Fraction:
    """Return the epsilon of a level, capped at its largest useful value; refuse one with ranks beyond 64 bits.

    Ranks are then off by less than 2^45 rows, and scores stay below 2^62.
    """
    if epsilon / rows < EPSILON_LEAST:
        raise QueryRefused(
            "epsilon is too small for quantiles with these bounds per unit: the result would be noise only"
            "\nhint: give a larger epsilon, fewer quantiles, or smaller bounds per unit"
        )
    return min(epsilon, EPSILON_USEFUL)


def quantile_gain(purely: tuple[QuantileDraw, ...], by_rho: tuple[QuantileDraw, ...]) -> float:
    """Return how much larger, in logarithms, rank errors get when charged in rho instead of epsilon."""
    return sum(log(one.epsilon / two.epsilon) for one, two in zip(purely, by_rho, strict=True))


def _root_down(value: Fraction) -> Fraction:
    """Return the square root, rounded down to whole steps of epsilon."""
    return isqrt((value.numerator << 2 * EPSILON_BITS) // value.denominator) * EPSILON_STEP


# ---- The ranking of public keys.

# Permute-and-flip errs up to twice less than the exponential mechanism at the same epsilon.
GAIN_LEAST = 2


def choice_of(
    query: Query, listed: tuple[tuple[Scalar, ...], ...] | None, spend: Spend, unit: UnitBounds
) -> Choice | None:
    """Return the plan of the best keys, or None without a ranking."""
    best = next((output.aggregate.best for output in query.outputs if output.aggregate.best is not None), None)
    if best is None:
        return None
    if len(query.outputs) > 1 or listed is None or not query.keys:
        raise QueryRefused(
            "a ranking must be the only aggregate of a question, and its keys must be public"
            "\nhint: top('city', 3, keys=['A', 'B', 'C', 'D'])"
        )
    if not 1 <= best < len(listed):
        raise QueryRefused(
            f"cannot choose the best {best} of {len(listed)} keys: every key would be chosen"
            "\nhint: give a smaller number, or ask for the counts"
        )
    pure = TopK(k=best, epsilon=spend.epsilon, monotone=not unit.replace)
    if spend.delta_rho == 0 or spend.noise == "laplace":
        return _choice(pure, monotone=not unit.replace)
    each = max(_root_down(8 * rho_within(spend.epsilon, spend.delta_noise) / best), EPSILON_STEP)
    by_rho = TopK(k=best, epsilon=each * best, monotone=not unit.replace, by="exponential")
    better = each > GAIN_LEAST * spend.epsilon / best
    return _choice(by_rho if better or spend.noise == "gaussian" else pure, monotone=not unit.replace)


def _choice(top: TopK, *, monotone: bool) -> Choice:
    return Choice(top.k, top.by, top.terms.epsilon, monotone, top.events)


# Shares are whole parts of this.
PARTS = 1000
# No release gets less than this part of an even share: grids are chosen so that its noise can still be drawn.
EVEN_LEAST = Fraction(1, 8)
# Under Gaussian noise the threshold is low already, so the count of units needs only half of another release's share.
GAUSSIAN_UNITS = 1 / 4
# A count of units that only shows groups has no more than shows those of about so many units.
SHOWN_FROM = 100


def read_weights(weights: Mapping[str, Number] | None, names: Sequence[str]) -> tuple[tuple[str, Fraction], ...]:
    """Return the weight of each named aggregate's squared error, or refuse a name that the question does not have."""
    if weights is None:
        return ()
    if not isinstance(weights, Mapping):
        raise InvalidParameter("weights must be a dict from an aggregate's name to a number\nhint: weights={'n': 2}")
    found = []
    for name, weight in weights.items():
        if name not in names:
            raise InvalidParameter(
                f"weights names '{name}', but the question has no such aggregate"
                f"\nhint: its aggregates are {', '.join(names)}"
            )
        found.append((name, positive(decimal_meaning(weight, name=f"the weight of '{name}'"), name="a weight")))
    return tuple(sorted(found))


def shares_of(
    layout: Layout,
    sensitivities: Sequence[Sensitivity],
    unit: UnitBounds,
    spend: Spend,
    *,
    noise: NoiseKind,
) -> tuple[list[Fraction], list[Fraction]]:
    """Return the share of each release and of each draw of quantiles; they add up to 1 exactly."""
    counts = len(layout.released), len(layout.quantiles)
    if sum(counts) <= 1:
        return [Fraction(1)] * counts[0], [Fraction(1)] * counts[1]
    weighed = [[0.0] * counts[0], [0.0] * counts[1]]
    given = dict(spend.weights)
    most = max((given.get(output.name, Fraction(1)) for output in layout.outputs), default=Fraction(1))
    for output in layout.outputs:
        weight = float(given.get(output.name, Fraction(1)) / most)
        if isinstance(output, Quantile):
            weighed[1][output.draw] += weight * _rank_error(output, layout, unit, noise=noise) ** 2
        elif not isinstance(output, Ranking):  # which has no release, and is asked alone
            error = _release_error(output, layout, sensitivities[output.release], noise=noise)
            weighed[0][output.release] += weight * error**2
    is_asked = True
    if layout.private:  # the count of units decides which groups are shown, so it gets no less than the others
        place = layout.released.index(UNITS)
        rest = [*weighed[0][:place], *weighed[0][place + 1 :], *weighed[1]]
        least = sum(rest) / len(rest) * (1 if noise == "laplace" else GAUSSIAN_UNITS)
        is_asked, weighed[0][place] = weighed[0][place] > 0, max(weighed[0][place], least)
    root = 1 / 3 if noise == "laplace" else 1 / 2
    sizes = [weight**root for weight in (*weighed[0], *weighed[1])]
    if layout.private and not is_asked and noise == "laplace":
        enough = _epsilon_to_show(SHOWN_FROM, unit, spend) / max(float(spend.epsilon), 1e-300)
        others = sum(sizes) - sizes[place]
        sizes[place] = min(sizes[place], others * enough / max(1 - enough, 1e-9))
    shares = rounded_shares(sizes)
    return shares[: counts[0]], shares[counts[0] :]


def _epsilon_to_show(units: int, unit: UnitBounds, spend: Spend) -> float:
    """Return about the epsilon at which a group of this size reaches the threshold."""
    if spend.delta_keys == 0:
        return 0.0
    moves = unit.groups * (2 if unit.replace else 1)
    return moves * log(unit.groups / (2 * float(spend.delta_keys))) / (units - 1)


def _release_error(output: Released, layout: Layout, how_far: Sensitivity, *, noise: NoiseKind) -> float:
    """Return about how many rows of a group the noise is worth in this output, at a loss of 1."""
    parts = layout.released[output.release]
    whole = float(whole_of(parts[-1], layout.columns))
    size = how_far.l1 * sqrt(2) if noise == "laplace" else sqrt(how_far.l2_squared / 2)  # its standard deviation
    match output:
        case CountRows() | CountUnits() | CountDistinct():
            return size * sqrt(len(parts)) / whole
        case CountValues():
            return size * sqrt(sum(part.kind != "missing" for part in parts)) / whole
        case Sum() if parts[-1].kind == "total":
            column = layout.columns[output.column]
            return size / float(max(abs(column.low), abs(column.high)))
        case Sum() | Mean() | Variance() | StandardDeviation() | Covariance() | Correlation():
            return size / whole
        case _:
            assert_never(output)


def _rank_error(output: Quantile, layout: Layout, unit: UnitBounds, *, noise: NoiseKind) -> float:
    """Return about how many rows a quantile is off by, at a loss of 1."""
    wanted = layout.quantiles[output.draw]
    levels = levels_of(len(wanted.fractions))
    rows, groups = (1, 1) if wanted.of == "people" else (unit.rows, unit.groups)
    if noise == "laplace":
        draws = groups * float(levels / ESTIMATES_PART)
    else:
        draws = sqrt(groups * float(levels / ESTIMATES_PART_OF_RHO) / 8)
    return sqrt(2) * rows * draws * (2 if unit.replace else 1)


def rounded_shares(sizes: list[float]) -> list[Fraction]:
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


# sigma is rounded up to this many binary digits
SIGMA_BITS = 40
# what the roundings of sigma and of rho may differ by, and far more
ROUNDING = Fraction(1, 2**30)
# parts of a call's rho that are tried until its noise is within its epsilon
PARTS_TRIED = tuple(Fraction(100 - less, 100) for less in (0, 1, 2, 3, 4, 6))
# a probability below this is compared as if it were this
CHANCE_LEAST = 1e-300
# The staircase costs more in rho than Laplace noise, so it is for where it errs clearly less: an epsilon of 2 or more.
STAIRCASE_GAIN = 1.15
# A larger epsilon gets the staircase of this one, which costs less and errs as little: beyond its first level are
# 2·sensitivity·e^-200 of the draws. Certain digits of far smaller probabilities take minutes.
STAIRCASE_EPSILON_MOST = Fraction(200)
# It is also not used where its interval would be longer, at this probability to miss.
MISSED = Fraction(1, 20)
# Narrower Laplace noise is 0 for all that is compared.
LEAST_TO_COMPARE = Fraction(1, 600)


# Parts that get noise together, how far one unit moves them, and their share of the loss.
Wanted = tuple[tuple[Part, ...], Sensitivity, Fraction]


def divide(
    layout: Layout, sensitivities: list[Sensitivity], spend: Spend, unit: UnitBounds
) -> tuple[tuple[NoisyRelease, ...], tuple[QuantileDraw, ...]]:
    """Return each release with the noise it gets, and each draw of quantiles with its epsilon."""
    laplace, purely = _made(layout, sensitivities, spend, unit, "laplace")
    if spend.noise == "laplace" or (spend.noise is None and spend.delta_rho == 0):
        return _drawable(laplace), purely
    if spend.delta_rho == 0:
        raise QueryRefused(
            "Gaussian noise needs a delta, but this budget is pure (delta = 0)"
            "\nhint: use noise='laplace', or declare the budget with a delta, e.g. budget=tacit.epsilon(3, delta=1e-6)"
        )
    gaussian, by_rho = _made(layout, sensitivities, spend, unit, "gaussian")
    height = _Height(layout.released.index(UNITS), unit.groups, spend.delta_keys) if layout.private else None
    gain = _log_error(gaussian, height) - _log_error(laplace, height)
    better = gain + quantile_gain(purely, by_rho) < 0
    if spend.noise == "gaussian" or (better and not _is_too_wide(gaussian)) or _is_too_wide(laplace):
        return _drawable(gaussian), by_rho
    return laplace, purely


def _made(
    layout: Layout, sensitivities: list[Sensitivity], spend: Spend, unit: UnitBounds, noise: NoiseKind
) -> tuple[tuple[NoisyRelease, ...], tuple[QuantileDraw, ...]]:
    """Laplace noise and choices charged in epsilon, or Gaussian noise and choices charged in rho."""
    shares, draw_shares = shares_of(layout, sensitivities, unit, spend, noise=noise)
    wanted = tuple(zip(layout.released, sensitivities, shares, strict=True))
    releases, rho = _releases(wanted, spend, noise, by_law=not draw_shares)
    heights = tuple(column.height for column in layout.columns)
    return releases, tuple(
        draw_of(each, heights, spend, share, unit, rho=None if rho is None else rho * share)
        for each, share in zip(layout.quantiles, draw_shares, strict=True)
    )


def with_noise(wanted: Sequence[Wanted], spend: Spend, noise: NoiseKind) -> tuple[NoisyRelease, ...]:
    """Return releases with this noise, each given as its parts, its sensitivity and its share of the loss."""
    return _drawable(_releases(wanted, spend, noise, by_law=True)[0])


def _releases(
    wanted: Sequence[Wanted], spend: Spend, noise: NoiseKind, *, by_law: bool
) -> tuple[tuple[NoisyRelease, ...], Fraction | None]:
    """Return releases with this noise, and the rho that they cost if it is Gaussian.

    They get the rho that a budget of the same size has room for, if they are within the call's epsilon and its delta
    for noise too: by their exact distribution Gaussian vectors are, except where sigma is a few steps (a few percent).
    What is not bounded `by_law` gets a little less.
    """
    if noise == "laplace":
        return tuple(_pure(parts, how_far, share, spend) for parts, how_far, share in wanted), None
    for rho in _rhos(spend, by_law=by_law):
        releases = tuple(_gaussian(parts, how_far, share, rho * share) for parts, how_far, share in wanted)
        if by_law and noise_delta(tuple(each.event for each in releases), spend.epsilon) <= spend.delta_noise:
            break
    return releases, rho


def _rhos(spend: Spend, *, by_law: bool) -> Iterator[Fraction]:
    """Yield what rho a call may have, if its noise is within its epsilon: the most first, and last what surely is."""
    if by_law or spend.delta_noise == spend.delta_rho:
        most = rho_within(spend.epsilon, spend.delta_rho)
        yield from (most * part for part in (PARTS_TRIED if spend.delta_noise < spend.delta_rho else (1,)))
    if spend.delta_noise < spend.delta_rho:
        yield rho_within(spend.epsilon, spend.delta_noise) * (1 - ROUNDING)


def standard_deviation(noise: NoiseKind, scale: Fraction) -> float:
    """Return the approximate standard deviation of such noise, for comparing and showing."""
    return float(scale) * (2**0.5 if noise == "laplace" else 1.0)


def _pure(parts: tuple[Part, ...], how_far: Sensitivity, share: Fraction, spend: Spend) -> NoisyRelease:
    """Laplace noise, or the staircase where a unit moves one number alone and it errs clearly less."""
    laplace = _laplace(parts, how_far, share, spend)
    if spend.noise is not None or (how_far.l0, how_far.l1) != (1, how_far.linf) or how_far.linf < 2:
        return laplace
    law = staircase_for(how_far.linf, min(spend.epsilon * share, STAIRCASE_EPSILON_MOST))
    if laplace.scale > SCALE_MAX or _mean_size(laplace.scale) < STAIRCASE_GAIN * float(law.mean_size().mid()):
        return laplace
    if law.smallest_bound(MISSED) > laplace.law.smallest_bound(MISSED):  # of a few steps the first may be too narrow
        return laplace
    event = StaircaseNoise(law.epsilon, Fraction(law.sensitivity), Fraction(law.width))
    return replace(laplace, noise="staircase", scale=law.sensitivity / law.epsilon, event=event)


def _mean_size(scale: Fraction) -> float:
    return 1 / sinh(1 / float(scale)) if scale > LEAST_TO_COMPARE else 0.0


def _laplace(parts: tuple[Part, ...], how_far: Sensitivity, share: Fraction, spend: Spend) -> NoisyRelease:
    scale = laplace_scale(Fraction(how_far.l1), spend.epsilon * share)
    event = LaplaceNoise(scale=scale, sensitivity=Fraction(how_far.l1))
    return NoisyRelease(parts=parts, sensitivity=how_far, share=share, noise="laplace", scale=scale, event=event)


def _gaussian(parts: tuple[Part, ...], how_far: Sensitivity, share: Fraction, rho: Fraction) -> NoisyRelease:
    """Noise that costs at most `rho`."""
    if rho <= 0:
        raise QueryRefused(
            "epsilon is too small: no Gaussian noise is that wide\nhint: give a larger epsilon, or noise='laplace'"
        )
    squared = Fraction(how_far.l2_squared)
    sigma = max(_root_up(squared / (2 * rho)), SCALE_MIN)
    scalar = how_far.l2_squared == 1
    event = GaussianNoise(sigma=sigma, sensitivity_squared=squared, scalar=scalar)
    return NoisyRelease(parts=parts, sensitivity=how_far, share=share, noise="gaussian", scale=sigma, event=event)


def _root_up(value: Fraction) -> Fraction:
    shift = max(0, SIGMA_BITS - (value.numerator.bit_length() - value.denominator.bit_length()) // 2)
    scaled = -(-(value.numerator << 2 * shift) // value.denominator)
    return Fraction(isqrt(scaled - 1) + 1, 1 << shift)


@dataclass(frozen=True)
class _Height:
    """Which release shows private keys, how many one unit may bring, and the probability that one of them is shown."""

    release: int
    groups: int
    delta: Fraction

    def of(self, noise: NoiseKind, scale: Fraction) -> float:
        """Return about how high the threshold is: for choosing; the true one is found in `groups.py`."""
        chance = max(float(self.delta / self.groups), CHANCE_LEAST)
        reach = log(1 / (2 * chance)) if noise == "laplace" else -NormalDist().inv_cdf(chance)
        return 1 + float(scale) * max(reach, 1.0)


def _log_error(releases: tuple[NoisyRelease, ...], height: _Height | None) -> float:
    return sum(
        log(
            height.of(release.summed, release.scale)
            if height is not None and place == height.release
            else _deviation(release)
        )
        for place, release in enumerate(releases)
    )


def _deviation(release: NoisyRelease) -> float:
    if release.noise == "staircase":
        return sqrt(max(float(release.law.variance().mid()), CHANCE_LEAST))
    return standard_deviation(release.summed, release.scale)


def _is_too_wide(releases: tuple[NoisyRelease, ...]) -> bool:
    return any(release.scale > SCALE_MAX for release in releases)


def _drawable(releases: tuple[NoisyRelease, ...]) -> tuple[NoisyRelease, ...]:
    if not _is_too_wide(releases):
        return releases
    raise QueryRefused(
        "the noise would be wider than the sampler can draw: for these bounds per unit the range is too wide,"
        " or epsilon is too small\nhint: give a coarser step, e.g. step=1000, a narrower range, or a larger epsilon"
    )
