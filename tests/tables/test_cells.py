"""No cell makes a table fail, whatever holds it: what its type cannot hold reads as NULL."""

import uuid

import duckdb
import ibis
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.errors import QueryRefused
from tacit.tables import cells, parquet_files
from tacit.tables.cells import TEXT_BYTES_MAX, reading_of, stored_column
from tacit_gauntlet.stage.odd_cells import BAD_TEXTS, FAR, odd_columns
from tacit_gauntlet.stage.table import bounded_table, exact_cells, exact_table, protected

ODD = {name: (odd, plain) for name, odd, plain in odd_columns()}


def held_in(folder, column, name="t"):
    pq.write_table(pa.table({"id": range(len(column)), "c": column}), folder / f"{name}.parquet")
    return str(folder / f"{name}.parquet")


@pytest.mark.parametrize("name", ODD)
def test_an_odd_cell_is_null_as_a_key(name, tmp_path):
    odd, plain = (pa.table({"id": range(len(column)), "c": column}) for column in ODD[name])
    wanted = exact_cells(protected(plain).group_by("c").count_units())
    assert exact_cells(protected(odd).group_by("c").count_units()) == wanted
    if odd.schema.field("c").type.__class__ is not pa.TimestampType or odd.schema.field("c").type.unit != "s":
        path = held_in(tmp_path, odd.column("c").combine_chunks())
        assert exact_cells(protected(path).group_by("c").count_units()) == wanted


LONGEST = b"x" * TEXT_BYTES_MAX
ODD_BYTES = [
    b"\xed\xa0\x80",
    b"\xc0\x80",
    b"\xf4\x90\x80\x80",
    b"\xe0\x80\x80",
    b"\xfe",
    b"a\xff",
    b"\xc3",
    LONGEST + b"x",
]
TEXTS = [b"", b"a\0b", b"\xef\xbf\xbd", b"\xf4\x8f\xbf\xbf", b"\xed\x9f\xbf", LONGEST]


@pytest.mark.parametrize("odd", [[], *[[each] for each in ODD_BYTES], [None], [*ODD_BYTES, None]], ids=len)
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_texts_are_handed_over_as_they_are_and_what_is_none_is_null(kind, odd):
    raw = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}.get(kind, pa.binary_view())
    cells = pa.array([*TEXTS, *odd, b"b"], raw).view(kind)
    reading = reading_of("c", kind)
    wanted = [each.decode() for each in TEXTS] + [None] * len(odd) + ["b"]
    for chunk in (cells, pa.concat_arrays([cells, cells])[len(cells) :]):
        assert stored_column(pa.chunked_array([chunk]), reading).to_pylist() == wanted
    assert not reading.is_plain  # an engine that reads a file by itself would not check them


def test_people_whose_ids_are_not_text_are_nobody_and_not_one_person(tmp_path):
    column = pa.array([b"a", *BAD_TEXTS], pa.binary()).view(pa.string())
    for source in (pa.table({"c": column}), held_in(tmp_path, column)):
        assert exact_table(protected(source, unit="c").count_units()).sums["units"] == [1]


