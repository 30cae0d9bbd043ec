"""A budget per block: questions are charged to the blocks that their WHERE allows; if it is not understood, to all."""

import os
from datetime import date, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.cli.budget import describe
from tacit.errors import BudgetExceeded, InvalidParameter
from tacit.query import blocks_allowed

BLOCK = {"column": "day", "every": "month", "zone": "Europe/Berlin"}
JANUARY = "day >= '2026-01-01' AND day < '2026-02-01'"
MAY = "day = '2026-05-03'"
FEBRUARY = "day BETWEEN '2026-02-01' AND '2026-02-28'"
DATES = pa.table({"id": [1, 2], "day": [date(2026, 1, 31), date(2026, 2, 1)], "x": [0, 1]})
ROWS = pa.table(
    {
        "id": [1, 1, 2, 3],
        "day": [datetime(2026, 1, 5), datetime(2026, 2, 5), datetime(2026, 1, 9), None],  # noqa: DTZ001
        "x": [0, 1, 2, 3],
    }
)


def opened(source=ROWS, **more):
    given = {"unit": "id", "name": "visits", "budget": tacit.epsilon(1), "ledger": tacit.TRYOUT, "block": BLOCK}
    return tacit.table(source, **{**given, "rows_per_unit": 2, **more})


def spend(table, condition, epsilon=0.5):
    return table.where(condition).count().answer(epsilon=epsilon, accept_noise=True)


@pytest.mark.parametrize(
    ("condition", "blocks"),
    [
        (JANUARY, ("2026-01",)),
        (f"{JANUARY} AND x > 1", ("2026-01",)),
        (f"({JANUARY}) OR ({FEBRUARY})", ("2026-01", "2026-02")),
        ("day > '2026-01-31 23:59:59.999999' AND day <= '2026-03-01'", ("2026-02", "2026-03")),
        ("day IN ('2026-01-05', '2027-01-05')", ("2026-01", "2027-01")),
        ("day = '2026-01-05'", ("2026-01",)),
        (f"(day < '2026-02-01' OR {MAY}) AND day >= '2026-01-01'", ("2026-01", "2026-05")),
        (f"({JANUARY}) OR x > 1", None),
        (f"NOT ({JANUARY})", None),
        ("day <> '2026-01-05'", None),
        ("day >= '2026-01-01'", None),
        ("day < '2026-02-01'", None),
        ("day IS NULL", None),
        (f"({JANUARY}) OR day IS NULL", None),
        ("COALESCE(day, TIMESTAMP '2026-01-01') = '2026-01-01'", None),
        ("date_trunc('month', day) = '2026-01-01'", None),
        ("day > '2026-02-01' AND day < '2026-01-01'", None),
        ("day BETWEEN '0001-01-01' AND '9999-12-31'", None),
        ("x = 1", None),
    ],
)
def test_a_condition_allows_the_blocks_of_its_constants_and_all_if_it_is_not_understood(condition, blocks):
    table = opened()
    query = table.where(condition).count()._queries[0]
    assert blocks_allowed(query.where, table.frame.declaration.block) == blocks


@pytest.mark.parametrize(
    ("condition", "blocks"),
    [
        ("day >= DATE '2026-01-01' AND day < TIMESTAMP '2026-02-01 12:00'", ("2026-01", "2026-02")),
        ("day > TIMESTAMP '2026-01-31 12:00' AND day <= '2026-02-28'", ("2026-01", "2026-02")),
        ("day > '2026-01-31' AND day < TIMESTAMP '2026-03-01 00:00'", ("2026-02",)),
        ("day IN ('2026-01-05', '2026-04-01') AND day < TIMESTAMP '2026-02-01 00:00'", ("2026-01",)),
    ],
)
def test_dates_are_compared_with_dates_and_times_in_one_condition(condition, blocks):
    table = opened(DATES)
    assert blocks_allowed(table.where(condition).count()._queries[0].where, table.frame.declaration.block) == blocks
    spend(table, condition, epsilon=0.1)


def test_each_block_has_the_whole_budget_and_a_question_about_all_is_in_each():
    table = opened()
    for condition in (JANUARY, FEBRUARY):
        spend(table, condition)
    spend(table, "x < 9", epsilon=0.25)
    for condition in (JANUARY, FEBRUARY):
        with pytest.raises(BudgetExceeded, match=r"1 per block, has no room(.|\n)*left: ε = 0.25"):
            spend(table, f"{condition} AND x < 8")
    spend(table, "day = '2026-03-01'", epsilon=0.75)
    with pytest.raises(BudgetExceeded):
        spend(table, "x < 7", epsilon=0.3)  # March has a quarter left, January too
    table.session.ledger.verify()
    assert "one person in all blocks  may have lost ε = 2 so far" in describe(table.session.ledger)


def test_replaced_neighbours_charge_both_blocks():
    table = opened(neighbours="replace")
    spend(table, JANUARY)
    with pytest.raises(BudgetExceeded):
        spend(table, f"{JANUARY} AND x < 9", epsilon=0.1)
    spend(table, FEBRUARY, epsilon=0.25)
    table.session.ledger.verify()


