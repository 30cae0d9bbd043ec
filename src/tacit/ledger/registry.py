"""The registry: the tables of a ledger, and the cohort with the budget of each.

A budget belongs to the people in the data (a cohort), not to a name. A table known by its name or by its source belongs
to the same cohort as before. A source under a second name is refused until the curator declares the people in it.
Rows are never compared, so a copy under another path and another name looks like other people's data: only the curator
can state that it is not (docs/sharp-edges.md).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tacit.errors import InvalidParameter, LedgerError
from tacit.ledger.budget import ADMITS_NOTHING, BLOCK, EACH, Budget, budget_record, new_budget
from tacit.ledger.chain import canonical, digest, fresh_id, is_whole_text
from tacit.ledger.draft import NAME, Declared, LedgerDraft, RuleBook
from tacit.ledger.entry import Record
from tacit.ledger.spelling import given_name, name_key
from tacit.numbers import whole
from tacit.privacy import Loss, LossPerPeriod

NAME_MAX = 200
# A hint names at most this many tables.
SHOWN_MAX = 20


@dataclass(frozen=True)
class RegisteredTable:
    """A registered table: random ids of it and of its `cohort`, who share its budget; `entry` declares it.

    `source` is a hash, and `beside` the ids of other tables of the cohort that a question reads too.
    """

    id: str
    name: str
    version: int
    budget: Loss
    declaration_hash: str
    cohort: str
    entry: int
    source: str | None
    beside: tuple[str, ...] = ()
    period: str | None = None  # of the budget, if it is not for life
    blocks: tuple[str, ...] | None = None  # those that a question reads; None: all of them
    stamp: str | None = None  # of the source's files, if a question is about blocks

    @property
    def budget_words(self) -> str:
        return f"{self.budget} per {self.period}" if self.period else str(self.budget)


@dataclass(frozen=True, kw_only=True)
class Registration:
    """The curator's statements about a table, checked before the ledger is read."""

    name: str
    declaration: Record
    source: str | None
    marks: Sequence[str] = ()
    budget: Loss | LossPerPeriod | None = None
    population: int | None = None
    accept_large_delta: bool = False
    same_people_as: str | None = None

    def __post_init__(self) -> None:
        name = self.name
        if not isinstance(name, str) or not 0 < len(name) <= NAME_MAX or not is_whole_text(name):
            raise InvalidParameter(f"name must be a text of 1 to {NAME_MAX} whole characters\nhint: name='pay'")
        try:
            canonical(self.declaration)
        except (TypeError, ValueError) as error:
            raise InvalidParameter("declaration must hold only JSON values\nhint: write numbers as text") from error
        whole(self.version, name="version", least=0)

    @property
    def version(self) -> int:
        return self.declaration.get("version", 1)  # type: ignore[no-any-return]


def register(draft: LedgerDraft, wanted: Registration) -> RegisteredTable:
    """Return the table as registered; a new or changed declaration leaves an entry."""
    ledger = draft.head.ledger
    source = None if wanted.source is None else digest("source", ledger, wanted.source)
    marks = sorted({digest("source", ledger, mark) for mark in wanted.marks} - {source})
    known = draft.book.named(wanted.name)
    cohort = _cohort(draft, wanted, known, [*marks, source] if source else marks)
    if cohort is None:
        cohort = fresh_id()
        _declare_budget(draft, cohort, wanted)
    else:
        _check_budget(draft.book, cohort, wanted)
        _check_version(wanted, known)
        _check_meaning(draft.book, cohort, wanted, known)
    declaration_hash = digest("declaration", wanted.declaration)
    is_new = known is None or (known.declaration_hash, known.source) != (declaration_hash, source or known.source)
    if is_new or any(draft.book.known_by(mark) is None for mark in marks):
        table = draft.append(
            {
                "kind": "table",
                "table": fresh_id() if known is None else known.id,
                "name": wanted.name,
                "people": cohort,
                "version": wanted.version,
                "declaration": wanted.declaration,
                "declaration_hash": declaration_hash,
                "source": source or (known.source if known else None),
                **({"marks": marks} if marks else {}),
            }
        )
        known = draft.book.table(table.record["table"])
    if known is None:
        raise LedgerError("the ledger is damaged: a table was declared and is missing\nhint: run tacit ledger verify")
    return registered(draft.book, known)


