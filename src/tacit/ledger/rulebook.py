"""The rule book: the tables and budgets in force, each read when it is asked for.

The state has, for every name, source and budget, a pointer to the entry that declares it: its number and its hash.
Only what a question needs is read, however many tables, analysts and budgets there are.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from tacit.ledger.budget import EACH, Budget, budget_from
from tacit.ledger.chain import canonical
from tacit.ledger.entry import Entry, Record
from tacit.privacy.loss import Loss

# What the names in the state begin with.
NAME = "name "
TABLE = "table "
SOURCE = "source "
MEMBER = "people "
BUDGETS = "budgets "
FIRST = "first "

Get = Callable[[str], str | None]
Pointed = Callable[[int, str], Entry]


@dataclass(frozen=True)
class Declared:
    """A table as last declared: the entry that says so, and what it says."""

    entry: int
    id: str
    name: str
    people: str
    version: int
    declaration: Record
    declaration_hash: str
    source: str | None
    marks: tuple[str, ...] = ()  # what else its parts are known by

    @property
    def sources(self) -> tuple[str, ...]:
        """All that it is known by."""
        return self.marks if self.source is None else (self.source, *self.marks)


class RuleBook:
    """Tables by name and id, whose people each source holds, and the budgets of each people, as the state has them."""

    def __init__(self, get: Get, pointed: Pointed) -> None:
        self._get = get
        self._pointed = pointed

    def named(self, name: str) -> Declared | None:
        """Return the table of that name."""
        return self._declared(name_of(name))

    def table(self, id: str) -> Declared | None:
        """Return the table of that id."""
        return self._declared(TABLE + id)

    def known_by(self, source: str) -> Declared | None:
        """Return the table that a source, or a part of one, was first declared with."""
        return self._declared(SOURCE + source)

    def member(self, people: str) -> Declared | None:
        """Return the first table of these people; every other one has the same unit and neighbours."""
        return self._declared(MEMBER + people)

    def budgets(self, people: str, analyst: str | None) -> dict[str | None, tuple[int, Budget]]:
        """Return an analyst's or everyone's budgets by period, each with the number of its entry."""
        text = self._get(budgets_of(people, analyst))
        found = [] if text is None else json.loads(text)
        return {period: (number, _budget(self._pointed(number, hash).body)) for period, number, hash in found}

    def applying(self, people: str, analyst: str) -> list[Budget]:
        """Return the budgets that limit a charge by `analyst`: theirs where they have one, else each analyst's."""
        own = self.budgets(people, analyst)
        each = {} if analyst == EACH else self.budgets(people, EACH)
        applying = [*self.budgets(people, None).values(), *own.values()]
        applying += [budget for period, budget in each.items() if period not in own]
        return [budget for _, budget in sorted(applying, key=lambda one: one[0])]

    def first(self, people: str) -> Loss | None:
        """Return the budget for life that was first declared for these people."""
        entry = self._at(FIRST + people)
        return None if entry is None else _budget(entry.body).loss

    def _declared(self, name: str) -> Declared | None:
        entry = self._at(name)
        return None if entry is None else declared_from(entry)

    def _at(self, name: str) -> Entry | None:
        text = self._get(name)
        return None if text is None else self._pointed(*json.loads(text))


def changes(entry: Entry, get: Get) -> dict[str, str]:
    """Return what an entry changes in the state: the pointers to it; `get` gives what the state has so far."""
    record = entry.record
    pointer = canonical([entry.number, entry.hash])
    if record["kind"] == "table":
        table = declared_from(entry)
        new = [MEMBER + table.people, *(SOURCE + source for source in table.sources)]
        names = {name_of(table.name): pointer, TABLE + table.id: pointer}
        return names | {name: pointer for name in new if get(name) is None}
    if record["kind"] == "budget":
        people, analyst, period = record["people"], record["analyst"], record["period"]
        name = budgets_of(people, analyst)
        others = [one for one in json.loads(get(name) or "[]") if one[0] != period]
        put = {name: canonical([*others, [period, entry.number, entry.hash]])}
        return put if get(FIRST + people) is not None else put | {FIRST + people: pointer}
    return {}


def name_of(name: str) -> str:
    """Return what the state calls the table of a name."""
    return NAME + canonical(name)


def budgets_of(people: str, analyst: str | None) -> str:
    """Return what the state calls the budgets of an analyst, or of everyone."""
    return BUDGETS + canonical([people, analyst])


@lru_cache(maxsize=4096)
def _budget(body: str) -> Budget:
    return budget_from(json.loads(body))


@lru_cache(maxsize=4096)
def declared_from(entry: Entry) -> Declared:
    """Return the table that an entry declares."""
    record = entry.record
    return Declared(
        entry=entry.number,
        id=record["table"],
        name=record["name"],
        people=record["people"],
        version=record["version"],
        declaration=record["declaration"],
        declaration_hash=record["declaration_hash"],
        source=record["source"],
        marks=tuple(record.get("marks", ())),
    )
