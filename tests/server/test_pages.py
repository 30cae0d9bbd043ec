"""The pages, asked as a browser does: cookies, forms, and what stands where."""

import asyncio
import io
import re
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from html import unescape
from typing import Any

import httpx
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.ledger import open_ledger
from tacit.query import FUNCTIONS
from tacit.server import Visits, make_app
from tacit.server.pages.ask_pages import GRAMMAR
from tacit.server.pages.page_look import outside_pages
from tests.server.conftest import House

HERE = {"Origin": "https://test"}
UNITED = "SELECT ward, AVG(days) FROM visits GROUP BY ward UNION ALL SELECT 'all', AVG(days) FROM visits"


@dataclass
class Browser:
    """A browser without scripts: it keeps a cookie, and sends forms with their hidden fields."""

    house: House
    visits: Visits
    cookies: dict[str, str] = field(default_factory=dict)

    def send(self, method: str, path: str, **given: Any) -> httpx.Response:
        headers = {"Accept": "text/html", **given.pop("headers", {})}

        async def exchange() -> httpx.Response:
            transport = httpx.ASGITransport(app=make_app(self.house.desk, self.visits))
            async with httpx.AsyncClient(transport=transport, base_url="https://test", cookies=self.cookies) as client:
                return await client.request(method, path, headers=headers, **given)

        found = asyncio.run(exchange())
        self.cookies |= dict(found.cookies)
        return found

    def sign_in(self, token: str) -> httpx.Response:
        return self.send("POST", "/sign-in", data={"token": token}, headers=HERE)

    def form(self, path: str) -> dict[str, str]:
        """Return the hidden fields of a page's form, but for the mark of its plan: tests change the question."""
        page = self.send("GET", path).text
        found = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page))
        found.pop("planned", None)
        return found


@pytest.fixture
def browser(house) -> Browser:
    return Browser(house, Visits(b"k" * 32))


def asked(browser: Browser, **given: Any) -> httpx.Response:
    fields = browser.form("/tables/visits") | {"what": "count", "of": "", "epsilon": "2"} | given
    return browser.send("POST", "/tables/visits/ask", data=fields, headers=HERE)


def test_whoever_is_not_signed_in_is_shown_where_to(browser):
    for path in ("/", "/tables/visits", "/answers/x"):
        reply = browser.send("GET", path)
        assert (reply.status_code, reply.headers["location"]) == (303, "/sign-in")
    assert browser.sign_in("tacit_nobody").status_code == 401
    assert not browser.cookies
    reply = browser.sign_in("tacit_ben")
    cookie = reply.headers["set-cookie"].lower()
    assert all(word in cookie for word in ("__host-tacit=", "httponly", "secure", "samesite=strict", "path=/"))
    assert "tacit_ben" not in cookie
    assert browser.send("GET", "/").status_code == 200


def test_without_other_packages_the_pages_are_the_servers(browser, monkeypatch):
    monkeypatch.setattr("tacit.server.pages.page_look.entry_points", lambda **_: [])
    outside_pages.cache_clear()
    try:
        browser.sign_in("tacit_ben")
        shown = browser.send("GET", "/").text
    finally:
        outside_pages.cache_clear()
    assert 'href="/history"' in shown
    assert "/theory" not in shown


def test_a_cookie_ends_after_eight_hours_and_one_of_another_server_is_none():
    now = [0.0]
    visits = Visits(b"a" * 32, lambda: now[0])
    cookie = visits.seal("tacit_x")
    assert visits.opened(cookie).secret == "tacit_x"
    for other in (cookie[:-2] + "AA", "", None, "é", Visits(b"b" * 32).seal("tacit_x")):
        assert visits.opened(other) is None
    now[0] = 8 * 3600.0
    assert visits.opened(cookie) is None


def test_a_link_signs_in_once_and_for_ten_minutes():
    now = [0.0]
    visits = Visits(b"a" * 32, lambda: now[0])
    code = visits.link("tacit_x")
    assert (visits.used(code), visits.used(code)) == ("tacit_x", None)
    late = visits.link("tacit_x")
    now[0] = 600.0
    assert visits.used(late) is None


