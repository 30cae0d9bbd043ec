"""Rows of a case in Spark: one session on this machine for a whole course, which the process of each case joins."""

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pat

from tacit.engine.task import as_stored
from tacit.tables import BatchReader, BatchRecipe, Source, recipe_of
from tacit.tables.spark_tables import DIGITS_READ_AS_THEY_ARE

SCHEMA = "made_up"
SPARK = "spark"
JAVA_VERSIONS = ("17", "21")
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "900m",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.sql.shuffle.partitions": "2",
    "spark.log.level": "OFF",
    "spark.tacit.parts": "2",
}
_numbers = itertools.count()


def java_home() -> str | None:
    """Return the home of a Java that Spark runs on."""
    named = os.environ.get("JAVA_HOME")
    homes = [named] if named else []
    homes += [str(home) for version in JAVA_VERSIONS for home in sorted(Path("/usr/lib/jvm").glob(f"*{version}*"))]
    found = shutil.which("java")
    homes += [str(Path(found).resolve().parents[1])] if found else []
    return next((home for home in homes if _version(home) in JAVA_VERSIONS), None)


def _version(home: str) -> str | None:
    try:
        said = subprocess.run([f"{home}/bin/java", "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError):
        return None
    return said.partition('"')[2].partition(".")[0]


@contextmanager
def rows_in_spark() -> Iterator[str]:
    """Start a session, and yield what another process joins it by; refuse where Java or pyspark is missing."""
    home = java_home()
    if home is None:
        raise RuntimeError("there is no Java 17 or 21 here (apt-get install openjdk-17-jre-headless)")
    folder = tempfile.mkdtemp(prefix="tacit-spark-")
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry)
    os.environ |= {"JAVA_HOME": home, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": f"{folder}/local"}
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": path, "TACIT_KERNEL": "off"}
    session = _started(folder)
    gateway = session.sparkContext._gateway
    known = gateway.gateway_parameters
    try:
        yield " ".join([SPARK, str(known.port), known.auth_token, folder])
    finally:
        session.stop()
        gateway.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


def _started(folder: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

        builder: Any = SparkSession.builder
        builder = builder.master("local[2]").config("spark.sql.warehouse.dir", f"{folder}/warehouse")
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sql(f"CREATE DATABASE {SCHEMA}")
    return session


@cache
def joined(address: str) -> Any:
    """Return the session that another process has started, as this one's."""
    _, port, secret, _ = address.split(" ")
    os.environ |= {"PYSPARK_GATEWAY_PORT": port, "PYSPARK_GATEWAY_SECRET": secret}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark import SparkConf, SparkContext
        from pyspark.java_gateway import launch_gateway
        from pyspark.sql import SparkSession

        gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]
        running = gateway.jvm.org.apache.spark.sql.classic.SparkSession.getDefaultSession().get()
        context = gateway.jvm.JavaSparkContext.fromSparkContext(running.sparkContext())
        settings = SparkConf(_jvm=gateway.jvm, _jconf=context.getConf())
        return SparkSession(SparkContext(gateway=gateway, jsc=context, conf=settings), running)


def held_in_spark(rows: pa.Table, address: str) -> dict[str, Any] | None:
    """Return the words that open a new table with these rows, or None where Spark has no such type, name or cell."""
    if not rows.num_columns or not all(_is_held(field) for field in rows.schema):
        return None
    if len({field.name.lower() for field in rows.schema}) < rows.num_columns:
        return None
    session, (*_, folder) = joined(address), address.split(" ")
    name = f"t{os.getpid()}_{next(_numbers)}"
    place = Path(folder, name)
    place.mkdir()
    pq.write_table(rows, place / "0.parquet")
    if not any(map(_is_long_decimal, rows.schema.types)):
        session.sql(f"CREATE TABLE {SCHEMA}.{name} USING parquet LOCATION 'file:{place}'")
    else:  # such a column is read where Spark itself has stored it
        try:
            session.sql(f"CREATE TABLE {SCHEMA}.{name} USING parquet AS SELECT * FROM parquet.`file:{place}`")
        except Exception:  # a cell has more digits than its type
            return None
    return {"source": f"spark://{SCHEMA}.{name}", "spark": session}


def _is_long_decimal(kind: pa.DataType) -> bool:
    return bool(pat.is_decimal(kind) and kind.precision > DIGITS_READ_AS_THEY_ARE)


def _is_held(field: pa.Field) -> bool:
    kind = field.type
    while pat.is_dictionary(kind):
        kind = kind.value_type
    if pat.is_timestamp(kind):
        return bool(kind.unit == "us")
    if pat.is_decimal128(kind):
        return bool(kind.scale >= 0)
    texts = pat.is_string(kind) or pat.is_large_string(kind) or pat.is_binary(kind)
    numbers = pat.is_signed_integer(kind) or pat.is_float32(kind) or pat.is_float64(kind)
    return bool(field.name) and (texts or numbers or pat.is_boolean(kind) or pat.is_date32(kind))


@dataclass(frozen=True)
class Evaluated:
    """A task that runs SQL of ours on the batches of a table, and gives the results as bytes."""

    recipe: BatchRecipe
    columns: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what the recipe computes of each batch."""
        reader = BatchReader(self.recipe)
        for batch in as_stored(batches, self.columns):
            found = reader.run(pa.Table.from_batches([batch]))
            with pa.BufferOutputStream() as stream:
                with pa.ipc.new_stream(stream, found.schema) as writer:
                    writer.write_table(found)
                yield pa.RecordBatch.from_pydict({"data": [stream.getvalue().to_pybytes()]})
        reader.close()


def evaluated(source: Source, expressions: Mapping[str, Any]) -> pa.Table:
    """Return expressions over a table of Spark, as its executors compute them, in any order."""
    recipe = recipe_of(source, source.table.select(**expressions))
    table = source.elsewhere.rows
    columns = tuple(each.name for each in recipe.readings)
    blobs = (
        table.mapped(table.rows(columns), Evaluated(recipe, columns), "data binary")
        .toArrow()
        .column("data")
        .to_pylist()
    )
    return pa.concat_tables([pa.ipc.open_stream(blob).read_all() for blob in blobs])
