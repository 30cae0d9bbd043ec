"""Totals that add up: every level of a table of groups, fitted to all noise there is, in whole numbers that agree.

A level's numbers are the sums of its groups. Groups have separate noise, and so may levels. The best estimate
weighs both by variance (docs/proofs/totals.md): in two passes if each level is inside the next one, as in a ROLLUP, and
by main effects and interactions if keys are combined in all ways, as in a CUBE. All variances are exact.
All of it is post-processing of released integers by public facts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, pairwise, product
from math import ceil, floor, inf, isfinite, log, log10, prod, sqrt
from operator import eq
from statistics import NormalDist, median
from typing import Any

import numpy as np

from tacit.answer.columns import uncut_columns
from tacit.answer.error_bars import on_grid
from tacit.answer.moments import NoisyColumn
from tacit.numbers import Flags, Floats, Integers
from tacit.plan import CountRows, CountValues, NoisyRelease, Plan, Sum
from tacit.release import NoisyTable

ADDED_UP = (
    "Counts and sums add up: totals are of the groups that are shown, and each number is estimated from all levels."
)
HELD = "Totals that were public before are held exactly, without noise."
LEFT_ALONE = "Totals have separate noise, and do not add up."

# Errors are rounded up to this number of steps an octave, so that numbers with nearly the same error share their work.
STEPS_AN_OCTAVE = 24
CELLS_AT_ONCE = 1 << 15
REMAINDER_STEPS = (1 << 16) - 1
KNOWN = 1e-18  # the variance of a number that is public, beside that of one cell's noise

Kept = tuple[int, ...]


@dataclass(frozen=True)
class LevelFit:
    """Estimates of every level, and the variance of each as a multiple of the variance of one group's own noise."""

    values: tuple[Floats, ...]
    variances: tuple[Floats, ...]


# ---- Least squares.


def fit_tree(parents: Sequence[Integers], values: Sequence[Floats | None], variances: Sequence[float]) -> LevelFit:
    """Return the least squares of levels that are each inside the one before; `parents` are those of all but the first.

    A level without values was not asked. Two passes: estimates from the cells below, then what is known above.

    >>> fit = fit_tree([np.array([0, 0])], [np.array([10.0]), np.array([3.0, 5.0])], [1.0, 1.0])
    >>> [each.round(3).tolist() for each in fit.values], fit.variances[0].round(3).tolist()
    ([[9.333], [3.667, 5.667]], [0.667])
    """
    last = len(values) - 1
    own = values[last]
    if own is None:
        raise ValueError("the groups themselves must have values")
    ups, spreads = [np.asarray(own, dtype=np.float64)], [np.broadcast_to(np.float64(variances[last]), len(own))]
    sums: list[Floats] = []
    sum_spreads: list[Floats] = []
    for level in range(last - 1, -1, -1):
        below, size = parents[level], int(parents[level].max(initial=-1)) + 1
        total: Floats = np.bincount(below, ups[0], minlength=size).astype(np.float64)
        same = level == last - 1  # all groups have one variance
        counted = np.bincount(below, None if same else spreads[0], minlength=size).astype(np.float64)
        spread: Floats = counted * (variances[last] if same else 1.0)
        sums.insert(0, total)
        sum_spreads.insert(0, spread)
        asked = values[level]
        weight = 0.0 if asked is None else 1 / variances[level]
        joint = 1 / (weight + 1 / spread)
        ups.insert(0, total if asked is None else joint * (weight * asked + total / spread))
        spreads.insert(0, joint)
    fitted, errors = [ups[0]], [spreads[0]]
    for level, below in enumerate(parents):
        known, above = fitted[level] - sums[level], errors[level]
        if level == last - 1:  # groups of one total have one share and one error
            one = variances[last]
            share = one / sum_spreads[level]
            moved, error = (share * known)[below], (one - share * (one - share * above))[below]
            moved += ups[last]
        else:
            spread, share = spreads[level + 1], spreads[level + 1] / sum_spreads[level][below]
            moved, error = ups[level + 1] + share * known[below], spread - share * (spread - share * above[below])
        fitted.append(moved)
        errors.append(error)
    return LevelFit(tuple(fitted), tuple(errors))


