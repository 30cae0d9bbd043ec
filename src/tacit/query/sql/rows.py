"""The meaning of a name in FROM for the SELECT around it, or for an expression of the Python door."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from tacit.errors import QueryRefused, did_you_mean
from tacit.query.joins import Side, is_public
from tacit.query.nodes import Call, Column, Expression, Relation, TableRows
from tacit.query.sql.expressions import UNIT_HINT, UNIT_REASON, Reader, match
from tacit.query.sql.parse import parsed, read_node, tokens_of
from tacit.query.sql.refusals import only, refusal
from tacit.query.typecheck import canonical, column_kinds, kind_of
from tacit.tables import Declaration

SUBQUERY = "the subquery"


@dataclass(frozen=True)
class RowReader:
    """Rows to ask about, as the SELECT around them sees them.

    `columns` maps names to expressions of the relation's columns, `tables` the same by the names that may qualify them.
    """

    relation: Relation
    declaration: Declaration  # of the relation
    columns: Mapping[str, Expression]
    tables: Mapping[str, Mapping[str, Expression]]
    where: Expression | None = None
    title: str = SUBQUERY  # their name in errors
    steps: int = 0  # the work that a row takes before these are there (`typecheck.py`)
    most: int = 1  # of a public table: how many of its rows one row may match
    # the column of each IN or EXISTS, by its node's id; columns of the relation that are TRUE if a LEFT JOIN has a
    # match and NULL otherwise: all that is left of the right side's unit
    marks: Mapping[int, Expression] = field(default_factory=dict)
    matched: frozenset[str] = frozenset()

    @property
    def unit(self) -> str | None:
        """The relation's unit column; None if every row is a unit."""
        return self.declaration.unit if isinstance(self.declaration.unit, str) else None

    @property
    def unit_name(self) -> str | None:
        """The name by which the unit can be selected or grouped by, if it has one here."""
        for name, expression in self.columns.items():
            if self.is_unit(expression):
                return name
        return None

    def is_unit(self, expression: Expression) -> bool:
        return self.unit is not None and expression == Column(self.unit)

    def named(self, node: exp.Column) -> Expression:
        """Return what a column's name stands for, the unit included."""
        expression = self._found(node)[1]
        is_tested = isinstance(node.parent, exp.Is) and isinstance(node.parent.expression, exp.Null)
        if self.is_match(expression) and not (is_tested or isinstance(node.parent, exp.Count | exp.Distinct)):
            raise refusal(
                node,
                f"'{node.sql()}' is the unit on the right of a LEFT JOIN: it only shows whether there is a match",
                f"{node.sql()} IS NULL, COUNT({node.sql()}); the left table's unit is every row's",
            )
        return expression

    def is_match(self, expression: Expression) -> bool:
        """Return whether an expression is the unit on the right of a LEFT JOIN, of which only NULL or not is known."""
        return isinstance(expression, Column) and expression.name in self.matched

    def spelled(self, node: exp.Column) -> str:
        """Return a column's name as it is defined, which may be in other case than it is written."""
        return self._found(node)[0]

    def _found(self, node: exp.Column) -> tuple[str, Expression]:
        only(node, "this", "table")
        qualifier = node.args.get("table")
        columns, name = self.columns, None
        if qualifier is not None:
            name = match(qualifier, self.tables)
            if name is None:
                known = " or ".join(f"'{each}'" for each in self.tables) or "not named"
                raise refusal(node, f"there is no table '{qualifier.this}' here", f"the table is {known}")
            columns = self.tables[name]
        column = match(node.this, columns)
        if column is None:
            shared = [table for table, own in self.tables.items() if match(node.this, own) is not None]
            if qualifier is None and len(shared) > 1:
                ways = " or ".join(f"{table}.{node.this.this}" for table in shared)
                raise refusal(node, f"'{node.this.this}' is a column of more than one table", f"write {ways}")
            raise refusal(node, *_no_column(node.this, columns, self.title if qualifier is None else f"'{name}'"))
        return column, columns[column]

    def resolve(self, node: exp.Column) -> Expression:
        """Return the meaning of a column's name in an expression that may not use the unit."""
        expression = self.named(node)
        if self.is_unit(expression):
            raise refusal(node, f"'{node.this.this}' {UNIT_REASON}", UNIT_HINT.format(unit=node.this.this))
        return expression

    def row(self, node: exp.Expr) -> Expression:
        tree = read_node(Reader(self.resolve, marks=self.marks), node)
        return canonical(tree, column_kinds(self.declaration))

    def condition(self, node: exp.Expr) -> Expression:
        """Return a node as a condition on the rows."""
        condition = self.row(node)
        if kind_of(condition, column_kinds(self.declaration)).type != "bool":
            raise refusal(node, "a filter must be true or false", "compare it, e.g. x > 0")
        return condition

    def value(self, node: exp.Expr) -> Expression:
        """Return a node as one side of an equality, which may be the unit itself."""
        while isinstance(node, exp.Paren):
            node = node.this
        return self.named(node) if isinstance(node, exp.Column) else self.row(node)

    def sees(self, node: exp.Expr) -> bool:
        """Return whether a node names columns, and all of them are these rows'."""
        named = list(node.find_all(exp.Column))
        return bool(named) and all(self._sees(each) for each in named)

    def _sees(self, node: exp.Column) -> bool:
        qualifier = node.args.get("table")
        if qualifier is None:
            return match(node.this, self.columns) is not None
        name = match(qualifier, self.tables)
        return name is not None and match(node.this, self.tables[name]) is not None

    @property
    def side(self) -> Side:
        """The rows as one side of a join, without their filter."""
        return Side(self.relation, self.declaration, self.steps)

    @property
    def is_public(self) -> bool:
        return is_public(self.relation)

    def renamed(self) -> tuple[tuple[str, str], ...]:
        """Return the names here of the relation's columns that have another there."""
        named = ((name, each.name) for name, each in self.columns.items() if isinstance(each, Column))
        return tuple((name, column) for name, column in named if name != column)

    def filtered(self, condition: Expression | None) -> "RowReader":
        return replace(self, where=both(self.where, condition, self.declaration))


