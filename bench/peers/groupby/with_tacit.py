"""Tacit: one question, bounded, charged to a ledger on disk, noise on every cell; the kernel is compiled beforehand.

Told "sql" for its noise, it leaves the kernel out, as it does until that is compiled.
"""

import json
import os
import sys
from itertools import count
from pathlib import Path

from asked import DELTA, EPSILON, HIGH, ITEMS_PER_PERSON, LOW, ROWS_PER_ITEM, columns, main

if json.loads(sys.argv[1])["noise"] == "sql":
    os.environ["TACIT_KERNEL"] = "off"

import tacit
from tacit.engine.kernel import compiled

QUESTION = "SELECT item, COUNT(amount) AS n, SUM(amount) AS total, AVG(amount) AS mean FROM orders GROUP BY item"
TURNS = count()
TABLES = {}


def answer(asked):
    """Answer once more, from the file."""
    return told(opened(asked).sql(QUESTION))


def told(question):
    """Return what gives the columns of an answer; a question asked again would be free, so epsilon is a hair off."""
    frame = question.answer(epsilon=EPSILON - next(TURNS) / 10**9, delta=DELTA).to_arrow()
    return lambda: columns(*(frame[name].to_pylist() for name in ("item", "n", "total", "mean")))


def opened(asked):
    """Return the protected table, declared once."""
    place = asked["path"], asked["public"]
    if place not in TABLES:
        TABLES[place] = tacit.table(asked["path"], **declared(asked, len(TABLES)))
    return TABLES[place]


def declared(asked, number):
    """Return what is declared of the table, wherever its rows are; each table has a ledger of its own."""
    keys = {"item": {"keys": range(asked["items"])}} if asked["public"] else {}
    return {
        "unit": "user_id",
        "name": "orders",
        "budget": tacit.epsilon(1000, delta=1e-3),  # for many repeats, each of which gets epsilon 1, delta 1e-6
        "accept_large_delta": True,
        "ledger": Path(asked["path"]).parent / f"ledger-{os.getpid()}-{number}.db",
        "rows_per_unit": ROWS_PER_ITEM,
        "groups_per_unit": ITEMS_PER_PERSON,
        "columns": {"amount": {"between": (LOW, HIGH)}, **keys},
    }


def warm_up(asked):
    """Compile the kernel, and answer once."""
    if asked["noise"] != "sql":
        compiled.compile_now()
    answer(asked)


if __name__ == "__main__":
    main(answer, warm_up=warm_up)