def fit_cube(sizes: Sequence[int], asked: dict[Kept, tuple[Floats, float]], wanted: Sequence[Kept]) -> LevelFit:
    """Return the least squares of tables over sets of keys whose values are combined in all ways.

    `asked` has each table, in the order of its keys, and its variance. Every table is a sum of main effects and
    interactions. Those of one set of keys are seen by each table that has these keys, and are weighed by variance.
    """
    effects: dict[Kept, tuple[Floats, float]] = {}
    for keys in {each for table in wanted for each in _subsets(table)}:
        seen: Floats = np.zeros([sizes[key] for key in keys])
        weight = 0.0
        for kept, (values, variance) in asked.items():
            if set(keys) <= set(kept):
                trust = 1 / (variance * prod(sizes[key] for key in kept if key not in keys))
                seen = seen + trust * _effect(values.reshape([sizes[key] for key in kept]), kept, keys)
                weight += trust
        effects[keys] = seen / weight, 1 / weight
    fitted, errors = [], []
    for table in wanted:
        total: Floats = np.zeros([sizes[key] for key in table])
        error = 0.0
        for keys in _subsets(table):
            spread = prod(sizes[key] for key in table if key not in keys)
            values, variance = effects[keys]
            total = total + values.reshape([sizes[key] if key in keys else 1 for key in table]) / spread
            error += variance * prod(1 - 1 / sizes[key] for key in keys) / spread**2
        fitted.append(total.ravel())
        errors.append(np.full(total.size, error))
    return LevelFit(tuple(fitted), tuple(errors))


def _subsets(keys: Kept) -> list[Kept]:
    return [each for size in range(len(keys) + 1) for each in combinations(keys, size)]


def _effect(table: Floats, kept: Kept, keys: Kept) -> Floats:
    """Return the part of a table that depends on these keys together: summed over others, and centred along each."""
    part: Floats = table.sum(axis=tuple(at for at, key in enumerate(kept) if key not in keys))
    for axis in range(len(keys)):
        part = part - part.mean(axis=axis, keepdims=True)
    return part


# ---- Whole numbers.


def whole_parts(parents: Integers, values: Floats, totals: Integers, *, is_signed: bool = False) -> Integers:
    """Return whole numbers near `values` that add up to the total of each parent; none is negative unless `is_signed`.

    Each parent's numbers move by the same amount; those that would fall below 0 are 0. What rounding leaves goes to the
    largest remainders.

    >>> whole_parts(np.array([0, 0, 0]), np.array([2.6, -1.2, 0.4]), np.array([3])).tolist()
    [3, 0, 0]
    """
    order = None if (parents[1:] >= parents[:-1]).all() else np.argsort(parents, kind="stable")
    if order is not None:
        parents, values = parents[order], values[order]
    made = np.empty(len(values), dtype=np.int64)
    # some totals after others, so that the numbers of a step stay in the processor's cache
    cuts = np.unique(np.searchsorted(parents, parents[::CELLS_AT_ONCE])).tolist()
    for start, end in pairwise([*cuts, len(values)]):
        own = parents[start:end]
        starts = np.flatnonzero(np.diff(own, prepend=-1))
        made[start:end] = _whole_in_order(values[start:end], starts, totals[own[starts]], is_signed=is_signed)
    if order is not None:
        made[order] = made.copy()
    return made


def _whole_in_order(values: Floats, starts: Integers, totals: Integers, *, is_signed: bool) -> Integers:
    """Return whole numbers for totals whose cells are beside each other, from `starts` on."""
    found, cells = np.zeros(len(values), dtype=np.int64), np.arange(len(values))
    held = np.diff(starts, append=len(values))
    while True:
        kept = values - np.repeat((np.add.reduceat(values, starts) - totals) / held, held)
        stay = kept >= 0
        alive = np.add.reduceat(stay, starts, dtype=np.int64)
        stay |= np.repeat(alive == 0, held)  # one of each total stays
        if is_signed or stay.all():
            break
        picked = np.flatnonzero(stay)  # from here on without those that are 0
        values, cells = values[picked], cells[picked]
        held = np.where(alive == 0, held, alive)
        starts = np.cumsum(held) - held
    kept = kept if is_signed else np.maximum(kept, 0.0)
    whole = np.floor(kept + 1e-9).astype(np.int64)
    missing = totals - np.add.reduceat(whole, starts)
    each = missing // held
    each = each if is_signed else np.maximum(each, 0)
    if each.any():
        whole += np.repeat(each, held)
        missing -= each * held
    lacking = ((1 - np.clip(kept - whole, 0, 1)) * REMAINDER_STEPS).astype(np.int64)
    index, bits = np.arange(len(cells)), len(cells).bit_length()
    order = (np.repeat(np.arange(len(held)), held) << 16 | lacking) << bits | index  # such numbers sort fastest
    order.sort()
    is_first = index < np.repeat(starts + missing, held)
    whole[order[is_first] & ((1 << bits) - 1)] += 1
    found[cells] = whole
    return found


