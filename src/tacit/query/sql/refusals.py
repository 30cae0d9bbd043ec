"""Builds the refusals of SQL syntax: the position, the name people use, and a rewrite; and the table of aggregates."""

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

_BY_ITSELF = (
    "ask the inner question by itself and write its answer as a number; a SELECT inside may stand in FROM, IN"
    " and EXISTS, and one of one number in HAVING, ORDER BY and the SELECT list"
)
_NOBODYS = "values of single rows are never shown; GROUP BY x has a row for each value of x"
_ONE_GROUPING = "GROUP BY takes columns and expressions, or one ROLLUP, CUBE or GROUPING SETS of them"

# rewrites of syntax that people often try
_INSTEAD: dict[type[exp.Expr], str] = {
    **dict.fromkeys((exp.Subquery, exp.Select, exp.Exists), _BY_ITSELF),
    exp.Window: "windows are over the answer's rows: in SELECT, QUALIFY and ORDER BY",
    exp.Star: "name columns in GROUP BY and aggregates; single rows are never shown",
    exp.Interval: "x + INTERVAL 3 DAY moves a date or timestamp",
    exp.DateAdd: "x + INTERVAL 3 DAY",
    exp.DateSub: "x - INTERVAL 3 DAY",
    exp.Filter: "CASE inside the aggregate: SUM(CASE WHEN a THEN x END)",
    **dict.fromkeys((exp.Placeholder, exp.Parameter), "write the value itself"),
    **dict.fromkeys((exp.RegexpLike, exp.SimilarTo), "LIKE with % and _"),
    exp.BitwiseXor: "POWER(x, 2), or x ** 2",
    exp.CurrentDate: "write the day itself: DATE '2011-01-31'",
    exp.CurrentTimestamp: "write the time itself: TIMESTAMP '2011-01-31 12:00:00'",
    exp.Right: "SUBSTRING(x, 4) is the rest after the first three characters",
    exp.Trunc: "CAST(x AS INT), or ROUND(x, 2)",
    exp.Distinct: "SELECT DISTINCT k, or COUNT(DISTINCT x)",
    exp.In: "IN takes a list of constants: x IN (1, 2)",
    exp.Any: "x IN (1, 2), or x IN (SELECT ...)",
    exp.Tuple: "compare each by itself: a = 1 AND b = 2",
    **dict.fromkeys((exp.Rand, exp.TableSample), "every question is about all rows; sampling is not supported"),
    exp.Fetch: "LIMIT 5",
    exp.Mode: "MODE(x) goes in SELECT, HAVING and ORDER BY, and not inside an aggregate, a key or a filter",
    exp.ArgMax: f"{_NOBODYS}, and ORDER BY n DESC LIMIT 1 the first of them",
    exp.ArgMin: f"{_NOBODYS}, and ORDER BY n LIMIT 1 the first of them",
    **dict.fromkeys((exp.GroupConcat, exp.ArrayAgg, exp.First, exp.Last, exp.AnyValue), _NOBODYS),
    exp.LogicalOr: "COUNT_IF(a) counts the rows; BOOL_OR is for subqueries that group by the unit",
    exp.LogicalAnd: "AVG(a) is the share of rows; BOOL_AND is for subqueries that group by the unit",
    exp.PercentileCont: "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x)",
    exp.PercentileDisc: "PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY x)",
    exp.All: "compare with one value at a time",
    exp.Order: "ORDER BY goes at the end, or into OVER (...)",
    **dict.fromkeys((exp.Group, exp.Cube, exp.Rollup, exp.GroupingSets), _ONE_GROUPING),
    **dict.fromkeys((exp.Table, exp.TableAlias), "FROM names the table, with an alias at most"),
    **dict.fromkeys((exp.WithinGroup, exp.AggFunc), AGGREGATES_ARE),
}
# the same for functions that only their name tells apart
_INSTEAD_OF_NAMES = {
    "NOW": "write the time itself: TIMESTAMP '2011-01-31 12:00:00'",
    "TODAY": "write the day itself: DATE '2011-01-31'",
    "REGEXP_MATCHES": "LIKE with % and _",
    **dict.fromkeys(("GEOMEAN", "GEOMETRIC_MEAN"), "EXP(AVG(LN(x)))"),
    "EVERY": "AVG(a) is the share of rows",
}
# names of nodes that people would not recognise
_WORDS: dict[type[exp.Expr], str] = {
    exp.Star: "*",
    **dict.fromkeys((exp.Subquery, exp.Select), "a SELECT inside another"),
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
    exp.SimilarTo: "SIMILAR TO",
    exp.Tuple: "a list of columns in brackets",
    exp.Any: "ANY",
    exp.GroupConcat: "STRING_AGG",
    exp.LogicalOr: "BOOL_OR",
    exp.LogicalAnd: "BOOL_AND",
    exp.Rand: "RANDOM",
    exp.Pad: "LPAD or RPAD",
    exp.TableSample: "TABLESAMPLE",
}


