"""PipelineDP on its local backend, in one process, which is its fastest here; rows are handed over as Python tuples."""

import pipeline_dp
import pyarrow.parquet
from asked import DELTA, EPSILON, HIGH, ITEMS_PER_PERSON, LOW, ROWS_PER_ITEM, columns, main

METRICS = [pipeline_dp.Metrics.COUNT, pipeline_dp.Metrics.SUM, pipeline_dp.Metrics.MEAN]
STRATEGIES = {
    "laplace": (pipeline_dp.NoiseKind.LAPLACE, pipeline_dp.PartitionSelectionStrategy.TRUNCATED_GEOMETRIC),
    "gaussian": (pipeline_dp.NoiseKind.GAUSSIAN, pipeline_dp.PartitionSelectionStrategy.GAUSSIAN_THRESHOLDING),
    "gaussian-selection": (pipeline_dp.NoiseKind.LAPLACE, pipeline_dp.PartitionSelectionStrategy.GAUSSIAN_THRESHOLDING),
}


def answer(asked):
    """Answer once, from the file."""
    table = pyarrow.parquet.read_table(asked["path"], columns=["user_id", "item", "amount"])
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=EPSILON, total_delta=DELTA)
    noise, strategy = STRATEGIES[asked["noise"]]
    parameters = pipeline_dp.AggregateParams(
        metrics=METRICS,
        noise_kind=noise,
        partition_selection_strategy=strategy,
        max_partitions_contributed=ITEMS_PER_PERSON,
        max_contributions_per_partition=ROWS_PER_ITEM,
        min_value=LOW,
        max_value=HIGH,
    )
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    public = list(range(asked["items"])) if asked["public"] else None
    lazy = engine.aggregate(rows, parameters, extractors, public_partitions=public)
    accountant.compute_budgets()
    found = list(lazy)
    return lambda: columns(
        [item for item, _ in found],
        [cell.count for _, cell in found],
        [cell.sum for _, cell in found],
        [cell.mean for _, cell in found],
    )


if __name__ == "__main__":
    main(answer)
