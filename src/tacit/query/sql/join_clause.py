"""Reads JOIN, and IN and EXISTS with a SELECT inside: rows of several tables become one relation.

`query/joins.py` decides which tables may be joined, only from the declarations. Here the text gives the values that
must be equal: USING, or conditions joined by AND in ON or in the WHERE of EXISTS. Other conditions filter one side, or
the result.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import NoReturn

from sqlglot import exp

from tacit.query.joins import Joined, join, marked, row_wise
from tacit.query.kind import value_of
from tacit.query.nodes import Call, Column, Expression, JoinKind, Key, renamed
from tacit.query.sql.expressions import match
from tacit.query.sql.refusals import at, only, refusal
from tacit.query.sql.rows import Rows, both
from tacit.query.typecheck import canonical, column_kinds

Pair = tuple[Expression, Expression]
# Reads a SELECT inside: its rows, and for EXISTS the WHERE that may name columns outside.
ReadSelect = Callable[[exp.Expr], tuple[Rows, exp.Expr | None]]


def joined(left: Rows, right: Rows, node: exp.Join) -> Rows:
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
    rows = _together(left, right, found, node, kind, {str(each.this).lower() for each in node.args.get("using") or ()})
    for each in rest:
        rows = rows.filtered(rows.condition(each))
    return rows


def with_condition(left: Rows, right: Rows, node: exp.Join, select: exp.Select) -> exp.Join:
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


def _asks_for_unit(right: Rows, node: exp.Join) -> bool:
    """Whether the unit of the right side is named outside ON, where it distinguishes rows with a match from others."""
    select = node.parent
    if not isinstance(select, exp.Select):
        return False
    for named in select.find_all(exp.Column):
        qualifier = named.args.get("table")
        table = None if qualifier is None else match(qualifier, right.tables)
        column = None if table is None else match(named.this, right.tables[table])
        is_unit = table is not None and column is not None and right.is_unit(right.tables[table][column])
        if is_unit and not any(parent is node for parent in _parents(named)):
            return True
    return False


def _parents(node: exp.Expr) -> Iterator[exp.Expr]:
    while node.parent is not None:
        node = node.parent
        yield node


def _how(node: exp.Join) -> str:
    """Return INNER, LEFT, SEMI or ANTI; refuse other joins, by the words that people use."""
    side, kind, method = (str(node.args.get(part) or "").upper() for part in ("side", "kind", "method"))
    if method:
        _refuse(node, f"a {method} join", "name the columns that are equal: JOIN t USING (x)")
    if side in ("RIGHT", "FULL"):
        way = "put the other table first and write LEFT JOIN" if side == "RIGHT" else "LEFT JOIN keeps one side's rows"
        _refuse(node, f"{side} JOIN, with unmatched rows on the right that have no owner on the left,", way)
    if kind == "CROSS" or not (node.args.get("on") or node.args.get("using")):
        word = "CROSS JOIN" if kind == "CROSS" else "a second table"
        way = "JOIN t USING (x), JOIN t ON a.x = t.x, or a.x = t.x in WHERE: both are joined on equal values"
        _refuse(node, f"{word} without a condition", way)
    if kind not in ("", "INNER", "OUTER", "SEMI", "ANTI"):
        _refuse(node, f"{kind} JOIN", "JOIN, LEFT JOIN, SEMI JOIN and ANTI JOIN are")
    only(node, "this", "side", "kind", "on", "using", "method")
    return kind if kind in ("SEMI", "ANTI") else side or "INNER"


def _refuse(node: exp.Expr, what: str, way: str) -> NoReturn:
    raise refusal(node, f"{what} is not in the language", way)


def _matches(left: Rows, right: Rows, node: exp.Join) -> tuple[list[Pair], list[exp.Expr]]:
    """Return what must be equal, and the conditions of ON that say something else."""
    using = node.args.get("using")
    if using:
        columns = [exp.Column(this=each) for each in using]
        return [(left.named(each), right.named(each)) for each in columns], []
    return _split(left, right, node.args["on"])


def _split(
    left: Rows, right: Rows, condition: exp.Expr, *, is_inside: bool = False
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


def _pair(left: Rows, right: Rows, node: exp.Expr, *, is_inside: bool) -> Pair | None:
    """Return the two sides of an equality between both tables; None for any other condition.

    A name that both have is not a side of one: in ON it is ambiguous, and inside EXISTS it is the inner table's.
    """
    if not isinstance(node, exp.EQ):
        return None
    for here, there in ((node.this, node.expression), (node.expression, node.this)):
        if left.sees(here) and not right.sees(here) and right.sees(there) and (is_inside or not left.sees(there)):
            return left.value(here), right.value(there)
    return None


def _filtered(rows: Rows, conditions: list[exp.Expr], where: str) -> Rows:
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


def _settled(rows: Rows, pairs: list[Pair], *, place: int, is_left: bool = False) -> tuple[list[Pair], Rows]:
    """Return rows with their filter and derived columns as part of their relation, if they must be computed first.

    This is needed for public rows, because matches are counted, and beside a LEFT JOIN, because missing rows are NULL.
    """
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


def _together(left: Rows, right: Rows, found: Joined, node: exp.Join, kind: JoinKind, using: set[str]) -> Rows:
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
    return Rows(found.side.relation, declaration, columns, tables, where, title=title, steps=work, matched=known)


# --- IN and EXISTS ---


def with_marks(select: exp.Select, rows: Rows, read: ReadSelect) -> Rows:
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


def _marked(rows: Rows, node: exp.Expr, read: ReadSelect) -> Rows:
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
        pairs, rest = ([], []) if where is None else _split(rows, others, where, is_inside=True)
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


def _mark(rows: Rows, others: Rows, pairs: list[Pair], node: exp.Expr, *, is_in: bool) -> tuple[str, Rows]:
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


def _only_marked(left: Rows, right: Rows, pairs: list[Pair], node: exp.Expr, *, is_anti: bool) -> Rows:
    """Return the rows of the left side that have a match, or those without."""
    name, rows = _mark(left, right, pairs, node, is_in=False)
    kept: Expression = Call("not", (Column(name),)) if is_anti else Column(name)
    return rows.filtered(canonical(kept, column_kinds(rows.declaration)))
