"""How large a question may be: static limits, so that no question can be a bomb, whatever the rows."""

from tacit.errors import QueryRefused
from tacit.query.nodes import Call, Expression, Value

STATEMENT_CHARACTERS_MAX = 20_000
BRACKETS_DEEP_MAX = 30
TOKENS_MAX = 6_000
NODES_MAX = 3_000
DEPTH_MAX = 40
WEIGHT_MAX = 10_000
IN_VALUES_MAX = 1_000
TEXT_CHARACTERS_MAX = 1_000
PATTERN_WILDCARDS_MAX = 20
TEXT_TIMES_MAX = 100
_NUMBER_CHARACTERS = 50
OUTPUTS_MAX = 100
KEYS_MAX = 20
PUBLIC_KEYS_MAX = 1_000_000


def limit_text(text: str) -> None:
    """Refuse a question too long, or bracketed too deeply, to be worth reading, or with half a character in it."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise QueryRefused("the question has half a character in it (a lone surrogate)\nhint: leave it out") from None
    if len(text) > STATEMENT_CHARACTERS_MAX:
        raise QueryRefused(
            f"the question has {len(text)} characters; {STATEMENT_CHARACTERS_MAX} is the most"
            "\nhint: ask for less at once"
        )
    deep = deepest = 0
    for character in text:
        deep += (character in "([{") - (character in ")]}")
        deepest = max(deepest, deep)
    if deepest > BRACKETS_DEEP_MAX:
        raise QueryRefused(
            f"the question has brackets {deepest} deep; {BRACKETS_DEEP_MAX} is the most"
            "\nhint: leave out brackets that are not needed"
        )


def limit_expression(expression: Expression) -> None:
    """Refuse an expression with too many parts, too deep, or with too large constants."""
    nodes_of(expression)
    limit_weight(expression)
    _longest(expression)


def nodes_of(expression: Expression) -> int:
    """Return how many parts an expression has; refuse too many, too deep ones, and too large constants."""
    nodes = 0
    stack = [(expression, 1)]
    while stack:
        node, depth = stack.pop()
        nodes += 1
        if nodes > NODES_MAX or depth > DEPTH_MAX:
            raise QueryRefused(
                f"an expression has more than {NODES_MAX} parts or is more than {DEPTH_MAX} deep"
                "\nhint: split the question, or use IN for a list of values"
            )
        if isinstance(node, Value) and isinstance(node.value, str) and len(node.value) > TEXT_CHARACTERS_MAX:
            raise QueryRefused(f"a text constant is longer than {TEXT_CHARACTERS_MAX} characters\nhint: shorten it")
        if isinstance(node, Call):
            _limit_call(node)
            stack.extend((argument, depth + 1) for argument in node.arguments)
    return nodes


def limit_weight(expression: Expression) -> None:
    """Refuse an expression whose guards, written out for an engine, would multiply beyond reason."""
    if _weight(expression) > WEIGHT_MAX:
        raise QueryRefused(
            "an expression nests too many divisions, remainders and casts\nhint: split it into several questions"
        )


# how often the translation for an engine mentions each argument, where that is more than once
_MENTIONS = {
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "in", "is_null", "coalesce", "/", "cast_bool", "concat"), 2),
    "%": 3,
    **dict.fromkeys(("cast_date", "cast_timestamp"), 9),
    **dict.fromkeys(("nullif", "cast_float", "replace"), 4),
    **dict.fromkeys(("least", "greatest", "add_interval"), 2),
    **dict.fromkeys(("lower", "upper"), 3),
    **dict.fromkeys(("round", "date_diff"), 4),
}


def _weight(expression: Expression) -> int:
    if not isinstance(expression, Call):
        return 1
    mentions = _MENTIONS.get(expression.function, 1)
    constant = bool(expression.arguments) and isinstance(expression.arguments[-1], Value)
    mentions = 1 if constant and expression.function in ("/", "%") else mentions
    return min(1 + mentions * sum(_weight(argument) for argument in expression.arguments), 2 * WEIGHT_MAX)


def _longest(expression: Expression) -> tuple[int, int]:
    """How long a text can get: so many times the row's longest, plus so many characters. Too long is refused."""
    if not isinstance(expression, Call):
        text = expression.value if isinstance(expression, Value) else None
        return (0, len(text)) if isinstance(text, str) else (1, 0)
    parts = [_longest(argument) for argument in expression.arguments] or [(0, 0)]
    join = sum if expression.function == "concat" else max
    times, more = join(part[0] for part in parts), join(part[1] for part in parts)
    if expression.function == "replace" and len(parts) == 3:
        growth = max(1, -(-parts[2][1] // max(parts[1][1], 1)))
        times, more = parts[0][0] * growth, parts[0][1] * growth
    more = max(more, _NUMBER_CHARACTERS) if expression.function == "cast_text" else more
    if times > TEXT_TIMES_MAX:
        raise QueryRefused(
            f"an expression could make text more than {TEXT_TIMES_MAX} times as long as a row's own"
            "\nhint: join fewer texts, and replace by shorter ones"
        )
    if more > TEXT_CHARACTERS_MAX:
        raise QueryRefused(
            f"an expression could make more than {TEXT_CHARACTERS_MAX} characters of text that is in no row"
            "\nhint: join fewer constants, and replace by shorter ones"
        )
    return times, more


def _limit_call(call: Call) -> None:
    if call.function == "in" and len(call.arguments) > IN_VALUES_MAX + 1:
        raise QueryRefused(
            f"IN lists {len(call.arguments) - 1} values; {IN_VALUES_MAX} is the most\nhint: use a range, or public keys"
        )
    if call.function == "like" and len(call.arguments) > 1:
        pattern = call.arguments[1]
        written = pattern.value if isinstance(pattern, Value) else ""
        if isinstance(written, str) and written.count("%") + written.count("_") > PATTERN_WILDCARDS_MAX:
            raise QueryRefused(
                f"a LIKE pattern has more than {PATTERN_WILDCARDS_MAX} wildcards\nhint: use fewer % and _ in it"
            )
