"""The rows that FROM and WITH yield: the declared table, subqueries and common table expressions.

A subquery that filters, renames and derives columns is put in place: its columns become the expressions that they
stand for, its WHERE is joined to the outer one. A subquery that groups by the unit becomes a relation (`per_unit.py`).
A subquery that would mix people before noise is added is refused, with its line. The outermost SELECT is left to
`statement.py`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from sqlglot import exp

from tacit.query.nodes import Expression
from tacit.query.sql.expressions import match
from tacit.query.sql.join_clause import joined, with_condition, with_marks
from tacit.query.sql.refusals import inside, located, only, refusal
from tacit.query.sql.rows import SUBQUERY, Env, Rows

# Clauses of a subquery that would make its rows depend on other people's, with a rewrite.
_MIXING = {
    "limit": ("LIMIT", "its rows depend on everybody's", "put LIMIT at the end, on the answer"),
    "offset": ("OFFSET", "its rows depend on everybody's", "put OFFSET at the end, on the answer"),
    "order": ("ORDER BY", "inner rows are unordered", "put ORDER BY at the end, on the answer"),
    "qualify": (
        "QUALIFY",
        "its windows compare rows of different people",
        "GROUP BY {unit} aggregates each one's rows",
    ),
    "windows": ("WINDOW", "it compares rows of different people", "GROUP BY {unit} aggregates each one's rows"),
    "sample": ("a sample", "which rows it keeps is chance", "leave it out; a private answer needs no sample"),
    "laterals": ("LATERAL", "FROM takes tables, subqueries and names of WITH", "write the expression in the SELECT"),
}
_ALLOWED = ("expressions", "from_", "joins", "where", "group", "having", "distinct", "with_", "hint")


Aggregated = Callable[[exp.Select, Rows], Rows]


def with_names(select: exp.Select, known: Env, aggregated: Aggregated) -> Env:
    """Return the names that FROM may use, with those that the SELECT's own WITH defines, each from those before it."""
    defined = select.args.get("with_")
    if defined is None:
        return known
    if defined.args.get("recursive"):
        raise refusal(defined, "WITH RECURSIVE is not in the language", "a SELECT of a WITH uses only those before it")
    only(defined, "expressions")
    names = dict(known)
    own: set[str] = set()
    for each in defined.expressions:
        only(each, "this", "alias", "materialized")
        name = str(each.args["alias"].this.this)
        if name.lower() in own:
            raise refusal(each, f"WITH defines '{name}' twice", "give every SELECT a different name")
        own.add(name.lower())
        rows = _named_as(_inner(each.this, names, aggregated), each.args["alias"])
        names = {other: found for other, found in names.items() if other.lower() != name.lower()} | {name: rows}
    return names


def from_rows(select: exp.Select, names: Env, aggregated: Aggregated) -> Rows:
    """Return the rows that a SELECT is about: those of its tables, joined, with a mark for each IN and EXISTS."""
    clause = select.args.get("from_")
    if clause is None or clause.this is None:
        raise refusal(select, "a question is about a table", f"FROM {next(iter(names))}")
    only(clause, "this")
    rows = _table(clause.this, names, aggregated)
    for node in select.args.get("joins") or ():
        right = _table(node.this, names, aggregated)
        rows = joined(rows, right, with_condition(rows, right, node, select))
    return with_marks(select, rows, partial(_subquery, names=names, aggregated=aggregated))


def _table(source: exp.Expr, names: Env, aggregated: Aggregated) -> Rows:
    """Return the rows of one table, subquery or name of WITH."""
    if isinstance(source, exp.Subquery):
        only(source, "this", "alias")
        return _named_as(_inner(source.this, names, aggregated), source.args.get("alias"))
    known = next(iter(names))
    if not isinstance(source, exp.Table):
        raise refusal(source, "FROM takes a table, a SELECT in brackets, or a name of WITH", f"FROM {known}")
    if not isinstance(source.this, exp.Identifier):
        raise refusal(source, "FROM must name a table, not a function", f"FROM {known}")
    only(source, "this", "alias")
    name = match(source.this, names)
    if name is None:
        tables = " or ".join(f"'{each}'" for each in names)
        raise refusal(source, f"there is no table '{source.this.this}' here", f"the table is {tables}")
    alias = source.args.get("alias")
    return names[name] if alias is None else _named_as(names[name], alias)


def _subquery(select: exp.Expr, *, names: Env, aggregated: Aggregated) -> tuple[Rows, exp.Expr | None]:
    """Return the rows of a SELECT inside IN, or those of EXISTS before its WHERE, and that WHERE."""
    select = inside(select)
    if not isinstance(select.parent, exp.Exists) or not isinstance(select, exp.Select):
        if isinstance(select, exp.Select) and len(select.expressions) == 1:
            alias, value = unaliased(select.expressions[0])
            if alias is None and not isinstance(value, exp.Column | exp.Star):  # in IN it needs no name
                select.set("expressions", [exp.Alias(this=value, alias=exp.to_identifier("value"))])
        return _inner(select, names, aggregated), None
    rows = from_rows(select, with_names(select, names, aggregated), aggregated)
    _refuse_mixing(select, rows)
    for part in ("group", "having"):
        if select.args.get(part):
            raise refusal(select, "EXISTS takes a SELECT without GROUP BY", "write IN (SELECT ...) with it instead")
    where = select.args.get("where")
    return rows, None if where is None else where.this


