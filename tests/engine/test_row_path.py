"""Where each row is its own unit, rows added up as they come give the integers that SQL gives, whatever their cells."""

import math
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tacit
from tacit.auditing.replay import replay
from tacit.engine.kernel import compiled, loops, row_path
from tacit.engine.kernel.coding import as_input
from tacit.query.frame import count, mean
from tacit.query.frame import sum as sum_of
from tests.engine.exact import SALT, on_path

pytestmark = pytest.mark.usefixtures("kernel")
several = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)

ODD = [0.0, -0.0, 5e-324, 0.5, 1.5, -2.5, 2.4999999999999996, 1e308, -1e308, math.inf, -math.inf, math.nan]
FLOATS = st.one_of(st.none(), st.sampled_from(ODD), st.floats(-12, 12), st.integers(-40, 40).map(lambda x: x / 4))
WHOLES = st.one_of(st.none(), st.integers(-20, 20), st.integers(-(2**63), 2**63 - 1))
KEYS = st.one_of(st.none(), st.integers(-3, 6), st.integers(-(2**63), 2**63 - 1))
LISTED = [2, -1, 4, 0]
SCHEMA = pa.schema([("g", pa.int64()), ("f", pa.float64()), ("w", pa.int64()), ("d", pa.decimal128(12, 3))])


def table_of(rows, schema=SCHEMA, **columns):
    return tacit.table(
        pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema),
        unit=tacit.ROW,
        budget=tacit.epsilon(1000, delta=1e-6),
        ledger=":memory:",
        columns={"f": {"between": (-3, 5)}, "w": {"between": (-7, 9)}, "d": {"between": (0, 2)}} | columns,
    )


def everything(table, keys=LISTED):
    asked = table.group_by("g", keys=keys)
    return asked.agg(n=count(), f=mean("f"), w=sum_of("w"), d=sum_of("d"), seen=count("w"))


def sums_of(asked, path):
    engine, plan = asked.session.engine, asked.plan(epsilon=1).plan
    with on_path("sql" if path == "sql" else "kernel"):
        assert engine.path_of(plan) == path
        exact = engine.aggregate(plan, SALT)
    return {key: {name: each[at] for name, each in exact.sums.items()} for at, key in enumerate(exact.keys)}


def assert_alike(asked):
    found = sums_of(asked, "rows")
    assert found == sums_of(asked, "sql")
    return found


@several
@given(rows=st.lists(st.tuples(KEYS, FLOATS, WHOLES, st.decimals(-5, 5, places=3)), max_size=40))
def test_the_same_integers_as_sql(rows):
    assert_alike(everything(table_of(rows)))


@several
@given(
    cells=st.lists(FLOATS, max_size=40),
    low=st.integers(-9, 9),
    height=st.integers(15, 30),
    step=st.sampled_from([None, 0.1, 0.3, 1, 7]),
)
def test_any_range_and_any_declared_step(cells, low, height, step):
    declared = {"between": (low, low + height)} | ({} if step is None else {"step": step})
    assert_alike(everything(table_of([(0, cell, 1, Decimal(1)) for cell in cells], f=declared)))


def test_filters_derived_columns_and_narrow_types():
    schema = pa.schema([("g", pa.int8()), ("f", pa.float32()), ("w", pa.int16()), ("d", pa.decimal128(5, 1))])
    rows = [(at % 7 - 2, at / 8, at, Decimal(at) / 10) for at in range(100)] + [(None, None, None, None)]
    table = table_of(rows, schema).where("w % 3 = 1").derive(half="g * 2", e="f * f")
    asked = table.group_by("half", keys=range(-4, 10, 2)).agg(n=count(), e=mean("e", between=(0, 50)), d=sum_of("d"))
    found = assert_alike(asked)
    assert sum(sums["rows"] for sums in found.values()) == 33


@pytest.mark.parametrize("far", [100, 2**15 - 2, 2**15 - 1, 2**15, 2**18])
def test_keys_of_16_and_of_32_bits(far):
    rows = [
        (key, 1.0, 1, Decimal(1)) for key in (-far, -far - 1, -far - 2, far, far + 1, None, 2**62) for _ in range(3)
    ]
    found = assert_alike(everything(table_of(rows), keys=[far, -far - 1]))
    assert [sums["rows"] for sums in found.values()] == [3, 3]


@pytest.mark.parametrize("macros", [[], ["greatest(a, b) AS a", "least(a, b) AS a", "coalesce(a, b) AS a"]])
def test_no_key_is_beyond_what_the_loops_look_up_unchecked(macros):
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT CASE WHEN range % 11 > 0 THEN range - 50 END AS g, 1.5 AS f FROM range(100)"
    )
    declared = {"unit": tacit.ROW, "budget": tacit.epsilon(9), "ledger": ":memory:"}
    asked = tacit.table((connection, "t"), **declared).group_by("g", keys=[-2, 3]).mean("f", between=(0, 2))
    for macro in macros:  # functions of a user's own that stand in for DuckDB's
        connection.execute(f"CREATE MACRO {macro}")
    relation, form = asked.session.engine._rows(asked.plan(epsilon=1).plan)
    keys = asked.session.engine._source.fetch(relation).column("key").to_pylist()
    assert len(keys) == 100
    assert all(0 <= key - form.least < len(form.start_of) for key in keys)
    assert_alike(asked)


