"""The type of every value is the type that DuckDB gives it."""

import itertools
import operator

import pyarrow as pa
import pytest

from tacit import typed_sql as sql
from tacit.typed_sql.types import NULL, of_arrow, parsed, stored

WHOLE = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
DECIMALS = ["decimal(3, 1)", "decimal(9, 0)", "decimal(18, 2)", "decimal(19, 0)", "decimal(30, 10)", "decimal(38, 5)"]
NUMBERS = [*WHOLE, "int128", "float32", "float64", *DECIMALS]
OTHERS = ["boolean", "string", "date", "timestamp(6)", "timestamp('UTC', 6)", "binary", "uuid"]
ARITHMETIC = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "&": operator.and_,
    "<<": operator.lshift,
    ">>": operator.rshift,
}
CHOICES = {
    "case": lambda left, right: sql.cases((left.isnull(), left), else_=right),
    "least": sql.least,
    "greatest": sql.greatest,
    "coalesce": sql.coalesce,
    "fill": lambda left, right: left.fill_null(right),
}
OF_ONE_NUMBER = {
    "negated": operator.neg,
    **{name: operator.methodcaller(name) for name in ("abs", "sign", "sqrt", "floor", "ceil", "trunc")},
    "hash": operator.methodcaller("hash"),
    "doubled": lambda value: value * 2,
}


OF_ALL_ROWS = ("sum", "mean", "count", "nunique", "min", "max", "arbitrary")


def described(values):
    """Return the types that DuckDB gives to values of a row of NULLs, by name."""
    connection = sql.connected()
    table = row_of([*NUMBERS, *OTHERS])
    is_of_all = any(name in OF_ALL_ROWS for name in values)
    text = sql.sql_of(table.agg(**values) if is_of_all else table.select(**values))
    connection.con.execute("CREATE TABLE nothing AS SELECT 1 AS one")
    return {name: kind for name, kind, *_ in connection.con.execute(f"DESCRIBE {text}").fetchall()}


def row_of(names):
    source = sql.Stored("nothing", {}, None)
    return source.select(**{name: sql.null(name) for name in names})


def made(names, table):
    """Return values of every pair of columns that typed SQL takes, by a name."""
    found = {}
    for (title, make), left, right in itertools.product((ARITHMETIC | CHOICES).items(), names, names):
        try:
            found[f"{left} {title} {right}"] = make(table[left], table[right])
        except TypeError:
            continue
    return found


def assert_as_described(values):
    wanted = described(values)
    found = {name: value.type().sql for name, value in values.items()}
    assert {name: kind for name, kind in found.items() if kind != wanted[name]} == {}


def test_whole_numbers_decimals_and_floats_of_two_types_have_the_type_that_duckdb_gives():
    table = row_of([*NUMBERS, *OTHERS])
    values = made([*WHOLE, "int128", "float32", "float64"], table)
    assert len(values) > 1000
    assert_as_described(values)
    decimals = made([*DECIMALS, "int64", "int32", "uint8"], table)
    possible = {
        name: value for name, value in decimals.items() if not (" * " in name and value.type().scale > 20)
    }  # a product has 38 digits
    assert len(possible) > 300
    assert_as_described(possible)


@pytest.mark.parametrize("kind", NUMBERS)
def test_what_is_computed_of_one_number_has_the_type_that_duckdb_gives(kind):
    column = row_of([*NUMBERS, *OTHERS])[kind]
    assert_as_described({name: make(column) for name, make in OF_ONE_NUMBER.items()})
    assert_as_described({name: operator.methodcaller(name)(column) for name in OF_ALL_ROWS})


