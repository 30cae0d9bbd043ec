"""Dummy rows: made of public facts only, typed as the table's, free, and a table to try a script on."""

from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.cli.app import main
from tacit.errors import InvalidParameter

COLUMNS = {"age": {"between": (18, 90)}, "ward": {"keys": ["A", "B", None]}, "dose": {"between": (0, 2), "step": "0.5"}}
ROWS = pa.table(
    {
        "id": ["secret one", "secret two"],
        "age": [33, 34],
        "ward": ["A", "B"],
        "dose": [0.5, 1.0],
        "note": ["secret", "words"],
        "day": [date(1999, 1, 1)] * 2,
        "at": [datetime(1999, 1, 1)] * 2,  # noqa: DTZ001
        "paid": pa.array([Decimal("1.25")] * 2, pa.decimal128(9, 2)),
        "well": [True, True],
        "kids": [123456, 123456],
    }
)


@pytest.fixture
def visits():
    return tacit.table(
        ROWS, name="visits", unit="id", budget=tacit.epsilon(1), ledger=tacit.TRYOUT, columns=COLUMNS, rows_per_unit=4
    )


def test_they_have_the_columns_types_ranges_and_keys_that_are_declared_and_no_value_of_a_row(visits, monkeypatch):
    monkeypatch.setattr("tacit.tables.source.Source.fetch", None)  # reading a row would fail
    monkeypatch.setattr("tacit.tables.source.Source.stream", None)
    made = visits.dummy(rows=400).to_arrow()
    assert made.schema.types == ROWS.schema.types
    found = made.to_pydict()
    assert set(found["ward"]) == {"A", "B", None}
    assert 18 <= min(found["age"]) <= max(found["age"]) <= 90
    assert set(found["dose"]) == {0, 0.5, 1, 1.5, 2}
    assert max(found["kids"]) <= 100
    assert {len([each for each in found["id"] if each == one]) for one in found["id"]} == {4}
    shown = {str(each) for column in found.values() for each in column}
    assert not shown & {"secret one", "secret", "words", "1999-01-01", "123456"}


def test_they_cost_nothing_and_open_as_a_table_declared_alike(visits):
    length = visits.session.ledger.length()
    tried = visits.dummy().table()
    assert len(visits.dummy(0)) == 0
    assert tried.frame.declaration.columns == visits.frame.declaration.columns
    answer = tried.group_by("ward").mean("age").answer(epsilon=5, accept_noise=True)
    assert len(answer) == 3
    assert visits.session.ledger.length() == length


def test_other_numbers_of_rows_are_refused_in_words(visits):
    for rows in (-1, 2.5, "many", True, 10**9):
        with pytest.raises(InvalidParameter, match="rows must be"):
            visits.dummy(rows)


def test_a_command_writes_them(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pq.write_table(ROWS, "visits.parquet")
    with pytest.raises(SystemExit) as left:
        main(["dummy", "visits.parquet", "--unit", "id", "--budget", "1", "--output", "dummy.parquet", "--count", "50"])
    assert left.value.code == 0
    assert pq.read_table("dummy.parquet").num_rows == 50
    assert "Wrote 50 made-up rows" in capsys.readouterr().out


def test_learned_ranges_and_groups_are_those_of_dummy_rows_free():
    count = 3000
    rows = pa.table(
        {
            "id": range(count),
            "ward": [["north", "south"][at % 2] for at in range(count)],
            "pay": [200 + at % 400 for at in range(count)],
        }
    )
    budget = tacit.epsilon(30, delta="1e-6")
    table = tacit.table(rows, name="visits", unit="id", budget=budget, ledger=tacit.TRYOUT, rows_per_unit=1)
    before = table.dummy(rows=200).to_arrow().to_pydict()
    assert max(before["pay"]) <= 100
    table.group_by("ward").agg(people=tacit.count_units(), pay=tacit.median("pay")).answer(epsilon=10)
    left = table.left.laplace
    found = table.dummy(rows=500).to_arrow().to_pydict()
    assert {*found["ward"]} == {"north", "south"}
    assert max(found["pay"]) > 100
    assert table.left.laplace == left
    assert table.dummy(rows=50).table().group_by("ward").count().plan(epsilon=1)
