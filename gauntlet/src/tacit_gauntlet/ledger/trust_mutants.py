"""Published bugs of a ledger that believes what it should check: clocks, totals, entries, charges, ids and ledgers."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from typing import Any

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import original, planted


@mutant("two accounts", killed_by="L20", published="what one accountant admitted does not count for the other")
@contextmanager
def two_accounts() -> Iterator[None]:
    """Give the sum of rho a fresh start once epsilon is used up by addition."""

    def admits(self: Any, total: Any) -> Any:
        free = original("pure_to_zcdp")(self.epsilon or Fraction(0))
        fresh = replace(total, rho=max(total.rho - free, free * 0))
        return total.delta <= self.delta and (self.admits_by_addition(total) or self.admits_by_rho(fresh))

    with planted("Rule.admits", admits):
        yield


@mutant("delta counted once for each arm", killed_by="L20", published="each of two rules is given the whole delta")
@contextmanager
def delta_not_divided() -> Iterator[None]:
    """Let both arms, and the thresholds, fail with the whole of the budget's delta."""
    with (
        planted("FOR_KEYS", Fraction(1)),
        planted("FOR_NOISE", Fraction(1)),
        planted("FOR_RHO", Fraction(1)),
    ):
        yield


@mutant("epsilons added, deltas forgotten", killed_by="L20", published="(ε, δ) mechanisms composed as if ε were all")
@contextmanager
def deltas_forgotten() -> Iterator[None]:
    """Add up the epsilons of questions and not the chances that their noise is beyond them."""

    def admits(self: Any, total: Any) -> bool:
        return self.epsilon is not None and total.epsilon is not None and total.epsilon <= self.epsilon

    with planted("Rule.admits_by_addition", admits):
        yield


@mutant("noise believed", killed_by="L20", published="a mechanism is charged what it says it costs")
@contextmanager
def noise_believed() -> Iterator[None]:
    """Charge the delta that a question was made for, whatever its noise needs."""

    def believed(_events: tuple[Any, ...], _epsilon: Fraction) -> Fraction:
        return Fraction(0)

    believed.cache_clear = lambda: None  # type: ignore[attr-defined]
    with planted("noise_delta", believed):
        yield


@mutant("delta of keys, lent and not counted", killed_by="L20", published="a budget's unused delta is given away twice")
@contextmanager
def lent_delta() -> Iterator[None]:
    """Take the delta that noise gets of the keys' part off the noise's charge, and charge it nowhere."""
    charged = original("charge_of")

    def charge_of(events: Any, *, asked: Any = None) -> Any:
        drawn = tuple(events)
        return replace(charged(drawn, asked=asked), delta=charged(drawn).delta)

    with planted("charge_of", charge_of):
        yield


@mutant("a threshold's delta pays for noise too", killed_by="L21", published="one delta is spent on two failures")
@contextmanager
def delta_spent_twice() -> Iterator[None]:
    """Let the delta that a threshold needs cover noise as well when a charge is checked."""
    covers = original("covers")

    def covered(charged: Any, events: Any) -> bool:
        drawn = tuple(events)
        own = original("charge_of")(drawn).delta
        return bool(covers(replace(charged, delta=charged.delta + own), drawn))

    with planted("covers", covered):
        yield


@mutant("rho times the square of the rate", killed_by="L24", published="subsampled zCDP, true at small orders alone")
@contextmanager
def rho_of_a_sample() -> Iterator[None]:
    """Lower the rho of noise on a sample by the square of the rate."""
    zcdp = original("zcdp")

    def lowered(event: Any) -> Any:
        loss = zcdp(event)
        sampled = isinstance(event, original("SubsampledGaussian"))
        return replace(loss, rho=loss.rho * event.rate**2) if sampled else loss

    lowered.cache_clear = zcdp.cache_clear  # type: ignore[attr-defined]
    with planted("zcdp", lowered):
        yield


@mutant(
    "epsilon times the rate", killed_by="L24", published="a sample of one in a hundred costs a hundredth of epsilon"
)
@contextmanager
def epsilon_of_a_sample() -> Iterator[None]:
    """Read the delta of noise on a sample at the epsilon divided by the rate."""
    delta_at, noise = original("delta_at"), original("GaussianNoise")

    def lowered(event: Any, epsilon: Any) -> Any:
        return event.rate * delta_at(noise(event.sigma, event.sensitivity_squared), epsilon / event.rate)

    with planted("sampled_delta", lowered):
        yield


