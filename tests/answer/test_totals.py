"""Totals agree with what they are totals of, and err less than asked alone or added up."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.answer.totals import (
    Kept,
    agreeing_columns,
    fit_cube,
    fit_tree,
    fitted_levels,
    quantile_of_sum,
    whole_parts,
)
from tacit.plan import PlannedLevel, make_plan, make_spend
from tacit.plan.levels import of_level, plan_with_levels
from tacit.release import NoisyTable

A, B = ["u", "v", "w"], list(range(8))
ROLLUP: tuple[Kept, ...] = ((0, 1), (0,), ())
CUBE: tuple[Kept, ...] = ((0, 1), (0,), (1,), ())
CONFIDENCE = Fraction(95, 100)
KEYS = tuple(product(A, B))
CELLS = {key: 100 + at for at, key in enumerate(KEYS)}


@pytest.fixture(scope="module")
def table():
    rows = pa.table({"a": ["u"], "b": [1], "x": [1]})
    columns = {"a": {"keys": A}, "b": {"keys": B}, "x": {"between": (0, 10)}}
    return tacit.table(
        rows, unit=tacit.ROW, name="t", budget=tacit.epsilon(9, delta=1e-6), columns=columns, ledger=tacit.TRYOUT
    )


def planned(table, levels, shares, noise):
    """The plan of the cells and of levels that have these shares of ε = 1."""
    spend = make_spend(1, None, noise, table.session.registered.budget)
    plan = make_plan(table.group_by("a", "b").count().query, table.session.declaration, spend)
    own = []
    for kept in levels[1:]:
        if share := shares.get(kept):
            (release,) = plan.releases
            times = Fraction(1, 1) / share if noise == "laplace" else Fraction(round(1000 / float(share) ** 0.5), 1000)
            own.append(PlannedLevel(kept, (_times(release, times),)))
    (release,) = plan.releases
    rest = 1 - sum(shares.values(), Fraction(0))
    times = 1 / rest if noise == "laplace" else Fraction(round(1000 / float(rest) ** 0.5), 1000)
    return replace(plan, releases=(_times(release, times),), levels=tuple(own))


def _times(release, times):
    return replace(release, scale=release.scale * times)


def truths(levels):
    found = []
    for kept in levels:
        sums: dict = {}
        for key, count in CELLS.items():
            part = tuple(key[each] for each in kept)
            sums[part] = sums.get(part, 0) + count
        found.append(sums)
    return found


def drawn(plan, levels, random):
    """The cells and the levels with noise of the plan's scales."""
    known = dict(zip(levels, truths(levels), strict=True))

    def noisy(sums, release):
        draw = random.laplace if release.noise == "laplace" else random.normal
        return NoisyTable(
            tuple(sums), ((tuple(int(value + round(draw(0, float(release.scale)))) for value in sums.values()),),)
        )

    cells = noisy(known[levels[0]], plan.releases[0])
    own = tuple(noisy(known[each.kept], each.releases[0]) for each in plan.levels)
    return NoisyTable(cells.keys, cells.parts, levels=own)


def fitted(plan, noisy, levels):
    return [each[0] for each in agreeing_columns(fitted_levels(plan, noisy, levels, CONFIDENCE), levels, CONFIDENCE)]


