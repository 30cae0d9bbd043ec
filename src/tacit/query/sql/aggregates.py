"""Reads the aggregates of a SELECT: each node of sqlglot's becomes one `Aggregate` over rows."""

from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from tacit.privacy import decimal_meaning
from tacit.query.literal import fraction_meant
from tacit.query.nodes import Aggregate, Call, Column, Value
from tacit.query.sql.refusals import FRACTIONS, KINDS, PAIRS, only, refusal
from tacit.query.sql.rows import Rows


@dataclass(frozen=True)
class AggregateReader:
    """Reads aggregates over rows."""

    rows: Rows

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
    """The word an aggregate was asked with, in lower case."""
    return node.sql_name().lower() if isinstance(node, exp.Func) else "aggregate"
