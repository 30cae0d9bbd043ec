"""The SQL door: a text becomes a checked question, of one SELECT or of several with UNION ALL that are one answer."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from tacit.errors import QueryRefused
from tacit.query.check import check, check_after
from tacit.query.compound import Branch, Compound, column_types, refuse_other_columns, wider
from tacit.query.joins import NamedRows
from tacit.query.nodes import FLOAT, Aggregate, Column, Expression, PostProcessing, Query, Type, kind_of_type
from tacit.query.sql.expressions import Reader, match
from tacit.query.sql.parse import parsed, read_node, reading_as, statements, tokens_of
from tacit.query.sql.refusals import only, refusal
from tacit.query.sql.shorthand import written_out
from tacit.query.sql.shown import read_order
from tacit.query.sql.statement import Statement, whole_number
from tacit.tables import Declaration, RowUnit

_BRANCHES_MOST = 64


def parse_query(
    text: str, declaration: Declaration, dialect: str | None = None, others: Sequence[NamedRows] = ()
) -> Query:
    """Return the question one SELECT asks of a declared table and `others` that it joins, or refuse it."""
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
    with reading_as(text, dialect) as read:
        trees = [parsed(each) for each in statements(read)]
        return tuple(dict.fromkeys(str(table.name) for tree in trees for table in tree.find_all(exp.Table)))


def selects_of(text: str, dialect: str | None = None) -> list[str]:
    """Return the SELECTs of a text with semicolons between them, in this language if there are several."""
    if not isinstance(text, str):
        return [text]
    with reading_as(text, dialect) as read:
        found = statements(read)
        return found if len(found) > 1 else [text]


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


# The clauses of the outer SELECT beside its list, and of the grouped one.
_OUTER = ("expressions", "with_", "from_", "where", "windows", "qualify", "order", "offset", "limit", "hint")
_INNER = (*_OUTER, "joins", "group", "having")
_CUTS = ("offset", "limit")


@dataclass(frozen=True)
class _Grouped:
    """The grouped SELECT under another, with the names of WITH that it may use, and its name there."""

    select: exp.Select
    names: tuple[str, ...]

    @property
    def columns(self) -> dict[str, exp.Expr]:
        """The expression of each of its columns, by name in small letters."""
        return {name.lower(): value for name, value in _list(self.select) if name is not None}

    def has(self, *kinds: type[exp.Expr]) -> bool:
        """Whether its list or its QUALIFY has such a node."""
        parts = [*self.select.expressions, *filter(None, [self.select.args.get("qualify")])]
        return any(part.find(*kinds) is not None for part in parts)


def on_grouped(select: exp.Select, columns: Collection[str]) -> exp.Select:
    """Return a SELECT over a grouped one as one SELECT, and any other as it is; `columns` are those of the tables."""
    found = _grouped(select)
    if found is None:
        return select
    under = on_grouped(found.select, columns)
    inner = _Grouped(under, found.names)
    if not _is_grouped(under) or not _is_one_select(select, inner) or _reads_otherwise(under, columns):
        return select
    by_name = inner.columns
    made = under.copy()
    _write_out(made, by_name)
    listed = _outer_list(select, inner)
    made.set("expressions", [item for _, item in listed])
    _filter(made, select, inner)
    own = {name.lower() for name, _ in listed if name is not None}
    for clause in ("windows", "qualify", "order"):
        given = select.args.get(clause)
        if given:
            parts = given if isinstance(given, list) else [given]
            put = [_substituted(part, inner, kept=own if clause != "windows" else ()) for part in parts]
            made.set(clause, put if isinstance(given, list) else put[0])
        elif clause == "order" and not any(under.args.get(cut) for cut in _CUTS):
            made.set("order", None)  # rows of a subquery are unordered
    for cut in _CUTS:
        if select.args.get(cut):
            made.set(cut, select.args[cut].copy())
    return made


def _grouped(select: exp.Select) -> _Grouped | None:
    """Return the SELECT in FROM, by itself or by its name of WITH, if there is just one."""
    clause = select.args.get("from_")
    source = None if clause is None else clause.this
    with_ = select.args.get("with_")
    defined = () if with_ is None or with_.args.get("recursive") else tuple(with_.expressions)
    alias = None if source is None else source.args.get("alias")
    names = () if alias is None or alias.this is None else (str(alias.this.this).lower(),)
    if alias is not None and alias.args.get("columns"):
        return None
    found: exp.Expr | None = None
    if isinstance(source, exp.Subquery):
        found = source.this
    elif isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
        name = str(source.this.this).lower()
        places = [at for at, each in enumerate(defined) if str(each.args["alias"].this.this).lower() == name]
        if len(places) != 1 or defined[places[0]].args["alias"].args.get("columns"):
            return None
        found, defined, names = defined[places[0]].this, defined[: places[0]], names or (name,)
    while isinstance(found, exp.Subquery) and not found.args.get("alias"):
        found = found.this
    if not isinstance(found, exp.Select):
        return None
    own = found.args.get("with_")
    defined = (*defined, *(() if own is None else own.expressions))
    inner = found.copy()
    inner.set("with_", exp.With(expressions=[each.copy() for each in defined]) if defined else None)
    return _Grouped(inner, names)


def _is_grouped(select: exp.Select) -> bool:
    return bool(select.args.get("group")) or any(each.find(exp.AggFunc) for each in select.expressions)


def _is_one_select(select: exp.Select, inner: _Grouped) -> bool:
    """Whether all that the outer SELECT does has a place after the grouped one's own steps."""
    grouped = inner.select
    if any(part and name not in _OUTER for name, part in select.args.items()):
        return False
    if any(part and name not in _INNER for name, part in grouped.args.items()):
        return False
    mine = [select.args.get(name) for name in ("where", "windows", "qualify", "order", *_CUTS)]
    trees = [*select.expressions, *(part for part in mine if isinstance(part, exp.Expr))]
    if any(tree.find(exp.Subquery, exp.Exists, exp.Select) for tree in trees):
        return False
    if any(not isinstance(node.parent, exp.Window) for tree in trees for node in tree.find_all(exp.AggFunc)):
        return False
    windows = any(tree.find(exp.Window) for tree in trees)
    if any(grouped.args.get(cut) for cut in _CUTS):
        return not windows and not any(mine)
    later = inner.has(exp.Window) or bool(grouped.args.get("qualify"))
    return not (later and windows) and not any(isinstance(each, exp.Star) for each in grouped.expressions)


