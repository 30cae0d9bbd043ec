"""Bugs of reading from a server, planted in our own reader, that the cases must kill; they wait where it does."""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.stage.postgres_server import is_here
from tacit_gauntlet.targets import original, planted


@contextmanager
def snapshot_of_its_own() -> Iterator[None]:
    """Each connection reads its own moment."""
    run = original("Link.run")

    def forgetful(link: Any, sql: str) -> None:
        if not re.match("SET TRANSACTION SNAPSHOT", sql):
            run(link, sql)

    with planted("Link.run", forgetful):
        yield


@contextmanager
def ends_quietly() -> Iterator[None]:
    """A connection that breaks is taken for the end of its rows."""
    stream = original("Snapshot.stream")

    def quiet(snapshot: Any, select: str) -> Iterator[Any]:
        with suppress(Exception):
            yield from stream(snapshot, select)

    with planted("Snapshot.stream", quiet):
        yield


@contextmanager
def one_fails_quietly() -> Iterator[None]:
    """One of several streams that breaks is taken for the end of its rows."""
    merged = original("merged streams")

    def quiet(stream: Callable[[], Iterator[Any]]) -> Iterator[Any]:
        with suppress(Exception):
            yield from stream()

    def all_quiet(streams: Any) -> Iterator[Any]:
        yield from merged([lambda each=each: quiet(each) for each in streams])

    with planted("merged streams", all_quiet):
        yield


@contextmanager
def short_pages() -> Iterator[None]:
    """The last page of a range is in no range."""
    between = original("pages between")

    def short(low: int | None, high: int | None) -> str:
        return str(between(low, None if high is None else high - 1))

    with planted("pages between", short):
        yield


@contextmanager
def raw_cells() -> Iterator[None]:
    """The server compares what it stores, and not what it sends."""
    compared = original("compared by the server")

    def raw(column: Any, wanted: Any, *, is_utf8: bool) -> str | None:
        text = compared(column, wanted, is_utf8=is_utf8)
        return None if text is None else text.replace(column.sql, '"' + column.name + '"')

    with planted("compared by the server", raw):
        yield


@contextmanager
def half_of_an_or() -> Iterator[None]:
    """The unknown part of an OR is left out, as that of an AND."""
    written = original("written for the server")

    def loose(wanted: Any, facts: Any) -> str | None:
        if wanted.operator != "or":
            found: str | None = written(wanted, facts)
            return found
        known = [part for each in wanted.of if (part := loose(each, facts)) is not None]
        return f"({' OR '.join(known)})" if known else None

    with planted("written for the server", loose):
        yield


Plant = Callable[[], AbstractContextManager[None]]
# a bug -> the case that kills it, where it was published, and how to plant it
BUGS: dict[str, tuple[str, str, Plant]] = {
    "a snapshot of each connection's own": (
        "S64",
        "parallel dumps without a synchronized snapshot",
        snapshot_of_its_own,
    ),
    "a broken connection ends its rows": ("S64", "a cursor that takes an error for the end of its rows", ends_quietly),
    "one broken stream of several ends its rows": (
        "S64",
        "a pool whose failed worker is not missed",
        one_fails_quietly,
    ),
    "a page between two readers is lost": ("S64", "ranges of pages that leave one out between them", short_pages),
    "the server compares what it stores": ("S65", "a pushed-down filter on a cell that is read as NULL", raw_cells),
    "half of an OR is pushed down": (
        "S65",
        "a pushed-down OR without the part the server cannot compute",
        half_of_an_or,
    ),
}

if is_here():
    for _name, (_killer, _published, _plant) in BUGS.items():
        mutant(_name, killed_by=_killer, published=_published)(_plant)
