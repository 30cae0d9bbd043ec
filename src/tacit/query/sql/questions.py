"""The SQL door: a text becomes a checked question, of one SELECT or of several that are one answer.

sqlglot parses the text (`parse.py`); `statement.py` reads a SELECT. Here they are put together: UNION ALL, and the
ORDER BY and LIMIT of the whole.
"""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from tacit.errors import QueryRefused
from tacit.query.after.after_check import check_after
from tacit.query.check import check
from tacit.query.compound import Branch, Compound, column_types, refuse_other_columns, wider
from tacit.query.joins import NamedRows
from tacit.query.kind import FLOAT, kind_of_type
from tacit.query.nodes import Aggregate, Column, Expression, PostProcessing, Query, Type
from tacit.query.sql.expressions import Reader, match
from tacit.query.sql.outer_select import on_grouped
from tacit.query.sql.parse import parsed, read_node, reading_as, tokens_of
from tacit.query.sql.refusals import only, refusal
from tacit.query.sql.shorthand import written_out
from tacit.query.sql.shown import read_order
from tacit.query.sql.statement import Statement, whole_number
from tacit.tables import Declaration, RowUnit

_BRANCHES_MOST = 64


def parse_query(
    text: str, declaration: Declaration, dialect: str | None = None, others: Sequence[NamedRows] = ()
) -> Query:
    """Return the question one SELECT asks of a declared table, checked; refuse anything else with its position.

    `others` are tables that it may be joined with.
    """
    question = parse_question(text, declaration, dialect, others)
    if isinstance(question, Compound):
        raise QueryRefused(
            "UNION ALL, ROLLUP, CUBE, GROUPING SETS, MODE beside others and a SELECT in brackets are several questions"
            "\nhint: ask one of them here"
        )
    return question


def parse_question(
    text: str, declaration: Declaration, dialect: str | None = None, others: Sequence[NamedRows] = ()
) -> Query | Compound:
    """Return the question that a text asks: a query, or several with one answer."""
    if not isinstance(text, str):
        raise QueryRefused(f"a question must be text, not {type(text).__name__}\nhint: sql('SELECT COUNT(*) ...')")
    with reading_as(text, dialect) as read:
        tokens = tokens_of(read)
        _refuse_other_statements(tokens, declaration)
        if tokens and tokens[-1].token_type == TokenType.SEMICOLON:
            read = read[: tokens[-1].start]
        statement = written_out(parsed(read))
        if isinstance(statement, exp.SetOperation):
            return _union(statement, declaration, tuple(others))
        if not isinstance(statement, exp.Select):
            raise refusal(statement, "a question is one SELECT, or several with UNION ALL", "SELECT COUNT(*) FROM t")
        branch, _ = _branch(statement, declaration, tuple(others))
        return branch.query if branch.is_one_question else Compound((branch,))


def tables_named(text: str, dialect: str | None = None) -> tuple[str, ...]:
    """Return the names that FROM and JOIN have in a text, anywhere in it, each once; refuse a text that is not SQL."""
    if not isinstance(text, str):
        raise QueryRefused(f"a question must be text, not {type(text).__name__}\nhint: sql('SELECT COUNT(*) ...')")
    with reading_as(text, dialect) as read:
        tokens_of(read)
        return tuple(dict.fromkeys(str(table.name) for table in parsed(read).find_all(exp.Table)))


def _refuse_other_statements(tokens: list[Token], declaration: Declaration) -> None:
    if not tokens or tokens[0].token_type not in (TokenType.SELECT, TokenType.WITH, TokenType.FROM):
        raise QueryRefused(
            "a question must be one SELECT, but this text starts with something else"
            f"\nhint: start with SELECT, then name what to count or add up in '{declaration.name}'"
        )


def _branch(select: exp.Select, declaration: Declaration, others: tuple[NamedRows, ...]) -> tuple[Branch, Declaration]:
    """Return one SELECT, and the public facts about its rows."""
    declared = [declaration, *(other.side.declaration for other in others)]
    select = on_grouped(select, {name for each in declared for name in each.columns})
    mode = select.expressions[0].unalias() if len(select.expressions) == 1 else None
    given = [name for name in ("group", "having", "order", "qualify", "distinct") if select.args.get(name)]
    if isinstance(mode, exp.Mode) and isinstance(mode.this, exp.Column) and not given:
        return _mode(select, mode, declaration, others)
    statement = Statement(select, declaration, others)
    return statement.branch(), statement.rows.declaration


