"""A new key for a ledger that exists: an entry, signed by the key before, that names the one from there on.

The head is signed by the newest key. To open a ledger, the entries are followed from the newest key back to the first:
each names the key before it and has that key's signature over its position in the chain. Adding one needs a key, and a
head that an old key signed after its end is refused. Certificates carry the key that signed them.
"""

from tacit.errors import InvalidParameter, LedgerError
from tacit.ledger.chain import SigningKey, verify_signature
from tacit.ledger.draft import KEY, LedgerDraft
from tacit.ledger.entry import Entry, Record
from tacit.ledger.store import NotAsSigned

WHAT = "tacit key rotation 1"
REASON_MAX = 1000


def rotate(draft: LedgerDraft, *, old: SigningKey, new: SigningKey, reason: str) -> Entry:
    """Add the entry by which `new` signs from here on; the draft is sealed with it."""
    if not isinstance(reason, str) or not reason.strip() or len(reason) > REASON_MAX:
        raise InvalidParameter(
            f"a reason is needed, of at most {REASON_MAX} characters\nhint: --reason 'the yearly change'"
        )
    last = draft.fact(KEY)
    record = {
        "kind": "key",
        "public_key": new.public,
        "before": old.public,
        "since": 1 if last is None else last.number,  # the entry that named the key before
        "reason": reason,
    }
    number, previous = draft.head.number + 1, draft.head.hash
    signature = old.sign(statement(draft.head.ledger, number, previous, record))
    draft.next_key = new
    return draft.append({**record, "signature": signature})


def statement(ledger: str, number: int, previous: str, record: Record) -> Record:
    """Return what the key before signs: the new key, and its place in the chain."""
    named = {name: record[name] for name in ("public_key", "before", "since")}
    return {"what": WHAT, "ledger": ledger, "number": number, "previous": previous, **named}


def is_signed(ledger: str, number: int, previous: str, record: Record) -> bool:
    """Return whether the key before has signed an entry that names a new one."""
    said = statement(ledger, number, previous, record)
    return verify_signature(said, signature=str(record["signature"]), public=str(record["before"]))


def keys_of(draft: LedgerDraft) -> list[tuple[int, str]]:
    """Return each key of a ledger with the entry that named it, the newest first, every step checked; the head may be
    not."""
    first = draft.rows.entry(1)
    if first is None:
        raise NotAsSigned
    if KEY not in list(draft.rows.names(KEY)):  # the usual case: the rest of the ledger is not read
        return [(1, str(first.record["public_key"]))]
    last = draft.fact(KEY)
    found: list[tuple[int, str]] = []
    try:
        while last is not None and last.number > 1:
            record, before = last.record, draft.entry(last.number - 1)
            if last.kind != "key" or before is None:
                raise NotAsSigned
            if not is_signed(draft.head.ledger, last.number, before.hash, record):
                raise NotAsSigned
            found.append((last.number, str(record["public_key"])))
            named = draft.entry(int(record["since"]))
            if named is None or named.number >= last.number or named.record["public_key"] != record["before"]:
                raise NotAsSigned
            last = named
        return [*found, (1, str(first.record["public_key"]))]
    except (KeyError, TypeError, ValueError) as error:
        raise NotAsSigned from error


def require_follows(keys: list[tuple[int, str]], known: str) -> str:
    """Return the newest key, if the one that we know is among those before it."""
    if known not in [public for _, public in keys]:
        raise LedgerError(
            "the ledger is signed by a key that does not follow from the one it had; no answer was given"
            "\nhint: put the newest copy back, then: tacit ledger verify"
        )
    return keys[0][1]
