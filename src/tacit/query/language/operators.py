"""The operators, one record each: comparisons, logic, IN, LIKE, arithmetic, casts, and CASE, COALESCE, NULLIF."""

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tacit.errors import QueryRefused
from tacit.query.language.evaluation import (
    as_bool,
    as_date,
    as_int,
    as_timestamp,
    remainder,
    to_decimal,
    to_float,
    to_text,
)
from tacit.query.language.functions import (
    Adapt,
    BytesOf,
    CheckedCall,
    Cost,
    Function,
    KindOf,
    Kinds,
    Notation,
    Pen,
    Rewrite,
    TypeRule,
    adapted_together,
    aligned,
    all_adapted,
    any_numbers,
    as_float,
    as_floats,
    each_once,
    flat_parts,
    gives,
    infix,
    longest,
    looks,
    number,
    numbers,
    one_kind,
    only_one,
    refuse_null,
    same_bytes,
    settled,
    strict,
    text,
    whole_numbers,
)
from tacit.query.literal import Wild, adapted, like, pattern_parts
from tacit.query.nodes import (
    BOOL,
    DATE,
    DIGITS_MAX,
    FLOAT,
    INT,
    SCALE_MAX,
    TEXT,
    TIMESTAMP,
    Call,
    Expression,
    Kind,
    Value,
    common,
    decimal,
    fits,
    value_of,
)

IN_VALUES_MAX = 1_000
PATTERN_WILDCARDS_MAX = 20

_TWICE = Cost(mentions=2)


def _operands_in_order(name: str, mirror: str) -> Rewrite:
    """Return the rewriting of a comparison to its one order; `mirror` is its name with the sides changed."""

    def rewrite(checked: CheckedCall, _kind_of: KindOf) -> Expression:
        left, right = checked.call.arguments
        constant_first = isinstance(left, Value) and not isinstance(right, Value)
        two_columns = not isinstance(left, Value) and not isinstance(right, Value)
        by_text = name == mirror and repr(right) < repr(left)
        if constant_first or (two_columns and (name in (">", ">=") or by_text)):
            return Call(mirror, (right, left))
        return checked.call

    return rewrite


_equal_in_order = _operands_in_order("=", "=")


def _comparison(name: str, form: str, meaning: str, mirror: str, compare: Callable[[Any, Any], Any]) -> Function:
    run, rewrite = strict(lambda left, right: bool(compare(*aligned(left, right)))), _operands_in_order(name, mirror)
    return Function(name, form, meaning, _comparison_kind, run, all_adapted, rewrite, infix(name), _TWICE)


def _comparison_kind(kinds: Kinds, where: CheckedCall) -> Kind:
    refuse_null(kinds, where)
    common(kinds[0], kinds[1], where=where)
    return BOOL


_COMPARED = "ints and decimals exactly; with a float, both as floats; false before true; text by code point"
_COMPARISONS = (
    _comparison("=", "a = b", f"whether they are equal: {_COMPARED}", "=", operator.eq),
    _comparison("<>", "a <> b", "NOT (a = b)", "<>", operator.ne),
    _comparison("<", "a < b", f"whether a is before b: {_COMPARED}", ">", operator.lt),
    _comparison("<=", "a <= b", "a < b OR a = b", ">=", operator.le),
    _comparison(">", "a > b", "b < a", "<", operator.gt),
    _comparison(">=", "a >= b", "b <= a; a BETWEEN b AND c is a >= b AND a <= c", "<=", operator.ge),
)


def _logic_kind(kinds: Kinds, where: CheckedCall) -> Kind:
    for kind in kinds:
        if kind.type not in ("bool", "null"):
            raise QueryRefused(
                f"{where} needs conditions, but has {kind.phrase}\nhint: compare it, e.g. x > 0 or x = 'A'"
            )
    return BOOL


def _without_double_not(checked: CheckedCall, _kind_of: KindOf) -> Expression:
    inner = checked.call.arguments[0]
    return inner.arguments[0] if isinstance(inner, Call) and inner.function == "not" else checked.call


def _junction(name: str, meaning: str, *, decides: bool) -> Function:
    def run(*parts: bool | None) -> bool | None:
        return decides if decides in parts else None if None in parts else not decides

    def rewrite(checked: CheckedCall, _kind_of: KindOf) -> Expression:  # nested ones as one, each part once, sorted
        return only_one(name, each_once(flat_parts(checked.call)))

    sign = name.upper()
    return Function(name, f"a {sign} b", meaning, _logic_kind, run, rewrite=rewrite, notation=infix(sign))


