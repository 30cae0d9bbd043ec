"""Expressions written back as SQL, for plans and errors; reading the text again gives the same tree."""

from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from functools import cache

from tacit.query.nodes import Call, Column, Expression, Scalar, Value

_INFIX = ("=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%")


def show(expression: Expression) -> str:
    """Return the expression as SQL text.

    >>> show(Call("<", (Column("age"), Value(18, "int"))))
    'age < 18'
    """
    if isinstance(expression, Column):
        return show_name(expression.name)
    if isinstance(expression, Value):
        return _show_value(expression.value)
    return _show_call(expression)


@dataclass(frozen=True)
class Shown:
    """An expression that is written out only where an error needs its text."""

    expression: Expression

    def __str__(self) -> str:
        return show(self.expression)

    def constant(self, place: int) -> Scalar:
        """Return the constant that a call has at this place, counted from 0; None where it has none."""
        argument = self.expression.arguments[place] if isinstance(self.expression, Call) else None
        return argument.value if isinstance(argument, Value) else None


def show_name(name: str) -> str:
    """Return a name as SQL: plain where it is a lower-case word, quoted where it is not."""
    plain = name.isascii() and name.isidentifier() and name.lower() == name and name.upper() not in _keywords()
    return name if plain else '"' + name.replace('"', '""') + '"'


def _show_value(value: Scalar) -> str:
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
    name = call.function
    parts = [_bracketed(argument) for argument in call.arguments]
    if name in _INFIX:
        return f" {name} ".join(parts)
    if name in ("and", "or"):
        return f" {name.upper()} ".join(parts)
    if name == "not":
        return f"NOT {parts[0]}"
    if name == "negate":
        return f"-({show(call.arguments[0])})"
    if name == "is_null":
        return f"{parts[0]} IS NULL"
    if name == "in":
        return f"{parts[0]} IN ({', '.join(parts[1:])})"
    if name == "like":
        escape = f" ESCAPE {parts[2]}" if len(parts) == 3 else ""
        return f"{parts[0]} LIKE {parts[1]}{escape}"
    if name == "case":
        return _show_case(call)
    if name == "add_interval":
        return f"{parts[0]} + INTERVAL {_plain_word(call.arguments[1])} {_plain_word(call.arguments[2])}"
    plain = [show(argument) for argument in call.arguments]
    if name.startswith("cast_"):
        target = name.removeprefix("cast_").upper()
        size = f"({', '.join(plain[1:])})" if len(plain) > 1 else ""
        return f"CAST({plain[0]} AS {target}{size})"
    if name == "extract" and len(plain) == 2:
        return f"EXTRACT({_plain_word(call.arguments[0])} FROM {plain[1]})"
    return f"{name.upper()}({', '.join(plain)})"


def _show_case(call: Call) -> str:
    arguments = [show(argument) for argument in call.arguments]
    pairs = zip(arguments[:-1:2], arguments[1::2], strict=True)
    branches = " ".join(f"WHEN {condition} THEN {result}" for condition, result in pairs)
    return f"CASE {branches} ELSE {arguments[-1]} END"


def _plain_word(argument: Expression) -> str:
    """A number in quotes or a unit without them; what is neither, as it is."""
    if isinstance(argument, Value) and isinstance(argument.value, str) and argument.value.isalpha():
        return argument.value.upper()
    return f"'{argument.value}'" if isinstance(argument, Value) and isinstance(argument.value, int) else show(argument)


def _bracketed(expression: Expression) -> str:
    text = show(expression)
    atomic = not isinstance(expression, Call) or (text.endswith(")") and not _is_operator(expression))
    return text if atomic and not text.startswith("-") else f"({text})"


def _is_operator(call: Call) -> bool:
    return call.function in (*_INFIX, "and", "or", "not", "negate", "is_null", "in", "like", "case", "add_interval")


@cache
def _keywords() -> frozenset[str]:
    from sqlglot.tokens import Tokenizer

    return frozenset(Tokenizer.KEYWORDS)
