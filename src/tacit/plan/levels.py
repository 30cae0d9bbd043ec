"""Levels: the totals of a grouped table, and the part of the loss that each of them gets for separate noise.

Every total is the sum of its groups' bounded numbers, before noise. One unit has one weight for all levels. So a level
moves in L1 by no more than the groups do (docs/proofs/totals.md), and its noise is made for that. A level without a
share is read off the groups. Shares are chosen from public numbers only: how many groups each level has.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import inf, sqrt

from tacit.errors import QueryRefused
from tacit.plan.plan import NoiseKind, NoisyRelease, Part, Plan, PlannedLevel, Sensitivity, Spend, Sum
from tacit.plan.split import rounded_shares, standard_deviation, with_noise
from tacit.query import Query, Scalar

# A level's error counts by the root of its number of groups, so that neither one total nor many groups decide alone.
SIZE_POWER = 0.5
# Levels get a separate share only if the table's error falls by this factor.
CLEARLY = 0.95
STEPS = (0.0, 0.5, 0.8, 1.25, 2.0)
ROUNDS_MOST = 60
HEAVY = 4.0  # the share, beside the cells', at which a search for a heavy level begins
SHARE_LEAST = 0.002
STEPS_MOST = 2**53  # of a public total: so far the fit counts every step

Kept = tuple[int, ...]


def plan_with_levels(query: Query, spend: Spend, leaf: Plan, of_noise: Callable[[NoiseKind], Plan]) -> Plan:
    """Return the plan of a question with totals, from that of its groups, which `of_noise` makes with one noise."""
    declared = declared_totals(query, leaf)
    if not leaf.public_keys:  # groups are shown by their own noise, and only those have totals; or none was found
        return leaf
    known = {kept for kept, _ in declared}
    sizes = {kept: size for kept, size in level_sizes(query, leaf.public_keys).items() if kept not in known}
    weights = level_weights(query, spend)
    whole = _levels_error({tuple(range(len(query.keys))): 1.0}, sizes, weights, leaf)
    best, best_error, shares = leaf, CLEARLY * whole, dict[Kept, float]()
    for noise in _kinds(spend, leaf):
        plan = leaf if leaf.noise == noise and not _is_long(leaf) else of_noise(noise)
        if _is_long(plan):  # a total would move by the sum of what one unit adds, which this noise does not limit
            continue
        found, error = _level_shares(sizes, weights, plan)
        if error < best_error:
            best, best_error, shares = plan, error, found
    return replace(_divided_by_level(best, shares, spend) if shares else leaf, public_totals=declared)


def declared_totals(query: Query, leaf: Plan) -> tuple[tuple[Kept, tuple[Fraction, ...]], ...]:
    """Return the public totals of each level in the order of its groups; refuse those that cannot all be held."""
    if not query.public_totals:
        return ()
    if leaf.public_keys is None or (leaf.found_by and not leaf.has_others):
        raise QueryRefused(
            "public totals are of all rows, and these groups are only those that are found"
            "\nhint: list the groups (keys=[...]), or ask for the others too: other=True"
        )
    output = leaf.outputs[0]
    step = leaf.measured[output.column].step if isinstance(output, Sum) else Fraction(1)
    found: dict[Kept, dict[tuple[Scalar, ...], Fraction]] = {}
    for kept, numbers in sorted(query.public_totals, key=lambda each: len(each[0])):
        name, given = query.level_name(kept), dict(numbers)
        groups = [*dict.fromkeys(tuple(key[each] for each in kept) for key in leaf.public_keys)]
        if set(given) != set(groups):
            raise QueryRefused(
                f"public_totals of '{name}' must have each of its {len(groups)} groups, and no other"
                "\nhint: give all of them, or only a level that is known whole"
            )
        if any((number / step).denominator != 1 or not 0 <= number / step <= STEPS_MOST for number in given.values()):
            raise QueryRefused(
                f"public_totals of '{name}' must be whole steps of {step}, not negative, and at most 2^53 steps"
                "\nhint: give the numbers as they were published"
            )
        for above, totals in found.items():
            _refuse_contradiction(query, kept, given, above, totals)
        found[kept] = {group: given[group] for group in groups}
    for kept in query.levels:  # sums of what is public are public
        below = next((each for each in found if set(kept) < set(each)), None)
        if below is not None and kept not in found:
            found[kept] = _sums_at(kept, below, found[below])
    return tuple((kept, tuple(totals.values())) for kept, totals in found.items())


_Totals = Mapping[tuple[Scalar, ...], Fraction]


def _refuse_contradiction(query: Query, kept: Kept, given: _Totals, above: Kept, totals: _Totals) -> None:
    names = f"'{query.level_name(above)}' and '{query.level_name(kept)}'"
    if not set(above) < set(kept):
        raise QueryRefused(f"public totals of {names} cannot both be held: none is inside the other\nhint: give one")
    if _sums_at(above, kept, given) != dict(totals):
        raise QueryRefused(f"public totals of {names} contradict each other\nhint: give one of the two levels")


def _sums_at(above: Kept, kept: Kept, given: _Totals) -> dict[tuple[Scalar, ...], Fraction]:
    """Return the totals of a level above, in the order of its groups."""
    sums: dict[tuple[Scalar, ...], Fraction] = {}
    for key, number in given.items():
        parent = tuple(value for place, value in zip(kept, key, strict=True) if place in above)
        sums[parent] = sums.get(parent, Fraction(0)) + number
    return sums


def level_weights(query: Query, spend: Spend) -> dict[Kept, float]:
    given = dict(spend.weights)
    return {kept: float(given.get(query.level_name(kept), 1)) for kept in query.levels}


def level_sizes(query: Query, keys: Sequence[tuple[Scalar, ...]]) -> dict[Kept, int]:
    """Return how many groups each level has."""
    leaf = tuple(range(len(query.keys)))
    return {
        kept: len(keys) if kept == leaf else len({tuple(key[each] for each in kept) for key in keys})
        for kept in query.levels
    }


def _kinds(spend: Spend, leaf: Plan) -> tuple[NoiseKind, ...]:
    if spend.noise is not None:
        return (spend.noise,)
    return ("laplace",) if leaf.noise == "laplace" or spend.delta_rho == 0 else ("laplace", "gaussian")


def _is_long(plan: Plan) -> bool:
    """Whether one unit may move the groups by more in L1 than its noise is made for."""
    return any(
        each.summed != "laplace" and each.sensitivity.l1**2 > each.sensitivity.l2_squared for each in plan.releases
    )


def _level_shares(
    sizes: Mapping[Kept, int], weights: Mapping[Kept, float], plan: Plan
) -> tuple[dict[Kept, float], float]:
    """Return the share of each level, and the table's error with it: the best of a few searches, one from each heavy
    level, since two large shares err more than either."""
    leaf = max(sizes, key=len)
    heavy = [kept for kept in sizes if kept != leaf and weights[kept] > 1]
    starts = [{kept: 1.0 if kept == leaf else 0.5 / len(sizes) for kept in sizes}]
    starts += [{kept: HEAVY if kept == most else 1.0 if kept == leaf else 0.1 for kept in sizes} for most in heavy]
    found = [_searched(_summing_to_one(start), sizes, weights, plan) for start in starts]
    shares, error = min(found, key=lambda each: each[1])
    return {kept: share for kept, share in shares.items() if share >= SHARE_LEAST}, error


def _searched(
    shares: dict[Kept, float], sizes: Mapping[Kept, int], weights: Mapping[Kept, float], plan: Plan
) -> tuple[dict[Kept, float], float]:
    """Return shares with a smaller error, found by steps of each level in turn."""
    leaf, best = max(sizes, key=len), _levels_error(shares, sizes, weights, plan)
    for _ in range(ROUNDS_MOST):
        before = best
        for kept in sizes:
            for times in STEPS if kept != leaf else STEPS[1:]:
                tried = _summing_to_one(shares | {kept: shares[kept] * times})
                error = _levels_error(tried, sizes, weights, plan)
                if error < best * (1 - 1e-6):
                    shares, best = tried, error
        if best > before * (1 - 1e-4):
            break
    return shares, best


def _summing_to_one(shares: Mapping[Kept, float]) -> dict[Kept, float]:
    total = sum(shares.values())
    return {kept: share / total for kept, share in shares.items()}


def _levels_error(
    shares: Mapping[Kept, float], sizes: Mapping[Kept, int], weights: Mapping[Kept, float], plan: Plan
) -> float:
    """Return the table's expected error: each level is read off all levels below it and its own noise."""
    variances = {kept: _variance(plan, share) for kept, share in shares.items() if share > 0}
    total = 0.0
    for kept, size in sizes.items():
        known = sum(
            1 / (variance * max(sizes.get(below, 1) / size, 1.0))
            for below, variance in variances.items()
            if set(kept) <= set(below)
        )
        total += weights[kept] * size**SIZE_POWER * (1 / sqrt(known) if known else inf)
    return total


