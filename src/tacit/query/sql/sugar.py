"""SQL that abbreviates functions of the catalogue: each form is read as its calls.

So it needs no separate meaning, translation or range. Nodes that are not here are `expressions.py`'s.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sqlglot import exp

from tacit.query.kind import value_of
from tacit.query.nodes import Call, Expression, Value
from tacit.query.sql.refusals import only, refusal

if TYPE_CHECKING:
    from tacit.query.sql.expressions import Reader

Sugar = Callable[["Reader", exp.Expr], Expression]
_NULL = Value(None, "null")
_ESCAPE = "!"
_CAPITALS = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


def _condition(reader: "Reader", node: exp.Expr) -> Expression:
    """IF(a, b, c) is a CASE."""
    only(node, "this", "true", "false")
    otherwise = node.args.get("false")
    return Call(
        "case",
        (
            reader.read(node.this),
            reader.read(node.args["true"]),
            _NULL if otherwise is None else reader.read(otherwise),
        ),
    )


def _logarithm(reader: "Reader", node: exp.Expr) -> Expression:
    """LOG(a) is to base 10, as in most engines; LOG(b, a) to base b."""
    only(node, "this", "expression")
    if node.args.get("expression") is None:
        return Call("log10", (reader.read(node.this),))
    base, of = reader.read(node.this), reader.read(node.expression)
    if isinstance(base, Value) and base.value in (2, 10):
        return Call(f"log{base.value}", (of,))
    return Call("/", (Call("ln", (of,)), Call("ln", (base,))))


def _bucket(reader: "Reader", node: exp.Expr) -> Expression:
    """WIDTH_BUCKET(x, low, high, n): 0 below, 1 to n inside, n + 1 from high on."""
    only(node, "this", "min_value", "max_value", "num_buckets")
    value, low, high, count = (
        reader.read(node.args[name]) for name in ("this", "min_value", "max_value", "num_buckets")
    )
    number = count.value if isinstance(count, Value) else None
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= 100_000:
        raise refusal(node, "WIDTH_BUCKET needs a whole number of buckets", "WIDTH_BUCKET(x, 0, 100, 10)")
    share = Call("/", (Call("-", (value, low)), Call("-", (high, low))))
    inside = Call("+", (Call("floor", (Call("*", (share, count)),)), value_of(1)))
    bounded = Call("least", (inside, count))  # a share that rounding takes to 1 is in the last bucket
    return Call(
        "case", (Call("<", (value, low)), value_of(0), Call(">=", (value, high)), value_of(number + 1), bounded)
    )


def _sign(reader: "Reader", node: exp.Expr) -> Expression:
    only(node, "this")
    value, zero = reader.read(node.this), value_of(0)
    parts = ((">", 1), ("<", -1), ("=", 0))
    return Call("case", (*(each for sign, is_ in parts for each in (Call(sign, (value, zero)), value_of(is_))), _NULL))


def _left(reader: "Reader", node: exp.Expr) -> Expression:
    only(node, "this", "expression")
    return Call("substring", (reader.read(node.this), value_of(1), reader.read(node.expression)))


# Parts of a time by DuckDB's longer names, which the SQL of other engines is translated to.
LONG_PARTS = {"dayofweek": "dow", "dayofyear": "doy", "dayofmonth": "day", "weekofyear": "week"}


def _part(name: str) -> Sugar:
    def read(reader: "Reader", node: exp.Expr) -> Expression:
        only(node, "this")
        return Call("extract", (value_of(name), reader.read(node.this)))

    return read


def _written(form: str) -> Sugar:
    def read(reader: "Reader", node: exp.Expr) -> Expression:
        only(node, "this", "abbreviated")
        return Call("strftime", (reader.read(node.this), value_of(form)))

    return read


def _format(reader: "Reader", node: exp.Expr) -> Expression:
    only(node, "this", "format")
    return Call("strftime", (reader.read(node.this), reader.read(node.args["format"])))


def _day(reader: "Reader", node: exp.Expr) -> Expression:
    only(node, "this")
    return Call("cast_date", (reader.read(node.this),))


def _truncated(reader: "Reader", node: exp.Expr) -> Expression:
    only(node, "this", "unit")
    unit = node.args.get("unit")
    return Call("date_trunc", (value_of(str(getattr(unit, "this", "")).lower()[:40]), reader.read(node.this)))


def _same(reader: "Reader", node: exp.Expr) -> Expression:
    """A IS NOT DISTINCT FROM b: equal, or both NULL."""
    only(node, "this", "expression")
    left, right = reader.read(node.this), reader.read(node.expression)
    both = Call("and", (Call("is_null", (left,)), Call("is_null", (right,))))
    return Call("coalesce", (Call("=", (left, right)), both))


def _other(reader: "Reader", node: exp.Expr) -> Expression:
    return Call("not", (_same(reader, node),))


def _found(before: str, after: str, form: str) -> Sugar:
    """STARTS_WITH(x, 'a') and its like are a LIKE."""

    def read(reader: "Reader", node: exp.Expr) -> Expression:
        only(node, "this", "expression")
        value, part = reader.read(node.this), reader.read(node.expression)
        text = part.value if isinstance(part, Value) else None
        if not isinstance(text, str):
            raise refusal(node, "the text to find must be a constant", form)
        plain = text
        for character in (_ESCAPE, "%", "_"):
            plain = plain.replace(character, _ESCAPE + character)
        escape = () if plain == text else (value_of(_ESCAPE),)
        return Call("like", (value, value_of(f"{before}{plain}{after}"), *escape))

    return read


def _clamped(reader: "Reader", node: exp.Expr) -> Expression:
    value, low, high = _arguments(reader, node, 3, "CLAMP(x, 0, 100)")
    return Call("least", (Call("greatest", (value, low)), high))


def _named_part(reader: "Reader", node: exp.Expr) -> Expression:
    part, time = _arguments(reader, node, 2, "DATE_PART('year', x)")
    name = part.value if isinstance(part, Value) else ""
    word = str(name).lower()[:40]
    return Call("extract", (value_of(LONG_PARTS.get(word, word)), time))


def _arguments(reader: "Reader", node: exp.Expr, count: int, form: str) -> list[Expression]:
    given = node.expressions
    if len(given) != count:
        raise refusal(node, f"{str(node.this).upper()[:40]} has {len(given)} argument(s)", f"write {form}")
    return [reader.read(each) for each in given]


def lowered(pattern: Expression) -> Expression:
    """Return a constant text with a to z for A to Z, as LOWER has it; anything else as it is."""
    if isinstance(pattern, Value) and isinstance(pattern.value, str):
        return value_of(pattern.value.translate(_CAPITALS))
    return pattern


def is_true(reader: "Reader", node: exp.Expr) -> Expression:
    """X IS TRUE and x IS FALSE are never NULL."""
    tested = reader.read(node.this)
    asked = tested if node.expression.this else Call("not", (tested,))
    return Call("coalesce", (asked, value_of(constant=False)))


SUGAR: Mapping[type[exp.Expr], Sugar] = {
    exp.If: _condition,
    exp.Log: _logarithm,
    exp.WidthBucket: _bucket,
    exp.Sign: _sign,
    exp.Left: _left,
    exp.DayOfWeek: _part("dow"),
    exp.DayOfWeekIso: _part("isodow"),
    exp.DayOfYear: _part("doy"),
    exp.DayOfMonth: _part("day"),
    exp.WeekOfYear: _part("week"),
    exp.Dayname: _written("%A"),
    exp.Monthname: _written("%B"),
    exp.TimeToStr: _format,
    exp.TimestampTrunc: _truncated,
    exp.Date: _day,
    exp.TsOrDsToDate: _day,
    exp.NullSafeEQ: _same,
    exp.NullSafeNEQ: _other,
    exp.StartsWith: _found("", "%", "STARTS_WITH(x, 'a')"),
    exp.EndsWith: _found("%", "", "ENDS_WITH(x, 'a')"),
    exp.Contains: _found("%", "%", "CONTAINS(x, 'a')"),
}
NAMED: Mapping[str, Sugar] = {
    "CLAMP": _clamped,
    "DATE_PART": _named_part,
    "DATEPART": _named_part,
}
