"""Mean income by state, private for each person: the words it takes in OpenDP. This line is not counted."""

import opendp.prelude as dp
import polars as pl

dp.enable_features("contrib")
context = dp.Context.compositor(
    data=pl.scan_parquet("people.parquet"),
    privacy_unit=dp.unit_of(contributions=1, identifier="person_id"),
    privacy_loss=dp.loss_of(epsilon=1.0),
    split_evenly_over=1,
    margins=[dp.polars.Margin(by=["state"], max_length=1_000_000, max_groups=3)],
)
query = (
    context.query()
    .truncate_per_group(1)
    .group_by("state")
    .agg(dp.len(signed=True).alias("n"), pl.col("income").fill_null(0).dp.sum((0, 500_000)).alias("total"))
    .with_keys(pl.LazyFrame({"state": ["CA", "NY", "TX"]}))
)
count_error, total_error = query.summarize(alpha=0.025)["accuracy"]
answer = query.release().collect()
mean = pl.col("total") / pl.col("n")
print(answer.select("state", mean.alias("income"), ((total_error + mean * count_error) / pl.col("n")).alias("within")))