def _mode(
    select: exp.Select, mode: exp.Expr, declaration: Declaration, others: tuple[NamedRows, ...]
) -> tuple[Branch, Declaration]:
    """MODE(x) alone: the value that most units have, which is the first of a ranking, and one question."""
    only(mode, "this")
    column, name = mode.this, select.expressions[0].alias or f"mode_{mode.this.name.lower()}"
    counted = exp.Ordered(this=exp.Count(this=exp.Star(), big_int=True), desc=True)
    select.set("expressions", [exp.alias_(column.copy(), name, quoted=True)])
    select.set("group", exp.Group(expressions=[column.copy()]))
    select.set("order", exp.Order(expressions=[counted]))
    select.set("limit", exp.Limit(expression=exp.Literal.number(1)))
    select.where(exp.Not(this=exp.Is(this=column.copy(), expression=exp.Null())), copy=False)
    statement = Statement(select, declaration, others)
    query, rows = statement.branch().query, statement.rows
    key = query.keys[0].expression
    facts = rows.declaration.columns.get(key.name) if isinstance(key, Column) else None
    if facts is not None and facts.keys is not None:
        asked, after = Aggregate("top", best=1), PostProcessing(shown=query.after.shown)
    else:
        by_rows = isinstance(rows.declaration.unit, RowUnit)
        asked, after = Aggregate("count" if by_rows else "count_units"), query.after
    query = replace(query, outputs=(replace(query.outputs[0], aggregate=asked),), after=after)
    checked = check(query, rows.declaration, names=rows.columns, within=rows.steps)
    return Branch(checked, (tuple(key.name for key in checked.keys),)), rows.declaration


def _union(node: exp.Expr, declaration: Declaration, others: tuple[NamedRows, ...]) -> Compound:
    """Read SELECTs with UNION ALL between them; ORDER BY and LIMIT at the end are of the whole."""
    selects = _branches(node, is_whole=True)
    names = node.args.get("with_")
    if len(selects) > _BRANCHES_MOST:
        raise refusal(node, f"a UNION ALL of more than {_BRANCHES_MOST} SELECTs", "ask some of them by themselves")
    read: list[tuple[Branch, Declaration]] = []
    for select in selects:
        if names is not None and select.args.get("with_") is None:
            select.set("with_", names.copy())
        read.append(_branch(select, declaration, others))
    types: dict[str, Type] = {}
    for number, (branch, of) in enumerate(read, 1):
        found = column_types(branch.query, of)
        if number > 1:
            refuse_other_columns(types, found, number)
            found = dict(zip(types, map(wider, types.values(), found.values()), strict=True))
        types = found
    kinds = {name: FLOAT if kind == "decimal" else kind_of_type(kind) for name, kind in types.items()}
    after = check_after(_after_all(node, list(types)), kinds)
    return Compound(tuple(branch for branch, _ in read), after, tuple(types.items()))


def _branches(node: exp.Expr, *, is_whole: bool = False) -> list[exp.Select]:
    """Return the SELECTs of a UNION ALL in order; clauses that act on only a part of them are refused."""
    if isinstance(node, exp.Select):
        return [node]
    if isinstance(node, exp.Subquery):
        only(node, "this")
        return _branches(node.this)
    hint = "SELECT ... UNION ALL SELECT ..., with ORDER BY and LIMIT at the end"
    if not isinstance(node, exp.Union) or node.args.get("distinct"):
        raise refusal(node, "SELECTs are put together with UNION ALL only", hint)
    allowed = ("this", "expression", "distinct", *(("with_", "order", "limit", "offset") if is_whole else ()))
    only(node, *allowed)
    return [*_branches(node.this), *_branches(node.expression)]


def _after_all(node: exp.Expr, names: list[str]) -> PostProcessing:
    def column(named: exp.Column) -> Expression:
        only(named, "this")
        name = match(named.this, names)
        if name is None:
            raise refusal(
                named, f"'{named.this.this}' is not a column of the answer", f"its columns are {', '.join(names)}"
            )
        return Column(name)

    order, limit, offset = (node.args.get(name) for name in ("order", "limit", "offset"))
    return PostProcessing(
        order=()
        if order is None
        else read_order(order, lambda each: read_node(Reader(column), each), [Column(name) for name in names]),
        limit=None if limit is None else whole_number(limit, "LIMIT"),
        offset=0 if offset is None else whole_number(offset, "OFFSET"),
    )
