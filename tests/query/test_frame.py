"""The Python door: the same trees as SQL's, derived columns that replace nothing, and public keys in any form."""

import datetime as dt
import inspect
from decimal import Decimal
from fractions import Fraction

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tacit.errors import InvalidParameter, QueryRefused
from tacit.query import frame
from tacit.query.frame import (
    Frame,
    correlation,
    count,
    count_units,
    mean,
    median,
    quantile,
    read_public_keys,
)
from tacit.query.frame import sum as total
from tacit.query.nodes import Aggregate, Call, Column, Key, Value
from tacit.query.sql import statement
from tacit.query.sql.questions import parse_query
from tests.query.test_sql import VISITS
from tests.tidy_rules import imported_names

START = Frame(VISITS)


def test_neither_door_imports_the_other():
    assert not [module for module in imports_of(frame) if module.startswith(statement.__name__ + ".")]
    assert not [module for module in imports_of(statement) if module.startswith(frame.__name__ + ".")]


def imports_of(module):
    return [name for name, _ in imported_names("query/door.py", inspect.getsource(module))]


def test_both_doors_give_equal_trees():
    frame = START.deriving({"decade": "CAST(age / 10 AS INT)", "next": "decade + 1"})
    frame = frame.filtered("age >= 18").filtered("ward IN ('A', 'B') AND age >= 18")
    frame = frame.grouped(["decade", "sex"])
    python = frame.query(
        {"n": count(), "people": count_units(), "stay": mean("days"), "x": total("next"), "c": count("cost")}
    )
    sql = parse_query(
        "SELECT CAST(age / 10 AS INT) AS decade, sex, COUNT(*) AS n, COUNT(DISTINCT patient_id) AS people, "
        "AVG(days) AS stay, SUM(CAST(age / 10 AS INT) + 1) AS x, COUNT(cost) AS c FROM visits "
        "WHERE ward IN ('B', 'A') AND 18 <= age GROUP BY decade, sex",
        VISITS,
    )
    assert python == sql


def test_default_names_are_of_the_word_that_was_used():
    for asked, python, text, sql in [
        (count(), "count", "COUNT(*)", "count"),
        (count("age"), "count_age", "COUNT(age)", "count_age"),
        (mean("days"), "mean_days", "AVG(days)", "avg_days"),
        (mean("days + 1"), "mean", "AVG(days + 1)", "avg"),
        (count_units(), "count_units", "COUNT(DISTINCT patient_id)", "count_distinct_patient_id"),
        (median("days"), "median_days", "MEDIAN(days)", "median_days"),
        (quantile("days", 0.9), "days_p90", "QUANTILE(days, 0.9)", "days_p90"),
        (correlation("age", "days"), "correlation_age_days", "CORR(age, days)", "corr_age_days"),
    ]:
        assert START.query([asked]).columns == (python,)
        assert parse_query(f"SELECT {text} FROM visits", VISITS).columns == (sql,)


def test_ranges_and_steps_are_read_as_written():
    made = START.query([total("days", between=(0, 0.1), step=0.01)]).outputs[0].aggregate
    assert made == Aggregate("sum", Column("days"), (Fraction(0), Fraction(1, 10)), Fraction(1, 100))
    with pytest.raises(InvalidParameter, match="must start with its lowest value"):
        START.query([total("days", between=(1, 0))])


def test_a_derived_name_replaces_nothing():
    with pytest.raises(QueryRefused, match="derive cannot use the name 'AGE'"):
        START.deriving({"AGE": "age + 1"})
    frame = START.deriving({"a2": "age + 1"})
    with pytest.raises(QueryRefused, match="derive cannot use the name 'a2'"):
        frame.deriving({"a2": "age + 2"})


