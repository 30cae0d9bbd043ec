"""The home folder of keys, anchors and the default ledger; how a ledger is opened, and backed up.

Opening goes from a name to a ledger that is ours, whole at its end, and not an old copy. A backup is a whole copy in
another place, from and to either store. It is of the past: where answers were given since, it is behind its anchor, and
refused until the curator accepts it (`tacit ledger accept`).
"""

import os
from pathlib import Path

from tacit.errors import InvalidParameter, LedgerError
from tacit.ledger.anchor import LedgerAnchor, anchored_at
from tacit.ledger.chain import (
    BEGINNING,
    SigningKey,
    fingerprint,
    fresh_id,
    is_fresh_id,
    is_whole_text,
    key_from,
    link,
    load_key,
    load_or_make_key,
    new_key,
    verify_signature,
    write_privately,
)
from tacit.ledger.clock import Clock, system_clock, time_text
from tacit.ledger.draft import LedgerDraft, first_draft
from tacit.ledger.entry import SCHEMA, Entry, Head, Writes
from tacit.ledger.ledger import Ledger
from tacit.ledger.rotation import keys_of
from tacit.ledger.sqlite import MEMORY, Connect, SqliteStore, connect_to_file
from tacit.ledger.store import KEEP_USED, LedgerStore, NotAsSigned, StoreRows
from tacit.ledger.verify import Verified, verify
from tacit.system import make_folder, others_may_write, sync_folder


def home_folder() -> Path:
    """Return $TACIT_HOME, or the folder for programs' state; if missing, it is made for its owner only."""
    return _ours(_named_folder(), "put another key or ledger there").absolute()


def default_ledger() -> Path:
    return home_folder() / "ledger.db"


def has_default_ledger() -> bool:
    """Whether the default ledger exists; nothing is made."""
    return (_named_folder() / "ledger.db").exists()


def key_file() -> Path:
    """Return the path of the signing key: $TACIT_KEY_FILE, for servers that share one, or in the home folder."""
    named = os.environ.get("TACIT_KEY_FILE")
    return Path(named) if named else home_folder() / "signing.key"


def anchors_folder() -> Path:
    folder = home_folder() / "anchors"
    return _ours(folder, "remove the anchors that detect an old copy of a ledger") if folder.exists() else folder


def _ours(folder: Path, danger: str) -> Path:
    """Return a folder, made if it is missing; a folder that others may write to is refused."""
    try:
        make_folder(folder)
        shared = others_may_write(folder.stat())
    except OSError as error:
        raise LedgerError(
            f"the folder {folder} cannot be made ({error.strerror})\nhint: set TACIT_HOME to a folder you may write"
        ) from error
    if shared:
        raise LedgerError(f"others may write to {folder}, so they could {danger}\nhint: chmod go-w {folder}")
    return folder


def _named_folder() -> Path:
    named = os.environ.get("TACIT_HOME")
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(named) if named else Path(state) / "tacit"


# ---- opening a ledger ------------------------------------------------------------------------------------------------


class TryOut:
    """`tacit.TRYOUT`, instead of a ledger: everything works as usual, in a ledger that ends with the process.

    The ledger is not stored: its budget protects people only during this process, and every answer has a note on that.
    """

    def __repr__(self) -> str:
        return "tacit.TRYOUT"


TRYOUT = TryOut()
POSTGRES = ("postgresql://", "postgres://")


def open_ledger(
    where: str | os.PathLike[str] | None = None,
    *,
    create: bool = True,
    accept: str | None = None,
    clock: Clock = system_clock,
    connect: Connect = connect_to_file,
) -> Ledger:
    """Return the ledger at a path, in PostgreSQL (`postgresql://...`), or in memory (`:memory:`, not durable).

    With no `where` it is `ledger.db` in $TACIT_HOME. A missing ledger is made, unless `create` is False. A ledger
    behind its anchor is refused unless `accept` gives the curator's reason, which is kept as an entry.

    >>> open_ledger(":memory:").durable
    False
    """
    store = open_store(where, connect, create=create)
    try:
        return _open_durable(store, clock, accept, create=create) if store.durable else _open_in_memory(store, clock)
    except BaseException as error:
        if isinstance(error.__cause__, NotAsSigned):
            _name_the_damage(store)
        store.close()
        raise


