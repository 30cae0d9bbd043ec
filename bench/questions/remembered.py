"""An engine that reads rows once for each plan of a table: runs that follow draw noise, and learn and plan, anew.

Exact sums do not depend on noise, so equal plans have equal ones, except for plans that draw rows of a person at random
(quantiles, centres, counts of different values, and rows and groups bounded by hand): those read the rows in every run.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager

from tacit.engine.engine import EmbeddedEngine
from tacit.exact import ExactTable
from tacit.plan import UNBOUNDED, Plan


@contextmanager
def remembered() -> Iterator[None]:
    """Keep the exact sums of every plan that is asked inside, in memory; all questions inside are about one table."""
    kept: dict[str, list[ExactTable]] = {}
    read = EmbeddedEngine.parts

    def parts(self: EmbeddedEngine, plan: Plan, salt: str) -> Generator[ExactTable, None, None]:
        if plan.quantiles or plan.distincts or plan.rows_per_unit < UNBOUNDED:
            yield from read(self, plan, salt)
            return
        of = about(plan)
        if of not in kept:
            kept[of] = list(read(self, plan, salt))
        yield from kept[of]

    EmbeddedEngine.parts = parts  # type: ignore[method-assign]
    try:
        yield
    finally:
        EmbeddedEngine.parts = read  # type: ignore[method-assign]


def about(plan: Plan) -> str:
    """Return a text that is equal for plans with equal exact sums: all of a plan but its noise and its outputs."""
    scaling = plan.scaling
    factors = () if scaling is None else [vector.factors for vector in scaling.vectors]
    asked = [release.parts for release in (*plan.releases, *plan.totals)]
    bounds = (plan.rows_per_unit, plan.groups_per_unit, plan.measured, plan.products, plan.profiles, plan.cells)
    whose = (plan.unit, plan.neighbours, plan.where, plan.keys, plan.public_keys)
    return repr((whose, bounds, asked, scaling, factors))
