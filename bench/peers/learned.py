"""Bounds that a library finds by itself: `python learned.py LIBRARY FOLDER` prints errors where nobody declares one.

Epsilon is 1 and delta 1e-6 for all that is found and answered. What a library cannot find itself it is told, and a note
says so. One that finds nothing is asked all the same, and what it does without a bound is put into words. The folder
has `orders.parquet`, a million orders of 100,000 people by Zipf's law, `totals.json` of what each spent, and what is
true, `truth.json`.
"""

import json
import os
import sys
import warnings
from pathlib import Path

EPSILON, DELTA = 1.0, 1e-6
# library -> how often it answers
ANSWERS = {
    "tacit": 12,
    "python-dp": 12,
    "smartnoise-sql": 6,
    "pipeline-dp": 2,
    "tmlt.analytics": 3,
    "opendp": 1,
    "diffprivlib": 1,
}
# library -> what it is asked
CASES = {
    "tacit": ("count by item", "sum by item", "sum of all"),
    "python-dp": ("sum of all",),
    "smartnoise-sql": ("sum of all",),
    "pipeline-dp": ("count by item",),
    "tmlt.analytics": ("sum by item",),
    "opendp": ("sum of all",),
    "diffprivlib": ("sum of all",),
}
# Where a library leaves the division to its caller: half for the bounds, as python-dp does it by itself.
HALF = EPSILON / 2


class FindsNone(Exception):
    """A library has no bounds of its own; the text says what it does where none is given."""


def tacit(folder):
    """Nothing but the unit is declared, and each answer is of a table that nobody has asked before."""
    import tacit as library

    items = list(range(1000))

    def opened():
        budget = library.epsilon(2, delta=DELTA)
        path = folder / "orders.parquet"
        return library.table(path, name="orders", unit="user_id", budget=budget, ledger=library.TRYOUT)

    def by_item(**asked):
        ((name, _),) = asked.items()
        answer = opened().group_by("item", keys=items).agg(**asked).answer(epsilon=EPSILON)
        return {row["item"]: row[name] for row in answer.rows}

    def total():
        return {0: opened().agg(total=library.sum("amount")).answer(epsilon=EPSILON).rows[0]["total"]}

    return {
        ("count by item", ""): lambda: by_item(n=library.count()),
        ("sum by item", ""): lambda: by_item(total=library.sum("amount")),
        ("sum of all", ""): total,
    }


def pipeline_dp(folder):
    """It finds in how many items a person may count, for counts alone; how many rows in each it is told."""
    import pipeline_dp as library
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(folder / "orders.parquet", columns=["user_id", "item"])
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    extractors = library.DataExtractors(
        privacy_id_extractor=lambda row: row[0], partition_extractor=lambda row: row[1], value_extractor=lambda _: 1
    )
    items = list(range(1000))

    def answer(rows_per_item):
        accountant = library.NaiveBudgetAccountant(total_epsilon=0.9 * EPSILON, total_delta=DELTA)
        engine = library.DPEngine(accountant, library.LocalBackend())
        wanted = library.CalculatePrivateContributionBoundsParams(
            aggregation_noise_kind=library.NoiseKind.GAUSSIAN,
            aggregation_eps=0.9 * EPSILON,
            aggregation_delta=DELTA,
            calculation_eps=0.1 * EPSILON,
            max_partitions_contributed_upper_bound=1000,
        )
        (found,) = engine.calculate_private_contribution_bounds(rows, wanted, extractors, items)
        parameters = library.AggregateParams(
            metrics=[library.Metrics.COUNT],
            noise_kind=library.NoiseKind.GAUSSIAN,
            max_partitions_contributed=found.max_partitions_contributed,
            max_contributions_per_partition=rows_per_item,
        )
        lazy = engine.aggregate(rows, parameters, extractors, public_partitions=items)
        accountant.compute_budgets()
        return {item: cell.count for item, cell in lazy}

    return {
        ("count by item", f"told {most} rows an item; a tenth of epsilon finds how many items"): (
            lambda most=most: answer(most)
        )
        for most in (2, 5, 20)
    }


def python_dp(folder):
    """It finds the range of one number a person, so it is given people's totals."""
    from pydp.algorithms import laplacian

    totals = json.loads((folder / "totals.json").read_text())

    def answer():
        return {0: laplacian.BoundedSum(epsilon=EPSILON, dtype="float").quick_result(totals)}

    return {("sum of all", "given each person's total; half of epsilon finds the range"): answer}


