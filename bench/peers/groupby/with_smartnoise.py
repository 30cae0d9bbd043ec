"""SmartNoise's SQL on a pandas frame. It bounds rows of a person (10) and not groups; each column costs its epsilon.

So a count and a sum are asked at half of epsilon each, and the mean is their ratio. Public keys are joined afterwards,
where it is told not to hide keys: absent ones are then missing from its answer.
"""

import warnings

import pandas as pd
import snsql
from asked import DELTA, EPSILON, HIGH, ITEMS_PER_PERSON, LOW, ROWS_PER_ITEM, columns, main

warnings.simplefilter("ignore")


def answer(asked):
    """Answer once, from the file."""
    frame = pd.read_parquet(asked["path"], columns=["user_id", "item", "amount"])
    facts = {
        "max_ids": ITEMS_PER_PERSON * ROWS_PER_ITEM,
        "censor_dims": not asked["public"],
        "sample_max_ids": True,
        "clamp_counts": False,
        "clamp_columns": True,
        "user_id": {"type": "int", "private_id": True},
        "item": {"type": "int"},
        "amount": {"type": "float", "lower": LOW, "upper": HIGH},
    }
    privacy = snsql.Privacy(epsilon=EPSILON / 2, delta=DELTA)
    reader = snsql.from_connection(frame, privacy=privacy, metadata={"": {"bench": {"orders": facts}}})
    found = reader.execute(
        "SELECT item, COUNT(*) AS n, SUM(amount) AS total FROM bench.orders GROUP BY item", pre_aggregated=None
    )
    _, *rows = found
    return lambda: columns([row[0] for row in rows], [row[1] for row in rows], [row[2] or 0.0 for row in rows])


if __name__ == "__main__":
    main(answer)
