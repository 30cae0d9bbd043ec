"""Names: which table is which, and whose budget it spends.

A budget belongs to the people in the data, not to a name. What is known by its name or by its source is the same
people as before; a source under a second name is refused until the curator says whose people it holds. Nothing is
ever computed from the rows, so a copy under another path and another name cannot be told from other people's data:
that is the curator's to say (docs/sharp-edges.md).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from tacit.errors import InvalidParameter, LedgerError
from tacit.ledger.budget import Budget, budget_record, new_budget
from tacit.ledger.chain import canonical, digest, fresh_id, is_whole_text
from tacit.ledger.draft import NAME, Declared, Draft, RuleBook
from tacit.ledger.entry import Record
from tacit.privacy import Loss, whole

NAME_MAX = 200
# A hint names so many tables.
SHOWN_MAX = 20


@dataclass(frozen=True)
class RegisteredTable:
    """A table the ledger knows: a random id, its name and declared version, and its budget for life.

    `cohort` is a random id of the units whose budget it is, `entry` the number of the entry that declares it, `source`
    a hash of its source.
    """

    id: str
    name: str
    version: int
    budget: Loss
    declaration_hash: str
    cohort: str
    entry: int
    source: str | None


@dataclass(frozen=True)
class Registration:
    """What the curator says about a table, checked."""

    name: str
    declaration: Record
    version: int
    source: str | None
    marks: tuple[str, ...]
    budget: Loss | None
    population: int | None
    accept_large_delta: bool
    same_people_as: str | None


def registration(
    *,
    name: str,
    declaration: Record,
    source: str | None,
    marks: Sequence[str] = (),
    budget: Loss | None = None,
    population: int | None = None,
    accept_large_delta: bool = False,
    same_people_as: str | None = None,
) -> Registration:
    """Return what the curator says, or refuse it, before the ledger is looked at."""
    if not isinstance(name, str) or not 0 < len(name) <= NAME_MAX or not is_whole_text(name):
        raise InvalidParameter(f"name must be a text of 1 to {NAME_MAX} whole characters\nhint: name='pay'")
    try:
        canonical(declaration)
    except (TypeError, ValueError) as error:
        raise InvalidParameter("declaration must hold JSON values alone\nhint: write numbers as text") from error
    version = whole(declaration.get("version", 1), name="version", least=0)
    return Registration(
        name, declaration, version, source, tuple(marks), budget, population, accept_large_delta, same_people_as
    )


def register(draft: Draft, said: Registration, *, ledger: str) -> RegisteredTable:
    """Return the table as the ledger knows it; one that is new, or declared anew, leaves an entry."""
    source = None if said.source is None else digest("source", ledger, said.source)
    marks = sorted({digest("source", ledger, mark) for mark in said.marks} - {source})
    known = draft.book.named(said.name)
    cohort = _cohort(draft, said, known, [*marks, source] if source else marks)
    if cohort is None:
        cohort = fresh_id()
        _declare_budget(draft, cohort, said)
    else:
        _check_budget(draft.book, cohort, said)
        _check_version(said, known)
        _check_meaning(draft.book, cohort, said, known)
    declaration_hash = digest("declaration", said.declaration)
    is_new = known is None or (known.declaration_hash, known.source) != (declaration_hash, source or known.source)
    if is_new or any(draft.book.known_by(mark) is None for mark in marks):
        table = draft.append(
            {
                "kind": "table",
                "table": fresh_id() if known is None else known.id,
                "name": said.name,
                "people": cohort,
                "version": said.version,
                "declaration": said.declaration,
                "declaration_hash": declaration_hash,
                "source": source or (known.source if known else None),
                **({"marks": marks} if marks else {}),
            }
        )
        known = draft.book.table(table.record["table"])
    if known is None:
        raise LedgerError("the ledger is damaged: a table was declared and is not there\nhint: tacit ledger verify")
    return registered(draft.book, known)


def known_as(book: RuleBook, said: Registration, *, ledger: str, by_name: bool) -> str | None:
    """Return the name under which a ledger knows a source or a part of it, or a table by its name alone, or None."""
    digests = [digest("source", ledger, each) for each in (said.source, *said.marks) if each is not None]
    named = [book.named(said.name)] if by_name else []
    return next((table.name for table in (*map(book.known_by, digests), *named) if table is not None), None)


def registered(book: RuleBook, table: Declared) -> RegisteredTable:
    """Return the handle of a declared table."""
    return RegisteredTable(
        id=table.id,
        name=table.name,
        version=table.version,
        budget=lifetime_budget(book, table.cohort).loss,
        declaration_hash=table.declaration_hash,
        cohort=table.cohort,
        entry=table.entry,
        source=table.source,
    )


def lifetime_budget(book: RuleBook, cohort: str) -> Budget:
    """Return a cohort's lifetime budget: the one that every cohort has, to everyone together."""
    found = book.budgets(cohort, None).get(None)
    if found is None:
        raise LedgerError("the ledger is damaged: a table has no budget\nhint: tacit ledger verify")
    return found[1]


def grant(
    draft: Draft,
    name: str,
    loss: Loss,
    *,
    analyst: str | None,
    period: str | None,
    population: int | None,
    accept_large_delta: bool,
    reason: str,
) -> Budget:
    """Set a budget of the people in a table, from now on, and return it; leaves an entry with the reason."""
    table = draft.book.named(name)
    if table is None:
        raise InvalidParameter(f"this ledger does not know the table '{name}'\nhint: {_tables_of(draft)}")
    if population is None:
        population = lifetime_budget(draft.book, table.cohort).population
    budget = new_budget(
        table.cohort, loss, analyst=analyst, period=period, population=population, accept_large_delta=accept_large_delta
    )
    draft.append({"kind": "budget", **budget_record(budget), "insist": accept_large_delta, "reason": reason})
    return budget