def both(one: Expression | None, other: Expression | None, declaration: Declaration) -> Expression | None:
    """Return the condition that holds where both do; None always holds."""
    if one is None or other is None:
        return other if one is None else one
    return canonical(Call("and", (one, other)), column_kinds(declaration))


def table_rows(declaration: Declaration, relation: Relation | None = None, most: int = 1) -> RowReader:
    """Return the rows of a declared table, or of a public one."""
    columns = {name: Column(name) for name in declaration.columns}
    name = declaration.name
    return RowReader(relation or TableRows(name), declaration, columns, {name: columns}, title=f"'{name}'", most=most)


Env = Mapping[str, RowReader]  # the rows that a name in FROM stands for


def _no_column(identifier: exp.Expr, columns: Mapping[str, Expression], title: str) -> tuple[str, str]:
    written = str(identifier.this)
    hint = did_you_mean(written, columns).removeprefix("\nhint: ")
    if not hint.startswith("did you mean"):  # in SQL "A" and A are names; many people mean the text 'A'
        text = "text goes in single quotes"
        hint = f"{text}; {hint}" if identifier.args.get("quoted") else f"{hint}; {text}"
    return f"there is no column '{written}' in {title}", hint


def parse_expression(
    text: str,
    declaration: Declaration,
    *,
    derived: Mapping[str, Expression] | None = None,
    tables: Mapping[str, Mapping[str, str]] | None = None,
) -> Expression:
    """Return a row expression about a declared table, such as the condition of a WHERE.

    A name in `derived` stands for its expression; `tables` has the columns of joined tables, by their names there.
    """
    if not isinstance(text, str):
        raise QueryRefused(f'an expression must be text, not {type(text).__name__}\nhint: e.g. "age >= 18"')
    tokens = tokens_of(text)
    if not tokens or tokens[-1].token_type == TokenType.SEMICOLON:
        raise QueryRefused('this is not one expression\nhint: e.g. "age >= 18", without a semicolon')
    rows = table_rows(declaration)
    named = {table: {own: Column(name) for own, name in columns.items()} for table, columns in (tables or {}).items()}
    rows = replace(rows, columns={**rows.columns, **(derived or {})}, tables=named or rows.tables)
    return rows.row(parsed(text, exp.Condition))
