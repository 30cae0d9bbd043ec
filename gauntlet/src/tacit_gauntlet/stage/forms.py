"""Calls of the functions of numbers, texts and times over the made-up columns, with constants that matter to each."""

from collections.abc import Iterator, Sequence

from tacit.query.kind import value_of
from tacit.query.named_functions import PARTS, REACH, UNITS
from tacit.query.nodes import Call, Expression

_PLACES = (1, 2, 5, 15, -1, -2, -5, -15)
_PIECES = ((1,), (2,), (1, 0), (1, 1), (1, 3), (2, 2), (4, 1000), (7,), (1_000_000, 1_000_000))
_REPLACED = (
    *(("a", ""), ("a", "b"), ("a", "aa"), ("aa", "a"), ("é", "e"), ("e", "é"), ("👩", "x"), ("\u0301", "!")),
    *((" ", ""), ("1", "12"), ("%", "_"), ("\\", "\\\\"), ("'", '"'), ("\x00", "0"), ("--", "-"), ("a\nb", "🙂")),
)
_INTERVALS = (
    *(("day", 1), ("day", -1), ("day", 0), ("day", 146_097), ("month", 1), ("month", -1), ("month", 11), ("year", 4)),
    *(("quarter", 1), ("week", -1), ("hour", 1), ("minute", -1), ("second", 1), ("second", -86_400), ("year", -2011)),
    *((unit, reach) for unit, reach in REACH.items()),
    *((unit, -reach) for unit, reach in REACH.items()),
)


def function_forms(columns: Sequence[Expression], constants: Sequence[Expression]) -> Iterator[Call]:
    """Return calls of each function on each column; those that its types refuse are for the caller to drop."""
    for name in ("least", "greatest", "concat"):
        yield from (Call(name, (left, right)) for left in columns for right in [*columns, *constants])
    for name in ("abs", "round", "floor", "ceil", "length"):
        yield from (Call(name, (column,)) for column in columns)
    for left in columns:
        yield Call("least", (left, value_of(None)))
        yield from (Call("greatest", (left, right, left)) for right in columns)
        yield Call("concat", (left, left, value_of("é "), left))
        yield from (Call("round", (left, value_of(places))) for places in _PLACES)
        yield from (Call("substring", (left, *map(value_of, piece))) for piece in _PIECES)
        yield from (Call("replace", (left, value_of(old), value_of(new))) for old, new in _REPLACED)
        yield from (Call("extract", (value_of(part), left)) for part in PARTS)
        yield from (Call("date_trunc", (value_of(unit), left)) for unit in UNITS)
        yield from (Call("add_interval", (left, value_of(number), value_of(unit))) for unit, number in _INTERVALS)
        for unit in UNITS:
            yield from (Call("date_diff", (value_of(unit), left, right)) for right in [*columns, *constants])
            yield from (Call("date_diff", (value_of(unit), constant, left)) for constant in constants)
