"""Bugs by which one unit moves a round of a model farther than was charged for the round, that M21 kills."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import original, planted


@mutant("a round charged for one of its columns", killed_by="M21", published="a sensitivity that forgets a dimension")
@contextmanager
def one_column_charged() -> Iterator[None]:
    """A round of residuals is charged as if one unit moved the sums of one column only."""
    with planted("Scores.moves_squared", property(lambda self: self.clip**2)):
        yield


@mutant(
    "rounds of replaced units charged as added", killed_by="M21", published="bounded neighbours, charged as unbounded"
)
@contextmanager
def rounds_as_added() -> Iterator[None]:
    """A unit that is replaced is charged for as one that comes."""
    with planted("moves of replaced units", lambda _session, **_words: 1):
        yield


@mutant("no rows, no round", killed_by="M21", published="an error for an empty table: whether anybody is there is told")
@contextmanager
def nobody_fails() -> Iterator[None]:
    """A plan that no row counts for fails."""
    coded = original("Engine.coded_rows")

    def failing(self: Any, plan: Any) -> Any:
        rows = coded(self, plan)
        if not len(rows.blocks):
            raise ValueError("need at least one array to concatenate")
        return rows

    with planted("Engine.coded_rows", failing):
        yield
