"""Made-up rows and running counts over HTTP, to agents and on a page: the same budget, clock and words."""

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.learning import MadeRows, model_text
from tacit.ledger import open_ledger
from tacit.remote import Server
from tacit.server import Visits
from tests.server.conftest import House
from tests.server.test_connect import WireInHere
from tests.server.test_pages import HERE, Browser

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
CATALOG = """
ledger = "ledger.db"

[tables.visits]
source = "visits.parquet"
unit = "patient"
budget = { epsilon = 20, delta = "1e-6" }
hold = "2s"

[tables.visits.columns.ward]
keys = ["A", "B", "C"]

[tables.visits.columns.days]
between = [0, 30]
"""
COLUMNS = ["ward", "days"]
DAYS: dict[str, Any] = {"since": "2026-02-27", "until": "2026-03-20"}


@pytest.fixture
def now() -> list[datetime]:
    return [BEGIN]


@pytest.fixture
def house(folder: Path, open_house: Any, now: list[datetime], monkeypatch: pytest.MonkeyPatch) -> House:
    """A desk on visits with a column of dates, whose ledger has the test's clock."""
    many = 1200
    frame = {
        "patient": [at % 500 for at in range(many)],
        "ward": ["A", "B", "C"] * (many // 3),
        "days": [at % 9 for at in range(many)],
        "day": pa.array([date(2026, 2, 27) + timedelta(days=at % 20) for at in range(many)]),
    }
    pq.write_table(pa.table(frame), folder / "visits.parquet")
    (folder / "tacit.toml").write_text(CATALOG)
    monkeypatch.setattr("tests.server.conftest.open_ledger", lambda place: open_ledger(place, clock=lambda: now[0]))
    found: House = open_house()
    return found


@pytest.fixture
def visits(house: House) -> Any:
    return Server(WireInHere(house, "tacit_ada"))["visits"]


def left(house: House) -> float:
    found: float = house.send("GET", "/api/v1/tables/visits/budget").json()["epsilon"]
    return found


def test_made_up_rows_are_planned_charged_once_and_then_free(house, visits):
    plan = visits.synthesize.plan(epsilon=1, columns=COLUMNS)
    assert plan.fits
    assert "Made-up rows of 2 columns" in str(plan)
    assert left(house) == 20
    slept = len(house.clock.slept)
    made = visits.synthesize(epsilon=1, columns=COLUMNS, rules=["days < 9"])
    assert len(house.clock.slept) > slept  # it left at a tick
    spent = left(house)
    assert spent < 20
    rows = made.rows(300).to_pydict()
    assert {*rows["ward"]} <= {"A", "B", "C", None}
    assert all(each is None or each < 9 for each in rows["days"])
    assert "noisy pairs" in str(made.report())
    again = visits.synthesize(epsilon=1, columns=COLUMNS, rules=["days < 9"])
    assert again.state_.noisy == made.state_.noisy
    assert left(house) == spent


WIDE: dict[str, Any] = {"columns": {"ward": None, "days": None, "day": ("2026-02-27", "2026-03-20")}}


def test_a_paid_report_is_charged_once_and_has_the_servers_figures(house, visits, monkeypatch):
    monkeypatch.setattr("tacit.learning.synthetic.noisy_tables.chosen_pairs", lambda *_: {})  # so no pair is measured
    made = visits.where("days >= 0").synthesize(epsilon="0.5", **WIDE)
    spent = left(house)
    report = made.report(epsilon="0.25")
    assert [each.columns for each in report.others] == [("ward", "days"), ("ward", "day"), ("days", "day")]
    assert report.others[0].apart > report.others[0].noise  # ward follows from days, beyond the noise
    assert "ε = 0.25" in report.paid
    both = left(house)
    assert both < spent
    again = made.report(epsilon="0.25")
    assert again.others == report.others
    assert "Free" in again.paid
    assert left(house) == both
    with pytest.raises(tacit.InvalidParameter, match="table=visits"):
        MadeRows.read(model_text(made)).report(epsilon=1)  # rows from a file know no server


def test_rows_of_filtered_tables_dates_and_several_rows_travel(house, visits):
    columns = {"ward": None, "days": None, "day": ("2026-02-27", "2026-03-20")}
    made = visits.where("days >= 3").synthesize(epsilon=2, columns=columns, once=[], order="day")
    frame = made.rows(200).to_pydict()
    assert list(frame) == ["patient", "ward", "days", "day"]
    assert all(each is None or date(2026, 2, 27) <= each <= date(2026, 3, 20) for each in frame["day"])
    for wrong in (visits.group_by("ward"), visits.derive(weeks="days / 7")):
        with pytest.raises(tacit.QueryRefused, match="whole table"):
            _ = wrong.synthesize


REFUSED = [
    ("made-rows", {"columns": ["ward", "patient"], "epsilon": "1"}, "identifies people"),
    ("made-rows", {"columns": ["ward", "days"], "target": "x", "epsilon": "1"}, "not among the columns"),
    ("made-rows", {"columns": "ward", "epsilon": "1"}, "must be a list of texts"),
    ("made-rows", {"columns": ["ward", "days"]}, "epsilon is missing"),
    ("made-rows", {"dates": {"day": ["2026-01-01", "2026-01-02"]}, "epsilon": "1"}, "columns to be named"),
    ("made-rows", {"rows": 3}, "may not have 'rows'"),
    ("made-rows/report", {"columns": ["ward", "days"], "epsilon": "1"}, "report_epsilon is missing"),
    ("made-rows/report", {"columns": ["ward", "x"], "epsilon": "1", "report_epsilon": "1"}, "no column 'x'"),
    ("running/start", {"day": "day", "until": "2026-01-01", "epsilon": "1"}, "until is over"),
    ("running/start", {"day": "ward", "until": "2026-04-01", "epsilon": "1"}, "dates or times"),
    ("running/start", {"day": "day", "epsilon": "1"}, "until is missing"),
    ("running/step", {"day": "day", "until": "2026-04-01"}, "not started yet"),
    ("made-rows", {"columns": ["ward", "days"], "epsilon": "50"}, ""),
]


@pytest.mark.parametrize(("verb", "asked", "words"), REFUSED, ids=[f"{verb} {words}" for verb, _, words in REFUSED])
def test_refusals_have_words_and_no_charge(house, verb, asked, words):
    reply = house.send("POST", f"/api/v1/tables/visits/{verb}", json=asked)
    assert reply.status_code == (402 if not words else 422)
    assert words in reply.json()["detail"]
    assert left(house) == 20


def test_whoever_may_not_ask_gets_no_rows(house):
    rows = {"columns": COLUMNS, "epsilon": "1"}
    for verb in ("made-rows", "made-rows/report", "running/start", "running/step"):
        path = f"/api/v1/tables/visits/{verb}"
        asked = rows | ({"report_epsilon": "1"} if verb.endswith("report") else {})
        body = asked if verb.startswith("made") else {"day": "day", "until": "2026-04-01"}
        assert house.send("POST", path, "tacit_audit", json=body).status_code == 403
        assert house.send("POST", path, "tacit_audit_pay", json=body).status_code in (
            403,
            404,
        )
        assert house.send("POST", path, None, json=body).status_code == 401
    assert left(house) == 20


def test_a_running_count_goes_by_the_clock_of_the_servers_ledger(house, visits, now):
    count = visits.running("day", **DAYS).count_units()
    assert "Plan for a running count of units" in str(count.plan(epsilon=1))
    count.start(epsilon=1)
    spent = left(house)
    assert spent < 20
    first = count.step().to_dicts()
    assert first[-1]["day"] == date(2026, 2, 27)
    with pytest.raises(tacit.InvalidParameter, match="is not over"):
        count.step()
    now[0] += timedelta(days=2)
    second = count.step().to_dicts()
    assert second[: len(first)] == first
    assert len(second) == len(first) + 2
    assert count.show().to_dicts() == second
    assert left(house) == spent
    rows = visits.running("day", **DAYS).count(rows_per_unit=2)
    assert "1 row" in str(rows.plan(epsilon=1))


def test_dummy_rows_are_free_and_public(house, visits):
    assert len(visits.dummy(rows=40)) == 40
    assert left(house) == 20


def called(house: House, name: str, **given: Any) -> Any:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": given}}
    result = house.send("POST", "/mcp", json=message).json()["result"]
    record = json.loads(result["content"][0]["text"].split("\n")[1])
    return record if not result["isError"] else record["detail"]


def test_an_agent_makes_rows_and_runs_counts(house, now):
    asked = {"table": "visits", "columns": COLUMNS, "epsilon": "1"}
    assert called(house, "plan_made_rows", **asked)["fits"]
    assert len(called(house, "dummy_rows", table="visits")["rows"]) == 20
    assert left(house) == 20
    made = called(house, "make_rows", **asked, count=30)
    assert {row["ward"] for row in made["rows"]} <= {"A", "B", "C", None}
    assert "count must be" in called(house, "make_rows", **asked, count=10**6)
    spent = left(house)
    report = called(house, "report_rows", **asked, report_epsilon="0.25")
    assert "noisy pairs" in report["text"]
    assert report["others"] == []
    assert left(house) == spent  # the only pair was measured, so there is nothing to pay for
    days = {"table": "visits", "day": "day", **DAYS}
    assert "until" in called(house, "running", verb="plan", epsilon="1", **days)["text"]
    assert "running count" in called(house, "running", verb="start", epsilon="1", **days)["started"]
    first = called(house, "running", verb="step", **days)
    assert called(house, "running", verb="show", **days)["answer"] == first["answer"]
    assert "is not over" in called(house, "running", verb="step", **days)
    assert "verb must be" in called(house, "running", verb="stop", **days)


def test_a_page_plans_makes_downloads_and_steps(house):
    browser = Browser(house, Visits(b"k" * 32))
    browser.sign_in("tacit_ben")
    path = "/tables/visits/made"

    def pressed(button: str, **given: str) -> Any:
        return browser.send("POST", path, data={**browser.form(path), "do": button, **given}, headers=HERE)

    assert "Made-up rows" in browser.send("GET", "/tables/visits").text
    dummy = pressed("dummy")
    assert dummy.headers["content-type"].startswith("text/csv")
    assert len(dummy.text.splitlines()) == 1001
    asked = {"columns": "ward, days", "epsilon": "1", "rules": "days < 9; days >= 0"}
    assert "Cost: ε 1" in pressed("plan rows", **asked).text
    assert left(house) == 20
    shown = pressed("make", **asked).text
    assert "Made-up rows of ward, days" in shown
    spent = left(house)
    assert pressed("download", **asked).text.startswith('"ward","days"')
    assert left(house) == spent
    days = {"day": "day", "epsilon": "1", **DAYS}
    assert "Expected error" in pressed("plan running", **days).text
    assert "Started" in pressed("start", **days).text
    assert "total_units" in pressed("step", **days).text
    again = pressed("step", **days)
    assert again.status_code == 422
    assert "is not over" in again.text
    assert "total_units" in pressed("show", **days).text
    assert pressed("make", columns="ward, patient", epsilon="1").status_code == 422
    assert browser.send("POST", path, data={"do": "make"}, headers=HERE).status_code == 403
