"""Odd cells of each type of Spark: read as the embedded engine reads them, as keys, values and units; none raises."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.errors import QueryRefused
from tacit_gauntlet.stage.odd_cells import decimals
from tacit_gauntlet.stage.parts import as_read
from tests.engine.exact import SALT
from tests.spark_session import spark_session

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.far]

WIDEST = Decimal("9" * 28 + "." + "9" * 10)
TEXTS = [b"a", b"A", b"", b" ", b"a ", "é".encode(), b"\xff\xfe", b"\x00", "😀".encode(), None, b"x" * 70, b"a\t"]
# of each column: Spark's type, Arrow's, and odd cells
CELLS = {
    "b": ("BOOLEAN", pa.bool_(), [True, False, None]),
    "i8": ("TINYINT", pa.int8(), [-128, 127, 0, None]),
    "i16": ("SMALLINT", pa.int16(), [-(2**15), 2**15 - 1, None]),
    "i32": ("INT", pa.int32(), [-(2**31), 2**31 - 1, 0, None]),
    "i64": ("BIGINT", pa.int64(), [-(2**63), 2**63 - 1, 0, -1, None]),
    "f32": ("FLOAT", pa.float32(), [0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1e-45, 3.4e38, None]),
    "f64": ("DOUBLE", pa.float64(), [0.0, -0.0, float("nan"), float("inf"), -float("inf"), 5e-324, 1e308, None]),
    "wide": (
        "DECIMAL(38, 10)",
        pa.decimal128(38, 10),
        [WIDEST, WIDEST.copy_negate(), Decimal(0), Decimal("1e-10"), None],
    ),
    "over": ("DECIMAL(18, 4)", pa.decimal128(18, 4), [0, 10**18 - 1, 10**18, -(10**18), 2**63 - 1, -(2**63), 1, None]),
    "over_5": ("DECIMAL(5, 0)", pa.decimal128(5, 0), [0, 1 - 10**5, 10**5, -(10**5), 2**23 - 1, -(2**23), 1, None]),
    "tiny": ("DECIMAL(4, 4)", pa.decimal128(4, 4), [Decimal("0.9999"), Decimal("-0.9999"), Decimal(0), None]),
    "text": ("STRING", pa.string(), [*TEXTS, b"y" * (2**15 + 1)]),
    "short": ("VARCHAR(80)", pa.string(), TEXTS),
    "padded": ("CHAR(75)", pa.string(), TEXTS),
    "folded": ("STRING COLLATE UTF8_LCASE", pa.string(), TEXTS),
    "raw": ("BINARY", pa.binary(), TEXTS),
    "day": (
        "DATE",
        pa.date32(),
        [dt.date(1, 1, 1), dt.date(1582, 10, 10), -(2**31), 2**31 - 1, dt.date(9999, 12, 31), None],
    ),
    "zoned": ("TIMESTAMP", pa.timestamp("us", "UTC"), [0, -1, -(2**63), 2**63 - 1, -(10**16) * 5, None]),
    "local": ("TIMESTAMP_NTZ", pa.timestamp("us"), [0, -1, -(2**63), 2**63 - 1, -(10**16) * 5, None]),
}
NESTED = {"list": "ARRAY<INT>", "pair": "STRUCT<one: INT>", "map": "MAP<STRING, INT>"}
ROWS = 97
KEYS = (
    ("b", "i8", "i16", "i32", "i64", "f32"),
    ("f64", "wide", "over", "over_5", "tiny", "day"),
    ("text", "short", "padded", "folded"),
    ("day", "zoned", "local"),
)


def column(name):
    """Return cells of a type, over and over; Arrow's own constructors refuse text that is not UTF-8."""
    _, kind, cells = CELLS[name]
    cells = [cells[at % len(cells)] for at in range(ROWS)]
    if pa.types.is_string(kind):
        raw = pa.array(cells, pa.binary())
        return pa.Array.from_buffers(pa.string(), ROWS, raw.buffers())
    if pa.types.is_temporal(kind):
        width = pa.int32() if kind == pa.date32() else pa.int64()
        days = [(each - dt.date(1970, 1, 1)).days if isinstance(each, dt.date) else each for each in cells]
        return pa.array(days, width).view(kind)
    if pa.types.is_decimal(kind) and any(isinstance(each, int) for each in cells):
        return decimals(cells, kind)  # by the whole numbers that stand for them, some of which do not fit
    return pa.array(cells, kind)


