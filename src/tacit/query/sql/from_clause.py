"""The rows that FROM and WITH yield: the declared table, joins, subqueries and common table expressions.

The columns of a subquery that filters, renames and derives are replaced by their expressions. One that groups by the
unit becomes a relation (`per_unit.py`); one that would mix people before noise is added is refused. JOIN, IN and EXISTS
give the values that must be equal: `query/joins.py` decides which tables may be joined.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import count
from typing import NoReturn

from sqlglot import exp

from tacit.query.joins import Joined, join, marked, row_wise
from tacit.query.nodes import Call, Column, Expression, JoinKind, Key, renamed, value_of
from tacit.query.sql.expressions import match
from tacit.query.sql.refusals import at, inside, located, only, refusal
from tacit.query.sql.rows import SUBQUERY, Env, RowReader, both
from tacit.query.sql.unit_windows import is_of_one_unit, windows_of, with_unit_windows
from tacit.query.typecheck import canonical, column_kinds

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


Aggregated = Callable[[exp.Select, RowReader], RowReader]


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


def from_rows(select: exp.Select, names: Env, aggregated: Aggregated) -> RowReader:
    """Return the rows that a SELECT is about: those of its tables, joined, with a mark for each IN and EXISTS."""
    clause = select.args.get("from_")
    if clause is None or clause.this is None:
        raise refusal(select, "a question is about a table", f"FROM {next(iter(names))}")
    only(clause, "this")
    rows = _from_table(clause.this, names, aggregated)
    for node in select.args.get("joins") or ():
        right = _from_table(node.this, names, aggregated)
        rows = joined(rows, right, with_condition(rows, right, node, select))
    return with_marks(select, rows, partial(_subquery, names=names, aggregated=aggregated))


def _from_table(source: exp.Expr, names: Env, aggregated: Aggregated) -> RowReader:
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


def _subquery(select: exp.Expr, *, names: Env, aggregated: Aggregated) -> tuple[RowReader, exp.Expr | None]:
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
    for part in ("group", "having", "qualify"):
        if select.args.get(part):
            reason = "EXISTS takes a SELECT without GROUP BY and QUALIFY"
            raise refusal(select, reason, "write IN (SELECT ...) with it instead")
    where = select.args.get("where")
    return rows, None if where is None else where.this


def _named_as(rows: RowReader, alias: exp.Expr | None) -> RowReader:
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


def _inner(node: exp.Expr, names: Env, aggregated: Aggregated) -> RowReader:
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
    if groups or any(isinstance(each, exp.AggFunc) for each in _outside_windows(node.expressions)):
        return aggregated(node, rows)
    rows = with_unit_windows(windows_of(node), rows)
    qualify = node.args.get("qualify")
    if qualify is not None:
        rows = rows.filtered(rows.condition(qualify.this))
    columns: dict[str, Expression] = {}
    for name, expression, at_node in projected(node, rows):
        if name in columns:
            refuse_twice(at_node, [*columns, name])
        columns[name] = expression
    return replace(rows, columns=columns, tables={}, title=SUBQUERY)


def _outside_windows(nodes: Iterable[exp.Expr]) -> Iterator[exp.Expr]:
    for node in nodes:
        yield from node.walk(prune=lambda each: isinstance(each, exp.Window))


def projected(select: exp.Select, rows: RowReader) -> Iterator[tuple[str, Expression, exp.Expr]]:
    """Yield the name and expression of each column of a row-wise SELECT, the stars written out."""
    for node in select.expressions:
        star = starred(node, rows)
        if star is not None:
            yield from ((name, expression, node) for name, expression in star.items())
            continue
        alias, inner = unaliased(node)
        expression = rows.named(inner) if isinstance(inner, exp.Column) else rows.row(inner)
        yield alias or name_of_column(inner, rows), expression, node


def starred(node: exp.Expr, rows: RowReader) -> Mapping[str, Expression] | None:
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


def name_of_column(node: exp.Expr, rows: RowReader) -> str:
    """Return the name of a column that a subquery selects without AS."""
    if isinstance(node, exp.Column):
        return rows.spelled(node)
    raise refusal(node, "a column of a subquery that is an expression needs a name", "write AS and a name after it")


def _refuse_mixing(select: exp.Select, rows: RowReader) -> None:
    for name, part in select.args.items():
        if not part or name in _ALLOWED:
            continue
        node = part[0] if isinstance(part, list) else part
        if name == "qualify" and not any(select.args.get(part) for part in ("group", "having", "distinct")):
            continue
        word, reason, way = _MIXING.get(name, (name.strip("_").upper(), "it is outside the language", "leave it out"))
        unit = rows.unit_name or rows.unit or "the unit"
        where = located(node, select) if isinstance(node, exp.Expr) else select
        raise refusal(where, f"{word} inside a subquery is refused: {reason}", way.format(unit=unit))
    grouped = any(select.args.get(part) for part in ("group", "having", "distinct"))
    for window in windows_of(select, everywhere=True):
        if not grouped and is_of_one_unit(window, rows):
            continue
        unit = rows.unit_name or rows.unit or "the unit"
        word = window.this.sql_name() if isinstance(window.this, exp.Func) else "a window"
        way = (
            f"PARTITION BY {unit} compares each one's rows alone; GROUP BY {unit} aggregates them; in the outermost"
            " SELECT windows are over the rows of the answer"
        )
        raise refusal(window, f"{word} OVER (...) inside a subquery compares rows of different people", way)


def refuse_twice(node: exp.Expr, names: list[str]) -> None:
    """Refuse two columns of one name, case ignored."""
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise refusal(node, f"a subquery has two columns '{name}'", "name one of them with AS")
        seen.add(name.lower())


# --- JOIN, and IN and EXISTS with a SELECT inside ---


Pair = tuple[Expression, Expression]
# Reads a SELECT inside: its rows, and for EXISTS the WHERE that may name columns outside.
ReadSelect = Callable[[exp.Expr], tuple[RowReader, exp.Expr | None]]


def joined(left: RowReader, right: RowReader, node: exp.Join) -> RowReader:
    """Return the rows of a JOIN."""
    how = _how(node)
    pairs, rest = _matches(left, right, node)
    if how in ("SEMI", "ANTI"):
        if rest:
            right = _filtered(right, rest, f"ON of a {how} JOIN")
        return _only_marked(left, right, pairs, node, is_anti=how == "ANTI")
    kind: JoinKind = "left" if how == "LEFT" else "inner"
    if kind == "left" and rest:
        right, rest = _filtered(right, rest, "ON of a LEFT JOIN"), []
    pairs, left = _settled(left, pairs, place=0)
    if kind == "left" and not right.is_public and _asks_for_unit(right, node):
        right = replace(right, matched=frozenset((_new_name("matched", right.declaration.columns),)))
    pairs, right = _settled(right, pairs, place=1, is_left=kind == "left")
    most = right.most if right.is_public else left.most
    once = bool(node.args.get("using")) and kind == "inner"  # in a LEFT JOIN the right one is NULL without a match
    found = at(node, lambda: join(left.side, right.side, pairs, how=kind, most=most, once=once))
    rows = _joined_by_and(
        left, right, found, node, kind, {str(each.this).lower() for each in node.args.get("using") or ()}
    )
    for each in rest:
        rows = rows.filtered(rows.condition(each))
    return rows


def with_condition(left: RowReader, right: RowReader, node: exp.Join, select: exp.Select) -> exp.Join:
    """Return a join with its condition; for a table after a comma, it is the equality of both in WHERE."""
    where = select.args.get("where")
    if where is None or any(node.args.get(part) for part in ("on", "using", "side", "method")):
        return node
    conditions = _conjuncts(where.this)
    equal = [each for each in conditions if _pair(left, right, each, is_inside=False) is not None]
    if not equal or str(node.args.get("kind") or "CROSS").upper() != "CROSS":
        return node
    rest = [each for each in conditions if not any(each is other for other in equal)]
    select.set("where", exp.Where(this=exp.and_(*rest, copy=False)) if rest else None)
    node.set("kind", None)
    node.set("on", exp.and_(*equal, copy=False))
    return node


def _asks_for_unit(right: RowReader, node: exp.Join) -> bool:
    """Whether the unit of the right side is named outside ON, where it distinguishes rows with a match from others."""
    select = node.parent
    if not isinstance(select, exp.Select):
        return False
    for named in select.find_all(exp.Column):
        qualifier = named.args.get("table")
        table = None if qualifier is None else match(qualifier, right.tables)
        column = None if table is None else match(named.this, right.tables[table])
        is_unit = table is not None and column is not None and right.is_unit(right.tables[table][column])
        if is_unit and not any(each is named for each in node.walk()):
            return True
    return False


def _how(node: exp.Join) -> str:
    """Return INNER, LEFT, SEMI or ANTI; refuse other joins, by the words that people use."""
    side, kind, method = (str(node.args.get(part) or "").upper() for part in ("side", "kind", "method"))
    if method:
        _refuse_join(node, f"a {method} join", "name the columns that are equal: JOIN t USING (x)")
    if side in ("RIGHT", "FULL"):
        way = "put the other table first and write LEFT JOIN" if side == "RIGHT" else "LEFT JOIN keeps one side's rows"
        _refuse_join(node, f"{side} JOIN, with unmatched rows on the right that have no owner on the left,", way)
    if kind == "CROSS" or not (node.args.get("on") or node.args.get("using")):
        word = "CROSS JOIN" if kind == "CROSS" else "a second table"
        way = "JOIN t USING (x), JOIN t ON a.x = t.x, or a.x = t.x in WHERE: both are joined on equal values"
        _refuse_join(node, f"{word} without a condition", way)
    if kind not in ("", "INNER", "OUTER", "SEMI", "ANTI"):
        _refuse_join(node, f"{kind} JOIN", "JOIN, LEFT JOIN, SEMI JOIN and ANTI JOIN are")
    only(node, "this", "side", "kind", "on", "using", "method")
    return kind if kind in ("SEMI", "ANTI") else side or "INNER"


def _refuse_join(node: exp.Expr, what: str, way: str) -> NoReturn:
    raise refusal(node, f"{what} is not in the language", way)


def _matches(left: RowReader, right: RowReader, node: exp.Join) -> tuple[list[Pair], list[exp.Expr]]:
    """Return what must be equal, and the conditions of ON that say something else."""
    using = node.args.get("using")
    if using:
        columns = [exp.Column(this=each) for each in using]
        return [(left.named(each), right.named(each)) for each in columns], []
    return _split_condition(left, right, node.args["on"])


def _split_condition(
    left: RowReader, right: RowReader, condition: exp.Expr, *, is_inside: bool = False
) -> tuple[list[Pair], list[exp.Expr]]:
    """Return the equalities between both tables, and all other conditions."""
    pairs: list[Pair] = []
    rest: list[exp.Expr] = []
    for each in _conjuncts(condition):
        pair = _pair(left, right, each, is_inside=is_inside)
        if pair is None:
            rest.append(each)
        else:
            pairs.append(pair)
    return pairs, rest


def _conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """Return the conditions that AND joins."""
    found: list[exp.Expr] = []
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, exp.Paren):
            waiting.append(each.this)
        elif isinstance(each, exp.And):
            waiting += [each.expression, each.this]
        else:
            found.append(each)
    return found


def _pair(left: RowReader, right: RowReader, node: exp.Expr, *, is_inside: bool) -> Pair | None:
    """Return the two sides of an equality between both tables; None for another condition, or for a name of both."""
    if not isinstance(node, exp.EQ):
        return None
    for here, there in ((node.this, node.expression), (node.expression, node.this)):
        if left.sees(here) and not right.sees(here) and right.sees(there) and (is_inside or not left.sees(there)):
            return left.value(here), right.value(there)
    return None


def _filtered(rows: RowReader, conditions: list[exp.Expr], where: str) -> RowReader:
    """Return the rows of the right side that satisfy the conditions on it."""
    for each in conditions:
        if not rows.sees(each):
            raise refusal(
                each,
                f"{where} takes equalities between the two tables, and conditions only on the right one",
                "put other conditions into WHERE",
            )
        rows = rows.filtered(rows.condition(each))
    return rows


def _settled(rows: RowReader, pairs: list[Pair], *, place: int, is_left: bool = False) -> tuple[list[Pair], RowReader]:
    """Return rows with their filter and derived columns as part of their relation: of public rows, because matches are
    counted, and beside a LEFT JOIN, because missing rows are NULL."""
    plain = all(isinstance(each, Column) for each in rows.columns.values())
    new = rows.matched if is_left else frozenset()
    if not (rows.is_public or is_left) or (rows.where is None and plain and not new):
        return pairs, rows
    keys: dict[Expression, str] = {}
    named = [*rows.columns.values(), *(each for own in rows.tables.values() for each in own.values())]
    wanted = [each for each in (*named, *(pair[place] for pair in pairs)) if not rows.is_unit(each)]
    keys |= {each: each.name for each in wanted if isinstance(each, Column)}
    for expression in wanted:
        if expression not in keys:
            keys[expression] = _new_name("derived", (*rows.declaration.columns, *keys.values()))
    columns = tuple(Key(name, expression) for expression, name in keys.items())
    columns += tuple(Key(name, value_of(constant=True)) for name in new)
    side = row_wise(rows.side, columns, rows.where)

    def over(expression: Expression) -> Expression:
        return expression if rows.is_unit(expression) else Column(keys[expression])

    made = {name: over(each) for name, each in rows.columns.items()}
    tables = {
        table: {name: over(each) for name, each in own.items() if each in keys or rows.is_unit(each)}
        for table, own in rows.tables.items()
    }
    settled = replace(rows, columns=made, tables=tables, where=None)
    settled = replace(settled, relation=side.relation, declaration=side.declaration, steps=side.steps)
    ends = [(over(here), there) if place == 0 else (here, over(there)) for here, there in pairs]
    return ends, settled


def _joined_by_and(
    left: RowReader, right: RowReader, found: Joined, node: exp.Join, kind: JoinKind, using: set[str]
) -> RowReader:
    """Return the rows of a join; a name of only one side is plain, and USING's are the left side's."""
    for table in right.tables:
        if table.lower() in {each.lower() for each in left.tables}:
            raise refusal(
                node, f"two tables are called '{table}' here", f"give one another name: JOIN {table} AS other"
            )
    declaration = found.side.declaration

    def over(columns: Mapping[str, Expression], names: Mapping[str, str]) -> dict[str, Expression]:
        return {name: renamed(each, names) for name, each in columns.items()}

    hidden = right.unit if kind == "left" and not right.is_public else None  # NULL in rows without a match
    matched = [found.right[name] for name in right.matched] if hidden is not None else []
    shown = {name: each for name, each in right.columns.items() if hidden is None or each != Column(hidden)}
    mine, theirs = over(left.columns, found.left), over(shown, found.right)
    columns = dict(mine)
    for name, expression in theirs.items():
        same = next((each for each in mine if each.lower() == name.lower()), None)
        if same is None:
            columns[name] = expression
        elif same.lower() not in using and mine[same] != expression:
            columns.pop(same, None)
    tables = {table: over(own, found.left) for table, own in left.tables.items()}
    for table, own in right.tables.items():
        tables[table] = over({name: each for name, each in own.items() if name in shown}, found.right)
        if matched:
            units = [name for name, each in own.items() if hidden is not None and each == Column(hidden)]
            tables[table] |= dict.fromkeys(units, Column(matched[0]))
    where = None if left.where is None else renamed(left.where, found.left)
    if right.where is not None:
        where = both(where, renamed(right.where, found.right), declaration)
    title, work = "the joined tables", found.side.steps
    of_left = [found.left[name] for name in left.matched]
    known = frozenset((*of_left, *(matched or (found.right[name] for name in right.matched))))
    return RowReader(found.side.relation, declaration, columns, tables, where, title=title, steps=work, matched=known)


# --- IN and EXISTS ---


def with_marks(select: exp.Select, rows: RowReader, read: ReadSelect) -> RowReader:
    """Return rows with a column for each IN and EXISTS with a SELECT inside, which says whether anything matches."""
    for node in _subqueries(select):
        rows = _marked(rows, node, read)
    return rows


def _subqueries(select: exp.Select) -> list[exp.Expr]:
    """Return every IN and EXISTS with a SELECT inside, of the SELECT's own columns and WHERE."""
    where = select.args.get("where")
    found: list[exp.Expr] = []
    for clause in (*select.expressions, *([] if where is None else [where.this])):
        nodes = clause.walk(prune=lambda each: isinstance(each, exp.Subquery | exp.Select | exp.Exists))
        found += [
            node
            for node in nodes
            if isinstance(node, exp.Exists) or (isinstance(node, exp.In) and node.args.get("query"))
        ]
    return found


