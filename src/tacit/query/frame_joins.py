"""The Python door's joins: two tables under construction become one, with columns that may be qualified by table."""

from collections.abc import Mapping, Sequence
from typing import Any

from tacit.errors import QueryRefused, did_you_mean
from tacit.query.frame import Frame
from tacit.query.joins import Side, join, marked, row_wise
from tacit.query.kind import phrase
from tacit.query.nodes import Call, Column, Expression, Key, Relation, free_name
from tacit.query.sql.sql_text import show
from tacit.query.typecheck import column_kinds, kind_of

HOWS = ("inner", "left", "semi", "anti")


def frame_side(frame: Frame, relation: Relation) -> Side:
    """Return a table under construction as a side of a join: its filter and derived columns are part of it."""
    declaration = frame.declaration
    if frame.keys:
        raise QueryRefused("a table that is grouped cannot be joined\nhint: join first, and group the result")
    if frame.where is None and not frame.derived:
        return Side(relation, declaration, frame.within)
    if frame.where is not None and (kind := kind_of(frame.where, column_kinds(declaration))).type != "bool":
        raise QueryRefused(
            f"{show(frame.where)} is {phrase(kind)}; a filter must be true or false\nhint: compare it, e.g. x > 0"
        )
    readable = [name for name, facts in declaration.columns.items() if facts.type != "other"]
    columns = [Key(name, Column(name)) for name in readable if name != declaration.unit]
    columns += [Key(name, expression) for name, expression in frame.derived.items()]
    return row_wise(Side(relation, declaration, frame.within), tuple(columns), frame.where)


def joined_frame(
    left: Side, right: Side, tables: Mapping[str, Mapping[str, str]], on: object, how: object, most: object
) -> tuple[Relation, Frame]:
    """Return the relation of a join, and the table under construction about it.

    `tables` has the left side's columns, if it is a join itself.
    """
    if how not in HOWS:
        raise QueryRefused(f"how must be one of {', '.join(HOWS)}\nhint: how='left' keeps rows without a match")
    pairs = _pairs(on, left, right)
    known = tables or {left.name: {name: name for name in left.declaration.columns}}
    if how in ("semi", "anti"):
        side, name = marked(left, right, pairs, is_in=False)
        kept: Expression = Column(name) if how == "semi" else Call("not", (Column(name),))
        shown = {table: dict(columns) for table, columns in known.items()}
        return side.relation, Frame(side.declaration, where=kept, within=side.steps, tables=shown)
    found = join(left, right, pairs, how="left" if how == "left" else "inner", most=most, once=True)
    made = {
        table: {own: found.left[name] for own, name in names.items() if name in found.left}
        for table, names in known.items()
    }
    made[free_name(right.name, made)] = dict(found.right)
    return found.side.relation, Frame(found.side.declaration, within=found.side.steps, tables=made)


def _pairs(on: object, left: Side, right: Side) -> list[tuple[Expression, Expression]]:
    """Return what must be equal: a column's name, a list of them, or a dict from the left side's to the right's."""
    if isinstance(on, str):
        names: list[tuple[Any, Any]] = [(on, on)]
    elif isinstance(on, Mapping):
        names = list(on.items())
    elif isinstance(on, Sequence):
        names = [(name, name) for name in on]
    else:
        names = []
    if not names:
        raise QueryRefused(
            "on must name the columns that are equal in both tables\nhint: on='ward', on=['ward', 'day'], or a dict"
            " where their names differ: on={'ward': 'code'}"
        )
    for pair in names:
        for name, side in zip(pair, (left, right), strict=True):
            columns = side.declaration.columns
            if name not in columns:
                raise QueryRefused(
                    f"on names '{name}', which is not a column of '{side.name}'{did_you_mean(str(name), columns)}"
                )
    return [(Column(here), Column(there)) for here, there in names]