def open_store(
    where: str | os.PathLike[str] | None, connect: Connect = connect_to_file, *, create: bool
) -> LedgerStore:
    """Return the store at a place, as `open_ledger` finds it; its content is not read."""
    text = os.fspath(default_ledger() if where is None else where)
    if not isinstance(text, str) or not text:
        raise InvalidParameter("ledger must be a path, a postgresql:// address or ':memory:'")
    if "\0" in text or not is_whole_text(text):
        raise InvalidParameter(
            "the ledger path is not a valid file name\nhint: remove NUL characters and unpaired surrogates"
        )
    if text.startswith(POSTGRES):
        from tacit.ledger.postgres import PostgresStore

        return PostgresStore(text)
    path = None if text == MEMORY else Path(text)
    if path is not None and not create and not path.exists():
        raise _no_ledger(os.path.realpath(path))
    return SqliteStore(path, connect)


def _open_durable(store: LedgerStore, clock: Clock, accept: str | None, *, create: bool) -> Ledger:
    with store.reading() as rows:
        is_new = rows.head() is None
    if is_new:
        _refuse_if_lost(store)
        if not create:
            raise _no_ledger(store.place)
        _begin(store, _key_in_environment() or load_or_make_key(key_file()), clock)
    with store.reading() as rows:
        head, public = _checked_ends(rows)
    _refuse_if_replaced(store, head.ledger)
    anchor = LedgerAnchor(anchors_folder(), head.ledger)
    ledger = Ledger(store, id=head.ledger, public_key=public, key=_own_key, anchor=anchor, clock=clock)
    if accept is None:
        ledger.check_anchor()
    else:
        ledger.accept(accept)
    if is_new:
        ledger.anchor_now()
    return ledger


def _open_in_memory(store: LedgerStore, clock: Clock) -> Ledger:
    key = new_key()
    _begin(store, key, clock)
    with store.reading() as rows:
        head, public = _checked_ends(rows)
    return Ledger(store, id=head.ledger, public_key=public, key=lambda _: key, anchor=None, clock=clock)


def _begin(store: LedgerStore, key: SigningKey, clock: Clock) -> None:
    """Write the first entry, which names the ledger and its key, unless another process did so first."""

    def work(rows: StoreRows) -> Writes | None:
        if rows.head() is not None:
            return None
        ledger = fresh_id()
        draft = first_draft(rows, ledger=ledger, time=time_text(clock))
        draft.append({"kind": "ledger", "ledger": ledger, "public_key": key.public, "schema": SCHEMA})
        return draft.seal(key)

    store.transact((), work)


def _name_the_damage(store: LedgerStore) -> None:
    """Read the whole ledger and raise the error that names its damage, if that finds it."""
    try:
        with store.reading() as rows:
            verify(rows)
    except LedgerError:
        store.close()
        raise


def _no_ledger(place: str) -> LedgerError:
    return LedgerError(f"no ledger exists at {place}\nhint: give its path with --ledger PATH or TACIT_HOME")


def _refuse_if_lost(store: LedgerStore) -> None:
    """Refuse an empty place that an anchor remembers, unless another process has filled it meanwhile."""
    remembered = anchored_at(anchors_folder(), store.places)
    if remembered is None:
        return
    with store.reading() as rows:
        if rows.head() is not None:
            return
    raise LedgerError(
        f"there was a ledger at {store.place} and it is gone; a new one would not know what was spent"
        f"\nhint: put it back; or, if no person's privacy depends on it any more, remove its anchor: {remembered}"
    )


def _refuse_if_replaced(store: LedgerStore, ledger: str) -> None:
    """Refuse a ledger at the place of another, even a whole one: the other's spending is missing from it."""
    remembered = anchored_at(anchors_folder(), store.places, other_than=ledger)
    if remembered is not None:
        raise LedgerError(
            f"the ledger at {store.place} was replaced: the spending of the earlier one is missing from this one; "
            "no answer was given"
            f"\nhint: put it back; or, if no person's privacy depends on it any more, remove its anchor: {remembered}"
        )


def _checked_ends(rows: StoreRows) -> tuple[Head, str]:
    """Return the head and the newest public key, after checking both ends of the chain and the signature."""
    head, first = rows.head(), rows.entry(1)
    last = None if head is None else rows.entry(head.number)
    try:
        whole = (
            head is not None
            and first is not None
            and last is not None
            and link(BEGINNING, first.body) == first.hash
            and (first.kind, first.record["ledger"]) == ("ledger", head.ledger)
            and is_fresh_id(head.ledger)
            and last.hash == head.hash
        )
        if not whole or head is None:
            raise NotAsSigned
        public = keys_of(LedgerDraft(rows, head, time=head.time))[0][1]
        whole = verify_signature(head.signed(), signature=head.signature, public=public)
    except (ValueError, KeyError, TypeError):
        whole = False
    if not whole or head is None:
        raise NotAsSigned
    return head, public


