"""Tacit on Spark, with both cores; Spark is started and the kernel compiled and warm before the clock runs.

The session has the settings of the other library that runs on Spark.
"""

import os
import sys
import warnings

from asked import main
from with_tacit import QUESTION, declared, told

os.environ["PYSPARK_PYTHON"] = sys.executable
warnings.simplefilter("ignore")

from pyspark.sql import SparkSession  # noqa: E402

import tacit  # noqa: E402
from tacit.engine.kernel import compiled  # noqa: E402

spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.driver.memory", "8g")
    .config("spark.sql.shuffle.partitions", "4")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
TABLES = {}


def answer(asked):
    """Answer once more, from the table of files."""
    if asked["path"] not in TABLES:
        spark.sql(f"CREATE TABLE orders_{len(TABLES)} USING parquet LOCATION 'file:{asked['path']}'")
        table = tacit.table(f"spark://default.orders_{len(TABLES)}", spark=spark, **declared(asked, len(TABLES)))
        TABLES[asked["path"]] = table
    return told(TABLES[asked["path"]].sql(QUESTION))


def warm_up(asked):
    """Compile the kernel, and let Spark load and compile what it needs, on a few of the rows."""
    compiled.compile_now()
    few = asked["path"] + ".few"
    if not os.path.exists(few):
        spark.read.parquet(asked["path"]).limit(1000).write.parquet(few)
    answer({**asked, "path": few})


if __name__ == "__main__":
    runs_on = f"Spark {spark.version}, Python {sys.version_info[0]}.{sys.version_info[1]}"
    main(answer, warm_up=warm_up, says={"runs on": runs_on})
