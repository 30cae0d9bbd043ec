"""What scaling and learning take beside dropping: the engine's time for a question, the rest of the answer being alike.

Count, sum and mean of ten million orders by item. The baseline drops what is beyond 2 rows in 5 groups. The same
question with learned bounds scales every person into caps, and adds up what that left and took. What it learns first,
once, are the lengths of people's vectors, by both norms. The plans are made here, so that their caps are fixed.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

from bench.measure import Ratio, Result, times_of_each
from bench.orders import AGGREGATES, orders, protected
from tacit.engine import Engine
from tacit.engine.kernel import compiled
from tacit.plan import BINS, UNBOUNDED, Cells, Plan, Profile, Scaling, Vector

ROWS, ITEMS, REPEATS = 10**7, 1000, 7
SCALED_LIMIT, LEARNED_LIMIT = 1.3, 1.0
SALT = "0"


def results() -> Iterator[Result]:
    """Yield the time of scaling by either norm, and of learning, against dropping."""
    compiled.compile_now()
    with orders(ROWS, ITEMS) as path:
        engine, dropped = question(path)
        plans = {
            "scaled by L1": (scaled(dropped, 1), SCALED_LIMIT),
            "scaled by L2": (scaled(dropped, 2), SCALED_LIMIT),
            "learned: rows, both norms": (learned(dropped, (rows_vector(),)), None),
            "learned: rows and sums, both norms": (learned(dropped, vectors_of(dropped)), LEARNED_LIMIT),
        }
        jobs = [lambda plan=plan: run(engine, plan) for plan in (dropped, *(plan for plan, _ in plans.values()))]
        for job in jobs:
            job()
        baseline, *times = (median(each) for each in times_of_each(*jobs, repeats=REPEATS))
        for (name, (_, limit)), time in zip(plans.items(), times, strict=True):
            yield Ratio(f"10^7 rows, {name}", time, baseline, limit)


def question(path: Path) -> tuple[Engine, Plan]:
    """Return the engine and the plan of the question with bounds by hand."""
    table = protected(path, items=ITEMS)
    asked = table.sql(f"SELECT item, {AGGREGATES} FROM {table.frame.declaration.name} GROUP BY item")
    return asked.session.engine, asked.plan(epsilon=1).plan


def run(engine: Engine, plan: Plan) -> None:
    """Have the kernel add up a plan's rows."""
    if engine.path_of(plan) != "kernel":
        raise RuntimeError("the kernel does not take this plan")
    engine.aggregate(plan, SALT)


def rows_vector() -> Vector:
    """Return the vector of a person's rows, whole up to 32 of them."""
    return Vector("rows", shift=15, totals="absolute", tail=1 << 20, tail_shift=6)


def vectors_of(plan: Plan) -> tuple[Vector, ...]:
    """Return the vectors of the rows and of the amounts about their middle."""
    middle = plan.measured[0].height // 2
    shift = 20 - (middle << 5).bit_length()  # whole where 32 rows are as far from the middle as they can be
    return rows_vector(), replace(rows_vector(), kind="centred", column=0, centre=middle, shift=shift, totals="signed")


def scaled(plan: Plan, norm: int) -> Plan:
    """Return the plan that scales, the two vectors by one weight."""
    unbounded = {"rows_per_unit": UNBOUNDED, "groups_per_unit": UNBOUNDED}
    return replace(plan, scaling=Scaling(norm, vectors_of(plan), ((0, 1),)), **unbounded)


def learned(plan: Plan, vectors: tuple[Vector, ...]) -> Plan:
    """Return the plan that counts people by the lengths of these vectors."""
    profiles = tuple(Profile(norm, vector) for norm in (1, 2) for vector in vectors)
    bins = tuple((place,) for place in range(BINS))
    return replace(plan, profiles=profiles, cells=Cells(plan.keys, plan.public_keys), public_keys=bins)