_LOGIC = (
    _junction("and", "false if any part is false, else NULL if any is NULL, else true", decides=False),
    _junction("or", "true if any part is true, else NULL if any is NULL, else false", decides=True),
    Function(
        "not",
        "NOT a",
        "true and false swapped; a NOT LIKE 'x%', NOT IN, NOT BETWEEN and IS NOT NULL are NOT of the form without NOT",
        _logic_kind,
        rewrite=_without_double_not,
        evaluate=strict(lambda value: not value),
        notation=Notation(lambda call, pen: f"NOT {pen.bracketed(call.arguments[0])}", is_operator=True),
    ),
)


def _in_kind(kinds: Kinds, where: CheckedCall) -> Kind:
    refuse_null(kinds, where)
    shared = Kind("null")
    for kind in sorted(kinds, key=lambda each: each.type != "float"):  # beside a float, all are compared as floats
        shared = common(shared, kind, where=where)
    return BOOL


def _in_one_order(checked: CheckedCall, kind_of: KindOf) -> Expression:
    tested, *constants = checked.call.arguments
    if not constants or not all(isinstance(constant, Value) for constant in constants):
        raise QueryRefused(f"{checked}: IN needs a list of constants\nhint: for other values write x = a OR x = b")
    ordered = each_once(constants)
    if len(ordered) > 1:
        return Call("in", (tested, *ordered))
    return _equal_in_order(replace(checked, call=Call("=", (tested, ordered[0]))), kind_of)


def _evaluate_in(tested: Any, *listed: Any) -> bool | None:
    return None if tested is None else any(bool(operator.eq(*aligned(tested, each))) for each in listed)


def _write_in(call: Call, pen: Pen) -> str:
    tested, *listed = map(pen.bracketed, call.arguments)
    return f"{tested} IN ({', '.join(listed)})"


def _limit_in(call: Call) -> None:
    if len(call.arguments) > IN_VALUES_MAX + 1:
        raise QueryRefused(
            f"IN lists {len(call.arguments) - 1} values; at most {IN_VALUES_MAX} fit\nhint: use a range, or public keys"
        )


def _without_idle_escape(checked: CheckedCall, _kind_of: KindOf) -> Expression:
    tested, pattern, *escape = checked.call.arguments
    parts = pattern_parts(pattern, escape[0] if escape else None)
    if escape and parts.escape is None:
        return Call("like", (tested, pattern))
    return checked.call


def _evaluate_like(tested: Any, pattern: Any, escape: Any = None) -> bool | None:
    if tested is None:
        return None
    return like(tested, pattern_parts(value_of(pattern), None if escape is None else value_of(escape)))


def _write_like(call: Call, pen: Pen) -> str:
    tested, pattern, *escape = map(pen.bracketed, call.arguments)
    return f"{tested} LIKE {pattern}" + (f" ESCAPE {escape[0]}" if escape else "")


def _bytes_matched(call: Call, bytes_of: BytesOf) -> int:
    """Plain runs between % are found in one pass; runs of a pattern with _ or ESCAPE may be tried at every index."""
    tested, pattern, *escape = call.arguments
    split = pattern_parts(pattern, escape[0] if escape else None)
    if split.escape is None and Wild.ONE not in split.parts:
        return bytes_of(tested)
    most = run = 0
    for part in split.parts:
        run = 0 if part is Wild.ANY else run + (len(part) if isinstance(part, str) else 1)
        most = max(most, run)
    return bytes_of(tested) * max(most, 1)


def _limit_pattern(call: Call) -> None:
    pattern = call.arguments[1] if len(call.arguments) > 1 else None
    written = pattern.value if isinstance(pattern, Value) else ""
    if isinstance(written, str) and written.count("%") + written.count("_") > PATTERN_WILDCARDS_MAX:
        raise QueryRefused(
            f"a LIKE pattern has more than {PATTERN_WILDCARDS_MAX} wildcards\nhint: use fewer % and _ in it"
        )


