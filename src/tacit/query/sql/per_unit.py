"""Reads a subquery that groups by the unit: each unit's rows are aggregated first, and become a relation."""

from dataclasses import dataclass, field, replace

from sqlglot import exp

from tacit.query.check import check_units
from tacit.query.nodes import (
    Call,
    Column,
    Expression,
    Key,
    PerUnit,
    UnitAggregate,
    UnitAggregateKind,
    Value,
    columns_of,
    with_parts,
)
from tacit.query.relations import (
    expressions_of,
    is_constant,
    unit_aggregate_kind,
    unit_declaration,
    unit_keys,
    unit_outputs,
)
from tacit.query.sql.expressions import Reader, match
from tacit.query.sql.from_clause import name_of_column, refuse_twice, starred, unaliased
from tacit.query.sql.parse import read_node
from tacit.query.sql.refusals import at, index_of, is_index, located, only, refusal
from tacit.query.sql.rows import SUBQUERY, RowReader
from tacit.query.typecheck import canonical, column_kinds, kind_of, limit_expression, steps

_KINDS: dict[type[exp.Expr], UnitAggregateKind] = {
    exp.Count: "count",
    exp.CountIf: "count",
    exp.Sum: "sum",
    exp.Avg: "mean",
    exp.Min: "min",
    exp.Max: "max",
    exp.LogicalAnd: "all",
    exp.LogicalOr: "any",
}
_THESE = (
    "over one unit's rows there are COUNT(*), COUNT(x), COUNT(DISTINCT x), COUNT_IF(c), SUM(x), AVG(x), MIN(x), MAX(x),"
    " BOOL_AND(c) and BOOL_OR(c)"
)
# No column is called so: it stands for an aggregate until the relation has one.
_MARK = "\0"


def aggregated(select: exp.Select, rows: RowReader) -> RowReader:
    return _UnitSelect(select, rows).result()


