"""The same cells are answered alike, whoever wrote the file and whatever else it says; no cast raises on a cell."""

import os
import subprocess
import sys

import duckdb
import ibis
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.engine.kernel import compiled
from tacit.errors import QueryRefused
from tacit.query.frame import count, mean
from tacit.tables import connection
from tacit.tables.identity import refuse_other_stores
from tacit_gauntlet.stage import file_cells
from tacit_gauntlet.stage.table import added, bounded_table, exact_cells, exact_table, protected

NAN = float("nan")


def by_polars(rows, path):
    """Polars has no other text than UTF-8, so what is not is NULL beforehand."""
    texts = [None if cell is None else _utf8(cell) for cell in rows["g"].cast(pa.binary()).to_pylist()]
    pl.from_arrow(rows.set_column(rows.schema.get_field_index("g"), "g", pa.array(texts))).write_parquet(
        path, row_group_size=16
    )


def by_pandas(rows, path):
    # far times and days that pandas has no type for stay Arrow's own
    rows.to_pandas(types_mapper=pd.ArrowDtype).to_parquet(path)


def _utf8(cell):
    try:
        return cell.decode("utf-8")
    except UnicodeDecodeError:
        return None


WRITERS = {**file_cells.WRITERS, "Polars": by_polars, "pandas": by_pandas}


@pytest.fixture(scope="module")
def wanted():
    return file_cells.outcomes(file_cells.odd_rows(), "full", "sql")


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_is_answered_as_a_frame_with_its_cells_is(name, wanted, tmp_path):
    path = str(tmp_path / "rows.parquet")
    WRITERS[name](file_cells.odd_rows(), path)
    assert file_cells.outcomes(path, "full", "sql") == wanted


@pytest.mark.parametrize("name", ["Arrow", "Polars", "statistics that lie"])
def test_the_kernel_answers_a_file_as_a_frame_with_its_cells(name, wanted, tmp_path, kernel):
    path = str(tmp_path / "rows.parquet")
    WRITERS[name](file_cells.odd_rows(), path)
    assert file_cells.outcomes(path, "full", "kernel") == wanted


@pytest.fixture
def kernel(pytestconfig, monkeypatch):
    monkeypatch.delenv("TACIT_KERNEL")
    monkeypatch.setenv("XDG_CACHE_HOME", str(pytestconfig.rootpath / ".pytest_cache" / "kernel"))
    compiled.compile_now()
    assert compiled.load()


def test_one_persons_nan_leaves_everyone_elses_rows_as_they_were(tmp_path):
    """Each odd row adds what it adds alone: no cell ends a question or moves another's."""
    plain = pa.table({"id": range(40), "x": [float(place % 30) for place in range(40)], "k": [0.0, 1.0] * 20})
    odd = pa.table({"id": [99], "x": [NAN], "k": [NAN]})
    found = {}
    for name, rows in {"plain": plain, "odd": odd, "both": pa.concat_tables([plain, odd])}.items():
        pq.write_table(rows, tmp_path / f"{name}.parquet")
        table = protected(str(tmp_path / f"{name}.parquet"))
        found[name] = exact_cells(table.group_by("k").agg(n=count(), x=mean("x", between=(0, 30))))
    assert found["both"] == [plain | odd for plain, odd in zip(found["plain"], found["odd"], strict=True)]
    assert all(found["odd"])


def everything(source):
    """What is counted and summed of every column of the odd rows, by a key that may be odd too."""
    asked = {
        "n": count(),
        "x": mean("x", between=(0, 30)),
        "y": mean("y", between=(0, 30)),
        "h": mean("h", between=(-2, 2)),
        "i": mean("i", between=(0, 3_000_000)),
        **{name: count(name) for name in "nbgdt"},
    }
    return exact_cells(protected(source).group_by("k").agg(**{f"of_{name}": each for name, each in asked.items()}))


@pytest.mark.parametrize(("name", "places"), [("Arrow", (0, 2, 3, 5)), ("Polars", (1, 2))])
def test_a_row_that_is_added_to_a_file_adds_what_it_has_and_changes_no_other(name, places, tmp_path):
    rows = file_cells.odd_rows()
    rows = rows.set_column(0, "id", pa.array(range(len(rows))))
    crowd = rows.slice(20)
    paths = [str(tmp_path / f"{which}.parquet") for which in ("crowd", "alone", "both")]
    WRITERS[name](crowd, paths[0])
    without = everything(paths[0])
    for place in places:
        one = rows.slice(place, 1)
        WRITERS[name](one, paths[1])
        WRITERS[name](pa.concat_tables([one, crowd] if place % 2 else [crowd, one]), paths[2])
        wanted = [added(*each) for each in zip(without, everything(paths[1]), strict=True)]
        assert everything(paths[2]) == wanted