@pytest.fixture(scope="module")
def odd():
    """The rows as Spark has them in a table `clinic.odd`, and as the embedded engine is to read them."""
    spark = spark_session()
    rows = pa.table({"n": pa.array(np.arange(ROWS) % 5), **{name: column(name) for name in CELLS}})
    nested = {
        "list": [[1]] * ROWS,
        "pair": [{"one": 1}] * ROWS,
        "map": pa.array([[("k", 1)]] * ROWS, pa.map_(pa.string(), pa.int32())),
    }
    folder = spark.folder / "odd"
    folder.mkdir()
    stored = rows
    for name, cells in nested.items():
        stored = stored.append_column(name, pa.array(cells) if isinstance(cells, list) else cells)
    pq.write_table(stored, folder / "0.parquet")
    columns = {"n": "BIGINT", **{name: kind for name, (kind, _, _) in CELLS.items()}, **NESTED}
    spark.sql("DROP TABLE IF EXISTS clinic.odd")
    written = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
    spark.sql(f"CREATE TABLE clinic.odd ({written}) USING parquet LOCATION 'file:{folder}'")
    place = rows.column_names.index("padded")
    trimmed = [
        None if each is None else each.rstrip(b" ") for each in rows.column("padded").cast(pa.binary()).to_pylist()
    ]
    raw = pa.array(trimmed, pa.binary())
    return rows.set_column(place, "padded", pa.Array.from_buffers(pa.string(), ROWS, raw.buffers()))


def both(odd, sql, **declared):
    """Return the exact tables of a question about the odd rows, from Spark and from the embedded engine."""
    usual = {"budget": tacit.epsilon(10**6, delta=1e-6), "ledger": ":memory:", "name": "odd"} | declared
    usual |= {
        "columns": {
            "f64": {"between": (-5, 5)},
            "wide": {"type": "decimal", "between": (-5, 5)},
            "n": {"between": (0, 5)},
        }
    }
    there = tacit.table("spark://clinic.odd", spark=spark_session(), **usual).sql(sql)
    here = tacit.table(odd, **usual).sql(sql)
    plan = here.plan(epsilon=1).plan
    assert repr(there.plan(epsilon=1).plan) == repr(plan)
    return tuple(as_read(each.session.engine.aggregate(plan, SALT)) for each in (there, here))


@pytest.mark.parametrize("keys", KEYS, ids=["numbers", "floats and decimals", "texts", "times"])
def test_cells_are_the_same_keys_and_values(odd, keys):
    spark = spark_session()
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/St_Johns")
    try:
        named = ", ".join(keys)
        sql = f"SELECT {named}, COUNT(*) AS k, SUM(f64) AS s, SUM(wide) AS w FROM odd GROUP BY {named}"
        there, here = both(odd, sql, unit=tacit.ROW)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert there == here
    assert len(here[0]) > 3


@pytest.mark.parametrize("unit", [name for name in CELLS if name not in ("i8", "i16", "short", "tiny", "f32")])
def test_cells_are_the_same_people(odd, unit):
    there, here = both(odd, "SELECT COUNT(*) AS k, SUM(n) AS s FROM odd", unit=unit, rows_per_unit=3, groups_per_unit=1)
    assert there == here
    assert here[0][()]


def test_nested_cells_are_in_no_question(odd):
    table = tacit.table(
        "spark://clinic.odd", spark=spark_session(), unit="n", budget=tacit.epsilon(1), ledger=":memory:"
    )
    for name in NESTED:
        with pytest.raises(QueryRefused, match=name):
            table.sql(f"SELECT COUNT({name}) FROM odd").plan(epsilon=1)


def test_long_decimals_of_files_from_elsewhere_are_read_where_the_curator_vouches(odd):
    """Spark fails at a cell with more digits than its type, so others must have checked them."""
    usual = {"spark": spark_session(), "budget": tacit.epsilon(1), "ledger": ":memory:"}
    table = tacit.table("spark://clinic.odd", unit="n", **usual)
    with pytest.raises(QueryRefused, match="'wide' has a type that questions cannot use"):
        table.sql("SELECT SUM(wide) FROM odd").plan(epsilon=1)
    with pytest.raises(QueryRefused, match=r"columns=\{'wide': \{'type': 'decimal'\}\}"):
        tacit.table("spark://clinic.odd", unit="n", columns={"wide": {"between": (-5, 5)}}, **usual)
    with pytest.raises(QueryRefused, match="'wide' has a type that cannot be read for every row"):
        tacit.table("spark://clinic.odd", unit="wide", **usual)
    spark_session().sql("CREATE TABLE clinic.checked USING parquet AS SELECT n, wide FROM clinic.odd")
    try:
        checked = tacit.table("spark://clinic.checked", unit="n", columns={"wide": {"between": (-5, 5)}}, **usual)
        assert checked.sql("SELECT SUM(wide) FROM checked").plan(epsilon=1).plan.measured
    finally:
        spark_session().sql("DROP TABLE clinic.checked")
