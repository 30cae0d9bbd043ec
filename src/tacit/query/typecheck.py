"""The type of an expression on a table, and its canonical form: one tree for all ways of writing the same expression.

Every function is total, so the parts of AND and OR can be sorted: their order cannot matter to any row.

Limits on the size of a question and on its work for any rows: public bounds, checked before the charge.

Limits on each part do not limit their product: a condition could let a text grow in one person's row only, and a
hundred searches in that text would make the run time show whether the person is there.
"""

from collections.abc import Iterable, Iterator, Mapping

from tacit.errors import QueryRefused, did_you_mean
from tacit.query.language.catalogue import FUNCTIONS, function
from tacit.query.language.functions import CheckedCall, Cost, Length
from tacit.query.nodes import (
    Call,
    Column,
    Expression,
    Kind,
    Query,
    Type,
    Value,
    kind_of_column,
    kind_of_value,
    value_of,
)
from tacit.query.sql.expressions import show
from tacit.tables import TEXT_BYTES_MAX, Declaration

ColumnKinds = Mapping[str, Kind]


class UsableColumns(dict[str, Kind]):
    """The type of each usable column of a declared table; others are refused with the words for that."""

    def __init__(self, declaration: Declaration) -> None:
        others = {name: facts for name, facts in declaration.columns.items() if facts.type == "other"}
        super().__init__(
            {name: kind_of_column(name, facts) for name, facts in declaration.columns.items() if name not in others}
        )
        self._others = others

    def __missing__(self, name: str) -> Kind:
        if name in self._others:
            return kind_of_column(name, self._others[name])
        raise KeyError(name)


def column_kinds(declaration: Declaration) -> dict[str, Kind]:
    """Return what each usable column of a declared table yields; columns of other types are left out."""
    return UsableColumns(declaration)


def kind_of(expression: Expression, kinds: ColumnKinds) -> Kind:
    """Return what an expression yields; refuse unknown columns and functions and arguments of the wrong type."""
    if isinstance(expression, Value):
        return kind_of_value(expression)
    if isinstance(expression, Column):
        try:
            return kinds[expression.name]
        except KeyError:
            hint = did_you_mean(expression.name, kinds)
        raise QueryRefused(f"there is no column '{expression.name}'{hint}")
    arguments = tuple(kind_of(argument, kinds) for argument in expression.arguments)
    return function(expression.function).kind_of_call(arguments, CheckedCall(expression, show))


def canonical(expression: Expression, kinds: ColumnKinds) -> Expression:
    """Return the canonical tree of an expression; the canonical tree of a canonical tree is that tree."""
    if isinstance(expression, Column):
        return expression
    if isinstance(expression, Value):
        return value_of(expression.value)

    def kind(argument: Expression) -> Kind:
        return kind_of(argument, kinds)

    call = Call(expression.function, tuple(canonical(argument, kinds) for argument in expression.arguments))
    written = FUNCTIONS.get(call.function)
    if written is not None and written.adapt is not None:
        call = written.adapt(CheckedCall(call, show), kind)
    kind(call)  # for its refusals: of an unknown function, or of arguments of the wrong type
    rewrite = FUNCTIONS[call.function].rewrite
    return call if rewrite is None else rewrite(CheckedCall(call, show), kind)


STATEMENT_CHARACTERS_MAX = 20_000
BRACKETS_DEEP_MAX = 30
TOKENS_MAX = 6_000
SELECTS_MAX = 50  # reading named ones takes longer with the square of their number
NODES_MAX = 3_000
DEPTH_MAX = 40
WEIGHT_MAX = 10_000
TEXT_CHARACTERS_MAX = 1_000
TEXT_TIMES_MAX = 100
OUTPUTS_MAX = 100
KEYS_MAX = 20
RELATIONS_DEEP_MAX = 4
PUBLIC_KEYS_MAX = 1_000_000
# All expressions of a question together.
QUESTION_NODES_MAX = 2 * NODES_MAX
# A step is one byte of text that a function reads. This many steps take at most some tens of milliseconds per row.
STEPS_MAX = 64 * TEXT_BYTES_MAX
# Groups times aggregates. A plain aggregate is one cell, which takes some microseconds and 300 bytes.
CELLS_MAX = 5_000_000
# The most levels of totals of a table.
LEVELS_MOST = 64
CELLS_OF = {"quantile": 20, "covariance": 100, "correlation": 100, "variance": 40, "std": 40, "count_distinct": 2}
# The number of groups that is assumed when no public list is given.
FOUND_GROUPS = 1_000
_PASSES = ("quantile", "count_distinct")


