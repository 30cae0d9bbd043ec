"""Partition selection: an answer shows all groups of a public list, or the groups that reach a private threshold: by a
noisy count of units (`threshold_for`), or by a noisy sum of weights, smaller for a unit in many groups
(`threshold_for_weights`, docs/proofs/private-keys.md).

Sensitivity: how far one unit can change a release, computed from the bounds only (docs/proofs/sensitivity.md).
"""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import product
from math import exp, expm1, isqrt, log, log1p, prod
from operator import is_
from statistics import NormalDist
from typing import Literal, TypeVar

from flint import arb

from tacit.errors import QueryRefused
from tacit.numbers import ball, certainly_less, rounded_up
from tacit.plan.bounds.caps import root_above
from tacit.plan.bounds.scaling import CELL_MOST, WEIGHT_BITS, Vector
from tacit.plan.plan import Distinct, Measured, NoiseKind, Part, Sensitivity, Threshold
from tacit.privacy import GaussianLaw, LaplaceLaw, least_integer
from tacit.query import PUBLIC_KEYS_MAX, Column, Query, Scalar
from tacit.tables import Declaration

# Charged on top, so that a probability like e^(-10^12) needs no trillion digits.
DELTA_LEAST = Fraction(1, 2**1000)
# Where keys are shown by weights, a unit that is in one group weighs 2^UNIT_SHIFT fine steps there.
UNIT_SHIFT = 10
# A unit's groups beyond this many are left out, chosen by a salted hash: the threshold grows with it, but slowly.
KEYS_MOST = 256
# How many larger numbers of groups are tried for a first guess.
GUESSES = 64
# How many numbers of groups that seem worst are compared for certain.
WORST = 4
CHANCE_LEAST = 1e-300
LAST_FEW = 4

Value = TypeVar("Value")


def public_keys(query: Query, declaration: Declaration) -> tuple[tuple[Scalar, ...], ...] | None:
    """Return the public list of keys: one empty key without GROUP BY, None if they are to be found privately."""
    if not query.keys:
        return ((),)
    if query.public_keys is not None:
        return query.public_keys
    lists = []
    for key in query.keys:
        facts = declaration.columns.get(key.expression.name) if isinstance(key.expression, Column) else None
        if facts is None or facts.keys is None:
            return None
        lists.append(facts.keys)
    size = prod(map(len, lists))
    if size > PUBLIC_KEYS_MAX:
        raise QueryRefused(
            f"the declared keys combine to {size:,} groups, more than {PUBLIC_KEYS_MAX:,}"
            "\nhint: give the combinations that can occur with group_by(..., keys=...)"
        )
    return _combined(*lists)


def of_last_few(compute: Callable[..., Value]) -> Callable[..., Value]:
    """Return a function that caches its results for the last few objects, by identity: to compare long public lists,
    with which a call plans some twenty times, takes long."""
    kept: list[tuple[tuple[object, ...], Value]] = []

    def found(*given: object) -> Value:
        for before, value in kept:
            if len(before) == len(given) and all(map(is_, before, given)):
                return value
        value = compute(*given)
        kept[:] = [(given, value), *kept[: LAST_FEW - 1]]
        return value

    return found


@of_last_few
def _combined(*lists: Sequence[Scalar]) -> tuple[tuple[Scalar, ...], ...]:
    return tuple(product(*lists))


def refuse_private_keys(query: Query) -> None:
    """Refuse private keys under a pure budget, with the two ways out."""
    names = ", ".join(f"'{key.name}'" for key in query.keys)
    raise QueryRefused(
        f"the groups of {names} are not public, and a pure budget (delta = 0) cannot show keys found in the data."
        "\nhint: list them, e.g. group_by(..., keys=['A', 'B']) or --keys column=A,B; or declare the budget with a"
        " delta, e.g. budget=tacit.epsilon(3, delta=1e-6) (--budget 3 --delta 1e-6)"
    )