def test_a_question_is_built_planned_asked_and_shown(browser):
    browser.sign_in("tacit_ben")
    fields = browser.form("/tables/visits") | {"what": "mean", "of": "days", "by": "ward", "epsilon": "2"}
    plan = browser.send("POST", "/tables/visits/plan", data=fields, headers=HERE | {"Tacit-Part": "plan"})
    assert "costs ε = 2" in plan.text
    assert "<html" not in plan.text
    assert "AVG(&#34;days&#34;)" in plan.text
    reply = browser.send("POST", "/tables/visits/ask", data=fields, headers=HERE)
    assert reply.status_code == 303
    page = browser.send("GET", reply.headers["location"])
    assert all(f'<td role="cell" >{ward}</td>' in page.text for ward in "ABC")
    assert "± 95 %" in page.text
    assert "AVG(&#34;days&#34;)" in page.text
    assert "visits.sql(" in page.text
    where = reply.headers["location"]
    assert browser.send("GET", f"{where}/answer.csv").text.startswith("ward,mean_days,mean_days_low")
    picture = browser.send("GET", f"{where}/answer.svg")
    assert (picture.headers["content-type"], "<svg" in picture.text) == ("image/svg+xml", True)
    assert browser.send("GET", f"{where}/answer.txt").status_code == 404


def test_an_answer_is_titled_in_words_and_shows_the_sql_as_it_was_typed(browser):
    browser.sign_in("tacit_ben")
    typed = "select Ward,avg(days)  as stay -- of <adults>\nfrom VISITS where days>=2 group by 1"
    fresh = browser.send("GET", asked(browser, mode="sql", sql=typed).headers["location"]).text
    assert "<h1>Mean of days by ward, where days &gt;= 2</h1>" in fresh
    shown = unescape(re.findall(r'as SQL</summary><pre class="copy">(.*?)</pre>', fresh, re.DOTALL)[0])
    assert shown == typed
    listed = browser.send("GET", "/history").text
    assert "Mean of days by ward, where days &gt;= 2</a>" in listed


def test_the_button_has_the_price_and_asks_only_what_was_planned(browser):
    browser.sign_in("tacit_ben")
    page = browser.send("GET", "/tables/visits?what=mean&of=days&by=ward&epsilon=2").text
    assert re.search(r'id="ask-button" >Ask, for ε 2 of your ε 20</button>', page)
    assert re.search(r'id="ask-button" disabled', browser.send("GET", "/tables/visits?where=x+%3D").text)
    planned = re.findall(r'name="planned" value="(\w+)"', page)[0]
    changed = asked(browser, what="mean", of="days", by="ward", epsilon="3", planned=planned)
    assert (changed.status_code, "Ask, for ε 3 of your ε 20" in changed.text) == (409, True)
    assert browser.house.desk.ledger.spent(browser.house.desk.ledger.table("visits")).epsilon == 0
    assert asked(browser, what="mean", of="days", by="ward", epsilon="2", planned=planned).status_code == 303


def test_bounds_are_learned_first_for_a_part_of_the_price_and_then_the_plan_states_the_interval(folder, open_house):
    written = (folder / "tacit.toml").read_text()
    (folder / "tacit.toml").write_text(re.sub(r"(?m)^\w+_per_unit = 1\n", "", written))
    browser = Browser(open_house(), Visits(b"k" * 32))
    browser.sign_in("tacit_ben")
    question = {"what": "mean", "of": "days", "by": "ward", "epsilon": "2"}
    fields = browser.form("/tables/visits") | question
    before = browser.send("POST", "/tables/visits/plan", data=fields, headers=HERE).text
    part = float(re.findall(r"Learn its bounds first, for ε ([\d.]+)", before)[0])
    assert "for a group of 1,000 people" in before
    slept = len(browser.house.clock.slept)
    after = browser.send("POST", "/tables/visits/learn", data=fields, headers=HERE)
    spent = browser.house.desk.ledger.spent(browser.house.desk.ledger.table("visits"))
    assert 0 < spent.epsilon <= part < 2
    assert len(browser.house.clock.slept) > slept  # on the public clock
    assert (after.status_code, "Learn its bounds first" in after.text) == (200, False)
    assert "a group on average" in after.text
    browser.send("POST", "/tables/visits/learn", data=fields, headers=HERE)  # known by now, and free
    assert browser.house.desk.ledger.spent(browser.house.desk.ledger.table("visits")) == spent
    refused = browser.send("POST", "/tables/visits/learn", data={**fields, "epsilon": "900"}, headers=HERE)
    assert refused.status_code in (200, 402, 422)
    assert browser.house.desk.ledger.spent(browser.house.desk.ledger.table("visits")) == spent


