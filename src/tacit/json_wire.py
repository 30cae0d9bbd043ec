"""JSON as it travels between a server and its clients: read strictly, written exactly.

Incoming JSON is small, shallow, and means one thing: names are unique in an object, and NaN and numbers with a point
or an exponent are refused. An amount is decimal text, which all readers parse alike, while most parse a JSON number
with a point as a float. Outgoing JSON is exact: whole numbers have all of their digits, and a float is the shortest
decimal that is read back as the same float.
"""

import json
import math
import re
from datetime import date, datetime
from fractions import Fraction
from typing import Any, NoReturn

from tacit.errors import InvalidParameter

BYTES_MAX = 1 << 20
DEPTH_MAX = 150  # an expression is at most 40 deep, and each of its levels is an object and a list
INTEGER_DIGITS_MAX = 20
TAG = "$"

# Fraction("1e999999999") would be a number of a gigabyte
_FLOAT = re.compile(r"-?(?:[0-9]{1,400}(?:\.[0-9]{1,400})?(?:e[+-]?[0-9]{1,3})?|inf)|nan", re.ASCII)
_EXACT = re.compile(r"-?[0-9]{1,60}(/[0-9]{1,60})?", re.ASCII)
TAGGED_CHARACTERS_MAX = 100


def read_json(body: bytes, *, bytes_max: int = BYTES_MAX) -> Any:
    """Return what a body says; a body that is too large, too deep or ambiguous is refused.

    >>> read_json(b'{"epsilon": "0.1"}')
    {'epsilon': '0.1'}
    """
    if len(body) > bytes_max:
        raise InvalidParameter(f"the body has more than {bytes_max} bytes\nhint: ask several smaller questions")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidParameter("the body is not UTF-8\nhint: send JSON, written as UTF-8") from None
    _refuse_depth(text)
    try:
        read = json.loads(
            text, object_pairs_hook=_object, parse_float=_refuse_float, parse_int=_integer, parse_constant=_refuse_float
        )
    except (ValueError, RecursionError):
        raise InvalidParameter('the body is not JSON\nhint: send an object, such as {"epsilon": "1"}') from None
    return read


def write_json(record: Any) -> bytes:
    """Return a record as JSON, in UTF-8; a number without a JSON form is tagged.

    >>> write_json({"n": 2**64 + 1, "low": float("-inf")})
    b'{"n":18446744073709551617,"low":{"$float":"-inf"}}'
    """
    written = json.dumps(tagged(record), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return written.encode("utf-8", "backslashreplace")


def tagged(value: Any) -> Any:
    """Return a value with types that JSON lacks tagged: dates, exact fractions, infinite numbers."""
    if isinstance(value, dict):
        return {name: tagged(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [tagged(each) for each in value]
    if isinstance(value, datetime):
        return {f"{TAG}timestamp": value.isoformat()}
    if isinstance(value, date):
        return {f"{TAG}date": value.isoformat()}
    if isinstance(value, Fraction):
        return {f"{TAG}decimal": str(value)}
    if isinstance(value, float) and not math.isfinite(value):
        return {f"{TAG}float": repr(value)}
    return value


def untagged(value: Any) -> Any:
    """Return the value that `tagged` was given; tuples are lists."""
    if isinstance(value, list):
        return [untagged(each) for each in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and next(iter(value)).startswith(TAG):
        return _from_tag(*next(iter(value.items())))
    return {name: untagged(each) for name, each in value.items()}


def scalar_record(value: Any) -> Any:
    """Return a constant of a question as JSON: a float is tagged too, since incoming numbers may not have a point."""
    return {f"{TAG}float": repr(value)} if isinstance(value, float) else tagged(value)


def scalar_from(record: Any) -> Any:
    """Return the constant that `scalar_record` wrote; anything else is refused."""
    if record is None or isinstance(record, bool | int | str):
        return record
    if isinstance(record, dict) and len(record) == 1:
        return _from_tag(*next(iter(record.items())))
    raise InvalidParameter('a constant is not one\nhint: 5, "text", true, null, {"$decimal": "1/2"} or {"$date": ...}')


def _from_tag(tag: str, text: Any) -> Any:
    reader = _READERS.get(tag.removeprefix(TAG)) if tag.startswith(TAG) else None
    if reader is not None and isinstance(text, str) and len(text) <= TAGGED_CHARACTERS_MAX:
        try:
            return reader(text)
        except (ValueError, ArithmeticError):
            pass
    raise InvalidParameter(f"a constant is not one of {', '.join(TAG + name for name in _READERS)}\nhint: as text")


def _exact_decimal(text: str) -> Fraction:
    if _EXACT.fullmatch(text) is None:
        raise ValueError
    return Fraction(text)


def _exact_float(text: str) -> float:
    if _FLOAT.fullmatch(text) is None:
        raise ValueError
    return float(text)


_READERS: dict[str, Any] = {
    "timestamp": datetime.fromisoformat,
    "date": date.fromisoformat,
    "decimal": _exact_decimal,
    "float": _exact_float,
}


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise InvalidParameter("an object in the body has one name twice\nhint: give each name once")
    return found


def _refuse_float(written: str) -> NoReturn:
    raise InvalidParameter(
        f"the number {written[:20]} is written as a JSON number with a point, an exponent or a name"
        '\nhint: write amounts as text, such as "0.1"; whole numbers may be numbers'
    )


def _integer(written: str) -> int:
    if len(written) > INTEGER_DIGITS_MAX:
        raise InvalidParameter('a whole number in the body is too long\nhint: write it as text, such as "1e30"')
    return int(written)


def _refuse_depth(text: str) -> None:
    """Refuse brackets that nest deeper than any question does; brackets inside texts do not count."""
    deep = 0
    in_text = escaped = False
    for character in text:
        if in_text:
            in_text, escaped = escaped or character != '"', character == "\\" and not escaped
        elif character == '"':
            in_text = True
        else:
            deep += (character in "[{") - (character in "]}")
            if deep > DEPTH_MAX:
                raise InvalidParameter(
                    f"the body nests more than {DEPTH_MAX} deep\nhint: split the question, or use IN for a list"
                )
