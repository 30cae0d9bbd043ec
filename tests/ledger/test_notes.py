"""Notes: saved answers, links, requests: entries that charge nothing and can be ended."""

from datetime import timedelta

import pytest

from tacit.errors import InvalidParameter
from tests.ledger.test_people import clock, ledger  # noqa: F401 - fixtures


def share(ledger, clock, days=7):  # noqa: F811
    until = clock.now + timedelta(days=days)
    return ledger.add_link(name="ada", table="visits", answer=12, until=until, reason="the report")


def test_a_link_is_found_by_its_very_secret_until_its_day(ledger, clock):  # noqa: F811
    link = share(ledger, clock)
    note = ledger.linked(link)
    assert (note.about["answer"], note.name, note.holds) == (12, "ada", True)
    for other in (link[:-1], link + "A", link.upper(), link[:17], "", "x", "0" * 16 + link[16:]):
        assert ledger.linked(other) is None
    assert not any(link[17:] in entry.body for entry in ledger.entries())
    clock.now += timedelta(days=7)
    assert ledger.linked(link) is None
    assert ledger.notes("link") == ()


def test_an_ended_note_stays_ended_and_the_chain_verifies(ledger, clock):  # noqa: F811
    link = share(ledger, clock)
    ledger.end_note(link[:16], name="eve", reason="no longer needed")
    assert ledger.linked(link) is None
    with pytest.raises(InvalidParameter, match="no such open note"):
        ledger.end_note(link[:16], name="eve")
    id = ledger.add_note("request", name="ben", table="visits", about={"epsilon": "1"}, reason="a second round")
    assert [note.id for note in ledger.notes("request")] == [id]
    assert ledger.verify().kinds["note"] == 3


def test_one_person_has_a_limited_number_of_open_requests(ledger):  # noqa: F811
    ask = {"table": "visits", "about": {"epsilon": "1"}, "reason": "more"}
    ids = [ledger.add_note("request", name=name, **ask) for name in ("ben", "Ben", "ben", "ben", "ben", "cleo")]
    with pytest.raises(InvalidParameter, match="5 open notes of this kind"):
        ledger.add_note("request", name="BEN", **ask)
    ledger.end_note(ids[0], name="ada")
    ledger.add_note("request", name="ben", **ask)


def test_a_link_ends_in_the_future(ledger, clock):  # noqa: F811
    with pytest.raises(InvalidParameter, match="must be in the future"):
        share(ledger, clock, days=0)