def test_the_builder_writes_filters_bins_and_totals_with_typed_values_as_text(folder, open_house):
    written = (folder / "tacit.toml").read_text()
    (folder / "tacit.toml").write_text(written.replace("{ epsilon = 20 }", "{ epsilon = 20, delta = 1e-6 }"))
    browser = Browser(open_house(), Visits(b"k" * 32))
    browser.sign_in("tacit_ben")
    given = {"what": ["mean", "count"], "of": ["days", ""], "by": ["ward", "days"], "step days": "10"}
    given |= {"column": ["ward", "days", ""], "is": ["in", "least", "is"], "value": ["A, B' OR 'x", "2", "x"]}
    plan = browser.send("GET", "/tables/visits", params={**given, "totals": "cube", "epsilon": "2"}).text
    sql = unescape(re.findall(r'as SQL</summary><pre class="copy">(.*?)</pre>', plan, re.DOTALL)[0])
    assert sql.splitlines() == [
        'SELECT "ward", "days" // 10 * 10 AS "days in steps of 10", AVG("days") AS "mean_days", COUNT(*) AS "count"',
        'FROM "visits"',
        """WHERE "ward" IN ('A', 'B'' OR ''x') AND "days" >= 2""",
        "GROUP BY CUBE (1, 2)",
    ]
    assert '<option value="A">' in plan  # a known key, in the menu of values


def test_sql_has_the_columns_with_their_facts_and_three_questions_to_try(browser):
    browser.sign_in("tacit_ben")
    page = browser.send("GET", "/tables/visits?mode=sql").text
    assert 'data-insert="ward">ward</button> <span class="soft">text</span>' in page
    assert """data-insert="&#39;A&#39;">A</button>""" in page  # a known group goes into the SQL as a text
    assert 'href="/sql"' in page
    assert "int, 0 to 30" in page
    tried = [unescape(each) for each in re.findall(r'name="fix" value="try=(.*?)"', page, re.DOTALL)]
    assert len(tried) == 3
    for sql in tried:
        shown = browser.send("GET", "/tables/visits", params={"mode": "sql", "sql": sql, "epsilon": "1"}).text
        assert re.search(r'id="ask-button" >Ask', shown), sql


def test_the_grammar_page_has_only_questions_that_are_read_and_every_function(browser):
    browser.sign_in("tacit_ben")
    page = unescape(browser.send("GET", "/sql").text)
    assert all(f"<code>{record.form}</code>" in page and record.meaning in page for record in FUNCTIONS.values())
    rows = pa.table({"patient_id": [1, 2], "ward": ["a", "b"], "days": [1, 9], "day": [date(2025, 1, 1)] * 2})
    opened = {"unit": "patient_id", "ledger": open_ledger(":memory:")}
    visits = tacit.table(rows, name="visits", budget=tacit.epsilon(9, delta=1e-6), **opened)
    people = pa.table({"patient_id": [1, 2], "sex": ["f", "m"]})
    patients = tacit.table(people, name="patients", same_people_as="visits", **opened)
    for _, sql in GRAMMAR:
        assert f"<code>{sql}</code>" in page
        assert visits.sql(sql, tables=[patients]).plan(epsilon=2)


def test_a_plan_of_mere_noise_says_so_and_is_asked_only_if_that_is_wanted(folder, open_house):
    written = (folder / "tacit.toml").read_text()
    (folder / "tacit.toml").write_text(re.sub(r"(?m)^\w+_per_unit = 1\n", "", written))
    browser = Browser(open_house(), Visits(b"k" * 32))
    browser.sign_in("tacit_ben")
    fields = browser.form("/tables/visits") | {"what": "count", "of": "", "by": "ward", "epsilon": "15"}
    browser.send("POST", "/tables/visits/learn", data=fields, headers=HERE)
    spent = browser.house.desk.ledger.spent(browser.house.desk.ledger.table("visits"))
    fields["epsilon"] = "0.00001"  # noise of hundreds of thousands: no learned fact can make that useful
    page = browser.send("POST", "/tables/visits/plan", data=fields, headers=HERE).text
    assert "accept_noise" not in page
    assert "is foreseen to be of no use" in unescape(page)
    assert re.search(r'name="anyway" value="1" id="ask-button" >Ask anyway, for', page)
    refused = browser.send("POST", "/tables/visits/ask", data=fields, headers=HERE)
    assert (refused.status_code, "accept_noise" in refused.text) == (422, False)
    assert browser.house.desk.ledger.spent(browser.house.desk.ledger.table("visits")) == spent
    assert browser.send("POST", "/tables/visits/ask", data={**fields, "anyway": "1"}, headers=HERE).status_code == 303


