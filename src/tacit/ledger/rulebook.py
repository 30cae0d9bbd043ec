"""The rule book: every table and budget that is in force, folded from the entries that declared them.

The ledger keeps a pointer to each entry that still matters, so the book is read again only when a rule changed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tacit.ledger.budget import Budget, budget_from
from tacit.ledger.entry import Entry, Record, scope_of
from tacit.privacy.loss import Loss


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


@dataclass(frozen=True)
class RuleBook:
    """Tables by id, their ids by name, whose people each source holds, and the budgets of each people."""

    number: int = 0
    tables: Mapping[str, Declared] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    budgets: Mapping[str, tuple[Budget, ...]] = field(default_factory=dict)
    firsts: Mapping[str, Loss] = field(default_factory=dict)

    def with_entry(self, entry: Entry) -> "RuleBook":
        """Return the book after one more entry; entries that declare nothing leave it as it is."""
        record = entry.record
        if record["kind"] == "table":
            return self._with_table(declared_from(entry))
        if record["kind"] == "budget":
            return self._with_budget(entry.number, budget_from(record))
        return self

    def applying(self, people: str, analyst: str) -> list[Budget]:
        """Return the budgets that limit a charge by `analyst`: theirs where they have one, else each analyst's."""
        budgets = self.budgets.get(people, ())
        own = {budget.period for budget in budgets if budget.analyst == analyst}
        return [
            budget
            for budget in budgets
            if budget.analyst is None
            or budget.analyst == analyst
            or (budget.analyst == "*" and budget.period not in own)
        ]

    def named(self, name: str) -> Declared | None:
        """Return the table of that name."""
        return self.tables[self.names[name]] if name in self.names else None

    def _with_table(self, table: Declared) -> "RuleBook":
        sources = {**self.sources, **dict.fromkeys(table.sources, table.people)}
        return replace(
            self,
            number=table.entry,
            tables={**self.tables, table.id: table},
            names={**self.names, table.name: table.id},
            sources=sources,
        )

    def _with_budget(self, number: int, budget: Budget) -> "RuleBook":
        others = [
            other
            for other in self.budgets.get(budget.people, ())
            if (other.analyst, other.period) != (budget.analyst, budget.period)
        ]
        firsts = self.firsts
        if budget.analyst is None and budget.period is None and budget.people not in firsts:
            firsts = {**firsts, budget.people: budget.loss}
        budgets = {**self.budgets, budget.people: (*others, budget)}
        return replace(self, number=number, budgets=budgets, firsts=firsts)


def fold(entries: Iterable[Entry]) -> RuleBook:
    """Return the book that entries in order add up to."""
    book = RuleBook()
    for entry in entries:
        book = book.with_entry(entry)
    return book


def pointers_of(entry: Entry, book: RuleBook) -> dict[str, int]:
    """Return the names that point to an entry once it is added to `book`: what the book is read from again."""
    record = entry.record
    if record["kind"] == "table":
        names = {f"table {record['table']}": entry.number}
        new = (source for source in declared_from(entry).sources if source not in book.sources)
        return names | {f"source {source}": entry.number for source in new}
    if record["kind"] == "budget":
        names = {
            f"budget {scope_of(record['people'], analyst=record['analyst'], period=record['period'])}": entry.number
        }
        if record["people"] not in book.firsts:
            names[f"first {record['people']}"] = entry.number
        return names
    return {}


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
