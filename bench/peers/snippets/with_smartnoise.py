"""Mean income by state, private for each person: the words it takes in SmartNoise. This line is not counted."""

import pandas as pd
import snsql

metadata = {
    "": {
        "bench": {
            "people": {
                "max_ids": 1,
                "censor_dims": False,
                "person_id": {"type": "int", "private_id": True},
                "state": {"type": "string"},
                "income": {"type": "int", "lower": 0, "upper": 500_000},
            }
        }
    }
}
reader = snsql.from_connection(
    pd.read_parquet("people.parquet"), privacy=snsql.Privacy(epsilon=0.5, delta=1e-6), metadata=metadata
)
_, *rows = reader.execute("SELECT state, COUNT(*) AS n, SUM(income) AS total FROM bench.people GROUP BY state")
for state, n, total in rows:
    # Laplace noise of scale 1 / 0.5 on counts and 500,000 / 0.5 on sums: both within 3.69 scales 95 % of the time
    print(state, total / n, 3.69 * (500_000 / 0.5 + total / n / 0.5) / n)