def threshold_for(
    noise: NoiseKind, scale: Fraction, *, groups_per_unit: int, delta: Fraction, release: int
) -> Threshold:
    """Return the least threshold that shows a key of one single unit with an exact probability of at most `delta`.

    Privacy: a unit adds at most g keys without other units, each with a count of 1; a key is shown when its
    noisy count is at least the threshold (inclusive), so delta = 1 - (1 - Pr[1 + Z >= threshold])^g, the g noises being
    independent.
    """
    return _least_threshold(noise, scale, lambda _: 1, groups_per_unit, delta, release)


def key_weight(groups: int, *, shift: int = UNIT_SHIFT, cap: int = 1 << UNIT_SHIFT, norm: Literal[1, 2]) -> int:
    """Return the contribution of a unit to each of its groups, in fine steps, which never rises with their number.

    >>> [key_weight(groups, norm=2) for groups in (1, 2, 4, 256)], [key_weight(groups, norm=1) for groups in (1, 2, 4)]
    ([1024, 723, 512, 64], [1024, 512, 256])
    """
    size = min(1 << shift, CELL_MOST) if shift >= 0 else 1 >> -shift
    if norm == 1:
        length = size * groups
    else:
        coarse = max(0, size.bit_length() - 20)
        squares = (-(-size >> coarse)) ** 2 * groups
        length = 0 if squares == 0 else (isqrt(squares - 1) + 1) << coarse
    weight = 1 << WEIGHT_BITS if length <= cap else (cap << WEIGHT_BITS) // length
    return size * weight >> WEIGHT_BITS


def threshold_for_weights(
    noise: NoiseKind,
    scale: Fraction,
    *,
    cap: int = 1 << UNIT_SHIFT,
    shift: int = UNIT_SHIFT,
    norm: Literal[1, 2],
    groups_most: int,
    delta: Fraction,
    release: int,
) -> Threshold:
    """Return the least threshold that shows a key of one single unit with an exact probability of at most `delta`.

    Privacy: a unit with g keys, of at most `groups_most`, gives each of them the weight w(g), which depends only on
    its own rows. A
    key is shown when its noisy sum of weights is at least the threshold (inclusive), so delta is the largest over g of
    1 - (1 - Pr[w(g) + Z >= threshold])^g, the g noises being independent (docs/proofs/private-keys.md).
    """
    weight = partial(key_weight, shift=shift, cap=cap, norm=norm)
    return _least_threshold(noise, scale, weight, groups_most, delta, release)


def _least_threshold(
    noise: NoiseKind, scale: Fraction, weight: Callable[[int], int], groups_most: int, delta: Fraction, release: int
) -> Threshold:
    """Return the least threshold for any weight of a unit in each of its groups that never rises with their number."""
    law = LaplaceLaw(scale) if noise == "laplace" else GaussianLaw(scale)

    def is_within(least: int, goal: Fraction, fewest: int = 1, most: int = groups_most) -> bool:
        """Whether the bound holds for each number of groups in fewest … most; no weight there is above w(fewest)."""
        tail = least - weight(fewest)
        if not certainly_less(lambda: -((-ball(goal)).log1p() / most).expm1(), lambda: law.upper_tail(tail)):
            return True
        if fewest == most:
            return False
        middle = (fewest + most) // 2
        return is_within(least, goal, fewest, middle) and is_within(least, goal, middle + 1, most)

    def exceeded(least: int, groups: int) -> arb:
        return ball(DELTA_LEAST) - ((-law.upper_tail(least - weight(groups))).log1p() * groups).expm1()

    about = sorted(_about_keys(noise, float(scale), float(delta), weight, groups_most), reverse=True)
    least = max(1, least_integer(lambda least: is_within(least, delta), int(about[0][0])))
    # The charge: the largest probability among numbers of groups that seem worst, if it is certain that none is worse.
    worst = {1, groups_most, *(groups for _, groups in about[:WORST])}
    found = max(rounded_up(partial(exceeded, least, groups)) for groups in worst)
    charged = found if found < delta and is_within(least, found) else delta
    return Threshold(release=release, least=least, delta=charged)


