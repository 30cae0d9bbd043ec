"""The kind of an expression: its type and the digits that an exact number can need. An operation with a result that
might not fit 38 digits is refused from the question, so rows cannot overflow it."""

from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from math import isfinite

from tacit.errors import QueryRefused
from tacit.query.nodes import Type, Value
from tacit.tables import ColumnFacts

DIGITS_MAX = 38
SCALE_MAX = 37  # a digit stays before the point, which engines write as 0 or leave out
INT_DIGITS = 19
INT_LEAST, INT_MOST = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class Kind:
    """A type; for int and decimal also the digits in all and those after the point."""

    type: Type
    digits: int = 0
    scale: int = 0

    @property
    def is_number(self) -> bool:
        return self.type in ("int", "decimal", "float")

    @property
    def phrase(self) -> str:
        return f"{'an' if self.type == 'int' else 'a'} {self.type}"

    @property
    def is_time(self) -> bool:
        return self.type in ("date", "timestamp")


BOOL, INT, FLOAT, TEXT = Kind("bool"), Kind("int", INT_DIGITS), Kind("float"), Kind("text")
DATE, TIMESTAMP, NULL = Kind("date"), Kind("timestamp"), Kind("null")
_PLAIN: dict[str, Kind] = {kind.type: kind for kind in (BOOL, INT, FLOAT, TEXT, DATE, TIMESTAMP, NULL)}


def decimal(digits: int, scale: int) -> Kind:
    """Return the kind of exact numbers with `digits` digits, `scale` of them after the point."""
    return Kind("decimal", digits, scale)


def kind_of_type(name: Type) -> Kind:
    """Return the kind of every type but decimal, which needs its digits."""
    return _PLAIN[name]


def kind_of_column(name: str, facts: ColumnFacts) -> Kind:
    """Return what reading a declared column yields."""
    if facts.type == "other" or facts.scale > SCALE_MAX:
        raise QueryRefused(
            f"column '{name}' has a type that questions cannot use"
            "\nhint: convert it in the source, or declare a type that all its cells can be read as:"
            f" columns={{'{name}': {{'type': 'text'}}}}"
        )
    if facts.type == "decimal":
        return decimal(max(facts.digits, facts.scale), facts.scale)
    return kind_of_type(facts.type)


def kind_of_value(value: Value) -> Kind:
    """Return the kind of a constant; an exact number's kind has exactly the digits that it needs."""
    if value.type not in ("int", "decimal") or not isinstance(value.value, int | Fraction):
        return kind_of_type(value.type)
    return _decimal_kind(Fraction(value.value)) if value.type == "decimal" else Kind("int", len(str(abs(value.value))))


def common(left: Kind, right: Kind, *, where: object) -> Kind:
    """Return the kind that holds every value of both; refuse if there is none."""
    if left.type == "null" or right.type == "null":
        return right if left.type == "null" else left
    if left.is_number and right.is_number:
        return _common_number(left, right, where=where)
    if left.is_time and right.is_time:
        return left if left == right else TIMESTAMP
    if left.type == right.type:
        return left
    raise QueryRefused(f"{where} mixes {left.phrase} with {right.phrase}\nhint: {_way_out(left, right)}")


def fits(digits: int, scale: int, *, where: object) -> Kind:
    """Return decimal(digits, scale), or refuse it for needing more than 38 digits."""
    if digits > DIGITS_MAX or scale > SCALE_MAX:
        raise QueryRefused(
            f"{where} can need {digits} digits, {scale} after the point; the limits are {DIGITS_MAX} and {SCALE_MAX}"
            "\nhint: make an argument smaller first, e.g. CAST(x AS DECIMAL(12, 2)), or use CAST(x AS FLOAT)"
        )
    return decimal(digits, scale)


def _common_number(left: Kind, right: Kind, *, where: object) -> Kind:
    if "float" in (left.type, right.type):
        return FLOAT
    scale = max(left.scale, right.scale)
    digits = max(left.digits - left.scale, right.digits - right.scale) + scale
    if left.type == right.type == "int":
        return Kind("int", digits)
    return fits(digits, scale, where=where)


def _way_out(left: Kind, right: Kind) -> str:
    types = {left.type, right.type}
    if "text" in types:
        other = right.type if left.type == "text" else left.type
        if other in ("date", "timestamp"):
            word = other.upper()
            return f"write a constant as {word} '2011-01-31', or turn the text into one: CAST(x AS {word})"
        if other == "bool":
            return "compare a bool with TRUE or FALSE, without quotes"
        return "write numbers without quotes and text in single quotes, or read text as a number: CAST(x AS FLOAT)"
    if "bool" in types:
        return "turn the bool into a number: CAST(x AS INT)"
    return "compare values of one type; CAST(x AS INT), CAST(x AS TEXT) or CAST(x AS DATE) converts one of them"


def scale_of(value: Fraction, most: int | None = None) -> int:
    """Return the number of a decimal's digits after the point, up to `most`."""
    scale = 0
    while scale != most and (value * 10**scale).denominator != 1:
        scale += 1
    return scale


def _decimal_kind(value: Fraction) -> Kind:
    scale = scale_of(value, SCALE_MAX + 1)
    if scale > SCALE_MAX:
        raise QueryRefused("a constant has more than 37 digits after the point\nhint: write a shorter decimal")
    digits = max(len(str(abs(int(value * 10**scale)))), scale)
    if digits > DIGITS_MAX:
        raise QueryRefused("a constant has more than 38 digits\nhint: write a shorter number, or a float such as 1e40")
    return decimal(max(digits, 1), scale)


def value_of(constant: object) -> Value:
    """Return a Python constant as a node; whole numbers are ints, other exact ones decimals."""
    if constant is None:
        return Value(None, "null")
    if isinstance(constant, bool):
        return Value(constant, "bool")
    if isinstance(constant, int | Fraction):
        return _exact_value(Fraction(constant))
    if isinstance(constant, float):
        if not isfinite(constant):
            raise QueryRefused("a constant must be a finite number\nhint: write a number such as 1e300")
        return Value(constant + 0.0, "float")
    if isinstance(constant, str):
        return Value(constant, "text")
    if isinstance(constant, datetime):
        return Value(constant, "timestamp")
    if isinstance(constant, date):
        return Value(constant, "date")
    raise QueryRefused(
        f"a constant cannot be a {type(constant).__name__}\nhint: use a number, text, a date, a bool or None"
    )


def _exact_value(exact: Fraction) -> Value:
    if exact.denominator == 1 and INT_LEAST <= exact <= INT_MOST:
        return Value(int(exact), "int")
    value = Value(exact, "decimal")
    kind_of_value(value)
    return value
