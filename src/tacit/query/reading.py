"""Row expressions as sqlglot reads them, turned into our own nodes: a whitelist, everything else refused.

Each node type has one entry that names the parts it may have; a node with any other part is refused, so what a new
sqlglot version adds is refused too.
"""

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from tacit.query.aggregates import AGGREGATES
from tacit.query.calls import CALLS, moved
from tacit.query.kind import value_of
from tacit.query.literal import read_date, read_number, read_timestamp
from tacit.query.nodes import Call, Expression, Value
from tacit.query.refusing import at, instead, name_of, only, refusal

__all__ = ["Reader", "Resolve", "only", "refusal"]

Resolve = Callable[[exp.Column], Expression]

_BINARY: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.And: "and",
    exp.Or: "or",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.Nullif: "nullif",
}
_UNARY: dict[type[exp.Expr], str] = {
    exp.Not: "not",
    exp.Neg: "negate",
    exp.Lower: "lower",
    exp.Upper: "upper",
    exp.Trim: "trim",
}
_CASTS: dict[object, str] = {
    exp.DataType.Type.BOOLEAN: "cast_bool",
    exp.DataType.Type.INT: "cast_int",
    exp.DataType.Type.BIGINT: "cast_int",
    exp.DataType.Type.FLOAT: "cast_float",
    exp.DataType.Type.DOUBLE: "cast_float",
    exp.DataType.Type.DECIMAL: "cast_decimal",
    exp.DataType.Type.TEXT: "cast_text",
    exp.DataType.Type.VARCHAR: "cast_text",
    exp.DataType.Type.DATE: "cast_date",
    exp.DataType.Type.TIMESTAMP: "cast_timestamp",
}


