"""Published ways to lose or double a charge, planted in the ledger; each is killed by the case it names."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tacit.errors import DeadRequest
from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import original, planted


@mutant(
    "a batch decided on the totals before it",
    killed_by="L01b",
    published="group commit without a running total",
    raises="LedgerError: the ledger does not verify",
)
@contextmanager
def decided_before_the_batch() -> Iterator[None]:
    """Let all who share a transaction be judged by what was spent before it."""

    def account(self: Any, scope: str) -> Any:
        name = original("account_name")(scope)
        put = self.state._put.pop(name, None)
        before = self.state.get(name)
        if put is not None:
            self.state.put(name, put)
        return original("Account")() if before is None else original("account_from")(before)

    with planted("Draft.account", account):
        yield


@mutant(
    "read then write",
    killed_by="L01",
    published="time of check to time of use: totals read before the lock is taken",
    raises="LedgerError: the ledger went back",
)
@contextmanager
def read_then_write() -> Iterator[None]:
    """Decide on what was read before the write lock was taken."""

    def transact(self: Any, _: Sequence[Any], work: Any) -> None:
        with self.turn, self._opened() as connection:
            connection.execute("BEGIN")
            writes = work(original("rows in SQLite")(connection))
            connection.execute("ROLLBACK")
            if writes is None:
                return
            connection.execute("BEGIN IMMEDIATE")
            for entry in writes.entries:
                connection.execute("DELETE FROM tacit_entry WHERE number = ?", (entry.number,))
            _write_anyway(connection, writes)
            connection.execute("COMMIT")

    def _write_anyway(connection: Any, writes: Any) -> None:
        for number, hash in list(connection.execute("SELECT number, hash FROM tacit_head")):
            writes.before = original("Head")("", number, hash, "", "", "")
        original("write to SQLite")(connection, writes)

    with planted("SqliteStore.transact", transact):
        yield


@mutant("write behind", killed_by="L02", published="a charge is written some time after its answer has left")
@contextmanager
def write_behind() -> Iterator[None]:
    """Leave the commit to the next transaction."""

    def transact(self: Any, _: Sequence[Any], work: Any) -> None:
        with self.turn, self._opened() as connection:
            if getattr(self, "_open_transaction", False):
                connection.execute("COMMIT")
            connection.execute("BEGIN IMMEDIATE")
            self._open_transaction = True
            writes = work(original("rows in SQLite")(connection))
            if writes is not None:
                original("write to SQLite")(connection, writes)

    @contextmanager
    def reading(self: Any) -> Iterator[Any]:
        with self.turn, self._opened() as connection:
            yield original("rows in SQLite")(connection)

    disconnect, close = original("SqliteStore.disconnect"), original("SqliteStore.close")

    def flush(self: Any) -> None:
        if self._connection is not None and getattr(self, "_open_transaction", False):
            self._open_transaction = False
            self._connection.execute("COMMIT")

    def flush_and_disconnect(self: Any) -> None:
        flush(self)
        disconnect(self)

    def flush_and_close(self: Any) -> None:
        flush(self)
        close(self)

    with (
        planted("SqliteStore.transact", transact),
        planted("SqliteStore.reading", reading),
        planted("SqliteStore.disconnect", flush_and_disconnect),
        planted("SqliteStore.close", flush_and_close),
    ):
        yield


@mutant("no anchor", killed_by="L04", published="a restored backup gives the budget back")
@contextmanager
def no_anchor() -> Iterator[None]:
    """Believe any copy of the ledger whose own chain is whole."""
    with planted("Anchor.compare", lambda *_: None):
        yield


@mutant(
    "chain without the previous hash",
    killed_by="L05",
    published="entries are hashed one by one, so one can be rewritten",
)
@contextmanager
def unchained() -> Iterator[None]:
    """Hash each entry alone."""

    def link(_: str, body: str) -> str:
        return hashlib.sha256(body.encode()).hexdigest()

    with planted("link", link):
        yield


@mutant("float sums", killed_by="L06", published="budgets summed in floating point admit too many or too few")
@contextmanager
def float_sums() -> Iterator[None]:
    """Add in floating point."""

    def add(self: Any, other: Any) -> Any:
        pure = self.epsilon is not None and other.epsilon is not None
        epsilon = Fraction(float(self.epsilon) + float(other.epsilon)) if pure else None
        return original("Charge")(epsilon, self.rho + other.rho, self.delta + other.delta)

    with planted("Charge.__add__", add):
        yield


@mutant("the clock as it is", killed_by="L07", published="setting the clock back re-opens yesterday's budget")
@contextmanager
def plain_clock() -> Iterator[None]:
    """Take the time from the clock, even where it runs backwards."""
    with planted("never_earlier", lambda time, _: time):
        yield


@mutant("budget by name", killed_by="L08", published="registering the same data again gives a fresh budget")
@contextmanager
def budget_by_name() -> Iterator[None]:
    """Give every new name a budget of its own."""

    def people(_draft: object, _said: object, known: Any | None, _source: object) -> str | None:
        return None if known is None else known.cohort

    with planted("cohort of a source", people):
        yield


@mutant("refund on error", killed_by="L09", published="a failed query is not charged, so failing is a free answer")
@contextmanager
def refund() -> Iterator[None]:
    """Give a charge back when its answer cannot be stored."""
    commit = original("Ledger.commit")

    def refunding(self: Any, attempt: Any, answer: str, shown: str | None = None) -> Any:
        try:
            return commit(self, attempt, answer, shown)
        except BaseException:
            charge = attempt.charge
            paid = original("charge_from")(charge.record)
            back = original("Charge")(None if paid.epsilon is None else -paid.epsilon, -paid.rho, -paid.delta)

            def give_back(view: Any) -> None:
                view.append({"kind": "override", "reason": "refund"})
                view.charge(original("scope_of")(charge.record["people"]), back, number=charge.number)

            self._group_commit.submit(give_back)
            raise

    with planted("Ledger.commit", refunding):
        yield


@mutant("request ids forgotten", killed_by="L11", published="a retried request is charged and answered again")
@contextmanager
def forgotten_requests() -> Iterator[None]:
    """Take every request for a new one."""
    keys_of = original("keys_of")

    def forgetful(*arguments: Any, **words: Any) -> Any:
        keys = keys_of(*arguments, **words)
        return replace(keys, request=None)

    with planted("keys_of", forgetful):
        yield


@mutant(
    "stale totals",
    killed_by="L12",
    published="a cached remaining budget is believed after others have spent it",
    raises="LedgerError: the ledger does not verify",
)
@contextmanager
def stale_totals() -> Iterator[None]:
    """Believe the totals this process knows, although others have written since."""
    piece = original("State.piece")

    def believed(self: Any, at: str, hash: str) -> object:
        known = self._pieces.buckets.get(at)
        return piece(self, at, hash if known is None else known[0])

    with planted("State.piece", believed):
        yield


@mutant("totals summed anew", killed_by="L13", published="OpenDP issue 2909: each charge re-reads all before it")
@contextmanager
def summed_anew() -> Iterator[None]:
    """Add up all charges at every charge."""
    account = original("Draft.account")

    def scanning(self: Any, scope: str) -> Any:
        for _ in self.rows.columns():
            pass
        return account(self, scope)

    with planted("Draft.account", scanning):
        yield


@mutant("a retry that reuses a charge", killed_by="L15", published="one charge buys two noises after a crash")
@contextmanager
def reused_charge() -> Iterator[None]:
    """Let a request that was charged and not answered go on with the charge it has."""
    reserve, find_stored = original("decide on a charge"), original("find_stored")

    def lenient(view: Any, keys: Any, **words: Any) -> Any | None:
        try:
            return find_stored(view, keys, **words)
        except DeadRequest:
            return None

    def reusing(view: Any, request: Any) -> Any:
        made = None if request.keys.request is None else view.charge_for(request.keys.request)
        return original("Attempt")(made) if made is not None else reserve(view, request)

    with planted("find_stored", lenient), planted("decide on a charge", reusing):
        yield


@mutant(
    "any rule with room", killed_by="L16", published="a charge is admitted while any of several accountants has room"
)
@contextmanager
def any_rule_with_room() -> Iterator[None]:
    """Let the pure arm forget what is not pure, so that each arm is spent on its own."""

    def add(self: Any, other: Any) -> Any:
        epsilon = (self.epsilon or Fraction(0)) + (other.epsilon or Fraction(0))
        return original("Charge")(epsilon, self.rho + other.rho, self.delta + other.delta)

    with planted("Charge.__add__", add):
        yield


@mutant("the log synced now and then", killed_by="L03", published="SQLite's synchronous = NORMAL in WAL mode")
@contextmanager
def synced_now_and_then() -> Iterator[None]:
    """Let SQLite sync its log only at checkpoints."""
    prepare = original("SqliteStore.prepare")

    def less_careful(self: Any, connection: Any) -> None:
        prepare(self, connection)
        connection.execute("PRAGMA synchronous = NORMAL")

    with planted("SqliteStore.prepare", less_careful):
        yield


@mutant(
    "packages found missing as they are loaded",
    killed_by="L41",
    published="a budget spent on a question that fails with ModuleNotFoundError: imports inside of functions",
)
@contextmanager
def found_missing_late() -> Iterator[None]:
    with planted("whole installation", lambda: None):
        yield
