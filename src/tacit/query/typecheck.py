"""The type of an expression on a table, and its canonical form: one tree for all ways of writing the same expression.

Every function is total, so the parts of AND and OR can be sorted: their order cannot matter to any row.
"""

from collections.abc import Mapping

from tacit.errors import QueryRefused, did_you_mean
from tacit.query.kind import Kind, kind_of_column, kind_of_value, value_of
from tacit.query.language.catalogue import FUNCTIONS, function
from tacit.query.language.functions import CheckedCall
from tacit.query.nodes import Call, Column, Expression, Value
from tacit.query.sql.sql_text import show
from tacit.tables import Declaration

ColumnKinds = Mapping[str, Kind]


class UsableColumns(dict[str, Kind]):
    """The type of each usable column of a declared table; others are refused with the words for that."""

    def __init__(self, declaration: Declaration) -> None:
        others = {name: facts for name, facts in declaration.columns.items() if facts.type == "other"}
        super().__init__(
            {name: kind_of_column(name, facts) for name, facts in declaration.columns.items() if name not in others}
        )
        self._others = others

    def __missing__(self, name: str) -> Kind:
        if name in self._others:
            return kind_of_column(name, self._others[name])
        raise KeyError(name)


def column_kinds(declaration: Declaration) -> dict[str, Kind]:
    """Return what each usable column of a declared table yields; columns of other types are left out."""
    return UsableColumns(declaration)


def kind_of(expression: Expression, kinds: ColumnKinds) -> Kind:
    """Return what an expression yields; refuse unknown columns and functions and arguments of the wrong type."""
    if isinstance(expression, Value):
        return kind_of_value(expression)
    if isinstance(expression, Column):
        try:
            return kinds[expression.name]
        except KeyError:
            hint = did_you_mean(expression.name, kinds)
        raise QueryRefused(f"there is no column '{expression.name}'{hint}")
    arguments = tuple(kind_of(argument, kinds) for argument in expression.arguments)
    return function(expression.function).kind_of_call(arguments, CheckedCall(expression, show))


def canonical(expression: Expression, kinds: ColumnKinds) -> Expression:
    """Return the canonical tree of an expression; the canonical tree of a canonical tree is that tree."""
    if isinstance(expression, Column):
        return expression
    if isinstance(expression, Value):
        return value_of(expression.value)

    def kind(argument: Expression) -> Kind:
        return kind_of(argument, kinds)

    call = Call(expression.function, tuple(canonical(argument, kinds) for argument in expression.arguments))
    written = FUNCTIONS.get(call.function)
    if written is not None and written.adapt is not None:
        call = written.adapt(CheckedCall(call, show), kind)
    kind(call)  # for its refusals: of an unknown function, or of arguments of the wrong type
    rewrite = FUNCTIONS[call.function].rewrite
    return call if rewrite is None else rewrite(CheckedCall(call, show), kind)
