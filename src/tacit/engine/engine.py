"""Run a plan on a source and return its exact table. Whatever goes wrong inside says one fixed thing to the analyst.

An engine's own error text may quote a cell, and whether it fails may depend on one, so neither leaves: the curator's
log gets the class of the error and nothing else.
"""

import errno
import logging
import threading
from functools import partial
from typing import Any, Literal
from weakref import WeakKeyDictionary

import ibis.expr.types as ir
import pyarrow as pa

from tacit.engine import compiled, kernel_path, row_path
from tacit.engine.leaf import read_column
from tacit.engine.prepared import PreparedRelations, listed_keys
from tacit.engine.relation import KEY_PLACE, counted_rows, distinct_relation, exact_relation, values_relation
from tacit.engine.values import with_distinct, with_values
from tacit.errors import EngineError
from tacit.plan.exact import ExactTable
from tacit.plan.plan import Plan
from tacit.query.kind import kind_of_column
from tacit.query.nodes import Scalar
from tacit.tables.arrow import to_scalar
from tacit.tables.memory import memory_limit
from tacit.tables.source import Source

log = logging.getLogger("tacit.engine")

FAILED = (
    "the engine could not finish this question; the charge stands, since how it failed may depend on the data."
    "\nhint: the curator's log has the kind of error; ask the curator"
)


Path = Literal["kernel", "rows", "sql"]

# Tables may share a connection, which has no second result while one is being read.
_turns: WeakKeyDictionary[Any, threading.Lock] = WeakKeyDictionary()
_giving_turns = threading.Lock()


