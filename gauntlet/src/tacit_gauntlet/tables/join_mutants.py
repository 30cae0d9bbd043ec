"""Published bugs of joins, planted in our own joining, relations and session, that the cases must kill."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from tacit.errors import QueryRefused
from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.stage.table import in_sql
from tacit_gauntlet.targets import original, planted


@mutant(
    "joined after bounding", killed_by="S45", published="bounds on a table, and then a join that multiplies its rows"
)
@contextmanager
def joined_after_bounding() -> Iterator[None]:
    """Rows of a unit are bounded in the table, where all have few, and not in the join."""
    whole = original("ONE")
    with in_sql(), planted("weights of units", lambda _, lengths: np.full(lengths.shape, whole)):
        yield


@mutant("a public key that is double", killed_by="S45", published="a lookup table with a key twice: a row counts twice")
@contextmanager
def double_key() -> Iterator[None]:
    """How many matches a row has in a public table is not looked at."""
    with planted("refuse_more_matches", lambda *_: None):
        yield


@mutant("EXISTS on any column", killed_by="S45", published="a semi-join on a value that others have too")
@contextmanager
def exists_on_anything() -> Iterator[None]:
    """Two protected tables match on whatever is written, without their units."""
    matched, is_public = original("matches of a join"), original("public side in the engine")
    loose: set[Any] = set()

    def anything(left: Any, right: Any, matches: Any, most: Any) -> Any:
        loose.discard(right.relation)
        try:
            return matched(left, right, matches, most)
        except QueryRefused:
            if right.is_public:
                raise
            loose.add(right.relation)
            return tuple(matches), None

    with ExitStack() as stack:
        stack.enter_context(planted("matches of a join", anything))
        stack.enter_context(planted("public side in the engine", lambda each: each in loose or is_public(each)))
        yield


@mutant("unmatched rows share a NULL", killed_by="S45", published="a LEFT JOIN whose unit is the right table's: NULL")
@contextmanager
def shared_null() -> Iterator[None]:
    """The unit of a left join is that of the right side, so that all rows without a match are one unit's."""
    joined = original("joined_rows")

    def shared(relation: Any, sides: Any) -> Any:
        rows = joined(relation, sides)
        if relation.how != "left" or sides.unit is None:
            return rows
        known = sides.right.table.select(known=sides.right.table[sides.unit]).distinct()
        both = rows.left_join(known, rows[sides.unit] == known["known"])
        unit = original("typed SQL").cases((both["known"].notnull(), both[sides.unit]), else_=-1)
        return both.mutate(**{sides.unit: unit}).drop("known")

    with in_sql(), planted("joined_rows", shared):
        yield


@mutant("joined people pay in one place", killed_by="Q40", published="a join charged to one table's budget")
@contextmanager
def one_of_two_budgets() -> Iterator[None]:
    """Tables of two budgets are joined, and one is charged."""
    with planted("Session.refuse_other_people", lambda *_: None):
        yield


@mutant("a join is its first table", killed_by="Q40", published="a cache keyed by the question's text, not by its rows")
@contextmanager
def one_key() -> Iterator[None]:
    """An answer about one join is given again for another."""
    with planted("relation_mark", lambda _: ""):
        yield


@mutant(
    "a fresh budget for a known file", killed_by="Q40", published="budgets by a table's name: a new name, a new budget"
)
@contextmanager
def fresh_budget() -> Iterator[None]:
    """A file that the ledger knows gets a budget of its own under another name."""
    cohort = original("cohort of a source")

    def by_name(draft: Any, wanted: Any, known: Any, sources: Any) -> Any:
        del sources
        return cohort(draft, wanted, known, ())

    with planted("cohort of a source", by_name):
        yield


@mutant(
    "pairs without end", killed_by="Q52", published="a join of n with m rows of one person: n times m, or no answer"
)
@contextmanager
def pairs_without_end() -> Iterator[None]:
    """All rows of a unit on one side meet all of its rows on the other."""
    with planted("pairs of a unit", lambda _, right: right):
        yield


def _pairs_changed(change: Any) -> Any:
    """Return the join with owners, in which the pairs of a key and a person are changed first."""
    joined = original("joined_with_owners")

    def changed(rows: Any, owners: Any, on: Any, unit: str, columns: Any = None) -> Any:
        return joined(rows, change(owners, [there for _, there in on], unit), on, unit, columns)

    return changed


@mutant("the first owner has the row", killed_by="S72", published="a key's owner is any row's, where several have it")
@contextmanager
def first_owner() -> Iterator[None]:
    """Whoever has the greatest id of a key's owners has its rows: a newcomer takes them from another."""

    def first(owners: Any, keys: list[str], unit: str) -> Any:
        return owners.group_by(keys).agg(**{unit: owners[unit].max()})

    with planted("joined_with_owners", _pairs_changed(first)):
        yield


@mutant("a shared row is nobody's", killed_by="S72", published="a row with two owners is dropped: one hides others'")
@contextmanager
def shared_is_nobodys() -> Iterator[None]:
    """A key with two owners has none: a newcomer's claim takes away the rows of others."""

    def alone(owners: Any, keys: list[str], unit: str) -> Any:
        known = owners.filter([owners[unit].notnull()])
        counted = known.group_by(keys).agg(**{unit: known[unit].max(), "least": known[unit].min()})
        return counted.filter([counted[unit] == counted["least"]])

    with planted("joined_with_owners", _pairs_changed(alone)):
        yield


@mutant("windows over everybody", killed_by="S73", published="ROW_NUMBER() OVER (ORDER BY x): a rank among all people")
@contextmanager
def windows_over_everybody() -> Iterator[None]:
    """A window's partition lacks the unit."""
    window, sql = original("unit_window"), original("typed SQL")
    with planted("unit_window", lambda each, rows, kinds, _: window(each, rows, kinds, sql.literal(0))):
        yield


@mutant("ties as they come", killed_by="S73", published="ROW_NUMBER over ties: an engine's order decides")
@contextmanager
def ties_as_they_come() -> Iterator[None]:
    """Rows that tie in a window's order come as an engine meets them."""
    with planted("ties of a window", lambda *_: []):
        yield