def test_what_is_spent_and_what_is_left_add_up_to_the_budget(browser):
    browser.sign_in("tacit_ben")
    asked(browser, epsilon="2.5")
    page = browser.send("GET", "/tables/visits", params={"what": "count", "epsilon": "1"}).text
    assert "<b>ε 2.5 of ε 20</b> spent" in page
    assert "Ask, for ε 1 of your ε 17" in page  # 17.5, rounded down


def test_a_declared_table_learns_at_once_what_its_curator_wants_and_truths_are_listed(folder, open_house):
    (folder / "data").mkdir()
    people = range(3000)
    rows = {"id": people, "ward": ["A", "B"] * 1500, "open": [True, False] * 1500, "days": [n % 9 for n in people]}
    pq.write_table(pa.table(rows), folder / "data" / "stays.parquet")
    browser = Browser(open_house(sources=(folder / "data",)), Visits(b"k" * 32))
    browser.sign_in("tacit_ada")
    shown = browser.send("GET", "/declare?source=data/stays.parquet").text
    assert 'name="truth open" value="1" checked' in shown
    given = {"source": "data/stays.parquet", "name": "stays", "unit": "id", "epsilon": "5", "delta": "1e-6"}
    given |= {"column": ["ward", "open", "days"], "keys ward": "A, B", "truth open": "1"}
    fields = browser.form("/declare") | given | {"learn": "days", "declare": "1"}
    page = browser.send("POST", "/declare", data=fields, headers=HERE).text
    ledger = browser.house.desk.ledger
    assert 0 < ledger.spent(ledger.table("stays")).epsilon <= 0.25
    assert "facts are learned, for <b>ε 0.2" in page
    question = {"what": "mean", "of": "days", "by": "ward", "epsilon": "1"}
    assert "a group on average" in browser.send("GET", "/tables/stays", params=question).text  # an interval to expect
    declared = browser.house.desk.file.tables["stays"].options["columns"]
    assert list(declared["open"]["keys"]) == [False, True]


def test_what_a_declaration_learns_at_once_costs_no_more_than_its_page_promises(folder, open_house):
    (folder / "data").mkdir()
    rows = {"id": [*range(300)] * 2, "wage": [n % 90 for n in range(600)]}
    pq.write_table(pa.table(rows), folder / "data" / "wages.parquet")
    browser = Browser(open_house(sources=(folder / "data",)), Visits(b"k" * 32))
    browser.sign_in("tacit_ada")
    given = {"source": "data/wages.parquet", "name": "wages", "unit": "id", "epsilon": "6", "delta": "1e-6"}
    fields = browser.form("/declare") | given | {"column": ["wage"], "learn": "wage", "declare": "1"}
    assert "facts are learned" in browser.send("POST", "/declare", data=fields, headers=HERE).text
    ledger = browser.house.desk.ledger
    assert 0 < ledger.spent(ledger.table("wages")).epsilon <= Fraction(6, 10)


def test_a_note_and_a_workbook_have_the_title_of_the_question_as_text(browser):
    browser.sign_in("tacit_ben")
    where = asked(browser, what="mean", of="days", by="ward").headers["location"]
    page = browser.send("GET", where).text
    link = unescape(re.findall(r'href="([^"]+answer.md[^"]*)"', page)[0])
    assert browser.send("GET", link).text.startswith("# Mean of days by ward: How the numbers")
    odd = browser.send("GET", f"{where}/answer.xlsx", params={"title": "=CMD()"})
    sheet = openpyxl.load_workbook(io.BytesIO(odd.content)).worksheets[1]
    assert (sheet["A1"].value, sheet["A1"].data_type) == ("=CMD(): mean_days", "s")


def test_what_is_shown_as_python_is_the_same_question(browser):
    import tacit

    browser.sign_in("tacit_ben")
    fields = browser.form("/tables/visits") | {"what": "mean", "of": "days", "by": "ward", "where": "days > 1"}
    shown = browser.send("POST", "/tables/visits/plan", data={**fields, "epsilon": "1"}, headers=HERE).text
    python = unescape(re.findall(r'as Python</summary><pre class="copy">(.*?)</pre>', shown, re.DOTALL)[0])
    sql = unescape(re.findall(r'as SQL</summary><pre class="copy">(.*?)</pre>', shown, re.DOTALL)[0])
    visits = tacit.table(
        str(browser.house.folder / "visits.parquet"), unit="patient", budget=tacit.epsilon(5), ledger=None
    )
    written = python.rpartition(".answer(")[0]
    by_python = eval(written, {"visits": visits, "tacit": tacit})
    by_sql = visits.sql(sql.replace('"mean_days"', f'"{by_python.query.outputs[0].name}"'))
    assert by_python.query == by_sql.query


