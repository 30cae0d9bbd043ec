"""Builds the refusals of SQL syntax: the position in the text, the name people use, and what to write instead.

The closed table of SQL aggregates is here too, because an aggregate inside an expression is refused by name.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

from sqlglot import exp

from tacit.errors import QueryRefused
from tacit.query.nodes import AggregateKind

Made = TypeVar("Made")

KINDS: dict[type[exp.Expr], AggregateKind] = {
    exp.Sum: "sum",
    exp.Avg: "mean",
    exp.Variance: "variance",
    exp.VariancePop: "variance",
    exp.Stddev: "std",
    exp.StddevPop: "std",
    exp.StddevSamp: "std",
    exp.CovarPop: "covariance",
    exp.CovarSamp: "covariance",
    exp.Corr: "correlation",
}
FRACTIONS: dict[type[exp.Expr], Fraction] = {
    exp.Min: Fraction(0),
    exp.Median: Fraction(1, 2),
    exp.Max: Fraction(1),
}
PAIRS: tuple[type[exp.Expr], ...] = (exp.CovarPop, exp.CovarSamp, exp.Corr)
AGGREGATES: tuple[type[exp.Expr], ...] = (exp.Count, exp.Quantile, *KINDS, *FRACTIONS)
AGGREGATES_ARE = (
    "the aggregates are COUNT(*), COUNT(x), COUNT(DISTINCT x), SUM(x), AVG(x), VARIANCE(x), STDDEV(x), MEDIAN(x),"
    " QUANTILE(x, 0.9), MIN(x), MAX(x), COVAR_POP(x, y) and CORR(x, y)"
)

# what to write instead of syntax that people often try
_INSTEAD: dict[type[exp.Expr], str] = {
    exp.ILike: "convert to lower case first: LOWER(x) LIKE 'a%'",
    exp.Subquery: "one SELECT about one table; ask the inner question by itself",
    exp.Select: "one SELECT about one table; ask the inner question by itself",
    exp.Exists: "one SELECT about one table; there are no sub-questions",
    exp.Window: "windows show single rows; group with GROUP BY",
    exp.Star: "name columns in GROUP BY and aggregates; single rows are never shown",
    exp.If: "CASE WHEN a THEN b ELSE c END",
    exp.IntDiv: "CAST(a / b AS INT)",
    exp.Interval: "x + INTERVAL 3 DAY moves a date or timestamp",
    exp.DateAdd: "x + INTERVAL 3 DAY",
    exp.DateSub: "x - INTERVAL 3 DAY",
    exp.TimestampTrunc: "DATE_TRUNC('month', x)",
    exp.DayOfWeek: "EXTRACT(DOW FROM x), Sunday being 0, or EXTRACT(ISODOW FROM x), Monday being 1",
    exp.DayOfWeekIso: "EXTRACT(ISODOW FROM x)",
    exp.DayOfYear: "EXTRACT(DOY FROM x)",
    exp.DayOfMonth: "DAY(x)",
    exp.WeekOfYear: "WEEK(x)",
    exp.Left: "SUBSTRING(x, 1, 3)",
    exp.Filter: "CASE inside the aggregate: SUM(CASE WHEN a THEN x END)",
    exp.Placeholder: "write the value itself",
    exp.Parameter: "write the value itself",
    exp.RegexpLike: "LIKE with % and _",
    exp.NullSafeEQ: "a = b OR (a IS NULL AND b IS NULL)",
    exp.Distinct: "COUNT(DISTINCT unit) is the only DISTINCT; GROUP BY names each group once",
    exp.In: "IN takes a list of constants: x IN (1, 2)",
    exp.Any: "IN takes a list of constants: x IN (1, 2)",
    exp.All: "compare with one value at a time",
    exp.Order: "ORDER BY goes at the end, by columns of the answer",
    exp.Group: "GROUP BY takes columns and named expressions; ask each grouping by itself",
    exp.Cube: "GROUP BY takes columns and named expressions; ask each grouping by itself",
    exp.Rollup: "GROUP BY takes columns and named expressions; ask each grouping by itself",
    exp.GroupingSets: "GROUP BY takes columns and named expressions; ask each grouping by itself",
    exp.Table: "FROM names the table, with an alias at most",
    exp.TableAlias: "FROM names the table, with an alias at most",
    exp.WithinGroup: AGGREGATES_ARE,
    exp.AggFunc: AGGREGATES_ARE,
}
# names of nodes that people would not recognise
_WORDS: dict[type[exp.Expr], str] = {
    exp.Star: "*",
    exp.Subquery: "a SELECT inside another",
    exp.Select: "a SELECT inside another",
    exp.DPipe: "||",
    exp.WithinGroup: "WITHIN GROUP",
    exp.GroupingSets: "GROUPING SETS",
    exp.Window: "a window (OVER)",
    exp.Placeholder: "a parameter",
    exp.Group: "GROUP BY",
    exp.Order: "ORDER BY inside an aggregate",
    exp.Table: "FROM",
    exp.TableAlias: "an alias",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.NEQ: "<>",
}


def only(node: exp.Expr, *parts: str) -> None:
    """Refuse a node that has any part but these."""
    for name, part in node.args.items():
        if part and name not in parts:
            at_node = part if isinstance(part, exp.Expr) else node
            raise refusal(
                at_node, f"{name_of(node)} has a part ({name.strip('_')}) that is not in the language", instead(node)
            )


def at(node: exp.Expr, made: Callable[[], Made]) -> Made:
    """Return the result of `made`; a refusal that it raises gets this node's position."""
    try:
        return made()
    except QueryRefused as error:
        message, _, hint = str(error).partition("\nhint: ")
        raise refusal(node, message, hint) from None


