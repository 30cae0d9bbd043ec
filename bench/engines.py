"""What a question costs where the rows are in another engine: processor seconds of all processes, ours and its own.

Count, sum and mean of orders by item, with every person bounded, against the engine's own bare GROUP BY of item and
person on the same rows; how much memory reading from PostgreSQL takes; what a Python task of Spark costs that does
nothing. Walls are not judged: processes are several and machines are shared. Spark's half is in engines_spark.py.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq

import tacit
from bench import engines_spark
from bench.measure import Absent, Figure, Ratio, Result, Seconds
from bench.orders import AGGREGATES, COLUMN_BYTES, write_orders
from tacit.engine.kernel import compiled

ITEMS, REPEATS = 1000, 3
SALT = "0"
# rows -> how many times the server's own GROUP BY we may take
LIMITS = {10**6: 1.2, 10**7: 0.6}
BARE = "SELECT count(*) FROM (SELECT item, user_id, count(*), sum(amount) FROM {} GROUP BY item, user_id) bare"
SETTLED_SECONDS = 0.3
MEMORY_MOST = 3  # as on files
# The peak of one question in a fresh process, above that of the same question about few rows.
PEAK = """
import json, sys
from bench.engines import question
from bench.measure import peak_bytes

question(sys.argv[1])()
before = peak_bytes()
question(sys.argv[2])()
print(json.dumps(peak_bytes() - before))
"""


def results() -> Iterator[Result]:
    """Yield what a question takes on each engine that this machine has."""
    compiled.compile_now()
    yield from on_postgres()
    yield from on_spark()


def on_postgres() -> Iterator[Result]:
    """Yield the processor time of a question on PostgreSQL against its own GROUP BY."""
    from tacit_gauntlet.stage.postgres_server import server, server_programs

    programs = server_programs()
    if programs is None:
        yield Absent("PostgreSQL", "it is not installed")
        return
    with server(programs) as address, tempfile.TemporaryDirectory() as folder:
        place = Path(address.partition("host=")[2], "data", "postmaster.pid")
        roots = (int(place.read_text().split()[0]),)
        for rows, limit in LIMITS.items():
            name = f"orders_{rows}"
            load(address, name, rows, Path(folder))
            ask = question(f"{address}&table={name}")
            bare = least(lambda name=name: run(address, BARE.format(name)), roots)
            ours = least(ask, roots)
            yield Ratio(f"PostgreSQL, 10^{len(str(rows)) - 1} rows", ours, bare, limit)
        few, many = (f"{address}&table=orders_{rows}" for rows in (min(LIMITS), max(LIMITS)))
        more = peak_above(few, many) / (max(LIMITS) * COLUMN_BYTES)
        yield Figure("PostgreSQL, memory of 10^7 rows / their columns", more, most=MEMORY_MOST)


def on_spark() -> Iterator[Result]:
    """Yield the processor time of a question on Spark against its own GROUP BY, and that of an empty Python task."""
    why = engines_spark.missing()
    if why is not None:
        yield Absent("Spark", why)
        return
    with tempfile.TemporaryDirectory() as folder, engines_spark.session(Path(folder)) as session:
        for rows, limit in engines_spark.LIMITS.items():
            name = engines_spark.store(session, Path(folder), rows)
            ask, bare = engines_spark.jobs(session, name)
            for job in (bare, ask, bare, ask):  # Java compiles what it runs often: both are warm when they are timed
                job()
            theirs, ours = least(bare), least(ask)
            yield Ratio(f"Spark, 10^{len(str(rows)) - 1} rows", ours, theirs, limit)
        names = [name, engines_spark.store(session, Path(folder), rows, huge=True)]
        spread, huge = (least(job, repeats=2) for job in engines_spark.scaled_jobs(session, names))
        yield Ratio("Spark, 10^7 scaled rows, half of one person", huge, spread)
        tasks, most = engines_spark.EMPTY_TASKS, engines_spark.EMPTY_LIMIT
        yield Seconds("Spark, an empty Python task", least(lambda: engines_spark.empty(session)) / tasks, most)


def peak_above(few: str, many: str) -> int:
    """Return how many bytes a question about many rows takes at its peak, above one about few."""
    command = [sys.executable, "-c", PEAK, few, many]
    ran = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    return int(json.loads(ran.stdout))


def load(address: str, name: str, rows: int, folder: Path) -> None:
    """Store the orders in a table."""
    from adbc_driver_postgresql import dbapi

    path = folder / f"{name}.parquet"
    write_orders(path, rows, ITEMS)
    file = pq.ParquetFile(path)
    batches = pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches(1 << 18))
    with dbapi.connect(address) as link, link.cursor() as cursor:
        cursor.adbc_ingest(name, batches, mode="create")
        link.commit()
    path.unlink()
    run(address, f"VACUUM ANALYZE {name}")


def run(address: str, sql: str) -> None:
    """Run a statement and read what it gives."""
    with psycopg.connect(address, autocommit=True) as link:
        found = link.execute(sql)
        if found.description:
            found.fetchall()


def question(source: str) -> Callable[[], object]:
    """Return a function that has the kernel add up the rows of the question."""
    table = tacit.table(
        source,
        unit="user_id",
        name="orders",
        budget=tacit.epsilon(10**6, delta=1e-6),
        ledger=":memory:",
        columns={"amount": {"between": (0, 100)}, "item": {"keys": range(ITEMS)}},
        rows_per_unit=2,
        groups_per_unit=5,
    )
    asked = table.sql(f"SELECT item, {AGGREGATES} FROM orders GROUP BY item")
    plan, engine = asked.plan(epsilon=1).plan, asked.session.engine
    if engine.path_of(plan) != "kernel":
        raise RuntimeError("the kernel does not take this plan")
    return lambda: engine.aggregate(plan, SALT)


def least(job: Callable[[], object], roots: tuple[int, ...] = (), *, repeats: int = REPEATS) -> float:
    """Return the least processor seconds of some runs: of this process, those it started, and these and theirs."""
    taken = []
    for _ in range(repeats):
        before = processes(roots)
        job()
        time.sleep(SETTLED_SECONDS)  # a server's process that has ended is counted when its parent has seen it
        taken.append(seconds_between(before, processes(roots)))
    return min(taken)


@dataclass(frozen=True)
class Process:
    """A process: its parent, and the ticks of all that it did itself and of those below it that it waited for."""

    parent: int
    waited: int
    ticks: int


def processes(roots: tuple[int, ...]) -> dict[int, Process]:
    """Return this process and others, with all below them."""
    found: dict[int, Process] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        own, waited = (sum(map(int, fields[at : at + 2])) for at in (11, 13))
        found[int(name)] = Process(int(fields[1]), waited, own + waited)
    mine = {os.getpid(), *roots}
    while more := {pid for pid, each in found.items() if each.parent in mine} - mine:
        mine |= more
    return {pid: each for pid, each in found.items() if pid in mine}


def seconds_between(before: dict[int, Process], after: dict[int, Process]) -> float:
    """Return the processor seconds of what happened between; one that ended is counted where it was waited for.

    One that nobody waited for takes what it did before with it: that is not taken from the others.
    """
    ticks = sum(each.ticks for each in after.values()) - sum(each.ticks for each in before.values())
    credit = {pid: each.waited - before[pid].waited for pid, each in after.items() if pid in before}
    for pid in before.keys() - after.keys():
        above = before[pid].parent
        while above in before and above not in after:
            above = before[above].parent
        if credit.get(above, 0) >= before[pid].ticks:
            credit[above] -= before[pid].ticks
        else:
            ticks += before[pid].ticks
    return ticks / os.sysconf("SC_CLK_TCK")
