"""One SELECT about one declared table becomes a checked `Query`, of one level or several; the rest is refused."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from itertools import product

from sqlglot import exp

from tacit.numbers import decimal_meaning
from tacit.query.check import check
from tacit.query.compound import Branch, grouping_name, refuse_unnested_time
from tacit.query.joins import NamedRows
from tacit.query.literal import fraction_meant
from tacit.query.nodes import (
    INT,
    Aggregate,
    Call,
    Column,
    Expression,
    Key,
    Output,
    PostProcessing,
    Query,
    Shown,
    TableRows,
    Value,
    Window,
    columns_of,
    value_of,
)
from tacit.query.sql.expressions import Reader, Resolve, aggregate_name, aggregate_text, match, text_name, unique
from tacit.query.sql.from_clause import from_rows, unaliased, with_names
from tacit.query.sql.parse import read_node
from tacit.query.sql.per_unit import aggregated
from tacit.query.sql.refusals import FRACTIONS, KINDS, PAIRS, index_of, is_index, only, refusal
from tacit.query.sql.rows import Env, RowReader, table_rows
from tacit.query.sql.shown import (
    Asides,
    ShownParts,
    WindowReader,
    inner_select,
    is_made_up,
    key_name,
    read_order,
    with_answer_names,
)
from tacit.query.typecheck import LEVELS_MOST, column_kinds
from tacit.tables import Declaration

_CLAUSES = {
    "laterals": "ask about one table",
    "into": "save the answer afterwards",
    "sample": "leave out the sampling; a private answer needs no sample",
}

OTHER = "OTHER"
GROUPINGS = (exp.Grouping, exp.GroupingId)
# Nodes in the answer's expressions beside aggregates.
BESIDE_AGGREGATES = (*GROUPINGS, exp.Mode, exp.Subquery)
_CLAUSE_WORDS = {"laterals": "LATERAL"}
_ALLOWED = (
    *("expressions", "with_", "from_", "joins", "where", "group", "having", "windows", "qualify"),
    *("distinct", "order", "offset", "limit", "hint"),
)


@dataclass(frozen=True)
class _Item:
    """An item of the SELECT list: its name, if given, and its expression."""

    alias: str | None
    node: exp.Expr
    tree: Expression

    @property
    def is_of_rows(self) -> bool:
        """Whether it is without aggregates and windows: it must be a key, or made of keys."""
        return not any(map(is_made_up, columns_of(self.tree)))


@dataclass
class Statement:
    """A SELECT on its way to a Query."""

    select: exp.Select
    declaration: Declaration
    others: tuple[NamedRows, ...] = ()
    known: Env | None = None  # the names that FROM may use, if a SELECT around it has defined some
    rows: RowReader = field(init=False)
    parts: ShownParts = field(init=False)
    asides: Asides = field(init=False)
    items: list[_Item] = field(init=False, default_factory=list)
    names: list[str] = field(init=False, default_factory=list)
    levels: tuple[tuple[str, ...], ...] | None = field(init=False, default=None)
    other: bool = field(init=False, default=False)  # OTHER() in the GROUP BY

    def branch(self) -> Branch:
        """Read every clause, and check the whole."""
        for name, part in self.select.args.items():
            if part and name not in _ALLOWED:
                at_node = part[0] if isinstance(part, list) else part
                word = _CLAUSE_WORDS.get(name, name.strip("_").upper())
                raise refusal(
                    at_node if isinstance(at_node, exp.Expr) else self.select,
                    f"{word} is not in the language",
                    _CLAUSES.get(name, "a question has SELECT, FROM, WHERE, GROUP BY, HAVING, ORDER BY and LIMIT"),
                )
        if self.known is None:
            self.known = {self.declaration.name: table_rows(self.declaration)} | {
                each.name: table_rows(each.side.declaration, each.side.relation, each.most) for each in self.others
            }
        self.known = with_names(self.select, self.known, aggregated)
        self.rows = from_rows(self.select, self.known, aggregated)
        if self.rows.is_public:
            raise refusal(
                self.select,
                f"'{self.rows.declaration.name}' is public and needs no protection",
                f"ask it at its source, or join it with '{self.declaration.name}'",
            )
        self.parts = ShownParts(column_kinds(self.rows.declaration))
        self.asides = Asides(self.rows, self.parts)
        for projection in self.select.expressions:
            self._project(projection)
        distinct = self._distinct()
        self._name_keys(distinct=distinct)
        self.items = [replace(item, tree=self._settled(item.tree, item.node)) for item in self.items]
        self._name_items()
        where = self.select.args.get("where")
        after = self._after(distinct=distinct)
        query, names = self._finished(after, None if where is None else self.rows.row(where.this))
        more = dict.fromkeys(self._groupings_named().values(), INT)
        more |= {names[name]: kind for name, kind in self.parts.asides.items()}
        query = check(query, self.rows.declaration, names=self.rows.columns, within=self.rows.steps, more=more)
        query = replace(query, other=self.other)
        levels = self.levels or (tuple(key.name for key in query.keys),)
        names_of_keys = [key.name for key in query.keys]
        refuse_unnested_time(query.keys, [tuple(map(names_of_keys.index, level)) for level in levels])
        return Branch(query, levels, self.asides.finished(query, names))

    # --- the SELECT list ---

    def _project(self, node: exp.Expr) -> None:
        alias, node = unaliased(node)
        tree = read_node(self._after_reader(self._select_column), node)
        self.items.append(_Item(alias, node, self.parts.canonical(tree)))

    def _after_reader(self, resolve: Resolve) -> Reader:
        """Return what reads expressions of the answer: of columns, aggregates and windows."""
        named = {str(each.this.this).lower(): each for each in self.select.args.get("windows") or ()}
        inner = Reader(resolve, self._answer_aggregate, BESIDE_AGGREGATES, self.rows.marks)
        return replace(inner, window=WindowReader(self.parts, inner, named).read)

    def _answer_aggregate(self, node: exp.Expr) -> Expression:
        if isinstance(node, GROUPINGS):
            return self._grouping(node)
        if isinstance(node, exp.Mode):
            return self.asides.mode(node)
        if isinstance(node, exp.Subquery):
            inner = Statement(inner_select(node), self.declaration, self.others, self.known)
            branch = inner.branch()
            return self.asides.select(node, branch, inner.rows.declaration)
        reader = AggregateReader(self.rows)
        asked, word = reader.aggregate(node), word_of(node)
        return self.parts.aggregate(asked, word, aggregate_name(word, asked, reader.columns_named(node)))

    def _select_column(self, node: exp.Column) -> Expression:
        """A column of the table, or a name defined earlier in the same SELECT."""
        known = {item.alias: item.tree for item in self.items if item.alias is not None}
        if node.args.get("table") is None and match(node.this, self.rows.columns) is None:
            name = match(node.this, known)
            if name is not None:
                return known[name]
        return self.rows.resolve(node)

    def _answer_column(self, node: exp.Column) -> Expression:
        """A name of the SELECT, or a column of the table that is in a key."""
        only(node, "this", "table")
        if node.args.get("table") is not None:
            return self.rows.resolve(node)  # two tables of a join may have a column of this name
        name = match(node.this, self.names)
        if name is not None:
            return self.items[self.names.index(name)].tree
        if match(node.this, self.rows.columns) is None:
            raise refusal(
                node,
                f"'{node.this.this}' is not a column of the answer",
                f"its columns are {', '.join(self.names)}; filter rows in WHERE",
            )
        return self.rows.resolve(node)

    def _settled(self, tree: Expression, node: exp.Expr) -> Expression:
        """An expression of the answer; refused if it reads a column of the table that is not a key."""
        settled = self.parts.settled(tree)
        left = self.parts.rows_left(settled)
        if left:
            at_node = next((each for each in node.find_all(exp.Column) if match(each.this, left)), node)
            raise refusal(
                at_node,
                f"'{left[0]}' must be inside an aggregate or in the GROUP BY",
                f"GROUP BY {left[0]}, or put it inside an aggregate; WHERE filters rows",
            )
        return settled

    # --- GROUP BY ---

    def _distinct(self) -> bool:
        node = self.select.args.get("distinct")
        if isinstance(node, exp.Expr):
            only(node)
        return node is not None

    def _name_keys(self, *, distinct: bool) -> None:
        group = self.select.args.get("group")
        found: list[tuple[str | None, Expression]] = []
        if group is not None:
            found = self._grouped(group)
        elif distinct and all(item.is_of_rows for item in self.items):
            found = [(self._key_name(item), item.tree) for item in self.items]
        taken = {*self.rows.columns, *(item.alias for item in self.items if item.alias is not None)}
        keys: list[Key] = []
        for name, expression in found:
            if any(key.expression == expression for key in keys):
                continue
            if name is None or self.rows.columns.get(name, expression) != expression:
                name = unique(name or "key", {*taken, *(key.name for key in keys)})
            keys.append(Key(name, expression))
        self.parts.keys = {key_name(place): key for place, key in enumerate(keys)}

    def _grouped(self, group: exp.Expr) -> list[tuple[str | None, Expression]]:
        """The keys of all levels, each once; the levels are of their places, until they have names."""
        found: list[tuple[str | None, Expression]] = []

        def place_of(node: exp.Expr) -> str:
            key = self._key(node)
            at = next((at for at, (_, known) in enumerate(found) if known == key[1]), len(found))
            found.extend([key] if at == len(found) else [])
            return key_name(at)

        marks = [node for node in group.expressions if isinstance(node, exp.Anonymous) and node.name.upper() == OTHER]
        self.other = bool(marks)
        for node in marks:
            only(node, "this")
            node.pop()
        if not (group.expressions or any(group.args.get(kind) for kind in ("rollup", "cube", "grouping_sets"))):
            raise refusal(self.select, "OTHER() is one more group beside keys", "GROUP BY town, OTHER()")
        levels = read_levels(group, place_of)
        self.levels = None if len(levels) == 1 else levels
        return found

    def _grouping(self, node: exp.Expr) -> Expression:
        """GROUPING(a, b): whether each key is rolled up, as the digits of a binary number."""
        only(node, "expressions")
        if not node.expressions:
            raise refusal(node, "GROUPING takes the keys to ask about", "GROUPING(a)")
        digits: list[Expression] = [self.parts.grouping(self.rows.row(each)) for each in node.expressions]
        return reduce(lambda number, digit: Call("+", (Call("*", (value_of(2), number)), digit)), digits)

    def _groupings_named(self) -> dict[str, str]:
        """The name of each GROUPING column, by its made-up one; refused if it is not of a key."""
        found = {}
        for made_up, expression in self.parts.groupings.items():
            key = next((key for key in self.parts.keys.values() if key.expression == expression), None)
            if key is None or self.levels is None:
                raise refusal(
                    self.select, "GROUPING is of a key of a ROLLUP, CUBE or GROUPING SETS", "GROUP BY ROLLUP (a)"
                )
            found[made_up] = grouping_name(key.name)
        return found

    def _key_name(self, item: _Item) -> str:
        if item.alias is not None:
            return item.alias
        return self.rows.spelled(item.node) if isinstance(item.node, exp.Column) else text_name(item.node)

    def _key(self, node: exp.Expr) -> tuple[str | None, Expression]:
        while isinstance(node, exp.Paren):
            node = node.this
        if is_index(node):
            item = self.items[index_of(node, len(self.items))]
            if not item.is_of_rows:
                raise refusal(
                    node, f"column {node.this} of the SELECT is an aggregate", "group by a column or its name"
                )
            return self._key_name(item), item.tree
        if isinstance(node, exp.Column) and "table" not in node.args and isinstance(node.this, exp.Identifier):
            known = {item.alias: item for item in self.items if item.alias is not None and item.is_of_rows}
            alias = match(node.this, known)
            if alias is not None and match(node.this, self.rows.columns) is None:
                return alias, known[alias].tree
        expression = self.rows.row(node)
        for item in self.items:
            if item.is_of_rows and item.tree == expression:
                return self._key_name(item), expression
        return (self.rows.spelled(node) if isinstance(node, exp.Column) else text_name(node)), expression

    # --- names ---

    def _name_items(self) -> None:
        """Name every item: by its alias, its key, its aggregate, or its own words."""
        taken = [item.alias for item in self.items if item.alias is not None]
        for item in self.items:
            self.names.append(unique(self._own_name(item), taken) if item.alias is None else item.alias)
            taken.append(self.names[-1])

    def _own_name(self, item: _Item) -> str:
        if isinstance(item.tree, Column):
            if item.tree.name in self.parts.keys:
                return self.parts.keys[item.tree.name].name
            if item.tree.name in self.parts.aggregates:
                return self.parts.labels[item.tree.name]
        return text_name(item.node)

    # --- what happens to the answer ---

    def _after(self, *, distinct: bool) -> PostProcessing:
        clauses = {name: self.select.args.get(name) for name in ("having", "qualify", "order", "offset", "limit")}
        having, qualify, order = clauses["having"], clauses["qualify"], clauses["order"]
        listed = [item.tree for item in self.items]
        return PostProcessing(
            having=None if having is None else self._condition(having, windows=False),
            qualify=None if qualify is None else self._condition(qualify, windows=True),
            order=() if order is None else read_order(order, self._answer_expression, listed),
            offset=0 if clauses["offset"] is None else whole_number(clauses["offset"], "OFFSET"),
            limit=None if clauses["limit"] is None else whole_number(clauses["limit"], "LIMIT"),
            distinct=distinct,
        )

    def _condition(self, node: exp.Expr, *, windows: bool) -> Expression:
        only(node, "this")
        inside = node.find(exp.Window)
        if inside is not None and not windows:
            raise refusal(inside, "HAVING is before windows (OVER)", "QUALIFY RANK() OVER (ORDER BY n DESC) <= 3")
        return self._answer_expression(node.this)

    def _answer_expression(self, node: exp.Expr) -> Expression:
        return self._settled(read_node(self._after_reader(self._answer_column), node), node)

    # --- the question ---

    def _finished(self, after: PostProcessing, where: Expression | None) -> tuple[Query, dict[str, str]]:
        """The question, with the names of the answer in place of made-up ones; and the meaning of those."""
        windows = self._windows_used(after)
        columns_used = self._columns_used(replace(after, windows=windows))
        used = [name for name in self.parts.aggregates if name in columns_used]
        names = {name: key.name for name, key in self.parts.keys.items()} | self._groupings_named()
        if self.levels is not None:
            self.levels = tuple(tuple(names[each] for each in level) for level in self.levels)
        outputs: list[Output] = []
        named = list(zip(self.items, self.names, strict=True))
        for item, name in named:
            made_up = item.tree.name if isinstance(item.tree, Column) else ""
            if made_up in used and made_up not in names:
                names[made_up] = name
                outputs.append(Output(name, self.parts.aggregates[made_up]))
        are_named = all(isinstance(item.tree, Column) and names.get(item.tree.name) == name for item, name in named)
        is_plain = are_named and len(outputs) == len(used)
        taken = {*self.names, *names.values()}
        unit = self.rows.unit_name or self.rows.unit
        for made_up in used:
            if made_up not in names:
                asked = self.parts.aggregates[made_up]
                names[made_up] = unique(aggregate_text(self.parts.words[made_up], asked, unit), taken)
                taken.add(names[made_up])
                outputs.append(Output(names[made_up], asked))
        names |= self.asides.named(taken)
        if not used and not self.parts.keys and not self.parts.asides:
            raise refusal(
                self.select,
                "the SELECT lacks an aggregate and a GROUP BY: single rows are never shown",
                "add an aggregate, e.g. COUNT(*), or GROUP BY a column",
            )
        if not used:  # keys alone
            counted = Aggregate("count") if unit is None else Aggregate("count_units")
            outputs.append(Output(unique(aggregate_text("count", counted, unit), taken), counted))
        is_plain = is_plain and bool(used) and not after.distinct and self.levels is None and not self.parts.asides
        shown = () if is_plain else tuple(Shown(name, item.tree) for item, name in named)
        question = Query(
            table=self.rows.declaration.name,
            outputs=tuple(outputs),
            where=self.rows.filtered(where).where,
            keys=tuple(self.parts.keys.values()),
            after=with_answer_names(replace(after, windows=windows, shown=shown), names),
            columns=tuple(self.names),
            relation=None if isinstance(self.rows.relation, TableRows) else self.rows.relation,
            names=self.rows.renamed(),
        )
        return question, names

    def _windows_used(self, after: PostProcessing) -> tuple[Window, ...]:
        used = self._columns_used(after)
        kept = [replace(window, name=name) for name, window in self.parts.windows.items() if name in used]
        return tuple(window.changed(lambda tree: self._settled(tree, self.select)) for window in kept)

    def _columns_used(self, after: PostProcessing) -> frozenset[str]:
        return frozenset().union(*map(columns_of, (*(item.tree for item in self.items), *after.parts)))


def whole_number(node: exp.Expr, word: str) -> int:
    """Return the number of rows that LIMIT or OFFSET takes."""
    only(node, "expression")
    wanted = node.args.get("expression")
    if isinstance(wanted, exp.Literal) and not wanted.args.get("is_string") and str(wanted.this).isdigit():
        return min(int(str(wanted.this)[:18]), 10**18)  # no answer has that many rows
    raise refusal(node, f"{word} takes a whole number", f"{word} 10")


# --- aggregates over rows ---


@dataclass(frozen=True)
class AggregateReader:
    """Reads aggregates over rows."""

    rows: RowReader

    def aggregate(self, node: exp.Expr) -> Aggregate:
        """Return what an aggregate's node asks for."""
        inner = node.this
        if isinstance(node, exp.Count):
            only(node, "this", "big_int")
            if isinstance(inner, exp.Star):
                only(inner)
                return Aggregate("count")
            if isinstance(inner, exp.Distinct):
                return self._units(inner)
        elif isinstance(node, PAIRS):
            only(node, "this", "expression")
            return Aggregate(KINDS[type(node)], self.rows.row(inner), other=self.rows.row(node.expression))
        elif isinstance(node, exp.Quantile):
            only(node, "this", "quantile")
            return Aggregate("quantile", self.rows.row(inner), fraction=self._fraction(node.args.get("quantile"), node))
        else:
            only(node, "this")
        if not isinstance(inner, exp.Expr):
            raise refusal(node, "an aggregate needs an argument", "COUNT(*), SUM(x) or AVG(x)")
        expression = self.rows.row(inner)
        if isinstance(node, exp.Count):
            constant = isinstance(expression, Value) and expression.value is not None
            return Aggregate("count") if constant else Aggregate("count", expression)
        fraction = FRACTIONS.get(type(node))
        kind = "quantile" if fraction is not None else KINDS.get(type(node))
        if kind is None:
            raise refusal(node, "this aggregate is not in the language", "e.g. QUANTILE(x, 0.9)")
        return Aggregate(kind, expression, fraction=fraction)

    def _fraction(self, node: exp.Expr | None, where: exp.Expr) -> Fraction:
        if isinstance(node, exp.Literal) and not node.args.get("is_string"):
            meant = fraction_meant(decimal_meaning(str(node.this), name="fraction"))
            if meant is not None:
                return meant
        raise refusal(
            where, "a quantile's fraction must be a number from 0 to 1, with at most four decimals", "QUANTILE(x, 0.9)"
        )

    def _units(self, node: exp.Distinct) -> Aggregate:
        only(node, "expressions")
        counted = node.expressions[0] if len(node.expressions) == 1 else None
        if isinstance(counted, exp.Column) and self.rows.is_unit(self.rows.named(counted)):
            return Aggregate("count_units")
        if isinstance(counted, exp.Column) and self.rows.is_match(found := self.rows.named(counted)):
            unit = Column(self.rows.unit or "")
            met = Call("not", (Call("is_null", (found,)),))
            return Aggregate("count_distinct", Call("case", (met, unit, Value(None, "null"))), per_unit=1)
        if isinstance(counted, exp.Case) and (asked := self._units_where(counted)) is not None:
            return asked
        if counted is None:
            raise refusal(node, "COUNT(DISTINCT ...) takes one expression", "join columns with CONCAT")
        return Aggregate("count_distinct", self.rows.row(counted))

    def _units_where(self, node: exp.Case) -> Aggregate | None:
        """COUNT(DISTINCT CASE WHEN a THEN unit END): the units with a row that satisfies a condition."""
        ifs = node.args["ifs"]
        unit = ifs[0].args["true"] if len(ifs) == 1 and not node.this and not node.args.get("default") else None
        while isinstance(unit, exp.Paren):
            unit = unit.this
        if not isinstance(unit, exp.Column) or not self.rows.is_unit(self.rows.named(unit)):
            return None
        found = Call("case", (self.rows.row(ifs[0].this), Column(self.rows.unit or ""), Value(None, "null")))
        return Aggregate("count_distinct", found, per_unit=1)

    def columns_named(self, node: exp.Expr) -> list[str]:
        """The columns of an aggregate, as they are spelled; empty if one of them is an expression."""
        inner = node.this
        inside = inner.expressions if isinstance(inner, exp.Distinct) else [inner, node.args.get("expression")]
        given = [each for each in inside if isinstance(each, exp.Expr) and not isinstance(each, exp.Star)]
        columns = [each for each in given if isinstance(each, exp.Column)]
        return [self.rows.spelled(each) for each in columns] if len(columns) == len(given) else []


