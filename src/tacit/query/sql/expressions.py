"""Turns sqlglot's expression nodes into our own nodes; everything that is not listed here is refused.

A reader names the parts its node may have: any other part, perhaps of a new sqlglot version, is refused.

Writes expressions as SQL text, which is parsed to the same tree again; and default names of columns: avg_days for
AVG(days).
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction

from sqlglot import exp
from sqlglot.tokens import Tokenizer

from tacit.errors import QueryRefused
from tacit.query.language.catalogue import FUNCTIONS
from tacit.query.language.evaluation import to_text
from tacit.query.language.functions import Notation, Pen
from tacit.query.language.named_functions import STEPS
from tacit.query.literal import read_date, read_number, read_timestamp
from tacit.query.nodes import Aggregate, Call, Column, Expression, Query, Scalar, Value, scale_of, value_of
from tacit.query.sql.refusals import AGGREGATES, at, instead, name_of_node, only, refusal
from tacit.query.sql.shorthand import LONG_PARTS, NAMED, SHORT

Resolve = Callable[[exp.Column], Expression]

UNIT_REASON = "is the unit, and a question about it would single out one person"
UNIT_HINT = "count units with COUNT(DISTINCT {unit}), in Python count_units(); group and filter by other columns"


@dataclass(frozen=True)
class Reader:
    """Turns sqlglot's nodes into ours; `resolve` reads a column's name, the others their own nodes (None: refused).

    `marks` has the column of each IN or EXISTS with a SELECT inside, by its node's id.
    """

    resolve: Resolve
    aggregate: Callable[[exp.Expr], Expression] | None = None
    aggregates: tuple[type[exp.Expr], ...] = ()
    marks: Mapping[int, Expression] = field(default_factory=dict)
    window: Callable[[exp.Expr], Expression] | None = None

    def read(self, node: exp.Expr | None) -> Expression:
        """Return a row expression, or refuse what is not in the catalogue."""
        if not isinstance(node, exp.Expr):
            raise refusal(None, "an argument is missing", "give the function its arguments, e.g. LENGTH(x)")
        kind = type(node)
        if id(node) in self.marks:
            return self.marks[id(node)]
        if self.aggregate is not None and (kind in AGGREGATES or isinstance(node, self.aggregates)):
            return self.aggregate(node)
        if kind is exp.Window and self.window is not None:
            return self.window(node)
        if kind in _SYNTAX:
            return _SYNTAX[kind](self, node)
        if kind in SHORT:
            return SHORT[kind](self, node)
        if kind is exp.Anonymous and str(node.this).upper() in NAMED:
            return NAMED[str(node.this).upper()](self, node)
        name = _BY_NAME.get(str(node.this).upper()) if kind is exp.Anonymous else _BY_NODE.get(kind)
        if name is None:
            raise _unknown(node)
        call = SPELLINGS[name].read(self, node, name)
        if isinstance(call, Call) and not call.arguments:
            raise refusal(
                node, f"{name_of_node(node)} lacks its argument", "give the function its arguments, e.g. LENGTH(x)"
            )
        return call

    def column(self, node: exp.Expr) -> Expression:
        """Read a column's name."""
        only(node, "this", "table")
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            raise refusal(node, "a column name is expected here", "name the columns one by one")
        return self.resolve(node)

    def literal(self, node: exp.Expr) -> Expression:
        only(node, "this", "is_string")
        return value_of(str(node.this)) if node.args.get("is_string") else at(node, lambda: read_number(node.this))

    def plain(self, node: exp.Expr) -> Expression:
        """Read what is in brackets, TRUE, FALSE or NULL."""
        only(node, "this")
        if isinstance(node, exp.Paren):
            return self.read(node.this)
        return value_of(bool(node.this) if isinstance(node, exp.Boolean) else None)

    def between(self, node: exp.Expr) -> Expression:
        """Read a BETWEEN b AND c as a >= b AND a <= c."""
        only(node, "this", "low", "high")
        tested = self.read(node.this)
        low, high = self.read(node.args["low"]), self.read(node.args["high"])
        return Call("and", (Call(">=", (tested, low)), Call("<=", (tested, high))))

    def cast(self, node: exp.Expr) -> Expression:
        """Read CAST(a AS t), always a try-cast; DATE '2011-01-31' is one too, and becomes a constant."""
        only(node, "this", "to", "safe", "requires_string", "_type")
        target = node.args["to"]
        sizes = _sizes(target)
        name = _BY_TYPE.get(target.this) if isinstance(target, exp.DataType) else None
        if name == "cast_decimal":  # as DuckDB has it, where digits or decimals are left out
            sizes = sizes or (value_of(18), value_of(3))
            sizes = sizes if len(sizes) > 1 else (*sizes, value_of(0))
        if name is None or len(sizes) != (2 if name == "cast_decimal" else 0):
            kinds = "BOOL, INT, FLOAT, DECIMAL(digits, scale), TEXT, DATE, TIMESTAMP"
            raise refusal(node, "CAST does not know this type", f"the types are {kinds}")
        inner = self.read(node.this)
        if isinstance(inner, Value) and isinstance(inner.value, str):
            text = inner.value
            if name == "cast_date":
                return at(node, lambda: value_of(read_date(text)))
            if name == "cast_timestamp":
                return at(node, lambda: value_of(read_timestamp(text)))
        return Call(name, (inner, *sizes))


