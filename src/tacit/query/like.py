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


def like(text: str, pattern: Pattern) -> bool:
    """Return whether all of the text matches, in time proportional to text times pattern at most."""
    units: list[str | Wild] = [unit for part in pattern.parts for unit in (part if isinstance(part, str) else (part,))]
    here = place = 0
    star, resume = -1, 0
    while here < len(text):
        if place < len(units) and units[place] is Wild.ANY:
            star, resume = place, here
            place += 1
        elif place < len(units) and (units[place] is Wild.ONE or units[place] == text[here]):
            here, place = here + 1, place + 1
        elif star >= 0:
            resume += 1
            here, place = resume, star + 1
        else:
            return False
    return all(unit is Wild.ANY for unit in units[place:])
