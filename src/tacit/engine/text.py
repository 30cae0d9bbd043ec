"""Functions of text on an engine, all by code point; what an engine would do by grapheme or language is avoided."""

import ibis
import ibis.expr.types as ir

from tacit.engine.made import Made, Translation
from tacit.query.text_functions import POSITION_MAX
from tacit.tables.reading import TEXT_BYTES_MAX

_UPPER, _LOWER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"
_NOT_PLAIN = "[^ -~]"
bytes_of = ibis.udf.scalar.builtin(lambda text: text, name="strlen", signature=(("string",), "int64"))


def _folded(made: Made, *, up: bool) -> ir.Value:
    """Engines fold É and İ each in their own way, so theirs, much quicker than ours, is for plain ASCII alone."""
    text = made.cells[0].value
    theirs = text.upper() if up else text.lower()
    ours = text.translate(_LOWER, _UPPER) if up else text.translate(_UPPER, _LOWER)
    return ibis.cases((text.re_search(_NOT_PLAIN), ours), else_=theirs)


def _substring(made: Made) -> ir.Value:
    length = made.number(2) if len(made.cells) == 3 else None
    start = ibis.literal(made.number(1) - 1, "int64")
    # a length beyond any text where none is given: engines read a missing one in their own ways
    return made.cells[0].value.substr(start, ibis.literal(_ALL if length is None else length, "int64"))


_ALL = 2**31 - 1 - POSITION_MAX


def _concat(made: Made) -> ir.Value:
    first, *rest = (cell.value for cell in made.cells)
    size = bytes_of(first)
    for text in rest:
        size = size + bytes_of(text)
    joined = _where_short(first, size)
    for text in rest:
        joined = joined + text
    return joined


def _replace(made: Made) -> ir.Value:
    text, old, new = (cell.value for cell in made.cells)
    was, becomes = (len(str(made.constant(place)).encode()) for place in (1, 2))
    if becomes <= was:
        return text.replace(old, new)
    taken = bytes_of(text) - bytes_of(text.replace(old, ibis.literal("")))
    size = bytes_of(text) + (taken / was).floor().cast("int64") * (becomes - was)
    return _where_short(text, size).replace(old, new)


def _where_short(text: ir.Value, made: ir.Value) -> ir.Value:
    """Return the text where what is made of it is short enough, NULL elsewhere: longer text is never made."""
    return ibis.cases((made <= TEXT_BYTES_MAX, text), else_=ibis.null("string"))


TEXTS: dict[str, Translation] = {
    "lower": lambda made: _folded(made, up=False),
    "upper": lambda made: _folded(made, up=True),
    "trim": lambda made: made.cells[0].value.strip(),
    "length": lambda made: made.cells[0].value.length().cast("int64"),
    "substring": _substring,
    "concat": _concat,
    "replace": _replace,
}
