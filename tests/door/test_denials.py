"""What is denied in SQL keeps to three values: a row without a value is in neither a condition nor its denial."""

import pyarrow as pa
import pytest

import tacit

ROWS = pa.table({"id": range(6), "ward": ["A", "AB", "B", None, "", "5%"], "age": [1, 5, 9, None, 3, 30]})


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("ward LIKE 'A%'", 2),
        ("ward NOT LIKE 'A%'", 3),
        ("NOT (ward NOT LIKE 'A%')", 2),
        ("ward NOT LIKE '5!%' ESCAPE '!'", 4),
        ("ward NOT LIKE 'A%' OR ward LIKE 'A%'", 5),
        ("ward NOT LIKE 'A%' OR ward IS NULL", 4),
        ("ward NOT IN ('A', 'B')", 3),
        ("age NOT BETWEEN 1 AND 5", 2),
        ("ward IS NOT NULL", 5),
    ],
)
def test_a_denial_leaves_out_rows_without_a_value(condition, rows):
    table = tacit.table(ROWS, name="t", unit=tacit.ROW, ledger=":memory:", budget=tacit.epsilon(10**4))
    # at epsilon = 100 a count is off by one in fewer than 1 of 10^43 answers
    assert table.where(condition).count().answer(epsilon=100).rows[0]["count"] == rows
    assert table.sql(f"SELECT COUNT(*) AS n FROM t WHERE {condition}").answer(epsilon=100).rows[0]["n"] == rows
