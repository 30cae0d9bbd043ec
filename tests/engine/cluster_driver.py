"""A driver on the cluster of the tests, in a process of its own: it asks, and says in JSON what came of it.

`Held` stops one task at a chosen stage until it may go on, so that what is killed is killed at a chosen moment.
"""

import json
import os
import signal
import sys
import threading
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import tacit
from tacit.engine.engine import EmbeddedEngine
from tacit.engine.kernel import compiled
from tacit.engine.spark import SparkEngine
from tacit_gauntlet.stage.parts import as_read

SALT = "00112233445566778899aabbccddeeff"
SQL = "SELECT g, COUNT(*) AS n, SUM(x) AS s, COUNT(DISTINCT k) AS d FROM people GROUP BY g"
QUICK_SQL = "SELECT k, COUNT(*) AS n, SUM(x) AS s FROM people GROUP BY k"
WAIT = 600
QUICK_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"  # no process lives long enough for more to pay


@dataclass(frozen=True)
class Held:
    """A stage, one task of which stops before its first batch, or raises: the first one that comes."""

    stage: Any
    folder: str
    raises: bool

    def __call__(self, batches: Any) -> Any:
        try:
            os.close(os.open(f"{self.folder}/claimed", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return self.stage(batches)
        if self.raises:
            raise RuntimeError("once")
        pids = [os.getpid(), os.getppid(), _parent(os.getppid())]  # the worker, its daemon, the executor
        Path(f"{self.folder}/writing").write_text(json.dumps(pids))
        os.rename(f"{self.folder}/writing", f"{self.folder}/reached")
        _wait_for(f"{self.folder}/go")
        return self.stage(batches)


class HeldEngine(SparkEngine):
    """Spark's engine with one stage held."""

    held: tuple[str, str, bool] | None = None

    def _mapped(self, frame: Any, stage: Any) -> Any:
        if self.held is not None and type(stage).__name__ == self.held[0]:
            stage = Held(stage, *self.held[1:])
        return super()._mapped(frame, stage)


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def _wait_for(path: str) -> None:
    end = time.monotonic() + WAIT
    while not os.path.exists(path):
        if time.monotonic() > end:
            raise TimeoutError(path)
        time.sleep(0.02)


def executors(master: str) -> list[int]:
    """Return the executors of this cluster's workers, by their command lines."""
    found = []
    for name in os.listdir("/proc"):
        try:
            line = Path(f"/proc/{name}/cmdline").read_text() if name.isdigit() else ""
        except OSError:
            continue
        if "CoarseGrainedExecutorBackend" in line and f"-Dtacit.master={master}" in line:
            found.append(int(name))
    return found


def session(master: str, folder: Path, cores: int):
    """Return a session on the cluster."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "600m",
        "spark.executor.memory": "500m",
        "spark.executor.cores": "1",
        "spark.driver.extraJavaOptions": QUICK_JAVA,
        "spark.executor.extraJavaOptions": f"{QUICK_JAVA} -Dtacit.master={master}",
        "spark.cores.max": str(cores),
        "spark.task.maxFailures": "8",
        "spark.speculation": "true",
        "spark.speculation.interval": "200ms",
        "spark.speculation.minTaskRuntime": "4s",
        "spark.speculation.quantile": "0.3",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.files.maxPartitionBytes": "8k",
        "spark.log.level": "OFF",
    }
    builder = SparkSession.builder.master(master).appName("a driver of tacit's tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def table_of(spark: Any, rows: Path, **more: Any) -> Any:
    """Declare the people of a folder of files as a table of Spark."""
    spark.sql("CREATE DATABASE IF NOT EXISTS clinic")
    spark.sql("DROP TABLE IF EXISTS clinic.people")
    spark.sql(f"CREATE TABLE clinic.people USING parquet LOCATION 'file:{rows}'")
    return tacit.table("spark://clinic.people", spark=spark, **declared(**more))


def declared(**more: Any) -> dict[str, Any]:
    usual = {"unit": "id", "name": "people", "rows_per_unit": 2, "groups_per_unit": 2, "most_rows_per_unit": 1}
    columns = {"x": {"between": (0, 10)}, "k": {"keys": [0, 1, 2, 3]}}
    return usual | {"budget": tacit.epsilon(10**6, delta=1e-6), "ledger": ":memory:", "columns": columns} | more


def turns(spark: Any, master: str, folder: Path, layouts: list[str], wanted: list[list[Any]]) -> None:
    """Ask under each of the wanted troubles, and say whether the integers were those of the embedded engine."""
    whole = pq.read_table(layouts[0])
    for number, (trouble, stage, parts, adaptive, layout) in enumerate(wanted):
        spark.conf.set("spark.tacit.parts", str(parts))
        spark.conf.set("spark.sql.adaptive.enabled", str(adaptive).lower())
        sql = SQL if number % 2 else QUICK_SQL
        there = table_of(spark, Path(layouts[layout])).sql(sql)
        here = tacit.table(whole, **declared()).sql(sql)
        plan = here.plan(epsilon=1).plan
        engine = HeldEngine(there.session.engine.source)
        expected = as_read(EmbeddedEngine(here.session.engine.source, path=engine.path_of(plan)).aggregate(plan, SALT))
        place = folder / f"turn {number}"
        place.mkdir()
        if trouble != "calm":
            HeldEngine.held = (stage, str(place), trouble == "raises once")
        stopper = threading.Thread(target=_trouble, args=(trouble, place, master))
        stopper.start()
        found = as_read(engine.aggregate(plan, SALT))
        HeldEngine.held = None
        (place / "over").touch()
        stopper.join()
        happened = trouble == "calm" or (place / "claimed").exists()
        said = {"turn": [trouble, stage, parts], "equal": found == expected, "happened": happened}
        print(json.dumps(said | {"path": engine.path_of(plan)}), flush=True)


def _trouble(trouble: str, place: Path, master: str) -> None:
    if trouble in ("calm", "raises once"):
        return
    _wait_for(str(place / "reached"))
    worker, _, executor = json.loads((place / "reached").read_text())
    others = [each for each in executors(master) if each != executor]
    victim = {"worker": worker, "executor": executor, "stopped": executor}.get(trouble, (others or [executor])[0])
    os.kill(victim, signal.SIGSTOP if trouble == "stopped" else signal.SIGKILL)
    (place / "go").touch()
    if trouble == "stopped":
        _wait_for(str(place / "over"))
        os.kill(victim, signal.SIGCONT)


def ask(spark: Any, folder: Path, rows: str, options: dict[str, Any]) -> None:
    """Ask one question with a ledger, held at a stage if so wanted, and say what came of it."""
    said: dict[str, Any] = {}
    try:
        budget = tacit.epsilon(1)
        table = table_of(spark, Path(rows), ledger=options["ledger"], budget=budget, version=1)
        if "hold" in options:
            HeldEngine.held = (options["hold"], str(folder), False)
            object.__setattr__(table.session, "engine", HeldEngine(table.session.engine.source))
        question = table.sql(options["sql"])
        answer = question.answer(epsilon=1, **({"request_id": options["request"]} if "request" in options else {}))
        said["answer"] = len(answer.to_arrow())
    except Exception as problem:
        said["error"] = type(problem).__name__
    print(json.dumps(said), flush=True)


def main(job: dict[str, Any]) -> None:
    folder = Path(job["folder"])
    compiled.compile_now()
    warnings.simplefilter("ignore")
    spark = session(job["master"], folder, job.get("cores", 3))
    if "turns" in job:
        turns(spark, job["master"], folder, job["layouts"], job["turns"])
    else:
        for each in job["asks"]:
            ask(spark, folder, job["layouts"][0], each)
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
