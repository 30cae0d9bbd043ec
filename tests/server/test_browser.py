"""The pages in a real browser: clicks and keys, as somebody who has never seen them.

Needs Chromium (Debian's package); a laptop without it skips, and CI does not.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

# one browser and one server for all of them
pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.far]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SCREENSHOTS = os.environ.get("TACIT_SCREENSHOTS")  # a folder; then every page is drawn at three widths, in both themes
RUNS = "<img src=x onerror=alert(1)>"  # a ward whose name would like to be markup
WIDTHS = (360, 1024, 1600)
DRAWN = ((360, "light"), (1024, "dark"), (1600, "light"))  # small pictures of a page for its guide
DEMO = "from tacit.cli.app import main; main(['demo', '--serve', '--port', '0'])"


def draw(page, name: str) -> None:
    """Draw a page at three widths and in both themes, where that is asked for."""
    before = page.viewport_size
    for width, scheme in DRAWN if SCREENSHOTS else ():
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        path = f"{SCREENSHOTS}/{re.sub('[^a-z0-9]+', '-', name)}-{width}-{scheme}.jpg"
        page.screenshot(path=path, full_page=width == 360, type="jpeg", quality=38)
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(before)


@pytest.fixture(scope="module")
def curator_cookies() -> list[dict[str, str]]:
    """A link signs in once; other pages of the curator have the first one's cookie."""
    return []


@pytest.fixture
def signed_in_curator(links, curator_cookies):
    """Let a page be the curator's."""

    def sign_in(page) -> None:
        if curator_cookies:
            page.context.add_cookies(curator_cookies)
            page.goto(links["ada"].partition("/sign-in")[0])
        else:
            page.goto(links["ada"])
        page.get_by_role("heading", name="Tables").wait_for()
        curator_cookies[:] = page.context.cookies()

    return sign_in


@pytest.fixture(scope="module")
def links() -> Iterator[dict[str, str]]:
    """The demo's server, and the links that it prints."""
    server = subprocess.Popen([sys.executable, "-c", DEMO], stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    try:
        server.stdout.readline()
        lines = [server.stdout.readline().split() for _ in range(2)]
        yield {line[3].rstrip(","): line[-1] for line in lines}
    finally:
        server.terminate()
        server.wait(60)
        server.stdout.close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[object]:
    if CHROMIUM is None:
        message = "Chromium is not installed, so the pages were not clicked through (apt-get install chromium)"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium):
    """Open a page of its own visitor; what its console says, violations of the CSP among it, fails the test."""
    said: list[str] = []
    contexts = []

    def opened(*, listens: bool = True, **options):
        contexts.append(chromium.new_context(**options))
        page = contexts[-1].new_page()
        page.set_default_timeout(300_000)  # of a machine that does much else
        if listens:
            page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not [line for line in said if "status of 404" not in line and "status of 422" not in line]


INSIDE = "cells => cells.every(each => each.getBoundingClientRect().right <= innerWidth && each.offsetHeight > 0)"
# what the page shows while it waits: the browser does not look at a page that is about to be another
NOTE_CLOCK = """() => new MutationObserver((changes) => { sessionStorage.clock = changes[0].target.textContent; })
  .observe(document.getElementById("clock"), { childList: true })"""
PAPER = """async (image) => {
  await image.decode();
  const canvas = document.createElement("canvas");
  const drawn = canvas.getContext("2d");
  drawn.drawImage(image, 0, 0);
  return drawn.getImageData(2, 2, 1, 1).data[0];
}"""
SHRUNK = "image => image.decode().then(() => (image.clientWidth - 16) / image.naturalWidth)"


def look_on_a_phone(page) -> None:
    """See each number with its ± inside of a window of 360 pixels, and a picture of the page's theme at full size."""
    page.set_viewport_size({"width": 360, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.locator("td.interval").evaluate_all(INSIDE)
    assert page.locator("td.interval").count() == page.locator("td[data-name]").count() > 0
    picture = page.locator("figure img")
    assert "narrow" in picture.evaluate("image => image.currentSrc")
    assert picture.evaluate(SHRUNK) >= 0.95  # its letters are of 11 pixels and more
    for scheme, is_light in (("light", True), ("dark", False)):
        page.emulate_media(color_scheme=scheme)
        assert (picture.evaluate(PAPER) > 128) is is_light, scheme
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1200, "height": 900})


