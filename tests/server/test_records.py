"""Reading the ledger over HTTP: one's own entries, or all; an answer as a certificate, CSV or a picture."""

import csv
import io
import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import tacit
from tacit.ledger import BEGINNING
from tacit.server import records
from tacit.server.pages.ledger_pages import rows_of
from tests.server.conftest import PEOPLE, House

COUNT = {"sql": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", "epsilon": "1"}
PAY = {"sql": "SELECT SUM(income) AS s FROM pay", "epsilon": "1"}


def pages(house: House, token: str) -> list[dict[str, object]]:
    found, first = [], 1
    while first is not None:
        reply = house.send("GET", f"/api/v1/ledger?from={first}", token).json()
        found += reply["entries"]
        first = reply["next"]
    return found


def asked_by_all(house: House) -> None:
    for token in ("tacit_ada", "tacit_ben", "tacit_cleo"):
        where = "x <> 'Z'".replace("x", "ward").replace("Z", token)
        house.ask({**COUNT, "sql": f"SELECT COUNT(*) AS n FROM visits WHERE {where}"}, token)
    house.ask(PAY, "tacit_cleo", table="pay")
    house.ask({**COUNT, "epsilon": "100"}, "tacit_ben")


def test_curators_and_auditors_read_all_and_the_chain_holds(house: House) -> None:
    asked_by_all(house)
    records.PAGE_ENTRIES, kept = 3, records.PAGE_ENTRIES
    try:
        for token in ("tacit_ada", "tacit_audit"):
            entries = pages(house, token)
            assert [each["number"] for each in entries] == list(range(1, house.desk.ledger.length() + 1))
            assert [each["previous"] for each in entries] == [BEGINNING, *(each["hash"] for each in entries[:-1])]
            assert [each["body"] for each in entries] == [entry.body for entry in house.desk.ledger.entries()]
    finally:
        records.PAGE_ENTRIES = kept


def test_an_analyst_reads_what_is_about_them_alone(house: House) -> None:
    asked_by_all(house)
    mine = pages(house, "tacit_ben")
    assert {each["kind"] for each in mine} == {"charge", "answer", "refusal"}
    charges = [json.loads(str(each["body"])) for each in mine if each["kind"] != "answer"]
    assert {each["analyst"] for each in charges} == {"ben"}
    assert "pay" not in json.dumps(mine)
    assert len([each for each in pages(house, "tacit_cleo") if each["kind"] == "answer"]) == 2


def test_an_auditor_of_one_table_reads_of_that_one(house: House) -> None:
    asked_by_all(house)
    seen = pages(house, "tacit_audit_pay")
    assert {each["kind"] for each in seen} == {"ledger", "table", "budget", "charge", "answer"}
    assert "visits" not in json.dumps([each["text"] for each in seen])


def test_a_page_that_is_no_number_or_beyond_the_end_is_said_so(house: House) -> None:
    for first in ("x", "-1", "1.5", "9" * 30, "٣"):
        assert house.send("GET", f"/api/v1/ledger?from={first}").status_code == 404
    assert house.send("GET", "/api/v1/ledger?from=999999").json() == {"entries": [], "next": None}


def test_an_answer_is_read_again_as_csv_and_as_a_picture(house: House) -> None:
    reply = house.ask(COUNT, "tacit_ben")
    number = reply.json()["facts"]["receipt"]["entry"]
    got = house.send("GET", f"/api/v1/answers/{number}.csv", "tacit_ben")
    assert got.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.reader(io.StringIO(got.text)))
    names = reply.json()["cells"]["names"]
    assert rows[0] == names == ["ward", "n", "n_low", "n_high"]
    assert rows[1:] == [[str(cell) for cell in row[:4]] for row in reply.json()["cells"]["rows"]]
    drawn = house.send("GET", f"/api/v1/answers/{number}.svg", "tacit_ben")
    assert drawn.headers["content-type"] == "image/svg+xml"
    assert "sandbox" in drawn.headers["content-security-policy"]
    assert ET.fromstring(drawn.content).tag.endswith("svg")


