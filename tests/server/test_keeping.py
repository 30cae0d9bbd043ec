"""Saved answers, links without a sign-in, and requests for more budget, on the pages."""

import re
from html import unescape

import pytest

from tacit.server import Visits
from tests.server.test_pages import HERE, Browser, asked

ODD = "<img src=x onerror=alert(1)>"


@pytest.fixture
def people(house):
    """Browsers of a curator and an analyst who are in the ledger, and of a stranger."""
    for name, role in (("ada", "curator"), ("ben", "analyst")):
        house.desk.ledger.add_person(name, role=role, reason="test")
    found = [Browser(house, Visits(b"k" * 32)) for _ in range(3)]
    found[0].sign_in("tacit_ada")
    found[1].sign_in("tacit_ben")
    return found


def number_of(browser, reply) -> int:
    page = browser.send("GET", reply.headers["location"]).text
    return int(re.findall(r'href="/history/(\d+)/answer.certificate"', page)[0])


def send(browser, path, page="/", **given):
    return browser.send("POST", path, data=browser.form(page) | given, headers=HERE)


def test_an_answer_is_saved_under_a_name_that_is_text_and_looked_at_for_free(people):
    ada, ben, _ = people
    number = number_of(ben, asked(ben))
    ledger = ben.house.desk.ledger
    spent = ledger.spent(ledger.table("visits"))
    page = send(ben, "/saved", answer=number, title=ODD).text
    assert "<img src=x" not in page
    assert ODD in unescape(page)
    assert f"/history/{number}/answer.svg" in page
    assert ledger.spent(ledger.table("visits")) == spent
    assert ODD not in unescape(ada.send("GET", "/saved").text)  # each person has their own
    other = number_of(ada, asked(ada, epsilon="1"))
    assert send(ben, "/saved", answer=other, title="x").status_code == 404  # an answer of another person
    id = ledger.notes("saved")[0].id
    assert send(ada, "/notes/end", id=id).status_code == 404
    assert send(ben, "/notes/end", id=id).status_code == 200
    assert ledger.notes("saved") == ()


def test_a_curator_shares_one_answer_by_a_link_that_is_shown_once_and_can_be_revoked(people):
    ada, ben, stranger = people
    number = number_of(ben, asked(ben, what="mean", of="days", by="ward"))
    assert send(ben, f"/history/{number}/share", days="7", reason="x").status_code == 403
    assert send(ada, f"/history/{number}/share", days="7", reason="").status_code == 422
    made = send(ada, f"/history/{number}/share", days="7", reason=ODD).text
    link = re.findall(r"https://test(/shared/[\w-]+)", made)[0]
    page = stranger.send("GET", link)
    assert (page.status_code, "<h1>Mean of days by ward</h1>" in page.text) == (200, True)
    assert not re.search(r'href="/(?:history|tables|people|ledger)', page.text)
    assert stranger.send("GET", f"{link}/answer.svg").headers["content-type"] == "image/svg+xml"
    assert stranger.send("GET", f"{link}/answer.csv").text.startswith("ward,mean_days")
    assert stranger.send("GET", f"{link}/answer.certificate").status_code == 404
    home = ada.send("GET", "/").text
    assert "<img src=x" not in home
    assert ODD in unescape(home)
    id = link.rpartition("/")[2][:16]
    assert send(ben, "/notes/end", id=id).status_code == 404
    assert send(ada, "/notes/end", id=id, reason="revoked").status_code == 200
    assert stranger.send("GET", link).status_code == 404
    assert stranger.send("GET", f"{link}/answer.svg").status_code == 404


def test_a_link_ends_with_the_access_of_its_maker(people):
    ada, _, stranger = people
    number = number_of(ada, asked(ada))
    link = re.findall(r"(/shared/[\w-]+)", send(ada, f"/history/{number}/share", days="7", reason="x").text)[0]
    assert stranger.send("GET", link).status_code == 200
    ada.house.desk.ledger.add_person("ada", role="curator", tables=["pay"], reason="another table")
    assert stranger.send("GET", link).status_code == 404


def test_a_request_for_more_is_granted_with_one_button_that_says_what_it_sets(people):
    ada, ben, _ = people
    ada.send("GET", "/")
    ledger = ada.house.desk.ledger
    send(ada, "/tables/visits/grants", analyst="ben", epsilon="2", delta="", reason="the study")
    assert send(ben, "/tables/visits/request", epsilon="-1", reason="x").status_code == 422
    assert "see the request for ε 1.5 more" in send(ben, "/tables/visits/request", epsilon="1.5", reason=ODD).text
    home = ada.send("GET", "/").text
    assert "Grant: ε 3.5 in all for ben" in home
    assert "<img src=x" not in home
    (note,) = ledger.notes("request")
    assert send(ben, "/requests/grant", id=note.id).status_code == 403
    assert "ε = 3.5 for ben" in send(ada, "/requests/grant", id=note.id).text
    assert send(ada, "/requests/grant", id=note.id).status_code == 404  # once
    budget = next(entry for entry in reversed([*ledger.entries()]) if entry.kind == "budget")
    assert budget.record["reason"].startswith(f"asked for by ben: {ODD}")
    assert "request for ε = 1.5 more" in ada.send("GET", "/ledger").text
