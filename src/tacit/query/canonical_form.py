"""One tree for every way of writing the same expression, with each constant as the type it meets.

How a call is rewritten stands in its function's record. Everything is total, so the parts of AND and OR can be sorted:
their order cannot matter to any row.
"""

from tacit.query.catalogue import FUNCTIONS
from tacit.query.functions import CheckedCall
from tacit.query.kind import Kind, value_of
from tacit.query.nodes import Call, Column, Expression, Value
from tacit.query.sql_text import show
from tacit.query.typecheck import ColumnKinds, kind_of


def canonical(expression: Expression, kinds: ColumnKinds) -> Expression:
    """Return the one tree that stands for this expression; doing it twice changes nothing."""
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
    kind(call)  # refuses unknown functions too
    rewrite = FUNCTIONS[call.function].rewrite
    return call if rewrite is None else rewrite(CheckedCall(call, show), kind)
