"""The SQL door: one SELECT about one declared table becomes a checked `Query`; everything else is refused.

sqlglot parses the text (`parse.py`). Only the syntax that `expressions.py` and this module list is kept. Nothing here
reads a row.
"""

from dataclasses import dataclass, field
from fractions import Fraction

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from tacit.errors import QueryRefused
from tacit.privacy import decimal_meaning
from tacit.query.check import check
from tacit.query.expressions import Reader, column_resolver, match, table_column
from tacit.query.literal import fraction_meant
from tacit.query.nodes import Aggregate, Column, Expression, Key, Ordering, Output, PostProcessing, Query, Value
from tacit.query.parse import parsed, read_node, row_expression, tokens_of
from tacit.query.refusals import AGGREGATES, FRACTIONS, KINDS, PAIRS, only, refusal
from tacit.tables import Declaration

_CLAUSES = {
    "with_": "write one SELECT; ask the query inside the WITH as a question of its own",
    "joins": "ask about one table",
    "laterals": "ask about one table",
    "distinct": "GROUP BY names each group once",
    "offset": "select the rows you need from the answer afterwards",
    "qualify": "windows show single rows; use HAVING on the answer",
    "windows": "windows show single rows; group with GROUP BY",
    "into": "save the answer afterwards",
    "sample": "leave out the sampling; a private answer needs no sample",
}

_CLAUSE_WORDS = {"joins": "a second table", "laterals": "LATERAL", "windows": "WINDOW"}


def parse_query(text: str, declaration: Declaration) -> Query:
    """Return the question a SELECT asks of a declared table, checked; refuse anything else with its position."""
    if not isinstance(text, str):
        raise QueryRefused(f"a question must be text, not {type(text).__name__}\nhint: sql('SELECT COUNT(*) ...')")
    tokens = tokens_of(text)
    _refuse_other_statements(tokens, declaration)
    if tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        text = text[: tokens[-1].start]
    statement = parsed(text)
    if not isinstance(statement, exp.Select):
        raise refusal(statement, "a question is one SELECT", "ask each SELECT by itself; there is no UNION")
    return _Statement(statement, declaration).query()


def _refuse_other_statements(tokens: list[Token], declaration: Declaration) -> None:
    if not tokens or tokens[0].token_type != TokenType.SELECT:
        raise QueryRefused(
            "a question must be one SELECT, but this text starts with something else"
            f"\nhint: start with SELECT, then name what to count or add up in '{declaration.name}'"
        )


