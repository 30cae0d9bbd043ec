"""Spark's half of the bench of engines: a session on this machine, the orders in some files, and what is timed."""

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import tacit
from bench.orders import AGGREGATES, write_orders
from tacit.engine.task import Task, versions

ITEMS, FILES, EMPTY_TASKS = 1000, 8, 20
SALT = "0"
# rows -> how many times Spark's own GROUP BY we may take
LIMITS = {10**6: 1.3, 10**7: 0.8}
EMPTY_LIMIT = 0.09


def missing() -> str | None:
    """Return what Spark needs and is not here."""
    from tacit_gauntlet.stage.spark_rows import java_home

    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed"
    home = java_home()
    if home is None:
        return "there is no Java 17 or 21"
    os.environ["JAVA_HOME"] = home
    return None


@contextmanager
def session(folder: Path, **settings: str) -> Iterator[Any]:
    """Lend a session on this machine's cores, or on those of a master that is named."""
    made = spark(folder, **settings)
    try:
        yield made
    finally:
        made.stop()


def spark(folder: Path, master: str = f"local[{os.cpu_count()}]", **more: str) -> Any:
    """Return a session on this machine's cores, or on executors of their own."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # else its tasks run on the first python3 of the path
    builder = SparkSession.builder.master(master)
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "4g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": "4",
        "spark.tacit.parts": "4",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    for name, value in (settings | more).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def store(session: Any, folder: Path, rows: int, *, huge: bool = False) -> str:
    """Store the orders in a table of some files, and return its name; of a `huge` one half is one person's."""
    name = f"{'huge' if huge else 'orders'}_{rows}"
    whole, place = folder / "whole.parquet", folder / name
    write_orders(whole, rows, ITEMS, huge=huge)
    place.mkdir()
    with pq.ParquetFile(whole) as file, ExitStack() as stack:
        writers = [
            stack.enter_context(pq.ParquetWriter(place / f"{at}.parquet", file.schema_arrow)) for at in range(FILES)
        ]
        for at in range(file.num_row_groups):
            writers[at % FILES].write_table(file.read_row_group(at))
    whole.unlink()
    session.sql("CREATE DATABASE IF NOT EXISTS shop")
    session.sql(f"CREATE TABLE shop.{name} USING parquet LOCATION 'file:{place}'")
    return f"shop.{name}"


def jobs(session: Any, name: str) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return the question, and Spark's own GROUP BY."""
    table = tacit.table(
        f"spark://{name}",
        spark=session,
        name="orders",
        unit="user_id",
        rows_per_unit=2,
        groups_per_unit=5,
        most_rows_per_unit=1,
        budget=tacit.epsilon(10**6, delta=1e-6),
        columns={"amount": {"between": (0, 100)}, "item": {"keys": range(ITEMS)}},
        ledger=":memory:",
    )
    question = table.sql(f"SELECT item, {AGGREGATES} FROM orders GROUP BY item")
    plan, engine = question.plan(epsilon=1).plan, question.session.engine
    frame = session.table(name)

    def bare() -> None:
        by = frame.groupBy("item", "user_id").agg({"amount": "sum", "*": "count"})
        by.write.format("noop").mode("overwrite").save()

    return lambda: engine.aggregate(plan, SALT), bare


def scaled_jobs(session: Any, names: Sequence[str]) -> list[Callable[[], object]]:
    """Return a question whose people are scaled, of each table: by bounds that are learned of the first."""
    tables = [
        tacit.table(
            f"spark://{name}",
            spark=session,
            name="orders",
            unit="user_id",
            budget=tacit.epsilon(10**6, delta=1e-6),
            columns={"amount": {"between": (0, 100)}, "item": {"keys": range(ITEMS)}},
            ledger=":memory:",
        )
        for name in names
    ]
    tables[0].learn(1, columns=["amount"], by=["item"])
    asked = tables[0].sql("SELECT item, COUNT(*) AS n, SUM(amount) AS total FROM orders GROUP BY item")
    plan = asked.plan(epsilon=1).plan
    if plan.scaling is None:
        raise RuntimeError("this plan does not scale")
    engines = [table.session.engine for table in tables]
    return [lambda engine=engine: engine.aggregate(plan, SALT) for engine in engines]


def empty(session: Any) -> None:
    """Run Python tasks that do nothing."""

    def nothing(batches: Any) -> Any:  # in here, so that it is sent by its code
        for _ in batches:
            pass
        return iter(())

    rows = session.range(0, EMPTY_TASKS, 1, EMPTY_TASKS)
    rows.mapInArrow(Task(nothing, versions()), "part int, kind int, data binary").collect()
