"""Ids that differ are two people, or the column is refused as a unit before anything is charged."""

from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.engine.engine import EmbeddedEngine
from tacit.errors import QueryRefused
from tacit.exact import all_groups
from tacit_gauntlet.stage.table import SALT, bounded_plan, exact_cells, exact_table, protected

REFUSED = {
    "TIMESTAMP_NS": ["'2020-01-01 00:00:00.000000001'", "'2020-01-01 00:00:00.000000002'"],
    "INTERVAL": ["INTERVAL 1 MONTH", "INTERVAL 30 DAY"],
    "UNION(n INTEGER, s VARCHAR)": ["1", "'1'::VARCHAR"],
    "DOUBLE[]": ["[0.0]", "['-0.0'::DOUBLE]"],
    "TIMETZ": ["'12:00:00+00'", "'13:00:00+01'"],
}
TAKEN = {
    "UBIGINT": ["18446744073709551615", "9223372036854775808", "5"],
    "HUGEINT": ["170141183460469231731687303715884105727", "170141183460469231731687303715884105726"],
    "UHUGEINT": ["340282366920938463463374607431768211455", "340282366920938463463374607431768211454", "5"],
    "BLOB": [r"'\xAA'", r"'\xAB'", "''", r"'a\x00'", "'a'", "repeat('a', 90)::BLOB", "repeat('a', 91)::BLOB"],
    "UUID": ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12'"],
    "DECIMAL(38, 10)": ["9999999999999999999999999999.9999999999", "9999999999999999999999999999.9999999998"],
}


def stored(kind, cells):
    link = duckdb.connect()
    link.execute(f"CREATE TABLE t (id {kind}, x INTEGER)")
    for cell in cells:
        link.execute(f"INSERT INTO t VALUES ({cell}, 7), ({cell}, 7)")
    return link, "t"


def people(table):
    """Return how many people a table has, exactly."""
    (found,) = exact_table(table.count_units()).sums["units"]
    return found


@pytest.mark.parametrize("kind", REFUSED)
def test_a_unit_that_could_make_one_person_of_two_is_refused(kind):
    with pytest.raises(QueryRefused, match=r"cannot be the unit|two units could become one"):
        protected(stored(kind, REFUSED[kind]))


@pytest.mark.parametrize("kind", TAKEN)
@pytest.mark.parametrize("asked", ["units", "distinct"])
def test_every_id_is_a_person_on_the_quick_path_and_on_the_patient_one(kind, asked):
    table = protected(stored(kind, TAKEN[kind]))
    question = table.count_units() if asked == "units" else table.count_distinct("x", per_unit=1)
    plan, source = bounded_plan(question), question.session.engine._source
    patient = all_groups(list(EmbeddedEngine(source)._patient(plan, SALT, "sql")))
    assert patient.sums == EmbeddedEngine(source, path="sql")._on_path(plan, SALT, "sql").sums
    assert patient.sums == (
        {"rows": [2 * len(TAKEN[kind])], "units": [len(TAKEN[kind])]} if asked == "units" else {"distinct_0": [1]}
    )


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.date64(), pa.dictionary(pa.int8(), pa.timestamp("ns"))])
def test_a_frame_whose_ids_are_read_more_coarsely_is_refused(kind, tmp_path):
    ids = pa.array([1, 2], pa.int64()).view(pa.date64() if kind == pa.date64() else pa.timestamp("ns"))
    rows = pa.table({"id": ids if not pa.types.is_dictionary(kind) else ids.dictionary_encode(), "x": [1, 2]})
    with pytest.raises(QueryRefused, match="two units could become one"):
        protected(rows)
    asked = protected(rows, unit="x").count("id")
    assert exact_cells(asked, plan=bounded_plan(asked)) == [{("counted",): 2}]


def test_a_parquet_file_with_old_timestamps_is_refused_as_it_counts_nanoseconds(tmp_path):
    path = str(tmp_path / "t.parquet")
    rows = pa.table({"id": pa.array([1000, 2000], pa.int64()).view(pa.timestamp("ns")), "x": [1, 2]})
    pq.write_table(rows, path, use_deprecated_int96_timestamps=True)
    with pytest.raises(QueryRefused, match="two units could become one"):
        protected(path)
    assert protected(path, unit="x").count("id") is not None


def test_whole_numbers_above_an_int_are_people_in_frames_too():
    rows = pa.table({"id": pa.array([2**64 - 1, 2**63, 2**63 - 1, 0], pa.uint64()), "x": [Decimal(1)] * 4})
    for unit in ({}, {"columns": {"id": {"type": "text"}}}):
        assert people(protected(rows, **unit)) == 4


def test_text_that_a_cast_makes_of_a_cell_is_no_longer_than_other_text():
    cells = ["range(40000)::VARCHAR[]", "['a']"]
    table = protected(stored("VARCHAR[]", cells), columns={"id": {"type": "text"}})
    assert people(table) == 1
