"""Derived sources: every path adds up the same rows by unit, and DuckDB's own answers are the same."""

import datetime as dt
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.engine import external_sort
from tacit.engine.patience import patient_units
from tacit_gauntlet.stage.table import bounded_table
from tests.engine.exact import KEYS, UNITS, XS, YS, on_path

INNER = "SELECT id, COUNT(*) AS n, SUM(x) AS s, AVG(y) AS m, MIN(x) AS low FROM t WHERE g <> 'c' GROUP BY id"


def rows_of(rng, count=300):
    return pa.table(
        {
            "id": pa.array([None if each == 0 else int(each) for each in rng.integers(0, 40, count)], pa.int64()),
            "g": pa.array(rng.choice(["a", "b", "c"], count)),
            "x": pa.array(rng.integers(-50, 50, count)),
            "y": pa.array(rng.integers(-500, 500, count) / 8),
        }
    )


def protected(rows, **declared):
    budget = tacit.epsilon(10**6, delta=1e-6)
    return tacit.table(rows, unit="id", name="t", budget=budget, ledger=tacit.TRYOUT, **declared)


@pytest.mark.parametrize("path", ["sql", "kernel", "patient"])
def test_rows_by_unit_are_added_up_the_same_on_every_path(path, kernel):
    rows = rows_of(np.random.default_rng(3))
    between = {"n": (0, 64), "s": (-5000, 5000), "m": (-64, 64)}
    outer = f"SELECT SUM(n) AS n, SUM(s) AS s, SUM(m) AS m FROM ({INNER}) WHERE low < 0"
    question = protected(rows).sql(outer, between=between)
    question.session.engine._path = path
    with on_path("sql" if path == "sql" else "kernel", or_patient=path == "patient"):
        exact = bounded_table(question)
    t = rows  # noqa: F841 - DuckDB finds it by its name
    inner = INNER.replace("WHERE", "WHERE id IS NOT NULL AND")
    wanted = duckdb.sql(f"SELECT COUNT(*), SUM(n), SUM(s) FROM ({inner}) WHERE low < 0").fetchall()[0]
    assert exact.sums["rows"] == [wanted[0]]
    assert exact.sums["total_0"] == [wanted[1]]
    assert exact.sums["total_1"] == [wanted[2] + 5000 * wanted[0]]


EVERY = (
    "COUNT(*) AS n, COUNT(y) AS c, COUNT(DISTINCT g) AS dg, COUNT(DISTINCT y) AS dy, SUM(x) AS sx, AVG(x) AS ax,"
    " SUM(y) AS sy, AVG(y) AS ay, SUM(d) AS sd, AVG(d) AS ad, SUM(w) AS sw, MIN(x) AS lx, MAX(x) AS hx, MIN(y) AS ly,"
    " MAX(y) AS hy, MIN(d) AS ld, MAX(d) AS hd, MIN(t) AS lt, MAX(t) AS ht, BOOL_AND(b) AS al, BOOL_OR(b) AS an"
)


def odd_rows(unit, key, count=240):
    """Rows with cells at every limit, units and keys of chosen types."""
    (unit_kind, units), (key_kind, keys) = UNITS[unit], KEYS[key]
    wide = [None, Decimal(10) ** 35, -(Decimal(10) ** 35), Decimal("0.25"), Decimal("12.5")]
    days = [None, dt.date(1, 1, 1), dt.date(2024, 2, 29), dt.date(9999, 12, 31)]
    floats = [*YS, -1e17, 0.1, 3e-9, float("inf")]
    at = range(count)
    return pa.table(
        {
            "id": pa.array([units[n * n % len(units)] for n in at], unit_kind),
            "g": pa.array([keys[n * 3 % len(keys)] for n in at], key_kind),
            "x": pa.array([XS[n * 7 % len(XS)] for n in at], pa.int64()),
            "y": pa.array([floats[n * 5 % len(floats)] for n in at]),
            "d": pa.array([None if n % 5 == 0 else Decimal(n * n % 977 - 300) / 4 for n in at], pa.decimal128(12, 2)),
            "w": pa.array([wide[n % len(wide)] for n in at], pa.decimal128(38, 2)),
            "t": pa.array([days[n * 3 % len(days)] for n in at], pa.date32()),
            "b": pa.array([(None, True, False, True)[n * 11 % 4] for n in at]),
        }
    )


def derived_rows(source):
    table = source.table
    found = source.fetch(table.select(**{f"{name} ": table[name] for name in sorted(table.columns)})).to_pydict()
    return sorted(zip(*found.values(), strict=True), key=repr)


PAIRS = [*zip(UNITS, KEYS, strict=False), *((unit, "text") for unit in list(UNITS)[len(KEYS) :])]
PAIRS = [
    pytest.param(unit, key, marks=() if unit in ("int", "float", "text", "decimal") else pytest.mark.slow)
    for unit, key in PAIRS
]


@pytest.mark.parametrize(("unit", "key"), PAIRS)
def test_rows_on_disk_are_the_rows_of_sql(unit, key, monkeypatch):
    monkeypatch.setattr(patient_units, "memory_limit", lambda: 1 << 16)
    monkeypatch.setattr(patient_units, "GROUPS_AT_ONCE", 7)
    monkeypatch.setattr(external_sort, "RUN_RECORDS_LEAST", 16)
    rows = odd_rows(unit, key)
    text = f"SELECT COUNT(n) AS n FROM (SELECT id, g, {EVERY} FROM t GROUP BY id, g HAVING COUNT(*) > 0)"
    source = protected(rows).sql(text).session.engine.source
    assert derived_rows(source.streaming()) == derived_rows(source)


def test_no_row_is_no_row_on_disk():
    text = f"SELECT COUNT(n) AS n FROM (SELECT id, {EVERY} FROM t WHERE x IS NULL AND x > 0 GROUP BY id)"
    nobody = protected(odd_rows("int", "text")).sql(text).session.engine.source
    assert derived_rows(nobody.streaming()) == derived_rows(nobody) == []


def test_long_texts_of_keys_stay_whole_on_disk():
    texts = ["a" * 63, "a" * 64, "a" * 70, "ä" * 400, "b" * 32_768, None]
    rows = pa.table({"id": [n % 3 for n in range(60)], "g": [texts[n % 6] for n in range(60)]})
    question = protected(rows).sql("SELECT COUNT(*) AS n FROM (SELECT DISTINCT id, g FROM t)")
    source = question.session.engine.source
    assert derived_rows(source.streaming()) == derived_rows(source)
    assert {len(text or "") for text, _ in derived_rows(source)} == {0, 63, 64, 70, 400, 32_768}