def word_of(node: exp.Expr) -> str:
    return node.sql_name().lower() if isinstance(node, exp.Func) else "aggregate"


# --- the levels of ROLLUP, CUBE and GROUPING SETS ---

Names = tuple[str, ...]


def read_levels(group: exp.Expr, name_of: Callable[[exp.Expr], str]) -> tuple[Names, ...]:
    """Return the keys of each level, which `name_of` reads; several parts of a GROUP BY are combined."""
    only(group, "expressions", "rollup", "cube", "grouping_sets")
    whole = _with(group)
    if whole is not None:  # GROUP BY a, b WITH ROLLUP
        parts = [_sets(whole, [[name_of(node)] for node in group.expressions], group)]
    else:
        parts = [_element(node, name_of) for node in group.expressions]
    found = []
    for combined in product(*parts):
        found.append(tuple(dict.fromkeys(name for names in combined for name in names)))
        if len(found) > LEVELS_MOST:
            raise refusal(
                group, f"this GROUP BY has more than {LEVELS_MOST} levels", "ask for fewer, with GROUPING SETS"
            )
    return tuple(found)


def _with(group: exp.Expr) -> type[exp.Expr] | None:
    for name, kind in (("rollup", exp.Rollup), ("cube", exp.Cube)):
        if group.args.get(name):
            return kind
    return None


