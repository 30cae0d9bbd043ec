"""Aggregates that are short for others: each is rewritten, in sqlglot's own tree, before a SELECT is read.

`COUNT(*) FILTER (WHERE a)` counts a CASE, a PERCENTILE_CONT is a QUANTILE, a regression's slope is a covariance over a
variance. An unnamed short form keeps the usual name of the written form.
"""

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal

from sqlglot import exp

from tacit.query.sql.refusals import refusal

Rewrite = Callable[[exp.Expr], exp.Expr]
# Forms of two arguments.
_PAIRS = (
    exp.RegrSlope,
    exp.RegrIntercept,
    exp.RegrR2,
    exp.RegrCount,
    exp.RegrAvgx,
    exp.RegrAvgy,
    exp.RegrSxx,
    exp.RegrSyy,
    exp.RegrSxy,
    exp.Filter,
    exp.WithinGroup,
)


def rewritten(statement: exp.Expr) -> exp.Expr:
    """Return a statement with its short forms written out; everything else is left for the reader to judge."""
    _name_what_is_short(statement)
    for node in reversed(list(statement.walk(bfs=False))):
        rewrite = _NODES.get(type(node))
        if rewrite is None and isinstance(node, exp.Anonymous):
            rewrite = _NAMES.get(str(node.this).upper())
        if rewrite is None or _lacks_an_argument(node):
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


def _lacks_an_argument(node: exp.Expr) -> bool:
    """Whether a form is not complete: it is left as it is, for the reader to refuse."""
    parts = ("this", "expression") if isinstance(node, _PAIRS) else ("this",)
    return not isinstance(node, exp.Anonymous) and any(not isinstance(node.args.get(part), exp.Expr) for part in parts)


def _name_what_is_short(statement: exp.Expr) -> None:
    """Give each unnamed short form in a SELECT the name of its written form: count_if, regr_slope_y_x."""
    for select in statement.find_all(exp.Select):
        taken = {projection.alias_or_name.lower() for projection in select.expressions}
        for projection in list(select.expressions):
            inner = projection.unnest()
            if not _is_short(inner):
                continue
            wanted = _name_of(inner)
            name, number = wanted, 1
            while name in taken:
                number += 1
                name = f"{wanted}_{number}"
            taken.add(name)
            projection.replace(exp.alias_(projection.copy(), name, quoted=True))


def _is_short(node: exp.Expr) -> bool:
    named = isinstance(node, exp.Anonymous) and str(node.this).upper() in _NAMES
    return named or type(node) in _NODES


def _name_of(node: exp.Expr) -> str:
    if isinstance(node, exp.WithinGroup):
        word = "mode" if isinstance(node.this, exp.Mode) else "quantile"
        return _words(word, node.expression.find_all(exp.Column))
    inner = node.this if isinstance(node, exp.Filter) else node
    if isinstance(inner, exp.ApproxDistinct):
        return _words("approx_count_distinct", [inner.this] if isinstance(inner.this, exp.Column) else [])
    word = str(inner.this) if isinstance(inner, exp.Anonymous) else "value"
    if isinstance(inner, exp.Func) and inner.sql_names():
        word = inner.sql_name() if not isinstance(inner, exp.Anonymous) else word
    counted = inner.expressions if isinstance(inner, exp.Anonymous) else [inner.this, inner.args.get("expression")]
    return _words(word, (each for each in counted if isinstance(each, exp.Column)))


def _words(word: str, columns: Iterable[exp.Expr]) -> str:
    return "_".join([word.lower(), *(column.name.lower() for column in columns)])


def _where(condition: exp.Expr, value: exp.Expr) -> exp.Case:
    """CASE WHEN condition THEN value END."""
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())])


def _one() -> exp.Expr:
    return exp.Literal.number(1)


def _filtered(node: exp.Expr) -> exp.Expr:
    aggregate, where = node.this, node.expression
    condition = where.this if isinstance(where, exp.Where) else where
    if not isinstance(aggregate, exp.AggFunc) or not isinstance(condition, exp.Expr):
        raise refusal(node, "FILTER belongs to an aggregate", "COUNT(*) FILTER (WHERE a > 3)")
    inner = aggregate.this
    if isinstance(aggregate, exp.Count) and isinstance(inner, exp.Star):
        return exp.Count(this=_where(condition, _one()), big_int=True)
    new = aggregate.copy()
    if isinstance(inner, exp.Distinct):
        kept = exp.Distinct(expressions=[_where(condition, each) for each in inner.expressions])
        new.set("this", kept)
    elif isinstance(inner, exp.Expr):
        new.set("this", _where(condition, inner))
    return new


