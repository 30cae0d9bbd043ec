"""Attacks on facts in a ledger: learned without a charge, read before it, or taken for facts about other people."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pyarrow as pa

from tacit import ROW
from tacit.errors import QueryRefused
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.engine import heard_steps
from tacit_gauntlet.stage.facts import keys_of_facts
from tacit_gauntlet.stage.ledger import Ledger, open_at
from tacit_gauntlet.stage.table import Question, Table, protected

ITEMS = ["a", "b", "c"]
PEOPLE = 1500  # so many that their sizes are believed at the first try, but with probability 1e-40


def rows_of(**more: Any) -> pa.Table:
    """Return people with four rows each, known by numbers and by texts."""
    n = 4 * PEOPLE
    who = [place % PEOPLE for place in range(n)]
    columns = {"who": who, "other": who, "item": [ITEMS[place % 7 % 3] for place in range(n)], "x": list(range(n))}
    return pa.table(columns | more)


def opened(book: Ledger | str, rows: pa.Table | None = None, **declared: Any) -> Table:
    """Return a table of which nothing is declared but whose rows they are."""
    usual: dict[str, Any] = {"unit": "who", "name": "orders", "ledger": book, "version": 1}
    bounds = {"rows_per_unit": None, "groups_per_unit": None}
    return protected(rows_of() if rows is None else rows, **(usual | bounds | declared))


def by_item(table: Table) -> Question:
    """Return the question that is asked again and again."""
    return table.group_by("item", keys=ITEMS).count()


@case(
    "L25",
    title="a fact is charged for before a row is read, once, and serves the same people at any epsilon",
    feature="session",
)
def facts_are_paid_for(_: Size) -> Evidence:
    wrong = []
    with open_at(":memory:") as book:
        table = opened(book)
        wrong += _may_not_learn(book, table)
        with heard_steps() as steps:
            first = by_item(table).answer(epsilon=1)
        wrong += _out_of_order(steps)
        wrong += [] if spent(table) == 1 else [f"the first question cost {spent(table)}, not 1"]
        wrong += [] if learned(book) == 1 else [f"{learned(book)} facts were learned, not one"]
        for epsilon in ("0.25", "3"):
            before = spent(table)
            by_item(opened(book)).answer(epsilon=epsilon)
            if spent(table) - before != Fraction(epsilon) or learned(book) != 1:
                wrong.append(f"at {epsilon} the fact was not reused, or not for nothing")
        before = spent(table)
        if by_item(opened(book)).answer(epsilon=1).to_dicts() != first.to_dicts() or spent(table) != before:
            wrong.append("the same question again is not free with the same numbers")
        wrong += _reused_by_others(book)
    return Evidence(not wrong, {"steps": [step.split(":")[0] for step in steps], "wrong": wrong})


def spent(table: Table) -> Fraction:
    """Return the epsilon that a table has spent."""
    return Fraction(table.session.ledger.spent(table.session.registered).epsilon or 0)


def learned(book: Ledger) -> int:
    """Return how many facts a ledger has charged for."""
    return sum("learns" in entry.record for entry in book.entries() if entry.kind == "charge")


def _may_not_learn(book: Ledger, table: Table) -> list[str]:
    """Without leave to learn, nothing is read, charged or learned."""
    with heard_steps() as steps:
        try:
            by_item(table).answer(epsilon=1, learn=False)
        except QueryRefused:
            return [] if not steps and spent(table) == 0 and not learned(book) else ["learn=False has learned"]
    return ["learn=False was answered"]


def _out_of_order(steps: list[str]) -> list[str]:
    """Every reading of rows has a charge of its own before it, and is recorded before the next one."""
    plain = [step.split(":")[0] for step in steps]
    order = [step for place, step in enumerate(plain) if place == 0 or plain[place - 1] != step]
    return [] if order == ["charge", "read", "noise", "record"] * 2 else [f"the order is {order}"]


def _reused_by_others(book: Ledger) -> list[str]:
    """Return who was answered by a fact about other people, or whose facts go by the same key as theirs."""
    wrong = []
    texts = [str(name) for name in rows_of().column("who").to_pylist()]
    others: dict[str, Callable[[], Table]] = {
        "units of another type": lambda: opened(book, rows_of(who=texts), version=2),
        "another table": lambda: opened(book, name="returns"),
        "a frame that nobody named": lambda: opened(book, name="found", version=None),
        "another such frame": lambda: opened(book, rows_of(x=[0] * (4 * PEOPLE)), name="found", version=None),
    }
    for name, other in others.items():
        before = learned(book)
        by_item(other()).answer(epsilon=1)
        wrong += [] if learned(book) == before + 1 else [f"{name}: answered by a fact about others"]
    return wrong + _same_keys()


def _same_keys() -> list[str]:
    """Return whose facts go by the same keys as those of the usual table."""
    texts = [str(name) for name in rows_of().column("who").to_pylist()]
    usual = keys_of_facts(by_item(opened(":memory:")))
    others = {
        "another unit": by_item(opened(":memory:", unit="other")),
        "rows as units": by_item(opened(":memory:", unit=ROW)),
        "units of another type": by_item(opened(":memory:", rows_of(who=texts))),
        "replaced units": by_item(opened(":memory:", neighbours="replace")),
        "other rows": by_item(opened(":memory:").where("x > 5")),
        "another key": opened(":memory:").group_by("x", keys=[1, 2]).count(),
    }
    return [f"{name}: facts of the same key" for name, other in others.items() if usual & keys_of_facts(other)]
