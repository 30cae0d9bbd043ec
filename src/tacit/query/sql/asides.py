"""Reads the parts of a SELECT that other questions answer: MODE(x) beside others or by group, and a SELECT in brackets.

The parts become `Aside`s (`query/compound.py`), separate questions that are charged together with the SELECT. Their
values are looked up in the released ones, so HAVING, windows and ORDER BY may use them; rows and aggregates may not.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from tacit.query.after.after_check import kind_of_aggregate
from tacit.query.check import check
from tacit.query.compound import Aside, Branch
from tacit.query.nodes import (
    Aggregate,
    Call,
    Column,
    Expression,
    Key,
    Output,
    PostProcessing,
    Query,
    renamed,
)
from tacit.query.sql.refusals import inside, instead, name_of, only, refusal
from tacit.query.sql.rows import Rows, both
from tacit.query.sql.shown import Parts
from tacit.query.sql.sql_text import show, unique
from tacit.query.typecheck import canonical, column_kinds, kind_of
from tacit.tables import Declaration, RowUnit

_ONE_NUMBER = "(SELECT AVG(x) FROM t WHERE ...) is one number; HAVING, ORDER BY and the SELECT list may compute with it"


@dataclass
class Asides:
    """The further questions of one SELECT, under made-up names until the answer has its own."""

    rows: Rows
    parts: Parts
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
        raise refusal(node, f"{name_of(inner)} in brackets is not in the language", instead(inner))
    return inner