ReadCall = Callable[[Reader, exp.Expr, str], Expression]


def _unknown(node: exp.Expr) -> QueryRefused:
    return refusal(node, f"{name_of_node(node)} is not in the language", instead(node))


def _refused(_reader: Reader, node: exp.Expr, _name: str) -> Expression:
    raise _unknown(node)


@dataclass(frozen=True)
class Spelling:
    """How SQL writes a function: its nodes, the `types` that a cast is known by, and how such a node is read.

    `words` are function names with arguments that sqlglot would reorder; our parser does not know these names.
    """

    read: ReadCall = _refused
    nodes: tuple[type[exp.Expr], ...] = ()
    types: tuple[object, ...] = ()
    words: tuple[str, ...] = ()


def _parted(*parts: str) -> ReadCall:
    """Return the reader of a call with these parts of its node as arguments, in order; the last ones may be absent."""

    def read_call(reader: Reader, node: exp.Expr, name: str) -> Expression:
        only(node, *parts)
        given = [node.args.get(part) for part in parts]
        return Call(name, tuple(reader.read(part) for part in given if isinstance(part, exp.Expr)))

    return read_call


def _listed(*ignored: str) -> ReadCall:
    """Return the reader of a call of a first argument and a list of others; `ignored` parts mean nothing to us."""

    def read_call(reader: Reader, node: exp.Expr, name: str) -> Expression:
        only(node, "this", "expressions", *ignored)
        return Call(name, (reader.read(node.this), *(reader.read(each) for each in node.expressions)))

    return read_call


def _by_name(reader: Reader, node: exp.Expr, name: str) -> Expression:
    return Call(name, tuple(reader.read(each) for each in node.expressions))


def _binary(reader: Reader, node: exp.Expr, name: str) -> Expression:
    only(node, "this", "expression")
    return Call(name, (reader.read(node.this), reader.read(node.expression)))


def _chain(*ignored: str) -> ReadCall:
    """Return how a AND b AND c is read: in a loop, since sqlglot nests it to the left."""

    def read_call(reader: Reader, node: exp.Expr, name: str) -> Expression:
        parts, left = [], node
        while type(left) is type(node):
            only(left, "this", "expression", *ignored)
            parts.append(left.expression)
            left = left.this
        return Call(name, tuple(reader.read(part) for part in (left, *reversed(parts))))

    return read_call


def _concat(reader: Reader, node: exp.Expr, name: str) -> Expression:
    if isinstance(node, exp.DPipe):
        return _chain("safe")(reader, node, name)
    only(node, "expressions", "safe")
    return Call(name, tuple(reader.read(each) for each in node.expressions))


def _is_null(reader: Reader, node: exp.Expr, name: str) -> Expression:
    only(node, "this", "expression")
    if isinstance(node.expression, exp.Boolean):  # never NULL
        tested = reader.read(node.this)
        asked = tested if node.expression.this else Call("not", (tested,))
        return Call("coalesce", (asked, value_of(constant=False)))
    if not isinstance(node.expression, exp.Null):
        raise refusal(node, "IS takes NULL, TRUE or FALSE", "write x = 3, or x IS NULL")
    return Call(name, (reader.read(node.this),))


