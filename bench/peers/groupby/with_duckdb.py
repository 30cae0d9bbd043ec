"""The baselines: DuckDB's bare GROUP BY item, and GROUP BY item, person, on the same file; nothing is protected."""

import duckdb
from asked import main

engine = duckdb.connect()


def answer(asked):
    """Aggregate once, from the file."""
    keys = "item, user_id" if asked["noise"] == "by person" else "item"
    engine.sql(f"SELECT {keys}, count(*), sum(amount) FROM '{asked['path']}' GROUP BY {keys}").to_arrow_table()
    return lambda: {"item": []}


if __name__ == "__main__":
    main(answer, warm_up=answer)
