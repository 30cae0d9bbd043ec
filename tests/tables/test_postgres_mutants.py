"""Each fault that reading from PostgreSQL could have is planted, and the test that is named beside it fails."""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from tacit.tables import postgres_catalog, postgres_snapshot, postgres_table
from tacit.typed_sql import quoted
from tests.tables import test_postgres, test_postgres_moment

Link, Snapshot, PostgresServer = postgres_snapshot.Link, postgres_snapshot.Snapshot, postgres_snapshot.PostgresServer


@dataclass(frozen=True)
class Mutant:
    """A fault, and the test that kills it."""

    plant: Callable[[pytest.MonkeyPatch], None]
    killed_by: Callable[..., None]


def without(pattern: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Leave out the statements that begin so."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        run = Link.run
        patch.setattr(Link, "run", lambda self, sql: None if re.match(pattern, sql) else run(self, sql))

    return plant


def ends_quietly(patch: pytest.MonkeyPatch) -> None:
    """Take a connection that breaks for the end of its rows."""
    stream = Snapshot._stream

    def quiet(self: Any, select: str) -> Iterator[Any]:
        with suppress(Exception):
            yield from stream(self, select)

    patch.setattr(Snapshot, "_stream", quiet)


def rows_only(patch: pytest.MonkeyPatch) -> None:
    """Look at the types of what is sent only if there are rows."""
    stream = Snapshot._stream

    def sent(self: Any, select: str) -> Iterator[Any]:
        yield from (batch for batch in stream(self, select) if len(batch))

    patch.setattr(Snapshot, "_stream", sent)


def no_rows(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask about a table without rows, of which the cells would have another type."""
    test_postgres.test_cells_of_another_type_than_expected_end_a_question_whether_or_not_there_are_rows(
        run, monkeypatch, 0, "x > 0"
    )


def fails_quietly(patch: pytest.MonkeyPatch) -> None:
    """Take one stream of several that breaks for the end of its rows."""
    merged = postgres_snapshot.merged

    def quiet(stream: Any) -> Iterator[Any]:
        with suppress(Exception):
            yield from stream()

    patch.setattr(
        postgres_snapshot, "merged", lambda several: merged([lambda each=each: quiet(each) for each in several])
    )


def raw_cells(patch: pytest.MonkeyPatch) -> None:
    """Have the server compare what it stores, and not what it sends: an infinite date is not NULL there."""
    compared = postgres_table._compared_column

    def raw(column: Any, wanted: Any, *, is_utf8: bool) -> str | None:
        text = compared(column, wanted, is_utf8=is_utf8)
        return None if text is None else text.replace(column.sql, quoted(column.name))

    patch.setattr(postgres_table, "_compared_column", raw)


def drops_unknown(patch: pytest.MonkeyPatch) -> None:
    """Leave the unknown part out of an OR, as out of an AND."""
    written = postgres_table.written

    def loose(wanted: Any, facts: Any) -> str | None:
        if wanted.operator != "or":
            return written(wanted, facts)
        known = [part for each in wanted.of if (part := loose(each, facts)) is not None]
        return f"({' OR '.join(known)})" if known else None

    patch.setattr(postgres_table, "written", loose)


def short_pages(patch: pytest.MonkeyPatch) -> None:
    """Lose the last page of a range."""
    between = postgres_snapshot._pages_between
    patch.setattr(
        postgres_snapshot, "_pages_between", lambda low, high: between(low, None if high is None else high - 1)
    )


def calendar(patch: pytest.MonkeyPatch) -> None:
    """Send times as they are, infinite ones and those of no calendar too."""
    column = postgres_catalog._column_sent

    def unguarded(found: Any) -> Any:
        made = column(found)
        if made is None or found["type"] not in postgres_catalog.TIME_TYPES:
            return made
        return postgres_catalog.PostgresColumn(made.name, quoted(made.name), made.sent, made.reading, made.type)

    patch.setattr(postgres_catalog, "_column_sent", unguarded)


def sees_no_policy(patch: pytest.MonkeyPatch) -> None:
    """Do not ask whether row security is in force."""
    patch.setattr(postgres_catalog, "_TABLES", postgres_catalog._TABLES.replace("row_security_active(c.oid)", "false"))


MUTANTS = {
    "the snapshot is not shared": Mutant(
        without("SET TRANSACTION SNAPSHOT"),
        test_postgres_moment.test_rows_deleted_after_the_snapshot_are_read_by_every_connection,
    ),
    "no lock before the snapshot": Mutant(
        without("LOCK TABLE"), test_postgres_moment.test_a_table_is_not_emptied_between_the_snapshot_and_the_read
    ),
    "a broken connection is the end of its rows": Mutant(
        ends_quietly, test_postgres_moment.test_a_connection_that_ends_midway_is_replaced_on_the_same_snapshot
    ),
    "a broken one of several is the end of its rows": Mutant(
        fails_quietly, test_postgres_moment.test_one_connection_of_several_that_ends_is_no_end_of_rows
    ),
    "the prefilter loses what we read as NULL": Mutant(
        raw_cells, test_postgres_moment.test_a_prefilter_loses_no_row_and_is_used
    ),
    "the prefilter knows half of an OR": Mutant(
        drops_unknown, test_postgres_moment.test_a_prefilter_loses_no_row_and_is_used
    ),
    "a page between two connections is lost": Mutant(
        short_pages, test_postgres_moment.test_pages_are_divided_among_connections_and_every_row_is_read_once
    ),
    "row security is not noticed": Mutant(
        sees_no_policy, test_postgres.test_row_security_in_force_for_this_user_is_refused_and_not_for_one_who_sees_all
    ),
    "types are looked at with the first row": Mutant(rows_only, no_rows),
    "an address shows its password": Mutant(
        lambda patch: patch.setattr(PostgresServer, "__repr__", lambda self: str(self._address)),
        test_postgres.test_a_password_of_a_connection_is_used_and_never_shown,
    ),
}
LOSSES = (AssertionError, pytest.fail.Exception)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_planted_fault_is_noticed(name, run, request, monkeypatch):
    mutant = MUTANTS[name]
    words = {"run": run, "monkeypatch": monkeypatch, "user": None}
    wanted = mutant.killed_by.__code__.co_varnames[: mutant.killed_by.__code__.co_argcount]
    if "user" in wanted:
        words["user"] = request.getfixturevalue("user")
    mutant.plant(monkeypatch)
    with pytest.raises(LOSSES):
        mutant.killed_by(**{word: words[word] for word in wanted})


@pytest.mark.parametrize("kind", ["date", "timestamp"])  # timestamptz is held to the calendar twice
def test_a_time_of_no_calendar_that_is_sent_is_noticed(kind, run, monkeypatch):
    calendar(monkeypatch)
    with pytest.raises((*LOSSES, OverflowError, ValueError)):
        test_postgres.test_every_type_is_read_with_its_odd_cells_and_none_raises(run, kind)