# Only A to Z, as LOWER has it.
_CAPITALS = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


def _like(reader: Reader, node: exp.Expr, name: str) -> Expression:
    """LIKE or ILIKE, perhaps with ESCAPE, a node around it; NOT LIKE is a flag that sqlglot keeps on the node."""
    escape: tuple[exp.Expr, ...] = ()
    if isinstance(node, exp.Escape):
        only(node, "this", "expression")
        if not isinstance(node.this, exp.Like | exp.ILike):
            raise refusal(node, "ESCAPE belongs to LIKE", "x LIKE '50!%' ESCAPE '!'")
        node, escape = node.this, (node.expression,)
    only(node, "this", "expression", "negate")
    parts = tuple(reader.read(part) for part in (node.this, node.expression, *escape))
    if isinstance(node, exp.ILike):
        pattern = parts[1].value if isinstance(parts[1], Value) else None
        lowered = value_of(pattern.translate(_CAPITALS)) if isinstance(pattern, str) else parts[1]
        parts = (Call("lower", parts[:1]), lowered, *parts[2:])
    matches = Call(name, parts)
    return Call("not", (matches,)) if node.args.get("negate") else matches


def _read_case(reader: Reader, node: exp.Expr, name: str) -> Expression:
    """CASE, with or without a tested value."""
    only(node, "this", "ifs", "default")
    tested = None if node.this is None else reader.read(node.this)
    parts: list[Expression] = []
    for branch in node.args["ifs"]:
        only(branch, "this", "true")
        condition = reader.read(branch.this)
        parts += [condition if tested is None else Call("=", (tested, condition)), reader.read(branch.args["true"])]
    default = node.args.get("default")
    return Call(name, (*parts, Value(None, "null") if default is None else reader.read(default)))


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


def _extract(reader: Reader, node: exp.Expr, name: str) -> Expression:
    if type(node) in _PARTS:
        only(node, "this")
        return Call(name, (value_of(_PARTS[type(node)]), reader.read(node.this)))
    only(node, "this", "expression")
    part = _read_word(node.this)
    return Call(name, (value_of(LONG_PARTS.get(str(part.value), part.value)), reader.read(node.expression)))


def _truncated(reader: Reader, node: exp.Expr, name: str) -> Expression:
    only(node, "unit", "this", "input_type_preserved")
    return Call(name, (_read_word(node.args.get("unit")), reader.read(node.this)))


def _read_difference(reader: Reader, node: exp.Expr, name: str) -> Expression:
    only(node, "this", "expressions")
    unit, *times = node.expressions or [None]
    if not isinstance(unit, exp.Literal) or len(times) != 2:
        raise refusal(node, "DATE_DIFF takes a unit and two times", "DATE_DIFF('day', a, b)")
    return Call(name, (_read_word(unit), *(reader.read(time) for time in times)))


def _read_sum(reader: Reader, node: exp.Expr, name: str) -> Expression:
    """A sum or difference; with an interval in it, it is a moved time."""
    left, right = node.this, node.expression
    if isinstance(left, exp.Interval) and isinstance(node, exp.Add):
        left, right = right, left
    if not isinstance(right, exp.Interval):
        return _binary(reader, node, name)
    only(node, "this", "expression")
    number, unit = _interval(right)
    return Call("add_interval", (reader.read(left), value_of(-number if isinstance(node, exp.Sub) else number), unit))


def _interval(node: exp.Expr) -> tuple[int, Value]:
    only(node, "this", "unit")
    unit, written = _read_word(node.args.get("unit")), node.this
    while isinstance(written, exp.Paren):
        written = written.this
    digits = str(written.this) if isinstance(written, exp.Literal) else ""
    unsigned = digits.removeprefix("-")
    name = str(unit.value).removesuffix("s")
    if name not in STEPS or not (unsigned.isascii() and unsigned.isdigit()) or len(unsigned) > 12:
        raise refusal(
            node, "an interval is a whole number and one unit", f"INTERVAL 3 DAY; the units are {', '.join(STEPS)}"
        )
    return int(digits), value_of(name)


