"""Verifying recomputes everything that follows from the entries, on every store, and names what does not follow."""

import json
from contextlib import closing, contextmanager
from fractions import Fraction

import psycopg
import pytest

from tacit.errors import LedgerError
from tacit.ledger import open_ledger
from tacit.ledger.sqlite import connect_to_file
from tacit.ledger.status import entry_line
from tacit.ledger.verify import History
from tacit.privacy.loss import epsilon
from tacit_gauntlet.ledger.damage import damage_at_every
from tacit_gauntlet.stage.ledger import TENTH, ask, charge

FORGERIES = {
    "the chain is broken at entry 4": "UPDATE tacit_entry SET body = REPLACE(body, '1/10', '1/90') WHERE number = 4",
    "running total": "UPDATE tacit_state SET value = REPLACE(value, '1/5', '0') WHERE name LIKE 'account%'",
    "running total ": "DELETE FROM tacit_state WHERE name LIKE 'account%'",
    "running total  ": "UPDATE tacit_state SET value = REPLACE(value, 'charges\":2', 'charges\":1')",
    "pointer": "UPDATE tacit_state SET value = '[1,\"x\"]' WHERE name LIKE 'table%'",
    "pointer ": "DELETE FROM tacit_state WHERE name LIKE 'source%' OR name LIKE 'people%'",
    "at a wrong place in the state": "UPDATE tacit_state SET place = '0' WHERE name LIKE 'people%'",
    "the tree": "INSERT INTO tacit_node (place, children) VALUES ('0', '0')",
    "is out of order": "UPDATE tacit_entry SET request = NULL WHERE number = 4",
    "is out of order ": "UPDATE tacit_entry SET question = 'other' WHERE number = 5",
    "does not follow": "UPDATE tacit_head SET time = '2000'",
    "does not follow ": "UPDATE tacit_head SET ledger = 'another'",
    "signature": "UPDATE tacit_head SET root = hash",
    "the chain is broken at entry 5": "DELETE FROM tacit_entry WHERE number = 5",
}


@contextmanager
def behind_its_back(where):
    """Yield a way to change the tables without the ledger."""
    if where.startswith("postgresql"):
        with psycopg.connect(where, autocommit=True) as link:
            yield link
    else:
        with closing(connect_to_file(where)) as connection:
            yield connection


def test_a_whole_ledger_verifies_and_says_what_it_holds(ledger, table):
    ask(ledger, table, "one", analyst="ann")
    ask(ledger, table, "two", epsilon=Fraction(2))
    charge(ledger, table, "three")
    found = ledger.verify()
    assert found.kinds == {"ledger": 1, "budget": 1, "table": 1, "charge": 2, "answer": 1, "refusal": 1}
    assert found.entries == ledger.length() == 7
    assert len(found.hash) == 64


@pytest.mark.parametrize("fault", FORGERIES)
def test_a_change_behind_its_back_is_found_and_named(where, fault):
    with open_ledger(where) as ledger:
        table = ledger.register(name="pay", declaration={"unit": "id"}, budget=epsilon(1))
        for question in ("one", "two"):
            ask(ledger, table, question, request_id=question)
    with behind_its_back(where) as tables:
        tables.execute(FORGERIES[fault])
    with pytest.raises(LedgerError, match=fault.strip()), open_ledger(where) as ledger:
        ledger.verify()


def test_a_head_that_was_moved_is_refused_when_the_ledger_is_opened(where):
    with open_ledger(where) as ledger:
        ledger.register(name="pay", declaration={"unit": "id"}, budget=epsilon(1))
    for forgery in (
        "UPDATE tacit_head SET number = 2",
        "UPDATE tacit_head SET signature = 'ab'",
        "DELETE FROM tacit_entry",
    ):
        with behind_its_back(where) as tables:
            saved = list(tables.execute("SELECT * FROM tacit_head"))[0]
            tables.execute(forgery)
            with pytest.raises(LedgerError, match="does not verify"):
                open_ledger(where)
            tables.execute(f"UPDATE tacit_head SET number = {saved[2]}, signature = '{saved[4]}'")


