"""A LIKE pattern as its parts, so that every engine matches the same way."""

from dataclasses import dataclass
from enum import Enum

from tacit.errors import QueryRefused
from tacit.query.nodes import Expression, Value


class Wild(Enum):
    """What a wildcard stands for."""

    ANY = "%"
    ONE = "_"


@dataclass(frozen=True)
class Pattern:
    """The parts in order, plain text between wildcards, and the escape where the pattern uses one."""

    parts: tuple[str | Wild, ...]
    escape: str | None


def pattern_parts(pattern: Expression, escape: Expression | None) -> Pattern:
    """Return the parts of a pattern; refuse one that is not a constant or that escapes nothing.

    >>> pattern_parts(Value("a%b!_", "text"), Value("!", "text")).parts
    ('a', <Wild.ANY: '%'>, 'b_')
    """
    text, mark = _constant(pattern), None if escape is None else _constant(escape)
    if mark is not None and len(mark) != 1:
        raise QueryRefused("an ESCAPE must be one character\nhint: x LIKE '50!%' ESCAPE '!'")
    parts: list[str | Wild] = []
    position = 0
    while position < len(text):
        part: str | Wild = text[position]
        if part == mark:
            position += 1
            if position == len(text):
                raise QueryRefused("a LIKE pattern ends in its escape\nhint: write the escape twice to mean itself")
            part = text[position]
        elif part in ("%", "_"):
            part = Wild(part)
        if isinstance(part, str) and parts and isinstance(parts[-1], str):
            parts[-1] += part
        else:
            parts.append(part)
        position += 1
    return Pattern(tuple(parts), mark if mark is not None and mark in text else None)


def _constant(expression: Expression) -> str:
    if isinstance(expression, Value) and isinstance(expression.value, str):
        return expression.value
    raise QueryRefused("a LIKE pattern must be a constant\nhint: x LIKE 'A%'")
