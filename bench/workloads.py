"""Tables with totals: their errors beside the same numbers asked alone or added up by hand, and the time of the fit.

Trees and cubes are fitted by the functions that fit an answer. Time is processor time, beside DuckDB's of one grouped
count of the same rows in the same run. Errors are mean absolute errors, with noise of the plan's scales.
"""

import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import tacit
from bench.measure import Figure, Result
from tacit.answer.totals import agreeing_columns, fit_cube, fit_tree, fitted_levels, whole_parts
from tacit.exact import ExactTable
from tacit.plan import Plan
from tacit.release.noisy import release

CONFIDENCE = Fraction(95, 100)
PEOPLE = 5_000_000
LEAVES, MIDDLES, TOPS = 100_000, 3_000, 50
REGIONS, AGES, PUPILS = 16, 5, 48_000
RUNS = 40
SIGMA = 4.2  # of Gaussian noise at an epsilon of 1 and a delta of 1e-6


def results() -> Iterator[Result]:
    """Yield the time of fits, and the errors and the coverage of every level."""
    yield from _trees()
    yield from _cubes()
    yield from _pupils()


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
        shares = (0.02, 0.08, 0.2, 0.7)
        noisy = [
            each + np.rint(rng.normal(0, SIGMA / share**0.5, len(each)))
            for each, share in zip(levels, shares, strict=True)
        ]
        variances = [SIGMA**2 / share for share in shares]
        times[leaves], (fit, whole) = _processor(lambda: _fitted(parents, noisy, variances))  # noqa: B023
        if leaves == LEAVES:
            for name, truth, one, best, made in zip(
                ("in all", "states", "counties", "towns"), levels, noisy, fit.values, whole, strict=True
            ):
                if len(truth) > 1:  # one number is luck
                    alone = np.abs(one - truth).mean()
                    yield Figure(
                        f"tree, {name}: error fitted / asked alone", np.abs(best - truth).mean() / alone, most=1.02
                    )
                    yield Figure(
                        f"tree, {name}: error in whole numbers / asked alone", np.abs(made - truth).mean() / alone
                    )
            inside = np.mean(np.abs(fit.values[3] - levels[3]) <= 1.96 * np.sqrt(fit.variances[3]))
            yield Figure("tree, towns: coverage of 95 % after the fit", float(inside), least=0.94, most=0.97)
    rows = pa.table(
        {"town": np.repeat(np.arange(LEAVES), np.bincount(rng.integers(0, LEAVES, PEOPLE), minlength=LEAVES))}
    )
    connection = duckdb.connect()
    connection.register("rows", rows)
    grouped, _ = _processor(lambda: connection.sql("SELECT town, COUNT(*) FROM rows GROUP BY town").to_arrow_table())
    yield Figure("tree of 100,000 cells: fit and whole numbers / one grouped count", times[LEAVES] / grouped, most=0.5)
    yield Figure("tree of 1,000,000 cells / of 100,000", times[10 * LEAVES] / times[LEAVES], most=10)


def _fitted(parents: list[Any], noisy: list[Any], variances: list[float]) -> tuple[Any, list[Any]]:
    fit = fit_tree(parents, noisy, variances)
    whole = [np.maximum(np.rint(fit.values[0]).astype(np.int64), 0)]
    for above, values in zip(parents, fit.values[1:], strict=True):
        whole.append(whole_parts(above, values, whole[-1]))
    return fit, whole


def _cubes() -> Iterator[Result]:
    rng, sizes = np.random.default_rng(2), (100, 100, 50)
    kept = [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
    tables = {each: (rng.normal(50, 9, int(np.prod([sizes[at] for at in each]))), 1.0) for each in kept}
    seconds, _ = _processor(lambda: fit_cube(sizes, tables, kept))
    yield Figure("cube of 100 × 100 × 50: processor seconds of the fit", seconds, most=0.2)


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
    for _ in range(RUNS):
        errors += _errors(cube, exact, levels, wanted)
        noisy = np.array(release(alone, exact).parts[0][0], dtype=float).reshape(REGIONS, AGES)
        added = [noisy.ravel(), noisy.sum(axis=1), noisy.sum(axis=0), noisy.sum(keepdims=True).ravel()]
        by_hand += [np.abs(one - two).mean() for one, two in zip(added, wanted, strict=True)]
        for column, values in zip(_columns(cube, exact, levels), wanted, strict=True):
            inside += sum(
                low <= value <= high for low, high, value in zip(column.low, column.high, values, strict=True)
            )
            count += len(values)
    for name, most, one, two in zip(
        ("cells", "regions", "ages", "in all"), (1.3, 1.1, 1.2, 1.4), errors, by_hand, strict=True
    ):
        yield Figure(f"pupils, {name}: error / of cells added by hand ({RUNS} runs)", one / two, most=most)
    yield Figure("pupils: coverage of 95 %", inside / count, least=0.94, most=0.99)


def _columns(plan: Plan, exact: ExactTable, levels: list[Any]) -> list[Any]:
    fitted = fitted_levels(plan, release(plan, exact), levels, CONFIDENCE)
    return [columns[0] for columns in agreeing_columns(fitted, levels, CONFIDENCE)]


def _errors(plan: Plan, exact: ExactTable, levels: list[Any], wanted: list[Any]) -> Any:
    columns = _columns(plan, exact, levels)
    return np.array(
        [np.abs(np.array(each.values, dtype=float) - true).mean() for each, true in zip(columns, wanted, strict=True)]
    )