@dataclass
class _UnitSelect:
    """A SELECT that aggregates each unit's rows."""

    select: exp.Select
    rows: RowReader
    shown: dict[str, Expression] = field(default_factory=dict)  # of the source's columns; aggregates stand as marks
    shown_at: dict[str, exp.Expr] = field(default_factory=dict)
    asked: list[UnitAggregate] = field(default_factory=list)

    def result(self) -> RowReader:
        """Return the relation's rows, with the columns that are selected."""
        for node in self.select.expressions:
            self._show(node)
        having = self.select.args.get("having")
        condition = None if having is None else self._marked(having.this)
        keys = self._keys()
        outputs = unit_outputs(self.asked, [self.rows.unit or "", *(key.name for key in keys)])
        inner = self.rows.declaration
        relation = at(
            self.select, lambda: check_units(PerUnit(self.rows.relation, self.rows.where, keys, outputs), inner)
        )
        declaration = unit_declaration(relation, inner)
        work = self.rows.steps + steps(expressions_of(relation), column_kinds(inner))
        found = RowReader(relation, declaration, {}, {}, title=SUBQUERY, steps=work)
        columns = {name: self._of_result(each, self.shown_at[name], found) for name, each in self.shown.items()}
        found = replace(found, columns=columns)
        if condition is None or having is None:
            return found
        kept = self._of_result(condition, having.this, found)
        if kind_of(kept, column_kinds(declaration)).type != "bool":
            raise refusal(having.this, "HAVING is not a condition (true or false)", "compare it, e.g. COUNT(*) > 1")
        return found.filtered(kept)

    def _show(self, node: exp.Expr) -> None:
        star = starred(node, self.rows)
        if star is not None:
            named = dict(star)
        else:
            alias, inner = unaliased(node)
            if isinstance(inner, exp.Column):
                named = {alias or name_of_column(inner, self.rows): self.rows.named(inner)}
            else:
                named = {alias or name_of_column(inner, self.rows): self._marked(inner)}
        for name, expression in named.items():
            refuse_twice(node, [*self.shown, name])
            self.shown[name], self.shown_at[name] = expression, node

    def _marked(self, node: exp.Expr) -> Expression:
        """Return an expression of the source's columns, with a mark for each aggregate."""
        reader = Reader(self.rows.resolve, self._mark, (exp.AggFunc, exp.Filter), self.rows.marks)
        return read_node(reader, node)

    def _mark(self, node: exp.Expr) -> Expression:
        aggregate = self._aggregate(node)
        if aggregate not in self.asked:
            self.asked.append(aggregate)
        return Column(f"{_MARK}{self.asked.index(aggregate)}")

    def _aggregate(self, node: exp.Expr) -> UnitAggregate:
        condition = None
        if isinstance(node, exp.Filter):
            only(node, "this", "expression")
            condition, node = self.rows.row(node.expression.this), node.this
        kind = _KINDS.get(type(node))
        if kind is None:
            raise refusal(node, f"{_aggregate_word(node)} over one unit's rows is not in the language", _instead(node))
        inner = None if isinstance(node.this, exp.Star) and kind == "count" else self._inside(node)
        if isinstance(node.this, exp.Distinct):
            kind = "count_distinct"
        if isinstance(node, exp.CountIf) and inner is not None:
            condition, inner = inner if condition is None else Call("and", (inner, condition)), None
        if kind == "count" and is_constant(inner):
            inner = None
        if condition is not None:
            kept = Value(1, "int") if inner is None else inner
            inner = Call("case", (condition, kept, Value(None, "null")))
        return at(node, lambda: self._checked(UnitAggregate(kind, inner)))

    def _inside(self, node: exp.Expr) -> Expression:
        only(node, "this", "big_int")
        inside = node.this
        if isinstance(node, exp.Count) and isinstance(inside, exp.Distinct):
            only(inside, "expressions")
            if len(inside.expressions) != 1:
                raise refusal(node, "COUNT(DISTINCT ...) takes one expression", "join columns with CONCAT")
            inside = inside.expressions[0]
        if not isinstance(inside, exp.Expr):
            raise refusal(node, "an aggregate needs an argument", "COUNT(*), SUM(x) or AVG(x)")
        return self.rows.row(inside)

    def _checked(self, aggregate: UnitAggregate) -> UnitAggregate:
        kinds = column_kinds(self.rows.declaration)
        if aggregate.expression is not None:
            limit_expression(aggregate.expression)
            aggregate = replace(aggregate, expression=canonical(aggregate.expression, kinds))
        unit_aggregate_kind(aggregate, kinds)
        return aggregate

    def _keys(self) -> tuple[Key, ...]:
        """Return the keys beside the unit, which must be among those that are grouped by."""
        group, distinct = self.select.args.get("group"), self.select.args.get("distinct")
        plain = [expression for expression in self.shown.values() if not _has_mark(expression)]
        if distinct is not None:
            only(distinct)
            if group is not None or self.asked:
                raise refusal(self.select, "DISTINCT beside GROUP BY is not in the language", "leave out DISTINCT")
            grouped = plain
        elif group is None:
            grouped = []
        elif group.args.get("all"):
            only(group, "all")
            grouped = plain
        else:
            only(group, "expressions")
            grouped = [self._key(node) for node in group.expressions]
        if not any(self.rows.is_unit(each) for each in grouped):
            raise self._mixes(group, distinct)
        kinds = column_kinds(self.rows.declaration)
        return unit_keys([canonical(each, kinds) for each in grouped if not self.rows.is_unit(each)], self.rows.unit)

    def _key(self, node: exp.Expr) -> Expression:
        if is_index(node):
            return self._no_aggregate(list(self.shown.values())[index_of(node, len(self.shown))], node)
        if isinstance(node, exp.Column):
            if "table" not in node.args and match(node.this, self.rows.columns) is None:
                alias = match(node.this, self.shown)
                if alias is not None:
                    return self._no_aggregate(self.shown[alias], node)
            return self.rows.named(node)
        return self.rows.row(node)

    def _no_aggregate(self, expression: Expression, node: exp.Expr) -> Expression:
        if _has_mark(expression):
            raise refusal(node, "a column of the SELECT that is an aggregate cannot be grouped by", "group by others")
        return expression

    def _mixes(self, group: exp.Expr | None, distinct: exp.Expr | None) -> Exception:
        node = self.select if group is None else located(group, self.select)
        word = "GROUP BY" if group is not None else "DISTINCT" if distinct is not None else "an aggregate"
        unit = self.rows.unit_name
        if self.rows.unit is None:
            way = "every row is a unit here: ask it as a separate question"
        elif unit is None:
            way = f"select '{self.rows.unit}' further inside, and group by it too; or ask it as a separate question"
        else:
            way = (
                f"add {unit} to the GROUP BY: every {unit} is then aggregated separately; or ask it as a separate "
                "question"
            )
        return refusal(node, f"{word} without the unit inside a subquery would mix people before noise is added", way)

    def _of_result(self, expression: Expression, node: exp.Expr, found: RowReader) -> Expression:
        """Return an expression of the source's columns and marks as one of the relation's columns."""
        relation = found.relation
        if not isinstance(relation, PerUnit):
            raise TypeError("the result of grouping by the unit")
        kinds = column_kinds(self.rows.declaration)
        of_key = {key.expression: key.name for key in relation.keys}
        of_aggregate = {output.aggregate: output.name for output in relation.outputs}

        def over(each: Expression) -> Expression | None:
            if isinstance(each, Column) and each.name.startswith(_MARK):
                return Column(of_aggregate[self.asked[int(each.name[len(_MARK) :])]])
            if isinstance(each, Value) or self.rows.is_unit(each):
                return each
            if not _has_mark(each) and (name := of_key.get(canonical(each, kinds))) is not None:
                return Column(name)
            if isinstance(each, Column):
                raise refusal(
                    node,
                    f"'{each.name}' is in a SELECT that groups, but it is not an aggregate and not in the GROUP BY",
                    "add it to the GROUP BY, or aggregate it: MAX(x)",
                )
            return None

        if self.rows.is_unit(expression):
            return expression
        made = canonical(with_parts(expression, over), column_kinds(found.declaration))
        limit_expression(made)
        return made


def _aggregate_word(node: exp.Expr) -> str:
    """Return an aggregate's name as people write it."""
    return node.sql_name() if isinstance(node, exp.Func) else str(node.sql())


def _instead(node: exp.Expr) -> str:
    """Return the nearest thing that works, with the user's own column."""
    what = node.this.sql() if isinstance(node.this, exp.Column) else "x"
    if isinstance(node, exp.Mode):
        return f"put {what} in the inner GROUP BY and count its rows; or BOOL_OR({what} = 'a'). {_THESE}"
    if isinstance(node, exp.Median | exp.Quantile | exp.ApproxQuantile | exp.PercentileCont | exp.PercentileDisc):
        word = _aggregate_word(node)
        return f"AVG({what}), MIN({what}) or MAX({what}) there, or {word}({what}) outside, of all rows. {_THESE}"
    return _THESE


def _has_mark(expression: Expression) -> bool:
    return any(name.startswith(_MARK) for name in columns_of(expression))