def limit_text(text: str) -> None:
    """Refuse a question that is too long, has brackets nested too deeply, or contains a lone surrogate."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise QueryRefused(
            "the question contains half a character (a lone surrogate)\nhint: remove that character"
        ) from None
    if len(text) > STATEMENT_CHARACTERS_MAX:
        raise QueryRefused(
            f"the question has {len(text)} characters; the limit is {STATEMENT_CHARACTERS_MAX}"
            "\nhint: ask several smaller questions"
        )
    deep = deepest = 0
    for character in text:
        deep += (character in "([{") - (character in ")]}")
        deepest = max(deepest, deep)
    if deepest > BRACKETS_DEEP_MAX:
        raise QueryRefused(
            f"the question nests brackets {deepest} deep; the limit is {BRACKETS_DEEP_MAX}"
            "\nhint: remove brackets that are not needed"
        )


def limit_expression(expression: Expression) -> None:
    """Refuse an expression with too many parts, too deep, or with too large constants."""
    nodes_of(expression)
    if _weight(expression) > WEIGHT_MAX:  # its guards, written out for an engine, would multiply beyond reason
        raise QueryRefused(
            "an expression nests too many divisions, remainders and casts\nhint: split it into several questions"
        )
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
            record = FUNCTIONS.get(node.function)
            if record is not None and record.limit is not None:
                record.limit(node)
            stack.extend((argument, depth + 1) for argument in node.arguments)
    return nodes


def limit_work(query: Query, kinds: Mapping[str, Kind], within: int = 0) -> None:
    """Refuse a checked question with expressions that take too long for a row, after `within` steps before it."""
    shared = [*([] if query.where is None else [query.where]), *(key.expression for key in query.keys)]
    asked = [output.aggregate for output in query.outputs]
    own = [part for each in asked for part in (each.expression, each.other) if part is not None]
    if sum(map(nodes_of, (*shared, *own))) > QUESTION_NODES_MAX:
        raise QueryRefused(
            f"the question has more than {QUESTION_NODES_MAX} parts\nhint: ask several smaller questions, or use IN"
        )
    # each of these reads the rows once more
    again = {(each.kind, each.expression) for each in asked if each.kind in _PASSES}
    if steps(own, kinds) + (steps(shared, kinds) + within) * (1 + len(again)) > STEPS_MAX:
        raise QueryRefused(
            "the question reads a row's texts too many times, or has LIKE patterns with _ or ESCAPE that are too long"
            "\nhint: take SUBSTRING(x, 1, 100) first, use IN or shorter patterns, or ask several questions"
        )


def limit_cells(query: Query, groups: int | None) -> None:
    """Refuse a question with too many cells (groups times aggregates); `groups` is None without a public list."""
    each = sum(CELLS_OF.get(output.aggregate.kind, 1) for output in query.outputs)
    if each * (FOUND_GROUPS if groups is None else groups) > CELLS_MAX:
        counted = "groups without a public list" if groups is None else f"{groups:,} groups"
        raise QueryRefused(
            f"{len(query.outputs)} aggregates for {counted} are too many for one question"
            f"\nhint: ask for fewer aggregates or groups; the limit is {CELLS_MAX:,} cells; a quantile takes "
            f"{CELLS_OF['quantile']}, a variance {CELLS_OF['variance']} and a correlation {CELLS_OF['correlation']}"
        )


def steps(expressions: Iterable[Expression], kinds: Mapping[str, Kind]) -> int:
    """Return how many bytes of text are read for one row, at most; an expression that occurs twice counts once."""

    def bytes_of(argument: Expression) -> int:
        return text_bytes(argument, kinds)

    return sum(
        _cost(call).bytes_read(call, bytes_of) for call in {call for each in expressions for call in _calls(each)}
    )


def text_bytes(expression: Expression, kinds: Mapping[str, Kind]) -> int:
    """Return how long the text of an expression can be, in bytes; 0 if its value is not text."""
    if isinstance(expression, Column):
        return TEXT_BYTES_MAX if kinds[expression.name].type == "text" else 0
    if isinstance(expression, Value):
        return len(expression.value.encode("utf-8", "surrogatepass")) if isinstance(expression.value, str) else 0
    return _cost(expression).text_bytes(expression, lambda argument: text_bytes(argument, kinds))


def _weight(expression: Expression) -> int:
    if not isinstance(expression, Call):
        return 1
    cost = _cost(expression)
    constant = bool(expression.arguments) and isinstance(expression.arguments[-1], Value)
    fewer = cost.mentions_by_constant if constant else None
    mentions = cost.mentions if fewer is None else fewer
    return min(1 + mentions * sum(_weight(argument) for argument in expression.arguments), 2 * WEIGHT_MAX)


def _longest(expression: Expression) -> Length:
    """Return an upper bound on the length of an expression's text; refuse a bound that is too large."""
    if not isinstance(expression, Call):
        text = expression.value if isinstance(expression, Value) else None
        return (0, len(text)) if isinstance(text, str) else (1, 0)
    parts = [_longest(argument) for argument in expression.arguments] or [(0, 0)]
    times, more = _cost(expression).text_length(parts)
    if times > TEXT_TIMES_MAX:
        raise QueryRefused(
            f"an expression could make text more than {TEXT_TIMES_MAX} times longer than the row's own "
            "text\nhint: join fewer texts, or replace by shorter ones"
        )
    if more > TEXT_CHARACTERS_MAX:
        raise QueryRefused(
            f"an expression could make more than {TEXT_CHARACTERS_MAX} characters out of constants"
            "\nhint: join fewer constants, or replace by shorter ones"
        )
    return times, more


def _cost(call: Call) -> Cost:
    record = FUNCTIONS.get(call.function)
    return Cost() if record is None else record.cost


def _calls(expression: Expression) -> Iterator[Call]:
    if isinstance(expression, Call):
        yield expression
        for argument in expression.arguments:
            yield from _calls(argument)


def type_of(expression: Expression, declaration: Declaration) -> Type:
    return kind_of(expression, column_kinds(declaration)).type