def test_texts_times_and_comparisons_have_the_type_that_duckdb_gives():
    row = row_of([*NUMBERS, *OTHERS])
    text, when, day, data = row["string"], row["timestamp(6)"], row["date"], row["binary"]
    parts = ("year", "quarter", "month", "week", "day", "doy", "dow", "isodow", "hour", "minute", "second")
    values = {
        **{f"part {part}": each.part(part) for part in parts[:8] for each in (when, day)},
        **{f"clock {part}": when.part(part) for part in parts[8:]},
        **{f"begin {unit}": when.truncate(unit) for unit in (*parts[:5], *parts[8:])},
        "days": day.days_since(day),
        "later": when + sql.interval(months=-3),
        "later day": day + sql.interval(days=3),
        "joined": text + text,
        "length": text.length(),
        "bytes": text.byte_length(),
        "bytes of data": data.byte_length(),
        "upper": text.upper(),
        "lower": text.lower(),
        "strip": text.strip(),
        "translated": text.translate("ab", "cd"),
        "replaced": text.replace("a", "b"),
        "like": text.like("a%"),
        "search": text.re_search("a"),
        "extract": text.re_extract("a"),
        "re replaced": text.re_replace("a", "b"),
        "substr": text.substr(0, 3),
        "digest": text.sha256(),
        "hex": data.in_hex(),
        "struct": sql.struct({"a": text, "b": day}).hash(),
        "in": text.isin(["a", "b"]),
        "in nothing": text.isin([]),
        "between": row["int64"].between(1, 2**40),
        "identical": text.identical_to(None),
        "not": ~(text == "a"),
        "or": (text == "a") | (text != "b"),
        "nullif": row["float64"].nullif(0.0),
        "rank": sql.row_number(),
        "dense": sql.dense_rank().over(sql.window(order_by=text)),
        "sum over": row["int64"].sum().over(sql.window(group_by=["string"])),
    }
    assert_as_described(values)
    assert_as_described({"sum": row["boolean"].sum(), "min": text.min(), "max": when.max()})


@pytest.mark.parametrize("number", [0, 1, -1, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63 - 1, 2**63, -(2**63)])
def test_a_whole_constant_has_its_width_and_comes_back(number):
    row = row_of([*NUMBERS, *OTHERS])
    given = {"alone": sql.literal(number)}
    given |= {
        kind: sql.literal(number, kind)
        for kind in ("int64", "int128", "decimal(20, 0)")
        if kind != "int64" or number < 2**63
    }
    given |= {"beside": row["int16"] + number, "compared": row["int16"] < number}
    assert_as_described(given)
    found = sql.connected().to_arrow(sql.Lent(pa.table({"a": [1]})).select(alone=given["alone"]))
    assert found.to_pylist() == [{"alone": number}]


def test_a_cast_to_each_type_gives_it():
    row = row_of([*NUMBERS, *OTHERS])
    assert_as_described({kind: row["string"].cast(kind) for kind in [*NUMBERS, *OTHERS]})
    assert row["int64"].cast("int64") is not row["int64"]
    column = row["int64"]
    assert column.cast("int64") is column


def test_stored_columns_and_lent_ones_have_the_types_that_describe_names():
    connection = sql.connected()
    written = [parsed(kind).sql for kind in [*NUMBERS, *OTHERS]]
    more = ["UHUGEINT", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIME", "INTEGER[]", "ENUM('a', 'b')"]
    columns = ", ".join(f'"{at}" {kind}' for at, kind in enumerate([*written, *more]))
    connection.con.execute(f"CREATE TABLE t ({columns})")
    found = [str(kind) for kind in connection.table("t").schema().values()]
    assert found[: len(written)] == [*NUMBERS, *OTHERS]
    assert found[len(written) :] == [
        "uint128",
        "timestamp(0)",
        "timestamp(3)",
        "timestamp(9)",
        "other",
        "other",
        "string",
    ]
    arrow = {
        "bool": pa.bool_(),
        "i": pa.int16(),
        "u": pa.uint64(),
        "f": pa.float32(),
        "d": pa.float64(),
        "t": pa.string(),
        "lt": pa.large_string(),
        "day": pa.date32(),
        "us": pa.timestamp("us"),
        "ns": pa.timestamp("ns"),
        "zone": pa.timestamp("us", "UTC"),
        "dec": pa.decimal128(20, 3),
        "bin": pa.binary(),
    }
    lent = sql.Lent(pa.schema(list(arrow.items())).empty_table())
    connection.lend(lent)
    rows = connection.con.execute(f"DESCRIBE {sql.sql_of(lent)}").fetchall()
    assert {name: stored(kind) for name, kind, *_ in rows} == lent.schema()
    assert of_arrow(pa.list_(pa.int8())).kind == "other"


def test_what_has_no_type_is_refused():
    row = row_of([*NUMBERS, *OTHERS])
    for make in (
        lambda: row["int64"] + row["string"],
        lambda: row["float64"] // row["int64"],
        lambda: sql.least(row["string"], row["date"]),
        lambda: row["string"].sum(),
        lambda: sql.literal(0.5, "int64"),
        lambda: bool(row["int64"] == 1),
    ):
        with pytest.raises(TypeError):
            make()
    with pytest.raises(ValueError, match="no type"):
        parsed("int63")
    with pytest.raises(OverflowError):
        sql.literal(2**127)
    assert sql.null().type() == NULL
