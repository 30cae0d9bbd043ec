"""Reads the parts of a SELECT that are computed from its noisy answer: aggregates and keys, windows, and their order.

While a SELECT is read these have made-up names, since the answer's names are not known yet and may be the table's too.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import isfinite
from typing import TypeVar

from sqlglot import exp

from tacit.errors import QueryRefused, printable
from tacit.query.check import check, kind_of_aggregate
from tacit.query.compound import Aside, Branch
from tacit.query.nodes import (
    INT,
    Aggregate,
    Call,
    Column,
    Expression,
    Key,
    Kind,
    Ordering,
    Output,
    PostProcessing,
    Query,
    RowsAround,
    Value,
    Window,
    columns_of,
    renamed,
    reordered,
    value_of,
    with_parts,
)
from tacit.query.sql.expressions import Reader, aggregate_text, show, unique
from tacit.query.sql.parse import read_node
from tacit.query.sql.refusals import index_of, inside, instead, is_index, name_of_node, only, refusal
from tacit.query.sql.rows import RowReader, both
from tacit.query.typecheck import canonical, column_kinds, kind_of, limit_expression
from tacit.query.windows import WINDOWS, window_kind
from tacit.tables import Declaration, RowUnit

# No table has a column of such a name.
_MADE_UP = "\x00"
_WINDOW_NODES: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    exp.RowNumber: ("row_number", ()),
    exp.Rank: ("rank", ()),
    exp.DenseRank: ("dense_rank", ()),
    exp.PercentRank: ("percent_rank", ()),
    exp.CumeDist: ("cume_dist", ()),
    exp.Ntile: ("ntile", ("this",)),
    exp.Lag: ("lag", ("this", "offset", "default")),
    exp.Lead: ("lead", ("this", "offset", "default")),
    exp.FirstValue: ("first_value", ("this",)),
    exp.LastValue: ("last_value", ("this",)),
    exp.NthValue: ("nth_value", ("this", "offset")),
    exp.Sum: ("sum", ("this",)),
    exp.Avg: ("avg", ("this",)),
    exp.Min: ("min", ("this",)),
    exp.Max: ("max", ("this",)),
    exp.Count: ("count", ("this", "big_int")),
}
# Nodes that are NULL only if an argument is.
_NULL_OF_NULL = frozenset(("and", "or", "not", "=", "<>", "<", "<=", ">", ">="))
Part = TypeVar("Part")
_WINDOW_HINT = "write e.g. RANK() OVER (ORDER BY COUNT(*) DESC) or SUM(COUNT(*)) OVER ()"


@dataclass
class ShownParts:
    """The parts of a SELECT's expressions, each under a made-up name: aggregates, keys and windows."""

    rows: Mapping[str, Kind]  # the table's own columns
    aggregates: dict[str, Aggregate] = field(default_factory=dict)
    keys: dict[str, Key] = field(default_factory=dict)
    windows: dict[str, Window] = field(default_factory=dict)
    groupings: dict[str, Expression] = field(default_factory=dict)  # the row expression that each is about
    asides: dict[str, Kind] = field(default_factory=dict)  # values of other questions, and their kinds
    words: dict[str, str] = field(default_factory=dict)  # the word each aggregate is asked with
    labels: dict[str, str] = field(default_factory=dict)  # the name of each aggregate if it is not given one

    def aggregate(self, asked: Aggregate, word: str, label: str) -> Column:
        """Return the column that stands for an aggregate; equal ones are one."""
        column = _named_part(self.aggregates, asked, "aggregate")
        self.words.setdefault(column.name, word)
        self.labels.setdefault(column.name, label)
        return column

    def grouping(self, expression: Expression) -> Column:
        """Return the column that says whether a key is rolled up."""
        return _named_part(self.groupings, expression, "grouping")

    def aside(self, kind: Kind) -> str:
        """Return the name of a column that another question gives."""
        name = f"{_MADE_UP}aside {len(self.asides)}"
        self.asides[name] = kind
        return name

    def window(self, window: Window) -> Column:
        return _named_part(self.windows, window, "window")

    @property
    def kinds(self) -> dict[str, Kind]:
        """The kind of each column that a tree may have."""
        found = dict(self.rows) | dict.fromkeys(self.groupings, INT) | self.asides
        found |= {name: kind_of(key.expression, self.rows) for name, key in self.keys.items()}
        for name, asked in self.aggregates.items():
            found[name] = kind_of_aggregate(asked, self.rows)
        for name, window in self.windows.items():
            found[name] = window_kind(window, tuple(kind_of(each, found) for each in window.arguments))
        return found

    def settled(self, expression: Expression) -> Expression:
        """Return an expression in canonical form, its keys as keys, and a sum over its count as the mean that it is."""
        limit_expression(expression)
        return self._with_means(self._with_keys(self.canonical(expression)))

    def canonical(self, expression: Expression) -> Expression:
        """Return an expression in canonical form; a refusal is in the words of the SELECT, not in made-up names."""
        try:
            return canonical(expression, self.kinds)
        except QueryRefused as error:
            message = str(error)
            for name, asked in self.aggregates.items():
                message = message.replace(printable(f'"{name}"'), aggregate_text(self.words[name], asked))
            raise QueryRefused(message) from None

    def _with_keys(self, expression: Expression) -> Expression:
        of_key = {key.expression: Column(name) for name, key in reversed(self.keys.items())}
        return with_parts(expression, of_key.get)

    def _with_means(self, expression: Expression) -> Expression:
        if not isinstance(expression, Call):
            return expression
        call = Call(expression.function, tuple(map(self._with_means, expression.arguments)))
        return (self._mean(call) if call.function == "/" else None) or call

    def _mean(self, quotient: Call) -> Expression | None:
        """SUM(x) / COUNT(x), with constant factors: the mean, with an exactly known interval."""
        (top_factor, top), (bottom_factor, bottom) = map(_factored, quotient.arguments)
        added, counted = self.aggregates.get(top), self.aggregates.get(bottom)
        if added is None or counted is None or added.kind != "sum" or counted.kind != "count" or not bottom_factor:
            return None
        of_all = counted.expression is None and added.expression is not None and never_null(added.expression)
        if not of_all and counted.expression != added.expression:
            return None
        mean = self.aggregate(Aggregate("mean", added.expression, added.between, added.step), "avg", "avg")
        factor = top_factor / bottom_factor
        return mean if factor == 1 else Call("*", (value_of(float(factor)), mean))

    def rows_left(self, expression: Expression) -> list[str]:
        """Return the columns of the table that an expression still reads."""
        return sorted(name for name in columns_of(expression) if not name.startswith(_MADE_UP))


