"""What a page refuses, and how: at amounts that fit, with ways out that a browser offers."""

import re
from html import unescape

import pytest

from tacit.errors import QueryRefused
from tacit.server.pages.ask_pages import two_digits
from tacit.server.pages.page_look import shown_refusal
from tacit.server.pages.visits import Visits
from tacit.server.problems import problem_of
from tests.server.test_pages import HERE, Browser, asked, browser  # noqa: F401 - a fixture


@pytest.fixture
def approximate(folder, open_house) -> Browser:
    """A curator's browser; the table has a budget of ε = 2 with a δ, and wards that are not listed."""
    written = (folder / "tacit.toml").read_text().replace("{ epsilon = 20 }", "{ epsilon = 2, delta = 1e-6 }")
    (folder / "tacit.toml").write_text(written.replace('[tables.visits.columns.ward]\nkeys = ["A", "B", "C"]\n', ""))
    house = open_house()
    house.desk.warm()
    found = Browser(house, Visits(b"k" * 32))
    found.sign_in("tacit_ada")
    return found


def refusal_in(page: str) -> str:
    """Return the refusal on a page, as it is read."""
    found = re.findall(r'<div class="problem" role="alert">(.*?)</div>', page, re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", found[0])).split()) if found else ""


def sent(browser: Browser, path: str, **given) -> str:  # noqa: F811
    page = path.removesuffix("/plan").removesuffix("/ask")
    return browser.send("POST", path, data=browser.form(page) | given, headers=HERE).text


def test_the_delta_of_a_grant_is_filled_in_and_lets_an_analyst_group(approximate):
    page = approximate.send("GET", "/tables/visits/grants").text
    delta = re.findall(r'name="delta" value="([^"]*)"', page)
    assert (delta, "placeholder" in page) == (["1e-6"], False)
    fields = {"analyst": "cleo", "epsilon": "1", "delta": delta[0], "reason": "study"}
    assert "Done, and in the ledger" in sent(approximate, "/tables/visits/grants", **fields)
    approximate.cookies.clear()
    approximate.sign_in("tacit_cleo")
    assert "costs ε = 0.5" in sent(approximate, "/tables/visits/plan", what="count", by="ward", epsilon="0.5")


def test_an_empty_delta_stays_empty_and_a_pure_table_offers_none(approximate, browser):  # noqa: F811
    page = sent(approximate, "/tables/visits/grants", epsilon="1", delta="", reason="study", preview="1")
    assert 'name="delta" value=""' in page
    browser.sign_in("tacit_ada")
    assert 'name="delta" value="0"' in browser.send("GET", "/tables/pay/grants").text


def test_a_refusal_names_what_a_browser_offers(approximate):
    fields = {"analyst": "cleo", "epsilon": "1", "delta": "", "reason": "study"}
    sent(approximate, "/tables/visits/grants", **fields)
    approximate.cookies.clear()
    approximate.sign_in("tacit_cleo")
    by_ward = {"what": "count", "by": "ward", "epsilon": "0.5"}
    english = refusal_in(sent(approximate, "/tables/visits/plan", **by_ward))
    assert english.endswith("Group by columns with listed groups, or ask the curator for a budget with a δ.")
    assert not re.search(r"--|tacit\.|keys=", english)


@pytest.mark.parametrize(
    ("hint", "left"),
    [
        ("give the range: --between x=0:1, or mean('x', between=(0, 1))", ""),
        ("count units with COUNT(DISTINCT who), in Python count_units(); group by others", None),
        ("have the curator grant more: tacit budget grant visits ...", ""),
        ("compare it, e.g. x > 0", "compare it, e.g. x > 0"),
        ("split the question, or use IN for a list", "split the question, or use IN for a list"),
        ("spend less, or noise='laplace'", "spend less"),
    ],
)
def test_hints_of_the_command_line_and_of_python_are_left_out(hint, left):
    shown = shown_refusal(problem_of(QueryRefused(f"no\nhint: {hint}"))).hint
    assert shown == (hint if left is None else left)


def test_the_button_offers_an_amount_that_fits(approximate):
    refused = asked(approximate, epsilon="500").text
    offered = re.findall(r'name="fix" value="epsilon=([^"]*)"', refused)
    assert offered == ["2"]  # the Gaussian amount of this budget is above 2
    mended = sent(approximate, "/tables/visits/plan", what="count", epsilon="500", fix=f"epsilon={offered[0]}")
    assert 'class="plan "' in mended  # it fits
    assert asked(approximate, epsilon="1.9").status_code == 303
    left = re.findall(r'name="fix" value="epsilon=([^"]*)"', asked(approximate, epsilon="500", where="days > 1").text)
    assert left
    assert asked(approximate, epsilon=left[0], where="days > 1").status_code == 303


def test_two_digits_are_never_more_than_the_amount():
    amounts = [0.1, 0.999, 1.0, 19.99, 3.1199999, 1e-7, 12345.6]
    assert all(float(two_digits(each)) <= each for each in amounts)
    assert [two_digits(each) for each in amounts] == ["0.1", "0.99", "1", "19", "3.1", "0.0000001", "12000"]


@pytest.mark.parametrize("written", ["0,5", "1.000,5", "1,5,", "abc", "-1", "0"])
def test_what_is_no_amount_is_refused_with_an_example(browser, written):  # noqa: F811
    browser.sign_in("tacit_ben")
    said = refusal_in(sent(browser, "/tables/visits/plan", what="count", epsilon=written))
    assert "must be" in said
    assert "Write a number such as 0.5." in said


def test_a_page_that_does_not_exist_has_the_header_of_whoever_is_signed_in(browser):  # noqa: F811
    stranger = browser.send("GET", "/nowhere")
    browser.sign_in("tacit_ben")
    for path in ("/nowhere", "/history/999999", "/tables/pay"):
        page = browser.send("GET", path)
        assert (page.status_code, "ben, " in page.text, 'href="/sign-in"' in page.text) == (404, True, False)
        assert refusal_in(page.text).startswith("there is no such")
    assert (stranger.status_code, 'href="/sign-in"' in stranger.text) == (404, True)
