"""Reads windows over each unit's own rows: ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY day), in a subquery."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from tacit.query.check import check_windows
from tacit.query.nodes import Column, Expression, Windowed, free_name
from tacit.query.relations import UnitWindow, UnitWindowKind, windowed_declaration
from tacit.query.sql.expressions import match
from tacit.query.sql.refusals import at, only, refusal
from tacit.query.sql.rows import RowReader
from tacit.query.sql.shown import read_order
from tacit.query.typecheck import column_kinds, steps

_KINDS: dict[type[exp.Expr], UnitWindowKind] = {
    exp.RowNumber: "row_number",
    exp.Rank: "rank",
    exp.DenseRank: "dense_rank",
    exp.Lag: "lag",
    exp.Lead: "lead",
    exp.FirstValue: "first_value",
}
_THESE = "over one unit's rows there are ROW_NUMBER, RANK, DENSE_RANK, LAG, LEAD and FIRST_VALUE"
OFFSET_MAX = 1000
_INNER = ("from_", "joins", "with_")


def windows_of(select: exp.Select, *, everywhere: bool = False) -> list[exp.Expr]:
    """Return the windows of a SELECT's own columns and QUALIFY, or of all of its own clauses."""
    clauses = [*select.expressions, *([select.args["qualify"]] if select.args.get("qualify") else [])]
    if everywhere:
        given = [part for name, part in select.args.items() if name not in _INNER and part]
        clauses = [each for part in given for each in (part if isinstance(part, list) else [part])]
    return [each for clause in clauses if isinstance(clause, exp.Expr) for each in _windows(clause)]


def _windows(clause: exp.Expr) -> Iterator[exp.Expr]:
    nodes = clause.walk(prune=lambda each: isinstance(each, exp.Window | exp.Subquery | exp.Select))
    return (each for each in nodes if isinstance(each, exp.Window))


def is_of_one_unit(window: exp.Expr, rows: RowReader) -> bool:
    """Return whether a window sees rows of one unit alone: PARTITION BY names the unit."""
    return any(_is_unit(each, rows) for each in window.args.get("partition_by") or ())


def _is_unit(node: exp.Expr, rows: RowReader) -> bool:
    if not isinstance(node, exp.Column) or not rows.sees(node):
        return False
    qualifier = node.args.get("table")
    table = None if qualifier is None else match(qualifier, rows.tables)
    columns = rows.columns if table is None else rows.tables[table]
    name = match(node.this, columns)
    return name is not None and rows.is_unit(columns[name])


def with_unit_windows(nodes: Sequence[exp.Expr], rows: RowReader) -> RowReader:
    """Return the rows that pass the filter so far, with a column for each window, by its node."""
    if not nodes:
        return rows
    made: dict[UnitWindow, str] = {}
    marks: dict[int, Expression] = {}
    for node in nodes:
        window = _read(node, rows)
        if window not in made:
            made[window] = free_name(window.kind, [*rows.declaration.columns, *made.values()])
        marks[id(node)] = Column(made[window])
    windows = tuple(replace(window, name=name) for window, name in made.items())
    relation = at(nodes[0], lambda: check_windows(Windowed(rows.relation, windows, rows.where)))
    declaration = at(nodes[0], lambda: windowed_declaration(relation, rows.declaration))
    work = rows.steps + steps(
        [part for each in windows for part in each.parts] + ([] if rows.where is None else [rows.where]),
        column_kinds(rows.declaration),
    )
    rows = replace(rows, relation=relation, declaration=declaration, where=None, steps=work)
    return replace(rows, marks={**rows.marks, **marks})


def _read(node: exp.Expr, rows: RowReader) -> UnitWindow:
    only(node, "this", "partition_by", "order", "over")
    called = node.this
    kind = _KINDS.get(type(called))
    if kind is None:
        raise refusal(node, "this function cannot be a window over one unit's rows", _THESE)
    order = node.args.get("order")
    if order is None:
        raise refusal(node, f"{kind.upper()} needs an order", "OVER (PARTITION BY the unit ORDER BY day)")
    only(called, "this", "offset") if kind in ("lag", "lead") else only(called, "this")
    keys = [each for each in node.args["partition_by"] if not _is_unit(each, rows)]
    of = called.args.get("this") if kind in ("lag", "lead", "first_value") else None
    return UnitWindow(
        name="",
        kind=kind,
        order=read_order(order, rows.row),
        keys=tuple(map(rows.row, keys)),
        expression=None if of is None else rows.row(of),
        offset=_offset(called),
    )


def _offset(called: exp.Expr) -> int:
    offset = called.args.get("offset")
    if offset is None:
        return 1
    written = str(offset.this) if isinstance(offset, exp.Literal) else ""
    if not written.isdigit() or not 1 <= int(written[:9]) <= OFFSET_MAX:
        raise refusal(called, f"the distance must be a whole number from 1 to {OFFSET_MAX}", "LAG(x, 2)")
    return int(written)