def _named_part(known: dict[str, Part], part: Part, word: str) -> Column:
    name = next((name for name, each in known.items() if each == part), f"{_MADE_UP}{word} {len(known)}")
    known.setdefault(name, part)
    return Column(name)


def is_made_up(name: str) -> bool:
    """Return whether a column of a tree stands for an aggregate, a key or a window."""
    return name.startswith(_MADE_UP)


def key_name(place: int) -> str:
    return f"{_MADE_UP}key {place}"


def with_answer_names(after: PostProcessing, names: Mapping[str, str]) -> PostProcessing:
    """Return post-processing with the names of the answer in place of made-up ones."""

    def named(expression: Expression) -> Expression:
        return renamed(expression, names)

    return replace(
        after,
        having=None if after.having is None else named(after.having),
        qualify=None if after.qualify is None else named(after.qualify),
        windows=tuple(each.changed(named) for each in after.windows),
        shown=tuple(replace(each, expression=named(each.expression)) for each in after.shown),
        order=reordered(after.order, named),
    )


def never_null(expression: Expression) -> bool:
    """Return whether an expression is never NULL, for any row."""
    if isinstance(expression, Value):
        return expression.value is not None
    if not isinstance(expression, Call):
        return False
    parts = expression.arguments
    if expression.function == "case":
        return all(map(never_null, (*parts[1:-1:2], parts[-1])))
    if expression.function in ("is_null", "coalesce"):
        return expression.function == "is_null" or any(map(never_null, parts))
    return expression.function in _NULL_OF_NULL and all(map(never_null, parts))


