"""Tumult Analytics on Spark, with both cores; Spark is started and warmed on another question before the clock runs.

Its count and its sum are two queries, each at half of what is to be spent; where keys are private, finding them is a
third query, at a third each.
"""

import os
import sys
import warnings

from asked import DELTA, EPSILON, HIGH, ITEMS_PER_PERSON, LOW, ROWS_PER_ITEM, columns, main

os.environ["PYSPARK_PYTHON"] = sys.executable
warnings.simplefilter("ignore")

import pandas as pd  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from tmlt.analytics import (  # noqa: E402
    AddRowsWithID,
    ApproxDPBudget,
    KeySet,
    MaxGroupsPerID,
    MaxRowsPerGroupPerID,
    PureDPBudget,
    QueryBuilder,
    Session,
)

spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.driver.memory", "8g")
    .config("spark.sql.shuffle.partitions", "4")
    .config("spark.ui.enabled", "false")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")


def answer(asked):
    """Answer once, from the file."""
    frame = spark.read.parquet(asked["path"]).select("user_id", "item", "amount")
    session = Session.from_dataframe(
        privacy_budget=ApproxDPBudget(EPSILON, DELTA),
        source_id="orders",
        dataframe=frame,
        protected_change=AddRowsWithID("user_id"),
    )
    bounded = (
        QueryBuilder("orders")
        .enforce(MaxGroupsPerID("item", ITEMS_PER_PERSON))
        .enforce(MaxRowsPerGroupPerID("item", ROWS_PER_ITEM))
    )
    if asked["public"]:
        keys, part = KeySet.from_dataframe(spark.createDataFrame(pd.DataFrame({"item": range(asked["items"])}))), 2
    else:
        found = session.evaluate(bounded.get_groups(["item"]), ApproxDPBudget(EPSILON / 3, DELTA)).toPandas()
        if not len(found):
            return lambda: columns([], [], [])
        keys, part = KeySet.from_dataframe(spark.createDataFrame(found)), 3
    grouped = bounded.groupby(keys)
    counts = session.evaluate(grouped.count(name="n"), PureDPBudget(EPSILON / part)).toPandas()
    totals = session.evaluate(grouped.sum("amount", LOW, HIGH, name="total"), PureDPBudget(EPSILON / part)).toPandas()
    both = counts.merge(totals, on="item")
    return lambda: columns(both["item"], both["n"], both["total"])


def warm_up(asked):
    """Let Spark load and compile what it needs, on a few of the rows."""
    few = asked["path"] + ".few"
    if not os.path.exists(few):
        spark.read.parquet(asked["path"]).limit(1000).write.parquet(few)
    answer({**asked, "path": few, "items": 10, "public": True})


if __name__ == "__main__":
    runs_on = f"Spark {spark.version}, Python {sys.version_info[0]}.{sys.version_info[1]}"
    main(answer, warm_up=warm_up, says={"runs on": runs_on})
