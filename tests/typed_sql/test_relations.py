"""Relations are written as they were meant, run as they were written, and hold nothing longer than they need it."""

import gc
import math
import re
import struct

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit import typed_sql as sql
from tacit.typed_sql import selects
from tacit_gauntlet.stage.payloads import hostile_texts
from tests.engine.plan_shapes import BESIDE, run
from tests.engine.test_elsewhere import local

ROWS = sql.Lent(pa.table({"id": [1, 1, 2, None], "g": ["a", None, "b", "b"], "x": [3, 1, None, 2]}))


def rows_of(relation):
    return sql.connected().to_arrow(relation).to_pylist()


def test_each_step_does_what_it_is_called():
    assert rows_of(ROWS.filter(ROWS["x"] > 1).select("x")) == [{"x": 3}, {"x": 2}]
    grouped = ROWS.group_by("id").agg(n=ROWS.count(), s=ROWS["x"].sum().cast("int64"))
    assert sorted(rows_of(grouped), key=str) == [
        {"id": 1, "n": 2, "s": 4},
        {"id": 2, "n": 1, "s": None},
        {"id": None, "n": 1, "s": 2},
    ]
    assert rows_of(ROWS.agg(n=ROWS["g"].nunique())) == [{"n": 2}]
    assert sorted(each["id"] or 0 for each in rows_of(ROWS.select("id").distinct())) == [0, 1, 2]
    changed = ROWS.mutate(x=ROWS["x"] + 1, y=ROWS["x"] * 2).drop("g", "id")
    assert changed.columns == ("x", "y")
    assert rows_of(changed)[0] == {"x": 4, "y": 6}
    assert ROWS.drop() is ROWS


def test_joins_keep_the_left_sides_columns_and_the_rows_that_match():
    right = sql.Lent(pa.table({"id": [1, 3], "name": ["one", "three"]}))
    both = ROWS.inner_join(right, ROWS["id"] == right["id"])
    assert both.columns == ("id", "g", "x", "name")
    assert rows_of(both.select("x", "name")) == [{"x": 3, "name": "one"}, {"x": 1, "name": "one"}]
    beside = ROWS.left_join(right, [ROWS["id"] == right["id"], ROWS["x"] > 1])
    assert [each["name"] for each in rows_of(beside.select("name"))].count(None) == 3
    assert both.columns_named() == {"id", "g", "x", "name"}


def test_a_relation_that_is_read_twice_is_written_once():
    counts = ROWS.filter(ROWS["x"] > 0)
    one, two = counts.group_by("id").agg(n=counts.count()), counts.select("id", "x")
    text = sql.sql_of(two.inner_join(one, two["id"] == one["id"]))
    assert text.count("WHERE") == 1
    assert text.startswith("WITH shared_0 AS (SELECT * FROM")
    assert sql.sql_of(two.inner_join(one, two["id"] == one["id"])) == text


def test_null_comes_last_in_a_window_whatever_a_connection_is_set_to():
    connection = sql.connected()
    connection.con.execute("SET default_null_order = 'nulls_first'")
    place = sql.row_number().over(sql.window(order_by=ROWS["x"]))
    found = connection.to_arrow(ROWS.select(x=ROWS["x"], place=place)).to_pylist()
    assert {each["x"]: each["place"] for each in found} == {1: 0, 2: 1, 3: 2, None: 3}
    dense = sql.dense_rank().over(sql.window(group_by="g", order_by=[ROWS["x"]]))
    assert "NULLS LAST" in sql.sql_of(ROWS.select(d=dense))


def test_a_column_that_a_relation_does_not_have_is_no_sql():
    other = sql.Lent(pa.table({"z": [1]}))
    with pytest.raises(TypeError, match="does not read"):
        sql.sql_of(ROWS.select(z=other["z"]))
    with pytest.raises(TypeError, match="does not read"):
        sql.sql_of(ROWS.select(x=ROWS["x"].cast("string")).select(x=ROWS["x"]))
    with pytest.raises(TypeError, match="needs a name"):
        ROWS.select(ROWS["x"] + 1)
    with pytest.raises(KeyError):
        ROWS["nothing"]