def test_far_times_of_pandas_and_polars_are_null():
    times = pd.Series([0, 5, FAR // 10**3], dtype="datetime64[s]")
    lasting = pl.Series([0, FAR], dtype=pl.Int64)
    frames = [
        (pd.DataFrame({"id": [1, 2, 3], "c": times}), 2),
        (pd.DataFrame({"id": [1, 2, 3], "c": times.dt.tz_localize("UTC")}), 2),
        (pl.DataFrame({"id": [1, 2], "c": lasting.cast(pl.Datetime("ms"))}), 1),
    ]
    for frame, known in frames:
        assert bounded_table(protected(frame).count("c")).sums["counted_0"] == [known]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_duration_is_a_whole_number_of_its_own_units(unit):
    rows = pa.table({"c": pa.array([1, FAR, None]).view(pa.duration(unit))})
    table = protected(rows, unit="c")
    assert table.session.declaration.columns["c"].type == "int"
    assert exact_table(table.count_units()).sums["units"] == [2]


@pytest.mark.parametrize("nanoseconds", [0, 1, -1, 999, -999, 1000, -1000, -1001, 2**63 - 1, -(2**63) + 1])
def test_nanoseconds_are_rounded_down(nanoseconds):
    rows = pa.table({"id": [1], "c": pa.array([nanoseconds]).view(pa.timestamp("ns"))})
    backend = protected(rows).session.engine._source.backend
    ((found,),) = backend.con.execute("SELECT epoch_us(c) FROM protected").fetchall()
    assert found == nanoseconds // 1000


def test_seconds_of_the_first_and_last_year_are_kept():
    ends = [-62_135_596_801, -62_135_596_800, 253_402_300_799, 253_402_300_800]
    rows = pa.table({"id": range(4), "c": pa.array(ends).view(pa.timestamp("s"))})
    cells = exact_cells(protected(rows).group_by("c").count_units())
    assert sorted(str(key) for key, _ in cells[0]) == ["0001-01-01 00:00:00", "9999-12-31 23:59:59", "None"]


def test_a_users_own_times_in_seconds_are_null_where_too_far():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT 1 AS id, TIMESTAMP_S '2020-01-01' AS c")
    connection.register("far", pa.table({"id": [2], "c": pa.array([FAR]).view(pa.timestamp("s"))}))
    connection.execute("INSERT INTO t SELECT id, c FROM far")
    assert bounded_table(protected((connection, "t")).count("c")).sums["counted_0"] == [1]


def test_a_frame_lent_to_a_connection_is_refused():
    connection = duckdb.connect()
    connection.register("lent", pa.table({"id": [1]}))
    with pytest.raises(QueryRefused, match="give the frame itself"):
        protected((connection, "lent"))
    with pytest.raises(QueryRefused, match="give the frame itself"):
        protected(ibis.memtable(pa.table({"id": [1]})))


def test_texts_of_pandas_that_no_utf8_holds_are_read():
    texts = pd.Series(["a", "\ud800"], dtype=pd.StringDtype(storage="python"))
    table = protected(pd.DataFrame({"id": [1, 2], "c": texts}))
    assert bounded_table(table.where("c = 'a'").count()).sums["rows"] == [1]


@pytest.mark.parametrize(
    "kind", [pa.time32("s"), pa.time64("us"), pa.list_(pa.string()), pa.struct([("a", pa.int8())])]
)
def test_what_cannot_be_read_for_every_row_is_known_by_name_and_in_no_question(kind, tmp_path):
    column = pa.nulls(2, kind)
    for source in (pa.table({"id": [1, 2], "c": column}), held_in(tmp_path, column)):
        table = protected(source)
        assert table.session.declaration.columns["c"].type == "other"
        assert bounded_table(table.count()).sums["rows"] == [2]
        with pytest.raises(QueryRefused, match="'c'"):
            table.group_by("c").count()
        with pytest.raises(QueryRefused, match="cannot be read for every row"):
            protected(source, columns={"c": {"type": "text"}})
        with pytest.raises(QueryRefused, match="'c'"):
            protected(source, unit="c")


def test_parquet_files_of_two_schemas_are_refused(tmp_path):
    held_in(tmp_path, pa.array([1, 2]), "a")
    held_in(tmp_path, pa.array(["1", "x"]), "b")
    with pytest.raises(QueryRefused, match="same columns and types"):
        protected(str(tmp_path / "*.parquet"))


ALIKE = {
    "bool": pa.array([True, None]),
    "int8": pa.array([1, None], pa.int8()),
    "uint64": pa.array([2**64 - 1, None], pa.uint64()),
    "float": pa.array([1.5, None], pa.float32()),
    "half": pa.array([1.5, None], pa.float16()),
    "date": pa.array([1, None], pa.int32()).view(pa.date32()),
    "microseconds": pa.array([1, None]).view(pa.timestamp("us")),
    "duration": pa.array([1, None]).view(pa.duration("ms")),
    "uuid": pa.array([uuid.UUID(int=7).bytes, None], pa.binary(16)).cast(pa.uuid()),
    "bytes": pa.array([b"\xff", None], pa.binary(1)),
}


@pytest.mark.parametrize("name", ALIKE)
def test_both_ways_to_read_parquet_have_the_same_types_and_cells(name, tmp_path):
    path = held_in(tmp_path, ALIKE[name])
    connection = protected(path).session.engine._source.backend.con
    native, given = (f"SELECT c FROM {view}" for view in (f"{cells.NATIVE}_protected", "protected"))
    assert connection.execute(f"DESCRIBE {native}").fetchall() == connection.execute(f"DESCRIBE {given}").fetchall()
    assert connection.execute(native).fetchall() == connection.execute(given).fetchall()


def test_the_engine_reads_by_itself_where_every_cell_is_harmless(tmp_path, monkeypatch):
    rows = pa.table({"id": [1, 2], "g": ["a", "b"], "x": [1, 2], "w": ["c", "d"]})
    pq.write_table(rows, tmp_path / "t.parquet")
    table = protected(str(tmp_path / "t.parquet"))
    asked = []
    before = cells.HandedRows.__arrow_c_stream__

    def listening(self, requested_schema=None):
        asked.append([each.name for each in self.readings])
        return before(self, requested_schema)

    monkeypatch.setattr(cells.HandedRows, "__arrow_c_stream__", listening)
    exact_table(table.where("x > 0").sum("x", between=(0, 5)))
    assert asked == []
    exact_table(table.where("g = 'a'").sum("x", between=(0, 5)))
    assert {name for names in asked for name in names} == {"id", "g", "x"}


def test_old_times_are_read_without_the_engine(tmp_path):
    rows = pa.table({"id": [1, 2], "c": pa.array([10**15, None]).view(pa.timestamp("us"))})
    pq.write_table(rows, tmp_path / "t.parquet", use_deprecated_int96_timestamps=True)
    table = protected(str(tmp_path / "t.parquet"))
    assert "c" not in table.session.engine._source.files[0].by_engine
    assert bounded_table(table.where("c > TIMESTAMP '2001-01-01 00:00:00'").count()).sums["rows"] == [1]


def test_a_type_is_read_alike_whatever_its_dictionary():
    assert reading_of("c", pa.dictionary(pa.int8(), pa.string())) == reading_of("c", pa.string())
    assert reading_of("c", pa.decimal256(50, 2)) is None


def test_small_batches_are_put_together_and_large_ones_left_as_they_are(monkeypatch):
    schema = pa.schema([("x", pa.int64()), ("g", pa.string())])
    small = [pa.record_batch({"x": [place], "g": [str(place)]}, schema) for place in range(7)]
    monkeypatch.setattr(cells, "ROWS_ENOUGH", 3)
    found = list(cells.put_together(small, schema))
    assert [len(batch) for batch in found] == [3, 3, 1]
    assert pa.Table.from_batches(found).to_pydict() == pa.Table.from_batches(small).to_pydict()
    large = pa.Table.from_batches(small).combine_chunks().to_batches()
    assert list(cells.put_together(iter(large), schema))[0] is large[0]
    assert list(cells.put_together([], schema)) == []


def test_each_file_of_many_is_opened_once_to_compare_its_schema(tmp_path, monkeypatch):
    for place in range(5):
        held_in(tmp_path, pa.array([place, 2]), f"t{place}")
    opened = []
    before = parquet_files.pq.ParquetFile

    def counting(path, **words):
        opened.append(path)
        return before(path, **words)

    monkeypatch.setattr(parquet_files.pq, "ParquetFile", counting)
    table = protected(str(tmp_path / "*.parquet"))
    assert len(opened) <= 5 + 4  # the first one's schema is worked out
    assert bounded_table(table.count()).sums["rows"] == [4]  # two people, two rows each