_TESTS = (
    Function(
        "in",
        "a IN (1, 2)",
        "whether a equals one of the constants, all of them not NULL",
        _in_kind,
        adapt=all_adapted,
        rewrite=_in_one_order,
        evaluate=_evaluate_in,
        notation=Notation(_write_in, is_operator=True),
        cost=_TWICE,
        limit=_limit_in,
    ),
    Function(
        "like",
        "a LIKE 'x%' [ESCAPE '!']",
        "whether all of a matches: % is any run of characters, newlines too, _ is any one code point, the escape makes"
        " the next character plain, all else is itself; case counts; a backslash is plain unless it is the escape",
        gives(BOOL, text),
        rewrite=_without_idle_escape,
        evaluate=_evaluate_like,
        notation=Notation(_write_like, is_operator=True),
        cost=Cost(bytes_read=_bytes_matched),
        limit=_limit_pattern,
    ),
    Function(
        "is_null",
        "a IS NULL",
        "whether a is NULL (a NaN is); true or false, never NULL",
        lambda _kinds, _where: BOOL,
        evaluate=lambda value: value is None,
        notation=Notation(lambda call, pen: f"{pen.bracketed(call.arguments[0])} IS NULL", is_operator=True),
        cost=_TWICE,
    ),
)


def _sum_kind(kinds: Kinds, where: CheckedCall) -> Kind:
    both = numbers(kinds, where)
    if both.type == "decimal":
        return fits(both.digits + 1, both.scale, where=where)
    return INT if both.type == "int" else both


def _product_kind(kinds: Kinds, where: CheckedCall) -> Kind:
    both = any_numbers(kinds, where)
    if both.type == "decimal":
        return fits(kinds[0].digits + kinds[1].digits, kinds[0].scale + kinds[1].scale, where=where)
    return INT if both.type == "int" else both


def _as_floats_beside_one(checked: CheckedCall, kind_of: KindOf) -> Call:
    if any(kind_of(argument).type == "float" for argument in checked.call.arguments):
        return as_floats(checked, kind_of)
    return checked.call


def _time_difference(checked: CheckedCall, kind_of: KindOf) -> Call:
    if all(kind_of(argument) == DATE for argument in checked.call.arguments):
        return Call("date_diff", (value_of("day"), *reversed(checked.call.arguments)))
    return _as_floats_beside_one(checked, kind_of)


def _negative_constant(checked: CheckedCall, _kind_of: KindOf) -> Expression:
    inner = checked.call.arguments[0]
    if isinstance(inner, Value) and inner.type in ("int", "decimal", "float"):
        return value_of(-inner.value)  # type: ignore[operator]
    return checked.call


def _exact_operation(
    sign: str, meaning: str, kind: TypeRule, operate: Callable[[Any, Any], Any], adapt: Adapt = _as_floats_beside_one
) -> Function:
    run = strict(lambda left, right: settled(operate(*aligned(left, right))))
    return Function(sign, f"a {sign} b", meaning, kind, run, adapt, notation=infix(sign))


_ARITHMETIC = (
    _exact_operation("+", "their sum; an int out of 64 bits is NULL; Inf − Inf is NULL", _sum_kind, operator.add),
    _exact_operation(
        "-",
        "a + (−b), without rounding twice; an int out of 64 bits is NULL",
        _sum_kind,
        operator.sub,
        adapt=_time_difference,
    ),
    _exact_operation("*", "their product; an int out of 64 bits is NULL; 0 × Inf is NULL", _product_kind, operator.mul),
    Function(
        "/",
        "a / b",
        "the quotient of both as floats, always a float; NULL if b is 0, or both are ±Inf",
        gives(FLOAT, any_numbers),
        adapt=as_floats,
        evaluate=strict(lambda top, bottom: None if bottom == 0 else settled(as_float(top) / as_float(bottom))),
        notation=infix("/"),
        cost=Cost(mentions=2, mentions_by_constant=1),
    ),
    Function(
        "%",
        "a % b",
        "the remainder of whole numbers, with a's sign; NULL if b is 0",
        whole_numbers,
        evaluate=strict(remainder),
        notation=infix("%"),
        cost=Cost(mentions=3, mentions_by_constant=1),
    ),
    Function(
        "negate",
        "-a",
        "0 − a; the least int lacks an opposite, so NULL",
        number,
        rewrite=_negative_constant,
        evaluate=strict(lambda value: settled(-value)),
        notation=Notation(lambda call, pen: f"-({pen.plain(call.arguments[0])})", is_operator=True),
    ),
)


def _case_kind(kinds: Kinds, where: CheckedCall) -> Kind:
    _logic_kind(kinds[:-1:2], where)
    return one_kind((*kinds[1::2], kinds[-1]), where)


