"""Rows with their unit in another table, and rows in an object store, beside the plain file: processor time."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

import tacit
from bench.measure import Ratio

ROWS = 10_000_000
ROUNDS = 3
FACTS = {"item": {"keys": ["a", "b", "c", "d", "e"]}, "qty": {"between": (0, 100)}}
BOUNDS = {"rows_per_unit": 64, "groups_per_unit": 5, "columns": FACTS}


def results() -> Iterator[Ratio]:
    """Ask the same grouped count and sum of the plain file, of lines with an order each, and of a bucket."""
    with tempfile.TemporaryDirectory() as folder, bucket() as client:
        write_rows(Path(folder))
        plain = table(f"{folder}/copied.parquet")
        orders = table(f"{folder}/orders.parquet", columns={})
        lines = tacit.table(f"{folder}/lines.parquet", unit=orders, via="order_id", **BOUNDS)
        client.upload_file(f"{folder}/copied.parquet", "care", "copied.parquet")
        there = table("s3://care/copied.parquet", name="there")
        asked = {"plain": plain, "lines": lines, "there": there}
        times: dict[str, list[float]] = {name: [] for name in asked}
        for turn in range(ROUNDS + 1):  # the first starts the loops
            for name, each in asked.items():
                times[name].append(processor_seconds(lambda each=each, turn=turn: ask(each, turn)))
        least = {name: statistics.median(each[1:]) for name, each in times.items()}
        # the keys and owners are made different and put into a hash table once for each question
        yield Ratio("a unit by a foreign key, the column copied down", least["lines"], least["plain"], 1.5)
        yield Ratio("Parquet in a bucket on loopback, the local file", least["there"], least["plain"], 1.3)


def table(source: str, **words: Any) -> tacit.Table:
    budget = tacit.epsilon(9, delta="1e-6")
    return tacit.table(source, **{"unit": "customer_id", "budget": budget, "ledger": tacit.TRYOUT, **BOUNDS, **words})


def ask(of: tacit.Table, turn: int) -> None:
    of.group_by("item").agg(n=tacit.count(), s=tacit.sum("qty")).answer(epsilon=0.1 + turn / 100)


def processor_seconds(run: Callable[[], object]) -> float:
    before = time.process_time()
    run()
    return time.process_time() - before


def write_rows(folder: Path) -> None:
    """Write orders, four lines for each, and the lines with the orders' column copied down."""
    with duckdb.connect() as connection:
        rows = {
            "orders": f"SELECT i AS order_id, hash(i) % 200000 AS customer_id FROM range({ROWS // 4}) t(i)",
            "lines": "SELECT i // 4 AS order_id, ['a', 'b', 'c', 'd', 'e'][(1 + hash(i + 7) % 5)::INT] AS item,"
            f" (hash(i + 3) % 100)::INT AS qty FROM range({ROWS}) t(i)",
            "copied": f"SELECT l.*, customer_id FROM '{folder}/lines.parquet' l"
            f" JOIN '{folder}/orders.parquet' USING (order_id) ORDER BY order_id",
        }
        for name, select in rows.items():
            connection.execute(f"COPY ({select}) TO '{folder}/{name}.parquet'")


@contextmanager
def bucket() -> Iterator[Any]:
    """Start a store of objects in a process of its own, and yield a client of it."""
    import boto3

    port = "5599"
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", port]
    words = {"ACCESS_KEY_ID": "x", "SECRET_ACCESS_KEY": "y", "REGION": "us-east-1", "ALLOW_HTTP": "true"}
    os.environ.update({f"AWS_{name}": value for name, value in {**words, "ENDPOINT_URL": address}.items()})
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            for _ in range(300):
                try:
                    urllib.request.urlopen(f"{address}/moto-api/")
                    break
                except OSError:
                    time.sleep(0.1)
            client = boto3.client("s3", endpoint_url=address)
            client.create_bucket(Bucket="care")
            yield client
        finally:
            server.terminate()
