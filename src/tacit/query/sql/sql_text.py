"""Writes expressions as SQL text, for plans and errors; parsing the text gives the same tree again."""

from datetime import datetime
from fractions import Fraction
from functools import cache

from tacit.query.language.catalogue import FUNCTIONS
from tacit.query.language.functions import Notation, Pen
from tacit.query.nodes import Call, Column, Expression, Scalar, Value

# The most characters of SQL in an expression's name.
NAME_MOST = 60


def show(expression: Expression) -> str:
    """Return the expression as SQL text.

    >>> show(Call("<", (Column("age"), Value(18, "int"))))
    'age < 18'
    """
    if isinstance(expression, Column):
        return show_name(expression.name)
    if isinstance(expression, Value):
        return show_value(expression.value)
    return _show_call(expression)


def name_of(expression: Expression) -> str:
    """Return the name of an expression in notes: a column's own name, or the expression as SQL, cut short if it is
    long.

    An expression that is taken only if another is not NULL is named without that condition.

    >>> name_of(Column("Price per CD")), name_of(Call("/", (Column("amount"), Column("cds"))))
    ('Price per CD', 'amount / cds')
    """
    if isinstance(expression, Column):
        return expression.name
    if isinstance(expression, Call) and expression.function == "case" and len(expression.arguments) == 3:
        first, then, otherwise = expression.arguments
        if isinstance(first, Call) and first.function == "is_null" and then == Value(None, "null"):
            return name_of(otherwise)
    text = show(expression)
    return text if len(text) <= NAME_MOST else f"{text[: NAME_MOST - 1]}…"


def show_name(name: str) -> str:
    """Return a name as SQL: plain if it is a lower-case word, otherwise quoted."""
    plain = name.isascii() and name.isidentifier() and name.lower() == name and name.upper() not in _keywords()
    return name if plain else '"' + name.replace('"', '""') + '"'


def show_value(value: Scalar) -> str:
    """Return a constant as SQL text."""
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, float):
        digits = repr(value)
        return digits if "e" in digits else digits + "e0"
    if isinstance(value, Fraction):
        return _show_fraction(value)
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    return str(value) if isinstance(value, int) else f"DATE '{value.isoformat()}'"


def _show_fraction(value: Fraction) -> str:
    scale = 0
    while (value * 10**scale).denominator != 1:
        scale += 1
    digits = str(abs(int(value * 10**scale))).rjust(scale + 1, "0")
    whole = digits[: len(digits) - scale]
    return ("-" if value < 0 else "") + whole + ("." + digits[-scale:] if scale else "")


def _show_call(call: Call) -> str:
    return _notation(call).write(call, Pen(show, _bracketed))


def _bracketed(expression: Expression) -> str:
    text = show(expression)
    atomic = not isinstance(expression, Call) or (text.endswith(")") and not _notation(expression).is_operator)
    return text if atomic and not text.startswith("-") else f"({text})"


def _notation(call: Call) -> Notation:
    record = FUNCTIONS.get(call.function)
    return Notation() if record is None else record.notation


@cache
def _keywords() -> frozenset[str]:
    from sqlglot.tokens import Tokenizer

    return frozenset(Tokenizer.KEYWORDS)