def _variance(plan: Plan, share: float) -> float:
    """Return the variance of the first release's noise in units of what one unit adds, at a share of the loss."""
    release = plan.releases[0]
    fine = 2.0 ** plan.scaling.vectors[0].shift if plan.scaling is not None else 1.0
    deviation = standard_deviation(release.summed if release.noise != "staircase" else "laplace", release.scale) / fine
    return (deviation / share) ** 2 if release.noise != "gaussian" else deviation**2 / share


def _divided_by_level(plan: Plan, shares: Mapping[Kept, float], spend: Spend) -> Plan:
    """Return the plan with noise for the groups at their share, and for each level at its own."""
    leaf = max(shares, key=len)
    levels = [kept for kept in shares if kept != leaf]
    parts = dict(zip((leaf, *levels), rounded_shares([shares[each] for each in (leaf, *levels)]), strict=True))
    noise: NoiseKind = "gaussian" if plan.noise == "gaussian" else "laplace"
    wanted: list[tuple[tuple[Part, ...], Sensitivity, Fraction]] = []
    for kept in (leaf, *levels):
        for each in plan.releases:
            how_far = each.sensitivity if kept == leaf else of_level(each.sensitivity)
            wanted.append((each.parts, how_far, each.share * parts[kept]))
    cells = len(wanted)
    wanted += [(each.parts, each.sensitivity, each.share) for each in plan.totals]
    made = with_noise(tuple(wanted), replace(spend, noise=noise), noise)
    count = len(plan.releases)
    by_level: list[tuple[NoisyRelease, ...]] = [made[at : at + count] for at in range(0, cells, count)]
    return replace(
        plan,
        releases=by_level[0],
        levels=tuple(PlannedLevel(kept, own) for kept, own in zip(levels, by_level[1:], strict=True)),
        totals=made[cells:],
    )


def of_level(groups: Sensitivity) -> Sensitivity:
    """Return how far one unit can move sums of groups: by no more in L1 than the groups, and so by no more in L2."""
    return Sensitivity(l0=groups.l0, l1=groups.l1, l2_squared=groups.l1**2, linf=groups.l1)