def _about_keys(
    noise: NoiseKind, scale: float, delta: float, weight: Callable[[int], int], groups_most: int
) -> Iterator[tuple[float, int]]:
    """Yield about which threshold each number of groups needs, and that number: only where to begin a search."""
    few = range(1, min(groups_most, KEYS_MOST) + 1)
    for groups in {*few, *(round(groups_most ** (place / GUESSES)) for place in range(GUESSES + 1))}:
        chance = max(-expm1(log1p(-delta) / groups), CHANCE_LEAST)
        reach = log(1 / chance / (1 + exp(-1 / scale))) if noise == "laplace" else -NormalDist().inv_cdf(chance)
        yield max(0.0, weight(groups) + scale * reach), groups


def sensitivity_of(
    parts: tuple[Part, ...],
    measured: tuple[Measured, ...],
    distincts: tuple[Distinct, ...] = (),
    *,
    rows_per_unit: int,
    groups_per_unit: int,
    neighbours: Literal["add-remove", "replace"],
) -> Sensitivity:
    """Return the exact L0, L1, squared L2 and L-infinity sensitivity of these parts over all groups.

    A unit touches at most g groups with at most r rows in each. The parts of one column are never negative and add up
    to the column's height in every row, so in one group they move by at most r·height in L1, and no more in L2.
    """
    groups = groups_per_unit
    if parts[0].kind == "distinct":
        most = spread = distincts[parts[0].index[0]].per_unit
    else:
        most, spread = _reach_in_one_group(parts, measured, rows_per_unit)
    if neighbours == "add-remove":
        return Sensitivity(l0=groups * len(parts), l1=most * groups, l2_squared=most * most * groups, linf=most)
    # the unit's old groups empty and its new groups fill: 2g groups; or both in the same groups, if signs can differ
    return Sensitivity(
        l0=2 * groups * len(parts),
        l1=2 * most * groups,
        l2_squared=max(2 * most * most, spread * spread) * groups,
        linf=max(most, spread),
    )


def _reach_in_one_group(parts: tuple[Part, ...], measured: tuple[Measured, ...], rows: int) -> tuple[int, int]:
    """Return the most that one unit adds to a group, and the largest difference of two units' additions."""
    first = parts[0]
    if first.kind == "units":
        return 1, 1
    if first.kind == "rows":
        return rows, rows
    if first.column is None:
        raise ValueError("a part of this kind must name its column")
    column = measured[first.column]
    if first.kind == "total":
        lowest, highest = min(column.low, 0), max(column.high, 0)
        return max(-lowest, highest) * rows, (highest - lowest) * rows
    return whole_of(first, measured) * rows, whole_of(first, measured) * rows


def whole_of(part: Part, measured: Sequence[Measured]) -> int:
    """Return what the parts of one row add up to: the height, and for Bernstein parts the product of all heights."""
    if part.column is None:
        return 1
    degrees = part.degrees or (1,)
    return prod(measured[column].height ** degree for column, degree in zip(part.columns, degrees, strict=True))


def sensitivity_of_vector(vector: Vector, *, norm: int, replaced: bool, cells: int) -> Sensitivity:
    """Return how far one unit can move a scaled vector over all groups, in fine steps.

    One that replaces another moves by twice the cap, in L2 by its √2-fold if no number is negative. `cells` is 1 only
    if there is a single group in all.
    """
    signed = vector.kind == "centred"
    one = vector.cap if norm == 1 else vector.cap * root_above(cells)
    return _sensitivity(vector.cap, one, cells, replaced=replaced, signed=signed)


def sensitivity_of_totals(vector: Vector, *, replaced: bool) -> Sensitivity:
    """Return how far one unit can move both totals of a vector: together at most its tail (docs/proofs/scaling.md)."""
    return _sensitivity(vector.tail, vector.tail, 2, replaced=replaced, signed=vector.totals == "signed")


def _sensitivity(length: int, sum_most: int, numbers: int, *, replaced: bool, signed: bool) -> Sensitivity:
    """Return the sensitivity of these numbers: one unit's are of this length at most, and add up to `sum_most`."""
    if not replaced:
        return Sensitivity(l0=numbers, l1=sum_most, l2_squared=length * length, linf=length)
    linf = 2 * length if signed else length
    if numbers == 1:
        return Sensitivity(l0=1, l1=linf, l2_squared=linf * linf, linf=linf)
    return Sensitivity(l0=2 * numbers, l1=2 * sum_most, l2_squared=(4 if signed else 2) * length**2, linf=linf)
