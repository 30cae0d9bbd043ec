"""Short forms, each read as the SQL that it stands for: so they need no meaning, translation or range of their own.

Functions of rows are read as calls of the catalogue. Aggregates are rewritten in sqlglot's own tree before a SELECT is
read (`written_out`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp

from tacit.query.nodes import Call, Expression, Value, value_of
from tacit.query.sql.refusals import only, refusal

if TYPE_CHECKING:
    from tacit.query.sql.expressions import Reader

Short = Callable[["Reader", exp.Expr], Expression]
Rewrite = Callable[[exp.Expr], exp.Expr]
_ESCAPE = "!"


@cache
def _template(text: str) -> exp.Expr:
    """Return the tree of a text of ours; errors never point into it."""
    tree = sqlglot.parse_one(text)
    for node in tree.walk():
        node.meta.clear()
    return tree


# --- functions of rows ---


def _as(text: str, *parts: str) -> Short:
    """Return the reading of a node as a text in which a, b, c are these parts of it; an IF without ELSE has NULL."""

    def read(reader: "Reader", node: exp.Expr) -> Expression:
        only(node, *parts, "abbreviated")
        absent = {part for part in parts if part == "false" and node.args.get(part) is None}
        return _filled(
            reader, text, [value_of(None) if part in absent else reader.read(node.args.get(part)) for part in parts]
        )

    return read


def _as_named(text: str, form: str) -> Short:
    """Return the same for a function that only its name tells apart."""
    return lambda reader, node: _filled(reader, text, [reader.read(each) for each in _arguments(node, form)])


def _filled(reader: "Reader", text: str, given: Sequence[Expression]) -> Expression:
    named = dict(zip("abcde", given, strict=False))
    inside = replace(reader, resolve=lambda column: named[column.name], aggregate=None, window=None, marks={})
    return inside.read(_template(text))


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
    parts = ("this", "min_value", "max_value", "num_buckets")
    only(node, *parts)
    given = [reader.read(node.args[name]) for name in parts]
    number = given[-1].value if isinstance(given[-1], Value) else None
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= 100_000:
        raise refusal(node, "WIDTH_BUCKET needs a whole number of buckets", "WIDTH_BUCKET(x, 0, 100, 10)")
    inside = "LEAST(FLOOR((a - b) / (c - b) * d) + 1, d)"  # a share that rounding takes to 1 is in the last bucket
    return _filled(
        reader, f"CASE WHEN a < b THEN 0 WHEN a >= c THEN e ELSE {inside} END", [*given, value_of(number + 1)]
    )


def _found(before: str, after: str, form: str) -> Short:
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


# Parts of a time by DuckDB's longer names, which the SQL of other engines is translated to.
LONG_PARTS = {"dayofweek": "dow", "dayofyear": "doy", "dayofmonth": "day", "weekofyear": "week"}


def _named_part(reader: "Reader", node: exp.Expr) -> Expression:
    part, time = map(reader.read, _arguments(node, "DATE_PART('year', x)"))
    word = str(part.value if isinstance(part, Value) else "").lower()[:40]
    return Call("extract", (value_of(LONG_PARTS.get(word, word)), time))


def _day(reader: "Reader", node: exp.Expr) -> Expression:
    only(node, "this")
    return Call("cast_date", (reader.read(node.this),))


def _arguments(node: exp.Expr, form: str) -> list[exp.Expr]:
    """Return the arguments of a function that only its name tells apart, as many as its form has."""
    given = list(node.expressions)
    if len(given) != form.count(",") + 1:
        raise refusal(node, f"{str(node.this).upper()[:40]} has {len(given)} argument(s)", f"write {form}")
    return given


_EQUAL = "COALESCE(a = b, a IS NULL AND b IS NULL)"
SHORT: Mapping[type[exp.Expr], Short] = {
    exp.If: _as("CASE WHEN a THEN b ELSE c END", "this", "true", "false"),
    exp.Log: _logarithm,
    exp.WidthBucket: _bucket,
    exp.Sign: _as("CASE WHEN a > 0 THEN 1 WHEN a < 0 THEN -1 WHEN a = 0 THEN 0 END", "this"),
    exp.Left: _as("SUBSTRING(a, 1, b)", "this", "expression"),
    exp.DayOfWeek: _as("EXTRACT(DOW FROM a)", "this"),
    exp.DayOfWeekIso: _as("EXTRACT(ISODOW FROM a)", "this"),
    exp.DayOfYear: _as("EXTRACT(DOY FROM a)", "this"),
    exp.DayOfMonth: _as("EXTRACT(DAY FROM a)", "this"),
    exp.WeekOfYear: _as("EXTRACT(WEEK FROM a)", "this"),
    exp.Dayname: _as("STRFTIME(a, '%A')", "this"),
    exp.Monthname: _as("STRFTIME(a, '%B')", "this"),
    exp.TimeToStr: _as("STRFTIME(a, b)", "this", "format"),
    exp.Date: _day,
    exp.TsOrDsToDate: _day,
    exp.NullSafeEQ: _as(_EQUAL, "this", "expression"),
    exp.NullSafeNEQ: _as(f"NOT {_EQUAL}", "this", "expression"),
    exp.StartsWith: _found("", "%", "STARTS_WITH(x, 'a')"),
    exp.EndsWith: _found("%", "", "ENDS_WITH(x, 'a')"),
    exp.Contains: _found("%", "%", "CONTAINS(x, 'a')"),
}
NAMED: Mapping[str, Short] = {
    "CLAMP": _as_named("LEAST(GREATEST(a, b), c)", "CLAMP(x, 0, 100)"),
    "DATE_PART": _named_part,
    "DATEPART": _named_part,
}


# --- aggregates ---


def written_out(statement: exp.Expr) -> exp.Expr:
    """Return a statement with its short aggregates written out; everything else is left for the reader to judge."""
    for select in statement.find_all(exp.Select):
        _name_short_forms(select)
    for node in reversed(list(statement.walk(bfs=False))):
        rewrite = _rewrite_of(node)
        if rewrite is None:
            continue
        new = rewrite(node)
        if node is statement:
            return new
        node.replace(new)
    for select in statement.find_all(exp.Select):
        _group_by_all(select)
        _order_by_all(select)
        _fetch_first(select)
    return statement


def _rewrite_of(node: exp.Expr) -> Rewrite | None:
    if isinstance(node, exp.Anonymous):
        return _NAMED_AGGREGATES.get(str(node.this).upper())
    return _AGGREGATES.get(type(node))


def _name_short_forms(select: exp.Select) -> None:
    """Give each unnamed short form in a SELECT its usual name: count_if, regr_slope_y_x."""
    taken = {projection.alias_or_name.lower() for projection in select.expressions}
    for projection in list(select.expressions):
        if _rewrite_of(projection.unnest()) is None:
            continue
        wanted = name = _usual_name(projection.unnest())
        number = 1
        while name in taken:
            number += 1
            name = f"{wanted}_{number}"
        taken.add(name)
        projection.replace(exp.alias_(projection.copy(), name, quoted=True))


def _usual_name(node: exp.Expr) -> str:
    if isinstance(node, exp.WithinGroup):
        word = "mode" if isinstance(node.this, exp.Mode) else "quantile"
        return _name_words(word, node.expression.find_all(exp.Column))
    inner = node.this if isinstance(node, exp.Filter) else node
    if isinstance(inner, exp.Anonymous):
        return _name_words(str(inner.this), inner.expressions)
    word = inner.sql_name() if isinstance(inner, exp.Func) and inner.sql_names() else "value"
    if isinstance(inner, exp.ApproxDistinct):
        word = "approx_count_distinct"
    return _name_words(word, (inner.this, inner.args.get("expression")))


def _name_words(word: str, counted: Iterable[object]) -> str:
    return "_".join([word.lower(), *(each.name.lower() for each in counted if isinstance(each, exp.Column))])


def _put(text: str, *given: exp.Expr) -> exp.Expr:
    """Return a text's tree, with copies of these nodes for its columns y and x."""
    named = dict(zip("yx", given, strict=False))

    def put(node: exp.Expr) -> exp.Expr:
        return named[node.name].copy() if isinstance(node, exp.Column) and node.name in named else node

    return _template(text).transform(put)