def _named_as(rows: Rows, alias: exp.Expr | None) -> Rows:
    """Return rows under an alias, which may rename columns too: AS t(a, b)."""
    if alias is None:
        return rows
    only(alias, "this", "columns")
    written = [str(each.this) for each in alias.args.get("columns") or ()]
    columns = rows.columns
    if written:
        if len(written) > len(columns):
            raise refusal(alias, f"there are {len(columns)} columns to name, not {len(written)}", "name fewer")
        new = [*written, *list(columns)[len(written) :]]
        refuse_twice(alias, new)
        columns = dict(zip(new, columns.values(), strict=True))
    if alias.this is None:
        return replace(rows, columns=columns)
    name = str(alias.this.this)
    return replace(rows, columns=columns, tables={name: columns}, title=f"'{name}'")


def _inner(node: exp.Expr, names: Env, aggregated: Aggregated) -> Rows:
    """Return the rows that a SELECT inside another yields."""
    node = inside(node)
    if isinstance(node, exp.SetOperation):
        word = type(node).__name__.upper()
        raise refusal(
            node,
            f"{word} inside FROM puts rows of different SELECTs together, and is not in the language",
            "often a single SELECT with OR in its WHERE, or a CASE, does the same",
        )
    if not isinstance(node, exp.Select):
        raise refusal(node, "FROM takes a table, a SELECT in brackets, or a name of WITH", f"FROM {next(iter(names))}")
    names = with_names(node, names, aggregated)
    rows = from_rows(node, names, aggregated)
    _refuse_mixing(node, rows)
    where = node.args.get("where")
    if where is not None:
        rows = rows.filtered(rows.condition(where.this))
    groups = any(node.args.get(part) for part in ("group", "having", "distinct"))
    if groups or any(_aggregates_in(node)):
        return aggregated(node, rows)
    columns: dict[str, Expression] = {}
    for name, expression, at_node in projected(node, rows):
        if name in columns:
            refuse_twice(at_node, [*columns, name])
        columns[name] = expression
    return replace(rows, columns=columns, tables={}, title=SUBQUERY)


def projected(select: exp.Select, rows: Rows) -> Iterator[tuple[str, Expression, exp.Expr]]:
    """Yield the name and expression of each column of a row-wise SELECT, the stars written out."""
    for node in select.expressions:
        star = starred(node, rows)
        if star is not None:
            yield from ((name, expression, node) for name, expression in star.items())
            continue
        alias, inner = unaliased(node)
        expression = rows.named(inner) if isinstance(inner, exp.Column) else rows.row(inner)
        yield alias or name_of_column(inner, rows), expression, node


def starred(node: exp.Expr, rows: Rows) -> Mapping[str, Expression] | None:
    """Return the columns that * or t.* means; None for any other node."""
    if isinstance(node, exp.Star):
        only(node)
        return rows.columns
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        only(node.this)
        name = match(node.args["table"], rows.tables)
        if name is None:
            raise refusal(node, f"there is no table '{node.args['table'].this}' here", "write * alone")
        return {column: each for column, each in rows.tables[name].items() if not rows.is_match(each)}
    return None


def unaliased(node: exp.Expr) -> tuple[str | None, exp.Expr]:
    """Return the name that AS gives, if any, and the named node, without brackets."""
    alias = None
    if isinstance(node, exp.Alias):
        only(node, "this", "alias")
        alias, node = str(node.args["alias"].this), node.this
    while isinstance(node, exp.Paren):
        node = node.this
    return alias, node


def name_of_column(node: exp.Expr, rows: Rows) -> str:
    """Return the name of a column that a subquery selects without AS."""
    if isinstance(node, exp.Column):
        return rows.spelled(node)
    raise refusal(node, "a column of a subquery that is an expression needs a name", "write AS and a name after it")


def _aggregates_in(select: exp.Select) -> Iterator[exp.Expr]:
    for node in select.expressions:
        yield from node.find_all(exp.AggFunc)


def _refuse_mixing(select: exp.Select, rows: Rows) -> None:
    for name, part in select.args.items():
        if not part or name in _ALLOWED:
            continue
        node = part[0] if isinstance(part, list) else part
        word, reason, way = _MIXING.get(name, (name.strip("_").upper(), "it is outside the language", "leave it out"))
        unit = rows.unit_name or rows.unit or "the unit"
        where = located(node, select) if isinstance(node, exp.Expr) else select
        raise refusal(where, f"{word} inside a subquery is refused: {reason}", way.format(unit=unit))
    for window in select.find_all(exp.Window):
        unit = rows.unit_name or rows.unit or "the unit"
        word = window.this.sql_name() if isinstance(window.this, exp.Func) else "a window"
        way = (
            f"GROUP BY {unit} aggregates each one's rows: SELECT {unit}, MIN(x) AS first, MAX(x) AS last, COUNT(*) AS"
            " n; in the outermost SELECT windows are over the rows of the answer"
        )
        raise refusal(window, f"{word} OVER (...) inside a subquery compares rows, and is not in the language", way)


def refuse_twice(node: exp.Expr, names: list[str]) -> None:
    """Refuse two columns of one name, case ignored."""
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise refusal(node, f"a subquery has two columns '{name}'", "name one of them with AS")
        seen.add(name.lower())