def test_a_derived_column_is_fixed_when_it_is_made():
    frame = START.deriving({"a2": "age + 1"}).grouped(["a2"])
    assert frame.keys == (Key("a2", Call("+", (Column("age"), Value(1, "int")))),)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: START.filtered("patient_id = 7"), "is the unit"),
        (lambda: START.deriving({"k": "patient_id + 1"}), "is the unit"),
        (lambda: START.grouped(["patient_id"]).query([count()]), "is the unit"),
        (lambda: START.query([total("patient_id")]), "is the unit"),
        (lambda: START.grouped(["wrad"]), "did you mean 'ward'"),
        (lambda: START.grouped(["ward"]).grouped(["sex"]), "group_by was already called"),
        (lambda: START.grouped([]), "group_by needs the name of a column"),
        (lambda: START.query({"n": 3}), "'n' must be an aggregate, not a int"),
        (lambda: START.query([mean("ward")]), "cannot take the mean of a text"),
        (lambda: START.query({}), "lacks an aggregate"),
        (lambda: START.grouped(["blob"]).query([count()]), "columns={'blob': {'type': 'text'}}"),
        (
            lambda: START.grouped(["ward"], keys=[1]).query([count()]),
            "public key of 'ward' is an int, but the column is a text",
        ),
        (lambda: START.grouped(["ward"], keys=["A", "A"]).query([count()]), "given twice"),
        (lambda: START.grouped(["ward"], keys=[]).query([count()]), "between 1 and"),
        (lambda: START.grouped(["ward", "sex"], keys=["A"]), "needs 2 part"),
        (lambda: START.grouped(["ward"], keys="AB"), "must be a list"),
        (
            lambda: START.grouped(["ward"], keys=pd.DataFrame({"wards": ["A"]})),
            "lacks the column 'ward'\nhint: did you mean 'wards'",
        ),
    ],
)
def test_refusals_name_the_way_out(ask, said):
    with pytest.raises((QueryRefused, InvalidParameter)) as caught:
        ask()
    assert said in str(caught.value)


FRAMES = {
    "list": [("A", 1), (None, 2)],
    "pandas": pd.DataFrame({"age": [1, 2], "ward": ["A", None]}),
    "polars": pl.DataFrame({"age": [1, 2], "ward": ["A", None]}),
    "arrow": pa.table({"age": [1, 2], "ward": ["A", None]}),
}


@pytest.mark.parametrize("keys", FRAMES.values(), ids=FRAMES.keys())
def test_public_keys_come_as_tuples_or_any_frame(keys):
    made = START.grouped(["ward", "age"], keys=keys).query([count()])
    assert made.public_keys == (("A", 1), (None, 2))


def test_public_keys_are_read_as_their_column_is():
    def keys(name, given):
        return [key for (key,) in START.grouped([name], keys=given).query([count()]).public_keys]

    assert keys("days", [float("nan"), 1, Fraction(1, 2)]) == [None, 1.0, 0.5]
    assert str(keys("days", [-0.0])[0]) == "0.0"
    assert keys("cost", [1, Decimal("2.50"), 0.1]) == [Fraction(1), Fraction(5, 2), Fraction(1, 10)]
    assert keys("day", ["2011-01-31", dt.date(2011, 2, 1)]) == [
        dt.date(2011, 1, 31),
        dt.date(2011, 2, 1),
    ]
    assert keys("insured", [True, False]) == [True, False]
    assert keys("age", [1.0]) == [1]
    with pytest.raises(QueryRefused, match="more digits than the column"):
        keys("cost", [Fraction(1, 1000)])


def test_pandas_own_missing_values_are_null():
    frame = pd.DataFrame({"day": pd.to_datetime(["2011-01-31", None]), "n": pd.array([1, None], "Int64")})
    assert read_public_keys(frame, ["day", "n"]) == ((dt.datetime.fromisoformat("2011-01-31"), 1), (None, None))


@pytest.mark.parametrize("fraction", [0.999999, "0.99999", 1e-6, 0.500001])
def test_a_fraction_too_fine_to_aim_at_is_refused_and_not_another_one_answered(fraction):
    with pytest.raises(QueryRefused, match="four decimals"):
        quantile("x", fraction)


@pytest.mark.parametrize(("fraction", "meant"), [(1 / 3, (1, 3)), (0.1 + 0.2, (3, 10)), (0.9999, (9999, 10000))])
def test_a_float_that_is_nearly_a_fraction_means_it(fraction, meant):
    assert quantile("x", fraction).fraction == Fraction(*meant)
