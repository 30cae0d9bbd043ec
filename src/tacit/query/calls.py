"""Functions and intervals as sqlglot reads them, turned into calls of the catalogue.

Like the reader of expressions, each names the parts its node may have; what people write that is close to a function
of ours, but means something else, is refused with ours.
"""

from collections.abc import Callable

from sqlglot import exp

from tacit.query.kind import value_of
from tacit.query.nodes import Call, Expression, Value
from tacit.query.refusing import instead, name_of, only, refusal
from tacit.query.time_functions import STEPS

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