@dataclass(frozen=True)
class Reader:
    """Turns sqlglot's nodes into ours; `resolve` says what a column stands for, `aggregate` what an aggregate does."""

    resolve: Resolve
    aggregate: Callable[[exp.Expr], Expression] | None = None

    def read(self, node: exp.Expr) -> Expression:
        """Return a row expression, or refuse what is not in the catalogue."""
        kind = type(node)
        if not isinstance(node, exp.Expr):
            raise refusal(None, "an argument is missing", "give each function what it is about, e.g. LENGTH(x)")
        if kind in AGGREGATES and self.aggregate is not None:
            return self.aggregate(node)
        if kind in (exp.Add, exp.Sub) and (time := moved(self.read, node)) is not None:
            return time
        if kind in _BINARY:
            return self._binary(node)
        if kind in CALLS:
            return _with_arguments(CALLS[kind](self.read, node), node)
        if kind in _UNARY:
            only(node, "this")
            return Call(_UNARY[kind], (self.read(node.this),))
        special = _SPECIAL.get(kind)
        if special is None:
            raise refusal(node, f"{name_of(node)} is not in the language", instead(node))
        return special(self, node)

    def _binary(self, node: exp.Expr) -> Expression:
        """Chains such as a AND b AND c are read in a loop, since sqlglot nests them to the left."""
        name, parts, left = _BINARY[type(node)], [], node
        while type(left) is type(node):
            only(left, "this", "expression")
            parts.append(left.expression)
            left = left.this
            if name not in ("and", "or"):
                break
        parts.append(left)
        return Call(name, tuple(self.read(part) for part in reversed(parts)))

    def column(self, node: exp.Expr) -> Expression:
        """Read a column's name."""
        only(node, "this", "table")
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            raise refusal(node, "a column's name is expected here", "name columns one by one")
        return self.resolve(node)

    def paren(self, node: exp.Expr) -> Expression:
        """Read what is in brackets."""
        only(node, "this")
        return self.read(node.this)

    def literal(self, node: exp.Expr) -> Expression:
        """Read a number or a text."""
        only(node, "this", "is_string")
        return value_of(str(node.this)) if node.args.get("is_string") else at(node, lambda: read_number(node.this))

    def boolean(self, node: exp.Expr) -> Expression:
        """Read TRUE or FALSE."""
        only(node, "this")
        return value_of(bool(node.this))

    def null(self, node: exp.Expr) -> Expression:
        """Read NULL."""
        only(node)
        return Value(None, "null")

    def between(self, node: exp.Expr) -> Expression:
        """Read a BETWEEN b AND c as a >= b AND a <= c."""
        only(node, "this", "low", "high")
        tested = self.read(node.this)
        low, high = self.read(node.args["low"]), self.read(node.args["high"])
        return Call("and", (Call(">=", (tested, low)), Call("<=", (tested, high))))

    def membership(self, node: exp.Expr) -> Expression:
        """Read a IN (constants)."""
        only(node, "this", "expressions")
        return Call("in", (self.read(node.this), *(self.read(each) for each in node.expressions)))

    def is_null(self, node: exp.Expr) -> Expression:
        """Read a IS NULL."""
        only(node, "this", "expression")
        if not isinstance(node.expression, exp.Null):
            raise refusal(node, "IS takes only NULL", "write x = TRUE, or x IS NULL")
        return Call("is_null", (self.read(node.this),))

    def like(self, node: exp.Expr, escape: exp.Expr | None = None) -> Expression:
        """Read a LIKE pattern, or a NOT LIKE pattern, which sqlglot keeps as a mark on the node."""
        only(node, "this", "expression", "negate")
        parts = (node.this, node.expression) if escape is None else (node.this, node.expression, escape)
        matches = Call("like", tuple(self.read(part) for part in parts))
        return Call("not", (matches,)) if node.args.get("negate") else matches

    def escaped(self, node: exp.Expr) -> Expression:
        """Read a LIKE pattern ESCAPE character."""
        only(node, "this", "expression")
        if not isinstance(node.this, exp.Like):
            raise refusal(node, "ESCAPE belongs to LIKE", "x LIKE '50!%' ESCAPE '!'")
        return self.like(node.this, node.expression)

    def case(self, node: exp.Expr) -> Expression:
        """Read CASE, with or without a tested value."""
        only(node, "this", "ifs", "default")
        tested = None if node.this is None else self.read(node.this)
        parts: list[Expression] = []
        for branch in node.args["ifs"]:
            only(branch, "this", "true")
            condition = self.read(branch.this)
            parts += [condition if tested is None else Call("=", (tested, condition)), self.read(branch.args["true"])]
        default = node.args.get("default")
        return Call("case", (*parts, Value(None, "null") if default is None else self.read(default)))

    def coalesce(self, node: exp.Expr) -> Expression:
        """Read COALESCE(a, b, ...)."""
        only(node, "this", "expressions", "is_nvl", "is_null")
        return Call("coalesce", (self.read(node.this), *(self.read(each) for each in node.expressions)))

    def cast(self, node: exp.Expr) -> Expression:
        """Read CAST(a AS t), always a try-cast; DATE '2011-01-31' is one too, and becomes a constant."""
        only(node, "this", "to", "safe", "requires_string", "_type")
        target = node.args["to"]
        sizes = _sizes(target)
        name = _CASTS.get(target.this) if isinstance(target, exp.DataType) else None
        if name is None or len(sizes) != (2 if name == "cast_decimal" else 0):
            kinds = "BOOL, INT, FLOAT, DECIMAL(digits, scale), TEXT, DATE, TIMESTAMP"
            raise refusal(node, "this type is not one to cast to", f"the types are {kinds}")
        inner = self.read(node.this)
        if isinstance(inner, Value) and isinstance(inner.value, str):
            text = inner.value
            if name == "cast_date":
                return at(node, lambda: value_of(read_date(text)))
            if name == "cast_timestamp":
                return at(node, lambda: value_of(read_timestamp(text)))
        return Call(name, (inner, *sizes))


_SPECIAL: dict[type[exp.Expr], Callable[[Reader, exp.Expr], Expression]] = {
    exp.Column: Reader.column,
    exp.Paren: Reader.paren,
    exp.Literal: Reader.literal,
    exp.Boolean: Reader.boolean,
    exp.Null: Reader.null,
    exp.Between: Reader.between,
    exp.In: Reader.membership,
    exp.Is: Reader.is_null,
    exp.Like: Reader.like,
    exp.Escape: Reader.escaped,
    exp.Case: Reader.case,
    exp.Coalesce: Reader.coalesce,
    exp.Cast: Reader.cast,
    exp.TryCast: Reader.cast,
}


def _with_arguments(made: Expression, node: exp.Expr) -> Expression:
    if isinstance(made, Call) and not made.arguments:
        raise refusal(node, f"{name_of(node)} has no argument", "give each function what it is about, e.g. LENGTH(x)")
    return made


def _sizes(target: exp.Expr) -> tuple[Value, ...]:
    sizes = []
    for parameter in target.expressions:
        written = parameter.this if isinstance(parameter, exp.DataTypeParam) else None
        if not isinstance(written, exp.Literal) or written.args.get("is_string") or not str(written.this).isdigit():
            raise refusal(target, "this type is not one to cast to", "e.g. DECIMAL(12, 2)")
        sizes.append(read_number(str(written.this)))
    return tuple(sizes)
