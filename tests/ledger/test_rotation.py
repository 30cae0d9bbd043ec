"""A ledger's key is changed by an entry that the key before has signed; what was signed before still verifies."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tacit.errors import InvalidParameter, LedgerError
from tacit.ledger import Ledger, change_key, open_ledger, verify_certificate
from tacit.ledger.chain import SigningKey, new_key
from tacit.ledger.draft import LedgerDraft
from tacit.ledger.home import key_file
from tacit.ledger.rotation import rotate
from tacit.ledger.status import entry_line
from tacit.privacy import LaplaceNoise, epsilon


def stop(*_: object) -> None:
    raise KeyboardInterrupt


def answered(book: Ledger, number: int) -> int:
    table = book.register(name="t", declaration={"unit": "id"}, source="file:t", budget=epsilon(9))
    reserved = book.reserve(table, [LaplaceNoise(Fraction(1), Fraction(1))], question_key=f"question {number}")
    reserved.commit("{}")
    return book.length()


def test_entries_before_and_after_a_change_verify_and_so_do_certificates_of_both_keys(where: str) -> None:
    with open_ledger(where) as book:
        first = answered(book, 1)
        before = book.certificate(first)
        old, new, _ = change_key(book, "the yearly change")
        after = book.certificate(answered(book, 2))
        again = book.certificate(first)
        found = book.verify()
    assert (found.key, found.keys_before) == (new, ((first + 1, old),))
    assert [verify_certificate(each)["key"] for each in (before, after, again)] == [old, new, new]
    with open_ledger(where) as book:
        assert book.verify().key == new
        answered(book, 3)
        third = change_key(book, "again")[1]
        assert book.verify().key == third
        assert [number for number, _ in book.verify().keys_before] == [first + 1, first + 6]
        assert "the yearly change" in entry_line(book.entry(first + 1), {})  # type: ignore[arg-type]


def test_another_process_follows_a_change_and_needs_the_new_key_to_write(where: str, tmp_path: Path) -> None:
    with open_ledger(where) as one, open_ledger(where) as two:
        answered(one, 1)
        answered(two, 2)
        new = change_key(one, "a change")[1]
        answered(two, 3)  # finds the new key in its place
        assert two.verify().key == new
        change_key(one, "elsewhere", tmp_path / "new.key")
        assert two.length() == one.length()  # it still reads
        with pytest.raises(LedgerError, match="this ledger is signed by the key"):
            answered(two, 4)


def test_other_ledgers_of_the_home_keep_the_key_they_are_signed_by(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "a.db") as one, open_ledger(tmp_path / "b.db") as two:
        answered(one, 1), answered(two, 1)
        change_key(one, "a change")
        answered(two, 2)
    with open_ledger(tmp_path / "b.db") as two:
        answered(two, 3)
        two.verify()
    assert all(path.stat().st_mode & 0o077 == 0 for path in key_file().parent.glob("*.key"))


def test_a_stop_before_the_new_key_is_in_its_place_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_ledger(tmp_path / "ledger.db") as book:
        answered(book, 1)
        with monkeypatch.context() as stopped:
            stopped.setattr(Path, "hardlink_to", stop)
            with pytest.raises(KeyboardInterrupt):
                change_key(book, "a change")
    with open_ledger(tmp_path / "ledger.db") as book:
        answered(book, 2)
        book.verify()


def test_the_key_may_be_a_text_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = new_key()
    monkeypatch.setenv("TACIT_KEY", key.text().decode())
    with open_ledger(tmp_path / "ledger.db") as book:
        answered(book, 1)
        assert book.public_key == key.public
        with pytest.raises(InvalidParameter, match="in the variable TACIT_KEY"):
            change_key(book, "a change")
        change_key(book, "a change", tmp_path / "new.key")
        monkeypatch.setenv("TACIT_KEY", (tmp_path / "new.key").read_text())
        answered(book, 2)
    assert not key_file().exists()
    secret = "PRIVATE KEY canary"
    monkeypatch.setenv("TACIT_KEY", secret)
    with open_ledger(tmp_path / "ledger.db") as book, pytest.raises(LedgerError) as refusal:
        answered(book, 3)
    assert secret not in str(refusal.value)
    assert refusal.value.__cause__ is None


def test_machines_with_homes_of_their_own_share_a_ledger_by_the_key_in_their_environment(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACIT_KEY", new_key().text().decode())
    for number, name in enumerate(("one", "two", "one")):
        monkeypatch.setenv("TACIT_HOME", str(tmp_path / name))
        with open_ledger(where) as book:
            answered(book, number)
            book.verify()
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == ["anchors"]
    monkeypatch.delenv("TACIT_KEY")
    with open_ledger(where) as book, pytest.raises(LedgerError, match=r"the key (.*) is missing"):
        answered(book, 9)


@dataclass(frozen=True)
class Forger:
    """Says to be one key, and signs with another."""

    public: str
    own: SigningKey

    def sign(self, message: Any) -> str:
        return self.own.sign(message)


def test_a_key_that_the_one_before_has_not_signed_for_is_refused_though_all_else_is_whole(tmp_path: Path) -> None:
    mine = new_key()
    with open_ledger(tmp_path / "ledger.db") as book:
        answered(book, 1)
        forger: Any = Forger(book.public_key, mine)
        book._submit(lambda draft: rotate(draft, old=forger, new=mine, reason="stolen"))
        with pytest.raises(LedgerError, match="the key before has not signed it"):
            book.verify()
    with pytest.raises(LedgerError, match="the key before has not signed it"):
        open_ledger(tmp_path / "ledger.db")


def test_a_head_that_an_old_key_signed_after_its_end_is_refused(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "ledger.db") as book:
        answered(book, 1)
        old = book._signing_key()
        change_key(book, "a change")

        def by_the_old_key(draft: LedgerDraft) -> None:
            draft.append({"kind": "override", "reason": "stolen", "anchor": None})
            draft.next_key = old

        book._submit(by_the_old_key)
    with pytest.raises(LedgerError, match="signature on its head"):
        open_ledger(tmp_path / "ledger.db")


def test_a_reason_is_needed(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "ledger.db") as book:
        for reason in ("", " ", "x" * 1001):
            with pytest.raises(InvalidParameter, match="a reason is needed"):
                change_key(book, reason, tmp_path / f"{len(reason)}.key")
        assert book.length() == 1
