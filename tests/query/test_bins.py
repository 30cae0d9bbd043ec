"""Groups made by expressions: bins, months and cut text, with keys found privately or listed.

The answers are asked at epsilon 60, where a count is off with chance below 1e-20.
"""

import datetime as dt

import pyarrow as pa
import pytest

import tacit

PEOPLE = 400


@pytest.fixture
def visits():
    table = pa.table(
        {
            "id": range(PEOPLE),
            "age": [place % 40 for place in range(PEOPLE)],
            "day": [dt.date(2011, 12, 1) + dt.timedelta(days=place % 62) for place in range(PEOPLE)],
            "cost": pa.array([f"{place % 8}.25" for place in range(PEOPLE)]).cast(pa.decimal128(6, 2)),
            "name": [("Zoë", "ZOE", "Bo ")[place % 3] for place in range(PEOPLE)],
        }
    )
    return tacit.table(
        table,
        unit="id",
        rows_per_unit=1,
        groups_per_unit=1,
        most_rows_per_unit=1,  # so nothing is learned or measured of it, and no count scaled
        budget=tacit.epsilon(10_000, delta=1e-6),
        ledger=":memory:",
    )


def counts(question):
    rows = question.answer(epsilon=60).to_dicts()
    return {next(iter(row.values())): row["n"] for row in rows}


BINS = {0: 100, 10: 100, 20: 100, 30: 100}


@pytest.mark.parametrize("grouped", ["bin", "1", "FLOOR(age/10)*10", "floor((age) / 10e0) * 10"])
def test_a_bin_is_grouped_by_its_name_its_place_or_itself(visits, grouped):
    asked = visits.sql(f"SELECT FLOOR(age/10)*10 AS bin, COUNT(*) AS n FROM data GROUP BY {grouped}")
    assert counts(asked) == BINS


def test_both_doors_ask_for_the_same_bins(visits):
    python = visits.derive(bin="FLOOR(age/10)*10").group_by("bin").agg(n=tacit.count())
    sql = visits.sql("SELECT FLOOR(age/10)*10 AS bin, COUNT(*) AS n FROM data GROUP BY bin")
    assert python.query == sql.query


def test_listed_bins_are_all_shown_and_no_others(visits):
    listed = visits.derive(bin="FLOOR(age/10)*10").group_by("bin", keys=[10.0, 30, 50])
    assert counts(listed.agg(n=tacit.count())) == {10: 100, 30: 100, 50: 0}


def test_months_are_listed_as_dates(visits):
    months = visits.derive(month="DATE_TRUNC('month', day)").group_by("month", keys=["2011-12-01", dt.date(2012, 1, 1)])
    assert counts(months.agg(n=tacit.count())) == {dt.date(2011, 12, 1): 214, dt.date(2012, 1, 1): 186}


def test_text_and_decimals_are_keys_as_they_come_out(visits):
    names = visits.derive(short="UPPER(SUBSTRING(name, 1, 3))").group_by("short")
    assert counts(names.agg(n=tacit.count())) == {"ZOë": 134, "ZOE": 133, "BO ": 133}
    costs = visits.derive(about="ROUND(cost, 1)").group_by("about", keys=[0.3, 7.3])
    assert [row["n"] for row in costs.agg(n=tacit.count()).answer(epsilon=60).to_dicts()] == [50, 50]


def test_a_key_of_another_type_is_refused_before_any_row(visits):
    with pytest.raises(tacit.QueryRefused, match="a public key of 'bin' is a text, but the column is an int"):
        visits.derive(bin="FLOOR(age/10)*10").group_by("bin", keys=["ten"]).count()
