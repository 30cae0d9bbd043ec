"""Bugs of servers that do over what a dead worker had in hand, planted in ours."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import original, planted


@mutant(
    "a worker that is slow is taken for dead", killed_by="L35", published="a lease that expires while its work runs"
)
@contextmanager
def taken_from_the_living() -> Iterator[None]:
    """Let everybody have a request in hand."""
    with planted("FileLocks.take", lambda _self, _key: True), planted("FileLocks.let_go", lambda _self, _key: None):
        yield


@mutant("two workers both answer", killed_by="L35", published="a retry without a fence: the slow one answers too")
@contextmanager
def both_answer() -> Iterator[None]:
    """Let whoever was taken over hand out what it has computed, as if it had been stored."""
    commit, receipt = original("Reservation.commit"), original("Receipt")

    def lenient(self: Any, answer: str, shown: str | None = None) -> Any:
        try:
            return commit(self, answer, shown)
        except original("BeingAnswered"):
            return receipt(self.ledger.id, self.number + 1, "", self.number, self.charge.record["time"], True)

    with planted("Reservation.commit", lenient):
        yield


@mutant(
    "attempts without an end",
    killed_by="L35",
    published="at-least-once delivery: a poisoned job runs for ever",
    raises="LedgerError: the ledger does not verify",
)
@contextmanager
def endless_attempts() -> Iterator[None]:
    """Carry a charge out as often as it is asked for."""
    newest = original("newest attempt")
    with planted("attempts left", lambda view, charge: not newest(view, charge)[1]):
        yield


@mutant(
    "a charge that dies with its worker",
    killed_by="L35",
    published="a charge is lost where a worker is killed",
    raises="DeadRequest: this request id was charged",
)
@contextmanager
def lost_charge() -> Iterator[None]:
    """Never carry a charge out again."""
    with planted("attempts left", lambda _view, _charge: False):
        yield


@mutant("a failure that is tried again", killed_by="L35", published="retry on error: each failure tells something more")
@contextmanager
def retried_failure() -> Iterator[None]:
    """Say nothing of a failure."""
    with planted("Reservation.fail", lambda _: None):
        yield


@mutant("a charge that pays for another plan", killed_by="L35", published="a retry that is planned anew")
@contextmanager
def another_plan() -> Iterator[None]:
    """Carry out whatever is asked under the id that was charged."""
    with planted("what attempts have in common", ("table",)):
        yield