def _marked(rows: RowReader, node: exp.Expr, read: ReadSelect) -> RowReader:
    if isinstance(node, exp.Exists):
        only(node, "this")
        inner = node.this.unnest() if isinstance(node.this, exp.Subquery) else node.this
        if any(each.find(exp.AggFunc) is not None for each in inner.expressions):
            raise refusal(
                node,
                "an EXISTS over an aggregate is true whatever the rows are",
                "EXISTS (SELECT 1 FROM ... WHERE ...)",
            )
        others, where = read(node.this)
        pairs, rest = ([], []) if where is None else _split_condition(rows, others, where, is_inside=True)
        others = _filtered(others, rest, "WHERE of an EXISTS") if rest else others
    else:
        only(node, "this", "query")
        others, _ = read(node.args["query"])
        if isinstance(node.this, exp.Tuple) or len(others.columns) != 1:
            raise refusal(node, "IN takes one value and a SELECT of one column", "write EXISTS for several")
        pairs = [(rows.value(node.this), next(iter(others.columns.values())))]
    name, rows = _mark(rows, others, pairs, node, is_in=isinstance(node, exp.In))
    return replace(rows, marks={**rows.marks, id(node): Column(name)})


def _new_name(word: str, taken: Iterable[str]) -> str:
    """Return an unused name, ignoring the case of its letters; the unit is among what is taken."""
    folded = {each.lower() for each in taken}
    return next(name for number in count(1) if (name := f"{word}_{number}") not in folded)


def _mark(
    rows: RowReader, others: RowReader, pairs: list[Pair], node: exp.Expr, *, is_in: bool
) -> tuple[str, RowReader]:
    """Return the mark's name and the rows with it; rows of `others` that a filter leaves out never match."""
    names: dict[Expression, str] = {}
    for _, there in pairs:
        if not others.is_unit(there) and there not in names:
            names[there] = _new_name("match", (*others.declaration.columns, *names.values()))
    matched = tuple(Key(name, there) for there, name in names.items())
    found = at(node, lambda: row_wise(others.side, matched, others.where))
    ends = [(here, Column(names[each]) if each in names else each) for here, each in pairs]
    side, name = at(node, lambda: marked(rows.side, found, ends, is_in=is_in))
    return name, replace(rows, relation=side.relation, declaration=side.declaration, steps=side.steps)


def _only_marked(left: RowReader, right: RowReader, pairs: list[Pair], node: exp.Expr, *, is_anti: bool) -> RowReader:
    name, rows = _mark(left, right, pairs, node, is_in=False)
    kept: Expression = Call("not", (Column(name),)) if is_anti else Column(name)
    return rows.filtered(canonical(kept, column_kinds(rows.declaration)))