def _count_if(node: exp.Expr) -> exp.Expr:
    return exp.Count(this=_where(node.this, _one()), big_int=True)


def _quantile(value: exp.Expr, fraction: exp.Expr) -> exp.Expr:
    return exp.Quantile(this=value.copy(), quantile=fraction.copy())


def _approximate(node: exp.Expr) -> exp.Expr:
    return _quantile(node.this, node.args["quantile"]) if node.args.get("quantile") else node.copy()


def _named_quantile(node: exp.Expr) -> exp.Expr:
    if len(node.expressions) != 2:
        name = str(node.this).upper()[:40]
        raise refusal(node, f"{name} takes a value and a fraction", f"{name}(x, 0.9)")
    return _quantile(*node.expressions)


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
    return _quantile(value, fraction)


def _distinct(node: exp.Expr) -> exp.Expr:
    return exp.Count(this=exp.Distinct(expressions=[node.this.copy()]), big_int=True)


def _one_argument(made: type[exp.Expr]) -> Rewrite:
    def rewrite(node: exp.Expr) -> exp.Expr:
        if len(node.expressions) != 1:
            raise refusal(node, f"{str(node.this).upper()[:40]} takes one argument", "e.g. AVG(x)")
        return made(this=node.expressions[0].copy())

    return rewrite


# --- regression: over the rows where both have a value, x explains y ---


def _both(node: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    """Return y and x, both NULL if the other is."""
    y, x = node.this, node.expression
    return _where(_known(x), y), _where(_known(y), x)


def _known(value: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null()))


def _slope(node: exp.Expr) -> exp.Expr:
    _, x = _both(node)
    top = exp.CovarPop(this=node.this.copy(), expression=node.expression.copy())
    return exp.Div(this=top, expression=exp.VariancePop(this=x))


def _intercept(node: exp.Expr) -> exp.Expr:
    y, x = _both(node)
    explained = exp.Mul(this=exp.Paren(this=_slope(node)), expression=exp.Avg(this=x))
    return exp.Paren(this=exp.Sub(this=exp.Avg(this=y), expression=explained))


def _explained(node: exp.Expr) -> exp.Expr:
    correlation = exp.Corr(this=node.this.copy(), expression=node.expression.copy())
    return exp.Paren(this=exp.Mul(this=correlation, expression=correlation.copy()))


def _pairs(node: exp.Expr) -> exp.Expr:
    known = exp.And(this=_known(node.this), expression=_known(node.expression))
    return exp.Count(this=_where(known, _one()), big_int=True)


def _average(place: int) -> Rewrite:
    return lambda node: exp.Avg(this=_both(node)[place])


def _sum_of_squares(place: int) -> Rewrite:
    """The sum of squares about the mean: the number of pairs times their variance."""

    def rewrite(node: exp.Expr) -> exp.Expr:
        return exp.Paren(this=exp.Mul(this=_pairs(node), expression=exp.VariancePop(this=_both(node)[place])))

    return rewrite


def _sum_of_products(node: exp.Expr) -> exp.Expr:
    together = exp.CovarPop(this=node.this.copy(), expression=node.expression.copy())
    return exp.Paren(this=exp.Mul(this=_pairs(node), expression=together))


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
    if isinstance(fetch, exp.Fetch) and isinstance(fetch.args.get("count"), exp.Literal):
        options = fetch.args.get("limit_options")
        if not (
            isinstance(options, exp.LimitOptions) and (options.args.get("percent") or options.args.get("with_ties"))
        ):
            select.set("limit", exp.Limit(expression=fetch.args["count"].copy()))


_NODES: Mapping[type[exp.Expr], Rewrite] = {
    exp.Filter: _filtered,
    exp.CountIf: _count_if,
    exp.ApproxQuantile: _approximate,
    exp.ApproxDistinct: _distinct,
    exp.WithinGroup: within_group,
    exp.RegrSlope: lambda node: exp.Paren(this=_slope(node)),
    exp.RegrIntercept: _intercept,
    exp.RegrR2: _explained,
    exp.RegrCount: _pairs,
    exp.RegrAvgx: _average(1),
    exp.RegrAvgy: _average(0),
    exp.RegrSxx: _sum_of_squares(1),
    exp.RegrSyy: _sum_of_squares(0),
    exp.RegrSxy: _sum_of_products,
}
_NAMES: Mapping[str, Rewrite] = {
    "QUANTILE_CONT": _named_quantile,
    "QUANTILE_DISC": _named_quantile,
    "MEAN": _one_argument(exp.Avg),
    "APPROX_MEDIAN": _one_argument(exp.Median),
}
