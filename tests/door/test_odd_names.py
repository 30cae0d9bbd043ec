"""Paths, names and keys that nothing can hold, or that an engine reads as something else: refused in our words."""

from decimal import Decimal

import duckdb
import ibis
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit


def test_a_file_whose_own_path_is_a_pattern_is_refused(tmp_path):
    """An engine would read every file the pattern fits, after the charge."""
    pq.write_table(pa.table({"id": [1], "x": [5]}), tmp_path / "*.parquet")
    (tmp_path / "link.pq").symlink_to(tmp_path / "*.parquet")
    for path in (tmp_path / "link.pq", tmp_path / "*.parquet"):
        with pytest.raises(tacit.QueryRefused, match="rename"):
            tacit.table(path, unit="id", name="t", ledger=":memory:", budget=tacit.epsilon(1))


def test_a_folder_named_like_a_partition_is_no_column_of_a_csv(tmp_path):
    folder = tmp_path / "line=5,5"
    folder.mkdir()
    rows = "".join(f"{unit},{unit}\n" for unit in range(50))
    (folder / "h.csv").write_text(f"id,x\n{rows}")
    columns = {"x": {"type": "int", "between": (0, 100)}}
    table = tacit.table(
        folder / "h.csv", unit=tacit.ROW, name="t", ledger=":memory:", budget=tacit.epsilon(10**6), columns=columns
    )
    assert table.sum("x").answer(epsilon=10**5).to_dicts()[0]["sum_x"] == 1225


class _Bytes:
    def __fspath__(self):
        return b"visits.parquet"


class _Raising(float):
    def __ne__(self, other):
        raise ZeroDivisionError


def test_what_no_file_frame_or_key_can_be_is_refused_in_our_words(tmp_path):
    frame = pa.table({"id": [1], "x": [5]})
    words = {"unit": "id", "rows_per_unit": 1, "groups_per_unit": 1, "name": "t", "budget": tacit.epsilon(3)}
    table = tacit.table(frame, **words, ledger=":memory:")
    tries = [
        lambda: tacit.table(pl.Series([1]), **words, ledger=":memory:"),
        lambda: tacit.table(_Bytes(), **words, ledger=":memory:"),
        lambda: tacit.table(frame, **words, ledger=str(tmp_path / "a\0.db")),
        lambda: tacit.table(frame, **words, ledger=str(tmp_path / "\ud800")),
        lambda: tacit.table(frame, **words | {"name": "\ud800"}, ledger=":memory:"),
        lambda: table.group_by("x", keys=[10**5000]).count(),
        lambda: table.group_by("x", keys=[Decimal("1e999999")]).count(),
        lambda: table.agg(**{"\ud800": tacit.count()}),
        lambda: tacit.catalog("a\0"),
        lambda: tacit.catalog(0.5),
    ]
    for attempt in tries:
        with pytest.raises(tacit.TacitError):
            attempt()
    (tmp_path / "tacit.toml").write_text("a = " + "[" * 5000 + "]" * 5000)
    with pytest.raises(tacit.TacitError, match="nested"):
        tacit.catalog(tmp_path / "tacit.toml")


def test_a_cell_whose_own_comparison_fails_is_null():
    odd = pd.DataFrame({"id": [1, 2], "c": pd.Series([_Raising(1), "a"], dtype=object)})
    table = tacit.table(
        odd, unit="id", rows_per_unit=1, groups_per_unit=1, name="t", ledger=":memory:", budget=tacit.epsilon(10**6)
    )
    assert table.count("c").answer(epsilon=10**5).to_dicts()[0]["count_c"] in (1, 2)


def test_an_ibis_table_of_another_engine_is_refused_before_it_could_be_charged():
    backend = ibis.polars.connect()
    backend.create_table("v", pa.table({"id": [1], "x": [5]}))
    with pytest.raises(tacit.QueryRefused, match="to_pyarrow"):
        tacit.table(backend.table("v"), unit="id", name="t", ledger=":memory:", budget=tacit.epsilon(1))


@pytest.mark.parametrize("name", ["self", "exprs", "by", "having", "metrics", "cls", "predicates"])
def test_a_column_may_have_the_name_of_an_argument(tmp_path, name):
    """Names that are arguments somewhere inside: in joins, in rows by unit, and in a DuckDB database."""
    rows = pa.table({"id": [n // 2 for n in range(40)], name: ["a", "b"] * 20, "x": [1] * 40})
    with duckdb.connect(tmp_path / "own.duckdb") as own:
        own.register("rows", rows)
        own.execute("CREATE TABLE t AS SELECT * FROM rows")
    wards = tacit.public(pa.table({name: ["a", "b"], "floor": [1, 2]}), name="wards")
    words = {"unit": "id", "rows_per_unit": 2, "groups_per_unit": 2, "name": "t", "budget": tacit.epsilon(10**6)}
    for source in (rows, f"{tmp_path / 'own.duckdb'}?table=t"):
        table = tacit.table(source, **words, ledger=":memory:")
        joined = table.join(wards, on=name).group_by("floor", keys=[1, 2]).count()
        assert [row["count"] for row in joined.answer(epsilon=10**4, learn=False).to_dicts()] == [20, 20]
    quoted = f'"{name}"'
    sql = f"SELECT SUM({quoted}) AS s FROM (SELECT id, COUNT(*) AS {quoted} FROM t GROUP BY id)"
    assert table.sql(sql, between={"s": (0, 9)}).answer(epsilon=10**4).to_dicts()[0]["s"] == 40
