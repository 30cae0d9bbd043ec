"""Joined rows are the same on every path, and stay the same when they are read on disk."""

import pyarrow as pa
import pytest

import tacit
from tacit.ledger import open_ledger
from tacit_gauntlet.stage.table import bounded_table
from tests.engine.exact import on_path

VISITS = pa.table(
    {"id": [1, 1, 2, 2, 3, 4, 5], "ward": ["a", "b", "a", "z", "c", "a", "b"], "days": [1, 2, 4, 5, 6, 7, 9]}
)
PATIENTS = pa.table({"id": [1, 2, 2, 3, 7], "sex": ["f", "m", "f", None, "f"]})
WARDS = pa.table({"ward": ["a", "b", "c", None], "kind": ["x", "x", "y", "y"]})
BOUNDS = {"rows_per_unit": 64, "groups_per_unit": 64, "most_rows_per_unit": 64}


@pytest.mark.parametrize("path", ["sql", "kernel", "patient"])
def test_every_path_adds_up_the_same_joined_rows(path, kernel):
    ledger = open_ledger(":memory:")
    visits = tacit.table(VISITS, unit="id", name="visits", budget=tacit.epsilon(9), ledger=ledger, **BOUNDS)
    patients = tacit.table(PATIENTS, unit="id", name="patients", same_people_as="visits", ledger=ledger, **BOUNDS)
    wards = tacit.public(WARDS, name="wards")
    sql = "SELECT kind, SUM(days) AS d FROM visits JOIN wards USING (ward) LEFT JOIN patients USING (id) GROUP BY kind"
    question = visits.sql(sql, tables=[patients, wards], between={"d": (0, 16)})
    question.session.engine._path = path
    with on_path("sql" if path == "sql" else "kernel", or_patient=path == "patient"):
        exact = bounded_table(question)
    assert dict(zip(exact.keys, exact.sums["total_0"], strict=True)) == {("x",): 1 + 2 + 4 + 4 + 7 + 9, ("y",): 6}