def _cohort(draft: Draft, said: Registration, known: Declared | None, sources: Sequence[str]) -> str | None:
    """Return the cohort whose data it is, or None for people not seen before."""
    book = draft.book
    known_by = [table for table in map(book.known_by, sources) if table is not None]
    by_source = {table.cohort for table in known_by}
    by_word = None
    if said.same_people_as is not None:
        other = book.named(said.same_people_as)
        if other is None:
            raise InvalidParameter(
                f"same_people_as names '{said.same_people_as}', which this ledger does not know"
                f"\nhint: {_tables_of(draft)}"
            )
        by_word = other.cohort
    by_name = None if known is None else known.cohort
    if by_name is None and by_word is None and len(by_source) == 1:
        names = sorted(table.name for table in known_by)
        raise InvalidParameter(
            f"the source of '{said.name}', or a part of it, is already known as '{names[0]}', and a budget belongs to "
            "the people in the data, not to a name"
            f"\nhint: use that name, or share its budget: same_people_as='{names[0]}', or --same-people-as {names[0]}"
        )
    found = by_source | {cohort for cohort in (by_name, by_word) if cohort is not None}
    if len(found) > 1:
        raise InvalidParameter(_two_cohorts(said, known, known_by))
    return found.pop() if found else None


def _two_cohorts(said: Registration, known: Declared | None, known_by: Sequence[Declared]) -> str:
    others = sorted({table.name for table in known_by if table.cohort != (known.cohort if known else None)})
    sources = " and ".join(f"'{name}'" for name in others)
    reasons = [
        *(["that name has a budget already"] if known is not None else []),
        *([f"its source, or a part of it, is known as {sources}"] if others else []),
        *([f"same_people_as says '{said.same_people_as}'"] if said.same_people_as is not None else []),
    ]
    way = f"ask about that source as '{others[0]}'; other data" if len(others) == 1 else "data of one cohort"
    return (
        f"'{said.name}' would belong to the budgets of two different cohorts: {', and '.join(reasons)}"
        f"\nhint: {way} gets a name of its own, with same_people_as= if its people have a budget"
    )


def _declare_budget(draft: Draft, cohort: str, said: Registration) -> None:
    if said.budget is None:
        raise InvalidParameter(
            f"'{said.name}' is new to this ledger and has no budget: how much may ever be learned about one unit?"
            "\nhint: say it once, e.g. budget=tacit.epsilon(3, delta=1e-6) (--budget 3 --delta 1e-6)"
        )
    budget = new_budget(cohort, said.budget, population=said.population, accept_large_delta=said.accept_large_delta)
    draft.append(
        {
            "kind": "budget",
            **budget_record(budget),
            "insist": said.accept_large_delta,
            "reason": f"declared with '{said.name}'",
        }
    )


def _check_budget(book: RuleBook, cohort: str, said: Registration) -> None:
    """A budget said again must be the one in force, or the one first declared, which a grant has since changed."""
    in_force = lifetime_budget(book, cohort).loss
    if said.budget is None or said.budget in (in_force, book.first(cohort)):
        return
    raise InvalidParameter(
        f"'{said.name}' already has a budget of {in_force}, for its lifetime; a different one here would change "
        "what was promised"
        f"\nhint: leave budget= out, or have the curator change it for the record: tacit budget grant {said.name} ...;"
        " other data gets a name of its own: name="
    )


def _check_version(said: Registration, known: Declared | None) -> None:
    """A version only goes up: at a lower one, answers about rows of long ago would come back as if they were new."""
    if known is not None and said.version < known.version:
        raise InvalidParameter(
            f"'{said.name}' is at version {known.version}, and this says version {said.version}: versions only go up"
            f"\nhint: version={known.version} (--version {known.version}), or leave it out"
        )


def _check_meaning(book: RuleBook, cohort: str, said: Registration, known: Declared | None) -> None:
    """What a loss is about may not change while losses add up: the unit of a table, the neighbours of a budget."""
    table = known or book.member(cohort)
    if table is not None:
        _check_same(said, table, "unit")
        _check_same(said, table, "neighbours")


def _check_same(said: Registration, table: Declared, word: str) -> None:
    before, now = (_said(declaration.get(word)) for declaration in (table.declaration, said.declaration))
    if before != now:
        alike = "" if word != "unit" or table.name == said.name else ", or give the column one name in both tables"
        raise InvalidParameter(
            f"'{said.name}' declares {word} {now}, but what its budget has spent so far was for {word} {before}"
            f"\nhint: keep {word}={before}{alike}"
        )


def _tables_of(draft: Draft) -> str:
    """Return the names of the ledger's tables for a hint, as many as fit."""
    names = [json.loads(name.removeprefix(NAME)) for name in draft.rows.names(NAME)]
    more = f" and {len(names) - SHOWN_MAX} more" if len(names) > SHOWN_MAX else ""
    return f"its tables are: {', '.join(sorted(names)[:SHOWN_MAX]) or 'none yet'}{more}"


def _said(word: object) -> str:
    return "tacit.ROW" if word is None else repr(word)