def test_an_analyst_builds_plans_asks_and_looks(links, open_page, tmp_path: Path):
    page = open_page(viewport={"width": 1200, "height": 900})
    page.goto(links["ben"])
    page.get_by_role("link", name="Ask").click()
    page.get_by_label("What").select_option("mean")
    page.get_by_label("of the column").select_option("days")
    page.get_by_label("ward").check()
    page.locator(".expected", has_text="mean_days").wait_for()  # the plan comes as one chooses
    page.locator("pre.copy", has_text="GROUP BY 1").wait_for(state="attached")
    page.get_by_label("SQL", exact=True).first.check()
    sql = page.locator("textarea")
    assert sql.input_value().startswith('SELECT "ward", AVG("days")')
    sql.fill("SELECT w")
    page.get_by_role("option", name="ward").wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert sql.input_value() == "SELECT ward"
    page.get_by_role("button", name="days", exact=True).click()
    assert sql.input_value() == "SELECT ward days"  # where the cursor is
    page.get_by_label("Build").check()
    page.get_by_text("Write a condition").click()
    page.get_by_label("Where").fill("aeg >= 65")
    mistake = page.locator(".slot[data-field=where] .problem")
    mistake.wait_for()
    assert "no column 'aeg'" in mistake.inner_text()
    mistake.get_by_role("button", name="age").click()
    page.locator("#where[value='age >= 65']").wait_for()
    page.evaluate(NOTE_CLOCK)
    page.get_by_role("button", name="Ask, for ε 0.5 of your ε 5").click()
    page.get_by_role("heading", name="Mean of days by ward, where age >= 65").wait_for()
    assert page.evaluate("sessionStorage.clock").startswith("The answer leaves at ")
    assert page.get_by_role("row").count() >= 6
    assert "± 95 %" in page.get_by_role("table").inner_text()
    picture = page.locator("figure img")
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 200
    draw(page, "answer")
    look_on_a_phone(page)
    with page.expect_download() as downloading:
        page.get_by_role("link", name="CSV").click()
    downloading.value.save_as(tmp_path / "answer.csv")
    assert (tmp_path / "answer.csv").read_text().startswith("ward,mean_days,")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A server without a table, beside a file with rows: its address and the first curator's token."""
    people = 4_000
    rows = {"patient": [*range(people)] * 2, "ward": ["east", "west", "north", RUNS] * (people // 2)}
    rows["days"] = [1, 2, 3, 4, 5] * (people * 2 // 5)
    pq.write_table(pa.table(rows), tmp_path / "stays.parquet")
    command = "from tacit.cli.app import main; main(['serve', '--port', '0', '--sources', '.', '--hold', '500ms'])"
    server = subprocess.Popen([sys.executable, "-c", command], stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    try:
        server.stdout.readline()  # there was no catalog: it made one
        token = server.stdout.readline().split()[-1]
        yield server.stdout.readline().split()[-1], token
    finally:
        server.terminate()
        server.wait(60)
        server.stdout.close()


def signed_in(page, address: str, token: str):
    page.goto(address)
    page.get_by_label("Token").fill(token)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Tables").wait_for()


def test_a_stranger_declares_a_table_lets_an_analyst_in_and_there_is_a_first_answer(served, open_page):
    address, token = served
    curator = open_page(viewport={"width": 1200, "height": 900})
    signed_in(curator, address, token)
    curator.get_by_role("link", name="Declare the first table").click()
    curator.get_by_label("Source").fill("stays.parquet")
    curator.get_by_role("button", name="Read its columns").click()
    curator.get_by_label("Column of people").select_option("patient")
    curator.get_by_label("groups of ward").fill(f"east, west, north, {RUNS}")
    curator.get_by_label("ε", exact=True).fill("4")
    curator.get_by_role("button", name="Declare, for life").click()
    curator.get_by_text("'stays' is declared").wait_for()
    curator.get_by_label("Name").fill("ben")
    curator.get_by_label("Why, for the record").fill("the ward study")
    curator.get_by_role("button", name="Let them in").click()
    given = curator.locator("#token").inner_text()

    analyst = open_page(viewport={"width": 360, "height": 740})
    signed_in(analyst, address, given)
    analyst.get_by_role("link", name="Ask").click()
    analyst.get_by_label("ward", exact=True).check()
    analyst.get_by_label("Spend ε").fill("1")
    analyst.get_by_role("button", name="Ask, for ε 1 of").click()
    analyst.get_by_role("heading", name="Number of rows by ward").wait_for()
    assert analyst.locator("figure img").evaluate("image => image.decode().then(() => image.naturalWidth)") > 200
    assert analyst.evaluate("document.documentElement.scrollWidth <= window.innerWidth")  # nothing sticks out
    assert RUNS in analyst.get_by_role("table").inner_text()
    counts = analyst.locator("tbody td[data-name=count]").all_inner_texts()
    counted = [int(count.replace(",", "")) for count in counts]
    assert len(counted) == 4
    assert all(abs(each - 2_000) < 500 for each in counted)  # two rows a person at ε = 1: a chance of e^-100

    analyst.get_by_text("Save", exact=True).click()
    analyst.get_by_label("Name").fill(RUNS)
    analyst.get_by_role("button", name="Save to the page").click()
    analyst.get_by_role("link", name=RUNS).wait_for()
    analyst.get_by_role("link", name="Ask something like it").click()
    analyst.get_by_text("Ask the curator for more budget").click()
    analyst.get_by_label("ε more").fill("1")
    analyst.get_by_label("Why, for the record").fill(f"a second study {RUNS}")
    analyst.get_by_role("button", name="Ask for it").click()
    curator.get_by_role("link", name="Tables").click()
    draw(curator, "requests")
    curator.get_by_role("button", name="Grant: ε 5 in all for all people together").click()
    curator.get_by_text("from now on").wait_for()
    curator.get_by_role("link", name="Answers").click()
    curator.get_by_role("link", name="Number of rows by ward").click()
    curator.get_by_text("Share by a link").click()
    curator.get_by_label("Why, for the record").fill("for the board")
    curator.get_by_role("button", name="Make a link").click()
    stranger = open_page(viewport={"width": 1200, "height": 900})
    stranger.goto(curator.locator("#link").inner_text())
    stranger.get_by_role("heading", name="Number of rows by ward").wait_for()
    assert RUNS in stranger.get_by_role("table").inner_text()
    assert not stranger.context.cookies()
    curator.get_by_role("link", name="Tables").click()
    curator.get_by_role("button", name="Revoke").click()
    curator.get_by_text("Done, and in the ledger").wait_for()
    assert stranger.goto(stranger.url).status == 404
    curator.get_by_role("link", name="Ledger").click()
    curator.get_by_role("button", name="Verify the chain").click()
    curator.get_by_text("The chain is whole").wait_for()
    assert "ben" in curator.get_by_role("row", name="SELECT").inner_text()
    curator.get_by_role("link", name="Tables").click()
    curator.get_by_role("link", name="Budgets").click()
    curator.get_by_label("For", exact=True).select_option("ben")
    curator.get_by_label("ε", exact=True).fill("2")
    curator.get_by_label("Why, for the record").fill("no more than half")
    curator.get_by_role("button", name="Preview").click()
    curator.get_by_role("heading", name="Preview of the budget").wait_for()
    draw(curator, "grants-what-it-buys")
    curator.get_by_role("button", name="Set this budget from now on").click()
    curator.get_by_text("Done, and in the ledger").wait_for()
    analyst.get_by_role("link", name="Answers").click()
    analyst.get_by_role("link", name="Number of rows by ward").first.click()
    analyst.get_by_role("heading", name="Number of rows by ward").wait_for()
    assert analyst.locator("td.interval").evaluate_all(INSIDE)
    with analyst.expect_download() as downloading:
        analyst.get_by_role("link", name="Certificate").click()
    assert "certificate" in downloading.value.suggested_filename


SENT = "([url, body]) => fetch(url, {method: 'POST', mode: 'no-cors', credentials: 'include', body}).catch(() => 0)"
SHIFTS = """() => new Promise((done) => {
  let sum = 0;
  const add = (list) => { for (const each of list.getEntries()) sum += each.value; };
  new PerformanceObserver(add).observe({ type: "layout-shift", buffered: true });
  setTimeout(() => done(sum), 500);
})"""


@pytest.mark.smoke
def test_a_question_is_asked_by_keys_alone(links, open_page, signed_in_curator):
    page = open_page(viewport={"width": 800, "height": 900})
    signed_in_curator(page)

    def tab_to(selector: str) -> None:
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("selector => document.activeElement.matches(selector)", selector):
                outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline != "none", selector  # where one is can be seen
                return
        raise AssertionError(selector)

    tab_to("a.button.main")
    page.keyboard.press("Enter")
    page.get_by_label("Spend ε").wait_for()
    tab_to("input[name=by][value=ward]")
    page.keyboard.press("Space")
    tab_to("#epsilon")
    page.keyboard.type("0.4")  # what was there is selected
    page.get_by_role("button", name="Ask, for ε 0.4 of").wait_for()
    tab_to("#ask-button")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Number of rows by ward").wait_for()
    shifts = page.evaluate(SHIFTS)
    assert shifts < 0.01  # the picture's place is kept


def test_a_question_is_planned_and_asked_without_scripts(links, open_page, signed_in_curator):
    page = open_page(java_script_enabled=False)
    signed_in_curator(page)
    page.get_by_role("link", name="Ask").click()
    page.get_by_role("button", name="Add a number").click()
    assert page.get_by_label("What").count() == 2
    page.get_by_role("button", name="Remove the last").click()
    page.get_by_label("Spend ε").fill("0.3")
    page.get_by_role("button", name="Show the plan, free").click()
    page.get_by_role("button", name="Ask, for ε 0.3 of").click()
    page.locator(".closing").wait_for()


def test_a_page_of_another_site_asks_nothing(links, open_page, signed_in_curator):
    page = open_page(listens=False)  # the browser says what it forbids
    signed_in_curator(page)
    address = links["ada"].partition("/sign-in")[0]
    page.goto(f"{address}/ledger")
    before = page.locator(".aside").inner_text()
    given = {"what": "count", "epsilon": 1, "key": "k"}
    fields = "".join(f"<input name={name} value={value}>" for name, value in given.items())
    for other in ("about:blank", address.replace("127.0.0.1", "localhost") + "/static/tacit.svg"):
        page.goto(other)
        if other == "about:blank":
            page.set_content(f"<form method=post action={address}/tables/visits/ask>{fields}</form>")
            page.evaluate("document.forms[0].submit()")
            page.wait_for_url("**/sign-in")  # the cookie stayed at home
        page.evaluate(SENT, [f"{address}/api/v1/tables/visits/questions", '{"sql": "SELECT COUNT(*) FROM visits"}'])
    page.goto(f"{address}/ledger")
    assert page.locator(".aside").inner_text() == before


# Every page, as a curator sees it; what an analyst sees is a part of it.
EVERYWHERE = (
    "/",
    "/sign-in",
    "/tables/visits",
    "/tables/visits?mode=sql",
    "/tables/visits?where=x+%3D",
    "/history",
    "/saved",
    "/people",
)
EVERYWHERE += (
    "/ledger",
    "/ledger/1",
    "/declare",
    "/sql",
    "/tables/visits/grants?epsilon=1",
    "/tables/visits/facts",
    "/theory",
    "/theory/reconstruction",
    "/theory/odds",
    "/nowhere",
)
DRAWN_PAGES = ("/", "/tables/visits", "/tables/visits?mode=sql", "/people", "/ledger", "/declare")
PAGE_BYTES_MAX = 60_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_accessible_fits_its_width_and_is_small(scheme, signed_in_curator, open_page):
    from axe_playwright_python.sync_playwright import Axe

    page = open_page(color_scheme=scheme)
    sent: list[int] = []
    page.on("response", lambda reply: sent.append(len(reply.body())) if "svg" not in reply.url else None)
    signed_in_curator(page)
    for path in EVERYWHERE if scheme == "light" else EVERYWHERE[1:7:2]:
        del sent[:]
        page.goto(page.url.split("/", 3)[0] + "//" + page.url.split("/", 3)[2] + path)
        page.wait_for_load_state("networkidle")
        assert sum(sent) <= PAGE_BYTES_MAX, path
        found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]})
        assert not found.response["violations"], (path, found.generate_report())
        if scheme == "light" and path in DRAWN_PAGES:
            draw(page, path.strip("/") or "home")
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), (path, width)


def test_a_picture_of_the_theory_follows_its_inputs(links, open_page):
    address = links["ben"].partition("/sign-in")[0] + "/theory/odds"  # nobody signs in
    page = open_page(viewport={"width": 400, "height": 800})
    page.goto(address)
    first = page.locator("#live img").get_attribute("src")
    page.get_by_label("ε").press("ArrowRight")
    page.locator("#live img[src*='epsilon=1.1']").wait_for()
    assert first not in page.content()
    assert "50.0 % → 75.1 %" in page.locator("#live dl").inner_text()
    assert page.locator("#live img").evaluate("image => image.decode().then(() => image.naturalWidth)") > 200
    assert page.get_by_role("button", name="Copy").count() == 1
    assert "epsilon=1.1" in page.url
    without = open_page(java_script_enabled=False)
    without.goto(f"{address}?epsilon=2")
    without.get_by_label("belief").press("ArrowLeft")
    without.get_by_role("button", name="Draw again").click()
    without.locator("#live img[src*='epsilon=2&belief=49']").wait_for()
