"""Grouped questions through the whole path, ledger included, against what the engine needs for the bare aggregate.

We count, add up and average amounts by item, at most 5 items and 2 rows in each for one person, and pay for it. The
baseline is the engine's own GROUP BY item, person on the same file in the same process: no bounds, no noise, no ledger.
Where each row is its own person, the baseline is a GROUP BY item.
"""

from collections.abc import Callable, Iterator
from math import log, log10
from pathlib import Path

import duckdb

import tacit
from bench.measure import Figure, Ratio, Result, median_ratio, times_of_each
from bench.orders import AGGREGATES, BARE, ask, epsilons, orders, protected
from tacit.answer import kept_text
from tacit.asking import Table
from tacit.engine.kernel import compiled

MILLION = 10**6
BY_ITEM = "SELECT item, count(*), sum(amount) FROM '{}' GROUP BY item"
EACH_ROW_LIMIT = 1.3
MOST_SUMS = 8
# Where a person's items are few and near each other, the engine's own GROUP BY is quicker.
NEAR, NEAR_LIMIT = 12, 1.3
# public keys: (rows, items) -> what we promise
LIMITS = {(MILLION, 1000): 1.3, (10 * MILLION, 1000): 0.55, (10 * MILLION, 100_000): 1.2}
# What is made of an answer with 100,000 rows, beside the bare aggregate of 10^7 rows: what we promise.
TEXT_LIMIT, CERTIFICATE_LIMIT, TABLE_LIMIT = 0.1, 0.5, 0.1


def results() -> Iterator[Result]:
    """Yield ratios for sizes, keys and aggregates, and how they grow."""
    compiled.compile_now()
    ours: dict[tuple[int, int], float] = {}
    for (rows, items), limit in LIMITS.items():
        with orders(rows, items) as path:
            for listed in (items, None):
                result = against_bare(path, rows, items, listed, limit=limit if listed else None)
                ours[rows, items] = min(result.ours, ours.get((rows, items), result.ours))
                yield result
            if items == 1000:
                yield for_each_row(path, rows)
            else:
                yield from made_of_an_answer(path, items)
            if (rows, items) == (10 * MILLION, 1000):
                yield from by_aggregate(path)
                yield by_number(path)
    with orders(10 * MILLION, 100_000, near=NEAR) as path:
        yield against_bare(path, 10 * MILLION, 100_000, 100_000, limit=NEAR_LIMIT, shape=f", {NEAR} near ones a person")
    # where fixed costs fade; from 10^7 to 10^8 there is a limit on it (bench/large.py)
    yield Figure("exponent in rows", slope(ours, (MILLION, 1000), (10 * MILLION, 1000), 10))
    yield Figure("exponent in groups", slope(ours, (10 * MILLION, 1000), (10 * MILLION, 100_000), 100), most=1)


def against_bare(
    path: Path, rows: int, items: int, listed: int | None, *, limit: float | None, shape: str = ""
) -> Ratio:
    """Return our time for the question against the engine's for the bare aggregate."""
    table = protected(path, items=listed)
    engine = duckdb.connect()
    return median_ratio(
        f"10^{round(log10(rows))} rows, {items} {'public' if listed else 'private'} keys{shape}",
        lambda: ask(table),
        lambda: engine.sql(BARE.format(path)).to_arrow_table(),
        limit=limit,
        repeats=11 if rows == MILLION else 5,
    )


def made_of_an_answer(path: Path, items: int) -> Iterator[Ratio]:
    """Yield what the ledger's readable entry, a certificate and a printed table of many groups take."""
    table, engine = protected(path, items=items, name="printed"), duckdb.connect()
    answer = table.sql(f"SELECT item, {AGGREGATES} FROM printed GROUP BY item").answer(epsilon=next(epsilons))
    jobs: dict[str, tuple[Callable[[], object], float]] = {
        "readable entry": (lambda: kept_text(answer), TEXT_LIMIT),
        "certificate": (answer.certificate, CERTIFICATE_LIMIT),
        "printed table": (lambda: str(answer), TABLE_LIMIT),
    }
    bare = BARE.format(path)
    for name, (job, limit) in jobs.items():
        yield median_ratio(
            f"{name} of {items} groups", job, lambda: engine.sql(bare).to_arrow_table(), limit=limit, repeats=3
        )


def for_each_row(path: Path, rows: int) -> Ratio:
    """Return the ratio where nothing is to be bounded; at a million rows it is what an answer costs beside its rows."""
    table = protected(path, items=1000, unit=tacit.ROW, name="rows")
    engine = duckdb.connect()
    return median_ratio(
        f"10^{round(log10(rows))} rows, each its own unit",
        lambda: ask(table),
        lambda: engine.sql(BY_ITEM.format(path)).to_arrow_table(),
        limit=EACH_ROW_LIMIT if rows > MILLION else None,
        repeats=9,
    )


def by_aggregate(path: Path) -> Iterator[Result]:
    """Yield each aggregate's time against a count's."""
    table = protected(path, items=1000, name="aggregates")
    asked = {
        "count": "COUNT(*) AS n",
        "sum": "SUM(amount) AS s",
        "mean": "AVG(amount) AS m",
        "variance": "VAR_POP(amount) AS v",
        "median": "MEDIAN(amount) AS q",
    }
    jobs = [lambda written=written: ask(table, written) for written in asked.values()]
    for job in jobs:
        job()
    times = [min(each) for each in times_of_each(*jobs, repeats=3)]
    for name, time in zip(asked, times, strict=True):
        yield Ratio(f"10^7 rows, {name} against count", time, times[0])


def by_number(path: Path) -> Result:
    """Return how time grows with the number of aggregates: sums of one expression and of eight."""
    table = protected(path, items=1000, name="numbers")
    jobs = [lambda number=number: ask_sums(table, number) for number in (1, MOST_SUMS)]
    for job in jobs:
        job()
    one, most = (min(each) for each in times_of_each(*jobs, repeats=3))
    return Figure("exponent in aggregates", log(most / one) / log(MOST_SUMS), most=1)


def ask_sums(table: Table, number: int) -> None:
    """Answer for the sums of so many expressions at once."""
    sums = ", ".join(f"SUM(amount + {place}) AS s{place}" for place in range(number))
    between = {f"s{place}": (0, 100 + place) for place in range(number)}
    question = table.sql(f"SELECT item, {sums} FROM {table.frame.declaration.name} GROUP BY item", between=between)
    question.answer(epsilon=next(epsilons))


def slope(ours: dict[tuple[int, int], float], small: tuple[int, int], large: tuple[int, int], factor: int) -> float:
    """Return the exponent with which our time grows."""
    return log(ours[large] / ours[small]) / log(factor)