def _read_word(node: object) -> Value:
    """A unit or part, written as a word or in quotes, in any case; other nodes become '', which is not a unit."""
    known = isinstance(node, exp.Var | exp.Literal)
    return value_of(str(node.this).lower()[:40] if isinstance(node, exp.Expr) and known else "")


_Type = exp.DataType.Type
SPELLINGS: dict[str, Spelling] = {
    "=": Spelling(_binary, (exp.EQ,)),
    "<>": Spelling(_binary, (exp.NEQ,)),
    "<": Spelling(_binary, (exp.LT,)),
    "<=": Spelling(_binary, (exp.LTE,)),
    ">": Spelling(_binary, (exp.GT,)),
    ">=": Spelling(_binary, (exp.GTE,)),
    "and": Spelling(_chain(), (exp.And,)),
    "or": Spelling(_chain(), (exp.Or,)),
    "not": Spelling(_parted("this"), (exp.Not,)),
    "in": Spelling(_listed(), (exp.In,)),
    "like": Spelling(_like, (exp.Like, exp.ILike, exp.Escape)),
    "is_null": Spelling(_is_null, (exp.Is,)),
    "+": Spelling(_read_sum, (exp.Add,)),
    "-": Spelling(_read_sum, (exp.Sub,)),
    "*": Spelling(_binary, (exp.Mul,)),
    "/": Spelling(_binary, (exp.Div,)),
    "%": Spelling(_binary, (exp.Mod,)),
    "//": Spelling(_binary, (exp.IntDiv,)),
    "sqrt": Spelling(_parted("this"), (exp.Sqrt,)),
    "exp": Spelling(_parted("this"), (exp.Exp,)),
    "ln": Spelling(_parted("this"), (exp.Ln,)),
    "log10": Spelling(_by_name, words=("LOG10",)),
    "log2": Spelling(_by_name, words=("LOG2",)),
    "power": Spelling(_binary, (exp.Pow,)),
    "negate": Spelling(_parted("this"), (exp.Neg,)),
    "case": Spelling(_read_case, (exp.Case,)),
    "coalesce": Spelling(_listed("is_nvl", "is_null"), (exp.Coalesce,)),
    "nullif": Spelling(_binary, (exp.Nullif,)),
    "lower": Spelling(_parted("this"), (exp.Lower,)),
    "upper": Spelling(_parted("this"), (exp.Upper,)),
    "trim": Spelling(_parted("this"), (exp.Trim,)),
    "cast_bool": Spelling(types=(_Type.BOOLEAN,)),
    "cast_int": Spelling(types=(_Type.INT, _Type.BIGINT)),
    "cast_float": Spelling(types=(_Type.FLOAT, _Type.DOUBLE)),
    "cast_decimal": Spelling(types=(_Type.DECIMAL,)),
    "cast_text": Spelling(types=(_Type.TEXT, _Type.VARCHAR)),
    "cast_date": Spelling(types=(_Type.DATE,)),
    "cast_timestamp": Spelling(types=(_Type.TIMESTAMP,)),
    "least": Spelling(_listed("ignore_nulls"), (exp.Least,)),
    "greatest": Spelling(_listed("ignore_nulls"), (exp.Greatest,)),
    "abs": Spelling(_parted("this"), (exp.Abs,)),
    "round": Spelling(_parted("this", "decimals"), (exp.Round,)),
    "floor": Spelling(_parted("this"), (exp.Floor,)),
    "ceil": Spelling(_parted("this"), (exp.Ceil,)),
    "length": Spelling(_parted("this"), (exp.Length,)),
    "substring": Spelling(_parted("this", "start", "length"), (exp.Substring,)),
    "concat": Spelling(_concat, (exp.Concat, exp.DPipe)),
    "replace": Spelling(_parted("this", "expression", "replacement"), (exp.Replace,)),
    "extract": Spelling(_extract, (exp.Extract, *_PARTS)),
    "date_trunc": Spelling(_truncated, (exp.DateTrunc, exp.TimestampTrunc)),
    "date_diff": Spelling(_read_difference, words=("DATE_DIFF", "DATEDIFF")),
    "strftime": Spelling(_by_name, words=("STRFTIME",)),
    "add_interval": Spelling(nodes=(exp.Interval,)),  # read as a part of a sum; alone it is refused
}
_BY_NODE = {node: name for name, spelling in SPELLINGS.items() for node in spelling.nodes}
_BY_TYPE = {each: name for name, spelling in SPELLINGS.items() for each in spelling.types}
_BY_NAME = {word: name for name, spelling in SPELLINGS.items() for word in spelling.words}
PLAIN_NAMES = tuple(_BY_NAME)