@pytest.mark.parametrize(
    "setting",
    [
        "ieee_floating_point_ops = false",
        "integer_division = true",
        "default_null_order = 'nulls_first'",
        "produce_arrow_string_view = true",
        "arrow_lossless_conversion = true",
        "arrow_large_buffer_size = true",
        "TimeZone = 'America/New_York'",
    ],
)
def test_a_users_own_settings_and_statistics_change_nothing(setting, wanted):
    rows = file_cells.odd_rows()
    texts = pa.array([None if cell is None else _utf8(cell) for cell in rows["g"].cast(pa.binary()).to_pylist()])
    link = duckdb.connect()
    link.register("given", rows.set_column(rows.schema.get_field_index("g"), "g", texts))
    link.execute("CREATE TABLE t AS SELECT * FROM given")
    link.execute(f"SET {setting}")
    assert file_cells.outcomes((link, "t"), "quick", "sql") == wanted[:4]


def test_rows_whose_id_is_nan_are_nobodys_in_a_file_too(tmp_path):
    pq.write_table(pa.table({"id": [1.0, NAN, NAN], "x": [1, 2, 3]}), tmp_path / "t.parquet")
    table = protected(str(tmp_path / "t.parquet"))
    assert exact_table(table.count_units()).sums["units"] == [1]


def test_only_optimizers_that_look_at_the_query_alone_are_left():
    names = [name for (name,) in duckdb.connect().execute("SELECT name FROM duckdb_optimizers()").fetchall()]
    assert set(names) >= connection.OPTIMIZERS_KEPT  # one that is renamed would go unnoticed
    off = connection.our_connection().con.execute("SELECT current_setting('disabled_optimizers')").fetchall()[0][0]
    assert set(off.split(",")) == set(names) - connection.OPTIMIZERS_KEPT


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")
def test_no_cast_of_a_cell_raises_in_a_connection_of_ours_or_of_a_user():
    theirs = ibis.duckdb.connect()
    theirs.con.execute("CREATE TABLE t AS SELECT 1 AS id, 'x' AS g")
    for name, source in {"t": theirs.table("t"), "protected": pa.table({"id": [1], "g": ["x"]})}.items():
        backend = protected(source).session.engine._source.backend
        table = backend.table(name)
        casts = table.select(n=table["g"].cast("int64"), t=table["g"].cast("timestamp(6)"))
        assert backend.to_arrow(casts).to_pylist() == [{"n": None, "t": None}]


def test_a_generated_column_is_in_no_question():
    """It is computed as it is read, and an UPDATE may have left it a row that it fails on."""
    link = duckdb.connect()
    link.execute("CREATE TABLE t(id INT, x VARCHAR, y INT GENERATED ALWAYS AS (CAST(x AS INT)))")
    link.execute("INSERT INTO t(id, x) VALUES (1, '5')")
    link.execute("UPDATE t SET x = 'no number'")
    table = protected((link, "t"))
    assert bounded_table(table.where("x IS NOT NULL").count()).sums["rows"] == [1]
    with pytest.raises(QueryRefused, match="'y'"):
        table.where("y > 1").count()
    with pytest.raises(QueryRefused, match="'y'"):
        protected((link, "t"), unit="y")


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "ducklake"])
def test_a_table_that_an_extension_reads_is_refused(kind):
    with pytest.raises(QueryRefused, match="copy it into a DuckDB table first"):
        refuse_other_stores("t", kind)
    refuse_other_stores("t", "duckdb")


def test_a_folder_for_temporary_files_may_have_any_name(tmp_path):
    """A quote in it ends no text of ours, and what follows it is no statement."""
    folder = tmp_path / "o'brien'; SET threads = 1; --"
    folder.mkdir()
    code = (
        "import pyarrow as pa, tacit\n"
        "t = tacit.table(pa.table({'id': [1]}), name='t', unit='id', ledger=':memory:', budget=tacit.epsilon(1))\n"
        "link = t.session.engine._source.backend.con\n"
        "print(link.execute(\"SELECT current_setting('temp_directory')\").fetchall()[0][0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(str(folder))
