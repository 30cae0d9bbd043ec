"""Mean income by state, private for each person: the words it takes in PipelineDP. This line is not counted."""

import pipeline_dp
import pyarrow.parquet

rows = pyarrow.parquet.read_table("people.parquet").to_pylist()
accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=1, total_delta=1e-6)
engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
parameters = pipeline_dp.AggregateParams(
    metrics=[pipeline_dp.Metrics.COUNT, pipeline_dp.Metrics.SUM],
    noise_kind=pipeline_dp.NoiseKind.LAPLACE,
    max_partitions_contributed=1,
    max_contributions_per_partition=1,
    min_value=0,
    max_value=500_000,
    output_noise_stddev=True,
)
extractors = pipeline_dp.DataExtractors(
    privacy_id_extractor=lambda row: row["person_id"],
    partition_extractor=lambda row: row["state"],
    value_extractor=lambda row: row["income"],
)
answer = engine.aggregate(rows, parameters, extractors, public_partitions=["CA", "NY", "TX"])
accountant.compute_budgets()
for state, cell in answer:
    mean = cell.sum / cell.count
    # a Laplace draw is within 2.61 standard deviations 97.5 % of the time, both within 95 %
    within = 2.61 * (cell.sum_noise_stddev + mean * cell.count_noise_stddev) / cell.count
    print(state, mean, within)
