"""Published bugs of servers that run, planted in ours: what is late, unbounded, believed too long or told too early."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import original, planted

LATE_SECONDS = 60


@mutant("answers stored after they were sent", killed_by="W06", published="commit after responding")
@contextmanager
def commit_after_responding() -> Iterator[None]:
    """Hand an answer out and store it later: a process that is killed meanwhile has given what nobody finds again."""
    commit, receipt = original("Reservation.commit"), original("Receipt")

    def late(self: Any, answer: str, shown: str | None = None) -> Any:
        later = threading.Timer(LATE_SECONDS, lambda: commit(self, answer, shown))
        later.daemon = True
        later.start()
        return receipt(self.ledger.id, self.number + 1, "", self.number, self.charge.record["time"], True)

    with planted("Reservation.commit", late):
        yield


@mutant("a queue without an end", killed_by="W07", published="unbounded queue")
@contextmanager
def unbounded_queue() -> Iterator[None]:
    """Let everybody wait."""
    begin = original("Turns.__init__")
    with planted("Turns.__init__", lambda self, number, **_: begin(self, number, waiting_max=10**9)):
        yield


@mutant("what is left, remembered", killed_by="W08", published="a cached balance that admits")
@contextmanager
def cached_left() -> Iterator[None]:
    """Decide by what was left when an analyst first asked."""
    shortfall = original("first_shortfall")
    seen: dict[Any, Any] = {}

    def remembered(draft: Any, cohort: str, *, analyst: str, **words: Any) -> Any:
        if (cohort, analyst) not in seen:
            seen[cohort, analyst] = shortfall(draft, cohort, analyst=analyst, **words)
        return seen[cohort, analyst]

    with planted("first_shortfall", remembered):
        yield


@mutant("no more looks at an id that is not there", killed_by="W11", published="an early return on an unknown id")
@contextmanager
def early_return() -> Iterator[None]:
    """Refuse a token as soon as its id is not found."""
    person_of, unauthorised = original("person_of"), original("unauthorised")

    def early(authorization: Any, tokens: Any) -> Any:
        parts = (authorization or "").split("_")
        with tokens._store.reading() as rows:
            is_there = len(parts) > 2 and rows.token(parts[1]) is not None
        if not is_there:
            problem: Exception = unauthorised()
            raise problem
        return person_of(authorization, tokens)

    with planted("person_of", early):
        yield


@mutant(
    "an address is locked out", killed_by="W11", published="a lock-out of an account or address that others can cause"
)
@contextmanager
def locked_out() -> Iterator[None]:
    """Refuse an address that has sent wrong tokens before looking at the token, and count requests without one."""
    who, too_many = original("Desk.who"), original("too_many_guesses")

    async def locking(self: Any, authorization: Any, address: str) -> Any:
        if self._guesses.is_limited(address):
            problem: Exception = too_many()
            raise problem
        return await who(self, authorization, address)

    with planted("Desk.who", locking), planted("has_token of a guess", lambda _authorization: True):
        yield


@mutant("guesses without a limit", killed_by="W11", published="no limit on failed logins")
@contextmanager
def unlimited_guesses() -> Iterator[None]:
    """Count no wrong token."""
    with planted("Guesses.note", lambda _self, _address: None):
        yield
