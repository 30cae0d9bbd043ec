"""What an entry of the catalogue is, and the rules about types that many of them share."""

from collections.abc import Callable
from dataclasses import dataclass

from tacit.errors import QueryRefused
from tacit.query.kind import FLOAT, INT, TEXT, Kind, common, decimal, phrase
from tacit.query.show import Shown

Kinds = tuple[Kind, ...]
Rule = Callable[[Kinds, Shown], Kind]


@dataclass(frozen=True)
class Function:
    """One entry: its name in the tree, how it is written, what it means, and its result's kind.

    `rule` takes the arguments' kinds and the call (written out in its error), and returns the result's kind or refuses.
    """

    name: str
    form: str
    meaning: str
    rule: Rule


def one_kind(kinds: Kinds, where: object) -> Kind:
    """Return the kind that all arguments share, at least one of which is not NULL."""
    result = Kind("null")
    for kind in kinds:
        result = common(result, kind, where=where)
    if result.type == "null":
        raise QueryRefused(f"{where} is NULL whatever the row\nhint: leave it out, or give one result that is not NULL")
    return INT if result.type == "int" else result


def text(kinds: Kinds, where: object) -> Kind:
    """Return text, if all arguments are."""
    for kind in kinds:
        if kind.type != "text":
            raise QueryRefused(f"{where} is for text, and has {phrase(kind)}\nhint: CAST(x AS TEXT) first")
    return TEXT


def numbers(kinds: Kinds, where: object, *, align: bool = True) -> Kind:
    """Return the kind two numbers share; without `align` only whether it is int, decimal or float."""
    refuse_null(kinds, where)
    for kind in kinds:
        if not kind.is_number:
            raise QueryRefused(f"{where} is for numbers, and has {phrase(kind)}\nhint: {_way_to_number(kind)}")
    if align:
        return common(kinds[0], kinds[1], where=where)
    types = {kind.type for kind in kinds}
    return FLOAT if "float" in types else decimal(1, 0) if "decimal" in types else INT


def number(kinds: Kinds, where: object) -> Kind:
    """Return the kind of the first argument, a number."""
    kind = numbers((kinds[0], kinds[0]), where)
    return INT if kind.type == "int" else kind


def refuse_null(kinds: Kinds, where: object) -> None:
    """Refuse a call that is NULL on every row."""
    if any(kind.type == "null" for kind in kinds):
        raise QueryRefused(f"{where} is NULL whatever the row\nhint: write x IS NULL or x IS NOT NULL")


def refuse_count(kinds: Kinds, where: Shown, counts: tuple[int, ...], form: str) -> None:
    """Refuse a call with another number of arguments."""
    if len(kinds) not in counts:
        raise QueryRefused(f"{where} has {len(kinds)} argument(s)\nhint: write {form}")


def _way_to_number(kind: Kind) -> str:
    if kind.is_time:
        return "DATE_DIFF('day', a, b) is the time between, x + INTERVAL 3 DAY another day, EXTRACT(YEAR FROM x) a part"
    return "CAST(x AS INT) or CAST(x AS FLOAT) first" if kind.type in ("text", "bool") else "use a number"