def _case_adapted(checked: CheckedCall, kind_of: KindOf) -> Call:
    arguments = checked.call.arguments
    results = adapted_together((*arguments[1::2], arguments[-1]), kind_of, checked)
    pairs = zip(arguments[:-1:2], results[:-1], strict=True)
    return Call("case", (*(part for pair in pairs for part in pair), results[-1]))


def _write_case(call: Call, pen: Pen) -> str:
    arguments = [pen.plain(argument) for argument in call.arguments]
    pairs = zip(arguments[:-1:2], arguments[1::2], strict=True)
    branches = " ".join(f"WHEN {condition} THEN {result}" for condition, result in pairs)
    return f"CASE {branches} ELSE {arguments[-1]} END"


def _nullif_kind(kinds: Kinds, where: CheckedCall) -> Kind:
    _comparison_kind(kinds, where)
    return INT if kinds[0].type == "int" else kinds[0]


def _evaluate_nullif(left: Any, right: Any) -> Any:
    same = left is not None and right is not None and bool(operator.eq(*aligned(left, right)))
    return None if same else left


_CHOICES = (
    Function(
        "case",
        "CASE WHEN c THEN a ELSE b END",
        "the result after the first condition that is true (false and NULL are passed over), else b, else NULL",
        _case_kind,
        adapt=_case_adapted,
        evaluate=lambda *values: next(
            (result for condition, result in zip(values[:-1:2], values[1::2], strict=True) if condition is True),
            values[-1],
        ),
        notation=Notation(_write_case, is_operator=True),
        cost=Cost(text_bytes=same_bytes),
    ),
    Function(
        "coalesce",
        "COALESCE(a, b)",
        "the first that is not NULL, else NULL",
        one_kind,
        adapt=all_adapted,
        evaluate=lambda *values: next((value for value in values if value is not None), None),
        cost=Cost(mentions=2, text_bytes=same_bytes),
    ),
    Function(
        "nullif",
        "NULLIF(a, b)",
        "NULL if a = b is true, else a",
        _nullif_kind,
        adapt=all_adapted,
        evaluate=_evaluate_nullif,
        cost=Cost(mentions=4, text_bytes=same_bytes),
    ),
)

OPERATORS = (*_COMPARISONS, *_LOGIC, *_TESTS, *_ARITHMETIC, *_CHOICES)


# an upper bound on the characters of a number or a date written as text
_NUMBER_CHARACTERS = 50
_FLOAT_PLACES = 15  # the digits after the point that ROUND gives a float
_READ_ONCE = Cost(bytes_read=looks(1))


def _cast(target: Kind, run: Callable[..., Any], meaning: str, *sources: str, cost: Cost = _READ_ONCE) -> Function:
    """Return the cast to every kind but decimal, which needs its digits."""
    name, form, kind = f"cast_{target.type}", f"CAST(a AS {target.type.upper()})", _cast_kind(target, sources)
    notation, rewrite = Notation(_write_cast(target.type)), _without_idle_cast(target)
    return Function(name, form, meaning, kind, strict(run), rewrite=rewrite, notation=notation, cost=cost)


def _cast_kind(target: Kind, sources: tuple[str, ...]) -> TypeRule:
    def kind(kinds: Kinds, where: CheckedCall) -> Kind:
        if kinds[0].type not in sources:
            raise QueryRefused(
                f"{where}: {kinds[0].phrase} cannot become {target.phrase}"
                f"\nhint: CAST to {target.type} takes {', '.join(sources)}"
            )
        return target

    return kind


def _without_idle_cast(target: Kind) -> Rewrite:
    def rewrite(checked: CheckedCall, kind_of: KindOf) -> Expression:
        inner = checked.call.arguments[0]
        if kind_of(inner).type == target.type:
            return inner
        if target == TIMESTAMP and isinstance(inner, Value):
            return adapted(inner, TIMESTAMP)
        return checked.call

    return rewrite


def _write_cast(target: str) -> Callable[[Call, Pen], str]:
    def write(call: Call, pen: Pen) -> str:
        inner, *sizes = map(pen.plain, call.arguments)
        size = f"({', '.join(sizes)})" if sizes else ""
        return f"CAST({inner} AS {target.upper()}{size})"

    return write


