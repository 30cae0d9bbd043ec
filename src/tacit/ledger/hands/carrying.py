"""Carrying a charge out: the part of a ledger between a charge and its answer, by one process at a time."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from tacit.errors import BeingAnswered, InvalidParameter
from tacit.ledger import charging
from tacit.ledger.chain import digest
from tacit.ledger.charging import Attempt, Receipt
from tacit.ledger.draft import Draft
from tacit.ledger.entry import Entry
from tacit.ledger.group_commit import GroupCommit
from tacit.ledger.hands.in_hand import InHand, in_hand, taken
from tacit.ledger.people.spelling import name_key
from tacit.ledger.registry import RegisteredTable
from tacit.ledger.store import Store


@dataclass(frozen=True)
class Reservation:
    """A charge that has been made: the answer it pays for may now be computed, and committed once."""

    ledger: "CarriesOut"
    attempt: Attempt

    @property
    def charge(self) -> Entry:
        """The charge's entry."""
        return self.attempt.charge

    @property
    def number(self) -> int:
        """The number of the charge's entry."""
        return self.charge.number

    def commit(self, answer: str, shown: str | None = None) -> Receipt:
        """Store the released answer and return the receipt; on return it is durable and anchored, and may leave.

        `shown` is the answer's numbers with their error bars, as they leave, for people to read.
        """
        return self.ledger.commit(self.attempt, answer, shown)

    def fail(self) -> None:
        """Note that there is no answer, and will be none: a charge that was made in hand is not carried out again."""
        if "attempts" in self.charge.record:
            self.ledger.fail(self.attempt)


class CarriesOut:
    """The part of a ledger that stores answers, each from the newest attempt at its charge."""

    id: str
    durable: bool
    _store: Store
    _group_commit: GroupCommit

    def _view(self) -> AbstractContextManager[Draft]:
        raise NotImplementedError

    @contextmanager
    def in_hand(self, request_id: str, analyst: str | None = None) -> Iterator[None]:
        """Carry out a request alone among all processes of this ledger; `BeingAnswered` where another one has it.

        What is charged inside, and has no answer because this process dies, is carried out again by whoever has the
        request in hand next.
        """
        key = digest("request", self.id, None if analyst is None else name_key(analyst), request_id)
        with taken(InHand(self.id, request_id, analyst), key, self._store.locks) as is_alone:
            if not is_alone:
                raise BeingAnswered(
                    "this request id is being answered, here or by another server of the same ledger"
                    "\nhint: ask again under the same request id: it is charged once"
                )
            yield

    def fail(self, attempt: Attempt) -> None:
        """Note that an attempt at a charge has failed; see `Reservation.fail`."""
        self._group_commit.submit(lambda draft: charging.fail(draft, attempt))

    def commit(self, attempt: Attempt, answer: str, shown: str | None = None) -> Receipt:
        """Store the answer that a charge paid for; see `Reservation.commit`."""
        if not isinstance(answer, str):
            raise InvalidParameter(f"answer must be text, not {type(answer).__name__}")
        return self._group_commit.submit(
            lambda draft: charging.commit(draft, attempt, answer, shown, durable=self.durable),
            likely=attempt.likely(),
            publishes=True,
        )

    def _standing(self, draft: Draft, table: RegisteredTable) -> Entry | None:
        """Return the charge of the request that is in hand here, where it is to be carried out again."""
        now = in_hand(self.id)
        if now is None:
            return None
        keys = charging.keys_of(table, question_key="-", request_id=now.request_id, analyst=now.analyst, ledger=self.id)
        return charging.standing_for(draft, keys)
