"""A public table is read whole, once; its ranges and keys follow from its rows, since nothing in it is secret."""

from datetime import date
from fractions import Fraction

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

import tacit
from tacit.tables import public as room

WARDS = pd.DataFrame(
    {
        "ward": ["b", "a", "c", None],
        "beds": [10, 20, 20, 5],
        "share": [0.5, float("nan"), 0.25, 0.5],
        "since": [date(2020, 1, 1), date(2019, 1, 1), None, date(2020, 1, 1)],
    }
)


def test_ranges_and_keys_follow_from_the_rows():
    columns = tacit.public(WARDS, name="wards").columns
    assert columns["ward"].keys == ("a", "b", "c", None)
    assert columns["beds"].between == (5, 20)
    assert columns["share"].between == (Fraction(1, 4), Fraction(1, 2))
    assert columns["share"].keys is None


def test_what_is_declared_wins():
    facts = {"beds": {"between": (0, 99)}, "ward": {"keys": ["a"]}}
    columns = tacit.public(WARDS, columns=facts).columns
    assert columns["beds"].between == (0, 99)
    assert columns["ward"].keys == ("a",)


def test_columns_are_read_as_declared_before_keys_are_compared(tmp_path):
    pacsv.write_csv(pa.table({"code": ["1", "01", "2", "x"], "name": list("abcd")}), tmp_path / "codes.csv")
    as_text, as_int = (
        tacit.public(tmp_path / "codes.csv"),
        tacit.public(tmp_path / "codes.csv", columns={"code": {"type": "int"}}),
    )
    assert len(as_text.columns["code"].keys) == 4
    assert set(as_int.columns["code"].keys) == {1, 2, None}
    assert as_int.rows.column("code").to_pylist().count(None) == 1


def test_an_empty_table_has_no_facts():
    empty = tacit.public(pd.DataFrame({"k": [None, None, "a"], "v": [1, 2, 3]}).iloc[:0])
    assert empty.columns["v"].between is None
    assert empty.columns["k"].keys is None


def test_a_table_is_known_by_its_content_in_any_order():
    wards = tacit.public(WARDS)
    assert tacit.public(WARDS.iloc[::-1]).digest == wards.digest
    assert tacit.public(WARDS.assign(beds=[10, 20, 20, 6])).digest != wards.digest
    assert tacit.public(WARDS.rename(columns={"beds": "bed"})).digest != wards.digest
    null, empty = ({"k": [cell, "b"]} for cell in (None, ""))
    assert tacit.public(pd.DataFrame(null)).digest != tacit.public(pd.DataFrame(empty)).digest


def test_later_changes_of_a_frame_do_not_change_the_table():
    frame = pd.DataFrame({"k": [1, 2, 3]})
    wards = tacit.public(frame)
    frame.loc[1, "k"] = 1
    assert wards.rows.column("k").to_pylist() == [1, 2, 3]


def test_a_public_table_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(room, "ROWS_MAX", 3)
    with pytest.raises(tacit.QueryRefused, match="leave out columns and rows"):
        tacit.public(WARDS)
    monkeypatch.undo()
    monkeypatch.setattr(room, "BYTES_MAX", 10)
    with pytest.raises(tacit.QueryRefused, match="leave out columns and rows"):
        tacit.public(WARDS)


def test_a_table_of_a_users_connection_may_be_public():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE wards AS SELECT 'a' AS ward, 3 AS beds")
    assert repr(tacit.public((connection, "wards"))) == "<public table 'wards': 1 rows of ward, beds>"


def test_columns_that_cannot_be_read_are_left_out():
    rows = pa.table({"k": [1], "nested": [[1, 2]]})
    assert list(tacit.public(rows).columns) == ["k"]