def sums_of(parents: Integers, values: Integers, count: int) -> Integers:
    """Return the exact total of each parent."""
    found = np.zeros(count, dtype=np.int64)
    np.add.at(found, parents, values)
    return found


# ---- The levels of an answer.


@dataclass(frozen=True)
class Level:
    """A level of an answer: its plan, its fitted integers, and the errors of its groups beside those of one cell."""

    plan: Plan
    noisy: NoisyTable
    errors: Floats  # the standard deviation of each, as a multiple of one cell's own noise
    places: Integers  # of each cell, the index of its total here


def fitted_levels(plan: Plan, noisy: NoisyTable, levels: Sequence[Kept], confidence: Fraction) -> list[Level]:
    """Return every level of an answer, from the release of its cells and of the levels with separate noise."""
    shapes = [_level_shape(noisy, kept) for kept in levels]
    numbers: list[list[list[list[int]]]] = [[] for _ in levels]
    errors: list[Floats] = [np.zeros(len(keys)) for keys, _ in shapes]
    for index, release in enumerate(plan.releases):
        for part in range(len(release.parts)):
            fit = _fit_part(plan, noisy, levels, shapes, index, part)
            for at, values in enumerate(fit.values):
                numbers[at] += [[]] if part == 0 else []
                numbers[at][index].append(np.rint(values).astype(np.int64).tolist())
                errors[at] = np.maximum(errors[at], _widths(fit.variances[at], plan, index, confidence))
    found = []
    for at, (kept, (keys, places)) in enumerate(zip(levels, shapes, strict=True)):
        parts = tuple(tuple(map(tuple, release)) for release in numbers[at])
        is_cells = len(kept) == len(plan.keys)
        own = plan if is_cells else _of_level(plan, kept, keys)
        found.append(Level(own, NoisyTable(tuple(keys), parts, noisy.totals), errors[at], places))
    return found


def agreeing_columns(levels: Sequence[Level], kept: Sequence[Kept], confidence: Fraction) -> list[list[NoisyColumn]]:
    """Return every output of each level; counts and sums are whole numbers of their step that add up."""
    found = [_level_columns(level, confidence) for level in levels]
    for at, output in enumerate(levels[0].plan.outputs):
        if isinstance(output, CountRows | CountValues | Sum):
            asked = [columns[at] for columns in found]
            for columns, column in zip(found, _agreeing(output, levels, kept, asked), strict=True):
                columns[at] = column
    return found


def _level_shape(noisy: NoisyTable, kept: Kept) -> tuple[list[Any], Integers]:
    """Return the keys of a level, in the order of their first cell, and for each cell the index of its own."""
    index: dict[Any, int] = {}
    places = [index.setdefault(tuple([key[each] for each in kept]), len(index)) for key in noisy.keys]
    return list(index), np.array(places, dtype=np.int64)


def _of_level(plan: Plan, kept: Kept, keys: Sequence[Any]) -> Plan:
    columns = tuple(plan.keys[each] for each in kept)
    return replace(plan, keys=columns, public_keys=tuple(keys), threshold=None, levels=())