def only(node: exp.Expr, *parts: str) -> None:
    """Refuse a node that has any part but these."""
    for name, part in node.args.items():
        if part and name not in parts:
            first = part[0] if isinstance(part, list) else part
            if isinstance(first, exp.TableSample):
                raise refusal(first, f"{name_of_node(first)} is not in the language", instead(first))
            if not isinstance(first, exp.Expr):
                raise refusal(
                    node, f"{name_of_node(node)} with {name.strip('_').upper()} is not in the language", instead(node)
                )
            word = "ON" if name == "on" else "with"
            raise refusal(
                first, f"{name_of_node(node)} {word} {first.sql()[:40]} is not in the language", instead(node)
            )


def at(node: exp.Expr, made: Callable[[], Made]) -> Made:
    """Return the result of `made`; a refusal that it raises gets this node's position."""
    try:
        return made()
    except QueryRefused as error:
        message, _, hint = str(error).partition("\nhint: ")
        raise refusal(node, message, hint) from None


def refusal(node: exp.Expr | None, message: str, hint: str) -> QueryRefused:
    """Return the error for a node: the mistake, its position, and a rewrite."""
    return QueryRefused(f"{message}{position(node)}\nhint: {hint}" if hint else f"{message}{position(node)}")


def position(node: exp.Expr | None) -> str:
    """Return the start of a node, as ' (line 1, column 8)', from the first of its parts with a position."""
    if node is None:
        return ""
    known = [part.meta for part in node.walk() if "line" in part.meta and "start" in part.meta]
    if not known:
        return ""
    first = min(known, key=lambda meta: int(meta["start"]))
    width = int(first["end"]) - int(first["start"])
    return f" (line {first['line']}, column {max(1, int(first['col']) - width)})"


def located(*nodes: exp.Expr) -> exp.Expr:
    """Return the first node with a position, else the last."""
    return next((node for node in nodes if position(node)), nodes[-1])


def name_of_node(node: exp.Expr) -> str:
    """Return a node's name as people write it."""
    if isinstance(node, exp.Anonymous):
        return f"the function {str(node.this)[:40]}"
    if type(node) in _WORDS:
        return _WORDS[type(node)]
    if isinstance(node, AGGREGATES) and isinstance(node, exp.Func):
        return f"{node.sql_name()} inside another aggregate, a key or a filter"
    if isinstance(node, exp.Func) and node.sql_names():
        return f"the function {node.sql_name()}"
    return type(node).__name__.upper()


def instead(node: exp.Expr) -> str:
    """Return what to write instead of a node."""
    if isinstance(node, AGGREGATES):
        return (
            "aggregates go in SELECT, HAVING, QUALIFY and ORDER BY; WHERE filters rows before them; "
            "SUM(AVG(x)) OVER () adds up the rows of the answer"
        )
    if isinstance(node, exp.Anonymous) and str(node.this).upper() in _INSTEAD_OF_NAMES:
        return _INSTEAD_OF_NAMES[str(node.this).upper()]
    for kind, way in _INSTEAD.items():
        if isinstance(node, kind):
            return way
    if isinstance(node, exp.Func | exp.Anonymous):
        return (
            "the functions are CASE, CAST, COALESCE, NULLIF, IF, LEAST, GREATEST, ABS, ROUND, FLOOR, CEIL, SQRT, EXP,"
            " LN, LOG10, LOG2, POWER, LOWER, UPPER, TRIM, LENGTH, SUBSTRING, CONCAT, REPLACE, EXTRACT, DATE_TRUNC,"
            " DATE_DIFF, STRFTIME and x + INTERVAL 3 DAY; " + AGGREGATES_ARE
        )
    return "rows can be compared, combined with AND, OR, NOT, and computed with + - * / % and CASE"


def index_of(node: exp.Expr, columns: int) -> int:
    """Return the index, from 0, of the column of a SELECT that a number in GROUP BY or ORDER BY means."""
    written = str(node.this)
    number = int(written) if written.isdigit() and len(written) < 6 else 0
    if not 1 <= number <= columns:
        raise refusal(node, f"the SELECT does not have a column {written[:20]}", "count from 1, or use a name")
    return number - 1


def is_index(node: exp.Expr) -> bool:
    """Return whether a node is a number as it is written, which means a column in GROUP BY and ORDER BY."""
    return isinstance(node, exp.Literal) and not node.args.get("is_string")


def inside(node: exp.Expr) -> exp.Expr:
    """Return what stands in brackets without a name, however many there are."""
    while isinstance(node, exp.Subquery) and not node.args.get("alias"):
        only(node, "this")
        node = node.this
    return node
