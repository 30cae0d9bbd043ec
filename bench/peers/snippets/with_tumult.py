"""Mean income by state, private for each person: the words it takes in Tumult Analytics. This line is not counted."""

import pandas as pd
from pyspark.sql import SparkSession
from tmlt.analytics import AddRowsWithID, KeySet, MaxRowsPerID, PureDPBudget, QueryBuilder, Session

spark = SparkSession.builder.master("local[2]").getOrCreate()
session = Session.from_dataframe(
    privacy_budget=PureDPBudget(1),
    source_id="people",
    dataframe=spark.read.parquet("people.parquet"),
    protected_change=AddRowsWithID("person_id"),
)
keys = KeySet.from_dataframe(spark.createDataFrame(pd.DataFrame({"state": ["CA", "NY", "TX"]})))
grouped = QueryBuilder("people").enforce(MaxRowsPerID(1)).groupby(keys)
counts = session.evaluate(grouped.count(name="n"), PureDPBudget(0.5)).toPandas()
totals = session.evaluate(grouped.sum("income", 0, 500_000, name="total"), PureDPBudget(0.5)).toPandas()
answer = counts.merge(totals, on="state")
answer["income"] = answer.total / answer.n
# Laplace noise of scale 1 / 0.5 on counts and 500,000 / 0.5 on sums: both within 3.69 scales 95 % of the time
answer["within"] = 3.69 * (500_000 / 0.5 + answer.income / 0.5) / answer.n
print(answer[["state", "income", "within"]])
