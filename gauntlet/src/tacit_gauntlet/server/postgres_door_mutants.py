"""Published bugs of database protocols, planted in PostgreSQL's door, that the cases must kill."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import original, planted


@mutant("a door that counts no guesses", killed_by="W23", published="database logins without a limit on attempts")
@contextmanager
def no_limit_at_the_door() -> Iterator[None]:
    """Count no wrong proof."""
    with planted("Guesses.note", lambda _self, _address: None):
        yield


@mutant("a session that outlives its token", killed_by="W23", published="pooled connections kept after a revocation")
@contextmanager
def token_looked_up_once() -> Iterator[None]:
    """Look a token up only when its session begins."""

    async def refresh(_self: Any) -> None:
        return

    with planted("token before a statement", refresh):
        yield


@mutant("a nonce that is always the same", killed_by="W23", published="challenges that repeat, so that a reply can too")
@contextmanager
def same_nonce() -> Iterator[None]:
    """Use the client's nonce only."""
    with planted("server nonce", lambda: b"x" * 18):
        yield


@mutant("any name with any token", killed_by="W23", published="an identity taken from the client's own claim")
@contextmanager
def any_name() -> Iterator[None]:
    """Try a proof on the tokens of every person."""
    with planted("salt of SCRAM", lambda _name: b"x" * 16), planted("name of a token's keys", lambda _name: ""):
        yield


@mutant(
    "parameters pasted into the text", killed_by="W24", published="SQL injection through emulated prepared statements"
)
@contextmanager
def pasted() -> Iterator[None]:
    """Put parameters between quotes, as they are."""

    def in_our_words(self: Any, constants: Any = ()) -> str:
        text: str = self.text
        for number, each in enumerate(constants, 1):
            text = text.replace(f"${number}", f"'{each}'")
        return text

    with planted("statement in our words", in_our_words):
        yield


@mutant("a describe that answers", killed_by="W25", published="drivers that run a query to learn its columns")
@contextmanager
def describe_answers() -> Iterator[None]:
    """Learn the columns of a statement from its answer."""

    async def columns(self: Any, person: Any, asked: Any, settings: Any, constants: Any) -> Any:
        return (await self.run(person, asked, settings, constants)).columns

    with planted("columns of a statement", columns):
        yield


@mutant("answers of the door when they are ready", killed_by="W25", published="response times that depend on rows")
@contextmanager
def at_once() -> Iterator[None]:
    """Keep no tick."""
    with planted("PublicClock.seconds_left", lambda _self: 0.0):
        yield


@mutant("a question asked anew by each connection", killed_by="W25", published="averaging of repeated queries")
@contextmanager
def never_the_same() -> Iterator[None]:
    """Make each question another one."""
    usual, count = original("statement in our words"), iter(range(10**6))

    def in_our_words(self: Any, constants: Any = ()) -> str:
        text: str = usual(self, constants)
        return re.sub(r" from t\b", f" FROM t WHERE x <> {1000 + next(count)}", text, count=1, flags=re.IGNORECASE)

    with planted("statement in our words", in_our_words):
        yield


@mutant(
    "an error of the door that runs the question", killed_by="W26", published="charges made before a message is read"
)
@contextmanager
def charged_while_read() -> Iterator[None]:
    """Ask with an amount of the server's choice where a connection has named none."""
    usual = original("settings of a question")

    def options(self: Any) -> Any:
        return {"epsilon": "0.01", **usual(self)}

    with planted("settings of a question", options):
        yield