SHARES = {(0,): Fraction(1, 5), (): Fraction(1, 5)}


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_totals_err_less_than_asked_alone_and_than_cells_added_up(table, noise):
    """200 tables at a fixed seed, so it always comes out alike; the shares below are what it measures, with room."""
    random = np.random.default_rng(17)
    plan = planned(table, ROLLUP, SHARES, noise)
    truth = [np.array(list(each.values())) for each in truths(ROLLUP)]
    errors = np.zeros((3, 3))  # by level: alone, added up from cells, fitted
    for _ in range(200):
        noisy = drawn(plan, ROLLUP, random)
        best = fitted(plan, noisy, ROLLUP)
        cells = np.array(noisy.parts[0][0])
        alone = [cells, *(np.array(each.parts[0][0]) for each in noisy.levels)]
        added = [cells, cells.reshape(3, 8).sum(axis=1), cells.sum(keepdims=True)]
        for at, wanted in enumerate(truth):
            for way, values in enumerate((alone[at], added[at], np.array(best[at].values))):
                errors[at, way] += np.mean((values - wanted) ** 2)
    for level in range(3):
        assert errors[level, 2] < errors[level, 0]
        assert errors[level, 2] <= errors[level, 1] * 1.02


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize(
    ("levels", "shares"),
    [(ROLLUP, {}), (ROLLUP, SHARES), (CUBE, {}), (CUBE, SHARES)],
    ids=["rollup", "rollup with shares", "cube", "cube with shares"],
)
def test_their_intervals_cover_at_the_stated_rate(table, levels, shares, noise):
    """Of 60 tables at a fixed seed, so it always comes out alike; some 1,700 numbers or more."""
    random = np.random.default_rng(18)
    plan = planned(table, levels, shares, noise)
    inside = all_of = 0
    for _ in range(60):
        for column, wanted in zip(fitted(plan, drawn(plan, levels, random), levels), truths(levels), strict=True):
            for low, high, value in zip(column.low, column.high, wanted.values(), strict=True):
                inside += low <= value <= high
                all_of += 1
    assert 0.93 < inside / all_of < 0.99


@pytest.mark.parametrize("levels", [ROLLUP, CUBE, ((0, 1), (1,)), ((0, 1), (0,), (1,))])
@pytest.mark.parametrize("shares", [{}, {(): Fraction(1, 4)}])
def test_every_level_adds_up_to_the_last_one_and_is_not_negative(table, levels, shares):
    random = np.random.default_rng(19)
    shares = {kept: share for kept, share in shares.items() if kept in levels}
    plan = planned(table, levels, shares, "laplace")
    best = fitted(plan, drawn(plan, levels, random), levels)
    cells = np.array(best[0].values).reshape(3, 8)
    sums = {
        (0, 1): cells.ravel(),
        (0,): cells.sum(axis=1),
        (1,): cells.sum(axis=0),
        (): cells.sum(keepdims=True).ravel(),
    }
    for kept, column in zip(levels, best, strict=True):
        assert list(column.values) == sums[kept].tolist()
        assert all(
            value >= 0 and low <= value <= high
            for low, value, high in zip(column.low, column.values, column.high, strict=True)
        )


# ---- Least squares against the dense solution.


def dense(levels, values, variances, sizes):
    """Generalised least squares of the cells, and the variance of every number."""
    cells = int(np.prod(sizes))
    places = np.arange(cells).reshape(sizes)
    rows, seen, weights = [], [], []
    maps = {}
    for kept in levels:
        own = np.zeros((int(np.prod([sizes[each] for each in kept])), cells))
        for cell in range(cells):
            at = np.unravel_index(cell, sizes)
            part = tuple(at[each] for each in kept)
            own[np.ravel_multi_index(part, [sizes[each] for each in kept]) if kept else 0, cell] = 1
        maps[kept] = own
        if kept in values:
            rows.append(own)
            seen.append(values[kept])
            weights.append(np.full(len(own), 1 / variances[kept]))
    design, weight = np.vstack(rows), np.concatenate(weights)
    covariance = np.linalg.inv(design.T @ (design * weight[:, None]))
    cell_values = covariance @ design.T @ (weight * np.concatenate(seen))
    del places
    return {kept: (own @ cell_values, np.diag(own @ covariance @ own.T)) for kept, own in maps.items()}


def test_a_cube_is_the_dense_least_squares():
    random, sizes = np.random.default_rng(3), (3, 4, 2)
    levels = [
        kept
        for count in range(4)
        for kept in ((), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2))
        if len(kept) == count
    ]
    asked = {(0, 1, 2): 1.0, (0, 1): 2.5, (2,): 0.3, (): 0.7}
    values = {kept: random.normal(50, 9, int(np.prod([sizes[each] for each in kept]))) for kept in asked}
    wanted = dense(levels, values, asked, sizes)
    found = fit_cube(sizes, {kept: (values[kept], variance) for kept, variance in asked.items()}, levels)
    for kept, fit, errors in zip(levels, found.values, found.variances, strict=True):
        assert np.allclose(fit, wanted[kept][0], atol=1e-9)
        assert np.allclose(errors, wanted[kept][1], atol=1e-9)


