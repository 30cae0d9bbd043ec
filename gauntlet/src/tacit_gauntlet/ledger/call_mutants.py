"""Bugs of ledgers in which several learn and ask at once, planted in ours."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import original, planted


@mutant("a fact that is each asker's own", killed_by="L36", published="a cache key with the user in it")
@contextmanager
def own_facts() -> Iterator[None]:
    """Have facts of its own for each analyst, with a budget or without."""
    with planted("question_of", lambda _view, keys, _cohort, _analyst: keys.own):
        yield


@mutant("a fact that nobody waits for", killed_by="L36", published="a cache stampede: each miss computes the value")
@contextmanager
def stampede() -> Iterator[None]:
    """Go on at once, whoever is at work on the same."""
    with planted("waited_for", lambda _key, _locks: nullcontext()):
        yield


@mutant(
    "room that is set aside and not counted", killed_by="L36", published="check, then act: a balance read too early"
)
@contextmanager
def uncounted() -> Iterator[None]:
    """Decide on a charge by what is spent alone."""
    nothing = original("Charge")()
    with planted("Draft.set_aside", lambda _self, _cohort, **_: nothing):
        yield


@mutant("a call whose rest is not set aside", killed_by="L36", published="a first payment without a hold on the rest")
@contextmanager
def only_the_first() -> Iterator[None]:
    """Charge for the fact, and see later whether there is room for the answer."""
    nothing = original("Charge")()
    with planted("Call.rest_after", lambda _self, _charge, **_: nothing):
        yield


@mutant("room that is kept for the dead", killed_by="L36", published="a hold without an end after a crash")
@contextmanager
def kept_for_ever() -> Iterator[None]:
    """Take every call for one in progress."""

    def never(_self: Any, _key: str) -> bool:
        return False

    with planted("FileLocks.is_free", never):
        yield


@mutant("a fact that dies with its asker", killed_by="L36", published="work that was paid for is paid for again")
@contextmanager
def lost_fact() -> Iterator[None]:
    """Charge for a fact anew where its asker has died."""
    with planted("attempts left", lambda _view, _charge: False):
        yield
