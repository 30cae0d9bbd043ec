"""Keeps the compiled SQL of recent relations, for questions that differ in epsilon, or in a constant they compare with.

Building and compiling a relation takes some 15 ms, for any rows. The kept SQL depends only on questions and schemas. It
never contains a salt: a relation with a salt is built anew each time.

When a question differs from a kept one in such constants alone, its relation is compiled once more with marks in their
places. That SQL, cut at the marks, must give the kept SQL with the constants of the first question; then it gives that
of all others, because a comparison's translation does not look at what is compared (`expression.py`).
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

import ibis.expr.types as ir
import pyarrow as pa

from tacit.engine.expression import constant_sql
from tacit.engine.relation import KEY_PLACE
from tacit.exact import listed_name
from tacit.plan import Plan
from tacit.query import Call, Expression, Kind, Value, kind_of
from tacit.tables import Source, keys_to_arrow

KEPT_MOST = 16
COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})
FIRST_INT, FIRST_DAY = 8_100_000_000_000_000_000, date(8000, 1, 1)

Make = Callable[[Plan, ir.Table | None], tuple[ir.Table, Any]]
Constants = tuple[Value, ...]


@dataclass(frozen=True)
class Readable:
    """A relation, its SQL if that may be kept, and what `make` returned beside it."""

    relation: ir.Table  # it also holds the list of keys that the SQL names
    sql: str | None
    more: Any


@dataclass(frozen=True)
class _Kept:
    """What was made for the constants of one question, and perhaps the same SQL for any constants."""

    made: Readable
    constants: Constants
    public_keys: object
    listed: ir.Table | None  # the public keys as a table
    cut: tuple[str, ...] | None = None  # SQL between constants, and the number of each constant after it
    is_cut: bool = False  # whether that was tried


class PreparedRelations:
    """The relations of one source that were used last."""

    def __init__(self, source: Source, kinds: Mapping[str, Kind]) -> None:
        self._source = source
        self._kinds = kinds
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    def get(self, plan: Plan, purpose: str, make: Make) -> Readable:
        """Return the relation that `make` gives for this plan, given its public keys as a table."""
        marked, constants = _marked(plan, self._kinds)
        shape = _shape(marked, purpose)
        kept = self._kept.get(shape)
        if kept is None or kept.public_keys != plan.public_keys:
            kept = self._made(plan, constants, make)
        elif kept.constants != constants:
            kept = kept if kept.is_cut else self._cut(kept, marked, make)
            kept = kept if kept.cut is not None else replace(self._made(plan, constants, make), is_cut=True)
        if kept.made.sql is not None:
            self._kept[shape] = kept
            self._kept.move_to_end(shape)
            if len(self._kept) > KEPT_MOST:
                self._kept.popitem(last=False)
        if kept.constants == constants or kept.cut is None:
            return kept.made
        return replace(kept.made, sql=_filled(kept.cut, constants))

    def _made(self, plan: Plan, constants: Constants, make: Make) -> _Kept:
        with self._source.with_table(listed_keys(plan)) as listed:
            relation, more = make(plan, listed)
            made = Readable(relation, self._source.compiled(relation), more)
        return _Kept(made, constants, plan.public_keys, listed)

    def _cut(self, kept: _Kept, marked: Plan, make: Make) -> _Kept:
        """Return the same with its SQL for any constants, where it can be told."""
        sql = self._source.compiled(make(marked, kept.listed)[0])
        cut = None if sql is None else _pieces(sql, kept.constants)
        # a constant that is a mark would hide that the mark stands elsewhere too
        is_telling = not any(
            each == _mark(each.type, at) for each in kept.constants for at in range(len(kept.constants))
        )
        is_same = is_telling and cut is not None and _filled(cut, kept.constants) == kept.made.sql
        return replace(kept, cut=cut if is_same else None, is_cut=True)


def listed_keys(plan: Plan) -> pa.Table | None:
    """Return the public keys and their indexes as a table; None without public keys."""
    if not plan.keys or plan.public_keys is None:
        return None
    columns = {listed_name(at): key.type for at, key in enumerate(plan.keys)}
    return keys_to_arrow(plan.public_keys, columns, place=KEY_PLACE)


def _shape(plan: Plan, purpose: str) -> str:
    """Return a text that is equal for two plans if and only if their relations are, apart from the public keys.

    It is text because constants of two types, such as 1 and TRUE, are equal in Python but not in SQL.
    """
    keys = [(key.expression, key.type) for key in plan.keys]
    drawn = sorted({draw.column for draw in plan.quantiles})
    return repr((purpose, plan.unit, plan.where, keys, plan.measured, plan.products, drawn, plan.public_keys is None))


# --- constants ---


def _marked(plan: Plan, kinds: Mapping[str, Kind]) -> tuple[Plan, Constants]:
    """Return a plan with marks for the constants that its filter compares with, and the constants.

    Equal ones have one mark, so that conditions which are equal stay so, and no others become so.
    """
    if plan.where is None:
        return plan, ()
    found: dict[Value, Value] = {}
    where = _with_marks(plan.where, kinds, found)
    return (replace(plan, where=where) if found else plan), tuple(found)


def _with_marks(expression: Expression, kinds: Mapping[str, Kind], found: dict[Value, Value]) -> Expression:
    if not isinstance(expression, Call):
        return expression
    shared = {kind_of(each, kinds).type for each in expression.arguments} if _compares(expression) else set()
    arguments: list[Expression] = []
    for each in expression.arguments:
        # numbers of several types are compared as a type that depends on the digits of a constant
        if isinstance(each, Value) and shared == {each.type} and _mark(each.type, 0) is not None:
            mark = found.setdefault(each, _mark(each.type, len(found)) or each)
            arguments.append(mark)
        else:
            arguments.append(_with_marks(each, kinds, found))
    return replace(expression, arguments=tuple(arguments))


def _compares(expression: Call) -> bool:
    return expression.function in COMPARISONS


def _mark(type: str, number: int) -> Value | None:
    if type == "int":
        return Value(FIRST_INT + number, "int")
    if type == "text":
        return Value(f"constant {number} of a question", "text")
    return Value(FIRST_DAY + timedelta(number), "date") if type == "date" else None


def _pieces(sql: str, constants: Constants) -> tuple[str, ...]:
    """Return SQL cut at the marks of some constants: every second piece is the number of a constant."""
    marks = [_mark(each.type, number) for number, each in enumerate(constants)]
    number_of = {constant_sql(mark): str(number) for number, mark in enumerate(marks) if mark is not None}
    pieces = re.split("(" + "|".join(map(re.escape, number_of)) + ")", sql)
    return tuple(number_of[each] if place % 2 else each for place, each in enumerate(pieces))


def _filled(pieces: tuple[str, ...], constants: Constants) -> str:
    return "".join(constant_sql(constants[int(each)]) if place % 2 else each for place, each in enumerate(pieces))
