"""The stage for attacks on a ledger's key: ledgers whose key was changed, by who may and by who may not."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import TacitError
from tacit.ledger import Ledger, change_key, open_ledger, verify_certificate
from tacit.ledger.chain import SigningKey, new_key
from tacit.ledger.draft import LedgerDraft
from tacit.ledger.rotation import rotate
from tacit_gauntlet.stage.ledger import TENTH, answered, private_home, register


@dataclass(frozen=True)
class Kept:
    """What a ledger with several keys gives: how many keys signed it, and certificates that verify with theirs."""

    keys: int
    certificates: int
    verifies: bool


@dataclass(frozen=True)
class _Forger:
    """Says to be one key, and signs with another."""

    public: str
    own: SigningKey

    def sign(self, message: Any) -> str:
        return self.own.sign(message)


def changed() -> Kept:
    """Change a key twice, answering before, between and after; open it again and verify all of it."""
    with private_home() as home:
        path = home / "ledger.db"
        certificates = []
        with open_ledger(path) as book:
            table = register(book)
            for number in range(3):
                answered(book, table, f"q{number}", epsilon=TENTH)
                certificates.append(book.certificate(book.length()))
                if number < 2:
                    change_key(book, f"change {number}")
        with open_ledger(path) as book:
            found = book.verify()
            names = {verify_certificate(each)["key"] for each in certificates}
        before = {name for _, name in found.keys_before}
        return Kept(len(before) + 1, len(names), names == {*before, found.key})


def signed_by_a_stranger() -> Path:
    """Return a ledger, whole in all else, in which an entry names a key that the one before has not signed for."""
    mine = new_key()

    def steal(book: Ledger) -> None:
        forger: Any = _Forger(book.public_key, mine)
        book._submit(lambda draft: rotate(draft, old=forger, new=mine, reason="stolen"))

    return _kept_after(steal)


def signed_by_the_old_key() -> Path:
    """Return a ledger whose key was changed, and whose head the old key has signed since."""

    def go_on(book: Ledger) -> None:
        old = book._signing_key()
        change_key(book, "a change")

        def by_the_old_key(draft: LedgerDraft) -> None:
            draft.append({"kind": "override", "reason": "stolen", "anchor": None})
            draft.next_key = old

        book._submit(by_the_old_key)

    return _kept_after(go_on)


def _kept_after(act: Any) -> Path:
    with private_home() as home:
        with open_ledger(home / "ledger.db") as book:
            answered(book, register(book), "q", epsilon=TENTH)
            act(book)
        kept = Path(tempfile.mkdtemp(prefix="tacit-keys-")) / "ledger.db"
        shutil.copy(home / "ledger.db", kept)
        return kept


def is_opened(path: Path) -> bool:
    """Return whether a ledger is opened and verified, on a machine that has never seen it; it is gone afterwards."""
    try:
        with private_home(), open_ledger(path, create=False) as book:
            book.verify()
    except TacitError:
        return False
    finally:
        shutil.rmtree(path.parent)
    return True
