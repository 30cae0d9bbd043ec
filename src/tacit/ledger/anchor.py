"""The anchor: a small file, apart from the ledger, that remembers how far the ledger had come.

A ledger put back from an old copy would let the budget be spent twice. The anchor is moved forward after each answer is
in the ledger and before the answer leaves, and is on the disk by then. A ledger ahead of its anchor is normal (the
process stopped in between); a ledger that is behind, or that has another history at that number, is refused.

Two slots are written in turn, each with its own checksum, so a torn write leaves the other one to read.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from tacit.errors import LedgerError
from tacit.ledger.chain import canonical, digest, is_fresh_id
from tacit.numbers import read_json
from tacit.system import PLAIN, lock_file, read_at, sync_content, sync_folder, write_at

_SLOT = 1024

HashOf = Callable[[int], str | None]


@dataclass(frozen=True)
class AnchorPosition:
    """A ledger's last position: an entry's number and hash, the key that signs it, and a hash of the ledger's place."""

    number: int
    hash: str
    key: str
    place: str


class LedgerAnchor:
    """The anchor of one ledger, shared by every process that has the same home folder."""

    def __init__(self, folder: Path, ledger: str) -> None:
        if not is_fresh_id(ledger):  # the id names a file, and comes from the ledger's own tables
            raise LedgerError("this ledger has an id that tacit never makes\nhint: ask where the file comes from")
        self.path: Path = folder / ledger
        self._seen: AnchorPosition | None = None

    def read(self) -> AnchorPosition | None:
        """Return the anchored position, or None if this machine lacks an anchor for the ledger."""
        marks = self._read_marks()
        if marks is not None and not any(marks):
            marks = self._read_marks(between_writes=True)
        if marks is None:
            return None
        if not any(marks):
            raise LedgerError(
                f"the anchor {self.path} is damaged, so an old copy of the ledger cannot be detected"
                "\nhint: once you are sure of the ledger, remove the anchor; the next answer makes a new one"
            )
        return max((mark for mark in marks if mark), key=lambda mark: mark.number)

    def _read_marks(self, *, between_writes: bool = False) -> "list[AnchorPosition | None] | None":
        """Return the two slots' positions, or None if both are unwritten; others may be writing, unless we wait."""
        try:
            with _opened(self.path, os.O_RDONLY) as descriptor:
                if between_writes:
                    lock_file(descriptor, shared=True)
                content = _content(descriptor)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LedgerError(
                f"the anchor {self.path} cannot be read ({error.strerror})\nhint: run as its owner"
            ) from error
        # made, and stopped before the first mark was on the disk
        return _positions(content) if content.strip(b"\0\n") else None

    def check(self, hash_of: HashOf) -> AnchorPosition | None:
        """Refuse a ledger that is behind its anchor or has another history; `hash_of` gives its entries' hashes."""
        mark = self.read()
        if mark is not None:
            self._compare(mark, hash_of)
        return mark

    def require_writable(self) -> None:
        """Refuse a home folder that may not be written: found out after a charge, it would cost the answer."""
        try:
            with _opened(self.path, os.O_RDWR):
                return
        except FileNotFoundError:
            with self._locked():
                return
        except OSError as error:
            raise self._unwritable(error) from error

    def advance(self, mark: AnchorPosition, hash_of: HashOf) -> None:
        """Move the anchor forward to `mark`, on the disk on return; a ledger that has forked is refused instead."""
        with self._locked() as descriptor:
            marks = _positions(_content(descriptor))
            known = max((found for found in marks if found), key=lambda found: found.number, default=None)
            if known is not None and known != self._seen:
                self._compare(known, hash_of)
            if known is None or known.number < mark.number:
                self._write(descriptor, mark, marks)
                self._seen = mark

    def replace(self, mark: AnchorPosition) -> None:
        """Set the anchor to `mark`, also backwards: the curator's override, after the ledger has an entry about it."""
        with self._locked() as descriptor:
            os.ftruncate(descriptor, 0)
            self._write(descriptor, mark, [None, None])
            self._seen = mark

    def _compare(self, mark: AnchorPosition, hash_of: HashOf) -> None:
        found = hash_of(mark.number)
        if found == mark.hash:
            return
        fault = "is behind the answers that this machine has given from it" if found is None else "has another history"
        raise LedgerError(
            f"this ledger {fault}: the anchor {self.path} is at entry {mark.number}. The ledger may be an old "
            "copy, and answering from it could spend a budget twice; no answer was given"
            "\nhint: put the newest copy back; or, if that is lost, accept the old one for the record: "
            "tacit ledger accept --reason '...'"
        )

    def _write(self, descriptor: int, mark: AnchorPosition, marks: "list[AnchorPosition | None]") -> None:
        newest = max((0, 1), key=lambda slot: -1 if (found := marks[slot]) is None else found.number)
        write_at(descriptor, _slot_text(mark), (1 - newest) * _SLOT)
        sync_content(descriptor)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        try:
            is_new = not self.path.exists()
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with _opened(self.path, os.O_RDWR | os.O_CREAT) as descriptor:
                lock_file(descriptor)
                yield descriptor
            if is_new:
                sync_folder(self.path.parent)
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> LedgerError:
        return LedgerError(
            f"the anchor {self.path} cannot be written ({error.strerror}); no answer was given"
            "\nhint: $TACIT_HOME must be a folder where you may write, on a disk with space"
        )


def _content(descriptor: int) -> bytes:
    room = bytearray(2 * _SLOT)
    return bytes(room[: read_at(descriptor, room, 0)])


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    """Open a plain file of ours: refuse links and files that would block."""
    descriptor = os.open(path, flags | PLAIN, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "the file is not a plain file")
        yield descriptor
    finally:
        os.close(descriptor)


def anchored_at(folder: Path, places: Iterable[str], *, other_than: str | None = None) -> Path | None:
    """Return the anchor of another ledger that used to be at one of `places`, if there is one."""
    if not folder.is_dir():
        return None
    known = {digest(place) for place in places}
    for path in sorted(folder.iterdir()):
        if not is_fresh_id(path.name) or path.name == other_than:
            continue  # not made by us, or the one to leave out
        mark = LedgerAnchor(folder, path.name).read()
        if mark is not None and mark.place in known:
            return path
    return None


def _slot_text(mark: AnchorPosition) -> bytes:
    text = canonical([asdict(mark), digest(asdict(mark))]).encode()
    return text.ljust(_SLOT, b"\n")


def _positions(content: bytes) -> "list[AnchorPosition | None]":
    return [_position(content[:_SLOT]), _position(content[_SLOT:])]


def _position(slot: bytes) -> AnchorPosition | None:
    try:
        record, checksum = read_json(slot)
        mark = AnchorPosition(**record) if digest(record) == checksum else None
    except (ValueError, TypeError):
        return None
    return mark if mark is None or (type(mark.number) is int and isinstance(mark.hash, str)) else None
