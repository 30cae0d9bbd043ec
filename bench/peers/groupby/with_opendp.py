"""OpenDP's Polars door. Cents are added up as integers, which it does faster and with less noise than floats.

Its default choice of a person's groups fails (two columns of one name), so the first ones are kept: of 5 it keeps 4.
"""

import warnings

import opendp.prelude as dp
import polars as pl
from asked import DELTA, EPSILON, HIGH, ITEMS_PER_PERSON, ROWS_PER_ITEM, columns, main

dp.enable_features("contrib", "honest-but-curious")
warnings.simplefilter("ignore")


def answer(asked):
    """Answer once, from the file."""
    loss = dp.loss_of(epsilon=EPSILON, delta=DELTA)
    if asked["noise"] == "gaussian":
        loss = dp.loss_of(rho=asked["rho"], delta=DELTA / 2)
    context = dp.Context.compositor(
        data=pl.scan_parquet(asked["path"]),
        privacy_unit=unit(bounded=asked["bounded"]),
        privacy_loss=loss,
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=["item"], max_length=asked["rows"], max_groups=asked["items"])],
    )
    query = context.query()
    if not asked["bounded"]:
        query = query.truncate_per_group(ROWS_PER_ITEM, by=["item"])
        query = query.truncate_num_groups(ITEMS_PER_PERSON, by=["item"], keep="first")
    query = query.group_by("item").agg(
        dp.len(signed=True).alias("n"), pl.col("cents").fill_null(0).dp.sum((0, 100 * HIGH)).alias("total")
    )
    if asked["public"]:
        keys = pl.LazyFrame({"item": list(range(asked["items"]))}, schema={"item": pl.Int64})
        query = query.with_keys(keys)
    frame = query.release().collect()
    return lambda: columns(frame["item"], frame["n"], frame["total"] / 100)


def unit(*, bounded):
    """Return whose privacy is protected: people by their column, or people known to be within the bounds."""
    if not bounded:
        return dp.unit_of(contributions=1, identifier="user_id")
    bound = dp.polars.Bound(by=["item"], per_group=ROWS_PER_ITEM, num_groups=ITEMS_PER_PERSON)
    return dp.unit_of(contributions=[bound])


if __name__ == "__main__":
    main(answer)