# ---- keys ------------------------------------------------------------------------------------------------------------

KEY_VARIABLE = "TACIT_KEY"


def change_key(ledger: Ledger, reason: str, output: str | os.PathLike[str] | None = None) -> tuple[str, str, str]:
    """Sign a ledger with a fresh key; return the short names of both, and the path of the old one.

    The new key is written before the ledger names it, and the home folder keeps the old one for other ledgers: a stop
    at any moment leaves the key that the ledger wants.
    """
    old, new, path = ledger.public_key, new_key(), key_file()
    if output is None and _key_in_environment() is not None:
        raise InvalidParameter(
            f"the key is in the variable {KEY_VARIABLE}, which you set\nhint: --output FILE, then set it again"
        )
    target = _old_key_path(path, new.public) if output is None else Path(output)
    try:
        write_privately(target, new.text())
        sync_folder(target.absolute().parent)
    except OSError as error:
        raise LedgerError(
            f"the new key cannot be written to {target} ({error.strerror})\nhint: name a new file with --output"
        ) from None
    ledger.change_key(new, reason)
    kept = path
    if output is None:
        kept = _old_key_path(path, old)
        if not kept.exists():
            kept.hardlink_to(path)
        target.replace(path)
        sync_folder(path.parent)
    return fingerprint(old), fingerprint(new.public), str(kept)


def _own_key(public: str) -> SigningKey:
    """Return the signing key of this machine, if it is the one the ledger is signed by."""
    given, path = _key_in_environment(), key_file()
    if given is not None and given.public == public:
        return given
    key = load_key(path)
    for found in (key, load_key(_old_key_path(path, public))):
        if found is not None and found.public == public:
            return found
    where = f"the key at {path}" if given is None else f"the key in {KEY_VARIABLE}"
    shown = key if given is None else given
    fault = f"the key {path} is missing" if shown is None else f"{where} is {fingerprint(shown.public)}"
    raise LedgerError(
        f"this ledger is signed by the key {fingerprint(public)}, but {fault}; no answer was given"
        "\nhint: copy the key from the machine that made the ledger, or set TACIT_HOME to where it is"
    )


def _old_key_path(path: Path, public: str) -> Path:
    """Return the path of an old key of a home folder, by its short name."""
    return path.with_name(f"{path.stem}-{fingerprint(public)}{path.suffix}")


def _key_in_environment() -> SigningKey | None:
    """Return the key that the environment has as text, for machines that get their secrets so."""
    text = os.environ.get(KEY_VARIABLE)
    return key_from(text.encode("utf-8", "replace"), f"what {KEY_VARIABLE} has") if text else None


# ---- backups ---------------------------------------------------------------------------------------------------------


def back_up(source: str | os.PathLike[str] | None, target: str | os.PathLike[str]) -> Verified:
    """Copy a ledger into an empty place, verify the copy, and return the report.

    The source is checked against its anchor and verified first: an old or damaged one is refused.
    """
    open_ledger(source, create=False).close()
    return _copied(open_store(source, create=False), open_store(target, create=True))


def restore(backup: str | os.PathLike[str], target: str | os.PathLike[str] | None) -> Verified:
    """Copy a backup into an empty place, verify it, and return the report."""
    return _copied(open_store(backup, create=False), open_store(target, create=True))


def _copied(source: LedgerStore, target: LedgerStore) -> Verified:
    try:
        with source.reading() as rows:
            verify(rows)
            writes, tokens = _all_of(rows), rows.tokens()
        written: list[bool] = []

        def work(rows: StoreRows) -> Writes | None:
            written[:] = [rows.head() is None]
            return writes if written[0] else None

        target.transact((), work)
        if not written[0]:
            raise LedgerError(
                f"there is a ledger at {target.place} already; it was not changed"
                "\nhint: choose a place without a ledger, or move the old one away"
            )
        for token in tokens:
            target.beside(KEEP_USED, token)
        with target.checking(), target.reading() as rows:
            return verify(rows)
    finally:
        source.close()
        target.close()


def _all_of(rows: StoreRows) -> Writes:
    head = rows.head()
    if head is None:
        raise LedgerError("no ledger exists in this place\nhint: give the ledger's path with --ledger PATH")
    entries = [Entry(*columns) for columns in rows.columns()]
    return Writes(None, head, entries, [*rows.values()], [*rows.nodes().items()])
