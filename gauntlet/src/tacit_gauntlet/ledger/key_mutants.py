"""Published bugs of keys that are changed, planted in ours, that the cases must kill."""

from collections.abc import Iterator
from contextlib import contextmanager

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import planted


@mutant("a new key by its own word", killed_by="L34", published="a key rotation that the old key does not sign")
@contextmanager
def by_its_own_word() -> Iterator[None]:
    """Believe every entry that names a new key."""
    with planted("is_signed", lambda *_: True):
        yield
