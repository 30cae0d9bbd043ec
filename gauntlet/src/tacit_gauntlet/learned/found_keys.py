"""Attacks on which groups are known: by numbers without noise, by a look at rows, or of other rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tacit import epsilon
from tacit.errors import QueryRefused
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.learned.profiles import NEWCOMER
from tacit_gauntlet.stage.facts import facts_released_as, unbounded
from tacit_gauntlet.stage.ledger import Ledger, open_at
from tacit_gauntlet.stage.neighbours import Row, crowd
from tacit_gauntlet.stage.scaled_people import PEOPLE, rows_of
from tacit_gauntlet.stage.table import Question, Table

BUDGET = epsilon(1000, delta="1e-6")


@dataclass(frozen=True)
class Told:
    """The noisy numbers that facts are made to have: votes of the groups of each round, and people by the profile."""

    rounds: tuple[Mapping[str, int], ...]
    people: int


TOLD = {
    "nobody is left out": Told(({"a": 150, "b": 100},), 250),
    "a group may be missing": Told(({"a": 600}, {"a": 600, "b": 400}), 5000),
    "no group at first": Told(({}, {"a": 90}), 5000),
    "no group at all": Told(({}, {}), 40),
}


@case(
    "S38",
    title="which groups are known, and whether more are looked for, follows from released numbers about the same rows",
    feature="session",
)
def released_groups(size: Size) -> Evidence:
    """Ask about very different tables, with the same noisy facts: charges, groups and refusals must be the same."""
    wrong, seen = [], set[int]()
    tables = _tables(size)
    for name, told in TOLD.items():
        found = {what: _asked(rows, told) for what, rows in tables.items()}
        first = next(iter(found.values()))
        seen.add(len(first))
        wrong += [f"{name}, {what}: {other} is {first}" for what, other in found.items() if other != first]
    wrong += _of_other_rows()
    return Evidence(not wrong and len(seen) > 1, {"tables": sorted(tables), "told": sorted(TOLD), "wrong": wrong[:5]})


def _tables(size: Size) -> dict[str, list[Row]]:
    alone = rows_of(PEOPLE["many rows in many cells"], NEWCOMER)
    quick = {"a crowd": crowd(50), "one person more": crowd(50) + alone, "more people": crowd(600)}
    return quick if size == "quick" else quick | {"nobody": [], "many": crowd(6000)}


def _by_group(table: Table) -> Question:
    return table.group_by("g").count()


def _asked(rows: Sequence[Row], told: Told) -> list[str]:
    """Return what each charge of a question was for, and the groups of its answer or its refusal."""
    with open_at(":memory:") as book, facts_released_as(told.rounds, told.people):
        ended = _ended(_by_group(unbounded(rows, ledger=book, budget=BUDGET)))
        return [*_charges(book), ended]


def _charges(book: Ledger) -> list[str]:
    charges = [entry.record for entry in book.entries() if entry.kind == "charge"]
    return [str((record.get("learns") or {}).get("words")) for record in charges]


def _ended(question: Question) -> str:
    try:
        return str([row["g"] for row in question.answer(epsilon=1).to_dicts()])
    except QueryRefused as refusal:
        return str(refusal)


def _of_other_rows() -> list[str]:
    """Groups of some rows are not taken for those of the table; groups of the table serve every WHERE."""
    some, everything = {"b": 600}, {"a": 600, "b": 600}
    with open_at(":memory:") as book, facts_released_as((some, everything), 600):
        table = unbounded(crowd(50), ledger=book, budget=BUDGET)
        ended = [_ended(_by_group(asked)) for asked in (table.where("x > 0"), table, table.where("x < 0"))]
        rounds = sum(words.startswith("which groups") for words in _charges(book))
    right = [str(sorted(known)) for known in (some, everything, everything)]
    return (
        [] if (ended, rounds) == (right, 2) else [f"of WHERE, of all rows, of another WHERE: {ended}, {rounds} rounds"]
    )