def _factored(expression: Expression) -> tuple[Fraction, str]:
    """Return a product of constants and one column as its factor and that column, '' for any other expression. CAST to
    float does not change a quotient, and neither does NULLIF(n, 0) below it."""
    if isinstance(expression, Column):
        return Fraction(1), expression.name
    if not isinstance(expression, Call):
        return Fraction(1), ""
    first, *rest = expression.arguments
    if expression.function == "cast_float" or (
        expression.function == "nullif" and isinstance(rest[0], Value) and rest[0].value == 0
    ):
        return _factored(first)
    if expression.function == "*":
        for constant, other in ((first, rest[0]), (rest[0], first)):
            number = constant.value if isinstance(constant, Value) else None
            if isinstance(number, int | Fraction) or (isinstance(number, float) and isfinite(number)):
                factor, name = _factored(other)
                return factor * Fraction(number), name
    return Fraction(1), ""


@dataclass(frozen=True)
class WindowReader:
    """Reads windows: `reader` reads their arguments, `named` are those of the WINDOW clause."""

    parts: ShownParts
    reader: Reader
    named: Mapping[str, exp.Expr] = field(default_factory=dict)

    def read(self, node: exp.Expr) -> Expression:
        """Return the column that stands for a window's values."""
        only(node, "this", "partition_by", "order", "spec", "alias", "over")
        called = node.this
        known = _WINDOW_NODES.get(type(called))
        if known is None:
            names = ", ".join(sorted(WINDOWS)).upper()
            raise refusal(node, "this function cannot be a window (OVER)", f"the window functions are {names}")
        function, taken = known
        only(called, *taken)
        given = [called.args.get(part) for part in taken]
        arguments = [part for part in given if isinstance(part, exp.Expr) and not isinstance(part, exp.Star)]
        base = self._named(node)
        order = node.args.get("order") or base.get("order")
        read = self._expression
        return self.parts.window(
            Window(
                name="",
                function=function,
                arguments=tuple(read(each) for each in arguments),
                partition=tuple(read(each) for each in node.args.get("partition_by") or base.get("partition_by") or ()),
                order=() if order is None else read_order(order, read),
                frame=_frame(node.args.get("spec") or base.get("spec")),
            )
        )

    def _expression(self, node: exp.Expr) -> Expression:
        if node.find(exp.Window):
            raise refusal(node, "a window inside a window is not in the language", _WINDOW_HINT)
        return canonical(read_node(self.reader, node), self.parts.kinds)

    def _named(self, node: exp.Expr) -> Mapping[str, exp.Expr]:
        alias = node.args.get("alias")
        if alias is None:
            return {}
        name = str(alias.this).lower()
        if name not in self.named:
            raise refusal(node, f"there is no window '{alias.this}'", "WINDOW w AS (PARTITION BY k ORDER BY n)")
        named = self.named[name]
        only(named, "this", "partition_by", "order", "spec")
        return named.args


def read_order(
    order: exp.Expr, read: Callable[[exp.Expr], Expression], listed: Sequence[Expression] | None = None
) -> tuple[Ordering, ...]:
    """Return what an ORDER BY sorts by, perhaps as numbers of listed columns; NULL comes last, unless it is first."""
    only(order, "expressions")
    found = []
    for each in order.expressions:
        only(each, "this", "desc", "nulls_first")
        by_index = listed is not None and is_index(each.this)
        expression = listed[index_of(each.this, len(listed))] if listed is not None and by_index else read(each.this)
        found.append(Ordering(expression, bool(each.args.get("desc")), bool(each.args.get("nulls_first"))))
    return tuple(found)


def _frame(spec: object) -> RowsAround | None:
    if not isinstance(spec, exp.Expr):
        return None
    if str(spec.args.get("kind")).upper() != "ROWS":
        raise refusal(spec, "a frame is of ROWS here", "ROWS BETWEEN 6 PRECEDING AND CURRENT ROW")
    only(spec, "kind", "start", "start_side", "end", "end_side")
    start = _end_of_frame(spec, "start")
    return start, 0 if spec.args.get("end") is None else _end_of_frame(spec, "end")


def _end_of_frame(spec: exp.Expr, end: str) -> int | None:
    given, side = spec.args.get(end), str(spec.args.get(f"{end}_side") or "").upper()
    if isinstance(given, str):
        if given.upper() == "CURRENT ROW":
            return 0
        if given.upper() == "UNBOUNDED" and side == ("PRECEDING" if end == "start" else "FOLLOWING"):
            return None
    if isinstance(given, exp.Literal) and str(given.this).isdigit() and len(str(given.this)) < 10:
        return int(str(given.this)) * (-1 if side == "PRECEDING" else 1)
    raise refusal(spec, "this frame is not in the language", "ROWS BETWEEN 6 PRECEDING AND CURRENT ROW")


