"""The type checker: returns the kind of an expression on a table, or refuses it.

The rule of each function is in its record.
"""

from collections.abc import Mapping

from tacit.errors import QueryRefused, did_you_mean
from tacit.query.catalogue import function
from tacit.query.functions import CheckedCall
from tacit.query.kind import Kind, kind_of_column, kind_of_value
from tacit.query.nodes import Column, Expression, Value
from tacit.query.sql_text import show
from tacit.tables import Declaration

ColumnKinds = Mapping[str, Kind]


def column_kinds(declaration: Declaration) -> dict[str, Kind]:
    """Return what each usable column of a declared table yields; columns of other types are left out."""
    return {name: kind_of_column(name, facts) for name, facts in declaration.columns.items() if facts.type != "other"}


def kind_of(expression: Expression, kinds: ColumnKinds) -> Kind:
    """Return what an expression yields; refuse unknown columns and functions and arguments of the wrong type."""
    if isinstance(expression, Value):
        return kind_of_value(expression)
    if isinstance(expression, Column):
        if expression.name not in kinds:
            raise QueryRefused(f"there is no column '{expression.name}'{did_you_mean(expression.name, kinds)}")
        return kinds[expression.name]
    arguments = tuple(kind_of(argument, kinds) for argument in expression.arguments)
    return function(expression.function).kind(arguments, CheckedCall(expression, show))
