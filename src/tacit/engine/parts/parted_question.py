"""Makes a plan about rows elsewhere into the cutting of each table and the question of every part; it reads no row."""

from dataclasses import dataclass, replace

import pyarrow as pa

from tacit.engine.coded.coding_rows import columns_read
from tacit.engine.derived import StoredRows, kinds_of, narrowed_source
from tacit.engine.embedded import EmbeddedEngine, columns_named
from tacit.engine.engine import ExecutionPath
from tacit.engine.parts.cutting import Cut, cut_of_table
from tacit.engine.parts.part import PartQuestion, PartTable
from tacit.engine.relation import counted_rows
from tacit.engine.scaled_relation import question_of_profiles
from tacit.exact import ExactTable
from tacit.plan import CodedPlan, Plan
from tacit.query import Relation, TableRows, tables_of
from tacit.tables import ROW, Declaration, Source

ALONE = "protected"  # the name of a table that is asked without a relation


@dataclass(frozen=True)
class Cutting:
    """A table elsewhere, the columns that are read of it, and how they are cut; a table without units is not cut."""

    source: Source
    columns: tuple[str, ...]
    cut: Cut | None


@dataclass(frozen=True)
class PartedQuestion:
    """A question to parts: the tables and how they are cut, what each part is asked, and the table of no rows."""

    cuttings: tuple[Cutting, ...]
    asked: PartQuestion
    nothing: ExactTable


def parted(source: Source, engine: EmbeddedEngine, plan: Plan, salt: str, parts: int) -> PartedQuestion:
    """Return how a plan about a source elsewhere is asked of parts; `engine` is the embedded one over the same."""
    source = narrowed_source(source, columns_named(plan))  # as the engine of a part will have it
    path = engine.path_of(plan)
    empty = EmbeddedEngine(replace(source, elsewhere=None), path="sql")
    return _asked_of_parts(source, plan, salt, parts, path, empty.aggregate(plan, salt))


def coded_in_parts(source: Source, plan: CodedPlan, salt: str, parts: int) -> PartedQuestion:
    """Return how rows elsewhere are coded by parts: a unit's rows meet in one, so that they are counted there."""
    return _asked_of_parts(narrowed_source(source, columns_read(plan)), plan, salt, parts, "sql", ExactTable((), {}))


def _asked_of_parts(
    source: Source, plan: Plan | CodedPlan, salt: str, parts: int, path: ExecutionPath, nothing: ExactTable
) -> PartedQuestion:
    relation, stored = _made_of(source, plan)
    names = tuple(dict.fromkeys(tables_of(relation)))
    cuttings, tables = [], []
    for name in names:
        base, declaration = stored.sources[name], stored.declarations[name]
        unit = declaration.unit
        columns = _columns_read(base, plan) if isinstance(relation, TableRows) else _columns_named(base, unit, source)
        schema = pa.schema([base.elsewhere.schema.field(column) for column in columns])
        facts = {column: base.columns[column] for column in columns}
        cut = cut_of_table(base, unit, columns, salt, parts) if isinstance(unit, str) else None
        cuttings.append(Cutting(base, columns, cut))
        tables.append(PartTable(name, declaration, facts, schema))
    asked = PartQuestion(
        plan=plan,
        salt=salt,
        path=path,
        tables=tuple(tables),
        relation=relation,
        publics=stored.publics,
        parts=parts,
    )
    return PartedQuestion(tuple(cuttings), asked, nothing)


def _made_of(source: Source, plan: Plan | CodedPlan) -> tuple[Relation, StoredRows]:
    if source.made_of is not None:
        relation, stored = source.made_of
        return relation, stored
    unit = ROW if plan.unit is None else plan.unit
    declaration = Declaration(name=ALONE, unit=unit, columns=source.columns)
    return TableRows(ALONE), StoredRows({ALONE: source}, {ALONE: declaration})


def _columns_named(base: Source, unit: object, derived: Source) -> tuple[str, ...]:
    """Return the columns of a stored table that a relation of it names, in the table's order, and one at least."""
    named = {unit, *derived.table.columns_named()}
    return tuple(name for name in base.table.columns if name in named) or tuple(base.table.columns[:1])


def _columns_read(source: Source, plan: Plan | CodedPlan) -> tuple[str, ...]:
    """Return the columns that a plan names, in the table's order; one at least, so that rows can be counted."""
    columns = tuple(name for name in source.table.columns if name in _names_read(source, plan))
    return columns or tuple(source.table.columns[:1])


def _names_read(source: Source, plan: Plan | CodedPlan) -> set[str]:
    if isinstance(plan, CodedPlan):
        return {*columns_read(plan), *(() if plan.unit is None else (plan.unit,))}
    more = {f"distinct {index}": each.expression for index, each in enumerate(plan.distincts)}
    more |= {f"measured {index}": each.expression for index, each in enumerate(plan.measured)}
    named: set[str] = set()
    for asked in (plan, question_of_profiles(plan)) if plan.profiles else (plan,):
        rows, _ = counted_rows(asked, source.table, kinds_of(source), None, more)
        named |= rows.columns_named()
    return named
