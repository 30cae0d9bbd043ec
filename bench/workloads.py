"""Tables with totals: their errors beside the same numbers asked alone or added up by hand, and the time of the fit.

Trees and cubes are fitted by the functions that fit an answer. Time is processor time, beside DuckDB's of one grouped
count of the same rows in the same run. Errors are mean absolute errors, with noise of the plan's scales.
"""

import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tacit
from bench.learned.tables import NoTable, adult
from bench.measure import Absent, Figure, Result
from tacit.answer.totals import agreeing_columns, fit_cube, fit_tree, fitted_levels, whole_parts
from tacit.release.noisy import release

CONFIDENCE = Fraction(95, 100)
PEOPLE = 5_000_000
LEAVES, MIDDLES, TOPS = 100_000, 3_000, 50
REGIONS, AGES, PUPILS = 16, 5, 48_000
TREE_SHARES, TREE_DRAWS = (0.02, 0.08, 0.2, 0.7), 1000
RUNS = 400
COVERED = 100_000
KEYS, DRAWN, SMALLEST = 20_000, 200_000, 30
PAIRS_EPSILON = 1
SIGMA = 4.2  # of Gaussian noise at an epsilon of 1 and a delta of 1e-6


def results() -> Iterator[Result]:
    """Yield the time of fits, and the errors and the coverage of every level."""
    yield from _trees()
    yield from _coverage()
    yield from _cubes()
    yield from _pupils()
    yield from _others()
    yield from _pairs()