def _as_aggregate(text: str, *parts: str) -> Rewrite:
    """Return the rewriting of a node as a text of these parts of it; a node that lacks one is left to be refused."""

    def rewrite(node: exp.Expr) -> exp.Expr:
        given = [node.args.get(part) for part in parts]
        nodes = [each for each in given if isinstance(each, exp.Expr)]
        return _put(text, *nodes) if len(nodes) == len(parts) else node.copy()

    return rewrite


def _filtered(node: exp.Expr) -> exp.Expr:
    aggregate, where = node.this, node.expression
    condition = where.this if isinstance(where, exp.Where) else where
    if not isinstance(aggregate, exp.AggFunc) or not isinstance(condition, exp.Expr):
        raise refusal(node, "FILTER belongs to an aggregate", "COUNT(*) FILTER (WHERE a > 3)")
    inner = aggregate.this
    if isinstance(aggregate, exp.Count) and isinstance(inner, exp.Star):
        return _put(_COUNT_IF, condition)
    new = aggregate.copy()
    if isinstance(inner, exp.Distinct):
        kept = [_put(_CASE, condition, each) for each in inner.expressions]
        new.set("this", exp.Distinct(expressions=kept))
    elif isinstance(inner, exp.Expr):
        new.set("this", _put(_CASE, condition, inner))
    return new