def known_as(view: LedgerDraft, wanted: Registration, *, by_name: bool) -> str | None:
    """Return the registered name of a source or a part of it, or a table by its name, or None."""
    book, given = view.book, [each for each in (wanted.source, *wanted.marks) if each is not None]
    digests = [digest("source", view.head.ledger, each) for each in given]
    named = [book.named(wanted.name)] if by_name else []
    return next((table.name for table in (*map(book.known_by, digests), *named) if table is not None), None)


def registered(book: RuleBook, table: Declared) -> RegisteredTable:
    budget = book.declared(table.cohort)
    return RegisteredTable(
        id=table.id,
        name=table.name,
        version=table.version,
        budget=budget.loss,
        period=budget.period,
        declaration_hash=table.declaration_hash,
        cohort=table.cohort,
        entry=table.entry,
        source=table.source,
    )


def grant(
    draft: LedgerDraft,
    name: str,
    loss: Loss,
    *,
    analyst: str | None,
    period: str | None,
    population: int | None,
    accept_large_delta: bool,
    reason: str,
) -> Budget:
    """Set a budget of a table's cohort, from now on, and return it; leaves an entry with the reason."""
    table = _known_table(draft, name)
    if period == BLOCK and "block" not in table.declaration:
        raise InvalidParameter(f"'{name}' has no blocks that could have a budget each\nhint: leave period= out")
    if analyst is not None and analyst != EACH and not draft.book.budgets(table.cohort, name_key(analyst)):
        analyst = given_name(analyst)
    if population is None:
        population = draft.book.declared(table.cohort).population
    budget = new_budget(
        table.cohort, loss, analyst=analyst, period=period, population=population, accept_large_delta=accept_large_delta
    )
    return _put_budget(draft, budget, insist=accept_large_delta, reason=reason)


def revoke(draft: LedgerDraft, name: str, *, analyst: str | None, period: str | None, reason: str) -> Budget:
    """Stop all spending under a budget until it is granted again; an analyst without one gets one of zero."""
    table = _known_table(draft, name)
    own = draft.book.budgets(table.cohort, None if analyst is None else name_key(analyst))
    if analyst is None and period is None:
        period = draft.book.declared(table.cohort).period
    budget = next((budget for _, budget in own if budget.period == period), None)
    if budget is None and (analyst is None or period is not None):
        raise InvalidParameter(
            f"'{name}' does not have a budget per {period} to revoke\nhint: 'tacit budget' lists the budgets"
        )
    closed = replace(budget or replace(draft.book.declared(table.cohort), analyst=analyst), rule=ADMITS_NOTHING)
    return _put_budget(draft, closed, insist=True, reason=reason)


def _known_table(draft: LedgerDraft, name: str) -> Declared:
    table = draft.book.named(name)
    if table is None:
        raise InvalidParameter(f"this ledger does not know the table '{name}'\nhint: {_tables_of(draft)}")
    return table


def _put_budget(draft: LedgerDraft, budget: Budget, *, insist: bool, reason: str) -> Budget:
    draft.append({"kind": "budget", **budget_record(budget), "insist": insist, "reason": reason})
    return budget


def _cohort(draft: LedgerDraft, wanted: Registration, known: Declared | None, sources: Sequence[str]) -> str | None:
    """Return the cohort of the people in the data, or None for a new cohort."""
    book = draft.book
    known_by = [table for table in map(book.known_by, sources) if table is not None]
    by_source = {table.cohort for table in known_by}
    by_word = None
    if wanted.same_people_as is not None:
        other = book.named(wanted.same_people_as)
        if other is None:
            raise InvalidParameter(
                f"same_people_as names '{wanted.same_people_as}', which this ledger does not know"
                f"\nhint: {_tables_of(draft)}"
            )
        by_word = other.cohort
    by_name = None if known is None else known.cohort
    if by_name is None and by_word is None and len(by_source) == 1:
        names = sorted(table.name for table in known_by)
        raise InvalidParameter(
            f"the source of '{wanted.name}', or a part of it, is already known as '{names[0]}', and a budget belongs "
            "to the people in the data, not to a name"
            f"\nhint: use that name, or share its budget: same_people_as='{names[0]}', or --same-people-as {names[0]}"
        )
    found = by_source | {cohort for cohort in (by_name, by_word) if cohort is not None}
    if len(found) > 1:
        raise InvalidParameter(_two_cohorts(wanted, known, known_by))
    return found.pop() if found else None