def _processor(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def _trees() -> Iterator[Result]:
    rng = np.random.default_rng(1)
    times = {}
    for leaves in (LEAVES, 10 * LEAVES):
        parents = [np.zeros(TOPS, dtype=np.int64)]
        for above, below in ((TOPS, MIDDLES), (MIDDLES, leaves)):
            parents.append(np.sort(np.concatenate([np.arange(above), rng.integers(0, above, below - above)])))
        weights = rng.lognormal(0, 2, leaves)
        cells = rng.multinomial(PEOPLE, weights / weights.sum())
        levels = [cells]
        for above in reversed(parents):
            levels.insert(0, np.bincount(above, levels[0]).astype(np.int64))
        variances = [SIGMA**2 / share for share in TREE_SHARES]
        noisy = _with_noise(rng, levels, variances)
        tries = [_processor(lambda: _fitted(parents, noisy, variances)) for _ in range(15)]  # noqa: B023
        times[leaves] = min(seconds for seconds, _ in tries)
        if leaves == LEAVES:
            yield from _tree_errors(rng, parents, levels, variances)
    rows = pa.table(
        {"town": np.repeat(np.arange(LEAVES), np.bincount(rng.integers(0, LEAVES, PEOPLE), minlength=LEAVES))}
    )
    connection = duckdb.connect()
    connection.register("rows", rows)
    grouped, _ = _processor(lambda: connection.sql("SELECT town, COUNT(*) FROM rows GROUP BY town").to_arrow_table())
    yield Figure("tree of 100,000 cells: fit and whole numbers / one grouped count", times[LEAVES] / grouped, most=0.5)
    yield Figure("tree of 1,000,000 cells / of 100,000", times[10 * LEAVES] / times[LEAVES], most=10)


def _with_noise(rng: np.random.Generator, levels: list[Any], variances: list[float]) -> list[Any]:
    return [each + np.rint(rng.normal(0, root**0.5, len(each))) for each, root in zip(levels, variances, strict=True)]


def _tree_errors(
    rng: np.random.Generator, parents: list[Any], levels: list[Any], variances: list[float]
) -> Iterator[Result]:
    """Yield the error of every level beside that of its own noise, over so many draws that one total is not luck."""
    errors = np.zeros((3, len(levels)))
    for _ in range(TREE_DRAWS):
        noisy = _with_noise(rng, levels, variances)
        fit, whole = _fitted(parents, noisy, variances)
        for row, found in zip(errors, (noisy, fit.values, whole), strict=True):
            row += [np.abs(one - truth).mean() for one, truth in zip(found, levels, strict=True)]
    alone, fitted, made = errors
    for name, least, best in zip(("in all", "states", "counties", "towns"), fitted / alone, made / alone, strict=True):
        yield Figure(f"tree, {name}: error fitted / asked alone", float(least), most=1)
        most = 0.85 if name == "towns" else 1
        yield Figure(f"tree, {name}: error in whole numbers / asked alone", float(best), most=most)


def _fitted(parents: list[Any], noisy: list[Any], variances: list[float]) -> tuple[Any, list[Any]]:
    fit = fit_tree(parents, noisy, variances)
    whole = [np.maximum(np.rint(fit.values[0]).astype(np.int64), 0)]
    for above, values in zip(parents, fit.values[1:], strict=True):
        whole.append(whole_parts(above, values, whole[-1]))
    return fit, whole


def _coverage() -> Iterator[Result]:
    """Yield the coverage of every level, over at least 100,000 of its numbers, in draws of the same tree."""
    rng = np.random.default_rng(6)
    parents = [np.zeros(TOPS, dtype=np.int64)]
    for above, below in ((TOPS, MIDDLES), (MIDDLES, 10_000)):
        parents.append(np.sort(np.concatenate([np.arange(above), rng.integers(0, above, below - above)])))
    counts = (1, TOPS, MIDDLES, 10_000)
    variances = [SIGMA**2 / share for share in TREE_SHARES]
    inside, seen = np.zeros(4), np.zeros(4)
    while seen[1] < COVERED:  # errors of a fit do not depend on the numbers
        noise = [np.rint(rng.normal(0, each**0.5, count)) for each, count in zip(variances, counts, strict=True)]
        fit = fit_tree(parents, noise, variances)
        for level, (off, variance) in enumerate(zip(fit.values, fit.variances, strict=True)):
            inside[level] += (np.abs(off) <= 1.96 * np.sqrt(variance)).sum()
            seen[level] += len(off)
    for name, share in zip(("states", "counties", "towns"), (inside / seen)[1:], strict=True):
        yield Figure(f"tree, {name}: coverage of 95 % after the fit", float(share), least=0.94, most=0.97)


def _cubes() -> Iterator[Result]:
    small, kept = (4, 3, 2), [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
    draw = np.random.default_rng(4)
    asked = {each: (draw.normal(9, 3, prod(small[at] for at in each)), float(draw.uniform(1, 9))) for each in kept}
    fit = fit_cube(small, asked, kept)
    design = np.vstack([_sums_of_cells(small, each) for each in kept])
    weights = np.concatenate([np.full(len(values), 1 / variance) for values, variance in asked.values()])
    values = np.concatenate([each for each, _ in asked.values()])
    cells = np.linalg.solve(design.T @ (weights[:, None] * design), design.T @ (weights * values))
    off = max(
        np.abs(_sums_of_cells(small, each) @ cells - best).max() for each, best in zip(kept, fit.values, strict=True)
    )
    yield Figure("cube: largest distance from dense least squares", float(off), most=1e-9)
    rng, sizes = np.random.default_rng(2), (100, 100, 50)
    kept = [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
    tables = {each: (rng.normal(50, 9, int(np.prod([sizes[at] for at in each]))), 1.0) for each in kept}
    seconds, _ = _processor(lambda: fit_cube(sizes, tables, kept))
    yield Figure("cube of 100 × 100 × 50: processor seconds of the fit", seconds, most=0.2)


def _sums_of_cells(sizes: tuple[int, ...], kept: tuple[int, ...]) -> Any:
    """Return the matrix that adds up cells to the table of some keys."""
    places = np.indices(sizes).reshape(len(sizes), -1)
    index = np.zeros(places.shape[1], dtype=np.int64)
    for key in kept:
        index = index * sizes[key] + places[key]
    return (np.arange(prod(sizes[key] for key in kept))[:, None] == index[None]).astype(float)


def _pupils() -> Iterator[Result]:
    """Yield errors of a cube of 16 regions and 5 ages, beside asking for the cells and adding by hand."""
    rng = np.random.default_rng(3)
    ages = range(AGES)
    regions = range(REGIONS)
    share = rng.dirichlet(np.full(REGIONS, 4.0))
    rows = pa.table({"region": rng.choice(REGIONS, PUPILS, p=share), "age": rng.integers(0, AGES, PUPILS)})
    table = tacit.table(
        rows,
        unit=tacit.ROW,
        name="pupils",
        budget=tacit.epsilon(3, delta=1e-6),
        ledger=":memory:",
        columns={"region": {"keys": list(regions)}, "age": {"keys": list(ages)}},
    )
    levels = [(0, 1), (0,), (1,), ()]
    cube = table.group_by("region", "age", totals="all").count().plan(epsilon=1).plan
    alone = table.group_by("region", "age").count().plan(epsilon=1).plan
    exact = table.session.engine.aggregate(cube, "a salt that bounds nothing away")
    truth = np.array(exact.sums["rows"], dtype=float).reshape(REGIONS, AGES)
    wanted = [truth.ravel(), truth.sum(axis=1), truth.sum(axis=0), truth.sum(keepdims=True).ravel()]
    errors, by_hand, inside, count = np.zeros(4), np.zeros(4), 0, 0
    is_same = cube.releases == alone.releases  # then its cells are asked as they are alone: one draw is both
    for _ in range(RUNS):
        made = release(cube, exact)
        columns = [
            each[0] for each in agreeing_columns(fitted_levels(cube, made, levels, CONFIDENCE), levels, CONFIDENCE)
        ]
        noisy = np.array((made if is_same else release(alone, exact)).parts[0][0], dtype=float).reshape(REGIONS, AGES)
        added = [noisy.ravel(), noisy.sum(axis=1), noisy.sum(axis=0), noisy.sum(keepdims=True).ravel()]
        by_hand += [np.abs(one - two).mean() for one, two in zip(added, wanted, strict=True)]
        errors += [
            np.abs(np.array(one.values, dtype=float) - two).mean() for one, two in zip(columns, wanted, strict=True)
        ]
        for column, values in zip(columns, wanted, strict=True):
            inside += sum(
                low <= value <= high for low, high, value in zip(column.low, column.high, values, strict=True)
            )
            count += len(values)
    for name, most, one, two in zip(
        ("cells", "regions", "ages", "in all"), (1.3, 1, 1, 1), errors, by_hand, strict=True
    ):
        yield Figure(f"pupils, {name}: error / of cells added by hand ({RUNS} runs)", float(one / two), most=most)
    yield Figure("pupils: coverage of 95 %", float(inside / count), least=0.94, most=0.99)


def _others() -> Iterator[Result]:
    """Yield the error of others that are asked for, beside that of the total minus all that is shown."""
    rng = np.random.default_rng(7)
    weights = 1 / np.arange(1, KEYS + 1) ** 1.1
    drawn = rng.choice(KEYS, DRAWN, p=weights / weights.sum())
    table = tacit.table(
        pa.table({"town": drawn}), unit=tacit.ROW, name="towns", budget=tacit.epsilon(4, delta=1e-6), ledger=":memory:"
    )
    question = table.group_by("town", other=True, smallest=SMALLEST).count()
    rows = question.answer(epsilon=1).to_dicts()  # learns which towns are shown
    plan = question.plan(epsilon=1).plan
    exact = table.session.engine.aggregate(plan, "a salt that bounds nothing away")
    true = int(np.isin(drawn, [row["town"] for row in rows if row["town"] is not None], invert=True).sum())
    asked, difference = [], []
    alone = table.count().plan(epsilon=1).plan
    whole = table.session.engine.aggregate(alone, "a salt that bounds nothing away")
    for _ in range(RUNS):
        numbers = dict(zip(plan.public_keys or (), release(plan, exact).parts[0][0], strict=True))
        asked.append(numbers.pop((None,)) - true)
        difference.append(release(alone, whole).parts[0][0][0] - sum(numbers.values()) - true)
    ratio = np.mean(np.abs(asked)) / np.mean(np.abs(difference))
    yield Figure(
        f"others of {KEYS:,} keys: error / of the total minus {len(rows) - 1} shown ones", float(ratio), most=0.1
    )
    noise = np.std(asked) / RUNS**0.5
    yield Figure("others: bias in standard errors", abs(float(np.mean(asked))) / max(float(noise), 1e-9), most=6)


def _pairs() -> Iterator[Result]:
    """Yield the mean total variation of all pairs of columns of Adult, with public bins, at an epsilon of 1."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "adult.parquet"
        try:
            adult(path)
        except NoTable as why:
            yield Absent("all pairs of Adult", str(why))
            return
        rows = pq.read_table(path).drop(["person_id"]).to_pandas()
    rows = rows[np.random.default_rng(7).permutation(len(rows)) >= len(rows) // 5].reset_index(drop=True)
    bins = _adult_bins()
    columns = {
        name: {"between": (edges[0], edges[-1])} if (edges := bins.get(name)) else {"keys": sorted(set(rows[name]))}
        for name in rows
    }
    table = tacit.table(
        rows,
        unit=tacit.ROW,
        name="adult",
        budget=tacit.epsilon(PAIRS_EPSILON, delta=1e-6),
        ledger=":memory:",
        columns=columns,
    )
    question = table.marginals(list(rows), bins=bins)
    seconds, answer = _processor(lambda: question.answer(epsilon=PAIRS_EPSILON, accept_noise=True))
    possible = question.answer(epsilon=PAIRS_EPSILON, accept_noise=True, consistent=True)
    plans = question.plan(epsilon=PAIRS_EPSILON).planned.plans
    coded = {
        name: np.array(bins[name][:-1])[
            np.clip(np.searchsorted(bins[name], rows[name], side="right") - 1, 0, len(bins[name]) - 2)
        ]
        if name in bins
        else rows[name].to_numpy()
        for name in rows
    }
    fitted, shown, alone, inside, count = [], [], [], 0, 0
    draw = np.random.default_rng(8)
    for (one, two), plan in zip(combinations(rows, 2), plans, strict=True):
        part = answer[f"{one}, {two}"]
        keys = [name for name in part.columns if name not in part.aggregates]
        places = {tuple(row[key] for key in keys): at for at, row in enumerate(part.rows)}
        truth = np.zeros(len(places))
        np.add.at(truth, [places[key] for key in zip(coded[one].tolist(), coded[two].tolist(), strict=True)], 1)
        deviation = float(plan.releases[0].law.variance()) ** 0.5
        alone.append(np.abs(draw.normal(0, deviation, len(truth))).sum() / 2 / len(rows))
        fitted.append(_variation(part, truth))
        shown.append(_variation(possible[f"{one}, {two}"], truth))
        ends = np.array([[row["count_low"], row["count_high"]] for row in part.rows])
        inside += int(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).sum())
        count += len(truth)
    yield Figure("all pairs of Adult: mean total variation", float(np.mean(shown)), most=0.033)
    yield Figure("all pairs of Adult: the same / each asked alone", float(np.mean(shown) / np.mean(alone)), most=0.4)
    yield Figure(
        "all pairs of Adult: least squares, not negative / each asked alone", float(np.mean(fitted) / np.mean(alone))
    )
    yield Figure("all pairs of Adult: coverage of 95 %", inside / count, least=0.94, most=0.99)
    yield Figure("all pairs of Adult: processor seconds of the answer", seconds)


def _variation(answer: Any, truth: Any) -> float:
    counts = np.array([row["count"] for row in answer.rows], dtype=float)
    return float(np.abs(counts / max(counts.sum(), 1) - truth / truth.sum()).sum() / 2)


def _adult_bins() -> dict[str, list[float]]:
    """Return public bins of Adult's numbers: even ones of age, fine ones of hours about 40, rising ones of others."""
    rising = {"capital_gain": (100, 1e5, 12), "capital_loss": (100, 5000, 10)}
    found = {name: [-1.0, 1.0, *map(round, np.geomspace(*ends).tolist())] for name, ends in rising.items()}
    found["fnlwgt"] = [0.0, *map(round, np.geomspace(20_000, 1.5e6, 16).tolist())]
    found["age"] = list(range(15, 96, 5))
    found["hours_per_week"] = [0, 10, 15, 20, 25, 30, 35, 38, 40, 41, 45, 46, 50, 51, 56, 61, 100]
    return {name: [float(edge) for edge in edges] for name, edges in found.items()}
