"""Checks what a question does to its noisy answer: names and types of HAVING, windows, shown columns, ORDER BY."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tacit.errors import QueryRefused, did_you_mean
from tacit.query.after.windows import window_kind
from tacit.query.kind import FLOAT, INT, Kind, value_of
from tacit.query.limits import limit_expression
from tacit.query.nodes import (
    Aggregate,
    Call,
    Column,
    Expression,
    PostProcessing,
    Shown,
    Window,
    columns_of,
    reordered,
    with_parts,
)
from tacit.query.sql.sql_text import show, show_name
from tacit.query.typecheck import canonical, kind_of

_COUNTS = ("count", "count_units", "count_distinct", "top")
SHOWN_MAX = 200


def kind_of_aggregate(aggregate: Aggregate, kinds: Mapping[str, Kind]) -> Kind:
    """Return what an aggregate of rows yields: counts are whole, and so are sums and quantiles of whole numbers."""
    if aggregate.kind in _COUNTS:
        return INT
    if aggregate.expression is None or aggregate.kind not in ("sum", "quantile"):
        return FLOAT
    whole_steps = aggregate.step is None or aggregate.step.denominator == 1
    return INT if whole_steps and kind_of(aggregate.expression, kinds).type == "int" else FLOAT


def check_after(after: PostProcessing, kinds: Mapping[str, Kind]) -> PostProcessing:
    """Return the post-processing of an answer with columns of these kinds, in canonical form, or refuse it."""
    having = None if after.having is None else _condition(after.having, kinds, "HAVING")
    windows: list[Window] = []
    known = dict(kinds)
    for window in after.windows:
        windows.append(window.changed(lambda each: _checked_expression(each, kinds)))
        known[window.name] = window_kind(window, tuple(kind_of(each, kinds) for each in windows[-1].arguments))
    if len(after.shown) > SHOWN_MAX or len(after.windows) > SHOWN_MAX:
        raise QueryRefused(f"an answer has at most {SHOWN_MAX} columns\nhint: ask for fewer")
    return replace(
        after,
        having=having,
        windows=tuple(windows),
        qualify=None if after.qualify is None else _condition(after.qualify, known, "QUALIFY"),
        shown=tuple(_checked_shown(each, known) for each in after.shown),
        order=reordered(after.order, lambda each: _checked_expression(each, known)),
    )


def after_in_words(after: PostProcessing, outputs: Iterable[str]) -> list[str]:
    """Return what is computed from the noisy answer, one thing a line, each name as people would write it."""
    names = {show_name(name): name for name in outputs if show_name(name) != name}
    for window in after.windows:
        names[show_name(window.name)] = _window_in_words(window, names)

    def words(expression: Expression) -> str:
        return _unquoted(show(expression), names)

    windows = [Column(window.name) for window in after.windows]
    computed = [each for each in after.shown if not isinstance(each.expression, Column)]
    lines = [] if after.having is None else [f"rows where {words(after.having)}"]
    lines += [f"{each.name} = {words(each.expression)}" for each in computed]
    lines += [f"{each.name} = {words(each.expression)}" for each in after.shown if each.expression in windows]
    lines += [] if after.qualify is None else [f"rows where {words(after.qualify)}"]
    lines += ["rows that differ"] if after.distinct else []
    if after.order:
        order = ", ".join(words(each.expression) + " DESC" * each.descending for each in after.order)
        lines.append(f"in the order of {order}")
    if after.limit is not None or after.offset:
        most = "all rows" if after.limit is None else f"at most {after.limit:,} row{'' if after.limit == 1 else 's'}"
        lines.append(most + (f" after the first {after.offset:,}" if after.offset else ""))
    return lines


def _window_in_words(window: Window, names: Mapping[str, str]) -> str:
    arguments = ", ".join(show(each) for each in window.arguments)
    parts = [f"PARTITION BY {', '.join(map(show, window.partition))}"] if window.partition else []
    order = ", ".join(show(each.expression) + " DESC" * each.descending for each in window.order)
    parts += [f"ORDER BY {order}"] if order else []
    return _unquoted(f"{window.function.upper()}({arguments}) OVER ({' '.join(parts)})", names)


def _unquoted(text: str, names: Mapping[str, str]) -> str:
    for quoted, plain in names.items():
        text = text.replace(quoted, plain)
    return text


def _checked_shown(shown: Shown, kinds: Mapping[str, Kind]) -> Shown:
    expression = _checked_expression(shown.expression, kinds)
    return Shown(shown.name, expression, kind_of(expression, kinds).type)


def _checked_expression(expression: Expression, kinds: Mapping[str, Kind]) -> Expression:
    limit_expression(expression)
    unknown = sorted(columns_of(expression) - set(kinds))
    if unknown:
        raise QueryRefused(f"'{unknown[0]}' is not a column of the answer{did_you_mean(unknown[0], kinds)}")
    found = canonical(expression, kinds)
    return _with_scales(found, kinds)


def _with_scales(expression: Expression, kinds: Mapping[str, Kind]) -> Expression:
    """A decimal as text has all the digits of its scale, which its value does not tell: the cast is given them."""

    def put(each: Expression) -> Expression | None:
        if not isinstance(each, Call) or each.function != "cast_text" or len(each.arguments) != 1:
            return None
        (inner,), kind = each.arguments, kind_of(each.arguments[0], kinds)
        scale = (value_of(kind.scale),) if kind.type == "decimal" else ()
        return Call(each.function, (_with_scales(inner, kinds), *scale))

    return with_parts(expression, put)


def _condition(expression: Expression, kinds: Mapping[str, Kind], word: str) -> Expression:
    condition = _checked_expression(expression, kinds)
    if kind_of(condition, kinds).type != "bool":
        raise QueryRefused(
            f"{word} {show(condition)} is not a condition (true or false)\nhint: compare it, e.g. n > 10"
        )
    return condition