def _element(node: exp.Expr, name_of: Callable[[exp.Expr], str]) -> list[Names]:
    """Return the levels of one element of a GROUP BY."""
    if isinstance(node, exp.Rollup | exp.Cube):
        return _sets(type(node), [list(_level_names(each, name_of)) for each in node.expressions], node)
    if isinstance(node, exp.GroupingSets):
        return [level for each in node.expressions for level in _element(each, name_of)]
    return [_level_names(node, name_of)]


def _level_names(node: exp.Expr, name_of: Callable[[exp.Expr], str]) -> Names:
    if isinstance(node, exp.Tuple):
        return tuple(name_of(each) for each in node.expressions)
    return (name_of(node),)


def _sets(kind: type[exp.Expr], parts: Sequence[Sequence[str]], node: exp.Expr) -> list[Names]:
    """Return the levels of a ROLLUP or a CUBE of parts, each of which is kept whole or rolled up."""
    if kind is exp.Rollup:
        return [tuple(name for part in parts[:end] for name in part) for end in range(len(parts), -1, -1)]
    if len(parts) > LEVELS_MOST.bit_length() - 1:
        raise refusal(node, f"this CUBE has more than {LEVELS_MOST} levels", "ask for fewer, with GROUPING SETS")
    choices = product((True, False), repeat=len(parts))
    return [
        tuple(name for part, kept in zip(parts, choice, strict=True) if kept for name in part) for choice in choices
    ]