def _two_cohorts(wanted: Registration, known: Declared | None, known_by: Sequence[Declared]) -> str:
    others = sorted({table.name for table in known_by if table.cohort != (known.cohort if known else None)})
    sources = " and ".join(f"'{name}'" for name in others)
    reasons = [
        *(["that name has a budget already"] if known is not None else []),
        *([f"its source, or a part of it, is known as {sources}"] if others else []),
        *([f"same_people_as names '{wanted.same_people_as}'"] if wanted.same_people_as is not None else []),
    ]
    way = f"ask about that source as '{others[0]}'; other data" if len(others) == 1 else "data of one cohort"
    return (
        f"'{wanted.name}' would belong to the budgets of two different cohorts: {', and '.join(reasons)}"
        f"\nhint: {way} needs a new name, with same_people_as= if its people have a budget"
    )


def _declare_budget(draft: LedgerDraft, cohort: str, wanted: Registration) -> None:
    if wanted.budget is None:
        raise InvalidParameter(
            f"'{wanted.name}' is new to this ledger and needs a budget: how much may ever be learned about one unit?"
            "\nhint: give it once, e.g. budget=tacit.epsilon(3, delta=1e-6) (--budget 3 --delta 1e-6)"
        )
    loss, period = _parted(wanted)
    budget = new_budget(
        cohort, loss, period=period, population=wanted.population, accept_large_delta=wanted.accept_large_delta
    )
    _put_budget(draft, budget, insist=wanted.accept_large_delta, reason=f"declared with '{wanted.name}'")


def _check_budget(book: RuleBook, cohort: str, wanted: Registration) -> None:
    """A budget given again must be the one in force, or the one first declared, which a grant has since changed."""
    in_force, first = book.declared(cohort), book.first(cohort)
    known = [(each.loss, each.period) for each in (in_force, first) if each is not None]
    if wanted.budget is None or _parted(wanted) in known:
        return
    lasting = f"per {in_force.period}" if in_force.period else "for its lifetime"
    raise InvalidParameter(
        f"'{wanted.name}' already has a budget of {in_force.loss}, {lasting}; a different one here would change "
        "what was promised"
        f"\nhint: leave budget= out, or have the curator change it for the record: tacit budget grant {wanted.name} "
        "...; other data needs a new name: name="
    )


def _parted(wanted: Registration) -> tuple[Any, str | None]:
    """Return the loss of a declared budget and its period: of a table with blocks, each block."""
    given = wanted.budget
    loss, period = (given.loss, given.period) if isinstance(given, LossPerPeriod) else (given, None)
    if "block" not in wanted.declaration:
        return loss, period
    if period is not None:
        raise InvalidParameter(
            "the budget of a table with blocks is that of each block, and has no period\nhint: leave period= out"
        )
    return loss, BLOCK


def _check_version(wanted: Registration, known: Declared | None) -> None:
    """A version only goes up: at a lower one, answers about rows of long ago would come back as if they were new."""
    if known is not None and wanted.version < known.version:
        raise InvalidParameter(
            f"'{wanted.name}' is at version {known.version} already, not {wanted.version}: versions only go up"
            f"\nhint: version={known.version} (--version {known.version}), or leave it out"
        )


def _check_meaning(book: RuleBook, cohort: str, wanted: Registration, known: Declared | None) -> None:
    """Losses add up only if they mean the same: a table's unit and a budget's neighbours may not change."""
    table = known or book.member(cohort)
    if table is not None:
        _check_same(wanted, table, "unit")
        _check_same(wanted, table, "neighbours")
        if wanted.declaration.get("block") != table.declaration.get("block"):
            raise InvalidParameter(
                f"'{wanted.name}' declares other blocks than its budget was spent by so far"
                "\nhint: give block= as before; blocks of a table that had none need a new name, and other people"
            )


def _check_same(wanted: Registration, table: Declared, word: str) -> None:
    before, now = (_declared_words(declaration.get(word)) for declaration in (table.declaration, wanted.declaration))
    if before != now:
        alike = "" if word != "unit" or table.name == wanted.name else ", or give the column one name in both tables"
        raise InvalidParameter(
            f"'{wanted.name}' declares {word} {now}, but its budget was spent so far for {word} {before}"
            f"\nhint: keep {word}={before}{alike}"
        )


def _tables_of(draft: LedgerDraft) -> str:
    """Return the names of the ledger's tables for a hint, up to `SHOWN_MAX`."""
    names = [json.loads(name.removeprefix(NAME)) for name in draft.rows.names(NAME)]
    more = f" and {len(names) - SHOWN_MAX} more" if len(names) > SHOWN_MAX else ""
    return f"its tables are: {', '.join(sorted(names)[:SHOWN_MAX]) or 'none yet'}{more}"


def _declared_words(word: object) -> str:
    return "tacit.ROW" if word is None else repr(word)
