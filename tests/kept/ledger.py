"""Kept ledger: every byte that a scripted history writes, at one time and under one signing key.

A ledger is for ever, so nothing here may change but by adding: an entry that reads otherwise, or a table of another
layout, is a ledger that the version before cannot read, or one of its ledgers that this version cannot.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from fractions import Fraction

import tacit
from tacit.ledger import Ledger, RegisteredTable, Reservation, open_ledger
from tacit.privacy.loss import (
    ExponentialChoice,
    GaussianNoise,
    KeyThreshold,
    LaplaceNoise,
    PureChoice,
    StaircaseNoise,
)
from tests.kept.stage import World, run_tacit, section, standing_still, visits

PLACE = "ledger.db"
DECLARATION = {"unit": "person_id", "neighbours": "add-remove", "columns": ["income"], "version": 1}
TENTH = Fraction(1, 10)
EVENTS = {
    "Laplace": [LaplaceNoise(Fraction(20), Fraction(2))],
    "Gaussian, many cells": [GaussianNoise(Fraction(40), Fraction(9, 2))],
    "Gaussian, one cell": [GaussianNoise(Fraction(31, 2), Fraction(4), scalar=True)],
    "staircase": [StaircaseNoise(TENTH, Fraction(3), Fraction(1))],
    "choices": [PureChoice(TENTH), ExponentialChoice(TENTH)],
    "keys": [LaplaceNoise(Fraction(30), Fraction(1)), KeyThreshold(Fraction(1, 10**9))],
}


def text() -> str:
    """Return the kept ledger."""
    with standing_still() as world:
        with open_ledger(PLACE) as ledger:
            parts = [section("layout", *_rows("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"))]
            for title in _history(ledger, world):
                parts.append(section(f"after: {title}", *_written_since(parts), *_head()))
        parts += [section("state", *_rows("SELECT * FROM tacit_state ORDER BY name"))]
        parts += [section("nodes", *_rows("SELECT * FROM tacit_node ORDER BY place"))]
        parts += [section(f"tacit {' '.join(words)}", run_tacit(*words, "--ledger", PLACE)) for words in COMMANDS]
    return "\n".join(parts)


COMMANDS = (
    ("ledger", "verify"),
    ("ledger", "show"),
    ("budget",),
    ("certificate", "5"),
)


def _history(ledger: Ledger, world: World) -> Iterator[str]:
    """Write one entry of every kind, and yield what was just done."""
    budget = tacit.epsilon(3, delta="1e-6")
    pay = ledger.register(name="pay", declaration=DECLARATION, source="pay.parquet", marks=["a", "b"], budget=budget)
    yield "a table is registered"
    for title, events in EVENTS.items():
        asked = tacit.epsilon("0.2", delta="1e-7") if "Gaussian" in title else None
        _ask(ledger, pay, title, events=events, asked=asked)
        yield f"a charge and its answer, {title}"
    ledger.reserve(pay, [PureChoice(TENTH)], question_key="dead", request_id="r1", analyst="ann")
    yield "a charge without an answer, by an analyst"
    try:
        ledger.reserve(pay, [PureChoice(Fraction(9))], question_key="too much", analyst="bob")
    except tacit.BudgetExceeded:
        yield "a refusal"
    ledger.grant("pay", tacit.epsilon(1), analyst="*", period="day", reason="a trial")
    yield "a grant for each analyst and day"
    ledger.grant("pay", tacit.epsilon(4, delta="1e-3"), population=50, accept_large_delta=True, reason="few people")
    yield "a grant with a large delta"
    _ask(ledger, pay, "ann's", analyst="ann")
    world.now += timedelta(days=1)
    _ask(ledger, pay, "ann's", analyst="ann", request_id="r2")
    yield "the same question by an analyst, again on the next day"
    ledger.register(
        name="bonus", declaration=DECLARATION | {"version": 2}, source="bonus.parquet", same_people_as="pay"
    )
    yield "another table of the same people"
    ledger.register(name="flat", declaration=DECLARATION, source=None, budget=tacit.rho("0.1", delta="1e-7"))
    yield "a table under a budget in rho"
    world.now += timedelta(days=500)
    ledger.correct_clock("back from a long rest")
    yield "the clock was set right"
    question = visits(ledger).group_by("urgent").agg(n=tacit.count(), age=tacit.mean("age"))
    world.again()
    question.answer(epsilon=1, analyst="ann", request_id="r3")
    yield "a question of a table, answered"
    ledger.verify()


def _ask(
    ledger: Ledger, table: RegisteredTable, question: str, *, events: object = (PureChoice(TENTH),), **words: object
) -> None:
    reserved = ledger.reserve(table, events, question_key=question, **words)
    if isinstance(reserved, Reservation):
        reserved.commit(json.dumps({"answer to": question}))


def _written_since(parts: list[str]) -> list[str]:
    """Return the entries that no part shows yet."""
    return [row for row in _rows("SELECT * FROM tacit_entry ORDER BY number") if not any(row in part for part in parts)]


def _head() -> list[str]:
    return [f"head: {row}" for row in _rows("SELECT * FROM tacit_head")]


def _rows(select: str) -> list[str]:
    with closing(sqlite3.connect(PLACE)) as opened:
        return [" | ".join("-" if cell is None else str(cell) for cell in row) for row in opened.execute(select)]
