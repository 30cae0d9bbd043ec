"""Published bugs of doors, records and curators' routes, planted in ours, that the cases must kill."""

import html
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import original, planted


@mutant("certificates for whoever asks", killed_by="W01r", published="object-level authorization left out of exports")
@contextmanager
def certificates_for_all() -> Iterator[None]:
    """Give a certificate by its number alone."""

    async def certificate(self: Any, _person: Any, number: int) -> Any:
        try:
            return await self.aside(lambda: self.ledger.certificate(number))
        except ValueError:
            raise original("unknown")("answer") from None

    with planted("Desk.certificate", certificate):
        yield


@mutant("the whole record for whoever asks", killed_by="W01r", published="an audit log that every user can read")
@contextmanager
def record_for_all() -> Iterator[None]:
    """Let everyone read every entry."""
    with planted("may_read", lambda *_: True):
        yield


@mutant(
    "reasons as they were written", killed_by="W01n", published="an audit log that names what its reader may not see"
)
@contextmanager
def reasons_of_others() -> Iterator[None]:
    """Show every entry whole to who may read it."""
    with planted("without_others", lambda _person, entry, _tables: entry):
        yield


@mutant("words that name every table", killed_by="W01n", published="names joined in from a table of all objects")
@contextmanager
def names_of_all() -> Iterator[None]:
    """Write an entry's words with the names of all tables."""
    shown = original("entry as shown")

    def naming(ledger: Any, entry: Any, readable: Any, _tables: Any) -> Any:
        return shown(ledger, entry, readable, {table.id: table for table in ledger.tables()})

    with planted("entry as shown", naming):
        yield


@mutant("formulas in CSV", killed_by="W03", published="CSV injection: cells that begin with =")
@contextmanager
def formulas() -> Iterator[None]:
    """Write cells as they are."""
    with planted("defused cell", lambda value: value):
        yield


@mutant("markup in pictures", killed_by="W03", published="stored XSS through labels of a chart")
@contextmanager
def markup_in_pictures() -> Iterator[None]:
    """Put texts into a picture as they are."""
    drawn = original("picture as SVG")
    with planted("picture as SVG", lambda answer: html.unescape(drawn(answer))):
        yield


@mutant("a picture that is a page", killed_by="W03", published="SVG served without a sandbox, opened by itself")
@contextmanager
def picture_as_a_page() -> Iterator[None]:
    """Serve pictures like any other reply."""
    with planted("headers of pictures", {}):
        yield


@mutant("a line with the time it took", killed_by="W05", published="access logs with durations")
@contextmanager
def durations_logged() -> Iterator[None]:
    """Log how long the engine took."""
    run, note = original("Desk.run"), original("Watching.note")
    taken: list[float] = []

    def timed(self: Any, *rest: Any) -> Any:
        began = self.now()
        found = run(self, *rest)
        taken.append(self.now() - began)
        return found

    def noting(self: Any, *rest: Any) -> None:
        note(self, *rest)
        logging.getLogger("tacit.server").info("took %s", taken[-1:])

    with planted("Desk.run", timed), planted("Watching.note", noting):
        yield


@mutant("counts of slow answers", killed_by="W05", published="a histogram of durations at /metrics")
@contextmanager
def durations_counted() -> Iterator[None]:
    """Count answers by how long the engine took."""
    run, text = original("Desk.run"), original("Watching.text")
    taken: list[float] = []

    def timed(self: Any, *rest: Any) -> Any:
        began = self.now()
        found = run(self, *rest)
        taken.append(self.now() - began)
        return found

    with (
        planted("Desk.run", timed),
        planted("Watching.text", lambda self: f"{text(self)}tacit_slow_total {sum(each > 1 for each in taken)}\n"),
    ):
        yield


@mutant("problems without headers", killed_by="W13", published="security headers on successes alone")
@contextmanager
def bare_problems() -> Iterator[None]:
    """Leave the headers out of what is no success."""
    usual = original("headers of every reply")

    def on_successes(given: Any) -> Any:
        kinds = [value for name, value in given if name == b"content-type"]
        return list(given) if any(b"problem" in kind for kind in kinds) else usual(given)

    with planted("headers of every reply", on_successes):
        yield


@mutant("scripts from anywhere", killed_by="W13", published="'unsafe-inline' for one handler")
@contextmanager
def inline_scripts() -> Iterator[None]:
    """Let pages run what is written in them."""
    with planted("what pages may load", "; script-src 'self' 'unsafe-inline'; style-src 'self'; form-action 'self'"):
        yield


@mutant("a token ended without an entry", killed_by="W14", published="a revocation that leaves no trace")
@contextmanager
def ended_silently() -> Iterator[None]:
    """Forget a token's hash, and write nothing."""

    def stop(desk: Any, id: str, _reason: str) -> dict[str, Any]:
        desk.ledger._store.beside(original("FORGET_HASH"), (id,))
        return {"id": id, "ended": True}

    with planted("stop_token", stop):
        yield


@mutant("denied logins are not written", killed_by="W14", published="logs of successes alone")
@contextmanager
def denied_silently() -> Iterator[None]:
    """Log what was let in."""
    note = original("Watching.note")

    def noting(self: Any, scope: Any, status: int, problem: Any) -> None:
        if status != 401:
            note(self, scope, status, problem)

    with planted("Watching.note", noting):
        yield


@mutant("an address in an error", killed_by="W15", published="a connection string in an exception")
@contextmanager
def address_in_an_error() -> Iterator[None]:
    """Say which ledger cannot be used, by its whole address."""
    begin, fault = original("PostgresStore.__init__"), original("LedgerError")

    def opened(self: Any, address: str) -> None:
        try:
            begin(self, address)
        except fault as error:
            raise fault(f"{error} ({address})") from None

    with planted("PostgresStore.__init__", opened):
        yield


@mutant("a key in an error", killed_by="W15", published="a secret's own text in the message about it")
@contextmanager
def key_in_an_error() -> Iterator[None]:
    """Say which text is no key."""
    key_from, problem = original("key_from"), original("LedgerError")

    def read(text: bytes, where: str) -> Any:
        try:
            return key_from(text, where)
        except problem:
            raise problem(f"{where} is not a signing key: {text.decode()}") from None

    with planted("key_from", read):
        yield


@mutant("any path is a source", killed_by="W17", published="path traversal in an upload or import")
@contextmanager
def any_path() -> Iterator[None]:
    """Declare tables from wherever the request says."""
    with planted("allowed_source", lambda source, _folders, _catalog: source):
        yield


@mutant("links are not followed when checked", killed_by="W17", published="a symlink out of an allowed folder")
@contextmanager
def links_not_followed() -> Iterator[None]:
    """Look at the path as it is written."""
    with planted("is_under", lambda path, folders: any(str(path).startswith(str(each)) for each in folders)):
        yield


@mutant("a tool that grants", killed_by="W20", published="administrative tools exposed to an agent")
@contextmanager
def granting_tool() -> Iterator[None]:
    """Give agents a tool for budgets."""
    verbs = original("verbs of agents")

    async def grant(_person: Any, _given: Any) -> Any:
        return {"granted": True}

    with planted("verbs of agents", lambda desk: {**verbs(desk), "grant": grant}):
        yield


@mutant("names as they are", killed_by="W20", published="prompt injection through a schema")
@contextmanager
def unframed() -> Iterator[None]:
    """Give agents a table's names as plain text."""

    def plain(record: Any, *, is_error: bool = False) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": str(record)}], "isError": is_error}

    with planted("framed", plain):
        yield
