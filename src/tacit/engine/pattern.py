"""LIKE on an engine: its own where the pattern has no escape, otherwise a regular expression of the same meaning."""

import ibis.expr.types as ir

from tacit.query.like import Pattern, Wild


def matches(text: ir.Value, pattern: Pattern) -> ir.Value:
    """Return whether all of the text matches the pattern."""
    if pattern.escape is None:
        return text.like("".join(part.value if isinstance(part, Wild) else part for part in pattern.parts))
    return text.re_search("(?s)^" + "".join(_regular(part) for part in pattern.parts) + "$")


def _regular(part: str | Wild) -> str:
    if isinstance(part, Wild):
        return ".*" if part is Wild.ANY else "."
    return "".join(_plain(character) for character in part)


def _plain(character: str) -> str:
    if character.isalnum() or not character.isascii():
        return character
    return f"\\x{ord(character):02x}"