@mutant("samples of one question counted once", killed_by="L24", published="a batch of equal steps is charged as one")
@contextmanager
def samples_counted_once() -> Iterator[None]:
    """Add up the Rényi curves of a question's different events, however often each was drawn."""
    summed = original("renyi_delta")
    with planted("renyi_delta", lambda events, epsilon: summed(Counter(set(events)), epsilon)):
        yield


@mutant("charges believed", killed_by="L21", published="an audit adds up charges and does not ask what they paid for")
@contextmanager
def charges_believed() -> Iterator[None]:
    """Verify totals and chain, and take each charge as it is stated."""
    with planted("covers", lambda *_: True):
        yield


@mutant("any clock is believed", killed_by="L19", published="one reading of 2099 closes every period until then")
@contextmanager
def any_clock() -> Iterator[None]:
    """Write at whatever time the clock says."""
    with planted("FAR_AHEAD", timedelta(days=10**6)):
        yield


@mutant("a correction goes back anywhere", killed_by="L19", published="setting the clock back re-opens closed periods")
@contextmanager
def back_anywhere() -> Iterator[None]:
    """Let the curator set the ledger's time back by any amount."""
    with planted("CORRECTABLE", timedelta(days=-1)):
        yield


@mutant(
    "a correction forgets",
    killed_by="L19",
    published="a period that is entered again starts from nothing",
    raises="LedgerError: the ledger does not verify",
)
@contextmanager
def forgetful_correction() -> Iterator[None]:
    """Enter a period again as though nothing had been charged in it."""

    account = original("Draft.account")

    def forgetful(self: Any, scope: str) -> Any:
        found = account(self, scope)
        last = self.entry(found.last) if found.charges else None
        times = [] if last is None else [self.entry(number) for number in range(last.number, self.head.number + 1)]
        corrected = any(entry is not None and entry.kind == "clock" for entry in times)
        return original("Account")() if corrected and "day" in scope else found

    with planted("Draft.account", forgetful):
        yield


@mutant("totals believed as they are", killed_by="L17", published="running totals that no signature covers are reset")
@contextmanager
def believed_totals() -> Iterator[None]:
    """Take what the state's rows hold, whatever hash they should have."""

    def unchecked(self: Any, at: str, _: str) -> Any:
        text = self._rows.node(at)
        return (
            original("Piece")(False, dict(self._rows.bucket(at)))
            if text is None
            else original("Piece")(True, original("children_of")(text))
        )

    with planted("State.piece", unchecked):
        yield


@mutant("rows signed one by one", killed_by="L17", published="a row's own checksum says nothing of an older row")
@contextmanager
def stale_rows() -> Iterator[None]:
    """Take any row that the ledger has ever written, as a signature of each row alone would."""
    seen: set[tuple[str, str]] = set()
    put, bucket_hash = original("State.put"), original("bucket_hash")

    def remembering(self: Any, name: str, value: str) -> None:
        seen.add((name, value))
        put(self, name, value)

    def any_of_ours(at: str, values: dict[str, str]) -> Any:
        return bucket_hash(at, dict.fromkeys(values, "") if set(values.items()) <= seen else values)

    with planted("State.put", remembering), planted("bucket_hash", any_of_ours):
        yield


@mutant("entries believed as they are", killed_by="L17", published="a stored answer is given again unchecked")
@contextmanager
def believed_entries() -> Iterator[None]:
    """Take an entry as its row has it."""

    def unchecked(_: Any, entry: Any) -> Any:
        return entry

    with planted("Draft.checked", unchecked):
        yield


@mutant("an id is a file's name", killed_by="L18", published="CWE-22: a name from a file is joined to a folder")
@contextmanager
def id_as_path() -> Iterator[None]:
    """Take any text for an id."""
    with planted("is_fresh_id", lambda _: True):
        yield


@mutant("any ledger of ours will do", killed_by="L22", published="a fresh file in place of the old one is a new budget")
@contextmanager
def any_of_ours() -> Iterator[None]:
    """Do not ask whether another ledger used to be here."""
    with planted("refuse_if_replaced", lambda *_: None):
        yield


@mutant("stored answers count for nobody", killed_by="L23", published="a cache hit is free, whoever asks")
@contextmanager
def free_for_all() -> Iterator[None]:
    """Give every analyst what any of them paid for."""
    with planted("question_of", lambda _view, keys, *_: keys.question):
        yield