def _fit_part(
    plan: Plan,
    noisy: NoisyTable,
    levels: Sequence[Kept],
    shapes: Sequence[tuple[list[Any], Integers]],
    index: int,
    part: int,
) -> LevelFit:
    """Return one part of a release at every level; variances are multiples of that of a cell's own noise."""
    cells = np.array(noisy.parts[index][part], dtype=np.float64)
    scale = float(plan.releases[index].scale)
    asked: dict[Kept, tuple[Floats, float]] = {tuple(range(len(plan.keys))): (cells, 1.0)}
    for level, table in zip(plan.levels, noisy.levels, strict=True):
        values = np.array(table.parts[index][part], dtype=np.float64)
        asked[level.kept] = values, (float(level.releases[index].scale) / scale) ** 2
    for kept, numbers in plan.public_totals if plan.releases[index].parts[part].kind == "rows" else ():
        asked[kept] = np.array(numbers, dtype=np.float64), KNOWN
    order = chain_of(levels)
    if order is not None:
        parents = [_parents(shapes[one][1], shapes[two][1]) for one, two in pairwise(order)]
        given = [asked.get(levels[at]) for at in order]
        fit = fit_tree(parents, [each and each[0] for each in given], [each[1] if each else inf for each in given])
        back = np.argsort(order)
        return LevelFit(tuple(fit.values[at] for at in back), tuple(fit.variances[at] for at in back))
    sizes = cube_of(noisy.keys)
    if sizes is not None and len(asked) > 1:
        return fit_cube(sizes, asked, levels)
    sums = [np.bincount(places, cells, minlength=len(keys)).astype(np.float64) for keys, places in shapes]
    counts = [np.bincount(places, minlength=len(keys)).astype(np.float64) for keys, places in shapes]
    return LevelFit(tuple(sums), tuple(counts))


def chain_of(levels: Sequence[Kept]) -> list[int] | None:
    """Return the order of levels in which each is inside the next one, or None if there is no such order."""
    order = sorted(range(len(levels)), key=lambda at: len(levels[at]))
    is_chain = all(set(levels[one]) < set(levels[two]) for one, two in pairwise(order))
    return order if is_chain else None


def cube_of(keys: Sequence[Any]) -> list[int] | None:
    """Return how many values each key has, if the groups are all combinations of them in order; otherwise None."""
    columns = [list(dict.fromkeys(key[at] for key in keys)) for at in range(len(keys[0]) if keys else 0)]
    if not columns or prod(map(len, columns)) != len(keys):
        return None
    return [len(each) for each in columns] if all(map(eq, product(*columns), keys)) else None


def _parents(above: Integers, below: Integers) -> Integers:
    """Return the total of each group of the level below, from the places of all cells in both."""
    found = np.zeros(int(below.max(initial=-1)) + 1, dtype=np.int64)
    found[below] = above
    return found


def fitted_width(variance: float, plan: Plan, confidence: Fraction) -> float:
    """Return by what a noise's scale is multiplied, for numbers that a fit gave this part of its variance."""
    return max(float(_widths(np.array([min(variance, 1.0)]), replace(plan, levels=()), 0, confidence)[0]), 1e-9)


def _widths(variances: Floats, plan: Plan, index: int, confidence: Fraction) -> Floats:
    """Return by what the scale of one noise is multiplied so that its interval is that of each fitted number.

    A sum of many noises has lighter tails than one Laplace noise. If cells are all that was asked, a number is the sum
    of as many equal noises as its variance tells.
    """
    deviations = np.sqrt(variances)
    if plan.releases[index].noise != "laplace":
        return deviations
    one = log(1 / float(1 - confidence)) / sqrt(2)
    counts = np.ones_like(variances) if plan.levels else np.maximum(variances, 1.0)
    tails = np.array([quantile_of_sum(float(count), confidence) for count in np.unique(counts)])
    wider = tails[np.searchsorted(np.unique(counts), counts)] / one
    return np.asarray(np.where(variances == 1.0, 1.0, deviations * wider))


def quantile_of_sum(count: float, confidence: Fraction) -> float:
    """Return a bound on the sum of equal Laplace noises at this confidence, in standard deviations.

    From one noise to many it goes from the quantile of the Laplace law to that of the normal law; with a count of 1 it
    is the larger of the two, which holds for sums with any weights.
    """
    one = log(1 / float(1 - confidence)) / sqrt(2)
    normal = NormalDist().inv_cdf((1 + float(confidence)) / 2)
    return float(normal + max(one - normal, 0.0) * count**-0.6)


def _level_columns(level: Level, confidence: Fraction) -> list[NoisyColumn]:
    """Return every output of a level, each number with its own interval.

    Numbers with nearly equal errors are computed together, with the largest of them.
    """
    if not len(level.errors) or (level.errors == 1.0).all():
        return uncut_columns(level.plan, level.noisy, confidence)
    steps = np.ceil(np.log2(np.maximum(level.errors, 1e-9)) * STEPS_AN_OCTAVE - 1e-9).astype(np.int64)
    found: list[NoisyColumn] | None = None
    for step in np.unique(steps).tolist():
        own = uncut_columns(with_error(level.plan, 2.0 ** (step / STEPS_AN_OCTAVE)), level.noisy, confidence)
        found = own if found is None else [_picked(steps == step, *both) for both in zip(own, found, strict=True)]
    return found or []


