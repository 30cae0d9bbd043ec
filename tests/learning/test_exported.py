"""A model as SQL of other databases: it predicts as the model does, and values that look like SQL stay texts."""

import math
import sqlite3
from datetime import date, datetime

import numpy as np
import psycopg
import pyarrow as pa
import pytest

import tacit
from tacit.learning import AdditiveRegressor, LinearRegression
from tests.learning.test_additive import FEATURES, table
from tests.learning.test_shown import ODD
from tests.spark_session import spark_session

KEYS = ["x\\", ") THEN 1 ELSE (SELECT MAX(pay) FROM vault) END) --", "it's", "\\' OR 1=1 --", 'a "b" `c`', "two\nlines"]
COLUMN = 'wa"r`d\\'


def fitted(keys=KEYS, name=COLUMN):
    each = 200
    rows = pa.table(
        {
            "id": range(each * len(keys)),
            name: pa.array([key for key in keys for _ in range(each)]),
            "days": [float(at + 1) for at in range(len(keys)) for _ in range(each)],
        }
    )
    declared = tacit.table(
        rows,
        unit="id",
        budget=tacit.epsilon(200, delta=1e-6),
        ledger=tacit.TRYOUT,
        columns={name: {"keys": keys}, "days": {"between": (0, 10)}},
    )
    kinds = (AdditiveRegressor(epsilon=50, rounds=4), LinearRegression(epsilon=50))
    return [kind.fit(declared, target="days", features=[name]) for kind in kinds]


@pytest.fixture(scope="module")
def odd_models():
    return fitted()


def statement(model, dialect):
    """A SELECT of predictions, whichever of the two a model writes."""
    written = model.to_sql(dialect=dialect)
    return written if written.startswith("SELECT") else f"SELECT {written} AS prediction FROM people"


def predicted(model, keys=KEYS, name=COLUMN):
    return np.asarray(model.predict({name: keys}), dtype=float)


def in_sqlite(sql, name, values):
    connection = sqlite3.connect(":memory:")
    connection.create_function("EXP", 1, math.exp)  # not every SQLite is built with it
    column = '"' + name.replace('"', '""') + '"'
    connection.execute(f"CREATE TABLE people ({column})")
    connection.executemany("INSERT INTO people VALUES (?)", [(value,) for value in values])
    return [row[-1] for row in connection.execute(sql).fetchall()]


def test_values_that_look_like_sql_are_texts_in_sqlite(odd_models):
    for model in odd_models:
        found = in_sqlite(statement(model, "sqlite"), COLUMN, KEYS)
        assert np.abs(np.array(found) - predicted(model)).max() < 1e-9


def test_values_that_look_like_sql_are_texts_in_postgresql(odd_models, postgres):
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute('CREATE TEMPORARY TABLE people ("wa""r`d\\" text)')
        connection.cursor().executemany("INSERT INTO people VALUES (%s)", [(key,) for key in KEYS])
        for model in odd_models:
            found = [float(row[-1]) for row in connection.execute(statement(model, "postgres")).fetchall()]
            assert np.abs(np.array(found) - predicted(model)).max() < 1e-9


@pytest.mark.far
@pytest.mark.xdist_group("spark")
def test_values_that_look_like_sql_are_texts_in_spark(odd_models):
    spark = spark_session()
    spark.createDataFrame([(key,) for key in KEYS], [COLUMN]).createOrReplaceTempView("people")
    for model in odd_models:
        found = [float(row[-1]) for row in spark.sql(statement(model, "spark")).collect()]
        assert sorted(found) == pytest.approx(sorted(predicted(model)), abs=1e-9)


def test_numbers_missing_values_and_classes_score_alike_in_sqlite():
    model = AdditiveRegressor(50, rounds=8).fit(table(), target="visits", features=FEATURES)
    connection = sqlite3.connect(":memory:")
    connection.create_function("EXP", 1, math.exp)
    connection.execute(f"CREATE TABLE people ({', '.join(ODD.column_names)})")
    connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", list(zip(*ODD.to_pydict().values(), strict=True)))
    found = [row[-1] for row in connection.execute(model.to_sql(dialect="sqlite")).fetchall()]
    assert np.abs(np.array(found) - model.predict(ODD)).max() < 1e-9


@pytest.mark.parametrize(
    ("keys", "dialect", "words"),
    [
        (["${spark.app.name}", "b"], "spark", "Spark replaces by a setting"),
        (["a\0b", "b"], "duckdb", "NUL character"),
        (["a\\b", "b"], None, "backslash, which databases read in different ways"),
        ([datetime(2020, 1, 1, 10, 0, 0, 5), datetime(2020, 1, 2)], "sqlite", "no type for times"),  # noqa: DTZ001
        (["a", "b"], "oracle", "SQL is not written for 'oracle'"),
        (["a", "b"], 7, "SQL is not written for a int"),
    ],
)
def test_what_a_database_cannot_read_safely_is_refused_in_words(keys, dialect, words):
    for model in fitted(keys, "ward"):
        with pytest.raises(tacit.QueryRefused, match=words):
            model.to_sql(dialect=dialect)


def test_days_are_days_in_sqlite():
    days = [date(2020, 1, 1), date(2020, 1, 2)]
    for model in fitted(days, "day"):
        found = in_sqlite(statement(model, "sqlite"), "day", [day.isoformat() for day in days])
        assert np.abs(np.array(found) - predicted(model, days, "day")).max() < 1e-9