def test_a_tree_is_the_dense_least_squares():
    random, sizes = np.random.default_rng(4), (3, 4)
    levels = [(), (0,), (0, 1)]
    variances = {(): 0.5, (0, 1): 1.0}
    values = {kept: random.normal(50, 9, int(np.prod([sizes[each] for each in kept]))) for kept in variances}
    wanted = dense(levels, values, variances, sizes)
    parents = [np.zeros(3, dtype=np.int64), np.repeat(np.arange(3), 4)]
    fit = fit_tree(parents, [values[()], None, values[0, 1]], [0.5, np.inf, 1.0])
    for kept, each, errors in zip(levels, fit.values, fit.variances, strict=True):
        assert np.allclose(each, wanted[kept][0], atol=1e-9)
        assert np.allclose(errors, wanted[kept][1], atol=1e-9)


def test_whole_parts_add_up_for_any_numbers():
    random = np.random.default_rng(5)
    for _ in range(300):
        count = int(random.integers(1, 6))
        parents = np.sort(np.concatenate([np.arange(count), random.integers(0, count, int(random.integers(0, 12)))]))
        values = random.normal(0, 5, len(parents))
        totals = random.integers(0, 20, count)
        found = whole_parts(parents, values, totals)
        assert (np.bincount(parents, found, minlength=count) == totals).all()
        assert (found >= 0).all()
        signed = whole_parts(parents, values, totals - 10, is_signed=True)
        assert (np.bincount(parents, signed, minlength=count) == totals - 10).all()
        assert (
            np.abs(
                signed
                - values
                - (
                    (totals - 10 - np.bincount(parents, values, minlength=count))
                    / np.bincount(parents, minlength=count)
                )[parents]
            )
            <= 1
        ).all()


@pytest.mark.parametrize("confidence", [Fraction(1, 2), Fraction(4, 5), Fraction(9, 10), CONFIDENCE, Fraction(99, 100)])
def test_the_quantile_of_a_sum_of_noises_is_above_the_exact_one(confidence):
    """The distribution of a sum of n Laplace noises is inverted from its characteristic function, (1 + t²)⁻ⁿ."""
    times = np.linspace(1e-6, 400, 2_000_001)
    for count in (2, 3, 5, 12, 60, 400):
        point = quantile_of_sum(count, confidence) * (2 * count) ** 0.5
        inside = 2 / np.pi * np.trapezoid(np.sin(times * point) / times * (1 + times**2) ** -float(count), times)
        assert inside >= float(confidence) - 2e-5


# ---- The plan.


def test_a_few_cells_are_asked_alone_and_a_large_tree_gets_a_share_for_its_totals():
    rows = pa.table({"a": [0], "b": [0]})
    for size, has_levels in ((5, False), (3000, True)):
        columns = {"a": {"keys": list(range(8))}, "b": {"keys": list(range(size))}}
        table = tacit.table(
            rows, unit=tacit.ROW, name="t", budget=tacit.epsilon(9), columns=columns, ledger=tacit.TRYOUT
        )
        plan = table.group_by("a", "b", totals=True).count().plan(epsilon=1).plan
        assert bool(plan.levels) == has_levels
        assert sum(release.share for own in ([plan], plan.levels) for each in own for release in each.releases) == 1
        assert plan.loss.epsilon == 1


def test_a_level_moves_by_no_more_than_its_groups_together(table):
    spend = make_spend(1, None, "laplace", table.session.registered.budget)
    query = table.group_by("a", "b", totals=True).count().several.compound.branches[0].query
    leaf = make_plan(query, table.session.declaration, spend)
    asked = replace(query, levels=ROLLUP)
    plan = plan_with_levels(asked, replace(spend, weights=(("total", Fraction(1000)),)), leaf, lambda _: leaf)
    assert plan.levels
    for each in plan.levels:
        for own, groups in zip(each.releases, leaf.releases, strict=True):
            assert own.sensitivity == of_level(groups.sensitivity)
            assert own.event.sensitivity == groups.sensitivity.l1
            assert own.event in plan.events