def _reads_otherwise(grouped: exp.Select, columns: Collection[str]) -> bool:
    """Whether a name in its list or GROUP BY may be a column of its rows as well as one that it gives itself."""
    earlier: set[str] = set()
    for name, value in _list(grouped):
        if {each.name.lower() for each in value.find_all(exp.Column)} & earlier:
            return True
        earlier |= {name.lower()} - _plain_columns(grouped) if name is not None else set()
    sources = [grouped.args.get("from_"), grouped.args.get("with_"), *(grouped.args.get("joins") or ())]
    of_rows = {name.lower() for name in columns}
    for source in filter(None, sources):
        of_rows |= {each.name.lower() for each in source.find_all(exp.Column)}
        of_rows |= {each.alias.lower() for each in source.find_all(exp.Alias)}
    group = grouped.args.get("group")
    named = set() if group is None else {each.name.lower() for each in group.find_all(exp.Column)}
    return bool(named & earlier & of_rows)


def _list(select: exp.Select) -> list[tuple[str | None, exp.Expr]]:
    """Return the name and the expression of each item of a SELECT."""
    found: list[tuple[str | None, exp.Expr]] = []
    for item in select.expressions:
        value = item.this if isinstance(item, exp.Alias) else item
        name = item.alias if isinstance(item, exp.Alias) else item.name if isinstance(item, exp.Column) else None
        found.append((name, value))
    return found


def _plain_columns(select: exp.Select) -> set[str]:
    listed = [(name, value) for name, value in _list(select) if name is not None]
    return {name.lower() for name, value in listed if isinstance(value, exp.Column) and value.name == name}


def _outer_list(select: exp.Select, inner: _Grouped) -> list[tuple[str | None, exp.Expr]]:
    """Return the outer SELECT's items, with the expressions of the grouped one's columns; * is all of them."""
    listed: list[tuple[str | None, exp.Expr]] = []
    for item in select.expressions:
        is_star = isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))
        if is_star:
            names = [name for name, _ in _list(inner.select)]
            listed += [(name, each.copy()) for name, each in zip(names, inner.select.expressions, strict=True)]
            continue
        value = _substituted(item.this if isinstance(item, exp.Alias) else item, inner)
        name = item.alias if isinstance(item, exp.Alias) else item.name if isinstance(item, exp.Column) else None
        listed.append((name, value if name is None else exp.alias_(value, name, quoted=True)))
    return listed


def _substituted(tree: exp.Expr, inner: _Grouped, kept: Collection[str] = ()) -> exp.Expr:
    """Return a tree of the outer SELECT with the expressions of the grouped one's columns; `kept` names stay."""
    columns = inner.columns

    def put(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            return node
        name, table = node.name.lower(), node.args.get("table")
        if table is None and name in kept:
            return node
        if name not in columns or (table is not None and str(table.this).lower() not in inner.names):
            shown = ", ".join(name for name, _ in _list(inner.select) if name is not None) or "unnamed"
            raise refusal(node, f"'{node.sql()}' is not a column of the subquery", f"it has {shown}; AS names a column")
        value = columns[name].copy()
        return value if isinstance(value, exp.Column) else exp.Paren(this=value)

    return tree.copy().transform(put)


def _write_out(made: exp.Select, columns: Mapping[str, exp.Expr]) -> None:
    """Write what names and places mean in GROUP BY, HAVING, QUALIFY and ORDER BY: their list is about to change."""
    listed = [value for _, value in _list(made)]

    def put(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.args.get("table") is None and node.name.lower() in columns:
            around = node.find_ancestor(exp.AggFunc)
            if around is not None and not isinstance(around.parent, exp.Window):
                return node  # an aggregate's argument is a column of the rows
            value = columns[node.name.lower()].copy()
            return value if isinstance(value, exp.Column) else exp.Paren(this=value)
        is_place = isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit()
        if is_place and isinstance(node.parent, exp.Group | exp.Ordered | exp.Rollup | exp.Cube | exp.Tuple):
            place = int(node.this)
            return listed[place - 1].copy() if 1 <= place <= len(listed) else node
        return node

    for clause in ("group", "having", "qualify", "order"):
        if made.args.get(clause):
            made.set(clause, made.args[clause].transform(put))


def _filter(made: exp.Select, select: exp.Select, inner: _Grouped) -> None:
    """Put the outer WHERE after the grouped one's own filters: HAVING, or QUALIFY if it has windows."""
    where = select.args.get("where")
    if where is None:
        return
    condition = _substituted(where.this, inner)
    clause, kind = ("qualify", exp.Qualify) if inner.has(exp.Window) else ("having", exp.Having)
    known = made.args.get(clause)
    made.set(clause, kind(this=condition if known is None else exp.and_(known.this, condition)))