def _float_rounded(checked: CheckedCall, kind_of: KindOf) -> Call:
    """Floats lack exact decimal digits: as a DECIMAL(p, s) a float is rounded to s of them, and stays a float."""
    call = checked.call
    scale = call.arguments[2].value if len(call.arguments) == 3 and isinstance(call.arguments[2], Value) else None
    if not isinstance(scale, int) or not 0 <= scale <= _FLOAT_PLACES or kind_of(call.arguments[0]).type != "float":
        return call
    return Call("round", (call.arguments[0], value_of(scale)) if scale else (call.arguments[0],))


def _decimal_kind(kinds: Kinds, where: CheckedCall) -> Kind:
    if len(kinds) != 3:
        raise QueryRefused(f"{where} needs a number of digits and a scale\nhint: CAST(x AS DECIMAL(12, 2))")
    digits, scale = (_decimal_size(kinds, where, index) for index in (1, 2))
    if kinds[0].type not in ("int", "decimal", "text"):
        raise QueryRefused(
            f"{where}: {kinds[0].phrase} cannot become a decimal"
            "\nhint: CAST to decimal takes int, decimal, text, and float with at most 15 decimals"
        )
    if not (1 <= digits <= DIGITS_MAX and 0 <= scale <= min(digits, SCALE_MAX)):
        raise QueryRefused(
            f"{where}: a decimal has 1 to {DIGITS_MAX} digits and a scale from 0 to {SCALE_MAX}, not above its digits"
            "\nhint: CAST(x AS DECIMAL(12, 2))"
        )
    return decimal(digits, scale)


def _decimal_size(kinds: Kinds, where: CheckedCall, index: int) -> int:
    constant = where.constant(index)
    if kinds[index].type == "int" and isinstance(constant, int):
        return constant
    raise QueryRefused("the digits and the scale of a decimal must be whole numbers\nhint: CAST(x AS DECIMAL(12, 2))")


CASTS = (
    _cast(
        BOOL,
        as_bool,
        "an int: whether it is not 0; text, trimmed, in any case: true or false, else NULL",
        *("bool", "int", "text"),
        cost=Cost(mentions=2, bytes_read=looks(1)),
    ),
    _cast(
        INT,
        as_int,
        "a decimal or float without its digits after the point (toward 0), NULL beyond 64 bits; true is 1; text,"
        " trimmed: an optional sign and at most 30 digits 0 to 9, else NULL",
        *("bool", "int", "decimal", "float", "text"),
    ),
    _cast(
        FLOAT,
        to_float,
        "the nearest float; text, trimmed: sign, at most 40 digits on each side of an optional point, an optional"
        " exponent (e or E, sign, at most 3 digits), else NULL; text beyond the largest float is NULL",
        *("int", "decimal", "float", "text"),
        cost=Cost(mentions=4, bytes_read=looks(1)),
    ),
    Function(
        "cast_decimal",
        "CAST(a AS DECIMAL(p, s))",
        "rounded to s digits after the point, halves away from 0; NULL if it needs over p digits; text, trimmed: sign,"
        " at most 40 digits on each side of an optional point, else NULL. A float is ROUND(a, s), and stays one."
        " Without sizes they are 18 and 3, without s it is 0",
        _decimal_kind,
        adapt=_float_rounded,
        evaluate=strict(to_decimal),
        notation=Notation(_write_cast("decimal")),
        cost=_READ_ONCE,
    ),
    _cast(
        TEXT,
        to_text,
        "an int in digits; a decimal with all its scale's digits, 0.50; true or false; a date as 2011-01-31",
        *("text", "int", "decimal", "bool", "date"),
        cost=Cost(
            bytes_read=looks(1),
            text_bytes=lambda _call, _bytes_of: _NUMBER_CHARACTERS,
            text_length=lambda parts: (longest(parts)[0], max(longest(parts)[1], _NUMBER_CHARACTERS)),
        ),
    ),
    _cast(
        DATE,
        as_date,
        "a timestamp's day; text: the day of CAST(a AS TIMESTAMP), so in UTC if it has an offset",
        *("date", "timestamp", "text"),
        cost=Cost(mentions=9, bytes_read=looks(1)),
    ),
    _cast(
        TIMESTAMP,
        as_timestamp,
        "a date's midnight; text, trimmed: YYYY-MM-DD, or with T or a space HH:MM or HH:MM:SS and at most 9 more digits"
        " after a point (rounded down to microseconds), then perhaps Z or an offset below 16 hours such as +02, +0200"
        " or +02:00, which is taken off so that it is in UTC; in the calendar and below 24:00:00, else NULL",
        *("timestamp", "date", "text"),
        cost=Cost(mentions=9, bytes_read=looks(1)),
    ),
)
