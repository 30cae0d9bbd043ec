"""Row expressions on an engine mean what the catalogue says, on any cell, and never fail."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit import typed_sql as sql
from tacit.engine.expression import to_sql
from tacit.engine.translations import TRANSLATIONS
from tacit.errors import QueryRefused
from tacit.query.language.catalogue import FUNCTIONS
from tacit.query.nodes import BOOL, DATE, FLOAT, INT, TEXT, TIMESTAMP, Call, Column, Value, decimal, functions_of
from tacit.query.sql.expressions import show
from tacit_gauntlet.stage import cells
from tacit_gauntlet.stage.cells import same_cell
from tacit_gauntlet.stage.language import trial
from tacit_gauntlet.stage.reference import meaning
from tacit_gauntlet.stage.reference_maths import NEAR, is_near
from tacit_gauntlet.stage.table import bounded_table, protected
from tests.query.trees import FORMS, nested, rows


def assert_agrees(expressions, made_up):
    """The engine's cells are the reference's, for every expression and row; powers and logarithms to their last place.

    What is computed from those may be further off, and is not compared.
    """
    expressions = [
        each for each in expressions if not any(NEAR & functions_of(part) for part in getattr(each, "arguments", ()))
    ]
    if not expressions:
        return
    found = trial({f"x{place}": each for place, each in enumerate(expressions)}, cells.arrow(made_up), cells.KINDS)
    for place, each in enumerate(expressions):
        for row, cell in zip(map(cells.plain, made_up), found[f"x{place}"], strict=True):
            wanted = meaning(each, row, cells.KINDS)
            same = is_near if getattr(each, "function", None) in NEAR else same_cell
            assert same(cell, wanted), f"{show(each)} on {row}: {cell!r}, not {wanted!r}"


def test_the_catalogue_and_the_translation_have_the_same_functions():
    assert set(TRANSLATIONS) == set(FUNCTIONS)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
@settings(max_examples=4)
@given(data=st.data())
def test_each_function_means_what_its_words_say(name, data):
    forms = st.lists(st.sampled_from(FORMS[name]), min_size=1, max_size=10)
    assert_agrees(data.draw(forms), data.draw(rows))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
@settings(max_examples=60)
@given(data=st.data())
def test_each_function_means_what_its_words_say_at_length(name, data):
    assert_agrees(FORMS[name][:40], data.draw(rows))


@settings(max_examples=25)
@given(st.lists(nested(), min_size=1, max_size=5), rows)
def test_nested_calls_mean_what_their_parts_say(expressions, made_up):
    assert_agrees(expressions, made_up)


def read(values, stored, kind):
    return trial({"x": Column("c")}, pa.table({"c": pa.array(values, type=stored)}), {"c": kind})["x"]


@pytest.mark.parametrize(
    ("values", "stored", "kind", "wanted"),
    [
        ([2**64 - 1, 5], pa.uint64(), INT, [None, 5]),
        ([-128, 127], pa.int8(), INT, [-128, 127]),
        ([0.1, float("nan"), -0.0], pa.float32(), FLOAT, [0.10000000149011612, None, 0.0]),
        ([" 12 ", "x", "1.5", None], pa.string(), INT, [12, None, None, None]),
        (["1.5", "nan", "1e999"], pa.string(), FLOAT, [1.5, None, None]),
        (["2.445", "1e3"], pa.string(), decimal(6, 2), [Decimal("2.45"), None]),
        (["2011-01-31", "31.1.2011"], pa.string(), DATE, [dt.date(2011, 1, 31), None]),
        (["true", "FALSE", "1"], pa.string(), BOOL, [True, False, None]),
        ([Decimal("12345678.99"), Decimal("1.25")], pa.decimal128(38, 2), decimal(5, 2), [None, Decimal("1.25")]),
        ([1.9, -1.9, 1e300, float("nan")], pa.float64(), INT, [1, -1, None, None]),
        ([1, 0], pa.int64(), BOOL, [True, False]),
        ([7], pa.int64(), decimal(4, 1), [Decimal("7.0")]),
        (["é", "x\x00y"], pa.large_string(), TEXT, ["é", "x\x00y"]),
        (["a", None, "b"], pa.dictionary(pa.int8(), pa.string()), TEXT, ["a", None, "b"]),
        ([0], pa.timestamp("ns"), TIMESTAMP, [dt.datetime.fromisoformat("1970-01-01")]),
        ([0], pa.timestamp("us", tz="Asia/Tokyo"), TIMESTAMP, [dt.datetime.fromisoformat("1970-01-01")]),
        ([0], pa.timestamp("s"), DATE, [dt.date(1970, 1, 1)]),
    ],
)
def test_a_column_is_read_as_it_is_declared(values, stored, kind, wanted):
    assert read(values, stored, kind) == wanted


def test_times_outside_the_calendar_are_null():
    days = "'infinity'::DATE, '-infinity'::DATE, '0044-03-15 (BC)'::DATE, '10000-01-01'::DATE, '9999-12-31'::DATE"
    with duckdb.connect() as engine:
        engine.execute(f"CREATE TABLE times AS SELECT unnest([{days}]) AS day, day::TIMESTAMP AS moment")
        connection = sql.Connection(engine)
        table = connection.table("times")
        for name, kind in [("day", DATE), ("moment", TIMESTAMP)]:
            asked = table.select(x=to_sql(Call("is_null", (Column(name),)), table, {name: kind}))
            assert connection.to_arrow(asked).column("x").to_pylist() == [True, True, True, True, False]


def test_what_no_cast_reads_is_refused_from_public_facts():
    with pytest.raises(QueryRefused, match="stored as a float, which cannot be read as a decimal"):
        read([], pa.float64(), decimal(10, 2))


def test_a_function_outside_the_catalogue_is_not_translated():
    table = sql.Lent(pa.table({"c": [1]}))
    with pytest.raises(QueryRefused, match="the engine has no function 'cube_root'"):
        to_sql(Call("cube_root", (Column("c"),)), table, {"c": INT})


def _part(part, day):
    return Call("extract", (Value(part, "text"), Value(day, "date")))


def _moved(day, number, step):
    return Call("add_interval", (Value(day, "date"), Value(number, "int"), Value(step, "text")))


def _between(unit, first, last):
    days = (Value(dt.date.fromisoformat(day), "date") for day in (first, last))
    return Call("date_diff", (Value(unit, "text"), *days))


def test_the_reference_is_not_the_engine():
    """The words, spot-checked by hand, so that reference and engine cannot be wrong together unseen."""
    row = {"i": -7, "j": 2, "s": " +7 ", "f": 2.5, "price": Fraction(-5, 2), "moment": None}
    for call, wanted in [
        (Call("%", (Column("i"), Column("j"))), -1),
        (Call("/", (Column("i"), Column("j"))), -3.5),
        (Call("cast_int", (Column("s"),)), 7),
        (Call("cast_int", (Column("price"),)), -2),
        (Call("cast_text", (Column("price"),)), "-2.50"),
        (Call("is_null", (Column("moment"),)), True),
        (Call("round", (Column("f"),)), 3),
        (Call("round", (Column("price"),)), -3),
        (Call("floor", (Column("price"),)), -3),
        (Call("ceil", (Column("price"),)), -2),
        (Call("round", (Column("i"), Value(-1, "int"))), -10),
        (Call("least", (Column("i"), Column("f"), Value(None, "null"))), -7.0),
        (Call("substring", (Column("s"), Value(2, "int"), Value(9, "int"))), "+7 "),
        (Call("length", (Column("s"),)), 4),
        (Call("replace", (Value("aaa", "text"), Value("aa", "text"), Value("b", "text"))), "ba"),
        (Call("concat", (Column("s"), Value("é", "text"))), " +7 é"),
        (_part("week", dt.date(2010, 1, 3)), 53),
        (_part("isoyear", dt.date(2010, 1, 3)), 2009),
        (_part("dow", dt.date(2010, 1, 3)), 0),
        (_part("isodow", dt.date(2010, 1, 3)), 7),
        (_part("doy", dt.date(2012, 12, 31)), 366),
        (_part("quarter", dt.date(2012, 10, 1)), 4),
        (_moved(dt.date(2012, 1, 31), 1, "month"), dt.date(2012, 2, 29)),
        (_moved(dt.date(2012, 2, 29), -12, "month"), dt.date(2011, 2, 28)),
        (_moved(dt.date(9999, 12, 31), 1, "day"), None),
        (_moved(dt.date(1, 1, 31), -1, "month"), None),
        (_moved(dt.date(2011, 1, 31), 1, "second"), dt.datetime.fromisoformat("2011-01-31T00:00:01")),
        (_between("week", "2011-01-02", "2011-01-03"), 1),
        (_between("month", "2011-01-31", "2011-02-01"), 1),
        (_between("year", "2011-01-01", "2010-12-31"), -1),
        (_between("hour", "2011-01-01", "2011-01-02"), 24),
    ]:
        assert meaning(call, row, cells.KINDS) == wanted


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_times_with_an_offset_are_in_utc_whatever_zone_the_connection_is_in(zone):
    link = duckdb.connect()
    link.execute(f"SET TimeZone = '{zone}'")
    link.execute(
        "CREATE TABLE t AS SELECT 1 AS id, '2013-01-01T10:00:00Z' AS a, '2013-01-01 12:00:00+02:00' AS b,"
        " '2013-01-01 10:00:00' AS c, TIMESTAMPTZ '2013-01-01 10:00:00+00' AS d"
    )
    for odd in ("infinity", "-infinity", "290000-01-01 00:00:00+00"):
        link.execute(f"INSERT INTO t VALUES (2, 'Z', '+02', '', TIMESTAMPTZ '{odd}')")
    link.register("far", pa.table({"d": pa.array([2**63 - 2, -(2**63) + 2]).view(pa.timestamp("us", "UTC"))}))
    link.execute("INSERT INTO t SELECT 2, NULL, NULL, NULL, d FROM far")
    table = protected((link, "t"))
    for text in ("CAST(a AS TIMESTAMP)", "CAST(b AS TIMESTAMP)", "CAST(c AS TIMESTAMP)", "d"):
        for written in ("2013-01-01 10:00:00", "2013-01-01T10:00Z", "2013-01-01 05:30:00-04:30"):
            assert bounded_table(table.where(f"{text} = TIMESTAMP '{written}'").count()).sums["rows"] == [1]
    assert bounded_table(table.where("CAST(a AS DATE) = DATE '2013-01-01'").count()).sums["rows"] == [1]