def test_a_replaced_ledger_is_noticed_while_it_is_open(where):
    with open_ledger(where) as ledger:
        table = ledger.register(name="pay", declaration={"unit": "id"}, budget=epsilon(1))
        with behind_its_back(where) as tables:
            tables.execute("UPDATE tacit_head SET ledger = 'another', hash = 'another'")
        with pytest.raises(LedgerError, match=r"replaced by another|went back"):
            ask(ledger, table, "q")


def test_a_total_that_is_no_number_is_damage_and_not_a_crash(where):
    with open_ledger(where) as ledger:
        table = ledger.register(name="pay", declaration={"unit": "id"}, budget=epsilon(1))
        ask(ledger, table, "q")
    with behind_its_back(where) as tables:
        tables.execute("UPDATE tacit_state SET value = 'much' WHERE name LIKE 'account%'")
    with open_ledger(where) as ledger, pytest.raises(LedgerError, match="tacit ledger verify"):
        ask(ledger, table, "more")


def entries_of(ledger):
    return [(e.number, e.body, e.hash, e.request, e.question, e.answers) for e in ledger.entries()]


def test_a_replay_refuses_a_charge_beyond_its_budget():
    with open_ledger(":memory:") as ledger:
        table = ledger.register(name="pay", declaration={"unit": "id"}, budget=epsilon(1))
        for turn in range(10):
            charge(ledger, table, str(turn))
        ledger.grant("pay", epsilon(2))
        charge(ledger, table, "more")
        entries = entries_of(ledger)
    replay = History()
    for columns in entries:
        replay.take(columns)
    assert replay.accounts()[json.dumps([table.cohort, None, None], separators=(",", ":"))].spent.epsilon == 11 * TENTH


def test_without_the_grant_the_same_charge_is_beyond_its_budget(monkeypatch):
    from tacit.accounting.filter import BudgetRule

    with open_ledger(":memory:") as ledger:
        table = ledger.register(name="pay", declaration={"unit": "id"}, budget=epsilon(1))
        monkeypatch.setattr(BudgetRule, "admits", lambda self, total: True)
        charge(ledger, table, "too much", epsilon=Fraction(2))
        monkeypatch.undo()
        with pytest.raises(LedgerError, match="beyond its budget"):
            ledger.verify()


@pytest.mark.slow
def test_a_flip_of_any_byte_is_found_or_changes_nothing():
    assert damage_at_every(1).passed


DEEP = '{"kind":"override","reason":' + "[" * 100_000 + "]" * 100_000 + ',"time":"2026-11-15T08:00:00.000000Z"}'
TIMED = '"time":"2026-11-15T08:00:00.000000Z"'


@pytest.mark.parametrize(
    "body",
    [
        DEEP,
        DEEP.replace("override", "charge"),
        '{"answer":"","charge":' + "[" * 100_000,
        "[]",
        "7",
        f'{{"kind":["table"],{TIMED}}}',
        f'{{"kind":"override","reason":{"9" * 5000},{TIMED}}}',
        f'{{"kind":"charge","events":[],"epsilon":"1/0","rho":"0","delta":"0","delta_noise":"0",{TIMED}}}',
    ],
)
def test_an_entry_that_was_never_written_is_named_whoever_signed_it(tmp_path, body):
    with open_ledger(tmp_path / "ledger.db") as ledger:
        ledger._group_commit.submit(lambda draft: draft.add(body, None, None, None))
        with pytest.raises(LedgerError, match="entry 2 cannot be read"):
            ledger.verify()
        try:
            text = entry_line(list(ledger.entries())[1], {})
        except LedgerError as error:
            text = str(error)
    assert "cannot be read" in text or "override" in text