# nodes that are not functions: columns, brackets, constants and BETWEEN; and CAST, with a type that names the function
_SYNTAX: dict[type[exp.Expr], Callable[[Reader, exp.Expr], Expression]] = {
    exp.Column: Reader.column,
    exp.Literal: Reader.literal,
    **dict.fromkeys((exp.Paren, exp.Boolean, exp.Null), Reader.plain),
    exp.Between: Reader.between,
    exp.Cast: Reader.cast,
    exp.TryCast: Reader.cast,
}


def _sizes(target: exp.Expr) -> tuple[Value, ...]:
    sizes = []
    for parameter in target.expressions:
        written = parameter.this if isinstance(parameter, exp.DataTypeParam) else None
        if not isinstance(written, exp.Literal) or written.args.get("is_string") or not str(written.this).isdigit():
            raise refusal(target, "CAST does not know this type", "e.g. DECIMAL(12, 2)")
        sizes.append(read_number(str(written.this)))
    return tuple(sizes)


# --- how a name in the text finds its column ---


def match(identifier: exp.Expr, names: Iterable[str]) -> str | None:
    """Return the known name that an identifier means, or None; without quotes, case does not matter."""
    written = str(identifier.this)
    known = list(names)
    if written in known:
        return written
    if identifier.args.get("quoted"):
        return None
    folded = [name for name in known if name.lower() == written.lower()]
    return folded[0] if len(folded) == 1 else None


# The most characters of SQL in an expression's name.
NAME_MOST = 60
_KEYWORDS = frozenset(Tokenizer.KEYWORDS)


def show(expression: Expression) -> str:
    """Return the expression as SQL text.

    >>> show(Call("<", (Column("age"), Value(18, "int"))))
    'age < 18'
    """
    if isinstance(expression, Column):
        return show_name(expression.name)
    if isinstance(expression, Value):
        return show_value(expression.value)
    return _notation(expression).write(expression, Pen(show, _bracketed))


def name_of(expression: Expression) -> str:
    """Return a column's own name, or an expression as SQL, cut short and without a condition that another is not NULL.

    >>> name_of(Column("Price per CD")), name_of(Call("/", (Column("amount"), Column("cds"))))
    ('Price per CD', 'amount / cds')
    """
    if isinstance(expression, Column):
        return expression.name
    if isinstance(expression, Call) and expression.function == "case" and len(expression.arguments) == 3:
        first, then, otherwise = expression.arguments
        if isinstance(first, Call) and first.function == "is_null" and then == Value(None, "null"):
            return name_of(otherwise)
    text = show(expression)
    return text if len(text) <= NAME_MOST else f"{text[: NAME_MOST - 1]}…"


def show_name(name: str) -> str:
    """Return a name as SQL: plain if it is a lower-case word, otherwise quoted."""
    plain = name.isascii() and name.isidentifier() and name.lower() == name and name.upper() not in _KEYWORDS
    return name if plain else '"' + name.replace('"', '""') + '"'


def show_value(value: Scalar) -> str:
    """Return a constant as SQL text."""
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, float):
        digits = repr(value)
        return digits if "e" in digits else digits + "e0"
    if isinstance(value, Fraction):
        return to_text(value, scale_of(value))
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    return str(value) if isinstance(value, int) else f"DATE '{value.isoformat()}'"


def _bracketed(expression: Expression) -> str:
    text = show(expression)
    atomic = not isinstance(expression, Call) or (text.endswith(")") and not _notation(expression).is_operator)
    return text if atomic and not text.startswith("-") else f"({text})"


def _notation(call: Call) -> Notation:
    record = FUNCTIONS.get(call.function)
    return Notation() if record is None else record.notation


# --- default names of columns ---