def within_group(node: exp.Expr) -> exp.Expr:
    """PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x), from the other end if the order is descending."""
    order = node.expression.expressions if isinstance(node.expression, exp.Order) else []
    form = "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x)"
    if isinstance(node.this, exp.Mode) and node.this.this is None and len(order) == 1:
        return exp.Mode(this=order[0].this.copy())
    if not isinstance(node.this, exp.PercentileCont | exp.PercentileDisc) or len(order) != 1:
        raise refusal(node, "WITHIN GROUP belongs to PERCENTILE_CONT or PERCENTILE_DISC, with one ORDER BY", form)
    fraction, value = node.this.this, order[0].this
    if order[0].args.get("desc"):
        if not isinstance(fraction, exp.Literal) or fraction.is_string:
            raise refusal(node, "a percentile's fraction must be a number from 0 to 1", form)
        fraction = exp.Literal.number(str(1 - Decimal(str(fraction.this))))
    return _put(_QUANTILE, value, fraction)


def _group_by_all(select: exp.Select) -> None:
    group = select.args.get("group")
    if group is None or not group.args.get("all"):
        return
    keys = [
        exp.Literal.number(place)
        for place, projection in enumerate(select.expressions, 1)
        if not isinstance(projection, exp.Star) and projection.find(exp.AggFunc, exp.Window) is None
    ]
    group.set("all", None)
    group.set("expressions", keys)
    if not keys:
        select.set("group", None)


def _order_by_all(select: exp.Select) -> None:
    """ORDER BY ALL sorts by every column of the SELECT, from left to right."""
    order = select.args.get("order")
    if not isinstance(order, exp.Order) or len(order.expressions) != 1:
        return
    (ordered,) = order.expressions
    column = ordered.this
    if not isinstance(column, exp.Column) or "table" in column.args or column.this.args.get("quoted"):
        return
    if column.name.upper() != "ALL" or any(each.alias_or_name.upper() == "ALL" for each in select.expressions):
        return
    places = [exp.Literal.number(place) for place in range(1, len(select.expressions) + 1)]
    order.set("expressions", [exp.Ordered(**{**ordered.args, "this": place}) for place in places])


def _fetch_first(select: exp.Select) -> None:
    """FETCH FIRST 5 ROWS ONLY is LIMIT 5."""
    fetch = select.args.get("limit")
    if not isinstance(fetch, exp.Fetch) or not isinstance(fetch.args.get("count"), exp.Literal):
        return
    options = fetch.args.get("limit_options")
    if not isinstance(options, exp.LimitOptions) or not (options.args.get("percent") or options.args.get("with_ties")):
        select.set("limit", exp.Limit(expression=fetch.args["count"].copy()))


_CASE = "CASE WHEN y THEN x END"
_COUNT_IF = "COUNT(CASE WHEN y THEN 1 END)"
_QUANTILE = "QUANTILE(y, x)"
# Regressions are over the rows in which both have a value; x explains y.
_Y, _X = "CASE WHEN NOT x IS NULL THEN y END", "CASE WHEN NOT y IS NULL THEN x END"
_PAIRS = "COUNT(CASE WHEN NOT y IS NULL AND NOT x IS NULL THEN 1 END)"
_SLOPE = f"(COVAR_POP(y, x) / VAR_POP({_X}))"
_REGRESSIONS: Mapping[type[exp.Expr], str] = {
    exp.RegrSlope: _SLOPE,
    exp.RegrIntercept: f"(AVG({_Y}) - {_SLOPE} * AVG({_X}))",
    exp.RegrR2: "(CORR(y, x) * CORR(y, x))",
    exp.RegrCount: _PAIRS,
    exp.RegrAvgx: f"AVG({_X})",
    exp.RegrAvgy: f"AVG({_Y})",
    exp.RegrSxx: f"({_PAIRS} * VAR_POP({_X}))",
    exp.RegrSyy: f"({_PAIRS} * VAR_POP({_Y}))",
    exp.RegrSxy: f"({_PAIRS} * COVAR_POP(y, x))",
}
_AGGREGATES: Mapping[type[exp.Expr], Rewrite] = {
    exp.Filter: _filtered,
    exp.CountIf: _as_aggregate(_COUNT_IF, "this"),
    exp.ApproxQuantile: _as_aggregate(_QUANTILE, "this", "quantile"),
    exp.ApproxDistinct: _as_aggregate("COUNT(DISTINCT y)", "this"),
    exp.WithinGroup: within_group,
    **{kind: _as_aggregate(text, "this", "expression") for kind, text in _REGRESSIONS.items()},
}
_NAMED_AGGREGATES: Mapping[str, Rewrite] = {
    "QUANTILE_CONT": lambda node: _put(_QUANTILE, *_arguments(node, "QUANTILE_CONT(x, 0.9)")),
    "QUANTILE_DISC": lambda node: _put(_QUANTILE, *_arguments(node, "QUANTILE_DISC(x, 0.9)")),
    "MEAN": lambda node: _put("AVG(y)", *_arguments(node, "MEAN(x)")),
    "APPROX_MEDIAN": lambda node: _put("MEDIAN(y)", *_arguments(node, "APPROX_MEDIAN(x)")),
}