def test_a_stored_table_can_be_read_by_another_view_wherever_it_is_named():
    connection = sql.connected()
    connection.con.execute("CREATE TABLE t AS SELECT 1 AS a; CREATE VIEW other AS SELECT 2 AS a")
    table, again = connection.table("t"), connection.table("t", ("memory", "main"))
    relation = table.filter(table["a"] > 0).select(b=table["a"] + 1)
    assert connection.to_arrow(relation).to_pylist() == [{"b": 2}]
    assert connection.to_arrow(relation.reading(table, "other")).to_pylist() == [{"b": 3}]
    assert connection.to_arrow(relation.reading(table, "other").select("b")).to_pylist() == [{"b": 3}]
    assert connection.to_arrow(table.reading(table, "other")).to_pylist() == [{"a": 2}]
    assert table.equals(connection.table("t"))
    assert not table.equals(again)
    assert relation.stored() == [table]
    assert relation.columns_named() == {"a"}


def lent_to(connection):
    rows = connection.con.execute("SELECT view_name FROM duckdb_views() WHERE view_name LIKE 'tacit_lent%'").fetchall()
    return {name for (name,) in rows}


def test_a_lent_table_is_taken_back_when_no_relation_holds_it():
    connection = sql.connected()
    table = sql.Lent(pa.table({"a": [1]}))
    name, relation = table.name, table.select("a")
    del table
    for _ in range(2):
        assert connection.to_arrow(relation).to_pylist() == [{"a": 1}]
    reader = connection.run(relation).to_arrow_reader(10)
    del relation
    gc.collect()
    assert reader.read_all().to_pylist() == [{"a": 1}]
    assert name in lent_to(connection)  # a connection runs one thing at a time, so it is not taken back at any moment
    assert connection.to_arrow(ROWS.select("x")).num_rows == 4
    assert lent_to(connection) == {ROWS.name}


@settings(max_examples=300, deadline=None)
@given(st.floats(allow_nan=True, allow_infinity=True))
def test_a_float_comes_back_as_it_is(number):
    (found,) = CONNECTION.to_arrow(ROWS.select(f=sql.literal(number))).column("f").unique().to_pylist()
    assert struct.pack("d", found) == struct.pack("d", number) or (math.isnan(found) and math.isnan(number))


CONNECTION = sql.connected()


def test_nan_and_infinities_are_what_they_are_to_duckdb():
    numbers = sql.Lent(pa.table({"f": [math.nan, math.inf, -math.inf, 1e300, None]}))
    f = numbers["f"]
    found = rows_of(numbers.select(nan=f.isnan(), inf=f.isinf(), floor=f.floor().cast("int64"), sign=f.sign()))
    assert [tuple(each.values()) for each in found] == [
        (True, False, None, 0),
        (False, True, None, 1),
        (False, True, None, -1),
        (False, False, None, 1),
        (None, None, None, None),
    ]


def test_hostile_names_and_texts_come_back_whole():
    hostile = [text for text in hostile_texts(500) if "\x00" not in text]
    table = sql.Lent(pa.table({f"c{at}": [text] for at, text in enumerate(hostile)}))
    named = {f"{text} {at}": table[f"c{at}"] for at, text in enumerate(hostile)}
    connection = sql.connected()
    connection.con.execute("SET TimeZone = 'UTC'")
    once = table.select(**named)
    found = connection.to_arrow(once.select(**{name: once[name] for name in named})).to_pylist()[0]
    assert list(found) == list(named)
    assert list(found.values()) == hostile
    texts = connection.to_arrow(table.select(**{f"t{at}": sql.literal(text) for at, text in enumerate(hostile)}))
    assert list(texts.to_pylist()[0].values()) == hostile
    compared = connection.to_arrow(
        table.select(**{f"e{at}": table[f"c{at}"] == text for at, text in enumerate(hostile)})
    )
    assert set(compared.to_pylist()[0].values()) == {True}
    salts = table.select(**{f"h{at}": sql.struct({text: sql.literal(1)}).hash() for at, text in enumerate(hostile)})
    assert connection.to_arrow(salts).num_rows == 1
    assert len(hostile) > 300


def test_no_cast_that_is_written_can_raise(monkeypatch):
    """Of every relation of questions of many shapes: TRY_CAST gives NULL where CAST would raise."""
    written, write = [], selects.sql_of
    monkeypatch.setattr(selects, "sql_of", lambda relation: written.append(write(relation)) or written[-1])
    for script in BESIDE:
        run(script, local)
    assert len(written) > 20
    assert sum(text.count("TRY_CAST(") for text in written) > 100
    assert not [text for text in written if re.search(r"(?<!TRY_)CAST\(|::", text)]


def test_a_cast_that_raises_would_be_seen():
    raising = sql.Typed(("CAST(", ROWS["g"], " AS BIGINT)"), sql.Type("int64"))
    with pytest.raises(duckdb.ConversionException):
        rows_of(ROWS.select(n=raising))
    assert {each["n"] for each in rows_of(ROWS.select(n=ROWS["g"].cast("int64")))} == {None}