def test_a_list_that_does_not_suit_stays_in_sql():
    table = table_of([(1, 1.0, 1, Decimal(1))] * 2)
    others = [
        *(everything(table, keys) for keys in ([1, None], [0, 2**20], [2**31], [-(2**63)])),
        table.group_by("g").count(),
        table.count(),
        table.group_by("g", keys=[1]).median("f"),
        table.group_by("g", keys=[1]).variance("f"),
        table.group_by("f", keys=[1.0]).count(),
    ]
    with on_path("kernel"):
        for asked in others:
            assert asked.session.engine.path_of(asked.plan(epsilon=1, delta=1e-7).plan) == "sql"


def test_only_counting_reads_no_value():
    found = assert_alike(table_of([(2, 1.0, 1, None)] * 3 + [(9, 1.0, 1, None)]).group_by("g", keys=LISTED).count())
    assert [sums["rows"] for sums in found.values()] == [3, 0, 0, 0]


def test_no_number_of_rows_overflows(monkeypatch):
    monkeypatch.setattr(row_path, "ROWS_AT_ONCE", 5)
    monkeypatch.setattr(row_path, "BATCH_ROWS", 2)
    assert_alike(everything(table_of([(at % 5, at / 3, at, Decimal(at)) for at in range(5000)])))


def test_a_batch_that_begins_inside_a_byte_of_validity():
    cells = pa.array([1.0, None, 3.0, math.nan, None, 2.0, 1.0, None, None, 4.0, None])
    for start in range(11):
        batch = pa.record_batch({"key": pa.array([0] * 11, pa.int16()), "x0": cells}).slice(start)
        form = row_path.RowColumns(-1, np.array([3, 0, 3], "u8"), (row_path.FloatGrid(0.0, 4.0, 1.0, 0, 4),))
        sums = np.zeros(6, "i8")
        row_path._add(batch, form, sums)
        known = [x for x in cells[start:].to_pylist() if x is not None and x == x]
        assert sums.tolist() == [11 - start, 11 - start - len(known), sum(known), 0, 0, 0]


def test_the_first_question_does_not_wait_for_the_loops_to_load(monkeypatch):
    asked = everything(table_of([(1, 1.0, 1, Decimal(1))]))
    engine, plan = asked.session.engine, asked.plan(epsilon=1).plan
    monkeypatch.setattr(compiled, "is_loaded", lambda: False)
    with on_path("kernel"):
        assert engine.path_of(plan) == "sql"
        engine.aggregate(plan, SALT)
        assert engine.path_of(plan) == "rows"
        assert "\nEngine: compiled sums of rows.\n" in str(asked.plan(epsilon=1))


def test_tables_of_one_connection_are_asked_at_once():
    connection = duckdb.connect()
    for name in ("one", "two"):
        connection.execute(f"CREATE TABLE {name} AS SELECT range % 5 AS g, 1.5 AS f FROM range(300000)")
    declared = {"unit": tacit.ROW, "budget": tacit.epsilon(9), "ledger": ":memory:"}
    tables = [tacit.table((connection, name), **declared) for name in ("one", "two")]
    asked = [table.group_by("g", keys=[1, 2]).mean("f", between=(0, 2)) for table in tables]
    work = [(each.session.engine, each.plan(epsilon=1).plan) for each in asked]
    with on_path("kernel"), ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda each: each[0].aggregate(each[1], SALT).sums["rows"], work * 5))
    assert found == [[60000, 60000]] * 10


def test_an_audit_takes_the_path_of_later_questions(monkeypatch):
    asked, taken = everything(table_of([]), keys=[0, 1]), []
    exact_sums = row_path.exact_sums
    monkeypatch.setattr(compiled, "is_loaded", lambda: False)
    counted = lambda *given, **words: taken.append("rows") or exact_sums(*given, **words)  # noqa: E731
    monkeypatch.setattr(row_path, "exact_sums", counted)
    with on_path("kernel"):
        assert replay(asked.plan(epsilon=1).plan, asked.session.declaration, asked.query).passed
    assert len(taken) > 10


@pytest.mark.parametrize("bug", ["bounds are trusted", "NaN is a value", "rounded down"])
def test_a_loop_that_does_less_is_caught(bug, monkeypatch):
    add_floats = loops.add_floats

    def worse(groups, cells, valid, skip, grid, at, sums):
        if bug == "bounds are trusted":
            grid = grid._replace(start=-1e6, end=1e6)
        elif bug == "NaN is a value":
            cells = as_input(np.nan_to_num(cells, nan=1e9, posinf=1e9, neginf=-1e9))
        else:
            cells = as_input(cells - 0.5 / grid.scale)
        add_floats(groups, cells, valid, skip, grid, at, sums)

    monkeypatch.setattr(loops, "add_floats", worse)
    asked = everything(table_of([(0, cell, 1, Decimal(1)) for cell in ODD]))
    assert sums_of(asked, "rows") != sums_of(asked, "sql")


def test_nothing_was_compiled_for_any_of_this_in_use():
    compiled = [loops.count_rows, loops.add_floats, loops.add_words]
    assert [len(each.signatures) for each in compiled] == [2, 2, 2]  # keys of 16 and of 32 bits
