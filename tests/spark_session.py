"""A Spark of the tests' own: found, started once for a process, in a folder of its own, on loopback only."""

import os
import shutil
import socket
import sys
import tempfile
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit_gauntlet.stage.spark_rows import java_home

QUICK_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dderby.system.home={folder}"


def skip_without_spark() -> None:
    """Skip the test where pyspark or Java is missing; where nothing may be skipped, fail."""
    missing = None
    try:
        import grpc_status  # noqa: F401
        import pyspark  # noqa: F401
        import zstandard  # noqa: F401
    except ImportError as problem:
        missing = f"{problem.name} is not installed (pip install 'tacit[spark]')"
    if missing is None and java_home() is None:
        missing = "there is no Java 17 or 21"
    if missing is not None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"Spark's tests cannot run: {missing}")


@cache
def spark_session():
    """Return the session of this process."""
    skip_without_spark()
    os.environ["JAVA_HOME"] = java_home()
    folder = Path(tempfile.mkdtemp(prefix="tacit-spark-"))
    os.environ.update(SPARK_LOCAL_IP="127.0.0.1", SPARK_LOCAL_DIRS=str(folder / "local"))
    port = _free_port()
    os.environ["PYSPARK_PYTHON"] = sys.executable  # else its tasks run on the first python3 of the path
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "700m",
        "spark.driver.extraJavaOptions": QUICK_JAVA.format(folder=folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": "2",
        "spark.log.level": "ERROR",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file:{folder}",
        "spark.eventLog.compress": "false",
        "spark.tacit.parts": "2",
        # the same Spark answers clients of Spark Connect
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[2]").appName("tests of tacit")
        for name, value in settings.items():
            builder = builder.config(name, value)
        kernel = os.environ.pop("TACIT_KERNEL", None)  # its tasks have what it starts with; a question says which path
        session = builder.getOrCreate()
        os.environ.update({} if kernel is None else {"TACIT_KERNEL": kernel})
        session.sql("CREATE DATABASE IF NOT EXISTS clinic")
    session.folder, session.server = folder, f"sc://127.0.0.1:{port}"
    return session


def _free_port() -> int:
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])


def stored(rows: pa.Table, name: str, *, files: int = 2) -> str:
    """Store rows as a table of Spark in some files, and return its address."""
    session = spark_session()
    folder = session.folder / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    size = -(-max(1, len(rows)) // files)
    for at in range(files):
        pq.write_table(rows.slice(at * size, size), folder / f"{at}.parquet")
    session.sql(f"DROP TABLE IF EXISTS clinic.{name}")
    session.sql(f"CREATE TABLE clinic.{name} USING parquet LOCATION 'file:{folder}'")
    return f"spark://clinic.{name}"


def logged() -> list[str]:
    """Return the text of every file that Spark has written here but rows and blocks, which it removes as it likes."""
    folder, texts = spark_session().folder, []
    for place, folders, names in os.walk(folder):  # a folder that is gone by now is passed over
        if Path(place) == folder:
            folders[:] = [each for each in folders if each != "local"]
        for name in names:
            if not name.endswith(".parquet"):
                with suppress(FileNotFoundError):
                    texts.append((Path(place) / name).read_bytes().decode(errors="replace"))
    return texts