def test_learned_facts_and_joins_are_charged_to_the_blocks_of_their_own_rows():
    table = opened(rows_per_unit="auto", groups_per_unit="auto", budget=tacit.epsilon(3))
    spend(table, JANUARY, epsilon=1)
    kinds = [entry.record for entry in table.session.ledger.entries() if entry.kind == "charge"]
    assert {tuple(each.get("blocks", ())) for each in kinds if "learns" not in each} == {("2026-01",)}
    assert all("blocks" in each or "learns" in each for each in kinds)
    per_unit = table.per_unit(visits=tacit.count())
    per_unit.count().answer(epsilon=0.5, accept_noise=True)
    last = [entry.record for entry in table.session.ledger.entries() if entry.kind == "charge"][-1]
    assert "blocks" not in last


def test_several_questions_charged_as_one_are_in_the_blocks_of_all():
    table = opened(budget=tacit.epsilon(3))
    counts = [f"SELECT COUNT(*) AS n FROM visits WHERE {each}" for each in (JANUARY, FEBRUARY)]
    table.sql(" UNION ALL ".join(counts)).answer(epsilon=1, accept_noise=True)
    charge = [entry.record for entry in table.session.ledger.entries() if entry.kind == "charge"][-1]
    assert charge["blocks"] == ["2026-01", "2026-02"]


def test_an_answer_says_what_is_protected_and_that_rows_without_a_day_are_in_no_block():
    answer = spend(opened(), JANUARY)
    assert "all rows of one id in one month of day (Europe/Berlin); one id with rows in several" in str(answer)
    details = str(answer.details())
    assert "Charged to the blocks 2026-01." in details
    assert "Rows without day are in no block" in details


def test_a_closed_block_needs_a_new_version(tmp_path):
    path = tmp_path / "visits.parquet"
    pq.write_table(ROWS, path)

    def at(version):
        return opened(str(path), ledger=tmp_path / "ledger.db", version=version)

    spend(at(None), JANUARY, epsilon=0.25)
    pq.write_table(ROWS.slice(1), path)
    os.utime(path, (1, 1))
    with pytest.raises(InvalidParameter, match=r"block 2026-01 of 'visits' is closed(.|\n)*version=2"):
        spend(at(None), f"{JANUARY} AND x < 9", epsilon=0.25)
    spend(at(None), FEBRUARY, epsilon=0.25)  # was not asked about before
    spend(at(2), f"{JANUARY} AND x < 9", epsilon=0.25)


def test_blocks_stay_and_have_no_period():
    table = opened()
    with pytest.raises(InvalidParameter, match="other blocks than its budget"):
        opened(ledger=table.session.ledger, block={**BLOCK, "every": "day"})
    with pytest.raises(InvalidParameter, match="has no period"):
        opened(name="other", budget=tacit.epsilon(1, period="year"))
    plain = opened(block=None)
    with pytest.raises(InvalidParameter, match="no blocks"):
        plain.session.ledger.grant("visits", tacit.epsilon(1), period="block")
    with pytest.raises(InvalidParameter, match="need a zone"):
        opened(block={"column": "day", "every": "month"})


def test_a_budget_for_life_limits_all_blocks_together():
    table = opened()
    table.session.ledger.grant("visits", tacit.epsilon("0.6"))
    spend(table, JANUARY)
    with pytest.raises(BudgetExceeded, match=r"ε = 0\.6, has no room"):
        spend(table, FEBRUARY)


def test_a_catalog_has_blocks_and_periods(tmp_path):
    pq.write_table(ROWS, tmp_path / "visits.parquet")
    (tmp_path / "tacit.toml").write_text(
        'ledger = "ledger.db"\n'
        '[tables.visits]\nsource = "visits.parquet"\nunit = "id"\nbudget = { epsilon = 1 }\n'
        'block = { column = "day", every = "month", zone = "Europe/Berlin" }\n'
    )
    assert "in one month of day" in str(spend(tacit.catalog(tmp_path / "tacit.toml")["visits"], JANUARY))


def test_times_in_texts_and_dates_of_instants_have_blocks_in_utc_only(tmp_path):
    (tmp_path / "visits.csv").write_text("id,day\n1,2026-01-31T23:30:00+00:00\n2,2026-02-05 10:00:00\n")
    instants = pa.table({"id": [1], "day": pa.array([datetime(2026, 1, 31)], pa.timestamp("us", "UTC"))})  # noqa: DTZ001
    for source, kind in ((str(tmp_path / "visits.csv"), "timestamp"), (instants, "date")):
        columns = {"day": {"type": kind}}
        with pytest.raises(InvalidParameter, match="is read in UTC"):
            opened(source, columns=columns)
        table = opened(source, columns=columns, block={**BLOCK, "zone": "UTC"})
        query = table.where("day >= '2026-01-01' AND day < '2026-02-01'").count()._queries[0]
        assert blocks_allowed(query.where, table.frame.declaration.block) == ("2026-01",)
