"""Functions and intervals as sqlglot reads them, turned into calls of the catalogue.

Like the reader of expressions, each names the parts its node may have; what people write that is close to a function
of ours, but means something else, is refused with ours.

Row expressions as sqlglot reads them, turned into our own nodes: a whitelist, everything else refused.

Each node type has one entry that names the parts it may have; a node with any other part is refused, so what a new
sqlglot version adds is refused too.

Names as SQL finds them: as written, or whatever their case where they are not quoted and only one fits.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from sqlglot import exp

from tacit.errors import did_you_mean
from tacit.query.functions import STEPS
from tacit.query.kind import value_of
from tacit.query.literal import read_date, read_number, read_timestamp
from tacit.query.nodes import Call, Column, Expression, Value
from tacit.query.refusals import AGGREGATES, at, instead, name_of, only, refusal
from tacit.tables.schema import Declaration

Read = Callable[[exp.Expr], Expression]

_NAMED_DIFFERENCE = ("DATE_DIFF", "DATEDIFF")
# names that sqlglot would read in another dialect's order of arguments; as plain names their arguments stay as written
PLAIN_NAMES = _NAMED_DIFFERENCE
_PARTS: dict[type[exp.Expr], str] = {
    exp.Year: "year",
    exp.Quarter: "quarter",
    exp.Month: "month",
    exp.Week: "week",
    exp.Day: "day",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Second: "second",
}


def _listed(name: str) -> Callable[[Read, exp.Expr], Expression]:
    def read_call(read: Read, node: exp.Expr) -> Expression:
        only(node, "this", "expressions", "ignore_nulls")
        return Call(name, (read(node.this), *(read(each) for each in node.expressions)))

    return read_call


def _parted(name: str, *parts: str) -> Callable[[Read, exp.Expr], Expression]:
    """A call whose arguments are these parts of its node, in order; the last ones may be absent."""

    def read_call(read: Read, node: exp.Expr) -> Expression:
        only(node, *parts)
        given = [node.args.get(part) for part in parts]
        return Call(name, tuple(read(part) for part in given if isinstance(part, exp.Expr)))

    return read_call


def _concat(read: Read, node: exp.Expr) -> Expression:
    only(node, "expressions", "safe")
    return Call("concat", tuple(read(each) for each in node.expressions))


def _pipes(read: Read, node: exp.Expr) -> Expression:
    """a || b || c is read in a loop, since sqlglot nests it to the left."""
    parts, left = [], node
    while isinstance(left, exp.DPipe):
        only(left, "this", "expression", "safe")
        parts.append(left.expression)
        left = left.this
    return Call("concat", tuple(read(part) for part in (left, *reversed(parts))))


def _extract(read: Read, node: exp.Expr) -> Expression:
    only(node, "this", "expression")
    return Call("extract", (_word(node.this), read(node.expression)))


def _part(read: Read, node: exp.Expr) -> Expression:
    only(node, "this")
    return Call("extract", (value_of(_PARTS[type(node)]), read(node.this)))


def _truncated(read: Read, node: exp.Expr) -> Expression:
    only(node, "unit", "this", "input_type_preserved")
    return Call("date_trunc", (_word(node.args.get("unit")), read(node.this)))


def _by_name(read: Read, node: exp.Expr) -> Expression:
    name = str(node.this).upper()
    if name not in _NAMED_DIFFERENCE:
        raise refusal(node, f"{name_of(node)} is not in the language", instead(node))
    only(node, "this", "expressions")
    unit, *times = node.expressions or [None]
    if not isinstance(unit, exp.Literal) or len(times) != 2:
        raise refusal(node, "DATE_DIFF takes a unit and two times", "DATE_DIFF('day', a, b)")
    return Call("date_diff", (_word(unit), *(read(time) for time in times)))


def moved(read: Read, node: exp.Expr) -> Expression | None:
    """Return a sum or difference with an interval in it as a moved time; None where there is none."""
    left, right = node.this, node.expression
    if isinstance(left, exp.Interval) and isinstance(node, exp.Add):
        left, right = right, left
    if not isinstance(right, exp.Interval):
        return None
    only(node, "this", "expression")
    number, unit = _interval(right)
    return Call("add_interval", (read(left), value_of(-number if isinstance(node, exp.Sub) else number), unit))


def _interval(node: exp.Expr) -> tuple[int, Value]:
    only(node, "this", "unit")
    unit, written = _word(node.args.get("unit")), node.this
    while isinstance(written, exp.Paren):
        written = written.this
    digits = str(written.this) if isinstance(written, exp.Literal) else ""
    unsigned = digits.removeprefix("-")
    name = str(unit.value).removesuffix("s")
    if name not in STEPS or not (unsigned.isascii() and unsigned.isdigit()) or len(unsigned) > 12:
        raise refusal(
            node, "an interval is a whole constant and one unit", f"INTERVAL 3 DAY; the units are {', '.join(STEPS)}"
        )
    return int(digits), value_of(name)


def _word(node: object) -> Value:
    """A unit or part, written as a word or in quotes, in any case; what is neither becomes a word that none is."""
    known = isinstance(node, exp.Var | exp.Literal)
    return value_of(str(node.this).lower()[:40] if isinstance(node, exp.Expr) and known else "")


CALLS: dict[type[exp.Expr], Callable[[Read, exp.Expr], Expression]] = {
    exp.Least: _listed("least"),
    exp.Greatest: _listed("greatest"),
    exp.Abs: _parted("abs", "this"),
    exp.Round: _parted("round", "this", "decimals"),
    exp.Floor: _parted("floor", "this"),
    exp.Ceil: _parted("ceil", "this"),
    exp.Length: _parted("length", "this"),
    exp.Substring: _parted("substring", "this", "start", "length"),
    exp.Replace: _parted("replace", "this", "expression", "replacement"),
    exp.Concat: _concat,
    exp.DPipe: _pipes,
    exp.Extract: _extract,
    exp.DateTrunc: _truncated,
    exp.Anonymous: _by_name,
    **dict.fromkeys(_PARTS, _part),
}


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


UNIT_REASON = "is the unit, and a question about it would single someone out"
UNIT_HINT = "count units with COUNT(DISTINCT {unit}), in Python count_units(); group and filter by other columns"


def match(identifier: exp.Expr, names: Iterable[str]) -> str | None:
    """Return the name an identifier stands for, or None."""
    written = str(identifier.this)
    known = list(names)
    if written in known:
        return written
    if identifier.args.get("quoted"):
        return None
    folded = [name for name in known if name.lower() == written.lower()]
    return folded[0] if len(folded) == 1 else None


def table_column(
    node: exp.Column, declaration: Declaration, table_names: frozenset[str], derived: Iterable[str] = ()
) -> str:
    """Return the declared column a node names, the unit included."""
    qualifier = node.args.get("table")
    if qualifier is not None and match(qualifier, table_names) is None:
        raise refusal(node, f"there is no table '{qualifier.this}' here", f"the table is '{declaration.name}'")
    found = match(node.this, declaration.columns)
    if found is None:
        written = str(node.this.this)
        hint = did_you_mean(written, [*declaration.columns, *derived]).removeprefix("\nhint: ")
        if not hint.startswith("did you mean"):  # "A" and A are names in SQL, and meant as text by many
            text = "text goes in single quotes"
            hint = f"{text}; {hint}" if node.this.args.get("quoted") else f"{hint}; {text}"
        raise refusal(node, f"there is no column '{written}' in '{declaration.name}'", hint)
    return found


def column_resolver(
    declaration: Declaration, table_names: frozenset[str], derived: Mapping[str, Expression] = MappingProxyType({})
) -> Resolve:
    """Return how row expressions find columns: derived names, then declared ones, and never the unit."""

    def resolve(node: exp.Column) -> Expression:
        if node.args.get("table") is None and (name := match(node.this, derived)) is not None:
            return derived[name]
        name = table_column(node, declaration, table_names, derived)
        if name == declaration.unit:
            raise refusal(node, f"'{name}' {UNIT_REASON}", UNIT_HINT.format(unit=name))
        return Column(name)

    return resolve
