"""Text that others wrote, as a screen may show it.

A key, a column's name or a ledger's reason may hold what a terminal obeys (an escape sequence that moves the cursor,
sets the title or pastes), or what reorders the text around it. None of it is obeyed here: it is shown as `\\x1b`.
"""

import json
import unicodedata
from typing import Any

# controls, formats (what turns the direction of writing is among them), halves of pairs, separators of lines
OBEYED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
JOINERS = "\u200c\u200d"  # part of how words and pictures are written, and of nothing else


def printable(text: str, *, keeping: str = "") -> str:
    """Return a text with everything that a screen would obey written out, but for the characters in `keeping`.

    >>> printable("a\\x1b[31mb"), printable("two\\nlines", keeping="\\n") == "two\\nlines"
    ('a\\\\x1b[31mb', True)
    """
    if text.isprintable():
        return text
    return "".join(letter if letter in keeping else _written_out(letter) for letter in text)


def json_text(record: Any) -> str:
    """Return a record as JSON of the same meaning in which nothing is left that a screen would obey."""
    written = json.dumps(record, ensure_ascii=False, indent=2)
    if all(line.isprintable() for line in written.split("\n")):
        return written
    return "".join(
        letter if letter == "\n" or _written_out(letter) == letter else json.dumps(letter)[1:-1] for letter in written
    )


def _written_out(letter: str) -> str:
    if unicodedata.category(letter) not in OBEYED or letter in JOINERS:
        return letter
    code = ord(letter)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 2**16 else f"\\U{code:08x}"