def smartnoise_sql(folder):
    """A function beside its SQL finds the range of one number a person, so it is given people's totals."""
    import pandas as pd
    import snsql
    from snsql.sql._mechanisms.approx_bounds import approx_bounds

    totals = json.loads((folder / "totals.json").read_text())
    frame = pd.DataFrame({"total": totals})

    def answer():
        low, high = approx_bounds(totals, HALF)
        column = {"type": "float", "lower": low, "upper": high}
        facts = {"row_privacy": True, "censor_dims": False, "total": column}
        privacy = snsql.Privacy(epsilon=HALF, delta=DELTA)
        reader = snsql.from_connection(frame, privacy=privacy, metadata={"": {"bench": {"people": facts}}})
        return {0: float(reader.execute("SELECT SUM(total) AS s FROM bench.people")[1][0])}

    return {
        ("sum of all", "given each person's total; half of epsilon finds the range, by a call beside the SQL"): answer
    }


def opendp(_):
    """It refuses a sum of numbers whose range it is not told."""
    import opendp.prelude as dp

    dp.enable_features("contrib")

    def answer():
        numbers = dp.vector_domain(dp.atom_domain(T="i64"))
        try:
            dp.t.make_sum(numbers, dp.symmetric_distance())
        except dp.OpenDPException as error:
            raise FindsNone("finds none: a sum without a range is refused") from error
        raise RuntimeError("a sum without a range was made")

    return {("sum of all", "given each person's total"): answer}


def diffprivlib(folder):
    """It takes the smallest and the largest value of the data, which is not private, and warns."""
    from diffprivlib import tools
    from diffprivlib.utils import PrivacyLeakWarning

    totals = json.loads((folder / "totals.json").read_text())

    def answer():
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            tools.sum(totals, epsilon=EPSILON)
        if any(issubclass(each.category, PrivacyLeakWarning) for each in told):
            raise FindsNone("finds none that is private: it reads the range off the data, and warns")
        raise RuntimeError("a sum without a range was answered without a warning")

    return {("sum of all", "given each person's total"): answer}


def tmlt_analytics(folder):
    """It finds the range of a column; how many items of a person count, and how many rows in each, it is told."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    import pandas as pd
    from pyspark.sql import SparkSession
    from tmlt.analytics import (
        AddRowsWithID,
        KeySet,
        MaxGroupsPerID,
        MaxRowsPerGroupPerID,
        MaxRowsPerID,
        PureDPBudget,
        QueryBuilder,
        Session,
    )

    spark = SparkSession.builder.master("local[2]").config("spark.driver.memory", "4g")
    spark = spark.config("spark.sql.shuffle.partitions", "4").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    keys = KeySet.from_dataframe(spark.createDataFrame(pd.DataFrame({"item": range(1000)})))

    def answer():
        frame = spark.read.parquet(str(folder / "orders.parquet")).select("user_id", "item", "amount")
        session = Session.from_dataframe(
            privacy_budget=PureDPBudget(EPSILON),
            source_id="orders",
            dataframe=frame,
            protected_change=AddRowsWithID("user_id"),
        )
        orders = QueryBuilder("orders")
        ends = session.evaluate(orders.enforce(MaxRowsPerID(10)).get_bounds("amount"), PureDPBudget(HALF)).toPandas()
        low, high = float(ends["amount_lower_bound"][0]), float(ends["amount_upper_bound"][0])
        bounded = orders.enforce(MaxGroupsPerID("item", 5)).enforce(MaxRowsPerGroupPerID("item", 2))
        found = session.evaluate(bounded.groupby(keys).sum("amount", low, high, name="s"), PureDPBudget(HALF))
        return dict(zip(*(found.toPandas()[name] for name in ("item", "s")), strict=True))

    return {("sum by item", "told 5 items and 2 rows in each; half of epsilon finds the range"): answer}


def main(library, folder):
    """Print a record for each case; what fails is named by its class, and what finds no bound says so."""
    warnings.simplefilter("ignore")
    folder = Path(folder)
    truth = json.loads((folder / "truth.json").read_text())
    found = []
    for (case, note), answer in globals()[library.replace("-", "_").replace(".", "_")](folder).items():
        record = {"case": case, "note": note}
        try:
            errors = []
            for _ in range(ANSWERS[library]):
                given = answer()
                errors.append(sum(abs(given.get(int(key), 0.0) - value) for key, value in truth[case].items()))
            record["error"] = sum(errors) / len(errors) / len(truth[case])
            record["answers"] = len(errors)
        except FindsNone as told:
            record["failed"] = str(told)
        except Exception as error:  # noqa: BLE001  a peer's failure is a result too
            record["failed"] = type(error).__name__
            print(f"{case}: {error}", file=sys.stderr)
        found.append(record)
    print(json.dumps({"records": found}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
