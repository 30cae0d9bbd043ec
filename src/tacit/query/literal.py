"""Reads constants of a question strictly: numbers, dates, timestamps, public keys (as their columns' rows read) and
LIKE patterns."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from math import isinf
from typing import Any

from tacit.errors import InvalidParameter, QueryRefused
from tacit.numbers import decimal_meaning
from tacit.query.nodes import INT_LEAST, INT_MOST, Expression, Kind, Scalar, Value, kind_of_value, value_of

_NUMBER = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE | re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}(:?\d{2})?)?", re.ASCII)
_CHARACTERS_MAX = 400
# A quantile's fraction has a denominator of at most this; a float that is nearly such a fraction means it.
FRACTION_MAX = 1 << 16
NEARLY = Fraction(1, 10**9)


def read_number(text: str) -> Value:
    """Return a written number: whole ones are ints, those with a point decimals, those with an exponent floats.

    >>> read_number("18.0"), read_number("1e3")
    (Value(value=18, type='int'), Value(value=1000.0, type='float'))
    """
    number = _NUMBER.fullmatch(text) if len(text) <= _CHARACTERS_MAX else None
    if number is None:
        raise QueryRefused("this is not a valid number\nhint: write digits with an optional point, e.g. 12.5")
    return value_of(float(text) if number.group(2) else Fraction(text))


def read_date(text: str) -> date:
    """Return a day written YYYY-MM-DD."""
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise QueryRefused(f"{_quoted(text)} is not a date\nhint: write it as DATE '2011-01-31'")


def read_timestamp(text: str) -> datetime:
    """Return a moment written YYYY-MM-DD HH:MM:SS, in UTC if it has an offset; a day is its midnight."""
    try:
        if _DATE.fullmatch(text) or _TIMESTAMP.fullmatch(text):
            moment = datetime.fromisoformat(text)
            return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        pass
    raise QueryRefused(f"{_quoted(text)} is not a timestamp\nhint: write it as TIMESTAMP '2011-01-31 18:30:00'")


def fraction_meant(exact: Fraction) -> Fraction | None:
    """Return the nearby fraction with a small denominator, or None if it does not exist: 0.999999 is not 1.

    >>> fraction_meant(Fraction(1 / 3)), fraction_meant(Fraction("0.999999"))
    (Fraction(1, 3), None)
    """
    near = exact.limit_denominator(FRACTION_MAX)
    return near if 0 <= exact <= 1 and abs(near - exact) <= NEARLY else None


def _from_decimal(written: Decimal, column: str) -> Fraction:
    try:
        return decimal_meaning(written, name=f"a key of '{column}'")
    except InvalidParameter as problem:
        raise QueryRefused(str(problem)) from None


def adapted(value: Value, kind: Kind) -> Value:
    """Return a constant as `kind` if that keeps its meaning; otherwise return it unchanged."""
    content = value.value
    if kind.is_time and isinstance(content, str):
        return value_of(read_date(content) if kind.type == "date" else read_timestamp(content))
    if kind.type == "timestamp" and value.type == "date" and isinstance(content, date):
        return value_of(datetime(content.year, content.month, content.day))  # noqa: DTZ001 - without a zone
    if kind.type == "float" and value.type in ("int", "decimal") and isinstance(content, int | Fraction):
        return value_of(float(content))
    return value


def key_value(written: object, kind: Kind, *, column: str) -> Scalar:
    """Return a public key as its column's kind reads it; NaN is NULL, −0.0 is 0.0, and text is never trimmed."""
    plain = _scalar(written, column)
    if plain is None or (isinstance(plain, float) and plain != plain):
        return None
    if isinstance(plain, Decimal):
        if plain.is_nan():
            return None
        plain = _from_decimal(plain, column) if plain.is_finite() else float(plain)
    if kind.type == "float" and isinstance(plain, int | float | Fraction) and not isinstance(plain, bool):
        return _as_float(plain, column)
    if kind.type in ("int", "decimal") and isinstance(plain, float) and plain.is_integer():
        plain = int(plain)
    if isinstance(plain, float):
        if isinf(plain):
            raise QueryRefused(
                f"a public key of '{column}' is infinite, but the column is {kind.phrase}\nhint: leave it out"
            )
        plain = Fraction(repr(plain))
    return _as_key(adapted(value_of(plain), kind), kind, column)