_ONE_NUMBER = "(SELECT AVG(x) FROM t WHERE ...) is one number; HAVING, ORDER BY and the SELECT list may compute with it"


@dataclass
class Asides:
    """The further questions of one SELECT, under made-up names until the answer has its own."""

    rows: RowReader
    parts: ShownParts
    modes: dict[str, Expression] = field(default_factory=dict)  # the grouping of each mode
    selects: list[tuple[Query, dict[str, str]]] = field(default_factory=list)  # and the name of each output

    def mode(self, node: exp.Expr) -> Column:
        """Return the column that MODE(x) is."""
        only(node, "this")
        if not isinstance(node.this, exp.Expr):
            raise refusal(node, "MODE needs an argument", "MODE(x), or MODE() WITHIN GROUP (ORDER BY x)")
        kinds = column_kinds(self.rows.declaration)
        wanted = canonical(self.rows.row(node.this), kinds)
        for name, known in self.modes.items():
            if known == wanted:
                return Column(name)
        name = self.parts.aside(kind_of(wanted, kinds))
        self.modes[name] = wanted
        return Column(name)

    def select(self, node: exp.Expr, branch: Branch, declaration: Declaration) -> Expression:
        """Return the number that a SELECT in brackets is; `declaration` is of the rows that it is about."""
        query, after = branch.query, branch.query.after
        if branch.asides or query.keys or len(query.columns) != 1 or replace(after, shown=()) != PostProcessing():
            raise refusal(
                node, "a SELECT in brackets must be one aggregate, without GROUP BY, HAVING and LIMIT", _ONE_NUMBER
            )
        shown = after.shown[0].expression if after.shown else Column(query.columns[0])
        asked = replace(query, after=PostProcessing(), columns=())
        for known, names in self.selects:
            if known == asked:
                return renamed(shown, names)
        kinds = column_kinds(declaration)
        names = {output.name: self.parts.aside(kind_of_aggregate(output.aggregate, kinds)) for output in query.outputs}
        self.selects.append((asked, names))
        return renamed(shown, names)

    def named(self, taken: Collection[str]) -> dict[str, str]:
        """Return the name in the answer of each column, by its made-up one."""
        found: dict[str, str] = {}
        wanted = [(name, f"MODE({show(each)})") for name, each in self.modes.items()]
        wanted += [(name, f"(SELECT {output})") for _, names in self.selects for output, name in names.items()]
        for name, text in wanted:
            found[name] = unique(text, {*taken, *found.values()})
        return found

    def finished(self, query: Query, names: Mapping[str, str]) -> tuple[Aside, ...]:
        """Return the further questions of a checked one: by its answer's names for their columns."""
        asides = [self._by_mode(query, names[name], each) for name, each in self.modes.items()]
        for asked, own in self.selects:
            asides.append(Aside(asked, tuple((names[name], output) for output, name in own.items()), is_mode=False))
        return tuple(asides)

    def _by_mode(self, query: Query, column: str, expression: Expression) -> Aside:
        declaration = self.rows.declaration
        counted = Aggregate("count" if isinstance(declaration.unit, RowUnit) else "count_units")
        known = Call("not", (Call("is_null", (expression,)),))
        asked = replace(
            query,
            outputs=(Output(unique("n", {column, *(key.name for key in query.keys)}), counted),),
            where=both(query.where, known, declaration),
            keys=(*query.keys, Key(column, expression)),
            after=PostProcessing(),
            columns=(),
        )
        checked = check(asked, declaration, names=self.rows.columns, within=self.rows.steps)
        return Aside(checked, ((column, column),), is_mode=True)


def inner_select(node: exp.Expr) -> exp.Select:
    """Return the SELECT that stands in brackets in an expression of the answer."""
    inner = inside(node)
    if not isinstance(inner, exp.Select):
        raise refusal(node, f"{name_of_node(inner)} in brackets is not in the language", instead(inner))
    return inner