def test_a_refusal_stands_at_its_field_and_its_button_mends_it(browser):
    browser.sign_in("tacit_ben")
    refused = asked(browser, where="dys > 1")
    slots = dict(re.findall(r'<div class="slot" data-field="(\w+)">(.*?)</div>', refused.text, re.DOTALL))
    assert refused.status_code == 422
    assert {field for field, inside in slots.items() if "no column &#39;dys&#39;" in inside} == {"where"}
    assert 'value="where=days &gt; 1"' in refused.text
    fields = browser.form("/tables/visits") | {
        "what": "count",
        "where": "dys > 1",
        "epsilon": "1",
        "fix": "where=days > 1",
    }
    mended = browser.send("POST", "/tables/visits/plan", data=fields, headers=HERE)
    assert 'value="days &gt; 1"' in mended.text
    dear = asked(browser, epsilon="500")
    assert dear.status_code == 402
    assert 'name="fix" value="epsilon=20"' in dear.text
    assert browser.house.desk.ledger.spent(browser.house.desk.ledger.table("visits")).epsilon == 0


def test_forms_of_other_sites_and_of_other_visits_ask_nothing(browser):
    browser.sign_in("tacit_ben")
    fields = browser.form("/tables/visits") | {"what": "count", "epsilon": "1"}
    for headers in ({}, {"Origin": "https://elsewhere"}, {"Origin": "null"}, {"Origin": "http://test"}):
        assert browser.send("POST", "/tables/visits/ask", data=fields, headers=headers).status_code == 403
    other = Browser(browser.house, browser.visits)
    other.sign_in("tacit_ben")
    for mark in (other.form("/tables/visits")["mark"], "", "é"):
        reply = browser.send("POST", "/tables/visits/ask", data={**fields, "mark": mark}, headers=HERE)
        assert reply.status_code == 403
    assert browser.send("GET", "/api/v1/tables").status_code == 401  # the cookie is none of the API's
    assert not [entry for entry in browser.house.desk.ledger.entries() if entry.kind == "charge"]


def test_no_key_column_or_word_is_ever_markup(browser):
    browser.sign_in("tacit_ben")
    odd = "<script>alert(1)</script>\"'&"
    reply = asked(browser, where=odd, by=odd, of=odd, epsilon=odd, error=odd, sql=odd)
    assert "<script>alert" not in reply.text
    page = browser.send("GET", "/tables/visits", params={"where": odd, "mode": "sql", "sql": odd, "what": odd})
    assert "<script>alert" not in page.text


def test_every_page_allows_our_own_parts_alone(browser):
    browser.sign_in("tacit_ben")
    for path in ("/", "/tables/visits", "/sign-in", "/nowhere"):
        policy = browser.send("GET", path).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "script-src 'self'" in policy
    assert "'self'" not in browser.send("GET", "/api/v1/tables").headers["content-security-policy"]
    for name in ("tacit.css", "tacit.js", "tacit.svg"):
        assert browser.send("GET", f"/static/{name}").status_code == 200
    for name in ("../page_look.py", "%2e%2e/page_look.py", "nothing"):
        assert browser.send("GET", f"/static/{name}").status_code == 404


def test_an_end_of_a_token_ends_the_visit_at_once(browser):
    browser.sign_in("tacit_ben")
    people = browser.house.desk.tokens.people
    del people["tacit_ben"]
    assert browser.send("GET", "/").headers["location"] == "/sign-in"


def test_a_chain_is_verified_for_who_reads_the_ledger_alone(browser):
    browser.sign_in("tacit_ben")
    assert browser.send("GET", "/ledger?verify=1").status_code == 403
    browser.cookies.clear()
    browser.sign_in("tacit_audit")
    page = browser.send("GET", "/ledger?verify=1").text
    assert "The chain is whole: every entry is as it was signed" in page
    assert f"{browser.house.desk.ledger.length()} entries" in page
    assert "Verified(" not in page


