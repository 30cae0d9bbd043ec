"""Rows and expression trees for property tests: odd cells, and calls nested as the catalogue's types allow."""

from decimal import Decimal

from hypothesis import strategies as st

from tacit.errors import QueryRefused
from tacit.query.nodes import Call, Column
from tacit.query.typecheck import canonical, kind_of
from tacit.tables.schema import ROW, ColumnFacts, Declaration
from tacit_gauntlet.stage import cells

FORMS = cells.every_form()
CELLS = Declaration(
    "cells",
    ROW,
    {name: ColumnFacts(kind.type, scale=kind.scale, digits=kind.digits) for name, kind in cells.KINDS.items()},
)

_ints = st.integers(-(2**63), 2**63 - 1) | st.integers(-100, 100)
_texts = st.text(max_size=6) | st.from_regex(
    r"\s?[+-]?[0-9]{0,4}[.]?[0-9]{0,3}([eE][+-]?[0-9]{1,3})?\s?", fullmatch=True
)


def _decimal(steps, scale):
    """Return a decimal of up to 38 digits: by its digits, since Decimal's arithmetic rounds to 28."""
    return Decimal((int(steps < 0), tuple(map(int, str(abs(steps)))), -scale))


_STRATEGIES = {
    "i": _ints,
    "j": _ints,
    "f": st.floats(),
    "g": st.floats(),
    "s": _texts,
    "t": _texts,
    "b": st.booleans(),
    "c": st.booleans(),
    "day": st.dates(),
    "moment": st.datetimes(),
    "price": st.decimals(Decimal("-99999999.99"), Decimal("99999999.99"), places=2),
    "wide": st.decimals(Decimal(-999999999999), Decimal(999999999999), places=6),
    "huge": st.integers(1 - 10**38, 10**38 - 1).map(lambda steps: _decimal(steps, 6)),
    "tiny": st.integers(1 - 10**38, 10**38 - 1).map(lambda steps: _decimal(steps, 37)),
}


def _cell(name):
    return st.sampled_from(cells.CELLS[name][0]) | _STRATEGIES[name]


rows = st.lists(st.fixed_dictionaries({name: _cell(name) for name in cells.CELLS}), min_size=1, max_size=12)


@st.composite
def nested(draw):
    """A canonical expression up to three calls deep: a form whose columns are replaced by forms of the same type."""
    expression = draw(_form)
    for _ in range(draw(st.integers(0, 2))):
        expression = draw(_deepened(expression))
    return expression


_form = st.sampled_from(sorted(FORMS)).flatmap(lambda name: st.sampled_from(FORMS[name]))


def _deepened(expression):
    def replaced(inner):
        kind = kind_of(inner, cells.KINDS)
        names = [name for name in cells.KINDS if cells.KINDS[name].type == kind.type]
        try:
            return canonical(_with(expression, {Column(name): inner for name in names}), cells.KINDS)
        except QueryRefused:
            return expression

    return _form.map(replaced)


def _with(expression, swaps):
    if isinstance(expression, Call):
        return Call(expression.function, tuple(_with(argument, swaps) for argument in expression.arguments))
    return swaps.get(expression, expression)
