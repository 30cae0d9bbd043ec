"""Brings an expression into its canonical form: one tree for all ways of writing the same expression.

Constants get the type that they are compared or combined with. The rewriting of each call is in its function's record.
Every function is total, so the parts of AND and OR can be sorted: their order cannot matter to any row.
"""

from tacit.query.catalogue import FUNCTIONS
from tacit.query.functions import CheckedCall
from tacit.query.kind import Kind, value_of
from tacit.query.nodes import Call, Column, Expression, Value
from tacit.query.sql_text import show
from tacit.query.typecheck import ColumnKinds, kind_of


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