def test_the_ledger_folds_the_entries_of_a_question_and_has_who_table_amount_what_and_why(folder, open_house):
    written = (folder / "tacit.toml").read_text()
    (folder / "tacit.toml").write_text(re.sub(r"(?m)^\w+_per_unit = 1\n", "", written))
    browser = Browser(open_house(), Visits(b"k" * 32))
    browser.sign_in("tacit_ben")
    asked(browser, what="mean", of="days", by="ward")  # learns its bounds first
    browser.cookies.clear()
    browser.sign_in("tacit_ada")
    granted = browser.form("/tables/visits/grants") | {"analyst": "cleo", "epsilon": "1", "reason": "a <second> study"}
    browser.send("POST", "/tables/visits/grants", data=granted, headers=HERE)
    page = browser.send("GET", "/ledger").text
    rows = [[unescape(cell) for cell in re.findall(r"<td.*?>(.*?)</td>", row, re.DOTALL)] for row in page.split("<tr>")]
    (question,) = (row for row in rows if len(row) > 1 and row[1] == "ben")
    assert question[2:4] == ["visits", "2"]  # all of its charges together
    assert 'AVG("days")' in question[4]
    assert question[6].count("/ledger/") > 4
    (budget,) = (row for row in rows if len(row) > 1 and row[1] == "ada")
    assert (budget[2], budget[5]) == ("visits", "a <second> study")
    only = browser.send("GET", "/ledger?who=ada&kind=budget").text
    assert ("second" in only, "AVG(" in only) == (True, False)
    health = browser.send("GET", "/tables/visits/facts").text
    assert re.search(r'<th scope="col" class="right">ben</th>.*?<td class="right">ε 2</td>', health, re.DOTALL)


def test_a_person_is_let_in_with_a_token_and_a_budget_in_one_form(browser):
    browser.sign_in("tacit_ada")
    browser.send("GET", "/")  # which opens the tables
    form = browser.form("/people") | {"name": "dan", "role": "analyst", "tables": ["visits"], "reason": "the study"}
    page = browser.send(
        "POST", "/people", data={**form, "token": "1", "epsilon": "1.5", "delta": ""}, headers=HERE
    ).text
    assert "A token for dan, shown this once" in page
    assert "visits: ε = 1.5" in page
    ledger = browser.house.desk.ledger
    assert [entry.kind for entry in ledger.entries(ledger.length() - 2)] == ["person", "token", "budget"]
    refused = browser.send("POST", "/people", data={**form, "name": "eve", "tables": [], "epsilon": "1"}, headers=HERE)
    assert "tick the tables" in refused.text


def lines_below(page: str) -> list[str]:
    """Return the lines below an answer."""
    return [unescape(line) for line in re.findall(r"<li>(.*?)</li>", page.partition('class="closing"')[2])]


@pytest.mark.parametrize("given", [{"epsilon": "2"}, {"epsilon": "2", "mode": "sql", "sql": UNITED}])
def test_a_kept_answer_has_the_cost_notes_and_buttons_of_the_fresh_one(folder, open_house, given):
    written = (folder / "tacit.toml").read_text()
    (folder / "tacit.toml").write_text(re.sub(r"(?m)^\w+_per_unit = 1\n", "", written))  # so that bounds are learned
    browser = Browser(open_house(), Visits(b"k" * 32))
    browser.sign_in("tacit_ben")
    where = asked(browser, what="mean", of="days", by="ward", **given).headers["location"]
    fresh = browser.send("GET", where).text
    number = re.findall(r'href="/history/(\d+)/answer.certificate"', fresh)[0]
    kept = browser.send("GET", f"/history/{number}").text
    *others, spent = lines_below(kept)
    assert re.fullmatch(r"Spent ε 2(, δ [\de.-]+)?\. Protects all rows of one \w+\.", spent)
    assert lines_below(fresh) == [*others, spent]
    assert others
    headings = [re.findall(r'<div class="heading">.*?</div>', page, re.DOTALL) for page in (fresh, kept)]
    assert headings[0] == headings[1] != []
    buttons = [re.findall(r'class="button" href="[^"]*?/answer\.(\w+)["?]', page) for page in (fresh, kept)]
    assert buttons == [["csv", "xlsx", "json", "png", "svg", "md", "certificate"]] * 2
    records = [browser.send("GET", f"{page}/answer.json").json() for page in (where, f"/history/{number}")]
    assert [record["loss"] for record in records] == [records[0]["loss"]] * 2
    assert [record["notes"] for record in records] == [records[0]["notes"]] * 2
