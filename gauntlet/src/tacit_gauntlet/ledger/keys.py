"""Attacks on a ledger whose key is changed: keys that nobody signed for, and old keys that go on signing (L34)."""

from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.keys import changed, is_opened, signed_by_a_stranger, signed_by_the_old_key


@case("L34", title="a key is changed by who has the one before, and an old one signs nothing more", feature="ledger")
def keys(_: Size) -> Evidence:
    """Change a key twice and verify what each signed; then name a key without the old one, and sign with the old."""
    kept = changed()
    forged, late = signed_by_a_stranger(), signed_by_the_old_key()
    opened = {"a stranger's key": is_opened(forged), "an old key's head": is_opened(late)}
    passed = kept.verifies and kept.keys == 3 and kept.certificates == 3 and not any(opened.values())
    return Evidence(
        passed, {"keys": kept.keys, "certificates": kept.certificates, "whole": kept.verifies, "opened": opened}
    )