class Engine:
    """Answers plans about one source, exactly and in secret.

    A `path` that is given is taken whatever is compiled meanwhile: runs that are compared must choose the same rows.
    """

    def __init__(self, source: Source, *, path: Path | None = None) -> None:
        self._source = source
        self._path = path
        self._kinds = {
            name: kind_of_column(name, facts) for name, facts in source.columns.items() if facts.type != "other"
        }
        for name, kind in self._kinds.items():
            read_column(source.table, name, kind)  # refuses a declared type that no cast gives, before any charge
        self._memory = memory_limit()
        self._prepared = PreparedRelations(source)
        with _giving_turns:
            self._turn = _turns.setdefault(source.backend.con, threading.Lock())
        self._again = False

    def refuse_changes(self) -> None:
        """Refuse where the source is not what was opened, so that no question is charged for it; reads no row."""
        self._source.refuse_changes()

    def aggregate(self, plan: Plan, salt: str) -> ExactTable:
        """Return each group's exact sums, every unit bounded; one question of a connection at a time."""
        with self._turn:
            try:
                return self._aggregate(plan, salt)
            except Exception as problem:  # noqa: BLE001 - whatever it is, the analyst learns only that it failed
                log.error(  # noqa: TRY400 - a traceback may quote a cell
                    "engine failed: %s", _class_and_code(problem)
                )
        raise EngineError(FAILED)  # out here, where the engine's own error is not its context

    def _aggregate(self, plan: Plan, salt: str) -> ExactTable:
        path = self._taken(plan)
        if path == "kernel":
            asked = self._prepared.get(plan, "kernel", partial(self._kernel_relation, plan))
            return kernel_path.exact_sums(plan, self._source, asked, salt, memory=self._memory)
        if path == "rows":
            return row_path.exact_sums(plan, self._source, self._prepared.get(plan, "rows", partial(self._rows, plan)))
        kept = plan.unit is None and not (plan.quantiles or plan.distincts)  # all of it is prepared, the keys too
        with self._source.with_table(None if kept else listed_keys(plan)) as listed:
            if plan.sums_nothing:
                exact = ExactTable(plan.public_keys or ((),), {})
            else:
                found = self._summed(plan, salt, listed)
                exact = _found_groups(found, plan) if plan.public_keys is None else _listed_groups(found, plan)
            for column in sorted({draw.column for draw in plan.quantiles}):
                values = values_relation(plan, column, self._source.table, self._kinds, salt, listed)
                exact = with_values(exact, column, self._source.fetch(values), plan)
            for place in range(len(plan.distincts)):
                counts = distinct_relation(plan, place, self._source.table, self._kinds, salt, listed)
                exact = with_distinct(exact, place, self._source.fetch(counts), plan)
        return exact

    def _summed(self, plan: Plan, salt: str, listed: ir.Table | None) -> pa.Table:
        def relation(listed: ir.Table | None) -> tuple[ir.Table, None]:
            return exact_relation(plan, self._source.table, self._kinds, salt, listed), None

        if plan.unit is not None:  # then the salt decides what is kept, and it is in the relation
            return self._source.fetch(relation(listed)[0])
        asked = self._prepared.get(plan, "each row", relation)
        return self._source.fetch(asked.relation, asked.sql)

    def _kernel_relation(self, plan: Plan, listed: ir.Table | None) -> tuple[ir.Table, kernel_path.Asked]:
        joined = None if kernel_path.finds_places(plan) else listed
        return kernel_path.relation_of(plan, *counted_rows(plan, self._source.table, self._kinds, joined))

    def _rows(self, plan: Plan, _: ir.Table | None) -> tuple[ir.Table, row_path.Asked]:
        rows, _keys = counted_rows(plan, self._source.table, self._kinds, None, floats_as_they_are=True)
        return row_path.relation_of(plan, rows)

    def path_of(self, plan: Plan, *, again: bool = False) -> Path:
        """Return how this plan would run now: by public facts, and by whether the loops are compiled yet.

        Loading them takes half a second. That is worth it at once where units are bounded, and where nothing is, from
        the second question on; with `again`, as if this were one.
        """
        if self._path is not None:
            return self._path
        if kernel_path.suits(plan, self._source):
            return "kernel" if compiled.is_ready() else "sql"
        if row_path.suits(plan) and (again or self._again or compiled.is_loaded()):
            return "rows" if compiled.is_ready() else "sql"
        return "sql"

    def _taken(self, plan: Plan) -> Path:
        """Return how this plan runs, with the loops loaded if it needs them, or being compiled for the next time."""
        path = self.path_of(plan)
        if kernel_path.suits(plan, self._source) or row_path.suits(plan):
            self._again = True
            compiled.start()  # nothing, once they are compiled
        return path if path == "sql" or compiled.load() else "sql"


def _class_and_code(problem: Exception) -> str:
    """Return what the curator may know: the class, and the system's own code where it has one."""
    code = errno.errorcode.get(problem.errno or 0) if isinstance(problem, OSError) else None
    return " ".join(filter(None, (type(problem).__name__, code)))


def _found_groups(found: pa.Table, plan: Plan) -> ExactTable:
    columns = [found.column(f"k{place}").to_pylist() for place in range(len(plan.keys))]
    keys: list[tuple[Scalar, ...]] = [tuple(to_scalar(part) for part in key) for key in zip(*columns, strict=True)]
    names = [name for name in found.column_names if not name.startswith("k")]
    return ExactTable(keys, {name: _integers(found, name) for name in names})


def _listed_groups(found: pa.Table, plan: Plan) -> ExactTable:
    """Every listed key in its place; those without rows are zero."""
    listed = plan.public_keys or ((),)
    places: Any = found.column(KEY_PLACE).to_pylist() if plan.keys else [0] * len(found)
    sums = {}
    for name in found.column_names:
        if name == KEY_PLACE:
            continue
        column = [0] * len(listed)
        for place, value in zip(places, _integers(found, name), strict=True):
            column[place] = value
        sums[name] = column
    return ExactTable(listed, sums)


def _integers(found: pa.Table, name: str) -> list[int]:
    return [0 if text is None else int(text) for text in found.column(name).to_pylist()]