@dataclass
class _Statement:
    """One SELECT on its way to a Query."""

    select: exp.Select
    declaration: Declaration
    reader: Reader = field(init=False)
    table_names: frozenset[str] = field(init=False)
    keys_shown: dict[str, Expression] = field(init=False, default_factory=dict)
    shown_at: dict[str, exp.Expr] = field(init=False, default_factory=dict)
    outputs: list[Output] = field(init=False, default_factory=list)
    columns: list[str] = field(init=False, default_factory=list)

    def query(self) -> Query:
        """Read every clause, and check the whole."""
        allowed = ("expressions", "from_", "where", "group", "having", "order", "limit", "hint")
        for name, part in self.select.args.items():
            if part and name not in allowed:
                at_node = part[0] if isinstance(part, list) else part
                word = _CLAUSE_WORDS.get(name, name.strip("_").upper())
                raise refusal(
                    at_node if isinstance(at_node, exp.Expr) else self.select,
                    f"{word} is not in the language",
                    _CLAUSES.get(name, "a question has SELECT, FROM, WHERE, GROUP BY, HAVING, ORDER BY and LIMIT"),
                )
        self.table_names = self._table()
        self.reader = Reader(column_resolver(self.declaration, self.table_names))
        for projection in self.select.expressions:
            self._project(projection)
        where = self.select.args.get("where")
        query = Query(
            table=self.declaration.name,
            outputs=tuple(self.outputs),
            where=None if where is None else self._row(where.this),
            keys=self._keys(),
            after=self._after(),
            columns=tuple(self.columns),
        )
        return check(query, self.declaration)

    def _table(self) -> frozenset[str]:
        source = self.select.args.get("from_")
        table = None if source is None else source.this
        if source is None or not isinstance(table, exp.Table):
            raise refusal(table or self.select, "a question is about one table", f"FROM {self.declaration.name}")
        if not isinstance(table.this, exp.Identifier):
            raise refusal(table, "FROM must name a table, not a function", f"FROM {self.declaration.name}")
        only(source, "this")
        only(table, "this", "alias")
        name = self.declaration.name
        if match(table.this, [name]) is None:
            raise refusal(table, f"there is no table '{table.this.this}' here", f"the table is '{name}'")
        alias = table.args.get("alias")
        if alias is None:
            return frozenset((name,))
        only(alias, "this")
        return frozenset((str(alias.this.this),))

    def _project(self, node: exp.Expr) -> None:
        alias = None
        if isinstance(node, exp.Alias):
            only(node, "this", "alias")
            alias, node = str(node.args["alias"].this), node.this
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, AGGREGATES):
            aggregate = self._aggregate(node)
            name = alias or _default_name(aggregate)
            self.outputs.append(Output(name, aggregate))
        else:
            expression = self._row(node)
            if alias is None and not isinstance(expression, Column):
                raise refusal(node, "a key that is an expression needs a name", "write AS and a name after it")
            name = alias or expression.name  # type: ignore[union-attr]
            if name in self.keys_shown:
                raise refusal(node, f"'{name}' is in the SELECT twice", "leave one out, or name it with AS")
            self.keys_shown[name], self.shown_at[name] = expression, node
        self.columns.append(name)

    def _aggregate(self, node: exp.Expr) -> Aggregate:
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
            return Aggregate(KINDS[type(node)], self._row(inner), other=self._row(node.expression))
        elif isinstance(node, exp.Quantile):
            only(node, "this", "quantile")
            return Aggregate("quantile", self._row(inner), fraction=self._fraction(node.args.get("quantile"), node))
        else:
            only(node, "this")
        if not isinstance(inner, exp.Expr):
            raise refusal(node, "an aggregate needs an argument", "COUNT(*), SUM(x) or AVG(x)")
        expression = self._row(inner)
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
        unit = self.declaration.unit
        counted = node.expressions[0] if len(node.expressions) == 1 else None
        if isinstance(counted, exp.Column):
            only(counted, "this", "table")
            if table_column(counted, self.declaration, self.table_names) == unit:
                return Aggregate("count_units")
        if counted is None:
            raise refusal(node, "COUNT(DISTINCT ...) takes one expression", "join columns with CONCAT")
        return Aggregate("count_distinct", self._row(counted))

    def _row(self, node: exp.Expr) -> Expression:
        return row_expression(self.reader, node, self.declaration)

    def _keys(self) -> tuple[Key, ...]:
        group = self.select.args.get("group")
        keys: list[Key] = []
        if group is not None:
            only(group, "expressions")
            keys = [self._key(node) for node in group.expressions]
        named = {key.name for key in keys}
        for name in self.keys_shown:
            if name not in named:
                raise refusal(
                    self.shown_at[name],
                    f"'{name}' is in the SELECT, but it is not an aggregate and not in the GROUP BY",
                    f"GROUP BY {name}, or leave it out",
                )
        return tuple(keys)

    def _key(self, node: exp.Expr) -> Key:
        if isinstance(node, exp.Literal) and not node.args.get("is_string"):
            name = self._by_position(node)
            if name not in self.keys_shown:
                raise refusal(
                    node, f"column {node.this} of the SELECT is an aggregate", "group by a column or its name"
                )
            return Key(name, self.keys_shown[name])
        if isinstance(node, exp.Column) and "table" not in node.args:
            alias = match(node.this, self.keys_shown) if isinstance(node.this, exp.Identifier) else None
            if alias is not None and match(node.this, self.declaration.columns) is None:
                return Key(alias, self.keys_shown[alias])
        expression = self._row(node)
        for name, shown in self.keys_shown.items():
            if shown == expression:
                return Key(name, expression)
        if isinstance(expression, Column):
            return Key(expression.name, expression)
        raise refusal(node, "a key that is an expression needs a name", "put it in the SELECT with AS and a name")

    def _after(self) -> PostProcessing:
        having, order, limit = (self.select.args.get(name) for name in ("having", "order", "limit"))
        reader = Reader(self._answer_column, self._answer_aggregate)
        orderings: list[Ordering] = []
        if order is not None:
            only(order, "expressions")
            orderings = [self._ordering(node) for node in order.expressions]
        return PostProcessing(
            having=None if having is None else read_node(reader, having.this),
            order=tuple(orderings),
            limit=None if limit is None else self._limit(limit),
        )

    def _answer_names(self) -> list[str]:
        group = self.select.args.get("group")
        hidden = [key.name for key in self._keys()] if group is not None else []
        return [*dict.fromkeys([*self.columns, *hidden])]

    def _answer_column(self, node: exp.Column) -> Expression:
        only(node, "this", "table")
        name = match(node.this, self._answer_names())
        if name is not None:
            return Column(name)
        names = ", ".join(self._answer_names())
        raise refusal(
            node, f"'{node.this.this}' is not a column of the answer", f"it has {names}; filter rows in WHERE"
        )

    def _answer_aggregate(self, node: exp.Expr) -> Expression:
        wanted = self._aggregate(node)
        for output in self.outputs:
            if output.aggregate == wanted:
                return Column(output.name)
        raise refusal(node, "this aggregate is not in the SELECT", "add it there, with AS and a name, and use the name")

    def _ordering(self, node: exp.Expr) -> Ordering:
        if node.args.get("nulls_first"):
            raise refusal(node, "NULLS FIRST is not in the language", "NULL comes last; leave it out")
        only(node, "this", "desc")
        wanted, descending = node.this, bool(node.args.get("desc"))
        if isinstance(wanted, exp.Literal) and not wanted.args.get("is_string"):
            return Ordering(self._by_position(wanted), descending)
        if isinstance(wanted, exp.Column):
            column = self._answer_column(wanted)
        elif isinstance(wanted, AGGREGATES):
            column = self._answer_aggregate(wanted)
        else:
            raise refusal(wanted, "ORDER BY takes columns of the answer", "give it a name with AS, and use the name")
        return Ordering(column.name if isinstance(column, Column) else "", descending)

    def _limit(self, node: exp.Expr) -> int:
        only(node, "expression")
        wanted = node.args.get("expression")
        if isinstance(wanted, exp.Literal) and not wanted.args.get("is_string") and str(wanted.this).isdigit():
            return min(int(str(wanted.this)[:18]), 10**18)  # no answer has that many rows
        raise refusal(node, "LIMIT takes a whole number", "LIMIT 10")

    def _by_position(self, node: exp.Expr) -> str:
        position = int(str(node.this)) if str(node.this).isdigit() and len(str(node.this)) < 6 else 0
        if not 1 <= position <= len(self.columns):
            raise refusal(node, f"the SELECT has no column {str(node.this)[:20]}", "count from 1, or use a name")
        return self.columns[position - 1]


def _default_name(aggregate: Aggregate) -> str:
    if isinstance(aggregate.expression, Column):
        return aggregate.expression.name
    return aggregate.kind
