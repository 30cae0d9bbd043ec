"""What must stay equal from one version to the next, kept as text and made again by the tests, byte for byte.

`python -m tests.kept` says what is no longer equal, as a diff, and exits 1 if anything is.
`python -m tests.kept write` rewrites the texts on purpose, and prints the same diff. It is for a change that was
intended, such as a better wording or a name that is new: the commit that makes the change rewrites the texts, and its
reader sees what changed. What a ledger stores (ledger.txt) and what travels (wire.txt) have readers of other versions,
so there a difference needs more than a wish: see docs/decisions.md.
"""

import difflib
import sys
from collections.abc import Callable
from pathlib import Path

from tests.kept import answers, ledger, plans, wire

FOLDER = Path(__file__).resolve().parent
KEPT: dict[str, Callable[[], str]] = {
    "plans.txt": plans.text,
    "answers.txt": answers.text,
    "ledger.txt": ledger.text,
    "wire.txt": wire.text,
}


def difference(name: str, now: str) -> str:
    """Return how a text differs from the one that is kept; nothing where it does not."""
    path = FOLDER / name
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = difflib.unified_diff(before.splitlines(), now.splitlines(), f"kept {name}", f"{name} now", lineterm="", n=1)
    return "\n".join(lines)


def main(words: list[str]) -> int:
    """Show what is not equal, and write it where that is asked for."""
    if words not in ([], ["write"]):
        print(__doc__)
        return 2
    differs = False
    for name, make in KEPT.items():
        now = make()
        found = difference(name, now)
        print(found or f"{name}: equal")
        differs |= bool(found)
        if words:
            (FOLDER / name).write_text(now, encoding="utf-8")
    return int(differs and not words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
