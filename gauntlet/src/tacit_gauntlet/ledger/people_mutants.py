"""Published bugs where people are known: spellings, ends, roles, refunds, tokens that leak or linger."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import original, planted


@mutant("names as written", killed_by="L28", published="budgets by user name, and names that differ in case")
@contextmanager
def names_as_written() -> Iterator[None]:
    """Give each spelling of a name an account of its own."""
    with planted("name_key", lambda name: name):
        yield


@mutant("look-alikes let in", killed_by="L28", published="homograph user names")
@contextmanager
def look_alikes() -> Iterator[None]:
    """Let in a name that people take for another's."""
    with planted("look of a name", lambda name: name):
        yield


def _why_not(**kept: Any) -> Any:
    why_not = original("Person.why_not")
    return lambda self, table, *, time: why_not(replace(self, **kept), table, time=time)


@mutant("ended people ask", killed_by="L29", published="accounts that are disabled in one place and live in another")
@contextmanager
def ended_people_ask() -> Iterator[None]:
    """Forget that someone's time has ended."""
    with planted("Person.why_not", _why_not(ended=False)):
        yield


@mutant("ends forgotten", killed_by="L29", published="an expiry that is shown and not checked")
@contextmanager
def ends_forgotten() -> Iterator[None]:
    """Let people ask after their time."""
    with planted("Person.why_not", _why_not(until=None)):
        yield


@mutant("ends by the machine's clock", killed_by="L29", published="an expiry that a clock set back undoes")
@contextmanager
def ends_by_the_clock() -> Iterator[None]:
    """Take the clock's word for the time, whatever the last entry's was."""
    with planted("never_earlier", lambda time, _latest: time):
        yield


@mutant("auditors ask", killed_by="L29", published="a role that reads everything may also ask")
@contextmanager
def auditors_ask() -> Iterator[None]:
    """Take an auditor for an analyst."""
    with planted("Person.why_not", _why_not(role="analyst")):
        yield


@mutant("tables not looked at", killed_by="L29", published="authorisation of the user and not of the object")
@contextmanager
def any_table() -> Iterator[None]:
    """Let everyone who may ask ask about every table."""
    with planted("Person.why_not", _why_not(tables=None)):
        yield


@mutant("the first table alone", killed_by="L29", published="a join checked for its first table")
@contextmanager
def first_table_alone() -> Iterator[None]:
    """Look at the table that pays, and not at those that a join reads beside it."""
    why_not = original("who may ask")
    with planted("who may ask", lambda draft, analyst, table: why_not(draft, analyst, replace(table, beside=()))):
        yield


@mutant("the nameless let in", killed_by="L29", published="a request without a user is an administrator's")
@contextmanager
def nameless_let_in() -> Iterator[None]:
    """Ask for a name only where one is given."""
    why_not = original("who may ask")
    with planted(
        "who may ask", lambda draft, analyst, table: None if analyst is None else why_not(draft, analyst, table)
    ):
        yield


@mutant("a grant starts from nothing", killed_by="L30", published="a budget that is set anew forgets what was spent")
@contextmanager
def granted_from_nothing() -> Iterator[None]:
    """Set an analyst's account to nothing when a budget is granted."""
    grant = original("grant a budget")

    def forgiving(draft: Any, name: str, loss: Any, *, analyst: str | None, **words: Any) -> Any:
        budget = grant(draft, name, loss, analyst=analyst, **words)
        scope = budget.scope(analyst=original("name_key")(analyst or ""), time=draft.time)
        account = replace(draft.account(scope), spent=original("Account")().spent)
        draft.state.put(original("account_name")(scope), original("account_text")(account))
        return budget

    with planted("grant a budget", forgiving):
        yield


@mutant("revoked is unlimited", killed_by="L30", published="a limit that is removed instead of set to nothing")
@contextmanager
def revoked_is_unlimited() -> Iterator[None]:
    """Forget a budget that is revoked, so that everyone's alone holds."""
    budgets = original("RuleBook.budgets")

    def forgetful(self: Any, cohort: str, analyst: str | None) -> Any:
        return [one for one in budgets(self, cohort, analyst) if not one[1].is_revoked]

    with planted("RuleBook.budgets", forgetful):
        yield


@mutant("secrets kept", killed_by="L31", published="API tokens in a table, as they are")
@contextmanager
def secrets_kept() -> Iterator[None]:
    """Keep a token's secret instead of its hash."""
    with planted("secret_hash", lambda secret: secret):
        yield


@mutant("tokens cached", killed_by="L31", published="a session cache that outlives the token")
@contextmanager
def tokens_cached() -> Iterator[None]:
    """Remember who came with a token, and do not look again."""
    whose, seen = original("whose token"), {}

    def remembered(self: Any, secret: str) -> Any:
        if (id(self), secret) not in seen:
            seen[id(self), secret] = whose(self, secret)
        return seen[id(self), secret]

    with planted("whose token", remembered):
        yield


@mutant("rows believed", killed_by="L31", published="who can write the table of tokens is an administrator")
@contextmanager
def rows_believed() -> Iterator[None]:
    """Believe the hash in a token's row, whatever the chain says."""
    with planted("token_check", lambda _id, _hash: "believed"):
        yield


@mutant("tokens come back", killed_by="L31", published="a user who is enabled again has their old keys")
@contextmanager
def tokens_come_back() -> Iterator[None]:
    """Let a person's old tokens hold again once they are let in again."""
    person_from = original("person_from")
    with planted("person_from", lambda entry: replace(person_from(entry), since=0)):
        yield


@mutant("early return", killed_by="L32", published="an unknown user is refused sooner than a wrong password")
@contextmanager
def early_return() -> Iterator[None]:
    """Stop looking where there is no such id."""
    held = original("what a secret led to")

    def early(draft: Any, id: str, hash: str) -> Any:
        if draft.rows.token(id) is None:
            return type("Held", (), {"person": None, "is_over": False, "last_used": None, "time": draft.time})()
        return held(draft, id, hash)

    with planted("what a secret led to", early):
        yield


@mutant("ended without an entry", killed_by="L33", published="a revocation that leaves no trace")
@contextmanager
def ended_without_an_entry() -> Iterator[None]:
    """End a token by deleting its row alone."""

    def silent(self: Any, id: str, *, reason: str = "") -> None:
        del reason
        self._store.beside("DELETE FROM tacit_token WHERE id = ?", (id[6:22] if id.startswith("tacit_") else id,))

    with planted("Ledger.end_token", silent):
        yield