def _as_float(plain: float | Fraction, column: str) -> float:
    try:
        return float(plain) + 0.0
    except OverflowError:
        raise QueryRefused(f"a public key of '{column}' is too large for a float\nhint: leave it out") from None


def _scalar(written: object, column: str) -> Any:
    """Return one plain Python value; a time is without zone and in whole microseconds, as columns hold it."""
    if getattr(written, "ndim", 0):
        raise QueryRefused(f"a public key of '{column}' is an array\nhint: give each key as one value")
    if type(written).__name__ in ("NaTType", "NAType"):
        return None
    if getattr(written, "nanosecond", 0):
        raise QueryRefused(f"a public key of '{column}' has nanoseconds\nhint: give times in whole microseconds")
    plain = written.to_pydatetime() if hasattr(written, "to_pydatetime") else written
    plain = plain.item() if hasattr(plain, "item") else plain
    if isinstance(plain, datetime) and plain.tzinfo is not None:
        raise QueryRefused(f"a public key of '{column}' has a time zone\nhint: give times in UTC, without a zone")
    if isinstance(plain, str):
        refuse_broken_text(plain)
    if _is_huge(plain):
        raise QueryRefused(f"a public key of '{column}' has more digits than any column can hold\nhint: leave it out")
    return plain


def _is_huge(plain: Any) -> bool:
    """Whether a number has more digits than any column holds; the digits are not written out to find it."""
    if isinstance(plain, Decimal):
        return plain.is_finite() and abs(plain.adjusted()) > _CHARACTERS_MAX
    if isinstance(plain, int | Fraction):
        return max(plain.numerator.bit_length(), plain.denominator.bit_length()) > 4 * _CHARACTERS_MAX
    return False


def refuse_broken_text(text: str) -> None:
    """Refuse text with a lone surrogate, which no engine can store."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise QueryRefused("a text contains half a character (a lone surrogate)\nhint: remove that character") from None


def _as_key(value: Value, kind: Kind, column: str) -> Scalar:
    fits = value.type == kind.type or (kind.type == "decimal" and value.type == "int")
    if not fits:
        raise QueryRefused(
            f"a public key of '{column}' is {kind_of_value(value).phrase}, but the column is {kind.phrase}"
            f"\nhint: give each key in the column's own type"
        )
    if kind.type == "decimal" and isinstance(value.value, int | Fraction):
        needed = kind_of_value(value)
        if needed.scale > kind.scale or needed.digits - needed.scale > kind.digits - kind.scale:
            raise QueryRefused(
                f"a public key of '{column}' has more digits than the column can hold\nhint: leave it out"
            )
        return Fraction(value.value)
    if kind.type == "int" and isinstance(value.value, int) and not INT_LEAST <= value.value <= INT_MOST:
        raise QueryRefused(f"a public key of '{column}' does not fit in 64 bits\nhint: leave it out")
    return value.value


def _quoted(text: str) -> str:
    """The analyst's own constant, shortened; a constant comes from the question, never from a row."""
    return repr(text if len(text) <= 40 else text[:37] + "...")


# --- LIKE patterns ---


class Wild(Enum):
    """The meaning of a wildcard."""

    ANY = "%"
    ONE = "_"


@dataclass(frozen=True)
class Pattern:
    """The parts in order, plain text between wildcards, and the escape if the pattern uses one."""

    parts: tuple[str | Wild, ...]
    escape: str | None


def pattern_parts(pattern: Expression, escape: Expression | None) -> Pattern:
    """Return the parts of a pattern; refuse one that is not a constant or that escapes an ordinary character.

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
                raise QueryRefused(
                    "a LIKE pattern ends in its escape\nhint: write the escape twice to mean the character itself"
                )
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
    """Return whether the whole text matches, in time at most proportional to text length times pattern length.

    On a mismatch only the last % is tried again, one character later: an earlier % can never need to take more.
    """
    units: list[str | Wild] = [unit for part in pattern.parts for unit in (part if isinstance(part, str) else (part,))]
    here = unit_index = 0
    star, resume = -1, 0
    while here < len(text):
        if unit_index < len(units) and units[unit_index] is Wild.ANY:
            star, resume = unit_index, here
            unit_index += 1
        elif unit_index < len(units) and (units[unit_index] is Wild.ONE or units[unit_index] == text[here]):
            here, unit_index = here + 1, unit_index + 1
        elif star >= 0:
            resume += 1
            here, unit_index = resume, star + 1
        else:
            return False
    return all(unit is Wild.ANY for unit in units[unit_index:])