def test_an_answer_about_two_tables_is_for_who_may_see_both(open_house: Callable[..., House], folder: Path) -> None:
    text = (folder / "tacit.toml").read_text().replace('unit = "person"', 'unit = "patient"')
    text = text.replace("budget = { epsilon = 5 }", 'same_people_as = "visits"')
    (folder / "tacit.toml").write_text(text)
    pq.write_table(pa.table({"patient": list(range(50)), "income": [10] * 50}), folder / "pay.parquet")
    house = open_house()
    joined = {"sql": "SELECT COUNT(*) AS n FROM visits JOIN pay USING (patient)", "epsilon": "1"}
    number = house.ask(joined, "tacit_cleo").json()["facts"]["receipt"]["entry"]
    for form in ("/certificate", ".csv"):
        replies = {
            token: house.send("GET", f"/api/v1/answers/{number}{form}", token).status_code
            for token in ("tacit_cleo", "tacit_audit", "tacit_audit_pay", "tacit_ben")
        }
        assert replies == {"tacit_cleo": 200, "tacit_audit": 200, "tacit_audit_pay": 404, "tacit_ben": 404}
    assert number not in [each["number"] for each in pages(house, "tacit_audit_pay")]


def test_what_one_may_not_see_is_as_what_does_not_exist_in_every_form(house: House) -> None:
    number = house.ask(COUNT, "tacit_ben").json()["facts"]["receipt"]["entry"]
    for form in ("/certificate", ".csv", ".svg"):
        absent = house.send("GET", f"/api/v1/answers/999{form}", "tacit_cleo")
        assert absent.status_code == 404
        for token in ("tacit_cleo", "tacit_audit_pay"):
            for n in (number, 1, "x", "0", "-1", "9" * 40):
                assert house.send("GET", f"/api/v1/answers/{n}{form}", token).content == absent.content


def test_whoever_reads_some_tables_is_shown_no_reason_that_may_name_another(house: House) -> None:
    house.desk.warm()
    house.desk.ledger.grant("visits", tacit.epsilon(2), analyst="ben", reason="more than for pay")
    everything = json.dumps(pages(house, "tacit_ada"))
    assert "more than for pay" in everything
    own = pages(house, "tacit_ben")  # of visits, whose people are in no other table: all of it is theirs
    assert [each["withheld"] for each in own] == [False] * len(own)


def test_a_curator_sees_what_an_analyst_with_a_budget_of_their_own_has_learned(
    folder: Path, open_house: Callable[..., House]
) -> None:
    catalog = folder / "tacit.toml"
    bounds = "rows_per_unit = 1\ngroups_per_unit = 1\nmost_rows_per_unit = 1\n"
    catalog.write_text(catalog.read_text().replace(bounds, ""))
    house = open_house()
    house.desk.warm()
    house.desk.ledger.grant("pay", tacit.epsilon(2), analyst="cleo", reason="her own")
    asked = house.ask({"sql": "SELECT AVG(income) AS m FROM pay", "epsilon": "1"}, "tacit_cleo", table="pay")
    assert asked.status_code == 200
    known = house.desk.facts_of("pay")
    assert known
    assert {each["analyst"] for each in known} == {"cleo"}
    assert known == records.facts_read(house.desk, PEOPLE["tacit_ada"], "pay")


def test_facts_that_were_learned_ahead_are_a_row_of_their_own():
    def entry(number: int, call: str, **body: object) -> dict[str, object]:
        body |= {"time": "2026-11-20T00:36:24", "table": "t", "analyst": "ada", "epsilon": "1/10", "call": {"id": call}}
        return {"number": number, "kind": "charge", "text": f"{number} now charge t", "body": json.dumps(body)}

    learned = entry(1, "a", learns={"words": "how many rows"})
    (together,) = rows_of([learned, entry(2, "a", about="rows")], {"t": "visits"})
    assert (together.what, together.spent) == ("rows", Fraction(2, 10))
    asked, ahead = rows_of([learned, entry(2, "b", about="rows")], {"t": "visits"})
    assert (asked.what, asked.spent, ahead.what) == ("rows", Fraction(1, 10), "learned: how many rows")
