"""Plans that scale units, measure what scaling took, or learn, of any vectors; and their exact integers, moved by one.

How far one unit may move them is what the product's own planner declares of such vectors. How far it does, an engine
tells, on every path that can run the plan.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

from tacit import exact as exact_tables
from tacit.auditing import replay
from tacit.engine.engine import EmbeddedEngine
from tacit.engine.kernel import compiled, kernel_path
from tacit.plan import groups as plan_groups
from tacit.plan import plan
from tacit.plan.bounds import scaling
from tacit.plan.groups import KEYS_MOST
from tacit.query.nodes import Call, Column
from tacit.tables import open_source
from tacit_gauntlet.stage.engine import Way
from tacit_gauntlet.stage.neighbours import Row, as_table, asked_of
from tacit_gauntlet.stage.table import SALT, Cells, bounded_plan

# what the functions below take and give
Plan = plan.Plan
ExactTable = exact_tables.ExactTable
Vector = scaling.Vector
Norm = Literal[1, 2]
Neighbours = Literal["add-remove", "replace"]
NEIGHBOURS: tuple[Neighbours, Neighbours] = ("add-remove", "replace")
# limits that are public
CELL_MOST = scaling.CELL_MOST
UNBOUNDED = scaling.UNBOUNDED

# x and y of the made-up people, on grids that reach 2^30 steps to either side of 0
GRID_MIDDLE = 1 << 30
_GRIDS = (
    plan.Measured(Column("x"), "int", Fraction(1), -GRID_MIDDLE, GRID_MIDDLE),
    plan.Measured(Column("y"), "float", Fraction(1, 4), -GRID_MIDDLE, GRID_MIDDLE),
    # the squares of y, for a variance
    plan.Measured(Call("*", (Column("y"), Column("y"))), "float", Fraction(1, 16), 0, 1 << 48),
)


def start_of(keys: Sequence[Any] | None, neighbours: Neighbours = "add-remove") -> Plan:
    """Return a plan by hand about the made-up people: by listed keys, by keys to be found (None), or by none at all."""
    table = asked_of([], neighbours=neighbours)
    if keys is None:
        return bounded_plan(table.group_by("g").count())
    return bounded_plan(table.group_by("g", keys=list(keys)).count() if keys else table.count())


def scaled_plan(
    start: Plan,
    norm: Norm,
    vectors: Sequence[Vector],
    together: Sequence[tuple[int, ...]] | None = None,
    *,
    groups: int = UNBOUNDED,
) -> Plan:
    """Return the plan that scales these vectors, with the sensitivities that the planner declares of them."""
    each = tuple((place,) for place in range(len(vectors))) if together is None else tuple(together)
    listed = len(start.public_keys) if start.public_keys is not None else KEYS_MOST
    replaced = start.neighbours == "replace"
    made = start.releases[0]
    cells = tuple(
        replace(
            made,
            parts=(plan.Part("scaled", index=(place,)),),
            sensitivity=plan_groups.sensitivity_of_vector(vector, norm=norm, replaced=replaced, cells=listed),
        )
        for place, vector in enumerate(vectors)
    )
    return replace(
        start,
        scaling=scaling.Scaling(norm, tuple(vectors), each),
        releases=cells,
        totals=_totals(start, vectors),
        measured=_GRIDS,
        products=(),
        rows_per_unit=UNBOUNDED,
        groups_per_unit=groups if start.public_keys is not None else min(groups, KEYS_MOST),
    )


def _totals(start: Plan, vectors: Sequence[Vector]) -> tuple[plan.NoisyRelease, ...]:
    return tuple(
        replace(
            start.releases[0],
            parts=(plan.Part("kept", index=(place,)), plan.Part("cut", index=(place,))),
            sensitivity=plan_groups.sensitivity_of_totals(vector, replaced=start.neighbours == "replace"),
        )
        for place, vector in enumerate(vectors)
        if vector.totals is not None
    )


def ways_of(asked: Plan) -> Iterator[Way]:
    """Yield each path on which this machine can run a plan about the made-up people: the kernel once it is compiled."""
    yield from ("sql", "patient")
    if compiled.is_ready() and kernel_path.supports(asked, _engine((), "sql")._source):
        yield "kernel"


def exact_of(asked: Plan, rows: Sequence[Row], way: Way, *, salt: str = SALT) -> ExactTable:
    """Return the exact table of a plan about people, read one way."""
    return _engine(tuple(rows), way).aggregate(asked, salt)


@lru_cache(maxsize=32)
def _engine(rows: tuple[Row, ...], way: Way) -> EmbeddedEngine:
    """Opening a table takes longer than reading a small one."""
    return EmbeddedEngine(open_source(as_table(rows), {}), path=way)


def released_cells(asked: Plan, exact: ExactTable) -> list[Cells]:
    """Return every exact integer of each release, by key and part; zeros are left out."""
    return [replay.cells_of(asked, exact, place) for place in range(len(asked.releases))]


def released_totals(asked: Plan, exact: ExactTable) -> list[Cells]:
    """Return every exact integer of each release of totals, by part; zeros are left out."""
    pairs = [{(part.kind,): exact.part(part, asked)[0] for part in each.parts} for each in asked.totals]
    return [{part: value for part, value in pair.items() if value} for pair in pairs]


def cells_too_far(asked: Plan, before: Sequence[Cells], after: Sequence[Cells]) -> list[str]:
    """Return every release whose cells are farther apart than the plan declares."""
    return _too_far("release", asked.releases, before, after)


def totals_too_far(asked: Plan, before: Sequence[Cells], after: Sequence[Cells]) -> list[str]:
    """Return every release of totals that are farther apart than the plan declares."""
    return _too_far("totals", asked.totals, before, after)


def _too_far(
    kind: str, releases: Sequence[plan.NoisyRelease], before: Sequence[Cells], after: Sequence[Cells]
) -> list[str]:
    return [
        f"{kind} {place}: {what}"
        for place, (each, left, right) in enumerate(zip(releases, before, after, strict=True))
        for what in replay.beyond(left, right, each.sensitivity)
    ]
