"""A table of orders of which nothing but the unit and the budget is declared, and what was charged for it."""

from fractions import Fraction

import pandas as pd

import tacit

ITEMS = ["a", "b", "c"]
# 1,500 people: so many that their sizes are believed at the first try, but with probability 1e-40
ROWS = pd.DataFrame({"who": [n % 1500 for n in range(6000)], "item": [ITEMS[n % 7 % 3] for n in range(6000)]})
ROWS["x"] = range(6000)
BUDGET = tacit.epsilon(10, delta=1e-6)


def orders(ledger, *, rows=ROWS, version=1, **declared):
    usual = {"unit": "who", "name": "orders", "budget": BUDGET}
    return tacit.table(rows, version=version, ledger=ledger, **(usual | declared))


def by_item(table, **asked):
    return table.group_by("item", keys=ITEMS).count().answer(**({"epsilon": 1} | asked))


def spent(table):
    return table.session.ledger.spent(table.session.registered).epsilon or 0


def charges(table):
    """The epsilon of every charge so far, in order, with the words of those that learned."""
    entries = [entry.record for entry in table.session.ledger.entries() if entry.kind == "charge"]
    return [(Fraction(each["epsilon"]), each.get("learns", {}).get("words")) for each in entries]