def refusal(node: exp.Expr | None, message: str, hint: str) -> QueryRefused:
    """Return the error for a node: what is wrong, where, and what to write instead."""
    return QueryRefused(f"{message}{position(node)}\nhint: {hint}" if hint else f"{message}{position(node)}")


def position(node: exp.Expr | None) -> str:
    """Return where a node starts, as ' (line 1, column 8)', from the first of its parts that knows."""
    if node is None:
        return ""
    known = [part.meta for part in node.walk() if "line" in part.meta and "start" in part.meta]
    if not known:
        return ""
    first = min(known, key=lambda meta: int(meta["start"]))
    width = int(first["end"]) - int(first["start"])
    return f" (line {first['line']}, column {max(1, int(first['col']) - width)})"


def name_of(node: exp.Expr) -> str:
    """Return a node's name as people write it."""
    if isinstance(node, exp.Anonymous):
        return f"the function {str(node.this)[:40]}"
    if type(node) in _WORDS:
        return _WORDS[type(node)]
    if isinstance(node, AGGREGATES) and isinstance(node, exp.Func):
        return f"{node.sql_name()} as a part of an expression"
    if isinstance(node, exp.Func) and node.sql_names():
        return f"the function {node.sql_name()}"
    return type(node).__name__.upper()


def instead(node: exp.Expr) -> str:
    """Return what to write instead of a node."""
    if isinstance(node, AGGREGATES):
        return "ask for each aggregate as a column of its own and compute afterwards; SUM(x) / COUNT(x) is AVG(x)"
    for kind, way in _INSTEAD.items():
        if isinstance(node, kind):
            return way
    if isinstance(node, exp.Func | exp.Anonymous):
        return (
            "the functions are CASE, CAST, COALESCE, NULLIF, LEAST, GREATEST, ABS, ROUND, FLOOR, CEIL, LOWER, UPPER,"
            " TRIM, LENGTH, SUBSTRING, CONCAT, REPLACE, EXTRACT, DATE_TRUNC, DATE_DIFF and x + INTERVAL 3 DAY; "
            + AGGREGATES_ARE
        )
    return "rows can be compared, combined with AND, OR, NOT, and computed with + - * / % and CASE"
