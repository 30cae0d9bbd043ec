"""The part of a question's WHERE about stored cells, for a store that can leave rows out before it sends them.

Our own SQL filters again, so it only has to hold for every row that the condition holds for: a part that is not a
comparison with constants, AND, OR or about NULL means every row.
"""

from collections.abc import Mapping

from tacit.query import Call, Column, Expression, Value
from tacit.tables import ColumnFacts, WantedRows

COMPARED = ("=", "<>", "<", "<=", ">", ">=", "in")
TYPES = ("int", "bool", "date", "text")
ANY = WantedRows("any")


def wanted_rows(where: Expression | None, columns: Mapping[str, ColumnFacts]) -> WantedRows | None:
    """Return a condition that holds for every row that `where` holds for; None: every row is wanted."""
    return None if where is None else _wanted(where, columns)


def _wanted(where: Expression, columns: Mapping[str, ColumnFacts]) -> WantedRows:
    if isinstance(where, Column):  # a bool by itself
        return WantedRows("=", where.name, "bool", (True,))
    if isinstance(where, Value):
        return ANY
    first = where.arguments[0] if where.arguments else None
    if where.function in ("and", "or"):
        return WantedRows(where.function, of=tuple(_wanted(each, columns) for each in where.arguments))
    if where.function == "not" and isinstance(first, Column):
        return WantedRows("=", first.name, "bool", (False,))
    if where.function == "not" and isinstance(first, Call) and first.function == "is_null":
        inner = _wanted(first, columns)
        return inner if inner is ANY else WantedRows("is_not_null", inner.column, inner.type)
    if not isinstance(first, Column) or columns[first.name].type not in TYPES:
        return ANY
    if where.function == "is_null":
        return WantedRows("is_null", first.name, columns[first.name].type)
    if where.function in COMPARED:
        return _wanted_comparison(where, first, columns[first.name].type)
    return ANY


def _wanted_comparison(where: Call, column: Column, kind: str) -> WantedRows:
    constants = [each.value for each in where.arguments[1:] if isinstance(each, Value) and each.type == kind]
    if len(constants) < len(where.arguments) - 1:
        return ANY
    return WantedRows(where.function, column.name, kind, tuple(constants))