def with_error(plan: Plan, times: float) -> Plan:
    """Return a plan with noise that is larger by this factor, for intervals."""
    factor = Fraction(ceil(times * 4096), 4096)
    return replace(plan, releases=tuple(_wider(each, factor) for each in plan.releases))


def _wider(release: NoisyRelease, factor: Fraction) -> NoisyRelease:
    return replace(release, scale=release.scale * factor)


def _picked(chosen: Flags, one: NoisyColumn, other: NoisyColumn) -> NoisyColumn:
    def each(end: str) -> tuple[Any, ...]:
        both = zip(chosen.tolist(), getattr(one, end), getattr(other, end), strict=True)
        return tuple([mine if picked else its for picked, mine, its in both])

    return NoisyColumn(one.name, each("values"), each("low"), each("high"))


def _agreeing(
    output: CountRows | CountValues | Sum, levels: Sequence[Level], kept: Sequence[Kept], asked: Sequence[NoisyColumn]
) -> list[NoisyColumn]:
    """Return one output of all levels in whole steps that add up, in intervals that hold them."""
    if any(value is None for column in asked for value in column.values):
        return list(asked)
    plan = levels[0].plan
    is_signed = isinstance(output, Sum) and plan.measured[output.column].low < 0
    cells = max(range(len(kept)), key=lambda at: len(kept[at]))
    grid = plan.measured[output.column].step if isinstance(output, Sum) else Fraction(1)
    step = grid if grid.denominator == 1 or plan.public_totals else _decimal_step(grid, asked[cells])
    numbers = [np.array([float(value) for value in column.values]) / float(step) for column in asked]  # type: ignore[arg-type]
    order = _longest_chain(kept, cells, [at for at, each in enumerate(kept) if each in dict(plan.public_totals)])
    public = {
        kept: np.array([int(each / step) for each in totals], dtype=np.int64) for kept, totals in plan.public_totals
    }
    top = order[0]
    whole = np.rint(numbers[top]).astype(np.int64)
    whole = public.get(kept[top], whole if is_signed else np.maximum(whole, 0))
    for one, two in pairwise(order):
        if kept[two] in public:
            whole = public[kept[two]]
            continue
        parents = _parents(levels[one].places, levels[two].places)
        whole = whole_parts(parents, numbers[two], whole, is_signed=is_signed)
    found = []
    for level, column, is_public in zip(levels, asked, (each in public for each in kept), strict=True):
        totals = sums_of(level.places, whole, len(level.noisy.keys))
        values = on_grid(totals, step) if grid == step else tuple(map(float, on_grid(totals, step)))
        low = tuple(min(end, value) for end, value in zip(column.low, values, strict=True))  # type: ignore[type-var]
        high = tuple(max(end, value) for end, value in zip(column.high, values, strict=True))  # type: ignore[type-var]
        if is_public:
            low = high = values
        found.append(replace(column, values=values, low=low, high=high))
    return found


def _decimal_step(grid: Fraction, cells: NoisyColumn) -> Fraction:
    """Return the power of ten that is a digit below the cells' intervals, so that sums hold in printed decimals too."""
    halves = [float(high - low) / 2 for low, high in zip(cells.low, cells.high, strict=True)]  # type: ignore[operator]
    half = median(each for each in halves or [0.0] if isfinite(each)) if any(map(isfinite, halves)) else 0.0
    return grid if half <= float(grid) else max(grid, Fraction(10) ** (floor(log10(half)) - 1))


def _longest_chain(kept: Sequence[Kept], cells: int, held: Sequence[int]) -> list[int]:
    """Return levels from the fewest keys down to the cells, each inside the next one, with those that must be there."""
    found = sorted({cells, *held}, key=lambda at: len(kept[at]))
    for at in sorted(range(len(kept)), key=lambda at: -len(kept[at])):
        own = set(kept[at])
        if all(own < set(kept[each]) or own > set(kept[each]) for each in found):
            found = sorted([*found, at], key=lambda each: len(kept[each]))
    return found