_LETTERS_MOST = 40
_TEXT_MOST = 120


def aggregate_name(word: str, asked: Aggregate, columns: Sequence[str]) -> str:
    """Return the name of an aggregate by the word it was asked with and its columns: avg_days, count, corr_age_days.

    >>> aggregate_name("avg", Aggregate("mean", Column("days")), ["days"])
    'avg_days'
    """
    if asked.kind in ("count_units", "count_distinct"):
        word = f"{word}_distinct"
    if word == "quantile" and asked.fraction is not None:  # days_p90, as in Python
        percent = f"{float(asked.fraction * 100):g}".replace(".", "_")
        return f"{'_'.join(columns) or word}_p{percent}"
    return "_".join([word, *columns])


def text_name(node: exp.Expr) -> str:
    """Return a name made of the words of an expression: year_day for YEAR(day)."""
    words = re.sub(r"[^0-9a-z]+", "_", node.sql().lower()).lstrip("_0123456789")
    return words[:_LETTERS_MOST].strip("_") or "expression"


def aggregate_text(word: str, asked: Aggregate, unit: str | None = None) -> str:
    """Return an aggregate as it is written in SQL, to name one that is not shown."""
    parts = [show(part) for part in (asked.expression, asked.other) if part is not None]
    inside = ", ".join(parts) or "*"
    if asked.kind == "count_units":
        inside = f"DISTINCT {unit}"
    elif asked.kind == "count_distinct":
        inside = f"DISTINCT {inside}"
    elif word == "quantile" and asked.fraction is not None:
        inside += f", {float(asked.fraction):g}"
    text = f"{word.upper()}({inside})"
    return text if len(text) <= _TEXT_MOST else f"{text[: _TEXT_MOST - 2]}…)"


_KIND_WORDS = {
    "count_units": "count",
    "count_distinct": "count",
    "mean": "avg",
    "std": "stddev",
    "covariance": "covar_pop",
    "correlation": "corr",
    "top": "top",
}


def question_text(query: Query, unit: str | None = None) -> str:
    """Return a question in one line, as SQL would ask it; with its rows, unless they are one plain table."""
    asked = {}
    for output in query.outputs:
        kind = output.aggregate.kind
        asked[output.name] = aggregate_text(_KIND_WORDS.get(kind, kind), output.aggregate, unit)
    shown = {each.name: show(each.expression) for each in query.after.shown}
    keys = {key.name: show(key.expression) for key in query.keys}

    def item(name: str) -> str:
        written = shown.get(name) or asked.get(name) or keys.get(name) or show_name(name)
        return written if written in (name, show_name(name)) else f"{written} AS {show_name(name)}"

    items = ", ".join(item(name) for name in query.columns or (*keys, *asked))
    parts = [f"SELECT {'DISTINCT ' * query.after.distinct}{items}"]
    about = "" if query.relation is None else " (joined, or by unit)"
    parts.append(f"FROM {show_name(query.table)}{about}")
    parts += [] if query.where is None else [f"WHERE {show(query.where)}"]
    others = ["OTHER()"] if query.other else []
    parts += [f"GROUP BY {', '.join([*keys.values(), *others])}"] if keys else []
    parts += [] if query.after.having is None else [f"HAVING {show(query.after.having)}"]
    parts += [] if query.after.qualify is None else [f"QUALIFY {show(query.after.qualify)}"]
    order = ", ".join(show(each.expression) + " DESC" * each.descending for each in query.after.order)
    parts += [f"ORDER BY {order}"] if order else []
    parts += [] if query.after.limit is None else [f"LIMIT {query.after.limit}"]
    parts += [f"OFFSET {query.after.offset}"] if query.after.offset else []
    return " ".join(parts)


def unique(name: str, taken: Collection[str]) -> str:
    """Return an unused name, with a number if needed: avg, avg_2; the names of its two ends are kept free too."""

    def is_free(tried: str) -> bool:
        ends = (tried, f"{tried}_low", f"{tried}_high")
        return not any(end in taken for end in ends) and not any(
            tried in (f"{each}_low", f"{each}_high") for each in taken
        )

    if is_free(name):
        return name
    number = 2
    while not is_free(f"{name}_{number}"):
        number += 1
    return f"{name}_{number}"
