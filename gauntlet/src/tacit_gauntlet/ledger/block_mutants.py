"""Bugs of budgets that are per block of rows, planted in ours."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC
from typing import Any

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import original, planted


@mutant("blocks of another zone", killed_by="L42", published="a daily budget of UTC's days")
@contextmanager
def other_zone() -> Iterator[None]:
    """Take every zone for UTC."""
    with planted("zone of blocks", lambda _name: UTC):
        yield


@mutant("texts as the zone's clocks", killed_by="L42", published="local days of times that were stored in UTC")
@contextmanager
def texts_as_shown() -> Iterator[None]:
    """Take times that were read from texts with an offset for what clocks of the zone show."""
    with planted("times that are read in UTC", property(lambda _self: frozenset())):
        yield


@mutant("the second midnight", killed_by="L42", published="a fold read as its last hour")
@contextmanager
def second_midnight() -> Iterator[None]:
    """Begin a block at the last of the instants that clocks show as its midnight."""
    with planted(
        "begin of a block",
        lambda midnight, zone: midnight.replace(tzinfo=zone, fold=1).astimezone(UTC).replace(tzinfo=None),
    ):
        yield


@mutant("conditions that are not understood", killed_by="L42", published="parallel composition claimed by a parser")
@contextmanager
def understood() -> Iterator[None]:
    """Charge an OR only for the part that is understood."""
    spans, everything = original("spans of a condition"), original("spans of what is not understood")

    def hopeful(condition: Any, column: str) -> Any:
        if getattr(condition, "function", "") != "or":
            return spans(condition, column)
        parts = [spans(part, column) for part in condition.arguments]
        return tuple(span for part in parts if part != everything for span in part)

    with planted("spans of a condition", hopeful):
        yield


@mutant("all blocks are one more", killed_by="L42", published="a query of everything counted beside its parts")
@contextmanager
def one_more_block() -> Iterator[None]:
    """Limit each block by the charges that name it."""
    with planted("RuleBook.total", lambda _self, _budget, account, scope, *_: account(scope)):
        yield


@mutant("blocks that were charged before", killed_by="L42", published="a limit checked against the fresh part only")
@contextmanager
def forgotten_blocks() -> Iterator[None]:
    """Let a question about all blocks pass if a fresh block has room."""
    with planted("RuleBook.blocks", lambda _self, _cohort: []):
        yield


@mutant("replaced within one block", killed_by="L42", published="parallel composition under bounded neighbours")
@contextmanager
def one_side() -> Iterator[None]:
    """Charge one block where rows of one may be replaced by rows of another."""
    charged = original("RuleBook.charged")

    def once(self: Any, budget: Any, **words: Any) -> Sequence[tuple[str, int]]:
        return [(scope, 1) for scope, _ in charged(self, budget, **words)]

    with planted("RuleBook.charged", once):
        yield
